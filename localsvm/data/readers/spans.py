"""The text of a regular file in parts, each copied when its rows are counted and again when they are parsed.

A memory map would save the copies, about a fifth of the processor time of reading, but a file that shrinks while it is
mapped ends the process by SIGBUS.
"""

from __future__ import annotations

import os
import threading
from dataclasses import dataclass

from localsvm.data.readers.faults import CHANGED, LONGEST_LINE, long_line
from localsvm.errors import DataError

SEARCHED = 1 << 16  # bytes in which the end of a line is looked for at once

_local = threading.local()  # the buffer of each thread: fresh memory costs more than the copy


@dataclass(frozen=True)
class Span:
    """Bytes begin .. end - 1 of an open file."""

    file: int
    name: str
    begin: int
    end: int

    def read(self) -> memoryview:
        """The bytes, valid until this thread reads another span; DataError where the file has become shorter."""
        size = self.end - self.begin
        if len(getattr(_local, "buffer", b"")) < size:
            _local.buffer = bytearray(size)
        whole = memoryview(_local.buffer)[:size]
        done = 0
        while done < size:
            got = _read(self.name, self.file, whole[done:], self.begin + done)
            if not got:
                raise DataError(CHANGED.format(path=self.name))
            done += got
        return whole


def spans(name: str, file: int, size: int, begin: int, block_bytes: int, longest: int = LONGEST_LINE) -> list[Span]:
    """Spans of a file of `size` bytes from `begin` on, cut at line ends about `block_bytes` apart; longest: a line."""
    parts = []
    while begin < size:
        end = _line_end(name, file, begin + block_bytes - 1, size, longest)
        parts.append(Span(file, name, begin, end))
        begin = end
    return parts


def _line_end(name: str, file: int, at: int, size: int, longest: int) -> int:
    """End of the line that holds byte `at`; DataError if that is more than `longest` away."""
    part, last = bytearray(SEARCHED), at + longest
    while at < size and (got := _read(name, file, memoryview(part), at)):
        newline = part.find(b"\n", 0, got)
        if newline >= 0:
            return min(at + newline + 1, size)
        at += got
        if at > last:
            raise long_line(name, 1 + _ends(name, file, last - longest), longest)
    return size


def _ends(name: str, file: int, size: int) -> int:
    """Number of lines that end in the first `size` bytes."""
    part, at, lines = bytearray(SEARCHED), 0, 0
    while at < size and (got := _read(name, file, memoryview(part)[: size - at], at)):
        lines += part.count(b"\n", 0, got)
        at += got
    return lines


def _read(name: str, file: int, into: memoryview, at: int) -> int:
    try:
        return os.preadv(file, [into], at)
    except OSError as error:
        raise DataError(f"{name}: cannot be read ({error.strerror}); copy the file again") from error
