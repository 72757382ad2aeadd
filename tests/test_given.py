"""A metric that a file holds is used as it is, after its scaling; and files with metrics from strangers are refused."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from dividing import divide
from scipy.sparse import csr_array
from strangers import of_metric, sign

from localsvm import LocalSVC
from localsvm.data.blocks.dataset import Dataset, as_examples
from localsvm.data.blocks.shift import Shift
from localsvm.data.readers.libsvm import read
from localsvm.engines.base import Head
from localsvm.errors import DataError, ModelError, OptionError
from localsvm.features.chain import Chain
from localsvm.features.columns import KeptColumns
from localsvm.features.origin import Origin
from localsvm.features.scaling import Scaling
from localsvm.methods.kernel.svm import KernelSVM
from localsvm.runs.config import TrainingConfig
from localsvm.runs.partition import partition_only
from localsvm.runs.predict import LocalModel
from localsvm.runs.preparation.given import Given, read_given
from localsvm.runs.preparation.measured import ALL_ROWS
from localsvm.runs.train import run_key, train

POINT = TrainingConfig(KernelSVM(gamma=(1.0,), cost=(1.0, 2.0)), folds=2, metric="none")


def rows(seed: int = 0, n: int = 60, columns: Sequence[int] = range(4), width: int = 4) -> Dataset:
    """Labels by the first two of some columns; the others of so many are 0."""
    rng = np.random.default_rng(seed)
    X = np.zeros((n, width), np.float32)
    X[:, list(columns)] = rng.normal(size=(n, len(columns))) * np.geomspace(1, 9, len(columns))
    return Dataset(X, np.where(X[:, columns[0]] * X[:, columns[1]] > 0, 1.0, -1.0))


def learned(folder: Path, metric: str = "diag", scale: str = "std", **how: Any) -> Path:
    """A partition file with a metric of rows(**how)."""
    path = folder / f"{metric.replace(':', '-')}-{scale}.h5"
    partition_only(rows(**how), replace(POINT, metric=metric, scale=scale), path)
    return path


def trained(data: Dataset, given: Given, path: Path, **how: Any) -> dict[str, Any]:
    """The model's manifest, and the summary."""
    summary = train(data, given.fix(POINT), path, given=given, force=True, **how)
    with h5py.File(path) as file:
        return {"manifest": file.attrs["manifest"], "summary": summary}


@pytest.mark.parametrize(("metric", "scale"), [("diag", "std"), ("full", "zscore"), ("rank:2", "none")])
def test_the_same_data_give_the_same_model(metric: str, scale: str, tmp_path: Path) -> None:
    """A metric of a file gives the bits of a model that learns it; its error is of all rows, as the summary says."""
    summary = train(rows(), replace(POINT, metric=metric, scale=scale), tmp_path / "learned.h5")
    given = read_given(learned(tmp_path, metric, scale))
    assert (given.options["scale"], given.options["metric"]) == (scale, metric)
    result = trained(rows(), given, tmp_path / "given.h5")
    with h5py.File(tmp_path / "learned.h5") as file:
        assert result["manifest"] == file.attrs["manifest"]
    assert summary.metric == {"name": metric} and result["summary"].metric == {"name": metric, "note": ALL_ROWS}
    from_model = read_given(tmp_path / "learned.h5")
    assert from_model.digest == given.digest
    assert trained(rows(), from_model, tmp_path / "given.h5")["manifest"] == result["manifest"]


def test_whose_rows_learned_it_is_not_known_later(tmp_path: Path) -> None:
    newly_learned, given = divide(rows(), replace(POINT, metric="diag")), read_given(path := learned(tmp_path))
    assert newly_learned.only.fresh is not None and int(newly_learned.only.fresh.array.sum()) == 12  # a fifth
    for data in (rows(), rows(1)):
        divided = divide(data, given.fix(POINT), given=given)
        assert divided.only.fresh is None and divided.measured.told == {"name": "diag", "note": ALL_ROWS}
    of_partition = divide(rows(), replace(POINT, metric="diag"), path)
    assert of_partition.only.fresh is None and of_partition.measured.told == {"name": "diag", "note": ALL_ROWS}
    trained(rows(1), given, tmp_path / "other.h5")
    assert read_given(tmp_path / "other.h5").digest == given.digest


