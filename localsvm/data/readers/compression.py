"""Files as streams of decoded bytes. The first bytes show the compression; `-` is stdin or stdout."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import stat
import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO

from localsvm.data.readers.decoding import Decoder, LeftOverError, compression
from localsvm.data.readers.faults import CHANGED, refuse_foreign
from localsvm.errors import DataError, RunError
from localsvm.store.outputs import replacing, special

STDIN = "<stdin>"
SUFFIXES = {".gz": "gzip", ".bz2": "bzip2", ".xz": "xz", ".zst": "zstd"}
HEAD = 8  # bytes that are read to recognise a format
SKIPPED = 1 << 20  # bytes that are decoded at once to be passed over


def read_once(path: str | Path) -> bool:
    """True for stdin ("-" or its name in messages), a pipe or a device, which cannot be read a second time."""
    return special(path) or os.fspath(path) in ("-", STDIN)


@dataclass
class Source:
    """An open input.

    Attributes
    ----------
    name : str
        Its name in messages: the path, or "<stdin>".
    kind : str or None
        The compression: "gzip", "bzip2", "xz" or "zstd"; None for plain text.
    file, stream
        The raw and the decoded bytes.
    """

    name: str
    kind: str | None
    file: BinaryIO
    stream: BinaryIO | Decoder | _Limited

    def regular(self) -> bool:
        """True for a regular file of plain text, whose parts can be read in any order."""
        return self.kind is None and self.name != STDIN and bool(_size(self.file))

    def between(self, begin: int, end: int | None) -> Source:
        """Input from one decoded byte up to, not including, another one, or to its end for None."""
        if self.regular():
            self.file.seek(begin)
        else:
            left = begin
            while left and (skipped := self.read(min(left, SKIPPED))):
                left -= len(skipped)
        return self if end is None else replace(self, stream=_Limited(self, end - begin))

    def read(self, size: int) -> bytes:
        """Read up to `size` decoded bytes, b"" at the end; DataError if the stream is truncated or damaged."""
        try:
            return self.stream.read(size)
        except EOFError as error:
            what = f"the {self.kind} data end too early"
            raise DataError(f"{self.name}: {what}; copy the file again") from error
        except LeftOverError as error:
            what = f"after {error.at} bytes come others that are not {self.kind} data"
            remedy = f"cut the file there (head -c {error.at}), or copy it again"
            raise DataError(f"{self.name}: {what}; {remedy}") from error
        except (OSError, zlib.error, lzma.LZMAError) as error:
            what = f"the {self.kind} data are damaged" if self.kind else "cannot be read"
            raise DataError(f"{self.name}: {what} ({_reason(error)}); copy the file again") from error


@contextmanager
def open_source(path: str | os.PathLike[str]) -> Iterator[Source]:
    """Open a file for reading, or stdin for "-", and close it at the end; a context manager.

    Yields
    ------
    Source

    Raises
    ------
    DataError
        There is no such file, it is a directory or not readable, or its first bytes are those of another format.
    """
    name = STDIN if os.fspath(path) == "-" else os.fspath(path)
    with open_file(name) as file:
        try:
            head = _head(file)
        except OSError as error:
            raise DataError(f"{name}: cannot be read ({_reason(error)}); check what it is") from error
        refuse_foreign(name, head)
        kind = compression(head)
        raw = file if file.seekable() else io.BufferedReader(_Replay(head, file))
        if raw is file:
            file.seek(-len(head), io.SEEK_CUR)
        before = _size(file)
        yield Source(name, kind, file, raw if kind is None else Decoder(kind, raw))
        if before is not None and _size(file) != before:
            raise DataError(CHANGED.format(path=name))


class _Limited:
    """The next so many bytes of an input."""

    def __init__(self, source: Source, size: int) -> None:
        self._source, self._left = source, size

    def read(self, size: int) -> bytes:
        data = self._source.read(min(size, self._left))
        self._left -= len(data)
        return data


def open_file(name: str) -> Any:
    """Open a file for reading, or stdin. DataError where it cannot be, with the reason and a remedy."""
    if name == STDIN:
        return nullcontext(sys.stdin.buffer)
    try:
        return open(name, "rb")
    except FileNotFoundError as error:
        raise DataError(f"{name}: no such file; check the name") from error
    except IsADirectoryError as error:
        raise DataError(f"{name}: this is a directory; name a file in it") from error
    except PermissionError as error:
        raise DataError(f"{name}: no permission to read it; change its mode or its owner") from error
    except OSError as error:
        raise DataError(f"{name}: cannot be opened ({_reason(error)}); check the name") from error


def _size(file: BinaryIO) -> int | None:
    """The bytes of a regular file; None for what has no size, such as a pipe."""
    try:
        status = os.fstat(file.fileno())
    except OSError:  # stdin may be something without a file descriptor
        return None
    return status.st_size if stat.S_ISREG(status.st_mode) else None


def _head(file: BinaryIO) -> bytes:
    head = b""
    while len(head) < HEAD and (more := file.read(HEAD - len(head))):
        head += more
    return head


def _reason(error: Exception) -> str:
    return (getattr(error, "strerror", None) or str(error)).rstrip(".")


class _Replay(io.RawIOBase):
    """A stream that cannot seek. `head`, its first bytes, was read before and comes again."""

    def __init__(self, head: bytes, rest: BinaryIO) -> None:
        self._head, self._rest = head, rest

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data, self._head = self._head[: len(buffer)], self._head[len(buffer) :]
        data = data or self._rest.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)


@contextmanager
def open_sink(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Open a file for writing, or stdout for "-"; .gz, .bz2, .xz and .zst are compressed. A context manager.

    A regular file is written under a temporary name in the same folder and renamed at the end, so that an
    interrupted run leaves no incomplete file.

    Yields
    ------
    binary stream

    Raises
    ------
    RunError
        The file cannot be written.
    """
    if os.fspath(path) == "-":
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    target = Path(os.path.realpath(path))  # a symbolic link is kept, and the file behind it replaced
    special = target.exists() and not target.is_file()
    try:
        with (
            nullcontext(target) if special else replacing(path, force=True) as part,
            open(part, "wb") as file,
            _encoder(SUFFIXES.get(target.suffix), file) as stream,
        ):
            yield stream
    except OSError as error:
        what = f"cannot be written ({_reason(error)})"
        raise RunError(f"{path}: {what}; check the folder and its free space") from error


def _encoder(kind: str | None, file: BinaryIO) -> Any:
    if kind == "gzip":
        return gzip.GzipFile("", "wb", fileobj=file, mtime=0)  # without file name and time, equal data give equal files
    if kind == "bzip2":
        return bz2.BZ2File(file, "wb")
    if kind == "xz":
        return lzma.LZMAFile(file, "wb")
    if kind == "zstd":
        from zstandard import ZstdCompressor

        return ZstdCompressor(write_checksum=True).stream_writer(file, closefd=False)
    return nullcontext(file)
