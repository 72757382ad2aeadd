"""Columns far from 0 keep their digits where only differences count, by every reader and from every source."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from command_line import error, invoke
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from scipy.sparse import csr_array

from localsvm import estimators
from localsvm.data.blocks.shift import Shift
from localsvm.data.readers.libsvm import Layout, read, read_blocks
from localsvm.data.readers.origin import HEAD_ROWS, from_array, shift_of, shifted
from localsvm.data.synthetic import banana
from localsvm.estimators import LocalSVC
from localsvm.features.scaling import MODES
from localsvm.methods import methods
from localsvm.runs.config import TrainingConfig
from localsvm.runs.predict import LocalModel

POINTS = ("-q", "-j", "1", "-g", "0.5,4", "-C", "1,10", "-e", "1e-6")  # solutions are as near to each other as that
FAST = (*POINTS, "--metric", "none")
CELLS = ("-P", "voronoi", "-c", "80")
FAR = 1e8
WIDE = " 100000000:0"  # with such an index in it, a text is sparse


def rows(n: int = 240, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Rows (n, 2) of two classes, rounded to a thousandth, and their labels (n,)."""
    X, y = banana(n, np.random.default_rng(seed))
    return np.round(X.astype(np.float64), 3), y.astype(np.float64)


def text(X: np.ndarray, y: np.ndarray, more: str = "") -> str:
    lines = (" ".join(f"{j + 1}:{v:.17g}" for j, v in enumerate(row)) for row in X)
    return "".join(f"{label:g} {line}{more}\n" for label, line in zip(y, lines, strict=True))


def decisions(file: Path, model: Path) -> np.ndarray:
    lines = invoke("predict", "-q", "-j", "1", "--decision-values", file, model).stdout.splitlines()[1:]
    return np.asarray([line.split() for line in lines], np.float64)


@pytest.mark.fast(4)
@pytest.mark.parametrize(
    "options",
    [
        FAST,
        (*FAST, *CELLS),
        (*FAST, "-t", "laplacian", "--scale", "zscore"),
        (*FAST, "-m", "rbf", "--scale", "none"),
        (*FAST, "--scale", "minmax"),
        ("-q", "-m", "linear", "-e", "1e-6", "-C", "1,10", "--scale", "zscore"),
    ],
)
@pytest.mark.parametrize(("packed", "more"), [(False, ""), (True, ""), (False, WIDE), (True, WIDE)])
def test_a_shift_of_all_rows_changes_nothing(options: tuple[str, ...], packed: bool, more: str, tmp_path: Path) -> None:
    near, far = [], []
    for name, seed in (("train", 0), ("test", 1)):
        X, y = rows(seed=seed)
        for paths, by in ((near, 0.0), (far, FAR)):
            paths.append(tmp_path / f"{name}{by:g}")
            content = text(X + by, y, more).encode()
            paths[-1].write_bytes(gzip.compress(content) if packed else content)
    for paths in (near, far):
        invoke("train", *options, paths[0], paths[0].with_suffix(".h5"))
    values, expected = (decisions(paths[1], paths[0].with_suffix(".h5")) for paths in (far, near))
    assert_array_equal(values[:, 0], expected[:, 0])
    assert_allclose(values[:, 1:], expected[:, 1:], atol=1e-4)
    assert (values[:, 0] == rows(seed=1)[1]).mean() > (0.6 if "linear" in options else 0.85)
    with h5py.File(near[0].with_suffix(".h5")) as file:
        assert "origin" not in file["scaling"]


