"""A training run: prepare, train the cells of each coarse cell, stream the results into the model file."""

from __future__ import annotations

import hashlib
import json
import os
from collections import Counter
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from localsvm import __version__
from localsvm.data.blocks.dataset import Dataset
from localsvm.data.writers.libsvm import label_text
from localsvm.engines.base import Engine
from localsvm.errors import DataError, ModelError
from localsvm.kernels._kernels import LEVELS, simd_level
from localsvm.naming import opt
from localsvm.partition import Partition
from localsvm.runs.cells.averaged import Averaged, averaged
from localsvm.runs.cells.held_values import HeldValues, outside
from localsvm.runs.cells.records import DIVISION, RECORDS, Record, unpack, unpack_scores
from localsvm.runs.cells.schedule import CellTrainer, Finished, Resources
from localsvm.runs.cells.work import CellReport, wrong_rows
from localsvm.runs.config import TrainingConfig
from localsvm.runs.copies import CopyErrors, judge
from localsvm.runs.preparation.engine import engine_of
from localsvm.runs.preparation.given import Given
from localsvm.runs.preparation.prepare import Asked, PreparedRun, prepare, tell_copies, tell_off_centre
from localsvm.runs.progress import Clock, Observer, Work
from localsvm.runs.summary import Summary, TrainedCells, TrainingRows, report_state, summarise
from localsvm.selection.cross_validation import Scores
from localsvm.store.container_writing import creation_time
from localsvm.store.journal import Journal, journal_path, open_journal
from localsvm.store.model import ModelContent, State, load_model, write_model
from localsvm.store.outputs import check_writable, signals_held
from localsvm.targets.classification import classes_of
from localsvm.targets.conformal import KIND, Coverage
from localsvm.targets.copies import KIND as COPIES
from localsvm.targets.copies import Copies
from localsvm.targets.detection import KIND as FRONT
from localsvm.targets.detection import Detected, Detection, Front
from localsvm.targets.loss_names import LEAST_SQUARES
from localsvm.targets.novelty import Novelty, state_of, thresholds_of
from localsvm.targets.probabilities import Calibration
from localsvm.threads import Threads

SHOWN = 5  # classes in a note
OPTIONS = {
    "class_weights": "-w",
    "balanced": "--weights balanced",
    "scoring": "--score",
}  # whose names are not made of those of TrainingConfig


def train(
    source: Dataset | Engine, config: TrainingConfig, output: str | Path, resources: Resources | None = None, *,
    force: bool = False, resume: bool = False, partition_file: str | Path | None = None, given: Given | None = None,
) -> Summary | None:  # fmt: skip
    """Train on the rows and write the model to `output`; it depends on rows and config alone.

    The result is None where `resume` finds that the same run has finished: its model is there.

    Parameters
    ----------
    source : rows in memory, which are consumed, or the engine that has them.
    resources : without influence on the model; None for one process, the memory that is free, and no observer.
    partition_file, given : see `preparation.prepare.Asked`.
    force, resume : replace what is at `output`; go on from the journal that an interrupted run left beside it.

    Raises
    ------
    DataError, ModelError, RunError : for the data; the partition file or journal; output, memory or workers.
    """
    creation_time()  # refuses a mistake in SOURCE_DATE_EPOCH now, not when the model is written
    resources = resources or Resources()
    clock = Clock(resources.observer)
    with Threads(resources.jobs) as threads:
        with clock("partition"):
            engine = engine_of(source, config, threads, resources.memory)
            prepared = prepare(engine, Asked(config, partition_file, given), threads, clock, resources.observer)
        key, resources = run_key(prepared), replace(resources, threads=threads)
        if resume and not force and _is_finished(output, key[0], resources.observer):
            return None
        _tell_beforehand(prepared, resources.observer)
        with clock("train"), open_journal(journal_path(output), *key, resume=resume, force=force) as journal:
            trained = _Training(prepared, journal, resources, resume).done()
            prepared = _lengthened(prepared, trained)
            prepared, mean = _averaged(prepared, trained, journal)
            learned = _learned(prepared, trained, journal, mean, clock, resources.observer)
            with clock("write"):
                _write(output, prepared, journal, trained, learned, force, key[0])
            journal.delete()
    _tell_held_out(prepared, trained, resources.observer)
    return _summary(prepared, trained, clock, learned, mean)


