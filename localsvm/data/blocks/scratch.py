"""Rows in scratch files, for data larger than memory: written once, read some at a time.

A scratch file has no name in its folder, so it is gone with the process that made it, even if that is killed.
"""

from __future__ import annotations

import errno
import os
import tempfile
from typing import Any

import numpy as np
from numpy.typing import NDArray

from localsvm.data.blocks.dataset import Examples, sparse_examples
from localsvm.errors import RunError
from localsvm.memory import shown


def scratch_folder() -> str:
    """Folder of temporary files. RunError where it is not the one of TMPDIR: tempfile takes another silently."""
    asked, folder = os.environ.get("TMPDIR"), tempfile.gettempdir()
    if asked and os.path.abspath(asked) != folder:
        raise RunError(f"TMPDIR={asked}: no scratch file can be written there; name a folder that is there, with room")
    return folder


class FileArray:
    """A new array (rows, *tail) in a scratch file of a folder. RunError where the disk is full."""

    def __init__(self, folder: str, dtype: Any, tail: tuple[int, ...] = ()) -> None:
        self._folder, self.dtype, self.tail, self.rows = folder, np.dtype(dtype), tail, 0
        self._row = int(np.prod(tail, dtype=np.int64)) * self.dtype.itemsize
        try:
            with tempfile.TemporaryFile(dir=folder) as file:
                self._file = os.dup(file.fileno())
        except OSError as error:
            raise _no_room(folder, error) from error

    def __del__(self) -> None:
        if hasattr(self, "_file"):
            os.close(self._file)

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

    def read(self, first: int, last: int) -> NDArray[Any]:
        """Rows first .. last - 1."""
        out = np.empty((max(0, last - first), *self.tail), self.dtype)
        left, at = memoryview(out.reshape(-1).view(np.uint8).data), first * self._row
        while left:
            done = os.preadv(self._file, [left], at)
            if not done:
                raise RunError("a scratch file has lost its rows; train again")
            left, at = left[done:], at + done
        return out


class ScratchRows:
    """Rows (n, columns) in scratch files of a folder, dense or sparse.

    Parameters
    ----------
    entries : (n,) int64, numbers of entries of sparse rows whose places are fixed beforehand; else rows are appended.
    """

    def __init__(self, folder: str, columns: int, dense: bool, entries: NDArray[np.int64] | None = None) -> None:
        self.columns, self.dense, self.rows = columns, dense, 0
        self._values = FileArray(folder, np.float32, (columns,) if dense else ())
        self._indices = None if dense else FileArray(folder, np.int32)
        self._ends = [np.zeros(1, np.int64)] if entries is None else [np.concatenate([[0], np.cumsum(entries)])]

    @property
    def pointers(self) -> NDArray[np.int64]:
        """Row pointers (n + 1,) of sparse rows."""
        if len(self._ends) > 1:
            self._ends = [np.concatenate(self._ends)]
        return self._ends[0]

    @property
    def nbytes(self) -> int:
        """Bytes of memory that it holds."""
        return 0 if self.dense else sum(int(part.nbytes) for part in self._ends)

    def append(self, X: Examples) -> None:
        """Write rows behind the others."""
        if not isinstance(X, np.ndarray):
            begun = int(self._ends[-1][-1])
            self._ends.append(begun + X.indptr[1:].astype(np.int64))
            self._write(begun, X)
        else:
            self._write(self.rows, X)
        self.rows += X.shape[0]

    def put(self, row: int, X: Examples) -> None:
        """Write rows from number `row` on, whose places are fixed."""
        self._write(row if self.dense else int(self.pointers[row]), X)

    def _write(self, at: int, X: Examples) -> None:
        if isinstance(X, np.ndarray):
            self._values.write(at, X)
        else:
            assert self._indices is not None, "of sparse rows"
            self._values.write(at, X.data)
            self._indices.write(at, X.indices)

    def between(self, first: int, last: int) -> Examples:
        """Rows first .. last - 1."""
        if self._indices is None:
            return self._values.read(first, last)
        pointers = self.pointers[first : last + 1]
        stored = int(pointers[0]), int(pointers[-1])
        return sparse_examples(
            self._values.read(*stored), self._indices.read(*stored), pointers - pointers[0], self.columns
        )


def _no_room(folder: str, error: OSError) -> RunError:
    full = error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
    remedy = "free some space, or name another folder (TMPDIR)" if full else "name another folder (TMPDIR)"
    return RunError(f"{folder}: no scratch file there: {error.strerror}; {remedy}")


def check_room(folder: str, size: int) -> None:
    """Raise RunError where a folder has no room for scratch files of so many bytes."""
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
