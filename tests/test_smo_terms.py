"""The dual solver with terms, of all losses of values and of the squared hinge, against scipy and scikit-learn."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import approx_fprime, minimize
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import QuantileRegressor
from sklearn.svm import LinearSVC, LinearSVR

from localsvm.kernels import Kernel
from localsvm.kernels._kernels import aligned, padded
from localsvm.kernels.gram import Gram
from localsvm.kernels.scratch import Scratch
from localsvm.solvers._smo import DualReport, KernelDual, Terms
from localsvm.solvers.boxes import Boxes
from localsvm.targets.loss_names import (
    ABSOLUTE,
    EXPECTILE,
    HUBER,
    INSENSITIVE,
    LEAST_SQUARES,
    LOSSES,
    QUANTILE,
    SQUARED_INSENSITIVE,
)
from localsvm.targets.losses import Loss

GAUSSIAN = Kernel("gaussian", 0.5)
OF_ALL = [
    Loss(QUANTILE, 0.9),
    Loss(EXPECTILE, 0.1),
    *(Loss(name, epsilon=0.2) for name in LOSSES if "tile" not in name),
]
SMOOTH = {LEAST_SQUARES, EXPECTILE, HUBER, SQUARED_INSENSITIVE}
each_loss = pytest.mark.parametrize("loss", OF_ALL, ids=lambda loss: loss.name)
all_fast = pytest.mark.fast(len(OF_ALL))


@dataclass(frozen=True)
class Problem:
    """Rows with costs (n,), and the kernel matrix (n, n) in float64 by which all is computed anew."""

    K: np.ndarray
    y: np.ndarray
    cost: np.ndarray
    loss: Loss

    def primal(self, b: np.ndarray) -> float:
        f = self.K @ b
        return float(0.5 * b @ f + self.cost @ self.loss(self.y - f))

    def dual(self, b: np.ndarray) -> float:
        numbers, inside = self.loss.dual, self.cost > 0.0
        above, below = np.maximum(b, 0.0)[inside], np.minimum(b, 0.0)[inside]
        curved = (numbers.plus * above**2 + numbers.minus * below**2) / self.cost[inside]
        return float(self.y @ b - 0.5 * b @ self.K @ b - numbers.e * np.abs(b).sum() - 0.5 * curved.sum())

    @property
    def boxes(self) -> tuple[np.ndarray, np.ndarray, Terms]:
        """Bounds and terms of the padded rows."""
        numbers, n = self.loss.dual, len(self.y)
        low, high, e, plus, minus = np.zeros((5, padded(n)))
        some = np.flatnonzero(self.cost > 0.0)
        low[some], high[some] = self.cost[some] * numbers.low, self.cost[some] * numbers.high
        e[some], plus[some], minus[some] = numbers.e, numbers.plus / self.cost[some], numbers.minus / self.cost[some]
        return low, high, Terms(e, plus, minus, float(self.cost.sum()))


def rows(n: int, d: int = 3, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Rows, and values with some outliers."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)).astype(np.float32)
    return X, np.sin(2.0 * X[:, 0]) + 0.5 * X[:, -1] + 0.2 * rng.standard_t(3, n)


def kernel_of(X: np.ndarray, kernel: Kernel = GAUSSIAN, double: bool = True) -> np.ndarray:
    """Padded kernel matrix."""
    return Gram(X, Scratch()).matrix(kernel, double)


def problem_of(K: np.ndarray, y: np.ndarray, cost: float | np.ndarray, loss: Loss) -> Problem:
    n = len(y)
    return Problem(K[:n, :n].astype(np.float64), y, np.broadcast_to(np.asarray(cost, np.float64), n), loss)


def solve(
    K: np.ndarray, problem: Problem, tolerance: float = 1e-8, start: np.ndarray | None = None, most: int = 0
) -> tuple[np.ndarray, np.ndarray, DualReport]:
    """Coefficients of the n rows, their values, and the report."""
    n, size = len(problem.y), len(K)
    low, high, terms = problem.boxes
    solver = KernelDual(K, np.pad(problem.y, (0, size - n)), unit_diagonal=True, max_iterations=most)
    begun = None if start is None else np.pad(start, (0, size - n))
    b, f, report = solver.solve(low, high, tolerance, begun, terms)
    assert not b[n:].any()
    assert np.all((low <= b) & (b <= high))
    return b[:n], f[:n], report


def smallest_primal(problem: Problem) -> float:
    """Minimum of the primal by L-BFGS, in coordinates v with f = Rv, K = RR'; slopes of losses are differences."""
    values, vectors = np.linalg.eigh(problem.K)
    root = vectors * np.sqrt(np.maximum(values, 0.0))

    def objective(v: np.ndarray) -> tuple[float, np.ndarray]:
        r, h = problem.y - root @ v, 1e-6
        slope = (problem.loss(r + h) - problem.loss(r - h)) / (2.0 * h)
        return float(0.5 * v @ v + problem.cost @ problem.loss(r)), v - root.T @ (problem.cost * slope)

    options = {"maxiter": 5000, "maxfun": 20000, "ftol": 1e-15, "gtol": 1e-9, "maxcor": 30}
    return float(minimize(objective, np.zeros(len(root)), jac=True, method="L-BFGS-B", options=options).fun)


