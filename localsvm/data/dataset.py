"""Examples in memory: what the readers return and everything else takes.

Dense examples are a C-contiguous float32 matrix; sparse ones a canonical `csr_array` (indices sorted and
unique within a row, no stored zeros when read from a file) with float32 values, int32 indices and int64
row pointers, so that more than 2^31 entries fit while an entry stays at eight bytes. scipy itself
shortens row pointers whenever it can: pass its results through `as_examples`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from localsvm.errors import DataError

Dense: TypeAlias = npt.NDArray[np.float32]
Examples: TypeAlias = Dense | sp.csr_array

DENSE_DENSITY = 0.25
DENSE_BYTES = 64 << 20
DENSE_COLUMNS = 1024


@dataclass
class Dataset:
    """Examples X (n, d) and their labels y (n,), float64 as read."""

    X: Examples
    y: npt.NDArray[np.float64]


def prefers_dense(rows: int, columns: int, entries: int) -> bool:
    """Whether a data set is kept dense. Depends on the data alone, never on memory or jobs.

    Dense when at least a quarter of the elements are written in the file (a CSR entry takes twice the
    memory of a dense element, and dense arithmetic is several times faster an element), or when the dense
    matrix is small anyway: at most 64 MiB and 1024 columns.
    """
    elements = rows * columns
    small = 4 * elements <= DENSE_BYTES and columns <= DENSE_COLUMNS
    return small or entries >= DENSE_DENSITY * elements


def sparse_examples(
    values: npt.NDArray[np.float32],
    indices: npt.NDArray[np.int32],
    indptr: npt.NDArray[np.int64],
    columns: int,
) -> sp.csr_array:
    """A canonical CSR matrix (len(indptr) - 1, columns) over these arrays, sorted and unique in each row."""
    X = sp.csr_array((len(indptr) - 1, columns), dtype=np.float32)
    X.data, X.indices, X.indptr = values, indices, indptr
    X.has_canonical_format = True
    return X


def row_blocks(X: Examples, elements: int) -> Iterator[slice]:
    """Consecutive ranges of rows that hold at most so many (stored) elements each, or are a single row."""
    rows, columns = X.shape
    step = max(1, elements // max(1, columns))
    begin = 0
    while begin < rows:
        if isinstance(X, np.ndarray):
            end = begin + step
        else:
            full = np.searchsorted(X.indptr, X.indptr[begin] + elements, side="right") - 1
            end = max(int(full), begin + 1)
        end = min(end, begin + elements, rows)
        yield slice(begin, end)
        begin = end


def between(X: Examples, first: int, last: int) -> Examples:
    """Rows first .. last - 1 of X, a view. X[first:last] of scipy would convert all indices of X: see `places_of`."""
    if isinstance(X, np.ndarray):
        return X[first:last]
    pointers = X.indptr[first : last + 1]
    stored = slice(pointers[0], pointers[-1])
    return sparse_examples(X.data[stored], X.indices[stored], pointers - pointers[0], X.shape[1])


def places_of(X: sp.csr_array, rows: npt.NDArray[np.int64]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """How many entries each of the rows stores, and the places of them all in X.data.

    X[rows] of scipy would first convert all indices of X, for however few rows of it: they are of two types here.
    """
    first = X.indptr[rows]
    counts = X.indptr[rows + 1] - first
    ends = np.cumsum(counts)
    return counts, np.arange(ends[-1] if len(ends) else 0) + np.repeat(first - ends + counts, counts)


def dense_rows(X: Examples, rows: npt.NDArray[np.int64]) -> Dense:
    """A dense copy of some rows."""
    if isinstance(X, np.ndarray):
        return X[rows]
    counts, places = places_of(X, rows)
    out = np.zeros((len(rows), X.shape[1]), np.float32)
    out[np.repeat(np.arange(len(rows)), counts), X.indices[places]] = X.data[places]
    return out


def densify(X: sp.csr_array, rows: slice, out: Dense) -> None:
    """Writes rows of a sparse X into `out` (rows, at least X's columns), every element of it."""
    bounds = X.indptr[rows.start : rows.stop + 1]
    stored = slice(bounds[0], bounds[-1])
    out[:] = 0
    out[np.repeat(np.arange(len(out)), np.diff(bounds)), X.indices[stored]] = X.data[stored]


def thinned(X: Examples) -> Examples:
    """X as a solver of linear problems wants it: sparse where a dense X holds mostly zeros, whatever its size."""
    if isinstance(X, np.ndarray):
        return X if np.count_nonzero(X) >= DENSE_DENSITY * X.size else as_examples(sp.csr_array(X))
    kept = X.indices.dtype == np.int32 and X.indptr.dtype == np.int64  # scipy's slices have other types
    return X if kept else as_examples(X)


def as_examples(X: Any) -> Examples:
    """X as Examples: copied only where dtype, layout or order ask for it, and X itself is never changed.

    Args:
        X: a two-dimensional array or scipy sparse matrix of finite numbers.

    Raises:
        DataError: X is not two-dimensional, or holds NaN, infinities or values beyond float32.
    """
    if not sp.issparse(X):
        return _finite(np.ascontiguousarray(_matrix(X)))
    X = sp.csr_array(X)
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    values = _finite(_float32(X.data))
    indices = X.indices.astype(np.int32, copy=False)
    return sparse_examples(values, indices, X.indptr.astype(np.int64, copy=False), X.shape[1])


def _matrix(X: Any) -> Dense:
    X = np.asarray(X)
    if X.ndim != 2:
        raise DataError(f"expected a matrix (rows, features), found an array of shape {X.shape}; reshape it")
    return _float32(X)


def _float32(values: Any) -> Dense:
    with np.errstate(over="ignore"):
        return np.asarray(values, dtype=np.float32)


def _finite(values: Dense) -> Dense:
    if values.size and not (np.isfinite(values.min()) and np.isfinite(values.max())):  # NaN reaches both
        raise DataError("the examples hold NaN, infinities or values beyond float32; replace them")
    return values
