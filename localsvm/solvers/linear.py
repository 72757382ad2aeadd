"""The task-coupled linear SVM, by any of its solvers, each of which can start from the solution of a similar problem.

min_w  1/2 |w|^2 + sum_i c_i loss(y_i f_i(w)),    f and w as in csrc/linear.h
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from localsvm.data.blocks.dataset import as_examples
from localsvm.solvers._linear import LinearReport, LinearRows
from localsvm.solvers.average_gradient import average_gradient
from localsvm.solvers.centred import FarStretch
from localsvm.solvers.primal import FIRST_WIDTH, TOGETHER, LinearProblem, newton
from localsvm.solvers.row_losses import SMALLEST, Hinge, Residual
from localsvm.solvers.stochastic import DescentBlock, descend

Vector = NDArray[np.float64]
LARGEST_BLOCK = 1024  # up to this many weights of a task, Newton's method computes a Hessian, ...
ROWS_A_WEIGHT = 2  # ... if there are at least this many rows for each weight
SMALL_HESSIAN = 1 << 20  # elements of a Hessian that is computed even if sparse rows have fewer entries
LARGEST_TASK = 1 << 22  # up to this many elements, the sparse rows of a task are made dense to solve for its step
LONG_ROW = 64  # entries from which on a pass over all rows is expensive, and so is a first Hessian
SAMPLE = 16  # with very many rows, Newton's method starts from the solution for every 16th row
SAMPLE_ROWS = 1024  # rows for each weight that are very many
WIDER = 4.0  # the smoothing of the hinge starts this much wider than where that of a similar problem ended
DIRECT = ("blocks", "rows")
VECTORS, WEIGHTS = 14, 8  # of the size of the rows, and of all weights, that a solve has in memory
SQUARES = 4  # matrices of the size of a task's, while a step is solved for


class Ascent(NamedTuple):
    """Number of passes of dual coordinate ascent for a kind of problem, before Newton's method takes over.

    Attributes
    ----------
    loss : str
        "hinge", "squared" or "any".
    systems : tuple of str
        Ways in which Newton's method would solve for its steps, see `system_of`.
    rows : float
        Fewest rows for each weight.
    entries : tuple of float
        (from, below): entries of a row, on average.
    known : bool
        Only if weights of a similar problem are known, from which Newton's method can continue.
    passes : int
    afresh : bool
        Newton's method does not continue from the ascent: so few passes may lead far away from the solution.
    """

    loss: str
    systems: tuple[str, ...]
    rows: float
    entries: tuple[float, float]
    known: bool
    passes: int
    afresh: bool = False


# The first entry that fits counts. Measured once, on nine real sets and HIGGS-like rows, alone and as tasks of
# kmeans-svm, llsvm and l3, three costs each: processor seconds of the 9 to 27 problems of each entry to a gap of a
# thousandth of the objective, by the passes before Newton's method. >: one or two problems were stopped at 10 s.
#    entry   0 passes      8     30     50    200
#        1      0.406  0.763   1.43   2.03   5.87
#        2       7.38    5.5    6.2   6.88   11.6
#        3      0.166  0.706   1.91   2.85   8.62
#        4      0.342  0.562   1.34   1.83    5.7
#        5       2.64   3.86    8.0   10.3   25.4
#        6       5.03   2.08   2.73   3.06    6.6
#        7       9.88   7.44   9.05   9.49   11.2
#        8       12.3   9.24   8.85   8.95   9.74
#        9      >32.1  >30.2  >33.0  >30.8  >29.2
ASCENTS = (
    #      loss       systems         rows         entries            known  passes
    Ascent("squared", DIRECT, 0, (0, np.inf), True, 0),
    Ascent("hinge", DIRECT, 0, (0, np.inf), True, 0),
    Ascent("squared", ("blocks",), SAMPLE_ROWS, (0, np.inf), False, 0),
    Ascent("squared", ("blocks",), 0, (0, LONG_ROW), False, 0),
    Ascent("any", ("blocks",), 200, (0, np.inf), False, 8, afresh=True),  # enough for small costs
    Ascent("squared", DIRECT, 0, (0, np.inf), False, 8),
    Ascent("squared", ("gradients",), 0, (0, np.inf), False, 30),
    Ascent("hinge", DIRECT, 0, (LONG_ROW, np.inf), False, 50),
    Ascent("hinge", ("blocks", "rows", "gradients"), 0, (0, np.inf), False, 200),
)


@dataclass(frozen=True)
class LinearSolution:
    """The solution of a task-coupled linear SVM.

    Attributes
    ----------
    w : (size,) float64
        Weights.
    alpha : (n,) float64 or None
        Dual coefficients, for classes >= 0. None in a solution that is only a start for others, if no solver would read
        it: it takes memory in proportion to the rows.
    width : float
        Where the smoothing of the loss ended.
    report : LinearReport
    """

    w: Vector
    alpha: Vector | None
    width: float
    report: LinearReport


def solve(
    problem: LinearProblem, tolerance: float, solver: str = "auto", *, one_task_each: bool = True,
    start: LinearSolution | None = None, seed: int = 0, passes: int = 0,
) -> LinearSolution:  # fmt: skip
    """Solve to a duality gap of `tolerance` times the primal objective.

    Parameters
    ----------
    one_task_each : bool
        True where each row is in one task, so that the Hessian falls into blocks.
    solver : str
        "auto", "sdca" (classes), "primal", "sag" (the squared hinge), or "sgd": `passes` of stochastic subgradients,
        with no tolerance (all but the squared hinge).
    start : LinearSolution or None
        The solution of a similar problem.
    seed : int
        Seed of the order in which rows are visited.
    """
    rows, y, cost, loss = problem
    if solver == "sgd":
        return _by_subgradients(problem, passes, seed)
    if isinstance(loss, Residual):
        return _by_newton(problem, tolerance, system_of(rows, one_task_each), start)
    assert isinstance(loss, Hinge), "there are no other losses"
    squared = loss.squared
    if solver == "sag":
        return _by_average_gradients(rows, y, cost, tolerance, start, seed)
    system = system_of(rows, one_task_each)
    if solver == "sdca":
        return _by_ascent(rows, y, cost, squared, tolerance, start, seed)
    if solver == "auto" and FarStretch.of(rows) is None:  # nearly parallel rows hold up an ascent, one after the other
        ascent = ascent_of(rows, system, squared, start)
        if ascent.passes:
            reached = _by_ascent(rows, y, cost, squared, tolerance, start, seed, ascent.passes)
            if reached.report.converged:
                return reached
            start = None if ascent.afresh else reached
    return _by_newton(problem, tolerance, system, start)


def _by_newton(problem: LinearProblem, tolerance: float, system: str, start: LinearSolution | None) -> LinearSolution:
    """Newton's method; with very many rows it starts from the solution for some, unless one step is enough."""
    rows, y, cost, loss = problem
    at_once = isinstance(loss, Residual) and loss.quadratic
    if start is None and system == "blocks" and rows.n >= SAMPLE_ROWS * rows.size and not at_once:
        part = LinearProblem(_every(rows, SAMPLE), y[::SAMPLE].copy(), SAMPLE * cost[::SAMPLE], loss)
        start = solve(part, tolerance, "primal")
    first = None if start is None else start.w
    width = FIRST_WIDTH if start is None else min(FIRST_WIDTH, WIDER * start.width)
    at, report = newton(problem, tolerance, system=system, start=first, width=width)
    return LinearSolution(at.w, at.alpha, at.width, report)


