"""One round of the concave-convex procedure for a multiclass latent locally linear SVM: a convex problem, by L-BFGS.

With the combination b_i of every row's true class frozen, a round minimises over W (classes, m, d + 1)

    lambda/2 |W|^2 + sum_i c_i [1 + max_{r != y_i} s_r(x_i) - b_i'W_{y_i} x_i]_+,    s_r(x) = |(W_r x)_+|_q,

which is at least the objective of csrc/ml3.h, and equal to it at the weights that the b_i are the best for. Hinge,
largest class and norm are smoothed from above (ml3_smooth), so that what is minimised bounds that objective, too.

Rows that are classified with a wide margin are left out until they matter; and L-BFGS runs in coordinates in which the
rows' second moment is nearly the identity, without which features of very different size, or far from zero, slow it
down by an order of magnitude. Products with the rows are in the rows' precision, sums over rows in float64.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from localsvm.solvers.ml3_smooth import Reals, best_combinations, largest, norm_slopes, norms

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]

BLOCK = 1024  # rows multiplied at once: their products with all models stay in the cache
FEW = 0.5  # share of a block's rows with a loss below which they are gathered before they are multiplied back
SLACK = 0.5  # rows are left out whose loss would become positive only if it grew by more
STALLED = 10  # iterations over which the value has to fall by the tolerance, relative to itself
CURVATURE = 0.1  # of the losses along a row, over its cost: what the coordinates assume
FULL_METRIC = 2048  # columns beyond which the coordinates follow the diagonal of the second moment only


@dataclass(frozen=True)
class SortedRows:
    """Rows sorted by class: X (n, d), classes (n,), costs (n,) in X's precision."""

    X: Any
    codes: NDArray[np.int32]
    cost: Reals

    @classmethod
    def sorted_by_class(cls, X: Any, codes: NDArray[np.int32], weight: Floats) -> SortedRows:
        """The rows of positive weight; costs are weight over the number of these rows."""
        taken = np.flatnonzero(weight > 0)
        order = taken[np.argsort(codes[taken], kind="stable")]
        return cls(X[order], codes[order], (weight[order] / len(order)).astype(X.dtype))

    def part(self, chosen: Indices) -> SortedRows:
        return SortedRows(self.X[chosen], self.codes[chosen], self.cost[chosen])

    def blocks(self) -> Iterator[slice]:
        """Consecutive rows of one class."""
        ends = np.flatnonzero(np.diff(self.codes, append=-1)) + 1
        begin = 0
        for end in ends.tolist():
            for first in range(begin, end, BLOCK):
                yield slice(first, min(first + BLOCK, end))
            begin = end


@dataclass(frozen=True)
class Metric:
    """Coordinates V = W L for L-BFGS, where L L' is about the Hessian for one model; root is L, or its diagonal."""

    root: Floats

    @classmethod
    def of(cls, rows: SortedRows, lam: float) -> Metric:
        from scipy.linalg import cholesky

        d = rows.X.shape[1]
        moment = np.zeros((d + 1, d + 1) if d < FULL_METRIC else d + 1)
        for block in rows.blocks():
            _add_moment(rows.X[block], rows.cost[block], moment)
        moment *= CURVATURE
        if moment.ndim == 1:
            return cls(np.sqrt(moment + lam))
        moment[np.diag_indices(d + 1)] += lam
        return cls(cholesky(moment, lower=True))

    def coordinates(self, W: Floats) -> Floats:
        return np.asarray(W * self.root if self.root.ndim == 1 else W @ self.root)

    def weights(self, V: Floats) -> Floats:
        return self._divide(V, transposed=True)

    def gradient(self, G: Floats) -> Floats:
        """The derivatives by V that belong to those by W."""
        return self._divide(G, transposed=False)

    def _divide(self, V: Floats, transposed: bool) -> Floats:
        from scipy.linalg import solve_triangular

        if self.root.ndim == 1:
            return np.asarray(V / self.root)
        return np.ascontiguousarray(solve_triangular(self.root, V.T, trans=int(transposed), lower=True).T)


def _add_moment(X: Any, cost: Reals, out: Floats) -> None:
    """out += sum_i cost_i x_i x_i' with a 1 appended to x, or the diagonal of that."""
    out[..., -1:] += cost.sum(dtype=np.float64) if out.ndim == 1 else 0
    dense = isinstance(X, np.ndarray)
    if out.ndim == 1:
        out[:-1] += cost @ (np.square(X) if dense else X.power(2))
        return
    weighted = X * cost[:, None] if dense else X.multiply(cost[:, None]).tocsr()
    out[:-1, :-1] += X.T @ weighted if dense else (X.T @ weighted).toarray()
    out[-1, :-1] += weighted.sum(axis=0)
    out[:-1, -1] = out[-1, :-1]
    out[-1, -1] += cost.sum(dtype=np.float64)


def multiply(lines: Reals, X: Any) -> Reals:
    """W x of all rows, (k, b): lines (d + 1, k), the transpose of W, times X (b, d) with a 1 appended."""
    products: Reals = lines[:-1].T @ X.T if isinstance(X, np.ndarray) else np.ascontiguousarray((X @ lines[:-1]).T)
    products += lines[-1][:, None]
    return products


def _multiply_back(back: Reals, X: Any, rows: Indices, out: Floats) -> None:
    """out (d + 1, k) += these rows of X, with a 1 appended, times back (k, rows)."""
    out[-1] += back.sum(axis=1, dtype=np.float64)
    if len(rows) < FEW * X.shape[0] or not isinstance(X, np.ndarray):
        X = X[rows]
    elif len(rows) < len(X):
        wide = np.zeros((len(back), len(X)), back.dtype)
        wide[:, rows] = back
        back = wide
    out[:-1] += X.T @ back.T


