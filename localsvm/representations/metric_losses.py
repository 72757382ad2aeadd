"""The losses of a sample of rows that a metric is learned by, and how they change with the kernel.

A loss of classes leaves each row out by itself, as all of them are needed: classes may have few rows. A loss of values
trains one half of the rows and predicts the other, which needs no inverse of the kernel matrix: for as many predicted
rows it takes a third of the time.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from localsvm.data.blocks.dataset import Dense
from localsvm.representations.pair_slopes import OuterSlopes, PairSlopes, SymmetricSlopes
from localsvm.solvers._ridge import HeldOut, RidgeLoss
from localsvm.solvers.pinball import pinball_slope

Floats = NDArray[np.float64]
LARGEST_RESIDUAL = 3.0  # in deviations of all values: larger ones count as this in gradients


class MetricLoss(ABC):
    """A loss of samples of n rows, by the kernel of one base.

    Attributes
    ----------
    rows_for_one : rows of a sample for each that the loss is of.
    """

    rows_for_one: ClassVar[int]

    @abstractmethod
    def slope(self, Z: Dense, Y: Dense, weight: Floats, ridge: float) -> tuple[PairSlopes, float]:
        """The derivatives by the kernel's logarithms, and by the ridge; those before may be written over.

        Raises ArithmeticError where the kernel matrix has no inverse in float32.

        Parameters
        ----------
        Z, Y, weight : (n, r) mapped rows, (n, problems), one of values, and (n,) from 0.
        """


class ClassLoss(MetricLoss):
    """The mean squared hinge of leave-one-out values; Y are -1 and +1."""

    rows_for_one = 1

    def __init__(self, n: int, problems: int, base: str) -> None:
        self._solver = RidgeLoss(n, problems, base)

    def slope(self, Z: Dense, Y: Dense, weight: Floats, ridge: float) -> tuple[PairSlopes, float]:
        """See `MetricLoss`."""
        W, sums = self._solver.gradient(Z, Y, weight / (weight.sum() or 1.0), ridge)
        return SymmetricSlopes(W, sums), self._solver.ridge_slope


class ValueLoss(MetricLoss):
    """The mean square of the residuals of the second half by the first, or with levels their mean pinball loss.

    Residuals count as LARGEST_RESIDUAL at most in gradients, so that a few rows do not decide. For quantiles that of a
    row is its value and the quantile of all residuals.
    """

    rows_for_one = 2

    def __init__(self, n: int, base: str, levels: Sequence[float] = ()) -> None:
        self._trained, self._levels = n // 2, levels
        self._solver = HeldOut(n, self._trained, base)

    def slope(self, Z: Dense, Y: Dense, weight: Floats, ridge: float) -> tuple[PairSlopes, float]:
        """See `MetricLoss`."""
        t = self._trained
        share = weight[t:] / (weight[t:].sum() or 1.0)
        left = Y[t:, 0].astype(np.float64) - self._solver.values(Z, Y[:t, 0], ridge)
        if self._levels:
            by_residual = pinball_slope(left, share, self._levels)
        else:
            by_residual = 2.0 * share * np.clip(left, -LARGEST_RESIDUAL, LARGEST_RESIDUAL)
        pairs = OuterSlopes(*self._solver.slope((-by_residual).astype(np.float32)))
        return pairs, self._solver.ridge_slope
