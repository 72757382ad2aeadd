"""The task-coupled linear SVM by any of its solvers, each from the solution of a similar problem.

min_w  1/2 |w|^2 + sum_i c_i loss(y_i f_i(w)),    f and w as in csrc/linear.h (METHODS: one solver for the family)
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from localsvm.data.dataset import as_examples
from localsvm.solvers._linear import LinearReport, LinearRows
from localsvm.solvers.primal import FIRST_WIDTH, newton
from localsvm.solvers.stochastic import Block, descend

Vector = NDArray[np.float64]
LARGEST_BLOCK = 1024  # weights of a task, up to which Newton's method makes its Hessian ...
ROWS_A_WEIGHT = 2  # ... if there are so many rows for each weight
SMALL_HESSIAN = 1 << 20  # elements of one that is made however few entries sparse rows have
PASSES = 200  # of coordinate ascent, after which an ill-conditioned problem is left to Newton's method by gradients,
DIRECT_PASSES = 50  # sooner where that has a direct solution of its systems and a pass reads long rows,
SQUARED_PASSES = 30  # for a squared hinge, which it takes few steps for,
FEW_PASSES = 8  # where both are so, and where a step costs little more than a pass, after what small costs need:
EASY_ROWS = 200  # with so many rows a weight
LARGEST_TASK = 1 << 22  # elements of a task's sparse rows, up to which they are made dense for its system
LONG_ROW = 64  # entries, from which on passes and products with all rows are dear, and so is a first Hessian
SAMPLE = 16  # with very many rows Newton's method begins where every 16th row's problem ends
SAMPLE_ROWS = 1024  # rows a weight
WIDER = 4.0  # than where a similar problem ended, the hinge's smoothing begins


@dataclass(frozen=True)
class Solution:
    """Weights (size,), dual coefficients (n,) >= 0, where the smoothing of the hinge ended, and what was reached.

    Of solutions that are only started from, alpha is None where no solver would ask for it: memory of the data's size.
    """

    w: Vector
    alpha: Vector | None
    width: float
    report: LinearReport


def solve(
    rows: LinearRows, y: Vector, cost: Vector, squared: bool, tolerance: float, solver: str = "auto", *,
    one_task_each: bool = True, start: Solution | None = None, seed: int = 0, passes: int = 0,
) -> Solution:  # fmt: skip
    """The solution to a duality gap of `tolerance` times the primal objective, from a similar problem's where given.

    y (n,) float64 +-1, or 0 where a row takes no part; cost (n,) float64 >= 0, the factors c_i; squared: the squared
    hinge; one_task_each: each row belongs to one task, so that the Hessian falls into blocks; seed: of the order of
    rows; passes: of stochastic subgradients ("sgd"), which have no tolerance and take the hinge only.
    """
    if solver == "sgd":
        found = descend(lambda: [Block(rows, y[None], cost[None])], passes, np.random.default_rng(seed))
        w, report = found.weights[0], found.reports[0]
        return Solution(w, np.asarray(y * rows.values(w) < 1.0, np.float64) * cost * (y != 0), FIRST_WIDTH, report)
    blocks = one_task_each and few_weights(rows)
    system = "blocks" if blocks else "rows" if one_task_each and small_tasks(rows) else "gradients"
    direct = system != "gradients"
    long_rows = _entries(rows) >= LONG_ROW
    sampled = blocks and rows.n >= SAMPLE_ROWS * rows.size
    if squared:  # Newton's method goes on from any weights, and needs few steps from zero
        begun = (direct and start is not None) or (blocks and (sampled or not long_rows))
    else:  # it goes on where it ended before
        begun = direct and start is not None and start.width < FIRST_WIDTH
    if solver == "sdca" or (solver == "auto" and not begun):
        easy = blocks and rows.n >= EASY_ROWS * rows.size
        if easy or (squared and direct):
            passes = FEW_PASSES
        else:
            passes = SQUARED_PASSES if squared else DIRECT_PASSES if direct and long_rows else PASSES
        most = {} if solver == "sdca" else {"max_passes": passes}
        alpha = None if start is None else start.alpha
        w, alpha, report = rows.sdca(y, cost, squared, tolerance, start=alpha, seed=seed, **most)
        ascended = Solution(w, alpha, FIRST_WIDTH, report)
        if report.converged or solver == "sdca":
            return ascended
        start = None if easy else ascended
    if sampled and start is None:
        part = _every(rows, SAMPLE)
        costs = SAMPLE * cost[::SAMPLE]
        start = solve(part, y[::SAMPLE].copy(), costs, squared, tolerance, "primal", one_task_each=True)
    first = None if start is None else start.w
    width = FIRST_WIDTH if start is None else min(FIRST_WIDTH, WIDER * start.width)
    at, report = newton(rows, y, cost, squared, tolerance, system=system, start=first, width=width)
    return Solution(at.w, at.alpha, at.width, report)


def few_weights(rows: LinearRows) -> bool:
    """Whether Newton's method makes its Hessian, for rows of one task each, and goes on from weights alone.

    A Hessian never takes more memory than the rows: with so many dense rows it cannot, sparse ones are asked.
    """
    if rows.side > LARGEST_BLOCK or rows.n < ROWS_A_WEIGHT * rows.size:
        return False
    return isinstance(rows.X, np.ndarray) or rows.tasks * rows.side**2 <= max(SMALL_HESSIAN, rows.X.nnz)


def small_tasks(rows: LinearRows) -> bool:
    """Whether Newton's method solves for each task by itself: dense rows, or long sparse ones that may be made so."""
    if isinstance(rows.X, np.ndarray):
        return True
    if _entries(rows) < LONG_ROW:  # conjugate gradients are cheap then
        return False
    largest = rows.n if rows.task is None else int(np.bincount(rows.task).max())
    return largest * rows.side <= LARGEST_TASK


def _entries(rows: LinearRows) -> float:
    """Entries of a row on average."""
    return float(rows.X.size / rows.n) if isinstance(rows.X, np.ndarray) else float(rows.X.nnz / rows.n)


def _every(rows: LinearRows, step: int) -> LinearRows:
    """Every so many of the rows, of one task each."""
    chosen = np.arange(0, rows.n, step)
    task = None if rows.task is None else np.ascontiguousarray(rows.task[chosen])
    return LinearRows(as_examples(rows.X[chosen]), rows.tasks, task, rows.bias, rows.shared_bias)
