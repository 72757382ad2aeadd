"""Columns far from 0 against their spread, such as Unix time stamps, whose digits float32 would lose.

They are read from an origin, which is subtracted in float64 before rounding, for methods to which only differences
count.

The first rows decide whether a column has an origin: it has one where rounding moves a value by more than a share of
the column's range. These rows come before all others in any kind of file, whoever reads how much at once. The origin is
the value of the first row.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from localsvm.data.blocks.columns import put_columns
from localsvm.data.blocks.dataset import Dense, Examples, canonical
from localsvm.data.blocks.shift import Shift
from localsvm.data.readers.pieces import TextPiece, as_one

HEAD_ROWS = 1000  # rows that decide
LOST = 2.0**-18  # share of a column's range: kernels in float32 are no finer; 0 lies 64 ranges or more away then


def from_origin(X: Examples, piece: TextPiece, shift: Shift) -> Examples:
    """The rows X of a piece, in float32, with some columns read from their origin; in place where X is dense."""
    return put_columns(X, shift.columns, rounded(piece.pick(shift.columns, X.shape[0]) - shift.origin))


def settle(X: Examples, shift: Shift | None) -> tuple[Examples, Shift | None]:
    """All rows, which have columns from their origin, and the shift of those columns that stay so.

    A column that turns out to be constant gets its value back: it needs no origin.
    """
    if shift is None:
        return X, None
    if isinstance(X, np.ndarray):
        varies = np.asarray(X[:, shift.columns].any(axis=0))
    else:
        varies = np.isin(shift.columns, X.indices)
    if not varies.all():
        constant = rounded(shift.origin[~varies])
        X = put_columns(X, shift.columns[~varies], np.broadcast_to(constant, (X.shape[0], len(constant))))
    return X, shift.where(varies)


def shift_of(head: NDArray[np.float64], columns: NDArray[np.int64]) -> Shift | None:
    """Shift of those of these columns that need an origin, by the first rows (rows, columns); None where none does."""
    lost = np.abs(head - rounded(head)).max(axis=0)
    far = lost > LOST * np.ptp(head, axis=0)
    return Shift(columns[far], head[0, far]) if far.any() else None


def look_ahead(pieces: Iterable[TextPiece], n_features: int | None) -> tuple[Shift | None, Iterator[TextPiece]]:
    """Shift that the first rows decide for all of them, and an iterator over the same pieces."""
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


def from_array(X: Any, shifts: bool) -> tuple[Examples, Shift | None]:
    """New rows in float32 of X (n, d), dense or of scipy, and the shift of the columns that are from an origin.

    The rule is that for files. shifts: whether an origin may be used.
    """
    shift = None
    if shifts and X.dtype == np.float64 and X.shape[0]:
        head = X[:HEAD_ROWS]
        columns = _stored_in_all_rows(head) if sparse.issparse(X) else np.arange(X.shape[1])
        shift = shift_of(_wide(head, columns), columns) if len(columns) else None
    return settle(shifted(X, shift, copy=True), shift)


def shifted(X: Any, shift: Shift | None, copy: bool = False) -> Examples:
    """Rows (n, d), dense or of scipy, in float32 and some columns from their origin. copy: copy them in any case."""
    if sparse.issparse(X):
        out: Examples = canonical(sparse.csr_array(X, copy=copy))
    else:
        out = rounded(X, copy=copy or shift is not None)
    if shift is None:
        return out
    return put_columns(out, shift.columns, rounded(_wide(X, shift.columns) - shift.origin))


def _wide(X: Any, columns: NDArray[np.int64]) -> NDArray[np.float64]:
    """Some columns (n, k) of rows, dense and in float64."""
    part = sparse.csr_array(X)[:, columns].toarray() if sparse.issparse(X) else X[:, columns]
    return np.asarray(part, np.float64)


def _stored_in_all_rows(X: Any) -> NDArray[np.int64]:
    """The columns without a 0."""
    head = sparse.csr_array(X, copy=True)
    head.sum_duplicates()
    columns, occurrences = np.unique(head.indices[head.data != 0], return_counts=True)
    return np.asarray(columns[occurrences == head.shape[0]], np.int64)


def from_zero(X: Examples, shift: Shift) -> Examples:
    """Rows as they were before `shifted`, as far as float32 holds them; in place where X is dense."""
    return put_columns(X, shift.columns, rounded(_wide(X, shift.columns) + shift.origin))


def rounded(values: NDArray[Any], copy: bool = False) -> Dense:
    """Values in float32, C-order; infinite beyond its range. copy: copy them in any case."""
    with np.errstate(over="ignore"):
        return np.array(values, np.float32, order="C", copy=True if copy else None)


def _in_all_rows(head: TextPiece, rows: int, n_features: int | None) -> NDArray[np.int64]:
    """The columns that have a value in each of the first rows: only these may get an origin."""
    counts = head.count()
    values, indices = np.empty(counts.entries, np.float32), np.empty(counts.entries, np.int32)
    lengths = np.empty(counts.rows, np.int64)
    head.read_sparse(
        values, indices, lengths, np.empty(counts.rows), counts.width if n_features is None else n_features
    )
    columns, occurrences = np.unique(indices[: lengths[:rows].sum()], return_counts=True)
    return np.asarray(columns[occurrences == rows], np.int64)
