"""The losses of a sample of rows that a metric is learned by, and how they change with the kernel.

Kernel ridge regression of some rows of the sample, about half of them, predicts the others. To leave each row out by
itself needs the inverse of the kernel matrix: for as many predicted rows it takes three times the time.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from localsvm.data.blocks.dataset import Dense
from localsvm.representations.pair_slopes import PairSlopes
from localsvm.solvers._ridge import HeldOut
from localsvm.solvers.pinball import pinball_slope

Floats = NDArray[np.float64]
LARGEST_RESIDUAL = 3.0  # in deviations of all values: larger ones count as this in gradients


class MetricLoss(ABC):
    """A loss of the last rows of samples of n rows, by one kernel of distances.

    Parameters
    ----------
    n, trained : rows of a sample, and the first ones among them, which predict the others; 0 < trained < n.
    outputs : values that a row is given.
    kernel : its kind; see `localsvm.kernels`.
    """

    def __init__(self, n: int, trained: int, outputs: int, kernel: str) -> None:
        self.trained = trained
        self._solver = HeldOut(n, trained, outputs, kernel)

    @abstractmethod
    def by_values(self, values: Dense, Y: Dense, share: Floats) -> Floats:
        """The derivative (k, outputs) by the values (k, outputs) of rows with these Y. share : (k,) of the rows."""

    def slope(self, Z: Dense, Y: Dense, weight: Floats, ridge: float) -> tuple[PairSlopes, float]:
        """The derivatives by minus the kernel's base, and by the ridge; those before may be written over.

        Raises ArithmeticError where the kernel matrix has no inverse in float32.

        Parameters
        ----------
        Z, Y, weight : (n, r) mapped rows, (n, outputs), and (n,) from 0.
        """
        t = self.trained
        share = weight[t:] / (weight[t:].sum() or 1.0)
        by_values = self.by_values(self._solver.values(Z, Y[:t], ridge), Y[t:], share)
        return PairSlopes(*self._solver.slopes(by_values.astype(np.float32))), self._solver.ridge_slope


class ClassLoss(MetricLoss):
    """The mean squared hinge, summed over the problems; Y are -1 and +1."""

    def by_values(self, values: Dense, Y: Dense, share: Floats) -> Floats:
        """See `MetricLoss`."""
        return np.asarray(-2.0 * share[:, None] * Y * np.maximum(0.0, 1.0 - Y * values))


class ValueLoss(MetricLoss):
    """The mean square of the residuals, or with levels their mean pinball loss; Y has one column.

    Residuals count as LARGEST_RESIDUAL at most in gradients, so that a few rows do not decide. For quantiles that of a
    row is its value and the quantile of all residuals.
    """

    def __init__(self, n: int, trained: int, kernel: str, levels: Sequence[float] = ()) -> None:
        super().__init__(n, trained, 1, kernel)
        self._levels = levels

    def by_values(self, values: Dense, Y: Dense, share: Floats) -> Floats:
        """See `MetricLoss`."""
        left = Y[:, 0].astype(np.float64) - values[:, 0]
        if self._levels:
            return -pinball_slope(left, share, self._levels)[:, None]
        return np.asarray(-2.0 * share * np.clip(left, -LARGEST_RESIDUAL, LARGEST_RESIDUAL))[:, None]
