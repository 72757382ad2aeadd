"""Search of a cell's grid: all points are scored, or those that the held-out error leads to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from localsvm.methods.grids import Grid, guide_step

SEARCHES = ("full", "adaptive")
STRIDE = 3  # of the first settings of an adaptive search; so few are all scored
FIRST_STRETCH = 4  # costs, before an adaptive search may leave a setting
PATIENCE = 2  # costs beyond the best one of a setting, all of them worse, after which it is left
SHORT_STRETCH, SHORT_PATIENCE = 3, 1  # the same where the search was told where to begin, and in a part
USUAL = 3  # a part's search begins at one in so many of the settings and of the costs: mostly the optimum is near
FLAT = 0.005  # share by which a part's losses beside its best one are larger: up to it, no neighbour is much better
FARTHEST = (0.005, 0.04)  # the same share, below and above: beyond, no neighbour was the better one for all rows


class Begin(NamedTuple):
    """Where a search begins: indices of a setting and of a cost.

    loss : held-out loss of the best point of the part of the rows that says so.
    value : the parameter of the setting; nan where nobody asks.
    beside : by what share of it the losses of that part are larger at the setting below, and above; nan where that is
        not known, or says nothing.
    """

    setting: int
    cost: int
    loss: float = np.nan
    beside: tuple[float, float] = (np.nan, np.nan)
    value: float = np.nan

    def with_hope(self, settings: Sequence[int]) -> tuple[int, ...]:
        """The settings, of some, that may be much better than this one for all rows."""
        if np.fmax(*self.beside) < FLAT:
            return ()
        sides = zip((self.setting - 1, self.setting + 1), self.beside, FARTHEST, strict=True)
        without = {side for side, share, farthest in sides if share > farthest}
        return tuple(g for g in settings if g not in without)


class Usual(NamedTuple):
    """Where the search of some cell begins: the parameter of a setting, and the index of a cost."""

    value: float
    cost: int


class Best(NamedTuple):
    """The best point of the rounds before: the index of its cost, and its loss."""

    cost: int
    loss: float


@dataclass(frozen=True)
class Search:
    """A search over the settings of a grid, at each of which the cost grows.

    `full` scores all points. `adaptive` scores every third setting, then the neighbours of the best one until it has no
    unscored neighbour (all settings where they are few or not ordered). It looks at four costs of a setting, and leaves
    it once two costs after its best one have been worse, and two after that of the smallest tie, as the largest costs
    are the slowest. In a `part`, which only says where another search begins, it scores one setting at a third of all,
    then neighbours; and of each setting three costs from one third on, then larger and smaller ones, until the next
    larger and the next smaller one are worse than the best.

    With `begin`, a search of a cell scores few points, in the same way from there. The neighbour below is scored only
    where the one above is not better, as few rows, which say where to begin, want smaller gammas than all; and neither
    where these rows say that it has no hope. A neighbour has the best cost so far and the one below scored first, and
    is left if both are worse than the best point, and the next larger one would be, too, if the loss fell on half as
    much as between them. What is scored depends on held-out values alone.

    Attributes
    ----------
    kind : one of SEARCHES.
    begin : where an optimum is expected; None where nobody knows.
    part : whether the rows are part of a cell's.
    best : what a search with `begin` knows when a round begins; see `after`.
    parts : searches of several choices, one each; empty where all are as this one.
    usual : of each choice, where the searches of some other cells begin: there this one begins, without a part of its
        own rows that says where. Empty where nobody knows.
    """

    kind: str = "full"
    begin: Begin | None = None
    part: bool = False
    best: Best | None = None
    parts: tuple[Search, ...] = ()
    usual: tuple[Usual, ...] = ()

    @property
    def _short(self) -> bool:
        """Whether few points are scored: in a part, or from where a search was told to begin."""
        return self.part or self.begin is not None

    def beginning(self, begins: Sequence[Begin]) -> Search:
        """The search of each choice that begins there."""
        parts = tuple(replace(self, begin=begin, usual=()) for begin in begins)
        return parts[0] if len(parts) == 1 else replace(self, parts=parts, usual=())

    def of(self, choice: int) -> Search:
        """The search of a choice."""
        return self.parts[choice] if self.parts else self

    def next_settings(
        self, loss: NDArray[np.float64], ordered: bool = True, best: int | None = None
    ) -> tuple[int, ...]:
        """The settings to score next; none at the end.

        Parameters
        ----------
        loss : (settings, costs) float64, nan where unscored.
        ordered : settings that follow each other are neighbours (see Grid).
        best : the best setting, whose neighbours a short search scores; None for that of the smallest loss.

        Returns
        -------
        Their indices.
        """
        unscored: NDArray[np.bool_] = np.asarray(np.isnan(loss).all(axis=1))
        n = len(loss)
        if self.kind == "full" or not ordered or n <= STRIDE:
            return tuple(int(g) for g in np.flatnonzero(unscored))
        if unscored.all() and self.begin is not None:
            return (self.begin.setting,)
        if unscored.all():
            return (n // USUAL,) if self.part else tuple(range(1, n, STRIDE))
        if best is None or not self._short:
            best = int(np.argmin(np.nanmin(np.where(unscored[:, None], np.inf, loss), axis=1)))
        found = tuple(g for g in (best - 1, best + 1) if 0 <= g < n and unscored[g])
        if self.begin is not None:
            return (self.begin.with_hope(found) if best == self.begin.setting else found)[-1:]
        return found

    def after(self, loss: NDArray[np.float64]) -> Search:
        """The search after rounds that have scored these points (settings, costs), nan where unscored."""
        if self.begin is None or np.isnan(loss).all():
            return self
        setting, cost = _lowest(loss)
        return replace(self, best=Best(cost, float(loss[setting, cost])))

    def before(self, loss: NDArray[np.float64], setting: int) -> Search:
        """The search when it came to a setting, by what all rounds have scored in the end.

        With `begin`, a search goes up from there; it goes down only if the next setting is not better. So what is
        scored says the order, also where ties decided which setting was the best.
        """
        if self.begin is None or len(loss) <= STRIDE:
            return self
        scored = np.flatnonzero(~np.isnan(loss).all(axis=1))
        first, seen = self.begin.setting, np.full(loss.shape, np.nan)
        order = [first, *scored[scored > first], *scored[scored < first][::-1]]
        known = order[: order.index(setting)]
        seen[known] = loss[known]
        return self.after(seen)

    def guide_step(self, grid: Grid, rows: int) -> int:
        """One of so many rows is in the part that says where a search of a cell's grid begins; 0 where none does."""
        return guide_step(rows, grid.least_guide) if self.kind == "adaptive" else 0

    def expected(self, grid: Grid, rows: int) -> int:
        """Expected number of the settings of a grid that will be scored, in a cell of so many rows."""
        n = len(grid.settings)
        if self.kind == "full" or not grid.ordered or n <= STRIDE:
            return n
        return (1 if self.guide_step(grid, rows) else len(range(1, n, STRIDE))) + 2

    def next_costs(self, loss: NDArray[np.float64], tie: NDArray[np.float64]) -> range:
        """The costs of a setting to be scored next; none at the end.

        Equal losses are no reason to leave a setting: all begin flat. Nor are larger ones while ties still fall: the
        errors of models that are too smooth yet rise and fall by chance, but their hinge loss falls.

        Parameters
        ----------
        loss, tie : (costs,) float64, nan where unscored; what is scored are costs that follow each other. See
            Target.wrong for ties.
        """
        n, scored = len(loss), np.flatnonzero(~np.isnan(loss))
        if self.kind == "full":
            return range(0 if len(scored) else n)
        if not (loss[scored] + tie[scored]).all():  # one is perfect
            return range(0)
        if self.best is not None and not len(scored):
            return range(max(0, self.best.cost - 1), self.best.cost + 1)  # the valley goes down with the width
        if not len(scored):
            if not self._short:
                return range(min(n, FIRST_STRETCH))
            first = min(n // USUAL if self.begin is None else self.begin.cost, max(0, n - SHORT_STRETCH))
            return range(first, min(n, first + SHORT_STRETCH))
        first, last = int(scored[0]), int(scored[-1])
        best, firmest = (first + int(each[first : last + 1].argmin()) for each in (loss, tie))
        if self.best is not None and loss[best] > self.best.loss:
            falls = last > first and loss[last - 1] - loss[last] > 2.0 * (loss[last] - self.best.loss)
            return range(last + 1, min(n, last + 2)) if falls else range(0)  # half as much more would do
        smaller = range(first - 1, first) if first == best and first > 0 else range(0)
        if self.best is not None and smaller:  # where it is better, nothing larger is, which takes longer
            return smaller
        patience = SHORT_PATIENCE if self._short else PATIENCE
        rising = last - best >= patience and bool((loss[best + 1 : last + 1] > loss[best]).all())
        if last + 1 < n and not (rising and last - firmest >= patience):
            return range(last + 1, last + 2)
        return smaller


def usual(searches: Sequence[Search]) -> tuple[Usual, ...]:
    """Where searches of other cells may begin, for each choice; empty where a choice's parts all have no loss.

    It is the middle one of where these begin: a mean of them would have a cost that is not that of its setting.
    """
    found = []
    for of_choice in zip(*(search.parts or (search,) for search in searches), strict=True):
        begins = [search.begin for search in of_choice if search.begin is not None and search.begin.loss > 0.0]
        if not begins:
            return ()
        found.append(sorted(Usual(begin.value, begin.cost) for begin in begins)[len(begins) // 2])
    return tuple(found)


def beside(loss: NDArray[np.float64], setting: int) -> tuple[float, float]:
    """By what share the least losses of the settings below and above one, of losses (settings, costs), are above its.

    nan for one that was not scored, or is none.
    """
    least = np.fmin.reduce(loss, axis=1, initial=np.nan)
    around = np.concatenate([[np.nan], least, [np.nan]])[[setting, setting + 2]]
    below, above = (around / least[setting] - 1.0).tolist() if least[setting] > 0.0 else (np.nan, np.nan)
    return below, above


def _lowest(loss: NDArray[np.float64]) -> tuple[int, int]:
    """Indices of the setting and the cost of the smallest loss; of equal ones that of the smallest cost."""
    cost, setting = np.unravel_index(np.nanargmin(loss.T), loss.T.shape)
    return int(setting), int(cost)
