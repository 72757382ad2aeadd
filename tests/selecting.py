"""Selection by hand, for the tests of methods."""

from __future__ import annotations

from collections.abc import Sequence

from localsvm.methods.base import Fitted, Method
from localsvm.methods.cell import Cell
from localsvm.methods.grids import Grid
from localsvm.selection.cross_validation import CellSelection, Scores
from localsvm.selection.search import Search


def score(
    method: Method, cell: Cell, grid: Grid, settings: Sequence[int] | None = None, search: str = "full"
) -> Scores:
    """Cross-validate some settings of a grid, by default all, each along the costs until the search ends it."""
    chosen = range(len(grid.settings)) if settings is None else settings
    return CellSelection(method, cell, grid).score(chosen, Search(search))


def fit(method: Method, cell: Cell, grid: Grid, scores: Scores | None, select: str) -> Fitted:
    """The model of the best point, in another process, as it were: nothing prepared is shared."""
    return CellSelection(method, cell, grid).fit(scores, select)
