"""A mixture without labels for each set of rows that binary problems are about."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from localsvm.data.blocks.dataset import Examples
from localsvm.methods.cell import Cell
from localsvm.methods.linear.systems.parts import CellParts, ProblemPart, Taken
from localsvm.methods.random import starting
from localsvm.representations._mixture import Components
from localsvm.representations.kmeans import Centres, find_centres
from localsvm.representations.mixture import Mixture, Prior, fit_mixture, responsibilities
from localsvm.solvers.weighted_tasks import WeightedTasks

Floats = NDArray[np.float64]
LABEL_FREE = (1e-3, 100)  # of EM: the least rise of the objective a row, and the most rounds


@dataclass(frozen=True)
class MixturePart(ProblemPart):
    """Rows of a cell with their mixture.

    Attributes
    ----------
    mixture, logs : and the logarithms (m, K) of its densities at these rows.
    tasks : the rows for the weights, by the responsibilities.
    """

    mixture: Mixture
    logs: Floats
    tasks: WeightedTasks

    def decide(self, X: Examples, W: Floats, loss: int, hard: bool) -> Floats:
        """Decision values (n,), with weights W, of rows X (n, d) that need not be of the part.

        loss: as csrc/mixture.h numbers it; hard: the component with the largest share decides.
        """
        at = self.mixture
        dense = np.ascontiguousarray(X if isinstance(X, np.ndarray) else X.toarray(), np.float32)
        return np.asarray(Components(at.offsets, at.mean, at.factor, W, loss, hard).decide(dense))


def mixture_parts(cell: Cell, clusters: int, start: int, shrinkage: float, full: bool) -> CellParts[MixturePart]:
    """The parts of a cell at one number of components (`clusters`), start of k-means, and shrinkage.

    full: full covariances rather than diagonal ones.
    """

    def make(taken: Taken) -> MixturePart:
        part = ProblemPart(taken)
        X, count = part.rows(cell.X), part.of(cell.mass)
        centres = find_centres(X, clusters, starting(cell.random, start))
        # as many components for all pairs, those of few rows with some that are empty: models of a cell are alike
        components = len(centres) if taken is None else clusters
        mixture = _mixture(X, count, centres, components, shrinkage, full)
        logs = mixture.log_densities(X)
        return MixturePart(taken, mixture, logs, WeightedTasks(X, responsibilities(logs)))

    return CellParts(cell, make, cell.target.leaves_out)


def _mixture(
    X: Examples, count: Floats, centres: NDArray[np.float32], components: int, shrinkage: float, full: bool
) -> Mixture:
    q = np.zeros((X.shape[0], components))
    q[np.arange(len(q)), Centres(centres).nearest(X)] = 1.0
    return fit_mixture(X, count, q, Prior.of(X, count, shrinkage, len(centres), full), *LABEL_FREE)