def _summary(
    prepared: PreparedRun, trained: Trained, clock: Clock, learned: AfterTraining, mean: Averaged | None
) -> Summary:  # fmt: skip
    cells, metric, detection = trained.summarised(prepared.config.times), prepared.measured.told, learned.detection
    summary = summarise(_rows_of(prepared), cells, clock.seconds, calibration=learned.calibration, metric=metric)
    copies = None if learned.copies is None else learned.copies[1].describe()
    summary = replace(summary, detection=None if detection is None else detection.describe(), copies=copies)
    return summary if mean is None else replace(summary, cv_error=mean.error, cv_recalls=mean.recalls)


def _rows_of(prepared: PreparedRun) -> TrainingRows:
    head = prepared.head
    known = prepared.config.of_values or not (head.weighted or prepared.config.class_weights)
    guessing = prepared.target.guessing(prepared.observed) if known else None
    return TrainingRows(prepared.observed, prepared.target, head.features, prepared.chain.width, head.classes, guessing)


def _is_finished(output: str | Path, key: str, observer: Observer) -> bool:
    """True where the model of a run with this key is there; RunError for another file."""
    if not os.path.isfile(output) or os.path.exists(journal_path(output)):
        return False
    try:
        with closing(load_model(output, verify=False)) as model:
            finished = model.run == key
    except ModelError:
        finished = False
    if not finished:
        check_writable(output)
    observer.note(f"{output} is finished: it is the model of these rows and options")
    return True


def _tell_beforehand(prepared: PreparedRun, observer: Observer) -> None:
    """Note a kernel without a constant, and classes of so few rows that not every fold has one."""
    if prepared.config.method.through_origin:
        observer.note(f"a decision by this kernel is 0 where all scaled features are 0; {opt.offset} adds a constant")
    folds, rows = prepared.config.folds, prepared.observed.class_rows
    rare = sum(count < folds for count in rows)
    if rare and not prepared.config.of_one_kind:
        many = f"{rare:,} of {len(rows):,} classes have" if rare > 1 else f"1 of {len(rows):,} classes has"
        values = f", or if labels are values, give {opt.loss(LEAST_SQUARES)}" if 2 * rare > len(rows) > SHOWN else ""
        what = f"fewer rows than there are folds ({folds}) and can hardly be learned; join rare classes{values}"
        observer.note(f"{many} {what}")


def _tell_held_out(prepared: PreparedRun, trained: Trained, observer: Observer) -> None:
    """Note classes that are mostly wrong on held-out rows, and ends of a given grid that most cells chose."""
    counted = [report for report in trained.reports if report.class_weight]
    if counted:
        weight, wrong = (np.sum([getattr(r, name) for r in counted], 0) for name in ("class_weight", "class_wrong"))
        values = (prepared.head.classes or {}).get("values") or [
            label_text(v) for v in prepared.observed.labels.tolist()
        ]
        missed = [f"{values[k]} ({wrong[k] / weight[k]:.0%})" for k in np.flatnonzero(2 * wrong > weight).tolist()]
        if missed:
            shown = ", ".join(missed[:SHOWN]) + (", ..." if len(missed) > SHOWN else "")
            verb = "is" if len(missed) == 1 else "are"
            what = f"{len(missed):,} of {len(weight):,} classes {verb} mostly wrong on held-out rows: {shown}"
            observer.note(f"{what}; {opt.scoring('tpr-tnr')} or {opt.weights('balanced')} makes rare classes count")
    ends = Counter(end for report in trained.reports for end in report.ends)
    method = prepared.config.method
    given = {"C": getattr(method, "cost", ()), "gamma": getattr(method, "gamma", ())}  # the default grids are wide
    for end, cells in ends.most_common():
        if 2 * cells > len(trained.reports) and given[end.rpartition(" ")[2]]:
            many = f"{cells:,} of {len(trained.reports):,} cells chose" if len(trained.reports) > 1 else "the choice is"
            remedy = f"add {'smaller' if 'smallest' in end else 'larger'} ones"
            observer.note(f"{many} {end} of the grid; {remedy} ({opt.cost if end.endswith('C') else opt.gamma})")


