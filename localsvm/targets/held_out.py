"""What calibration is given: the held-out values of a run."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from localsvm.targets.base import Values


class HeldOut(Protocol):
    """The held-out values of a run, cell by cell.

    Attributes
    ----------
    sizes : (cells,) rows of each cell.
    repeats : how many partitions the cells are of; those of a repeat follow those of the one before.
    """

    sizes: NDArray[np.int64]
    repeats: int

    def cell(self, index: int) -> tuple[NDArray[np.floating[Any]], Values, Values]:
        """(problems, n) held-out values, (n,) labels, and (n,) how many rows each stands for."""

    def rows(self, index: int) -> NDArray[np.int64]:
        """(n,) the numbers of a cell's rows, the same in all repeats."""
