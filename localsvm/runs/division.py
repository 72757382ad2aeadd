"""The first half of a training run: scale the rows, divide the space, bring the rows into cell order."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from localsvm.data.dataset import REACH, Dataset, out_of_reach, size_of
from localsvm.data.exact_sums import ExactSums
from localsvm.data.shared import Rows, SharedArray, SharedExamples, SharedPlaces, each_once
from localsvm.data.spilled import Spilled, SpilledExamples, through
from localsvm.data.weights import leave_out
from localsvm.errors import DataError, OptionError
from localsvm.features.chain import Chain
from localsvm.features.columns import KeptColumns
from localsvm.features.learned import about_metric, learned_metric
from localsvm.features.scaling import OFF_CENTRE, Scaling, check_dense_size, off_centre_columns, scaling_of
from localsvm.memory import UNBOUNDED, Budget
from localsvm.partition import Partition, TrainingCell, copies, create, restore
from localsvm.partition.on_disk import matrix_of
from localsvm.representations.metric import EUCLIDEAN
from localsvm.runs import weighing
from localsvm.runs.config import TrainingConfig, check_features, check_labels
from localsvm.runs.demand import Demand
from localsvm.runs.given import Given
from localsvm.runs.measuring import Measured, measure
from localsvm.runs.progress import Clock, Observer, Silent
from localsvm.runs.stored import cells_of, check_coarse, check_kept
from localsvm.selection.folds import fold_order
from localsvm.store.container import checked
from localsvm.store.fingerprint import fingerprint
from localsvm.store.model import PartitionFile, load_partition, write_partition
from localsvm.threads import ALONE, Threads

KEPT = ("cell_size", "scale", "seed", "zero_based", "coarse_size")  # options of a partition file, beside the metric
# rows of all cells, how many stand behind each, their masses, their fresh shares
Ordered = tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.float64] | None, NDArray[np.float64] | None]
PARTITION_KEY = ((1 << 32) - 1, 0)  # the random stream of the partition; those of cells begin with the cell's number


@dataclass
class Divided:
    """Scaled training data in cell order, and in each cell in the order of its folds.

    Attributes
    ----------
    chain, partition : fitted.
    labels, class_rows : (classes,) float64 ascending, and the rows of each.
    X, y : in shared memory, or rows in scratch files, (n, d) float32 and (n,) float64 labels.
    count : in shared memory, (all,) float64: how many rows stand behind each row of each cell. With repeats a row
        is in several cells, else all = n.
    mass : in shared memory, (all,) float64: the weights of those rows, summed; None where the data have no weights.
    edges : (cells + 1,) int64; cell i has the places edges[i] to edges[i + 1] - 1 of `count`.
    places : how the rows of the cells are found in X and y.
    classes : see Dataset.
    fresh : in shared memory, (all,) float64: the share of those rows that say what the error is; None where all do.
    measured : what is told of how the metric was chosen.
    off_centre : columns far from 0 compared with how much they vary, where that matters to the method.
    streams : of each cell, the name of its random numbers: its number; with coarse cells the coarse cell's, and its
        number in there.
    fold_rows : of each cell, how many of its rows each fold holds out.
    copies : how many rows are copies of one before.
    """

    chain: Chain
    partition: Partition
    labels: NDArray[np.float64]
    class_rows: list[int]
    X: SharedExamples | SpilledExamples
    y: SharedArray
    count: SharedArray
    mass: SharedArray | None
    edges: NDArray[np.int64]
    places: SharedPlaces
    classes: dict[str, Any] | None = None
    off_centre: int = 0
    fresh: SharedArray | None = None
    measured: Measured = field(default_factory=Measured)
    streams: list[tuple[int, ...]] = field(default_factory=list)
    fold_rows: list[tuple[int, ...]] = field(default_factory=list)
    copies: int = 0

    @property
    def nbytes(self) -> int:
        """What is held in memory, shared or not."""
        shared = (self.y, self.count, *(() if self.mass is None else (self.mass,)))
        arrays = [*(array.array for array in shared), *self.partition.state().values()]
        arrays += self.chain.scaling.state().values()
        return self.X.nbytes + sum(int(array.nbytes) for array in arrays) + 16 * self.count.array.size

    @property
    def sizes(self) -> NDArray[np.int64]:
        """Rows of each cell."""
        return np.diff(self.edges)

    def cells(self) -> list[Rows]:
        """Where the rows of each cell are in X and y."""
        places = self.places.handle()
        return [places.rows(int(first), int(last)) for first, last in pairwise(self.edges)]

    @property
    def average_rows(self) -> NDArray[np.float64]:
        """(cells,) the mean size of a cell: of those in its coarse cell; else of those of the first repeat, whose
        models are then those of a run without repeats.
        """
        if len(self.streams[0]) == 1:
            return np.full(len(self.sizes), self.sizes[: self.partition.cells_by_repeat[0]].mean())
        coarse = np.asarray([stream[0] for stream in self.streams]) - self.streams[0][0]
        means: NDArray[np.float64] = (np.bincount(coarse, self.sizes) / np.bincount(coarse))[coarse]
        return means

    def as_dict(self) -> dict[str, Any]:
        """What prediction has to know of the training data."""
        about = about_data(self.chain, self.partition, self.mass is not None, self.measured)
        return about | ({"classes": self.classes} if self.classes else {})


def about_data(chain: Chain, partition: Partition, weighted: bool, measured: Measured) -> dict[str, Any]:
    """What prediction has to know of the training data; see `Divided`."""
    return chain.as_dict() | {"partition": partition.name, "weighted": weighted} | measured.as_dict()


def divide(
    data: Dataset, config: TrainingConfig, partition_file: str | Path | None = None, threads: Threads = ALONE,
    budget: Budget = UNBOUNDED, clock: Clock | None = None, given: Given | None = None,
) -> Divided:  # fmt: skip
    """Scale the data, fit or load the partition, and bring the rows into cell order, in cells into that of the folds.

    Parameters
    ----------
    data : left without rows of weight 0 and columns that do not occur; both in place where dense. Weights are checked.
    partition_file : that `partition_only` wrote for the same data; None to fit a partition.
    threads, budget, clock : workers, the memory and the phases of the run, of no influence on the result.
    given : the metric, and what comes before it, which `config` has to agree with (`Given.fix`); None to learn them.

    Raises
    ------
    DataError : a single class, a label of -w that no row has, or no feature.
    OptionError : a partition that cannot be made, or not be repeated.
    ModelError, RunError : for the partition file; for a phase that does not fit into the memory.
    """
    demand, clock = Demand(data, config, budget, threads.count), clock or Clock(Silent())
    stored = None if partition_file is None else _stored(partition_file, data, config)
    if not stored:
        _without_weight_0(data, demand)
    labels, class_rows = np.unique(data.y if data.weight is None else data.y[data.weight > 0], return_counts=True)
    check_labels(labels, int(class_rows.sum()), config, data.name)
    columns = KeptColumns.of(data, data.X.shape[1])
    if stored is None or stored.columns is not None:  # a file of version 1 divides by all columns
        columns = _keep_columns(data, demand, given, clock)
    demand.scaling()
    config = config.for_classes(labels, class_rows.tolist())
    if stored:
        found = _load(data, columns, stored, demand)
    else:
        found = _fit(data, columns, config, threads, demand, clock, given)
    streams = _streams(found[2])
    return in_cells(data, config, *found, streams, (labels, class_rows.tolist()), threads, demand)


def _without_weight_0(data: Dataset, demand: Demand) -> None:
    demand.weighing()
    leave_out(data)


def _streams(partition: Partition) -> list[tuple[int, ...]]:
    coarse = partition.cells_by_coarse
    if coarse is None:
        return [(cell,) for cell in range(partition.n_cells)]
    return [(number, cell) for number, cells in enumerate(coarse) for cell in range(cells)]


def in_cells(
    data: Dataset, config: TrainingConfig, chain: Chain, measured: Measured, partition: Partition,
    cells: list[TrainingCell], streams: list[tuple[int, ...]], classes: tuple[NDArray[np.float64], list[int]],
    threads: Threads = ALONE, demand: Demand | None = None,
) -> Divided:  # fmt: skip
    """The scaled and mapped rows in shared memory, in the order of cells and folds.

    chain : that the rows went through.
    streams, classes : as in `Divided`, the labels with their rows.
    """
    cells = weighing.weighed(data, partition, cells, measured.fresh)
    same = copies(matrix_of(data.X), threads)
    (order, count, mass, share), fold_rows = in_order(data.y, cells, streams, config, threads, same)
    edges = np.concatenate([[0], np.cumsum([len(cell.rows) for cell in cells])]).astype(np.int64)
    rows, places = each_once(order, int(edges[partition.cells_by_repeat[0]]))
    if demand is not None:
        demand.copying(int(edges[-1]))
    shared = _in_shared_files(data, rows, threads), SharedArray.copy(data.y[rows]), SharedArray.copy(count)
    weights, fresh = (None if array is None else SharedArray.copy(array) for array in (mass, share))
    off_centre = 0 if config.method.shift_invariant else off_centre_columns(data.X)
    about = chain, partition, *classes
    repeated = 0 if same is None else int(np.count_nonzero(same != np.arange(len(same))))
    return Divided(
        *about, *shared, weights, edges, places, data.classes, off_centre, fresh, measured, streams, fold_rows, repeated
    )


def _stored(path: str | Path, data: Dataset, config: TrainingConfig) -> PartitionFile:
    if config.repeats > 1:
        raise OptionError("--repeats makes several partitions, --partition-file holds one; give one of the two")
    return load_partition(path, fingerprint(data.X, data.y))


def _in_shared_files(data: Dataset, rows: NDArray[np.int64], threads: Threads) -> SharedExamples | SpilledExamples:
    """The rows in this order: in shared memory, or on the disk where they came from."""
    X: Any = data.X
    if not isinstance(X, Spilled):
        return SharedExamples(data.X, rows, threads)
    return SpilledExamples(X, rows)


def in_order(
    y: NDArray[np.float64], cells: list[TrainingCell], streams: list[tuple[int, ...]], config: TrainingConfig,
    threads: Threads, same: NDArray[np.int64] | None,
) -> tuple[Ordered, list[tuple[int, ...]]]:  # fmt: skip
    """The rows of all cells, cell after cell in the order of their folds; counts; masses and fresh shares if any. And
    how many rows each fold of each cell holds out. same: what `copies` gives.
    """

    def order_of(index: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        rng = np.random.default_rng(np.random.SeedSequence(config.seed, spawn_key=(*streams[index], 0)))
        rows = cells[index].rows
        return fold_order(y[rows], config.folds, rng, None if same is None else same[rows])

    orders, fold_rows = zip(*threads.map(order_of, len(cells)), strict=True)

    def ordered(of_cells: list[NDArray[Any]]) -> NDArray[Any]:
        return np.concatenate([values[order] for values, order in zip(of_cells, orders, strict=True)])

    masses = [cell.mass for cell in cells if cell.mass is not None]
    shares = [cell.fresh for cell in cells if cell.fresh is not None]
    counts = [np.ones(len(cell.rows)) if cell.weight is None else cell.weight for cell in cells]
    mass, share = (ordered(of_cells) if of_cells else None for of_cells in (masses, shares))
    found = ordered([cell.rows for cell in cells]), ordered(counts), mass, share
    return found, [tuple(rows.tolist()) for rows in fold_rows]


def partition_only(
    data: Dataset, config: TrainingConfig, output: str | Path, force: bool = False, threads: Threads = ALONE,
    memory: int | None = None, clock: Clock | None = None, given: Given | None = None,
) -> tuple[NDArray[np.int64], dict[str, Any] | None]:  # fmt: skip
    """Divide the data and write the partition file, for `divide` to load later.

    The data are consumed. memory: bytes that the run may use, None for what is free. clock: of the phases. given: as in
    `divide`.

    Returns
    -------
    (cells,) int64 rows of each cell; how the metric was chosen, as a summary has it.
    """
    if config.metric_name not in (EUCLIDEAN, "auto"):  # it is learned from the labels, where auto can do without
        check_labels(np.unique(data.y), len(data.y), config, data.name)
    key = fingerprint(data.X, data.y)
    demand = Demand(data, config, Budget.of(memory, size_of(data.X)), threads.count)
    columns = _keep_columns(data, demand, given, clock := clock or Clock(Silent()))
    demand.scaling()
    chain, measured, partition, cells = _fit(data, columns, config, threads, demand, clock, given)
    assignment, weight = _assigned(cells, len(data.y))
    sizes = np.asarray([len(cell.rows) for cell in cells], np.int64)
    kept = {name: v for name in KEPT if (v := getattr(config, name)) is not None} | {"metric": config.metric_name}
    write_partition(
        output,
        config={"partition": partition.name, **measured.as_dict()} | kept,
        fingerprint=key,
        **chain.state(),
        partition=(partition.name, partition.state()),
        assignment=assignment,
        weight=weight,
        sizes=sizes,
        centres=partition.centres,
        force=force,
    )
    return sizes, measured.told


def _assigned(cells: list[TrainingCell], rows: int) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
    """(rows,) the cell of each row, -1 for one merged into another, and how many rows stand behind it."""
    assignment, weight = np.full(rows, -1, np.int32), np.zeros(rows)
    for index, cell in enumerate(cells):
        assignment[cell.rows] = index
        weight[cell.rows] = 1.0 if cell.weight is None else cell.weight
    return assignment, weight


def _keep_columns(data: Dataset, demand: Demand, given: Given | None, clock: Clock) -> KeptColumns:
    demand.compaction()
    if given is None:
        columns = KeptColumns.fit(data, demand.dense)
    else:
        columns, absent = given.narrow(data, demand.dense)
        if absent:
            clock.note(
                f"{absent:,} of the {given.chain.features:,} features of the metric {given.path} occur in no row"
            )
    check_features(data.X.shape[1], data.name)
    return columns


def _fit(
    data: Dataset, columns: KeptColumns, config: TrainingConfig, threads: Threads, demand: Demand, clock: Clock,
    given: Given | None,
) -> tuple[Chain, Measured, Partition, list[TrainingCell]]:  # fmt: skip
    """Scales and maps the data, too."""
    if given is None:
        chain = Chain.of(data, columns, _scaling(data.X, config, threads))
    else:
        chain = replace(given.chain_of(data, columns), metric=None)
    data.X = _scaled(chain, data.X)  # and so the rows before are freed where they are others
    check_reach(data.X)
    with clock("metric") if config.metric_name != EUCLIDEAN else nullcontext():
        if given is None:
            with Threads(demand.metric()) as some:
                measured = measure(data, config, some)
        else:
            measured = given.metric_of(data)
        chain = replace(chain, metric=measured.metric)
        if given is not None:
            demand.mapping(chain.mapped_columns)
        data.X = _mapped(chain, data.X)
    with clock("partition"):  # again, for who watches
        kind = partition_name(config, len(data.y))
        partition = create(kind, config.repeats, config.coarse_size)
        demand.partition(kind)
        rng = np.random.default_rng(np.random.SeedSequence(config.seed, spawn_key=PARTITION_KEY))
        partition.fit(data.X, data.y, config.cell_size, rng, threads)
    return chain, measured, partition, partition.training_cells()


def _scaling(X: Any, config: TrainingConfig, threads: Threads) -> Scaling:
    """With coarse cells by exact sums, as `--backend spark` does it, whose blocks are others."""
    if config.coarse_size is None:
        return scaling_of(X, config.scale, threads)
    check_dense_size(X, config.scale)
    sums = ExactSums(X.shape[1])
    for part in (part for _, part in X.blocks()) if isinstance(X, Spilled) else [X]:
        sums.add(part)
    return Scaling.of_sums(sums, config.scale)


def _load(
    data: Dataset, columns: KeptColumns, stored: PartitionFile, demand: Demand
) -> tuple[Chain, Measured, Partition, list[TrainingCell]]:
    """Scales and maps the data, too."""
    with checked(stored.path):
        check_kept(stored.config)
        check_coarse(stored.config.get("coarse_size"), stored.partition[1])
        metric = learned_metric(stored.metric, stored.config, data.X.shape[1])
        chain = Chain.from_state(columns, stored.scaling, metric).read_from(data.shift)
        cells = cells_of(stored, data, chain.mapped_columns)
        partition = restore(*stored.partition, chain.mapped_columns, len(cells))
    data.X = _scaled(chain, data.X)
    if chain.metric is not None:
        demand.mapping(chain.mapped_columns)
        data.X = _mapped(chain, data.X)
    return chain, Measured(metric, about_metric(stored.config), from_file=True), partition, cells


def _scaled(chain: Chain, X: Any) -> Any:
    return X if chain.scaling.mode == "none" else through(X, partial(chain.scaled, read=True, in_place=True))


def _mapped(chain: Chain, X: Any) -> Any:
    return X if chain.metric is None else through(X, partial(chain.mapped, in_place=True))


def check_reach(X: Any) -> None:
    """DataError where scaled rows have values that are too large."""
    parts = (part for _, part in X.blocks()) if isinstance(X, Spilled) else [X]
    if any(out_of_reach(part) for part in parts):
        raise DataError(
            f"the features have values beyond {REACH:g} (with their scaling, if any), whose squares are too large for "
            "float32; scale them by --scale std"
        )


def tell_copies(observer: Observer, repeated: int, rows: int) -> None:
    """Tell of rows that are copies of one before, if there are some."""
    if repeated:
        what = "is a copy of another one" if repeated == 1 else "are copies of others"
        observer.note(f"{repeated:,} of {rows:,} rows {what}; copies stay in one fold")


def tell_off_centre(observer: Observer, columns: int) -> None:
    """Tell of columns that are far from 0 where that matters, if there are some."""
    if columns:
        what = "feature is" if columns == 1 else "features are"
        observer.warning(
            f"{columns} {what} {OFF_CENTRE:g} deviations or more away from 0, nearly constant to this method; "
            "--scale zscore moves them to 0"
        )


def partition_name(config: TrainingConfig, rows: int) -> str:
    """The partition of so many rows."""
    divided = config.method.divides and rows > config.cell_size
    return config.partition or ("voronoi" if divided else "none")
