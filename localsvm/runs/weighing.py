"""What the weights of rows mean for a division: rows of weight 0 leave it, weights of merged rows are summed."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from localsvm.data.dataset import Dataset
from localsvm.data.weights import check_weights
from localsvm.errors import DataError
from localsvm.partition import Partition, TrainingCell, summed
from localsvm.partition.on_disk import matrix_of
from localsvm.runs.progress import Observer


def check(data: Dataset, observer: Observer) -> None:
    """DataError unless the weights, if any, are weights. The observer is told of rows that count for nothing."""
    if data.weight is not None:
        data.weight = check_weights(data.weight, len(data.y))
        kept = int(np.count_nonzero(data.weight))
        tell_left_out(kept, len(data.y) - kept, observer)


def tell_left_out(kept: int, left_out: int, observer: Observer) -> None:
    """Tell the observer how many rows have weight 0, where some have."""
    if left_out:
        observer.note(f"{left_out:,} of {kept + left_out:,} rows have the weight 0 and are left out")


def weighed(
    data: Dataset, partition: Partition, cells: list[TrainingCell], fresh: NDArray[np.bool_] | None = None
) -> list[TrainingCell]:
    """The cells with their masses and fresh shares, and without rows of weight 0.

    fresh : (n,) the rows that say what the error is; None where all do.

    DataError where a cell, of a partition file, has no row left.
    """
    if data.weight is None and fresh is None:
        return cells
    weight = np.ones(len(data.y)) if data.weight is None else data.weight
    found: list[TrainingCell] = []
    for n in partition.cells_by_repeat:
        part, count = cells[len(found) : len(found) + n], np.zeros(len(data.y))
        for cell in part:
            count[cell.rows] = 1.0 if cell.weight is None else cell.weight
        mass = summed(matrix_of(data.X), data.y, weight, count)
        own = None if fresh is None else summed(matrix_of(data.X), data.y, weight * fresh, count)
        for cell in part:
            rows = cell.rows[mass[cell.rows] > 0]
            if not len(rows):
                raise DataError(f"all rows of cell {len(found)} have the weight 0; divide the rows without them")
            share = None if own is None else own[rows] / mass[rows]
            found.append(TrainingCell(rows, count[rows], None if data.weight is None else mass[rows], share))
    return found