class Round:
    """The problem of one round over these rows.

    beta (m, n): the frozen combinations; classes, dual exponent q, lambda and the metric.
    """

    def __init__(self, rows: SortedRows, beta: Reals, classes: int, q: float, lam: float, metric: Metric) -> None:
        self.rows, self.beta, self.classes, self.q, self.lam, self.metric = rows, beta, classes, q, lam, metric

    @classmethod
    def at(cls, W: Reals, rows: SortedRows, q: float, lam: float, metric: Metric) -> Round:
        """The round that begins at the weights W."""
        classes, models, _ = W.shape
        beta = np.empty((models, len(rows.codes)), rows.X.dtype)
        for block in rows.blocks():
            lines = W[rows.codes[block.start]].T.astype(rows.X.dtype)
            beta[:, block] = best_combinations(multiply(lines, rows.X[block]), q)
        return cls(rows, beta, classes, q, lam, metric)

    def part(self, chosen: Indices) -> Round:
        rows, beta = self.rows.part(chosen), self.beta[:, chosen]
        return Round(rows, beta, self.classes, self.q, self.lam, self.metric)

    def solve(self, W: Floats, mu: float, tolerance: float, iterations: int) -> tuple[Floats, float]:
        """(W, value): the minimum, from W on; the losses left out of the value are at most tolerance times it.

        L-BFGS stops where ten iterations lower the value by less than tolerance times it, or after so many iterations.
        """
        chosen = self.margins(W, mu) < SLACK
        while True:
            W, value = self.part(np.flatnonzero(chosen)).minimise(W, mu, tolerance, iterations)
            margins = self.margins(W, mu)
            left_out = float(self.rows.cost[~chosen] @ np.maximum(-margins[~chosen], 0))
            if left_out <= tolerance * value:
                return W, value
            chosen |= margins < SLACK

    def minimise(self, W: Floats, mu: float, tolerance: float, iterations: int) -> tuple[Floats, float]:
        """As `solve`, with all rows."""
        from scipy.optimize import minimize

        shape = W.shape
        values: list[float] = []

        def function(v: Floats) -> tuple[float, Floats]:
            value, gradient = self.value(self.metric.weights(v.reshape(-1, shape[2])).reshape(shape), mu)
            return value, self.metric.gradient(gradient.reshape(-1, shape[2])).ravel()

        def stop_where_stalled(intermediate_result: Any) -> None:
            values.append(float(intermediate_result.fun))
            if len(values) > STALLED and values[-STALLED - 1] - values[-1] <= tolerance * values[-1]:
                raise StopIteration

        start = self.metric.coordinates(W.reshape(-1, shape[2])).ravel()
        options = {"maxiter": iterations, "maxfun": 2 * iterations, "ftol": 0, "gtol": 0}
        found = minimize(function, start, method="L-BFGS-B", jac=True, callback=stop_where_stalled, options=options)
        return self.metric.weights(found.x.reshape(-1, shape[2])).reshape(shape), float(found.fun)

    def value(self, W: Floats, mu: float) -> tuple[float, Floats]:
        """The smoothed objective and its gradient."""
        lines = self._lines(W)
        total = 0.5 * self.lam * float(np.vdot(W, W))
        gradient = np.zeros(lines.shape)
        for block in self.rows.blocks():
            X = self.rows.X[block]
            loss, rows, back = self._losses(block, multiply(lines, X), mu)
            total += loss
            if len(rows):
                _multiply_back(back.reshape(-1, len(rows)), X, rows, gradient)
        return total, self.lam * W + gradient.T.reshape(W.shape)

    def margins(self, W: Floats, mu: float) -> Floats:
        """How far the loss of every row is from being positive, in units of the margin; negative: minus the loss,
        but for the smoothing of the hinge and the largest class."""
        lines = self._lines(W)
        out = np.empty(len(self.rows.codes))
        for block in self.rows.blocks():
            u = self._excess(block, self._by_class(multiply(lines, self.rows.X[block])), mu)
            out[block] = -0.5 * mu - u.max(axis=0)
        return out

    def _lines(self, W: Floats) -> Reals:
        return np.ascontiguousarray(W.reshape(-1, W.shape[2]).T, dtype=self.rows.X.dtype)

    def _by_class(self, products: Reals) -> Reals:
        return products.reshape(self.classes, -1, products.shape[1])

    def _wrong(self, block: slice) -> NDArray[np.bool_]:
        return np.asarray(np.arange(self.classes) != self.rows.codes[block.start])

    def _excess(self, block: slice, products: Reals, mu: float) -> Reals:
        """1 + score - true score for the wrong classes, (classes - 1, b)."""
        beta, wrong = self.beta[:, block], products[self._wrong(block)]
        true = np.einsum("kb,kb->b", beta, products[self.rows.codes[block.start]])
        return np.asarray(1 + norms(wrong, self.q, mu) - true)

    def _losses(self, block: slice, products: Reals, mu: float) -> tuple[float, Indices, Reals]:
        """The sum of a block's losses; its rows that have one; the derivatives by their products (classes, m, rows)."""
        products, wrong = self._by_class(products), self._wrong(block)
        u = self._excess(block, products, mu)
        rows = np.flatnonzero(u.max(axis=0) > -0.5 * mu)
        cost, beta = self.rows.cost[block][rows], self.beta[:, block][:, rows]
        loss, a = largest(u[:, rows], mu)
        back = np.empty((*products.shape[:2], len(rows)), products.dtype)
        back[wrong] = (cost * a)[:, None] * norm_slopes(products[wrong][:, :, rows], self.q, mu)
        back[self.rows.codes[block.start]] = -(cost * a.sum(axis=0)) * beta
        return float((cost * loss).sum(dtype=np.float64)), rows, back
