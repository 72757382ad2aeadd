"""The columns that occur: those in which some row is not 0.

Training keeps them alone, so that its cost follows the values that are there, and not the largest index.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from localsvm.data.blocks.dataset import (
    Dense,
    Examples,
    densify,
    row_blocks,
    sparse_examples,
)

BLOCK = 1 << 20  # elements or entries worked on at once: bounds temporary arrays
TABLE_COLUMNS = 8  # a table of all columns is made where there are at most so many an entry; else entries are sorted

Columns = NDArray[np.int64]


def occurring(X: Examples) -> Columns:
    """The columns (occurring,) in which some row is not 0, ascending."""
    if not isinstance(X, np.ndarray):
        return _distinct(X.indices if X.data.all() else X.indices[X.data != 0], X.shape[1])
    missing = np.arange(X.shape[1])
    for rows in row_blocks(X, BLOCK):
        missing = missing[~X[rows][:, missing].any(axis=0)]
        if not len(missing):  # in most data this is so after the first block
            break
    return np.delete(np.arange(X.shape[1]), missing)


def scratch_bytes(X: Examples) -> int:
    """Bytes that leaving columns out needs beside X: new indices and tables of the columns, or the entries sorted."""
    if isinstance(X, np.ndarray):
        return 0
    entries, width = X.nnz, X.shape[1]
    table = 5 * width + 8 * min(entries, width)
    return int(4 * entries + (table if width <= TABLE_COLUMNS * entries else 20 * entries))


def keep_columns(X: Examples, columns: Columns, *, in_place: bool = False) -> Examples:
    """Some columns of X (n, d), ascending, as (n, len(columns)). in_place: write them into the memory of a dense X."""
    if not isinstance(X, np.ndarray):
        return _keep_sparse(X, columns)
    if not in_place:
        return np.take(X, columns, axis=1)
    flat, kept = X.reshape(-1), len(columns)
    for rows in row_blocks(X, BLOCK):  # a row moves towards the beginning, over rows that were moved before
        part = np.take(X[rows], columns, axis=1)
        flat[rows.start * kept :][: part.size] = part.reshape(-1)
    return flat[: len(X) * kept].reshape(len(X), kept)


def put_columns(X: Examples, columns: Columns, values: NDArray[np.float32]) -> Examples:
    """X (n, d) with other values (n, len(columns)) in some columns, ascending; in place where X is dense."""
    if isinstance(X, np.ndarray):
        X[:, columns] = values
        return X
    others, (row, place) = np.flatnonzero(_places(X.indices, columns) < 0), np.nonzero(values)
    rows = np.concatenate([np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))[others], row])
    indices = np.concatenate([X.indices[others], columns[place].astype(np.int32)])
    order = np.lexsort((indices, rows))
    indptr = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=X.shape[0]))]).astype(np.int64)
    data = np.concatenate([X.data[others], values[row, place]])
    return sparse_examples(data[order], indices[order], indptr, X.shape[1])


def dense_copy(X: Examples) -> Dense:
    """A sparse X as a dense matrix."""
    out = np.empty(X.shape, np.float32)
    for rows in row_blocks(out, BLOCK):
        densify(X, rows, out[rows])
    return out


def widened(X: Examples, width: int) -> Examples:
    """Rows with more columns, which are 0."""
    if not isinstance(X, np.ndarray):
        return sparse_examples(X.data, X.indices, X.indptr, width)
    out = np.zeros((len(X), width), np.float32)
    out[:, : X.shape[1]] = X
    return out


def _keep_sparse(X: Any, columns: Columns) -> Examples:
    new = _places(X.indices, columns)
    unknown = np.flatnonzero(new < 0)
    if not len(unknown):
        return sparse_examples(X.data, new, X.indptr, len(columns))
    indptr = X.indptr - np.searchsorted(unknown, X.indptr)
    return sparse_examples(np.delete(X.data, unknown), np.delete(new, unknown), indptr, len(columns))


def _distinct(indices: NDArray[np.int32], width: int) -> Columns:
    if width > TABLE_COLUMNS * len(indices):
        return np.unique(indices).astype(np.int64)
    table = np.zeros(width, bool)
    table[indices] = True
    return np.flatnonzero(table)


def _places(indices: NDArray[np.int32], columns: Columns) -> NDArray[np.int32]:
    """The place of each index among the columns; -1 where it is none of them."""
    width = int(columns[-1]) + 1 if len(columns) else 0
    places = np.empty(len(indices), np.int32)
    table = None
    if width <= TABLE_COLUMNS * len(indices):
        table = np.full(width + 1, -1, np.int32)  # the last is for all indices beyond
        table[columns] = np.arange(len(columns))
    for begin in range(0, len(indices), BLOCK):
        part = indices[begin : begin + BLOCK]
        if table is not None:
            places[begin : begin + BLOCK] = table[np.minimum(part, width)]
            continue
        nearest = np.minimum(np.searchsorted(columns, part), len(columns) - 1)
        places[begin : begin + BLOCK] = np.where(columns[nearest] == part, nearest, -1)
    return places