@each_loss
@all_fast
def test_the_gap_is_that_of_primal_and_dual_and_the_primal_is_smallest(loss: Loss) -> None:
    X, y = rows(70)
    K, weight = kernel_of(X), np.random.default_rng(1).uniform(0.2, 2.0, len(y))
    for C in (0.1, 1.0, 20.0):
        problem = problem_of(K, y, C * weight, loss)
        b, f, report = solve(K, problem)
        np.testing.assert_allclose(f, problem.K @ b, atol=1e-10 * (1.0 + np.abs(b).sum()))
        primal, dual = problem.primal(b), problem.dual(b)
        assert report.converged
        assert report.objective == pytest.approx(dual, rel=1e-10)
        assert report.gap == pytest.approx(primal - dual, abs=1e-10 * (1.0 + primal))
        assert -1e-12 * primal <= report.gap <= 1e-8 * problem.cost.sum()
        best = smallest_primal(problem)
        assert primal <= best + report.gap + 1e-10 * primal
        if loss.name in SMOOTH:
            assert primal == pytest.approx(best, rel=1e-5)


@each_loss
@all_fast
def test_small_problems_against_scipy(loss: Loss) -> None:
    """The dual in two parts, b = above - below, is smooth."""
    X, y = rows(20, seed=2)
    K, n = kernel_of(X), len(y)
    problem = problem_of(K, y, 2.0, loss)
    numbers = loss.dual

    def negative(parts: np.ndarray) -> tuple[float, np.ndarray]:
        above, below = parts[:n], parts[n:]
        b = above - below
        term = numbers.e * parts.sum() + 0.25 * (numbers.plus * above @ above + numbers.minus * below @ below)
        slope = y - problem.K @ b
        return float(term + 0.5 * b @ problem.K @ b - y @ b), np.concatenate(
            [numbers.e + 0.5 * numbers.plus * above - slope, numbers.e + 0.5 * numbers.minus * below + slope]
        )

    probe = np.linspace(0.1, 0.4, 2 * n)
    assert np.allclose(approx_fprime(probe, lambda parts: negative(parts)[0]), negative(probe)[1], atol=1e-4)
    bounds = [(0.0, 2.0 * numbers.high)] * n + [(0.0, -2.0 * numbers.low)] * n
    options = {"ftol": 1e-15, "gtol": 1e-10, "maxiter": 20000, "maxfun": 50000}
    best = minimize(negative, np.zeros(2 * n), jac=True, method="L-BFGS-B", bounds=bounds, options=options)
    b, _, report = solve(K, problem)
    assert report.converged
    assert report.objective == pytest.approx(-best.fun, rel=1e-6)
    np.testing.assert_allclose(problem.K @ b, problem.K @ (best.x[:n] - best.x[n:]), atol=2e-3)


