"""Which points of a cell's grid are scored: all of them, or those that the held-out error leads to."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

SEARCHES = ("full", "adaptive")
STRIDE = 3  # of the first lines of an adaptive search
FIRST_STRETCH = 4  # costs, before an adaptive search first looks at a line
PATIENCE = 2  # costs beyond the best of a line, all of them worse, after which it ends


@dataclass(frozen=True)
class Search:
    """A search over the lines of a grid, along which C grows.

    `full` scores all. `adaptive` scores every third line, then the neighbours of the best line until it has no unscored
    one (all lines where they are not ordered); and it leaves a line once two costs after its best one have been worse,
    as the largest costs are the slowest. What is scored depends on held-out errors alone.
    """

    kind: str = "full"

    def next_lines(self, loss: NDArray[np.float64], ordered: bool = True) -> tuple[int, ...]:
        """The lines to score next, given the loss (lines, costs), nan where unscored; none at the end.

        ordered: lines that follow each other are neighbours (see Grid).
        """
        unscored: NDArray[np.bool_] = np.asarray(np.isnan(loss).all(axis=1))
        n = len(loss)
        if self.kind == "full" or not ordered or n <= STRIDE:
            return tuple(int(g) for g in np.flatnonzero(unscored))
        if unscored.all():
            return tuple(range(1, n, STRIDE))
        best = int(np.argmin(np.nanmin(np.where(unscored[:, None], np.inf, loss), axis=1)))
        return tuple(g for g in (best - 1, best + 1) if 0 <= g < n and unscored[g])

    def stretches(self, n_costs: int) -> list[tuple[int, int]]:
        """The parts (first, last) of a line, costs first .. last - 1, after each of which `ends` is to be asked."""
        edges = [0, n_costs] if self.kind == "full" else [0, *range(FIRST_STRETCH, n_costs), n_costs]
        return list(pairwise(edges))

    def ends(self, line: NDArray[np.float64]) -> bool:
        """Whether a line is left after these losses, at ascending costs. Equal ones are no reason: lines begin flat."""
        if self.kind == "full":
            return False
        best = int(line.argmin())
        return len(line) - 1 - best >= PATIENCE and bool((line[best + 1 :] > line[best]).all())
