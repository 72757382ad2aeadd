"""The held-out loss of grid points, and what decides between points of equal loss: one rule for all methods."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from localsvm.targets.base import Target

Floats = NDArray[np.float64]


class Tally:
    """The held-out loss and tie of n points (see Target.wrong), summed over blocks of rows."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._wrong = self._tie = self._mass = np.zeros(1)

    def add(self, values: Floats, y: Floats, Y: Floats, weight: Floats) -> None:
        """Count rows.

        Parameters
        ----------
        values : (points, problems, n) float64 held-out decision values.
        y, weight : (n,) float64 labels, and weights of the rows in the loss.
        Y : (n, problems) float64, the encoded labels.
        """
        wrong, tie = self._target.wrong(values, y, Y, weight)
        self._wrong, self._tie = self._wrong + wrong, self._tie + tie
        self._mass = self._mass + self._target.mass(y, weight)

    @property
    def mass(self) -> Floats:
        """Weight (parts,) of the rows that were counted."""
        return self._mass

    def losses(self) -> list[tuple[float, float]]:
        """Pairs (loss, tie) of each point."""
        losses = self._target.loss(self._wrong, self._mass)
        return [(float(loss), float(tie)) for loss, tie in zip(losses, self._tie.sum(axis=1), strict=True)]

    def of_choices(self, point: int) -> list[tuple[float, float]]:
        """Pairs (loss, tie) of a point, for each choice of a target with several; each is of one part."""
        shares = self._wrong[point] / self._mass
        return [(float(share), float(tie)) for share, tie in zip(shares, self._tie[point], strict=True)]

    def wrong(self, point: int) -> Floats:
        """Weight (parts,) of what a point decides wrongly."""
        return np.asarray(self._wrong[point])
