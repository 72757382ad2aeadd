"""Rows in memory, in the form that all other modules take.

Dense rows are a C-contiguous float32 matrix. Sparse rows are a canonical `csr_array`: indices sorted and unique within
a row, no stored zeros if read from a file, float32 values, int32 indices and int64 row pointers. So there may be more
than 2^31 entries, and each takes only eight bytes. scipy shortens row pointers whenever they fit into int32: pass what
it returns through `as_examples`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias, overload

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from localsvm.data.blocks.shift import Shift
from localsvm.errors import DataError

Dense: TypeAlias = npt.NDArray[np.float32]
Examples: TypeAlias = Dense | sp.csr_array

DENSE_DENSITY = 0.25  # share of elements that are stored, from which on a matrix is dense
DENSE_BYTES = 64 << 20  # a smaller matrix is dense in any case, ...
DENSE_COLUMNS = 1024  # ... unless it has more columns
MOST_COLUMNS = (1 << 31) - 1  # that 32 bits number
REACH = 1e16  # values up to here have squares whose sums are finite in float32


@dataclass
class Dataset:
    """Rows and their labels, as the file has them.

    Attributes
    ----------
    X, y : (n, d) float32, and (n,) float64.
    classes : what the labels stand for where they are only numbers of them, as JSON can hold it; for the model to keep.
    columns : (d,) int64, ascending: which columns of the file X has; None for all of them.
    shift : columns of X from which an origin was subtracted before rounding (data.readers.origin); None for nothing.
    weight : (n,) float64 factors on the cost and the held-out loss of the rows, None for 1.
    group : (n,) int64 numbers of the rows' groups, which stay together wherever rows are held out; None for none.
    name : of the file, for messages; "" for none.
    table : of rows that were a table, how its columns became features, as JSON can hold it; for the model to keep.
    ids : of rows that are predicted, the texts of the columns that name them; None for rows without such columns.
    """

    X: Examples
    y: npt.NDArray[np.float64]
    classes: dict[str, Any] | None = None
    columns: npt.NDArray[np.int64] | None = None
    shift: Shift | None = None
    weight: npt.NDArray[np.float64] | None = None
    group: npt.NDArray[np.int64] | None = None
    name: str = ""
    table: dict[str, Any] | None = None
    ids: list[tuple[str, ...]] | None = None


def prefers_dense(rows: int, columns: int, entries: int) -> bool:
    """True where a data set should be dense. This depends on the data alone, never on memory or jobs.

    Dense if the file stores at least a quarter of the elements: a CSR entry takes twice the memory of a dense element,
    and dense arithmetic is several times faster per element. Dense also if the matrix is small: at most 64 MiB and 1024
    columns.
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
    """CSR matrix (len(indptr) - 1, columns) made of these arrays, without a copy.

    Parameters
    ----------
    values, indices : (entries,) float32 and int32
        Indices sorted and unique within each row; this is not checked.
    indptr : (rows + 1,) int64
    columns : int
    """
    X = sp.csr_array((len(indptr) - 1, columns), dtype=np.float32)
    X.data, X.indices, X.indptr = values, indices, indptr
    X.has_canonical_format = True
    return X


def is_dense(X: Any) -> bool:
    """True where rows are dense."""
    return isinstance(X, np.ndarray)


def size_of(X: Any) -> int:
    """Bytes of the rows in memory."""
    return int(X.nbytes if not sp.issparse(X) else X.data.nbytes + X.indices.nbytes + X.indptr.nbytes)