@each_loss
@all_fast
def test_float32_reaches_the_default_tolerance_with_a_certified_gap(loss: Loss) -> None:
    X, y = rows(300, seed=3)
    K = kernel_of(X, double=False)
    assert K.dtype == np.float32
    for C in (0.1, 10.0, 300.0):
        problem = problem_of(K, y, C, loss)
        b, _, report = solve(K, problem, 1e-3)
        primal = problem.primal(b)
        assert report.converged
        assert 0.0 <= report.gap <= 1e-3 * C * len(y)
        assert report.gap == pytest.approx(primal - problem.dual(b), abs=1e-9 * (1.0 + primal))


@settings(deadline=None, max_examples=60)
@given(
    n=st.integers(1, 50),
    seed=st.integers(0, 2**32 - 1),
    name=st.sampled_from(LOSSES),
    level=st.floats(0.01, 0.99),
    epsilon=st.floats(0.01, 2.0),
    C=st.floats(1e-3, 1e3),
    gamma=st.floats(1e-3, 10.0),
    repeated=st.booleans(),
    double=st.booleans(),
)
def test_gap_and_feasibility(
    n: int, seed: int, name: str, level: float, epsilon: float, C: float, gamma: float, repeated: bool, double: bool
) -> None:
    """The reported gap is the gap, and under the tolerance; rows of cost 0 have no coefficient."""
    X, y = rows(n, seed=seed)
    if repeated:
        X, y = np.round(X), np.round(y)
    K, rng = kernel_of(X, Kernel("gaussian", gamma), double), np.random.default_rng(seed)
    problem = problem_of(K, y, C * rng.choice([0.0, 0.5, 2.0], n), Loss(name, level, epsilon))
    b, f, report = solve(K, problem, 1e-3)
    assert report.converged
    assert not b[problem.cost == 0.0].any()
    np.testing.assert_allclose(f, problem.K @ b, atol=1e-9 * max(1.0, np.abs(b).sum()))
    primal = problem.primal(b)
    assert report.gap == pytest.approx(primal - problem.dual(b), abs=1e-9 * (1.0 + primal))
    assert report.gap <= 1e-3 * problem.cost.sum()


@pytest.mark.parametrize("loss", [Loss(QUANTILE, 0.2), Loss(ABSOLUTE)], ids=lambda loss: loss.name)
def test_without_a_term_all_is_as_without_terms(loss: Loss) -> None:
    X, y = rows(120, seed=4)
    K = kernel_of(X)
    problem = problem_of(K, y, 3.0, loss)
    low, high, terms = problem.boxes
    assert not (terms.e.any() or terms.plus.any() or terms.minus.any())
    alone = KernelDual(K, np.pad(y, (0, len(K) - len(y))), unit_diagonal=True)
    b, f, report = alone.solve(low, high, 1e-9)
    with_terms, values, other = solve(K, problem, 1e-9)
    assert report.converged and other.converged
    assert other.objective == pytest.approx(report.objective, rel=1e-7)
    np.testing.assert_allclose(values, f[: len(y)], atol=1e-4)
    np.testing.assert_allclose(with_terms, b[: len(y)], atol=1e-2)


def of_length_1(X: np.ndarray) -> np.ndarray:
    """Rows as they fit a linear kernel whose diagonal is 1, in float64."""
    wide = X.astype(np.float64)
    return np.asarray(wide / np.linalg.norm(wide, axis=1, keepdims=True))


def kernel_of_features(X: np.ndarray) -> np.ndarray:
    """Padded matrix of the linear kernel."""
    n = len(X)
    K = aligned((padded(n), padded(n)), np.float64)
    K[:] = 0.0
    K[:n, :n] = X @ X.T
    np.fill_diagonal(K, 1.0)
    return K


def classes(n: int = 120) -> tuple[np.ndarray, np.ndarray]:
    X, y = rows(n, seed=5)
    return X, np.where(y > 0.1, 1.0, -1.0)


def of_classes(K: np.ndarray, y: np.ndarray, squared: bool, C: float) -> tuple[np.ndarray, np.ndarray, DualReport]:
    """Solution of the hinge or the squared hinge, as a problem with terms."""
    n, size = len(y), len(K)
    wide, zero = np.pad(y, (0, size - n)), np.zeros(size)
    most = np.inf if squared else C
    low, high = np.where(wide < 0.0, -most, 0.0), np.where(wide > 0.0, most, 0.0)
    curved = np.full(size, 0.5 / C if squared else 0.0)
    terms = Terms(zero, curved, curved, C * n)
    b, f, report = KernelDual(K, wide, unit_diagonal=True).solve(low, high, 1e-8, None, terms)
    assert report.converged and np.all((low <= b) & (b <= high))
    return b[:n], f[:n], report


