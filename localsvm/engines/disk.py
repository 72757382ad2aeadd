"""Rows in scratch files: for data larger than memory.

The text is read once and its rows are written down as they are. Passes read them in blocks. Before cells are trained,
rows are written anew, coarse cell after coarse cell, so that each is read as a whole.
"""

from __future__ import annotations

import os
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from functools import reduce
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from localsvm.data.blocks.columns import Columns, occurring, put_columns
from localsvm.data.blocks.dataset import Dataset, Examples, between, prefers_dense, rows_of
from localsvm.data.blocks.dealing import renumbered
from localsvm.data.blocks.scratch import FileArray, ScratchRows, check_room, scratch_folder
from localsvm.data.readers.compression import read_once
from localsvm.data.readers.origin import rounded
from localsvm.data.readers.pieces import Counts
from localsvm.engines.base import (
    Block,
    CoarseRouting,
    CoarseRows,
    Drawn,
    Event,
    Head,
    InOrder,
    Statistic,
    Step,
    Trainer,
    joined,
)
from localsvm.engines.memory import Memory
from localsvm.engines.sources import RowSource, TextSource
from localsvm.errors import DataError, OptionError
from localsvm.features.columns import KeptColumns
from localsvm.memory import MORE, UNBOUNDED, Budget
from localsvm.naming import opt
from localsvm.partition._nearest import group
from localsvm.threads import ALONE

FILES = 2  # times the rows: scratch files that are there at once
WRITTEN = 1 << 22  # values that are read, sorted into coarse cells, and written at once


