"""One round of the concave-convex procedure for a multiclass latent locally linear SVM: a convex problem, by L-BFGS.

The combination b_i of each row's true class is fixed, and a round minimises over W (classes, m, d + 1)

    lambda/2 |W|^2 + sum_i c_i [1 + max_{r != y_i} s_r(x_i) - b_i'W_{y_i} x_i]_+,    s_r(x) = |(W_r x)_+|_q.

This bounds the objective of csrc/ml3.h from above, with equality at the weights for which the b_i are best. The hinge,
the largest class and the norm are smoothed from above (ml3_smooth), so that the smoothed value bounds it as well.

Rows that are classified with a wide margin are left out until they matter. L-BFGS works in coordinates in which the
rows' second moment is nearly the identity: without them, features of very different size, or far from zero, slow it
down by an order of magnitude. Products with the rows have the rows' precision, sums over rows float64.
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

BLOCK = 1024  # rows multiplied at once, so that their products with all models stay in the cache
FEW = 0.5  # if a smaller share of a block's rows has a loss, these are copied together for the gradient
SLACK = 0.5  # rows are left out if they are further than this from a positive loss
STALLED = 10  # iterations in which the value must fall by the tolerance, relative to it
CURVATURE = 0.1  # of a row's loss along the row, relative to its cost, that the coordinates assume
FULL_METRIC = 2048  # with more columns, the coordinates use only the diagonal of the second moment


@dataclass(frozen=True)
class SortedRows:
    """Rows sorted by class.

    Attributes
    ----------
    X : (n, d)
    codes : (n,) int32
        Classes, ascending.
    cost : (n,)
        The factors c_i, in X's precision.
    """

    X: Any
    codes: NDArray[np.int32]
    cost: Reals

    @classmethod
    def sorted_by_class(cls, X: Any, codes: NDArray[np.int32], weight: Floats) -> SortedRows:
        """The rows of positive weight; costs are the weights divided by the number of these rows."""
        taken = np.flatnonzero(weight > 0)
        order = taken[np.argsort(codes[taken], kind="stable")]
        return cls(X[order], codes[order], (weight[order] / len(order)).astype(X.dtype))

    def part(self, chosen: Indices) -> SortedRows:
        return SortedRows(self.X[chosen], self.codes[chosen], self.cost[chosen])

    def blocks(self) -> Iterator[slice]:
        """Slices of consecutive rows of one class, at most BLOCK rows each."""
        ends = np.flatnonzero(np.diff(self.codes, append=-1)) + 1
        begin = 0
        for end in ends.tolist():
            for first in range(begin, end, BLOCK):
                yield slice(first, min(first + BLOCK, end))
            begin = end


@dataclass(frozen=True)
class Coordinates:
    """Coordinates V = W L for L-BFGS, where L L' approximates the Hessian for one model. root: L, or its diagonal."""

    root: Floats

    @classmethod
    def of(cls, rows: SortedRows, lam: float) -> Coordinates:
        """The metric for these rows: lambda I plus CURVATURE times their second moment."""
        from scipy.linalg import LinAlgError, cholesky

        d = rows.X.shape[1]
        moment = np.zeros((d + 1, d + 1) if d < FULL_METRIC else d + 1)
        for block in rows.blocks():
            _add_moment(rows.X[block], rows.cost[block], moment)
        moment *= CURVATURE
        if moment.ndim == 1:
            return cls(np.sqrt(moment + lam))
        moment[np.diag_indices(d + 1)] += lam
        try:
            return cls(cholesky(moment, lower=True))
        except LinAlgError:  # rows far from the origin: in their precision all else of the moment is lost
            return cls(_root_above(moment, lam))

    def coordinates(self, W: Floats) -> Floats:
        """Coordinates V for the weights W, both (models, d + 1)."""
        return np.asarray(W * self.root if self.root.ndim == 1 else W @ self.root)

    def weights(self, V: Floats) -> Floats:
        """Weights W for the coordinates V."""
        return self._divide(V, transposed=True)

    def gradient(self, G: Floats) -> Floats:
        """Derivatives by V, from the derivatives G by W."""
        return self._divide(G, transposed=False)

    def _divide(self, V: Floats, transposed: bool) -> Floats:
        from scipy.linalg import solve_triangular

        if self.root.ndim == 1:
            return np.asarray(V / self.root)
        return np.ascontiguousarray(solve_triangular(self.root, V.T, trans=int(transposed), lower=True).T)


def _root_above(moment: Floats, least: float) -> Floats:
    """A lower triangular root of the moment, with its eigenvalues raised to `least`."""
    from scipy.linalg import eigh, qr

    values, vectors = eigh(moment)
    return np.ascontiguousarray(qr((vectors * np.sqrt(np.maximum(values, least))).T, mode="r")[0].T)


def _add_moment(X: Any, cost: Reals, out: Floats) -> None:
    """Add sum_i cost_i x_i x_i', or its diagonal, to `out`; x has a 1 appended."""
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
    """Products W x (k, b) of k models with b rows. lines: the transpose (d + 1, k) of the weights; X (b, d)."""
    products: Reals = lines[:-1].T @ X.T if isinstance(X, np.ndarray) else np.ascontiguousarray((X @ lines[:-1]).T)
    products += lines[-1][:, None]
    return products