@pytest.mark.parametrize("C", [0.3, 10.0])
def test_the_hinge_with_terms_is_that_without(C: float) -> None:
    X, y = classes()
    K = kernel_of(X)
    b, f, report = of_classes(K, y, False, C)
    wide = np.pad(y, (0, len(K) - len(y)))
    _, expected, other = KernelDual(K, wide, unit_diagonal=True).solve(
        np.where(wide < 0.0, -C, 0.0), np.where(wide > 0.0, C, 0.0), 1e-8
    )
    assert report.objective == pytest.approx(other.objective, rel=1e-6)
    np.testing.assert_allclose(f, expected[: len(y)], atol=1e-3)
    assert 0.5 * b @ f + C * np.maximum(0.0, 1.0 - y * f).sum() - report.objective == pytest.approx(
        report.gap, abs=1e-8
    )


@pytest.mark.parametrize("C", [0.3, 10.0])
def test_the_squared_hinge_is_that_of_liblinear(C: float) -> None:
    X, y = classes()
    unit = of_length_1(X)
    K = kernel_of_features(unit)
    b, f, report = of_classes(K, y, True, C)
    theirs = LinearSVC(C=C, loss="squared_hinge", dual=True, fit_intercept=False, tol=1e-8, max_iter=1_000_000)
    theirs.fit(unit, y)
    np.testing.assert_allclose(f, theirs.decision_function(unit), atol=2e-4)
    np.testing.assert_allclose(b, 2.0 * C * y * np.maximum(0.0, 1.0 - y * f), atol=1e-2 * C)
    assert 0.5 * b @ f + C * np.square(np.maximum(0.0, 1.0 - y * f)).sum() - report.objective == pytest.approx(
        report.gap, abs=1e-8
    )


def test_least_squares_is_kernel_ridge_regression() -> None:
    X, y = rows(100, seed=6)
    K, weight = kernel_of(X), np.random.default_rng(7).uniform(0.5, 2.0, len(y))
    for C in (0.05, 1.0, 30.0):
        problem = problem_of(K, y, C * weight, Loss(LEAST_SQUARES))
        b, f, _ = solve(K, problem, 1e-10)
        ridge = KernelRidge(alpha=0.5 / C, kernel="precomputed").fit(problem.K, y, sample_weight=weight)
        np.testing.assert_allclose(f, ridge.predict(problem.K), atol=1e-4)
        np.testing.assert_allclose(b, 2.0 * problem.cost * (y - f), atol=1e-3 * C)


@pytest.mark.parametrize("name", [INSENSITIVE, SQUARED_INSENSITIVE])
@pytest.mark.parametrize("C", [0.1, 2.0])
@pytest.mark.fast(4)
def test_insensitive_losses_are_those_of_liblinear(name: str, C: float) -> None:
    X, y = rows(100, 4, seed=8)
    unit = of_length_1(X)
    theirs = LinearSVR(
        C=C, epsilon=0.2, loss=name.replace("-", "_"), dual=True, fit_intercept=False, tol=1e-8, max_iter=1_000_000
    )
    theirs.fit(unit, y)
    K = kernel_of_features(unit)
    problem = problem_of(K, y, C, Loss(name, epsilon=0.2))
    b, f, report = solve(K, problem)
    assert report.converged
    np.testing.assert_allclose(f, theirs.predict(unit), atol=1e-3)
    primal = 0.5 * theirs.coef_ @ theirs.coef_ + C * problem.loss(y - theirs.predict(unit)).sum()
    assert problem.primal(b) == pytest.approx(primal, rel=1e-5)


