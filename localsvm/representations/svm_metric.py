"""A linear map L that is learned through an SVM (SVML: Xu, Weinberger, Chapelle 2012), k(x, x') = exp(-|L(x - x')|^2).

The Manhattan kernel exp(-sum_j L_j^2 |x_j - x'_j|) is learned in the same way; svm_kernels.py has both.

The SVM with the squared hinge and cost C (localsvm/solvers/squared_hinge.py) is trained on half of the rows. L and
log C minimise, on a quarter of them, the mean of s(y f) = 1 / (1 + exp(5 y f)), a smooth count of errors, plus
pull |L - L_0|^2. On the last quarter errors are counted, and the map with the fewest is kept.

Gradient: on the support, with R = K_ss + diag(1 / c), (a, b) solves R a + b = y, sum a = 0. With g the slope of the
loss by the values on the second part V, u solves R u + m = K_sV g, sum u = sum g. Then, with the weights
A_Vs = g a' * K_Vs and A_ss = -u a' * K_ss, dL = -2 L sum_ij A_ij (x_i - x_j)(x_i - x_j)', and dlog C = sum u a / c.
For the Manhattan kernel, dL_k = -2 L_k sum_ij A_ij |x_ik - x_jk|.
"""

from __future__ import annotations

from contextlib import suppress
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from localsvm.data.blocks.dealing import Mates, folds_of_groups
from localsvm.representations.svm_kernels import GAUSSIAN, MapKernel
from localsvm.solvers.squared_hinge import Solution, ridge_of, solve

Floats = NDArray[np.float64]

STEEPNESS = 5.0  # of the smooth count of errors
LOG_COST = 8.0  # log C stays within -8 and 8: on parts that can be separated C would grow without end
PATIENCE = 10  # steps without fewer errors on the last part, after which the search ends
STEPS = 200  # at most
MOST_ROWS = 8000  # that a map is learned from: half of them train its SVM
LEAST_ROWS = 4  # of each class: fewer cannot be split in three parts


class ProblemRows(NamedTuple):
    """Rows (n, d) float64, labels -1 or 1 (n,), weights (n,) > 0."""

    X: Floats
    y: Floats
    weight: Floats


class LearnedMap(NamedTuple):
    """A map, the C that was learned with it, and how many times the SVM was solved."""

    L: Floats
    cost: float
    solved: int


def first_map(form: str, rank: int, X: Floats, columns: int) -> Floats:
    """First map for rows X (n, d), of which d are the columns with values, of `columns` in all.

    Returns
    -------
    For form "full" (d, d), I / columns; for "diag" its diagonal (d,), and for "sphere" (1,) the number on it. Else
    (rank, d), the leading principal axes of X over `columns`; rows of 0 where there are fewer.
    """
    d = X.shape[1]
    if form == "full":
        return np.eye(d) / columns
    if form in ("diag", "sphere"):
        return np.full(d if form == "diag" else 1, 1.0 / columns)
    L = np.zeros((rank, d))
    axes = np.linalg.svd(X - X.mean(axis=0), full_matrices=False)[2][:rank]
    L[: len(axes)] = axes / columns
    return L


