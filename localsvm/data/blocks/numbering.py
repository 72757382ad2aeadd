"""Hashes of rows by their values and numbers, and their digests: whoever has some rows computes them by itself."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from localsvm.data.blocks.columns import Columns
from localsvm.data.blocks.dataset import Examples, between, row_blocks

Hashes = NDArray[np.uint64]

STEP = np.uint64(0x9E3779B97F4A7C15)  # of SplitMix64, as are the others
FIRST, SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
BLOCK = 1 << 18  # elements that are hashed at once


def hashed(numbers: NDArray[Any], key: int) -> Hashes:
    """Hashes (n,) that SplitMix64 makes of whole numbers (n,) and a key below 2^64."""
    with np.errstate(over="ignore"):
        z = numbers.astype(np.uint64) * STEP + np.uint64(key)
        z = (z ^ (z >> np.uint64(30))) * FIRST
        z = (z ^ (z >> np.uint64(27))) * SECOND
    z ^= z >> np.uint64(31)
    return z


def contents(X: Examples, columns: Columns | None = None) -> Hashes:
    """Hash (n,) of the values of each row.

    It does not matter whether rows are dense, and whether columns without a value are left out.

    columns : those that X has, None for all.
    """
    return _row_sums(X, columns, lambda values, numbers: values.view(np.uint32) * _odd(numbers))


def signatures(X: Examples, columns: Columns | None = None) -> Hashes:
    """Hash (n,) of the values of each row, for whoever takes rows of equal hashes for equal.

    It costs more than `contents`, whose sums of few different values may be equal: each value is mixed with its column.
    Arguments, and what does not matter, are as there.
    """
    return _row_sums(X, columns, _mixed)


def _row_sums(
    X: Examples, columns: Columns | None, of: Callable[[NDArray[np.float32], NDArray[Any]], Hashes]
) -> Hashes:  # fmt: skip
    """Sums (n,) modulo 2^64 of what `of` makes of the values of a row and their columns: 0 for a value of 0."""
    sums = np.empty(X.shape[0], np.uint64)
    for rows in row_blocks(X, BLOCK):
        part: Any = between(X, rows.start, rows.stop)
        with np.errstate(over="ignore"):
            if isinstance(part, np.ndarray):
                numbers = np.arange(X.shape[1]) if columns is None else columns
                sums[rows] = of(part + np.float32(0), numbers).sum(axis=1, dtype=np.uint64)  # -0.0 + 0.0 = 0.0
            else:
                entries = of(part.data, part.indices if columns is None else columns[part.indices])
                ends = np.concatenate([np.zeros(1, np.uint64), np.cumsum(entries, dtype=np.uint64)])
                sums[rows] = ends[part.indptr[1:]] - ends[part.indptr[:-1]]
    return sums


def _mixed(values: NDArray[np.float32], columns: NDArray[Any]) -> Hashes:
    """Hashes of values with their columns, 0 for zeros."""
    bits = values.view(np.uint32) | (columns.astype(np.uint64) << np.uint64(32))
    return np.where(values != 0, hashed(bits, 0), np.uint64(0))


def digest(rows: Hashes, y: NDArray[np.float64], first: int = 0) -> int:
    """Sum modulo 2^64 of hashes of rows with these `contents`, with their labels, and their numbers from `first` on.

    The digests of blocks add up to that of the whole.
    """
    with np.errstate(over="ignore"):
        total = rows + hashed((y + 0.0).view(np.uint64), 0) + hashed(np.arange(first, first + len(y)), 0)
    return int(hashed(total, 0).sum(dtype=np.uint64))


def _odd(columns: NDArray[Any]) -> Hashes:
    """Odd factor for each column."""
    return ((columns.astype(np.uint64) + np.uint64(1)) * STEP) | np.uint64(1)


def named(total: int, rows: int) -> str:
    """The fingerprint of so many rows with this digest: 64 hexadecimal digits."""
    return hashlib.sha256(f"{rows} rows {total:016x}".encode()).hexdigest()
