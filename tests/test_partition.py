"""Partitions keep the promised cell size, and route rows, CSR, blocks and saved states alike, as numpy does."""

from __future__ import annotations

import lzma
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from localsvm.errors import DataError, OptionError
from localsvm.partition import REGISTRY, create, growing, kmeans, size_spread, smallest_size
from localsvm.partition._nearest import Matrix, group
from localsvm.partition.centre_tree import vectors_of
from localsvm.threads import Threads

TREES = ["voronoi", "kmeans", "voronoi-manhattan", "kmeans-manhattan"]


def fit(name: str, X: Any, cell_size: int | None, y: Any = None, seed: int = 0) -> Any:
    return create(name).fit(X, np.zeros(X.shape[0]) if y is None else y, cell_size, np.random.default_rng(seed))


def normal(n: int, d: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((n, d), dtype=np.float32)


def sizes(partition: Any) -> list[int]:
    return [len(cell.rows) for cell in partition.training_cells()]


@st.composite
def rows_and_labels(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray]:
    """Few distinct values, so that rows, columns and projections coincide; some columns far off or tiny."""
    n, d, values = draw(st.integers(1, 70)), draw(st.integers(0, 4)), draw(st.integers(1, 6))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    scale = rng.choice([1, 1, 1e-3, 1e4], d)
    X = (rng.integers(0, values, (n, d)) * scale + rng.choice([0, 0, 1e3], d)).astype(np.float32)
    return X, rng.integers(0, 3, n).astype(np.float64)


def check_cells(partition: Any, X: np.ndarray, y: np.ndarray, cell_size: int) -> None:
    """Check that no cell is too large, and that each row, or one equal to it, is in its own cell.

    Rows that are equal but for their labels may be more than the size of a cell.
    """
    assigned, stands_for = partition.assign(X), np.zeros(len(X))
    kinds = np.unique(np.c_[X, y], axis=0, return_inverse=True)[1].reshape(-1)
    for index, cell in enumerate(partition.training_cells()):
        assert cell.rows.dtype == np.int64 and np.all(np.diff(cell.rows) > 0)
        assert np.all(assigned[cell.rows] == index)
        one_kind = np.all(X[cell.rows] == X[cell.rows[0]]) and len(set(y[cell.rows])) == len(cell.rows)
        assert 0 < len(cell.rows) <= cell_size or one_kind
        stands_for[cell.rows] += 1 if cell.weight is None else cell.weight
    assert np.array_equal(np.bincount(kinds, stands_for), np.bincount(kinds))


@settings(max_examples=150, deadline=None)
@given(rows_and_labels(), st.integers(1, 30), st.integers(0, 2**32))
def test_voronoi_keeps_its_promise(data: tuple[np.ndarray, np.ndarray], cell_size: int, seed: int) -> None:
    check_cells(fit("voronoi", data[0], cell_size, data[1], seed), *data, cell_size)
    further = REGISTRY["voronoi"].further().fit(*data, cell_size, np.random.default_rng(seed))
    check_cells(further, *data, cell_size)


def test_kmeans_has_no_empty_cell_where_distances_are_rounded() -> None:
    """One column is 1e7 times as wide as the other; hypothesis found the rows."""
    digits = "003230121013112122002230001310333131", "233112300103012101313232302131001010"
    wide, narrow = (np.asarray(list(map(int, each))) for each in digits)
    X = np.c_[wide * 1e4 + 1e3, narrow * 1e-3].astype(np.float32)
    y = np.asarray(list(map(float, "221211001002000000222020022101221011")))
    check_cells(fit("kmeans", X, 1, y, 17620724), X, y, 1)


@settings(max_examples=25, deadline=None)
@given(rows_and_labels(), st.integers(1, 30), st.integers(0, 2**32))
def test_kmeans_keeps_its_promise(data: tuple[np.ndarray, np.ndarray], cell_size: int, seed: int) -> None:
    check_cells(fit("kmeans", data[0], cell_size, data[1], seed), *data, cell_size)
    further = REGISTRY["kmeans"].further().fit(*data, cell_size, np.random.default_rng(seed))
    check_cells(further, *data, cell_size)


@settings(max_examples=60, deadline=None)
@given(rows_and_labels(), st.integers(1, 30))
def test_csr_rows_give_the_same_tree(data: tuple[np.ndarray, np.ndarray], cell_size: int) -> None:
    X, y = data
    dense, csr = fit("voronoi", X, cell_size, y), fit("voronoi", sparse.csr_array(X), cell_size, y)
    for name, array in dense.state().items():
        assert np.array_equal(array, csr.state()[name])
    assert np.array_equal(dense.assign(X), csr.assign(sparse.csr_array(X)))


@pytest.mark.parametrize("name", TREES)
def test_csr_routing_equals_dense_routing(name: str) -> None:
    X = normal(3000, 13)
    X[X < 0.4] = 0
    fitted = fit(name, sparse.csr_array(X), 100)
    assert np.array_equal(fitted.assign(sparse.csr_array(X)), fitted.assign(X))


def walk(partition: Any, x: np.ndarray) -> tuple[int, float]:
    """The cell of a row by its definition, |x - z|^2 - w in float64, and the margin of the closest decision."""
    s, node, margin = partition.state(), 0, np.inf
    while s["n_children"][node]:
        children = s["first_child"][node] + np.arange(s["n_children"][node])
        z, thresholds = s["centres"][children].astype(np.float64), s["thresholds"][children]
        if partition.manhattan:
            size = np.abs(z).sum(axis=1)
            scores = np.abs(x - z).sum(axis=1) - (size - size[0] - thresholds)
        else:
            squares = np.sum(z**2, axis=1)
            scores = np.sum((x - z) ** 2, axis=1) - (squares - squares[0] - 2 * thresholds)
        first, second = np.sort(scores)[:2]
        margin = min(margin, second - first)
        node = children[np.argmin(scores)]
    return int(s["cell"][node]), margin


@pytest.mark.parametrize("name", TREES)
def test_routing_against_the_definition(name: str) -> None:
    X = normal(2000, 11, seed=3)
    fitted = fit(name, X[:1500], 60)
    cells = fitted.assign(X)
    clear = 0
    for x, cell in zip(X.astype(np.float64), cells, strict=True):
        expected, margin = walk(fitted, x)
        clear += margin > 1e-9
        assert cell == expected or margin <= 1e-9
    assert clear > 1990


@pytest.mark.parametrize("manhattan", [False, True])
def test_kmeans_goes_to_the_nearest_centre(manhattan: bool) -> None:
    X = normal(900, 5)
    fitted = fit("kmeans-manhattan" if manhattan else "kmeans", X, 60)
    s = fitted.state()
    children = s["first_child"][0] + np.arange(s["n_children"][0])
    apart = np.abs(X[:, None].astype(float) - s["centres"][children])
    nearest = np.argmin((apart if manhattan else apart**2).sum(axis=2), axis=1)
    vectors = vectors_of(s["centres"][children], manhattan)
    chosen = Matrix(X).choose(np.arange(900), vectors, s["thresholds"][children], manhattan)
    assert np.array_equal(nearest, chosen)
    assert s["n_children"][0] == 15


def test_two_manhattan_cells_meet_where_their_centres_are_equally_far() -> None:
    """All rows go to the nearer of two centres where neither side is too large."""
    X = np.concatenate([normal(300, 4), normal(300, 4, 1) + 2.0]).astype(np.float32)
    fitted = fit("voronoi-manhattan", X, 400)
    near = np.argmin(np.abs(X[:, None] - fitted.centres).sum(axis=2), axis=1)
    assert fitted.n_cells == 2 and np.array_equal(fitted.assign(X), near)


@pytest.mark.parametrize("name", sorted(REGISTRY))
def test_a_saved_state_routes_to_the_same_bits(name: str) -> None:
    X = normal(800, 6)
    fitted = fit(name, X, 50)
    saved = {key: array.copy() for key, array in fitted.state().items()}
    back = type(fitted).from_state(saved)
    assert back.n_cells == fitted.n_cells
    a, b = fitted.route(normal(500, 6, 9)), back.route(normal(500, 6, 9))
    assert a.shape == (500, fitted.n_cells) and np.allclose(a.sum(axis=1), 1, rtol=1e-14)
    assert all(np.array_equal(getattr(a, part), getattr(b, part)) for part in ("data", "indices", "indptr"))
    with pytest.raises(RuntimeError, match="not fitted here"):
        back.training_cells()


@pytest.mark.parametrize("name", TREES)
def test_a_cell_does_not_depend_on_the_block(name: str) -> None:
    X = normal(1200, 9)
    fitted = fit(name, X, 40)
    one_by_one = np.concatenate([fitted.assign(X[i : i + 1]) for i in range(0, 1200, 7)])
    assert np.array_equal(fitted.assign(X)[::7], one_by_one)


@pytest.mark.parametrize("name", TREES)
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_working_on_copies_of_rows_changes_nothing(name: str, form: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    X = form(np.abs(normal(3000, 5)))
    whole = fit(name, X, 50)
    monkeypatch.setattr(growing, "LOCAL_VALUES", 2000)
    parts = fit(name, X, 50)
    assert all(np.array_equal(a, parts.state()[key]) for key, a in whole.state().items())
    for a, b in zip(whole.training_cells(), parts.training_cells(), strict=True):
        assert np.array_equal(a.rows, b.rows)


@pytest.mark.whole
@pytest.mark.parametrize("name", TREES)
def test_threads_and_storage_change_nothing(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(growing, "LOCAL_VALUES", 4000)
    X, y = np.maximum(normal(12_000, 5), -0.5) + np.float32(0.5), np.zeros(12_000)
    X[::9] = X[0]
    one = fit(name, X, 60)
    check_cells(one, X, y, 60)
    # scikit-learn's k-means has other bits for sparse rows
    for form, jobs in ((np.asarray, 2), (np.asarray, 5), (sparse.csr_array if name == "voronoi" else np.asarray, 3)):
        with Threads(jobs) as threads:
            other = create(name).fit(form(X), y, 60, np.random.default_rng(0), threads)
        assert all(np.array_equal(a, other.state()[key]) for key, a in one.state().items())
        for a, b in zip(one.training_cells(), other.training_cells(), strict=True):
            assert np.array_equal(a.rows, b.rows)


@pytest.mark.parametrize("name", sorted(REGISTRY))
def test_one_seed_one_partition(name: str, tmp_path: Path) -> None:
    X = normal(1000, 4)
    np.save(tmp_path / "X.npy", X)
    a, b = fit(name, X, 70), fit(name, np.load(tmp_path / "X.npy", mmap_mode="r"), 70)
    for one, other in zip(a.training_cells(), b.training_cells(), strict=True):
        assert np.array_equal(one.rows, other.rows)


@pytest.mark.parametrize(("n", "cell_size"), [(10_000, 300), (4_001, 2_000), (4_000, 2_000), (2_001, 2_000)])
def test_voronoi_cells_are_balanced(n: int, cell_size: int) -> None:
    X = normal(n, 8)
    fitted = fit("voronoi", X, cell_size)
    check_cells(fitted, X, np.zeros(n), cell_size)
    spread = size_spread(sizes(fitted))
    assert -(-n // cell_size) <= spread["cells"] <= max(1.2 * n / cell_size, -(-n // cell_size))
    assert spread["balance"] < 1.15


def test_voronoi_balances_values_on_a_coarse_grid() -> None:
    X = np.random.default_rng(0).integers(0, 12, (6000, 3)).astype(np.float32)
    spread = size_spread(sizes(fit("voronoi", X, 500)))
    assert spread["balance"] < 1.15 and spread["largest"] <= 500
    assert spread["smallest"] >= smallest_size(500)


def test_outliers_do_not_decide_the_direction() -> None:
    X = np.c_[normal(5000, 6), np.zeros(5000, dtype=np.float32)]
    X[:3, 6] = 100
    centres = fit("voronoi", X, 2500).state()["centres"]
    difference = centres[2].astype(float) - centres[1]
    assert abs(difference[6]) < 0.2 * np.linalg.norm(difference)


@pytest.mark.parametrize("name", TREES)
def test_a_row_repeated_beyond_the_cell_size_is_weighted(name: str) -> None:
    """Rows without any feature, 4 203 of 49 749 as in w8a but of two labels, become two rows with weights."""
    rng = np.random.default_rng(1)
    X = sparse.random_array((49_749, 40), density=0.2, random_state=rng, dtype=np.float32).tocsr().toarray()
    empty = rng.choice(len(X), 4203, replace=False)
    X[empty] = 0
    y = np.zeros(len(X))
    y[empty[:1000]] = 1
    fitted = fit(name, sparse.csr_array(X), 2000, y)
    check_cells(fitted, X, y, 2000)
    weights = [cell.weight for cell in fitted.training_cells() if cell.weight is not None]
    assert len(weights) == 1 and sorted(weights[0])[-2:] == [1000, np.sum(~X.any(axis=1)) - 1000]
    assert min(sizes(fitted)) >= smallest_size(2000)


@pytest.mark.parametrize("name", TREES)
def test_all_rows_equal(name: str) -> None:
    X, y = np.ones((500, 3), dtype=np.float32), np.repeat([3.0, 1.0], 250)
    (cell,) = fit(name, X, 100, y).training_cells()
    assert cell.rows.tolist() == [0, 250] and cell.weight is not None and cell.weight.tolist() == [250, 250]


def test_rows_stay_as_they_are_where_one_cell_holds_them() -> None:
    (cell,) = fit("voronoi", np.ones((500, 3), dtype=np.float32), 500).training_cells()
    assert len(cell.rows) == 500 and cell.weight is None


def test_equal_rows_of_many_labels_cannot_be_divided() -> None:
    X = np.ones((6, 2), dtype=np.float32)
    assert sizes(fit("voronoi", X, 2, np.arange(6.0))) == [6]


def test_chunks_are_equal_random_and_answer_together() -> None:
    X = normal(103, 2)
    fitted = fit("chunks", X, 25)
    assert sorted(sizes(fitted)) == [20, 20, 21, 21, 21]
    rows = np.concatenate([cell.rows for cell in fitted.training_cells()])
    assert np.array_equal(np.sort(rows), np.arange(103)) and not np.array_equal(rows, np.arange(103))
    assert np.array_equal(fitted.route(X[:7]).toarray(), np.full((7, 5), 0.2))
    with pytest.raises(OptionError, match="answer for every row together"):
        fitted.assign(X)


def test_none_is_one_cell_of_any_size() -> None:
    X = normal(30, 2)
    assert sizes(fit("none", X, None)) == sizes(fit("none", X, 7)) == [30]
    assert fit("none", X, None).assign(X).tolist() == [0] * 30


def test_leaf_centres_lie_in_their_cells() -> None:
    fitted = fit("voronoi", normal(2000, 3), 200)
    assert fitted.centres.shape == (fitted.n_cells, 3) and fitted.centres.dtype == np.float32
    assert np.array_equal(fitted.assign(fitted.centres), np.arange(fitted.n_cells))
    assert create("chunks").centres is None


def test_spread() -> None:
    assert size_spread([1, 2, 3]) == {
        "cells": 3, "smallest": 1, "median": 2.0, "mean": 2.0, "largest": 3, "balance": 14 * 3 / 36
    }  # fmt: skip


@pytest.mark.parametrize("name", ["chunks", *TREES])
def test_mistakes_are_named(name: str) -> None:
    for size in (0, -3, None):
        with pytest.raises(OptionError, match="--cell-size must be at least 1"):
            fit(name, normal(5, 2), size)
    with pytest.raises(DataError, match="no rows"):
        fit(name, normal(0, 2), 5)
    with pytest.raises(OptionError, match="choose one of none, chunks"):
        create("voronoy")


def test_rows_of_another_width_are_refused() -> None:
    with pytest.raises(ValueError, match="does not fit rows of 3 features"):
        fit("voronoi", normal(5, 2), 2).assign(normal(5, 3))


@pytest.mark.parametrize("d", [1, 7, 8, 9, 61])
def test_projections_against_numpy(d: int) -> None:
    X, u = np.maximum(normal(50, d), 0) * 1000, np.random.default_rng(0).standard_normal(d)
    rows = np.array([3, 3, 49, 0])
    for matrix in (Matrix(X), Matrix(sparse.csr_array(X))):
        assert np.allclose(matrix.project(rows, u), X[rows].astype(float) @ u, rtol=1e-12)
        assert np.allclose(matrix.squares(rows), np.sum(X[rows].astype(float) ** 2, axis=1), rtol=1e-14)
        assert np.allclose(matrix.total(rows), X[rows].sum(axis=0, dtype=float), rtol=1e-14)
    assert np.array_equal(Matrix(X).project(rows, u), Matrix(sparse.csr_array(X)).project(rows, u))


def lloyd(X: np.ndarray, pair: np.ndarray, halves: int, nearest: int, least: int) -> np.ndarray:
    """The steps of csrc/nearest.h, in numpy."""
    for step in range(halves + nearest):
        projection = X @ (pair[1] - pair[0])
        nearer = np.count_nonzero(projection <= (pair[1] @ pair[1] - pair[0] @ pair[0]) / 2)
        n_low = len(X) // 2 if step < halves else min(max(nearer, least), len(X) - least)
        low, high = np.split(np.argsort(projection, kind="stable"), [n_low])
        pair = np.array([X[low].mean(axis=0), X[high].mean(axis=0)])
    return pair


@pytest.mark.parametrize(("n", "d"), [(2, 1), (3, 4), (40, 5), (501, 13)])
def test_pairs_of_centres_against_numpy(n: int, d: int) -> None:
    X = np.maximum(normal(n + 9, d), -0.5) ** 3
    rows = np.arange(3, n + 3)
    Z = X[rows].astype(float)
    first = Z[np.argmax(((Z - Z.mean(axis=0)) ** 2).sum(axis=1))]
    far = np.array([first, Z[np.argmax(((Z - first) ** 2).sum(axis=1))]])
    for halves, nearest, least in ((0, 0, 1), (3, 0, 1), (2, 4, max(1, n // 5)), (0, 3, n // 2)):
        for matrix in (Matrix(X), Matrix(sparse.csr_array(X))):
            moved, start = matrix.pair(rows, halves, nearest, least)
            assert np.array_equal(start, far)
            assert np.allclose(moved, lloyd(Z, far, halves, nearest, least), rtol=1e-12, atol=1e-12)
    with pytest.raises(ValueError, match="at least one row"):
        Matrix(X).pair(rows, 1, 1, n // 2 + 1)


def test_equal_values_are_equal_rows_however_stored() -> None:
    X = np.array([[0.0, 1, 2], [-0.0, 1, 2], [1, 0, 2], [0, 1, 3]], dtype=np.float32)
    stored = sparse.csr_array((X.ravel(), np.tile(np.arange(3), 4), np.arange(0, 13, 3)), shape=(4, 3))
    for matrix in (Matrix(X), Matrix(stored)):
        assert len(set(matrix.hashes(5).tolist())) == 3 and matrix.hashes(5)[0] == matrix.hashes(5)[1]
        assert matrix.same(np.zeros(4, dtype=np.int64), np.arange(4)).tolist() == [True, True, False, False]
    assert np.array_equal(Matrix(X).hashes(5), Matrix(stored).hashes(5))


def test_the_core_refuses_what_does_not_fit() -> None:
    matrix = Matrix(normal(5, 2))
    with pytest.raises(IndexError):
        matrix.project(np.array([5]), np.zeros(2))
    with pytest.raises(TypeError, match="C-contiguous float32"):
        Matrix(np.asfortranarray(normal(5, 2)))
    with pytest.raises(IndexError):
        group(np.arange(3), np.array([0, 1, 2], dtype=np.int32), 2)
    broken = sparse.csr_array(normal(2, 2))
    broken.indices[0] = 7
    with pytest.raises(ValueError, match="column index"):
        Matrix(broken)


@pytest.mark.parametrize("name", ["svmguide1", "w8a", "cod-rna"])
def test_real_data(name: str) -> None:
    folder = os.environ.get("LOCALSVM_DATA")
    if not folder:
        pytest.skip("LOCALSVM_DATA does not name the folder of the benchmark data")
    from sklearn.datasets import load_svmlight_file

    with lzma.open(Path(folder) / f"{name}.train.libsvm.xz") as file:
        X, y = load_svmlight_file(file, dtype=np.float32)
    fitted = fit("voronoi", sparse.csr_array(X), 2000, y)
    spread = size_spread(sizes(fitted))
    assert spread["largest"] <= 2000 and spread["balance"] < 1.15
    assigned = fitted.assign(sparse.csr_array(X))
    assert all(np.all(assigned[cell.rows] == i) for i, cell in enumerate(fitted.training_cells()))


def test_a_centre_keeps_as_many_rows_as_a_cell_may_have_at_least() -> None:
    X = np.asarray([[0.0], [0.1], [0.2], [5.0], [5.1], [9.0]], np.float32)
    centres = np.asarray([[0.1], [5.0], [9.0]], np.float32)
    split = kmeans._nearest(Matrix(X), np.arange(6), centres, 2, False)
    assert split is not None and split.child.tolist() == [0, 0, 0, 1, 1, 1]
    assert kmeans._nearest(Matrix(X), np.arange(6), centres, 3, False) is None
