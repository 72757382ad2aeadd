"""No division: one cell holds all rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from localsvm.partition.base import Partition, PartitionState, TrainingCell, check_rows, one_cell_each
from localsvm.threads import ALONE, Threads

if TYPE_CHECKING:
    from localsvm.data.blocks.dataset import Examples


class NoPartition(Partition):
    """All rows in one cell; the cell size is ignored."""

    name = "none"

    def __init__(self) -> None:
        self._n_rows: int | None = None

    def fit(
        self,
        X: Examples,
        y: NDArray[np.float64],
        cell_size: int | None,
        rng: np.random.Generator,
        threads: Threads = ALONE,
    ) -> Self:
        self._n_rows = check_rows(X)
        return self

    def training_cells(self) -> list[TrainingCell]:
        if self._n_rows is None:
            raise RuntimeError("this partition was not fitted here: it has no training cells")
        return [TrainingCell(np.arange(self._n_rows, dtype=np.int64))]

    @property
    def n_cells(self) -> int:
        return 1

    def route(self, X: Examples) -> sparse.csr_array:
        return one_cell_each(self.assign(X), 1)

    def assign(self, X: Examples) -> NDArray[np.int32]:
        return np.zeros(X.shape[0], dtype=np.int32)

    def state(self) -> PartitionState:
        return {}

    @classmethod
    def from_state(cls, state: PartitionState) -> Self:
        return cls()