def row_blocks(X: Any, elements: int) -> Iterator[slice]:
    """Slices of consecutive rows, each with at most `elements` stored elements, or of a single longer row."""
    rows, columns = X.shape
    step = max(1, elements // max(1, columns))
    begin = 0
    while begin < rows:
        if is_dense(X):
            end = begin + step
        else:
            full = np.searchsorted(X.indptr, X.indptr[begin] + elements, side="right") - 1
            end = max(int(full), begin + 1)
        end = min(end, begin + elements, rows)
        yield slice(begin, end)
        begin = end


def between(X: Examples, first: int, last: int) -> Examples:
    """View of rows first .. last - 1 of X. X[first:last] of scipy would convert all indices of X: see `places_of`."""
    if isinstance(X, np.ndarray):
        return X[first:last]
    pointers = X.indptr[first : last + 1]
    stored = slice(pointers[0], pointers[-1])
    return sparse_examples(X.data[stored], X.indices[stored], pointers - pointers[0], X.shape[1])


def places_of(X: sp.csr_array, rows: npt.NDArray[np.int64]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Places in X.data of some rows of a sparse X.

    scipy's X[rows] is not used: as indices and row pointers differ in type, it first converts the indices of all of X.

    Returns
    -------
    counts : (len(rows),) int64
        Number of entries of each row.
    places : (sum(counts),) int64
        Indices into X.data and X.indices, row after row.
    """
    first = X.indptr[rows]
    counts = X.indptr[rows + 1] - first
    ends = np.cumsum(counts)
    return counts, np.arange(ends[-1] if len(ends) else 0) + np.repeat(first - ends + counts, counts)


@overload
def rows_of(X: Dense, rows: npt.NDArray[np.int64]) -> Dense: ...
@overload
def rows_of(X: sp.csr_array, rows: npt.NDArray[np.int64]) -> sp.csr_array: ...
def rows_of(X: Examples, rows: npt.NDArray[np.int64]) -> Examples:
    """A copy (len(rows), d) of some rows."""
    if isinstance(X, np.ndarray):
        return X[rows]
    counts, places = places_of(X, rows)
    pointers = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    return sparse_examples(X.data[places], X.indices[places], pointers, X.shape[1])


def dense_rows(X: Examples, rows: npt.NDArray[np.int64]) -> Dense:
    """A dense copy (len(rows), d) of some rows."""
    if isinstance(X, np.ndarray):
        return np.asarray(X).take(rows, axis=0)  # several times as fast as X[rows]; of a memory map an array, too
    counts, places = places_of(X, rows)
    out = np.zeros((len(rows), X.shape[1]), np.float32)
    out[np.repeat(np.arange(len(rows)), counts), X.indices[places]] = X.data[places]
    return out


def densify(X: sp.csr_array, rows: slice, out: Dense) -> None:
    """Write rows of a sparse X into `out`: all its elements, zeros included. `out` may have more columns than X."""
    bounds = X.indptr[rows.start : rows.stop + 1]
    stored = slice(bounds[0], bounds[-1])
    out[:] = 0
    out[np.repeat(np.arange(len(out)), np.diff(bounds)), X.indices[stored]] = X.data[stored]


def thinned(X: Examples) -> Examples:
    """X as solvers of linear problems want it: sparse if it holds mostly zeros, however small it is."""
    if isinstance(X, np.ndarray):
        return X if np.count_nonzero(X) >= DENSE_DENSITY * X.size else canonical(sp.csr_array(X))
    kept = X.indices.dtype == np.int32 and X.indptr.dtype == np.int64  # slices made by scipy have other types
    return X if kept else canonical(X)


def out_of_reach(X: Examples) -> bool:
    """True where squared distances of these rows may overflow, or a value is no number."""
    values = X if isinstance(X, np.ndarray) else X.data
    return bool(values.size) and not (values.max() <= REACH and values.min() >= -REACH)  # NaN reaches both


def within_reach(X: Examples) -> tuple[Examples, npt.NDArray[np.bool_] | None]:
    """Rows for work that asks for distances alone: rows too far for float32 are moved towards the origin along a line.

    To all rows that are not as far, a moved row is as before: at a distance beyond all others.

    Returns
    -------
    X : itself where all rows are within reach.
    lost : (n,) bool, the rows that hold NaN, which are 0 now; None where none can.
    """
    if not out_of_reach(X):
        return X, None
    n, columns = X.shape
    if isinstance(X, np.ndarray):
        values, owner = X.astype(np.float64).ravel(), np.repeat(np.arange(n), columns)
    else:
        values, owner = X.data.astype(np.float64), np.repeat(np.arange(n), np.diff(X.indptr))
    largest = np.zeros(n)
    with np.errstate(invalid="ignore"):
        np.maximum.at(largest, owner, np.abs(values))  # NaN where a row has one
    lost, infinite = np.isnan(largest), np.isinf(largest)[owner]
    values[lost[owner]] = 0.0
    values[infinite] = np.where(np.isinf(values[infinite]), np.sign(values[infinite]), 0.0)  # nothing else matters
    factor = np.where(np.isinf(largest), REACH, np.minimum(1.0, REACH / np.maximum(largest, 1.0)))
    factor[lost] = 0.0
    moved = (values * factor[owner]).astype(np.float32)
    if isinstance(X, np.ndarray):
        return moved.reshape(X.shape), lost
    return sparse_examples(moved, X.indices, X.indptr, columns), lost


def as_examples(X: Any) -> Examples:
    """X as Examples, converted and copied only as far as needed. The argument is never changed.

    Parameters
    ----------
    X : two-dimensional array or scipy sparse matrix of finite numbers

    Raises
    ------
    DataError
        X is not two-dimensional, or holds NaN, infinities or values beyond float32.
    """
    X = canonical(X)
    check_float32(X)
    return X


def check_float32(X: Any) -> None:
    """Raise DataError, with the place, where a matrix (n, d) or CSR array holds what is not finite as float32."""
    dense = isinstance(X, np.ndarray)
    values = X if dense else X.data
    if not values.size or np.isfinite(_float32([values.min(), values.max()])).all():  # NaN reaches both
        return
    first = np.argwhere(~np.isfinite(_float32(values)))[0]
    row, column = first if dense else (np.searchsorted(X.indptr, first[0], "right") - 1, X.indices[first[0]])
    raise DataError(
        f"the examples hold NaN, infinities or values beyond float32, the first in row {row}, column {column} from 0; "
        "replace them"
    )


def canonical(X: Any) -> Examples:
    """Convert X as `as_examples` does, but let values pass that are not finite: scaled rows can have some."""
    if not sp.issparse(X):
        return np.ascontiguousarray(_matrix(X))
    X = sp.csr_array(X)
    if X.shape[1] > MOST_COLUMNS:
        raise DataError(
            f"the examples have {X.shape[1]} columns; at most {MOST_COLUMNS} can be used, so leave some out"
        )
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    indices = X.indices.astype(np.int32, copy=False)
    return sparse_examples(_float32(X.data), indices, X.indptr.astype(np.int64, copy=False), X.shape[1])


def _matrix(X: Any) -> Dense:
    X = np.asarray(X)
    if X.ndim != 2:
        raise DataError(f"expected a matrix (rows, features), found an array of shape {X.shape}; reshape it")
    return _float32(X)


def _float32(values: Any) -> Dense:
    with np.errstate(over="ignore"):
        return np.asarray(values, dtype=np.float32)
