"""The exact nearest rows of a row: distances in blocks that stay in the cache, and of these only what is near."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from localsvm.data.blocks.dataset import Dense, Examples, between, within_reach
from localsvm.kernels import SQUARES
from localsvm.kernels._kernels import Panels, aligned, padded
from localsvm.kernels.entries import base_of, few_entries
from localsvm.kernels.gram import active_columns, centre_of, columns_of

QUERIES, CHUNK = 256, 2048  # rows whose distances to so many others are in memory at once
PLACE_BITS, PLACE = np.uint64(32), np.uint64(0xFFFFFFFF)
FARTHEST = np.uint64(np.float32(np.inf).view(np.uint32)) << PLACE_BITS | PLACE  # of no row


class Neighbours:
    """Rows (n, d) among which to search, by Euclidean distances in float32 from their mean.

    What is found for a row depends on that row alone.
    """

    def __init__(self, X: Examples) -> None:
        X, _ = within_reach(X)  # a model of a stranger may have any numbers
        self.n = X.shape[0]
        self._entries = X if few_entries(X) else None
        self._columns = active_columns(X)
        if self._entries is None:
            rows = columns_of(X, self._columns)
            # sparse rows that are searched for have other columns, too, which add the same to all their distances
            self._centre = (
                centre_of(rows) if isinstance(X, np.ndarray) and self.n else np.zeros(rows.shape[1], np.float32)
            )
            rows = rows - self._centre
            self._panels = [Panels(rows[first : first + CHUNK], SQUARES) for first in range(0, self.n, CHUNK)]

    def nearest(self, X: Examples, k: int) -> NDArray[np.int64]:
        """Places (m, k) int64 of the k rows nearest to each row of X, from near to far.

        Of equally near ones the first come first. k is at most n.
        """
        X, _ = within_reach(X)
        out = np.empty((X.shape[0], k), np.int64)
        for first in range(0, len(out), QUERIES):
            out[first : first + QUERIES] = self._block(between(X, first, min(first + QUERIES, len(out))), k)
        return out

    def _block(self, X: Examples, k: int) -> NDArray[np.int64]:
        """Places (m, k) of the rows nearest to each row of a block.

        Distance and place are in one whole number, so that no two are equal; the k smallest of each row are kept.
        """
        best = np.full((X.shape[0], k), FARTHEST)
        rows = None if self._entries is not None else columns_of(X, self._columns) - self._centre
        for first in range(0, self.n, CHUNK):
            D = self._distances(X, rows, first)
            limit = (best.max(axis=1) >> PLACE_BITS).astype(np.uint32).view(np.float32)
            row, column = np.divmod(np.flatnonzero(limit[:, None] > D), D.shape[1])
            if not len(row):
                continue
            counts = np.bincount(row, minlength=len(D))
            near = np.full((len(D), int(counts.max())), FARTHEST)
            bits = D[row, column].view(np.uint32).astype(np.uint64)
            place = np.arange(len(row)) - np.repeat(np.cumsum(counts) - counts, counts)
            near[row, place] = bits << PLACE_BITS | (column + first).astype(np.uint64)
            best = np.partition(np.concatenate([best, near], axis=1), k - 1, axis=1)[:, :k]
        return (np.sort(best, axis=1) & PLACE).astype(np.int64)

    def _distances(self, X: Examples, rows: Dense | None, first: int) -> Dense:
        """Squared distances (m, chunk) float32 from rows to those from `first` on."""
        if rows is None:
            others = between(self._entries, first, min(first + CHUNK, self.n))
            return np.asarray(base_of(X, others, SQUARES), np.float32)
        panels = self._panels[first // CHUNK]
        out = aligned((len(rows), padded(panels.size)), np.float32)
        panels.products(rows, out, panels.norms_of(rows))
        return out[:, : min(CHUNK, self.n - first)]
