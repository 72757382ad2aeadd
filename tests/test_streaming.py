"""Training from a file that is read anew at each pass."""

from __future__ import annotations

import gzip
import tracemalloc
from collections.abc import Callable
from functools import reduce
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from localsvm.cli.train import train as train_command
from localsvm.data.blocks.dataset import as_examples
from localsvm.data.readers.libsvm import read
from localsvm.data.readers.measuring import measure
from localsvm.data.writers.libsvm import write
from localsvm.engines.disk import Disk
from localsvm.engines.stream import Stream
from localsvm.errors import DataError, OptionError
from localsvm.features.columns import KeptColumns
from localsvm.features.moments import Moments, merge
from localsvm.features.scaling import MODES, Scaling, scaling_of
from localsvm.methods import methods
from localsvm.runs.cells.schedule import Resources
from localsvm.runs.config import TrainingConfig
from localsvm.runs.predict import LocalModel
from localsvm.runs.streams import train as streaming
from localsvm.runs.streams.survey import surveyed
from localsvm.runs.streams.train import train_stream
from localsvm.solvers._linear import LinearRows
from localsvm.solvers.linear import solve
from localsvm.solvers.primal import LinearProblem
from localsvm.solvers.row_losses import HINGE


def rows_of(n: int = 900, classes: int = 2, d: int = 4, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = (rng.standard_normal((n, d)) * np.arange(1, d + 1) + 0.5).astype(np.float32)
    value = X[:, 0] + 0.3 * X[:, 1] + 0.3 * rng.standard_normal(n)
    return X, np.digitize(value, np.quantile(value, np.arange(1, classes) / classes)).astype(np.float64)


def written(path: Path, X: Any, y: np.ndarray) -> Path:
    write(path, X, y)
    return path


def manifest(path: Path) -> bytes:
    with h5py.File(path) as file:
        return bytes(file.attrs["manifest"])


def config_of(name: str = "linear", **options: Any) -> TrainingConfig:
    shared = {key: options.pop(key) for key in ("folds", "multiclass", "class_weights", "scale") if key in options}
    return TrainingConfig(methods()[name](**{"solver": "sgd", "passes": 60, "cost": (0.01,)} | options), **shared)


@pytest.mark.parametrize("factor", [1.0, 4.0])
def test_it_comes_near_the_solution_of_the_rows_in_memory(tmp_path: Path, factor: float) -> None:
    X, y = rows_of()
    file = written(tmp_path / "rows.libsvm", X, y)
    weights = ((1.0, factor),)
    summary = train_stream(file, config_of(class_weights=weights), tmp_path / "m.h5", block_bytes=4000)
    scaled, sign = scaling_of(X, "std").apply(X), np.where(y > 0, 1.0, -1.0)
    cost = 0.01 * np.where(y > 0, factor, 1.0)
    best = solve(LinearProblem(LinearRows(scaled), sign, cost, HINGE), 1e-6)
    with LocalModel(tmp_path / "m.h5") as model:
        f = model.decision_function(X.copy())[:, 0]
        accuracy = np.mean(model.predict(X.copy()) == y)
    w, *_ = np.linalg.lstsq(np.column_stack([scaled, np.ones(len(y))]).astype(np.float64), f, rcond=None)
    primal = 0.5 * w @ w + cost @ np.maximum(0.0, 1.0 - sign * f)
    assert best.report.primal * (1 - 1e-6) <= primal <= 1.01 * best.report.primal
    assert summary.rows == 900 and summary.class_rows == [450, 450] and summary.cv_error is None
    assert summary.support_vectors == np.count_nonzero(sign * f < 1.0)
    assert accuracy > 0.8


@pytest.mark.parametrize("name", ["linear", "kmeans-svm", "csvm", "llsvm", "l3"])
def test_every_linear_method_chooses_its_cost(tmp_path: Path, name: str) -> None:
    X, y = rows_of(classes=3)
    file = written(tmp_path / "rows.libsvm", X, y)
    clusters = {} if name == "linear" else {"clusters": (3.0,)}
    common = {"common": (4.0,)} if name == "csvm" else {}
    config = config_of(name, passes=5, cost=(1e-5, 0.1), folds=3, **clusters, **common)
    for jobs in (1, 2):
        summary = train_stream(file, config, tmp_path / f"{jobs}.h5", block_bytes=4000, resources=Resources(jobs=jobs))
    assert manifest(tmp_path / "1.h5") == manifest(tmp_path / "2.h5")
    with LocalModel(tmp_path / "1.h5") as model:
        error = np.mean(model.predict(X) != y)
        assert error < 0.35
    assert summary.cv_error == pytest.approx(error, abs=0.1)
    with h5py.File(tmp_path / "1.h5") as model_file:
        assert set(model_file["cells/model_cost"]) == {0.1}


@pytest.mark.parametrize("scheme", ["ova", "ava"])
def test_blocks_and_compression_do_not_matter_for_what_is_learned_first(tmp_path: Path, scheme: str) -> None:
    X, y = rows_of(classes=3)
    file = written(tmp_path / "rows.libsvm", X, y)
    packed = tmp_path / "rows.libsvm.gz"
    packed.write_bytes(gzip.compress(file.read_bytes()))
    for name in (file, packed):
        train_stream(name, config_of(multiclass=scheme), tmp_path / f"{name.suffix}.h5")
    assert manifest(tmp_path / ".libsvm.h5") == manifest(tmp_path / ".gz.h5")


@pytest.mark.parametrize("dense", [True, False])
@pytest.mark.parametrize("mode", MODES)
def test_scaling_by_blocks_is_scaling(mode: str, dense: bool) -> None:
    X = rows_of(300)[0]
    X[:, 3] = 7.0
    X[np.random.default_rng(1).random(X.shape) < 0.7] = 0.0
    examples: Any = X if dense else sparse.csr_array(X)
    whole = scaling_of(examples, mode)
    blocks = [Moments.of(as_examples(examples[i : i + 37])) for i in range(0, 300, 37)]
    parts = Scaling.fit(reduce(merge, blocks), mode)
    assert whole.state().keys() == parts.state().keys()
    for name, array in whole.state().items():
        assert_allclose(parts.state()[name], array, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("scale", ["std", "row"])
def test_a_stream_gives_the_rows_of_the_file(tmp_path: Path, scale: str) -> None:
    rng = np.random.default_rng(2)
    X = sparse.random_array((400, 2000), density=0.01, random_state=rng, dtype=np.float32).tocsr()
    y = rng.choice([2.0, 5.0], 400)
    file = written(tmp_path / "rows.libsvm", X, y)
    stream = Stream(file, 4, block_bytes=3000)
    data = read(file)
    KeptColumns.fit(data)
    assert_array_equal(stream.columns, data.columns)
    survey = surveyed(stream, scale, 50, rng)
    assert not stream.dense and survey.sample.shape == (50, stream.features)
    assert_array_equal(survey.observed.labels, [2.0, 5.0])
    assert survey.observed.class_rows == (np.sum(y == 2.0), np.sum(y == 5.0))
    parts = list(stream.parts(survey.scaled))
    assert len(parts) > 3 and all((np.diff(part.folds) >= 0).all() for part in parts)
    expected = scaling_of(data.X, scale).apply(data.X).toarray()
    streamed = np.concatenate([part.X.toarray() for part in parts])
    order = [np.lexsort(rows.T) for rows in (expected, streamed)]
    assert_allclose(expected[order[0]], streamed[order[1]], rtol=1e-5)
    folds = np.concatenate([part.folds for part in parts])
    assert_array_equal(np.bincount(folds), stream.fold_mass())
    assert np.ptp(stream.fold_mass()) <= 4  # even without a look at the rows
    assert measure(file).counts.rows == 400


@pytest.mark.whole
@pytest.mark.parametrize("name", ["linear", "llsvm", "l3"])
def test_sparse_rows_are_trained_on(tmp_path: Path, name: str) -> None:
    rng = np.random.default_rng(3)
    X = sparse.random_array((300, 2000), density=0.01, random_state=rng, dtype=np.float32).tolil()
    y = rng.choice([-1.0, 1.0], 300)
    X[:, [0]] = (y > 0).astype(np.float32)[:, None]
    file = written(tmp_path / "rows.libsvm", sparse.csr_array(X), y)
    clusters = {} if name == "linear" else {"clusters": (2.0,)}
    landmarks = {"landmarks_count": (300.0,)} if name == "l3" else {}
    config = config_of(name, cost=(0.01, 0.1), folds=2, **clusters, **landmarks)
    summary = train_stream(file, config, tmp_path / "m.h5", block_bytes=12_000)
    assert summary.rows == 300 and summary.cv_error is not None
    with LocalModel(tmp_path / "m.h5") as model:
        assert np.mean(model.predict(read(file).X) == y) > 0.9


def test_memory_is_that_of_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streaming, "write_model", lambda *args, **options: None)  # its buffers have a fixed size
    monkeypatch.setattr(streaming, "SAMPLE_ROWS", 1000)
    X, y = rows_of(60_000, d=20)
    file, size = written(tmp_path / "rows.libsvm", X, y), X.nbytes
    few = written(tmp_path / "few.libsvm", X[:50], y[:50])
    train_stream(few, config_of(), tmp_path / "m.h5")  # imports
    del X, y
    tracemalloc.start()
    train_stream(file, config_of(passes=1), tmp_path / "m.h5", block_bytes=1 << 17)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < size / 2


@pytest.mark.parametrize("edit", [lambda text: text + "1 1:2\n", lambda text: text.replace(".", "1", 1)])
def test_a_file_that_changes_is_noticed(edit: Callable[[str], str], tmp_path: Path) -> None:
    """Changes between the pass that counts rows and the one that reads them are an error; the size may stay."""
    X, y = rows_of(50)
    file = written(tmp_path / "rows.libsvm", X, y)
    rows = Disk(file)
    file.write_text(edit(file.read_text()))
    with pytest.raises(DataError, match="changed while it was read"):
        rows.head()


def test_what_streams_cannot_do_is_said(tmp_path: Path) -> None:
    X, y = rows_of(50)
    file = written(tmp_path / "rows.libsvm", X, np.ones(50))
    with pytest.raises(DataError, match="at least two classes"):
        train_stream(file, config_of(), tmp_path / "m.h5")
    write(tmp_path / "two.libsvm", X, y)
    for config, said in [
        (TrainingConfig(methods()["linear"]()), "-s sgd"),
        (TrainingConfig(), "-s sgd"),
        (TrainingConfig(config_of().method, partition="voronoi"), "-P voronoi"),
        (TrainingConfig(config_of().method, select="vote"), "--select vote"),
    ]:
        with pytest.raises(OptionError, match=said):
            train_stream(tmp_path / "two.libsvm", config, tmp_path / "m.h5")
    assert not (tmp_path / "m.h5").exists()


def test_the_command_line_streams(tmp_path: Path) -> None:
    from click.testing import CliRunner

    X, y = rows_of(200)
    file, model = written(tmp_path / "rows.libsvm", X, y), tmp_path / "m.h5"
    given = ["-m", "linear", "-s", "sgd", "-C", "0.1", "--stream", "-j", "1", str(file), str(model)]
    result = CliRunner().invoke(train_command, given)
    assert result.exit_code == 0 and model.exists(), result.output
    refused = CliRunner().invoke(train_command, [*given[:-2], "-", str(tmp_path / "new.h5")])
    assert refused.exit_code == 2 and "several times" in refused.output
