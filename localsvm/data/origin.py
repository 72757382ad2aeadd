"""Columns far from 0 against their spread, such as Unix time stamps, whose digits float32 would lose: they are read
from an origin, which is subtracted in float64 before rounding. For methods to which only differences count.

Whether a column has an origin is decided by the first rows, which come before all others in any kind of file, whoever
reads how much at once: where rounding moves a value by more than a share of the column's range. The origin is the value
of the first row.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from localsvm.data.dataset import Dense
from localsvm.data.pieces import Piece, as_one

HEAD_ROWS = 1000  # rows that decide
LOST = 2.0**-18  # share of a column's range: kernels in float32 are no finer; 0 lies 64 ranges or more away then


@dataclass(frozen=True)
class Shift:
    """Some columns and their origins.

    Attributes
    ----------
    columns : (k,) int64, ascending.
    origin : (k,) float64.
    """

    columns: NDArray[np.int64]
    origin: NDArray[np.float64]

    @classmethod
    def of(cls, origin: NDArray[np.float64] | None, columns: NDArray[np.int64] | None = None) -> Shift | None:
        """From the origin (d,) of all columns, None without one; columns: which they are in a file, if not 0..d-1."""
        if origin is None:
            return None
        far = np.flatnonzero(origin)
        return cls(far if columns is None else columns[far], origin[far])

    def read(self, piece: Piece, rows: int) -> Dense:
        """The columns of the rows of a piece, from their origin: (rows, k) float32."""
        return rounded(piece.pick(self.columns, rows) - self.origin)

    def settle(self, X: Dense) -> NDArray[np.float64] | None:
        """The origin (d,) of all columns of X, 0 where there is none, or None; X has its columns from their origin.

        A column that turns out to be constant gets its value back: it needs no origin.
        """
        whole = np.zeros(X.shape[1])
        for column, value in zip(self.columns.tolist(), self.origin, strict=True):
            if X[:, column].any():
                whole[column] = value
            else:
                X[:, column] = value
        return whole if whole.any() else None


def shift_of(head: NDArray[np.float64], columns: NDArray[np.int64]) -> Shift | None:
    """Which of these columns of the first rows (rows, columns) need an origin; None where none does."""
    lost = np.abs(head - rounded(head)).max(axis=0)
    far = lost > LOST * np.ptp(head, axis=0)
    return Shift(columns[far], head[0, far]) if far.any() else None


def look_ahead(pieces: Iterable[Piece], n_features: int | None) -> tuple[Shift | None, Iterator[Piece]]:
    """What the first rows say of all of them, and the same pieces."""
    source, head, rows = iter(pieces), [], 0
    for piece in source:
        head.append(piece)
        rows += piece.count().rows
        if rows >= HEAD_ROWS:
            break
    every = chain(head, source)
    if rows == 0:
        return None, every
    first = as_one(head)
    columns = _in_all_rows(first, min(rows, HEAD_ROWS), n_features)
    if not len(columns):
        return None, every
    return shift_of(first.pick(columns, min(rows, HEAD_ROWS)), columns), every


def from_array(X: NDArray[Any], shifts: bool) -> tuple[Dense, NDArray[np.float64] | None]:
    """Rows of an array (n, d) as a new float32 matrix, and the origin of its columns, by the same rule.

    shifts: whether an origin may be used.
    """
    out = rounded(X, copy=True)
    shift = None
    if shifts and X.dtype == np.float64 and len(X):
        shift = shift_of(X[:HEAD_ROWS], np.arange(X.shape[1]))
    if shift is None:
        return out, None
    out[:, shift.columns] = X[:, shift.columns] - shift.origin
    return out, shift.settle(out)


def shifted(X: NDArray[Any], origin: NDArray[np.float64] | None) -> Dense:
    """Rows of an array (n, d) from an origin, in float32."""
    return rounded(X if origin is None else np.asarray(X, np.float64) - origin)


def rounded(values: NDArray[Any], copy: bool = False) -> Dense:
    """In float32, C-order; infinite beyond its range."""
    with np.errstate(over="ignore"):
        return np.array(values, np.float32, order="C", copy=True if copy else None)


def _in_all_rows(head: Piece, rows: int, n_features: int | None) -> NDArray[np.int64]:
    """The columns that have a value in each of the first rows, no others being candidates."""
    counts = head.count()
    values, indices = np.empty(counts.entries, np.float32), np.empty(counts.entries, np.int32)
    lengths = np.empty(counts.rows, np.int64)
    head.read_sparse(
        values, indices, lengths, np.empty(counts.rows), counts.width if n_features is None else n_features
    )
    columns, found = np.unique(indices[: lengths[:rows].sum()], return_counts=True)
    return np.asarray(columns[found == rows], np.int64)
