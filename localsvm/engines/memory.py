"""Rows in the memory of this process."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from typing import Any

import numpy as np

from localsvm.data.blocks.columns import occurring, scratch_bytes
from localsvm.data.blocks.dataset import Dataset, Examples, between, is_dense, row_blocks, rows_of, size_of
from localsvm.data.readers.weights import check_weights, leave_out
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
)
from localsvm.features.columns import KeptColumns
from localsvm.memory import MORE, UNBOUNDED, Budget
from localsvm.partition._nearest import group
from localsvm.threads import ALONE

AHEAD = 4  # blocks a thread that wait to be merged
WORKING = 32 << 20  # scratch arrays of a thread that works on a block of rows, ...
OF_ROWS = 6  # ... or so many times the rows, where these are few
STRIP = 1 << 20  # values that a thread works on at once


class Memory:
    """Rows of a data set, which is consumed: they are changed in place where that can be.

    Parameters
    ----------
    data : the rows.
    budget : of the run; the results do not depend on it.
    head : of the rows, where another engine has looked at them.
    """

    def __init__(self, data: Dataset, budget: Budget = UNBOUNDED, head: Head | None = None) -> None:
        self.data, self.name, self.threads = data, data.name, ALONE
        self._budget, self._head = budget, head

    def in_memory(self) -> Memory:
        """The engine itself; see `Engine.in_memory`."""
        return self

    def fits(self, size: int) -> bool:
        """True where so many bytes fit in beside the rows and labels."""
        return self._held + size <= self._budget.room

    def room(self, what: str, size: int, remedy: str = "", scratch: bool = True) -> None:
        """Raise RunError where `size` bytes do not fit in beside the rows, the labels, and scratch arrays of threads.

        what : the work that needs them, without its verb.
        scratch : whether threads have scratch arrays.
        """
        rows = size_of(self.data.X)
        shared = self.threads.count * min(WORKING, OF_ROWS * rows) if scratch else 0
        self._budget.check(f"{what} needs", self._held + shared + size, remedy)

    @property
    def remedy(self) -> str:
        """Advice for a run whose memory is too small."""
        return self._budget.remedy

    @property
    def _held(self) -> int:
        return size_of(self.data.X) + 16 * len(self.data.y)

    def head(self, columns: KeptColumns | None = None, all_rows: bool = False) -> Head:
        """Take the first look; see `Engine.head`."""
        if self._head is not None:
            return self._head
        data, left_out = self.data, 0
        if data.weight is not None:
            data.weight = check_weights(data.weight, len(data.y))
            left_out = len(data.y) - int(np.count_nonzero(data.weight))
            if left_out and not all_rows:
                self.room("leaving out rows of weight 0", size_of(data.X), f"{MORE}, or remove these rows")
                leave_out(data)
        self.room("finding the columns that occur", scratch_bytes(data.X))
        if columns is None:
            kept, absent = KeptColumns.fit(data, self._dense), 0
        else:
            kept = columns.narrow(data, self._dense)
            absent = len(columns.known) - len(occurring(data.X))
        X: Any = data.X
        entries = X.size if isinstance(X, np.ndarray) else X.nnz
        return Head(
            data.name, len(data.y), entries, kept, data.shift, data.weight is not None, left_out, absent, data.classes,
            data.table, data.group is not None,
        )  # fmt: skip

    def _dense(self, size: int) -> None:
        self.room("making the rows dense, in the columns that occur,", size)

    def reduce(self, statistics: Sequence[Statistic]) -> list[Any]:
        """Value of each statistic for all rows; see `Engine.reduce`."""
        data, tree = self.data, InOrder(statistics)
        X: Any = data.X
        entries = X.size if isinstance(X, np.ndarray) else X.nnz
        dense, (rows, width) = is_dense(X), X.shape
        size = Head("", rows, entries, KeptColumns(None, width, dense), None).block_rows
        threads = self.threads if dense else ALONE  # each would hold arrays of all columns, which may be very many
        numbers = range(-(-rows // size))
        step = AHEAD * threads.count

        def of(number: int) -> list[Any]:
            block = self._block(number * size, min(rows, (number + 1) * size))
            return [statistic.of(block) for statistic in statistics]

        for first in range(0, len(numbers), step):
            part = numbers[first : first + step]
            for number, values in zip(part, threads.map(lambda i, part=part: of(part[i]), len(part)), strict=True):  # type: ignore[misc]
                tree.put((0, number), values)
        return tree.result()

    def _block(self, first: int, last: int) -> Block:
        data = self.data
        weight = None if data.weight is None else data.weight[first:last]
        group = None if data.group is None else data.group[first:last]
        return Block(first, between(data.X, first, last), data.y[first:last], weight, data.columns, group)

    def through(self, step: Step) -> None:
        """Apply a step to the rows; see `Engine.through`."""
        self.data.X = step(self.data.X)

    def work(
        self, cells: CoarseRouting, trainer: Trainer, wanted: Sequence[int], resources: Any, finished: Any
    ) -> Generator[Event]:
        """Events of the work of a trainer; see `Engine.work`."""
        coarse = self._whole(wanted) if cells.route is None else self._coarse(cells, wanted)
        return trainer.records(coarse, resources, finished)

    def _whole(self, wanted: Sequence[int]) -> Iterator[CoarseRows]:
        """All rows for each coarse cell; nothing here holds them after the last one."""
        for coarse in wanted:
            yield self._all(coarse, last=coarse == wanted[-1])

    def _all(self, coarse: int, last: bool) -> CoarseRows:
        data = self.data
        rows = Drawn(np.arange(len(data.y)), data.X, data.y, data.weight, data.group)
        if last:
            data.X = data.y = data.weight = data.group = None  # type: ignore[assignment]
        return CoarseRows(coarse, rows)

    def _coarse(self, cells: CoarseRouting, wanted: Sequence[int]) -> Iterator[CoarseRows]:
        data = self.data
        for repeat, coarse_cells in enumerate(cells.by_repeat):
            todo = [coarse for coarse in wanted if coarse in coarse_cells]
            if not todo:
                continue
            rows = np.arange(len(data.y), dtype=np.int64)
            bounds = group(rows, self._routed(cells, repeat), len(coarse_cells))
            for coarse in todo:
                chosen = rows[bounds[coarse - coarse_cells.start] : bounds[coarse - coarse_cells.start + 1]]
                weight = None if data.weight is None else data.weight[chosen]
                mates = None if data.group is None else data.group[chosen]
                yield CoarseRows(coarse, Drawn(chosen, rows_of(data.X, chosen), data.y[chosen], weight, mates))

    def _routed(self, cells: CoarseRouting, repeat: int) -> Any:
        """Coarse cell (n,) int32 of each row, among those of the repeat."""
        X: Any = self.data.X
        routed = np.empty(len(self.data.y), np.int32)
        blocks = list(row_blocks(X, STRIP))
        assert cells.route is not None, "asked by `work`"
        route = cells.route

        def one(i: int) -> None:
            part = blocks[i]
            rows: Examples = between(X, part.start, part.stop)
            routed[part] = route(repeat, np.arange(part.start, part.stop), rows)

        self.threads.map(one, len(blocks))
        return routed
