"""Block conjugate gradients of kernel ridge regression against numpy's direct solver, and the system of a cell."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from value_cells import cell_of_values, examples

from localsvm.kernels import Kernel
from localsvm.kernels._kernels import padded, simd_level
from localsvm.kernels.blocks import BlockGram, KernelRows
from localsvm.kernels.gram import Gram
from localsvm.kernels.scratch import Scratch
from localsvm.kernels.symmetric import widened
from localsvm.methods.base import WHOLE
from localsvm.methods.cell import Cell, Job
from localsvm.methods.kernel.systems.duals import DualSystem
from localsvm.methods.kernel.systems.squares import SquaresSystem
from localsvm.solvers import least_squares
from localsvm.solvers._conjugate import Passes
from localsvm.solvers.least_squares import (
    LANDMARKS,
    MAX_PASSES,
    RENEWED,
    STALLED,
    HeldOutValues,
    Landmarks,
    Solved,
    Systems,
    factored,
    places,
    solve,
)
from localsvm.targets.loss_names import EXPECTILE, LEAST_SQUARES
from localsvm.targets.losses import Loss
from localsvm.threads import Threads

SMOOTH, ROUGH = Kernel("gaussian", 0.05), Kernel("laplacian", 1.5)
RIDGES = (1e-3, 0.03, 1.0, 40.0)
FOLDS = 3


@dataclass
class Problem:
    """The kernel (n, n) of some rows, in float32 and in float64, and systems of each fold and ridge on them."""

    K: np.ndarray
    systems: Systems
    wide: np.ndarray = field(init=False)
    passes: int = 0

    def __post_init__(self) -> None:
        self.wide = self.K.astype(np.float64)

    def product(self, vectors: np.ndarray) -> np.ndarray:
        """Each vector by itself: so its bits do not depend on the others."""
        self.passes += 1
        return widened(np.stack([vector[: len(self.K)] @ self.K for vector in vectors]), vectors.shape[1])

    def solve(self, tolerance: float, known: Sequence[tuple[np.ndarray, np.ndarray]] = (), **more: Any) -> Solved:
        n = len(self.K)
        return solve(self.product, self.systems, Landmarks(self.K[places(n)], n, places(n)), tolerance, known, **more)

    def expected(self) -> tuple[np.ndarray, np.ndarray]:
        """Coefficients and values (m, n) of all systems."""
        a = np.zeros(self.systems.y.shape)
        for out, y, ridge, mask in zip(
            a, self.systems.y, self.systems.ridge.astype(np.float64), self.systems.mask, strict=True
        ):
            some = np.flatnonzero(mask)
            out[some] = np.linalg.solve(self.wide[np.ix_(some, some)] + np.diag(ridge[some]), y[some].astype(float))
        return a, a @ self.wide

    def gap(self, a: np.ndarray) -> np.ndarray:
        """Duality gap (m,) of coefficients as a share of the loss, each as the solver has it, in float64."""
        a, ridge = np.asarray(a, np.float64), self.systems.ridge.astype(np.float64)
        rho = self.systems.mask * (self.systems.y - a @ self.wide - ridge * a)
        return np.asarray((rho**2 / ridge).sum(axis=1) / (ridge * a * a).sum(axis=1))


def problem(n: int, kernel: Kernel = SMOOTH, ridges: Sequence[float] = RIDGES, seed: int = 0) -> Problem:
    """Folds and all rows, by each of the ridges times weights of the rows."""
    X, y = examples(n, seed=seed)
    K = np.array(Gram(X, Scratch()).matrix(kernel)[:n, :n])
    rng = np.random.default_rng(seed)
    fold, weight = np.sort(rng.integers(0, FOLDS, n)), rng.choice([0.5, 1.0, 3.0], n)
    mask = np.repeat([fold != k for k in range(FOLDS + 1)], len(ridges), axis=0).astype(np.float32)
    ridge = np.where(mask > 0, np.tile(ridges, FOLDS + 1)[:, None] / weight, 1.0).astype(np.float32)
    Y = (mask * (y - 40.0) / 4.0).astype(np.float32)
    return Problem(K, Systems(Y, ridge, mask, np.repeat(np.arange(FOLDS + 1), len(ridges))))


@pytest.mark.parametrize("kernel", [SMOOTH, ROUGH], ids=lambda kernel: kernel.kind)
@pytest.mark.parametrize("n", [1, 2, 7, 150, LANDMARKS + 120])
@pytest.mark.fast(10)
def test_solutions_are_those_of_numpy(kernel: Kernel, n: int) -> None:
    """Several masks, ridges and weights are solved at once, and rows that a mask leaves out are scored."""
    given = problem(n, kernel)
    solved = given.solve(1e-7)
    a, f = given.expected()
    assert solved.converged.all()
    assert solved.a.dtype == solved.f.dtype == np.float32
    small = np.tile(np.asarray(RIDGES) < 0.01, FOLDS + 1)  # where float32 keeps few digits
    for some, allowed in ((small, 1e-2), (~small, 4e-3)):
        np.testing.assert_allclose(solved.f[some], f[some], atol=allowed)
        ridge = given.systems.ridge[some]
        np.testing.assert_allclose(ridge * solved.a[some], ridge * a[some], atol=allowed)
    assert not solved.a[given.systems.mask == 0].any()


@pytest.mark.parametrize("kernel", [SMOOTH, ROUGH], ids=lambda kernel: kernel.kind)
@pytest.mark.parametrize("tolerance", [1e-2, 1e-3, 1e-5])
@pytest.mark.fast(6)
def test_a_system_ends_at_its_gap_and_not_long_before(kernel: Kernel, tolerance: float) -> None:
    given = problem(LANDMARKS + 80, kernel, (0.03, 0.3, 1.0, 40.0))
    solved = given.solve(tolerance)
    gap = given.gap(solved.a)
    assert solved.converged.all()
    assert (gap <= 1.05 * tolerance).all()
    assert given.passes == solved.passes.max() + solved.passes.max() // RENEWED
    assert len(set(solved.passes.tolist())) > 1  # systems end by themselves
    first = solved.passes == solved.passes.max()
    assert (gap[first] > tolerance * 1e-6).all()


def test_a_ridge_below_rounding_ends_the_search_early_and_the_best_is_kept() -> None:
    """Sums in float32 hardly tell a ridge of 1e-5 from none beside eigenvalues of 100."""
    hard = problem(400, ridges=(1e-5,))
    found = hard.solve(1e-3)
    assert not found.converged.any() and (found.passes > STALLED).all() and (found.passes < MAX_PASSES).all()
    assert (hard.gap(found.a) < 10.0).all()


def test_f_is_the_product_of_the_coefficients() -> None:
    given = problem(300, ROUGH)
    solved = given.solve(1e-6)
    np.testing.assert_allclose(solved.f, solved.a @ given.wide, atol=3e-5 * np.abs(solved.a).sum(axis=1).max())


def test_known_solutions_shorten_the_search_and_change_nothing() -> None:
    """The next cost begins in the span of those before; of its own solution nothing is left to do."""
    ridges = (1.0, 0.3, 0.1)
    *known, last = (problem(LANDMARKS + 100, ROUGH, (ridge,)) for ridge in ridges)
    before = [(each.a, each.f) for each in (one.solve(1e-4) for one in known)]
    cold, warm = last.solve(1e-4), last.solve(1e-4, before)
    one = last.solve(1e-4, before[-1:])
    assert warm.converged.all() and cold.converged.all()
    assert (warm.passes <= one.passes).all() and (one.passes <= cold.passes).all()
    assert warm.passes.sum() < cold.passes.sum()
    _, f = last.expected()
    np.testing.assert_allclose(warm.f, f, atol=0.01)
    np.testing.assert_allclose(warm.f, cold.f, atol=0.02)
    again = last.solve(2e-4, [(warm.a, warm.f)])
    assert not again.passes.any()
    np.testing.assert_allclose(again.a, warm.a, rtol=1e-3, atol=1e-4)


def test_a_known_solution_that_is_nothing_or_given_twice_does_no_harm() -> None:
    given = problem(120, ROUGH)
    cold = given.solve(1e-5)
    nothing = np.zeros_like(cold.a), np.zeros_like(cold.f)
    assert np.array_equal(given.solve(1e-5, [nothing]).passes, cold.passes)
    twice = given.solve(2e-5, [(cold.a, cold.f), (cold.a, cold.f)])
    assert twice.converged.all() and twice.passes.max() <= 1
    np.testing.assert_allclose(twice.f, cold.f, atol=1e-3)


def test_a_system_without_rows_has_no_coefficients_and_disturbs_no_other() -> None:
    given = problem(60)
    systems, alone = given.systems, given.solve(1e-6)
    empty = np.zeros((1, 60), np.float32)
    given.systems = Systems(
        np.concatenate([empty, systems.y]),
        np.concatenate([empty + 1.0, systems.ridge]),
        np.concatenate([empty, systems.mask]),
        np.concatenate([[FOLDS + 1], systems.group]),
    )
    solved = given.solve(1e-6)
    assert solved.converged.all() and solved.passes[0] == 0
    assert not solved.a[0].any() and not solved.f[0].any()
    np.testing.assert_allclose(solved.f[1:], alone.f, atol=1e-4)
    begun = given.solve(1e-6, [(solved.a, solved.f)])
    assert begun.converged.all() and not begun.a[0].any()


@pytest.mark.parametrize("tolerance", [1e-2, 1e-6])
def test_a_search_ends_where_held_out_values_no_longer_change(tolerance: float) -> None:
    """Rough rows and small ridges leave next to no loss: then a share of it takes many passes that change nothing."""
    given = problem(LANDMARKS + 120, ROUGH, ridges=[1e-4, 1e-3])
    masks = given.systems.mask
    out = [np.flatnonzero(mask == 0) for mask in masks]  # rows that follow each other, or none
    rows = [slice(some[0], some[-1] + 1) if len(some) else slice(0) for some in out]
    y = given.systems.y.max(axis=0) + given.systems.y.min(axis=0)  # each row is left out by one mask alone, as 0
    held_out = HeldOutValues(rows, [y[some].astype(np.float64) for some in rows])
    alone, ended = given.solve(tolerance), given.solve(tolerance, held_out=held_out)
    folds = masks.min(axis=1) == 0
    assert (ended.passes <= alone.passes)[folds].all() and ended.passes[folds].sum() < 0.8 * alone.passes[folds].sum()
    assert (ended.passes == alone.passes)[~folds].all() and ended.converged[~folds].all()
    exact = given.expected()[1]
    for i in np.flatnonzero(folds):
        left = np.square(exact[i, rows[i]] - y[rows[i]]).sum()
        assert np.square(ended.f[i, rows[i]] - exact[i, rows[i]]).sum() <= tolerance * left


def test_values_of_0_are_solved_by_0() -> None:
    given = problem(50)
    given.systems = Systems(given.systems.y * 0, given.systems.ridge, given.systems.mask, given.systems.group)
    solved = given.solve(1e-3)
    assert solved.converged.all() and not solved.a.any() and given.passes == 0


@settings(deadline=None, max_examples=40)
@given(
    n=st.integers(1, 60),
    seed=st.integers(0, 999),
    gamma=st.floats(1e-3, 30.0),
    kind=st.sampled_from(["gaussian", "laplacian", "manhattan"]),
    ridge=st.floats(1e-3, 40.0),
)
def test_any_small_problem_is_solved(n: int, seed: int, gamma: float, kind: str, ridge: float) -> None:
    given = problem(n, Kernel(kind, gamma), (ridge,), seed)
    solved = given.solve(1e-4)
    _, f = given.expected()
    assert solved.converged.all()
    np.testing.assert_allclose(solved.f, f, atol=0.03)


def test_landmarks_are_spread_over_the_rows() -> None:
    assert places(5).tolist() == [0, 1, 2, 3, 4]
    assert len(places(1200)) == 60
    many = places(20 * LANDMARKS + 3)
    assert len(many) == LANDMARKS and np.isin(np.diff(many), (20, 21)).all()


@dataclass
class Parts:
    """A search of some systems of n rows, preconditioned by k random rows for G, and what numpy finds in its place."""

    n: int
    k: int
    level: int
    given: Systems = field(init=False)
    search: Passes = field(init=False)

    def __post_init__(self) -> None:
        self.given, rng = problem(self.n, ridges=(0.5,)).systems, np.random.default_rng(1)
        a, f = (rng.standard_normal(self.given.y.shape).astype(np.float32) for _ in range(2))
        self.G = rng.standard_normal((self.k, self.n)).astype(np.float32)
        self.inner = np.eye(self.k) + np.einsum("kn,mn,ln->mkl", self.G, self.given.mask, self.G.astype(np.float64))
        self.search = Passes(
            self.given.y, self.given.ridge, self.given.mask, a * self.given.mask, f,
            widened(self.G, padded(self.n), padded(self.k)),
            np.linalg.cholesky(self.inner).astype(np.float32), self.level,
        )  # fmt: skip

    def rows(self, name: str) -> np.ndarray:
        return np.asarray(getattr(self.search, name)[:, : self.n], np.float64)

    def residual(self) -> np.ndarray:
        return np.asarray(self.given.y - self.given.mask * self.rows("f") - self.given.ridge * self.rows("a"))

    def preconditioned(self, rho: np.ndarray) -> np.ndarray:
        share = np.linalg.solve(self.inner, (rho @ self.G.T)[:, :, None])[:, :, 0]
        return np.asarray(rho - self.given.mask * (share @ self.G))

    def keep(self, some: list[int]) -> None:
        self.search.keep(some)
        self.given, self.inner = self.given.at(np.asarray(some)), self.inner[some]


parts_of_any_size = pytest.mark.parametrize(("n", "k"), [(9, 1), (40, 9), (1100, 34)])
at_any_level = pytest.mark.parametrize("level", range(simd_level() + 1))


@at_any_level
@parts_of_any_size
def test_a_search_looks_at_residuals_and_turns_to_what_reduces_them(n: int, k: int, level: int) -> None:
    parts = Parts(n, k, level)
    rho, search = parts.residual(), parts.search
    np.testing.assert_allclose(search.excess, (rho**2 / parts.given.ridge).sum(axis=1), rtol=1e-4)
    np.testing.assert_allclose(search.loss, (parts.given.ridge * parts.rows("a") ** 2).sum(axis=1), rtol=1e-4)
    z = parts.preconditioned(rho)
    search.turn(True)
    np.testing.assert_allclose(parts.rows("direction"), z, atol=2e-4 * np.abs(z).max())
    parts.keep([1, 3])
    before, size = parts.rows("direction"), (rho * z).sum(axis=1)[[1, 3]]
    search.turn(False)  # nothing has moved, so that the direction doubles
    np.testing.assert_allclose(parts.rows("direction"), z[[1, 3]] + before, atol=2e-3 * np.abs(z).max())
    search.look(parts.search.f * 0.5)
    rho = parts.residual()
    z = parts.preconditioned(rho)
    expected = z + ((rho * z).sum(axis=1) / size)[:, None] * 2.0 * before
    search.turn(False)
    np.testing.assert_allclose(parts.rows("direction"), expected, atol=2e-3 * np.abs(expected).max())


@at_any_level
@parts_of_any_size
def test_a_step_goes_as_far_as_the_curvature_says(n: int, k: int, level: int) -> None:
    parts = Parts(n, k, level)
    rho, search = parts.residual(), parts.search
    search.turn(True)
    direction, a, f = (parts.rows(name) for name in ("direction", "a", "f"))
    image = 3.0 * direction + np.random.default_rng(2).standard_normal(direction.shape)
    search.step(widened(image, padded(n)))
    curvature = (direction * (image + parts.given.ridge * direction)).sum(axis=1)
    np.testing.assert_allclose(search.curvature, curvature, rtol=1e-3)
    length = ((rho * parts.preconditioned(rho)).sum(axis=1) / curvature)[:, None]
    np.testing.assert_allclose(parts.rows("a"), a + length * direction, atol=2e-3)
    np.testing.assert_allclose(parts.rows("f"), f + length * image, atol=2e-3)
    np.testing.assert_allclose(search.excess, (parts.residual() ** 2 / parts.given.ridge).sum(axis=1), rtol=1e-4)
    assert not search.direction[:, n:].any() and not search.a[:, n:].any()


def test_a_direction_without_curvature_is_not_taken() -> None:
    given = problem(20, ridges=(0.5,)).systems
    nothing, factor = np.zeros_like(given.y), widened(np.zeros((padded(1), 20)), padded(20))
    search = Passes(
        given.y, given.ridge, given.mask, nothing, nothing, factor, np.ones((len(given.y), 1, 1), np.float32)
    )
    search.turn(True)
    search.step(widened(-search.direction[:, :20], padded(20)))
    assert (search.curvature < 0.0).all() and not search.a.any()
    with pytest.raises(ValueError, match="shape of the direction"):
        search.step(widened(nothing[:1], padded(20)))


# the system of a cell


def kernel_rows(cell: Cell, kernel: Kernel, threads: int = 1) -> KernelRows:
    return BlockGram(cell.X, Threads(threads), Scratch()).matrix(kernel)


@pytest.mark.parametrize("n", [3, 130, LANDMARKS + 200])
def test_rows_without_a_matrix_have_its_products(n: int) -> None:
    X, y = examples(n)
    cell = cell_of_values(X, y)
    K, few = Gram(cell.X, Scratch()).matrix(SMOOTH), kernel_rows(cell, SMOOTH, 2)
    vectors = np.random.default_rng(0).standard_normal((5, n)).astype(np.float32)
    expected = vectors.astype(np.float64) @ K[:n, :n].astype(np.float64)
    assert few.products(vectors).dtype == np.float32
    np.testing.assert_allclose(few.products(vectors), expected, atol=2e-6 * n)
    np.testing.assert_allclose(few.landmark_rows(places(n)), K[places(n)][:, :n], atol=1e-6)


@pytest.mark.parametrize("n", [40, LANDMARKS + 100])
def test_a_cell_without_a_matrix_is_solved_as_with_it(n: int) -> None:
    """Held-out values along the costs, from what is known of costs before, and the final models agree."""
    cell = cell_of_values(*examples(n), folds=3)
    K = Gram(cell.X, Scratch()).matrix(SMOOTH)
    assert K.shape == (padded(n), padded(n))
    jobs, found = [Job(0, fold, np.asarray([0.1, 2.0, 30.0])) for fold in range(3)], []
    for matrix in (K, kernel_rows(cell, SMOOTH)):
        system = SquaresSystem(cell, matrix, SMOOTH, 1e-6, cell.target.losses)
        paths = system.solve([job.at(0, 2) for job in jobs], [None] * 3, 1.0)
        more = system.solve([job.at(2, 3) for job in jobs], [path[-1] for path in paths], 1.0)
        paths = [[*path, *others] for path, others in zip(paths, more, strict=True)]
        values = np.full((3, 1, n), np.nan)
        system.held_out(jobs, paths, values)
        whole = system.whole_start([system.start(path[1]) for path in paths])
        (model,) = system.final([Job(0, WHOLE, np.asarray([2.0]))], [whole])
        assert model is not None and model.report.converged and model.gap <= 1e-6
        found.append((values, model.coef, model.report.bias))
    (values, coef, bias), (others, coef_of_rows, bias_of_rows) = found
    assert bias == bias_of_rows
    np.testing.assert_allclose(others, values, atol=2e-3)
    np.testing.assert_allclose(coef_of_rows, coef, atol=2e-2)


def test_held_out_values_are_those_of_refits() -> None:
    """Each fold has its own constant, the weighted mean of the values that it is trained on."""
    X, y = examples(120, seed=4)
    weight = np.random.default_rng(5).choice([1.0, 2.0, 5.0], len(y))
    cell = cell_of_values(X, y, folds=4, weight=weight)
    K, costs = Gram(cell.X, Scratch()).matrix(ROUGH), np.asarray([0.05, 1.0, 20.0])
    wide, n = K[:120, :120].astype(np.float64), len(y)
    system, jobs = SquaresSystem(cell, K, ROUGH, 1e-7, cell.target.losses), [Job(0, fold, costs) for fold in range(4)]
    values = np.full((3, 1, n), np.nan)
    system.held_out(jobs, system.solve(jobs, [None] * 4, 1.0), values)
    for fold in range(4):
        held = np.arange(n)[cell.held_out(fold)]
        kept = np.setdiff1d(np.arange(n), held)
        constant = np.average(cell.Y[kept, 0], weights=cell.weight[kept])
        for c, cost in enumerate(costs):
            ridge = np.diag(0.5 / (cost * cell.weight[kept]))
            a = np.linalg.solve(wide[np.ix_(kept, kept)] + ridge, cell.Y[kept, 0] - constant)
            np.testing.assert_allclose(values[c, 0, held], constant + wide[np.ix_(held, kept)] @ a, atol=2e-3)


def test_half_squares_of_twice_the_cost_have_the_same_values() -> None:
    """The expectile of level 1/2 is half the square; SMO solves it."""
    X, y = examples(100)
    found = []
    for system_of, loss, cost in (
        (SquaresSystem, Loss(LEAST_SQUARES), 3.0),
        (DualSystem, Loss(EXPECTILE, 0.5), 6.0),
    ):
        cell = cell_of_values(X, y, folds=3, losses=(loss,))
        system = system_of(cell, Gram(cell.X, Scratch()).matrix(ROUGH, True), ROUGH, 1e-6, cell.target.losses)
        jobs = [Job(0, fold, np.asarray([cost])) for fold in range(3)]
        values = np.full((1, 1, 100), np.nan)
        system.held_out(jobs, system.solve(jobs, [None] * 3, 1.0), values)
        found.append(values)
    np.testing.assert_allclose(found[0], found[1], atol=2e-3)


def test_a_model_is_refined_where_float32_misleads_the_search() -> None:
    """Sums in float32 hide residuals of a ridge of 1e-5 beside eigenvalues of hundreds; those of models are float64."""
    n, kernel, cost, tolerance = 500, Kernel("gaussian", 0.005), 5e4, 1e-3
    cell = cell_of_values(*examples(n, seed=2), folds=3)
    K = Gram(cell.X, Scratch()).matrix(kernel)
    system = SquaresSystem(cell, K, kernel, tolerance, cell.target.losses)
    (model,) = system.final([Job(0, WHOLE, np.asarray([cost]))], [None])
    assert model is not None and model.report.converged
    one, y = np.ones((1, n), np.float32), (cell.Y[:, 0] - model.report.bias)[None]
    given = Problem(np.array(K[:n, :n]), Systems(y.astype(np.float32), one * (0.5 / cost), one, np.zeros(1, np.int64)))
    a = np.zeros((1, n))
    a[0, model.rows] = model.coef
    assert given.gap(a) <= 1.01 * tolerance
    search = given.solve(tolerance)
    assert search.converged and given.gap(search.a) > 2.0 * tolerance, "there was something to refine"


def test_a_factor_solves_the_rows_of_a_mask() -> None:
    given = problem(150, ROUGH)
    for ridge, mask, y, expected in zip(
        given.systems.ridge, given.systems.mask, given.systems.y, given.expected()[0], strict=True
    ):
        factor = factored(given.K, ridge, mask, Scratch())
        assert factor is not None
        np.testing.assert_allclose(ridge * factor(y), ridge * expected, atol=1e-4)
    assert factored(-given.K, 0.0 * ridge, mask, Scratch()) is None


def test_what_takes_many_passes_is_solved_by_its_factor(monkeypatch: pytest.MonkeyPatch) -> None:
    """Problems with all rows and without a fold, of which the smoothest is done before."""
    cell, tolerance, used = cell_of_values(*examples(400, seed=3), folds=3), 1e-5, []
    K = Gram(cell.X, Scratch()).matrix(ROUGH)
    jobs = [Job(0, fold, np.asarray([cost])) for cost in (1e-3, 1e3) for fold in (0, WHOLE)]
    of = least_squares.factored
    monkeypatch.setattr(least_squares, "factored", lambda *given: used.append(len(given)) or of(*given))
    values = []
    for patience in (1000, 3):
        monkeypatch.setattr(least_squares, "patience", lambda n, patience=patience: patience)
        system = SquaresSystem(cell, K, ROUGH, tolerance, cell.target.losses)
        models = [each for some in (jobs[:2], jobs[2:]) for each in system.final(some, [None] * 2)]
        assert all(model is not None and model.report.converged for model in models)
        values.append([model.coef / max(1.0, model.cost) for model in models if model is not None])
        assert len(used) == (0 if patience == 1000 else 2)
    for searched, solved in zip(*values, strict=True):
        np.testing.assert_allclose(solved, searched, atol=2e-2 * np.abs(searched).max())


def test_the_best_of_the_refinements_is_kept() -> None:
    """Where a ridge is below float32, a further round may be worse; systems that are done are left alone."""
    n, kernel = 500, Kernel("gaussian", 0.005)
    cell = cell_of_values(*examples(n, seed=2), folds=3)
    K = Gram(cell.X, Scratch()).matrix(kernel)
    system = SquaresSystem(cell, K, kernel, 1e-3, cell.target.losses)
    costs = np.asarray([1.0, 5e4, 8e4, 1e5])  # how much better the last one gets is up to the processor's rounding
    y = np.repeat((cell.Y[:, 0] - cell.Y[:, 0].mean())[None], 4, axis=0).astype(np.float32)
    one = np.ones_like(y)
    systems = Systems(y, one * (0.5 / costs[:, None]).astype(np.float32), one, np.zeros(4, np.int64))
    begun = solve(system._product, systems, system._landmarks, 1e-3)
    solved, a, products = system._certified(systems, begun, 1e-3)
    np.testing.assert_allclose(products, np.stack([system._wide_product(each) for each in a]), atol=1e-9)
    given = Problem(np.array(K[:n, :n]), systems)
    first, gaps = given.gap(begun.a), given.gap(a)
    assert (gaps <= 1.001 * first).all() and (solved.converged == (gaps <= 1.001e-3)).all()
    assert solved.converged.tolist()[:2] == [True, True] and solved.passes[0] == begun.passes[0]
    assert gaps[2] < 0.5 * first[2]
