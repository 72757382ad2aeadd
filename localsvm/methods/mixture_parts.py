"""The rows that binary problems are about, and a mixture without labels for each set of rows.

One against all others is about all rows, and all problems and folds share one mixture. A pair of classes (ava) is about
few of them, and has a mixture of its own: one of all rows would spend most of its components on other classes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from localsvm.data.dataset import Examples, rows_of
from localsvm.methods.cell import ALL, WHOLE, Cell, Job
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


class Parts:
    """The parts of a cell at one number of components and shrinkage, made when they are first asked for.

    Attributes
    ----------
    paired : the problems are pairs of classes.
    """

    def __init__(self, cell: Cell, clusters: int, shrinkage: float, full: bool) -> None:
        self._cell, self._clusters, self._shrinkage, self._full = cell, clusters, shrinkage, full
        self.paired = not (cell.Y != 0).all()
        self._known: dict[tuple[int, int], Part] = {}

    def of(self, jobs: Sequence[Job]) -> list[Part]:
        """The part of each job: one for all of them; of pairs one for each pair without each fold.

        Who is in a pair is known by the labels, and nothing may be known of those of held-out rows.
        """
        keys = [(job.fold, job.problem) if self.paired else (WHOLE, ALL) for job in jobs]
        missing = list(dict.fromkeys(key for key in keys if key not in self._known))
        made = self._cell.threads.map(lambda i: self._made(*missing[i]), len(missing))
        self._known |= dict(zip(missing, made, strict=True))
        return [self._known[key] for key in keys]

    def _made(self, fold: int, problem: int) -> Part:
        cell, taken = self._cell, None if problem == ALL else self._taken(fold, problem)
        X, count = (cell.X, mass(cell)) if taken is None else (rows_of(cell.X, taken), mass(cell)[taken])
        centres = find_centres(X, self._clusters, stream(cell.random, CENTRES))
        # as many components for all pairs, those of few rows with some that are empty: models of a cell are alike
        components = len(centres) if taken is None else self._clusters
        mixture = _mixture(X, count, centres, components, self._shrinkage, self._full)
        logs = mixture.log_densities(X)
        return Part(taken, mixture, logs, WeightedTasks(X, responsibilities(logs)))

    def _taken(self, fold: int, problem: int) -> NDArray[np.intp]:
        """The rows of a pair outside a fold. Where there are none, any will do: the weights are 0 then."""
        outside = self._cell.folds != fold
        found = np.flatnonzero(outside & (self._cell.Y[:, problem] != 0))
        return found if len(found) else np.arange(len(outside))


def _mixture(
    X: Examples, count: Floats, centres: NDArray[np.float32], components: int, shrinkage: float, full: bool
) -> Mixture:
    q = np.zeros((X.shape[0], components))
    q[np.arange(len(q)), Centres(centres).nearest(X)] = 1.0
    return fit_mixture(X, count, q, Prior.of(X, count, shrinkage, len(centres), full), *LABEL_FREE)


def mass(cell: Cell) -> Floats:
    """How many rows each row is: identical ones and their own weights, not those of classes, which are of the loss."""
    return cell.count if cell.mass is None else cell.mass
