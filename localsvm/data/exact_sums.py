"""Sums of columns without rounding, so that they are the same whatever blocks, machines or order the rows come in.

A float32 value is an integer times a power of two. The integers of a column are summed in a bin for each power, and so
are their squares, in two halves: no sum of a bin can overflow for fewer than 2^39 rows.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from localsvm.data.dataset import Examples, row_blocks

BLOCK = 1 << 18  # elements summed at once: scratch arrays stay in the cache
POWERS = 256  # exponents of float32
TABLE = 1 << 21  # bins up to which a table of all columns is summed into; else bins are sorted
SMALLEST = 149  # 2^-SMALLEST is the smallest float32 above 0
HALF = 24  # bits of the lower half of a square

Bins = NDArray[np.int64]


def _no_bins(rows: int = 0) -> Bins:
    return np.zeros((rows, 0), np.int64)


@dataclass
class ExactSums:
    """What scaling asks of rows: how many there are, and of each column the extremes and the exact sums.

    Attributes
    ----------
    columns, rows : d, and how many rows were added.
    low, high : (d,) float64, the smallest and largest value; zeros that are not stored count.
    """

    columns: int
    rows: int = 0
    low: NDArray[np.float64] = field(init=False)
    high: NDArray[np.float64] = field(init=False)
    _keys: Bins = field(default_factory=lambda: np.zeros(0, np.int64))  # (bins,) column * POWERS + exponent, ascending
    _sums: Bins = field(default_factory=lambda: _no_bins(3))  # (3, bins) of values, of both halves of squares

    def __post_init__(self) -> None:
        self.low, self.high = np.full(self.columns, np.inf), np.full(self.columns, -np.inf)
        self._stored = np.zeros(self.columns, np.int64)

    def add(self, X: Examples) -> None:
        """Count rows (n, d) of finite values."""
        self.rows += X.shape[0]
        if isinstance(X, np.ndarray):
            every = np.arange(self.columns)
            for rows in row_blocks(X, BLOCK):
                part = X[rows]
                self.low, self.high = np.minimum(self.low, part.min(axis=0)), np.maximum(self.high, part.max(axis=0))
                self._stored += len(part)
                self._count(part, every)
            return
        for first in range(0, X.nnz, BLOCK):
            values, columns = X.data[first : first + BLOCK], X.indices[first : first + BLOCK].astype(np.int64)
            np.minimum.at(self.low, columns, values)
            np.maximum.at(self.high, columns, values)
            self._stored += np.bincount(columns, minlength=self.columns)
            self._count(values, columns)

    def _count(self, values: NDArray[np.float32], columns: NDArray[np.int64]) -> None:
        """Sum values, whose columns are broadcast to their shape."""
        bits = values.view(np.uint32)
        power = (bits >> np.uint32(23)) & np.uint32(POWERS - 1)
        whole = (bits & np.uint32(0x7FFFFF)) + np.where(power > 0, np.float64(1 << 23), 0.0)
        keys, place = self._bins((columns * POWERS + power).reshape(-1))
        square = whole * whole  # below 2^48: all this is exact in float64
        upper = np.floor(square * 0.5**HALF)
        parts = np.copysign(whole, values), upper, square - upper * 2.0**HALF
        sums = [np.bincount(place, part.reshape(-1), minlength=len(keys)) for part in parts]
        self._merge(keys, np.stack(sums).astype(np.int64))

    def _bins(self, key: NDArray[np.int64]) -> tuple[Bins, NDArray[Any]]:
        """The bins, ascending, and the place of each element among them."""
        if self.columns * POWERS <= TABLE:
            return np.arange(self.columns * POWERS), key
        keys, place = np.unique(key, return_inverse=True)
        return keys, place

    def _merge(self, keys: Bins, sums: Bins) -> None:
        known = sums.any(axis=0)
        keys, sums = keys[known], sums[:, known]
        every = np.union1d(self._keys, keys)
        merged = np.zeros((3, len(every)), np.int64)
        merged[:, np.searchsorted(every, self._keys)] += self._sums
        merged[:, np.searchsorted(every, keys)] += sums
        self._keys, self._sums = every, merged

    def merge(self, other: ExactSums) -> None:
        """Count the rows of others, too."""
        self.low, self.high = np.minimum(self.low, other.low), np.maximum(self.high, other.high)
        self._stored = self._stored + other._stored
        self.rows += other.rows
        self._merge(other._keys, other._sums)

    def extremes(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """(d,) float64 each: the smallest and the largest value of every column."""
        thin = self._stored < self.rows
        return np.where(thin, np.minimum(self.low, 0), self.low), np.where(thin, np.maximum(self.high, 0), self.high)

    def moments(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """(d,) float64 each: mean and population standard deviation, rounded from their exact values."""
        first, second = [0] * self.columns, [0] * self.columns
        for key, value, upper, lower in zip(self._keys.tolist(), *self._sums.tolist(), strict=True):
            column, power = divmod(key, POWERS)
            shift = max(power, 1) - 1
            first[column] += value << shift
            second[column] += ((upper << HALF) + lower) << (2 * shift)
        n = self.rows
        unit = n << SMALLEST
        mean = [total / unit for total in first]
        deviation = [sqrt((n * two - one * one) / (unit * unit)) for one, two in zip(first, second, strict=True)]
        return np.asarray(mean, np.float64), np.asarray(deviation, np.float64)
