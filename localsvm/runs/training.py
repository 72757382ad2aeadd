"""A training run: divide the space, train the cells in a pool, stream the results into the model file."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from localsvm import __version__
from localsvm.data.dataset import Dataset, size_of
from localsvm.features.chain import Chain
from localsvm.kernels._kernels import LEVELS, simd_level
from localsvm.memory import Budget
from localsvm.parallel.local import LocalPool
from localsvm.partition import Partition
from localsvm.runs import weighing
from localsvm.runs.cell_work import CellReport
from localsvm.runs.config import TrainingConfig
from localsvm.runs.division import Divided, divide, tell_copies, tell_off_centre
from localsvm.runs.given import Given
from localsvm.runs.progress import Clock, Observer, Silent
from localsvm.runs.records import RECORDS, pack, pack_scores, unpack, unpack_scores
from localsvm.runs.scheduling import PoolFactory, RunCells
from localsvm.runs.summary import Summary, report_state, summarise
from localsvm.selection.cross_validation import Scores
from localsvm.store.container_writing import creation_time
from localsvm.store.fingerprint import fingerprint
from localsvm.store.journal import Journal, journal_path, open_journal
from localsvm.store.model import check_finite, write_model
from localsvm.store.outputs import signals_held
from localsvm.targets.calibrating import calibrate
from localsvm.targets.held_out import HeldOut
from localsvm.targets.probabilities import Calibration
from localsvm.threads import Threads

CONTENT = "the content of the data"  # in the key of a run
OPTIONS = {
    "class_weights": "-w",
    "balanced": "--weights balanced",
    "scoring": "--score",
}  # whose names are not made of those of TrainingConfig


def train(
    data: Dataset, config: TrainingConfig, output: str | Path, *,
    jobs: int = 1, memory: int | None = None, force: bool = False, resume: bool = False,
    partition_file: str | Path | None = None, given: Given | None = None,
    observer: Observer | None = None, pool: PoolFactory = LocalPool,
) -> Summary:  # fmt: skip
    """Train on the data and write the model to `output`; it depends on data and config alone. The data are consumed.

    Parameters
    ----------
    jobs, memory, pool : workers; bytes that the run may use, None for what is free; where cells are trained.
    partition_file, given : see `divide`.
    force, resume : replace what is at `output`; go on from the journal that an interrupted run left beside it.

    Raises
    ------
    DataError, ModelError, RunError : for the data; the partition file or journal; output, memory or workers.
    """
    creation_time()  # refuses a mistake in SOURCE_DATE_EPOCH now, not when the model is written
    clock = Clock(observer := observer or Silent())
    with clock("partition"), Threads(jobs) as threads:
        weighing.check(data, observer)
        key = run_key(data, config, partition_file, given)
        budget = Budget.of(memory, size_of(data.X))
        divided = divide(data, config, partition_file, threads, budget, clock, given)
        tell_copies(observer, divided.copies, len(data.y))
        config = replace(config.for_classes(divided.labels, divided.class_rows), metric=divided.measured.asked)
    data.X = data.y = data.weight = None  # type: ignore[assignment]  # the shared copy is all that is needed from here
    cells = RunCells(divided, config, jobs, memory, observer, pool)
    with clock("train"), open_journal(journal_path(output), *key, resume=resume, force=force) as journal:
        reports = _train_cells(cells, journal, observer, resume)
        calibration = calibrated(config, divided.labels, lambda: JournalValues(divided, journal), clock)
        write_trained(
            output, config, divided, journal, [*map(str, range(len(reports)))], reports, calibration, force, clock
        )
        journal.delete()
    about = divided.labels, divided.class_rows, (divided.chain.features, divided.chain.width), divided.partition.name
    told = config.repeats, calibration, divided.measured.told, divided.partition.cells_by_coarse
    return summarise(*about, divided.sizes, reports, clock.seconds, *told)


def _train_cells(cells: RunCells, journal: Journal, observer: Observer, resume: bool) -> list[CellReport]:
    if resume and journal.empty:
        observer.note(f"nothing to resume at {journal.path}: training from the beginning")
    with journal.sound():
        reports, known = _finished(journal, len(cells.divided.sizes))
    work = cells.work(reports, known)
    observer.cells(len(cells.divided.sizes), len(reports))
    tell_off_centre(observer, cells.divided.off_centre)
    observer.work(work.share, work.settings)
    if work.settings:
        observer.note(f"settings scored before, in cells that are not finished: {work.settings}")

    def told(cell: int, scores: Scores) -> None:
        with signals_held():
            journal.append(f"{cell}/setting/{scores.best.setting}", pack_scores(scores))
            work.scored(cell, scores.best.setting)
            observer.work(work.share, work.settings)
        journal.settle()

    # closing: the workers end with this block, not when a traceback that holds the generator is let go
    with closing(cells.results(set(reports), known, told)) as results:
        for result in results:
            check_finite(f"cell {result.index}", result.state)
            with signals_held():  # what a stopped run says of itself is what its journal has
                journal.append(str(result.index), pack(result))
                reports[result.index] = result.report
                work.finished(result.index)
                observer.cell_done(sum(result.report.wrong), sum(result.report.weight))
                observer.work(work.share, work.settings)
            journal.settle()  # after the cell is counted: this may take long, and a signal may end it
    return [reports[i] for i in sorted(reports)]


def _finished(journal: Journal, n_cells: int) -> tuple[dict[int, CellReport], dict[int, dict[int, Scores]]]:
    """Reports of the cells that a journal has, and scores of settings of the others; ValueError for anything else."""
    reports = {int(key): unpack(journal[key]).report for key in journal if "/" not in key}
    known: dict[int, dict[int, Scores]] = {}
    for key in journal:
        cell, _, setting = key.partition("/setting/")
        if not 0 <= int(cell) < n_cells:
            raise ValueError("a record of a cell that is not there")
        if setting and int(cell) not in reports:
            known.setdefault(int(cell), {})[int(setting)] = unpack_scores(journal[key], int(setting))
    return reports, known


class JournalValues:
    """The held-out values of a run, read cell by cell from its journal; see targets.calibrating.HeldOut."""

    def __init__(self, divided: Divided, journal: Journal) -> None:
        self._divided, self._journal, self.sizes = divided, journal, divided.sizes
        self.repeats = len(divided.partition.cells_by_repeat)
        self._places = divided.places.handle()
        self._counts = divided.count.array
        if divided.mass is not None:  # rows of a mean weight count as one: calibration weighs them against its priors
            mass = divided.mass.array
            self._counts = mass * (self._counts.sum() / mass.sum())
        if divided.fresh is not None:  # the others chose the metric, and are flattered by it
            self._counts = self._counts * divided.fresh.array

    def cell(self, index: int) -> tuple[NDArray[np.floating[Any]], NDArray[np.float64], NDArray[np.float64]]:
        """(problems, n) values, (n,) labels and (n,) how many rows each stands for, by their weights."""
        first, last = self._edges(index)
        y = self._divided.y.array[self._places.rows(first, last)]
        return unpack(self._journal[str(index)]).values, y, self._counts[first:last]

    def rows(self, index: int) -> NDArray[np.int64]:
        """(n,) the numbers of a cell's rows, the same in all repeats."""
        rows = self._places.rows(*self._edges(index))
        return np.arange(rows.start, rows.stop) if isinstance(rows, slice) else np.asarray(rows, np.int64)

    def _edges(self, index: int) -> tuple[int, int]:
        return int(self._divided.edges[index]), int(self._divided.edges[index + 1])


