"""Multiclass latent locally linear SVMs: scores, the two solvers, and the convex problem of a round."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import LinearConstraint, NonlinearConstraint, minimize
from threadpoolctl import threadpool_limits

from localsvm.data.blocks.dataset import as_examples
from localsvm.solvers import ml3
from localsvm.solvers.ml3 import ML3Problem, dual_exponent, exact, objective, scores, stochastic
from localsvm.solvers.ml3_round import Coordinates, Round, SortedRows
from localsvm.solvers.ml3_smooth import best_combinations, capped_simplex, largest, norm_slopes, norms

POWERS = [1.0, 1.5, 2.0]
SOLVERS = [stochastic, exact]


@pytest.fixture(scope="module", autouse=True)
def blas_on_one_thread() -> Iterator[None]:
    """One thread for BLAS, as in workers: several wait for each other longer than such small products take."""
    with threadpool_limits(1):
        yield


def random_weights(rng: np.random.Generator, classes: int, models: int, features: int) -> np.ndarray:
    return rng.normal(size=(classes, models, features + 1)).astype(np.float32)


def with_bias(X: np.ndarray) -> np.ndarray:
    return np.column_stack([X, np.ones(len(X))])


def three_lines(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Three classes that linear scores tell apart, with a margin."""
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, 3, n).astype(np.int32)
    centres = np.array([[3.0, 0.0], [-1.5, 2.6], [-1.5, -2.6]])
    return (centres[codes] + rng.uniform(-1, 1, (n, 2))).astype(np.float32), codes


