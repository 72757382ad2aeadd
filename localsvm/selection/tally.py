"""The held-out loss of grid points, and what decides between points of equal loss: one rule for all methods."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from localsvm.targets.base import Target

Floats = NDArray[np.float64]


class Tally:
    """The held-out loss and tie of n points (see Target.losses), summed over blocks of rows."""

    def __init__(self, target: Target, n: int) -> None:
        self._target = target
        self._loss, self._tie, self._weight = np.zeros(n), np.zeros(n), 0.0

    def add(self, values: Floats, y: Floats, Y: Floats, weight: Floats) -> None:
        """Count rows.

        Parameters
        ----------
        values : (points, problems, n) float64 held-out decision values.
        y, weight : (n,) float64 labels, and weights of the rows in the loss.
        Y : (n, problems) float64, the encoded labels.
        """
        loss, tie = self._target.losses(values, y, Y, weight)
        self._loss += loss
        self._tie += tie
        self._weight += float(weight.sum())

    def losses(self) -> list[tuple[float, float]]:
        """(loss a unit of weight, tie) of each point."""
        return [(float(loss) / self._weight, float(tie)) for loss, tie in zip(self._loss, self._tie, strict=True)]
