"""--loss squared-hinge of kernel SVMs: paths and cells against Newton's method in numpy."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np
import pytest
from overlapping import overlapping
from selecting import fit, score
from sklearn.metrics.pairwise import rbf_kernel

from localsvm.data.blocks.dataset import Dataset
from localsvm.errors import OptionError
from localsvm.kernels._kernels import aligned, padded
from localsvm.methods.cell_size import CellSize
from localsvm.methods.kernel.rbf import GlobalSVM
from localsvm.methods.kernel.svm import KernelSVM
from localsvm.runs.config import TrainingConfig
from localsvm.runs.predict import LocalModel
from localsvm.runs.train import train
from localsvm.solvers._smo import KernelDual
from localsvm.solvers.boxes import HINGE, SQUARED_HINGE, Boxes

GAMMA, COST = 0.4, 3.0
SQUARED = KernelSVM(loss="squared-hinge", gamma=(GAMMA,), cost=(COST,), tolerance=1e-8)


def newton(K: np.ndarray, y: np.ndarray, cost: np.ndarray) -> np.ndarray:
    """Coefficients of min 1/2 a'Ka + sum_i c_i max(0, 1 - y_i (Ka)_i)^2: solved on the rows that have a loss."""
    a, support = np.zeros(len(y)), cost > 0.0
    for _ in range(100):
        some = np.flatnonzero(support)
        a = np.zeros(len(y))
        a[some] = np.linalg.solve(K[np.ix_(some, some)] + np.diag(0.5 / cost[some]), y[some])
        found = (cost > 0.0) & (y * (K @ a) < 1.0)
        if np.array_equal(found, support):
            return a
        support = found
    raise AssertionError("no support is its own")


@pytest.mark.parametrize(
    ("classes", "scheme", "weighted"), [(2, "ova", False), (2, "ova", True), (3, "ova", False), (3, "ava", True)]
)
@pytest.mark.fast(4)
def test_held_out_values_and_models_are_those_of_newton(classes: int, scheme: str, weighted: bool) -> None:
    cell = overlapping(classes, scheme, weighted=weighted)
    grid, every = SQUARED.grid(cell, 200.0, 4), np.arange(len(cell.y))
    scores = score(SQUARED, cell, grid, [0])
    assert scores.kept is not None and scores.kept.values is not None
    whole = SQUARED.predictor(fit(SQUARED, cell, grid, scores, "refit").state, cell.target, 3).decision_function(cell.X)

    def solved(problem: int, some: np.ndarray) -> np.ndarray:
        part = some[cell.Y[some, problem] != 0.0]
        X, cost = cell.X[part].astype(np.float64), COST * cell.weight_of(problem)[part]
        a = newton(rbf_kernel(X, gamma=GAMMA), cell.Y[part, problem], cost)
        return np.asarray(rbf_kernel(cell.X.astype(np.float64), X, gamma=GAMMA) @ a)

    for problem in range(cell.target.n_problems):
        for fold in range(4):
            held = cell.held_out(fold)
            expected = solved(problem, np.delete(every, every[held]))[held]
            np.testing.assert_allclose(scores.kept.values[problem, held], expected, atol=5e-3)
        np.testing.assert_allclose(whole[:, problem], solved(problem, every), atol=2e-3)


