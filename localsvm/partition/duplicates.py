"""Rows that occur so often that no boundary can divide them into cells: each is kept once, with a weight."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from localsvm.partition._nearest import Matrix
from localsvm.threads import ALONE, Threads

STRIP_ROWS = 1 << 16  # rows that a thread hashes at once


def collapse(
    matrix: Matrix, y: NDArray[np.float64], most: int, rng: np.random.Generator, threads: Threads = ALONE
) -> tuple[NDArray[np.int64], NDArray[np.float64] | None]:
    """Keeps rows whose values occur more than `most` times (whatever their label) once per label.

    Cells can only be cut between rows of different values, so a value too frequent would make cells too
    large, or cells of nothing else. Rows that occur less often stay as they are, because in
    cross-validation a weighted row falls into one fold as a whole.

    Returns the kept rows, ascending (int64; the first of every collapsed kind), and (n,) how many each row
    of the matrix stands for (0 where it is not kept), or None when nothing was collapsed.
    """
    n = matrix.shape[0]
    # with a random seed no file can be written so that different rows collide
    hashes = _hashes(matrix, int(rng.integers(2**63)), threads)
    rows = _frequent(matrix, hashes, most)
    if not len(rows):
        return np.arange(n, dtype=np.int64), None
    rows = rows[np.lexsort((rows, y[rows], hashes[rows]))]
    starts = np.r_[True, (hashes[rows[1:]] != hashes[rows[:-1]]) | (y[rows[1:]] != y[rows[:-1]])]
    firsts = np.flatnonzero(starts)
    weight = np.ones(n)
    weight[rows] = 0
    weight[rows[firsts]] = np.diff(np.r_[firsts, len(rows)])
    return np.flatnonzero(weight).astype(np.int64, copy=False), weight


def _hashes(matrix: Matrix, seed: int, threads: Threads) -> NDArray[np.uint64]:
    hashes = np.empty(matrix.shape[0], dtype=np.uint64)

    def strip(first: int, last: int) -> None:
        hashes[first:last] = matrix.hashes(seed, first, last)

    threads.strips(strip, len(hashes), STRIP_ROWS)
    return hashes


def _crowded(hashes: NDArray[np.uint64], most: int) -> NDArray[np.uint64]:
    """The hashes in buckets of more than `most`: those that occur so often, and few others. Counting takes a fraction
    of the time that sorting takes."""
    bits = min(max(10, (16 * len(hashes) // most).bit_length()), 20)
    bucket = (hashes & np.uint64((1 << bits) - 1)).view(np.int64)
    crowded = np.bincount(bucket, minlength=1 << bits) > most
    return hashes[crowded[bucket]] if np.any(crowded) else hashes[:0]


def _frequent(matrix: Matrix, hashes: NDArray[np.uint64], most: int) -> NDArray[np.int64]:
    """The rows whose values occur more than `most` times, each compared with the first row of its hash."""
    ordered = np.sort(_crowded(hashes, most))
    many = np.unique(ordered[most:][ordered[most:] == ordered[:-most]])
    if not len(many):
        return np.empty(0, dtype=np.int64)
    rows = np.flatnonzero(np.isin(hashes, many)).astype(np.int64, copy=False)
    first = np.full(len(many), -1, dtype=np.int64)
    kind = np.searchsorted(many, hashes[rows])
    first[kind[::-1]] = rows[::-1]
    return rows[matrix.same(rows, first[kind])]
