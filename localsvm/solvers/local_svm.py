"""A linear SVM with a free offset on a handful of rows, for a few rows beside them.

    min over w, b: 1/2 |w|^2 + sum_i c_i max(0, 1 - y_i (w . x_i + b))

in its dual, by pairs of coefficients (csrc/smo.h). Of rows of one side alone there is nothing to solve: they are
unanimous, and so is the answer.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from localsvm.kernels._kernels import aligned, padded
from localsvm.solvers._smo import MAX_ITERATIONS, KernelDual

Floats = NDArray[np.float64]


def decision_values(X: Floats, Y: Floats, weight: Floats, costs: Floats, points: Floats, tolerance: float) -> Floats:
    """(costs, points, problems) float64 decision values: -1 or 1 where all rows are of one side, 0 without rows.

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
    mixed = np.flatnonzero(above & below)
    if not len(mixed):
        return out
    centre = X.mean(axis=0)  # the offset is free: shifted rows are the same problem
    Z, away = X - centre, points - centre
    products = Z @ Z.T
    for p in mixed:
        rows = np.flatnonzero(taken[:, p])
        K = aligned((padded(len(rows)),) * 2, np.float64)
        K[:] = 0.0
        K[: len(rows), : len(rows)] = products[np.ix_(rows, rows)]
        for c, (coef, bias) in enumerate(_solutions(K, Y[rows, p], weight[rows], costs, tolerance)):
            # each point by itself: what it gets does not depend on those beside it
            out[c, :, p] = np.einsum("ij,j->i", away, coef @ Z[rows]) + bias
    return out


def _solutions(K: Floats, y: Floats, weight: Floats, costs: Floats, tolerance: float) -> list[tuple[Floats, float]]:
    """(coefficients, offset) for each cost, each from the one before."""
    n = len(y)
    wide = np.zeros((3, len(K)))
    wide[0, :n] = y
    problem, start, found = KernelDual(K, wide[0], offset=True, max_iterations=MAX_ITERATIONS), None, []
    for cost in costs:
        wide[1, :n] = np.where(y < 0, -cost * weight, 0.0)
        wide[2, :n] = np.where(y > 0, cost * weight, 0.0)
        start, _, report = problem.solve(wide[1], wide[2], tolerance, start)
        found.append((start[:n], report.bias))
    return found
