"""Columns without a value are left out: cost follows the values, and models are those of the columns that are left."""

from __future__ import annotations

import gzip
import json
import resource
from pathlib import Path

import h5py
import numpy as np
import pytest
from command_line import error, invoke, run_all
from numpy.testing import assert_array_equal
from scipy import sparse

from localsvm.data.blocks.columns import dense_copy, keep_columns, occurring
from localsvm.data.blocks.dataset import Dataset, as_examples
from localsvm.data.readers.libsvm import Layout, read, read_blocks
from localsvm.errors import DataError, ModelError
from localsvm.estimators import LocalSVC
from localsvm.features.columns import KeptColumns, check_columns
from localsvm.runs.predict import LocalModel

LAST = 2**31 - 1  # the largest index that a file may have
POINTS = ("-q", "-j", "1", "-g", "0.5,4", "-C", "1,10")
FAST = (*POINTS, "--metric", "none")
SGD = ("-q", "-j", "1", "-m", "linear", "-s", "sgd", "-C", "0.1,1", "--stream")
L3 = ("-q", "-j", "1", "-m", "l3", "-K", "2", "-C", "1")
MOST_BYTES = 3 << 30  # of address space: a vector of LAST float64 has 16 GiB, one of float32 8 GiB


def text(columns: list[int], rows: int = 60, seed: int = 0) -> str:
    """Lines of two classes that the first column separates; the values do not depend on the columns."""
    rng = np.random.default_rng(seed)
    lines = []
    for i in range(rows):
        values = [f"{c}:{v:.4g}" for c, v in zip(columns, rng.standard_normal(len(columns)), strict=True)]
        values[0] = f"{columns[0]}:{2 * (i % 2) - 1 + 0.2 * rng.standard_normal():.4g}"
        lines.append(f"{2 * (i % 2) - 1} {' '.join(values)}\n")
    return "".join(lines)


def decisions(rows: Path, model: Path) -> str:
    return invoke("predict", "-q", "-j", "1", "--decision-values", rows, model).stdout


@pytest.mark.parametrize("width", [60, 10**6])
@pytest.mark.parametrize("dense", [True, False])
def test_columns_are_found_and_kept(width: int, dense: bool) -> None:
    rng = np.random.default_rng(width)
    X = sparse.random_array((50, 60), density=0.02, random_state=rng, dtype=np.float32).toarray()
    wide = sparse.csr_array(X)
    wide.data[:3] = 0  # stored, but no value
    X = wide.toarray()
    where = np.sort(rng.choice(width, 60, replace=False))
    known = where[X.any(axis=0)]
    if dense:
        given = np.zeros((50, width if width < 1000 else 60), np.float32)
        where = where if width < 1000 else np.arange(60)
        known = where[X.any(axis=0)]
        given[:, where] = X
    else:
        given = as_examples(sparse.csr_array((wide.data, where[wide.indices], wide.indptr), shape=(50, width)))
    assert_array_equal(occurring(given), known)
    kept = keep_columns(given, known)
    assert_array_equal(kept if dense else dense_copy(kept), X[:, X.any(axis=0)])
    data = Dataset(given, np.zeros(50))
    KeptColumns.fit(data)
    assert_array_equal(data.columns, known)
    assert_array_equal(data.X, X[:, X.any(axis=0)])  # dense in any case: small data are


def test_where_all_columns_occur_nothing_changes() -> None:
    for X in (np.eye(3, dtype=np.float32), as_examples(sparse.csr_array(np.eye(3)))):
        data = Dataset(X, np.zeros(3))
        KeptColumns.fit(data)
        assert data.X is X and data.columns is None


@pytest.mark.parametrize("n_features", [20, 10**6])
@pytest.mark.parametrize("dense", [True, False])
def test_blocks_have_the_columns_asked_for(tmp_path: Path, n_features: int, dense: bool) -> None:
    columns = np.asarray([1, 4, 5, 17])
    (tmp_path / "rows").write_text("1 1:9 2:1 6:2\n-1 3:9 18:3\n1 21:9 999999:8\n")
    (block,) = read_blocks(tmp_path / "rows", layout=Layout(n_features=n_features, dense=dense, columns=columns))
    assert isinstance(block.X, np.ndarray) == dense
    expected = [[1, 0, 2, 0], [0, 0, 0, 3], [0, 0, 0, 0]]
    assert_array_equal(block.X if dense else dense_copy(block.X), expected)


def limited() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MOST_BYTES, MOST_BYTES))


@pytest.mark.whole
def test_memory_does_not_follow_the_largest_index(tmp_path: Path) -> None:
    (tmp_path / "wide").write_text(text([1, 7, LAST]))
    printed = run_all(
        ("train", *FAST, "wide", "m.h5"),
        ("train", *FAST, "--scale", "zscore", "-P", "voronoi", "-c", "20", "wide", "cells.h5"),
        ("train", "-q", "-j", "1", "-m", "l3", "-C", "1", "wide", "l3.h5"),
        ("train", *SGD, "wide", "sgd.h5"),
        ("partition", "-j", "1", "wide", "partition.h5"),
        ("cv", *FAST, "wide"),
        ("predict", "-j", "1", "wide", "m.h5"),
        ("predict", "-j", "1", "wide", "sgd.h5"),
        cwd=tmp_path, preexec_fn=limited,
    )  # fmt: skip
    assert printed.count("Accuracy = 100%") == 2