def checkers(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Two classes on opposite corners of a square each, with a margin."""
    rng = np.random.default_rng(seed)
    corner = rng.choice([-1.0, 1.0], (n, 2))
    X = corner + rng.uniform(-0.6, 0.6, (n, 2))
    return X.astype(np.float32), (corner[:, 0] * corner[:, 1] > 0).astype(np.int32)


def overlapping(n: int, d: int = 4, classes: int = 3, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, classes, n).astype(np.int32)
    return (rng.normal(size=(classes, d))[codes] + rng.normal(size=(n, d))).astype(np.float32), codes


def problem_of(X, codes: np.ndarray, weight: np.ndarray | None = None, **settings) -> ML3Problem:
    weight = np.ones(len(codes)) if weight is None else weight
    return ML3Problem(X, codes, weight, int(codes.max()) + 1, **settings)


def accuracy(W: np.ndarray, p: float, X: np.ndarray, codes: np.ndarray) -> float:
    return float((scores(W, X, p).argmax(axis=1) == codes).mean())


def best_by_search(c: np.ndarray, p: float) -> float:
    """Maximum of b'c over b >= 0, |b|_p <= 1, by a general solver."""
    start = np.full(len(c), 0.3 / len(c))
    ball = NonlinearConstraint(lambda b: (b**p).sum(), -np.inf, 1)
    simplex = LinearConstraint(np.ones(len(c)), -np.inf, 1)
    bounds = [(0, 1)] * len(c)
    options = {"ftol": 1e-12, "maxiter": 500}
    result = minimize(
        lambda b: -b @ c,
        start,
        jac=lambda b: -c,
        bounds=bounds,
        constraints=[simplex if p == 1 else ball],
        method="SLSQP",
        options=options,
    )
    return -float(result.fun)


@pytest.mark.parametrize("p", POWERS)
def test_scores_are_those_of_the_best_combination(p: float) -> None:
    rng = np.random.default_rng(0)
    W, X = random_weights(rng, 3, 4, 5), rng.normal(size=(12, 5)).astype(np.float32)
    W[2] = -np.abs(W[2])
    X[0] = np.abs(X[0])  # no model of the last class is positive for this row
    expected = [[best_by_search(w.astype(float) @ x, p) for w in W] for x in with_bias(X)]
    computed = scores(W, X, p)
    np.testing.assert_allclose(computed, expected, atol=2e-5, rtol=1e-5)
    assert computed[0, 2] == 0


@pytest.mark.parametrize("p", POWERS)
def test_best_combinations_attain_the_score(p: float) -> None:
    c = np.random.default_rng(1).normal(size=(6, 40))
    c[:, 0] = -1
    beta, q = best_combinations(c, dual_exponent(p)), dual_exponent(p)
    assert (beta >= 0).all()
    assert ((beta**p).sum(axis=0) <= 1 + 1e-9).all()
    np.testing.assert_allclose((beta * c).sum(axis=0), np.linalg.norm(np.maximum(c, 0), ord=q, axis=0), rtol=1e-9)
    assert not beta[:, 0].any()


@given(
    st.integers(1, 7),
    st.integers(1, 8),
    st.integers(0, 40),
    st.sampled_from([1.0, 1.2, 1.5, 2.0, 3.0]),
    st.integers(0, 999),
)
@settings(max_examples=60, deadline=None)
def test_scores_of_any_shape(classes: int, models: int, features: int, p: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    W, X = random_weights(rng, classes, models, features), rng.normal(size=(9, features)).astype(np.float32)
    X[rng.random(X.shape) < 0.3] = 0
    c = np.einsum("rkj,ij->irk", W.astype(float), with_bias(X))
    expected = np.linalg.norm(np.maximum(c, 0), ord=dual_exponent(p), axis=2)
    computed = scores(W, X, p)
    np.testing.assert_allclose(computed, expected, atol=3e-5)
    np.testing.assert_array_equal(computed, scores(W, as_examples(sp.csr_array(X)), p))
    np.testing.assert_array_equal(computed[3:5], scores(W, X[3:5].copy(), p))


def test_simplex_projection_against_a_general_solver() -> None:
    v = np.random.default_rng(2).normal(size=(4, 30))
    for column, projected in zip(v.T, capped_simplex(v).T, strict=True):
        nearest = minimize(
            lambda a, column=column: ((a - column) ** 2).sum(),
            np.full(4, 0.1),
            bounds=[(0, 1)] * 4,
            constraints=[LinearConstraint(np.ones(4), -np.inf, 1)],
            method="SLSQP",
            options={"ftol": 1e-14},
        )
        np.testing.assert_allclose(projected, nearest.x, atol=1e-5)


@pytest.mark.parametrize("q", [3.0, 2.0, 5.5, np.inf])
def test_smoothing_is_from_above_and_as_close_as_promised(q: float) -> None:
    rng = np.random.default_rng(3)
    u, c, mu = rng.normal(size=(5, 400)), rng.normal(size=(3, 4, 400)), 0.2
    above = largest(u, mu)[0] - np.maximum(u.max(axis=0), 0)
    assert above.min() > -1e-12
    assert above.max() <= mu / 2
    above = norms(c, q, mu) - np.linalg.norm(np.maximum(c, 0), ord=q, axis=1)
    assert above.min() > -1e-12
    assert above.max() <= mu + 1e-12
    step, at = 1e-6, (1, 2, slice(None))
    moved = c.copy()
    moved[at] += step
    numeric = (norms(moved, q, mu)[1] - norms(c, q, mu)[1]) / step
    np.testing.assert_allclose(norm_slopes(c, q, mu)[at], numeric, atol=2e-5)


def round_of(X: np.ndarray, codes: np.ndarray, p: float, models: int = 3) -> Round:
    """A round in float64 from random weights on, with unequal costs."""
    rng = np.random.default_rng(4)
    weight = rng.uniform(0.5, 2, len(codes))
    rows = SortedRows.sorted_by_class(X.astype(np.float64), codes, weight)
    beta = rng.random((models, len(codes)))
    beta /= (beta**p).sum(axis=0) ** (1 / p)
    lam = 0.05
    return Round(rows, beta, int(codes.max()) + 1, dual_exponent(p), lam, Coordinates.of(rows, lam))


@pytest.mark.parametrize("p", POWERS)
def test_gradient_against_differences(p: float) -> None:
    problem = round_of(*overlapping(60), p)
    rng = np.random.default_rng(5)
    W, direction = rng.normal(size=(2, 3, 3, 5))
    step = 1e-5
    for mu in (0.5, 0.05):
        _, gradient = problem.value(W, mu)
        up, down = problem.value(W + step * direction, mu)[0], problem.value(W - step * direction, mu)[0]
        assert (up - down) / (2 * step) == pytest.approx(float(np.vdot(gradient, direction)), rel=2e-5)


def round_by_epigraph(problem: Round, models: int) -> float:
    """The minimum of a round's problem, not smoothed, p = 1: a quadratic program with a slack a row, by SLSQP."""
    rows, classes = problem.rows, problem.classes
    X, n = with_bias(rows.X), len(rows.codes)
    size = classes * models * X.shape[1]
    constraints, bound = [], []
    for i, (x, code) in enumerate(zip(X, rows.codes, strict=True)):
        true = np.zeros((classes, models, X.shape[1]))
        true[code] = np.outer(problem.beta[:, i], x)
        others = [None] + [(r, k) for r in range(classes) for k in range(models) if r != code]
        for other in others:  # slack >= 1 + c_other - true score, where c_other may be 0
            row = true.copy()
            if other is not None:
                row[other] -= x
            constraints.append(np.concatenate([row.ravel(), np.eye(n)[i]]))
            bound.append(1.0)
    A, b = np.array(constraints), np.array(bound)

    def value(z: np.ndarray) -> float:
        return 0.5 * problem.lam * z[:size] @ z[:size] + rows.cost @ z[size:]

    def slope(z: np.ndarray) -> np.ndarray:
        return np.concatenate([problem.lam * z[:size], rows.cost])

    start = np.concatenate([np.zeros(size), np.ones(n)])
    bounds = [(None, None)] * size + [(0, None)] * n
    least = {"type": "ineq", "fun": lambda z: A @ z - b, "jac": lambda z: A}
    options = {"ftol": 1e-12, "maxiter": 500}
    result = minimize(value, start, jac=slope, bounds=bounds, constraints=[least], method="SLSQP", options=options)
    assert result.success
    return float(result.fun)


def test_round_reaches_the_minimum_of_its_problem() -> None:
    problem = round_of(*overlapping(9, d=2, seed=1), p=1.0, models=2)
    W = np.zeros((3, 2, 3))
    for mu in (0.1, 0.01, 0.001, 1e-4):
        W, value = problem.solve(W, mu, 1e-9, 2000)
    assert value == pytest.approx(round_by_epigraph(problem, 2), rel=1e-3)


def test_one_model_is_a_multiclass_linear_svm_with_a_class_of_score_zero() -> None:
    """One model equals a linear SVM if all rows score their classes above 0: (w_r x)_+ is the larger of w_r x and 0."""
    X, codes = three_lines(9)
    problem = problem_of(X, codes, models=1, p=1.0, lam=0.02)
    W, report = exact(problem, np.random.default_rng(0), 1e-5)
    assert scores(W, X, 1.0)[np.arange(9), codes].min() > 0
    rows = SortedRows.sorted_by_class(X.astype(np.float64), codes, problem.weight)
    linear = Round(rows, np.ones((1, 9)), 3, np.inf, 0.02, Coordinates.of(rows, 0.02))
    assert report.objective == pytest.approx(round_by_epigraph(linear, 1), rel=0.01)


@pytest.mark.parametrize("p", [1.5, 2.0])
def test_round_left_with_few_rows_equals_all_of_them(p: float) -> None:
    problem = round_of(*three_lines(100), p)
    start = np.random.default_rng(6).normal(size=(3, 3, 3))
    some = problem.solve(start, 0.05, 1e-7, 1000)
    whole = problem.minimise(start, 0.05, 1e-7, 1000)
    assert (problem.margins(whole[0], 0.05) > 0).mean() > 0.3
    assert some[1] == pytest.approx(whole[1], rel=1e-4)
    assert np.vdot(problem.value(whole[0], 0.05)[1], problem.value(whole[0], 0.05)[1]) < 1e-6


def test_round_equals_the_objective_where_it_begins() -> None:
    X, codes = overlapping(200)
    problem = problem_of(X, codes, models=4)
    W = random_weights(np.random.default_rng(7), 3, 4, 4)
    rows = SortedRows.sorted_by_class(X, codes, problem.weight)
    begun = Round.at(W, rows, problem.q, problem.lam, Coordinates.of(rows, problem.lam))
    assert begun.value(W.astype(float), 1e-6)[0] == pytest.approx(objective(problem, W), rel=1e-5)


def test_every_round_lowers_the_objective() -> None:
    problem = problem_of(*overlapping(150), models=3)
    counts = [0, 1, 2, 3, 5, 8]
    runs = [exact(problem, np.random.default_rng(0), 1e-4, rounds) for rounds in counts]
    values = [report.objective for _, report in runs]
    assert all(later <= earlier for earlier, later in pairwise(values))
    assert values[-1] < values[0]
    for W, report in runs:
        assert report.objective == objective(problem, W)
    assert [report.rounds for _, report in runs] == counts


def test_no_class_is_lost_where_a_linear_model_would_lose_it() -> None:
    """Class 1 lies within class 0, so that no linear score wants any of its rows."""
    rng = np.random.default_rng(0)
    inner = rng.random(400) < 0.4
    X = rng.normal(size=(400, 2))
    X *= (np.where(inner, 0.5, 2) * rng.uniform(0.5, 1, 400) / np.linalg.norm(X, axis=1))[:, None]
    X, codes = (X + 3).astype(np.float32), inner.astype(np.int32)
    weights = [exact(problem_of(X, codes), np.random.default_rng(seed), 0.01)[0] for seed in range(3)]
    assert min(accuracy(W, 1.5, X, codes) for W in weights) > 0.95


def test_exact_says_whether_it_converged() -> None:
    problem = problem_of(*overlapping(200), models=3, lam=0.1)
    assert not exact(problem, np.random.default_rng(0), rounds=1)[1].converged
    report = exact(problem, np.random.default_rng(0))[1]
    assert report.converged
    assert report.fell <= 1e-3


@pytest.mark.parametrize("solver", SOLVERS)
def test_one_model_learns_what_is_linear(solver) -> None:
    X, codes = three_lines(300)
    W, _ = solver(problem_of(X, codes, models=1, p=1.0), np.random.default_rng(0))
    assert W.shape == (3, 1, 3)
    assert W.dtype == np.float32
    assert accuracy(W, 1.0, *three_lines(1000, seed=1)) > 0.99


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("p", POWERS)
def test_several_models_learn_what_is_not_linear(solver, p: float) -> None:
    X, codes = checkers(200)
    assert accuracy(solver(problem_of(X, codes, models=1, p=p), np.random.default_rng(0))[0], p, X, codes) < 0.8
    weights = [solver(problem_of(X, codes, models=4, p=p), np.random.default_rng(seed))[0] for seed in range(3)]
    assert np.median([accuracy(W, p, *checkers(1000, seed=1)) for W in weights]) > 0.97


@pytest.mark.parametrize("solver", SOLVERS)
def test_sparse_rows_equal_dense_ones(solver) -> None:
    X, codes = overlapping(200, d=5)
    X[np.random.default_rng(8).random(X.shape) < 0.6] = 0
    weight = np.where(np.arange(200) % 4, 1.0, 2.5)
    dense = solver(problem_of(X, codes, weight), np.random.default_rng(0), rounds=4)
    sparse = solver(problem_of(as_examples(sp.csr_array(X)), codes, weight), np.random.default_rng(0), rounds=4)
    if solver is stochastic:
        np.testing.assert_array_equal(dense[0], sparse[0])
    else:
        assert sparse[1].objective == pytest.approx(dense[1].objective, rel=0.02)
        agree = scores(dense[0], X, 1.5).argmax(axis=1) == scores(sparse[0], X, 1.5).argmax(axis=1)
        assert agree.mean() > 0.97


@pytest.mark.parametrize("solver", SOLVERS)
def test_rows_without_weight_are_rows_left_out(solver) -> None:
    X, codes = overlapping(240)
    weight = np.random.default_rng(9).uniform(0.5, 2, 240)
    out = np.arange(240) % 5 == 2
    weight[out] = 0
    spoilt = X.copy()
    spoilt[out] = 1e3
    with_them = solver(problem_of(spoilt, codes, weight), np.random.default_rng(0), rounds=3)
    inside = problem_of(X[~out], codes[~out], weight[~out])
    without = solver(inside, np.random.default_rng(0), rounds=3)
    if solver is exact:
        np.testing.assert_array_equal(with_them[0], without[0])
    assert with_them[1].objective == pytest.approx(objective(inside, with_them[0]), rel=1e-12)
    assert with_them[1].objective == pytest.approx(without[1].objective, rel=0.1)


def test_costs_of_two_count_as_two_rows() -> None:
    X, codes = overlapping(150)
    twice = np.concatenate([np.arange(150), np.arange(0, 150, 3)])
    weight = np.where(np.arange(150) % 3 == 0, 2.0, 1.0)
    lam = 0.05
    single = problem_of(X, codes, weight, models=3, lam=lam)
    double = problem_of(X[twice], codes[twice], models=3, lam=lam * 150 / 200)
    W = random_weights(np.random.default_rng(10), 3, 3, 4)
    assert objective(single, W) == pytest.approx(objective(double, W) * 200 / 150, rel=1e-9)


@pytest.mark.parametrize("solver", SOLVERS)
def test_same_seed_same_bits(solver) -> None:
    problem = problem_of(*overlapping(200), models=4)
    first, second, other = (solver(problem, np.random.default_rng(seed), rounds=3) for seed in (0, 0, 1))
    np.testing.assert_array_equal(first[0], second[0])
    assert first[1] == second[1]
    assert (first[0] != other[0]).any()


def pegasos(problem: ML3Problem, rng: np.random.Generator, rounds: int) -> np.ndarray:
    """`stochastic` once more, one plain step after the other in float64 and with the core's random numbers."""
    X, n, lam, q = with_bias(problem.X).astype(float), len(problem.codes), problem.lam, problem.q
    W = np.zeros((problem.classes, problem.models, X.shape[1]))
    state = int(rng.integers(1 << 63))
    first = float(problem.weight @ (X**2).sum(axis=1)) / n / lam
    for epoch in range(rounds + 1):
        before, average, t = W.copy(), np.zeros_like(W), first + 2 * n * epoch
        for i in rng.permutation(n):
            x, y, t = X[i], problem.codes[i], t + 1
            c = W @ x
            others = [r for r in range(problem.classes) if r != y]
            if epoch == 0:
                state, beta = splitmix_ball(state, problem.models, problem.p)
                wrong = max(others, key=lambda r: beta @ c[r])
                wrong_beta, wrong_score = beta, beta @ c[wrong]
            else:
                beta = best_combinations((before[y] @ x)[:, None], q)[:, 0]
                wrong = max(others, key=lambda r: np.linalg.norm(np.maximum(c[r], 0), ord=q))
                wrong_beta = best_combinations(c[wrong][:, None], q)[:, 0]
                wrong_score = np.linalg.norm(np.maximum(c[wrong], 0), ord=q)
            loss = 1 + wrong_score - beta @ c[y]
            W *= 1 - 1 / t
            if loss > 0:
                eta = problem.weight[i] / (lam * t)
                W[y] += eta * np.outer(beta, x)
                W[wrong] -= eta * np.outer(wrong_beta, x)
            norm, radius = np.linalg.norm(W), np.sqrt(2 * problem.weight.sum() / lam)
            W *= min(1.0, radius / norm) if norm else 1.0
            average += W / n
    return average


def splitmix_ball(state: int, models: int, p: float) -> tuple[int, np.ndarray]:
    beta = np.empty(models)
    for k in range(models):
        state = (state + 0x9E3779B97F4A7C15) % 2**64
        z = (state ^ (state >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
        z = (z ^ (z >> 27)) * 0x94D049BB133111EB % 2**64
        beta[k] = ((z ^ (z >> 31)) >> 11) * 2.0**-53
    return state, beta / max(1.0, float((beta**p).sum() ** (1 / p)))


@pytest.mark.parametrize("p", POWERS)
def test_stochastic_equals_plain_steps(p: float) -> None:
    X, codes = overlapping(40, d=3)
    problem = problem_of(X, codes, np.random.default_rng(11).uniform(0.5, 2, 40), models=3, p=p)
    W, _ = stochastic(problem, np.random.default_rng(0), rounds=2)
    expected = pegasos(problem, np.random.default_rng(0), 2)
    np.testing.assert_allclose(W, expected, atol=2e-4 * np.abs(expected).max())


def test_projection_acts_on_a_small_ball() -> None:
    X, codes = overlapping(50)
    model = ml3.ML3Model(3, 2, 4, 3.0)
    training = ml3.ML3Training(model, X, codes, np.ones(50), 1.5, 0.02, 0.7, 1)
    W = training.epoch(np.arange(50), 0.0, initial=True, average=True)
    last = training.epoch(np.arange(50), 100.0, average=True)
    assert W is not None
    assert last is not None
    assert 0.1 < np.linalg.norm(last) <= 0.7 + 1e-5


@pytest.mark.parametrize(
    "change",
    [
        {"codes": np.array([0, 1, 3], np.int32)},
        {"codes": np.array([0, 1], np.int32)},
        {"weight": np.zeros(3)},
        {"weight": np.ones(2)},
        {"classes": 1},
        {"models": 0},
        {"p": 0.5},
        {"p": np.inf},
        {"lam": -1.0},
    ],
)
def test_refuses_what_is_no_problem(change: dict) -> None:
    whole = {
        "X": np.eye(3, dtype=np.float32),
        "codes": np.array([0, 1, 2], np.int32),
        "weight": np.ones(3),
        "classes": 3,
    }
    ML3Problem(**whole)
    with pytest.raises(ValueError):
        ML3Problem(**(whole | change))


def test_refuses_rows_that_it_cannot_read() -> None:
    W = random_weights(np.random.default_rng(0), 2, 2, 3)
    with pytest.raises(TypeError):
        scores(W, np.eye(3), 1.5)
    with pytest.raises(TypeError):
        scores(W, sp.csc_array(np.eye(3, dtype=np.float32)), 1.5)
    with pytest.raises(ValueError, match="columns"):
        scores(W, np.eye(4, dtype=np.float32), 1.5)
    broken = sp.csr_array(np.eye(3, dtype=np.float32))
    broken.indices[0] = 7
    with pytest.raises(ValueError, match="outside"):
        scores(W, broken, 1.5)
