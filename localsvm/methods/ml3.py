"""ML3, multiclass latent locally linear SVMs (Fornoni, Caputo, Orabona 2013): each class has m linear models, and a row
is scored by the best combination of them.

Problem, of all classes at once: min 1/2 |W|^2 + C sum_i c_i [1 + max_{r != y_i} s_r(x_i) - s_{y_i}(x_i)]_+ with
s_r(x) = max { b'W_r (x, 1) : b >= 0, |b|_p <= 1 } = |(W_r (x, 1))_+|_q, 1/p + 1/q = 1. In the paper's terms
lambda = 1 / (C n). It is not convex: what is found depends on the random start, and every point of the grid has one of
its own, as at small costs all models of a class become the same and would stay so. See localsvm/solvers/ml3.py.

The class with the largest score wins. The decision value of a binary problem is the difference between the scores of
its two classes; for one class against the rest, to the best of the rest.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from localsvm.data.dataset import Dense, Examples, as_examples
from localsvm.errors import OptionError
from localsvm.methods.base import Cell, Fitted, Grid, Scores, State, option
from localsvm.methods.clustered import stream
from localsvm.methods.linear_options import Line, LinearOptions
from localsvm.selection.search import Search
from localsvm.selection.tally import Tally
from localsvm.solvers.ml3 import Problem, Report, exact, scores, stochastic
from localsvm.solvers.ml3_round import FULL_METRIC
from localsvm.threads import Threads

MOST_PRODUCTS = 1 << 28  # in a pass, up to which `auto` solves exactly; mnist, 15 times faster without, has 2^30
LBFGS_VECTORS = 40  # of the size of all weights, in float64: those of scipy's L-BFGS and around it
WHOLE = -1  # in place of a fold: no row is left out
FULL = Search()
Values = NDArray[np.float64]


@dataclass(frozen=True)
class Solution:
    """Weights (classes, m, d + 1), the problem's cost, its objective as above, and what was reached."""

    W: Dense
    cost: float
    objective: float
    report: Report


