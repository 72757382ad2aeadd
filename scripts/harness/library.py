"""The internals of localsvm that the scripts use, in one place: where the library changes, this module follows.

All else goes through `lsvm` commands, `localsvm.estimators`, `localsvm.runs` and the generated sets of
`localsvm.data.synthetic`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from localsvm.data.blocks.dataset import Dataset, Examples, as_examples, thinned
from localsvm.data.readers.libsvm import read
from localsvm.data.readers.origin import from_array
from localsvm.data.writers.libsvm import write
from localsvm.features.scaling import scaling_of
from localsvm.kernels._kernels import LEVELS, simd_level
from localsvm.methods import methods
from localsvm.methods.base import Fitted, Method, State
from localsvm.methods.cell import Cell
from localsvm.methods.grids import parse_values
from localsvm.methods.kernel.svm import KernelSVM
from localsvm.methods.kernel.svml import SVML
from localsvm.methods.locally_linear.csvm import ClusteredSVM
from localsvm.methods.locally_linear.l3 import L3SVM
from localsvm.methods.mixtures.systems.predictor import decided
from localsvm.representations import svm_metric
from localsvm.representations.baselines import BASELINE_ROWS, BASELINES, learned_by
from localsvm.representations.kmeans import Centres, find_centres
from localsvm.representations.landmarks import choose_landmarks
from localsvm.representations.local_kernels import transformed
from localsvm.representations.metric_learning import MetricLearner
from localsvm.representations.mixture import Prior, estimate
from localsvm.representations.svm_mixture import MixtureRows, SVMMixture, Tasks, fit_svm_mixture
from localsvm.runs import train as training
from localsvm.runs.config import TrainingConfig
from localsvm.runs.predict import LocalModel
from localsvm.runs.preparation.metric import measure
from localsvm.runs.summary import Summary
from localsvm.runs.train import train
from localsvm.selection.cross_validation import CellSelection
from localsvm.selection.folds import stratified
from localsvm.selection.search import Search
from localsvm.solvers import squared_hinge
from localsvm.solvers._linear import LinearRows
from localsvm.solvers.coupling import ALONE
from localsvm.solvers.linear import solve
from localsvm.solvers.primal import LinearProblem
from localsvm.solvers.row_losses import HINGE, Hinge
from localsvm.solvers.weighted_tasks import WeightedTasks, task_values
from localsvm.targets.classification import Classification

__all__ = [
    "BASELINES",
    "BASELINE_ROWS",
    "L3SVM",
    "SVML",
    "TARGET",
    "Dataset",
    "Examples",
    "Hinge",
    "LinearProblem",
    "LinearRows",
    "LocalModel",
    "MetricLearner",
    "MixtureRounds",
    "State",
    "Summary",
    "TrainingConfig",
    "as_examples",
    "choose_landmarks",
    "clustered_svm",
    "find_centres",
    "from_array",
    "learned_by",
    "measure",
    "methods",
    "parse_values",
    "read",
    "scaling_of",
    "solve",
    "squared_hinge",
    "svm_metric",
    "thinned",
    "train",
    "training",
    "transformed",
    "write",
]  # fmt: skip
TARGET = Classification(np.array((-1.0, 1.0)))


def simd_name() -> str:
    """The SIMD level that the kernels use."""
    return str(LEVELS[simd_level()])


def clustered_svm(X: Any, y: Any, clusters: int, common: float, cost: float) -> tuple[Any, Any]:
    """CSVM at one point on all rows: (n,) its labels -1 and 1, and the cluster of each row."""
    method = ClusteredSVM(clusters=(float(clusters),), common=(common,), cost=(cost,))
    fitted = fit_at_one_point(method, X, y)
    return predicted(fitted, X, method), Centres(fitted.state["centres"]).nearest(X)


class MixtureRounds:
    """EM of LSVM-MTL on all rows, from k-means and a linear SVM in each cluster, for so many rounds.

    Attributes
    ----------
    clusters : (n,) the k-means cluster of each row, and `clustered` (n,) the decision values of the SVMs there.
    components : (n,) the component that answers most for each row, and `values` (n,) the decision values of the model.
    M : (K, K) the relaxed groups of the tasks.
    """

    def __init__(self, X: Any, y: Any, clusters: int, groups: float, cost: float, rounds: int, seed: int) -> None:
        ones, rng = np.ones(len(y)), np.random.default_rng(seed)
        centres = find_centres(X, clusters, rng)
        self.clusters = Centres(centres).nearest(X)
        q = np.eye(len(centres))[self.clusters]
        weights = WeightedTasks(X, q).solve(y, cost * ones, ALONE, HINGE, 1e-4, None)
        self.clustered = (q * task_values(X, weights.W)).sum(axis=1)
        tasks = Tasks(10.0, groups, HINGE, 1e-4)
        mixture = estimate(X, q, Prior.of(X, ones, 1e-3, len(centres), True), centres.astype(np.float64))
        begin = SVMMixture(mixture, weights, tasks.matrix(len(centres)), np.empty(0), False, False)
        model = fit_svm_mixture(MixtureRows(X, y, ones, ones), cost, tasks, begin, -np.inf, rounds)
        logs = model.mixture.log_densities(X)
        self.components, self.M = logs.argmax(axis=1), model.M
        self.values = decided(logs, task_values(X, model.weights.W), False, False)


def binary_cell(X: Any, y: Any, folds: np.ndarray) -> Cell:
    """A training cell of two classes, -1 and 1."""
    ones = np.ones(len(y))
    return Cell(X, y, TARGET, ones, ones, folds)


def fit_at_one_point(method: Method, X: Any, y: Any) -> Fitted:
    """Fit a cell as a worker does where nothing is selected."""
    cell = binary_cell(X, y, np.zeros(len(y), int))
    return CellSelection(method, cell, method.grid(cell, float(len(y)), 5)).fit(None, "refit")


def selection_of(method: Method, X: Any, y: Any, folds: int, seed: int = 0) -> CellSelection:
    """The selection of a method's grid on rows in stratified folds."""
    of = stratified(y, folds, np.random.default_rng(seed))
    order = np.argsort(of, kind="stable")
    cell = binary_cell(X[order], y[order], of[order])
    return CellSelection(method, cell, method.grid(cell, float(len(y)), folds))