def test_rows_are_scaled_and_mapped_as_the_file_says(tmp_path: Path) -> None:
    given, data = read_given(learned(tmp_path, "full", "zscore")), rows(1)
    metric, scaling = given.chain.metric, given.chain.scaling
    assert metric is not None and scaling.offset is not None and scaling.factor is not None
    expected = ((data.X - scaling.offset) * scaling.factor).astype(np.float64) @ metric.values.astype(np.float64)
    divided = divide(rows(1), given.fix(POINT), given=given)
    mapped = divided.only.X.handle().rows(slice(0, 60))
    assert isinstance(mapped, np.ndarray)
    np.testing.assert_allclose(mapped[mapped[:, 0].argsort()], expected[expected[:, 0].argsort()], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("width", [6, 9, 12])
def test_columns_are_those_that_the_metric_knows(width: int, tmp_path: Path) -> None:
    """Columns that the data lack are 0, and values in others are ignored, in training as in prediction."""
    given = read_given(learned(tmp_path, columns=(1, 2, 5, 8), width=9))
    assert given.chain.columns.known.tolist() == [1, 2, 5, 8]
    data = rows(1, columns=(1, 2, 5), width=width)
    if width > 9:
        data.X[:, 10] = 7.0
    X = data.X.copy()
    trained(data, given, tmp_path / "m.h5")
    with LocalModel(tmp_path / "m.h5") as model:
        assert model.chain.columns.known.tolist() == [1, 2, 5, 8]
        assert model.chain.width == max(width, 9)
        wide = np.zeros((len(X), model.chain.width), np.float32)
        wide[:, :width] = X
        values = model.decision_function(wide)
        wide[:, 3] = 5.0
        np.testing.assert_array_equal(model.decision_function(wide), values)


def test_data_without_any_of_its_columns_are_refused(tmp_path: Path) -> None:
    given = read_given(learned(tmp_path))
    with pytest.raises(DataError, match=r"no row has a feature that the metric of .*diag-std.h5 knows"):
        divide(rows(columns=(5, 6), width=8), given.fix(POINT), given=given)


def test_a_matrix_is_not_for_sparse_rows(tmp_path: Path) -> None:
    wide = {"columns": (0, 1, 1500), "width": 1501}
    data = rows(**wide)  # type: ignore[arg-type]
    for metric in ("diag", "full"):
        given = read_given(learned(tmp_path, metric))
        sparse = Dataset(as_examples(csr_array(data.X)), data.y)
        assert divide(sparse, given.fix(POINT), given=given).only.X.dense  # the four columns are few
    with pytest.raises(OptionError, match="needs dense rows"):
        given.chain_of(Head("", 60, 180, KeptColumns(given.chain.columns.known, 1501, False), None))


def test_a_chain_is_moved_to_another_origin() -> None:
    shift, origin = Shift(np.asarray([1]), np.asarray([1000.0])), np.asarray([0.0, 1004.0])
    X = np.asarray([[1.0, 1007.0], [2.0, 1001.0]])
    scaling = Scaling("zscore", np.asarray([2.0, 3.0], np.float32), np.asarray([0.5, -1.0], np.float32))
    old = Chain(KeptColumns(None, 2, True), Origin(origin), scaling)
    expected = scaling.apply((X - origin).astype(np.float32))
    np.testing.assert_array_equal(old.apply(X), expected)
    new = old.read_from(shift)
    np.testing.assert_allclose(new.apply((X - [0.0, 1000.0]).astype(np.float32), read=True), expected)
    np.testing.assert_allclose(new.apply(X), expected)
    assert new.origin.values is not None and new.origin.values.tolist() == [0.0, 1000.0]
    np.testing.assert_allclose(old.read_from(None).apply(X.astype(np.float32)), expected)
    same = old.read_from(Shift(np.asarray([1]), origin[1:])).scaling
    assert same.offset is not None and same.offset.tolist() == [0.5, -1.0]
    assert replace(old, scaling=Scaling("std", np.ones(2, np.float32))).read_from(shift).scaling.offset is None


@pytest.mark.parametrize("far_first", [True, False])
def test_ranks_mean_the_same_however_rows_are_read(far_first: bool, tmp_path: Path) -> None:
    """Ranks of a file are those of the values, whether a column is read from an origin, or was when they were found."""
    X = np.random.default_rng(0).normal(size=(80, 3))
    X[:, 1] = 1000.0 + 0.5 * X[:, 1]
    files = tmp_path / "far", tmp_path / "wide"
    for file in files:
        lines = [f"{1 if a * c > 0 else -1} 1:{a!r} 2:{b!r} 3:{c!r}\n" for a, b, c in X.tolist()]
        file.write_text("".join(lines + ["1 1:1 2:1 3:1\n"] * (file.name == "wide")))
    learns, uses = files if far_first else files[::-1]
    config = replace(POINT, metric="diag", views="ranks")
    partition_only(read(learns, shifts=True), config, tmp_path / "cells.h5")
    given = read_given(tmp_path / "cells.h5")
    trained(read(uses, shifts=True), given, tmp_path / "m.h5")
    with LocalModel(tmp_path / "m.h5") as model:
        chains = [given.chain, model.chain]
        assert [chain.reading.shift is not None for chain in chains] == [far_first, not far_first]
        ranks = [np.asarray(chain.viewed(chain.scaled(X)))[:, 3:] for chain in chains]
        assert ranks[0][:, 1].std() > 0.8
        np.testing.assert_allclose(ranks[1], ranks[0], atol=0.1)


def test_a_journal_belongs_to_the_metric(tmp_path: Path) -> None:
    one, other = (read_given(learned(tmp_path, "diag", scale)) for scale in ("std", "zscore"))
    same = replace(other, options=one.options)
    keys = [run_key(divide(rows(), given.fix(POINT), given=given).prepared) for given in (one, same)]
    assert keys[0][0] != keys[1][0]
    differing = {name for name in keys[0][1] if keys[0][1][name] != keys[1][1][name]}
    assert differing == {"the content of --metric-file"}


def test_files_without_a_metric_are_refused(tmp_path: Path) -> None:
    train(rows(), POINT, tmp_path / "none.h5")
    with pytest.raises(ModelError, match=r"none.h5: no metric in this file; lsvm-partition --metric full makes one"):
        read_given(tmp_path / "none.h5")
    data = rows()
    data.y = np.random.default_rng(5).permutation(data.y)  # auto keeps the Euclidean metric
    partition_only(data, replace(POINT, metric="auto"), tmp_path / "auto.h5")
    with pytest.raises(ModelError, match="no metric in this file, as --metric auto chose none"):
        read_given(tmp_path / "auto.h5")
    (tmp_path / "text").write_text("1 1:1\n")
    with pytest.raises(ModelError, match="not a localsvm model or partition"):
        read_given(tmp_path / "text")


@pytest.mark.whole
@pytest.mark.parametrize("metric", ["diag", "rank:2", "auto"])
@pytest.mark.parametrize("kind", ["model", "partition"])
def test_metrics_of_strangers(metric: str, kind: str, tmp_path: Path) -> None:
    """Damaged metrics are refused in one line, by all that open such a file."""
    n = 240 if metric == "auto" else 60  # enough to choose one
    base, path = learned(tmp_path, metric, n=n), tmp_path / "stranger.h5"
    if kind == "model":
        base = tmp_path / "model.h5"
        train(rows(n=n), replace(POINT, metric=metric), base)
    wrong, tried = [], 0
    for damage in of_metric(base):
        if damage.kind in ("all 0", "all largest"):  # a metric of no use
            continue
        damage.make(base, path)
        tried += 1
        for use in (read_given, LocalModel if kind == "model" else lambda p: divide(rows(n=n), POINT, p)):
            try:
                use(path)
            except ModelError as error:
                message = str(error)
                if "has changed since" not in message and message.startswith(str(path)) and message.isprintable():
                    continue
                wrong.append(f"{damage.place} {damage.kind}: {message!r}")
            else:
                wrong.append(f"{damage.place} {damage.kind}: used by {use}")
    assert not wrong, "\n".join(wrong)
    assert tried > 40


def test_a_classifier_uses_the_metric_of_a_file(tmp_path: Path) -> None:
    path, data = learned(tmp_path, "rank:2", "zscore"), rows(1)
    classifier = LocalSVC(gamma=1.0, cost=1.0, metric_file=str(path)).fit(data.X, data.y)
    trained(rows(1), read_given(path), tmp_path / "m.h5")
    config = replace(read_given(path).fix(POINT), method=KernelSVM(gamma=(1.0,), cost=(1.0,)), folds=5)
    train(rows(1), config, tmp_path / "m.h5", given=read_given(path), force=True)
    with LocalModel(tmp_path / "m.h5") as model:
        np.testing.assert_array_equal(classifier.decision_function(data.X), model.decision_function(data.X)[:, 0])
    assert classifier.summary_.metric == {"name": "rank:2", "note": ALL_ROWS}
    with pytest.raises(ValueError, match="give one of the two"):
        LocalSVC(metric="diag", metric_file=str(path)).fit(data.X, data.y)
    with pytest.raises(ValueError, match="scale='minmax': metric_file fixes it, as 'zscore'"):
        LocalSVC(scale="minmax", metric_file=str(path)).fit(data.X, data.y)
    with pytest.raises(ValueError, match=r"X has 3 features, the metric of .* is for 4"):
        LocalSVC(metric_file=str(path)).fit(data.X[:, :3], data.y)
    with pytest.raises(ValueError, match=r"metric_file: .*nowhere: cannot read"):
        LocalSVC(metric_file=path.with_name("nowhere")).fit(data.X, data.y)
    with pytest.raises(ValueError, match="metric_file must be the name of a file, not 3"):
        LocalSVC(metric_file=3).fit(data.X, data.y)


@pytest.mark.parametrize("coarse", [False, True])
def test_what_a_file_keeps(coarse: bool, tmp_path: Path) -> None:
    """A file keeps the metric and its name, not from which rows it was learned."""
    cells = {"partition": "voronoi", "cell_size": 15, "coarse_size": 30} if coarse else {}
    partition_only(rows(), replace(POINT, metric="diag", **cells), path := tmp_path / "cells.h5")
    train(rows(), replace(POINT, metric="diag", **cells), model := tmp_path / "model.h5")
    for each in (path, model):
        with h5py.File(each) as file:
            assert json.loads(file.attrs["config"])["learned"] == {"name": "diag"}
            assert list(file["metric"]) == ["weights"]


@pytest.mark.parametrize(
    "more", [{"fingerprint": "0" * 64, "rows": 60}, {"fingerprint": "0" * 64, "rows": 60, "taken": 48, "key": 7}]
)
@pytest.mark.parametrize("kind", ["model", "partition"])
def test_what_earlier_files_kept_is_passed_over(kind: str, more: dict[str, Any], tmp_path: Path) -> None:
    config, path = replace(POINT, metric="diag"), learned(tmp_path)
    digest, cells = read_given(path).digest, divide(rows(), config, path)
    if kind == "model":
        train(rows(), config, path := tmp_path / "model.h5")
        with LocalModel(path) as model:
            values = model.decision_function(rows().X)
    with h5py.File(path, "r+") as file:
        kept = json.loads(file.attrs["config"])
        file.attrs["config"] = np.bytes_(json.dumps(kept | {"learned": kept["learned"] | more}).encode())
        changed = {"/@config"}
        if "key" not in more:  # with coarse cells the draw said it
            file["metric"].create_dataset("fresh", data=np.full(8, 0x11, np.uint8), fletcher32=True)
            changed.add("/metric/fresh")
        sign(file, changed)
    assert read_given(path).digest == digest
    if kind == "model":
        with LocalModel(path) as model:
            np.testing.assert_array_equal(model.decision_function(rows().X), values)
    else:
        divided = divide(rows(), config, path)
        assert divided.as_dict() == cells.as_dict() and divided.only.fresh is None
