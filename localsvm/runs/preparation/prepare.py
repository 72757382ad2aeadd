"""Preparation of a run: labels, features, metric, coarse cells, learned of all rows before any cell is trained."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from localsvm.data.blocks.dataset import REACH, Examples, dense_rows, out_of_reach, rows_of
from localsvm.data.blocks.numbering import named
from localsvm.data.readers.weights import left_out_text
from localsvm.engines.base import (
    Block,
    Digest,
    Drawn,
    Engine,
    Head,
    Labels,
    Sample,
    Spread,
    Statistic,
    ValueMoments,
    ValueStatistic,
    together,
)
from localsvm.engines.memory import Memory
from localsvm.errors import DataError, ModelError, OptionError
from localsvm.features.chain import Chain
from localsvm.features.learned import about_metric
from localsvm.features.moments import Moments
from localsvm.features.ranks import Ranks, sparse_error
from localsvm.features.scaling import CENTRED, MEASURED, OFF_CENTRE, Scaling, check_dense_size, off_centre_columns
from localsvm.naming import opt
from localsvm.partition import restore
from localsvm.partition.chunks import Chunks
from localsvm.partition.members import Members
from localsvm.representations.metric import AUTO, EUCLIDEAN
from localsvm.representations.metric_learning import LearningPlan
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
from localsvm.runs.copies import MOST_COPIES, CopiedRows, Signed
from localsvm.runs.preparation.demand import Demand
from localsvm.runs.preparation.draws import LEARN_SHARE, MOST_LEARN, MetricDraw, RankDraw
from localsvm.runs.preparation.given import Given
from localsvm.runs.preparation.measured import Measured
from localsvm.runs.preparation.metric import measure, measure_drawn, tries_ranks, untried
from localsvm.runs.preparation.regions import Regions, centres_of
from localsvm.runs.preparation.stored import check_coarse, check_kept, check_partition, stored_chain
from localsvm.runs.progress import Clock, Observer
from localsvm.store.container import checked
from localsvm.store.model import PartitionFile, load_partition
from localsvm.targets.base import Observed, Target, ValueRange
from localsvm.targets.losses import Loss, usual_moments
from localsvm.targets.novelty import NORMAL
from localsvm.threads import Threads

REGIONS_FROM = int(MOST_LEARN / LEARN_SHARE)  # rows: with more, regions of them choose a geometry
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
    observed : what the pass over all rows has found of their labels.
    chain, measured, cells : fitted.
    content : fingerprints of the rows and of what else determines the model, by the names that messages give to them.
    off_centre : columns far from 0 compared with how much they vary, where that matters to the method.
    repeated : the rows that have copies, where these may get their labels; else None.
    """

    engine: Engine
    asked: Asked
    head: Head
    config: TrainingConfig
    observed: Observed
    chain: Chain
    measured: Measured
    cells: CoarseCells
    content: dict[str, str]
    off_centre: int
    repeated: CopiedRows | None = None

    @cached_property
    def target(self) -> Target:
        """What the labels mean."""
        return self.config.target(self.observed)

    def as_dict(self) -> dict[str, Any]:
        """Facts about the training data that prediction needs."""
        known = self.chain.as_dict() | {"partition": self.cells.partition.name, "weighted": self.head.weighted}
        classes = None if self.config.of_one_kind else self.head.classes
        described = {"classes": classes, "table": self.head.table}
        if self.observed.values is not None:
            described["values"] = self.observed.values.as_dict()
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
        if asked.partition_file is not None and (asked.config.repeats or 1) > 1:
            raise OptionError(
                f"{opt.repeats} makes several partitions, {opt.partition_file} holds one; give one of the two"
            )
        self._file = None if asked.partition_file is None else load_partition(asked.partition_file)

    def done(self) -> PreparedRun:
        config, head = self._looked()
        found = self._reduced(config, head, self._cells(config, head, Members((config.method.distance,))))
        content = self._content(found.digests, head)
        if self._asked.trains or config.metric_name not in (EUCLIDEAN, "auto"):
            check_labels(found.observed, config, head.name, head.classes)
        check_features(head.features, head.name)
        config = config.for_labels(found.observed)
        chain = self._chain(config, head, found.moments)
        near = self._near(config, head, chain, found)
        self._engine.through(partial(scaled, chain))
        chain, measured = self._mapped(config, head, chain, found, near)
        # from here on with what was chosen
        members = measured.members or Members((measured.distance or config.method.distance,))
        seen = members.width if members.several else chain.mapped_columns
        views = "none" if chain.ranks is None else "ranks"
        config = replace(config, views=views, method=config.method.seeing(seen))
        if not members.several:
            config = replace(config, method=config.method.measuring(members.distance(0)))
        if config.repeats is None:
            config = replace(config, repeats=len(members.distances))
        elif config.metric_name == AUTO and not members.several and _one_cell(config, head.rows):
            config = self._alone(config)
        decided = self._asked.config.for_rows(head.rows, head.features, measured.error)
        config = replace(config, cell_size=decided.cell_size)
        cells = self._divided(config, head, chain, found, members)
        return PreparedRun(
            engine=self._engine,
            asked=self._asked,
            head=head,
            config=replace(config, metric=measured.asked),
            observed=measured.answering(found.observed) if config.tries_roots else found.observed,
            chain=chain,
            measured=measured,
            cells=cells,
            content=content,
            off_centre=self._off_centre(config, chain, found),
            repeated=found.repeated,
        )

    def _alone(self, config: TrainingConfig) -> TrainingConfig:
        """The options of a run of one cell and one geometry, which nothing can be repeated of."""
        if (self._asked.config.repeats or 1) > 1:
            self._observer.note(
                f"all rows are in one cell, and one geometry was chosen: {opt.repeats(config.times)} has nothing to "
                f"repeat, and one model is trained; a smaller {opt.cell_size} makes cells"
            )
        return replace(config, repeats=1)

    def _looked(self) -> tuple[TrainingConfig, Head]:
        """First look at the rows, and the size of coarse cells; a run of one coarse cell takes its rows into memory."""
        asked, given = self._asked, self._asked.given
        config = asked.config if self._file is None else replace(asked.config, repeats=1)
        if config.undivided:
            self._engine = self._engine.in_memory()
        known = None if given is None else given.chain.columns
        head = self._engine.head(known, all_rows=self._file is not None)
        config = config.for_rows(head.rows, head.features)
        if self._file is None:
            config = with_coarse_size(config, head.rows, head.row_values)
        if config.coarse_size is None and not self._shuffled(config, head.rows):
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

    def _cells(self, config: TrainingConfig, head: Head, members: Members) -> CoarseCells:
        if config.coarse_size is not None and self._file is None:
            return Sketched(config, head.rows, members)
        kind = Shuffled if self._shuffled(config, head.rows) else Whole
        return kind(config, head.rows, members)

    def _reduced(self, config: TrainingConfig, head: Head, cells: CoarseCells) -> _Found:
        """Find out all that one pass over the rows finds."""
        labels = ValueStatistic(head.rows) if config.of_values else Labels()
        statistics: dict[str, Statistic] = {"labels": labels, "digests": Digest()}
        learns = self._asked.given is None and self._file is None
        if measured := config.scale in MEASURED and learns:
            check_dense_size(head.rows, head.features, head.columns.dense, config.scale)
            statistics["moments"] = Spread()
        self._demand.scaling(learned=measured)
        repeats = range(config.times if isinstance(cells, Sketched) else 0)
        if isinstance(cells, Sketched):
            statistics |= {f"sketch {repeat}": Sample(partial(_drawn, cells, repeat)) for repeat in repeats}
        if cells.route is not None and config.metric_name != EUCLIDEAN and self._asked.given is None:
            statistics["drawn"] = Sample(MetricDraw.of(config, head.rows))
        dense = head.columns.dense or config.scale in CENTRED
        if learns and tries_ranks(config, dense, head.features):
            if not dense:
                raise sparse_error()
            statistics["ranked"] = Sample(RankDraw.of(config, head))
        if self._asked.trains and _tries_copies(config, head):
            self._demand.copies(head.rows)
            statistics["signed"] = Signed()
        found = dict(zip(statistics, self._engine.reduce(list(statistics.values())), strict=True))
        samples = {name: together(found[name]) for name, each in statistics.items() if isinstance(each, Sample)}
        seen = found["labels"]
        observed = (
            found_values(seen, config.value_losses, config.coverage is not None)
            if config.of_values
            else found_classes(seen)
        )
        if config.of_one_kind:
            observed = Observed.of_classes(np.asarray([NORMAL]), [observed.rows])
        sketches = [samples[f"sketch {repeat}"] for repeat in repeats]
        ranked, drawn = samples.get("ranked"), samples.get("drawn")
        repeated = CopiedRows.of(found["signed"], observed) if "signed" in found else None
        return _Found(observed, found["digests"], found.get("moments"), sketches, drawn, ranked, repeated)

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

    def _chain(self, config: TrainingConfig, head: Head, moments: Moments | None) -> Chain:
        """The chain up to the scaling."""
        if self._file is not None:
            with checked(self._file.path):
                check_kept(self._file.config)
                check_coarse(self._file.config.get("coarse_size"), self._file.partition[1])
                self._known = stored_chain(head.columns, self._file).read_from(head.shift)
        elif self._asked.given is not None:
            self._known = self._asked.given.chain_of(head)
        else:
            scaling = Scaling.fit(moments, config.scale)
            if head.table is not None:
                scaling = scaling.without(head.columns.places(head.table["unscaled"]))
            self._known = Chain.of(head.columns, head.shift, scaling)
        return replace(self._known, ranks=None, metric=None)

    def _near(self, config: TrainingConfig, head: Head, chain: Chain, found: _Found) -> Drawn | None:
        """The rows of regions, by which a geometry is chosen; None where the engine has them, or none is."""
        shape = head.rows, head.features
        few = head.rows <= REGIONS_FROM  # which are drawn nearly as dense as they are
        later = config.blocks  # rows that come later are not so near to those that are known
        if few or later or found.drawn is None or config.metric_name != "auto" or untried(shape, found.observed):
            return None
        drawn = found.drawn.X
        centres = centres_of(drawn.shape[0], LearningPlan.rng(config.seed, -1, 13))
        at = chain.scaled(rows_of(drawn, centres), read=True)
        before = MetricDraw.of(config, head.rows).before
        regions = Regions(dense_rows(at, np.arange(len(centres))), partial(chain.scaled, read=True), before)
        near: Drawn = self._engine.reduce([regions])[0].rows
        return near

    def _mapped(
        self, config: TrainingConfig, head: Head, chain: Chain, found: _Found, near: Drawn | None
    ) -> tuple[Chain, Measured]:
        """The chain with ranks and metric, through which rows go from now on, and what is known of them."""
        with self._clock("metric") if config.metric_name != EUCLIDEAN or found.ranked else _nothing():
            measured = self._measured(config, head, chain, found, near)
            chain = replace(chain, ranks=measured.ranks, metric=measured.metric)
            if chain.metric is not None or chain.ranks is not None:
                if measured.from_file or chain.ranks is not None or measured.members is not None:
                    self._demand.mapping(chain.mapped_columns, measured.members is not None)
                self._engine.through(partial(chain.mapped, in_place=True))
        return chain, measured

    def _measured(
        self, config: TrainingConfig, head: Head, chain: Chain, found: _Found, near: Drawn | None
    ) -> Measured:
        if self._file is not None:
            known = self._known
            return Measured(known.metric, known.ranks, about_metric(self._file.config), from_file=True)
        if self._asked.given is not None:
            return replace(self._asked.given.measured, ranks=self._known.ranks)
        ranks = None if found.ranked is None else _ranks(found.ranked, chain, self._threads)
        if config.metric_name == EUCLIDEAN:
            return Measured(ranks=ranks)
        if found.drawn is None:
            assert isinstance(self._engine, Memory), "else rows are drawn"
            with Threads(self._demand.metric(found.observed)) as some:
                return measure(self._engine.data, found.observed, config, some, ranks)
        drawn = found.drawn.through(partial(scaled, chain))
        close = None if near is None else near.through(partial(scaled, chain))
        return measure_drawn(drawn, close, head, found.observed, config, self._threads, ranks)

    def _divided(
        self, config: TrainingConfig, head: Head, chain: Chain, found: _Found, members: Members
    ) -> CoarseCells:  # fmt: skip
        """The coarse cells: those of the file, or new ones."""
        with self._clock("partition"):  # again, for who watches
            self._demand.division()
            if self._file is not None:
                return self._stored(self._file, head, chain, members)
            cells = self._cells(config, head, members)
            if isinstance(cells, Sketched):
                some = found.sketches[: config.times]  # the choice of the geometry may have asked for fewer repeats
                mapped = [sample.through(partial(chain.apply, read=True)) for sample in some]
                cells.sketch(mapped, self._threads)
            return cells

    def _stored(self, file: PartitionFile, head: Head, chain: Chain, members: Members) -> Stored:
        with checked(file.path):
            check_partition(file, head, chain.mapped_columns)
            partition = restore(file.partition[0], dict(file.partition[1]), chain.mapped_columns, len(file.sizes))
        return Stored(partition, file.assignment, file.weight, members)

    def _off_centre(self, config: TrainingConfig, chain: Chain, found: _Found) -> int:
        if config.method.shift_invariant:
            return 0
        if sample := next(iter(found.sketches), found.drawn):
            return off_centre_columns(chain.apply(sample.X, read=True))
        return off_centre_columns(self._engine.data.X) if isinstance(self._engine, Memory) else 0


