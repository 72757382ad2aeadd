"""Files as streams of decoded bytes. The first bytes tell the compression; `-` is stdin or stdout."""

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
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from localsvm.data.faults import CHANGED, refuse_foreign
from localsvm.errors import DataError, RunError

STDIN = "<stdin>"
MAGIC = {b"\x1f\x8b": "gzip", b"BZh": "bzip2", b"\xfd7zXZ\x00": "xz", b"\x28\xb5\x2f\xfd": "zstd"}
SUFFIXES = {".gz": "gzip", ".bz2": "bzip2", ".xz": "xz", ".zst": "zstd"}
HEAD = 8  # bytes that are read to recognise a format
GZIP_INPUT = 4096  # bytes read at once, or size / 4 if that is more; zlib copies what it does not use: keep it small
GZIP_FORMAT = 16 + zlib.MAX_WBITS  # with its header and checksum
ZSTD_INPUT = 4096  # compressed bytes decoded at once: bounds the memory for their output


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
    stream: BinaryIO

    def regular(self) -> bool:
        """Whether this is a regular file of plain text, whose parts can be read in any order."""
        return self.kind is None and self.name != STDIN and bool(_size(self.file))

    def read(self, size: int) -> bytes:
        """Up to `size` decoded bytes, b"" at the end; DataError if the stream is truncated or damaged."""
        try:
            return self.stream.read(size)
        except EOFError as error:
            what = f"the {self.kind} data end too early"
            raise DataError(f"{self.name}: {what}; copy the file again") from error
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
    with _open_raw(name) as file:
        head = _head(file)
        refuse_foreign(name, head)
        kind = next((kind for magic, kind in MAGIC.items() if head.startswith(magic)), None)
        raw = file if file.seekable() else io.BufferedReader(_Replay(head, file))
        if raw is file:
            file.seek(-len(head), io.SEEK_CUR)
        before = _size(file)
        yield Source(name, kind, file, _decoder(kind, raw))
        if before is not None and _size(file) != before:
            raise DataError(CHANGED.format(path=name))


def _open_raw(name: str) -> Any:
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


class _ZstdStream(io.RawIOBase):
    """All frames of a zstd file. The reader of the package zstandard would take a truncated file for complete."""

    def __init__(self, file: BinaryIO) -> None:
        from zstandard import ZstdDecompressor, ZstdError

        self._file, self._error = file, ZstdError
        self._new_frame = ZstdDecompressor(max_window_size=1 << 31).decompressobj
        self._frame: Any = None
        self._input = self._output = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._output and self._step():
            pass
        data, self._output = self._output[: len(buffer)], self._output[len(buffer) :]
        buffer[: len(data)] = data
        return len(data)

    def _step(self) -> bool:
        data = self._input or self._file.read(ZSTD_INPUT)
        if not data and self._frame is not None:
            raise EOFError("the last frame is not complete")
        if not data:
            return False
        self._frame = self._frame or self._new_frame()
        try:
            self._output = self._frame.decompress(data)
        except self._error as error:
            raise OSError(str(error)) from error
        self._input = self._frame.unused_data if self._frame.eof else b""
        self._frame = None if self._frame.eof else self._frame
        return True


class _GzipStream:
    """All members of a gzip file, by zlib directly: Python's gzip reads in small steps and takes a third longer."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._member: Any = None
        self._input = b""

    def read(self, size: int) -> bytes:
        """From 1 to `size` bytes, b"" at the end."""
        while data := self._input or self._file.read(max(GZIP_INPUT, size // 4)):
            if self._member is None:
                data = data.lstrip(b"\0")  # zeros may follow a member, for example up to the end of a tape block
                self._member = zlib.decompressobj(GZIP_FORMAT) if data else None
            output = self._member.decompress(data, size) if data else b""
            self._input = b"" if self._member is None else self._member.unconsumed_tail
            if self._member is not None and self._member.eof:
                self._input, self._member = self._member.unused_data, None
            if output:
                return output
        if self._member is not None:
            raise EOFError("the last member is not complete")
        return b""


def _decoder(kind: str | None, file: Any) -> Any:
    if kind == "gzip":
        return _GzipStream(file)
    if kind == "bzip2":
        return bz2.BZ2File(file)
    if kind == "xz":
        return lzma.LZMAFile(file)
    return io.BufferedReader(_ZstdStream(file)) if kind == "zstd" else file


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
    part = target if special else target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        with open(part, "wb") as file, _encoder(SUFFIXES.get(target.suffix), file) as stream:
            yield stream
        if not special:
            os.replace(part, target)
    except OSError as error:
        what = f"cannot be written ({_reason(error)})"
        raise RunError(f"{path}: {what}; check the folder and its free space") from error
    finally:
        if not special:
            part.unlink(missing_ok=True)


def _encoder(kind: str | None, file: BinaryIO) -> Any:
    if kind == "gzip":
        return gzip.GzipFile("", "wb", fileobj=file, mtime=0)  # without file name and time, equal data give equal files
    if kind == "bzip2":
        return bz2.BZ2File(file, "wb")
    if kind == "xz":
        return lzma.LZMAFile(file, "wb")
    if kind == "zstd":
        from zstandard import ZstdCompressor

        return ZstdCompressor().stream_writer(file, closefd=False)
    return nullcontext(file)
