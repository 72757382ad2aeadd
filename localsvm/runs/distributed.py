"""Training on many machines: the rows of a text in parts, and a coarse cell a task (Thomann et al. 2017, section 5.1).

A sample of the rows comes here, and coarse centres are found in it; whoever holds a part sends its rows to their
coarse cells; each of these is divided, selected and solved by itself as a run on one machine would. The model is that
of such a run, bit for bit. Memory here does not grow with the rows.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from localsvm.data.dataset import Dataset, rows_of
from localsvm.data.numbering import Draw, named
from localsvm.errors import DataError, OptionError
from localsvm.features.chain import Chain
from localsvm.features.columns import KeptColumns
from localsvm.features.origin import Origin
from localsvm.features.scaling import OFF_CENTRE, Scaling
from localsvm.kernels._kernels import LEVELS, simd_level
from localsvm.partition import REGISTRY, Partition, create
from localsvm.partition.repeated import Repeated
from localsvm.partition.two_step import Stream, TwoStep, draw_key, drawn
from localsvm.runs.coarse import DIVISION, CoarseCell, CoarseRun, Record, train_coarse
from localsvm.runs.config import TrainingConfig, check_features, check_labels
from localsvm.runs.division import PARTITION_KEY, about_data, partition_name, tell_off_centre
from localsvm.runs.measuring import Measured, measure_drawn, metric_draw
from localsvm.runs.part_work import (
    Block,
    Chosen,
    Form,
    Look,
    another_level,
    assigned,
    counted,
    far_columns,
    form_of,
    joined,
    lines,
    looked_at,
    scaled,
)
from localsvm.runs.progress import Clock, Observer, Silent
from localsvm.runs.records import unpack
from localsvm.runs.summary import Summary, summarise
from localsvm.runs.training import calibrated, key_of, write_trained
from localsvm.store.container_writing import creation_time
from localsvm.store.journal import Journal, journal_path, open_journal
from localsvm.store.outputs import signals_held
from localsvm.threads import ALONE, Threads

State = dict[str, NDArray[Any]]


class Groups(Protocol):
    """Values in groups, on many machines."""

    def unordered(self, work: Callable[[Any, list[Any]], Any], wanted: Mapping[int, Any]) -> Generator[tuple[int, Any]]:
        """(group, what `work` makes of wanted[group] and its values), as they finish."""


class Text(Protocol):
    """A text in parts, on many machines; see `parallel.spark.Text`."""

    name: str

    def head(self, lines: int) -> bytes:
        """The first lines, or all where there are fewer."""

    def each(self, work: Callable[[int, Iterator[bytes]], Any]) -> list[Any]:
        """What `work` makes of the number and the pieces of each part, in their order."""

    def groups(self, work: Callable[[int, Iterator[bytes]], Iterable[tuple[int, Any]]], count: int) -> Groups:
        """What `work` gives of each part as (group, value), together by group."""


@dataclass(frozen=True)
class CoarseTask:
    """What is to be done with the rows of a coarse cell, besides the rows; see `CoarseCell`. learned: which rows the
    metric is from.
    """

    run: CoarseRun
    number: int
    stream: Stream
    repeat: int
    level: str
    learned: Draw | None

    def __call__(self, blocks: list[Block]) -> list[tuple[str, Record]]:
        """The records of its cells, and at the end that of the division."""
        if LEVELS[simd_level()] != self.level:
            raise another_level(LEVELS[simd_level()], self.level)
        numbers = np.concatenate([block[0] for block in blocks])
        order = np.argsort(numbers)
        X, y = rows_of(joined([block[1] for block in blocks]), order), np.concatenate([block[2] for block in blocks])
        fresh = None if self.learned is None else ~self.learned(numbers[order])
        cell = CoarseCell(self.number, self.stream, X, y[order], fresh=fresh, repeat=self.repeat)
        division, *cells = train_coarse(self.run, cell)
        return [*cells, division]


def do(task: CoarseTask, blocks: list[Block]) -> list[tuple[str, Record]]:
    """A task, for `Groups.unordered`."""
    return task(blocks)


@dataclass
class Surveyed:
    """What is known of all rows before they are trained on, as `Divided` has it. learned: the rows of the metric."""

    form: Form
    config: TrainingConfig
    labels: NDArray[np.float64]
    class_rows: list[int]
    chain: Chain
    partition: Partition
    steps: list[TwoStep]
    streams: list[list[Stream]]
    digest: str
    off_centre: int
    measured: Measured = field(default_factory=Measured)
    learned: Draw | None = None

    def as_dict(self) -> dict[str, Any]:
        """What prediction has to know of the training data."""
        return about_data(self.chain, self.partition, False, self.measured)

    def tasks(self) -> dict[int, CoarseTask]:
        """By the number of the coarse cell."""
        run = CoarseRun(replace(self.config, partition=self.partition.name), self.labels, self.class_rows)
        each = [(repeat, stream) for repeat, streams in enumerate(self.streams) for stream in streams]
        level = LEVELS[simd_level()]
        return {
            number: CoarseTask(run, number, stream, repeat, level, self.learned)
            for number, (repeat, stream) in enumerate(each)
        }


def train_text(
    text: Text, config: TrainingConfig, output: str | Path, *,
    jobs: int = 1, force: bool = False, resume: bool = False, observer: Observer | None = None,
) -> Summary:  # fmt: skip
    """Train on a text in parts and write the model to `output`. jobs: threads here, by which a metric is chosen.

    Raises
    ------
    OptionError : an option that has no meaning here. DataError, ModelError, RunError : as `training.train`.
    """
    check(config)
    creation_time()
    clock = Clock(observer := observer or Silent())
    with clock("read"):
        form = read_form(text, config)
    with clock("partition"), Threads(jobs) as threads:
        found = survey(text, form, config, threads, clock)
    key = key_of(found.digest, config)
    with clock("train"), open_journal(journal_path(output), *key, resume=resume, force=force) as journal:
        tell_off_centre(observer, found.off_centre)
        sizes = _train(text, found, journal, observer, resume)
        reports = [unpack(journal[name]).report for name in sizes.names]
        calibration = calibrated(found.config, found.labels, lambda: Values(journal, sizes), clock)
        write_trained(output, found.config, found, journal, sizes.names, reports, calibration, force, clock)
        journal.delete()
    about = found.labels, found.class_rows, (form.features, form.width), found.partition.name
    told = config.repeats, calibration, found.measured.told, found.partition.cells_by_coarse
    return summarise(*about, sizes.sizes, reports, clock.seconds, *told)


def check(config: TrainingConfig) -> None:
    """OptionError for what cannot be done in parts, and why."""
    if config.coarse_size is None:
        raise OptionError(
            "--backend spark makes a task of each coarse cell; give their size (--coarse-size 20000) as well"
        )
    if config.probability and config.repeats > 1:
        raise OptionError(
            "--backend spark does not calibrate --repeats, whose rows would have to come together here; leave -b 1 or "
            "--repeats out"
        )


def read_form(text: Text, config: TrainingConfig) -> Form:
    """How the rows are to be read: one pass over them. DataError names the line of a mistake."""
    name, from_0 = text.name, config.zero_based
    far = far_columns(name, from_0, text.head) if config.shifts else None
    try:
        parts = text.each(partial(counted, name, from_0, far, None))
    except DataError:  # of a line that is counted from the beginning of its part
        first = np.cumsum([0, *text.each(lines)]).tolist()
        text.each(partial(counted, name, from_0, far, first))
        raise
    for level in sorted(set().union(*(part.levels for part in parts)) - {LEVELS[simd_level()]}):
        raise another_level(level, LEVELS[simd_level()])
    return form_of(name, from_0, far, parts)


def survey(
    text: Text, form: Form, config: TrainingConfig, threads: Threads = ALONE, clock: Clock | None = None
) -> Surveyed:
    """Learn what all rows share, and find the coarse cells: one pass, and one more with repeats."""
    check_features(form.features, form.name)
    rng = np.random.default_rng(np.random.SeedSequence(config.seed, spawn_key=PARTITION_KEY))
    of_metric = metric_draw(config, form.rows)
    look = _look(text, form, [_coarse_draw(form, config, rng), *([of_metric] if of_metric else [])])
    labels = np.asarray(sorted(look.labels))
    class_rows = [look.labels[label] for label in labels.tolist()]
    check_labels(labels, form.rows, config, form.name)
    off_centre = 0 if config.method.shift_invariant else _off_centre(look, config.scale)
    chain = Chain(
        KeptColumns(form.columns, form.width, form.dense),
        Origin.fit(form.shift, form.columns, form.features),
        Scaling.of_sums(look.sums, config.scale),
    )
    decided, measured = config.for_classes(labels, class_rows), Measured()
    if of_metric:
        with (clock or Clock(Silent()))("metric"):
            X, y = look.sample(1)
            measured = measure_drawn(Dataset(scaled(chain, X), y), form.rows, labels, decided, threads)
        chain = replace(chain, metric=measured.metric)
    kind = partition_name(config, form.rows)
    partition = create(kind, config.repeats, config.coarse_size)
    parts = partition.parts if isinstance(partition, Repeated) else [partition]
    steps = [part for part in parts if isinstance(part, TwoStep)]
    streams = [_sketched(steps[0], look, 0, chain, form, rng)]
    if len(steps) > 1:
        further = rng.spawn(len(steps) - 1)
        look_again = _look(text, form, [_coarse_draw(form, config, each) for each in further])
        for i, each in enumerate(further):
            streams.append(_sketched(steps[i + 1], look_again, i, chain, form, each))
    decided = replace(decided, metric=measured.asked)
    learned = of_metric if measured.metric is not None else None
    about = partition, steps, streams, named(look.digest, form.rows), off_centre, measured, learned
    return Surveyed(form, decided, labels, class_rows, chain, *about)


def _coarse_draw(form: Form, config: TrainingConfig, rng: np.random.Generator) -> Chosen:
    """The rows from which coarse cells come."""
    assert config.coarse_size is not None, "checked before"
    return partial(drawn, rows=form.rows, coarse_size=config.coarse_size, key=draw_key(rng))


def _look(text: Text, form: Form, draws: list[Chosen]) -> Look:
    first, *others = text.each(partial(looked_at, form, draws))
    for other in others:
        first.merge(other)
    assert isinstance(first, Look)
    return first


def _off_centre(look: Look, mode: str) -> int:
    if mode in ("zscore", "minmax", "row"):
        return 0
    mean, deviation = look.sums.moments()
    return int(np.count_nonzero((np.abs(mean) >= OFF_CENTRE * deviation) & (deviation > 0)))


def _sketched(
    step: TwoStep, look: Look, number: int, chain: Chain, form: Form, rng: np.random.Generator
) -> list[Stream]:
    X, y = look.sample(number)
    return step.sketch(chain.mapped(scaled(chain, X), in_place=True), y, form.rows, rng)


class Sizes:
    """The cells of a journal in their order: the names of their records, and their sizes (cells,) int64."""

    def __init__(self, names: list[str], sizes: NDArray[np.int64]) -> None:
        self.names, self.sizes = names, sizes


def _train(text: Text, found: Surveyed, journal: Journal, observer: Observer, resume: bool) -> Sizes:
    """All coarse cells that the journal does not have, and the partition completed."""
    if resume and journal.empty:
        observer.note(f"nothing to resume at {journal.path}: training from the beginning")
    tasks = found.tasks()
    with journal.sound():
        todo = {number: task for number, task in tasks.items() if f"{number}/{DIVISION}" not in journal}
    observer.cells(len(tasks), len(tasks) - len(todo))
    trees = [step.coarse for step in found.steps]
    if todo:
        groups = text.groups(partial(assigned, found.form, found.chain, trees), len(tasks))
        with closing(groups.unordered(do, todo)) as results:
            for done, (number, records) in enumerate(results, start=len(tasks) - len(todo) + 1):
                _keep(journal, number, records, observer)
                observer.work(done / len(tasks), 0)
    return _completed(found, journal, len(tasks))


def _keep(journal: Journal, number: int, records: list[tuple[str, Record]], observer: Observer) -> None:
    with signals_held():
        for name, arrays in records:  # that of the division is the last: a coarse cell is there whole, or not at all
            journal.append(f"{number}/{name}", arrays)
        reports = [unpack(arrays).report for name, arrays in records if name != DIVISION]
        observer.cell_done(sum(sum(r.wrong) for r in reports), sum(sum(r.weight) for r in reports))
    journal.settle()


def _completed(found: Surveyed, journal: Journal, coarse: int) -> Sizes:
    """The partitions inside the coarse cells put into their places; the cells in their order."""
    names, sizes, fine = [], [], []
    kind = REGISTRY[found.partition.name]
    with journal.sound():
        for number in range(coarse):
            record = journal[f"{number}/{DIVISION}"]
            own = {name.removeprefix("state/"): array for name, array in record.items() if name.startswith("state/")}
            fine.append(kind.from_state(own))
            sizes.append(record["sizes"])
            names += [f"{number}/{cell}" for cell in range(len(record["sizes"]))]
    for step in found.steps:
        own_cells, fine = fine[: step.coarse.n_cells], fine[step.coarse.n_cells :]
        step.complete(own_cells)
    return Sizes(names, np.concatenate(sizes))


class Values:
    """The held-out values of a run, read cell by cell from its journal; see targets.calibrating.HeldOut."""

    repeats = 1

    def __init__(self, journal: Journal, sizes: Sizes) -> None:
        self._journal, self._names, self.sizes = journal, sizes.names, sizes.sizes

    def cell(self, index: int) -> tuple[NDArray[np.floating[Any]], NDArray[np.float64], NDArray[np.float64]]:
        """(problems, n) values, (n,) labels and (n,) how many rows each stands for."""
        record = self._journal[self._names[index]]
        count = record["held/count"]
        if "held/fresh" in record:  # the others chose the metric, and are flattered by it
            count = count * record["held/fresh"]
        return unpack(record).values, record["held/y"], count

    def rows(self, index: int) -> NDArray[np.int64]:
        """Only of repeats, which are not calibrated here."""
        raise NotImplementedError
