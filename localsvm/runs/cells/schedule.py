"""Schedule of all cells of a run: which work units go to the pool, in which order, how many at once."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np

from localsvm.engines.base import CoarseRows, Event
from localsvm.errors import ModelError, RunError, WorkerLost
from localsvm.kernels.entries import few_entries
from localsvm.kernels.scratch import Scratch
from localsvm.memory import PROCESS_BYTES, addresses_left, affordable_workers, available_memory, shown
from localsvm.methods.base import Method
from localsvm.methods.cell_size import CellSize
from localsvm.methods.grids import Grid
from localsvm.naming import opt
from localsvm.parallel.local import LocalPool
from localsvm.pulse import Beat, listening
from localsvm.runs.cells.coarse import CoarseCells
from localsvm.runs.cells.records import DIVISION, division_record, held, pack, pack_scores
from localsvm.runs.cells.shared import SharedCells, shared_cells
from localsvm.runs.cells.work import CellResult, RunInputs, WorkUnit
from localsvm.runs.config import TrainingConfig
from localsvm.runs.preparation.measured import Measured
from localsvm.runs.progress import Observer, Silent, Work
from localsvm.selection.cross_validation import Scores, after, next_trials
from localsvm.selection.search import Search, usual
from localsvm.store.model import check_finite
from localsvm.targets.base import Observed, Target
from localsvm.threads import ALONE, Threads

# Sum of squared cell sizes times problems, up to which this process alone is faster than the start of workers: .7 s,
# when one core has scored and fitted the default grid of so much in .3 to .45 s
SMALL_RUN = 1e7
SPARE_SHARE = 0.7  # of what is left beside the work, for what would be computed again: estimates are not exact
SPARE_BYTES = 1 << 30  # no more than this for each worker without --memory
WAITING = 2  # work units a worker, below which the next coarse cell is divided
GUIDING, MANY = 7, 21  # cells of classes that say where the searches of all begin, at most; where there are so many

Unit = Callable[[Any], Any]  # of work


class Pool(Protocol):
    """Workers, which call each piece of work with what they keep from piece to piece."""

    def unordered(self, work: deque[Unit]) -> Iterator[tuple[Unit, Any]]:
        """Yield (work, result) as they finish, in any order; the caller may append to `work` while it iterates.

        A piece of work is called with what its worker keeps; it and its result must survive pickle. Where the call
        gives a generator, the pool yields (work, what the generator yields) as soon as that is there; the result is
        what the generator returns.
        """


# (workers, what makes the object that each of them keeps, what is called with notes): a pool to be entered
PoolFactory = Callable[[int, Callable[[], Any], Callable[[str], None]], AbstractContextManager[Pool]]


@dataclass(frozen=True)
class Finished:
    """Work on a coarse cell that an interrupted run has finished.

    Attributes
    ----------
    complete : all of it is done.
    cells : that are finished.
    scores : of other cells, those of trials, by their numbers.
    """

    complete: bool = False
    cells: frozenset[int] = frozenset()
    scores: Mapping[int, Mapping[int, Scores]] = field(default_factory=dict)


@dataclass(frozen=True)
class Resources:
    """Resources of a run, and its observer; without influence on the result.

    Attributes
    ----------
    jobs : the most workers, and cores to use.
    memory : bytes that the run may use with its data, None for what the machine has free beside them.
    observer, pool : the observer of what is unusual, and what makes the pool.
    work : counts the work that is done, from the division of coarse cells on.
    threads : of this process, that divide the first coarse cell.
    """

    jobs: int = 1
    memory: int | None = None
    observer: Observer = field(default_factory=Silent)
    pool: PoolFactory = LocalPool
    work: Work = field(default_factory=Work)
    threads: Threads = ALONE


class CellTrainer:
    """Trains the cells of coarse cells.

    Parameters
    ----------
    config : the options with `select` decided.
    cells, measured : how rows are divided, and which of them say what the error is.
    observed : of the labels of the run.
    fit : whether cells are trained, or only cross-validated.
    judges : whether held-out values are wanted for what is judged by them after the training.
    """

    def __init__(
        self, config: TrainingConfig, cells: CoarseCells, measured: Measured, observed: Observed, fit: bool = True,
        judges: bool = False,
    ) -> None:  # fmt: skip
        assert config.select is not None, "decided by for_labels"
        self.config, self._cells, self._measured = config, cells, measured
        self.observed, self.fit = observed, fit
        self.target = config.target(observed)
        asked = config.probability, config.coverage is not None, config.detects, config.of_one_kind
        self.sharp = any(asked)
        self.holds = self.sharp or judges or cells.members.several

    def method_of(self, cells: SharedCells) -> Method:
        """The method that trains the cells, which measures by the distance of their repeat."""
        repeat = self._cells.repeat_of(cells.number)
        return self.config.method.measuring(self._cells.members.distance(repeat))

    def inputs(self, cells: SharedCells) -> RunInputs:
        """Inputs of the work on a cell."""
        assert self.config.select is not None, "decided by for_labels"
        return RunInputs(
            method=self.method_of(cells),
            target=self.target,
            folds=self.config.folds,
            select=self.config.select,
            seed=self.config.seed,
            X=cells.X.handle(),
            y=cells.y.handle(),
            mass=cells.mass.handle(),
            class_weights=self.config.class_weights,
            fresh=None if cells.fresh is None else cells.fresh.handle(),
            mates=None if cells.mates is None else cells.mates.handle(),
            fit=self.fit,
            holds=self.holds,
            sharp=self.sharp,
            search=Search(self.config.grid),
        )

    def divided(self, coarse: CoarseRows, threads: Threads = ALONE) -> SharedCells:
        """Divide a coarse cell into cells."""
        mates = self.config.mates_of(coarse.rows.numbers, coarse.rows.group, self.observed.rows)
        fresh = self._measured.fresh_of(coarse.rows)
        return shared_cells(self._cells.seen(coarse), self._cells, self.config, self.target, fresh, mates, threads)

    def records(
        self, coarse: Iterable[CoarseRows], resources: Resources | None = None,
        finished: Mapping[int, Finished] | None = None,
    ) -> Generator[Event]:  # fmt: skip
        """Records of cells as they finish, largest cells first; the record of the division ends a coarse cell.

        Parameters
        ----------
        coarse : the rows; the next coarse cell is asked for while workers are busy with those before.
        finished : what need not be done again, by coarse cells. It gives no records.

        Where there are few cells, or a cell is large, the scores of each setting come as records when they are there.
        Few cells are split into the settings of their grid, so that all workers stay busy; what a setting gives does
        not depend on it. Where even those are fewer than the jobs, threads work inside them. A method that prepares
        fold by fold would do so again in each unit: its cells stay whole.

        Raises
        ------
        RunError : the memory does not suffice for one worker, a worker was killed twice, a model is not finite.
        """
        resources, rows = resources or Resources(), iter(coarse)
        begun = next(rows, None)
        if begun is None:
            return
        first = self.divided(begun, resources.threads)
        begun = None
        run = _Scheduled(self, resources, finished or {})
        yield from run.records(first, (self.divided(each) for each in rows))

    def of_shared(self, cells: SharedCells, resources: Resources) -> Generator[Event]:
        """Records of one coarse cell that is divided; see `records`."""
        yield from _Scheduled(self, resources, {}).records(cells, iter(()))

    def grid(self, cells: SharedCells) -> Grid:
        """A grid of as many points as that of each cell."""
        return self.method_of(cells).grid(self.inputs(cells).cell((0,), slice(0, 1), (1,), 1.0), 1.0, self.config.folds)

    def squares(self, sizes: Any) -> float:
        """Sum of squared cell sizes, times the problems of a row: the work grows with it; see SMALL_RUN."""
        return float((np.asarray(sizes, np.float64) ** 2).sum()) * self.target.problems_a_row

    def place(self, number: int) -> str:
        """Text that names a coarse cell, for messages; "" where there is one."""
        return f" of {self._cells.kind} {number}" if self._cells.count > 1 else ""

    @property
    def coarse_cells(self) -> int:
        """Number of coarse cells."""
        return self._cells.count

    @property
    def whole(self) -> bool:
        """True where all rows are one coarse cell, in each repeat."""
        return self._cells.route is None


class _Scheduled:
    """One call of `CellTrainer.records`."""

    def __init__(self, trainer: CellTrainer, resources: Resources, finished: Mapping[int, Finished]) -> None:
        self._trainer, self._resources, self._finished = trainer, resources, finished
        self._open: dict[int, _Open] = {}
        self._waiting: deque[Unit] = deque()

    def records(self, first: SharedCells, further: Iterator[SharedCells]) -> Generator[Event]:
        """Records of the first coarse cell, and of those that follow."""
        trainer, resources = self._trainer, self._resources
        memory = CellMemory(trainer, first, resources)
        todo = self._todo(first)
        cores = memory.workers() if todo else 1  # a thread inside a cell needs no more than a worker
        small = trainer.squares(first.sizes[todo]) * trainer.coarse_cells <= SMALL_RUN
        workers = 1 if small else cores
        self._room = memory.spare(workers) if todo else 0
        self._workers, self._cores = workers, cores
        yield from self._add(first)
        try:
            count = workers if trainer.coarse_cells > 1 else min(workers, max(1, self._parallel()))
            with resources.pool(count, Scratch, resources.observer.note) as pool:
                yield from self._refilled(further)
                for unit, result in self._results(pool):
                    yield from self._taken(unit, result)
                    yield from self._refilled(further)
        except WorkerLost as error:
            if not trainer.fit:
                raise
            raise RunError(f"{error.message}; what was finished is kept: go on with {opt.resume}") from error

    def _parallel(self) -> int:
        """Number of units that may work at once: what a cell's guide finds begins a search of each choice."""
        units = (unit for unit in self._waiting if isinstance(unit, WorkUnit))
        waiting = sum(unit.inputs.target.choices if unit.guides else 1 for unit in units)
        return max(waiting, sum(opened.left for opened in self._open.values()))

    def _results(self, pool: Pool) -> Iterator[tuple[WorkUnit, Any]]:
        """Results of the pool; meanwhile the observer gets the steps of solvers, of this process or of its workers."""
        with listening(self._resources.observer.solving):
            for unit, result in pool.unordered(self._waiting):
                if isinstance(result, Beat):
                    self._resources.observer.solving(result.steps)
                else:
                    assert isinstance(unit, WorkUnit)
                    yield unit, result

    def _refilled(self, further: Iterator[SharedCells]) -> Iterator[Event]:
        """Divide coarse cells until enough units wait."""
        while len(self._waiting) < WAITING * self._workers and (cells := next(further, None)) is not None:
            yield from self._add(cells)

    def _todo(self, cells: SharedCells) -> list[int]:
        """Numbers of the cells that are not finished, largest first."""
        done = self._finished.get(cells.number, Finished()).cells
        return [int(i) for i in np.argsort(-cells.sizes, kind="stable") if int(i) not in done]

    def _add(self, cells: SharedCells) -> Iterator[Event]:
        """Queue the cells of a coarse cell."""
        trainer, known = self._trainer, self._finished.get(cells.number, Finished())
        todo = self._todo(cells)
        self._begin(cells, known)
        if not todo:
            yield cells.number, DIVISION, division_record(cells)
            return
        few = len(todo) * (trainer.coarse_cells - cells.number) < 4 * self._workers
        grid = trainer.grid(cells)
        if known.scores and {s.loss.shape for of in known.scores.values() for s in of.values()} != {
            Scores.of(grid, trainer.target.choices).loss.shape
        }:
            raise ModelError(f"the journal has scores of another grid; give {opt.force} to start afresh")
        inputs, edges = trainer.inputs(cells), cells.edges.tolist()

        def unit(i: int) -> WorkUnit:
            return WorkUnit(
                inputs, i, edges[i], edges[i + 1], cells.streams[i], cells.fold_rows[i], cells.behind[i],
                cells.division.average, coarse=cells.number, place=trainer.place(cells.number),
                known=known.scores.get(i, {}), room=self._room,
                tells=few or trainer.squares(cells.sizes[[i]]) > SMALL_RUN,
            )  # fmt: skip

        split = few and self._workers > 1 and trainer.config.folds > 1 and trainer.config.method.sees == "rows"
        queue = _Queue([unit(i) for i in todo], self._cores, self._waiting, grid if split else None)
        self._open[cells.number] = _Open(cells, queue, len(todo))
        queue.begin([unit(i) for i in guiding(cells.sizes.tolist(), grid, inputs.search, inputs.target)])

    def _begin(self, cells: SharedCells, known: Finished) -> None:
        trainer, observer, work = self._trainer, self._resources.observer, self._resources.work
        grid, search = trainer.grid(cells), Search(trainer.config.grid)
        if trainer.whole and not cells.number:
            before = sum(len(done.cells) for done in self._finished.values())
            observer.cells(trainer.coarse_cells * len(cells.sizes), before)
        work.begin(cells.number, cells.sizes, search.expected(grid, int(cells.sizes.max())) * trainer.target.choices)
        for cell in known.cells:
            work.record(cells.number, str(cell))
        for cell, trials in known.scores.items():
            for trial in trials:
                work.record(cells.number, f"{cell}/setting/{trial}")
        observer.work(work.share, work.settings)
        if known.scores and work.settings:
            observer.note(f"settings scored before, in cells that are not finished: {work.settings}")

    def _taken(self, unit: WorkUnit, result: Any) -> Iterator[Event]:
        """The records of a result, which is one of a cell or the scores of a setting."""
        number = unit.coarse
        opened = self._open[number]
        if isinstance(result, Search):
            opened.queue.guided(unit, result)
            return
        if not isinstance(result, CellResult):
            yield number, f"{unit.index}/setting/{result.trial}", pack_scores(result)
            if unit.trials:
                opened.queue.scored(unit, result)
            return
        check_finite(f"cell {unit.index}{unit.place}", result.state)
        held_record = held(opened.cells, result.index) if self._trainer.holds else {}
        yield number, str(result.index), pack(result) | held_record
        opened.left -= 1
        if not opened.left:
            yield number, DIVISION, division_record(opened.cells)
            del self._open[number]


