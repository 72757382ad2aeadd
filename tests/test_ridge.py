"""Values of rows by kernel ridge regression of others, and how a loss changes with them: refits and differences."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from localsvm.kernels import SQUARES, SUMS
from localsvm.representations.pair_slopes import OuterSlopes, SymmetricSlopes
from localsvm.solvers._ridge import HeldOut, RidgeLoss

RIDGE = 0.3


def problem(n: int, outputs: int = 1, d: int = 3) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Z (n, d) float32, Y (n, outputs) float32, weights (n,)."""
    rng = np.random.default_rng(n + outputs)
    Z = (0.7 * rng.standard_normal((n, d))).astype(np.float32)
    codes = rng.integers(0, max(2, outputs), n)
    Y = np.where(codes[:, None] == np.arange(outputs), 1.0, -1.0).astype(np.float32)
    return Z, Y, rng.random(n) + 0.1


def kernel(Z: np.ndarray) -> np.ndarray:
    """Gaussian kernel matrix (n, n) of the rows, in float64."""
    wide = Z.astype(np.float64)
    return np.exp(-np.square(wide[:, None] - wide).sum(axis=2))


def refits(K: np.ndarray, Y: np.ndarray, ridge: float, left_out: np.ndarray) -> np.ndarray:
    """Values of some rows by ridge regression of the others, in float64."""
    kept = np.setdiff1d(np.arange(len(Y)), left_out)
    system = K[np.ix_(kept, kept)] + ridge * np.eye(len(kept))
    return np.asarray(K[np.ix_(left_out, kept)] @ np.linalg.solve(system, Y[kept].astype(np.float64)))


def loss_of(K: np.ndarray, Y: np.ndarray, w: np.ndarray, ridge: float) -> float:
    values = np.concatenate([refits(K, Y, ridge, np.asarray([i])) for i in range(len(Y))])
    return float(w @ np.square(np.maximum(0.0, 1.0 - Y * values)).sum(axis=1))


@pytest.mark.parametrize(("n", "outputs"), [(1, 1), (2, 1), (2, 3), (7, 2), (40, 1), (33, 4)])
def test_values_are_those_of_refits(n: int, outputs: int) -> None:
    Z, Y, w = problem(n, outputs)
    K, solver = kernel(Z), RidgeLoss(n, outputs)
    values = solver.values(Z, Y, w, RIDGE)
    expected = np.concatenate([refits(K, Y, RIDGE, np.asarray([i])) for i in range(n)])
    assert values.shape == (n, outputs)
    assert_allclose(values, expected, atol=2e-5)
    assert solver.loss == pytest.approx(loss_of(K, Y, w, RIDGE), rel=1e-5)


@pytest.mark.parametrize("outputs", [1, 2])
def test_rows_left_out_together(outputs: int) -> None:
    """Nobody is left to say what the values of all rows are: they are 0."""
    Z, Y, _ = problem(12, outputs)
    groups = [np.asarray(group, np.int64) for group in ([0], [3, 1, 8], [], list(range(12)), [11])]
    solver = RidgeLoss(12, outputs)
    solver.fill(Z, Y, RIDGE)
    found = solver.left_out(groups)
    for rows, values in zip(groups, found, strict=True):
        assert_allclose(values, refits(kernel(Z), Y, RIDGE, rows), atol=2e-5)


