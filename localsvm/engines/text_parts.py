"""Reading of a text in parts that lie on many machines, each by whoever holds it.

The functions are plain ones, of a part's number and the pieces of its text. The rows are those that
`readers.libsvm.read` makes of the whole text, bit for bit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import Any

import numpy as np

from localsvm.data.blocks.columns import Columns, occurring
from localsvm.data.blocks.dataset import prefers_dense
from localsvm.data.blocks.shift import Shift
from localsvm.data.readers.faults import EMPTY, NO_ROWS
from localsvm.data.readers.libsvm import Layout, parse_block
from localsvm.data.readers.origin import HEAD_ROWS, look_ahead
from localsvm.data.readers.parts import parse
from localsvm.data.readers.pieces import BOM, TextPiece
from localsvm.engines.base import Block, Head
from localsvm.errors import DataError, RunError
from localsvm.features.columns import KeptColumns
from localsvm.kernels._kernels import LEVELS, simd_level

Pieces = Iterator[bytes]


@dataclass(frozen=True)
class Count:
    """Counts of a part, or several: rows, lines, entries of the text and those that are not 0, and columns.

    Attributes
    ----------
    width, nonzero : columns up to the largest index, and (k,) int64 those in which some row is not 0.
    levels : the SIMD levels of the machines that looked.
    """

    rows: int = 0
    lines: int = 0
    entries: int = 0
    stored: int = 0
    width: int = 0
    nonzero: Columns = field(default_factory=lambda: np.empty(0, np.int64))
    levels: frozenset[str] = frozenset()

    def __add__(self, other: Count) -> Count:
        return Count(
            self.rows + other.rows,
            self.lines + other.lines,
            self.entries + other.entries,
            self.stored + other.stored,
            max(self.width, other.width),
            np.union1d(self.nonzero, other.nonzero),
            self.levels | other.levels,
        )


@dataclass(frozen=True)
class Form:
    """Form in which the rows of a text are read.

    Attributes
    ----------
    name, zero_based : of the text, for messages; whether indices start at 0.
    width, columns, dense, shift : columns up to the largest index; of these (d,) int64 those that occur, None for all;
        whether X is dense; which columns of X are read from their origin.
    rows, stored : how many there are, and their values other than 0.
    first_rows, first_lines : the number of the first row and line of each part, from 0.
    """

    name: str
    zero_based: bool
    width: int
    columns: Columns | None
    dense: bool
    shift: Shift | None
    rows: int
    stored: int
    first_rows: list[int]
    first_lines: list[int]

    @property
    def features(self) -> int:
        """Number of columns of X."""
        return self.width if self.columns is None else len(self.columns)

    @property
    def head(self) -> Head:
        """Head of the rows, which an engine gives."""
        columns = KeptColumns(self.columns, self.width, self.dense)
        return Head(self.name, self.rows, self.stored, columns, self.shift)

    def blocks(self, part: int, pieces: Pieces) -> Iterator[Block]:
        """The rows of a part, a piece of its text after the other."""
        row = self.first_rows[part]
        of_text = self.shift if self.shift is None or self.columns is None else self.shift.within(self.columns)
        for piece in lined(self.name, self.zero_based, self.first_lines[part], part, pieces):
            parsed = parse_block(piece, Layout(self.width, self.dense, self.columns, of_text))
            if len(parsed.y):
                yield Block(row, parsed.X, parsed.y, columns=self.columns)
            row += len(parsed.y)


def lined(name: str, zero_based: bool, line: int, part: int, pieces: Pieces) -> Iterator[TextPiece]:
    """Pieces that know their place; the mark that a text may begin with is left out."""
    for number, text in enumerate(pieces):
        yield TextPiece(name, text.removeprefix(BOM) if part == number == 0 else text, line + 1, zero_based)
        line += text.count(b"\n")


def another_level(theirs: str, ours: str) -> RunError:
    """Error for several SIMD levels: results would depend on who computed what."""
    return RunError(
        f"a worker computes at the SIMD level {theirs}, this machine at {ours}: bits would depend on who computed "
        "what; set LOCALSVM_SIMD to the lower one here, it is handed on"
    )


def lines(part: int, pieces: Pieces) -> int:
    """Number of lines of a part."""
    return sum(text.count(b"\n") for text in pieces)


def counted(
    name: str, zero_based: bool, far: Shift | None, first_lines: Sequence[int] | None, part: int, pieces: Pieces
) -> Count:
    """Counts of a part, some columns read from their origin.

    far : the columns that have an origin.
    first_lines : numbers of the first lines of all parts, from 0; None where they are not known yet.
    """
    total = Count(levels=frozenset([LEVELS[simd_level()]]))
    line = 0 if first_lines is None else first_lines[part]
    for piece in lined(name, zero_based, line, part, pieces):
        parsed = parse(piece, None, False, far)
        X: Any = parsed.X
        stored = 0 if isinstance(X, np.ndarray) else X.nnz
        total += Count(
            parsed.counts.rows, parsed.counts.lines, parsed.counts.entries, stored, parsed.counts.width, occurring(X)
        )
    return total


def far_columns(name: str, zero_based: bool, head: Callable[[int], bytes]) -> Shift | None:
    """Shift of the columns that have an origin, as `readers.origin` finds it in the first rows.

    head : gives the first so many lines.
    """
    wanted = HEAD_ROWS
    while True:
        text = head(wanted)
        piece = TextPiece(name, text.removeprefix(BOM), 1, zero_based)
        if text.count(b"\n") < wanted or piece.count().rows >= HEAD_ROWS:
            return look_ahead([piece], None)[0]
        wanted *= 4


def form_of(name: str, zero_based: bool, far: Shift | None, parts: list[Count]) -> Form:
    """Form in which `read` and `KeptColumns.fit` would read all rows. DataError for a text without rows."""
    total = reduce(Count.__add__, parts, Count())
    if total.rows == 0:
        raise DataError((NO_ROWS if total.lines else EMPTY).format(path=name))
    nonzero, stored, shift = total.nonzero, total.stored, far
    if far is not None:
        varies = np.isin(far.columns, nonzero)
        nonzero, shift = np.union1d(nonzero, far.columns), far.where(varies)
        stored += total.rows * int(np.count_nonzero(~varies))
    dense, columns = prefers_dense(total.rows, total.width, total.entries), None
    if len(nonzero) < total.width:
        columns = nonzero
        dense = dense or prefers_dense(total.rows, len(nonzero), stored)
        shift = None if shift is None else shift.among(columns)
    firsts = [np.cumsum([0, *(getattr(part, what) for part in parts)]).tolist() for what in ("rows", "lines")]
    return Form(name, zero_based, total.width, columns, dense, shift, total.rows, stored, *firsts)