class _Open:
    """A coarse cell whose cells are at work."""

    def __init__(self, cells: SharedCells, queue: _Queue, left: int) -> None:
        self.cells, self.queue, self.left = cells, queue, left


class CellMemory:
    """Memory that the work on cells needs, and the number of workers that have it; see `Resources`.

    cells : the first coarse cell; those that follow are taken to be like it.
    """

    def __init__(self, trainer: CellTrainer, cells: SharedCells, resources: Resources) -> None:
        self._trainer, self._cells, self._resources = trainer, cells, resources

    def worker_bytes(self) -> int:
        """Memory that the work on the largest cell needs, beside the data and the process itself."""
        size = self._largest_cell(int(self._cells.sizes.max()))
        method = self._trainer.method_of(self._cells)
        method.check(size)
        return method.memory(size) + size.held_out_bytes(method)

    def workers(self) -> int:
        """Number of workers that fit into the memory; RunError where none does. The model does not depend on it."""
        cells, jobs = self._cells, self._resources.jobs
        largest = int(cells.sizes.max())
        worker, held_bytes, limit = self.worker_bytes(), cells.nbytes + PROCESS_BYTES, self._limit()
        addresses = addresses_left()  # of this process; a worker has as many
        short = addresses is not None and worker > addresses
        if worker > limit or short:
            left, more = (addresses or 0, "addresses (ulimit -v)") if short else (limit, opt.memory)
            raise RunError(
                f"a cell of {largest} rows needs {shown(worker)} beside {shown(held_bytes)} of data and program, and "
                f"{shown(left)} are left; use smaller cells ({opt.partition('voronoi')} "
                f"{opt.cell_size(max(100, largest // 4))}) or more {more}"
            )
        fit = max(1, limit // (worker + PROCESS_BYTES))  # a single worker is this process
        if fit < jobs:
            self._resources.observer.note(
                f"{fit} of {jobs} workers fit into the memory (a cell of {largest} rows needs {shown(worker)})"
            )
        return affordable_workers(int(min(jobs, fit)))

    def _limit(self) -> int:
        """Memory for the work, beside the data and this process."""
        taken, memory = self._cells.nbytes + PROCESS_BYTES, self._resources.memory
        return max(0, memory - taken if memory is not None else available_memory())

    def spare(self, workers: int) -> int:
        """Bytes that each of so many workers may use beside what the work on the largest cell needs."""
        left = self._limit() // workers - (PROCESS_BYTES if workers > 1 else 0)
        addresses = addresses_left()
        spare = SPARE_SHARE * (min(left, left if addresses is None else addresses) - self.worker_bytes())
        return max(0, int(spare if self._resources.memory is not None else min(spare, SPARE_BYTES)))

    def _few_entries(self) -> bool:
        """True where the rows of a single cell have few entries; several cells, which may differ, are not looked at."""
        rows = self._cells.rows()
        return len(rows) == 1 and few_entries(self._cells.X.handle().rows(rows[0]))

    def _largest_cell(self, rows: int) -> CellSize:
        cells, target, config = self._cells, self._trainer.target, self._trainer.config
        return CellSize(
            rows=rows,
            features=cells.X.widest(cells.rows()),
            weight=float(cells.mass.array.max()) * max([1.0, *(w for _, w in config.class_weights)]),
            solutions=config.folds * target.problems_a_row,
            part=min(rows, target.largest_part(self._trainer.observed.class_rows)),
            folds=config.folds,
            problems=target.n_problems,
            columns=cells.X.features,
            entries=cells.X.most_entries(cells.rows()),
            dense=cells.X.dense,
            few=self._few_entries(),
        )


def guiding(sizes: Sequence[int], grid: Grid, search: Search, target: Target) -> list[int]:
    """Numbers of the cells whose parts say where the searches of all begin; none where each looks at its own part.

    They are for classes: what the part of a cell says of values serves for more; see `Begin`.
    """
    guided = [cell for cell, rows in enumerate(sizes) if search.guide_step(grid, rows)]
    if len(guided) < MANY or target.score_of_values is not None:
        return []
    return guided[:: -(-len(guided) // GUIDING)]


class _Queue:
    """The work units of a coarse cell that wait, and what is known of cells that are split into settings.

    waiting : the units of all coarse cells.
    grid : as large as those of the units, where these are to be split; else None.
    """

    def __init__(self, units: list[WorkUnit], cores: int, waiting: deque[Unit], grid: Grid | None) -> None:
        self._units, self._cores = {unit.index: unit for unit in units}, cores // max(1, len(units))
        self._scores: dict[int, Scores] = {}
        self._open: dict[int, int] = {}
        self._waiting, self._grid = waiting, grid
        self._guiding, self._found = 0, dict[int, Search]()

    def begin(self, guiding: list[WorkUnit]) -> None:
        """Queue the units that find where the searches of all cells begin; the cells follow them, or are first."""
        self._guiding = len(guiding)
        self._waiting.extend(self._threaded([replace(unit, guides=True) for unit in guiding]))
        if not guiding:
            self._queue()

    def _queue(self) -> None:
        """Queue one unit for each cell, or for each setting that its search begins with."""
        grid = self._grid
        if grid is None or len(grid.settings) <= 1:
            self._waiting.extend(part for unit in self._units.values() for part in self._threaded([unit]))
            return
        self._ordered = grid.ordered
        for cell, unit in self._units.items():
            target = unit.inputs.target
            self._scores[cell] = Scores.of(grid, target.choices, target.crossed(len(unit.fold_rows)))
            unknown = unit.search is None and unit.inputs.search.guide_step(grid, unit.last - unit.first)
            self._waiting.extend(self._threaded([replace(unit, guides=True)]) if unknown else self._next(cell))

    def guided(self, done: WorkUnit, search: Search) -> None:
        """Begin a cell's search, which a unit has found; or all searches, once the last unit has found where."""
        if len(self._found) == self._guiding:
            self._units[done.index] = replace(self._units[done.index], search=search)
            self._waiting.extendleft(self._next(done.index))
            return
        self._found[done.index] = search
        if len(self._found) == self._guiding:
            found = usual(list(self._found.values()))
            inputs = replace(done.inputs, search=replace(done.inputs.search, usual=found))
            units = self._units.items()
            self._units = {cell: replace(unit, inputs=inputs, search=self._found.get(cell)) for cell, unit in units}
            self._queue()

    def scored(self, done: WorkUnit, scores: Scores) -> None:
        """Take in the scores of a unit; after the last one of a round comes the next round, or the model."""
        cell = done.index
        self._scores[cell] = self._scores[cell].merge(scores)
        self._open[cell] -= 1
        if not self._open[cell]:
            self._waiting.extendleft(self._next(cell))

    def _next(self, cell: int) -> list[WorkUnit]:
        """The next round of the search without trials that are known, a unit a trial; at its end the model."""
        unit = self._units[cell]
        search = unit.search or unit.inputs.search
        while trials := next_trials(search, self._scores[cell], self._ordered):
            search = after(search, self._scores[cell])
            for trial in unit.known.keys() & trials:
                self._scores[cell] = self._scores[cell].merge(unit.known[trial])
            if todo := [trial for trial in trials if trial not in unit.known]:
                parts = [replace(unit, trials=(trial,), known={}, search=search) for trial in todo]
                self._open[cell] = len(parts)
                return self._threaded(parts)
        return self._threaded([replace(unit, scores=self._scores.pop(cell))])

    def _threaded(self, parts: list[WorkUnit]) -> list[WorkUnit]:
        """The parts of a cell's work with the threads that are left for each, of the cell's share of the cores."""
        return [replace(part, threads=max(1, self._cores // len(parts))) for part in parts]
