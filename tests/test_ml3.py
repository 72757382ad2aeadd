"""The method ml3: its problem, selection, decision values and models; see test_ml3_solver.py for the solvers."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import selecting
from click.testing import CliRunner
from numpy.testing import assert_allclose, assert_array_equal
from selecting import fit, fitted, score
from threadpoolctl import threadpool_limits

from localsvm.cli.group import lsvm
from localsvm.estimators import ML3SVMClassifier
from localsvm.methods.cell import Cell
from localsvm.methods.cell_size import CellSize
from localsvm.methods.locally_linear.ml3 import ML3SVM
from localsvm.methods.locally_linear.systems import ml3
from localsvm.methods.locally_linear.systems.ml3 import margin_over_others
from localsvm.targets.classification import Classification

SMALL = ML3SVM(models=(3.0,), tolerance=0.01)


@pytest.fixture(scope="module", autouse=True)
def blas_on_one_thread() -> Iterator[None]:
    """Keep BLAS on one thread: several wait for each other longer than such small products take."""
    with threadpool_limits(1):
        yield


def examples(n: int = 150, classes: int = 3, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    return selecting.examples(n, classes=classes, seed=seed)


def cell_of(X: Any, y: np.ndarray, scheme: str = "ova") -> Cell:
    return selecting.cell_of(X, y, folds=3, scheme=scheme)


def scores_by_hand(W: np.ndarray, X: np.ndarray, q: float) -> np.ndarray:
    products = np.einsum("rkj,ij->irk", W.astype(np.float64), np.column_stack([X, np.ones(len(X))]))
    return np.linalg.norm(np.maximum(products, 0), ord=q, axis=2)


@pytest.mark.parametrize("solver", ["primal", "sgd"])
@pytest.mark.parametrize("mean_loss", [False, True])
def test_the_objective_is_that_of_the_paper(solver: str, mean_loss: bool) -> None:
    X, y = examples()
    cell = replace(cell_of(X, y), mass=np.where(np.arange(150) % 3, 1.0, 2.0), cost=np.where(y == 1, 1.5, 1.0))
    _, state = fitted(replace(SMALL, cost=(0.7,), solver=solver, mean_loss=mean_loss), cell)
    cost = 0.7 / cell.count.sum() if mean_loss else 0.7
    W = state["weights"].reshape(3, 3, 4)
    s, at, codes = scores_by_hand(W, cell.X, 3.0), np.arange(150), cell.y.astype(int)
    true = s[at, codes]
    s[at, codes] = -np.inf
    loss = np.maximum(0, 1 + s.max(axis=1) - true)
    expected = 0.5 * np.vdot(W, W) + cost * cell.weight @ loss
    assert state["model_objective"] == pytest.approx([expected], rel=1e-5)
    assert state["model_cost"] == pytest.approx([cost])
    assert np.isnan(state["model_fall"][0]) if solver == "sgd" else state["model_fall"][0] <= 0.01


def test_the_exact_solver_reaches_lower_objectives_than_the_original_one() -> None:
    cell = cell_of(*examples())
    objectives = [fitted(ML3SVM(solver=solver), cell)[1]["model_objective"][0] for solver in ("primal", "sgd")]
    assert objectives[0] < objectives[1]


@pytest.mark.parametrize("norm", [1.0, 1.5, 2.0])
@pytest.mark.parametrize("classes", [2, 3])
def test_the_class_with_the_largest_score_wins(norm: float, classes: int) -> None:
    cell = cell_of(*examples(classes=classes))
    method = replace(SMALL, norm=norm, solver="sgd")
    predictor, state = fitted(method, cell)
    W = state["weights"].reshape(classes, 3, 4)
    s = scores_by_hand(W, cell.X, norm / (norm - 1) if norm > 1 else np.inf)
    values = predictor.decision_function(cell.X)
    if classes == 2:
        assert_allclose(values[:, 0], s[:, 1] - s[:, 0], atol=1e-5)
    clear = np.diff(np.sort(s, axis=1)[:, -2:]).ravel() > 1e-4
    assert_array_equal(cell.target.decide(values)[clear], s.argmax(axis=1)[clear])
    assert ((values > 0).sum(axis=1) <= 1).all()
    assert clear.mean() > 0.8  # others are scored 0 for every class


def test_pairs_of_classes_give_the_same_labels() -> None:
    X, y = examples()
    rest, pairs = cell_of(X, y), cell_of(X, y, scheme="ava")
    one, two = (fitted(replace(SMALL, solver="sgd"), cell)[0].decision_function(X) for cell in (rest, pairs))
    assert_array_equal(rest.target.decide(one), pairs.target.decide(two))
    assert_allclose(two[:, 0] + two[:, 2], two[:, 1])  # differences of scores


def test_a_row_that_no_model_wants_has_the_decision_value_0() -> None:
    cell = cell_of(*examples(classes=2))
    _, state = fitted(replace(SMALL, solver="sgd"), cell)
    state["weights"] = -np.abs(state["weights"])
    values = SMALL.predictor(state, Classification(np.asarray([0.0, 1.0])), 3).decision_function(
        np.ones((2, 3), np.float32)
    )
    assert_array_equal(values, 0.0)
    assert_array_equal(cell.target.decide(values), 0.0)


def test_scores_margin_over_others() -> None:
    s = np.array([[3.0, 1.0, 2.0], [2.0, 2.0, 0.0], [0.0, 0.0, 0.0]])
    assert_array_equal(margin_over_others(s), [[1, -2, -1], [0, 0, -2], [0, 0, 0]])


@pytest.mark.parametrize("solver", ["primal", "sgd"])
def test_the_held_out_error_is_that_of_the_fold_models(solver: str) -> None:
    cell = cell_of(*examples(60))
    method = replace(SMALL, cost=(0.1, 1.0), solver=solver)
    grid = method.grid(cell, 60.0, 3)
    scores = score(method, cell, grid, [0])
    state = fit(method, cell, grid, scores, "vote").state
    assert_array_equal(state["model_fold"], [0, 1, 2])
    wrong = np.zeros(60, np.bool_)
    for fold, W in enumerate(state["weights"].reshape(3, 3, 3, 4)):
        out = cell.folds == fold
        wrong[out] = scores_by_hand(W, cell.X[out], 3.0).argmax(axis=1) != cell.y[out]
    assert scores.loss[0, scores.best[2]] == pytest.approx(wrong.mean())
    assert scores.best[0] == scores.loss.min()


def test_auto_is_exact_until_a_pass_is_long(monkeypatch: pytest.MonkeyPatch) -> None:
    cell = cell_of(*examples(60))
    exact, original = (fitted(replace(SMALL, solver=solver), cell)[1] for solver in ("primal", "sgd"))
    assert_array_equal(fitted(SMALL, cell)[1]["weights"], exact["weights"])
    monkeypatch.setattr(ml3, "MOST_PRODUCTS", 60 * 3 * 9 - 1)
    assert_array_equal(fitted(SMALL, cell)[1]["weights"], original["weights"])


def test_cells_of_one_class_and_of_one_row() -> None:
    X, y = examples(12)
    cell = cell_of(X, y)
    alone = replace(cell, X=cell.X[:5], y=np.full(5, 2.0), mass=np.ones(5), cost=np.ones(5), folds=cell.folds[:5])
    predictor, _ = fitted(SMALL, alone)
    assert_array_equal(cell.target.decide(predictor.decision_function(cell.X[:5])), 2.0)
    single = replace(alone, X=X[:1], y=y[:1], mass=np.ones(1), cost=np.ones(1), folds=np.zeros(1, int))
    predictor, state = fitted(replace(SMALL, cost=(0.1, 1.0)), single, "vote")
    assert not state["weights"].any()
    assert np.isfinite(predictor.decision_function(X)).all()


def test_the_command_line_and_the_estimator_agree(tmp_path: Path) -> None:
    X, y = examples(120)
    rows = [" ".join(f"{j}:{v!r}" for j, v in enumerate(x, 1)) for x in X.tolist()]
    file, model, out = tmp_path / "d.libsvm", tmp_path / "m.h5", tmp_path / "out"
    file.write_text("".join(f"{label:g} {row}\n" for label, row in zip(y, rows, strict=True)))

    def run(*args: Any) -> str:
        result = CliRunner().invoke(lsvm, [str(arg) for arg in args], catch_exceptions=False)
        assert result.exit_code == 0, result.output
        return result.stdout

    given = ["-m", "ml3", "--models", 4, "--norm", 2, "-C", "0.3,3", "-v", 3, "-s", "sgd"]
    report = json.loads(run("train", *given, "--json", "-q", file, model))
    assert report["summary"]["not_converged"] == 0
    run("predict", "-q", "--decision-values", file, model, out)
    head, *rows = out.read_text().splitlines()
    assert head == "labels rest/0 rest/1 rest/2"
    same = ML3SVMClassifier(models=4, norm=2.0, cost=[0.3, 3], folds=3, solver="sgd").fit(X, y)
    assert_array_equal([float(row.split()[0]) for row in rows], same.predict(X))
    assert_array_equal([[float(v) for v in row.split()[1:]] for row in rows], same.decision_function(X))
    table = run("cv", *given, file).splitlines()
    assert table[0] == "cell,rows,models,cost,error,best"
    assert len(table) == 3
    assert "1, all converged\n" in run("inspect", model)
    assert json.loads(run("inspect", "--json", model))["models"]["not_converged"] == 0


def test_memory_grows_with_the_rows_and_less_for_the_original_solver() -> None:
    exact, original = ML3SVM(), ML3SVM(solver="sgd")
    small, large = (CellSize(rows, 784, 1.0, 50, 0) for rows in (1000, 60000))
    assert original.memory(small) < exact.memory(small) < exact.memory(large)
    assert original.memory(small) == original.memory(large)  # no copy of the rows
    assert exact.memory(large) > 2 * 4 * 60000 * 784
