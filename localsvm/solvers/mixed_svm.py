"""The SVM without an offset whose kernel is a mixture of a few kernels, and descent on the weights of the mixture.

    min over beta >= 0, sum beta = 1:  J(beta) = max over 0 <= a_i <= c_i:  sum_i a_i - sum_m beta_m q_m(a),
    q_m(a) = 1/2 (a y)' K_m (a y)

The derivatives of J are -q_m. Its primal objective is P = sum_m beta_m q_m + sum_i c_i hinge(y_i f_i), f = sum_m beta_m
K_m (a y), and the duality gap of the mixture P - (sum a - max_m q_m(a)).

Where rows are equal to a kernel, as those with one value of its variable are, many a are best, and J has kinks. So the
SVM has a small ridge, K + r I, which makes them one. It is part of the gap: r |a|^2 is kept below what the gap may be.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cholesky, solve_triangular

from localsvm.kernels._kernels import aligned, padded
from localsvm.pulse import beat
from localsvm.solvers._smo import KernelDual
from localsvm.solvers.active_set import ROUGHER

Floats = NDArray[np.float64]
Names = NDArray[np.int64]

MOST_STEPS = 20_000
STEPS_A_ROW = 50_000  # of all SVMs of a problem together
PRECISION, FINEST_SVM = 1e-3, 1e-13  # gap of an SVM: share of the gap to reach at first, and share of P at last
RIDGE_SHARE = 0.1  # of the gap to reach: r |a|^2 at first, ...
MOST_RIDGE = (
    1.0  # ... but r is at most this share of the kernel's mean diagonal: a large one would make its own |a| small
)
FINER = 0.1  # factor on precision and ridge where no step helps
FLAT, LINE_STEPS = 0.1, 30  # a line search ends at this share of the slope at its start
JITTER = 1e-8  # of second derivatives, over their mean
WHOLE = 1e4  # weight of sum beta = 1 against the second derivatives


class MatrixBank(Protocol):
    """Kernels over n rows, named 0 to size - 1; solvers ask for one matrix after another."""

    @property
    def size(self) -> int: ...

    def matrix(self, name: int) -> Floats:
        """Kernel matrix (n, n), symmetric positive semidefinite."""

    def prefer(self, names: Iterable[int]) -> None:
        """Note that these matrices will be asked for again and again."""


class Machine:
    """The SVM of a mixture of some kernels: its weights, its solution, and how a step changes them.

    Attributes: names, beta; b, f, primal of the SVM, J with the ridge; q (M,) scores of the kernels; solves so far.
    """

    def __init__(self, bank: MatrixBank, y: Floats, cost: Floats, tolerance: float, b: Floats) -> None:
        self.bank, self.n, self.tolerance = bank, len(y), tolerance
        side = padded(self.n)
        self._K = aligned((side, side), np.float64)
        self._K[:] = 0.0
        wide = np.zeros((3, side))
        wide[:, : self.n] = y, np.where(y < 0, -cost, 0.0), np.where(y > 0, cost, 0.0)
        self._y, self._lo, self._hi = wide
        self._dual, self._total = KernelDual(self._K, self._y), float((self._hi - self._lo).sum())
        self._b, self._f, self.primal, self.solves = np.zeros(side), np.zeros(side), self._total, 0
        self._steps = 0
        self._b[: self.n] = b
        self.J, self._share = 0.0, ROUGHER
        self._sharpen(1.0)

    @property
    def b(self) -> Floats:
        """Coefficients a_i y_i (n,)."""
        return self._b[: self.n]

    @property
    def f(self) -> Floats:
        """Decision values (n,)."""
        return self._f[: self.n]

    @property
    def sum_alpha(self) -> float:
        """Sum of all a_i."""
        return float(np.abs(self._b).sum())

    @property
    def inside_gap(self) -> float:
        """The duality gap among these kernels, over P."""
        return self.gap(float(self.q.max()))

    def gap(self, largest: float) -> float:
        """The duality gap, over P, where the largest score of all kernels is this."""
        return (self.primal - self.sum_alpha + largest) / self.primal

    def set(self, names: Names, beta: Floats) -> None:
        """Solve for these kernels with these weights."""
        self.names, self.beta = names, beta
        self._mixed = self._sum(beta)
        self._solve(self._mixed)
        self._score()

    def scores(self, names: Iterable[int]) -> Floats:
        """Scores q_m of any kernels of the bank."""
        scores = []
        for name in names:
            scores.append(0.5 * float(self.b @ (self.bank.matrix(int(name)) @ self.b)))
            beat(self.solves)
        return np.asarray(scores)

    def descend(self, share: float, newton: bool) -> bool:
        """Lower J until the gap among these kernels is this share of P; False where rounding or a bound ended it."""
        self._share, factor = share, 1.0
        self._again(factor)
        for _ in range(MOST_STEPS):
            if self.inside_gap <= share:
                return True
            if self._steps > STEPS_A_ROW * self.n:
                return False
            step = self._newton() if newton else self._reduced_gradient()
            if not (float(self.q @ step) > 0.0 and self._along(step)):
                factor *= FINER
                if PRECISION * factor * share < FINEST_SVM:
                    return False
                self._again(factor)
        return False

    def _again(self, factor: float) -> None:
        """Solve with another ridge and precision."""
        self._sharpen(factor)
        self._solve(self._mixed)
        self._score()

    def _sharpen(self, factor: float) -> None:
        """Set ridge and precision, from the gap that is to be reached."""
        self._precision, self._most_ridge = PRECISION * factor * self._share, MOST_RIDGE * factor
        square = float(self._b @ self._b)
        self._ridge = RIDGE_SHARE * factor * self._share * self.primal / square if square else 0.0

    def _sum(self, weights: Floats) -> Floats:
        out = np.zeros((self.n, self.n))
        for name, weight in zip(self.names, weights, strict=True):
            if weight:
                out += weight * self.bank.matrix(int(name))
        return out

    def _solve(self, K: Floats) -> None:
        """Solve the SVM with the kernel K, to the precision that is asked for now."""
        self._K[: self.n, : self.n] = K
        self._ridge = min(self._ridge, self._most_ridge * float(np.trace(K)) / self.n)
        np.einsum("ii->i", self._K)[: self.n] += self._ridge
        wanted = max(self._precision * self.primal, FINEST_SVM * self._total)
        while True:
            self._b, self._f, report = self._dual.solve(self._lo, self._hi, wanted / self._total, self._b)
            self._f -= self._ridge * self._b
            hinge = (self._hi - self._lo) @ np.maximum(0.0, 1.0 - self._y * self._f)
            self.primal = 0.5 * float(self._b @ self._f) + float(hinge)
            self.J, self.solves, self._steps = report.objective, self.solves + 1, self._steps + report.iterations
            enough = max(self._precision * self.primal, FINEST_SVM * self._total)
            if report.gap <= 2.0 * enough or wanted <= enough or not report.converged:
                return
            wanted = enough

    def _score(self) -> None:
        self._products = np.stack([self.bank.matrix(int(name)) @ self.b for name in self.names])
        self.q = 0.5 * (self._products @ self.b)

    def _reduced_gradient(self) -> Floats:
        """SimpleMKL's direction, as far as the first weight comes to 0."""
        first = int(np.argmax(self.beta))
        step = self.q - self.q[first]
        step[(self.beta <= 0.0) & (step < 0.0)] = 0.0
        step[first] = 0.0
        step[first] = -step.sum()
        falling = step < 0.0
        return np.asarray(step * (self.beta[falling] / -step[falling]).min()) if falling.any() else step

    def _newton(self) -> Floats:
        """Step to the least of the quadratic model of J over the simplex, by non-negative least squares."""
        from scipy.optimize import nnls  # takes long to import

        free = np.flatnonzero((self._b > self._lo) & (self._b < self._hi))
        M, R = len(self.names), np.zeros((0, len(self.names)))
        if len(free):
            inner = self._mixed[np.ix_(free, free)].copy()
            inner[np.diag_indices(len(free))] += self._ridge + JITTER * (np.trace(inner) / len(free) + JITTER)
            R = solve_triangular(cholesky(inner, lower=True), self._products[:, free].T, lower=True)
        H = R.T @ R
        H[np.diag_indices(M)] += JITTER * (np.trace(H) / M + float(self.q.max())) or 1.0  # where all kernels vanish
        root = cholesky(H)
        right = root @ self.beta + solve_triangular(root, self.q, trans="T")
        heavy = WHOLE * float(np.abs(root).max())
        to, _ = nnls(np.vstack([root, np.full(M, heavy)]), np.append(right, heavy))
        return np.asarray(to / to.sum() - self.beta)

    def _along(self, step: Floats) -> bool:
        """Take a part of the step, by line search: the slope of J rises along it. False where nothing is gained."""
        J, before, first = self.J, (self.primal, self._b, self._f), -float(self.q @ step)
        turn = self._sum(step)
        low, high, t = (0.0, first), (1.0, np.inf), 1.0
        for _ in range(LINE_STEPS):
            self._solve(self._mixed + t * turn)
            slope = -0.5 * float(self.b @ (turn @ self.b))
            if abs(slope) <= -FLAT * first or (slope <= 0.0 and t == 1.0):
                break
            low, high = ((t, slope), high) if slope < 0.0 else (low, (t, slope))
            share = low[1] / (low[1] - high[1])
            t = low[0] + min(max(share, 0.1), 0.9) * (high[0] - low[0])
        if self.J >= J:
            self.J, (self.primal, self._b, self._f) = J, before
            return False
        beta = np.maximum(self.beta + t * step, 0.0)
        beta[(t == 1.0) & (step < 0.0) & (beta <= 1e-12)] = 0.0
        self.set(self.names, beta / beta.sum())
        return True
