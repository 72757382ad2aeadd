"""The cells of a coarse cell, their rows in shared memory, where workers map them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from localsvm.data.blocks.dealing import Mates
from localsvm.data.blocks.shared import SharedArray, SharedExamples
from localsvm.engines.base import CoarseRows, Drawn, Numbers
from localsvm.errors import DataError
from localsvm.partition import TrainingCell, copies, summed
from localsvm.partition._nearest import Matrix
from localsvm.runs.cells.coarse import CoarseCells, Division, State, Streams
from localsvm.runs.config import TrainingConfig
from localsvm.selection.folds import fold_order
from localsvm.targets.base import Target
from localsvm.threads import ALONE, Threads

Vector = NDArray[np.float64]


@dataclass(frozen=True)
class SharedCells:
    """Rows of a coarse cell, cell after cell, and in each cell in the order of its folds.

    Attributes
    ----------
    number : of the coarse cell.
    X, y : (n, d) float32 and (n,) labels.
    mass : (n,) the weights of the rows that each row stands for, summed.
    fresh : (n,) the share of these rows, by weight, that say what the error is; None where all do.
    mates : (n,) int64 that rows have in common which stay together; None where the user does not say so.
    edges : (cells + 1,) int64; cell i has the rows edges[i] to edges[i + 1] - 1.
    fold_rows : of each cell, how many of its rows each fold holds out.
    behind : of each cell, how many rows its rows stand for.
    fresh_rows : how many rows of the coarse cell say what the error is.
    division : how the coarse cell is divided.
    copies : how many rows of the coarse cell are copies of one before.
    numbers : (n,) of the rows in the run.
    """

    number: int
    X: SharedExamples
    y: SharedArray
    mass: SharedArray
    fresh: SharedArray | None
    mates: SharedArray | None
    edges: Numbers
    fold_rows: list[tuple[int, ...]]
    behind: list[float]
    fresh_rows: float
    division: Division
    copies: int
    numbers: Numbers

    @property
    def nbytes(self) -> int:
        """Bytes of memory that it holds."""
        shared = [self.y, self.mass, *(each for each in (self.fresh, self.mates) if each is not None)]
        arrays = [*(array.array for array in shared), *self.state.values()]
        return self.X.nbytes + sum(int(array.nbytes) for array in [*arrays, self.numbers])

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
    coarse: CoarseRows, cells: CoarseCells, config: TrainingConfig, target: Target,
    fresh: NDArray[np.bool_] | None = None, mates: Mates | None = None, threads: Threads = ALONE,
) -> SharedCells:  # fmt: skip
    """Divide a coarse cell, deal the rows of its cells out to folds, and copy them in that order.

    target : says by what the rows of a cell are dealt out.
    fresh : (n,) the rows that say what the error is; None where all do.
    mates : rows that stay together. Where all of a cell do, its folds are of single rows, and none tells the error.

    DataError where a cell, of a partition file, has only rows of weight 0.
    """
    rows, division = coarse.rows, cells.divide(coarse, threads)
    weighed = _weighed(rows, division.cells, fresh)
    same = copies(Matrix(rows.X), threads)
    held = [_together(cell, mates, same) for cell in weighed]
    if mates is not None:
        fresh, weighed = _told(rows, fresh, weighed, held)
    parts = list(zip(weighed, division.streams, held, strict=True))
    orders = threads.map(lambda i: _fold_order(target, rows.y, *parts[i], config), len(parts))

    def ordered(of_cells: list[Any]) -> Any:
        return np.concatenate([values[order] for values, (order, _) in zip(of_cells, orders, strict=True)])

    order: Numbers = ordered([cell.rows for cell in weighed])
    return SharedCells(
        number=coarse.coarse,
        X=SharedExamples(rows.X, order, threads),
        y=SharedArray.copy(rows.y[order]),
        mass=SharedArray.copy(ordered([cell.mass for cell in weighed])),
        fresh=None if fresh is None else SharedArray.copy(ordered([cell.fresh for cell in weighed])),
        mates=None if mates is None else SharedArray.copy(mates.number[order]),
        edges=np.cumsum([0, *(len(cell.rows) for cell in weighed)]).astype(np.int64),
        fold_rows=[tuple(held.tolist()) for _, held in orders],
        behind=[cell.behind for cell in weighed],
        fresh_rows=_fresh_rows(rows, weighed, fresh),
        division=replace(division, cells=[]),
        copies=0 if same is None else int(np.count_nonzero(same != np.arange(len(same)))),
        numbers=rows.numbers[order],
    )


def _fresh_rows(rows: Drawn, cells: list[_WeighedCell], fresh: NDArray[np.bool_] | None) -> float:
    """How many rows say what the error is."""
    if fresh is None:
        return float(sum(cell.behind for cell in cells))
    return float(np.count_nonzero(fresh & (_weights(rows) > 0)))


def _fold_order(
    target: Target, y: Vector, cell: _WeighedCell, stream: tuple[int, ...], mates: Mates | None, config: TrainingConfig
) -> tuple[Numbers, Numbers]:
    rng = np.random.default_rng(np.random.SeedSequence(config.seed, spawn_key=(*stream, 0)))
    return fold_order(target.strata(y[cell.rows]), config.folds, rng, mates)


def _together(cell: _WeighedCell, mates: Mates | None, same: Numbers | None) -> Mates | None:
    """Rows of a cell that stay together: as the user says, unless all would, or equal ones; None for none."""
    if mates is not None and len(np.unique(mates.number[cell.rows])) > 1:
        return mates.of(cell.rows)
    return None if same is None else Mates(same[cell.rows])


def _told(
    rows: Drawn, fresh: NDArray[np.bool_] | None, cells: list[_WeighedCell], held: list[Mates | None]
) -> tuple[NDArray[np.bool_] | None, list[_WeighedCell]]:
    """Fresh rows and cells, without rows of cells whose folds are not as the user wants them."""
    alone = [i for i, mates in enumerate(held) if mates is None or not mates.whole]
    if not alone:
        return fresh, cells
    fresh = np.ones(len(rows.y), np.bool_) if fresh is None else fresh.copy()
    told = []
    for i, cell in enumerate(cells):
        share = np.ones(len(cell.rows)) if cell.fresh is None else cell.fresh
        if i in alone:
            fresh[cell.rows], share = False, np.zeros(len(cell.rows))
        told.append(replace(cell, fresh=share))
    return fresh, told


@dataclass(frozen=True)
class _WeighedCell:
    """The rows (n,) of a cell, masses and fresh shares as in SharedCells, and how many rows are behind them."""

    rows: Numbers
    mass: Vector
    fresh: Vector | None
    behind: float


def _weights(rows: Drawn) -> Vector:
    return np.ones(len(rows.y)) if rows.weight is None else rows.weight


def _weighed(rows: Drawn, cells: list[TrainingCell], fresh: NDArray[np.bool_] | None) -> list[_WeighedCell]:
    """The cells with their masses and fresh shares, and without rows of weight 0.

    fresh : (n,) the rows that say what the error is; None where all do.
    """
    weight, count = _weights(rows), np.zeros(len(rows.y))
    for cell in cells:
        count[cell.rows] = 1.0 if cell.weight is None else cell.weight
    matrix = Matrix(rows.X)
    mass = count if rows.weight is None else summed(matrix, rows.y, weight, count)
    fresh_mass = None if fresh is None else summed(matrix, rows.y, weight * fresh, count)
    weighed: list[_WeighedCell] = []
    for cell in cells:
        kept = cell.rows[mass[cell.rows] > 0]
        if not len(kept):
            raise DataError(f"all rows of cell {len(weighed)} have the weight 0; divide the rows without them")
        share = None if fresh_mass is None else fresh_mass[kept] / mass[kept]
        weighed.append(_WeighedCell(kept, mass[kept], share, float(count[kept].sum())))
    return weighed
