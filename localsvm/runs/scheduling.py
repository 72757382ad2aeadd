"""All cells of a run through the pool: which work units, in which order, how many at once."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterator
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any, Protocol

import numpy as np

from localsvm.data import shared
from localsvm.errors import RunError, WorkerLost
from localsvm.kernels.scratch import Scratch
from localsvm.memory import PROCESS_BYTES, addresses_left, affordable_workers, available_memory, shown
from localsvm.methods.base import CellSize
from localsvm.runs.cell_work import CellResult, RunInputs, WorkUnit
from localsvm.runs.config import TrainingConfig
from localsvm.runs.division import Divided
from localsvm.runs.progress import Observer
from localsvm.selection.cross_validation import Scores
from localsvm.selection.search import Search

# Sum of squared cell sizes times problems, up to which this process alone is faster than the start of workers: .7 s,
# when one core has scored and fitted the default grid of so much in .3 to .45 s
SMALL_RUN = 1e7

Work = Callable[[Any], Any]


class Pool(Protocol):
    """Where work is done: calls each piece of work with what its worker keeps from piece to piece."""

    def unordered(self, work: deque[Work]) -> Iterator[tuple[Work, Any]]:
        """(work, result) as they finish, in any order; the caller may append to `work` while it iterates.

        A piece of work is called with what its worker keeps; it and its result must survive pickle.
        """


# (workers, what each of them keeps): a pool to be entered
PoolFactory = Callable[[int, Callable[[], Any]], AbstractContextManager[Pool]]


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
            average_rows=divided.average_rows,
            X=divided.X.handle(),
            y=divided.y.handle(),
            count=divided.count.handle(),
            mass=None if divided.mass is None else divided.mass.handle(),
            places=divided.places.handle(),
            class_weights=config.class_weights,
            fit=fit,
            probability=config.probability,
            search=Search(config.grid),
        )

    def results(self, skip: set[int] | None = None) -> Generator[CellResult]:
        """Results of all cells but those in `skip`, as they finish; largest cells first.

        Few cells are split into the settings of their grid, so that all workers stay busy; what a setting gives does
        not depend on it. Where even those are fewer than the jobs, threads work inside them. A method that prepares
        fold by fold would do so again in each unit: its cells stay whole.

        Raises
        ------
        RunError : the memory does not suffice for one worker, or the worker of a cell was killed twice.
        """
        edges, order = self.divided.edges, np.argsort(-self.divided.sizes, kind="stable")
        todo = [int(i) for i in order if int(i) not in (skip or ())]
        cores = self._within_memory() if todo else 1  # a thread inside a cell needs no more than a worker
        workers = self._workers(todo, cores)
        units = [WorkUnit(self.inputs, i, int(edges[i]), int(edges[i + 1])) for i in todo]
        queue = _Queue(units, cores)
        few = workers > 1 and len(units) < 4 * workers
        if few and self.config.folds > 1 and self.config.method.sees == "rows":
            first = self.inputs.cell(0, 0, 1)
            grid = self.config.method.grid(first, 1.0, self.config.folds)  # as many settings as every other cell's
            queue.split(len(grid.settings), grid.ordered)
        try:
            with self._pool(min(workers, max(1, len(queue.waiting))), Scratch) as pool:
                for done, result in pool.unordered(queue.waiting):
                    assert isinstance(done, WorkUnit)
                    if done.settings:
                        queue.scored(done, result)
                    else:
                        yield result
        except WorkerLost as error:
            if not self.inputs.fit:
                raise
            raise RunError(f"{error}; what was finished is kept: go on with --resume") from error
        finally:
            shared.forget()  # what this process, too, mapped

    def _workers(self, todo: list[int], cores: int) -> int:
        """How many workers the run is worth."""
        squares = float((self.divided.sizes[todo].astype(np.float64) ** 2).sum())
        return 1 if squares * self.inputs.target.problems_a_row <= SMALL_RUN else cores

    def worker_bytes(self) -> int:
        """Memory that the work on the largest cell needs, beside the data and the process itself."""
        size = self._largest_cell(int(self.divided.sizes.max()))
        copied = self.divided.X.copied_bytes(self.divided.cells())
        return self.config.method.memory(size) + size.held_out_bytes(self.config.method) + copied

    def _within_memory(self) -> int:
        """How many workers fit into the memory; RunError where not even one does. The model does not depend on it."""
        divided, jobs = self.divided, self._jobs
        largest = int(divided.sizes.max())
        worker, held = self.worker_bytes(), divided.nbytes + PROCESS_BYTES
        limit = max(0, self._memory - held if self._memory is not None else available_memory())
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
        )


class _Queue:
    """The work units that wait, and what is known of cells that are split into settings."""

    def __init__(self, units: list[WorkUnit], cores: int) -> None:
        self._units, self._cores = units, cores // max(1, len(units))
        self._known: dict[int, Scores] = {}
        self._open: dict[int, int] = {}
        self.waiting: deque[Work] = deque(part for unit in units for part in self._threaded([unit]))

    def split(self, n_settings: int, ordered: bool) -> None:
        """Split all units into the settings that the search begins with."""
        self._ordered = ordered
        if n_settings > 1:
            self.waiting.clear()
            for unit in self._units:
                self.waiting.extend(self._next(unit, np.full((n_settings, 1), np.nan)))

    def scored(self, done: WorkUnit, scores: Scores) -> None:
        """Take in the scores of a unit; after the last one of a round comes the next round, or the model."""
        cell = done.index
        self._known[cell] = self._known[cell].merge(scores) if cell in self._known else scores
        self._open[cell] -= 1
        if not self._open[cell]:
            parts = self._next(done, self._known[cell].loss)
            if not parts:
                parts = self._threaded([replace(done, settings=(), scores=self._known.pop(cell))])
            self.waiting.extendleft(parts)

    def _next(self, unit: WorkUnit, loss: Any) -> list[WorkUnit]:
        parts = unit.split(loss, self._ordered)
        self._open[unit.index] = len(parts)
        return self._threaded(parts)

    def _threaded(self, parts: list[WorkUnit]) -> list[WorkUnit]:
        """The parts of a cell's work with the threads that are left for each, of the cell's share of the cores."""
        return [replace(part, threads=max(1, self._cores // len(parts))) for part in parts]
