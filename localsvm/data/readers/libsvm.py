"""Reading LIBSVM text: plain or compressed files and stdin, whole or block by block.

A regular file of plain text is parsed in two passes: the first counts, the second fills the arrays that are returned.
Nothing else of the size of the data is allocated. Compressed files and streams are parsed block by block, and the
rows merged at the end. The result depends neither on the number of threads nor on where blocks are cut.

A value is read as the float64 nearest to its text and then rounded to float32; -0 becomes 0.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from localsvm.data.blocks.columns import Columns, dense_copy, keep_columns
from localsvm.data.blocks.dataset import Dataset, Dense, Examples, prefers_dense, sparse_examples
from localsvm.data.blocks.shift import Shift
from localsvm.data.readers.compression import Source, open_source
from localsvm.data.readers.faults import EMPTY, LONGEST_LINE, NO_ROWS
from localsvm.data.readers.origin import from_origin, look_ahead, settle
from localsvm.data.readers.parts import ParsedPiece, close_gaps, merge_dense, merge_sparse, parse
from localsvm.data.readers.pieces import BLOCK_BYTES, BOM, Counts, TextPiece, ordered, stream_pieces
from localsvm.data.readers.spans import spans
from localsvm.errors import DataError, RunError
from localsvm.memory import UNBOUNDED, Budget

WIDE = 4  # where columns are left out, a text is parsed dense if it has at most so many times those that are kept

Offsets: TypeAlias = npt.NDArray[np.int64]


@dataclass(frozen=True)
class _Options:
    """The arguments of `read`, with the same names."""

    zero_based: bool
    n_features: int | None
    dense: bool | None
    jobs: int
    block_bytes: int
    shifts: bool
    budget: Budget

    @property
    def block(self) -> int:
        """Bytes of text that a thread parses at once."""
        return self.budget.block_bytes(self.block_bytes, self.jobs)

    @property
    def longest(self) -> int:
        """The most bytes of a line."""
        return self.budget.text_bytes(LONGEST_LINE)

    def check(self, name: str, size: int) -> None:
        """Raise RunError where rows of so many bytes do not fit in beside the blocks of text."""
        self.budget.check(f"{name}: its rows need", size + self.jobs * self.block)

    def columns(self, width: int) -> int:
        """Number of columns of the result, where the text has `width`."""
        return width if self.n_features is None else self.n_features

    def is_dense(self, rows: int, columns: int, entries: int) -> bool:
        return prefers_dense(rows, columns, entries) if self.dense is None else self.dense

    def matrix(self, name: str, rows: int, columns: int) -> Dense:
        """A dense matrix (rows, columns), not initialised; RunError if memory is too small."""
        try:
            return np.empty((rows, columns), np.float32)
        except (MemoryError, ValueError) as error:
            what = f"no memory for a dense matrix of {4 * rows * columns / 2**30:.1f} GiB"
            raise RunError(f"{name}: {what}; read it as a sparse one") from error


def read(
    path: str | os.PathLike[str], *, zero_based: bool = False, n_features: int | None = None, dense: bool | None = None,
    jobs: int = 1, block_bytes: int = BLOCK_BYTES, shifts: bool = False, budget: Budget = UNBOUNDED,
) -> Dataset:  # fmt: skip
    """Read a LIBSVM file.

    Parameters
    ----------
    path
        A file, plain or compressed by gzip, bzip2, xz or zstd (known by its content), or "-" for stdin.
    zero_based, n_features
        Whether indices start at 0; and d: entries beyond it are dropped, None for as many as the indices need.
    dense
        Dense or CSR, None for what `prefers_dense` says.
    jobs, block_bytes, shifts, budget
        Threads; most bytes of text that one parses at once; whether columns may have origins (`origin`); memory.

    Returns
    -------
    Dataset
        X (n, d) float32, dense or CSR without stored zeros, and y (n,) float64.

    Raises
    ------
    DataError
        The file cannot be read, has no rows, or holds a mistake; the message says where.
    RunError
        The rows do not fit into the budget, or into memory.
    """
    options = _Options(zero_based, n_features, dense, jobs, block_bytes, shifts, budget)
    with open_source(path) as source:
        return _read_regular(source, options) if source.regular() else _read_stream(source, options)


class Layout(NamedTuple):
    """Form of the rows of blocks.

    Attributes
    ----------
    n_features, dense : columns of the data, entries beyond them are dropped; whether X is dense or CSR.
    columns, shift : of all columns X has these alone, None for all; columns of X that are read from their origin.
    """

    n_features: int
    dense: bool
    columns: Columns | None = None
    shift: Shift | None = None


def read_blocks(
    path: str | os.PathLike[str], layout: Layout, *, zero_based: bool = False, jobs: int = 1,
    block_bytes: int = BLOCK_BYTES, tell: Callable[[Counts], None] | None = None, longest: int = LONGEST_LINE,
) -> Generator[Dataset]:  # fmt: skip
    """Read a LIBSVM file as blocks of rows, in order, with memory for a few blocks only.

    The other parameters are those of `read`. Every block has at least one row. Do not rely on where blocks are cut.
    `tell` is called with the counts of the text of each block; `longest`: the most bytes of a line.

    Raises
    ------
    DataError
        As `read`. It comes after the blocks before the mistake.
    """
    message = EMPTY
    with open_source(path) as source:
        pieces = stream_pieces(source, zero_based, block_bytes, longest)
        for counts, block in blocks_of(pieces, layout, jobs):
            message = message and NO_ROWS
            if counts.rows:
                message = ""
                if tell is not None:
                    tell(counts)
                yield block
        if message:
            raise DataError(message.format(path=source.name))


def blocks_of(pieces: Iterable[TextPiece], layout: Layout, jobs: int = 1) -> Iterator[tuple[Counts, Dataset]]:
    """Counts of the text of each piece, and its rows as `read_blocks` reads them."""
    columns, shift = layout.columns, layout.shift
    of_text = layout if shift is None or columns is None else layout._replace(shift=shift.within(columns))
    for part in ordered(lambda piece: parse_block(piece, of_text), pieces, jobs):
        yield part.counts, Dataset(part.X, part.y, columns=columns, shift=shift)


def parse_block(piece: TextPiece, layout: Layout) -> ParsedPiece:
    """Parse one block as `read_blocks` reads it, but with the shift of the columns of the text."""
    n_features, dense, columns, shift = layout
    part = parse(piece, n_features, dense and (columns is None or n_features <= WIDE * len(columns)), shift)
    if columns is not None:
        part.X = keep_columns(part.X, columns, in_place=True)
    if dense and not isinstance(part.X, np.ndarray):
        part.X = dense_copy(part.X)
    return part


def _read_regular(source: Source, options: _Options) -> Dataset:
    name, zero_based, file = source.name, options.zero_based, source.file.fileno()
    begin = len(BOM) if os.pread(file, len(BOM), 0) == BOM else 0
    texts = spans(name, file, os.fstat(file).st_size, begin, options.block, options.longest)
    counted = list(ordered(lambda text: TextPiece(name, text, 1, zero_based).count(), texts, options.jobs))
    table = np.array(counted, np.int64).reshape(-1, len(Counts._fields))
    lines, rows, entries = (np.concatenate(([0], np.cumsum(column))) for column in table.T[:3])
    if rows[-1] == 0:
        raise DataError(NO_ROWS.format(path=name))
    columns = options.columns(int(table[:, 3].max()))
    pieces = [TextPiece(name, text, int(lines[i]) + 1, zero_based) for i, text in enumerate(texts)]
    dense = options.is_dense(int(rows[-1]), columns, int(entries[-1]))
    shift = look_ahead(pieces, options.n_features)[0] if options.shifts else None
    if shift is not None:
        entries += len(shift.columns) * rows  # where a row has no value, it has one from the origin
    options.check(name, _bytes(dense, int(rows[-1]), columns, int(entries[-1])))
    if dense:
        return _fill_dense(pieces, rows, columns, options, shift)
    return _fill_sparse(pieces, rows, entries, columns, options.jobs, shift)


def _bytes(dense: bool, rows: int, columns: int, entries: int) -> int:
    """Bytes of rows and labels."""
    return 8 * rows + (4 * rows * columns if dense else 8 * entries + 8 * rows)


def _fill_dense(
    pieces: list[TextPiece], rows: Offsets, columns: int, options: _Options, shift: Shift | None
) -> Dataset:
    X, y = options.matrix(pieces[0].name, int(rows[-1]), columns), np.empty(rows[-1])

    def fill(i: int) -> None:
        row_slice = slice(rows[i], rows[i + 1])
        if row_slice.start < row_slice.stop:
            pieces[i].read_dense(X[row_slice], y[row_slice])
            if shift is not None:
                from_origin(X[row_slice], pieces[i], shift)

    for _ in ordered(fill, range(len(pieces)), options.jobs):
        pass
    return _settled(X, y, shift, pieces[0].name)


def _settled(X: Examples, y: npt.NDArray[np.float64], shift: Shift | None, name: str) -> Dataset:
    X, shift = settle(X, shift)
    return Dataset(X, y, shift=shift, name=name)


def _fill_sparse(
    pieces: list[TextPiece], rows: Offsets, entries: Offsets, columns: int, jobs: int, shift: Shift | None
) -> Dataset:
    values, indices = np.empty(entries[-1], np.float32), np.empty(entries[-1], np.int32)
    indptr, y = np.zeros(rows[-1] + 1, np.int64), np.empty(rows[-1])

    def fill(i: int) -> int:
        row_slice, at = slice(rows[i], rows[i + 1]), slice(entries[i], entries[i + 1])
        if row_slice.start == row_slice.stop:
            return 0
        if shift is None:
            return pieces[i].read_sparse(values[at], indices[at], indptr[1:][row_slice], y[row_slice], columns)
        part = parse(pieces[i], columns, False, shift)
        X: Any = part.X
        y[row_slice], indptr[1:][row_slice] = part.y, np.diff(X.indptr)
        values[at][: X.nnz], indices[at][: X.nnz] = X.data, X.indices
        return int(X.nnz)

    kept = list(ordered(fill, range(len(pieces)), jobs))
    close_gaps((values, indices), entries[:-1], kept)
    return _settled(sparse_examples(values, indices, np.cumsum(indptr, out=indptr), columns), y, shift, pieces[0].name)


def _read_stream(source: Source, options: _Options) -> Dataset:
    pieces = stream_pieces(source, options.zero_based, options.block, options.longest)
    shift, pieces = look_ahead(pieces, options.n_features) if options.shifts else (None, pieces)
    parts: list[ParsedPiece] = []
    held = 0
    for part in ordered(lambda piece: parse(piece, options.n_features, None, shift), pieces, options.jobs):
        parts.append(part)
        held += part.nbytes
        options.check(source.name, held + (2 * options.jobs + 1) * part.nbytes)  # others were parsed meanwhile
    rows = sum(part.counts.rows for part in parts)
    if rows == 0:
        raise DataError((NO_ROWS if parts else EMPTY).format(path=source.name))
    y = np.concatenate([part.y for part in parts])
    columns = options.columns(max(part.counts.width for part in parts))
    entries = sum(part.counts.entries for part in parts)
    dense = options.is_dense(rows, columns, entries)
    options.check(source.name, held + _bytes(dense, rows, columns, entries))
    if dense:
        return _settled(merge_dense(parts, options.matrix(source.name, rows, columns)), y, shift, source.name)
    return _settled(merge_sparse(parts, columns), y, shift, source.name)
