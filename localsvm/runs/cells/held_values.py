"""The held-out values of a run, read cell by cell from its journal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from localsvm.runs.cells.records import unpack
from localsvm.store.journal import Journal
from localsvm.targets.base import Target
from localsvm.targets.classification import classes_of
from localsvm.targets.held_out import HeldOut
from localsvm.targets.regression import Regression


def outside(target: Target, held: HeldOut) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Scores (n,) of the held-out rows that neither learned nor chose the metric: see `targets.conformal`.

    The second array (n,) says how many rows each score stands for.

    Probabilities that score one half of the rows are calibrated by the other half: what was calibrated by a row knows
    its label a little.
    """
    scores, weight = [], []
    if isinstance(target, Regression):
        for i in range(len(held.sizes)):
            f, y, count = held.cell(i)
            some = count > 0
            scores.append(target.outside(f.T.astype(np.float64), y)[some])
            weight.append(count[some])
        return np.concatenate(scores), np.concatenate(weight)
    from localsvm.targets.calibrating import calibrate  # takes long to import

    classes = classes_of(target)
    for half in (0, 1):
        calibration, others = calibrate(classes, _Half(held, half)), _Half(held, 1 - half)
        for i in range(len(held.sizes)):
            values, y, count = others.cell(i)
            decisions, some = values.T.astype(np.float64), count > 0
            p = calibration.in_cell(classes, i).combine(decisions[some], np.arange(classes.n_problems))
            shares = calibration.of_classes(classes, p)
            scores.append(1.0 - shares[np.arange(len(shares)), classes.codes(y[some])])
            weight.append(count[some])
    return np.concatenate(scores), np.concatenate(weight)


class _Half:
    """Every second held-out row of a run, from the first or the second on; see `targets.held_out.HeldOut`."""

    def __init__(self, held: HeldOut, first: int) -> None:
        self._held, self._first, self.sizes = held, first, held.sizes

    def cell(self, index: int) -> tuple[NDArray[np.floating[Any]], NDArray[np.float64], NDArray[np.float64]]:
        """Values (problems, n), labels (n,), and 0 for rows of the other half."""
        values, y, count = self._held.cell(index)
        return values, y, np.where(np.arange(len(y)) % 2 == self._first, count, 0.0)


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
