"""Messages of a process and its worker on a work unit: a log in anonymous memory that both have open.

It begins with the work; the worker adds what the work yields, and how it ended. A log has no lock and no name in a file
system, so a worker that is killed in the middle of a message harms no other one, and nothing of it stays. In a pipe,
half a message would stay, and who reads it waits for ever. Linux only.
"""

from __future__ import annotations

import os
import pickle
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

_LENGTH = struct.Struct("<Q")


@dataclass(frozen=True, kw_only=True)
class End:
    """The last message: the result of the work, or its error."""

    result: Any = None
    error: BaseException | None = None


class Log:
    """Parent's end of a log.

    Parameters
    ----------
    work : object
        The first message, which the worker reads.
    """

    def __init__(self, work: Any) -> None:
        content = _packed(work)
        self._file = os.memfd_create("localsvm-log")
        try:
            _write(self._file, content)
        except BaseException:
            self.close()
            raise
        self._given = self._read = len(content)
        self.end: End | None = None  # where `news` has come to it

    @property
    def path(self) -> str:
        """Path at which the worker opens it, valid until `close`: afterwards it may be that of another file."""
        return f"/proc/{os.getpid()}/fd/{self._file}"

    @property
    def begun(self) -> bool:
        """True where a worker has opened it."""
        return os.fstat(self._file).st_size > self._given

    def news(self) -> Iterator[Any]:
        """Messages that were not read before, without the end; one that is not whole yet waits."""
        data = memoryview(os.pread(self._file, os.fstat(self._file).st_size - self._read, self._read))
        at = 0
        while len(data) - at >= _LENGTH.size:
            (length,) = _LENGTH.unpack_from(data, at)
            last = at + _LENGTH.size + length
            if last > len(data):
                return
            self._read += last - at
            message = pickle.loads(data[at + _LENGTH.size : last]) if length else None
            if isinstance(message, End):
                self.end = message
            elif length:
                yield message
            at = last

    def close(self) -> None:
        """Free the memory."""
        os.close(self._file)


class LogWriter:
    """Worker's end of a log. A context manager; the first thing that it writes is that the work has begun."""

    def __init__(self, path: str) -> None:
        self._path = path

    def __enter__(self) -> LogWriter:
        self._file = os.open(self._path, os.O_RDWR | os.O_APPEND)
        os.write(self._file, _LENGTH.pack(0))
        return self

    def __exit__(self, *error: object) -> None:
        os.close(self._file)

    def work(self) -> Any:
        """Work that the parent gave."""
        (length,) = _LENGTH.unpack(os.pread(self._file, _LENGTH.size, 0))
        return pickle.loads(os.pread(self._file, length, _LENGTH.size))

    def write(self, message: Any) -> None:
        """Write a message, which the parent reads as soon as it looks."""
        _write(self._file, _packed(message))


def _packed(message: Any) -> bytes:
    content = pickle.dumps(message, pickle.HIGHEST_PROTOCOL)
    return _LENGTH.pack(len(content)) + content


def _write(file: int, content: bytes) -> None:
    left = memoryview(content)
    while left:  # Linux writes 2 GiB at most
        left = left[os.write(file, left) :]
