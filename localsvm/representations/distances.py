"""The distances that a metric can be learned for: what its map makes of rows, and how a loss changes with the map.

The kernel of two rows x, x' mapped by L is exp(-|Lx - Lx'|^2) for the Euclidean distance, with weights or a matrix L,
and exp(-sum_j L_j |x_j - x'_j|) for the Manhattan one, whose weights are from 0. The Euclidean distance has a second
kernel, the Laplacian one exp(-|Lx - Lx'|), and counts as another distance with it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from localsvm.data.blocks.dataset import Dense
from localsvm.kernels import Kernel
from localsvm.kernels._kernels import Panels, aligned, padded
from localsvm.representations.pair_slopes import PairSlopes

Floats = NDArray[np.float64]
PAIRS = 8  # shifts of a sample against itself, whose pairs of rows say how far two rows are apart


class Distance(ABC):
    """A distance; `values` are the parameters of a map L, which steps are taken with.

    Attributes
    ----------
    name : as of `Method.distance`.
    kernel : its kind; see `localsvm.kernels`.
    cells : name of the partition that measures by it.
    begins : name of the distance whose metrics its learning begins with, if another one's.
    matrices : whether a metric may be a matrix.
    scale : logarithm of the factor on these metrics at which it begins.
    """

    name: ClassVar[str]
    kernel: ClassVar[str]
    cells: ClassVar[str]
    begins: ClassVar[str] = ""
    matrices: ClassVar[bool] = True
    scale: ClassVar[float] = 0.0

    @abstractmethod
    def apart(self, X: Floats) -> float:
        """How far two rows of X (n, d) are apart on average: the mean of the base."""

    @abstractmethod
    def map_of(self, values: Floats) -> Floats:
        """The map of some parameters."""

    @abstractmethod
    def slope(self, X: Dense, L: Dense, pairs: PairSlopes) -> Floats:
        """Derivative of a loss by the map L, float64 of its shape, from those by the kernel of the rows X (n, d)."""

    @abstractmethod
    def by_values(self, values: Floats, slope: Floats) -> Floats:
        """Derivative by the parameters, of that by the map."""

    def from_rows(self, Z: Dense, rows: NDArray[np.int64]) -> Dense:
        """How far mapped rows Z (m, r) are from some of them, (rows, m): the base of the kernel."""
        panels, some = Panels(Z, Kernel(self.kernel).base), np.ascontiguousarray(Z[rows])
        out = aligned((len(rows), padded(len(Z))), np.float32)
        panels.products(some, out, panels.norms_of(some))
        return out[:, : len(Z)]

    @abstractmethod
    def size(self, L: Floats) -> float:
        """Size of a map: 1 where distances are as large as those of rows that are not mapped."""

    def sized(self, L: Floats) -> Floats:
        """The map, at the size 1."""
        return np.asarray(L / self.size(L))

    def raised(self, L: Floats, power: float) -> Floats:
        """Weights to a power, at the size that they have: below 1 they differ less. A matrix stays as it is."""
        if power == 1.0 or L.ndim == 2:
            return L
        raised = np.abs(L) ** power
        return np.asarray(raised * (self.size(L) / self.size(raised)))


class Euclidean(Distance):
    """The Euclidean distance. The parameters are the map: weights (d,), or a matrix (d, r)."""

    name, kernel, cells = "euclidean", "gaussian", "voronoi"

    def apart(self, X: Floats) -> float:
        """Mean squared distance; see `Distance`."""
        return 2.0 * float(X.var(axis=0).sum())

    def map_of(self, values: Floats) -> Floats:
        """The parameters themselves."""
        return values

    def slope(self, X: Dense, L: Dense, pairs: PairSlopes) -> Floats:
        """With Z the mapped rows: -2 X' (diag(sums of W's rows and columns) Z - W Z - W' Z), its diagonal for weights.

        On the diagonal W and W' give the same.
        """
        Z, t = mapped(X, L), len(pairs.columns)
        apart = pairs.rows.astype(np.float32)[:, None] * Z
        apart[:t] += pairs.columns.astype(np.float32)[:, None] * Z[:t]
        if L.ndim == 1:
            apart -= np.float32(2.0) * pairs.times(Z)
            return np.asarray(-2.0 * np.einsum("ij,ij->j", X, apart), np.float64)
        apart -= pairs.both(Z)
        return np.asarray(-2.0 * (X.T @ apart), np.float64)

    def by_values(self, values: Floats, slope: Floats) -> Floats:
        """The derivative itself."""
        return slope

    def size(self, L: Floats) -> float:
        """Root of the squared entries' sum over the number of features."""
        return float(np.sqrt(np.square(L).sum() / len(L)))


class Manhattan(Distance):
    """The Manhattan distance. The parameters are roots of the weights (d,), so that these stay from 0."""

    name, kernel, cells = "manhattan", "manhattan", "voronoi-manhattan"
    matrices = False

    def apart(self, X: Floats) -> float:
        """Mean distance, of the rows and those some places behind them."""
        shifts = [np.abs(X - np.roll(X, shift, axis=0)).sum(axis=1).mean() for shift in range(1, min(PAIRS, len(X)))]
        return float(np.mean(shifts)) if shifts else 0.0

    def map_of(self, values: Floats) -> Floats:
        """Weights: squares of the parameters."""
        return np.square(values)

    def slope(self, X: Dense, L: Dense, pairs: PairSlopes) -> Floats:
        """-sum_ik W_ik |x_ij - x_kj| for each feature j."""
        return -pairs.apart(X)

    def by_values(self, values: Floats, slope: Floats) -> Floats:
        """Twice the parameters, times the derivative by their squares."""
        return 2.0 * values * slope

    def size(self, L: Floats) -> float:
        """Mean of the weights."""
        return float(L.sum() / len(L))


class Laplacian(Euclidean):
    """The Euclidean distance for the kernel exp(-|Lx - Lx'|), which has a cusp at 0 and falls off slowly."""

    name, kernel, begins, scale = "laplacian", "laplacian", "euclidean", -0.5


FAR = 1e14  # mapped values beyond are moved to it: sums of their squares are finite in float32


def mapped(X: Dense, L: Dense) -> Dense:
    """Rows (n, r) float32 mapped by a metric L, without values whose squares are not finite."""
    Z: Dense = X * L if L.ndim == 1 else X @ L
    np.maximum(Z, -FAR, out=Z)  # np.clip takes three times as long for a sample
    return np.minimum(Z, FAR, out=Z)


DISTANCES: dict[str, Distance] = {kind.name: kind() for kind in (Euclidean, Manhattan, Laplacian)}