@pytest.mark.parametrize("level", [0.1, 0.5, 0.85])
def test_hardly_regularised_quantiles_are_those_of_the_linear_program(level: float) -> None:
    """With the optimum w of the program, the primal is between its loss and that with |w|^2 / 2 added."""
    X, y = rows(40, seed=9)
    unit = of_length_1(X)
    program = QuantileRegressor(quantile=level, alpha=0.0, fit_intercept=False, solver="highs").fit(unit, y)
    K, C = kernel_of_features(unit), 1e4
    problem = problem_of(K, y, C, Loss(QUANTILE, level))
    b, _, report = solve(K, problem, 1e-7)
    least = C * float(problem.loss(y - program.predict(unit)).sum())
    assert report.converged
    assert least * (1.0 - 1e-9) <= problem.primal(b)
    assert problem.primal(b) <= least + 0.5 * float(program.coef_ @ program.coef_) + report.gap + 1e-9 * least


@each_loss
@all_fast
def test_rows_of_cost_0_are_scored_and_change_nothing(loss: Loss) -> None:
    X, y = rows(90, seed=10)
    kept = np.flatnonzero(np.arange(90) % 3)
    K, alone = kernel_of(X), kernel_of(X[kept])
    cost = np.zeros(90)
    cost[kept] = 2.0
    b, f, _ = solve(K, problem_of(K, y, cost, loss), 1e-9)
    expected, _, _ = solve(alone, problem_of(alone, y[kept], 2.0, loss), 1e-9)
    np.testing.assert_allclose(f, K[:90, kept] @ expected, atol=1e-3)
    assert not b[::3].any()


@each_loss
@all_fast
def test_a_search_may_begin_anywhere(loss: Loss) -> None:
    X, y = rows(80, seed=11)
    K = kernel_of(X)
    problem = problem_of(K, y, 1.5, loss)
    b, _, report = solve(K, problem, 1e-7)
    again, _, nothing = solve(K, problem, 2e-7, start=b)
    assert nothing.iterations == 0 and np.array_equal(again, b)
    low, high, _ = problem.boxes
    anywhere = np.random.default_rng(12).uniform(np.maximum(low, -5.0), np.minimum(high, 5.0))[: len(y)]
    _, _, other = solve(K, problem, 1e-7, start=anywhere)
    assert other.converged and other.iterations > 0
    assert other.objective == pytest.approx(report.objective, abs=2e-7 * 1.5 * len(y))


@each_loss
@all_fast
def test_boxes_and_terms_are_those_of_the_loss(loss: Loss) -> None:
    cost = np.asarray([0.0, 0.5, 2.0, 300.0])
    low, high, terms = Problem(np.eye(4), np.zeros(4), cost, loss).boxes
    boxes = Boxes.of(loss.dual, np.pad(cost, (0, len(low) - 4)), np.zeros(len(low)))
    assert np.array_equal(boxes.low, low) and np.array_equal(boxes.high, high)
    assert (boxes.terms is None) == loss.dual.plain
    if boxes.terms is not None:
        np.testing.assert_allclose(
            [boxes.terms.e, boxes.terms.plus, boxes.terms.minus], [terms.e, terms.plus, terms.minus]
        )
        assert boxes.terms.total == pytest.approx(302.5)


def beginning(boxes: Boxes, y: np.ndarray) -> np.ndarray:
    """Coefficients (n,) that a path begins with: at the bound on the side of y, 0 where it is infinite."""
    bound = np.where(y > 0.0, boxes.high, boxes.low)
    return np.where(np.isfinite(bound), bound, 0.0)


