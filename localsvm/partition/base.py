"""The interface of partitions: cells to train on, and which cell answers for a row."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from localsvm.errors import DataError, OptionError
from localsvm.naming import opt
from localsvm.store.pieces import Pieces
from localsvm.threads import ALONE, Threads

if TYPE_CHECKING:
    from localsvm.data.blocks.dataset import Examples

PartitionState = dict[str, np.ndarray]


@dataclass(frozen=True)
class TrainingCell:
    """The rows that one cell is trained on.

    Attributes
    ----------
    rows : (n,) int64
        Ascending indices into the training matrix.
    weight : (n,) float64 or None
        The number of identical training rows that each row stands for; None if each stands for itself.
    """

    rows: NDArray[np.int64]
    weight: NDArray[np.float64] | None = None


class Partition(ABC):
    """A rule that divides rows into cells. It is fitted once, on training rows.

    A partition restored from its saved state routes rows exactly as the fitted one.

    Attributes
    ----------
    pieces : Pieces
        Description of the arrays of `state()`; "features" is the length of a row.
    """

    name: str  # of the kind, as -P takes it
    pieces: ClassVar[Pieces] = {}
    manhattan: ClassVar[bool] = False  # whether centres are measured by that distance, else by the Euclidean one
    threaded: ClassVar[bool] = True  # whether several may be fitted at once, each in a thread, and one in several

    @abstractmethod
    def fit(
        self,
        X: Examples,
        y: NDArray[np.float64],
        cell_size: int | None,
        rng: np.random.Generator,
        threads: Threads = ALONE,
    ) -> Self:
        """Divide the rows of X. No training cell has more than cell_size rows; subclasses list the exceptions.

        Parameters
        ----------
        X : (n, d) float32, dense (a read-only memory map is fine) or CSR
        y : (n,) float64
            Labels. They only serve to tell identical rows with different labels apart.
        cell_size : int or None
            In rows.
        rng : Generator
        threads : Threads
            Their number does not change the result.

        Raises
        ------
        DataError
            X has no rows.
        OptionError
            cell_size is impossible.
        """

    @classmethod
    def fitting_bytes(cls, X: Examples, cell_size: int) -> int:
        """Bytes of memory that `fit` needs beside X and some numbers a row, at most and roughly."""
        return 0

    @classmethod
    def further(cls) -> Self:
        """A partition to repeat another one of this kind with: not fitted, and to be a different one on any rows."""
        return cls()

    @abstractmethod
    def training_cells(self) -> list[TrainingCell]:
        """The cells of the fitted rows, in order. RuntimeError after `from_state`, which does not restore them."""

    @property
    @abstractmethod
    def n_cells(self) -> int:
        """The number of cells."""

    @property
    def cells_by_repeat(self) -> list[int]:
        """The number of cells of each repeat; see `repeated.Repeated`. Any other partition is one repeat."""
        return [self.n_cells]

    @property
    def cells_by_coarse(self) -> list[int] | None:
        """The number of cells in each coarse cell; see `two_step.TwoStep`. None where there are none."""
        return None

    @abstractmethod
    def route(self, X: Examples) -> sparse.csr_array:
        """Weights (n, n_cells) float64 with which the cells answer for each row of X; each row of weights sums to 1."""

    @abstractmethod
    def assign(self, X: Examples) -> NDArray[np.int32]:
        """The cell (n,) of each row of X; OptionError if several cells answer together."""

    @property
    def centres(self) -> NDArray[np.float32] | None:
        """The centre of each cell (n_cells, d), or None if cells have none."""
        return None

    @abstractmethod
    def state(self) -> PartitionState:
        """All arrays that routing needs, without training rows."""

    @classmethod
    @abstractmethod
    def from_state(cls, state: PartitionState) -> Self:
        """The partition that `state()` described. It routes rows bit for bit as that one.

        The arrays are what `pieces` says. Unsound where they do not fit each other all the same.
        """


def one_cell_each(cell: NDArray[np.int32], n_cells: int) -> sparse.csr_array:
    """Routing (n, n_cells) float64 in which row i has weight 1 in cell[i] and 0 elsewhere."""
    return sparse.csr_array((np.ones(len(cell)), cell, np.arange(len(cell) + 1)), shape=(len(cell), n_cells))


def check_rows(X: Examples) -> int:
    """The number of rows of X; DataError if it is 0."""
    if X.shape[0] == 0:
        raise DataError("there are no rows to divide into cells; give a training file with at least one row")
    return int(X.shape[0])


def check_cell_size(cell_size: int | None) -> int:
    """The cell size as an int; OptionError if it is None or below 1."""
    if cell_size is None or cell_size < 1:
        given = "none" if cell_size is None else cell_size
        raise OptionError(
            f"{opt.cell_size} must be at least 1 row for this partition, not {given}; try {opt.cell_size(2000)}"
        )
    return int(cell_size)


def smallest_size(cell_size: int) -> int:
    """The fewest rows from which a cell is worth learning.

    A fiftieth of the cell size, but at least 10 rows and at most half the cell size, so that a cell that is too large
    by one row can still be halved.
    """
    return max(1, min(max(10, cell_size // 50), cell_size // 2))


def size_spread(sizes: ArrayLike) -> dict[str, float]:
    """Statistics of the cell sizes (cells,).

    Returns
    -------
    dict
        "cells": their number. "smallest", "median", "mean", "largest": in rows. "balance": sum(s^2) * cells / sum(s)^2,
        1 for cells of equal size, and the factor by which unequal sizes slow training down.
    """
    s = np.asarray(sizes, dtype=np.float64)
    return {
        "cells": len(s),
        "smallest": int(s.min()),
        "median": float(np.median(s)),
        "mean": float(s.mean()),
        "largest": int(s.max()),
        "balance": float(np.sum(s**2) * len(s) / np.sum(s) ** 2),
    }
