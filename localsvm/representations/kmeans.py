"""K-means clusters inside a method: the nearest centre of a row, and local coordinates on several centres."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from localsvm.data.blocks.dataset import Dense, Examples, between, row_blocks, within_reach
from localsvm.kernels import SQUARES
from localsvm.kernels._kernels import Panels, aligned, padded
from localsvm.partition.growing import take
from localsvm.partition.kmeans import kmeans_centres

ROWS_PER_CLUSTER = 256  # of the sample that k-means sees
BLOCK_ELEMENTS = 1 << 20  # elements of X whose distances are computed at once
CODINGS = ("inverse", "exponential", "linear")


def find_centres(X: Examples, clusters: int, rng: np.random.Generator) -> Dense:
    """K-means centres (k, d) of the rows of X, k <= clusters and k <= n, by scikit-learn on a random sample."""
    rows = X.shape[0]
    clusters = min(clusters, rows)
    sample = np.sort(rng.choice(rows, min(rows, ROWS_PER_CLUSTER * clusters), replace=False))
    return kmeans_centres(take(X, sample), clusters, int(rng.integers(2**31)))


class Centres:
    """Centres (k, d) float32, and what they say about rows. The result for a row depends on that row alone."""

    def __init__(self, centres: Dense) -> None:
        self.centres = centres
        self._middle = centres.mean(axis=0, dtype=np.float64).astype(np.float32)
        self._moved = centres - self._middle

    def distances(self, X: Examples) -> Dense:
        """Squared Euclidean distances (n, k) float32.

        Dense rows and centres are shifted by the mean of the centres, so that float32 loses less.
        """
        out = np.empty((X.shape[0], len(self.centres)), np.float32)
        for rows in row_blocks(X, BLOCK_ELEMENTS):
            part, _ = within_reach(between(X, rows.start, rows.stop))
            out[rows] = self._dense(part) if isinstance(part, np.ndarray) else self._sparse(part)
        return out

    def nearest(self, X: Examples) -> NDArray[np.int32]:
        """The nearest centre (n,) of each row, the first of equally near ones."""
        out = np.empty(X.shape[0], np.int32)
        for rows in row_blocks(X, BLOCK_ELEMENTS):
            out[rows] = self.distances(between(X, rows.start, rows.stop)).argmin(axis=1)
        return out

    def coordinates(self, X: Examples, neighbours: int, coding: str) -> sparse.csr_array:
        """Local coordinates (n, k) float64 of the rows: weights on their nearest centres that sum to 1.

        Parameters
        ----------
        X : Examples, (n, d)
        neighbours : int
            Number of the nearest centres that get a weight.
        coding : str
            "inverse": weights proportional to 1 / d^2, the squared distances to the centres.
            "exponential": to exp(-d^2 / mean d^2), the mean over the row's neighbours.
            "linear": weights that rebuild the row best from its neighbours, as in LLE (Roweis, Saul 2000), regularised
            by a thousandth of the trace.
        """
        n, k = X.shape[0], len(self.centres)
        neighbours = min(neighbours, k)
        index = np.empty((n, neighbours), np.int32)
        share = np.empty((n, neighbours))
        for rows in row_blocks(X, BLOCK_ELEMENTS):
            part = between(X, rows.start, rows.stop)
            d = self.distances(part)
            near = np.sort(np.argpartition(d, neighbours - 1, axis=1)[:, :neighbours], axis=1)
            index[rows] = near
            if coding == "linear":
                share[rows] = self._rebuilding(part, near)
            else:
                share[rows] = _shares(np.take_along_axis(d, near, axis=1).astype(np.float64), coding)
        indptr = np.arange(0, n * neighbours + 1, neighbours, dtype=np.int64)
        return sparse.csr_array((share.ravel(), index.ravel(), indptr), shape=(n, k))

    def _dense(self, X: Dense) -> Dense:
        moved = X - self._middle
        out = aligned((len(X), padded(self._panels.size)), np.float32)
        self._panels.products(moved, out, self._panels.norms_of(moved))
        return out[:, : len(self.centres)]

    @property
    def _panels(self) -> Panels:
        if not hasattr(self, "_packed"):
            self._packed = Panels(np.ascontiguousarray(self._moved), SQUARES)
        return self._packed

    def _sparse(self, X: sparse.csr_array) -> Dense:
        wide = X.astype(np.float64)
        centres = self.centres.astype(np.float64)
        squares = np.asarray(wide.multiply(wide).sum(axis=1)).ravel()[:, None] + (centres**2).sum(axis=1)
        return np.asarray(np.maximum(squares - 2.0 * (wide @ centres.T), 0.0), dtype=np.float32)

    def _rebuilding(self, X: Examples, near: NDArray[np.intp]) -> NDArray[np.float64]:
        """Weights (n, neighbours) of "linear" coding, for the neighbours `near` of each row."""
        dense = X if isinstance(X, np.ndarray) else X.toarray()
        out = np.empty(near.shape)
        for i, centres in enumerate(near):
            difference = (self.centres[centres] - dense[i]).astype(np.float64)
            matrix = difference @ difference.T
            trace = np.trace(matrix)
            matrix[np.diag_indices_from(matrix)] += 1e-3 * trace if trace > 0 else 1.0
            weights = np.linalg.solve(matrix, np.ones(len(centres)))
            out[i] = weights / weights.sum()
        return out


def _shares(d: NDArray[np.float64], coding: str) -> NDArray[np.float64]:
    """Local coordinates from squared distances (n, neighbours); a row on a centre gets nearly all weight there."""
    mean = np.maximum(d.mean(axis=1, keepdims=True), np.finfo(np.float32).tiny)
    weight = np.exp(-d / mean) if coding == "exponential" else 1.0 / np.maximum(d / mean, 1e-12)
    return np.asarray(weight / weight.sum(axis=1, keepdims=True))
