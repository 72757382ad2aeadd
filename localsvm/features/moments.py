"""Moments of rows, which scaling asks for: a statistic of blocks that can be merged."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from localsvm.data.blocks.dataset import Dense, Examples, between, is_dense, row_blocks
from localsvm.threads import ALONE, Threads

BLOCK = 1 << 20  # elements of a block of rows, ...
LEAST = 4  # ... but at least so many a column: merging takes time of the columns
PASS = 1 << 20  # entries of a sparse block that are worked on at once: bounds temporary arrays
AHEAD = 4  # dense blocks a thread that wait to be merged
ARRAYS = 4  # of a statistic; ...
SPARSE_ARRAYS = 10  # ... and of the work on a sparse block
Vector = NDArray[np.float64]


@dataclass(frozen=True)
class Moments:
    """Moments of some rows, each column by itself. Zeros that are not stored count.

    Attributes
    ----------
    rows : how many there are, at least one.
    low, high : (d,) float64, the smallest and the largest value.
    mean, squares : (d,) float64, and the sum of the squared differences from it.
    """

    rows: int
    low: Vector
    high: Vector
    mean: Vector
    squares: Vector

    @classmethod
    def of(cls, X: Examples) -> Self:
        """Moments of a block X (n, d) of finite values, n >= 1: two passes in float64."""
        return cls(X.shape[0], *(_of_dense(X) if isinstance(X, np.ndarray) else _of_sparse(X)))

    @property
    def deviation(self) -> Vector:
        """Population standard deviation (d,) (ddof 0)."""
        return np.asarray(np.sqrt(self.squares / self.rows))


def merge(a: Moments, b: Moments) -> Moments:
    """Moments of the rows of both (Chan et al. 1979). Bits depend on the order, so merge blocks in a fixed one."""
    rows, apart = a.rows + b.rows, b.mean - a.mean
    return Moments(
        rows,
        np.minimum(a.low, b.low),
        np.maximum(a.high, b.high),
        a.mean + apart * (b.rows / rows),
        a.squares + b.squares + np.square(apart) * (a.rows * b.rows / rows),
    )


def moments_of(X: Examples, threads: Threads = ALONE) -> Moments:
    """Moments of all rows X (n, d), n >= 1, in blocks that depend on X alone. The threads do not change the bits."""
    if not is_dense(X):
        threads = ALONE  # each would hold arrays of all columns, which may be very many
    blocks, total = list(row_blocks(X, _block_size(X))), None
    step = AHEAD * threads.count if is_dense(X) else 1
    for first in range(0, len(blocks), step):
        turn = blocks[first : first + step]
        for part in threads.map(lambda i, turn=turn: Moments.of(between(X, turn[i].start, turn[i].stop)), len(turn)):  # type: ignore[misc]
            total = part if total is None else merge(total, part)
    assert total is not None, "there are rows"
    return total


def moments_bytes(X: Any, threads: int) -> int:
    """Bytes that `moments_of` holds beside X and the scratch arrays of its threads.

    They are those of statistics of blocks, of their merging, and of a sparse block that is read from a disk.
    """
    rows, columns = int(X.shape[0]), int(X.shape[1])
    stored, block = rows * columns if is_dense(X) else int(X.nnz), _block_size(X)
    blocks = min(rows, 1 + 2 * (stored // block))
    if is_dense(X):
        return 8 * ARRAYS * columns * (2 + min(blocks, AHEAD * threads))
    return 8 * columns * (SPARSE_ARRAYS + (2 * ARRAYS if blocks > 1 else 0))


def _block_size(X: Any) -> int:
    return max(BLOCK, LEAST * int(X.shape[1]))


def _of_dense(X: Dense) -> tuple[Vector, Vector, Vector, Vector]:
    low, high = X.min(axis=0).astype(np.float64), X.max(axis=0).astype(np.float64)
    mean = np.asarray(X.sum(axis=0, dtype=np.float64) / len(X))
    return low, high, mean, np.asarray(np.square(X - mean).sum(axis=0))


def _of_sparse(X: Any) -> tuple[Vector, Vector, Vector, Vector]:
    rows, columns = X.shape
    low, high = np.full(columns, np.inf), np.full(columns, -np.inf)
    stored, total, squares = np.zeros(columns), np.zeros(columns), np.zeros(columns)
    passes = [slice(first, first + PASS) for first in range(0, X.nnz, PASS)]
    for part in passes:
        index, values = X.indices[part], X.data[part].astype(np.float64)
        np.minimum.at(low, index, values)
        np.maximum.at(high, index, values)
        stored += np.bincount(index, minlength=columns)
        total += np.bincount(index, values, columns)
    mean, thin = total / rows, stored < rows
    for part in passes:
        index = X.indices[part]
        squares += np.bincount(index, np.square(X.data[part] - mean[index]), columns)
    squares += (rows - stored) * np.square(mean)
    return np.where(thin, np.minimum(low, 0), low), np.where(thin, np.maximum(high, 0), high), mean, squares
