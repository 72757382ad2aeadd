"""The dual solver against scikit-learn's SVC (LIBSVM), scipy's optimiser, and the optimality conditions."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import LinearConstraint, minimize
from sklearn.metrics.pairwise import laplacian_kernel
from sklearn.svm import SVC

from localsvm.kernels import Kernel
from localsvm.kernels._kernels import RowsOnDemand, aligned, padded
from localsvm.kernels.gram import Gram
from localsvm.kernels.scratch import Scratch
from localsvm.solvers._smo import DualReport, KernelDual

GAUSSIAN = Kernel("gaussian", 0.3)
KERNELS = [
    GAUSSIAN,
    Kernel("laplacian", 0.4),
    Kernel("polynomial", 0.5, 1.0, 3),
    Kernel("linear"),
    Kernel("manhattan", 0.2),
]


def blobs(n: int, d: int, seed: int, overlap: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    y = np.where(rng.random(n) < 0.4, 1.0, -1.0)
    X = rng.standard_normal((n, d)).astype(np.float32)
    X[:, 0] += (y / overlap).astype(np.float32)
    return X, y


def reference_kernel(X: np.ndarray, kernel: Kernel) -> np.ndarray:
    X = X.astype(np.float64)
    squared = ((X[:, None] - X[None]) ** 2).sum(axis=2)
    if kernel.kind == "gaussian":
        return np.exp(-kernel.gamma * squared)
    if kernel.kind == "laplacian":
        return np.exp(-kernel.gamma * np.sqrt(squared))
    if kernel.kind == "manhattan":
        return laplacian_kernel(X, gamma=kernel.gamma)
    products = X @ X.T
    return (kernel.gamma * products + kernel.coef0) ** kernel.degree if kernel.kind == "polynomial" else products


def solve(X, y, kernel, C, offset, tolerance, start=None, double=None, max_iterations=10_000_000):
    """Coefficients of the n rows, Kb, the report; C is one cost or one a row."""
    n, size = len(y), padded(len(y))
    double = tolerance < 1e-4 if double is None else double
    K = Gram(X, Scratch()).matrix(kernel, double)
    wide = np.zeros(size)
    box = np.zeros(size)
    wide[:n], box[:n] = y, C
    problem = KernelDual(K, wide, offset, kernel.uses_distances, max_iterations)
    hi, lo = np.where(wide > 0, box, 0.0), np.where(wide < 0, -box, 0.0)
    if start is not None:
        start = np.concatenate([start, np.zeros(size - n)])
    b, f, report = problem.solve(lo, hi, tolerance, start)
    assert not b[n:].any()
    return b[:n], f[:n], report


@pytest.mark.parametrize("offset", [False, True])
def test_rows_on_demand_give_the_same_bits_and_few_are_computed(offset: bool) -> None:
    """Along a path and at one cost; with few support vectors most rows are never read."""
    X, y = blobs(400, 3, 5, 0.2)
    grams = Gram(X, Scratch()), Gram(X, Scratch())
    K, on_demand = grams[0].matrix(GAUSSIAN), grams[1].on_demand(GAUSSIAN)
    assert isinstance(on_demand, RowsOnDemand)
    wide = np.zeros(padded(400))
    wide[:400] = y
    costs, nothing = np.asarray([1.0, 3.0, 10.0]), np.zeros(padded(400))
    found = []
    for matrix in (K, on_demand):
        dual = KernelDual(matrix, wide, offset, unit_diagonal=True)
        b, f, _ = dual.path(np.abs(wide), None, costs, 1e-3, (1.0, nothing, nothing))
        hi, lo = np.where(wide > 0, 10.0, 0.0), np.where(wide < 0, -10.0, 0.0)
        found.append((b, f, *dual.solve(lo, hi, 1e-3)[:2]))
    for one, other in zip(*found, strict=True):
        np.testing.assert_array_equal(one, other)
    assert np.count_nonzero(found[0][2]) <= on_demand.computed < 200


def dual_objective(K: np.ndarray, y: np.ndarray, b: np.ndarray) -> float:
    return float(y @ b - 0.5 * b @ K @ b)


def gap_of(K: np.ndarray, y: np.ndarray, b: np.ndarray, C, bias: float) -> float:
    """Primal minus dual, from scratch in float64."""
    f = K @ b
    primal = 0.5 * b @ f + np.sum(C * np.maximum(0.0, 1.0 - y * (f + bias)))
    return float(primal - dual_objective(K, y, b))


def assert_equals_libsvm(solve, kernel: Kernel, C: float) -> None:
    """Compare a solver with offset, called as `solve` above, with SVC's dual objective and decision values."""
    X, y = blobs(300, 4, 1)
    K = reference_kernel(X, kernel)
    svc = SVC(C=C, kernel="precomputed", tol=1e-6).fit(K, y)
    theirs = np.zeros(len(y))
    theirs[svc.support_] = svc.dual_coef_[0]
    for tolerance, allowed in [(1e-3, 1e-4), (1e-6, 1e-6)]:
        b, f, report = solve(X, y, kernel, C, True, tolerance)
        assert report.converged and report.violation <= tolerance
        assert abs(b.sum()) < 1e-9 * C * len(y)
        assert dual_objective(K, y, b) == pytest.approx(dual_objective(K, y, theirs), rel=allowed)
    np.testing.assert_allclose(f + report.bias, svc.decision_function(K), atol=2e-3 * max(1.0, np.abs(f).max()))


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda k: k.kind)
@pytest.mark.parametrize("C", [0.1, 1.0, 30.0])
def test_dual_objective_equals_libsvm(kernel: Kernel, C: float) -> None:
    assert_equals_libsvm(solve, kernel, C)


