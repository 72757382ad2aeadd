"""Coarse cells: which rows are divided together, and how each is divided into cells.

A run of ordinary size is one coarse cell. From a number of rows on there are several, found on a sample of the rows,
so that what a run holds and does at once does not grow with the rows. What is inside a coarse cell depends on its rows
in their order alone, so that it may be divided anywhere.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from localsvm.data.blocks.dataset import Examples
from localsvm.engines.base import CoarseRows, Drawn, Numbers, Route
from localsvm.errors import OptionError
from localsvm.naming import opt
from localsvm.partition import REGISTRY, Partition, TrainingCell, create, inside, measured_by, names_of
from localsvm.partition.chunks import Chunks
from localsvm.partition.members import Members
from localsvm.partition.repeated import Repeated
from localsvm.partition.two_step import SeedStream, TwoStep, draw_key, drawn
from localsvm.runs.config import TrainingConfig
from localsvm.threads import ALONE, Threads

PARTITION_KEY = (1 << 32) - 1  # begins the names of the random numbers of partitions, and of no cell
LEAST_COARSE = 1 << 16  # rows of a coarse cell, ...
COARSE_CELLS = 32  # ... or at least so many cells, ...
COARSE_VALUES, FEW_CELLS = 1 << 28, 8  # ... but no more values than this, of no fewer than so many cells
CHUNK_ROWS = 1 << 13  # of chunks that are divided together

State = dict[str, NDArray[Any]]
Streams = list[tuple[int, ...]]


@dataclass(frozen=True)
class Division:
    """Division of a coarse cell into cells.

    Attributes
    ----------
    state : of the partition inside it, for `CoarseCells.completed`.
    cells : their rows are places among those of the coarse cell.
    streams : the names of the cells' random numbers.
    average : the mean size of a cell, which default grids follow.
    """

    state: State
    cells: list[TrainingCell]
    streams: Streams
    average: float


def with_coarse_size(config: TrainingConfig, rows: int, values: int) -> TrainingConfig:
    """The options with the size of coarse cells decided: a function of them and of the rows alone, wherever these lie.

    values : number of values of a row, zeros that are not stored left out.
    """
    kind = partition_name(config, rows)
    most = max(FEW_CELLS * config.most_rows, COARSE_VALUES // max(1, values))
    size = min(max(LEAST_COARSE, COARSE_CELLS * config.most_rows), most)
    if config.coarse_size is not None or kind in ("none", Chunks.name) or rows <= 2 * size:
        return config
    return replace(config, coarse_size=size)


def partition_name(config: TrainingConfig, rows: int) -> str:
    """Name of the partition of so many rows; it measures by the distance of the method."""
    divided = config.method.divides and rows > config.most_rows
    name = config.partition or ("voronoi" if divided else "none")
    return measured_by(name, config.method.distance) if name in REGISTRY else name


class CoarseCells(ABC):
    """All coarse cells of a run.

    Attributes
    ----------
    partition : of the run, complete after `completed`.
    members : which columns of the rows each repeat sees, and by which distance it measures.
    by_repeat : the numbers of the coarse cells of each repeat, one after the other.
    route : (repeat, numbers, rows) -> (n,) int32 the coarse cell of each row among those of the repeat, -1 for none;
        None where all rows are one coarse cell, in each repeat.
    """

    kind = "coarse cell"  # for messages
    partition: Partition
    members: Members
    by_repeat: list[range]
    route: Route | None = None

    @property
    def count(self) -> int:
        """Number of coarse cells."""
        return self.by_repeat[-1].stop

    def repeat_of(self, number: int) -> int:
        """The repeat that a coarse cell is of."""
        return next(i for i, numbers in enumerate(self.by_repeat) if number in numbers)

    def names_by_repeat(self, names: Sequence[str]) -> list[list[str]]:
        """Names "coarse cell/cell" of records, repeat by repeat."""
        named: list[list[str]] = [[] for _ in self.by_repeat]
        for name in names:
            named[self.repeat_of(int(name.partition("/")[0]))].append(name)
        return named

    def seen(self, coarse: CoarseRows) -> CoarseRows:
        """A coarse cell, with the columns that its repeat sees."""
        if not self.members.several:
            return coarse
        X = self.members.seen(self.repeat_of(coarse.coarse), coarse.rows.X)
        return coarse._replace(rows=coarse.rows._replace(X=X))

    @abstractmethod
    def divide(self, coarse: CoarseRows, threads: Threads = ALONE) -> Division:
        """Divide a coarse cell, as its repeat sees it, into cells."""

    @abstractmethod
    def completed(self, states: Sequence[State], cells: Sequence[int]) -> Partition:
        """Complete the partition of the run, and return it.

        states, cells : the partition inside each coarse cell, and how many cells it has.
        """


class Whole(CoarseCells):
    """One coarse cell of all rows, in each repeat; rows are divided in the order of the repeats."""

    kind = "repeat"

    def __init__(self, config: TrainingConfig, rows: int, members: Members) -> None:
        self._cell_size, self.members = config.most_rows, members
        self._kinds = names_of(partition_name(config, rows), config.times, members)
        self.by_repeat = [range(repeat, repeat + 1) for repeat in range(config.times)]
        self._rng = partition_stream(config)
        self._further: list[np.random.Generator] = []
        self._before, self._average = 0, 0.0

    def divide(self, coarse: CoarseRows, threads: Threads = ALONE) -> Division:
        repeat, rows = coarse.coarse, coarse.rows
        rng = self._further[repeat - 1] if repeat else self._rng
        part = inside(self._kinds[repeat], repeat)().fit(rows.X, rows.y, self._cell_size, rng, threads)
        if not repeat:
            self._check(part, len(rows.y))
            # after the fit, which may itself have drawn streams of its own from this one
            self._further = rng.spawn(len(self.by_repeat) - 1)
        cells = part.training_cells()
        streams: Streams = [(self._before + i,) for i in range(len(cells))]
        self._before += len(cells)
        if not repeat:  # whose models are then those of a run without repeats
            self._average = float(np.mean([len(cell.rows) for cell in cells]))
        return Division(part.state(), cells, streams, self._average)

    def _check(self, part: Partition, rows: int) -> None:
        if part.n_cells == 1 and len(self.by_repeat) > 1 and not self.members.several:
            raise OptionError(
                f"{opt.repeats(len(self.by_repeat))}: all {rows} rows are in one cell, which no other seed would "
                f"divide differently; leave {opt.repeats} out, or divide the rows ({opt.partition('voronoi')}, and a "
                f"smaller {opt.cell_size})"
            )

    def completed(self, states: Sequence[State], cells: Sequence[int]) -> Partition:
        parts = [REGISTRY[kind].from_state(state) for kind, state in zip(self._kinds, states, strict=True)]
        self.partition = parts[0] if len(parts) == 1 else Repeated(parts, self.members)
        return self.partition


class Sketched(CoarseCells):
    """Coarse cells that a sample of the rows gives, each with a partition of its own; see `TwoStep`."""

    def __init__(self, config: TrainingConfig, rows: int, members: Members) -> None:
        kind = partition_name(config, rows)
        self._cell_size, self.members = config.most_rows, members
        self._kinds = names_of(kind, config.times, members)
        self.partition = create(kind, config.times, config.coarse_size, members)
        parts = self.partition.parts if isinstance(self.partition, Repeated) else [self.partition]
        self._steps = [part for part in parts if isinstance(part, TwoStep)]
        self._rows = rows
        assert config.coarse_size is not None, "so it has coarse cells"
        self._rngs = [partition_stream(config, repeat) for repeat in range(config.times)]
        self._keys = [draw_key(rng) for rng in self._rngs]
        self._coarse_size = config.coarse_size

    def sample(self, repeat: int, numbers: Numbers) -> NDArray[np.bool_]:
        """Mask of the rows with these numbers: those in the sample that the coarse cells of a repeat come from."""
        return drawn(numbers, self._rows, self._coarse_size, self._keys[repeat])

    def sketch(self, samples: Sequence[Drawn], threads: Threads = ALONE) -> None:
        """Find the coarse cells of each repeat by its sample of rows."""
        streams: list[SeedStream] = []
        self.by_repeat = []
        for repeat, (step, sample, rng) in enumerate(zip(self._steps, samples, self._rngs, strict=True)):
            seen = self.members.seen(repeat, sample.X)
            repeat_streams = step.sketch(seen, sample.y, self._rows, rng, threads)
            self.by_repeat.append(range(len(streams), len(streams) + len(repeat_streams)))
            streams += repeat_streams
        self._streams = streams

    def route(self, repeat: int, numbers: Numbers, X: Examples) -> NDArray[np.int32]:
        """Coarse cell of each row; see `CoarseCells`."""
        return self._steps[repeat].coarse.assign(self.members.seen(repeat, X))

    def divide(self, coarse: CoarseRows, threads: Threads = ALONE) -> Division:
        number, rows = coarse.coarse, coarse.rows
        repeat = self.repeat_of(number)
        rng = np.random.default_rng(self._streams[number])
        part = inside(self._kinds[repeat], repeat)().fit(rows.X, rows.y, self._cell_size, rng, threads)
        cells = part.training_cells()
        streams: Streams = [(number, i) for i in range(len(cells))]
        return Division(part.state(), cells, streams, float(np.mean([len(cell.rows) for cell in cells])))

    def completed(self, states: Sequence[State], cells: Sequence[int]) -> Partition:
        kinds = [self._kinds[self.repeat_of(number)] for number in range(len(states))]
        fine = [REGISTRY[kind].from_state(state) for kind, state in zip(kinds, states, strict=True)]
        for step, numbers in zip(self._steps, self.by_repeat, strict=True):
            step.complete(fine[numbers.start : numbers.stop])
        return self.partition


class Shuffled(CoarseCells):
    """Random chunks of all rows, as `Chunks` makes them: up to CHUNK_ROWS rows, or one chunk, are a coarse cell."""

    def __init__(self, config: TrainingConfig, rows: int, members: Members) -> None:
        first, self.members = partition_stream(config), members
        chunks = -(-rows // config.most_rows)
        together = max(1, CHUNK_ROWS // config.most_rows)
        coarse = -(-chunks // together)
        self._rows, self._chunks, self._together = rows, chunks, together
        self._rngs = [first, *first.spawn(config.times - 1)]
        self._chunk: dict[int, NDArray[np.int32]] = {}
        self.by_repeat = [range(i * coarse, (i + 1) * coarse) for i in range(config.times)]
        parts = [Chunks(chunks) for _ in range(config.times)]
        self.partition = parts[0] if config.times == 1 else Repeated(parts, members)

    def route(self, repeat: int, numbers: Numbers, X: Examples) -> NDArray[np.int32]:
        """Coarse cell of each row; see `CoarseCells`."""
        return np.asarray(self._of(repeat)[numbers] // self._together, np.int32)

    def _of(self, repeat: int) -> NDArray[np.int32]:
        """Chunk (rows,) of each row."""
        if repeat not in self._chunk:
            chunk = np.empty(self._rows, np.int32)
            rng = deepcopy(self._rngs[repeat])  # threads that route blocks at once all draw the same
            for number, part in enumerate(np.array_split(rng.permutation(self._rows), self._chunks)):
                chunk[part] = number
            self._chunk[repeat] = chunk
        return self._chunk[repeat]

    def divide(self, coarse: CoarseRows, threads: Threads = ALONE) -> Division:
        repeat, place = divmod(coarse.coarse, len(self.by_repeat[0]))
        chunk = self._of(repeat)[coarse.rows.numbers]
        numbers = range(place * self._together, min(self._chunks, (place + 1) * self._together))
        cells = [TrainingCell(np.flatnonzero(chunk == number).astype(np.int64)) for number in numbers]
        streams: Streams = [(repeat * self._chunks + number,) for number in numbers]
        return Division({}, cells, streams, self._rows / self._chunks)

    def completed(self, states: Sequence[State], cells: Sequence[int]) -> Partition:
        return self.partition


class Stored(CoarseCells):
    """The cells of a partition file.

    Parameters
    ----------
    partition : that the file keeps.
    assignment, weight : (n,) the cell of each row, -1 for one that is merged into another; how many rows each is for.
    """

    def __init__(
        self, partition: Partition, assignment: NDArray[Any], weight: NDArray[np.float64], members: Members
    ) -> None:
        self.partition, self._assignment, self._weight = partition, assignment, weight
        self.members = members
        by_coarse = partition.cells_by_coarse
        self._several = by_coarse is not None
        self._firsts = np.concatenate([[0], np.cumsum(by_coarse or [partition.n_cells])]).astype(np.int64)
        self.by_repeat = [range(len(self._firsts) - 1)]
        if self._several:
            self.route = self._routed

    def _routed(self, repeat: int, numbers: Numbers, X: Examples) -> NDArray[np.int32]:
        """Coarse cell of each row; merged rows go with the one that they lie in, as they weigh there."""
        return self.partition.coarse.assign(X)  # type: ignore[attr-defined,no-any-return]

    def divide(self, coarse: CoarseRows, threads: Threads = ALONE) -> Division:
        number, numbers = coarse.coarse, coarse.rows.numbers
        first, last = int(self._firsts[number]), int(self._firsts[number + 1])
        cell = self._assignment[numbers] - first
        order = np.argsort(cell, kind="stable")
        edges = np.searchsorted(cell[order], np.arange(last - first + 1))
        parts = [order[a:b].astype(np.int64) for a, b in pairwise(edges.tolist())]
        cells = [TrainingCell(rows, self._weight[numbers[rows]]) for rows in parts]
        streams: Streams = [(number, i) if self._several else (i,) for i in range(len(cells))]
        return Division({}, cells, streams, float(np.mean([len(rows) for rows in parts])))

    def completed(self, states: Sequence[State], cells: Sequence[int]) -> Partition:
        return self.partition


def partition_stream(config: TrainingConfig, repeat: int = 0) -> np.random.Generator:
    """Generator of the random numbers of a partition."""
    return np.random.default_rng(np.random.SeedSequence(config.seed, spawn_key=(PARTITION_KEY, repeat)))