def test_it_does_not_matter_how_rows_are_read(tmp_path: Path) -> None:
    X, y = rows(3000)
    X[:, 1] = 0.0  # only a column that has values has an origin
    wide = np.column_stack([X, X[:, 0] + FAR, np.full(len(X), 0.1), X[:, 0] + 10.0])
    wide[HEAD_ROWS + 10 :, 1] = X[HEAD_ROWS + 10 :, 0]
    content = text(wide, y).encode()
    (tmp_path / "plain").write_bytes(content)
    (tmp_path / "packed").write_bytes(gzip.compress(content))
    plain = read(tmp_path / "plain", shifts=True)
    assert plain.shift is not None
    assert_array_equal(plain.shift.whole(5), [0, 0, wide[0, 2], 0, 0])
    expected = wide.astype(np.float32)
    expected[:, 2] = (wide[:, 2] - wide[0, 2]).astype(np.float32)
    assert_array_equal(plain.X, expected)
    for name in ("plain", "packed"):
        for jobs, block_bytes in ((1, 1 << 22), (2, 1000), (1, 20_000)):
            for dense in (True, False):
                data = read(tmp_path / name, shifts=True, jobs=jobs, block_bytes=block_bytes, dense=dense)
                assert_array_equal(data.X if dense else data.X.toarray(), plain.X)
                assert dense or data.X.data.all()
                assert_shift(data.shift, plain.shift)
            assert read(tmp_path / name, jobs=jobs, block_bytes=block_bytes).shift is None
    columns = np.asarray([0, 2, 4])
    for dense in (True, False):
        for name, kept, shift in (("packed", None, plain.shift), ("plain", columns, plain.shift.among(columns))):
            blocks = [b.X for b in read_blocks(tmp_path / name, Layout(5, dense, kept, shift), block_bytes=5000)]
            X = np.concatenate(blocks) if dense else sparse.vstack(blocks).toarray()
            assert_array_equal(X, plain.X if kept is None else plain.X[:, kept])
    moved, shift = from_array(wide, True)
    assert_shift(shift, plain.shift)
    assert_array_equal(moved, plain.X)
    assert_array_equal(shifted(wide, shift), plain.X)
    moved, shift = from_array(csr_array(wide), True)
    assert_shift(shift, plain.shift)
    assert_array_equal(moved.toarray(), plain.X)
    assert_array_equal(shifted(csr_array(wide), shift).toarray(), plain.X)
    assert from_array(wide.astype(np.float32), True)[1] is None  # what is lost is lost


def assert_shift(shift: Shift | None, expected: Shift) -> None:
    assert shift is not None
    assert_array_equal(shift.columns, expected.columns)
    assert_array_equal(shift.origin, expected.origin)


def test_columns_of_which_an_origin_is_told() -> None:
    shift = Shift.of(np.asarray([0.0, 5.0, 0.0, 7.0, 8.0]))
    assert shift is not None and Shift.of(None) is None and Shift.of(np.zeros(3)) is None
    assert_shift(shift, Shift(np.asarray([1, 3, 4]), np.asarray([5.0, 7.0, 8.0])))
    kept = np.asarray([0, 3, 4])
    selected = shift.among(kept)
    assert selected is not None and shift.among(np.asarray([0, 2])) is None
    assert_shift(selected, Shift(np.asarray([1, 2]), np.asarray([7.0, 8.0])))
    assert_shift(selected.within(kept), Shift(np.asarray([3, 4]), np.asarray([7.0, 8.0])))


def test_a_row_without_a_value_that_has_an_origin(tmp_path: Path) -> None:
    """Missing values of a column with an origin are 0 and stored in sparse rows; values at the origin are not."""
    lines = [f"{i % 2} 1:{FAR + i % 8 / 8} {2000 + i}:1\n" for i in range(HEAD_ROWS + 50)]
    lines[HEAD_ROWS + 7] = "1 2000:1\n"
    (tmp_path / "rows").write_text("".join(lines))
    (tmp_path / "packed").write_bytes(gzip.compress("".join(lines).encode()))
    for name in ("rows", "packed"):
        for block_bytes in (1 << 22, 300):
            data = read(tmp_path / name, shifts=True, block_bytes=block_bytes)
            expected = np.arange(HEAD_ROWS + 50) % 8 / 8
            expected[HEAD_ROWS + 7] = -FAR
            assert not isinstance(data.X, np.ndarray) and data.X.data.all()
            assert_array_equal(data.X[:, [0]].toarray()[:, 0], expected)
            assert_array_equal(data.X[:, [2000]].toarray()[:, 0], np.arange(HEAD_ROWS + 50) == 1)