class Disk:
    """The rows and labels of a file, in scratch files in the folder of temporary files (TMPDIR).

    Parameters
    ----------
    source : LIBSVM text by its name, or a source of rows.
    weights, groups : files of the rows' weights and groups, of LIBSVM text.
    zero_based, shifts : as of `data.readers.libsvm.read`, of LIBSVM text.
    budget : the memory of the run.
    counts : what the file holds, where that is known.
    block_bytes : of text, which is read at once; None where that may follow the budget.

    Raises
    ------
    DataError : as `read`; the file changed while it was read.
    OptionError : stdin, which cannot be read twice.
    RunError : the folder has no room for the files.
    """

    def __init__(
        self, source: str | Path | RowSource, *, zero_based: bool = False, shifts: bool = False,
        weights: str | Path | None = None, groups: str | Path | None = None, budget: Budget = UNBOUNDED,
        counts: Counts | None = None, block_bytes: int | None = None,
    ) -> None:  # fmt: skip
        self.source: RowSource = (
            TextSource(source, zero_based, shifts, weights, groups, budget, counts, block_bytes)
            if isinstance(source, str | Path)
            else source
        )
        self.name = self.source.name
        if read_once(self.name):
            raise OptionError(f"{opt.out_of_core} reads a file twice, and cannot from a pipe; write it to a file first")
        self.threads, self._budget, self._text_blocks = ALONE, budget, list[int]()
        self._weight: NDArray[np.float64] | None = None
        self._group: NDArray[np.int64] | None = None
        self._seen = _signature(self.name)
        self._steps: list[Step] = []
        self._head: Head | None = None

    def head(self, columns: KeptColumns | None = None, all_rows: bool = False) -> Head:
        """Take the first look, and write the rows down; see `Engine.head`."""
        jobs = self.threads.count
        counts = self.source.counts(jobs)
        weight, self._group = self.source.of_rows(counts.rows)
        dense = prefers_dense(counts.rows, counts.width, counts.entries)
        size = 4 * counts.rows * counts.width if dense else 8 * (counts.entries + counts.rows)
        check_room(folder := scratch_folder(), FILES * size)
        blocks = self.source.blocks(counts, dense, jobs)
        self._folder, self._rows = folder, ScratchRows(folder, counts.width, dense)
        self._y, self._weight = FileArray(folder, np.float64), weight
        nonzero, entries = self._written(blocks, counts.rows, all_rows)
        self._shift = shift = self.source.shift
        constant = None
        if shift is not None:
            varies = np.isin(shift.columns, nonzero)
            constant = None if varies.all() else shift.columns[~varies]
            self._constant = (constant, None if constant is None else rounded(shift.origin[~varies]))
            nonzero, self._shift = np.union1d(nonzero, shift.columns), shift.where(varies)
            entries += 0 if constant is None else len(constant) * self._y.rows
        else:
            self._constant = (None, None)
        self._head = self._known(nonzero, entries, columns)
        if weight is not None:
            left_out = counts.rows - int(np.count_nonzero(weight))
            self._head = replace(self._head, weighted=True, left_out=left_out)
        self._head = replace(self._head, grouped=self._group is not None, **self.source.described)
        return self._head

    def _written(self, blocks: Generator[Dataset], rows: int, all_rows: bool) -> tuple[Columns, int]:
        """Write the rows down; the columns in which some row is not 0, and the number of values that are stored."""
        read = 0
        occurs = np.zeros(self._rows.columns, np.bool_)
        entries = 0
        with closing(blocks):
            for block in blocks:
                X, y = block.X, block.y
                if read + len(y) > rows:
                    read += len(y)
                    break
                if self._weight is not None and not all_rows:
                    kept_rows = np.flatnonzero(self._weight[read : read + len(y)])
                    read += len(y)
                    if len(kept_rows) < len(y):
                        X, y = rows_of(X, kept_rows), y[kept_rows]
                else:
                    read += len(y)
                occurs[occurring(X)] = True
                entries += X.size if isinstance(X, np.ndarray) else X.nnz
                self._rows.append(X)
                self._y.write(self._y.rows, y)
                self._text_blocks.append(len(y))
        if read != rows or _signature(self.name) != self._seen:
            raise DataError(f"{self.name}: the file changed while it was read; train again when it is complete")
        if self._weight is not None and not all_rows:
            self._group = None if self._group is None else renumbered(self._group[self._weight > 0])
            self._weight = self._weight[self._weight > 0]
        return np.flatnonzero(occurs), entries

    def _known(self, nonzero: Columns, entries: int, asked: KeptColumns | None) -> Head:
        rows, width, dense = self._y.rows, self._rows.columns, self._rows.dense
        if asked is None:
            kept = None if len(nonzero) == width else nonzero
            dense = dense or (kept is not None and prefers_dense(rows, len(kept), entries))
            columns, absent = KeptColumns(kept, width, dense), 0
        else:
            columns = replace(asked, width=max(width, int(asked.known[-1]) + 1), dense=dense)
            count = columns.columns(columns.width)
            columns = replace(columns, dense=dense or prefers_dense(rows, count, entries))
            absent = len(np.setdiff1d(asked.known, nonzero))
        shift = self._shift
        if shift is not None and columns.kept is not None:
            shift = shift.among(columns.kept)
        return Head(self.name, rows, entries, columns, shift, absent=absent)

    def in_memory(self) -> Memory:
        """Read all rows into memory; see `Engine.in_memory`."""
        if self._head is None:
            return self._taken(self.source.read(self.threads.count), None)
        head = self._head
        size = 4 * head.rows * head.features if head.columns.dense else 8 * (head.entries + head.rows)
        what = f"{self.name}: the {head.rows:,} rows are divided at once, which"
        self._budget.check(f"{what} needs", 2 * size, f"{MORE}, or divide them in two steps ({opt.coarse_size})")
        parts = [block.X for block in self._blocks()]
        data = Dataset(
            joined(parts), self._y.read(0, head.rows), head.classes, head.columns.kept, head.shift, self._weight,
            self._group, self.name, head.table,
        )  # fmt: skip
        return self._taken(data, head)

    def room(self, what: str, size: int, remedy: str = "") -> None:
        """Raise RunError where `size` bytes do not fit in; what : the work that needs them, without its verb."""
        self._budget.check(f"{what} needs", size, remedy)

    def _taken(self, data: Dataset, head: Head | None) -> Memory:
        memory = Memory(data, self._budget, head=head)
        memory.threads = self.threads
        return memory

    def reduce(self, statistics: Sequence[Statistic]) -> list[Any]:
        """Value of each statistic for all rows; see `Engine.reduce`."""
        tree = InOrder(statistics)
        for number, block in enumerate(self._blocks()):
            tree.add(block, number)
        return tree.result()

    def through(self, step: Step) -> None:
        """Add a step; see `Engine.through`."""
        self._steps.append(step)

    def work(
        self, cells: CoarseRouting, trainer: Trainer, wanted: Sequence[int], resources: Any, finished: Any
    ) -> Generator[Event]:
        """Events of the work of a trainer; see `Engine.work`."""
        return trainer.records(self._coarse(cells, wanted), resources, finished)

    def _blocks(self, values: int | None = None) -> Iterator[Block]:
        """All rows as they are read, in blocks of so many values; in blocks of `Head.block_rows` rows for None."""
        head = self._head
        assert head is not None, "after the first look"
        rows = head.rows
        step = head.block_rows if values is None else self._step(values)
        for first in range(0, rows, step):
            yield self._block(first, min(rows, first + step))

    @property
    def weight(self) -> NDArray[np.float64] | None:
        """Weights (n,) of the rows, after the first look; None where they have none."""
        return self._weight

    def read_again(self) -> Iterator[Block]:
        """All rows as they are read, in the blocks of the text, of which none is empty."""
        first = 0
        for rows in self._text_blocks:
            if rows:
                yield self._block(first, first + rows)
            first += rows

    def _block(self, first: int, last: int) -> Block:
        assert self._head is not None, "after the first look"
        weight = None if self._weight is None else self._weight[first:last]
        group = None if self._group is None else self._group[first:last]
        X, y = self._read(self._rows, first, last), self._y.read(first, last)
        return Block(first, X, y, weight, self._head.columns.kept, group)

    def _step(self, values: int) -> int:
        """Number of rows with so many values."""
        assert self._head is not None, "after the first look"
        return max(1, values // max(1, self._head.row_values))

    def _read(self, rows: ScratchRows, first: int, last: int) -> Examples:
        """Rows first .. last - 1 in the columns that are kept."""
        assert self._head is not None, "after the first look"
        X, columns = rows.between(first, last), self._head.columns
        constant, value = self._constant
        if constant is not None and value is not None:
            X = put_columns(X, constant, np.broadcast_to(value, (last - first, len(value))))
        if X.shape[1] < columns.width:
            from localsvm.data.blocks.columns import widened

            X = widened(X, columns.width)
        return columns.apply(X, in_place=True)

    def _stepped(self, X: Examples) -> Examples:
        return reduce(lambda rows, step: step(rows), self._steps, X)

    def _coarse(self, cells: CoarseRouting, wanted: Sequence[int]) -> Iterator[CoarseRows]:
        assert cells.route is not None, "one coarse cell is in memory"
        rows, y = self._y.rows, self._y.read(0, self._y.rows)
        for repeat, coarse_cells in enumerate(cells.by_repeat):
            todo = [coarse for coarse in wanted if coarse in coarse_cells]
            if not todo:
                continue
            coarse = np.empty(rows, np.int32)
            for block in self._blocks(WRITTEN):
                last = block.first + len(block.y)
                coarse[block.first : last] = cells.route(repeat, block.numbers, self._stepped(block.X))
            numbers = np.arange(rows, dtype=np.int64)
            bounds = group(numbers, coarse, len(coarse_cells))
            arranged = self._arranged(coarse, numbers, bounds)
            for number in todo:
                first, last = (int(bounds[number - coarse_cells.start + i]) for i in (0, 1))
                chosen = numbers[first:last]
                X = self._stepped(self._read(arranged, first, last))
                weight = None if self._weight is None else self._weight[chosen]
                mates = None if self._group is None else self._group[chosen]
                yield CoarseRows(number, Drawn(chosen, X, y[chosen], weight, mates))
            del arranged  # before those of the next repeat are written

    def _arranged(self, coarse: NDArray[np.int32], order: NDArray[np.int64], bounds: NDArray[np.int64]) -> ScratchRows:
        """Scratch files of the rows as they are, coarse cell after coarse cell."""
        entries = None if self._rows.dense else np.diff(self._rows.pointers)[order]
        arranged, filled = ScratchRows(self._folder, self._rows.columns, self._rows.dense, entries), bounds.copy()
        rows, step = len(coarse), self._step(WRITTEN)
        for first in range(0, rows, step):
            last = min(rows, first + step)
            X, mine = self._rows.between(first, last), coarse[first:last]
            places = np.argsort(mine, kind="stable")
            ends = np.searchsorted(mine[places], np.arange(len(bounds)))
            X = rows_of(X, places)
            for number in np.unique(mine).tolist():
                begin, end = int(ends[number]), int(ends[number + 1])
                arranged.put(int(filled[number]), between(X, begin, end))
                filled[number] += end - begin
        return arranged


def _signature(path: str | Path) -> tuple[int, ...] | None:
    """Values that an edit of a file changes; None where there is no file."""
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_ino, status.st_size, status.st_mtime_ns
