"""The rows that binary problems are about, and a mixture without labels for each set of rows.

One against all others is about all rows, and all problems share one mixture. A pair of classes (ava) is about few of
them, and has a mixture of its own: one of all rows would spend most of its components on other classes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from localsvm.data.dataset import Examples, rows_of
from localsvm.methods.cell import Cell
from localsvm.methods.clustered import CENTRES, stream
from localsvm.representations._mixture import Components
from localsvm.representations.kmeans import Centres, find_centres
from localsvm.representations.mixture import Mixture, Prior, fit_mixture, responsibilities
from localsvm.solvers.weighted_tasks import WeightedTasks

Floats = NDArray[np.float64]
LABEL_FREE = (1e-3, 100)  # of EM: the least rise of the objective a row, and the most rounds


@dataclass(frozen=True)
class Part:
    """Rows of a cell with their mixture.

    Attributes
    ----------
    taken : (m,) their numbers; None for all.
    mixture, logs : and the logarithms (m, K) of its densities at these rows.
    rows : those for the weights, by the responsibilities.
    """

    taken: NDArray[np.intp] | None
    mixture: Mixture
    logs: Floats
    rows: WeightedTasks

    def of(self, values: Floats) -> Floats:
        """Those of the part, from (n,) values of all rows."""
        return values if self.taken is None else values[self.taken]

    def decide(self, X: Examples, W: Floats, squared: bool, hard: bool) -> Floats:
        """(n,) decision values, with weights W, of rows X (n, d) that need not be of the part."""
        at = self.mixture
        dense = np.ascontiguousarray(X if isinstance(X, np.ndarray) else X.toarray(), np.float32)
        return np.asarray(Components(at.offsets, at.mean, at.factor, W, squared, hard).decide(dense))


def parts_of(cell: Cell, clusters: int, shrinkage: float, full: bool) -> list[Part]:
    """One part for all problems of a cell, or one for each in their order."""

    def made(taken: NDArray[np.intp] | None, components: int | None = None) -> Part:
        X, count = (cell.X, mass(cell)) if taken is None else (rows_of(cell.X, taken), mass(cell)[taken])
        centres = find_centres(X, clusters, stream(cell.random, CENTRES))
        mixture = _mixture(X, count, centres, components or len(centres), shrinkage, full)
        logs = mixture.log_densities(X)
        return Part(taken, mixture, logs, WeightedTasks(X, responsibilities(logs)))

    if (cell.Y != 0).all():
        return [made(None)]
    # a pair that no row of this cell is in gets any rows: its weights are 0
    taken = [np.flatnonzero(y) if y.any() else np.arange(len(y)) for y in cell.Y.T]
    # as many components for all pairs, those of few rows with some that are empty: models of a cell are alike
    return cell.threads.map(lambda i: made(taken[i], clusters), len(taken))


def _mixture(
    X: Examples, count: Floats, centres: NDArray[np.float32], components: int, shrinkage: float, full: bool
) -> Mixture:
    q = np.zeros((X.shape[0], components))
    q[np.arange(len(q)), Centres(centres).nearest(X)] = 1.0
    return fit_mixture(X, count, q, Prior.of(X, count, shrinkage, len(centres), full), *LABEL_FREE)


def mass(cell: Cell) -> Floats:
    """How many rows each row is: identical ones and their own weights, not those of classes, which are of the loss."""
    return cell.count if cell.mass is None else cell.mass
