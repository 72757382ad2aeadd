"""Search of a cell's grid: all points are scored, or those that the held-out error leads to."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

SEARCHES = ("full", "adaptive")
STRIDE = 3  # of the first settings of an adaptive search
FIRST_STRETCH = 4  # costs, before an adaptive search may leave a setting
PATIENCE = 2  # costs beyond the best one of a setting, all of them worse, after which it is left


@dataclass(frozen=True)
class Search:
    """A search over the settings of a grid, at each of which the cost grows.

    `full` scores all points. `adaptive` scores every third setting, then the neighbours of the best one until it has no
    unscored neighbour (all settings where they are not ordered). It looks at four costs of a setting, and leaves it
    once two costs after its best one have been worse, as the largest costs are the slowest. What is scored depends on
    held-out errors alone.

    Attributes
    ----------
    kind : one of SEARCHES.
    """

    kind: str = "full"

    def next_settings(self, loss: NDArray[np.float64], ordered: bool = True) -> tuple[int, ...]:
        """The settings to score next; none at the end.

        Parameters
        ----------
        loss : (settings, costs) float64, nan where unscored.
        ordered : settings that follow each other are neighbours (see Grid).

        Returns
        -------
        Their indices.
        """
        unscored: NDArray[np.bool_] = np.asarray(np.isnan(loss).all(axis=1))
        n = len(loss)
        if self.kind == "full" or not ordered or n <= STRIDE:
            return tuple(int(g) for g in np.flatnonzero(unscored))
        if unscored.all():
            return tuple(range(1, n, STRIDE))
        best = int(np.argmin(np.nanmin(np.where(unscored[:, None], np.inf, loss), axis=1)))
        return tuple(g for g in (best - 1, best + 1) if 0 <= g < n and unscored[g])

    def expected(self, n: int, ordered: bool) -> int:
        """Expected number of the n settings that will be scored."""
        whole = self.kind == "full" or not ordered or n <= STRIDE
        return n if whole else len(range(1, n, STRIDE)) + 2

    def stretches(self, n_costs: int) -> list[tuple[int, int]]:
        """The parts (first, last) of the costs, first .. last - 1, after each of which `ends` is to be asked."""
        edges = [0, n_costs] if self.kind == "full" else [0, *range(FIRST_STRETCH, n_costs), n_costs]
        return list(pairwise(edges))

    def ends(self, loss: NDArray[np.float64]) -> bool:
        """True where a setting is left after these losses (costs,), by ascending cost.

        Equal losses are no reason: all begin flat.
        """
        if self.kind == "full":
            return False
        best = int(loss.argmin())
        return len(loss) - 1 - best >= PATIENCE and bool((loss[best + 1 :] > loss[best]).all())
