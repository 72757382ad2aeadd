"""What the linear local methods share: one problem, its cross-validation along the cost, and its models.

    min_W  1/2 |W|^2 + sum_i C_i loss(y_i f(x_i)),    f(x) = sum_k m_k(x) W_k phi(x) (+ a bias, one a task or shared)

A method says how a row becomes features phi and memberships m (`represent`, `rows`); see csrc/linear.h for the problem
and localsvm/solvers/linear.py for its solvers. Representations do not look at labels: all folds, costs and binary
problems share one, as in the reference implementations.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from localsvm.data.dataset import Examples, thinned
from localsvm.errors import OptionError
from localsvm.methods.base import Cell, Fitted, Grid, Scores, State, option
from localsvm.methods.linear_options import LinearOptions
from localsvm.selection.search import Search
from localsvm.selection.tally import Tally
from localsvm.solvers._linear import LinearRows
from localsvm.solvers.linear import Solution, few_weights, solve
from localsvm.solvers.primal import FIRST_WIDTH
from localsvm.targets.classification import combine
from localsvm.threads import Threads

BIAS = 1.0  # the constant appended to every row: the bias is regularised, as in LIBLINEAR with -B 1
SELECTION_FACTOR = 10.0  # solutions that are only compared by their held-out errors may be rougher than the model
FULL = Search()


@dataclass(frozen=True)
class LinearMethod(LinearOptions):
    """What all linear methods do. Subclasses add options, and say what their rows are."""

    one_task_each: ClassVar[bool] = True  # each row belongs to one task, with share 1

    loss: str = option("hinge", "--loss", help="Loss of a linear method.", choices=("hinge", "squared"))

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check_choice("loss")
        if self.solver == "sgd" and self.loss != "hinge":
            raise OptionError("-s sgd is for --loss hinge; the squared hinge has -s sdca and -s primal")

    @property
    def remedy(self) -> str:
        """Stochastic subgradients come near, whatever the tolerance."""
        return "more --passes, or a smaller C (-C)" if self.solver == "sgd" else super().remedy

    def represent(self, X: Examples, line: dict[str, float], random: np.random.SeedSequence) -> State:
        """What is learned from the rows, whatever their labels, for one choice of parameters: arrays to keep."""
        return {}

    def rows(self, X: Examples, state: State) -> LinearRows:
        """Rows as the solver sees them."""
        return LinearRows(X, bias=BIAS)

    def answering(self, X: Examples, state: State) -> LinearRows:
        """Rows as prediction sees them, for the weights that `answers` gives."""
        return self.rows(X, state)

    def answers(self, w: NDArray[np.float64], state: State) -> NDArray[np.float64]:
        """The weights that prediction uses."""
        return w

    def score_grid(self, cell: Cell, grid: Grid, lines: Sequence[int], search: Search = FULL) -> Scores:
        """Cross-validate grid.lines[i] for i in lines; one point for all binary problems."""
        scores = Scores(np.full((len(grid.lines), grid.n_costs), np.nan), (np.inf, np.inf, 0, 0), [])
        X = thinned(cell.X)
        with Threads(cell.threads) as threads:
            for g in lines:
                rows = self.rows(X, self.represent(X, grid.line(g), cell.random))
                self._score_line(Folds(self, cell, rows, grid), grid, g, search, scores, threads)
        return scores

    def _score_line(
        self, folds: Folds, grid: Grid, line: int, search: Search, scores: Scores, threads: Threads
    ) -> None:
        cell, loss = folds.cell, scores.loss[line]
        for first, last in search.stretches(grid.n_costs):
            for c in range(first, last):
                tally = Tally(cell.scheme, 1)
                tally.add(folds.advance(c, SELECTION_FACTOR * self.tolerance, threads)[None], cell.y, cell.weight)
                ((loss[c], tie),) = tally.losses()
                if (point := (float(loss[c]), tie, c, line)) < scores.best:
                    scores.best, scores.starts = point, [list(of_folds) for of_folds in folds.solutions]
            if search.ends(loss[:last]):
                break

    def fit(self, cell: Cell, grid: Grid, scores: Scores | None, select: str) -> Fitted:
        """Fold models (`select` = "vote"), or one model of the whole cell ("refit")."""
        c, g = scores.best[2:] if scores else (0, 0)
        X = thinned(cell.X)
        state = self.represent(X, grid.line(g), cell.random)
        folds = Folds(self, cell, self.rows(X, state), grid)
        if scores is not None:
            folds.solutions = scores.starts
        with Threads(cell.threads) as threads:
            if select == "vote" and scores is not None:
                folds.advance(c, self.tolerance, threads, final=True)
                models = [(p, k, s) for p, of_folds in enumerate(folds.solutions) for k, s in enumerate(of_folds) if s]
            else:
                whole = threads.map(lambda p: folds.whole(p, c, self.tolerance), cell.Y.shape[1])
                models = [(p, -1, solution) for p, solution in enumerate(whole)]
        return self.packed(state, float(grid.costs_for(float(cell.count.sum()))[c]), models)

    def packed(self, state: State, cost: float, models: list[tuple[int, int, Solution]]) -> Fitted:
        """The fitted cell of (problem, fold, solution) models."""
        reports = [solution.report for _, _, solution in models]
        gaps = [(r.primal - r.dual) / r.primal if r.primal > 0 else 0.0 for r in reports]
        weights = [self.answers(solution.w, state) for _, _, solution in models]
        kept = {
            "model_problem": np.asarray([p for p, _, _ in models], np.int32),
            "model_fold": np.asarray([k for _, k, _ in models], np.int32),
            "model_cost": np.full(len(models), cost),
            "model_gap": np.asarray(gaps, np.float64),
            "model_iterations": np.asarray([r.steps for r in reports], np.int64),
            "model_converged": np.asarray([r.converged for r in reports], np.uint8),
            "weights": np.concatenate([*weights, np.empty(0)]),
        }
        inside = [solution.alpha > 0 for _, _, solution in models if solution.alpha is not None]
        support = np.any(inside, axis=0) if inside else np.zeros(0)
        report = {
            "models": len(models),
            "iterations": sum(r.steps for r in reports),
            "not_converged": sum(not r.converged for r in reports),
            "largest_gap": max(gaps, default=0.0),
            "support_vectors": int(np.count_nonzero(support)),
        }
        return Fitted(state | kept, report)

    def predictor(self, state: State, n_problems: int, n_features: int) -> LinearPredictor:
        """Decision functions of a saved cell."""
        return LinearPredictor(self, state, n_problems)

    def memory(self, rows: int, features: int, weight: float, solutions: int, part: int) -> int:
        """The rows and what they become, two vectors a solution with those kept of the best point, weights."""
        tasks, columns = self.sizes(features)
        vectors = 2 * solutions * 8 * (rows + tasks * (columns + 1))
        return 4 * rows * (features + columns + 2 * tasks) + 2 * vectors + 8 * tasks * (columns + 8) ** 2

    def sizes(self, features: int) -> tuple[int, int]:
        """The most tasks, and the most features phi, for rows of so many features."""
        return 1, features


class Folds:
    """The binary problems of a cell, each without each fold, as far along the costs as they have come."""

    def __init__(self, method: LinearMethod, cell: Cell, rows: LinearRows, grid: Grid) -> None:
        self.method, self.cell, self.rows, self.grid = method, cell, rows, grid
        self.n_folds = int(cell.folds.max()) + 1
        self.edges = np.searchsorted(cell.folds, np.arange(self.n_folds + 1))
        self.solutions: list[list[Any]] = [[None] * self.n_folds for _ in range(cell.Y.shape[1])]

    def advance(self, point: int, tolerance: float, threads: Threads, final: bool = False) -> NDArray[np.float64]:
        """Solve all for a point of the costs; (problems, n) decision values, by the models without the row's fold.

        final: the solutions become models, and are not only started from.
        """
        n_problems = len(self.solutions)
        f = np.empty((n_problems, len(self.cell.y)))

        def work(i: int) -> None:
            p, k = divmod(i, self.n_folds)
            first, last = int(self.edges[k]), int(self.edges[k + 1])
            seen = self.cell.count.sum() - self.cell.count[first:last].sum()
            weight = self.grid.costs_for(max(1.0, float(seen)))[point] * self.cell.weight
            weight[first:last] = 0.0
            found = self._solve(p, weight, tolerance, self.solutions[p][k])
            lean = not final and found.width < FIRST_WIDTH and self.method.one_task_each and few_weights(self.rows)
            self.solutions[p][k] = replace(found, alpha=None) if lean else found
            f[p, first:last] = self.rows.values(found.w, first, last)

        threads.map(work, n_problems * self.n_folds)
        return f

    def whole(self, problem: int, point: int, tolerance: float) -> Solution:
        """The solution on all rows, from the mean of those without a fold."""
        cost = self.grid.costs_for(float(self.cell.count.sum()))[point]
        return self._solve(problem, cost * self.cell.weight, tolerance, mean_of(self.solutions[problem]))

    def _solve(self, problem: int, weight: NDArray[np.float64], tolerance: float, start: Solution | None) -> Solution:
        method, y = self.method, np.ascontiguousarray(self.cell.Y[:, problem])
        return solve(
            self.rows, y, weight, method.loss == "squared", tolerance, method.solver,
            one_task_each=method.one_task_each, start=start, passes=method.passes,
        )  # fmt: skip


def mean_of(solutions: list[Any]) -> Solution | None:
    """Where to begin with all rows: mean weights; mean coefficients of the models that saw a row."""
    known = [s for s in solutions if s is not None]
    if not known:
        return None
    w = np.mean([s.w for s in known], axis=0)
    alphas = [s.alpha for s in known if s.alpha is not None]
    alpha = np.sum(alphas, axis=0) / max(1, len(known) - 1) if len(alphas) == len(known) else None
    return Solution(w, alpha, max(s.width for s in known), known[0].report)


class LinearPredictor:
    """Decision functions of one cell from its saved arrays."""

    def __init__(self, method: LinearMethod, state: State, n_problems: int) -> None:
        self._method, self._state, self._n_problems = method, state, n_problems

    @cached_property
    def _weights(self) -> NDArray[np.float64]:
        models = len(self._state["model_problem"])
        return np.ascontiguousarray(self._state["weights"].reshape(models, -1), np.float64)

    def decision_function(self, X: Examples) -> NDArray[np.float64]:
        """(n, problems) float64: a problem's only model, or the mean of its fold models' values clipped to [-1, 1]."""
        X = X if isinstance(X, np.ndarray) else thinned(X)
        rows = self._method.answering(X, self._state)
        values = np.stack([rows.values(w) for w in self._weights], axis=1)
        return combine(values, self._state["model_problem"], self._n_problems)
