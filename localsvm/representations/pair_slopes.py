"""How a loss of some rows changes with the kernel of each pair of them: what the slope of a metric is made of."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np
from numpy.typing import NDArray

from localsvm.data.blocks.dataset import Dense
from localsvm.kernels._kernels import weighted_sums

Floats = NDArray[np.float64]


class PairSlopes(ABC):
    """The derivatives W (n, t) float32 of a loss by the logarithms of the kernel of n rows with the first t of them.

    A pair of the first t rows has two places in W: its derivative is their sum.

    Parameters
    ----------
    rows, columns : (n,) and (t,) sums over each row and column of W.
    """

    def __init__(self, rows: Floats | Dense, columns: Floats | Dense) -> None:
        self.rows, self.columns = rows, columns

    @abstractmethod
    def apart(self, X: Dense) -> Floats:
        """Sums over i and j of W_ij |x_ik - x_jk| for each feature k (d,) of rows X (n, d)."""

    @abstractmethod
    def times(self, Z: Dense) -> Dense:
        """W (n, r) times the first t rows of Z (n, r)."""

    @abstractmethod
    def both(self, Z: Dense) -> Dense:
        """What `times` gives, with W' times Z added to its first t rows."""


class SymmetricSlopes(PairSlopes):
    """W (n, n) itself, where it is symmetric, and its sums (n,)."""

    def __init__(self, W: Dense, sums: Floats) -> None:
        super().__init__(sums, sums)
        self._W = W

    def apart(self, X: Dense) -> Floats:
        """See `PairSlopes`."""
        return weighted_sums(self._W, X)

    def times(self, Z: Dense) -> Dense:
        """See `PairSlopes`."""
        return np.asarray(self._W @ Z)

    def both(self, Z: Dense) -> Dense:
        """See `PairSlopes`."""
        return np.float32(2.0) * self.times(Z)


class OuterSlopes(PairSlopes):
    """W_ij = left_i kernel_ij right_j, where the derivative by the kernel has rank one; all float32."""

    def __init__(self, left: Dense, kernel: Dense, right: Dense) -> None:
        super().__init__(left * (kernel @ right), right * (left @ kernel))
        self._left, self._kernel, self._right = left[:, None], kernel, right[:, None]

    def apart(self, X: Dense) -> Floats:
        """See `PairSlopes`."""
        return weighted_sums(self._kernel, X, self._left[:, 0], self._right[:, 0])

    def times(self, Z: Dense) -> Dense:
        """See `PairSlopes`."""
        return np.asarray(self._left * (self._kernel @ (self._right * Z[: len(self._right)])))

    def both(self, Z: Dense) -> Dense:
        """See `PairSlopes`."""
        out = self.times(Z)
        out[: len(self._right)] += self._right * (self._kernel.T @ (self._left * Z))
        return out
