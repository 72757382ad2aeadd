"""The dual solved block by block, without the kernel matrix: against LIBSVM and the solver of whole matrices."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from selecting import fit, score

from localsvm.errors import RunError
from localsvm.kernels import Kernel
from localsvm.kernels.blocks import BlockGram
from localsvm.kernels.scratch import Scratch
from localsvm.methods.cell import Cell
from localsvm.methods.cell_size import CellSize
from localsvm.methods.kernel import method as kernel_method
from localsvm.methods.kernel.svm import KernelSVM
from localsvm.selection.folds import stratified
from localsvm.solvers import blocks
from localsvm.solvers._smo import DualReport
from localsvm.solvers.blocks import BlockDual
from localsvm.targets.classification import Classification
from localsvm.threads import Threads
from tests.test_smo import GAUSSIAN, KERNELS, assert_equals_libsvm, blobs, gap_of, reference_kernel
from tests.test_smo import solve as solve_whole

BLOCK = 64


def bounds(y: np.ndarray, C) -> tuple[np.ndarray, np.ndarray]:
    return np.where(y < 0, -np.ones(len(y)) * C, 0.0), np.where(y > 0, np.ones(len(y)) * C, 0.0)


def solve(
    X, y, kernel, C, offset, tolerance, double=None, threads=1, block=BLOCK, start=None
) -> tuple[np.ndarray, np.ndarray, DualReport]:
    double = tolerance < 1e-4 if double is None else double
    with Threads(threads) as pool:
        problem = BlockDual(BlockGram(X, pool, Scratch()).matrix(kernel, double), y, offset, block=block)
        return problem.solve(*bounds(y, C), tolerance, start)


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda k: k.kind)
@pytest.mark.parametrize("C", [0.1, 1.0, 30.0])
def test_dual_objective_equals_libsvm(kernel: Kernel, C: float) -> None:
    assert_equals_libsvm(solve, kernel, C)


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda k: k.kind)
@pytest.mark.parametrize("offset", [False, True])
def test_equals_the_whole_matrix_with_weights(kernel: Kernel, offset: bool) -> None:
    X, y = blobs(500, 4, 2)
    box = np.where(y > 0, 2.5, 0.7) * (1 + np.arange(500) % 3)
    for tolerance, allowed in [(1e-3, 2e-3), (1e-6, 2e-6)]:
        b, _, report = solve(X, y, kernel, box, offset, tolerance)
        expected = solve_whole(X, y, kernel, box, offset, tolerance)[2]
        assert report.converged
        assert report.objective == pytest.approx(expected.objective, rel=allowed)
        assert report.bias == pytest.approx(expected.bias, abs=20 * tolerance)
        assert ((lambda lo, hi: (lo <= b) & (b <= hi))(*bounds(y, box))).all()


@given(st.integers(1, 300), st.sampled_from([0.05, 1.0, 20.0]), st.booleans(), st.integers(0, 10_000))
@settings(max_examples=40, deadline=None)
def test_gap_and_violation_are_certified(n: int, C: float, offset: bool, seed: int) -> None:
    X, y = blobs(n, 3, seed)
    b, f, report = solve(X, y, GAUSSIAN, C, offset, 1e-3, block=32)
    K = reference_kernel(X, GAUSSIAN)
    assert report.converged
    np.testing.assert_allclose(f, K @ b, atol=2e-6 * C * n)
    assert report.gap == pytest.approx(gap_of(K, y, b, C, report.bias), abs=1e-5 * C * C * n)
    if not offset:
        assert report.gap <= 1e-3 * C * n
    elif len(set(y)) == 2:
        g = y - K @ b
        lo, hi = bounds(y, C)
        assert g[b < hi].max() - g[b > lo].min() <= 1e-3 + 1e-5 * C * n


def test_products_stay_exact_over_many_blocks() -> None:
    """Kb is updated hundreds of times, rows leave and come back: what is left is float64 rounding."""
    X, y = blobs(1500, 5, 4, overlap=2.0)
    with Threads(1) as pool:
        problem = BlockDual(BlockGram(X, pool, Scratch()).matrix(GAUSSIAN), y, True, block=BLOCK)
        b, f, _ = problem.solve(*bounds(y, 10.0), 1e-3)
        np.testing.assert_allclose(f, problem.multiply(b), atol=1e-10)


@pytest.mark.parametrize("double", [False, True])
@pytest.mark.parametrize("offset", [False, True])
def test_threads_do_not_change_a_bit(double: bool, offset: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    from localsvm.kernels import blocks as kernels

    monkeypatch.setattr(kernels, "STRIP", 96)
    X, y = blobs(900, 4, 5)
    one, two = (solve(X, y, GAUSSIAN, 1.0, offset, 1e-3, double, threads) for threads in (1, 2))
    np.testing.assert_array_equal(one[0], two[0])
    np.testing.assert_array_equal(one[1], two[1])
    assert one[2] == two[2]


def test_a_start_at_the_solution_needs_no_block() -> None:
    X, y = blobs(400, 4, 6)
    b, _, _ = solve(X, y, GAUSSIAN, 1.0, True, 1e-3)
    again, _, report = solve(X, y, GAUSSIAN, 1.0, True, 1e-3, start=b)
    assert report.iterations == 0 and report.converged
    np.testing.assert_array_equal(again, b)


@pytest.mark.parametrize("label", [-1.0, 1.0])
def test_one_class_is_answered_by_its_constant(label: float) -> None:
    X, _ = blobs(20, 3, 9)
    b, _, report = solve(X, np.full(20, label), GAUSSIAN, 1.0, True, 1e-3)
    assert not b.any() and report.bias == label


def test_iterations_are_bounded_and_told() -> None:
    X, y = blobs(600, 4, 7)
    with Threads(1) as pool:
        problem = BlockDual(BlockGram(X, pool, Scratch()).matrix(GAUSSIAN), y, True, max_iterations=50, block=BLOCK)
        assert not problem.solve(*bounds(y, 10.0), 1e-3)[2].converged


@pytest.mark.parametrize("offset", [False, True])
def test_path_is_a_solve_at_each_cost(offset: bool) -> None:
    X, y = blobs(400, 4, 8)
    weight = (np.arange(400) % 5 > 0) * 1.0
    costs = np.asarray([0.1, 1.0, 10.0])
    with Threads(1) as pool:
        problem = BlockDual(BlockGram(X, pool, Scratch()).matrix(GAUSSIAN, True), y, offset, block=BLOCK)
        b, f, reports = problem.path(weight, problem.multiply(weight * y), costs, 1e-6)
        for c, cost in enumerate(costs):
            np.testing.assert_allclose(f[c], problem.multiply(b[c]), atol=1e-9)
            expected = problem.solve(*bounds(y, cost * weight), 1e-6)[2]
            assert reports[c].converged
            assert reports[c].objective == pytest.approx(expected.objective, rel=1e-5)
        _, on_f, on = problem.path(weight, None, costs[1:], 1e-6, before=(costs[0], b[0], f[0]))
        assert on[-1].objective == pytest.approx(reports[-1].objective, rel=1e-5)
        np.testing.assert_allclose(on_f[-1], f[-1], atol=1e-2)


def test_a_kernel_that_overflows_is_refused() -> None:
    X, _ = blobs(50, 3, 1)
    with Threads(1) as pool, pytest.raises(RunError, match="overflows"):
        BlockGram(X * np.float32(1e8), pool, Scratch()).matrix(Kernel("polynomial", 1.0, 1.0, 5))


@pytest.mark.parametrize("scheme", ["ova", "ava"])
@pytest.mark.parametrize("offset", [False, True])
def test_a_cell_is_cross_validated_as_with_whole_matrices(
    scheme: str, offset: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(3)
    y = rng.integers(0, 3, 240).astype(float)
    X = (rng.standard_normal((240, 3)) + y[:, None]).astype(np.float32)
    folds = np.sort(stratified(y, 4, rng))
    kind = Classification(np.arange(3.0), scheme)
    cell = Cell(X, y, kind, np.ones(240), np.ones(240), folds)
    method = KernelSVM(gamma=(0.05, 0.5), cost=(0.1, 1.0, 10.0), offset=offset, tolerance=1e-6)
    grid = method.grid(cell, 240.0, 4)
    results = []
    for limit in (20_000, 100):
        monkeypatch.setattr(kernel_method, "WHOLE_ROWS", limit)
        monkeypatch.setattr(blocks, "SMALLEST_BLOCK", BLOCK)
        part = replace(cell, threads=Threads(1 if limit > 100 else 2))
        scores = score(method, part, grid, range(2))
        state = fit(method, part, grid, scores, "refit").state
        results.append((scores, method.predictor(state, kind, 3).decision_function(X)))
    (whole, whole_f), (parts, parts_f) = results
    np.testing.assert_allclose(parts.loss, whole.loss, atol=1.01 / 240)
    if parts.best[2:] == whole.best[2:]:
        np.testing.assert_allclose(parts_f, whole_f, atol=1e-3)


def test_large_cells_need_no_square_of_memory() -> None:
    method = KernelSVM(gamma=(0.05,), cost=(1.0,), offset=True)
    assert method.memory(CellSize(100_000, 28, 1.0, 1, 0)) < 1 << 29
    for columns, arrays in ((28, 1), (100, 2)):  # distances of wide rows are kept beside the kernel
        for svm, rows in ((method, kernel_method.SINGLE_ROWS), (KernelSVM(), kernel_method.WHOLE_ROWS)):
            assert svm.memory(CellSize(rows, columns, 1.0, 1, 0)) > arrays * 4 * rows**2
    assert KernelSVM().memory(CellSize(100_000, 28, 1.0, 5, 0)) < 1 << 30
    pairs = KernelSVM().memory(CellSize(4000, 28, 1.0, 10, 4000)) - KernelSVM().memory(CellSize(4000, 28, 1.0, 10, 0))
    assert pairs >= 2 * 4 * 4000**2


def test_heavy_rows_do_not_end_a_solve_early() -> None:
    # the rows with the most to gain are the heavy ones, whose gap is small for their cost: a block of them has met the
    # tolerance of the whole problem long before the whole problem has
    rng = np.random.default_rng(695)
    n, d, cost, heavy = int(rng.choice([6500, 9000])), 10, 10.0 ** rng.uniform(-3, 0), 10.0 ** rng.uniform(2.5, 4)
    share, noise = rng.choice([0.03, 0.06, 0.1]), rng.choice([0, 0.3])
    X = rng.normal(size=(n, d)).astype(np.float32)
    score = X[:, 0] + rng.normal(size=n) * noise
    y = np.where(score > np.quantile(score, 1 - share), 1.0, -1.0)
    with Threads(1) as pool:
        problem = BlockDual(BlockGram(X, pool, Scratch()).matrix(Kernel("gaussian", 0.3)), y, False)
        assert problem.solve(*bounds(y, cost * np.where(y > 0, heavy, 1.0)), 1e-3)[2].converged
