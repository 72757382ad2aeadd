"""What every way to divide the space offers: cells to train on, and who answers for a row."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from localsvm.errors import DataError, OptionError
from localsvm.threads import ALONE, Threads

if TYPE_CHECKING:
    from localsvm.data.dataset import Examples

PartitionState = dict[str, np.ndarray]


@dataclass(frozen=True)
class TrainingCell:
    """The rows one cell is trained on.

    rows: (n,) int64, ascending indices into the training matrix.
    weight: (n,) float64, how many identical training rows each stands for; None where each stands for itself.
    """

    rows: NDArray[np.int64]
    weight: NDArray[np.float64] | None = None


class Partition(ABC):
    """A division of the space. Fitted on training rows once; a saved state routes rows exactly as the
    fitted object."""

    name: ClassVar[str]

    @abstractmethod
    def fit(
        self,
        X: Examples,
        y: NDArray[np.float64],
        cell_size: int | None,
        rng: np.random.Generator,
        threads: Threads = ALONE,
    ) -> Self:
        """Divides the rows of X (n, d) float32, dense (a read-only memory map will do) or CSR.

        y (n,) serves only to tell identical rows of different labels apart. No training cell has more than
        cell_size rows; the classes say where that cannot be kept. The result depends on the arguments and
        the state of rng alone, not on the number of threads. Raises DataError without rows and OptionError
        for an impossible cell_size.
        """

    @abstractmethod
    def training_cells(self) -> list[TrainingCell]:
        """The cells of the fitted rows, cell by cell; not there after from_state (RuntimeError)."""

    @property
    @abstractmethod
    def n_cells(self) -> int:
        """The number of cells."""

    @abstractmethod
    def route(self, X: Examples) -> sparse.csr_array:
        """Who answers for the rows of X, with which weight: (n, n_cells) float64, every row sums to 1."""

    @abstractmethod
    def assign(self, X: Examples) -> NDArray[np.int32]:
        """The one cell (n,) of each row of X; OptionError where several cells answer together."""

    @property
    def centres(self) -> NDArray[np.float32] | None:
        """The centre of each cell (n_cells, d); None where cells have none."""
        return None

    @abstractmethod
    def state(self) -> PartitionState:
        """All that routing needs, without training rows."""

    @classmethod
    @abstractmethod
    def from_state(cls, state: PartitionState) -> Self:
        """The partition that `state()` described; it routes every row to the same bits."""


def one_cell_each(cell: NDArray[np.int32], n_cells: int) -> sparse.csr_array:
    """Routing (n, n_cells) float64 in which row i belongs to cell[i] with weight 1."""
    return sparse.csr_array((np.ones(len(cell)), cell, np.arange(len(cell) + 1)), shape=(len(cell), n_cells))


def check_rows(X: Examples) -> int:
    """The number of rows of X; DataError when there are none."""
    if X.shape[0] == 0:
        raise DataError("there are no rows to divide into cells; give a training file with at least one row")
    return int(X.shape[0])


def check_cell_size(cell_size: int | None) -> int:
    """The cell size as a positive int; OptionError otherwise."""
    if cell_size is None or cell_size < 1:
        given = "none" if cell_size is None else cell_size
        raise OptionError(f"-c/--cell-size must be at least 1 row for this partition, not {given}; try -c 2000")
    return int(cell_size)


def smallest_size(cell_size: int) -> int:
    """The fewest rows that a cell should have to be worth learning from: a fiftieth of the cell size, but
    at least 10 rows, and never more than half the cell size (so that any cell too large by one row can
    still be halved)."""
    return max(1, min(max(10, cell_size // 50), cell_size // 2))


def size_spread(sizes: ArrayLike) -> dict[str, float]:
    """How the cell sizes (cells,) are spread.

    Returns cells, smallest, median, mean, largest (rows), and balance: the sum of squared sizes over that
    of equal cells, sum(s^2) * cells / sum(s)^2, which is 1 at best and the factor by which unequal sizes
    slow training down.
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