class AfterTraining(NamedTuple):
    """What a run learned of its held-out values; None for what was not asked for."""

    calibration: Calibration | None
    coverage: Coverage | None
    detection: Detected | None
    thresholds: State | None
    copies: tuple[Copies, CopyErrors] | None


def _learned(
    prepared: PreparedRun, trained: Trained, journal: Journal, mean: Averaged | None, clock: Clock, observer: Observer
) -> AfterTraining:  # fmt: skip
    return AfterTraining(
        _calibrated(prepared, trained, journal, clock),
        _covered(prepared, trained, journal),
        _detected(prepared, trained, journal),
        _thresholds(prepared, trained, journal, observer),
        _copies(prepared, trained, journal, mean),
    )


def _calibrated(prepared: PreparedRun, trained: Trained, journal: Journal, clock: Clock) -> Calibration | None:
    """Calibration, which makes probabilities of decision values; None where none are wanted."""
    if not prepared.config.calibrates:
        return None
    from localsvm.targets.calibrating import calibrate  # which takes long to import

    with clock("calibrate"):
        return calibrate(classes_of(prepared.target), trained.held(journal))


def _covered(prepared: PreparedRun, trained: Trained, journal: Journal) -> Coverage | None:
    """Margins that make answers cover the truth; None where no coverage is asked for."""
    if prepared.config.coverage is None:
        return None
    scores, weight = outside(prepared.target, trained.held(journal))
    repeats = len(prepared.cells.names_by_repeat(trained.names))
    known = Coverage.of(scores, prepared.config.coverage, weight / repeats)
    guided = [report for report in trained.reports if report.gains]
    if not guided:
        return known
    gains = [np.mean(report.gains[-2:]) for report in guided]  # of the two ends
    return replace(known, shrink=float(np.average(gains, weights=[report.rows for report in guided])))


def _detected(prepared: PreparedRun, trained: Trained, journal: Journal) -> Detected | None:
    """The front of a detection, and what was chosen; None where no detection is asked for."""
    target = prepared.target
    if not isinstance(target, Detection):
        return None
    front = Front.of(target, trained.held(journal), len(prepared.cells.names_by_repeat(trained.names)))
    return Detected.of(target, front, prepared.config.false_alarm)


def _thresholds(prepared: PreparedRun, trained: Trained, journal: Journal, observer: Observer) -> State | None:
    """Thresholds of f, up to which rows are novel, as the model keeps them; None where there are classes or values."""
    if not isinstance(prepared.target, Novelty):
        return None
    nu = prepared.target.nu
    thresholds, broken = thresholds_of(trained.held(journal), nu)
    if broken:
        many = f"{broken:,} of {len(thresholds):,} cells" if len(thresholds) > 1 else "the only cell"
        what = f"more new rows than {opt.nu(nu)} may be called novel in {many}"
        observer.note(f"{what}, by too few rows or a large {opt.gamma}; give more rows, or a larger {opt.nu}")
    return state_of(thresholds)


def _copies(
    prepared: PreparedRun, trained: Trained, journal: Journal, mean: Averaged | None
) -> tuple[Copies, CopyErrors] | None:  # fmt: skip
    """The labels that copies of training rows get, and by what they are better; None where they are not."""
    if prepared.repeated is None:
        return None
    names = prepared.cells.names_by_repeat(trained.names)
    weights = None if mean is None else mean.weights
    return judge(prepared.repeated, prepared.config, prepared.target, journal, names, weights)


