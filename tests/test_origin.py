"""Columns far from 0 keep their digits where only differences count, whoever reads them from what."""

from __future__ import annotations

import gzip
from pathlib import Path

import h5py
import numpy as np
import pytest
from command_line import error, invoke
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_array

from localsvm.data.origin import HEAD_ROWS, from_array, shift_of, shifted
from localsvm.data.reading import read, read_blocks
from localsvm.data.synthetic import banana
from localsvm.estimators import LocalSVC
from localsvm.methods import methods
from localsvm.runs.config import TrainingConfig
from localsvm.runs.prediction import LocalModel

FAST = ("-q", "-j", "1", "-g", "0.5,4", "-C", "1,10", "-e", "1e-6")  # solutions are as near to each other as that
CELLS = ("-P", "voronoi", "-c", "80")
FAR = 1e8


def rows(n: int = 240, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Two classes in the plane, to a thousandth."""
    X, y = banana(n, np.random.default_rng(seed))
    return np.round(X.astype(np.float64), 3), y.astype(np.float64)


def text(X: np.ndarray, y: np.ndarray) -> str:
    lines = (" ".join(f"{j + 1}:{v:.17g}" for j, v in enumerate(row)) for row in X)
    return "".join(f"{label:g} {line}\n" for label, line in zip(y, lines, strict=True))


def decisions(file: Path, model: Path) -> np.ndarray:
    lines = invoke("predict", "-q", "-j", "1", "--decision-values", file, model).stdout.splitlines()[1:]
    return np.asarray([line.split() for line in lines], np.float64)


@pytest.mark.parametrize(
    "options",
    [
        FAST,
        (*FAST, *CELLS),
        (*FAST, "-t", "laplacian", "--scale", "zscore"),
        (*FAST, "-m", "rbf", "--scale", "none"),
        (*FAST, "--scale", "minmax"),
    ],
)
@pytest.mark.parametrize("packed", [False, True])
def test_a_shift_of_all_rows_changes_nothing(options: tuple[str, ...], packed: bool, tmp_path: Path) -> None:
    near, far = [], []
    for name, seed in (("train", 0), ("test", 1)):
        X, y = rows(seed=seed)
        for found, by in ((near, 0.0), (far, FAR)):
            found.append(tmp_path / f"{name}{by:g}")
            content = text(X + by, y).encode()
            found[-1].write_bytes(gzip.compress(content) if packed else content)
    for found in (near, far):
        invoke("train", *options, found[0], found[0].with_suffix(".h5"))
    values, expected = (decisions(found[1], found[0].with_suffix(".h5")) for found in (far, near))
    assert_array_equal(values[:, 0], expected[:, 0])
    assert_allclose(values[:, 1:], expected[:, 1:], atol=1e-4)
    assert (values[:, 0] == rows(seed=1)[1]).mean() > 0.85
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
    assert_array_equal(plain.origin, [0, 0, wide[0, 2], 0, 0])
    expected = wide.astype(np.float32)
    expected[:, 2] = (wide[:, 2] - wide[0, 2]).astype(np.float32)
    assert_array_equal(plain.X, expected)
    for name in ("plain", "packed"):
        for jobs, block_bytes in ((1, 1 << 22), (2, 1000), (1, 20_000)):
            data = read(tmp_path / name, shifts=True, jobs=jobs, block_bytes=block_bytes)
            assert_array_equal(data.X, plain.X)
            assert_array_equal(data.origin, plain.origin)
            assert read(tmp_path / name, jobs=jobs, block_bytes=block_bytes).origin is None
    blocks = read_blocks(tmp_path / "packed", n_features=5, dense=True, origin=plain.origin, block_bytes=5000)
    assert_array_equal(np.concatenate([block.X for block in blocks]), plain.X)
    columns = np.asarray([0, 2, 4])
    blocks = read_blocks(tmp_path / "plain", n_features=5, dense=True, columns=columns, origin=plain.origin[columns])
    assert_array_equal(np.concatenate([block.X for block in blocks]), plain.X[:, columns])
    found, origin = from_array(wide, True)
    assert_array_equal(origin, plain.origin)
    assert_array_equal(found, plain.X)
    assert_array_equal(shifted(wide, origin), plain.X)
    assert from_array(wide.astype(np.float32), True)[1] is None  # what is lost is lost


def test_sparse_rows_stay_as_they_are(tmp_path: Path) -> None:
    (tmp_path / "rows").write_text("".join(f"{i % 2} 1:{FAR + i / 8} {2000 + i}:1\n" for i in range(50)))
    data, plain = (read(tmp_path / "rows", shifts=shifts, dense=False) for shifts in (True, False))
    assert data.origin is None
    assert_array_equal(data.X.data, plain.X.data)


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
    assert counts == {"svm", "rbf", "svml"}
    for kernel, expected in (("laplacian", True), ("polynomial", False), ("linear", False)):
        assert methods()["svm"](kernel=kernel).shift_invariant == expected
    assert methods()["l3"](projection="rbf", gamma=(1.0,)).shift_invariant
    assert not methods()["l3"](projection="rbf", gamma=(1.0,), landmarks="pca").shift_invariant
    assert TrainingConfig().shifts and not TrainingConfig(scale="row").shifts


def test_partition_files_of_shifted_rows(tmp_path: Path) -> None:
    X, y = rows()
    (tmp_path / "rows").write_text(text(X + FAR, y))
    invoke("partition", "-q", *CELLS, tmp_path / "rows", tmp_path / "cells.h5")
    invoke("train", *FAST, *CELLS, tmp_path / "rows", tmp_path / "a.h5")
    invoke("train", *FAST, "--partition-file", tmp_path / "cells.h5", tmp_path / "rows", tmp_path / "b.h5")
    assert_array_equal(decisions(tmp_path / "rows", tmp_path / "a.h5"), decisions(tmp_path / "rows", tmp_path / "b.h5"))
    linear = ("train", "-q", "-m", "linear", "--partition-file", tmp_path / "cells.h5")
    assert "methods other than svm go without it" in error(*linear, tmp_path / "rows", tmp_path / "c.h5")


def test_estimators_keep_the_digits_of_float64(tmp_path: Path) -> None:
    (X, y), (test, truth) = rows(), rows(seed=1)
    near, far = (
        LocalSVC(gamma=[0.5, 4.0], cost=[1.0, 10.0], scale="none", tolerance=1e-6).fit(X + by, y) for by in (0.0, FAR)
    )
    assert_allclose(far.decision_function(test + FAR), near.decision_function(test), atol=1e-4)
    assert_array_equal(far.predict(test + FAR), near.predict(test))
    (tmp_path / "m.h5").write_bytes(far.model_)
    with LocalModel(tmp_path / "m.h5") as model:
        assert_array_equal(model.decision_function(test + FAR)[:, 0], far.decision_function(test + FAR))
    assert (far.predict(test + FAR) == truth).mean() > 0.85
    assert_array_equal(far.predict(csr_array(test + FAR)), far.predict(test + FAR))


def test_mistakes_are_found_where_they_are(tmp_path: Path) -> None:
    lines = text(*rows(50)).splitlines()
    lines[30] = "1 1:1 2:x"
    for name, pack in (("plain", bytes), ("packed", gzip.compress)):
        (tmp_path / name).write_bytes(pack("\n".join(lines).encode()))
        assert ":31:9: expected a number" in error("train", *FAST, tmp_path / name, tmp_path / "m.h5")