@dataclass(frozen=True)
class ML3SVM(LinearOptions):
    """Options of the method."""

    name: ClassVar[str] = "ml3"
    gap_unit: ClassVar[str] = "of the objective in the last round"

    cost: tuple[float, ...] = option((1.0,), "-C", "--cost", help="Cost C of a row: one value, a list or a range.")
    solver: str = option(
        "auto", "-s", "--solver", help="Solver: exact, or the original's.", choices=("auto", "primal", "sgd")
    )
    passes: int = option(30, "--passes", help="Passes over the rows that -s sgd makes.")
    models: tuple[float, ...] = option(
        (10.0,), "--models", help="Linear models of each class of ml3: a number, or a list to choose from."
    )
    norm: float = option(1.5, "--norm", help="p of the p-norm that bounds combinations of models in ml3, from 1.")

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.models or not all(m >= 1 and m == int(m) for m in self.models):
            raise OptionError("--models takes whole numbers from 1")
        if not 1.0 <= self.norm < np.inf:
            raise OptionError(f"--norm must be a number from 1, not {self.norm:g}")

    def axes(self, features: int) -> dict[str, Line]:
        """The number of models."""
        return {"models": self.models}

    def score_grid(self, cell: Cell, grid: Grid, lines: Sequence[int], search: Search = FULL) -> Scores:
        """Cross-validate grid.lines[i] for i in lines."""
        found = Scores(np.full((len(grid.lines), grid.n_costs), np.nan), (np.inf, np.inf, 0, 0), [])
        for line in lines:
            loss = found.loss[line]
            for first, last in search.stretches(grid.n_costs):
                for point in range(first, last):
                    folds = self._folds(cell, grid, line, point)
                    tally = Tally(cell.scheme, 1)
                    tally.add(self._held_out(cell, folds)[None], cell.y, cell.weight)
                    ((loss[point], tie),) = tally.losses()
                    if (best := (float(loss[point]), tie, point, line)) < found.best:
                        found.best, found.starts = best, folds
                if search.ends(loss[:last]):
                    break
        return found

    def _held_out(self, cell: Cell, folds: Sequence[Solution]) -> Values:
        """(problems, n) decision values by the models without the row's fold."""
        values = np.empty((len(cell.y), cell.Y.shape[1]))
        for fold, solution in enumerate(folds):
            out = np.flatnonzero(cell.folds == fold)
            values[out] = differences(scores(solution.W, cell.X[out], self.norm), np.asarray(cell.scheme.pairs))
        return values.T

    def fit(self, cell: Cell, grid: Grid, scores: Scores | None, select: str) -> Fitted:
        """The fold models of cross-validation (`select` = "vote"), or one model of the whole cell ("refit")."""
        if select == "vote" and scores is not None:
            return self._packed(cell, scores.starts, range(len(scores.starts)))
        point, line = scores.best[2:] if scores else (0, 0)
        return self._packed(cell, [self._solve(cell, grid, line, point, WHOLE)], [WHOLE])

    def _folds(self, cell: Cell, grid: Grid, line: int, point: int) -> list[Solution]:
        """A solution without each fold. The exact solver copies the rows, so that only one may run."""
        threads = cell.threads if self._solver(cell, grid, line) == "sgd" else 1
        with Threads(threads) as pool:
            return pool.map(lambda fold: self._solve(cell, grid, line, point, fold), int(cell.folds.max()) + 1)

    def _solve(self, cell: Cell, grid: Grid, line: int, point: int, fold: int) -> Solution:
        seen, classes = cell.folds != fold, len(cell.scheme.labels)
        cost = float(grid.costs_for(max(1.0, float(cell.count[seen].sum())))[point])
        models, taken = int(grid.line(line)["models"]), int(np.count_nonzero(seen))
        if not taken:
            nothing = Report(0.0, 0, 0.0, True, np.zeros(len(seen), np.bool_))
            return Solution(np.zeros((classes, models, cell.X.shape[1] + 1), np.float32), cost, 0.0, nothing)
        weight = np.where(seen, cell.weight, 0.0)
        problem = Problem(cell.X, _codes(cell), weight, classes, models, self.norm, lam=1.0 / (cost * taken))
        rng = stream(cell.random, fold + 1)
        if self._solver(cell, grid, line) == "sgd":
            W, report = stochastic(problem, rng, self.passes)
        else:
            W, report = exact(problem, rng, self.tolerance)
        return Solution(W, cost, cost * taken * report.objective, report)

    def _solver(self, cell: Cell, grid: Grid, line: int) -> str:
        """What `auto` means for a cell, the same with and without a fold."""
        if self.solver != "auto":
            return self.solver
        stored = cell.X.size if isinstance(cell.X, np.ndarray) else len(cell.X.data)
        products = stored * len(cell.scheme.labels) * grid.line(line)["models"]
        return "sgd" if products > MOST_PRODUCTS else "primal"

    def _packed(self, cell: Cell, solutions: list[Any], folds: Sequence[int]) -> Fitted:
        reports = [solution.report for solution in solutions]
        state = {
            "pairs": np.asarray(cell.scheme.pairs, np.int32),
            "models": np.asarray([solution.W.shape[1] for solution in solutions], np.int32),
            "model_fold": np.asarray(folds, np.int32),
            "model_cost": np.asarray([solution.cost for solution in solutions]),
            "model_objective": np.asarray([solution.objective for solution in solutions]),
            "model_fall": np.asarray([report.fell for report in reports]),
            "model_iterations": np.asarray([report.rounds for report in reports], np.int64),
            "model_converged": np.asarray([report.converged for report in reports], np.uint8),
            "weights": np.concatenate([solution.W.ravel() for solution in solutions]),
        }
        report = {
            "models": len(solutions),
            "iterations": sum(report.rounds for report in reports),
            "not_converged": sum(not report.converged for report in reports),
            "largest_gap": float(np.nan_to_num(state["model_fall"]).max()),
            "support_vectors": int(np.count_nonzero(np.any([report.inside for report in reports], axis=0))),
        }
        return Fitted(state, report)

    def predictor(self, state: State, n_problems: int, n_features: int) -> ML3Predictor:
        """Decision functions of a saved cell."""
        return ML3Predictor(self.norm, state, n_features)

    def memory(self, rows: int, features: int, weight: float, solutions: int, part: int) -> int:
        """The rows; of the exact solver two more copies, combinations, L-BFGS's vectors and the coordinates' matrices;
        of the other one a few float32 copies of the weights. Weights of the folds.

        There are at least two folds, so at most half as many classes as solutions a row is a part of, and one.
        """
        models = int(max(self.models))
        weights = 4 * max(2, solutions // 2 + 1) * models * (features + 1)
        own = 4 * rows * features + solutions * weights
        if self.solver == "sgd":
            return own + 6 * weights
        metric = 3 * 8 * (features + 1) ** 2 if features < FULL_METRIC else 0
        return own + 8 * rows * (features + models) + 2 * LBFGS_VECTORS * weights + metric


class ML3Predictor:
    """Decision functions of one cell from its saved arrays."""

    def __init__(self, norm: float, state: State, n_features: int) -> None:
        self._norm, self._pairs = norm, state["pairs"].astype(np.intp)
        shape = len(state["models"]), -1, int(state["models"][0]), n_features + 1  # -1: the classes
        self._weights = np.ascontiguousarray(state["weights"], np.float32).reshape(shape)

    def decision_function(self, X: Examples) -> Values:
        """(n, problems) float64, from the scores of the only model, or the mean scores of the fold models: clipped
        differences, as other methods average, would let the labels depend on which are taken.
        """
        X = as_examples(X)
        return differences(np.mean([scores(W, X, self._norm) for W in self._weights], axis=0), self._pairs)


def differences(s: Values, pairs: NDArray[np.intp]) -> Values:
    """(n, problems) decision values of the binary problems `pairs` from the scores (n, classes)."""
    other, own = pairs.T
    if other[0] < 0:
        return against_the_best_other(s)
    return np.asarray(s[:, own] - s[:, other])


def against_the_best_other(s: Values) -> Values:
    """The scores (n, classes), each minus the largest of the other classes'."""
    ordered = np.sort(s, axis=1)
    others = np.where(s < ordered[:, -1:], ordered[:, -1:], ordered[:, -2:-1])
    return np.asarray(s - others)


def _codes(cell: Cell) -> NDArray[np.int32]:
    return cell.scheme.labels.searchsorted(cell.y).astype(np.int32)
