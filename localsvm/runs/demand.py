"""What the phases before training need, in bytes: each is refused before it begins where the run's memory is too small.

Estimates are of the most that is held together: the rows, what a phase makes of them, and its scratch arrays.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from localsvm.data.columns import scratch_bytes
from localsvm.data.compression import read_once
from localsvm.data.dataset import Dataset, size_of
from localsvm.data.reading import MORE
from localsvm.data.spilled import Spilled
from localsvm.data.stream import Stream
from localsvm.features.scaling import made_bytes
from localsvm.memory import Budget
from localsvm.methods.base import CellSize
from localsvm.methods.linear_method import LinearMethod
from localsvm.methods.mllkm import LocallyLinearKernels
from localsvm.partition import REGISTRY, two_step
from localsvm.partition.growing import loaded_rows
from localsvm.partition.tree import TreePartition
from localsvm.representations.metric import EUCLIDEAN
from localsvm.runs.config import TrainingConfig
from localsvm.runs.measuring import measuring_bytes
from localsvm.targets.base import Target

WORKING = 32 << 20  # scratch arrays of a thread that works on a block of rows, ...
OF_ROWS = 6  # ... or so many times the rows, where these are few
ROW_BYTES = 64  # of the arrays that have a number a row: order, cells, counts, hashes, projections, labels
REPEAT_BYTES = 40  # of those that a further repeat has
OF_COLUMNS = 20  # numbers a column that learning the scaling block by block has: sums, extremes, their merging
SAMPLED = 4  # times the sample of a stream, while it is made: its parts, together, scaled, thinned
COPIES = 3  # of a block of a stream, beside the one that was read: scaled, in the order of folds, thinned
OF_WEIGHTS = 3  # arrays of all weights, beside those of a cell in memory: descents have two each
STREAM = "; linear methods keep none with lsvm-train -s sgd --stream"


def beyond_memory(config: TrainingConfig, path: str | Path, budget: Budget) -> str:
    """What to do with the rows of an input that do not fit into the memory."""
    if not budget.room:  # not even for the program
        return MORE
    if read_once(path):
        return f"{MORE}, or write the rows to a file, for --out-of-core"
    cells = "-P voronoi " if config.undivided else ""
    return f"{MORE}, or keep the rows in scratch files ({cells}--out-of-core){STREAM if config.undivided else ''}"


def held_bytes(rows: int, size: int, threads: int) -> int:
    """What a run in memory holds at most before it trains, of so many rows of so many bytes: see `Demand.copying`."""
    return 2 * size + (16 + ROW_BYTES) * rows + threads * min(WORKING, OF_ROWS * size)


class Demand:
    """Compares the phases of a division with the budget of the run; each method raises RunError where one is too large.

    Parameters
    ----------
    data, config : of the run; `data` may change from phase to phase.
    budget, threads : of the run.
    """

    def __init__(self, data: Dataset, config: TrainingConfig, budget: Budget, threads: int) -> None:
        self._data, self._config, self._budget, self._threads = data, config, budget, threads

    @property
    def _more(self) -> str:
        """The remedy of all phases."""
        in_memory = self._data.name and not isinstance(self._data.X, Spilled)  # and read
        return beyond_memory(self._config, self._data.name, self._budget) if in_memory else MORE

    def _check(self, what: str, own: int, remedy: str = "", scratch: bool = True) -> None:
        """own : what the phase needs beside the rows and labels, and the scratch arrays of its threads if any."""
        rows = size_of(self._data.X)
        shared = self._threads * min(WORKING, OF_ROWS * rows) if scratch else 0
        self._budget.check(f"{what} needs", rows + 16 * len(self._data.y) + shared + own, remedy or self._more)

    def weighing(self) -> None:
        """Leaving rows of weight 0 out, which copies the others."""
        weight = self._data.weight
        if weight is not None and not weight.all():
            self._check("leaving out rows of weight 0", size_of(self._data.X), f"{MORE}, or remove these rows")

    def compaction(self) -> None:
        """Leaving columns without a value out."""
        self._check("finding the columns that occur", scratch_bytes(self._data.X))

    def dense(self, size: int) -> None:
        """Making so many bytes of dense rows of sparse ones, as few columns are left."""
        self._check("making the rows dense, in the columns that occur,", size)

    def scaling(self) -> None:
        """Learning and applying the scaling."""
        mode, sparse = self._config.scale, not isinstance(self._data.X, np.ndarray)
        flat = "scale sparse rows by std, row or none, or " if sparse and mode in ("zscore", "minmax") else ""
        self._check(f"scaling by {mode}", made_bytes(self._data.X, mode, self._threads), flat + MORE)

    def metric(self) -> int:
        """Learning the metric, and mapping the rows by it; how many threads can take part."""
        if (asked := self._config.metric_name) == EUCLIDEAN:
            return 1
        X, y = self._data.X, self._data.y
        classes, left = len(np.unique(y)), self._budget.room - size_of(X) - 16 * len(y)
        needs = {count: measuring_bytes(X, asked, classes, count) for count in range(self._threads, 0, -1)}
        count = next((count for count, own in needs.items() if own <= left), 1)
        self._check("learning the metric", needs[count], f"{MORE}, or --metric none", scratch=False)
        return count

    def mapping(self, columns: int) -> None:
        """Mapping the rows onto so many columns by a known metric: dense ones as wide as before stay in place."""
        X: Any = self._data.X
        if isinstance(X, np.ndarray | Spilled):
            made = 0 if isinstance(X, Spilled) or columns == X.shape[1] else X.shape[0] * columns * X.itemsize
        else:
            made = 2 * X.data.nbytes  # the weights of its entries, and the products
        self._check("mapping the rows by the metric", made)

    def partition(self, kind: str) -> None:
        """Dividing the rows into cells."""
        rows, config = len(self._data.y), self._config
        X: Any = self._data.X
        if isinstance(X, Spilled):
            self._loaded(X, kind)
        tree = REGISTRY[kind].fitting_bytes(self._data.X, config.cell_size) if kind in REGISTRY else 0
        if config.coarse_size is not None:
            tree += two_step.fitting_bytes(self._data.X, config.coarse_size, self._threads)
        more = (config.repeats - 1) * (tree + REPEAT_BYTES * rows)
        fewer = ", or fewer --repeats" if more else ""
        self._check(
            "dividing the rows into cells", tree + ROW_BYTES * rows + more, f"{self._more}, or larger cells (-c){fewer}"
        )

    def _loaded(self, X: Spilled, kind: str) -> None:
        """Reading the rows of a part of the tree from the disk, in each thread."""
        config, rows = self._config, len(self._data.y)
        if config.coarse_size is None and issubclass(REGISTRY[kind], TreePartition):
            loaded = loaded_rows(rows, config.cell_size)
            own = X.total_bytes // rows * loaded * (1 if loaded == rows else self._threads)
            self._check("dividing the rows of a scratch file into cells", own, f"{MORE}, or --coarse-size")

    def copying(self, order: int) -> None:
        """Copying the rows in cell order into memory that workers share. order: rows of all cells together."""
        self._check("copying the rows in the order of the cells", size_of(self._data.X) + ROW_BYTES * order)


class StreamDemand:
    """What the phases of training on a stream need beside the blocks that a pass holds, in bytes.

    Parameters
    ----------
    stream, scale : of the run.
    sample : the most rows of the sample.
    """

    def __init__(self, stream: Stream, scale: str, sample: int) -> None:
        self._stream, self._sample = stream, sample
        self._dense = stream.dense or scale in ("zscore", "minmax")  # once scaled

    def survey(self) -> int:
        """Learning the scaling, and a sample of the rows."""
        return 8 * OF_COLUMNS * self._stream.features + SAMPLED * self._sample_bytes()

    def training(self, method: LinearMethod, target: Target, folds: int) -> int:
        """What a linear method makes of the sample, and then every pass that solves or scores."""
        block = self._stream.block
        drawn = self._size(min(self._sample, self._stream.rows), self._entries(self._sample), target, folds)
        size = self._size(block.rows, block.entries, target, folds)
        problems = target.n_problems * (folds if method.grid_for(self._stream.features).n_points > 1 else 1)
        tasks, features = method.sizes(self._stream.features)
        weights = 8 * OF_WEIGHTS * problems * (tasks * (features + 1) + 1)
        passing = self._scaled() + weights + 8 * problems * block.rows + method.memory(size)
        return int(self._sample_bytes() + max(passing, method.memory(drawn)))

    def one_pass(self, method: LocallyLinearKernels, target: Target, part: int, threads: int) -> int:
        """Rows that are kept for each cost and problem, and what solving on them and a part takes on each thread."""
        rows = method.kept_rows + part
        size = self._size(rows, rows * self._stream.features, target, 1)
        learners = target.n_problems * method.grid_for(self._stream.features).n_points
        kept = 8 * learners * method.kept_rows * (self._stream.features + 4)
        return int(self._sample_bytes() + self._scaled() + kept + threads * method.solving_bytes(size))

    def _scaled(self) -> int:
        """Copies of a block."""
        return COPIES * self._bytes(self._stream.block.rows, self._stream.block.entries)

    def _size(self, rows: int, entries: int, target: Target, folds: int) -> CellSize:
        """A block, or the sample, as if it were a cell."""
        return CellSize(
            rows=rows, features=self._stream.features, weight=1.0, solutions=folds * target.problems_a_row, part=0,
            folds=folds, problems=target.n_problems, entries=entries, dense=self._dense,
        )  # fmt: skip

    def _sample_bytes(self) -> int:
        return self._bytes(min(self._sample, self._stream.rows), self._entries(self._sample))

    def _entries(self, sample: int) -> int:
        """Of a sample, whose rows have as many as those of all blocks on average."""
        return int(min(sample, self._stream.rows) * self._stream.entries / self._stream.rows)

    def _bytes(self, rows: int, entries: int) -> int:
        return 4 * rows * self._stream.features if self._dense else 8 * (entries + rows)
