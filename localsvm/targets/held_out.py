"""Held-out values of a run, which calibration is given."""

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
    """

    sizes: NDArray[np.int64]

    def cell(self, index: int) -> tuple[NDArray[np.floating[Any]], Values, Values]:
        """Held-out values (problems, n), labels (n,), and (n,) how many rows each stands for."""