def fit_selected(method: Method, X: Any, y: Any, folds: int) -> Fitted:
    """The best point of the whole grid by cross-validation, on all rows."""
    selection = selection_of(method, X, y, folds)
    return selection.fit(selection.search(Search("full")), "refit")


class SelectedCell:
    """The work of a worker on a cell of two classes: score the grid by cross-validation, refit the best point."""

    def __init__(self, X: Any, y: Any, search: str, folds: int = 5, seed: int = 0) -> None:
        self._selection = selection_of(KernelSVM(), X, y, folds, seed)
        self._scores = self._selection.search(Search(search))
        self.refitted = self._selection.fit(self._scores, "refit")

    def voting(self) -> Fitted:
        """The fold models at the best point, which vote."""
        return self._selection.fit(self._scores, "vote")


def predicted(fitted: Fitted, X: Any, method: Method | None = None) -> np.ndarray:
    """Labels -1 and 1 of a fitted cell."""
    values = (method or KernelSVM()).predictor(fitted.state, TARGET, X.shape[1]).decision_function(X)[:, 0]
    return np.where(values > 0, 1.0, -1.0)


def support_pairs(model: LocalModel, X: Any) -> int:
    """Rows times the support vectors of the cells that they fall into, summed."""
    visits = np.diff(model.partition.route(model.chain.scaled(X)).tocsc().indptr)
    return sum(int(n) * _support_rows(model.file.cell(i)) for i, n in enumerate(visits) if n)


def _support_rows(cell: dict[str, Any]) -> int:
    return len(cell["support"]) if "support" in cell else len(cell["support_indptr"]) - 1