def _lengthened(prepared: PreparedRun, trained: Trained) -> PreparedRun:
    """The run, with what squares of learned roots fall short of values in the mean, by held-out rows."""
    values, known = prepared.observed.values, [report for report in trained.reports if report.weight]
    mass = sum(report.weight[0] for report in known)
    if values is None or not values.of_roots or not mass:
        return prepared
    short = sum(report.short for report in known) / mass
    return replace(prepared, observed=replace(prepared.observed, values=replace(values, root_short=short)))


def _averaged(prepared: PreparedRun, trained: Trained, journal: Journal) -> tuple[PreparedRun, Averaged | None]:
    """Weigh members with geometries of their own; the run, with the weights, and the mean. None without members."""
    if not prepared.cells.members.several:
        return prepared, None
    names = prepared.cells.names_by_repeat(trained.names)
    mean = averaged(prepared.config, prepared.target, journal, names, prepared.head.rows)
    return replace(prepared, measured=prepared.measured.weighed(mean.weights)), mean


@dataclass(frozen=True)
class Trained:
    """All cells of a run.

    Attributes
    ----------
    names : of their records in the journal, in the order of the cells.
    sizes, reports : (cells,) rows of each cell, and their numbers for the summary.
    partition : complete.
    copies : how many rows are copies of others.
    """

    names: list[str]
    sizes: NDArray[np.int64]
    reports: list[CellReport]
    partition: Partition
    copies: int

    def summarised(self, repeats: int) -> TrainedCells:
        """The cells, as a summary describes them."""
        part = self.partition
        return TrainedCells(part.name, self.sizes, self.reports, repeats, part.cells_by_coarse)

    def held(self, journal: Journal) -> HeldValues:
        """The held-out values. DataError where no row counts as one."""
        if not any(np.any(report.weight) for report in self.reports):
            raise DataError(
                "each cell has the rows of one group alone, and none is held out: there is nothing to find "
                f"probabilities, margins or thresholds by; give larger cells ({opt.cell_size}), or smaller groups"
            )
        return HeldValues(journal, self.names, self.sizes)


