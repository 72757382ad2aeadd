"""The task-coupled linear SVM in the primal: Newton's method on a smooth loss, or on a smoothed one.

    min_w  P(w) = 1/2 |w|^2 + sum_i c_i loss(y_i f_i(w)),    f and w as in csrc/linear.h

With a coupling of the tasks, 1/2 tr(W' B^-1 W) takes the place of 1/2 |w|^2 (see solvers.coupling).

A hinge smoothed over a width h is quadratic for 0 < 1 - y f < h. It differs from the hinge only on rows in that band,
and its derivatives are feasible coefficients of the hinge's own dual. So every step comes with a certified duality gap:
half the squared gradient (with a coupling g'Bg), plus what the smoothing hides, which falls as h^2. h is lowered as far
as the tolerance needs and no further. Losses of values are smoothed in the same way (solvers.row_losses).

Rows that lie far from the origin, compared with how far they lie from each other, are nearly parallel, and a Hessian
made of their products holds nothing else. For these a step is solved for in other coordinates, see solvers.centred.

References
----------
Chapelle: Training a Support Vector Machine in the Primal. Neural Computation 19, 2007. Choosing the smoothing by the
gap is ours.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve

from localsvm.data.blocks.dataset import dense_rows
from localsvm.pulse import beat
from localsvm.solvers._linear import Hessian, LinearReport, LinearRows, Terms
from localsvm.solvers.centred import FarStretch
from localsvm.solvers.coupling import ALONE, Coupling
from localsvm.solvers.row_losses import HINGE, RowLoss

Vector = NDArray[np.float64]

FIRST_WIDTH = 1.0
SMALLEST_WIDTH = 1e-9
MAX_STEPS = 1000
CG_STEPS = 250
LINE_STEPS = 30  # of one line search
FAR_LINE_STEPS = (
    300  # the same for rows far from the origin, where the first step is too long by many orders of magnitude
)
NARROWER = 0.5  # factor on the width; a smaller factor costs hundreds of Newton steps if costs are large
TOGETHER = 1 << 17  # elements of the Hessian blocks that are solved at once, which bounds a few copies of them
SHARE = 0.1  # of what the stop allows: the squared residual that conjugate gradients may leave for a squared hinge
FLAT = 0.1  # a line search ends at this share of the slope at its start


class Newton:
    """The state of the method: weights w, their decision values f, the losses there, and the gradient.

    `tolerance` is the duality gap to reach, over the primal objective.
    """

    def __init__(
        self, problem: LinearProblem, width: float, start: Vector | None, tolerance: float, coupling: Coupling = ALONE
    ) -> None:
        self.problem, self.tolerance, self.coupling = problem, tolerance, coupling
        self.rows = rows = problem.rows
        self.w = np.zeros(rows.size) if start is None else start.copy()
        self.f = np.zeros(rows.n) if start is None else rows.values(self.w)
        self._curved = np.zeros(rows.n)
        self._hessian: Hessian | None = None
        self.stretch = FarStretch.of(rows) if coupling is ALONE else None
        self.smooth_over(width)

    def smooth_over(self, width: float) -> None:
        """Continue with this width of the loss; 0 for a smooth one."""
        self.width, self.losses = width, self.problem.loss.at(self.problem.y, self.problem.cost, width)
        self._look()

    def _look(self) -> None:
        """Compute losses, gradient and dual coefficients at the current weights."""
        self.terms: Terms = self.losses.terms(self.f)
        self.sum = self.rows.add(self.terms.coef)
        self.pull = self.coupling.pull(self.w)
        self.gradient = self.pull - self.sum
        self.square = float(self.gradient @ self.coupling.spread(self.gradient))

    @property
    def alpha(self) -> Vector:
        """Dual coefficients (n,); see `RowLoss`."""
        return self.problem.loss.alpha(self.terms.coef, self.problem.y)

    @property
    def primal(self) -> float:
        """The primal objective, with the loss itself instead of the smoothed one."""
        return 0.5 * float(self.w @ self.pull) + (self.terms.smooth if self.width == 0 else self.terms.loss)

    @property
    def dual(self) -> float:
        """The dual objective of the coefficients `alpha`."""
        return self.terms.dual - 0.5 * float(self.sum @ self.coupling.spread(self.sum))

    def hessian(self) -> tuple[Hessian, float]:
        """Hessian (H, factor): factor times H are the second derivatives of the losses.

        H is updated from step to step: rows are added where the loss has become curved, and subtracted where it no
        longer is.
        """
        factor = 2.0 if self.width == 0.0 else 1.0 / self.width
        curved = self.terms.curvature / factor  # exactly, as widths are powers of 2
        change = curved - self._curved
        if self._hessian is None or 2 * np.count_nonzero(change) > np.count_nonzero(curved):
            self._hessian, change = None, curved
        self._hessian = self.rows.hessian(change, self._hessian)
        self._curved = curved
        return self._hessian, factor

    def advance(self, step: Vector) -> bool:
        """Minimise the smoothed objective along a step; False if rounding leaves nothing to gain."""
        df = self.rows.values(step)
        length = self._least(step, df)
        if length == 0.0 or np.array_equal(self.w + length * step, self.w):
            return False
        self.w += length * step
        self.f += length * df
        self._look()
        return True

    def _least(self, step: Vector, df: Vector) -> float:
        """Length of a step, by Newton's method in one dimension, inside a bracket in which the slope changes sign."""
        along, square = float(self.pull @ step), float(step @ self.coupling.pull(step))
        low, high, t = 0.0, np.inf, 1.0
        first = float(self.gradient @ step)
        if first >= 0.0:
            return 0.0
        for _ in range(LINE_STEPS if self.stretch is None else FAR_LINE_STEPS):
            slope, curve = self.losses.slope(self.f, df, t)
            slope, curve = slope + along + t * square, curve + square
            if abs(slope) <= -FLAT * first:
                break
            low, high = (t, high) if slope < 0.0 else (low, t)
            t = t - slope / curve
            if not low < t < high:
                t = 2.0 * low if high == np.inf else 0.5 * (low + high)
        return t