def calibrated(
    config: TrainingConfig, labels: NDArray[np.float64], values: Callable[[], HeldOut], clock: Clock
) -> Calibration | None:
    """What makes probabilities of decision values; None where none are wanted."""
    if not config.probability:
        return None
    with clock("calibrate"):
        return calibrate(config.target(labels), values())


class Known(Protocol):
    """What is known of the rows of a run; see `Divided`."""

    @property
    def labels(self) -> NDArray[np.float64]: ...
    @property
    def chain(self) -> Chain: ...
    @property
    def partition(self) -> Partition: ...
    def as_dict(self) -> dict[str, Any]: ...


def write_trained(
    output: str | Path, config: TrainingConfig, known: Known, journal: Journal, cells: Sequence[str],
    reports: list[CellReport], calibration: Calibration | None, force: bool, clock: Clock,
) -> None:  # fmt: skip
    """Write the model. cells: the names of their records in the journal, in their order; reports: of them."""
    with clock("write"):
        write_model(
            output,
            config=config.as_dict() | known.as_dict(),
            labels=known.labels,
            **known.chain.state(),
            partition=(known.partition.name, known.partition.state()),
            cells=(unpack(journal[name]).state for name in cells),
            n_cells=len(cells),
            report=report_state(unpack(journal[cells[0]]).names, reports),
            calibration=("sigmoids", calibration.state()) if calibration else None,
            force=force,
        )


def run_key(
    data: Dataset, config: TrainingConfig, partition_file: str | Path | None, given: Given | None = None
) -> tuple[str, dict[str, str]]:
    """What a journal belongs to: a hash of the data and of all that determines the model's bits, and what was hashed
    by the names that messages give to it.
    """
    weight = b"" if data.weight is None else data.weight.tobytes()
    more = {"the weights of the rows": hashlib.sha256(weight).hexdigest()}
    if partition_file:
        more["the content of --partition-file"] = hashlib.sha256(Path(partition_file).read_bytes()).hexdigest()
    if given:
        more["the content of --metric-file"] = given.digest
    return key_of(fingerprint(data.X, data.y), config, more)


def key_of(content: str, config: TrainingConfig, more: dict[str, str] | None = None) -> tuple[str, dict[str, str]]:
    """As `run_key`, for data of this digest. more: what else determines the model, by the names of messages."""
    options = config.as_dict()
    method = options.pop("method")
    parts = {CONTENT: content, "--method": method.pop("name"), **(more or {})}
    for name, value in {**options, **method}.items():
        parts[OPTIONS.get(name, f"--{name.replace('_', '-')}")] = "the default" if value is None else json.dumps(value)
    parts |= {"the version of localsvm": __version__, "the version of records": RECORDS}
    parts["the SIMD level"] = LEVELS[simd_level()]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest(), parts