@each_loss
@all_fast
def test_the_solutions_of_a_path_are_those_of_single_costs(loss: Loss) -> None:
    """Along ascending costs, on from the last of them, and back to a smaller one."""
    X, y = rows(100, seed=14)
    K, weight = kernel_of(X), np.random.default_rng(15).choice([0.0, 1.0, 3.0], 100)
    pad, tolerance = partial(np.pad, pad_width=(0, len(K) - 100)), 1e-6
    dual, boxes = KernelDual(K, pad(y), unit_diagonal=True, dual=loss.dual), Boxes.of(loss.dual, pad(weight), pad(y))
    unit = dual.multiply(beginning(boxes, pad(y)))
    path = partial(dual.path, pad(weight), tolerance=tolerance)
    b, f, _ = path(unit, np.asarray([0.05, 0.5]))
    before = (0.5, b[-1].copy(), f[-1].copy())
    more, of_more, _ = path(None, np.asarray([2.0, 3.0]), before=before)
    back, of_back, _ = path(None, np.asarray([0.01]), before=(3.0, more[-1].copy(), of_more[-1].copy()))
    found = zip((0.05, 0.5, 2.0, 3.0, 0.01), [*b, *more, *back], [*f, *of_more, *of_back], strict=True)
    for C, a, values in found:
        problem = problem_of(K, y, C * weight, loss)
        low, high, _ = problem.boxes
        assert np.all((low <= a) & (a <= high))
        np.testing.assert_allclose(values[:100], problem.K @ a[:100], atol=1e-8 * (1.0 + np.abs(a).sum()))
        gap = problem.primal(a[:100]) - problem.dual(a[:100])
        assert gap <= 1.01 * tolerance * problem.cost.sum() * (2.0 if loss.name == ABSOLUTE else 1.0)


def test_a_path_begins_at_the_bounds_and_grows_with_them() -> None:
    """Coefficients that a small and a larger cost leave at their bound take no iteration."""
    X, y = rows(100, seed=14)
    K, weight, loss = kernel_of(X), np.ones(100), Loss(QUANTILE, 0.9)
    pad = partial(np.pad, pad_width=(0, len(K) - 100))
    dual, boxes = KernelDual(K, pad(y), unit_diagonal=True, dual=loss.dual), Boxes.of(loss.dual, pad(weight), pad(y))
    bound, costs = beginning(boxes, pad(y)), np.asarray([1e-7, 1e-6])
    b, _, reports = dual.path(pad(weight), dual.multiply(bound), costs, 1e-3)
    assert [report.iterations for report in reports] == [0, 0] and all(report.converged for report in reports)
    np.testing.assert_allclose(b, costs[:, None] * bound)


@each_loss
@all_fast
@pytest.mark.parametrize("limit", [0.5, 5.0, 1e4])
def test_a_relative_tolerance_is_of_the_objective_without_what_is_far(loss: Loss, limit: float) -> None:
    """Of solutions along a path, whose objectives are not known before, and of a single one."""
    X, y = rows(100, seed=14)
    y[3] = 1e4
    K, weight = kernel_of(X), np.random.default_rng(15).choice([0.0, 1.0, 3.0], 100)
    weight[3] = 1.0
    pad, tolerance = partial(np.pad, pad_width=(0, len(K) - 100)), 1e-3
    dual, boxes = (
        KernelDual(K, pad(y), unit_diagonal=True, limit=limit, dual=loss.dual),
        Boxes.of(loss.dual, pad(weight), pad(y)),
    )
    unit = dual.multiply(beginning(boxes, pad(y)))
    costs = [0.05, 0.5, 5.0]
    found = list(dual.path(pad(weight), unit, np.asarray(costs), tolerance)[0])
    single = Boxes.of(loss.dual, 0.5 * pad(weight), pad(y))
    found.append(dual.solve(single.low, single.high, tolerance, None, single.terms)[0])
    for C, a in zip([*costs, 0.5], found, strict=True):
        problem = problem_of(K, y, C * weight, loss)
        a = a[:100]
        f = problem.K @ a
        objective = 0.5 * a @ f + problem.cost @ loss(np.clip(y - f, -limit, limit))
        least = limit / 200.0 + (loss.dual.e or 0.0)
        small = problem.cost.sum() * float(loss(np.asarray([least, -least])).sum())
        allowed = tolerance * max(objective, small)
        assert -1e-9 <= problem.primal(a) - problem.dual(a) <= 1.01 * allowed