def test_only_columns_that_lose_digits_have_an_origin() -> None:
    rng = np.random.default_rng(0)
    noise = rng.random(100)
    columns = {
        "time stamps of a week": (1.6e9 + np.round(6e5 * noise), True),
        "all in one step of float32": (1.6e9 + np.round(20 * noise), True),
        "years": (1990.0 + np.round(30 * noise), False),
        "whole numbers that float32 holds": (1.6e7 + np.round(100 * noise), False),
        "kelvin": (290.0 + 20 * noise, False),
        "one": (np.ones(100), False),
        "around zero": (noise - 0.5, False),
    }
    head = np.column_stack([values for values, _ in columns.values()])
    shift = shift_of(head, np.arange(len(columns)))
    assert shift is not None
    assert shift.columns.tolist() == [i for i, (_, far) in enumerate(columns.values()) if far]
    assert_array_equal(shift.origin, head[0, shift.columns])


def test_methods_to_which_differences_count() -> None:
    counts = {name for name, method in methods().items() if method().shift_invariant}
    assert counts == {"svm", "rbf", "lasvm", "one-class", "svml", "svm-knn", "mllkm"}
    for kernel, expected in (("laplacian", True), ("polynomial", False), ("linear", False)):
        assert methods()["svm"](kernel=kernel).shift_invariant == expected
    assert methods()["l3"](projection="rbf", gamma=(1.0,)).shift_invariant
    assert not methods()["l3"](projection="rbf", gamma=(1.0,), landmarks="pca").shift_invariant
    assert TrainingConfig().shifts and not TrainingConfig(scale="row").shifts
    linear = methods()["linear"]()
    assert [scale for scale in MODES if TrainingConfig(method=linear, scale=scale).shifts] == ["zscore", "minmax"]


@pytest.mark.parametrize("more", ["", WIDE])
def test_partition_files_of_shifted_rows(more: str, tmp_path: Path) -> None:
    X, y = rows()
    (tmp_path / "rows").write_text(text(X + FAR, y, more))
    invoke("partition", "-q", "--metric", "none", *CELLS, tmp_path / "rows", tmp_path / "cells.h5")
    invoke("train", *FAST, *CELLS, tmp_path / "rows", tmp_path / "a.h5")
    invoke("train", *POINTS, "--partition-file", tmp_path / "cells.h5", tmp_path / "rows", tmp_path / "b.h5")
    assert_array_equal(decisions(tmp_path / "rows", tmp_path / "a.h5"), decisions(tmp_path / "rows", tmp_path / "b.h5"))
    linear = ("train", "-q", "-m", "linear", "--partition-file", tmp_path / "cells.h5")
    assert "methods other than svm go without it" in error(*linear, tmp_path / "rows", tmp_path / "c.h5")


@pytest.mark.parametrize("more", ["", WIDE])
@pytest.mark.parametrize("scale", ["none", "zscore"])
def test_streams_of_shifted_rows(more: str, scale: str, tmp_path: Path) -> None:
    sgd = ("-q", "-m", "l3", "--projection", "rbf", "-g", "0.5", "-L", "40", "-C", "10", "--stream", "-s", "sgd")
    values = []
    for name, by in (("near", 0.0), ("far", FAR)):
        for part, seed in (("train", 0), ("test", 1)):
            X, y = rows(seed=seed)
            constant = np.full((len(X), 1), 0.1)  # no float32, but without an origin in the end
            (tmp_path / f"{name}.{part}").write_text(text(np.hstack([constant, X + by]), y, more))
        invoke("train", *sgd, "--scale", scale, tmp_path / f"{name}.train", tmp_path / f"{name}.h5")
        values.append(decisions(tmp_path / f"{name}.test", tmp_path / f"{name}.h5"))
    assert_array_equal(values[0][:, 0], values[1][:, 0])
    assert_allclose(values[0], values[1], atol=1e-3)
    assert (values[1][:, 0] == rows(seed=1)[1]).mean() > 0.8
    with h5py.File(tmp_path / "far.h5") as file:
        X = np.column_stack([np.zeros(240), rows()[0] + FAR])
        assert_array_equal(file["scaling"]["origin"], X[0])


