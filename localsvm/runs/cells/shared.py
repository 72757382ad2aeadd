"""The cells of a coarse cell, their rows in shared memory, where workers map them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from localsvm.data.blocks.shared import SharedArray, SharedExamples
from localsvm.engines.base import CoarseRows, Drawn, Numbers
from localsvm.errors import DataError
from localsvm.partition import TrainingCell, copies, summed
from localsvm.partition._nearest import Matrix
from localsvm.runs.cells.coarse import CoarseCells, Division, State, Streams
from localsvm.runs.config import TrainingConfig
from localsvm.runs.preparation.metric import Measured
from localsvm.selection.folds import fold_order
from localsvm.threads import ALONE, Threads

Vector = NDArray[np.float64]


@dataclass(frozen=True)
class SharedCells:
    """Rows of a coarse cell, cell after cell, and in each cell in the order of its folds.

    Attributes
    ----------
    number : of the coarse cell.
    X, y : (n, d) float32 and (n,) labels.
    count : (n,) how many rows stand behind each row.
    mass : (n,) the weights of those rows, summed; None where rows have none.
    fresh : (n,) the share of those rows that say what the error is; None where all do.
    edges : (cells + 1,) int64; cell i has the rows edges[i] to edges[i + 1] - 1.
    fold_rows : of each cell, how many of its rows each fold holds out.
    division : how the coarse cell is divided.
    copies : how many rows of the coarse cell are copies of one before.
    """

    number: int
    X: SharedExamples
    y: SharedArray
    count: SharedArray
    mass: SharedArray | None
    fresh: SharedArray | None
    edges: Numbers
    fold_rows: list[tuple[int, ...]]
    division: Division
    copies: int

    @property
    def nbytes(self) -> int:
        """Bytes of memory that it holds."""
        shared = [self.y, self.count, *(each for each in (self.mass, self.fresh) if each is not None)]
        arrays = [*(array.array for array in shared), *self.state.values()]
        return self.X.nbytes + sum(int(array.nbytes) for array in arrays)

    @property
    def state(self) -> State:
        """State of the partition inside the coarse cell."""
        return self.division.state

    @property
    def streams(self) -> Streams:
        """The names of the cells' random numbers."""
        return self.division.streams

    @property
    def sizes(self) -> Numbers:
        """Rows of each cell."""
        return np.diff(self.edges)

    def rows(self) -> list[slice]:
        """Places of the rows of each cell."""
        return [slice(int(first), int(last)) for first, last in pairwise(self.edges)]


def shared_cells(
    coarse: CoarseRows, cells: CoarseCells, config: TrainingConfig, measured: Measured, threads: Threads = ALONE
) -> SharedCells:
    """Divide a coarse cell, deal the rows of its cells out to folds, and copy them in that order.

    DataError where a cell, of a partition file, has only rows of weight 0.
    """
    rows, division = coarse.rows, cells.divide(coarse, threads)
    division = replace(division, cells=_weighed(rows, division.cells, measured.fresh_of(rows)))
    same = copies(Matrix(rows.X), threads)
    orders = threads.map(lambda i: _fold_order(rows, division, i, config, same), len(division.cells))

    def ordered(of_cells: list[Any]) -> Any:
        return np.concatenate([values[order] for values, (order, _) in zip(of_cells, orders, strict=True)])

    training_cells = division.cells
    order: Numbers = ordered([cell.rows for cell in training_cells])
    count = ordered([np.ones(len(cell.rows)) if cell.weight is None else cell.weight for cell in training_cells])
    mass = None if training_cells[0].mass is None else SharedArray.copy(ordered([cell.mass for cell in training_cells]))
    fresh = (
        None if training_cells[0].fresh is None else SharedArray.copy(ordered([cell.fresh for cell in training_cells]))
    )
    return SharedCells(
        number=coarse.coarse,
        X=SharedExamples(rows.X, order, threads),
        y=SharedArray.copy(rows.y[order]),
        count=SharedArray.copy(count),
        mass=mass,
        fresh=fresh,
        edges=np.cumsum([0, *(len(cell.rows) for cell in training_cells)]).astype(np.int64),
        fold_rows=[tuple(held.tolist()) for _, held in orders],
        division=replace(division, cells=[]),
        copies=0 if same is None else int(np.count_nonzero(same != np.arange(len(same)))),
    )


def _fold_order(
    rows: Drawn, division: Division, cell: int, config: TrainingConfig, same: Numbers | None
) -> tuple[Numbers, Numbers]:
    cell_rows = division.cells[cell].rows
    rng = np.random.default_rng(np.random.SeedSequence(config.seed, spawn_key=(*division.streams[cell], 0)))
    return fold_order(rows.y[cell_rows], config.folds, rng, None if same is None else same[cell_rows])


def _weighed(rows: Drawn, cells: list[TrainingCell], fresh: NDArray[np.bool_] | None) -> list[TrainingCell]:
    """The cells with their masses and fresh shares, and without rows of weight 0.

    fresh : (n,) the rows that say what the error is; None where all do.
    """
    if rows.weight is None and fresh is None:
        return cells
    weight = np.ones(len(rows.y)) if rows.weight is None else rows.weight
    count = np.zeros(len(rows.y))
    for cell in cells:
        count[cell.rows] = 1.0 if cell.weight is None else cell.weight
    matrix = Matrix(rows.X)
    mass = summed(matrix, rows.y, weight, count)
    fresh_mass = None if fresh is None else summed(matrix, rows.y, weight * fresh, count)
    weighed: list[TrainingCell] = []
    for cell in cells:
        kept = cell.rows[mass[cell.rows] > 0]
        if not len(kept):
            raise DataError(f"all rows of cell {len(weighed)} have the weight 0; divide the rows without them")
        share = None if fresh_mass is None else fresh_mass[kept] / mass[kept]
        weighed.append(TrainingCell(kept, count[kept], None if rows.weight is None else mass[kept], share))
    return weighed
