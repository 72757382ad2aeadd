"""LSVM-MTL and MLSVM: their steps against scipy, their objective written out, and their limits."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize
from scipy.special import logsumexp
from scipy.stats import multivariate_normal
from selecting import cell_of, examples, fitted
from sklearn.mixture import GaussianMixture

from localsvm.data.synthetic import two_sines
from localsvm.kernels._kernels import LEVELS, simd_level
from localsvm.methods.cell import Cell
from localsvm.methods.linear.linear import LinearSVM
from localsvm.methods.locally_linear.kmeans_svm import KMeansSVM
from localsvm.methods.mixtures.method import MixtureMethod
from localsvm.methods.mixtures.mlsvm import MixtureSVM
from localsvm.methods.mixtures.mtl import MultiTaskSVM
from localsvm.methods.mixtures.systems.predictor import decided
from localsvm.representations._mixture import Components
from localsvm.representations.mixture import Prior, estimate, fit_mixture
from localsvm.representations.mixture_screen import Screen
from localsvm.solvers import weighted_tasks
from localsvm.solvers.coupling import ALONE, Coupling, covariance, group_matrix
from localsvm.solvers.row_losses import HINGE, SQUARED_HINGE
from localsvm.solvers.weighted_tasks import WeightedTasks, task_values
from localsvm.targets.classification import Classification

POINT: dict[str, Any] = {"clusters": (3.0,), "shrinkage": (0.1,), "cost": (10.0,)}
ALL: list[MixtureMethod] = [
    MixtureSVM(**POINT),
    MultiTaskSVM(**POINT, groups=(2.0,), coupling=(10.0,)),
    MultiTaskSVM(**POINT, groups=(2.0,), coupling=(10.0,), covariance="diag", rule="hard", loss="squared-hinge"),
]
NAMES = ["mlsvm", "mtl", "mtl-diag-hard-squared"]


def memberships(rng: np.random.Generator, n: int, tasks: int) -> np.ndarray:
    q = rng.random((n, tasks)) ** 3 * (rng.random((n, tasks)) < 0.7) + 1e-2
    return np.asarray(q / q.sum(axis=1, keepdims=True))


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("largest", [0, 2048])
def test_the_weights_are_those_of_scipy(seed: int, largest: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(weighted_tasks, "LARGEST_SYSTEM", largest)  # one system, or conjugate gradients
    rng = np.random.default_rng(seed)
    n, d, K = 60, 3, 4
    X, y = rng.standard_normal((n, d)).astype(np.float32), rng.choice([-1.0, 1.0], n)
    q, cost = memberships(rng, n, K), rng.random(n) + 0.1
    A = rng.standard_normal((K, K))
    B = A @ A.T / K + 0.1 * np.eye(K)
    solution = WeightedTasks(X, q).solve(y, cost, Coupling(B), SQUARED_HINGE, 1e-12, None)
    Z = np.c_[X, np.ones(n)].astype(np.float64)

    def objective(v: np.ndarray) -> float:
        W = v.reshape(K, d + 1)
        slack = np.maximum(0, 1 - y[:, None] * (Z @ W.T))
        return float(0.5 * np.trace(W.T @ np.linalg.solve(B, W)) + (cost[:, None] * q * slack**2).sum())

    options = {"maxiter": 10000, "maxfun": 10**6, "ftol": 1e-16, "gtol": 1e-9}
    best = minimize(objective, np.zeros(K * (d + 1)), method="L-BFGS-B", options=options)
    assert objective(solution.W.ravel()) <= best.fun * (1 + 1e-9)
    assert_allclose(solution.W.ravel(), best.x, atol=1e-3)
    assert solution.report.primal == pytest.approx(best.fun, rel=1e-6)
    assert abs(solution.report.primal - solution.report.dual) <= 2e-12 * solution.report.primal


def test_the_hinge_has_a_dual_bound_of_its_own() -> None:
    """Weights reach the value of the dual, a box-constrained quadratic program that scipy solves."""
    rng = np.random.default_rng(0)
    n, d, K = 25, 2, 3
    X, y = rng.standard_normal((n, d)).astype(np.float32), rng.choice([-1.0, 1.0], n)
    q, cost = memberships(rng, n, K), 2.0 * rng.random(n)
    M = group_matrix(rng.standard_normal((K, 3)), 2.0, 5.0)
    B = covariance(M, 5.0)
    solution = WeightedTasks(X, q).solve(y, cost, Coupling(B), HINGE, 1e-9, None)
    Z = y[:, None] * np.c_[X, np.ones(n)].astype(np.float64)
    kernel = np.einsum("jk,im->ijmk", B, Z @ Z.T).reshape(n * K, n * K)
    upper = (cost[:, None] * q).ravel()

    def dual(a: np.ndarray) -> tuple[float, np.ndarray]:
        return float(0.5 * a @ kernel @ a - a.sum()), kernel @ a - 1

    bounds = list(zip(np.zeros(n * K), upper, strict=True))
    best = minimize(dual, upper / 2, jac=True, method="L-BFGS-B", bounds=bounds, options={"ftol": 1e-15})
    slack = HINGE.of(task_values(X, solution.W), y[:, None])
    primal = 0.5 * np.trace(solution.W.T @ np.linalg.solve(B, solution.W)) + (cost[:, None] * q * slack).sum()
    assert primal == pytest.approx(-best.fun, rel=1e-6)


@pytest.mark.fast(1)
@pytest.mark.parametrize("seed", range(5))
def test_the_relaxation_is_what_projected_gradients_find(seed: int) -> None:
    rng = np.random.default_rng(seed)
    K, r, coupling = 6, float(rng.integers(1, 6)), 10.0 ** rng.uniform(-1, 2)
    W = rng.standard_normal((K, 4)) * 10.0 ** rng.uniform(-2, 1, (K, 1))

    def objective(M: np.ndarray) -> float:
        return float(np.trace(W.T @ np.linalg.solve(np.eye(K) / coupling + M, W)))

    def projected(M: np.ndarray) -> np.ndarray:
        values, U = np.linalg.eigh(M)
        low, high = values.min() - 1, values.max()
        for _ in range(200):
            middle = (low + high) / 2
            low, high = (middle, high) if np.clip(values - middle, 0, 1).sum() > r else (low, middle)
        return np.asarray((U * np.clip(values - high, 0, 1)) @ U.T)

    M, step = np.eye(K) * r / K, 1.0
    for _ in range(1000):
        half = np.linalg.solve(np.eye(K) / coupling + M, W)
        new = projected(M + step * half @ half.T)
        if objective(new) <= objective(M):
            M, step = new, 1.5 * step
        else:
            step /= 2
    relaxed = group_matrix(W, r, coupling)
    values = np.linalg.eigvalsh(relaxed)
    assert values.min() > -1e-12 and values.max() < 1 + 1e-12
    assert np.trace(relaxed) == pytest.approx(r)
    assert objective(relaxed) == pytest.approx(objective(M), rel=1e-5)
    assert objective(relaxed) <= objective(M) * (1 + 1e-9)


def test_the_relaxation_where_weights_span_less_than_the_groups() -> None:
    W = np.outer(np.arange(4.0), np.ones(3))
    relaxed = group_matrix(W, 2.0, 5.0)
    assert_allclose(relaxed @ W, W, atol=1e-12)  # the only direction of the weights is free
    assert np.trace(relaxed) == pytest.approx(2.0)
    assert_array_equal(group_matrix(W, 4.0, 5.0), np.eye(4))


@pytest.mark.parametrize("full", [True, False])
def test_densities_are_those_of_scipy(full: bool) -> None:
    rng = np.random.default_rng(0)
    X = (rng.standard_normal((200, 3)) * [1, 2, 0.5]).astype(np.float32)
    q, count = memberships(rng, 200, 3), rng.integers(1, 4, 200).astype(np.float64)
    prior = Prior.of(X, count, 0.2, 3, full)
    repeated = np.repeat(X, count.astype(int), axis=0).astype(np.float64)
    assert prior.variance == pytest.approx(repeated.var(axis=0).mean())
    assert prior.strength == pytest.approx(0.2 * count.sum() / 3)
    mixture = estimate(X, q * count[:, None], prior, np.zeros((3, 3)))
    weight = q * count[:, None]
    for j in range(3):
        mean = np.average(X, axis=0, weights=weight[:, j])
        S = np.cov(X.T.astype(np.float64), aweights=weight[:, j], ddof=0)
        S = S if full else np.diag(np.diag(S))
        total = weight[:, j].sum()
        S = (total * S + prior.strength * prior.variance * np.eye(3)) / (total + prior.strength)
        expected = multivariate_normal(mean, S).logpdf(X) + np.log(total / weight.sum())
        assert_allclose(mixture.log_densities(X)[:, j], expected, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("kind", ["full", "diag"])
def test_without_labels_it_is_the_mixture_of_scikit_learn(kind: str) -> None:
    rng = np.random.default_rng(1)
    X = np.concatenate([rng.standard_normal((150, 2)) * s + m for s, m in ((0.5, 0), (1, 3), (0.7, [0, 4]))])
    X = X.astype(np.float32)
    q = np.eye(3)[np.repeat(np.arange(3), 150)]
    mine = fit_mixture(X, np.ones(450), q, Prior.of(X, np.ones(450), 1e-12, 3, kind == "full"), 1e-12, 2000)
    theirs = GaussianMixture(3, covariance_type=kind, reg_covar=0, tol=1e-12, max_iter=2000)
    theirs.means_init = np.stack([X[150 * k : 150 * k + 150].mean(axis=0) for k in range(3)])
    theirs.weights_init, theirs.fit(X)
    assert logsumexp(mine.log_densities(X), axis=1).mean() == pytest.approx(theirs.score(X), abs=1e-4)


def written_out(method: MixtureMethod, cell: Cell, state: dict[str, Any], squared: bool) -> tuple[float, np.ndarray]:
    """Objective without prior and penalty, and decision values, from the state by scipy alone."""
    K, d = int(state["components"][0]), cell.X.shape[1]
    X, y = cell.X.astype(np.float64), cell.Y[:, 0]
    logs = np.empty((len(X), K))
    for j in range(K):
        A = np.diag(state["factor"][j]) if method.covariance == "diag" else state["factor"].reshape(K, d, d)[j]
        S = np.linalg.inv(A.T @ A)
        constant = state["offset"][j] - np.log(np.diag(A)).sum() + d / 2 * np.log(2 * np.pi)  # log share
        logs[:, j] = multivariate_normal(state["mean"][j], S).logpdf(X) + constant
    f = X @ state["weights"][:, :-1].T + state["weights"][:, -1]

    def likelihood(side: Any) -> np.ndarray:
        slack = np.maximum(0, 1 - np.reshape(side, (-1, 1)) * f)
        return np.asarray(np.exp(-(slack**2 if squared else slack)))

    whole = float(np.log((np.exp(logs) * likelihood(y)).sum(axis=1)).sum())
    terms = likelihood(1.0) - likelihood(-1.0)
    if method.rule == "hard":
        return whole, terms[np.arange(len(X)), logs.argmax(axis=1)]
    return whole, np.asarray((np.exp(logs) * terms).sum(axis=1) / np.exp(logs).sum(axis=1))


@pytest.mark.parametrize("method", ALL, ids=NAMES)
def test_the_model_is_the_one_of_the_paper(method: MixtureMethod) -> None:
    X, y = examples(200)
    cell = cell_of(X, y)
    predictor, state = fitted(method, cell)
    whole, values = written_out(method, cell, state, method.loss == "squared-hinge")
    assert_allclose(predictor.decision_function(cell.X)[:, 0], values, atol=1e-6)
    assert np.abs(values).max() <= 1
    prior = Prior.of(cell.X, np.ones(200), 0.1, 3, method.covariance == "full")
    A = state["factor"].reshape(3, -1, 3) if prior.full else np.stack([np.diag(f) for f in state["factor"]])
    log_prior = sum(np.linalg.slogdet(a.T @ a)[1] - prior.variance * np.trace(a.T @ a) for a in A)
    below = whole + 0.5 * prior.strength * log_prior
    penalty = below - state["trace"][-1]  # tr(W' B^-1 W) / 2C, B between I and I / (1 + coupling)
    norm = float(np.square(state["weights"]).sum()) / 20.0
    coupling = method.coupling[0] if isinstance(method, MultiTaskSVM) else 0.0
    assert norm * (1 - 1e-6) <= penalty <= norm * (1 + coupling) * (1 + 1e-6)


@pytest.mark.fast(1)
@pytest.mark.parametrize("method", ALL, ids=NAMES)
@pytest.mark.parametrize("seed", range(3))
def test_the_objective_does_not_fall(method: MixtureMethod, seed: int) -> None:
    X, y = examples(150, seed=seed)
    _, state = fitted(replace(method, clusters=(5.0,), tolerance=1e-6), cell_of(X, y))
    trace = state["trace"]
    assert len(trace) > 2 and trace[-1] > trace[0]
    assert np.diff(trace).min() > -1e-6 * len(y)


def test_without_coupling_it_is_mlsvm() -> None:
    X, y = examples(200)
    cell = cell_of(X, y)
    _, plain = fitted(MixtureSVM(**POINT), cell)
    _, uncoupled = fitted(MultiTaskSVM(**POINT, coupling=(0.0,)), cell)
    for name, array in plain.items():
        assert_array_equal(uncoupled[name], array, err_msg=name)
    options = {"cost": (1.0,), "tolerance": 1e-9}
    near, _ = fitted(MultiTaskSVM(**(POINT | options), coupling=(1e-7,)), cell)
    alone, _ = fitted(MixtureSVM(**(POINT | options)), cell)
    assert_allclose(near.decision_function(X), alone.decision_function(X), atol=1e-4)
    coupled, _ = fitted(MultiTaskSVM(**(POINT | options), groups=(1.0,), coupling=(100.0,)), cell)
    assert np.abs(coupled.decision_function(X) - alone.decision_function(X)).max() > 0.01


@pytest.mark.parametrize("loss", ["hinge", "squared-hinge"])
def test_one_component_is_the_linear_svm(loss: str) -> None:
    X, y = examples(200)
    cell = cell_of(X, y)
    options: dict[str, Any] = {"cost": (3.0,), "tolerance": 1e-9, "loss": loss}
    linear, expected = fitted(LinearSVM(**options), cell)
    for method in (
        MixtureSVM(clusters=(1.0,), shrinkage=(0.1,), **options),
        MultiTaskSVM(clusters=(1.0,), shrinkage=(0.1,), coupling=(10.0,), **options),
    ):
        mine, state = fitted(method, cell)
        if method.name == "mlsvm":
            assert_allclose(
                np.append(state["weights"][0, :-1], state["weights"][0, -1]),
                expected["weights"][[0, 1, 2, 4]],
                atol=1e-4,
            )
        assert_array_equal(mine.decision_function(X) > 0, linear.decision_function(X) > 0)


@pytest.mark.fast(1)
@pytest.mark.parametrize("method", ALL, ids=NAMES)
def test_a_pair_of_classes_is_the_problem_of_its_rows_alone(method: MixtureMethod) -> None:
    X, y = examples(240, classes=3)
    cell = cell_of(X, y, scheme="ava")
    together, _ = fitted(method, cell)
    for p, pair in enumerate([(0.0, 1.0), (0.0, 2.0), (1.0, 2.0)]):
        taken = np.isin(cell.y, pair)
        n = int(taken.sum())
        alone = Cell(
            cell.X[taken], cell.y[taken], Classification(np.asarray(pair)), np.ones(n), np.ones(n), cell.folds[taken]
        )
        expected, _ = fitted(method, alone)
        assert_allclose(together.decision_function(X)[:, p], expected.decision_function(X)[:, 0], atol=1e-6)


@pytest.mark.fast(1)
@pytest.mark.parametrize("method", ALL, ids=NAMES)
def test_a_pair_with_fewer_rows_than_components_or_none_decides(method: MixtureMethod) -> None:
    X, y = examples(120, classes=3)
    few = np.flatnonzero(y == 2.0)[4:]
    y[few] = 1.0
    cell = cell_of(X, y, scheme="ava")
    predictor, _ = fitted(replace(method, clusters=(50.0,)), cell)
    assert np.isfinite(predictor.decision_function(X)).all()
    two = replace(cell, y=np.minimum(cell.y, 1.0))  # a class that is not in this cell
    values = fitted(method, two)[0].decision_function(X)
    assert_array_equal(values[:, 2] <= 0, True)
    assert np.mean(cell.target.decide(values) == np.minimum(y, 1.0)) > 0.7


def test_rows_count_as_often_as_they_occur() -> None:
    X, y = examples(120)
    count = np.random.default_rng(0).integers(1, 4, 120).astype(np.float64)
    method = replace(ALL[1], clusters=(1.0,), cost=(3.0,), tolerance=1e-9)
    cell = cell_of(X, y)
    counted, _ = fitted(method, replace(cell, mass=count))
    many = np.repeat(np.arange(120), count.astype(int))
    repeated, _ = fitted(
        method,
        replace(
            cell,
            X=cell.X[many],
            y=cell.y[many],
            mass=np.ones(len(many)),
            cost=np.ones(len(many)),
            folds=cell.folds[many],
        ),
    )
    assert_allclose(counted.decision_function(X), repeated.decision_function(X), atol=1e-4)


def test_the_coupling_alone_is_no_coupling() -> None:
    w = np.arange(7.0)
    assert_array_equal(ALONE.pull(w), w)
    assert_allclose(Coupling(2.0 * np.eye(2)).pull(Coupling(2.0 * np.eye(2)).spread(w)), w)


def components(rng: np.random.Generator, d: int, K: int, apart: float, full: bool) -> tuple[np.ndarray, ...]:
    """Offsets, means, factors and weights; where `apart` is large, one component decides each row."""
    A = rng.standard_normal((K, d, d)) / np.sqrt(d)
    factor = np.tril(A) + 2.0 * np.eye(d) if full else rng.standard_normal((K, d))
    return rng.standard_normal(K), apart * rng.standard_normal((K, d)), factor, rng.standard_normal((K, d + 1))


def by_numpy(X: np.ndarray, parts: tuple[np.ndarray, ...]) -> tuple[np.ndarray, np.ndarray]:
    """Logarithms of densities, and decision values of the components, in float64."""
    offset, mean, factor, weights = parts
    away = X[:, None, :].astype(np.float64) - mean
    z = np.einsum("jrc,ijc->ijr", factor, away) if factor.ndim == 3 else away * factor
    return offset - 0.5 * np.square(z).sum(axis=2), X @ weights[:, :-1].T + weights[:, -1]


@pytest.mark.fast(12)
@pytest.mark.parametrize("level", range(len(LEVELS)))
@pytest.mark.parametrize("full", [True, False])
@pytest.mark.parametrize("apart", [0.3, 3.0, 100.0])
@pytest.mark.parametrize(("n", "d", "K"), [(1, 1, 1), (5, 3, 2), (40, 4, 3), (33, 9, 2), (1100, 22, 5), (0, 2, 1)])
def test_mixtures_in_c_decide_as_numpy_does(level: int, full: bool, apart: float, n: int, d: int, K: int) -> None:
    if level > simd_level():
        pytest.skip("not on this machine")
    rng = np.random.default_rng(n + d)
    parts = components(rng, d, K, apart, full)
    X = (parts[1][rng.integers(K, size=n)] + rng.standard_normal((n, d))).astype(np.float32)
    logs, f = by_numpy(X, parts)
    for loss, hard in ((0, False), (1, False), (0, True), (2, False)):
        values = Components(*parts, loss, hard, level).decide(X)
        assert_allclose(values, decided(logs, f, loss, hard), atol=1e-9)


@pytest.mark.parametrize("full", [True, False])
@pytest.mark.parametrize("offset", [1e3, 1e6])
def test_no_component_is_missed_far_from_zero_or_where_rows_are_huge(full: bool, offset: float) -> None:
    """Components about which float32 says little are computed, and decisions are those of numpy in float64."""
    rng = np.random.default_rng(3)
    small, mean, factor, weights = components(rng, 20, 6, 1.0, full)
    weights[:, -1] -= weights[:, :-1] @ np.full(20, offset)
    parts = small, mean + offset, factor, weights
    X = offset + rng.standard_normal((300, 20))
    X[::7] *= 10.0 ** rng.uniform(0, 16, (len(X[::7]), 1)) / offset
    X[::11, 0] = 1e16
    X = X.astype(np.float32)
    logs, f = by_numpy(X.astype(np.float64), parts)
    near = np.sort(logs, axis=1)
    clear = (near[:, -1] - near[:, -2] > 60.0) | (np.abs(near[:, -1]) < 1e6)  # else float64 itself cannot tell
    expected = decided(logs, f, 0, False)
    assert clear.mean() > 0.8
    assert_allclose(Components(*parts, False, False).decide(X)[clear], expected[clear], atol=1e-6)


def test_a_row_is_decided_by_itself() -> None:
    rng = np.random.default_rng(5)
    parts = components(rng, 18, 7, 1.0, True)
    X = (2.0 * rng.standard_normal((700, 18))).astype(np.float32)
    model = Components(*parts, False, False)
    whole, order = model.decide(X), rng.permutation(700)
    assert_array_equal(model.decide(X[order]), whole[order])
    assert_array_equal([model.decide(X[i : i + 1])[0] for i in range(0, 700, 13)], whole[::13])


@pytest.mark.parametrize("full", [True, False])
@pytest.mark.parametrize("shape", [(1, 3), (2, 1), (5, 8), (9, 4)])
@pytest.mark.parametrize("line", [False, True])
def test_bounds_of_densities_hold(full: bool, shape: tuple[int, int], line: bool) -> None:
    K, d = shape
    rng = np.random.default_rng(K)
    offset, mean, factor, weights = components(rng, d, K, 2.0, full)
    mean = np.outer(np.arange(K), mean[0]) if line else mean  # with one direction only
    X = 3.0 * rng.standard_normal((200, d))
    screen = Screen.of(offset, mean, factor)
    t = np.einsum("jqc,ic->ijq", screen.directions[:K], X - screen.centre) - screen.parts[:, :2]
    bounds = screen.parts[:, 2] - 0.5 * np.square(t).sum(axis=2)
    assert (bounds >= by_numpy(X, (offset, mean, factor, weights))[0] - 1e-4).all()


def test_components_far_apart_are_told_by_their_bounds() -> None:
    """Bounds separate components at equal distances in different directions, such as categories."""
    d = K = 12
    screen = Screen.of(np.zeros(K), 20.0 * np.eye(K), np.ones((K, d)))
    t = np.einsum("jqc,kc->kjq", screen.directions, 20.0 * np.eye(K) - screen.centre) - screen.parts[:, :2]
    squares = np.square(t).sum(axis=2)
    assert squares[~np.eye(K, dtype=bool)].min() > 50.0
    assert_allclose(np.diag(squares), 0.0, atol=1e-6)


@pytest.mark.parametrize("far", [1e39, 1e300, 1.7e308])
@pytest.mark.parametrize("hard", [False, True])
def test_means_beyond_float32_decide_as_others_do(far: float, hard: bool) -> None:
    """Means beyond float32, as in a damaged file, leave rows to the component next to them, without a warning."""
    mean = np.full((3, 2), far)
    mean[1] = 0.0
    weights = np.asarray([[0.0, 0.0, side] for side in (-2.0, 2.0, -2.0)])
    values = Components(np.zeros(3), mean, np.ones((3, 2)), weights, False, hard).decide(np.ones((5, 2), np.float32))
    assert_allclose(values, 1.0 - np.exp(-3.0))


def test_components_refuse_what_does_not_fit() -> None:
    good = np.zeros(2), np.zeros((2, 3)), np.zeros((2, 3)), np.zeros((2, 4))
    Components(*good, False, False)
    for i, bad in ((0, np.zeros(3)), (2, np.zeros((2, 4))), (2, np.zeros((2, 3, 2))), (3, np.zeros((2, 3)))):
        with pytest.raises(ValueError, match="shapes of the components"):
            Components(*(bad if j == i else part for j, part in enumerate(good)), False, False)
    with pytest.raises(ValueError, match="as many columns"):
        Components(*good, False, False).decide(np.zeros((5, 2), np.float32))


def test_two_sines_fall_into_five_linear_pieces() -> None:
    """LSVM-MTL separates the classes of the paper's figure 2, and k-means, which disregards them, does not."""
    X, y = two_sines(1000, np.random.default_rng(0))
    X /= X.std(axis=0)
    kmeans = KMeansSVM(clusters=(5.0,), cost=(1e4,))
    mixed = MultiTaskSVM(clusters=(5.0,), shrinkage=(0.001,), groups=(5.0,), coupling=(10.0,), cost=(1e4,))
    order = cell_of(X, y)
    right = [np.mean((fitted(m, order)[0].decision_function(X)[:, 0] > 0) == (y > 0)) for m in (kmeans, mixed)]
    assert right[0] < 0.98 < 0.995 < right[1]


@pytest.mark.parametrize("method", ALL, ids=NAMES)
def test_more_components_than_rows_and_rows_of_one_class(method: MixtureMethod) -> None:
    X, y = examples(12)
    predictor, _ = fitted(replace(method, clusters=(50.0,)), cell_of(X, y))
    assert np.isfinite(predictor.decision_function(X)).all()
    cell = replace(cell_of(X, y), y=np.ones(12))
    predictor, _ = fitted(method, cell)
    assert (predictor.decision_function(X) > 0).all()