def _multiply_back(back: Reals, X: Any, rows: Indices, out: Floats) -> None:
    """Add the sum over these rows of X, with a 1 appended, times back (k, rows), to out (d + 1, k)."""
    out[-1] += back.sum(axis=1, dtype=np.float64)
    if len(rows) < FEW * X.shape[0] or not isinstance(X, np.ndarray):
        X = X[rows]
    elif len(rows) < len(X):
        wide = np.zeros((len(back), len(X)), back.dtype)
        wide[:, rows] = back
        back = wide
    out[:-1] += X.T @ back.T


class Round:
    """The problem of one round.

    Parameters
    ----------
    rows : SortedRows
    beta : (m, n)
        The fixed combinations.
    classes : int
    q, lam : float
        The exponent of the scores, and lambda.
    metric : Coordinates
    """

    def __init__(self, rows: SortedRows, beta: Reals, classes: int, q: float, lam: float, metric: Coordinates) -> None:
        self.rows, self.beta, self.classes, self.q, self.lam, self.metric = rows, beta, classes, q, lam, metric

    @classmethod
    def at(cls, W: Reals, rows: SortedRows, q: float, lam: float, metric: Coordinates) -> Round:
        """The round that starts from the weights W: its combinations are the best for W."""
        classes, models, _ = W.shape
        beta = np.empty((models, len(rows.codes)), rows.X.dtype)
        for block in rows.blocks():
            lines = W[rows.codes[block.start]].T.astype(rows.X.dtype)
            beta[:, block] = best_combinations(multiply(lines, rows.X[block]), q)
        return cls(rows, beta, classes, q, lam, metric)

    def part(self, chosen: Indices) -> Round:
        """Problem of the round over some of the rows."""
        rows, beta = self.rows.part(chosen), self.beta[:, chosen]
        return Round(rows, beta, self.classes, self.q, self.lam, self.metric)

    def solve(self, W: Floats, mu: float, tolerance: float, iterations: int) -> tuple[Floats, float]:
        """Minimise, starting from W: (W, value) of the minimum.

        L-BFGS stops when ten iterations lower the value by less than tolerance times it, or after `iterations`. The
        losses of rows left out, which are not in the value, are at most tolerance times it.
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
        """Minimise as `solve`, on all rows."""
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
        result = minimize(function, start, method="L-BFGS-B", jac=True, callback=stop_where_stalled, options=options)
        return self.metric.weights(result.x.reshape(-1, shape[2])).reshape(shape), float(result.fun)

    def value(self, W: Floats, mu: float) -> tuple[float, Floats]:
        """The smoothed objective and its gradient, of the shape of W."""
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
        """Distance (n,) of each row from a positive loss, in units of the margin; below 0, minus the loss.

        The smoothing of the hinge and of the largest class is ignored.
        """
        lines = self._lines(W)
        out = np.empty(len(self.rows.codes))
        for block in self.rows.blocks():
            u = self._excess(block, self._by_class(multiply(lines, self.rows.X[block])), mu)
            out[block] = -0.5 * mu - u.max(axis=0)
        return out

    def _lines(self, W: Floats) -> Reals:
        """Weights W as (d + 1, classes * m), in the rows' precision."""
        return np.ascontiguousarray(W.reshape(-1, W.shape[2]).T, dtype=self.rows.X.dtype)

    def _by_class(self, products: Reals) -> Reals:
        return products.reshape(self.classes, -1, products.shape[1])

    def _wrong(self, block: slice) -> NDArray[np.bool_]:
        """Mask (classes,) of the classes that are wrong for the rows of a block."""
        return np.asarray(np.arange(self.classes) != self.rows.codes[block.start])

    def _excess(self, block: slice, products: Reals, mu: float) -> Reals:
        """Values 1 + score - true score for the wrong classes (classes - 1, b)."""
        beta, wrong = self.beta[:, block], products[self._wrong(block)]
        true = np.einsum("kb,kb->b", beta, products[self.rows.codes[block.start]])
        return np.asarray(1 + norms(wrong, self.q, mu) - true)

    def _losses(self, block: slice, products: Reals, mu: float) -> tuple[float, Indices, Reals]:
        """The sum of a block's losses, its rows with a loss, and derivatives by their products (classes, m, rows)."""
        products, wrong = self._by_class(products), self._wrong(block)
        u = self._excess(block, products, mu)
        rows = np.flatnonzero(u.max(axis=0) > -0.5 * mu)
        cost, beta = self.rows.cost[block][rows], self.beta[:, block][:, rows]
        loss, a = largest(u[:, rows], mu)
        back = np.empty((*products.shape[:2], len(rows)), products.dtype)
        back[wrong] = (cost * a)[:, None] * norm_slopes(products[wrong][:, :, rows], self.q, mu)
        back[self.rows.codes[block.start]] = -(cost * a.sum(axis=0)) * beta
        return float((cost * loss).sum(dtype=np.float64)), rows, back
