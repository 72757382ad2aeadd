"""Arrays in anonymous shared memory: workers map them, so that no rows are sent through a pipe. Linux only.

The memory has no name in any file system, so it is freed with the process that made it, even if that is killed.
"""

from __future__ import annotations

import mmap
import os
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any
from weakref import WeakValueDictionary

import numpy as np
from numpy.typing import NDArray

from localsvm.data.blocks.dataset import Examples, between, places_of, sparse_examples
from localsvm.errors import RunError
from localsvm.threads import ALONE, Threads

_OF_THIS_PROCESS: WeakValueDictionary[str, SharedArray] = WeakValueDictionary()  # by their random names


class SharedArray:
    """A new array in shared memory, writable in the process that made it, read-only in others.

    Attributes
    ----------
    array : ndarray
        The array itself.
    """

    def __init__(self, shape: tuple[int, ...], dtype: Any) -> None:
        self.shape, self.dtype = shape, np.dtype(dtype)
        size = max(1, int(np.prod(shape, dtype=np.int64)) * self.dtype.itemsize)
        self._file = os.memfd_create("localsvm")
        self._name = uuid.uuid4().hex
        try:
            os.ftruncate(self._file, size)
            buffer = mmap.mmap(self._file, size)
        except OSError as error:
            os.close(self._file)
            del self._file
            what = f"no {size / 2**20:,.1f} MiB of shared memory: {error.strerror}"
            raise RunError(f"{what}; free some, or raise the limit of the shell (ulimit -f)") from error
        self.array: NDArray[Any] = np.frombuffer(buffer, self.dtype, int(np.prod(shape, dtype=np.int64))).reshape(shape)
        _OF_THIS_PROCESS[self._name] = self

    @classmethod
    def copy(cls, source: NDArray[Any]) -> SharedArray:
        """A shared copy of an array."""
        shared = cls(source.shape, source.dtype)
        shared.array[...] = source
        return shared

    def handle(self) -> Handle:
        """Handle by which another process maps the array; valid while this object lives."""
        return Handle(f"/proc/{os.getpid()}/fd/{self._file}", self._name, self.shape, self.dtype.str)

    def __del__(self) -> None:
        if getattr(self, "_file", None) is not None:
            os.close(self._file)


@dataclass(frozen=True)
class Handle:
    """Place where a shared array can be mapped, with its shape and dtype.

    `name` is random: it distinguishes arrays that had the same file number one after the other.
    """

    path: str
    name: str
    shape: tuple[int, ...]
    dtype: str

    def open(self) -> NDArray[Any]:
        """The array, read-only. A process maps it only once, and not again if it made it."""
        owner = _OF_THIS_PROCESS.get(self.name)
        if owner is None:
            return _map(self)
        array = owner.array.view()
        array.flags.writeable = False
        return array


@lru_cache(maxsize=16)
def _map(handle: Handle) -> NDArray[Any]:
    count = int(np.prod(handle.shape, dtype=np.int64))
    with open(handle.path, "rb") as file:
        buffer = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)
    return np.frombuffer(buffer, handle.dtype, count).reshape(handle.shape)


class SharedExamples:
    """A copy of rows, dense or CSR, in shared memory."""

    def __init__(self, X: Examples, rows: NDArray[np.int64], threads: Threads = ALONE) -> None:
        """Copy the given rows of X, in that order, several threads at once."""
        if isinstance(X, np.ndarray):
            dense = SharedArray((len(rows), X.shape[1]), np.float32)

            def copy(first: int, last: int) -> None:
                np.take(X, rows[first:last], axis=0, out=dense.array[first:last], mode="clip")

            threads.strips(copy, len(rows), max(1, (1 << 22) // max(1, X.shape[1])))
            self._parts = [dense]
        else:
            ends = np.concatenate([[0], np.cumsum(np.diff(X.indptr)[rows])])
            data, indices = SharedArray((ends[-1],), np.float32), SharedArray((ends[-1],), np.int32)

            def gather(first: int, last: int) -> None:
                _, places = places_of(X, rows[first:last])
                part = slice(ends[first], ends[last])
                data.array[part], indices.array[part] = X.data[places], X.indices[places]

            threads.strips(gather, len(rows), max(1, (1 << 20) * len(rows) // max(1, int(ends[-1]))))
            self._parts = [data, indices, SharedArray.copy(ends)]
        self.features = X.shape[1]

    @property
    def dense(self) -> bool:
        """True where the rows are dense."""
        return len(self._parts) == 1

    @property
    def nbytes(self) -> int:
        """Bytes of the rows."""
        return sum(part.array.nbytes for part in self._parts)

    def widest(self, cells: Sequence[slice]) -> int:
        """The largest number of features that occur in one cell, as an upper bound."""
        if self.dense:
            return int(self.features)
        most: int = min(self.features, max(self._entries(cell) for cell in cells))
        return most

    def _entries(self, rows: slice) -> int:
        pointers = self._parts[2].array
        return int(pointers[rows.stop] - pointers[rows.start])

    def most_entries(self, cells: Sequence[slice]) -> int:
        """The most values other than 0 in one cell; of dense rows, which have to be counted, those of the largest."""
        if not self.dense:
            return max(self._entries(cell) for cell in cells)
        largest = max(cells, key=lambda cell: cell.stop - cell.start)
        return int(np.count_nonzero(self._parts[0].array[largest]))

    def handle(self) -> ExamplesHandle:
        """Handle by which a worker maps the rows."""
        return ExamplesHandle(tuple(part.handle() for part in self._parts), self.features)


@dataclass(frozen=True)
class ExamplesHandle:
    """Shared rows as a worker sees them."""

    parts: tuple[Handle, ...]
    features: int

    def rows(self, rows: slice) -> Examples:
        """View of some rows."""
        if len(self.parts) == 1:
            return self.parts[0].open()[rows]
        data, indices, indptr = (part.open() for part in self.parts)
        X = sparse_examples(data, indices, indptr, self.features)
        return between(X, rows.start, rows.stop)
