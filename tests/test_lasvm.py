"""LaSVM: its epochs against the paper's procedures in numpy, its solutions against scikit-learn and `rbf`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose
from selecting import fit
from sklearn.svm import SVC

from localsvm import estimators
from localsvm.data.blocks.dataset import Dataset
from localsvm.kernels import Kernel
from localsvm.kernels._kernels import RowsOnDemand, aligned, padded
from localsvm.methods import methods
from localsvm.methods.cell import Cell
from localsvm.methods.kernel.lasvm import LaSVM
from localsvm.methods.kernel.rbf import GlobalSVM
from localsvm.runs.cells.schedule import Resources
from localsvm.runs.config import TrainingConfig
from localsvm.runs.predict import LocalModel
from localsvm.runs.train import train
from localsvm.solvers._smo import KernelDual
from localsvm.solvers.lasvm import OnlineDual
from localsvm.targets.classification import Classification

SEEDS = 5


def rows_of(n: int = 120, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(seed)
    X = random.standard_normal((n, 3)).astype(np.float32)
    return X, np.where(X[:, 0] * X[:, 1] + 0.3 * random.standard_normal(n) > 0, 1.0, -1.0)


def fitted(method: GlobalSVM, X: np.ndarray, y: np.ndarray) -> Any:
    """The predictor of a method with one point."""
    ones, kind = np.ones(len(y)), Classification(np.unique(y), "ova")
    cell = Cell(X, y, kind, ones, ones, np.sort(np.arange(len(y)) % 3))
    return method.predictor(fit(method, cell, method.grid(cell, len(y), 3), None, "refit").state, kind, X.shape[1])


def problem(n: int = 120, cost: float = 2.0, dtype: Any = np.float64) -> tuple[KernelDual, Any, Any, Any, Any]:
    """The dual of a Gaussian kernel, its matrix (n, n), targets and bounds, padded; every ninth row takes no part."""
    X, y = rows_of(n)
    plain = np.exp(-0.5 * np.square(X[:, None] - X[None]).sum(axis=2, dtype=np.float64))
    side = padded(n)
    K = aligned((side, side), dtype)
    K[:] = 0
    K[:n, :n] = plain
    wide, box = np.zeros(side), np.zeros(side)
    wide[:n], box[:n] = y, cost * (np.arange(n) % 9 > 0) * np.random.default_rng(1).uniform(0.5, 1.5, n)
    lo, hi = np.minimum(wide * box, 0), np.maximum(wide * box, 0)
    return KernelDual(K, wide, offset=True, unit_diagonal=True), plain, wide, lo, hi


class Paper:
    """Figure 3 and section 3.2 of the paper, with the gradient of all rows at hand."""

    def __init__(self, K: np.ndarray, y: np.ndarray, lo: np.ndarray, hi: np.ndarray, b: np.ndarray, tau: float) -> None:
        self.K, self.y, self.lo, self.hi, self.b, self.tau = K, y, lo, hi, b.copy(), tau
        self.S = {int(i) for i in np.flatnonzero(b)}

    def gradient(self) -> np.ndarray:
        return self.y - self.K @ self.b

    def ends(self) -> tuple[int, int]:
        g, members = self.gradient(), sorted(self.S)
        grow = [i for i in members if self.b[i] < self.hi[i]]
        shrink = [i for i in members if self.b[i] > self.lo[i]]
        return max(grow, key=lambda i: g[i], default=-1), min(shrink, key=lambda i: g[i], default=-1)

    def step(self, i: int, j: int) -> bool:
        g = self.gradient()
        if i < 0 or j < 0 or g[i] - g[j] <= self.tau:
            return False
        curve = self.K[i, i] + self.K[j, j] - 2 * self.K[i, j]
        up, down = self.hi[i] - self.b[i], self.b[j] - self.lo[j]
        t = min((g[i] - g[j]) / curve, up, down)
        self.b[i] = self.hi[i] if t == up else self.b[i] + t
        self.b[j] = self.lo[j] if t == down else self.b[j] - t
        return True

    def epoch(self, order: np.ndarray) -> None:
        for side in (-1.0, 1.0):
            self.S |= set([int(k) for k in order if k not in self.S and self.y[k] == side][:SEEDS])
        for k in map(int, order):
            if k not in self.S:
                self.S.add(k)
                i, j = self.ends()
                if not self.step(*((k, j) if self.y[k] > 0 else (i, k))):
                    self.S.remove(k)
            self.step(*self.ends())
            (i, j), g = self.ends(), self.gradient()
            idle = {s for s in self.S if self.b[s] == 0 and (g[s] <= g[j] if self.y[s] > 0 else g[s] >= g[i])}
            self.S -= idle


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_an_epoch_is_the_papers(seed: int) -> None:
    """Bounds are so narrow that nearly all steps end at them: a free step would leave two equal gradients, a tie."""
    dual, K, y, lo, hi = problem(60, cost=0.1)
    b, order = np.zeros(len(y)), np.random.default_rng(seed).permutation(np.flatnonzero(lo < hi))
    b[np.flatnonzero(hi > 0)[0]], b[np.flatnonzero(lo < 0)[0]] = 0.03, -0.03
    paper = Paper(K, y[:60], lo[:60], hi[:60], b[:60], 0.5)
    steps = dual.online_epoch(lo, hi, order, 0.5, b)
    paper.epoch(order)
    assert steps > 30
    assert_allclose(b[:60], paper.b, atol=1e-12)
    assert not b[60:].any()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_epochs_stay_feasible_and_climb_to_the_optimum(dtype: Any) -> None:
    dual, K, y, lo, hi = problem(cost=5.0, dtype=dtype)
    b, random, rows, objectives = np.zeros(len(y)), np.random.default_rng(0), np.flatnonzero(lo < hi), [0.0]
    for _ in range(30):
        dual.online_epoch(lo, hi, random.permutation(rows), 1e-5, b)
        assert np.all(b >= lo) and np.all(b <= hi)
        assert abs(b.sum()) < 1e-9
        objectives.append(float(b @ y - 0.5 * b[:120] @ K @ b[:120]))
    assert np.all(np.diff(objectives) >= -1e-6)
    assert objectives[-1] == pytest.approx(dual.solve(lo, hi, 1e-6)[2].objective, rel=1e-3)


def test_solutions_are_scikit_learns() -> None:
    dual, K, y, lo, hi = problem(cost=5.0)
    online = OnlineDual(dual, 1, np.random.SeedSequence(0))
    b, f, report = online.solve(lo, hi, 1e-6)
    cost = (hi - lo)[:120]
    theirs = SVC(C=1.0, kernel="precomputed", tol=1e-7).fit(K[cost > 0][:, cost > 0], y[:120][cost > 0], cost[cost > 0])
    coef = np.zeros(120)
    coef[np.flatnonzero(cost > 0)[theirs.support_]] = theirs.dual_coef_.ravel()
    best = float(coef @ y[:120] - 0.5 * coef @ K @ coef)
    assert report.converged
    assert report.objective == pytest.approx(best, rel=1e-6)
    assert report.bias == pytest.approx(float(theirs.intercept_[0]), abs=1e-4)
    slack = np.maximum(0, 1 - y * (f + report.bias))
    assert 0.5 * b @ f + (hi - lo) @ slack - report.objective == pytest.approx(report.gap, rel=1e-6, abs=1e-9)
    assert report.gap < 1e-4 * best


def test_paths_are_solutions_of_each_cost_and_can_be_continued() -> None:
    dual, _, _, lo, hi = problem(cost=1.0)
    online, weight, costs = OnlineDual(dual, 2, np.random.SeedSequence(0)), hi - lo, np.array([0.1, 1.0, 10.0])
    b, f, reports = online.path(weight, None, costs, 1e-6)
    for cost, values, report in zip(costs, f, reports, strict=True):
        _, expected, best = dual.solve(cost * lo, cost * hi, 1e-6)
        assert report.objective == pytest.approx(best.objective, rel=1e-5)
        assert_allclose(values + report.bias, expected + best.bias, atol=1e-3)
    part = online.path(weight, None, costs[1:], 1e-6, (0.1, b[0], f[0]))
    np.testing.assert_array_equal(part[0], b[1:])


def test_what_does_not_fit_is_refused() -> None:
    dual, _, y, lo, hi = problem(40)
    for order, b in ((np.array([len(y)]), np.zeros(len(y))), (np.array([0]), np.zeros(3))):
        with pytest.raises(ValueError, match=r"rows that do not exist|one entry a row"):
            dual.online_epoch(lo, hi, order, 1e-3, b)
    assert dual.online_epoch(lo, hi, np.empty(0, np.int64), 1e-3, np.zeros(len(y))) == 0
    K = RowsOnDemand(rows_of(40)[0], Kernel("gaussian"), aligned((len(y), len(y)), np.float32))
    with pytest.raises(ValueError, match="all its rows"):
        KernelDual(K, y, True, True).online_epoch(lo, hi, np.array([0]), 1e-3, np.zeros(len(y)))


def test_models_are_those_of_rbf() -> None:
    X, y = rows_of(200)
    given = {"gamma": (0.5,), "cost": (3.0,), "tolerance": 1e-6}
    online, exact = (fitted(make(**given), X, y).decision_function(X) for make in (LaSVM, GlobalSVM))
    assert_allclose(online, exact, atol=1e-3)


def test_the_classifier_and_any_jobs_give_one_model(tmp_path: Any) -> None:
    X, y = rows_of(150)
    y = y + 2 * (X[:, 2] > 0.5)
    config = TrainingConfig(methods()["lasvm"](gamma=(0.3, 1.0), cost=(1.0, 3.0), epochs=2), "none", folds=3)
    decisions = []
    for jobs in (1, 2):
        train(Dataset(X.copy(), y), config, tmp_path / f"{jobs}.h5", resources=Resources(jobs=jobs))
        with LocalModel(tmp_path / f"{jobs}.h5") as model:
            decisions.append(model.decision_function(X))
    np.testing.assert_array_equal(*decisions)
    same = estimators.LaSVMClassifier(gamma=[0.3, 1.0], cost=[1.0, 3.0], epochs=2, folds=3).fit(X, y)
    np.testing.assert_array_equal(same.decision_function(X), decisions[0])
