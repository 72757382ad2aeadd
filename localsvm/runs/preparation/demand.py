"""Bytes that the phases before training need; a phase is refused before it begins where memory is too small.

Estimates are of the most that is held together: the rows, what a phase makes of them, and its scratch arrays. A limit
of the system (RLIMIT_DATA) cannot stand in for them: where OpenBLAS meets it, it ends the process with its own lines,
by SIGSEGV, or asks again for ever, deaf to SIGTERM. And it counts buffers that nobody touches (300 MiB for 144 MiB
that a run took), but no memory that is shared.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from localsvm.data.blocks.dataset import is_dense, size_of
from localsvm.data.readers.compression import read_once
from localsvm.engines.base import Engine
from localsvm.engines.disk import Disk
from localsvm.engines.memory import OF_ROWS, WORKING, Memory
from localsvm.engines.stream import Stream
from localsvm.features.scaling import CENTRED, made_bytes
from localsvm.memory import MORE, Budget
from localsvm.methods.cell_size import CellSize
from localsvm.methods.streams import Descending, LearningOnce
from localsvm.naming import opt
from localsvm.partition import REGISTRY
from localsvm.partition.two_step import sample_rows
from localsvm.runs.cells.coarse import partition_name
from localsvm.runs.config import TrainingConfig
from localsvm.runs.copies import FINDING_BYTES, KEPT_BYTES
from localsvm.runs.preparation.metric import measuring_bytes
from localsvm.targets.base import Observed, Target
from localsvm.threads import Threads

ROW_BYTES = 64  # of the arrays that have a number a row: order, cells, counts, hashes, projections, labels
OF_COLUMNS = 20  # numbers a column that learning the scaling block by block has: sums, extremes, their merging
SAMPLED = 4  # times the sample of a stream, while it is made: its parts, together, scaled, thinned
COPIES = 3  # of a block of a stream, beside the one that was read: scaled, in the order of folds, thinned
OF_WEIGHTS = 3  # arrays of all weights, beside those of a cell in memory: descents have two each
STREAM = "; linear methods keep none with lsvm-train -s sgd --stream"


def with_remedy(budget: Budget, config: TrainingConfig, path: str | Path) -> Budget:
    """The budget with the remedy for rows of this input that do not fit into it, for a message."""
    if not budget.room:  # not even for the program
        return budget
    if read_once(path):
        return replace(budget, remedy=f"{MORE}, or write the rows to a file, for {opt.out_of_core}")
    cells, stream = (f"{opt.partition('voronoi')} ", STREAM) if config.undivided else ("", "")
    return replace(budget, remedy=f"{MORE}, or keep the rows in scratch files ({cells}{opt.out_of_core}){stream}")


def held_bytes(rows: int, size: int, threads: int) -> int:
    """Bytes that a run in memory holds at most before it trains; see `Demand.division`.

    rows, size : of the data, and the bytes of these rows.
    """
    return 2 * size + (16 + ROW_BYTES) * rows + threads * min(WORKING, OF_ROWS * size)


class Demand:
    """Compares the phases before training with the budget; each method raises RunError where one is too large.

    Rows that are not in memory are worked on some at a time, and need no phase to be bounded but one that holds
    something of each.
    """

    def __init__(self, engine: Engine, config: TrainingConfig, threads: Threads) -> None:
        self._memory = engine if isinstance(engine, Memory) else None
        self._scratch = engine if isinstance(engine, Disk) else None
        self._config, self._threads, self._kept = config, threads.count, 0

    def scaling(self, learned: bool) -> None:
        """Check the scaling of the rows, and where it is to be `learned`, also its learning."""
        if self._memory is not None:
            X, mode = self._memory.data.X, self._config.scale
            flat = "scale sparse rows by std, row or none, or " if not is_dense(X) and mode in CENTRED else ""
            needed = made_bytes(X, mode, self._threads) if learned else 0
            self._memory.room(f"scaling by {mode}", needed, flat and flat + MORE)

    def copies(self, rows: int) -> None:
        """Check looking for copies among so many rows, and keeping the labels of all until the model is written."""
        self._kept = KEPT_BYTES * rows
        for engine in (self._memory, self._scratch):
            if engine is not None:
                engine.room("looking for copies of rows", FINDING_BYTES * rows, f"{MORE}, or {opt.copies('none')}")

    def metric(self, observed: Observed) -> int:
        """Check learning the metric and mapping the rows by it; the number of threads that can take part."""
        if (memory := self._memory) is None:
            return self._threads
        X = memory.data.X
        needs = {count: measuring_bytes(X, self._config, observed, count) for count in range(self._threads, 0, -1)}
        count = next((count for count, need in needs.items() if memory.fits(need)), 1)
        memory.room("learning the metric", needs[count], f"{MORE}, or {opt.metric('none')}", scratch=False)
        return count

    def mapping(self, columns: int, several: bool = False) -> None:
        """Check mapping the rows onto so many columns: dense ones as wide as before stay in place.

        several : whether these are columns of several geometries.
        """
        if self._memory is not None:
            X: Any = self._memory.data.X
            if isinstance(X, np.ndarray):
                needed = 0 if columns == X.shape[1] else X.shape[0] * columns * X.itemsize
            else:
                copies = columns // max(1, X.shape[1])  # of members
                # of each the weights of its entries, and the products
                needed = 2 * X.data.nbytes if copies < 2 else copies * (X.data.nbytes + size_of(X))
            remedy = f"{self._memory.remedy}, or {opt.repeats(1)}" if several else ""
            self._memory.room("mapping the rows by the metric", needed, remedy)

    def division(self) -> None:
        """Check dividing the rows into cells, and copying them in their order into memory that workers share."""
        if self._memory is None:
            return
        X: Any = self._memory.data.X
        config, rows = self._config, X.shape[0]
        kind = partition_name(config, rows)
        tree, share = REGISTRY[kind].fitting_bytes(X, config.most_rows) if kind in REGISTRY else 0, 1.0
        if config.coarse_size is not None:
            tree += size_of(X) // max(1, rows) * (sample_rows(rows, config.coarse_size) + 2 * config.coarse_size)
            share = min(1.0, 2 * config.coarse_size / rows)
        copied = int(share * size_of(X))
        remedy = f"{self._memory.remedy}, or larger cells ({opt.cell_size})" if tree > copied else ""
        needed = max(tree, copied) + ROW_BYTES * rows + self._kept
        self._memory.room("dividing the rows into cells", needed, remedy)


class StreamDemand:
    """Bytes that the phases of training on a stream need beside the blocks that a pass holds.

    Parameters
    ----------
    stream, scale : of the run.
    sample : the most rows of the sample.
    """

    def __init__(self, stream: Stream, scale: str, sample: int) -> None:
        self._stream, self._sample = stream, sample
        self._dense = stream.dense or scale in ("zscore", "minmax")  # once scaled

    def survey(self) -> int:
        """Bytes for learning the scaling, and for a sample of the rows."""
        return 8 * OF_COLUMNS * self._stream.features + SAMPLED * self._sample_bytes()

    def training(self, method: Descending, target: Target, folds: int) -> int:
        """Bytes of what a linear method makes of the sample, and then of every pass that solves or scores."""
        block = self._stream.block
        drawn = self._size(min(self._sample, self._stream.rows), self._entries(self._sample), target, folds)
        size = self._size(block.rows, block.entries, target, folds)
        problems = target.n_problems * (folds if method.grid_for(self._stream.features).n_points > 1 else 1)
        tasks, features = method.sizes(self._stream.features)
        weights = 8 * OF_WEIGHTS * problems * (tasks * (features + 1) + 1)
        passing = self._scaled() + weights + 8 * problems * block.rows + method.memory(size)
        return int(self._sample_bytes() + max(passing, method.memory(drawn)))

    def one_pass(self, method: LearningOnce, target: Target, part: int, threads: int) -> int:
        """Bytes of the rows that are kept for each cost and problem, and of solving on them and a part on each thread.

        part : rows of a part.
        """
        rows = method.kept_rows + part
        size = self._size(rows, rows * self._stream.features, target, 1)
        learners = target.n_problems * method.grid_for(self._stream.features).n_points
        kept = 8 * learners * method.kept_rows * (self._stream.features + 4)
        return int(self._sample_bytes() + self._scaled() + kept + threads * method.solving_bytes(size))

    def _scaled(self) -> int:
        """Bytes of the copies of a block."""
        return COPIES * self._bytes(self._stream.block.rows, self._stream.block.entries)

    def _size(self, rows: int, entries: int, target: Target, folds: int) -> CellSize:
        """Size of a block, or of the sample, as if it were a cell."""
        return CellSize(
            rows=rows, features=self._stream.features, weight=1.0, solutions=folds * target.problems_a_row, part=0,
            folds=folds, problems=target.n_problems, entries=entries, dense=self._dense,
        )  # fmt: skip

    def _sample_bytes(self) -> int:
        return self._bytes(min(self._sample, self._stream.rows), self._entries(self._sample))

    def _entries(self, sample: int) -> int:
        """Entries of a sample, whose rows have as many as those of all blocks on average."""
        return int(min(sample, self._stream.rows) * self._stream.entries / self._stream.rows)

    def _bytes(self, rows: int, entries: int) -> int:
        return 4 * rows * self._stream.features if self._dense else 8 * (entries + rows)
