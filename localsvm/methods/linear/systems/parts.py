"""The rows that binary problems are about, and what methods make of each set of them without labels.

One against all others is about all rows, and all problems and folds share what is made of these. A pair of classes
(ava) is about few of them, and has its own: clusters of all rows would be spent on the other classes. Who is in a pair
is known by the labels, so while points of the grid are scored each fold has one without its held-out rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from localsvm.data.blocks.dataset import Examples, rows_of
from localsvm.methods.base import ALL, WHOLE
from localsvm.methods.cell import Cell, Job

Floats = NDArray[np.float64]
Taken: TypeAlias = NDArray[np.intp] | None  # (m,) numbers of rows; None for all


@dataclass(frozen=True)
class ProblemPart:
    """Some rows of a cell. Subclasses add what is made of them."""

    taken: Taken

    def of(self, values: Floats) -> Floats:
        """Values of the part, from (n,) values of all rows."""
        return values if self.taken is None else values[self.taken]

    def rows(self, X: Examples) -> Examples:
        """Rows of the part, from all rows X."""
        return X if self.taken is None else rows_of(X, self.taken)


AnyPart = TypeVar("AnyPart", bound=ProblemPart)


class CellParts(Generic[AnyPart]):
    """The parts of a cell, made when they are first asked for.

    Attributes
    ----------
    make : the part of some rows.
    paired : whether problems have parts of their own.
    """

    def __init__(self, cell: Cell, make: Callable[[Taken], AnyPart], paired: bool) -> None:
        self._cell, self._make, self.paired = cell, make, paired
        self._known: dict[tuple[int, int], AnyPart] = {}

    def of(self, jobs: Sequence[Job]) -> list[AnyPart]:
        """The part of each job: one for all of them; of pairs one for each pair without each fold."""
        return self._found([(job.fold, job.problem) if self.paired else (WHOLE, ALL) for job in jobs])

    @property
    def shared(self) -> AnyPart:
        """The part of all rows."""
        return self._found([(WHOLE, ALL)])[0]

    def _found(self, keys: Sequence[tuple[int, int]]) -> list[AnyPart]:
        missing = list(dict.fromkeys(key for key in keys if key not in self._known))
        parts = self._cell.threads.map(lambda i: self._make(self._taken(*missing[i])), len(missing))
        self._known |= dict(zip(missing, parts, strict=True))
        return [self._known[key] for key in keys]

    def _taken(self, fold: int, problem: int) -> Taken:
        """The rows of a pair outside a fold. Where there are none, any will do: the weights are 0 then."""
        if problem == ALL:
            return None
        outside = self._cell.folds != fold
        rows = np.flatnonzero(outside & (self._cell.Y[:, problem] != 0))
        return rows if len(rows) else np.arange(len(outside))