@dataclass(frozen=True)
class _Found:
    """What one pass over the rows finds.

    Attributes
    ----------
    observed : of the labels.
    digests : of the rows, their weights and groups.
    moments : of the columns; None where scaling asks for none.
    sketches : rows for the coarse cells of each repeat.
    drawn, ranked : rows to learn the metric and the ranks from; None where they are learned from others, or not.
    repeated : see `PreparedRun`.
    """

    observed: Observed
    digests: tuple[int, int, int]
    moments: Moments | None
    sketches: list[Drawn]
    drawn: Drawn | None
    ranked: Drawn | None
    repeated: CopiedRows | None


def found_classes(found: dict[float, tuple[int, float]]) -> Observed:
    """Classes, of what `Labels` finds."""
    labels = np.asarray(sorted(found))
    return Observed.of_classes(labels, [found[label][0] for label in labels.tolist()])


def found_values(found: ValueMoments, losses: Sequence[Loss], interval: bool = False) -> Observed:
    """Values that are to be predicted by some losses, of what `ValueStatistic` finds. interval : with intervals."""
    deviation = float(np.sqrt(found.squares / found.mass)) if found.mass else 0.0
    deviation = deviation if found.low < found.high else 1.0
    usual = usual_moments(found.some, deviation, losses) or (None, None)
    ends = _interval_ends(found) if interval else (None, None)
    return Observed(found.rows, values=ValueRange(found.mean, deviation, found.low, found.high, *usual, *ends))


