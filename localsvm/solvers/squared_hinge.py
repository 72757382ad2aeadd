"""Kernel SVM with the squared hinge and a free offset, by Newton's method in the primal (Chapelle 2007).

min over b and the coefficients a: 1/2 a'Ka + 1/2 sum_i c_i max(0, 1 - y_i f_i)^2, f = Ka + b. On the support, the rows
with y_i f_i < 1, the solution is linear: (K_ss + diag(1 / c_s)) a_s + b = y_s, sum a_s = 0, and a is 0 elsewhere. A
Newton step solves that for the support it has (for an empty one, which a start may have, a = 0); where the support
changes, an exact line search says how far to go. Once it stays, the solution is exact.

Nearly all time goes into the Cholesky factor of the system, s^3 / 3 operations for a support of s rows. Most later
steps change few rows of a large support: the last factor then serves them, bordered by the rows that came and went.

References
----------
Chapelle: Training a support vector machine in the primal. Neural Computation 19, 2007.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve, lu_factor, lu_solve, solve_triangular

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]

STEPS = 100  # of Newton; 3 to 12 are usual
EXACT = 1e-12  # a step that lowers the objective by no more than this share of it is the last one
PART, LARGE = 4, 1000  # rows from which a start is sought on every fourth row
FEW, MANY = 0.12, 1000  # a factor serves supports that differ by so small a share of its rows, if it has so many
LEAST_RIDGE = 1e-5  # with smaller ones, borders lose digits
MOST_COST = 1e10  # with larger costs, the system of two equal rows is singular in float64


class Factor(ABC):
    """The linear system of a support of s rows, R = K_ss + diag(ridge), and what solves it.

    Attributes
    ----------
    ones : (s,) float64, R^-1 1.
    """

    ones: Floats

    def solve(self, right: Floats, total: float) -> tuple[Floats, float]:
        """Solve R x + m = right with sum x = total: (x, m)."""
        x = self.inverse(right)
        m = float((x.sum() - total) / self.ones.sum())
        return x - m * self.ones, m

    @abstractmethod
    def inverse(self, right: Floats) -> Floats:
        """Product R^-1 right, (s,)."""


class Cholesky(Factor):
    """The system by its Cholesky factor, R = LL'.

    Parameters
    ----------
    K, support, ridge : (n, n), (s,) ascending, and (s,).
    """

    def __init__(self, K: Floats, support: Indices, ridge: Floats) -> None:
        self.support = support
        R = K[np.ix_(support, support)].T  # columns are contiguous, as LAPACK wants them
        R[np.diag_indices(len(support))] += ridge
        self._pair: tuple[Floats, bool] = cho_factor(R, lower=True, overwrite_a=True, check_finite=False)
        self.L = self._pair[0]
        self.ones = self.inverse(np.ones(len(support)))
        self._serves = len(support) >= MANY and bool(ridge.min() >= LEAST_RIDGE)

    def inverse(self, right: Floats) -> Floats:
        return np.asarray(cho_solve(self._pair, right, check_finite=False))

    def serves(self, support: Indices) -> bool:
        """True where this factor with a border is as good as a factor of that support, in less time."""
        changes = np.setxor1d(self.support, support, assume_unique=True)
        return self._serves and len(changes) <= FEW * len(self.support)

    def bordered(self, K: Floats, support: Indices, ridge: Floats) -> Factor:
        """The factor of that support by this one."""
        return self if np.array_equal(support, self.support) else Bordered(K, support, ridge, self)


class Bordered(Factor):
    """The system of a support by the Cholesky factor LL' of another one, with the same kernel and ridges.

    With new rows A, gone rows D, x of the other support's rows, and multipliers m, which keep x_D at 0:

        [ LL'   K_A   E_D ] [ x   ]   [ right   ]
        [ K_A'  R_AA  0   ] [ x_A ] = [ right_A ]     V = L^-1 [K_A E_D],  T = [R_AA 0; 0 0] - V'V
        [ E_D'  0     0   ] [ m   ]   [ 0       ]

    Parameters
    ----------
    K, support, ridge : (n, n), (s,) ascending, and (s,).
    other : the factor to begin with, of another support.
    """

    def __init__(self, K: Floats, support: Indices, ridge: Floats, other: Cholesky) -> None:
        self._L, base = other.L, other.support
        self._new = np.flatnonzero(~np.isin(support, base))
        self._old, gone = np.isin(base, support), np.flatnonzero(~np.isin(base, support))
        n_new = len(self._new)
        border = np.zeros((len(base), n_new + len(gone)), order="F")
        border[:, :n_new] = K[np.ix_(base, support[self._new])]
        border[gone, n_new + np.arange(len(gone))] = 1.0
        self._V = solve_triangular(self._L, border, lower=True, overwrite_b=True, check_finite=False)
        T = -(self._V.T @ self._V)
        T[:n_new, :n_new] += K[np.ix_(support[self._new], support[self._new])] + np.diag(ridge[self._new])
        self._T = lu_factor(T, check_finite=False)
        self.ones = self.inverse(np.ones(len(support)))

    def inverse(self, right: Floats) -> Floats:
        L, n_new, x = self._L, len(self._new), np.empty(len(right))
        whole, inside = np.zeros(len(self._old)), np.ones(len(right), bool)
        inside[self._new] = False
        whole[self._old] = right[inside]
        z = solve_triangular(L, whole, lower=True, check_finite=False)
        among = -(self._V.T @ z)
        among[:n_new] += right[self._new]
        t = lu_solve(self._T, among, check_finite=False)
        x[self._new] = t[:n_new]
        x[inside] = solve_triangular(L, z - self._V @ t, lower=True, trans="T", check_finite=False)[self._old]
        return x


@dataclass(frozen=True)
class Solution:
    """A solution of the problem above.

    Attributes
    ----------
    coef, bias : (n,) float64, 0 outside the support, and b.
    values : (n,) float64, f of all rows.
    support : (s,) the rows inside the margin, ascending.
    factor : of the support's system, for whoever differentiates the solution; None where the support is empty.
    steps, converged : of Newton; whether the support stayed in the last one.
    """

    coef: Floats
    bias: float
    values: Floats
    support: Indices
    factor: Factor | None
    steps: int
    converged: bool

    def gap(self, y: Floats, cost: Floats) -> float:
        """The primal objective minus the dual one, in the units of the objective."""
        norm, cost = float(self.coef @ (self.values - self.bias)), 1.0 / ridge_of(cost)
        slack = np.maximum(0.0, 1.0 - y * self.values)
        primal = 0.5 * norm + 0.5 * float(cost @ slack**2)
        dual = float(self.coef @ y) - 0.5 * norm - 0.5 * float((self.coef**2 / cost).sum())
        return primal - dual


def ridge_of(cost: Floats) -> Floats:
    """Ridges 1 / c, within what float64 can add to a kernel."""
    return np.asarray(1.0 / np.clip(cost, 1.0 / MOST_COST, MOST_COST))


def solve(K: Floats, y: Floats, cost: Floats, start: tuple[Floats, float] | None = None) -> Solution:
    """Solve the problem.

    Parameters
    ----------
    K : (n, n) float64, a kernel matrix. It is only read.
    y : (n,) float64, -1 or 1. Without both, the solution is the constant y_1 (0 without rows).
    cost : (n,) float64, c_i > 0.
    start : coefficients and offset to begin from, as of a similar kernel; without it, of a quarter of many rows.
    """
    if not len(y) or np.all(y == y[0]):
        bias = float(y[0]) if len(y) else 0.0
        return Solution(np.zeros(len(y)), bias, np.full(len(y), bias), np.empty(0, np.intp), None, 0, True)
    if start is not None:
        return _newton(K, y, cost, *start)
    coef, bias = np.zeros(len(y)), 0.0
    if len(y) >= LARGE:
        part = solve(np.ascontiguousarray(K[::PART, ::PART]), y[::PART], cost[::PART])
        coef[::PART], bias = part.coef, part.bias
        del part  # and its factor
    return _newton(K, y, cost, coef, bias)


def _newton(K: Floats, y: Floats, cost: Floats, coef: Floats, bias: float) -> Solution:
    f, ridge = K @ coef + bias, ridge_of(cost)
    cost = 1.0 / ridge
    active = y * f < 1.0
    last: Cholesky | None = None
    for step in range(1, STEPS + 1):
        support, to, offset = np.flatnonzero(active), np.zeros(len(y)), bias
        factor: Factor | None = None
        if len(support):
            if last is not None and last.serves(support):
                factor = last.bordered(K, support, ridge[support])
            else:
                last = None  # its memory is free before the next factor is made
                factor = last = Cholesky(K, support, ridge[support])
            to[support], offset = factor.solve(y[support], 0.0)
        values = K @ to + offset
        inside = y * values < 1.0
        stays = bool(np.array_equal(inside, active))
        if not stays:
            share, stays = _line_search(coef, to - coef, f - bias, values - offset - f + bias, f, values - f, y, cost)
        if stays or step == STEPS:
            break
        coef, bias, f = coef + share * (to - coef), bias + share * (offset - bias), f + share * (values - f)
        active = y * f < 1.0
    return Solution(to, offset, values, support, factor, step, stays)


def _line_search(
    coef: Floats, turn: Floats, Kc: Floats, Kt: Floats, f: Floats, df: Floats, y: Floats, cost: Floats
) -> tuple[float, bool]:
    """Share t of (0, 1] of a step that lowers the objective most, and True where it lowers it by rounding errors only.

    The objective's slope along the step is piecewise linear and rises: its root lies between two of its kinks.

    Parameters
    ----------
    coef, turn : a, and the change of a by the whole step.
    Kc, Kt : K times these.
    f, df : the values, and their change by the whole step.
    """
    quadratic, curve, slack, falls = float(turn @ Kc), float(turn @ Kt), 1.0 - y * f, y * df

    def slope(t: float) -> float:
        return quadratic + t * curve - float((cost * falls) @ np.maximum(0.0, slack - t * falls))

    objective = 0.5 * float(coef @ Kc) + 0.5 * float(cost @ np.maximum(0.0, slack) ** 2)
    first, last = slope(0.0), slope(1.0)
    if -first <= EXACT * objective:
        return 1.0, True
    if last <= 0.0:
        return 1.0, False
    moving = falls != 0.0
    kinks = slack[moving] / falls[moving]
    grid = np.concatenate([[0.0], np.sort(kinks[(kinks > 0.0) & (kinks < 1.0)]), [1.0]])
    low, high = 0, len(grid) - 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if slope(grid[middle]) <= 0.0 else (low, middle)
    a, b = slope(grid[low]), slope(grid[high])
    return float(grid[low] - a * (grid[high] - grid[low]) / (b - a)) if b > a else float(grid[high]), False