@pytest.mark.parametrize("C", [1.0, 1e3])
def test_weighted_unscaled_data_equals_libsvm(C: float) -> None:
    X, y = blobs(400, 3, 2, overlap=2.0)
    X = X * np.float32([1.0, 50.0, 0.01]) + np.float32([0.0, 3000.0, 0.0])
    weight = {1.0: 2.5, -1.0: 0.7}
    kernel = Kernel("gaussian", 1e-3)
    K = reference_kernel(X, kernel)
    svc = SVC(C=C, kernel="precomputed", tol=1e-6, class_weight=weight).fit(K, y)
    theirs = np.zeros(len(y))
    theirs[svc.support_] = svc.dual_coef_[0]
    box = C * np.where(y > 0, 2.5, 0.7)
    for tolerance, allowed in [(1e-3, 1e-4), (1e-6, 1e-6)]:
        b, _, report = solve(X, y, kernel, box, True, tolerance)
        assert report.converged
        assert dual_objective(K, y, b) == pytest.approx(dual_objective(K, y, theirs), rel=allowed)


@pytest.mark.whole
def test_huge_cost_in_float64_equals_libsvm() -> None:
    X, y = blobs(200, 2, 3, overlap=1.5)
    K = reference_kernel(X, GAUSSIAN)
    svc = SVC(C=1e5, kernel="precomputed", tol=1e-3).fit(K, y)
    theirs = np.zeros(len(y))
    theirs[svc.support_] = svc.dual_coef_[0]
    b, _, report = solve(X, y, GAUSSIAN, 1e5, True, 1e-3, double=True)
    assert report.converged
    assert dual_objective(K, y, b) == pytest.approx(dual_objective(K, y, theirs), rel=1e-4)


@pytest.mark.parametrize("offset", [False, True])
@pytest.mark.parametrize("kernel", KERNELS, ids=lambda k: k.kind)
def test_small_problems_against_scipy(kernel: Kernel, offset: bool) -> None:
    X, y = blobs(24, 2, 4)
    K = reference_kernel(X, kernel)
    C = 2.0
    bounds = [(0.0, C) if label > 0 else (-C, 0.0) for label in y]
    constraints = [LinearConstraint(np.ones(len(y)), 0.0, 0.0)] if offset else []
    best = minimize(
        lambda b: -dual_objective(K, y, b),
        np.zeros(len(y)),
        jac=lambda b: K @ b - y,
        bounds=bounds,
        constraints=constraints,
        method="SLSQP",
        options={"ftol": 1e-12, "maxiter": 500},
    )
    b, _, report = solve(X, y, kernel, C, offset, 1e-7)
    assert report.converged
    assert dual_objective(K, y, b) == pytest.approx(-best.fun, rel=1e-6)


@settings(deadline=None, max_examples=60)
@given(
    n=st.integers(1, 70),
    d=st.integers(1, 5),
    seed=st.integers(0, 2**32 - 1),
    C=st.floats(1e-3, 1e3),
    gamma=st.floats(1e-3, 10.0),
    offset=st.booleans(),
    repeated=st.booleans(),
)
def test_gap_and_feasibility(n: int, d: int, seed: int, C: float, gamma: float, offset: bool, repeated: bool) -> None:
    """The reported gap is the gap, under the tolerance, and the box and the equality constraint hold exactly."""
    X, y = blobs(n, d, seed)
    if repeated:
        X = np.round(X)
    kernel = Kernel("gaussian", gamma)
    K = reference_kernel(X, kernel)
    cost = C * np.random.default_rng(seed).uniform(0.5, 2.0, n)
    b, f, report = solve(X, y, kernel, cost, offset, 1e-3)
    assert report.converged
    assert np.all((b * y >= 0) & (b * y <= cost))
    if offset:
        assert abs(b.sum()) <= 1e-9 * cost.sum()
    np.testing.assert_allclose(f, K @ b, atol=1e-5 * max(1.0, np.abs(b).sum()))
    gap = gap_of(K, y, b, cost, report.bias)
    assert gap == pytest.approx(report.gap, abs=2e-6 * max(1.0, np.abs(b).sum()) * cost.max() + 1e-6 * cost.sum())
    assert report.gap <= 1.01e-3 * cost.sum()