class LinearProblem(NamedTuple):
    """A task-coupled linear SVM.

    Attributes
    ----------
    rows : LinearRows
    y, cost : (n,) float64
        +-1, or 0 where a row takes no part, or values; and the factors c_i >= 0.
    loss : RowLoss
    """

    rows: LinearRows
    y: Vector
    cost: Vector
    loss: RowLoss = HINGE


def newton(
    problem: LinearProblem, tolerance: float, *, system: str = "gradients", start: Vector | None = None,
    width: float = FIRST_WIDTH, max_steps: int = MAX_STEPS, coupling: Coupling = ALONE,
) -> tuple[Newton, LinearReport]:  # fmt: skip
    """Run Newton's method: its state at a duality gap of at most tolerance times the primal objective, and a report.

    Parameters
    ----------
    system : str
        The way to solve for a step: by Hessian "blocks", one per task, or by the "rows" of each task, which both need
        rows of one task each; or by conjugate "gradients". With a coupling: "coupled", by all Hessian blocks and the
        precision between them at once, or "gradients".
    start : (size,) or None
        Weights to start from.
    width : float
        The first smoothing of a loss that is not smooth.
    coupling : Coupling
        That of the tasks.
    """
    smooth = problem.loss.smooth
    at = Newton(problem, 0.0 if smooth else width, start, tolerance, coupling)
    direction = by_gradients if at.stretch else DIRECTIONS[system]
    steps = 0
    while steps < max_steps:
        steps += 1
        beat(steps)
        primal = at.primal
        gap = primal - at.dual
        if gap <= tolerance * primal:
            break
        if not smooth and 0.5 * at.square <= 0.25 * gap and at.width > SMALLEST_WIDTH:
            at.smooth_over(NARROWER * at.width)
            continue
        # if I + H is 1e10 or larger, a direct solution may lose all digits; conjugate gradients still go downhill
        if not _downhill(at, direction) and (direction is by_gradients or not _downhill(at, by_gradients)):
            break
    return at, LinearReport(at.primal, at.dual, steps, at.primal - at.dual <= tolerance * at.primal)


def _downhill(at: Newton, direction: Callable[[Newton], Vector]) -> bool:
    try:
        return at.advance(-direction(at))
    except np.linalg.LinAlgError:  # singular to working precision
        return False