@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize("unit", [True, False])
@pytest.mark.fast(4)
def test_a_path_has_the_solutions_of_single_costs(kind: type, unit: bool) -> None:
    """Along ascending costs, on from the last of them, and back to a smaller one; some rows are held out."""
    cell = overlapping(n=300)
    X, y, weight = cell.X, cell.Y[:, 0], np.random.default_rng(2).choice([0.0, 1.0, 3.0], 300)
    K = rbf_kernel(X.astype(np.float64), gamma=GAMMA) * (1.0 if unit else 2.0)
    wide, pad = aligned((padded(300), padded(300)), kind), partial(np.pad, pad_width=(0, padded(300) - 300))
    wide[:] = 0.0
    wide[:300, :300] = K
    dual, tolerance = KernelDual(wide, pad(y), unit_diagonal=unit, dual=SQUARED_HINGE), 1e-5
    path = partial(dual.path, pad(weight), tolerance=tolerance)
    b, f, reports = path(np.zeros(len(wide)), np.asarray([0.05, 0.5]))
    more, of_more, _ = path(None, np.asarray([2.0, 30.0]), before=(0.5, b[-1].copy(), f[-1].copy()))
    back, of_back, _ = path(None, np.asarray([0.01]), before=(30.0, more[-1].copy(), of_more[-1].copy()))
    assert all(report.converged and report.iterations > 0 for report in reports)
    for C, a, values in zip((0.05, 0.5, 2.0, 30.0, 0.01), [*b, *more, *back], [*f, *of_more, *of_back], strict=True):
        cost, a, values = C * weight, a[:300], values[:300]
        assert np.all(y * a >= 0.0) and not a[weight == 0.0].any()
        np.testing.assert_allclose(values, K @ a, atol=1e-4 * (1.0 + C))
        inside = cost > 0.0
        primal = 0.5 * a @ K @ a + cost @ np.square(np.maximum(0.0, 1.0 - y * (K @ a)))
        reached = y @ a - 0.5 * a @ K @ a - 0.25 * (a[inside] ** 2 / cost[inside]).sum()
        assert primal - reached <= 1.1 * tolerance * cost.sum() + 1e-9
        expected = newton(K, y, cost)
        np.testing.assert_allclose(values, K @ expected, atol=0.05)
        boxes = Boxes.of(SQUARED_HINGE, pad(cost), pad(y))
        exact, _, report = boxes.solved(dual, 1e-8, pad(a))
        assert report.converged
        np.testing.assert_allclose(exact[:300], expected, atol=2e-3 * max(1.0, C))


def test_boxes_of_classes_are_on_the_side_of_their_label() -> None:
    y, cost = np.asarray([1.0, -1.0, 1.0, 0.0]), np.asarray([2.0, 3.0, 0.0, 0.0])
    hinge, squared = Boxes.of(HINGE, cost, y), Boxes.of(SQUARED_HINGE, cost, y)
    np.testing.assert_array_equal([hinge.low, hinge.high], [[0, -3, 0, 0], [2, 0, 0, 0]])
    np.testing.assert_array_equal([squared.low, squared.high], [[0, -np.inf, 0, 0], [np.inf, 0, 0, 0]])
    assert hinge.terms is None and squared.terms is not None
    np.testing.assert_allclose(squared.terms.plus, [0.25, 1 / 6, 0, 0])
    np.testing.assert_array_equal(squared.terms.plus, squared.terms.minus)


def test_the_global_svm_has_no_offset_by_squares() -> None:
    """Its default is an offset, which is for the hinge: a model of one point is that of svm."""
    cell = overlapping()
    grid, values = SQUARED.grid(cell, 200.0, 4), []
    for method in (SQUARED, GlobalSVM(loss="squared-hinge", gamma=(GAMMA,), cost=(COST,), tolerance=1e-8)):
        state = fit(method, cell, grid, None, "refit").state
        values.append(method.predictor(state, cell.target, 3).decision_function(cell.X))
    np.testing.assert_array_equal(*values)


def test_what_squares_do_not_take_is_refused() -> None:
    with pytest.raises(OptionError, match="--offset is for classes by --loss hinge alone"):
        KernelSVM(loss="squared-hinge", offset=True)
    assert GlobalSVM(loss="squared-hinge").squares_slack
    size = CellSize(20_001, 3, 1.0, 5, 0, problems=1)
    with pytest.raises(OptionError, match=r"--loss squared-hinge takes cells of up to 20,000 rows.*or --loss hinge"):
        SQUARED.check(size)
    KernelSVM(gamma=(GAMMA,), cost=(COST,)).check(size)


def test_a_model_says_its_loss_and_goes_on_to_predict(tmp_path: Path) -> None:
    cell = overlapping(n=400)
    X, y = cell.X, cell.y
    train(Dataset(X, y), TrainingConfig(KernelSVM(loss="squared-hinge")), tmp_path / "m.h5")
    with LocalModel(tmp_path / "m.h5") as model:
        assert model.file.config["method"]["loss"] == "squared-hinge" and model.file.config["select"] == "vote"
        assert np.mean(model.predict(X) == y) > 0.65
