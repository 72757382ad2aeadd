"""Rows on a disk as partitions see them: some at a time, with the results of `Matrix`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from localsvm.data.spilled import WINDOW, Spilled
from localsvm.partition._nearest import Matrix

if TYPE_CHECKING:
    from localsvm.data.dataset import Examples


class DiskMatrix:
    """What the top of a tree asks of rows; see `Matrix`."""

    def __init__(self, X: Spilled) -> None:
        self.X, self.shape = X, X.shape
        self.width = X.columns if X.dense else X.nnz // max(1, X.shape[0])

    def route(self, *tree: Any) -> NDArray[np.int32]:
        """As that of `Matrix`; the last two arguments are the rows, which are read at once."""
        *links, begin, end = tree
        return Matrix(self.X.between(begin, end)).route(*links)

    def hashes(self, seed: int, begin: int = 0, end: int | None = None) -> NDArray[np.uint64]:
        """As that of `Matrix`."""
        last, step = self.shape[0] if end is None else end, max(1, WINDOW // max(1, self.width))
        parts = [(first, min(first + step, last)) for first in range(begin, last, step)]
        found = [Matrix(self.X.between(*part)).hashes(seed) for part in parts]
        return np.concatenate([np.empty(0, np.uint64), *found])

    def same(self, a: NDArray[np.int64], b: NDArray[np.int64]) -> NDArray[np.bool_]:
        """As that of `Matrix`."""
        found, step = np.empty(len(a), np.bool_), max(1, WINDOW // max(1, self.width))
        for first in range(0, len(a), step):
            own, other = a[first : first + step], b[first : first + step]
            rows, place = np.unique(np.concatenate([own, other]), return_inverse=True)
            place = place.reshape(-1).astype(np.int64)
            part = Matrix(self.X.take(rows))
            found[first : first + step] = part.same(place[: len(own)].copy(), place[len(own) :].copy())
        return found


AnyMatrix = Matrix | DiskMatrix


def matrix_of(X: Examples | Spilled) -> AnyMatrix:
    """The rows, in memory or on a disk."""
    return DiskMatrix(X) if isinstance(X, Spilled) else Matrix(X)
