"""Rows in scratch files, for data larger than memory: read some at a time, never mapped as a whole.

A scratch file has no name in its folder, so it is gone with the process that made it, even if that is killed. Other
processes open it as they map shared memory.
"""

from __future__ import annotations

import errno
import os
import tempfile
import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from localsvm.data.dataset import Examples, row_blocks, rows_of, size_of, sparse_examples
from localsvm.data.shared import Handle, Rows, SharedArray
from localsvm.errors import RunError
from localsvm.memory import shown

WINDOW = 1 << 20  # elements that are read or worked on at once
BUCKET_BYTES = 1 << 22  # of rows that are put in order in memory
GAP_BYTES = 1 << 15  # between two rows, up to which reading on is faster than reading anew


class FileView:
    """An array (rows, *tail) in a file, of which slices of rows are read.

    file : its descriptor, which is closed with this object.
    """

    def __init__(self, file: int, dtype: Any, tail: tuple[int, ...], rows: int) -> None:
        self._file, self.dtype, self.tail, self.rows = file, np.dtype(dtype), tail, rows
        self._row = int(np.prod(tail, dtype=np.int64)) * self.dtype.itemsize

    def __del__(self) -> None:
        if getattr(self, "_file", None) is not None:
            os.close(self._file)

    @property
    def shape(self) -> tuple[int, ...]:
        """(rows, *tail)."""
        return (self.rows, *self.tail)

    def __len__(self) -> int:
        return self.rows

    def __getitem__(self, part: slice) -> NDArray[Any]:
        first, last, _ = part.indices(self.rows)
        out = np.empty((max(0, last - first), *self.tail), self.dtype)
        left, at = memoryview(out.reshape(-1).view(np.uint8).data), first * self._row
        while left:
            done = os.preadv(self._file, [left], at)
            if not done:
                raise RunError("a scratch file has lost its rows; train again")
            left, at = left[done:], at + done
        return out


class FileArray(FileView):
    """A new array in a scratch file of a folder, which grows. RunError where the disk is full."""

    def __init__(self, folder: str, dtype: Any, tail: tuple[int, ...] = ()) -> None:
        try:
            with tempfile.TemporaryFile(dir=folder) as file:
                super().__init__(os.dup(file.fileno()), dtype, tail, 0)
        except OSError as error:
            raise _no_room(folder, error) from error
        self._folder, self._name = folder, uuid.uuid4().hex

    def append(self, values: NDArray[Any]) -> None:
        """Write rows behind the others."""
        self.write(self.rows, values)

    def write(self, at: int, values: NDArray[Any]) -> None:
        """Write rows from this place on."""
        left = memoryview(np.ascontiguousarray(values, self.dtype).reshape(-1).view(np.uint8).data)
        self.rows, place = max(self.rows, at + len(values)), at * self._row
        try:
            while left:
                done = os.pwrite(self._file, left, place)
                left, place = left[done:], place + done
        except OSError as error:
            raise _no_room(self._folder, error) from error

    def handle(self) -> Handle:
        """What another process needs to read the array; valid while this object lives."""
        return Handle(f"/proc/{os.getpid()}/fd/{self._file}", self._name, self.shape, self.dtype.str)


def _no_room(folder: str, error: OSError) -> RunError:
    full = error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
    remedy = "free some space, or name another folder (TMPDIR)" if full else "name another folder (TMPDIR)"
    return RunError(f"{folder}: no scratch file there: {error.strerror}; {remedy}")


@lru_cache(maxsize=16)
def _opened(handle: Handle) -> FileView:
    """For a process that did not make the file."""
    return FileView(os.open(handle.path, os.O_RDONLY | os.O_CLOEXEC), handle.dtype, handle.shape[1:], handle.shape[0])