@each_loss
def test_values_in_another_unit_have_the_same_solution(loss: Loss) -> None:
    """The tolerance follows the unit, of squared losses, too."""
    linear = loss.name in ("quantile", "absolute", "epsilon-insensitive")  # their costs have a unit, too
    X, y = rows(100, seed=14)
    K, pad, found = kernel_of(X), partial(np.pad, pad_width=(0, 28)), []
    for unit in (1.0, 2.0**-20):
        own = replace(loss, epsilon=unit * loss.epsilon)
        boxes = Boxes.of(own.dual, pad(np.full(100, unit if linear else 1.0)), pad(y))
        dual = KernelDual(K, pad(unit * y), unit_diagonal=True, limit=5.0 * unit)
        found.append(dual.solve(boxes.low, boxes.high, 1e-3, None, boxes.terms)[1] / unit)
    assert np.abs(found[0]).max() > 0.1
    np.testing.assert_allclose(*found, atol=0.03)


@each_loss
def test_a_path_ends_where_its_iterations_do_not_suffice(loss: Loss) -> None:
    """Costs before are as without the limit, and larger ones have no solution."""
    X, y = rows(100, seed=14)
    K, pad = kernel_of(X), partial(np.pad, pad_width=(0, 28))
    costs, weight, boxes = (
        np.geomspace(0.01, 10.0, 8),
        pad(np.ones(100)),
        Boxes.of(loss.dual, pad(np.ones(100)), pad(y)),
    )
    start = beginning(boxes, pad(y))
    duals = [
        KernelDual(K, pad(y), unit_diagonal=True, max_iterations=most, limit=5.0, dual=loss.dual)
        for most in (100_000, 20)
    ]
    free, ended = (dual.path(weight, dual.multiply(start), costs, 1e-4) for dual in duals)
    assert all(report.converged for report in free[2])
    b, f, reports = ended
    assert 0 < len(b) == len(f) == len(reports) < 8
    at_limit = next(c for c, report in enumerate(reports) if report.iterations == 20)
    np.testing.assert_array_equal(b[:at_limit], free[0][:at_limit])
    assert [report.converged for report in reports] == [True] * (len(b) - 1) + [False]
    assert reports[-1].iterations == 20


@each_loss
def test_a_path_goes_on_after_a_cost_that_converges_at_the_limit(loss: Loss) -> None:
    X, y = rows(100, seed=14)
    K, pad = kernel_of(X), partial(np.pad, pad_width=(0, 28))
    costs, weight, boxes = np.asarray([0.01, 0.02]), pad(np.ones(100)), Boxes.of(loss.dual, pad(np.ones(100)), pad(y))
    start = beginning(boxes, pad(y))
    free = KernelDual(K, pad(y), unit_diagonal=True, limit=5.0, dual=loss.dual)
    most = max(r.iterations for r in free.path(weight, free.multiply(start), costs, 1e-4)[2])
    just = KernelDual(K, pad(y), unit_diagonal=True, limit=5.0, max_iterations=most, dual=loss.dual)
    assert len(just.path(weight, just.multiply(start), costs, 1e-4)[2]) == 2


def test_a_path_of_values_has_no_offset() -> None:
    X, y = rows(100, seed=14)
    K = kernel_of(X)
    with pytest.raises(ValueError, match="goes without an offset"):
        KernelDual(K, np.pad(y, (0, len(K) - 100)), offset=True, dual=Loss(QUANTILE, 0.5).dual)


def test_no_convergence_is_reported() -> None:
    X, y = rows(200, seed=13)
    K = kernel_of(X)
    problem = problem_of(K, y, 50.0, Loss(EXPECTILE, 0.9))
    b, _, report = solve(K, problem, 1e-8, most=10)
    assert not report.converged and report.iterations == 10
    assert report.gap == pytest.approx(problem.primal(b) - problem.dual(b), rel=1e-9)
    assert report.gap > 1e-8 * problem.cost.sum()


def test_terms_of_another_length_and_with_an_offset_are_refused() -> None:
    X, y = rows(20)
    K = kernel_of(X)
    low, high, terms = problem_of(K, y, 1.0, Loss(LEAST_SQUARES)).boxes
    wide = np.pad(y, (0, len(K) - len(y)))
    short = Terms(terms.e[:-1], terms.plus, terms.minus, terms.total)
    refused = partial(pytest.raises, ValueError, match="terms must have one entry a row, and go without an offset")
    with refused():
        KernelDual(K, wide).solve(low, high, 1e-3, None, short)
    with refused():
        KernelDual(K, wide, offset=True).solve(low, high, 1e-3, None, terms)