def _interval_ends(found: ValueMoments) -> tuple[float, float]:
    """Numbers between which the ends of intervals lie: as far beyond the values as these are apart.

    A held-out row that alone has the largest value would not be like a new one if this value, its own, bounded its
    interval. What several rows have that are not held out together bounds values as such, as 0 those that are counted.
    """
    y, apart = found.some[:, 0], found.high - found.low
    alone = [len(np.unique(found.units[y == end])) < 2 for end in (found.low, found.high)]
    return found.low - apart * alone[0], found.high + apart * alone[1]


def _ranks(sample: Drawn, chain: Chain, threads: Threads) -> Ranks | None:
    """Ranks of scaled rows, by a sample of the rows as they are read, which is consumed."""
    return Ranks.fit(np.asarray(scaled(chain, sample.X)), threads)


CONTENT = "the content of the data"  # in the key of a run
OTHER_DATA = (
    "{path}: the partition was made from other data, from the same data read or scaled with other options, or by an "
    "earlier version; run lsvm-partition on this data"
)
SHIFTED = "; where columns lie far from 0, methods other than svm go without it"


def _drawn(cells: Sketched, repeat: int, block: Block) -> NDArray[np.bool_]:
    return cells.sample(repeat, block.numbers)


def _tries_copies(config: TrainingConfig, head: Head) -> bool:
    """Whether labels of copies are tried. OptionError where they are asked for and cannot be."""
    few, asked = head.rows <= MOST_COPIES, opt.copies("auto")
    if config.copies == "auto" and not few:
        raise OptionError(f"{asked} looks for copies among {MOST_COPIES:,} rows at most; leave it out")
    if config.copies == "auto" and head.grouped:
        raise OptionError(f"{asked} does not go with groups: new rows are of new groups, and equal no training row")
    return config.tries_copies and few and not head.grouped


def _one_cell(config: TrainingConfig, rows: int) -> bool:
    """Whether so many rows are one cell."""
    return config.coarse_size is None and (rows <= config.most_rows or partition_name(config, rows) == "none")


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
    observer.note(left_out_text(left_out, kept + left_out))


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