def system_of(rows: LinearRows, one_task_each: bool) -> str:
    """The way in which Newton's method solves for its steps.

    "blocks": by Hessians, one per task. "rows": by the rows of each task. "gradients": by conjugate gradients.
    """
    if not one_task_each:
        return "gradients"
    return "blocks" if few_weights(rows) else "rows" if small_tasks(rows) else "gradients"


def ascent_of(rows: LinearRows, system: str, squared: bool, start: LinearSolution | None) -> Ascent:
    """The first entry of ASCENTS that fits a problem."""
    # a squared hinge can continue from any weights, a hinge only if its smoothing was narrowed before
    known = start is not None and (squared or start.width < FIRST_WIDTH)
    loss, entries, a_weight = "squared" if squared else "hinge", _entries(rows), rows.n / rows.size
    return next(
        row
        for row in ASCENTS
        if row.loss in (loss, "any")
        and system in row.systems
        and row.rows <= a_weight
        and row.entries[0] <= entries < row.entries[1]
        and row.known <= known
    )


def _by_ascent(
    rows: LinearRows, y: Vector, cost: Vector, squared: bool, tolerance: float, start: LinearSolution | None, seed: int,
    passes: int | None = None,
) -> LinearSolution:  # fmt: skip
    most = {} if passes is None else {"max_passes": passes}
    alpha = None if start is None else start.alpha
    w, alpha, report = rows.sdca(y, cost, squared, tolerance, start=alpha, seed=seed, **most)
    return LinearSolution(w, alpha, FIRST_WIDTH, report)