@dataclass
class _Training:
    """The cells of a run, whose records go into the journal."""

    prepared: PreparedRun
    journal: Journal
    resources: Resources
    resume: bool
    _reports: dict[str, CellReport] = field(default_factory=dict)

    def done(self) -> Trained:
        """Train all cells that the journal does not have, in any order."""
        prepared, journal, observer = self.prepared, self.journal, self.resources.observer
        if self.resume and journal.empty:
            observer.note(f"nothing to resume at {journal.path}: training from the beginning")
        cells = prepared.cells
        with journal.sound():
            finished = self._finished()
        tell_off_centre(observer, prepared.off_centre)
        wanted = [number for number in range(cells.count) if not finished.get(number, Finished()).complete]
        if cells.route is not None:
            observer.cells(cells.count, cells.count - len(wanted), f"{cells.kind}s")
        elif wanted:  # they are divided one after the other
            wanted = list(range(cells.count))
            finished = {number: replace(done, complete=False) for number, done in finished.items()}
        else:
            observer.cells(len(self._reports), len(self._reports))
        self._work = Work(cells.count, sum(done.complete for done in finished.values()))
        resources = replace(self.resources, work=self._work)
        judges = prepared.repeated is not None
        trainer = CellTrainer(prepared.config, cells, prepared.measured, prepared.observed, judges=judges)
        # closing: the workers end with this block, not when a traceback that holds the generator is let go
        with closing(prepared.engine.work(cells, trainer, wanted, resources, finished)) as events:
            for number, name, record in events:
                self._keep(number, name, record)
        return self._completed()

    def _keep(self, number: int, name: str, record: Record) -> None:
        """Append a record to the journal, and count a coarse cell as done where there are several, else a cell."""
        key, coarse = f"{number}/{name}", self.prepared.cells.route is not None
        if key in self.journal:
            return
        with signals_held():  # what a stopped run says of itself is what its journal has
            self.journal.append(key, record)
            done: list[CellReport] = []
            if name == DIVISION:
                cells = range(len(record["sizes"])) if coarse else ()
                done = [self._reports[f"{number}/{cell}"] for cell in cells]
            elif "/" not in name:
                self._reports[key] = report = unpack(record).report
                done = [] if coarse else [report]
            self._work.record(number, name)
            if done:
                self.resources.observer.cell_done(*wrong_rows(self.prepared.target, done))
            self.resources.observer.work(self._work.share, self._work.settings)
        self.journal.settle()  # after the cell is counted: this may take long, and a signal may end it

    def _finished(self) -> dict[int, Finished]:
        """Finished work of each coarse cell, from the journal.

        Raises ValueError for anything that is no record of this run.
        """
        cells: dict[int, set[int]] = {}
        scores: dict[int, dict[int, dict[int, Scores]]] = {}
        complete: set[int] = set()
        for key in self.journal:
            coarse, name = key.split("/", 1)
            number = int(coarse)
            if not 0 <= number < self.prepared.cells.count:
                raise ValueError("a record of a coarse cell that is not there")
            if name == DIVISION:
                complete.add(number)
                continue
            cell, _, setting = name.partition("/setting/")
            if setting:
                setting_scores = unpack_scores(self.journal[key], int(setting))
                scores.setdefault(number, {}).setdefault(int(cell), {})[int(setting)] = setting_scores
            else:
                self._reports[key] = unpack(self.journal[key]).report
                cells.setdefault(number, set()).add(int(cell))
        for number, done in cells.items():
            for cell_done in done & scores.get(number, {}).keys():
                del scores[number][cell_done]
        numbers = cells.keys() | scores.keys() | complete
        return {
            n: Finished(n in complete, frozenset(cells.get(n, ())), {} if n in complete else scores.get(n, {}))
            for n in numbers
        }

    def _completed(self) -> Trained:
        names: list[str] = []
        states, sizes, copies = [], [], 0
        with self.journal.sound():
            for number in range(self.prepared.cells.count):
                record = self.journal[f"{number}/{DIVISION}"]
                state = {key.removeprefix("state/"): array for key, array in record.items() if key.startswith("state/")}
                states.append(state)
                sizes.append(record["sizes"])
                copies += int(record["copies"])
                names += [f"{number}/{cell}" for cell in range(len(record["sizes"]))]
            reports = [self._reports[name] for name in names]
        repeats = len(self.prepared.cells.by_repeat)
        tell_copies(self.resources.observer, copies // repeats, self.prepared.head.rows)
        partition = self.prepared.cells.completed(states, [len(cell_sizes) for cell_sizes in sizes])
        return Trained(names, np.concatenate(sizes), reports, partition, copies)


def _write(
    output: str | Path, prepared: PreparedRun, journal: Journal, trained: Trained,
    learned: AfterTraining, force: bool, key: str,
) -> None:  # fmt: skip
    calibration, coverage, detection, thresholds, copies = learned
    content = ModelContent(
        config=prepared.config.as_dict() | prepared.as_dict(),
        labels=prepared.observed.labels,
        **prepared.chain.state(),
        partition=(trained.partition.name, trained.partition.state()),
        report=report_state(unpack(journal[trained.names[0]]).names, trained.reports),
        calibration=calibration.kept if calibration else thresholds,
        coverage=(KIND, coverage.state()) if coverage else None,
        front=(FRONT, detection.front.state()) if detection else None,
        copies=(COPIES, copies[0].state()) if copies else None,
        run=key,
    )
    write_model(output, content, (unpack(journal[name]).state for name in trained.names), len(trained.names), force)


def run_key(prepared: PreparedRun) -> tuple[str, dict[str, str]]:
    """Key of a run's journal, and what it is made of.

    The key is a hash of the rows and of all that determines the model's bits. What was hashed has the names that
    messages give to it.
    """
    options = prepared.asked.config.as_dict()
    method = options.pop("method")
    parts = prepared.content | {"--method": method.pop("name")}
    for name, value in {**options, **method}.items():
        parts[OPTIONS.get(name, f"--{name.replace('_', '-')}")] = "the default" if value is None else json.dumps(value)
    parts |= {"the version of localsvm": __version__, "the version of records": RECORDS}
    parts["the SIMD level"] = LEVELS[simd_level()]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest(), parts
