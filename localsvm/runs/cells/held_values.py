"""The held-out values of a run, read cell by cell from its journal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from localsvm.runs.cells.records import unpack
from localsvm.store.journal import Journal


class HeldValues:
    """Held-out values of a run, from its journal; see `targets.held_out.HeldOut`.

    Parameters
    ----------
    names, sizes : of the cells' records, and (cells,) rows of each cell.
    """

    def __init__(self, journal: Journal, names: Sequence[str], sizes: NDArray[np.int64]) -> None:
        self._journal, self._names, self.sizes = journal, names, sizes
        behind = mass = 0.0
        for name in names:
            record = journal[name]
            behind, mass = behind + float(record["held/behind"]), mass + float(record["held/mass"].sum())
        self._factor = behind / mass  # rows of a mean weight count as one: calibration weighs them against its priors

    def cell(self, index: int) -> tuple[NDArray[np.floating[Any]], NDArray[np.float64], NDArray[np.float64]]:
        """Values (problems, n), labels (n,) and how many rows (n,) each row stands for, by their weights."""
        record = self._journal[self._names[index]]
        count = record["held/mass"] * self._factor
        if "held/fresh" in record:  # the others chose the metric, and are flattered by it
            count = count * record["held/fresh"]
        return unpack(record).values, record["held/y"], count
