"""Preparation of a run: labels, features, metric, coarse cells, learned of all rows before any cell is trained."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from localsvm.data.blocks.dataset import REACH, Examples, out_of_reach
from localsvm.data.blocks.numbering import named
from localsvm.engines.base import Block, Digest, Engine, Head, Labels, Sample, Spread, Statistic, together
from localsvm.engines.memory import Memory
from localsvm.errors import DataError, ModelError, OptionError
from localsvm.features.chain import Chain
from localsvm.features.learned import about_metric, learned_metric
from localsvm.features.moments import Moments
from localsvm.features.scaling import MEASURED, OFF_CENTRE, Scaling, check_dense_size, off_centre_columns
from localsvm.naming import opt
from localsvm.partition import restore
from localsvm.partition.chunks import Chunks
from localsvm.representations.metric import EUCLIDEAN
from localsvm.runs.cells.coarse import (
    CHUNK_ROWS,
    CoarseCells,
    Shuffled,
    Sketched,
    Stored,
    Whole,
    partition_name,
    with_coarse_size,
)
from localsvm.runs.config import TrainingConfig, check_features, check_labels
from localsvm.runs.preparation.demand import Demand
from localsvm.runs.preparation.given import Given
from localsvm.runs.preparation.metric import Measured, MetricDraw, measure, measure_drawn
from localsvm.runs.preparation.stored import check_coarse, check_kept, check_partition
from localsvm.runs.progress import Clock, Observer
from localsvm.store.container import checked
from localsvm.store.model import PartitionFile, load_partition
from localsvm.threads import Threads

Vector = NDArray[np.float64]


@dataclass(frozen=True)
class Asked:
    """Options and files that a run is asked to use.

    Attributes
    ----------
    config : its options.
    partition_file : that `partition_only` wrote for the same data; None to find cells.
    given : the metric, and what comes before it, which `config` has to agree with (`Given.fix`); None to learn them.
    trains : whether labels are learned from; else they matter to a metric alone.
    """

    config: TrainingConfig
    partition_file: str | Path | None = None
    given: Given | None = None
    trains: bool = True


@dataclass(frozen=True)
class PreparedRun:
    """Everything that all coarse cells of a run share.

    Attributes
    ----------
    engine : where the rows are, which go through the chain.
    asked, head : what was asked for; the first look at the rows.
    config : the options, with what depends on the rows decided.
    labels, class_rows : (classes,) float64 ascending, and the rows of each.
    chain, measured, cells : fitted.
    content : fingerprints of the rows and of what else determines the model, by the names that messages give to them.
    off_centre : columns far from 0 compared with how much they vary, where that matters to the method.
    """

    engine: Engine
    asked: Asked
    head: Head
    config: TrainingConfig
    labels: Vector
    class_rows: list[int]
    chain: Chain
    measured: Measured
    cells: CoarseCells
    content: dict[str, str]
    off_centre: int

    def as_dict(self) -> dict[str, Any]:
        """Facts about the training data that prediction needs."""
        known = self.chain.as_dict() | {"partition": self.cells.partition.name, "weighted": self.head.weighted}
        described = {"classes": self.head.classes, "table": self.head.table}
        return known | self.measured.as_dict() | {name: value for name, value in described.items() if value}


def prepare(engine: Engine, asked: Asked, threads: Threads, clock: Clock, observer: Observer) -> PreparedRun:
    """Learn what all coarse cells share.

    Parameters
    ----------
    engine : the rows. Those that fit are taken into memory where they are one coarse cell.
    threads, clock, observer : workers, the phases of the run, and its observer; of no influence on the result.

    Raises
    ------
    DataError : a single class, a label of -w that no row has, or no feature.
    OptionError : a partition that cannot be made, or not be repeated.
    ModelError, RunError : for the partition file; for a phase that does not fit into the memory.
    """
    return _Preparing(engine, asked, threads, clock, observer).done()


class _Preparing:
    """Stages of the preparation, one after the other; each uses what the one before has found."""

    def __init__(self, engine: Engine, asked: Asked, threads: Threads, clock: Clock, observer: Observer) -> None:
        self._asked, self._threads, self._clock, self._observer = asked, threads, clock, observer
        self._engine = engine
        if asked.partition_file is not None and asked.config.repeats > 1:
            raise OptionError(
                f"{opt.repeats} makes several partitions, {opt.partition_file} holds one; give one of the two"
            )
        self._file = None if asked.partition_file is None else load_partition(asked.partition_file)

    def done(self) -> PreparedRun:
        config, head = self._looked()
        cells = self._cells(config, head)
        labels, class_rows, moments, digests, samples = self._reduced(config, head, cells)
        content = self._content(digests, head)
        if self._asked.trains or config.metric_name not in (EUCLIDEAN, "auto"):
            check_labels(labels, sum(class_rows), config, head.name)
        check_features(head.features, head.name)
        config = config.for_classes(labels, class_rows)
        chain = self._scaled(config, head, moments)
        with self._clock("metric") if config.metric_name != EUCLIDEAN else _nothing():
            measured = self._measured(config, head, labels, chain, samples)
            chain = replace(chain, metric=measured.metric)
            if chain.metric is not None:
                if measured.from_file:
                    self._demand.mapping(chain.mapped_columns)
                self._engine.through(partial(chain.mapped, in_place=True))
        with self._clock("partition"):  # again, for who watches
            self._demand.division()
            if isinstance(cells, Sketched):
                mapped = [sample.through(partial(chain.apply, read=True)) for sample in samples[: config.repeats]]
                cells.sketch(mapped, self._threads)
            if self._file is not None:
                cells = self._stored(self._file, head, chain)
        off_centre = self._off_centre(config, chain, samples)
        decided = replace(config, metric=measured.asked)
        return PreparedRun(
            engine=self._engine,
            asked=self._asked,
            head=head,
            config=decided,
            labels=labels,
            class_rows=class_rows,
            chain=chain,
            measured=measured,
            cells=cells,
            content=content,
            off_centre=off_centre,
        )

    def _looked(self) -> tuple[TrainingConfig, Head]:
        """First look at the rows, and the size of coarse cells; a run of one coarse cell takes its rows into memory."""
        asked, given = self._asked, self._asked.given
        config = asked.config
        if config.undivided:
            self._engine = self._engine.in_memory()
        known = None if given is None else given.chain.columns
        head = self._engine.head(known, all_rows=self._file is not None)
        if self._file is None:
            config = with_coarse_size(config, head.rows, head.row_values)
        coarse = config.coarse_size is not None or self._shuffled(config, head.rows)
        if not coarse:
            self._engine = self._engine.in_memory()
        self._demand = Demand(self._engine, config, self._threads)
        if head.left_out and self._file is None:
            tell_left_out(self._observer, head.rows, head.left_out)
        if given is not None and head.absent and head.absent < given.chain.features:
            what = f"{head.absent:,} of the {given.chain.features:,} features of the metric {given.path}"
            self._observer.note(f"{what} occur in no row")
        return config, head

    def _shuffled(self, config: TrainingConfig, rows: int) -> bool:
        return partition_name(config, rows) == Chunks.name and rows > CHUNK_ROWS and self._file is None

    def _cells(self, config: TrainingConfig, head: Head) -> CoarseCells:
        if config.coarse_size is not None and self._file is None:
            return Sketched(config, head.rows)
        return Shuffled(config, head.rows) if self._shuffled(config, head.rows) else Whole(config, head.rows)

    def _reduced(self, config: TrainingConfig, head: Head, cells: CoarseCells) -> Any:
        """Labels, the rows of each, moments, digests, samples: what one pass over the rows finds."""
        statistics: list[Statistic] = [Labels(), Digest()]
        measured = config.scale in MEASURED and self._asked.given is None and self._file is None
        if measured:
            check_dense_size(head.rows, head.features, head.columns.dense, config.scale)
        self._demand.scaling(learned=measured)
        if isinstance(cells, Sketched):
            statistics += [Sample(partial(_drawn, cells, repeat)) for repeat in range(config.repeats)]
        if cells.route is not None and config.metric_name != EUCLIDEAN and self._asked.given is None:
            statistics.append(Sample(MetricDraw.of(config, head.rows)))
        labels, digests, *others = self._engine.reduce([*statistics, *([Spread()] if measured else [])])
        moments = others.pop() if measured else None
        names = np.asarray(sorted(labels))
        rows = [labels[label][0] for label in names.tolist()]
        return names, rows, moments, digests, [together(parts) for parts in others]

    def _content(self, digests: tuple[int, int, int], head: Head) -> dict[str, str]:
        rows, weights, groups = (named(total, head.rows) for total in digests)
        fingerprints = {CONTENT: rows, "the weights of the rows": weights if head.weighted else ""}
        if head.grouped:
            fingerprints["the groups of the rows"] = groups
        if head.table is not None:
            described = json.dumps([head.table, head.classes], sort_keys=True)
            fingerprints["the columns of the table"] = hashlib.sha256(described.encode()).hexdigest()
        if self._file is not None:
            if self._file.config.get("fingerprint") != rows:
                shifted = SHIFTED if "origin" in self._file.scaling[1] else ""
                raise ModelError(OTHER_DATA.format(path=self._file.path) + shifted)
            content = Path(self._file.path).read_bytes()
            fingerprints["the content of --partition-file"] = hashlib.sha256(content).hexdigest()
        if self._asked.given is not None:
            fingerprints["the content of --metric-file"] = self._asked.given.digest
        return fingerprints

    def _scaled(self, config: TrainingConfig, head: Head, moments: Moments | None) -> Chain:
        """The chain without its metric; rows go through it from now on."""
        if self._file is not None:
            with checked(self._file.path):
                check_kept(self._file.config)
                check_coarse(self._file.config.get("coarse_size"), self._file.partition[1])
                metric = learned_metric(self._file.metric, self._file.config, head.features)
                self._known = Chain.from_state(head.columns, self._file.scaling, metric).read_from(head.shift)
        elif self._asked.given is not None:
            self._known = self._asked.given.chain_of(head)
        else:
            scaling = Scaling.fit(moments, config.scale)
            if head.table is not None:
                scaling = scaling.without(head.columns.places(head.table["unscaled"]))
            self._known = Chain.of(head.columns, head.shift, scaling)
        chain = replace(self._known, metric=None)
        self._engine.through(partial(scaled, chain))
        return chain

    def _measured(
        self, config: TrainingConfig, head: Head, labels: Vector, chain: Chain, samples: list[Any]
    ) -> Measured:
        if self._file is not None:
            return Measured(self._known.metric, about_metric(self._file.config), from_file=True)
        if self._asked.given is not None:
            return self._asked.given.measured
        if config.metric_name == EUCLIDEAN:
            return Measured()
        if isinstance(self._engine, Memory) and len(samples) == 0:
            with Threads(self._demand.metric(labels)) as some:
                return measure(self._engine.data, config, some)
        drawn = samples[-1].through(partial(scaled, chain)).dataset
        drawn.table, drawn.columns = head.table, head.columns.kept
        return measure_drawn(drawn, head.rows, labels, config, self._threads)

    def _stored(self, file: PartitionFile, head: Head, chain: Chain) -> Stored:
        with checked(file.path):
            check_partition(file, head, chain.mapped_columns)
            partition = restore(file.partition[0], dict(file.partition[1]), chain.mapped_columns, len(file.sizes))
        return Stored(partition, file.assignment, file.weight)

    def _off_centre(self, config: TrainingConfig, chain: Chain, samples: list[Any]) -> int:
        if config.method.shift_invariant:
            return 0
        if samples:
            return off_centre_columns(chain.apply(samples[0].X, read=True))
        return off_centre_columns(self._engine.data.X) if isinstance(self._engine, Memory) else 0


CONTENT = "the content of the data"  # in the key of a run
OTHER_DATA = (
    "{path}: the partition was made from other data, from the same data read or scaled with other options, or by an "
    "earlier version; run lsvm-partition on this data"
)
SHIFTED = "; where columns lie far from 0, methods other than svm go without it"


def _drawn(cells: Sketched, repeat: int, block: Block) -> NDArray[np.bool_]:
    return cells.sample(repeat, block.numbers)


def _nothing() -> Any:
    from contextlib import nullcontext

    return nullcontext()


def scaled(chain: Chain, X: Examples) -> Examples:
    """Rows after the chain, which has no metric yet. DataError where their values are too large."""
    X = chain.scaled(X, read=True, in_place=True)
    if out_of_reach(X):
        raise DataError(
            f"the features have values beyond {REACH:g} (with their scaling, if any), whose squares are too large for "
            f"float32; scale them by {opt.scale('std')}"
        )
    return X


def tell_left_out(observer: Observer, kept: int, left_out: int) -> None:
    """Report rows that have the weight 0."""
    observer.note(f"{left_out:,} of {kept + left_out:,} rows have the weight 0 and are left out")


def tell_copies(observer: Observer, repeated: int, rows: int) -> None:
    """Report rows that are copies of one before, if there are some."""
    if repeated:
        what = "is a copy of another one" if repeated == 1 else "are copies of others"
        observer.note(f"{repeated:,} of {rows:,} rows {what}; copies stay in one fold")


def tell_off_centre(observer: Observer, columns: int) -> None:
    """Warn of columns that are far from 0 where that matters, if there are some."""
    if columns:
        what = "feature is" if columns == 1 else "features are"
        observer.warning(
            f"{columns} {what} {OFF_CENTRE:g} deviations or more away from 0, nearly constant to this method; "
            f"{opt.scale('zscore')} moves them to 0"
        )