@pytest.mark.parametrize(("n", "outputs"), [(2, 1), (9, 1), (20, 3), (41, 1)])
def test_the_gradient_is_that_of_differences(n: int, outputs: int) -> None:
    Z, Y, w = problem(n, outputs)
    w[0], K = 0.0, kernel(Z)
    solver = RidgeLoss(n, outputs)
    W, sums = (np.array(part) for part in solver.gradient(Z, Y, w, RIDGE))
    size, step = max(1.0, float(np.abs(W).max())), 1e-5
    for i, j in {(0, 1), (n // 2, 0), (n - 1, n // 3)}:
        change = np.zeros((n, n))
        change[i, j] = change[j, i] = step
        slope = (loss_of(K + change, Y, w, RIDGE) - loss_of(K - change, Y, w, RIDGE)) / (2 * step)
        assert 2.0 * W[i, j] == pytest.approx(slope * K[i, j], abs=2e-5 * size)
    assert_allclose(W, W.T)
    assert not np.diagonal(W).any()
    assert_allclose(sums, W.sum(axis=1), atol=1e-5 * size)
    slope = (loss_of(K, Y, w, RIDGE + step) - loss_of(K, Y, w, RIDGE - step)) / (2 * step)
    assert solver.ridge_slope == pytest.approx(slope, rel=1e-4, abs=1e-6)
    assert solver.loss == pytest.approx(loss_of(K, Y, w, RIDGE), rel=1e-5)


def test_a_row_alone_is_told_nothing() -> None:
    solver = RidgeLoss(1, 1)
    W, sums = solver.gradient(np.ones((1, 2), np.float32), np.ones((1, 1), np.float32), np.ones(1), RIDGE)
    assert (W.item(), sums.item(), solver.loss, solver.ridge_slope) == pytest.approx((0.0, 0.0, 1.0, 0.0), abs=1e-6)


def test_without_an_inverse_there_is_an_error_and_the_next_call_is_sound() -> None:
    Z, Y, w = problem(20)
    solver = RidgeLoss(20, 1)
    equal = np.zeros_like(Z)
    for work in (solver.gradient, solver.values):
        with pytest.raises(ArithmeticError, match="not positive definite"):
            work(equal, Y, w, 1e-9)
    again = solver.values(Z, Y, w, RIDGE)
    assert np.array_equal(again, RidgeLoss(20, 1).values(Z, Y, w, RIDGE))
    few = Z[:12], Y[:12], w[:12], RIDGE
    assert_allclose(solver.values(*few), RidgeLoss(12, 1).values(*few), rtol=1e-5)
    for found, expected in zip(solver.gradient(*few), RidgeLoss(12, 1).gradient(*few), strict=True):
        assert_allclose(found, expected, rtol=1e-4, atol=1e-7)


def test_arrays_of_other_shapes_are_refused() -> None:
    Z, Y, w = problem(5)
    solver = RidgeLoss(5, 1)
    for wrong in ((Z[:4], Y, w), (Z, Y[:, [0, 0]], w), (Z, Y, w[:4]), problem(6)):
        with pytest.raises(ValueError, match="must have n rows"):
            solver.values(*wrong, RIDGE)
    with pytest.raises(ValueError, match="must be positive"):
        RidgeLoss(0, 1)


# the second part of the rows by the first


@pytest.mark.parametrize("base", [SQUARES, SUMS])
@pytest.mark.parametrize(("n", "t"), [(2, 1), (9, 3), (70, 40), (70, 33)])
def test_rows_are_predicted_by_the_first_ones(n: int, t: int, base: str) -> None:
    """The slope of a loss with random derivatives by the values is that of differences, by the kernel and the ridge."""
    Z, Y, _ = problem(n)
    wide, y, rng = Z.astype(np.float64), Y[:t, 0], np.random.default_rng(0)
    apart = np.abs(wide[:, None] - wide)
    K = np.exp(-(apart if base == SUMS else apart**2).sum(axis=2))[:, :t]
    u, solver = rng.standard_normal(n - t).astype(np.float32), HeldOut(n, t, base)

    def values(K: np.ndarray, ridge: float = RIDGE) -> np.ndarray:
        return np.asarray(K[t:] @ np.linalg.solve(K[:t] + ridge * np.eye(t), y.astype(np.float64)))

    def change(up: np.ndarray, down: np.ndarray) -> float:
        return float(u @ (up - down) / 2e-5)

    assert_allclose(solver.values(Z, y, RIDGE), values(K), atol=2e-5)
    left, kernel, right = solver.slope(u)
    off_diagonal = K.copy()
    np.fill_diagonal(off_diagonal, 0.0)
    assert_allclose(kernel, off_diagonal, atol=1e-6)
    for i, j in {(n - 1, 0), (t, t - 1), (t - 1, 0), (t // 2, t - 1)}:
        step = np.zeros((n, t))
        step[i, j] = 1e-5
        if i != j:
            assert left[i] * right[j] == pytest.approx(change(values(K + step), values(K - step)), abs=2e-4)
    assert solver.ridge_slope == pytest.approx(
        change(values(K, RIDGE + 1e-5), values(K, RIDGE - 1e-5)), rel=1e-3, abs=1e-4
    )


def test_pairs_give_the_products_of_their_matrix() -> None:
    rng = np.random.default_rng(0)
    Z, left, right = (rng.standard_normal(shape).astype(np.float32) for shape in ((7, 2), 7, 3))
    W = rng.standard_normal((7, 7)).astype(np.float32)
    W += W.T
    outer = OuterSlopes(left, W[:, :3], right)
    for pairs, expected in ((SymmetricSlopes(W, W.sum(axis=1)), W), (outer, left[:, None] * W[:, :3] * right)):
        t = expected.shape[1]
        assert_allclose(pairs.rows, expected.sum(axis=1), rtol=1e-4)
        assert_allclose(pairs.columns, expected.sum(axis=0), rtol=1e-4)
        assert_allclose(pairs.times(Z), expected @ Z[:t], rtol=1e-4)
        both = expected @ Z[:t]
        both[:t] += expected.T @ Z
        assert_allclose(pairs.both(Z), both, rtol=1e-4)
        apart = np.abs(Z[:, None] - Z[:t])
        assert_allclose(pairs.apart(Z), (expected[:, :, None] * apart).sum(axis=(0, 1)), rtol=1e-4)


def test_a_part_that_is_none_and_arrays_of_other_shapes_are_refused() -> None:
    Z, Y, _ = problem(5)
    for n, t in ((5, 0), (5, 5)):
        with pytest.raises(ValueError, match="others not"):
            HeldOut(n, t)
    solver, y = HeldOut(5, 2), Y[:2, 0]
    for wrong in ((Z[:4], y), (Z, Y[:, 0]), (Z, Y[:2])):
        with pytest.raises(ValueError, match="must have n rows"):
            solver.values(*wrong, RIDGE)
    solver.values(Z, y, RIDGE)
    with pytest.raises(ValueError, match="for each value"):
        solver.slope(np.ones(2, np.float32))
    with pytest.raises(ArithmeticError):
        solver.values(np.zeros((5, 3), np.float32), y, -5.0)
