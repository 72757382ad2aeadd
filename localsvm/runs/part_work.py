"""What is done to the parts of a text that lies on many machines, each by whoever holds it: plain functions of a part's
number and the pieces of its text.

Three passes: `counted` says what there is, `looked_at` learns the scaling, the labels and a sample, `assigned` sends
each row to its coarse cells. The rows are those that `data.reading.read` makes of the whole text, bit for bit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from localsvm.data.columns import Columns, occurring
from localsvm.data.dataset import Dataset, Examples, as_examples, prefers_dense, rows_of, size_of
from localsvm.data.exact_sums import ExactSums
from localsvm.data.faults import EMPTY, NO_ROWS
from localsvm.data.numbering import digest
from localsvm.data.origin import HEAD_ROWS, look_ahead
from localsvm.data.parts import parse
from localsvm.data.pieces import BOM, Piece
from localsvm.data.reading import parse_block
from localsvm.data.shift import Shift
from localsvm.errors import DataError, RunError
from localsvm.features.chain import Chain
from localsvm.kernels._kernels import LEVELS, simd_level
from localsvm.partition.centre_tree import CentreTree
from localsvm.runs.division import check_reach

Pieces = Iterator[bytes]
Block = tuple[NDArray[np.int64], Examples, NDArray[np.float64]]  # numbers, X and y of some rows
Chosen = Callable[[NDArray[np.int64]], NDArray[np.bool_]]  # which rows are in a sample, by their numbers (n,)
HELD_BYTES = 32 << 20  # of a part's rows that are sorted into coarse cells at once


@dataclass(frozen=True)
class Count:
    """What a part holds, or several: rows, lines, entries of the text and those that are not 0, and columns.

    Attributes
    ----------
    width, found : columns up to the largest index, and (k,) int64 those in which some row is not 0.
    levels : the SIMD levels of the machines that looked.
    """

    rows: int = 0
    lines: int = 0
    entries: int = 0
    stored: int = 0
    width: int = 0
    found: Columns = field(default_factory=lambda: np.empty(0, np.int64))
    levels: frozenset[str] = frozenset()

    def __add__(self, other: Count) -> Count:
        return Count(
            self.rows + other.rows,
            self.lines + other.lines,
            self.entries + other.entries,
            self.stored + other.stored,
            max(self.width, other.width),
            np.union1d(self.found, other.found),
            self.levels | other.levels,
        )


@dataclass(frozen=True)
class Form:
    """How the rows of a text are read.

    Attributes
    ----------
    name, zero_based : of the text, for messages; whether indices start at 0.
    width, columns, dense, shift : columns up to the largest index; of these (d,) int64 those that occur, None for all;
        whether X is dense; which columns of X are read from their origin.
    rows, first_rows, first_lines : how many there are; the number of the first row and line of each part, from 0.
    """

    name: str
    zero_based: bool
    width: int
    columns: Columns | None
    dense: bool
    shift: Shift | None
    rows: int
    first_rows: list[int]
    first_lines: list[int]

    @property
    def features(self) -> int:
        """d."""
        return self.width if self.columns is None else len(self.columns)

    def blocks(self, part: int, pieces: Pieces) -> Iterator[tuple[int, Dataset]]:
        """(number of the first row, rows) of the pieces of a part."""
        row = self.first_rows[part]
        of_text = self.shift if self.shift is None or self.columns is None else self.shift.within(self.columns)
        for piece in lined(self.name, self.zero_based, self.first_lines[part], part, pieces):
            found = parse_block(piece, self.width, self.dense, self.columns, of_text)
            if len(found.y):
                yield row, Dataset(found.X, found.y, columns=self.columns, shift=self.shift)
            row += len(found.y)


def lined(name: str, zero_based: bool, line: int, part: int, pieces: Pieces) -> Iterator[Piece]:
    """Pieces that know their place; the mark that a text may begin with is left out."""
    for number, text in enumerate(pieces):
        yield Piece(name, text.removeprefix(BOM) if part == number == 0 else text, line + 1, zero_based)
        line += text.count(b"\n")


def another_level(theirs: str, ours: str) -> RunError:
    """Results of several levels would depend on who computed what."""
    return RunError(
        f"a worker computes at the SIMD level {theirs}, this machine at {ours}: bits would depend on who computed "
        "what; set LOCALSVM_SIMD to the lower one here, it is handed on"
    )


def lines(part: int, pieces: Pieces) -> int:
    """Of a part."""
    return sum(text.count(b"\n") for text in pieces)


def counted(
    name: str, zero_based: bool, far: Shift | None, first_lines: Sequence[int] | None, part: int, pieces: Pieces
) -> Count:
    """What a part holds, some columns read from their origin. first_lines: of all parts, None where not known yet."""
    total = Count(levels=frozenset([LEVELS[simd_level()]]))
    line = 0 if first_lines is None else first_lines[part]
    for piece in lined(name, zero_based, line, part, pieces):
        own = parse(piece, None, False, far)
        X: Any = own.X
        stored = 0 if isinstance(X, np.ndarray) else X.nnz
        total += Count(own.counts.rows, own.counts.lines, own.counts.entries, stored, own.counts.width, occurring(X))
    return total


def far_columns(name: str, zero_based: bool, head: Callable[[int], bytes]) -> Shift | None:
    """Which columns have an origin, as `data.origin` finds it in the first rows. head: the first so many lines."""
    wanted = HEAD_ROWS
    while True:
        text = head(wanted)
        piece = Piece(name, text.removeprefix(BOM), 1, zero_based)
        if text.count(b"\n") < wanted or piece.count().rows >= HEAD_ROWS:
            return look_ahead([piece], None)[0]
        wanted *= 4


def form_of(name: str, zero_based: bool, far: Shift | None, parts: list[Count]) -> Form:
    """How all rows are to be read, as `read` and `KeptColumns.fit` would. DataError for a text without rows."""
    total = reduce(Count.__add__, parts, Count())
    if total.rows == 0:
        raise DataError((NO_ROWS if total.lines else EMPTY).format(path=name))
    found, stored, shift = total.found, total.stored, far
    if far is not None:
        varies = np.isin(far.columns, found)
        found, shift = np.union1d(found, far.columns), far.where(varies)
        stored += total.rows * int(np.count_nonzero(~varies))
    dense, columns = prefers_dense(total.rows, total.width, total.entries), None
    if len(found) < total.width:
        columns = found
        dense = dense or prefers_dense(total.rows, len(found), stored)
        shift = None if shift is None else shift.among(columns)
    firsts = [np.cumsum([0, *(getattr(part, what) for part in parts)]).tolist() for what in ("rows", "lines")]
    return Form(name, zero_based, total.width, columns, dense, shift, total.rows, *firsts)


class Sample(NamedTuple):
    """Rows that were drawn: X (n, d) before scaling, y (n,)."""

    X: Examples
    y: NDArray[np.float64]


@dataclass
class Look:
    """What scaling, selection and a journal ask of rows: sums, rows of each label, samples, and a digest."""

    sums: ExactSums
    labels: dict[float, int] = field(default_factory=dict)
    samples: list[list[Sample]] = field(default_factory=list)
    digest: int = 0

    def merge(self, other: Look) -> None:
        """Take in what the next part holds."""
        self.sums.merge(other.sums)
        for label, rows in other.labels.items():
            self.labels[label] = self.labels.get(label, 0) + rows
        for own, more in zip(self.samples, other.samples, strict=True):
            own += more
        self.digest = (self.digest + other.digest) % (1 << 64)

    def sample(self, number: int) -> Sample:
        """All rows of a sample, in the order of their numbers."""
        parts = self.samples[number]
        return Sample(joined([part.X for part in parts]), np.concatenate([part.y for part in parts]))


def looked_at(form: Form, draws: Sequence[Chosen], part: int, pieces: Pieces) -> Look:
    """One pass over a part. draws: which rows are in each of the samples."""
    found = Look(ExactSums(form.features), samples=[[] for _ in draws])
    for first, block in form.blocks(part, pieces):
        numbers = np.arange(first, first + len(block.y))
        found.sums.add(block.X)
        labels, rows = np.unique(block.y, return_counts=True)
        for label, count in zip(labels.tolist(), rows.tolist(), strict=True):
            found.labels[label] = found.labels.get(label, 0) + count
        for sample, chosen in zip(found.samples, draws, strict=True):
            own = np.flatnonzero(chosen(numbers))
            sample.append(Sample(rows_of(block.X, own), block.y[own]))
        found.digest = (found.digest + digest(block.X, block.y, first, form.columns)) % (1 << 64)
    return found


def assigned(
    form: Form, chain: Chain, trees: Sequence[CentreTree], part: int, pieces: Pieces
) -> Iterable[tuple[int, Block]]:
    """(coarse cell, some rows of it, scaled and mapped) of a part; cells of a tree follow those of the one before."""
    for first, block in _held(form.blocks(part, pieces)):
        X = chain.mapped(scaled(chain, block.X), in_place=True)
        before = 0
        for tree in trees:
            cells = tree.assign(X)
            order = np.argsort(cells, kind="stable").astype(np.int64)
            edges = np.searchsorted(cells[order], np.arange(tree.n_cells + 1))
            for cell in np.unique(cells).tolist():
                own = order[edges[cell] : edges[cell + 1]]
                yield before + cell, (first + own, rows_of(X, own), block.y[own])
            before += tree.n_cells


def scaled(chain: Chain, X: Examples) -> Examples:
    """X is overwritten where it is dense. DataError where values are too large."""
    X = chain.scaled(X, read=True, in_place=True)
    check_reach(X)
    return X


def _held(blocks: Iterator[tuple[int, Dataset]]) -> Iterator[tuple[int, Dataset]]:
    """The same rows in larger blocks, so that those of a coarse cell are not sent one by one."""
    waiting: list[tuple[int, Dataset]] = []
    size = 0
    for each in blocks:
        waiting.append(each)
        size += size_of(each[1].X)
        if size >= HELD_BYTES:
            yield _one(waiting)
            waiting, size = [], 0
    if waiting:
        yield _one(waiting)


def _one(blocks: list[tuple[int, Dataset]]) -> tuple[int, Dataset]:
    y = np.concatenate([block.y for _, block in blocks])
    return blocks[0][0], Dataset(joined([block.X for _, block in blocks]), y)


def joined(X: Sequence[Examples]) -> Examples:
    """Rows after rows, dense or CSR as they are."""
    if isinstance(X[0], np.ndarray):
        return np.concatenate(X)
    return as_examples(sparse.vstack(X, format="csr"))