def by_blocks(at: Newton) -> Vector:
    """Solve (I + H) s = gradient for the step s, where H has one block per task and the shared bias as border."""
    h, factor = at.hessian()
    tasks = at.rows.tasks
    d = (len(at.w) - 1) // tasks
    border = factor * h.border[:, :d]
    solved = np.stack([at.gradient[:-1].reshape(tasks, d), border], axis=2)
    at_once = max(1, TOGETHER // d**2)
    for first in range(0, tasks, at_once):
        part = slice(first, first + at_once)
        upper = np.triu(factor * h.blocks[part, :d, :d])
        solved[part] = np.linalg.solve(upper + np.triu(upper, 1).transpose(0, 2, 1) + np.eye(d), solved[part])
    return _bordered(at, border, solved, factor * h.corner)


def by_coupled(at: Newton) -> Vector:
    """Solve (B^-1 (x) I + H) s = gradient for the step s, with the precision B^-1: one system of all weights."""
    h, factor = at.hessian()
    tasks, precision = at.rows.tasks, at.coupling.precision
    d = (len(at.w) - 1) // tasks
    whole: Vector = np.zeros((tasks, d, tasks, d))
    each, diagonal = np.arange(tasks), np.arange(d)
    whole[each, :, each, :] = factor * h.blocks[:, :d, :d].transpose(0, 2, 1)  # lower triangles are all that counts
    whole[:, diagonal, :, diagonal] += precision
    border = factor * h.border[:, :d]
    right = np.stack([at.gradient[:-1].reshape(tasks, d), border], axis=2).reshape(-1, 2)
    solved = cho_solve(cho_factor(whole.reshape(tasks * d, -1), lower=True, overwrite_a=True), right)
    return _bordered(at, border, solved.reshape(tasks, d, 2), factor * h.corner)


def by_rows(at: Newton) -> Vector:
    """Solve as `by_blocks`, for tasks with fewer rows than weights: (I + A'A)^-1 = I - A'(I + AA')^-1 A."""
    rows, curvature = at.rows, at.terms.curvature
    gradient = at.gradient[:-1].reshape(rows.tasks, -1)
    border: Vector = np.zeros_like(gradient)
    solved: Vector = np.stack([gradient, border], axis=2)
    inside = np.flatnonzero(curvature)
    task = np.zeros(len(inside), np.int32) if rows.task is None else rows.task[inside]
    inside = inside[np.argsort(task, kind="stable")]
    edges = np.concatenate([[0], np.cumsum(np.bincount(task, minlength=rows.tasks))])
    constant = np.full(1, 0.0 if rows.shared_bias else rows.bias)
    corner = float(curvature.sum()) * rows.bias**2 if rows.shared_bias else 0.0
    for k in np.flatnonzero(np.diff(edges)):
        part = inside[edges[k] : edges[k + 1]]
        root = np.sqrt(curvature[part])
        A = np.hstack([dense_rows(rows.X, part), np.broadcast_to(constant, (len(part), 1))]) * root[:, None]
        if rows.shared_bias:
            border[k] = rows.bias * (root @ A)
        right = np.stack([gradient[k], border[k]], axis=1)
        if len(part) < A.shape[1]:
            solved[k] = right - A.T @ np.linalg.solve(np.eye(len(part)) + A @ A.T, A @ right)
        else:
            solved[k] = np.linalg.solve(np.eye(A.shape[1]) + A.T @ A, right)
    return _bordered(at, border, solved, corner)


def _bordered(at: Newton, border: Vector, solved: Vector, corner: float) -> Vector:
    """The step, from each task's block solved for its gradient and for its border to the shared bias."""
    bias = at.gradient[-1] - np.vdot(border, solved[:, :, 0])
    pivot = 1.0 + corner - np.vdot(border, solved[:, :, 1])
    if not pivot > 0.0:
        raise np.linalg.LinAlgError("nothing is left of the bias but rounding")
    bias /= pivot
    return np.append((solved[:, :, 0] - bias * solved[:, :, 1]).ravel(), bias)


def by_gradients(at: Newton) -> Vector:
    """Solve as `by_blocks`, by conjugate gradients, which stop when the residual matters less than the duality gap.

    As I + H >= I, half the squared residual bounds what a better step could gain; with a stretch this bound is sharper.
    With a coupling, B is the preconditioner, and the square is the one that B makes.

    For a squared hinge it has to be small beside the final gap, too. Where costs are large, rows are inside by very
    little, and a rough step loses half of them; steps from there are cut short by the rows that come back, hundreds of
    times. A hinge, which has a problem for each width, would not always gain by it.
    """
    step, residual = np.zeros_like(at.w), at.gradient.copy()
    stretched = at.stretch.solver(at.terms.curvature) if at.stretch else at.coupling.spread
    solved = stretched(residual)
    square = float(residual @ solved)
    direction = solved.copy()
    enough = min(0.01 * square, 0.02 * (at.primal - at.dual))
    if at.width == 0.0:
        enough = min(enough, SHARE * at.tolerance * at.primal)
    for _ in range(CG_STEPS):
        if square <= enough:
            break
        product = at.coupling.pull(direction) + at.rows.curve(at.terms.curvature, direction)
        curve = float(direction @ product)
        if curve <= 0.0:  # lost in rounding, or so small that its square vanishes
            break
        length = square / curve
        step += length * direction
        residual -= length * product
        solved, before = stretched(residual), square
        square = float(residual @ solved)
        direction = solved + square / before * direction
    return step


DIRECTIONS = {"blocks": by_blocks, "rows": by_rows, "gradients": by_gradients, "coupled": by_coupled}
