"""MLLKM in one pass over more rows than memory holds: they come part by part, and are candidates for anchors then.

Each part is processed: its rows join those that are kept, and are the anchors, with all gammas, of new candidates. Then
all these rows are reprocessed, old and new: the problem on them is solved on, from the solution so far, as LaSVM does
with one row and its support vectors (Bordes, Ertekin, Weston, Bottou, JMLR 6, 2005). At last rows leave, until no more
are left than are to be kept.

Which leave is drawn. A row stays with a probability p in proportion to what it counts: its cost, times 1 for support
vectors and all rows within the margin, less beyond it, down to FAR. One that stays stands for others that left: its
cost is divided by p. So on average the losses of the rows that are kept sum up to those of all rows (Horvitz and
Thompson 1952), for any model, and a later model still pays where it would go wrong on rows that are gone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from localsvm.methods.grids import Values
from localsvm.methods.locally_linear.mllkm_options import LocalOptions
from localsvm.representations.local_kernels import LocalBank
from localsvm.solvers.feature_mkl import Found, feature_mkl

Floats = NDArray[np.float64]
ROUGHEST = 3.0  # times the tolerance, before the last rows have come
FAR, WIDE = 0.05, 1.0  # what a row counts that is at least so far beyond the margin


@dataclass(frozen=True)
class KeptRows:
    """Rows of a binary problem.

    Attributes
    ----------
    X, y, cost : (n, d), (n,) float64 +-1, (n,) float64, those of the rows that are gone among it.
    coef : (n,) float64 dual coefficients times labels.
    number : (n,) int64, of the row in the file.
    """

    X: Floats
    y: Floats
    cost: Floats
    coef: Floats
    number: NDArray[np.int64]

    def of(self, rows: NDArray[np.intp]) -> Self:
        """Some of the rows."""
        return self._each(lambda name: getattr(self, name)[rows])

    def joined(self, other: Self) -> Self:
        """The rows with others behind them."""
        return self._each(lambda name: np.concatenate([getattr(self, name), getattr(other, name)]))

    def _each(self, column: Callable[[str], NDArray[Any]]) -> Self:
        return replace(self, **{item.name: column(item.name) for item in fields(self)})


class OnePass:
    """A binary problem at one cost, learned part by part.

    Attributes
    ----------
    rows : those that are kept.
    solution, anchors : on them, after `finish`; (anchors, d) float64, those of its kernels.
    """

    def __init__(self, method: LocalOptions, gammas: Values, features: int, rng: np.random.Generator) -> None:
        self._method, self._gammas, self._rng = method, gammas, rng
        none: Floats = np.empty(0)
        self.rows = KeptRows(np.empty((0, features)), none, none, none, np.empty(0, np.int64))
        self.anchors: Floats = np.empty((0, features))
        self._latest: Found | None = None
        self._steps = 0

    @property
    def solution(self) -> Found:
        """Latest solution, with the steps of all solutions before."""
        assert self._latest is not None, "after `learn`"
        return replace(self._latest, steps=self._steps)

    def learn(self, new: KeptRows) -> None:
        """Process some rows, reprocess all, and let the ones leave that are too many."""
        self.rows = self.rows.joined(new)
        self._solve(new.X, ROUGHEST * self._method.tolerance)
        if len(self.rows.y) > self._method.kept_rows:
            self.rows = self._thinned()

    def finish(self) -> None:
        """Solve on to the tolerance, over all candidates that the kept rows have."""
        self._solve(self.rows.X, self._method.tolerance)

    def values(self, X: Floats) -> Floats:
        """Values f(x) of any rows, (n,)."""
        if self._latest is None or not len(self._latest.names):
            return np.zeros(len(X))
        return self._bank(X, self.anchors).features(self._latest.names).values(self._latest.w)

    def _bank(self, X: Floats, anchors: Floats) -> LocalBank:
        everything = np.arange(len(anchors))
        return LocalBank(X, anchors, everything, self._method.map, self._gammas, self._method.componentwise)

    def _solve(self, candidates: Floats, tolerance: float) -> None:
        bank, rows, start = self._bank(self.rows.X, np.vstack([self.anchors, candidates])), self.rows, self._latest
        if start is not None:
            which, anchor = np.divmod(start.names, max(1, len(self.anchors)))
            start = replace(start, names=which * len(bank.anchors) + anchor, coef=rows.coef)
        solution = feature_mkl(bank, rows.y, rows.cost, tolerance, self._method.admit, start)
        which, anchor = np.divmod(solution.names, max(1, len(bank.anchors)))
        used, place = np.unique(anchor, return_inverse=True)
        self.anchors, self._latest = bank.anchors[used], replace(solution, names=which * len(used) + place)
        self.rows, self._steps = replace(rows, coef=solution.coef), self._steps + solution.steps

    def _thinned(self) -> KeptRows:
        """The rows that stay: as many as are to be kept, evenly drawn along the margins of either side."""
        rows, most = self.rows, self._method.kept_rows
        margin = rows.y * self.values(rows.X)
        order = np.lexsort((margin, rows.y))
        rows, beyond = rows.of(order), margin[order] - 1.0
        counts = np.where(rows.coef != 0.0, 1.0, np.clip(1.0 - beyond / WIDE, FAR, 1.0))
        p = probabilities(rows.cost * counts, most)
        stay = np.searchsorted(np.cumsum(p), self._rng.random() + np.arange(most))
        stay = np.unique(np.minimum(stay, len(p) - 1))
        kept = rows.of(stay)
        return replace(kept, cost=kept.cost / p[stay], coef=kept.coef / p[stay])


def probabilities(size: Floats, count: int) -> Floats:
    """Probabilities min(1, t size), with t such that they sum up to `count`, which is less than there are sizes."""
    order = np.argsort(-size, kind="stable")
    largest = size[order]
    rest = np.cumsum(largest[::-1])[::-1]
    certain = int(np.argmax((count - np.arange(len(size))) * largest <= rest))  # so many have p = 1
    return np.asarray(np.minimum(1.0, size * ((count - certain) / rest[certain])))
