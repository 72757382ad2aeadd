"""The kernel SVM of one cell: selection, voting and refitting, and the decision function from its saved state."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from selecting import fit, score
from sklearn.metrics.pairwise import laplacian_kernel
from sklearn.svm import SVC

from localsvm.data.blocks.dataset import as_examples
from localsvm.kernels._kernels import RowsOnDemand
from localsvm.methods.cell import Cell
from localsvm.methods.grids import Grid
from localsvm.methods.kernel.svm import KernelSVM
from localsvm.methods.kernel.systems.kernel import KernelSystem
from localsvm.selection.cross_validation import CellPath, CellSelection, Kept, Point, Scores
from localsvm.selection.folds import stratified
from localsvm.targets.classification import Classification

LABELS = np.asarray([1.0, 2.0, 5.0])


def make_cell(
    n: int = 180, classes: int = 2, scheme: str = "ova", seed: int = 0, folds: int = 4
) -> tuple[Cell, np.ndarray]:
    rng = np.random.default_rng(seed)
    y = LABELS[rng.integers(0, classes, n)]
    X = rng.standard_normal((n, 3)).astype(np.float32)
    X[:, 0] += y.astype(np.float32)
    X[:, 1] *= np.where(y == 2.0, 0.3, 1.0).astype(np.float32)
    folds_of = stratified(y, folds, rng)
    order = np.argsort(folds_of, kind="stable")
    X, y = X[order], y[order]
    kind = Classification(LABELS[:classes], scheme)
    return Cell(X, y, kind, np.ones(n), np.ones(n), folds_of[order]), y


def held_out_values(method: KernelSVM, cell: Cell, grid: Grid, problem: int = 0) -> np.ndarray:
    selection = CellSelection(method, cell, grid)
    path = CellPath(selection, 0, 1)
    path.advance(0, grid.n_costs)
    return np.stack([path.keep(c, 0).values[problem] for c in range(grid.n_costs)])


@pytest.mark.parametrize("scheme", ["ova", "ava"])
def test_many_classes_share_the_point_with_the_least_error_of_their_decision(scheme: str) -> None:
    cell, y = make_cell(240, classes=3, scheme=scheme, seed=3)
    method = KernelSVM(gamma=(0.05, 0.5), cost=(0.1, 1.0, 10.0), offset=True, tolerance=1e-6)
    grid = method.grid(cell, 240.0, 4)
    scores = score(method, cell, grid, range(2))
    for g, (gamma,) in enumerate(grid.settings):
        for c, cost in enumerate(grid.costs):
            values = np.zeros(cell.Y.shape)
            for fold in range(4):
                for p, target in enumerate(cell.Y.T):
                    train = (cell.folds != fold) & (target != 0)
                    svc = SVC(C=cost, gamma=gamma, tol=1e-6).fit(cell.X[train], target[train])
                    values[cell.folds == fold, p] = svc.decision_function(cell.X[cell.folds == fold])
            assert scores.loss[g, c] == pytest.approx((cell.target.decide(values) != y).mean(), abs=1.01 / 240)
    c, g = scores.best[2:]
    assert scores.loss[g, c] == scores.loss.min()
    state = fit(method, cell, grid, scores, "vote").state
    assert set(state["model_gamma"]) == {grid.settings[g][0]}
    assert set(state["model_cost"]) == {grid.costs[c]}


def test_cross_validation_equals_a_loop_over_libsvm() -> None:
    cell, _ = make_cell()
    method = KernelSVM(gamma=(0.1, 1.0), cost=(0.1, 1.0, 10.0), offset=True, tolerance=1e-5)
    grid = method.grid(cell, 180.0, 4)
    scores = score(method, cell, grid, range(2))
    y, hinge = cell.Y[:, 0], np.zeros(scores.loss.shape)
    for g, (gamma,) in enumerate(grid.settings):
        for c, cost in enumerate(grid.costs):
            wrong = 0
            for fold in range(4):
                train, held = cell.folds != fold, cell.folds == fold
                svc = SVC(C=cost, gamma=gamma, tol=1e-5).fit(cell.X[train], y[train])
                wrong += int((svc.predict(cell.X[held]) != y[held]).sum())
                hinge[g, c] += np.clip(1.0 - y[held] * svc.decision_function(cell.X[held]), 0.0, 2.0).sum()
            assert scores.loss[g, c] == pytest.approx(wrong / len(y), abs=1.01 / len(y))
    loss, tie, *point = min((scores.loss[g, c], hinge[g, c], c, g) for g in range(2) for c in range(3))
    assert scores.best[0] == loss
    assert scores.best[1] == pytest.approx(tie, rel=1e-3)
    assert list(scores.best[2:]) == point


def test_ties_go_to_the_smaller_cost_then_the_smaller_gamma() -> None:
    def scores(best: tuple[float, float, int, int]) -> Scores:
        return Scores(np.zeros((1, 1)), Point(*best), Kept([best[3]], None))

    first, second = scores((0.1, 0.0, 3, 1)), scores((0.1, 0.0, 2, 4))
    assert first.merge(second).best == (0.1, 0.0, 2, 4)
    assert first.merge(second).kept.starts == [4]
    assert scores((0.1, 0.5, 2, 0)).merge(scores((0.1, 0.5, 2, 1))).best == (0.1, 0.5, 2, 0)
    assert scores((0.1, 0.5, 2, 0)).merge(scores((0.1, 0.4, 2, 1))).best == (0.1, 0.4, 2, 1)


@pytest.mark.parametrize("scheme", ["ova", "ava"])
def test_blocks_of_settings_merge_into_the_whole(scheme: str) -> None:
    cell, _ = make_cell(classes=3, scheme=scheme)
    method = KernelSVM()
    grid = method.grid(cell, 180.0, 4)
    whole = score(method, cell, grid, range(10))
    merged = score(method, cell, grid, range(3)).merge(score(method, cell, grid, range(3, 10)))
    np.testing.assert_array_equal(whole.loss, merged.loss)
    assert whole.best == merged.best
    np.testing.assert_array_equal(whole.kept.values, merged.kept.values)
    for a, b in zip(whole.kept.starts, merged.kept.starts, strict=True):
        np.testing.assert_array_equal(a.b, b.b)


@pytest.mark.parametrize("scheme", ["ova", "ava"])
def test_an_adaptive_search_scores_as_the_full_one_does(scheme: str) -> None:
    cell, _ = make_cell(classes=3, scheme=scheme)
    method = KernelSVM(tolerance=1e-6)
    grid = method.grid(cell, 180.0, 4)
    full, adaptive = (score(method, cell, grid, range(10), name) for name in ("full", "adaptive"))
    scored = ~np.isnan(adaptive.loss)
    assert scored[:, :4].all() and not scored.all()
    np.testing.assert_allclose(adaptive.loss[scored], full.loss[scored], atol=1.01 / 180)
    assert adaptive.best[0] <= full.best[0] + 1.01 / 180


@pytest.mark.parametrize("kernel", ["gaussian", "laplacian", "manhattan", "polynomial", "linear"])
@pytest.mark.parametrize("offset", [False, True])
def test_a_single_point_is_the_svm_on_all_rows(kernel: str, offset: bool) -> None:
    cell, _ = make_cell()
    method = KernelSVM(kernel=kernel, gamma=(0.3,), cost=(2.0,), offset=offset, tolerance=1e-6, coef0=1.0, degree=2)
    grid = method.grid(cell, 180.0, 4)
    assert grid.n_points == 1
    fitted = fit(method, cell, grid, None, "vote")
    decisions = method.predictor(fitted.state, cell.target, 3).decision_function(cell.X)
    if offset and kernel != "laplacian":
        manhattan = partial(laplacian_kernel, gamma=0.3)
        name: Any = {"gaussian": "rbf", "polynomial": "poly", "linear": "linear", "manhattan": manhattan}[kernel]
        svc = SVC(C=2.0, kernel=name, gamma=0.3, coef0=1.0, degree=2, tol=1e-6).fit(cell.X, cell.Y[:, 0])
        np.testing.assert_allclose(decisions[:, 0], svc.decision_function(cell.X), atol=2e-3)
    assert fitted.report.not_converged == 0
    assert (np.sign(decisions[:, 0]) == cell.Y[:, 0]).mean() > 0.6


@pytest.mark.parametrize("thin", [False, True])
@pytest.mark.parametrize(("noise", "few"), [(0.0, True), (1.0, False)])
def test_few_support_vectors_are_found_without_the_whole_matrix(
    noise: float, few: bool, thin: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((2400, 3)).astype(np.float32)
    y = np.where(X[:, 0] + noise * rng.standard_normal(2400) > 0, 1.0, -1.0)
    scheme = Classification(np.asarray([-1.0, 1.0]))
    rows: Any = as_examples(sparse.csr_array(X)) if thin else X
    cell = Cell(rows, y, scheme, np.full(2400, 2.0), np.ones(2400), np.sort(np.arange(2400) % 5), behind=2400.0)
    method = KernelSVM(gamma=(0.3,), cost=(50.0,), offset=True)
    asked = []
    create = KernelSystem.__init__

    def noted(self: KernelSystem, cell: Cell, K: Any, *rest: Any) -> None:
        asked.append(K)
        create(self, cell, K, *rest)

    monkeypatch.setattr(KernelSystem, "__init__", noted)
    fitted = fit(method, cell, method.grid(cell, 2400.0, 5), None, "refit")
    assert len(asked) == 1 and isinstance(asked[0], RowsOnDemand) and (asked[0].computed < 480) == few
    svc = SVC(C=100.0, gamma=0.3, tol=1e-3).fit(X, y)
    values = method.predictor(fitted.state, cell.target, 3).decision_function(rows)[:, 0]
    np.testing.assert_allclose(values, svc.decision_function(X), atol=5e-2)
    assert fitted.report.not_converged == 0


def test_fold_models_vote_by_the_mean_of_clipped_values() -> None:
    cell, _ = make_cell()
    method = KernelSVM(gamma=(0.5,), cost=(1.0, 5.0), tolerance=1e-4)
    grid = method.grid(cell, 180.0, 4)
    scores = score(method, cell, grid, range(1))
    fitted = fit(method, cell, grid, scores, "vote")
    voted = method.predictor(fitted.state, cell.target, 3).decision_function(cell.X)[:, 0]
    assert list(fitted.state["model_fold"]) == [0, 1, 2, 3]
    assert (fitted.state["model_iterations"] > 0).all()
    assert len(set(fitted.state["model_cost"])) == 1
    ptr, total = fitted.state["coef_ptr"], np.zeros(len(cell.X))
    squared = ((cell.X[:, None].astype(float) - fitted.state["support"][None]) ** 2).sum(axis=2)
    for m in range(4):
        part = slice(ptr[m], ptr[m + 1])
        values = np.exp(-0.5 * squared[:, fitted.state["coef_index"][part]]) @ fitted.state["coef"][part]
        total += np.clip(values, -1, 1) / 4
        held = cell.folds == m
        np.testing.assert_allclose(values[held], held_out_values(method, cell, grid)[scores.best[2], held], atol=0.05)
    np.testing.assert_allclose(voted, total, atol=1e-4)


def test_refitting_keeps_lambda() -> None:
    cell, _ = make_cell()
    method = KernelSVM()
    grid = method.grid(cell, 180.0, 4)
    scores = score(method, cell, grid, range(10))
    state = fit(method, cell, grid, scores, "refit").state
    chosen = grid.lambdas[scores.best[2]]
    assert list(state["model_fold"]) == [-1]
    assert state["model_cost"][0] == pytest.approx(1 / (2 * chosen * 180))
    state = fit(method, cell, grid, scores, "vote").state
    np.testing.assert_allclose(state["model_cost"], 1 / (2 * chosen * 135))


def test_weighted_rows_are_repeated_rows() -> None:
    cell, _ = make_cell(60)
    method = KernelSVM(gamma=(0.5,), cost=(1.0,), tolerance=1e-7)
    repeat = np.arange(60) % 3 + 1
    rows = np.repeat(np.arange(60), repeat)
    ones = np.ones(len(rows))
    many = Cell(cell.X[rows], cell.y[rows], cell.target, ones, ones, cell.folds[rows])
    few = replace(cell, mass=repeat.astype(float))
    grid = Grid(((0.5,),), ("gamma",), lambdas=(0.01, 0.001), of_problem=True)
    a, b = (score(method, c, grid, range(1)) for c in (many, few))
    np.testing.assert_allclose(a.loss, b.loss, atol=1.5 / len(rows))
    values = [held_out_values(method, c, grid) for c in (many, few)]
    np.testing.assert_allclose(values[0], values[1][:, rows], atol=1e-3)


@pytest.mark.parametrize("kind", ["ova", "ava"])
def test_one_sided_problems_are_constants_and_absent_ones_are_silent(kind: str) -> None:
    # a cell of two classes in a run of four: one against the rest is one-sided, pairs have one class or none
    cell, y = make_cell(classes=2)
    scheme = Classification(np.asarray([0.0, 1.0, 2.0, 5.0]), kind)
    cell = replace(cell, target=scheme)
    sides = [np.unique(column[column != 0]) for column in cell.Y.T]
    assert {len(side) for side in sides} == ({1, 2} if kind == "ova" else {0, 1, 2})
    method = KernelSVM()
    grid = method.grid(cell, 180.0, 4)
    scores = score(method, cell, grid, range(2))
    for select in ("vote", "refit"):
        state = fit(method, cell, grid, scores, select).state
        decisions = method.predictor(state, scheme, 3).decision_function(cell.X)
        for side, values in zip(sides, decisions.T, strict=True):
            if len(side) < 2:
                assert (values == (side[0] if len(side) else 0.0)).all()
        assert (scheme.decide(decisions) == y).mean() > 0.6


def test_one_row_and_more_folds_than_rows() -> None:
    for n in (1, 2, 3):
        cell, _ = make_cell(n, folds=5)
        method = KernelSVM()
        grid = method.grid(cell, 3.0, 5)
        scores = score(method, cell, grid)
        for select in ("vote", "refit"):
            decisions = method.predictor(
                fit(method, cell, grid, scores, select).state, cell.target, 3
            ).decision_function(cell.X)
            assert np.isfinite(decisions).all()


@pytest.mark.parametrize("kernel", ["gaussian", "laplacian", "manhattan", "linear"])
def test_sparse_rows_give_what_dense_rows_give(kernel: str) -> None:
    cell, _ = make_cell()
    X = cell.X.copy()
    X[np.abs(X) < 0.7] = 0
    wide = np.zeros((180, 9), np.float32)
    wide[:, [1, 4, 7]] = X
    method = KernelSVM(kernel=kernel, gamma=(0.4,), cost=(1.0, 10.0), tolerance=1e-6)
    grid = method.grid(cell, 180.0, 4)
    test = np.random.default_rng(1).standard_normal((50, 9)).astype(np.float32)
    results = []
    for rows, queries in [(wide, test), (sparse.csr_array(wide), sparse.csr_array(test))]:
        part = replace(cell, X=rows)
        fitted = fit(method, part, grid, score(method, part, grid, range(1)), "vote")
        results.append(method.predictor(fitted.state, cell.target, 9).decision_function(queries))
    np.testing.assert_allclose(results[0], results[1], atol=1e-4)
