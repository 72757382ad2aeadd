"""Rows on many machines: a text in parts, and a coarse cell a task (Thomann et al. 2017, section 5.1).

Whoever holds a part says what its rows are, and sends them to their coarse cells; each of these is divided, selected
and solved by itself. Memory here does not grow with the rows.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial, reduce
from typing import Any, Protocol

import numpy as np

from localsvm.data.blocks.dataset import size_of
from localsvm.engines.base import (
    Block,
    CoarseRouting,
    CoarseRows,
    Drawn,
    Event,
    Head,
    InOrder,
    Sample,
    Statistic,
    Step,
    Trainer,
    together,
)
from localsvm.engines.memory import Memory
from localsvm.engines.text_parts import Form, another_level, counted, far_columns, form_of, lines
from localsvm.errors import DataError, OptionError
from localsvm.features.columns import KeptColumns
from localsvm.kernels._kernels import LEVELS, simd_level
from localsvm.naming import opt
from localsvm.threads import ALONE

HELD_BYTES = 32 << 20  # of a part's rows that are sorted into coarse cells at once
Pieces = Iterator[bytes]


class ClusterGroups(Protocol):
    """Values in groups, on many machines."""

    def unordered(self, work: Callable[[Any, list[Any]], Any], wanted: Mapping[int, Any]) -> Generator[tuple[int, Any]]:
        """Pairs (group, result of `work` for wanted[group] and the values of the group), as they finish."""


class ClusterText(Protocol):
    """A text in parts, on many machines; see `parallel.spark.Text`."""

    name: str

    def head(self, lines: int) -> bytes:
        """The first lines, or all where there are fewer."""

    def each(self, work: Callable[[int, Pieces], Any]) -> list[Any]:
        """Results of `work` for the number and the pieces of each part, in their order."""

    def groups(self, work: Callable[[int, Pieces], Iterable[tuple[int, Any]]], count: int) -> ClusterGroups:
        """Values that `work` gives of each part as (group, value), together by group."""


class Spark:
    """The rows of a text in parts.

    Parameters
    ----------
    zero_based, shifts : as of `data.readers.libsvm.read`.
    described : fields of `Head` on the table that the text was.
    """

    def __init__(
        self, text: ClusterText, *, zero_based: bool = False, shifts: bool = False,
        described: Mapping[str, Any] | None = None,
    ) -> None:  # fmt: skip
        self._text, self._zero_based, self._shifts = text, zero_based, shifts
        self._described = dict(described or {})
        self.name, self.threads = text.name, ALONE
        self._form: Form | None = None
        self._steps: list[Step] = []

    def head(self, columns: KeptColumns | None = None, all_rows: bool = False) -> Head:
        """Take the first look, in one pass; see `Engine.head`. DataError names the line of a mistake."""
        if columns is not None or all_rows:
            raise OptionError(
                f"{opt.metric_file} and {opt.partition_file} are not for {opt.backend('spark')}; leave them out"
            )
        text, name, from_0 = self._text, self.name, self._zero_based
        far = far_columns(name, from_0, text.head) if self._shifts else None
        try:
            parts = text.each(partial(counted, name, from_0, far, None))
        except DataError:  # of a line that is counted from the beginning of its part
            first = np.cumsum([0, *text.each(lines)]).tolist()
            text.each(partial(counted, name, from_0, far, first))
            raise
        for level in sorted(set().union(*(part.levels for part in parts)) - {LEVELS[simd_level()]}):
            raise another_level(level, LEVELS[simd_level()])
        self._form = form_of(name, from_0, far, parts)
        return self._whole(self._form.head)

    def _whole(self, head: Head) -> Head:
        return replace(head, **self._described)

    @property
    def form(self) -> Form:
        """Form in which the text is read, after the first look."""
        if self._form is None:
            self.head()
        assert self._form is not None, "it has just been found"
        return self._form

    def in_memory(self) -> Memory:
        """Read all rows into memory; see `Engine.in_memory`."""
        head = self._whole(self.form.head)
        rows = together(self.reduce([Sample(_all)])[0]).dataset
        rows.columns, rows.shift, rows.name = head.columns.kept, head.shift, self.name
        rows.classes, rows.table = head.classes, head.table
        memory = Memory(rows, head=head)
        memory.threads = self.threads
        return memory

    def reduce(self, statistics: Sequence[Statistic]) -> list[Any]:
        """Value of each statistic for all rows, in one pass; see `Engine.reduce`.

        Rows of a block that lies in two parts are sent to this process.
        """
        tree, ends = InOrder(statistics), []
        for reduced in self._text.each(partial(_reduced, self.form, statistics)):
            for node, values in reduced.nodes.items():
                tree.put(node, values)
            ends += reduced.ends
        size = self.form.head.block_rows
        pieces: dict[int, list[Block]] = {}
        for end in ends:
            pieces.setdefault(end.first // size, []).append(end)
        for number, blocks in pieces.items():
            rows = together([Drawn(block.numbers, block.X, block.y) for block in blocks])
            tree.add(Block(number * size, rows.X, rows.y, columns=self.form.columns), number)
        return tree.result()

    def through(self, step: Step) -> None:
        """Add a step; see `Engine.through`."""
        self._steps.append(step)

    def work(
        self, cells: CoarseRouting, trainer: Trainer, wanted: Sequence[int], resources: Any, finished: Any
    ) -> Generator[Event]:
        """Events of the work of a trainer, in one pass; see `Engine.work`.

        Each coarse cell is a task, which is done as a whole or not at all.
        """
        count = cells.by_repeat[-1].stop
        groups = self._text.groups(partial(_assigned, self.form, self._steps, cells), count)
        task = _Task(trainer, LEVELS[simd_level()])
        if wanted:
            with closing(groups.unordered(_trained, {number: (task, number) for number in wanted})) as results:
                for _, events in results:
                    yield from events


@dataclass(frozen=True)
class _Reduced:
    """Values of a part: those of its whole blocks, merged as far as they can be, and its rows of other blocks."""

    nodes: dict[tuple[int, int], list[Any]]
    ends: list[Block]


def _reduced(form: Form, statistics: Sequence[Statistic], part: int, pieces: Pieces) -> _Reduced:
    size, tree, ends = form.head.block_rows, InOrder(statistics), []
    waiting: list[Block] = []
    for number, whole, piece in _cut(form.blocks(part, pieces), size, form.rows):
        waiting.append(piece)
        if whole == sum(len(block.y) for block in waiting):
            rows = together([Drawn(block.numbers, block.X, block.y) for block in waiting])
            tree.add(Block(number * size, rows.X, rows.y, columns=form.columns), number)
            waiting = []
        elif piece.first + len(piece.y) == number * size + whole:
            ends += waiting
            waiting = []
    return _Reduced(tree.nodes, ends + waiting)


def _cut(blocks: Iterable[Block], size: int, rows: int) -> Iterator[tuple[int, int, Block]]:
    """Rows cut where blocks of `size` rows begin: the number of the block, its number of rows, and the rows of it."""
    for block in blocks:
        first, last = block.first, block.first + len(block.y)
        while first < last:
            number = first // size
            end = min(last, (number + 1) * size)
            yield number, min(size, rows - number * size), block.between(first, end)
            first = end


def _all(block: Block) -> Any:
    return np.ones(len(block.y), np.bool_)


def _assigned(
    form: Form, steps: Sequence[Step], cells: CoarseRouting, part: int, pieces: Pieces
) -> Iterable[tuple[int, Drawn]]:
    """Pairs (coarse cell, some rows of it, after all steps) of a part."""
    assert cells.route is not None, "one coarse cell is in memory"
    for rows in _held(form.blocks(part, pieces)):
        X = reduce(lambda X, step: step(X), steps, rows.X)
        mapped = Block(0, X, rows.y)
        for repeat, coarse_cells in enumerate(cells.by_repeat):
            coarse = cells.route(repeat, rows.numbers, X)
            order = np.argsort(coarse, kind="stable").astype(np.int64)
            edges = np.searchsorted(coarse[order], np.arange(len(coarse_cells) + 1))
            for number in np.unique(coarse).tolist():
                chosen = order[edges[number] : edges[number + 1]]
                yield coarse_cells.start + number, mapped.rows(chosen)._replace(numbers=rows.numbers[chosen])


def _held(blocks: Iterator[Block]) -> Iterator[Drawn]:
    """Rows in larger blocks, so that those of a coarse cell are not sent one by one."""
    waiting: list[Drawn] = []
    size = 0
    for block in blocks:
        waiting.append(Drawn(block.numbers, block.X, block.y))
        size += size_of(block.X)
        if size >= HELD_BYTES:
            yield together(waiting)
            waiting, size = [], 0
    if waiting:
        yield together(waiting)


@dataclass(frozen=True)
class _Task:
    """Work on the rows of a coarse cell. level: the SIMD level of this machine."""

    trainer: Trainer
    level: str


def _trained(wanted: tuple[_Task, int], parts: list[Drawn]) -> list[Event]:
    """Records of a coarse cell, that of its division at the end: so it is there whole, or not at all.

    wanted : the task and the number of the coarse cell.
    """
    task, number = wanted
    if LEVELS[simd_level()] != task.level:
        raise another_level(LEVELS[simd_level()], task.level)
    rows = together(parts)
    order = np.argsort(rows.numbers)
    rows = Drawn(rows.numbers[order], Block(0, rows.X, rows.y).rows(order).X, rows.y[order])
    return [event for event in task.trainer.records([CoarseRows(number, rows)]) if "/" not in event[1]]