@pytest.mark.parametrize("kind", [np.asarray, csr_array])
def test_estimators_keep_the_digits_of_float64(kind: Any, tmp_path: Path) -> None:
    (X, y), (test, truth) = rows(), rows(seed=1)
    near, far = (
        LocalSVC(gamma=[0.5, 4.0], cost=[1.0, 10.0], scale="none", tolerance=1e-6).fit(kind(X + by), y)
        for by in (0.0, FAR)
    )
    assert_allclose(far.decision_function(test + FAR), near.decision_function(test), atol=1e-4)
    assert_array_equal(far.predict(test + FAR), near.predict(test))
    (tmp_path / "m.h5").write_bytes(far.model_)
    with LocalModel(tmp_path / "m.h5") as model:
        assert_array_equal(model.decision_function(test + FAR)[:, 0], far.decision_function(test + FAR))
    assert (far.predict(test + FAR) == truth).mean() > 0.85
    assert_array_equal(far.decision_function(csr_array(test + FAR)), far.decision_function(test + FAR))


def test_a_linear_function_of_shifted_rows() -> None:
    X, y = rows()
    for scale in ("zscore", "minmax"):
        near, far = (estimators.LinearSVMClassifier(cost=1.0, scale=scale).fit(X + by, y) for by in (0.0, FAR))
        assert_allclose(far.coef_, near.coef_, rtol=1e-3, atol=1e-4)
        for kind in (np.asarray, csr_array):
            expected = (X + FAR) @ far.coef_[0] + far.intercept_[0]
            assert_allclose(far.decision_function(kind(X + FAR)), expected, atol=1e-4)


@pytest.mark.whole
@pytest.mark.parametrize("more", ["", WIDE])
def test_convert_tells_of_columns_far_from_0(more: str, tmp_path: Path) -> None:
    X, y = rows()
    for name, by in (("near", 0.0), ("far", FAR)):
        (tmp_path / name).write_text(text(X + by, y, more))
    done = invoke("convert", tmp_path / "far", tmp_path / "rounded")
    assert "2 features are so far from 0 that float32 loses digits" in done.stderr
    assert_array_equal(read(tmp_path / "rounded").X, (X + FAR).astype(np.float32))
    assert invoke("convert", tmp_path / "near", tmp_path / "same").stderr == ""


def test_convert_scales_columns_far_from_0(tmp_path: Path) -> None:
    X, y = rows()
    scaled = []
    for name, by in (("near", 0.0), ("far", FAR)):
        (tmp_path / name).write_text(text(X + by, y))
        assert invoke("convert", "--scale", "minmax", tmp_path / name, tmp_path / "scaled", "--force").stderr == ""
        scaled.append(read(tmp_path / "scaled", dense=True).X)
    assert_allclose(scaled[1], scaled[0], atol=1e-6)


def test_mistakes_are_found_where_they_are(tmp_path: Path) -> None:
    lines = text(*rows(50)).splitlines()
    lines[30] = "1 1:1 2:x"
    for name, pack in (("plain", bytes), ("packed", gzip.compress)):
        (tmp_path / name).write_bytes(pack("\n".join(lines).encode()))
        assert ":31:9: expected a number" in error("train", *FAST, tmp_path / name, tmp_path / "m.h5")
