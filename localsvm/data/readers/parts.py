"""Rows of a stream: parsed piece by piece into the smaller of dense and CSR, and merged at the end.

Each parsed piece is freed as soon as it is copied.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from localsvm.data.blocks.dataset import Dense, Examples, densify, size_of, sparse_examples
from localsvm.data.blocks.shift import Shift
from localsvm.data.readers.origin import from_origin
from localsvm.data.readers.pieces import Counts, TextPiece


@dataclass
class ParsedPiece:
    """The rows of one piece: X (n, d), labels y (n,) and counts. X may have fewer columns than the whole."""

    X: Examples
    y: npt.NDArray[np.float64]
    counts: Counts

    @property
    def nbytes(self) -> int:
        """Bytes of the rows and labels."""
        return size_of(self.X) + self.y.nbytes


def parse(piece: TextPiece, n_features: int | None, dense: bool | None, shift: Shift | None = None) -> ParsedPiece:
    """Parse one piece of a file.

    Parameters
    ----------
    piece : TextPiece
    n_features : int or None
        Columns of X; None for as many as this piece needs.
    dense : bool or None
        Dense or CSR; None for what takes less memory.
    shift : Shift or None
        Columns that are read from their origin.

    Raises
    ------
    DataError
        There is a mistake in the text.
    """
    counts = piece.count()
    columns = counts.width if n_features is None else n_features
    if shift is not None:
        columns = max(columns, int(shift.columns[-1]) + 1)
    if dense is None:
        dense = 2 * counts.entries >= counts.rows * columns
    y = np.empty(counts.rows)
    if counts.rows == 0:
        return ParsedPiece(np.empty((0, columns), np.float32), y, counts)
    X = (_dense if dense else _sparse)(piece, counts, columns, y)
    return ParsedPiece(X if shift is None else from_origin(X, piece, shift), y, counts)


def _dense(piece: TextPiece, counts: Counts, columns: int, y: npt.NDArray[np.float64]) -> Examples:
    X = np.empty((counts.rows, columns), np.float32)
    piece.read_dense(X, y)
    return X


def _sparse(piece: TextPiece, counts: Counts, columns: int, y: npt.NDArray[np.float64]) -> Examples:
    values, indices = np.empty(counts.entries, np.float32), np.empty(counts.entries, np.int32)
    indptr = np.zeros(counts.rows + 1, np.int64)
    kept = piece.read_sparse(values, indices, indptr[1:], y, columns)
    close_gaps((values, indices), np.zeros(1, np.int64), [kept])
    return sparse_examples(values, indices, np.cumsum(indptr, out=indptr), columns)


def close_gaps(arrays: tuple[npt.NDArray[Any], ...], begins: npt.NDArray[np.int64], kept: list[int]) -> None:
    """Keep kept[i] elements from begins[i] on, for each i, and move them together in place; shortens the arrays."""
    end = 0
    for begin, length in zip(begins.tolist(), kept, strict=True):
        if end != begin:
            for array in arrays:
                array[end : end + length] = array[begin : begin + length]
        end += length
    for array in arrays:
        array.resize(end, refcheck=False)


def merge_dense(parts: list[ParsedPiece], X: Dense) -> Dense:
    """Copy the rows of all parts into X (n, d), which they fill exactly; empties the list."""
    begin = 0
    parts.reverse()
    while parts:
        part = parts.pop().X
        rows, columns = part.shape
        target = X[begin : begin + rows]
        if isinstance(part, np.ndarray):
            target[:, :columns], target[:, columns:] = part, 0
        else:
            densify(part, slice(0, rows), target)
        begin += rows
    return X


def merge_sparse(parts: list[ParsedPiece], columns: int) -> Examples:
    """All rows of the parts as one CSR matrix of `columns` columns; empties the list."""
    rows = [part.X.shape[0] for part in parts]
    stored = [_stored(part.X) for part in parts]
    values, indices = np.empty(sum(stored), np.float32), np.empty(sum(stored), np.int32)
    indptr = np.zeros(sum(rows) + 1, np.int64)
    parts.reverse()
    begin = row = 0
    for count, length in zip(rows, stored, strict=True):
        at, pointers_at = slice(begin, begin + length), slice(row + 1, row + 1 + count)
        indptr[pointers_at], indices[at], values[at] = _entries(parts.pop().X)
        begin, row = at.stop, row + count
    return sparse_examples(values, indices, np.cumsum(indptr, out=indptr), columns)


def _stored(X: Examples) -> int:
    """Number of elements that are not zero, or are stored."""
    return int(np.count_nonzero(X) if isinstance(X, np.ndarray) else X.nnz)


def _entries(X: Examples) -> tuple[Any, Any, Any]:
    """Number of entries of each row, their columns and their values."""
    if not isinstance(X, np.ndarray):
        return np.diff(X.indptr), X.indices, X.data
    where, columns = np.nonzero(X)
    return np.bincount(where, minlength=len(X)), columns, X[where, columns]
