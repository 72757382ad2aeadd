"""Pieces of a LIBSVM file: cut at line ends, then counted and parsed independently, by several threads if wanted."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from localsvm.data import _text
from localsvm.data.readers.compression import Source
from localsvm.data.readers.faults import LONGEST_LINE, data_error, long_line
from localsvm.data.readers.spans import Span
from localsvm.memory import affordable_threads

BLOCK_BYTES = 4 << 20  # parsed in milliseconds, so that Ctrl-C acts at once, yet large enough that threads pay
BOM = b"\xef\xbb\xbf"

Item = TypeVar("Item")
Result = TypeVar("Result")


class Counts(NamedTuple):
    """Counts of a text: lines, rows, entries (INDEX:VALUE pairs), and width: columns that the largest index needs."""

    lines: int
    rows: int
    entries: int
    width: int


@dataclass(frozen=True)
class TextPiece:
    """Whole lines of a file; its methods raise DataError for a mistake in them.

    Attributes
    ----------
    name : str
        Name of the file in messages.
    data : bytes-like or Span
    first_line : int
        Number of the first line in the file, from 1.
    zero_based : bool
        Whether indices start at 0.
    """

    name: str
    data: Any
    first_line: int
    zero_based: bool

    def count(self) -> Counts:
        """Count lines, rows, entries and columns, without checking the text."""
        return Counts(*_text.count(self._text(), self.zero_based))

    def read_dense(self, X: npt.NDArray[np.float32], y: npt.NDArray[np.float64]) -> None:
        """Parse into X (rows, width) and y (rows,); every element of X is written."""
        text = self._text()
        try:
            _text.read_dense(text, X, y, self.zero_based)
        except _text.TextFault as fault:
            raise data_error(self.name, fault, self.first_line, text, self.zero_based) from None

    def read_sparse(
        self,
        values: npt.NDArray[np.float32],
        indices: npt.NDArray[np.int32],
        lengths: npt.NDArray[np.int64],
        y: npt.NDArray[np.float64],
        width: int,
    ) -> int:
        """Parse into values and indices (entries,), the length of each row (rows,), and y (rows,).

        Returns the number of entries kept: zeros, and entries beyond `width`, are dropped.
        """
        text = self._text()
        try:
            return _text.read_sparse(text, values, indices, lengths, y, width, self.zero_based)
        except _text.TextFault as fault:
            raise data_error(self.name, fault, self.first_line, text, self.zero_based) from None

    def pick(self, columns: npt.NDArray[np.int64], rows: int) -> npt.NDArray[np.float64]:
        """Some columns, ascending, of the first rows: (rows, columns) float64."""
        values, text = np.empty((rows, len(columns))), self._text()
        try:
            _text.pick(text, columns.astype(np.int32), values, np.empty(rows), self.zero_based)
        except _text.TextFault as fault:
            raise data_error(self.name, fault, self.first_line, text, self.zero_based) from None
        return values

    def _text(self) -> Any:
        return self.data.read() if isinstance(self.data, Span) else self.data


def as_one(pieces: list[TextPiece]) -> TextPiece:
    """One piece, a copy, of pieces that follow each other."""
    first = pieces[0]
    return TextPiece(first.name, b"".join(bytes(piece._text()) for piece in pieces), first.first_line, first.zero_based)


def stream_pieces(
    source: Source, zero_based: bool, block_bytes: int, longest: int = LONGEST_LINE
) -> Iterator[TextPiece]:
    """Cut a stream into pieces of about `block_bytes` decoded bytes, at line ends; longer lines make longer pieces.

    DataError for a line that is longer than `longest`.
    """
    line = 1
    for data in _whole_lines(source, block_bytes, longest):
        if data is None:
            raise long_line(source.name, line, longest)
        yield TextPiece(source.name, data, line, zero_based)
        line += data.count(b"\n")


def _whole_lines(source: Source, block_bytes: int, longest: int) -> Iterator[bytes | None]:
    """Blocks of whole lines; None, and nothing after it, where a line has no end within bounds."""
    begun: list[bytes | memoryview] = []  # blocks of a line whose end was not read yet
    first, length = True, 0
    while block := source.read(block_bytes):
        begun.append(block)
        length += len(block)
        cut = block.rfind(b"\n") + 1
        if not cut:
            if length > longest:
                yield None
                return
            continue
        begun[-1] = memoryview(block)[:cut]  # a view, so that only the join copies
        yield b"".join(begun).removeprefix(BOM if first else b"")
        begun, first, length = [block[cut:]], False, len(block) - cut
    if any(begun):
        yield b"".join(begun).removeprefix(BOM if first else b"")


def ordered(function: Callable[[Item], Result], items: Iterable[Item], jobs: int) -> Iterator[Result]:
    """Map a function over items on `jobs` threads: results and errors come in order, few items are taken ahead."""
    jobs = affordable_threads(jobs)
    if jobs == 1:
        yield from map(function, items)
        return
    pending: deque[Future[Result]] = deque()
    pool = ThreadPoolExecutor(jobs)
    try:
        for item in items:
            pending.append(pool.submit(function, item))
            if len(pending) > 2 * jobs:
                yield pending.popleft().result()
        while pending:
            yield pending.popleft().result()
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