@pytest.mark.parametrize("options", [FAST, SGD, L3], ids=["svm", "sgd", "l3"])
def test_models_are_those_of_the_columns_that_occur(options: tuple[str, ...], tmp_path: Path) -> None:
    near, far = [1, 2, 3], [3, 10, 5000]
    for name, columns in (("near", near), ("far", far)):
        (tmp_path / name).write_text(text(columns))
        (tmp_path / f"{name}.test").write_text(text(columns, seed=1))
        invoke("train", *options, tmp_path / name, tmp_path / f"{name}.h5")
    expected = decisions(tmp_path / "near.test", tmp_path / "near.h5")
    assert decisions(tmp_path / "far.test", tmp_path / "far.h5") == expected
    rows = (tmp_path / "far.test").read_text()
    (tmp_path / "unseen").write_text(rows.replace(" 10:", " 4:5 10:").replace("\n", " 6000:1\n"))
    assert decisions(tmp_path / "unseen", tmp_path / "far.h5") == expected
    with h5py.File(tmp_path / "far.h5") as file, h5py.File(tmp_path / "near.h5") as other:
        assert_array_equal(file["columns"], [2, 9, 4999])
        assert "columns" not in other


def test_it_does_not_matter_how_rows_are_read(tmp_path: Path) -> None:
    plain = text([2, 3000, 10**7]).encode()
    (tmp_path / "plain").write_bytes(plain)
    (tmp_path / "packed").write_bytes(gzip.compress(plain))
    models = []
    for name, source, jobs, given in (("a", "plain", 1, None), ("b", "packed", 2, None), ("c", "-", 1, plain)):
        rows = source if source == "-" else tmp_path / source
        invoke("train", *FAST, "-j", jobs, rows, tmp_path / f"{name}.h5", stdin=given)
        with h5py.File(tmp_path / f"{name}.h5") as file:
            models.append(file.attrs["manifest"])
    assert models[0] == models[1] == models[2]


def test_a_partition_file_keeps_the_columns(tmp_path: Path) -> None:
    (tmp_path / "rows").write_text(text([3, 10, 5000], 120))
    cells = ("-P", "voronoi", "-c", "40")
    invoke("partition", "-q", "--metric", "none", *cells, tmp_path / "rows", tmp_path / "cells.h5")
    with h5py.File(tmp_path / "cells.h5") as file:
        assert_array_equal(file["columns"], [2, 9, 4999])
        assert file["centres"].shape[1] == 3
    invoke("train", *FAST, *cells, tmp_path / "rows", tmp_path / "a.h5")
    invoke("train", *POINTS, "--partition-file", tmp_path / "cells.h5", tmp_path / "rows", tmp_path / "b.h5")
    assert decisions(tmp_path / "rows", tmp_path / "a.h5") == decisions(tmp_path / "rows", tmp_path / "b.h5")


def test_the_reports_tell_both_numbers(tmp_path: Path) -> None:
    (tmp_path / "rows").write_text(text([3, 10, 5000]))
    result = invoke("train", "--json", "-j", "1", "-g", "1", "-C", "1", tmp_path / "rows", tmp_path / "m.h5")
    assert "60 rows, 3 of 5,000 features" in result.stderr
    summary = json.loads(result.stdout)["summary"]
    assert (summary["features"], summary["width"]) == (3, 5000)
    assert "3 of 5,000, scaling std" in invoke("inspect", tmp_path / "m.h5").stdout


def test_estimators_take_the_columns_they_were_given() -> None:
    rng = np.random.default_rng(3)
    X = rng.standard_normal((80, 3))
    y = (X[:, 0] > 0).astype(int)
    wide = np.zeros((80, 9))
    wide[:, [1, 4, 7]] = X
    narrow = LocalSVC(gamma=[0.1, 1.0], cost=[1.0, 10.0]).fit(X, y)
    expected = narrow.decision_function(X)
    for rows in (wide, sparse.csr_array(wide)):
        model = LocalSVC(gamma=[0.1, 1.0], cost=[1.0, 10.0]).fit(rows, y)
        assert model.n_features_in_ == 9 and model.summary_.features == 3
        other = rows.tolil() if sparse.issparse(rows) else rows.copy()
        other[:, 0] = 5.0  # of no influence: there was nothing to learn from it
        assert_array_equal(model.decision_function(other), expected)


def test_rows_of_another_width_are_refused(tmp_path: Path) -> None:
    (tmp_path / "rows").write_text(text([3, 10, 50]))
    invoke("train", *FAST, tmp_path / "rows", tmp_path / "m.h5")
    with LocalModel(tmp_path / "m.h5") as model:
        assert model.chain.width == 50
        assert len(model.predict(read(tmp_path / "rows").X)) == 60
        with pytest.raises(DataError, match="3 features, those of training 50"):
            model.predict(np.zeros((2, 3), np.float32))


def test_rows_without_any_value_are_refused(tmp_path: Path) -> None:
    (tmp_path / "rows").write_text("1 1:0 9:0\n-1 1:0\n" * 9)
    message = f"{tmp_path / 'rows'}: no row has a feature other than 0"
    assert message in error("train", *FAST, tmp_path / "rows", tmp_path / "m.h5")
    assert message in error("partition", tmp_path / "rows", tmp_path / "p.h5")
    assert message in error("train", *SGD, tmp_path / "rows", tmp_path / "m.h5")


@pytest.mark.parametrize("columns", [[5, 3], [3, 3], [-1, 3], [], [[1], [2]], [0.5, 1.0], [1, LAST]])
def test_columns_of_a_model_are_checked(columns: list[int]) -> None:
    with pytest.raises(ModelError, match="columns"):
        check_columns(np.asarray(columns) if columns else np.empty(0, np.int64), max(1, len(columns)))
