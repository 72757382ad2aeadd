"""Random chunks: each row goes to one chunk at random, and all chunks answer together."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from localsvm.errors import OptionError
from localsvm.naming import opt
from localsvm.partition.base import Partition, PartitionState, TrainingCell, check_cell_size, check_rows
from localsvm.store.pieces import Piece, Pieces
from localsvm.threads import ALONE, Threads

if TYPE_CHECKING:
    from localsvm.data.blocks.dataset import Examples


class Chunks(Partition):
    """ceil(n / cell_size) random chunks, whose sizes differ by at most one row.

    Every chunk answers for every row, with weight 1 / n_cells. So `route` needs memory for n * n_cells entries: call it
    for blocks of rows. The state is only the number of chunks.
    """

    name = "chunks"
    pieces: ClassVar[Pieces] = {"n_cells": Piece("i8", (1,), low=1)}

    def __init__(self, n_cells: int = 0) -> None:
        self._n_cells = n_cells
        self._cells: list[TrainingCell] | None = None

    def fit(
        self,
        X: Examples,
        y: NDArray[np.float64],
        cell_size: int | None,
        rng: np.random.Generator,
        threads: Threads = ALONE,
    ) -> Self:
        n = check_rows(X)
        self._n_cells = -(-n // check_cell_size(cell_size))
        parts = np.array_split(rng.permutation(n), self._n_cells)
        self._cells = [TrainingCell(np.sort(part).astype(np.int64, copy=False)) for part in parts]
        return self

    def training_cells(self) -> list[TrainingCell]:
        if self._cells is None:
            raise RuntimeError("this partition was not fitted here: it has no training cells")
        return self._cells

    @property
    def n_cells(self) -> int:
        return self._n_cells

    def route(self, X: Examples) -> sparse.csr_array:
        n, k = X.shape[0], self._n_cells
        cells = np.tile(np.arange(k, dtype=np.int32), n)
        return sparse.csr_array((np.full(n * k, 1 / k), cells, np.arange(n + 1) * k), shape=(n, k))

    def assign(self, X: Examples) -> NDArray[np.int32]:
        raise OptionError(
            f"random chunks answer for every row together; a row belongs to one cell with {opt.partition('voronoi')}"
        )

    def state(self) -> PartitionState:
        return {"n_cells": np.array([self._n_cells], dtype=np.int64)}

    @classmethod
    def from_state(cls, state: PartitionState) -> Self:
        return cls(int(state["n_cells"][0]))
