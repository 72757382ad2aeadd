"""How a loss of some rows changes with the kernel of each pair of them: what the slope of a metric is made of."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from localsvm.data.blocks.dataset import Dense
from localsvm.kernels._kernels import weighted_sums

Floats = NDArray[np.float64]


class PairSlopes(NamedTuple):
    """The derivatives of a loss by minus the base of the kernel of n rows with the first t of them.

    A pair of the first t rows has two places in W: its derivative is their sum.

    Attributes
    ----------
    W : (n, t) float32.
    rows, columns : (n,) and (t,) sums over each row and column of W.
    """

    W: Dense
    rows: Floats
    columns: Floats

    def apart(self, X: Dense) -> Floats:
        """Sums over i and j of W_ij |x_ik - x_jk| for each feature k (d,) of rows X (n, d)."""
        return weighted_sums(self.W, X)

    def times(self, Z: Dense) -> Dense:
        """W times the first t rows of Z (n, r)."""
        return np.asarray(self.W @ Z[: len(self.columns)])

    def both(self, Z: Dense) -> Dense:
        """What `times` gives, with W' times Z added to its first t rows."""
        out = self.times(Z)
        out[: len(self.columns)] += self.W.T @ Z
        return out