@pytest.mark.parametrize("offset", [False, True])
def test_kkt_conditions(offset: bool) -> None:
    X, y = blobs(200, 3, 5)
    b, f, report = solve(X, y, GAUSSIAN, 1.5, offset, 1e-6)
    margin = y * (f + report.bias)
    alpha = b * y
    assert np.all(margin[alpha == 0] >= 1 - 1e-3)
    assert np.all(margin[alpha == 1.5] <= 1 + 1e-3)
    inside = (alpha > 1e-3) & (alpha < 1.5 - 1e-3)
    np.testing.assert_allclose(margin[inside], 1.0, atol=1e-3)


def test_warm_start_from_the_solution_needs_no_iterations() -> None:
    X, y = blobs(150, 3, 6)
    b, _, _ = solve(X, y, GAUSSIAN, 1.0, False, 1e-6)
    again, _, report = solve(X, y, GAUSSIAN, 1.0, False, 1e-5, start=b)
    assert report.iterations == 0
    np.testing.assert_array_equal(again, b)


@pytest.mark.parametrize("offset", [True, False])
def test_a_rough_path_does_no_more_than_its_tolerance_asks_for(offset: bool) -> None:
    X, y = blobs(300, 4, seed=3)
    K = Gram(X, Scratch()).matrix(Kernel("gaussian", 0.3), True)
    pad = np.pad(y, (0, len(K) - 300))
    dual = KernelDual(K, pad, offset, unit_diagonal=True)
    rough, exact = (dual.path(np.abs(pad), dual.multiply(pad), np.ones(1), t)[2][0] for t in (0.1, 1e-6))
    assert rough.converged and exact.converged and rough.iterations < 0.5 * exact.iterations
    reached = rough.violation if offset else rough.gap / 300.0
    assert 1e-3 < reached <= 0.1


@pytest.mark.parametrize("offset", [False, True])
def test_path_scores_held_out_rows_as_separate_solves_do(offset: bool) -> None:
    X, y = blobs(160, 3, 7)
    n, size = len(y), padded(len(y))
    K = Gram(X, Scratch()).matrix(GAUSSIAN, True)
    wide = np.zeros(size)
    wide[:n] = y
    weight = np.zeros(size)
    weight[:n] = np.arange(n) % 4 != 0
    problem = KernelDual(K, wide, offset, True)
    costs = np.asarray([0.05, 0.5, 5.0, 50.0])
    b, f, reports = problem.path(weight, problem.multiply(weight * wide), costs, 1e-6)
    exact = reference_kernel(X, GAUSSIAN)
    for c, cost in enumerate(costs):
        box = cost * weight[:n]
        assert reports[c].converged
        assert not b[c][weight == 0].any()
        np.testing.assert_allclose(f[c][:n], exact @ b[c][:n], atol=1e-6 * cost * n)
        alone, _, _ = solve(X, y, GAUSSIAN, box, offset, 1e-6)
        assert dual_objective(exact, y, b[c][:n]) == pytest.approx(dual_objective(exact, y, alone), rel=1e-5)
    on_b, on_f, _ = problem.path(weight, None, costs[2:], 1e-6, before=(costs[1], b[1], f[1]))
    np.testing.assert_allclose(on_f, f[2:], atol=1e-6 * costs[-1] * n)
    assert dual_objective(exact, y, on_b[1][:n]) == pytest.approx(dual_objective(exact, y, b[3][:n]), rel=1e-5)


def test_no_convergence_is_reported() -> None:
    X, y = blobs(200, 3, 8)
    _, _, report = solve(X, y, GAUSSIAN, 100.0, False, 1e-6, max_iterations=10)
    assert isinstance(report, DualReport)
    assert not report.converged
    assert report.iterations == 10
    assert report.gap > 1e-6 * 100.0 * 200


@pytest.mark.parametrize("label", [-1.0, 1.0])
def test_one_class_with_offset_is_a_constant(label: float) -> None:
    X, _ = blobs(20, 2, 9)
    b, _, report = solve(X, np.full(20, label), GAUSSIAN, 1.0, True, 1e-3)
    assert not b.any()
    assert report.bias == label


def test_misuse_is_refused() -> None:
    K = aligned((32, 32), np.float32)
    K[:] = 0
    with pytest.raises(ValueError, match="padded"):
        KernelDual(K[:31], np.zeros(31))
    with pytest.raises(ValueError, match="aligned"):
        KernelDual(np.zeros((32, 32), np.float16), np.zeros(32))
    with pytest.raises(ValueError, match="one entry a row"):
        KernelDual(K, np.zeros(32)).multiply(np.zeros(31))


@pytest.mark.parametrize("C", [1.0, 3.7, 300.0])
def test_coefficients_at_a_bound_are_exactly_there(C: float) -> None:
    """A float32 step that ends at a bound leaves no crumbs: neither next to zero nor next to C."""
    X, y = blobs(600, 5, 10, overlap=3.0)
    b, _, report = solve(X, y, GAUSSIAN, C, False, 1e-3, double=False)
    alpha = b * y
    assert report.converged
    assert not ((alpha > 0) & (alpha < 1e-6 * C)).any()
    assert not ((alpha < C) & (alpha > C * (1 - 1e-6))).any()
    assert (alpha == C).any() and (alpha == 0).any()
