"""What a work unit tells before its result: a log in anonymous memory, written by a worker and read by its parent.

A log has one writer, no lock and no name in a file system, so a worker that is killed in the middle of a message harms
no other one, and nothing of it stays. Linux only.
"""

from __future__ import annotations

import os
import pickle
import struct
from collections.abc import Iterator
from typing import Any

_LENGTH = struct.Struct("<Q")


class Log:
    """The parent's end."""

    def __init__(self) -> None:
        self._file = os.memfd_create("localsvm-log")
        self._read = 0

    @property
    def path(self) -> str:
        """Where the worker opens it, valid until `close`."""
        return f"/proc/{os.getpid()}/fd/{self._file}"

    @property
    def begun(self) -> bool:
        """Whether a worker has opened it."""
        return os.fstat(self._file).st_size > 0

    def news(self) -> Iterator[Any]:
        """Messages that were not read before; one that is not whole yet waits."""
        data = os.pread(self._file, os.fstat(self._file).st_size - self._read, self._read)
        at = 0
        while len(data) - at >= _LENGTH.size:
            (length,) = _LENGTH.unpack_from(data, at)
            last = at + _LENGTH.size + length
            if last > len(data):
                return
            self._read += last - at
            if length:
                yield pickle.loads(data[at + _LENGTH.size : last])
            at = last

    def close(self) -> None:
        """Free the memory."""
        os.close(self._file)


class LogWriter:
    """The worker's end. A context manager; the first thing that it writes is that the work has begun."""

    def __init__(self, path: str) -> None:
        self._path = path

    def __enter__(self) -> LogWriter:
        self._file = os.open(self._path, os.O_WRONLY | os.O_APPEND)
        os.write(self._file, _LENGTH.pack(0))
        return self

    def __exit__(self, *error: object) -> None:
        os.close(self._file)

    def write(self, message: Any) -> None:
        """Tell the parent, as soon as it looks."""
        content = pickle.dumps(message, pickle.HIGHEST_PROTOCOL)
        os.write(self._file, _LENGTH.pack(len(content)) + content)
