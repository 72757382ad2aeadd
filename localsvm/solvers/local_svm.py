"""A linear SVM with a free offset on a handful of rows, for a few rows beside them.

    min over w, b: 1/2 |w|^2 + sum_i c_i max(0, 1 - y_i (w . x_i + b))

in its dual, by pairs of coefficients (csrc/smo.h). Of rows of one side alone there is nothing to solve: they are
unanimous, and so is the answer.

Where rows are many more than features, and costs large, pairs take steps by the million along directions in which the
kernel has no curvature. So after PAIRS steps, these take turns with Newton's steps on all free coefficients at once, as
far as the first bound and on without the coefficient that came to it.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from localsvm.kernels._kernels import aligned, padded
from localsvm.solvers._smo import DualReport, KernelDual

Floats = NDArray[np.float64]
PAIRS = 100_000  # steps on pairs before the first one on all free coefficients, ...
TURNS, TURN_PAIRS = 20, 5000  # ... then so many turns, with so many steps on pairs in each, ...
PATIENCE = 5  # ... but no more than these without half the violation
CURVED = 1e-10  # of the largest curvature: directions with less have none
PULLED = 1e-7  # a gradient along these that is not rounding's; those of y f are about 1


def decision_values(
    X: Floats, Y: Floats, weight: Floats, costs: Floats, points: Floats, tolerance: float
) -> tuple[Floats, Floats]:
    """Decision values (costs, points, problems) float64, and violations (costs, problems) float64.

    Values are -1 or 1 where all rows are of one side, 0 without rows. A violation is the largest one where it is more
    than the tolerance, else 0.

    Parameters
    ----------
    X, points : (n, d) and (p, d) float64, the rows and those to be decided.
    Y, weight : (n, problems) +-1, or 0 where a row takes no part; (n,) factors on the cost, 0 for no part in any.
    costs : (costs,) ascending.
    tolerance : the largest violation of the optimality conditions, as in LIBSVM.
    """
    out = np.empty((len(costs), len(points), Y.shape[1]))
    taken = (Y != 0) & (weight > 0)[:, None]
    above, below = (taken & (Y > 0)).any(axis=0), (taken & (Y < 0)).any(axis=0)
    out[:] = above.astype(np.float64) - below
    violations = np.zeros((len(costs), Y.shape[1]))
    mixed = np.flatnonzero(above & below)
    if not len(mixed):
        return out, violations
    centre = X.mean(axis=0)  # the offset is free: shifted rows are the same problem
    Z, away = X - centre, points - centre
    products = Z @ Z.T
    for p in mixed:
        rows = np.flatnonzero(taken[:, p])
        K = aligned((padded(len(rows)),) * 2, np.float64)
        K[:] = 0.0
        K[: len(rows), : len(rows)] = products[np.ix_(rows, rows)]
        for c, (coef, report) in enumerate(_solutions(K, Y[rows, p], weight[rows], costs, tolerance)):
            # each point by itself: what it gets does not depend on those beside it
            out[c, :, p] = np.einsum("ij,j->i", away, coef @ Z[rows]) + report.bias
            violations[c, p] = 0.0 if report.converged else report.violation
    return out, violations


def _solutions(
    K: Floats, y: Floats, weight: Floats, costs: Floats, tolerance: float
) -> list[tuple[Floats, DualReport]]:
    """Coefficients and report for each cost, each from the one before."""
    n = len(y)
    wide = np.zeros((3, len(K)))
    wide[0, :n] = y
    problem, start, solutions = LocalDual(K, wide[0]), None, []
    for cost in costs:
        wide[1, :n] = np.where(y < 0, -cost * weight, 0.0)
        wide[2, :n] = np.where(y > 0, cost * weight, 0.0)
        start, report = problem.solve(wide[1], wide[2], tolerance, start)
        solutions.append((start[:n], report))
    return solutions


class LocalDual:
    """The dual with an offset over a small kernel matrix, K and y as of KernelDual, for any costs."""

    def __init__(self, K: Floats, y: Floats) -> None:
        self._K, self._y = K, y
        self._pairs = KernelDual(K, y, offset=True, max_iterations=PAIRS)

    def solve(self, lo: Floats, hi: Floats, tolerance: float, start: Floats | None) -> tuple[Floats, DualReport]:
        """Solve as KernelDual.solve: (b, report), after at most PAIRS + TURNS * TURN_PAIRS steps on pairs."""
        b, _, report = self._pairs.solve(lo, hi, tolerance, start)
        if report.converged or not np.isfinite(self._K).all():
            return b, report
        turn = KernelDual(self._K, self._y, offset=True, max_iterations=TURN_PAIRS)
        least, idle = np.inf, 0
        for _ in range(TURNS):
            if report.converged or idle == PATIENCE:
                break
            steps = report.iterations
            b, _, report = turn.solve(lo, hi, tolerance, self._free(b, lo, hi))
            report.iterations += steps
            least, idle = (report.violation, 0) if report.violation < 0.5 * least else (least, idle + 1)
        return b, report

    def _free(self, b: Floats, lo: Floats, hi: Floats) -> Floats:
        """The best values of the free coefficients for those at bounds, or until nothing but these is left."""
        b = b.copy()
        for _ in range(len(b)):
            free = np.flatnonzero((b > lo) & (b < hi))
            if len(free) < 2:
                break
            direction, whole = self._direction(b, free)
            least, most = lo[free] - b[free], hi[free] - b[free]
            with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
                room = np.where(direction > 0.0, most / direction, np.where(direction < 0.0, least / direction, np.inf))
            first = int(np.argmin(room))
            if room[first] >= whole:
                b[free] += np.clip(direction, least, most) if np.isfinite(whole) else 0.0
                break
            b[free] = np.clip(b[free] + room[first] * direction, lo[free], hi[free])
            b[free[first]] = hi[free[first]] if direction[first] > 0.0 else lo[free[first]]
        return b

    def _direction(self, b: Floats, free: NDArray[np.intp]) -> tuple[Floats, float]:
        """Direction that keeps the sum, and the length to the best point along it: infinite without curvature."""
        gradient = (self._y - self._K @ b)[free]
        gradient -= gradient.mean()
        K = self._K[np.ix_(free, free)]
        K = K - K.mean(axis=0)
        curvature, axes = np.linalg.eigh(K - K.mean(axis=1)[:, None])
        pull, flat = axes.T @ gradient, curvature <= CURVED * curvature[-1]
        if np.linalg.norm(pull[flat]) > PULLED:
            direction, whole = axes[:, flat] @ pull[flat], np.inf
        else:
            direction, whole = axes[:, ~flat] @ (pull[~flat] / curvature[~flat]), 1.0
        return direction - direction.mean(), whole
