"""Choice of the engine that reads a file: rows in memory, or in scratch files."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from localsvm.data.blocks.dataset import Dataset, prefers_dense, size_of
from localsvm.data.readers.pieces import Counts
from localsvm.engines.base import Engine
from localsvm.engines.disk import Disk
from localsvm.engines.memory import Memory
from localsvm.engines.sources import TextSource, counts_of
from localsvm.memory import Budget
from localsvm.naming import opt
from localsvm.partition.chunks import Chunks
from localsvm.runs.cells.coarse import CHUNK_ROWS, partition_name, with_coarse_size
from localsvm.runs.config import TrainingConfig
from localsvm.runs.preparation.demand import held_bytes, with_remedy
from localsvm.runs.preparation.tables import TableOptions, TrainingTable
from localsvm.threads import Threads


def engine_for(
    path: str | Path, config: TrainingConfig, asked: bool, note: Callable[[str], None],
    weights: str | Path | None = None, jobs: int = 1, budget: Budget | None = None, table: TableOptions | None = None,
    groups: str | Path | None = None,
) -> Engine:  # fmt: skip
    """The rows of a file: read into memory, or for scratch files where that is asked for or chosen.

    Parameters
    ----------
    asked, note : whether scratch files are asked for; what is called with a message where they are chosen.
    table : what the user says of the table that the file is; None for LIBSVM text.
    """
    budget = budget or Budget.of(None)
    if table is not None:
        return _engine_of_table(str(path), table, config, asked, note, weights, groups, jobs, budget)
    counts = None if asked else needs_disk(path, config, budget, jobs)
    if counts is not None:
        note(f"the rows do not fit into the memory: they go to scratch files ({opt.out_of_core})")
    if asked or counts is not None:
        return Disk(
            path, zero_based=config.zero_based, shifts=config.shifts, weights=weights, groups=groups, budget=budget,
            counts=counts,
        )  # fmt: skip
    budget = with_remedy(budget, config, path)
    source = TextSource(path, config.zero_based, config.shifts, weights, groups, budget)
    return Memory(source.read(jobs), budget)


def _engine_of_table(
    path: str, options: TableOptions, config: TrainingConfig, asked: bool, note: Callable[[str], None],
    weights: str | Path | None, groups: str | Path | None, jobs: int, budget: Budget,
) -> Engine:  # fmt: skip
    kinds = config.of_values, config.of_one_kind
    table = TrainingTable(path, options, config.seed, config.shifts, note, config.blocks, *kinds)
    if asked:
        table.look(jobs, budget, keep=False, weights=weights, groups=groups)
        return Disk(table, budget=budget)
    budget = with_remedy(budget, config, path)
    return Memory(table.look(jobs, budget, weights=weights, groups=groups).read(jobs), budget)


def engine_of(source: Dataset | Engine, config: TrainingConfig, threads: Threads, memory: int | None) -> Engine:
    """The engine of rows, with the threads of the run."""
    if isinstance(source, Dataset):
        budget = Budget.of(memory, size_of(source.X))
        source = Memory(source, with_remedy(budget, config, source.name))
    source.threads = threads
    return source


def needs_disk(path: str | Path, config: TrainingConfig, budget: Budget, jobs: int) -> Counts | None:
    """Counts of a file whose rows are for scratch files; None for one whose rows are for memory.

    They are for scratch files if a run in memory would be refused as they do not fit, and there are several coarse
    cells.
    """
    if not budget.room or not os.path.isfile(path) or not _large(path, budget):  # no room: not even for the program
        return None
    counts = counts_of(path, config.zero_based, budget, jobs)
    config = config.for_rows(counts.rows, counts.width)
    dense = prefers_dense(counts.rows, counts.width, counts.entries)
    size = 4 * counts.rows * counts.width if dense else 8 * (counts.entries + counts.rows)
    values = counts.width if dense else -(-counts.entries // max(1, counts.rows))
    shuffled = partition_name(config, counts.rows) == Chunks.name and counts.rows > CHUNK_ROWS
    several = shuffled or with_coarse_size(config, counts.rows, values).coarse_size is not None
    return counts if several and held_bytes(counts.rows, size, jobs) > budget.room else None


def _large(path: str | Path, budget: Budget) -> bool:
    """True where a file may hold more rows than the budget.

    An entry is 4 bytes of text or more, and 16 as dense ones.
    """
    return 16 * os.path.getsize(path) > budget.room
