"""All cells of a run through the pool: which work units, in which order, how many at once."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any, Protocol

import numpy as np

from localsvm.data import shared
from localsvm.errors import ModelError, RunError, WorkerLost
from localsvm.kernels.entries import few_entries
from localsvm.kernels.scratch import Scratch
from localsvm.memory import PROCESS_BYTES, addresses_left, affordable_workers, available_memory, shown
from localsvm.methods.base import CellSize
from localsvm.methods.grids import Grid
from localsvm.pulse import Beat, listening
from localsvm.runs.cell_work import CellResult, RunInputs, WorkUnit
from localsvm.runs.config import TrainingConfig
from localsvm.runs.division import Divided
from localsvm.runs.progress import Observer, Work
from localsvm.selection.cross_validation import Scores
from localsvm.selection.search import Search

# Sum of squared cell sizes times problems, up to which this process alone is faster than the start of workers: .7 s,
# when one core has scored and fitted the default grid of so much in .3 to .45 s
SMALL_RUN = 1e7
SPARE_SHARE = 0.7  # of what is left beside the work, for what would be computed again: estimates are not exact
SPARE_BYTES = 1 << 30  # no more than this for each worker without --memory

Piece = Callable[[Any], Any]  # of work
Told = Callable[[int, Scores], None]  # (cell, scores of one setting)


def ignored(cell: int, scores: Scores) -> None:
    """Nobody is told of it."""


class Pool(Protocol):
    """Where work is done: calls each piece of work with what its worker keeps from piece to piece."""

    def unordered(self, work: deque[Piece]) -> Iterator[tuple[Piece, Any]]:
        """(work, result) as they finish, in any order; the caller may append to `work` while it iterates.

        A piece of work is called with what its worker keeps; it and its result must survive pickle. Where that gives a
        generator, what it yields is told first, as (work, what it yields) when it is there; the result is what it
        returns.
        """


# (workers, what each of them keeps, who is told of what is unusual): a pool to be entered
PoolFactory = Callable[[int, Callable[[], Any], Callable[[str], None]], AbstractContextManager[Pool]]


class RunCells:
    """The cells of a run and their way through a pool.

    Parameters
    ----------
    divided, config : the rows, and the options with `select` decided.
    jobs : the most workers, and cores to use.
    memory : bytes that the run may use with its data, None for what the machine has free beside them.
    observer, pool : who is told of what is unusual, and what makes the pool.
    fit : whether cells are trained, or only cross-validated.
    """

    def __init__(
        self,
        divided: Divided,
        config: TrainingConfig,
        jobs: int,
        memory: int | None,
        observer: Observer,
        pool: PoolFactory,
        fit: bool = True,
    ) -> None:
        assert config.select is not None, "decided by for_classes"
        self.divided, self.config = divided, config
        self._jobs, self._memory, self._observer, self._pool = jobs, memory, observer, pool
        self.inputs = RunInputs(
            method=config.method,
            target=config.target(divided.labels),
            folds=config.folds,
            select=config.select,
            seed=config.seed,
            X=divided.X.handle(),
            y=divided.y.handle(),
            count=divided.count.handle(),
            mass=None if divided.mass is None else divided.mass.handle(),
            places=divided.places.handle(),
            class_weights=config.class_weights,
            fresh=None if divided.fresh is None else divided.fresh.handle(),
            fit=fit,
            probability=config.probability,
            search=Search(config.grid),
        )

    def results(
        self,
        skip: set[int] | None = None,
        known: Mapping[int, Mapping[int, Scores]] | None = None,
        told: Told = ignored,
    ) -> Generator[CellResult]:
        """Results of all cells but those in `skip`, as they finish; largest cells first.

        Parameters
        ----------
        skip : cells that are finished.
        known : of other cells the scores of settings that need not be scored again.
        told : is called with (cell, scores) when a setting is scored, if there are few cells or the cell is large.

        Few cells are split into the settings of their grid, so that all workers stay busy; what a setting gives does
        not depend on it. Where even those are fewer than the jobs, threads work inside them. A method that prepares
        fold by fold would do so again in each unit: its cells stay whole.

        Raises
        ------
        RunError : the memory does not suffice for one worker, or the worker of a cell was killed twice.
        """
        queue, workers = self._queue(skip or set(), known or {})
        try:
            count = min(workers, max(1, len(queue.waiting)))
            with self._pool(count, Scratch, self._observer.note) as pool:
                for done, result in self._finished(pool, queue.waiting):
                    if isinstance(result, CellResult):
                        yield result
                        continue
                    told(done.index, result)
                    if done.settings:
                        queue.scored(done, result)
        except WorkerLost as error:
            if not self.inputs.fit:
                raise
            raise RunError(f"{error}; what was finished is kept: go on with --resume") from error
        finally:
            shared.forget()  # what this process, too, mapped

    def _finished(self, pool: Pool, waiting: deque[Piece]) -> Iterator[tuple[WorkUnit, Any]]:
        """What the pool finishes; meanwhile the observer hears of solvers, of this process or of its workers."""
        with listening(self._observer.solving):
            for done, result in pool.unordered(waiting):
                if isinstance(result, Beat):
                    self._observer.solving(result.steps)
                else:
                    assert isinstance(done, WorkUnit)
                    yield done, result

    def _queue(self, skip: set[int], known: Mapping[int, Mapping[int, Scores]]) -> tuple[_Queue, int]:
        """What waits to be done at the beginning, and for how many workers."""
        order = np.argsort(-self.divided.sizes, kind="stable")
        todo = [int(i) for i in order if int(i) not in skip]
        cores = self._within_memory() if todo else 1  # a thread inside a cell needs no more than a worker
        workers = self._workers(todo, cores)
        few = len(todo) < 4 * workers
        queue = _Queue(self._units(todo, known, few, self._spare(workers) if todo else 0), cores)
        if few and workers > 1 and self.config.folds > 1 and self.config.method.sees == "rows":
            queue.split(self._grid())
        return queue, workers

    def _units(
        self, todo: list[int], known: Mapping[int, Mapping[int, Scores]], few: bool, room: int
    ) -> list[WorkUnit]:
        """A unit a cell; few: there are so few that each tells its settings; room: for each of those at work."""
        if known and {scores.loss.shape for of in known.values() for scores in of.values()} != {
            Scores.of(self._grid()).loss.shape
        }:
            raise ModelError("the journal has scores of another grid; give --force to start afresh")
        edges, average = self.divided.edges.tolist(), self.divided.average_rows.tolist()
        return [
            WorkUnit(
                self.inputs, i, edges[i], edges[i + 1], self.divided.streams[i], self.divided.fold_rows[i], average[i],
                known=known.get(i, {}), tells=few or self._squares([i]) > SMALL_RUN, room=room,
            )
            for i in todo
        ]  # fmt: skip

    def _grid(self) -> Grid:
        """A grid of as many points as that of each cell."""
        return self.config.method.grid(self.inputs.cell((0,), 0, 1, (1,)), 1.0, self.config.folds)

    def _workers(self, todo: list[int], cores: int) -> int:
        """How many workers the run is worth."""
        return 1 if self._squares(todo) <= SMALL_RUN else cores

    def _squares(self, cells: list[int]) -> float:
        """What their work grows with: see SMALL_RUN."""
        squares = float((self.divided.sizes[cells].astype(np.float64) ** 2).sum())
        return squares * self.inputs.target.problems_a_row

    def work(self, finished: Iterable[int] = (), known: Mapping[int, Iterable[int]] | None = None) -> Work:
        """How much is done, beginning with finished cells, and with known settings of others."""
        grid = self._grid()
        work = Work(self.divided.sizes, self.inputs.search.expected(len(grid.settings), grid.ordered))
        for cell in finished:
            work.finished(cell)
        for cell, settings in (known or {}).items():
            for setting in settings:
                work.scored(cell, setting)
        return work

    def worker_bytes(self) -> int:
        """Memory that the work on the largest cell needs, beside the data and the process itself."""
        size = self._largest_cell(int(self.divided.sizes.max()))
        copied = self.divided.X.copied_bytes(self.divided.cells())
        return self.config.method.memory(size) + size.held_out_bytes(self.config.method) + copied

    def _within_memory(self) -> int:
        """How many workers fit into the memory; RunError where not even one does. The model does not depend on it."""
        divided, jobs = self.divided, self._jobs
        largest = int(divided.sizes.max())
        worker, held, limit = self.worker_bytes(), divided.nbytes + PROCESS_BYTES, self._limit()
        addresses = addresses_left()  # of this process; a worker has as many
        short = addresses is not None and worker > addresses
        if worker > limit or short:
            left, more = (addresses or 0, "addresses (ulimit -v)") if short else (limit, "--memory")
            raise RunError(
                f"a cell of {largest} rows needs {shown(worker)} beside {shown(held)} of data and program, and "
                f"{shown(left)} are left; use smaller cells (-P voronoi -c {max(100, largest // 4)}) or more {more}"
            )
        fit = max(1, limit // (worker + PROCESS_BYTES))  # a single worker is this process
        if fit < jobs:
            self._observer.note(
                f"{fit} of {jobs} workers fit into the memory (a cell of {largest} rows needs {shown(worker)})"
            )
        return affordable_workers(int(min(jobs, fit)))

    def _limit(self) -> int:
        """Memory for the work, beside the data and this process."""
        held = self.divided.nbytes + PROCESS_BYTES
        return max(0, self._memory - held if self._memory is not None else available_memory())

    def _spare(self, workers: int) -> int:
        """What each of so many workers may use beside what the work on the largest cell needs."""
        left = self._limit() // workers - (PROCESS_BYTES if workers > 1 else 0)
        addresses = addresses_left()
        spare = SPARE_SHARE * (min(left, left if addresses is None else addresses) - self.worker_bytes())
        return max(0, int(spare if self._memory is not None else min(spare, SPARE_BYTES)))

    def _few_entries(self) -> bool:
        """Whether the rows of a single cell have few entries; several cells, which may differ, are not looked at."""
        cells = self.divided.cells()
        return len(cells) == 1 and few_entries(self.divided.X.handle().rows(cells[0]))

    def _largest_cell(self, rows: int) -> CellSize:
        divided, target = self.divided, self.inputs.target
        mass = divided.count if divided.mass is None else divided.mass
        return CellSize(
            rows=rows,
            features=divided.X.widest(divided.cells()),
            weight=float(mass.array.max()) * max([1.0, *(w for _, w in self.config.class_weights)]),
            solutions=self.config.folds * target.problems_a_row,
            part=min(rows, target.largest_part(divided.class_rows)),
            folds=self.config.folds,
            problems=target.n_problems,
            columns=divided.X.features,
            entries=divided.X.most_entries(divided.cells()),
            dense=divided.X.dense,
            few=self._few_entries(),
        )


class _Queue:
    """The work units that wait, and what is known of cells that are split into settings."""

    def __init__(self, units: list[WorkUnit], cores: int) -> None:
        self._units, self._cores = {unit.index: unit for unit in units}, cores // max(1, len(units))
        self._found: dict[int, Scores] = {}
        self._open: dict[int, int] = {}
        self.waiting: deque[Piece] = deque(part for unit in units for part in self._threaded([unit]))

    def split(self, grid: Grid) -> None:
        """Split all units into the settings that the search begins with; grid: as large as theirs."""
        self._ordered = grid.ordered
        if len(grid.settings) > 1:
            self.waiting.clear()
            for cell in self._units:
                self._found[cell] = Scores.of(grid)
                self.waiting.extend(self._next(cell))

    def scored(self, done: WorkUnit, scores: Scores) -> None:
        """Take in the scores of a unit; after the last one of a round comes the next round, or the model."""
        cell = done.index
        self._found[cell] = self._found[cell].merge(scores)
        self._open[cell] -= 1
        if not self._open[cell]:
            self.waiting.extendleft(self._next(cell))

    def _next(self, cell: int) -> list[WorkUnit]:
        """The next round of the search without settings that are known, a unit a setting; at its end the model."""
        unit = self._units[cell]
        while settings := unit.inputs.search.next_settings(self._found[cell].loss, self._ordered):
            for i in unit.known.keys() & settings:
                self._found[cell] = self._found[cell].merge(unit.known[i])
            if parts := [replace(unit, settings=(i,), known={}) for i in settings if i not in unit.known]:
                self._open[cell] = len(parts)
                return self._threaded(parts)
        return self._threaded([replace(unit, scores=self._found.pop(cell))])

    def _threaded(self, parts: list[WorkUnit]) -> list[WorkUnit]:
        """The parts of a cell's work with the threads that are left for each, of the cell's share of the cores."""
        return [replace(part, threads=max(1, self._cores // len(parts))) for part in parts]