class Objective:
    """The loss of (L, log C), trained on one part and validated on another, and its gradient.

    Each SVM begins from the one before.
    """

    def __init__(
        self, train: ProblemRows, validation: ProblemRows, L0: Floats, pull: float, kernel: MapKernel = GAUSSIAN
    ) -> None:
        self.train, self.validation, self.L0, self.kernel = train, validation, L0, kernel
        sides = train.X.shape[1] if L0.shape == (1,) else 1  # how often each number of L is in |L|^2
        self._pull, self._mean = pull * sides, validation.weight / validation.weight.sum()
        self.point, self.solved = np.empty(0), 0
        self.solution: Solution | None = None

    def solve(self, point: Floats) -> tuple[Floats, Solution, Floats, Floats]:
        """Map L, the solution of the SVM at a point (L, log C), its rows mapped and their kernel."""
        L = point[:-1].reshape(self.L0.shape)
        P = self.kernel.mapped(self.train.X, L)
        K, before = self.kernel.values(P, P), self.solution
        start = (before.coef, before.bias) if before is not None else None
        self.solution = solve(K, self.train.y, np.exp(point[-1]) * self.train.weight, start)
        self.point, self.solved = point.copy(), self.solved + 1
        return L, self.solution, P, K

    def __call__(self, point: Floats) -> tuple[float, Floats]:
        """The loss at a point, (L, log C) as one vector, and its gradient."""
        L, solution, P, K = self.solve(point)
        y, s, V = self.validation.y, solution.support, self.validation.X
        Q = self.kernel.mapped(V, L)
        to_support = self.kernel.values(Q, P[s])
        a = solution.coef[s]
        wrong = expit(-STEEPNESS * y * (to_support @ a + solution.bias))
        g = -STEEPNESS * self._mean * y * wrong * (1.0 - wrong)
        away = L - self.L0
        loss = float(self._mean @ wrong) + self._pull * float((away**2).sum())
        slope, by_cost = 2.0 * self._pull * away, 0.0
        if solution.factor is not None:
            u, _ = solution.factor.solve(to_support.T @ g, float(g.sum()))
            by_cost = float((u * a) @ ridge_of(np.exp(point[-1]) * self.train.weight[s]))
            to_support *= np.outer(g, a)
            among = K[np.ix_(s, s)]
            among *= -np.outer(u, a)
            slope = slope - 2.0 * self.kernel.slope(L, to_support, among, (V, Q), (self.train.X[s], P[s]))
        return loss, np.append(slope, by_cost)

    def error(self, point: Floats, rows: ProblemRows) -> float:
        """The weighted share of other rows that the SVM of a point gets wrong."""
        if not np.array_equal(point, self.point):
            self.solve(point)
        assert self.solution is not None
        L, s = point[:-1].reshape(self.L0.shape), self.solution.support
        K = self.kernel.values(self.kernel.mapped(rows.X, L), self.kernel.mapped(self.train.X[s], L))
        values = K @ self.solution.coef[s] + self.solution.bias
        return float(rows.weight[(values > 0) != (rows.y > 0)].sum() / rows.weight.sum())


class _Enough(Exception):
    """The search has gone on for long enough without fewer errors."""


def learn(
    train: ProblemRows, validation: ProblemRows, check: ProblemRows, L0: Floats, pull: float,
    kernel: MapKernel = GAUSSIAN,
) -> LearnedMap:  # fmt: skip
    """Learn a map.

    Parameters
    ----------
    train, validation, check : rows on which the SVM is trained, rows that judge it, and rows that say when to stop.
    L0 : that of `first_map`.
    pull : the weight of |L - L0|^2.
    kernel : of the SVM; the Manhattan one takes a diagonal.
    """
    from scipy.optimize import minimize  # takes long to import

    objective = Objective(train, validation, L0, pull, kernel)
    first = np.append(L0, 0.0)
    best, fewest, waited = first, objective.error(first, check), 0

    def look(point: Floats) -> None:
        nonlocal best, fewest, waited
        error, waited = objective.error(point, check), waited + 1
        if error < fewest:
            best, fewest, waited = point.copy(), error, 0
        if waited >= PATIENCE:
            raise _Enough

    bounds = [(None, None)] * L0.size + [(-LOG_COST, LOG_COST)]
    with suppress(_Enough):
        options = {"maxiter": STEPS}
        minimize(objective, first, jac=True, method="L-BFGS-B", bounds=bounds, callback=look, options=options)
    return LearnedMap(best[:-1].reshape(L0.shape), float(np.exp(best[-1])), objective.solved)


def split(y: Floats, random: np.random.Generator, mates: Mates | None = None) -> list[NDArray[np.intp]] | None:
    """Rows of a half, a quarter and a quarter of each class, at most MOST_ROWS rows in all; None where one has too few.

    mates : which rows stay together; None where none do.
    """
    classes = [random.permutation(np.flatnonzero(y == side)) for side in (-1.0, 1.0)]
    if min(map(len, classes)) < LEAST_ROWS:
        return None
    if mates is not None:
        quarters = folds_of_groups(y, 4 * -(-len(y) // MOST_ROWS), random, mates)
        parts = [np.flatnonzero((quarters >= first) & (quarters < last)) for first, last in ((0, 2), (2, 3), (3, 4))]
        return parts if all(len(np.unique(y[rows])) == 2 for rows in parts) else None
    share = min(1.0, MOST_ROWS / len(y))
    taken = [rows[: max(LEAST_ROWS, int(share * len(rows)))] for rows in classes]
    cuts = [(len(rows) // 2, 3 * len(rows) // 4) for rows in taken]
    pieces = [np.split(rows, cut) for rows, cut in zip(taken, cuts, strict=True)]
    return [np.sort(np.concatenate(same)) for same in zip(*pieces, strict=True)]
