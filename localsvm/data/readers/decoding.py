"""Compressed files, decoded to their true end: a file may hold several streams, and what is left over is an error."""

from __future__ import annotations

import bz2
import lzma
import zlib
from collections.abc import Callable
from functools import partial
from typing import BinaryIO, NamedTuple, Protocol

INPUT = 1 << 15  # compressed bytes read at once; decoders copy what they do not use, so not too many
GZIP_FORMAT = 16 + zlib.MAX_WBITS  # with its header and checksum
ZSTD_WINDOW = 1 << 31  # the largest that the format's own program writes
ZSTD_INPUT = 1024  # compressed bytes decoded at once: their output may be 32 MiB, and is 4 KiB as a rule
ZSTD_FIRST = 64  # and so many at the beginning, and after an output of more than ZSTD_LARGE
ZSTD_LARGE = 1 << 20


class Decompressor(Protocol):
    """Decoder of one stream (gzip: member, zstd: frame), as Python's own decompressors for bzip2 and xz are."""

    @property
    def eof(self) -> bool:
        """True where the end of the stream was reached."""

    @property
    def needs_input(self) -> bool:
        """True where `decompress` has to get more data."""

    @property
    def unused_data(self) -> bytes:
        """Bytes of the data that followed the end of the stream."""

    def decompress(self, data: bytes, max_length: int) -> bytes:
        """Decode at most `max_length` bytes, perhaps none yet."""


class _GzipMember:
    def __init__(self) -> None:
        self._member = zlib.decompressobj(GZIP_FORMAT)

    @property
    def eof(self) -> bool:
        return self._member.eof

    @property
    def needs_input(self) -> bool:
        return not self._member.unconsumed_tail

    @property
    def unused_data(self) -> bytes:
        return self._member.unused_data

    def decompress(self, data: bytes, max_length: int) -> bytes:
        return self._member.decompress(self._member.unconsumed_tail or data, max_length)


class _ZstdFrame:
    """Decoder of one frame. The package zstandard does not bound its output, so it gets its input in small steps."""

    def __init__(self) -> None:
        from zstandard import ZstdDecompressor, ZstdError

        self._frame = ZstdDecompressor(max_window_size=ZSTD_WINDOW).decompressobj()
        self._error = ZstdError
        self._input = self._output = b""
        self._begun = self._given = 0  # how much of the output was decoded and handed out
        self._step = ZSTD_FIRST

    @property
    def needs_input(self) -> bool:
        return not self._output and self._begun == len(self._input)

    @property
    def eof(self) -> bool:
        return bool(self._frame.eof) and not self._output

    @property
    def unused_data(self) -> bytes:
        return bytes(self._frame.unused_data) + self._input[self._begun :]

    def decompress(self, data: bytes, max_length: int) -> bytes:
        if data:
            self._input, self._begun = data, 0
        if not self._output and not self._frame.eof:
            piece = self._input[self._begun : self._begun + self._step]
            self._begun += len(piece)
            self._decode(piece)
        output = self._output[self._given : self._given + max_length]
        self._given += len(output)
        if self._given == len(self._output):
            self._output, self._given = b"", 0
        return output

    def _decode(self, piece: bytes) -> None:
        try:
            self._output = self._frame.decompress(piece)
        except self._error as error:
            raise OSError(str(error)) from error
        self._step = ZSTD_FIRST if len(self._output) > ZSTD_LARGE else ZSTD_INPUT


class Format(NamedTuple):
    """A compression: the bytes that a stream begins with, what decodes one, and how zeros may stand between streams.

    `padding`: any multiple of so many zero bytes, 0 for none.
    """

    magic: tuple[bytes, ...]
    stream: Callable[[], Decompressor]
    padding: int


ZSTD_SKIPPED = tuple(bytes([byte]) + b"\x2a\x4d\x18" for byte in range(0x50, 0x60))  # frames that decoders skip
FORMATS = {
    "gzip": Format((b"\x1f\x8b",), _GzipMember, 1),  # up to the end of a tape's block
    "bzip2": Format((b"BZh",), bz2.BZ2Decompressor, 0),
    "xz": Format((b"\xfd7zXZ\x00",), partial(lzma.LZMADecompressor, lzma.FORMAT_XZ), 4),
    "zstd": Format((b"\x28\xb5\x2f\xfd", *ZSTD_SKIPPED), _ZstdFrame, 0),
}
BEGIN = 6  # bytes that show whether a stream begins


def compression(head: bytes) -> str | None:
    """The format that a file with these first bytes is compressed in, None for plain text."""
    return next((kind for kind, form in FORMATS.items() if head.startswith(form.magic)), None)


class LeftOverError(Exception):
    """Bytes after a whole stream that are neither stream nor padding. `at`: offset of the stream's end in the file."""

    def __init__(self, at: int) -> None:
        super().__init__(at)
        self.at = at


class Decoder:
    """All streams of a compressed file, one after the other.

    `read` raises EOFError where the file ends within a stream, LeftOverError, and what the decompressors raise.
    """

    def __init__(self, kind: str, file: BinaryIO) -> None:
        self._format, self._file = FORMATS[kind], file
        self._stream: Decompressor | None = self._format.stream()
        self._waiting = b""  # read, and not yet given to a stream
        self._taken = 0  # bytes of the file that were read

    def read(self, size: int) -> bytes:
        """Read `size` decoded bytes, fewer at the end only."""
        parts: list[bytes] = []
        while size and (part := self._part(size)):
            parts.append(part)
            size -= len(part)
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def _part(self, size: int) -> bytes:
        """Read 1 to `size` decoded bytes, b"" at the end."""
        while stream := self._stream:
            if not stream.needs_input:
                output = stream.decompress(b"", size)
            elif data := self._waiting or self._more():
                self._waiting = b""
                output = stream.decompress(data, size)
            else:
                raise EOFError
            if stream.eof:
                self._waiting = stream.unused_data
                self._stream = self._format.stream() if self._another() else None
            if output:
                return output
        return b""

    def _more(self) -> bytes:
        data = self._file.read(INPUT)
        self._taken += len(data)
        return data

    def _another(self) -> bool:
        """Skip padding. True where another stream begins; False where the file is at its end."""
        end, padding = self._taken - len(self._waiting), 0
        while True:
            if self._format.padding:
                length = len(self._waiting)
                self._waiting = self._waiting.lstrip(b"\0")
                padding += length - len(self._waiting)
            if len(self._waiting) >= BEGIN or not (more := self._more()):
                break
            self._waiting += more
        magic = self._format.magic
        begins = self._waiting.startswith(magic) or any(begin.startswith(self._waiting) for begin in magic)
        if padding % (self._format.padding or 1) or not begins:
            raise LeftOverError(end)
        return bool(self._waiting)
