"""Rows that occur more than once: copies, and values so frequent that no boundary can divide their rows into cells.

Rows of such values are kept once, with a weight.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from localsvm.errors import DataError
from localsvm.partition._nearest import Matrix
from localsvm.threads import ALONE, Threads

STRIP_ROWS = 1 << 16  # rows that a thread hashes at once
SEEDS = 4  # of hashes, until no two rows share one


def copies(matrix: Matrix, threads: Threads = ALONE) -> NDArray[np.int64] | None:
    """Number (n,) of the first row with the values of each row, which equal rows share; None where all rows differ.

    Of different rows with one hash, which only a deliberate search finds, the later ones pass for single rows.
    """
    hashes = _hashes(matrix, 0, threads)
    rows = _frequent(matrix, hashes, 1)
    if not len(rows):
        return None
    first, kind = np.unique(hashes[rows], return_index=True, return_inverse=True)[1:]
    first_equal = np.arange(len(hashes), dtype=np.int64)
    first_equal[rows] = rows[first[kind.reshape(-1)]]
    return first_equal


def collapse(
    matrix: Matrix, y: NDArray[np.float64], most: int, rng: np.random.Generator, threads: Threads = ALONE
) -> tuple[NDArray[np.int64], NDArray[np.float64] | None]:
    """Keep only one row per label of those values that occur in more than `most` rows.

    A boundary can only pass between rows of different values, so a value that is too frequent would make a cell too
    large, or a cell of nothing else. Rarer rows stay as they are: in cross-validation a weighted row falls into one
    fold as a whole.

    Returns
    -------
    rows : (kept,) int64
        The rows that are kept, ascending; of identical rows with one label the first.
    weight : (n,) float64 or None
        How many rows each row of the matrix stands for, 0 if it is not kept; None if all rows are kept.
    """
    n = matrix.shape[0]
    # the random seed keeps anyone from writing a file in which different rows have the same hash
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


def summed(
    matrix: Matrix, y: NDArray[np.float64], weight: NDArray[np.float64], count: NDArray[np.float64]
) -> NDArray[np.float64]:
    """The weights (n,) that rows have with those of the rows they stand for.

    Parameters
    ----------
    weight : (n,) float64
        Of each row alone.
    count : (n,) float64
        How many rows each stands for: what `collapse` gave.
    """
    gone, kept = np.flatnonzero(count == 0), np.flatnonzero(count > 1)
    if not len(gone):
        return weight
    total = weight.copy()
    np.add.at(total, _stand_ins(matrix, y, gone, kept), weight[gone])
    total[gone] = 0
    return total


def _stand_ins(
    matrix: Matrix, y: NDArray[np.float64], gone: NDArray[np.int64], kept: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Kept row with the values and the label of each row that is gone; DataError where there is none."""
    rows = np.r_[kept, gone]
    labels = np.unique(y[rows], return_inverse=True)[1].astype(np.uint64)
    for seed in range(SEEDS):  # where two kept rows share a hash, one of them is taken for the other
        keys = np.stack([matrix.hashes(seed)[rows], labels], axis=1)
        kind = np.unique(keys, axis=0, return_inverse=True)[1].reshape(-1)
        place = np.full(len(rows), kept[0] if len(kept) else gone[0], dtype=np.int64)
        place[kind[: len(kept)]] = kept
        into: NDArray[np.int64] = place[kind[len(kept) :]]
        if np.all(matrix.same(gone, into) & (y[gone] == y[into])):
            return into
    raise DataError("rows that the partition leaves out are equal to none that it keeps; divide the rows anew")


def _hashes(matrix: Matrix, seed: int, threads: Threads) -> NDArray[np.uint64]:
    hashes = np.empty(matrix.shape[0], dtype=np.uint64)

    def strip(first: int, last: int) -> None:
        hashes[first:last] = matrix.hashes(seed, first, last)

    threads.strips(strip, len(hashes), STRIP_ROWS)
    return hashes


def _crowded(hashes: NDArray[np.uint64], most: int) -> NDArray[np.uint64]:
    """All hashes that occur more than `most` times, and few others: the content of the fuller buckets.

    Counting by buckets takes a fraction of the time of sorting.
    """
    bits = min(max(10, (16 * len(hashes) // most).bit_length()), 20)
    bucket = (hashes & np.uint64((1 << bits) - 1)).view(np.int64)
    crowded = np.bincount(bucket, minlength=1 << bits) > most
    return hashes[crowded[bucket]] if np.any(crowded) else hashes[:0]


def _frequent(matrix: Matrix, hashes: NDArray[np.uint64], most: int) -> NDArray[np.int64]:
    """The rows whose values occur more than `most` times. Each is compared with the first row of its hash."""
    ordered = np.sort(_crowded(hashes, most))
    many = np.unique(ordered[most:][ordered[most:] == ordered[:-most]])
    if not len(many):
        return np.empty(0, dtype=np.int64)
    # by sorting: numpy 2.0.0 fails on whole numbers from 2^63 where it may choose a table
    rows = np.flatnonzero(np.isin(hashes, many, kind="sort")).astype(np.int64, copy=False)
    first = np.full(len(many), -1, dtype=np.int64)
    kind = np.searchsorted(many, hashes[rows])
    first[kind[::-1]] = rows[::-1]
    return rows[matrix.same(rows, first[kind])]
