"""Division of rows into cells without training, as a partition file keeps it."""

from __future__ import annotations

from collections.abc import Generator, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from localsvm.data.blocks.dataset import Dataset
from localsvm.engines.base import CoarseRows, Engine, Event
from localsvm.naming import opt
from localsvm.runs.cells.coarse import CoarseCells
from localsvm.runs.config import TrainingConfig, fractions
from localsvm.runs.preparation.engine import engine_of
from localsvm.runs.preparation.given import Given
from localsvm.runs.preparation.prepare import CONTENT, Asked, prepare
from localsvm.runs.progress import Clock, Observer, Silent
from localsvm.store.model import PartitionFile, write_partition
from localsvm.threads import ALONE, Threads

KEPT = ("cell_size", "scale", "seed", "zero_based", "coarse_size")  # options of a partition file, beside the metric


@dataclass(frozen=True)
class PartitionReport:
    """Summary of a partition file.

    Attributes
    ----------
    sizes : (cells,) int64 rows of each cell.
    cell_size : the most rows that a cell may have.
    metric : how the metric was chosen, as a summary has it; None where none was asked for.
    """

    sizes: NDArray[np.int64]
    cell_size: int
    metric: dict[str, Any] | None


class _Divider:
    """A trainer that trains nothing: see `engines.base.Trainer`."""

    def __init__(self, cells: CoarseCells, threads: Threads) -> None:
        self._cells, self._threads = cells, threads

    def records(self, coarse: Iterable[CoarseRows], resources: Any = None, finished: Any = None) -> Generator[Event]:
        """Yield a record for each coarse cell.

        It has "sizes" (cells,), "rows" and "weight" (n,) of its cells, and "state/" and its arrays.
        """
        for each in coarse:
            division = self._cells.divide(each, self._threads)
            cells = division.cells
            weights = [np.ones(len(cell.rows)) if cell.weight is None else cell.weight for cell in cells]
            record = {f"state/{name}": array for name, array in division.state.items()} | {
                "sizes": np.asarray([len(cell.rows) for cell in cells], np.int64),
                "rows": each.rows.numbers[np.concatenate([cell.rows for cell in cells])],
                "weight": np.concatenate(weights),
            }
            yield each.coarse, "division", record


def partition_only(
    source: Dataset | Engine, config: TrainingConfig, output: str | Path, force: bool = False,
    threads: Threads = ALONE, memory: int | None = None, observer: Observer | None = None, given: Given | None = None,
) -> PartitionReport:  # fmt: skip
    """Divide the rows and write the partition file, for `runs.train.train` to use later.

    source, memory, observer, given : as in `runs.train.train`; rows in memory are consumed.
    """
    observer = observer or Silent()
    engine = engine_of(source, config, threads, memory)
    config = config if config.repeats else replace(config, repeats=1)  # a file holds one partition
    prepared = prepare(engine, Asked(config, given=given, trains=False), threads, Clock(observer), observer)
    if len(parts := fractions(prepared.observed.labels)):
        observer.note(f"labels as {parts[0]:g} are taken for classes; if they are values, give {opt.loss} here, too")
    cells, rows = prepared.cells, prepared.head.rows
    assignment, weight, states = np.full(rows, -1, np.int32), np.zeros(rows), []
    sizes: list[NDArray[np.int64]] = []
    wanted = range(cells.count)
    for _, _, record in prepared.engine.work(cells, _Divider(cells, threads), wanted, None, None):
        before = sum(len(cell_sizes) for cell_sizes in sizes)
        assignment[record["rows"]] = before + np.repeat(np.arange(len(record["sizes"])), record["sizes"])
        weight[record["rows"]] = record["weight"]
        sizes.append(record["sizes"])
        states.append({name.removeprefix("state/"): v for name, v in record.items() if name.startswith("state/")})
    partition, all_sizes = cells.completed(states, [len(cell_sizes) for cell_sizes in sizes]), np.concatenate(sizes)
    decided = prepared.config
    kept = {name: v for name in KEPT if (v := getattr(decided, name)) is not None} | {"metric": config.metric_name}
    kept |= {"views": decided.views} if decided.views != "none" else {}
    file = PartitionFile(
        output,
        {"partition": partition.name, **prepared.measured.as_dict(), "fingerprint": prepared.content[CONTENT]} | kept,
        **prepared.chain.state(),
        partition=(partition.name, partition.state()),
        assignment=assignment,
        weight=weight,
        sizes=all_sizes,
        centres=partition.centres,
    )
    write_partition(file, force)
    return PartitionReport(all_sizes, decided.most_rows, prepared.measured.told)
