"""Coordinates for rows that lie far from the origin, in which conjugate gradients are not slowed down by it.

With rows m + z, |m| much larger than |z|, the Hessian I + sum_i c_i (m + z_i)(m + z_i)' is dominated by the direction
of m. Shifting the rows would be another problem, as the bias is regularised. So the problem stays, and that direction
alone is stretched, one a task: the preconditioner is I + kappa u u', u = m / |m|, kappa = |m|^2 sum_i c_i; with rows
that share tasks, kappa is a matrix.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from localsvm.solvers._linear import LinearRows

Vector = NDArray[np.float64]
FAR = 1e5  # rows are far from the origin if their mean is so many deviations away from it


@dataclass(frozen=True)
class FarStretch:
    """The direction and the distance from the origin in which the rows of each task lie.

    Attributes
    ----------
    axis : (tasks, d + 1) float64, the directions u.
    length : (tasks,) float64, |m|.
    """

    rows: LinearRows
    axis: Vector
    length: Vector

    @classmethod
    def of(cls, rows: LinearRows) -> Self | None:
        """The stretch for these rows; None for rows that are not far from the origin, which need none."""
        ones = np.ones(rows.n)
        mass = _squares(rows, ones)
        mean = _squared(rows).add(ones)[:-1].reshape(rows.tasks, -1) / np.maximum(mass, 1e-300)[:, None]
        square = np.einsum("kj,kj->k", mean, mean)
        between = float(mass @ square)
        total = float(rows.norms().sum()) - rows.n * rows.bias**2 * rows.shared_bias
        if total - between > between / FAR**2 or between == 0.0:
            return None
        length = np.sqrt(np.maximum(square, 1e-300))
        return cls(rows, mean / length[:, None], length)

    def solver(self, curvature: Vector) -> Callable[[Vector], Vector]:
        """Function that solves with the preconditioner; curvature: (n,) second derivatives of the losses."""
        if self.rows.task is None or isinstance(self.rows.task, np.ndarray):
            inverse = 1.0 / (1.0 + np.square(self.length) * _squares(self.rows, curvature))
        else:
            shares = self.rows.task * self.length
            inverse = np.linalg.inv(np.eye(self.rows.tasks) + (shares.T @ (shares * curvature[:, None])).toarray())

        def solve(v: Vector) -> Vector:
            along, across = self._divide(v[:-1].reshape(self.axis.shape))
            across = self._divide(across)[1]  # rounding may leave more along the axis than belongs there
            along = inverse * along if inverse.ndim == 1 else inverse @ along
            return np.append((across + along[:, None] * self.axis).ravel(), v[-1])

        return solve

    def _divide(self, v: Vector) -> tuple[Vector, Vector]:
        """Parts of v (tasks, d + 1) along the axes, (tasks,), and across them, (tasks, d + 1)."""
        along: Vector = np.einsum("kj,kj->k", self.axis, v)
        return along, np.subtract(v, along[:, None] * self.axis)


def _squared(rows: LinearRows) -> LinearRows:
    """Rows with the squares of their shares, by which a mean can be weighted: shares may be negative."""
    if rows.task is None or isinstance(rows.task, np.ndarray):
        return rows
    return LinearRows(rows.X, rows.tasks, rows.task.power(2), rows.bias, rows.shared_bias)


def _squares(rows: LinearRows, weight: Vector) -> Vector:
    """Sums (tasks,) of the squares of the rows' shares in each task, times weight (n,)."""
    if rows.task is None:
        return np.asarray([weight.sum()])
    if isinstance(rows.task, np.ndarray):
        return np.asarray(np.bincount(rows.task, weight, minlength=rows.tasks), np.float64)
    return np.asarray(rows.task.power(2).T @ weight).ravel()
