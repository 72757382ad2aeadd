"""One coarse cell of a two-step division by itself: what a task of an engine with many machines is given.

A run in one process divides all rows and trains all cells; the cells of a coarse cell come out here bit for bit as
there (`tests/test_coarse.py`).
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from localsvm.data.dataset import Dataset, Examples
from localsvm.features.chain import Chain
from localsvm.features.columns import KeptColumns
from localsvm.parallel.local import LocalPool
from localsvm.partition import copies, inside
from localsvm.partition.on_disk import matrix_of
from localsvm.partition.two_step import Stream, divided
from localsvm.runs.cell_work import CellResult
from localsvm.runs.config import TrainingConfig
from localsvm.runs.division import Divided, in_cells, in_order
from localsvm.runs.measuring import Measured
from localsvm.runs.progress import Observer, Silent
from localsvm.runs.records import pack
from localsvm.runs.scheduling import PoolFactory, RunCells
from localsvm.store.model import check_finite
from localsvm.threads import ALONE, Threads

Record = dict[str, NDArray[Any]]
DIVISION = "division"  # the name of the first record of a coarse cell; the others are named by their cells


@dataclass(frozen=True)
class CoarseRun:
    """What all coarse cells of a run share, besides the scaling and the metric that their rows have been through.

    Attributes
    ----------
    config : the options, after `TrainingConfig.for_classes` and with a partition (`division.partition_name`).
    labels, class_rows : (classes,) float64 ascending, and how many rows of the run have each.
    """

    config: TrainingConfig
    labels: NDArray[np.float64]
    class_rows: list[int]


@dataclass(frozen=True)
class CoarseCell:
    """The rows of a coarse cell, sorted by their number in the input.

    Attributes
    ----------
    number : of the coarse cell; those of a repeat follow those of the one before.
    stream : of the random numbers that divide it, from `TwoStep.sketch`.
    X, y : (n, d) float32, scaled and mapped by the metric; (n,) float64 labels.
    weight : (n,) float64, above 0; None where the data have none.
    fresh : (n,) bool, the rows that neither learned nor chose the metric; None where all did not.
    repeat : which of the repeats it belongs to.
    """

    number: int
    stream: Stream
    X: Examples
    y: NDArray[np.float64]
    weight: NDArray[np.float64] | None = None
    fresh: NDArray[np.bool_] | None = None
    repeat: int = 0


def train_coarse(
    run: CoarseRun, cell: CoarseCell, *,
    jobs: int = 1, memory: int | None = None, observer: Observer | None = None, pool: PoolFactory = LocalPool,
) -> Generator[tuple[str, Record]]:  # fmt: skip
    """Divide a coarse cell, and train its cells.

    Parameters
    ----------
    jobs, memory, observer, pool : as in `training.train`, of no influence on the result.

    Yields
    ------
    (name, arrays), as a journal takes them. The first is `DIVISION`: "state/" and the arrays of the partition inside,
    "sizes" (cells,) int64. Then each cell when it is finished, named by its number inside the coarse cell: what
    `records.pack` makes of it, with that number as its index. With probabilities it has those of `_held` too.

    Raises
    ------
    RunError : the memory does not suffice, a worker was killed twice, a model is not finite.
    """
    with Threads(jobs) as threads:
        found, order = divide_coarse(run, cell, threads)
    state = {f"state/{name}": array for name, array in found.partition.state().items()}
    yield DIVISION, state | {"sizes": found.sizes}
    cells = RunCells(found, run.config, jobs, memory, observer or Silent(), pool)
    with closing(cells.results()) as results:
        for result in results:
            check_finite(f"cell {result.index} of coarse cell {cell.number}", result.state)
            yield str(result.index), pack(result) | _held(run, found, result, order)


def divide_coarse(
    run: CoarseRun, cell: CoarseCell, threads: Threads = ALONE
) -> tuple[Divided, NDArray[np.int64]]:  # fmt: skip
    """A coarse cell in cells, whose random numbers are named by both numbers; and its rows in their order there."""
    config, data = run.config, Dataset(cell.X, cell.y, weight=cell.weight)
    assert config.partition is not None, "decided by partition_name"
    partition = divided(inside(config.partition, cell.repeat), cell.X, cell.y, config.cell_size, cell.stream)
    cells = partition.training_cells()
    streams: list[tuple[int, ...]] = [(cell.number, i) for i in range(len(cells))]
    chain = Chain(KeptColumns.of(data, cell.X.shape[1]))  # the rows went through that of the run
    about = chain, Measured(fresh=cell.fresh), partition, cells, streams
    found = in_cells(data, config, *about, (run.labels, run.class_rows), threads)
    return found, in_order(cell.y, cells, streams, config, threads, copies(matrix_of(cell.X), threads))[0][0]


def _held(run: CoarseRun, found: Divided, result: CellResult, order: NDArray[np.int64]) -> Record:
    """With probabilities, what calibration asks of a cell: "held/y", "held/count", and as far as the run has them
    "held/mass" and "held/fresh", of its rows in the order of `CellResult.values`; "held/rows", their places among the
    rows of the coarse cell.
    """
    if not run.config.probability:
        return {}
    own = slice(int(found.edges[result.index]), int(found.edges[result.index + 1]))
    shared = {"y": found.y, "count": found.count, "mass": found.mass, "fresh": found.fresh}
    arrays = {f"held/{name}": array.array[own] for name, array in shared.items() if array is not None}
    return arrays | {"held/rows": order[own]}
