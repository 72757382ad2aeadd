"""MLLKM: its sums and scores against brute force, its optimum against scipy, its certificate written out."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize
from selecting import cell_of, examples, fit, fitted, score

from localsvm.methods.locally_linear.mllkm import MOST_GAMMA, LocallyLinearKernels
from localsvm.representations import local_kernels
from localsvm.representations.component_sums import component_sums
from localsvm.representations.local_kernels import MAPS, LocalBank, LocalFeatures
from localsvm.solvers import feature_mkl as solver
from localsvm.solvers import group_newton
from localsvm.solvers.feature_mkl import Found, feature_mkl
from localsvm.solvers.feature_sdca import ActiveEpochs, feature_sdca
from localsvm.store.checking import check
from localsvm.store.pieces import Unsound

GAMMAS = (0.1, 1.0)
ONE = LocallyLinearKernels(cost=(1.0,), bank_gammas=GAMMAS, admit=8)


def map_of(kind: str, gamma: float, r: np.ndarray) -> np.ndarray:
    """The five maps of a distance, written out."""
    return {
        "exponential": np.exp(-gamma * r),
        "gaussian": np.exp(-gamma * r**2),
        "linear": np.maximum(0, 1 - gamma * r),
        "square": np.maximum(0, 1 - gamma * r**2),
        "plain": np.ones_like(r),
    }[kind]


def features_of(kind: str, componentwise: bool, gamma: float, X: np.ndarray, c: np.ndarray) -> np.ndarray:
    """phi(x) of each row for one anchor."""
    D = X - c
    r = np.abs(D) if componentwise else np.sqrt((D**2).sum(axis=1))[:, None]
    return np.asarray(map_of(kind, gamma, r) * D)


def written_out(bank: LocalBank, names: np.ndarray | None = None) -> list[np.ndarray]:
    """The features of all kernels of a bank, or of some."""
    which = range(bank.size) if names is None else names
    pairs = [divmod(int(m), len(bank.anchors)) for m in which]
    return [features_of(bank.kind, bank.componentwise, bank.gammas[k], bank.X, bank.anchors[a]) for k, a in pairs]


def problem(n: int = 40, d: int = 2, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    X, y = examples(n, max(d, 3), seed=seed)
    return X[:, :d].astype(np.float64), 2.0 * y - 1.0


def bank_of(X: np.ndarray, kind: str = "gaussian", componentwise: bool = False, gammas: Any = GAMMAS) -> LocalBank:
    return LocalBank(X, X, np.arange(len(X)), kind, gammas if kind != "plain" else (1.0,), componentwise)


def oracle(bank: LocalBank, y: np.ndarray, cost: float) -> float:
    """Maximum of sum a - t, 1/2 |sum_i a_i y_i phi_m(x_i)|^2 <= t for all m, 0 <= a <= C, by scipy."""
    F = np.stack([phi.T * y for phi in written_out(bank)])  # (kernels, d, n)
    n = len(y)
    done = minimize(
        lambda z: z[-1] - z[:-1].sum(),
        np.append(np.full(n, 0.1 * cost), 10.0),
        jac=lambda z: np.append(-np.ones(n), 1.0),
        bounds=[(0.0, cost)] * n + [(0.0, None)],
        constraints={
            "type": "ineq",
            "fun": lambda z: z[-1] - 0.5 * ((F @ z[:-1]) ** 2).sum(axis=1),
            "jac": lambda z: np.hstack([-np.einsum("md,mdn->mn", F @ z[:-1], F), np.ones((len(F), 1))]),
        },
        options={"maxiter": 500, "ftol": 1e-9},
    )
    assert done.status in (0, 8)  # 8: to the last digits of its line search
    return -float(done.fun)


def certificate(bank: LocalBank, y: np.ndarray, cost: Any, solution: Found) -> tuple[float, float]:
    """Primal and dual objective over the whole bank, written out."""
    W = solution.w.reshape(len(solution.names), -1)
    f = sum((phi @ w for phi, w in zip(written_out(bank, solution.names), W, strict=True)), np.zeros(len(y)))
    total = np.sqrt((W**2).sum(axis=1)).sum()
    scores = [0.5 * float(((solution.coef @ phi) ** 2).sum()) for phi in written_out(bank)]
    alpha = solution.coef * y
    assert alpha.min() >= 0.0 and (alpha <= cost * (1 + 1e-12)).all()
    return 0.5 * total**2 + float((cost * np.maximum(0, 1 - y * f)).sum()), alpha.sum() - max(scores)


@pytest.mark.parametrize("kind", MAPS)
@pytest.mark.parametrize("gamma", [0.01, 0.7, 30.0])
def test_component_wise_sums_are_those_of_brute_force(kind: str, gamma: float) -> None:
    rng = np.random.default_rng(0)
    X = np.vstack([rng.standard_normal((200, 3)), rng.integers(-2, 3, (100, 3)), [[1e3, -50.0, 0.0]]])
    A = np.vstack([X[::7], rng.standard_normal((20, 3)), [[-2e3, 0.0, 80.0]]])
    b = rng.standard_normal(len(X))
    D = X[:, None] - A
    expected = (b[:, None, None] * map_of(kind, gamma, np.abs(D)) * D).sum(axis=0)
    scale = (np.abs(b)[:, None, None] * map_of(kind, gamma, np.abs(D)) * np.abs(D)).sum(axis=0).max()
    assert_allclose(component_sums(kind, gamma, X, b, A), expected, rtol=0, atol=1e-13 * scale)


@pytest.mark.parametrize("componentwise", [False, True])
@pytest.mark.parametrize("kind", MAPS)
def test_scores_are_those_of_brute_force(kind: str, componentwise: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("localsvm.representations.local_kernels.BLOCK", 500)
    X, _ = problem(60, 3)
    bank = bank_of(X, kind, componentwise)
    coef = np.random.default_rng(1).standard_normal(60) * (np.arange(60) % 3 > 0)
    expected = np.asarray([0.5 * ((coef @ phi) ** 2).sum() for phi in written_out(bank)])
    scores = bank.scores(coef)
    assert_allclose(scores, expected, rtol=1e-10 if componentwise else 1e-4, atol=1e-10 if componentwise else 1e-5)
    assert_allclose(bank.scores(1e-100 * coef) * 1e200, scores, rtol=1e-5)
    closed = replace(bank, open=np.arange(10))
    inside = np.arange(bank.size) % 60 < 10
    assert_allclose(closed.scores(coef), np.where(inside, scores, 0.0), rtol=1e-5)


@pytest.mark.parametrize("componentwise", [False, True])
@pytest.mark.parametrize("kind", MAPS)
def test_features_are_products_of_what_is_written_out(
    kind: str, componentwise: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("localsvm.representations.local_kernels.STRIP", 13)
    X, _ = problem(30, 3)
    bank = bank_of(X, kind, componentwise)
    names = np.asarray([3, 17, bank.size - 1])
    expected = np.hstack(written_out(bank, names))
    features, rng = bank.features(names), np.random.default_rng(0)
    w, coef, rows = rng.standard_normal(9), rng.standard_normal(30), np.asarray([2, 5, 28])
    both = bank.features(names[:1]).joined(bank.features(names[1:]))  # type: ignore[arg-type]
    for one in (features, both):
        assert_allclose(one.matrix(), expected, atol=1e-12)
        assert_allclose(one.values(w), expected @ w, atol=1e-12)
        assert_allclose(one.add(coef), coef @ expected, atol=1e-12)
        assert_allclose(one.add(coef * (np.arange(30) > 20)), coef[21:] @ expected[21:], atol=1e-12)
        assert_allclose(one.of_rows(rows).matrix(), expected[rows], atol=1e-12)
        assert_allclose(one.of_kernels(np.asarray([True, False, True])).matrix(), expected[:, [0, 1, 2, 6, 7, 8]])


@pytest.mark.parametrize("componentwise", [False, True])
@pytest.mark.parametrize("kind", MAPS)
def test_the_optimum_is_that_of_scipy_and_the_gap_is_certified(kind: str, componentwise: bool) -> None:
    X, y = problem()
    bank = bank_of(X, kind, componentwise)
    solution = feature_mkl(bank, y, np.full(40, 2.0), 1e-4, admitted=5)
    best = oracle(bank, y, 2.0)
    assert solution.converged
    assert solution.primal == pytest.approx(best, rel=1e-3) and solution.dual == pytest.approx(best, rel=1e-3)
    primal, dual = certificate(bank, y, 2.0, solution)
    assert solution.primal == pytest.approx(primal, rel=1e-8)
    assert solution.dual == pytest.approx(dual, rel=1e-5)  # inactive ones are scored in float32


@pytest.mark.parametrize("cost", [0.01, 1.0, 100.0])
@pytest.mark.parametrize("direct", [0, 10_000])
def test_any_cost_reaches_the_tolerance_by_either_way_to_directions(
    cost: float, direct: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(group_newton, "DIRECT", direct)
    X, y = problem(120, 3)
    bank = bank_of(X)
    solution = feature_mkl(bank, y, np.full(120, cost), 1e-3)
    primal, dual = certificate(bank, y, cost, solution)
    assert solution.converged and primal - dual <= 1.01e-3 * primal


@pytest.mark.parametrize("kind", ["gaussian", "exponential"])
def test_few_candidates_are_scored_between_looks_at_all(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Candidates change how often all kernels are scored, and not what is certified."""
    X, y = problem(300, 3)
    cost, scored = np.full(300, 20.0), []

    class Watched(LocalBank):
        def scores(self, coef: np.ndarray) -> np.ndarray:
            scored.append(len(self.open))
            return super().scores(coef)

    bank = Watched(X, X, np.arange(300), kind, GAMMAS, False)
    every = feature_mkl(bank, y, cost, 1e-3, 4)
    rounds, scored[:] = len(scored), []
    monkeypatch.setattr(local_kernels, "MANY", 300)
    solution = feature_mkl(bank, y, cost, 1e-3, 4)
    assert set(scored) == {300, 300 // local_kernels.LIKELY} and scored.count(300) == solution.rounds + 1 < rounds
    assert scored[-1] == 300 and solution.primal == pytest.approx(every.primal, rel=2e-3)
    primal, dual = certificate(bank, y, 20.0, solution)
    assert solution.converged and solution.primal == pytest.approx(primal, rel=1e-8)
    assert solution.dual == pytest.approx(dual, rel=1e-4) and primal - dual <= 1.01e-3 * primal


@pytest.mark.parametrize(("n", "kind", "componentwise"), [(150, "gaussian", False), (100, "linear", True)])
def test_kernels_that_are_seen_once_come_near_the_optimum(n: int, kind: str, componentwise: bool) -> None:
    X, y = problem(n, 3)
    bank, cost = bank_of(X, kind, componentwise), np.full(n, 2.0)
    parts = bank.parts(np.random.default_rng(0))
    seen: list[int] = []

    class Watched(LocalBank):
        def scores(self, coef: np.ndarray) -> np.ndarray:
            seen.extend(self.open.tolist())
            return super().scores(coef)

    watched = [Watched(X, X, part.open, kind, bank.gammas, componentwise) for part in parts]
    solution, best = feature_mkl(bank, y, cost, 1e-3, parts=watched), feature_mkl(bank, y, cost, 1e-3)
    assert sorted(seen[len(seen) - n :]) == list(range(n))  # after the choice of the first ones
    assert len(seen) <= n + len(parts[0].open)
    assert best.primal * (1 - 1e-3) <= solution.primal <= 1.03 * best.primal
    primal, dual = certificate(bank, y, 2.0, solution)
    assert solution.primal == pytest.approx(primal, rel=1e-8) and solution.dual == pytest.approx(dual, rel=1e-4)
    assert solution.rounds == len(parts) + 1 and solution.converged == (solution.gap <= 1e-3)


@pytest.mark.whole
@pytest.mark.parametrize("kind", ["gaussian", "square"])
def test_many_epochs_of_the_papers_algorithm_come_to_the_optimum(kind: str) -> None:
    X, y = problem(60)
    bank, cost, rng = bank_of(X, kind), np.full(60, 1.0), np.random.default_rng(0)
    best = feature_mkl(bank, y, cost, 1e-4)
    many, few = (feature_sdca(bank, y, cost, 1e-2, 8, epochs, rng) for epochs in (300, 1))
    assert many.primal == pytest.approx(best.primal, rel=2e-2)
    assert few.gap > many.gap
    for one in (many, few):
        primal, dual = certificate(bank, y, 1.0, one)
        assert one.primal == pytest.approx(primal, rel=1e-8) and one.dual == pytest.approx(dual, rel=1e-4)


@pytest.mark.whole
def test_rows_that_no_kernel_reaches_are_not_skipped_by_epochs() -> None:
    X, y = problem(40)
    X[:3] = [[50.0, 0.0], [0.0, 60.0], [-70.0, 0.0]]
    solution = feature_sdca(bank_of(X, "square"), y, np.full(40, 1.0), 1e-2, 8, 20, np.random.default_rng(0))
    assert_array_equal(solution.coef[:3], y[:3])


def test_a_row_of_an_epoch_takes_its_best_value() -> None:
    X, y = problem(30)
    bank, names = bank_of(X), np.asarray([3, 40])
    at = ActiveEpochs(names, bank.features(names), y, np.full(30, 2.0), 8, 1, np.random.default_rng(0))
    at.solve(0.0)
    at._epochs = 500
    alpha, J = at._ascent(at._beta)
    K = sum(b * (F @ F.T) for b, F in zip(at._beta, written_out(bank, at._names), strict=True))
    slope = 1.0 - y * (K @ (alpha * y))
    assert pytest.approx(alpha.sum() - 0.5 * (alpha * y) @ K @ (alpha * y)) == J
    inside = (alpha > 1e-9) & (alpha < 2.0 - 1e-9)
    assert inside.any() and np.abs(slope[inside]).max() < 1e-3
    assert slope[alpha <= 1e-9].max(initial=-1.0) < 1e-3 and slope[alpha >= 2.0 - 1e-9].min(initial=1.0) > -1e-3


def any_problem(seed: int) -> tuple[LocalBank, np.ndarray, np.ndarray]:
    """Rows of any scale, some of them equal, a map, and costs from 0.001 to 10 000."""
    rng = np.random.default_rng(seed)
    n, d, kind = int(rng.integers(5, 120)), int(rng.integers(1, 4)), MAPS[rng.integers(5)]
    X = rng.standard_normal((n, d)) * 10.0 ** rng.uniform(-2, 2)
    X = (np.round(X) if seed % 3 == 0 else X) - X.mean(axis=0)
    y = np.where(X[:, 0] * X[:, -1] + X.std() * rng.standard_normal(n) * rng.integers(0, 2) > 0, 1.0, -1.0)
    gammas = tuple(np.geomspace(0.1, 100.0, 4) / np.square(X).sum(axis=1).mean())
    cost = 10.0 ** rng.uniform(-3, 4) * (rng.random(n) + 0.1 if seed % 2 else np.ones(n))
    return bank_of(X, kind, bool(rng.integers(2)), gammas), y, cost


@pytest.mark.fast(4)
@pytest.mark.parametrize("seed", range(40))
def test_every_problem_is_solved(seed: int) -> None:
    bank, y, cost = any_problem(seed)
    assert feature_mkl(bank, y, cost, 1e-3).converged


def test_active_kernels_share_one_gradient_and_no_other_exceeds_it() -> None:
    X, y = problem(80)
    bank = bank_of(X)
    solution = feature_mkl(bank, y, np.full(80, 1.0), 1e-6)
    scores = np.asarray([0.5 * ((solution.coef @ phi) ** 2).sum() for phi in written_out(bank)])
    share = solution.norms / solution.norms.sum()
    active = scores[solution.names[share > 1e-2]]
    assert 2 <= len(active) < 20
    assert_allclose(active, scores.max(), rtol=2e-3)
    assert scores.max() <= scores[solution.names].max() * (1 + 1e-4)


def test_the_primal_form_is_the_dual_one_with_the_labels_put_back() -> None:
    """Equation (10) of the paper is (8): f(x) = sum_m beta_m sum_i alpha_i y_i k_m(x_i, x)."""
    X, y = problem(60)
    bank = bank_of(X)
    solution = feature_mkl(bank, y, np.full(60, 1.0), 1e-7)
    Z, _ = problem(20, seed=5)
    here, there = written_out(bank, solution.names), written_out(replace(bank, X=Z), solution.names)
    beta, W = solution.norms / solution.norms.sum(), solution.w.reshape(len(solution.names), -1)
    dual = sum(b * (phi @ (solution.coef @ features)) for b, phi, features in zip(beta, there, here, strict=True))
    primal = sum(phi @ w for phi, w in zip(there, W, strict=True))
    assert_allclose(primal, dual, atol=5e-3 * np.abs(dual).max())


def test_a_kernel_that_is_there_twice_changes_nothing() -> None:
    X, y = problem(60)
    cost = np.full(60, 1.0)
    once = feature_mkl(bank_of(X), y, cost, 1e-4)
    doubled = replace(bank_of(X), anchors=np.vstack([X, X]), open=np.arange(120))
    twice = feature_mkl(doubled, y, cost, 1e-4)
    assert twice.converged
    assert twice.primal == pytest.approx(once.primal, rel=2e-4)


def test_rows_that_no_kernel_reaches_cost_their_whole_loss() -> None:
    X, y = problem(40)
    X[:3] = [[50.0, 0.0], [0.0, 60.0], [-70.0, 0.0]]  # the maps of all other anchors are 0 there
    bank = bank_of(X, "square")
    solution = feature_mkl(bank, y, np.full(40, 1.0), 1e-3)
    assert_array_equal(solution.coef[:3], y[:3])
    primal, dual = certificate(bank, y, 1.0, solution)
    assert primal - dual <= 1.01e-3 * primal
    skipped = replace(solution, coef=np.where(np.arange(40) < 3, 0.0, solution.coef))
    primal, dual = certificate(bank, y, 1.0, skipped)
    assert primal - dual > 0.05 * primal


def test_rows_without_any_feature_have_no_kernel() -> None:
    X = np.ones((10, 2))
    solution = feature_mkl(bank_of(X), np.where(np.arange(10) < 3, 1.0, -1.0), np.full(10, 2.0), 1e-3)
    assert len(solution.names) == 0 and solution.primal == solution.dual == 20.0


def test_a_solution_of_a_similar_problem_is_a_start() -> None:
    X, y = problem(150, 3)
    bank = bank_of(X)
    before = feature_mkl(bank, y, np.full(150, 1.0), 1e-3)
    cold = feature_mkl(bank, y, np.full(150, 2.0), 1e-3)
    warm = feature_mkl(bank, y, np.full(150, 2.0), 1e-3, start=before)
    assert warm.converged and warm.primal == pytest.approx(cold.primal, rel=2e-3)
    again = feature_mkl(bank, y, np.full(150, 1.0), 1e-3, start=before)
    assert again.steps < cold.steps / 4


@pytest.mark.fast(1)
@pytest.mark.parametrize("first", ["any", "no", "one class"])
def test_many_rows_begin_with_every_fourth(first: str, monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = problem(400)
    if first == "no":
        X[::4] = X[0]  # no candidate of these has a feature on them
    elif first == "one class":
        y[::4] = 1.0
    bank, cost, seen = bank_of(X), np.linspace(1.0, 3.0, 400), []
    cold = feature_mkl(bank, y, cost, 1e-3)
    monkeypatch.setattr(solver, "LARGE", 200)
    begin = solver._begin
    monkeypatch.setattr(solver, "_begin", lambda part, *rest: seen.append(len(part.X)) or begin(part, *rest))
    solution = feature_mkl(bank, y, cost, 1e-3)
    assert seen == [100, 400] and solution.converged
    assert solution.primal == pytest.approx(cold.primal, rel=1e-3)
    primal, dual = certificate(bank, y, cost, solution)
    assert primal - dual <= 1.01e-3 * primal


def test_fewer_rows_have_as_many_candidates() -> None:
    X, _ = problem(100)
    some = bank_of(X).of_rows(np.arange(0, 100, 4))
    assert_array_equal(some.open, np.arange(0, 100, 4))
    assert_array_equal(some.X, X[::4])
    names = np.asarray([3, 104])
    assert_allclose(some.features(names).matrix(), bank_of(X).features(names).matrix()[::4])
    centres = replace(bank_of(X), open=np.arange(10))
    assert_array_equal(centres.of_rows(np.arange(0, 100, 4)).open, np.arange(10))


@pytest.mark.parametrize("options", [{}, {"componentwise": True, "map": "linear"}, {"map": "plain", "bank_gammas": ()}])
def test_a_model_gives_the_values_of_its_weights(options: dict[str, Any]) -> None:
    X, y = examples(100)
    method = replace(ONE, **options)
    predictor, state = fitted(method, cell_of(X, y))
    Z = examples(30, seed=3)[0]
    expected = np.zeros(30)
    for anchor, gamma, w in zip(state["kernel_anchor"], state["kernel_gamma"], state["weights"], strict=True):
        c = state["anchors"][anchor].astype(np.float64)
        expected += features_of(method.map, method.componentwise, gamma, Z.astype(np.float64), c) @ w
    assert_allclose(predictor.decision_function(Z)[:, 0], expected, atol=1e-5)
    assert state["kernel_share"].sum() == pytest.approx(1.0)


@pytest.mark.parametrize("kind", ["gaussian", "square", "linear"])
@pytest.mark.parametrize("componentwise", [False, True])
def test_a_row_that_is_too_far_for_float32_has_no_part_of_a_kernel(kind: str, componentwise: bool) -> None:
    X, y = examples(60)
    predictor, state = fitted(replace(ONE, map=kind, componentwise=componentwise), cell_of(X, y))
    state["kernel_gamma"][:] = MOST_GAMMA
    far = np.full_like(X[:2], 1e10)
    assert_array_equal(predictor.decision_function(far), 0.0)


def test_a_gamma_that_no_training_makes_is_refused() -> None:
    X, y = examples(60)
    cell = cell_of(X, y)
    state = fitted(ONE, cell)[1]
    pieces = {"kernel_gamma": ONE.pieces(cell.target, True)["kernel_gamma"]}
    for gamma in (-1.0, 1e34, np.inf):
        state["kernel_gamma"][0] = gamma
        with pytest.raises(Unsound, match="kernel_gamma"):
            check("/cells", pieces, {"kernel_gamma": state["kernel_gamma"]}, {})


def test_rows_count_as_often_as_they_occur() -> None:
    X, y = examples(80)
    cell, count = cell_of(X, y), np.random.default_rng(0).integers(1, 4, 80).astype(np.float64)
    many = np.repeat(np.arange(80), count.astype(int))
    method, ones = replace(ONE, tolerance=1e-5), np.ones(len(many))
    counted, _ = fitted(method, replace(cell, mass=count))
    repeated, _ = fitted(method, replace(cell, X=cell.X[many], y=cell.y[many], mass=ones, cost=ones, folds=many))
    Z, _ = examples(40, seed=2)
    assert_allclose(counted.decision_function(Z), repeated.decision_function(Z), atol=2e-2)


def test_held_out_values_are_those_of_models_without_the_fold() -> None:
    X, y = examples(120)
    cell = cell_of(X, y)
    method = replace(ONE, cost=(0.3, 1.0))
    grid = method.grid(cell, 120.0, 4)
    scores = score(method, cell, grid)
    assert scores.kept is not None and scores.kept.values is not None
    for fold in range(4):
        held = cell.folds == fold
        part = replace(cell, X=cell.X[~held], y=cell.y[~held], mass=cell.mass[~held], cost=cell.cost[~held])
        part = replace(part, folds=np.zeros(len(part.y), np.int64))
        predictor, _ = fitted(replace(method, cost=(grid.costs[scores.best.cost],), tolerance=1e-4), part)
        values = predictor.decision_function(cell.X[held])[:, 0]
        assert np.abs(values - scores.kept.values[0, held]).mean() < 0.1
    state = fit(method, cell, grid, scores, "vote").state
    assert state["model_gap"].max() <= method.tolerance and state["model_converged"].all()


@pytest.mark.parametrize("kind", ["gaussian", "linear"])
def test_the_default_gammas_follow_the_scale_of_the_rows(kind: str) -> None:
    X, y = examples(100)
    method = replace(ONE, bank_gammas=(), map=kind)
    models = [fitted(replace(method, cost=(1.0 / s**2,)), cell_of(s * X, y))[1] for s in (1, 1024)]  # powers of 2
    factor = 1024 if kind == "linear" else 1024**2
    assert_allclose(models[1]["kernel_gamma"] * factor, models[0]["kernel_gamma"], rtol=1e-6)
    square = ((X[:, None].astype(np.float64) - X) ** 2).sum(axis=2).mean()
    assert_allclose(method.gammas(square)[0] * (np.sqrt(square) if kind == "linear" else square), 0.1)


def test_kmeans_anchors_are_the_candidates() -> None:
    X, y = examples(150)
    method = replace(ONE, anchors="kmeans", clusters=(3.0, 6.0))
    cell = cell_of(X, y)
    grid = method.grid(cell, 150.0, 4)
    assert grid.names == ("clusters",) and grid.settings == ((3.0,), (6.0,))
    scores = score(method, cell, grid)
    state = fit(method, cell, grid, scores, "refit").state
    assert 1 <= len(state["anchors"]) <= grid.settings[scores.best.setting][0]


@pytest.mark.parametrize("scheme", ["ova", "ava"])
def test_many_classes(scheme: str) -> None:
    X, y = examples(200, classes=4)
    predictor, state = fitted(ONE, cell_of(X, y, scheme=scheme))
    assert len(state["model_problem"]) == (4 if scheme == "ova" else 6)
    cell = cell_of(X, y, scheme=scheme)
    assert np.mean(cell.target.decide(predictor.decision_function(cell.X)) == cell.y) > 0.6


def test_features_of_global_maps_are_never_made() -> None:
    """Memory holds the maps of rows and kernels, and not the features, which have an entry for each column."""
    X, _ = problem(50, 3)
    features = bank_of(X).features(np.arange(10))
    assert isinstance(features, LocalFeatures) and features.H.shape == (50, 10)
