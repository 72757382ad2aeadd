"""Values of rows by kernel ridge regression of others, and how a loss changes with them: refits and differences."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from localsvm._core import LEVELS, simd_level
from localsvm.representations.pair_slopes import PairSlopes
from localsvm.solvers._ridge import HeldOut, LeftOut

RIDGE = 0.3


def problem(n: int, outputs: int = 1, d: int = 3) -> tuple[np.ndarray, np.ndarray]:
    """Z (n, d) and Y (n, outputs), float32."""
    rng = np.random.default_rng(n + outputs)
    Z = (0.7 * rng.standard_normal((n, d))).astype(np.float32)
    codes = rng.integers(0, max(2, outputs), n)
    Y = np.where(codes[:, None] == np.arange(outputs), 1.0, -1.0).astype(np.float32)
    return Z, Y


def kernel(Z: np.ndarray) -> np.ndarray:
    """Gaussian kernel matrix (n, n) of the rows, in float64."""
    wide = Z.astype(np.float64)
    return np.exp(-np.square(wide[:, None] - wide).sum(axis=2))


def refits(K: np.ndarray, Y: np.ndarray, ridge: float, left_out: np.ndarray) -> np.ndarray:
    """Values of some rows by ridge regression of the others, in float64."""
    kept = np.setdiff1d(np.arange(len(Y)), left_out)
    system = K[np.ix_(kept, kept)] + ridge * np.eye(len(kept))
    return np.asarray(K[np.ix_(left_out, kept)] @ np.linalg.solve(system, Y[kept].astype(np.float64)))


@pytest.mark.parametrize(("n", "outputs"), [(1, 1), (2, 1), (2, 3), (7, 2), (40, 1), (33, 4)])
def test_values_of_each_row_are_those_of_refits(n: int, outputs: int) -> None:
    Z, Y = problem(n, outputs)
    solver = LeftOut(n, outputs)
    solver.fill(Z, Y, RIDGE)
    expected = [refits(kernel(Z), Y, RIDGE, np.asarray([i])) for i in range(n)]
    assert_allclose(solver.each(), np.concatenate(expected), atol=2e-5)


@pytest.mark.parametrize("outputs", [1, 2])
def test_rows_left_out_together(outputs: int) -> None:
    """Nobody is left to say what the values of all rows are: they are 0."""
    Z, Y = problem(12, outputs)
    groups = [np.asarray(group, np.int64) for group in ([0], [3, 1, 8], [], list(range(12)), [11])]
    solver = LeftOut(12, outputs)
    solver.fill(Z, Y, RIDGE)
    found = solver.left_out(groups)
    for rows, values in zip(groups, found, strict=True):
        assert_allclose(values, refits(kernel(Z), Y, RIDGE, rows), atol=2e-5)


def test_without_an_inverse_there_is_an_error_and_the_next_call_is_sound() -> None:
    Z, Y = problem(20)
    solver = LeftOut(20, 1)
    solver.fill(np.zeros_like(Z), Y, 1e-9)
    for work in (solver.each, lambda: solver.left_out([np.arange(2)])):
        with pytest.raises(ArithmeticError, match="not positive definite"):
            work()
    for n in (20, 12):
        solver.fill(Z[:n], Y[:n], RIDGE)
        fresh = LeftOut(n, 1)
        fresh.fill(Z[:n], Y[:n], RIDGE)
        assert_allclose(solver.each(), fresh.each(), rtol=0 if n == 20 else 1e-5)


def test_arrays_of_other_shapes_are_refused() -> None:
    Z, Y = problem(5)
    solver = LeftOut(5, 1)
    for wrong in ((Z[:4], Y), (Z, Y[:, [0, 0]]), problem(6)):
        with pytest.raises(ValueError, match="must have n rows"):
            solver.fill(*wrong, RIDGE)
    with pytest.raises(ValueError, match="must be positive"):
        LeftOut(0, 1)


# the second part of the rows by the first


@pytest.mark.parametrize("level", LEVELS[: simd_level() + 1])
@pytest.mark.parametrize("t", [5, 12, 13, 31, 32, 33, 96, 141, 300])
def test_every_level_factors_matrices_of_all_sizes(monkeypatch: pytest.MonkeyPatch, level: str, t: int) -> None:
    """Whole blocks of rows and columns of the factor, and what is left of them."""
    monkeypatch.setenv("LOCALSVM_SIMD", level)
    Z, Y = problem(t + 3)
    expected = refits(kernel(Z), Y, RIDGE, np.arange(t, t + 3))
    assert_allclose(HeldOut(t + 3, t).values(Z, Y[:t], RIDGE), expected, atol=2e-5)
    alone = LeftOut(t + 3, 1)
    alone.fill(Z, Y, RIDGE)
    assert_allclose(alone.left_out([np.arange(t, t + 3)])[0], expected, atol=2e-5)


@pytest.mark.parametrize("level", LEVELS[: simd_level() + 1])
@pytest.mark.parametrize("t", [2, 13, 40])
def test_what_may_be_rounding_errors_is_no_pivot(monkeypatch: pytest.MonkeyPatch, level: str, t: int) -> None:
    """The last of the rows that predict is the first one again: of its pivot the ridge is all that is left."""
    monkeypatch.setenv("LOCALSVM_SIMD", level)
    Z, Y = problem(t + 1)
    Z[t - 1] = Z[0]
    solver = HeldOut(t + 1, t)
    with pytest.raises(ArithmeticError, match="not positive definite"):
        solver.values(Z, Y[:t], 1e-9)
    assert_allclose(solver.values(Z, Y[:t], 1e-3), refits(kernel(Z), Y, 1e-3, np.asarray([t])), atol=2e-2)


@pytest.mark.parametrize("kind", ["gaussian", "manhattan", "laplacian"])
@pytest.mark.parametrize(("n", "t", "outputs"), [(2, 1, 1), (9, 3, 1), (9, 3, 2), (70, 40, 1), (70, 33, 4)])
def test_rows_are_predicted_by_the_first_ones(n: int, t: int, outputs: int, kind: str) -> None:
    """Slopes by minus the base and by the ridge, of a loss with random ones by the values, are those of differences."""
    Z, Y = problem(n, outputs)
    wide, Y, rng = Z.astype(np.float64), Y[:t], np.random.default_rng(0)
    apart = np.abs(wide[:, None] - wide)
    apart = (apart if kind == "manhattan" else apart**2).sum(axis=2)[:, :t]
    r = np.sqrt(apart) if kind == "laplacian" else apart
    K = np.exp(-r)
    by_base = (
        K / np.maximum(2 * r, 0.02) if kind == "laplacian" else K
    )  # the derivative of exp(-base), or exp(-base^.5)
    U, solver = rng.standard_normal((n - t, outputs)).astype(np.float32), HeldOut(n, t, outputs, kind)

    def values(K: np.ndarray, ridge: float = RIDGE) -> np.ndarray:
        return np.asarray(K[t:] @ np.linalg.solve(K[:t] + ridge * np.eye(t), Y.astype(np.float64)))

    def change(up: np.ndarray, down: np.ndarray) -> float:
        return float((U * (up - down)).sum() / 2e-5)

    assert_allclose(solver.values(Z, Y, RIDGE), values(K), atol=2e-5)
    W, rows, columns = solver.slopes(U)
    assert not np.diagonal(W).any()
    assert_allclose(rows, W.sum(axis=1), rtol=1e-4, atol=1e-4)
    assert_allclose(columns, W.sum(axis=0), rtol=1e-4, atol=1e-4)
    for i, j in {(n - 1, 0), (t, t - 1), (t - 1, 0), (t // 2, t - 1)} - {(0, 0)}:
        step = np.zeros((n, t))
        step[i, j] = 1e-5
        assert W[i, j] == pytest.approx(by_base[i, j] * change(values(K + step), values(K - step)), abs=2e-4)
    assert solver.ridge_slope == pytest.approx(
        change(values(K, RIDGE + 1e-5), values(K, RIDGE - 1e-5)), rel=1e-3, abs=1e-4
    )


def test_pairs_give_the_products_of_their_matrix() -> None:
    rng = np.random.default_rng(0)
    Z, W = (rng.standard_normal(shape).astype(np.float32) for shape in ((7, 2), (7, 3)))
    pairs = PairSlopes(W, W.sum(axis=1), W.sum(axis=0))
    assert_allclose(pairs.times(Z), W @ Z[:3], rtol=1e-4)
    both = W @ Z[:3]
    both[:3] += W.T @ Z
    assert_allclose(pairs.both(Z), both, rtol=1e-4)
    apart = np.abs(Z[:, None] - Z[:3])
    assert_allclose(pairs.apart(Z), (W[:, :, None] * apart).sum(axis=(0, 1)), rtol=1e-4)


def test_a_part_that_is_none_and_arrays_of_other_shapes_are_refused() -> None:
    Z, Y = problem(5)
    for n, t in ((5, 0), (5, 5)):
        with pytest.raises(ValueError, match="others not"):
            HeldOut(n, t)
    solver, first = HeldOut(5, 2), Y[:2]
    for wrong in ((Z[:4], first), (Z, Y), (Z, Y[:2, 0]), (Z, Y[:2, [0, 0]])):
        with pytest.raises(ValueError, match="must have n rows"):
            solver.values(*wrong, RIDGE)
    solver.values(Z, first, RIDGE)
    with pytest.raises(ValueError, match="must be positive"):
        HeldOut(5, 2, 0)
    with pytest.raises(ValueError, match="for each value"):
        solver.slopes(np.ones((2, 1), np.float32))
    with pytest.raises(ArithmeticError):
        solver.values(np.zeros((5, 3), np.float32), first, -5.0)