def _by_subgradients(problem: LinearProblem, passes: int, seed: int) -> LinearSolution:
    rows, y, cost, loss = problem
    descended = descend(lambda: [DescentBlock(rows, y[None], cost[None], [loss])], passes, np.random.default_rng(seed))
    w, report = descended.weights[0], descended.reports[0]
    coef = loss.at(y, cost, SMALLEST).terms(rows.values(w)).coef
    return LinearSolution(w, loss.alpha(coef, y), FIRST_WIDTH, report)


def _by_average_gradients(
    rows: LinearRows, y: Vector, cost: Vector, tolerance: float, start: LinearSolution | None, seed: int
) -> LinearSolution:
    w, alpha, report = average_gradient(rows, y, cost, tolerance, None if start is None else start.w, seed=seed)
    return LinearSolution(w, alpha, FIRST_WIDTH, report)


def few_weights(rows: LinearRows) -> bool:
    """True where Newton's method computes Hessian blocks, for rows of one task each; it can start from weights alone.

    A Hessian never takes more memory than the rows. Dense rows, as many as are needed here, are always larger; the
    entries of sparse rows are counted.
    """
    entries = None if isinstance(rows.X, np.ndarray) else rows.X.nnz
    return _few_weights(rows.n, rows.size, rows.side, rows.tasks, entries)


def _few_weights(n: int, size: int, side: int, tasks: int, entries: int | None) -> bool:
    if side > LARGEST_BLOCK or n < ROWS_A_WEIGHT * size:
        return False
    return entries is None or tasks * side**2 <= max(SMALL_HESSIAN, entries)


def small_tasks(rows: LinearRows) -> bool:
    """True where Newton's method solves for each task by its rows, dense or long sparse ones that it makes dense."""
    if isinstance(rows.X, np.ndarray):
        return True
    if _entries(rows) < LONG_ROW:  # conjugate gradients are cheap for short rows
        return False
    largest = rows.n if rows.task is None else int(np.bincount(rows.task).max())
    return largest * rows.side <= LARGEST_TASK


def working_bytes(n: int, features: int, tasks: int, entries: int | None, solver: str, one_task_each: bool) -> int:
    """Memory of one solve: vectors, and what Newton's method takes for a step.

    Parameters
    ----------
    n, features, tasks : int
        Rows, columns of a row, and tasks.
    entries : int or None
        Entries of sparse rows, None for dense ones.
    solver, one_task_each
        As `solve` is given.
    """
    side, size = features + 1, tasks * (features + 1) + 1
    if solver in ("sdca", "sag", "sgd"):
        return 8 * (8 * n + 3 * size)
    vectors = 8 * (VECTORS * n + WEIGHTS * size)
    if not one_task_each:
        return vectors
    if _few_weights(n, size, side, tasks, entries):
        return vectors + 8 * (tasks * side**2 + SQUARES * max(side**2, TOGETHER))
    if entries is None or (entries >= LONG_ROW * n and n * side <= LARGEST_TASK):
        return vectors + 8 * (2 * n * side + SQUARES * min(n, side) ** 2)
    return vectors


def _entries(rows: LinearRows) -> float:
    """Average number of entries of a row."""
    return float(rows.X.size / rows.n) if isinstance(rows.X, np.ndarray) else float(rows.X.nnz / rows.n)


def _every(rows: LinearRows, step: int) -> LinearRows:
    """Rows 0, step, 2 step and so on, for rows of one task each."""
    chosen = np.arange(0, rows.n, step)
    task = None if rows.task is None else np.ascontiguousarray(rows.task[chosen])
    return LinearRows(as_examples(rows.X[chosen]), rows.tasks, task, rows.bias, rows.shared_bias)
