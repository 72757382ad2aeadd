"""The size of a cell, for what a method needs of memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from localsvm.methods.base import Method


@dataclass(frozen=True)
class CellSize:
    """Numbers that the memory of a worker depends on.

    Attributes
    ----------
    rows, features : of the largest cell; the most in which any cell can have a value.
    weight : the largest factor on the cost of a row.
    solutions : folds times the problems that a row takes part in.
    folds, problems : of the run.
    part : rows of the largest problem that leaves rows out, 0 where none does.
    columns, width : of a row, whether a value occurs in them or not; None for `features`.
    entries, stored : the most values other than 0 in any cell; None for a value in each place.
    dense, few : whether the rows are stored so; whether their products are taken entry by entry, without dense copies.
    """

    rows: int
    features: int
    weight: float
    solutions: int
    part: int
    folds: int = 5
    problems: int = 1
    columns: int | None = None
    entries: int | None = None
    dense: bool = True
    few: bool = False

    width = property(lambda self: self.features if self.columns is None else self.columns)
    stored = property(lambda self: self.rows * self.features if self.entries is None else self.entries)

    def held_out_bytes(self, method: Method) -> int:
        """Bytes of selection itself: encoded labels, and held-out values of some costs and of the best point."""
        return 8 * self.rows * self.problems * (min(method.costs_at_once, 16) + 3)
