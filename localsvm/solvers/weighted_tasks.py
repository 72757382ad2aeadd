"""Linear SVMs of several tasks, to which rows belong with weights: what EM over mixtures of SVMs solves for weights.

    min_W  1/2 tr(W' B^-1 W) + sum_i sum_j c_i q_ij loss(y_i w_j . (x_i, 1))

Each row has a loss in every task, unlike in a mix of tasks by shares, whose one loss is that of sum_j q_ij f_j. So
there is a row for each pair of a row and a task, with the cost c_i q_ij; pairs with q_ij up to SMALLEST are left out.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from localsvm.data.blocks.dataset import Examples, between, row_blocks, rows_of
from localsvm.solvers._linear import LinearReport, LinearRows
from localsvm.solvers.coupling import ALONE, Coupling
from localsvm.solvers.linear import WIDER, LinearSolution, solve
from localsvm.solvers.primal import FIRST_WIDTH, LinearProblem, newton
from localsvm.solvers.row_losses import RowLoss

Floats = NDArray[np.float64]
SMALLEST = 1e-4  # weights in a task that are not worth a row
LARGEST_SYSTEM = 2048  # up to this many weights of all tasks together, Newton's method solves for them directly
BLOCK = 1 << 18  # elements of rows that are made float64 at once
BIAS = 1.0  # of each task, and regularised


@dataclass(frozen=True)
class TaskWeights:
    """A solution: W (tasks, d + 1) float64, biases last; width, where the smoothing of the hinge ended; a report."""

    W: Floats
    width: float
    report: LinearReport


class WeightedTasks:
    """The rows of the problem above, one for each pair, in the order of the tasks.

    Parameters
    ----------
    X : (n, d)
    q : (n, tasks) float64, the weight with which each row belongs to each task.
    """

    def __init__(self, X: Examples, q: Floats) -> None:
        task, row = np.nonzero(q.T > SMALLEST)
        self.row, self.share = row, q[row, task]
        self.rows = LinearRows(rows_of(X, row), q.shape[1], task.astype(np.int32), BIAS, shared_bias=False)

    def solve(
        self, y: Floats, cost: Floats, coupling: Coupling, loss: RowLoss, tolerance: float, start: TaskWeights | None
    ) -> TaskWeights:
        """Solve to a duality gap of `tolerance` times the objective.

        Parameters
        ----------
        y, cost : (n,) float64; for classes +-1, or 0 where a row takes no part; and c_i >= 0.
        start : the solution of a similar problem.
        """
        rows, y, cost = self._taking_part(y[self.row], cost[self.row] * self.share, loss)
        begin = None if start is None else np.append(start.W.ravel(), 0.0)
        tasks = rows.tasks
        if coupling is ALONE:
            before = None if start is None or begin is None else LinearSolution(begin, None, start.width, start.report)
            solution = solve(LinearProblem(rows, y, cost, loss), tolerance, "primal", start=before)
            return TaskWeights(solution.w[:-1].reshape(tasks, -1), solution.width, solution.report)
        system = "coupled" if rows.size <= LARGEST_SYSTEM else "gradients"
        width = FIRST_WIDTH if start is None else min(FIRST_WIDTH, WIDER * start.width)
        at, report = newton(
            LinearProblem(rows, y, cost, loss), tolerance, system=system, start=begin, width=width, coupling=coupling
        )
        return TaskWeights(at.w[:-1].reshape(tasks, -1), at.width, report)

    def _taking_part(self, y: Floats, cost: Floats, loss: RowLoss) -> tuple[LinearRows, Floats, Floats]:
        """Rows that take part, with y and cost; all rows unless most take no part: a pair of many classes has few."""
        part = np.flatnonzero(loss.takes_part(y) & (cost > 0))
        if not len(part) or 2 * len(part) >= len(y):
            return self.rows, y, cost
        X, task = self.rows.X, self.rows.task[part]
        return LinearRows(rows_of(X, part), self.rows.tasks, task, BIAS, shared_bias=False), y[part], cost[part]


def task_values(X: Examples, W: Floats) -> Floats:
    """Decision values (n, tasks) of each task. The rows of a dense X are summed by BLAS, for training alone."""
    out = np.empty((X.shape[0], len(W)))
    for rows in row_blocks(X, BLOCK):
        out[rows] = between(X, rows.start, rows.stop) @ W[:, :-1].T + W[:, -1] * BIAS
    return out