class RowsOnDisk:
    """Rows (n, d), dense or CSR, of which some are read at a time.

    Attributes
    ----------
    columns : d.
    values : (n, d) float32, None for sparse rows.
    data, indices : of sparse rows, None for dense ones; their row pointers are in memory.
    """

    def __init__(
        self, columns: int, values: FileView | None, data: FileView | None = None, indices: FileView | None = None,
        indptr: NDArray[np.int64] | None = None,
    ) -> None:  # fmt: skip
        self.columns, self.values, self.data, self.indices, self._indptr = columns, values, data, indices, indptr

    @property
    def dense(self) -> bool:
        return self.values is not None

    @property
    def shape(self) -> tuple[int, int]:
        rows = len(self.values) if self.values is not None else len(self.indptr) - 1
        return rows, self.columns

    @property
    def indptr(self) -> NDArray[np.int64]:
        """Row pointers of sparse rows."""
        assert self._indptr is not None
        return self._indptr

    @property
    def nnz(self) -> int:
        """Entries of sparse rows."""
        return int(self.indptr[-1])

    @property
    def total_bytes(self) -> int:
        """Of the rows."""
        return 4 * self.shape[0] * self.columns if self.dense else 8 * self.nnz + 8 * self.shape[0]

    @property
    def nbytes(self) -> int:
        """Bytes in memory."""
        return 0 if self.dense else int(self.indptr.nbytes)

    def __getitem__(self, rows: slice) -> Examples:
        return self.between(*rows.indices(self.shape[0])[:2])

    def between(self, first: int, last: int) -> Examples:
        """Rows first .. last - 1."""
        if self.values is not None:
            return self.values[first:last]
        assert self.data is not None and self.indices is not None
        pointers = self.indptr[first : last + 1]
        stored = slice(int(pointers[0]), int(pointers[-1]))
        return sparse_examples(self.data[stored], self.indices[stored], pointers - pointers[0], self.columns)

    def take(self, rows: NDArray[np.int64]) -> Examples:
        """Any rows, in their order."""
        if np.any(np.diff(rows) < 0):
            order = np.argsort(rows, kind="stable")
            back = np.empty_like(order)
            back[order] = np.arange(len(order))
            return rows_of(self.take(rows[order]), back)
        parts = [rows_of(self.between(first, last), rows[own] - first) for own, first, last in self._stretches(rows)]
        return stacked(parts, self.columns, self.dense)

    def blocks(self) -> Iterator[tuple[int, Examples]]:
        """All rows, some at a time, with the number of the first."""
        for part in row_blocks(self, WINDOW):
            yield part.start, self.between(part.start, part.stop)

    def _stretches(self, rows: NDArray[np.int64]) -> Iterator[tuple[slice, int, int]]:
        """Ascending rows in parts that are read at once: which, from which row, to which."""
        row_bytes = max(1, self.total_bytes // max(1, self.shape[0]))
        most, gap = max(1, 4 * WINDOW // row_bytes), max(1, GAP_BYTES // row_bytes)
        breaks = np.concatenate([[0], np.flatnonzero(np.diff(rows) > gap) + 1, [len(rows)]]).tolist()
        for begin, end in pairwise(breaks):
            while begin < end:
                first = int(rows[begin])
                stop = begin + int(np.searchsorted(rows[begin:end], first + most))
                yield slice(begin, stop), first, int(rows[stop - 1]) + 1
                begin = stop


def stacked(parts: Sequence[Any], columns: int, dense: bool) -> Examples:
    """Rows one after another."""
    if dense:
        return np.concatenate([np.empty((0, columns), np.float32), *parts])
    entries = [np.concatenate([np.empty(0, np.int64), *(np.diff(part.indptr) for part in parts)])]
    indptr = np.concatenate([[0], np.cumsum(entries[0])]).astype(np.int64)
    data = np.concatenate([np.empty(0, np.float32), *(part.data for part in parts)])
    indices = np.concatenate([np.empty(0, np.int32), *(part.indices for part in parts)])
    return sparse_examples(data, indices, indptr, columns)


class Spilled(RowsOnDisk):
    """New rows in scratch files of a folder, to be appended to."""

    def __init__(self, folder: str, columns: int, dense: bool) -> None:
        self.folder, self._ends = folder, [np.zeros(1, np.int64)]
        if dense:
            super().__init__(columns, FileArray(folder, np.float32, (columns,)))
        else:
            super().__init__(columns, None, FileArray(folder, np.float32), FileArray(folder, np.int32), self._ends[0])

    def append(self, X: Examples) -> None:
        """Rows behind the others, of the same columns and kind."""
        if isinstance(X, np.ndarray):
            _file(self.values).append(X)
            return
        _file(self.data).append(X.data)
        _file(self.indices).append(X.indices)
        self._ends.append(X.indptr[1:] - X.indptr[0] + self._ends[-1][-1])

    @property
    def indptr(self) -> NDArray[np.int64]:
        if len(self._ends) > 1:
            self._ends = [np.concatenate(self._ends)]
        return self._ends[0]

    def mapped(self, work: Callable[[Examples], Examples]) -> Spilled:
        """What `work` makes of all rows, some at a time."""
        made: Spilled | None = None
        for _, X in self.blocks():
            X = work(X)
            made = made or Spilled(self.folder, X.shape[1], isinstance(X, np.ndarray))
            made.append(X)
        assert made is not None, "there are rows"
        return made

    def kept(self, rows: NDArray[np.int64]) -> Spilled:
        """Some rows, ascending."""
        made = Spilled(self.folder, self.columns, self.dense)
        for first, X in self.blocks():
            own = rows[slice(*np.searchsorted(rows, (first, first + X.shape[0])))]
            made.append(rows_of(X, own - first))
        return made

    def ordered(self, rows: NDArray[np.int64]) -> Spilled:
        """Some rows, all of them different, in this order: by buckets, each of which is then ordered in memory."""
        n, made = len(rows), Spilled(self.folder, self.columns, self.dense)
        step = max(1, BUCKET_BYTES // max(1, self.total_bytes // max(1, self.shape[0])))
        starts = np.arange(0, n, step)
        bucket = np.full(self.shape[0], -1, np.int32)
        bucket[rows] = np.repeat(np.arange(len(starts)), np.diff(np.append(starts, n)))
        heaps = self._heaps(bucket, starts, rows)
        for first in starts.tolist():
            own = rows[first : first + step]
            arrived = np.argsort(own, kind="stable")
            back = np.empty_like(arrived)
            back[arrived] = np.arange(len(own))
            made.append(rows_of(heaps.between(first, first + len(own)), back))
        return made

    def _heaps(self, bucket: NDArray[np.int32], starts: NDArray[np.int64], rows: NDArray[np.int64]) -> RowsOnDisk:
        """The rows bucket by bucket, in each in the order in which they are here."""
        heaps, filled = Spilled(self.folder, self.columns, self.dense), starts.astype(np.int64)
        if not self.dense:
            lengths = np.diff(self.indptr)
            order = np.concatenate([np.sort(part) for part in np.split(rows, starts[1:])])
            heaps._ends = [np.concatenate([[0], np.cumsum(lengths[order])]).astype(np.int64)]
            filled = heaps._ends[0][starts]
        for first, X in self.blocks():
            mine = bucket[first : first + X.shape[0]]
            order = np.argsort(mine, kind="stable")
            ends = np.searchsorted(mine[order], np.arange(len(starts) + 1))
            for b in np.unique(mine[mine >= 0]).tolist():
                part = rows_of(X, order[ends[b] : ends[b + 1]])
                filled[b] += heaps._put(int(filled[b]), part)
        return heaps

    def _put(self, at: int, X: Examples) -> int:
        """Write rows at a place: of the rows, or of the entries of sparse ones. How many places they take."""
        if isinstance(X, np.ndarray):
            _file(self.values).write(at, X)
            return len(X)
        _file(self.data).write(at, X.data)
        _file(self.indices).write(at, X.indices)
        return int(X.nnz)


def _file(array: FileView | None) -> FileArray:
    assert isinstance(array, FileArray)
    return array


class SpilledExamples:
    """Rows in scratch files, in the order of cells and folds; to workers as `shared.SharedExamples`."""

    def __init__(self, X: Spilled, rows: NDArray[np.int64]) -> None:
        self._rows, self.features = X.ordered(rows), X.columns
        self._pointers = None if self.dense else SharedArray.copy(self._rows.indptr)

    @property
    def dense(self) -> bool:
        """Whether the rows are dense."""
        return self._rows.dense

    @property
    def nbytes(self) -> int:
        """Bytes in memory."""
        return self._rows.nbytes * 2

    def widest(self, cells: Sequence[Rows]) -> int:
        """The largest number of features that occur in one cell, as an upper bound."""
        return int(self.features if self.dense else min(self.features, max(self._entries(cell) for cell in cells)))

    def copied_bytes(self, cells: Sequence[Rows]) -> int:
        """The most memory that a worker needs for the rows of one of these cells."""
        if self.dense:
            return 4 * self.features * max(_count(cell) for cell in cells)
        return 8 * max(self._entries(cell) + _count(cell) for cell in cells)

    def most_entries(self, cells: Sequence[Rows]) -> int:
        """The most values other than 0 in one cell; of dense rows, those of the largest."""
        if not self.dense:
            return max(self._entries(cell) for cell in cells)
        return int(np.count_nonzero(self.handle().rows(max(cells, key=_count))))

    def _entries(self, rows: Rows) -> int:
        pointers = self._rows.indptr
        if isinstance(rows, slice):
            return int(pointers[rows.stop] - pointers[rows.start])
        return int((pointers[rows + 1] - pointers[rows]).sum())

    def handle(self) -> SpilledHandle:
        """What a worker needs to read the rows."""
        rows = self._rows
        parts = (rows.values,) if self.dense else (rows.data, rows.indices)
        pointers = None if self._pointers is None else self._pointers.handle()
        return SpilledHandle(tuple(_file(part).handle() for part in parts), pointers, self.features)


def _count(rows: Rows) -> int:
    return rows.stop - rows.start if isinstance(rows, slice) else len(rows)


@dataclass(frozen=True)
class SpilledHandle:
    """Rows in scratch files as a worker sees them."""

    parts: tuple[Handle, ...]
    pointers: Handle | None
    features: int

    def rows(self, rows: Rows) -> Examples:
        """Some rows, read anew."""
        files = [_opened(part) for part in self.parts]
        if self.pointers is None:
            found = RowsOnDisk(self.features, files[0])
        else:
            found = RowsOnDisk(self.features, None, files[0], files[1], self.pointers.open())
        return found.between(rows.start, rows.stop) if isinstance(rows, slice) else found.take(rows)


def through(X: Any, work: Callable[[Examples], Examples]) -> Any:
    """What work, which makes each row of itself alone, makes of rows: of those on a disk some at a time."""
    return X.mapped(work) if isinstance(X, Spilled) else work(X)


def full_size(X: Examples | RowsOnDisk) -> int:
    """Bytes of rows, in memory or not."""
    return X.total_bytes if isinstance(X, RowsOnDisk) else size_of(X)


def check_room(folder: str, size: int) -> None:
    """RunError where a folder has no room for scratch files of so many bytes."""
    try:
        free = os.statvfs(folder)
    except OSError as error:
        raise _no_room(folder, error) from error
    left = free.f_bavail * free.f_frsize
    if size > left:
        raise RunError(
            f"{folder}: scratch files of {shown(size)} are needed, and {shown(left)} are free; free some space, or "
            "name another folder (TMPDIR)"
        )
