"""SVM-KNN: its search against brute force, its SVMs against scikit-learn's, and the choice of k."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from selecting import cell_of, examples, fit, fitted, score
from sklearn.svm import SVC

from localsvm.data.blocks.dataset import as_examples
from localsvm.methods.lazy.svm_knn import NeighbourSVM
from localsvm.methods.locally_linear.llsvm import LocallyLinearSVM
from localsvm.representations import neighbours
from localsvm.representations.neighbours import Neighbours

ONE = NeighbourSVM(neighbours=(15.0,), cost=(2.0,), tolerance=1e-6)


def brute(X: np.ndarray, Z: np.ndarray, k: int) -> np.ndarray:
    """Nearest rows of X for rows of Z, of equally near ones the first."""
    wide = X.astype(np.float64)
    D = np.stack([np.square(z - wide).sum(axis=1) for z in Z.astype(np.float64)])
    return np.argsort(D, axis=1, kind="stable")[:, :k]


@pytest.mark.whole
@pytest.mark.fast(1)
@pytest.mark.parametrize("k", [1, 7, 60])
@pytest.mark.parametrize("chunk", [64, 2048])
def test_the_search_is_exact(k: int, chunk: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(neighbours, "CHUNK", chunk)
    monkeypatch.setattr(neighbours, "QUERIES", 32)
    rng = np.random.default_rng(k)
    X, Z = (rng.integers(-4, 5, (n, 3)).astype(np.float32) for n in (250, 100))  # many are equally near
    X = np.concatenate([X, -X])  # their mean is 0, and nothing is rounded
    assert_array_equal(Neighbours(X).nearest(Z, k), brute(X, Z, k))
    wide = np.zeros((300, 2000), np.float32)
    wide[np.arange(300), rng.integers(0, 2000, 300)] = rng.integers(1, 9, 300)
    rows = as_examples(sparse.csr_array(wide))
    assert_array_equal(Neighbours(rows).nearest(rows, k), brute(wide, wide, k))


def test_what_a_row_finds_does_not_depend_on_the_others() -> None:
    rng = np.random.default_rng(0)
    X, Z = (rng.standard_normal((n, 5)).astype(np.float32) for n in (5000, 300))
    search = Neighbours(X)
    one = np.concatenate([search.nearest(Z[i : i + 11], 20) for i in range(0, 300, 11)])
    assert_array_equal(search.nearest(Z, 20), one)


def written_out(X: np.ndarray, y: np.ndarray, Z: np.ndarray, k: int, cost: float) -> np.ndarray:
    """Decision values of labels -1 and 1, by scikit-learn."""
    out = np.empty(len(Z))
    for i, near in enumerate(brute(X, Z, k)):
        if len(set(y[near])) == 1:
            out[i] = y[near[0]]
        else:
            svc = SVC(C=cost, kernel="linear", tol=1e-5).fit(X[near].astype(np.float64), y[near])
            out[i] = svc.decision_function(Z[i : i + 1].astype(np.float64))[0]
    return out


def test_each_row_has_an_svm_on_its_neighbours() -> None:
    X, y = examples(200)
    cell = cell_of(X, y)
    predictor, _ = fitted(ONE, cell)
    Z, _ = examples(60, seed=1)
    expected = written_out(cell.X, cell.Y[:, 0], Z, 15, 2.0)
    values = predictor.decision_function(Z)[:, 0]
    assert_allclose(values, expected, atol=1e-3)
    assert 0 < np.mean(np.abs(values) == 1.0) < 1  # some are unanimous


@pytest.mark.parametrize("scheme", ["ova", "ava"])
def test_scores_are_those_of_neighbours_outside_the_fold(scheme: str) -> None:
    X, y = examples(100, classes=3)
    cell = cell_of(X, y, scheme=scheme)
    method = replace(ONE, neighbours=(5.0, 15.0), cost=(0.5, 2.0))
    grid = method.grid(cell, 100.0, 4)
    assert grid.settings == ((15.0,), (5.0,))
    scores = score(method, cell, grid)
    for s, (k,) in enumerate(grid.settings):
        for c, cost in enumerate(grid.costs):
            values = np.zeros(cell.Y.shape)
            for fold in range(4):
                out = cell.folds == fold
                near = np.flatnonzero(~out)[brute(cell.X[~out], cell.X[out], int(k))]
                for p, target in enumerate(cell.Y.T):
                    for i, rows in zip(np.flatnonzero(out), near, strict=True):
                        labelled = rows[target[rows] != 0]
                        if not len(labelled):
                            continue
                        one = np.asarray(cell.X[i : i + 1], np.float64)
                        values[i, p] = target[labelled[0]]
                        if len(set(target[labelled])) == 2:
                            svc = SVC(C=cost, kernel="linear", tol=1e-5).fit(
                                cell.X[labelled].astype(np.float64), target[labelled]
                            )
                            values[i, p] = svc.decision_function(one)[0]
            wrong = (cell.target.decide(values) != cell.y).mean()
            assert scores.loss[s, c] == pytest.approx(wrong, abs=0.011)  # values near 0, and votes that tie


def test_rows_count_as_often_as_they_occur() -> None:
    X, y = examples(100)
    cell, rng = cell_of(X, y), np.random.default_rng(0)
    count = rng.integers(1, 4, 100).astype(np.float64)
    many = np.repeat(np.arange(100), count.astype(int))
    counted, _ = fitted(ONE, replace(cell, mass=count))
    ones = np.ones(len(many))
    again = replace(cell, X=cell.X[many], y=cell.y[many], mass=ones, cost=ones, folds=cell.folds[many])
    repeated, _ = fitted(ONE, again)
    Z, _ = examples(40, seed=2)
    assert_allclose(counted.decision_function(Z), repeated.decision_function(Z), atol=1e-3)


def test_a_row_of_weight_two_is_two_neighbours_of_mean_weight() -> None:
    """Weights of neighbours count relative to the mean weight, and those of the SVM as factors on C."""
    X, y = examples(100)
    cell, rng = cell_of(X, y), np.random.default_rng(0)
    count = rng.integers(1, 4, 100).astype(np.float64)
    Z, _ = examples(40, seed=2)
    counted, _ = fitted(ONE, replace(cell, mass=count))
    scaled = replace(cell, mass=4.0 * count, behind=count.sum())
    quarter = replace(ONE, cost=tuple(c / 4.0 for c in ONE.cost or ()))
    weighed, _ = fitted(quarter, scaled)
    assert_allclose(weighed.decision_function(Z), counted.decision_function(Z), atol=1e-3)


def test_fold_models_leave_out_their_fold() -> None:
    X, y = examples(160)
    cell = cell_of(X, y)
    method = replace(ONE, neighbours=(5.0, 11.0))
    grid = method.grid(cell, 160.0, 4)
    scores = score(method, cell, grid)
    state = fit(method, cell, grid, scores, "vote").state
    assert scores.kept is not None and scores.kept.values is not None
    for i, fold in enumerate(state["model_fold"]):
        one = state | {name: state[name][i : i + 1] for name in ("model_problem", "model_fold", "model_cost")}
        held = cell.folds == fold
        values = method.predictor(one, cell.target, 3).decision_function(cell.X[held])
        assert_allclose(np.clip(values[:, 0], -1, 1), np.clip(scores.kept.values[0, held], -1, 1), atol=1e-9)


def test_the_neighbours_of_llsvm_are_chosen(tmp_path: Any) -> None:
    X, y = examples(300)
    cell = cell_of(X, y)
    method = LocallyLinearSVM(clusters=(20.0,), neighbours=(2.0, 20.0), cost=(1.0,), tolerance=1e-8)
    grid = method.grid(cell, 300.0, 4)
    assert grid.names == ("clusters", "neighbours") and grid.settings == ((20.0, 20.0), (20.0, 2.0))
    scores = score(method, cell, grid)
    state = fit(method, cell, grid, scores, "refit").state
    best = grid.settings[scores.best.setting][1]
    assert state["neighbours"].tolist() == [int(best)]
    alone, _ = fitted(replace(method, neighbours=(best,)), cell)
    chosen = method.predictor(state, cell.target, 3)
    assert_allclose(chosen.decision_function(X), alone.decision_function(X), atol=1e-3)


@pytest.mark.whole
@pytest.mark.parametrize("select", ["vote", "refit"])
def test_a_choice_by_svms_that_did_not_converge_is_told(select: str) -> None:
    X, y = examples(100)
    cell, reports = cell_of(X, y), []
    for cost in (1.0, 1e50):
        method = replace(ONE, neighbours=(40.0,), cost=(cost,), tolerance=1e-9)
        grid = method.grid(cell, 100.0, 4)
        reports.append(fit(method, cell, grid, score(method, cell, grid), select).report)
    assert reports[0].not_converged == 0 and reports[0].largest_gap == 0.0
    assert reports[1].not_converged > 0 and reports[1].largest_gap > 1e-9


def test_more_neighbours_than_rows_and_rows_of_one_class() -> None:
    X, y = examples(12)
    predictor, _ = fitted(replace(ONE, neighbours=(50.0,)), cell_of(X, y))
    assert np.isfinite(predictor.decision_function(X)).all()
    predictor, _ = fitted(ONE, replace(cell_of(X, y), y=np.ones(12)))
    assert_array_equal(predictor.decision_function(X), 1.0)
