"""Kernel SVM, of classes or of values: what each cell of a partition is given by default.

The problem is that of localsvm/methods/kernel/method.py; its default grid is that of Thomann et al. 2017.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from localsvm.methods.grids import Grid, check_values, default_lambdas
from localsvm.methods.kernel.value_options import ValueOptions

if TYPE_CHECKING:
    from localsvm.methods.cell import Cell


LARGE, SMALL = 10_000, 4000  # rows of a cell
CELL_WORK = 16 * 10**7  # rows of a cell, times all rows: what the time of training grows with
WIDE, WIDE_WORK = 256, 10**9  # with more columns, errors fall faster as cells grow
QUIET, QUIET_TIMES = 0.04, 2  # with fewer errors cells are larger, up to so many times, as few rows are support vectors


@dataclass(frozen=True)
class KernelSVM(ValueOptions):
    """Options of the method."""

    name: ClassVar[str] = "svm"
    tiny: ClassVar[str] = "-g 0.5,2 -C 1,10"
    default_metric: ClassVar[str] = "auto"  # see docs/geometry.md

    def default_cell_size(self, rows: int, columns: int = 1, error: float | None = None) -> int:
        """Cells of LARGE rows at most, and of fewer where there are many, but of SMALL at least.

        Larger cells make fewer errors, and take more time, but not so much where rows have little noise; see
        docs/cells.md.
        """
        work = CELL_WORK if columns <= WIDE else WIDE_WORK
        size = max(SMALL, work // max(1, rows))
        times = 1.0 if error is None else max(1.0, QUIET / max(error, QUIET / QUIET_TIMES))
        return min(LARGE, int(times * size))

    def grid(self, cell: Cell, average_rows: float, folds: int) -> Grid:
        """The user's values where given; else 10 widths and 10 lambdas after Thomann et al. (see methods.grids)."""
        import numpy as np

        train = 1.0 - 1.0 / max(2, folds)
        settings = tuple((gamma,) for gamma in self.gammas(np.floor(average_rows * train), cell.X))
        if self.cost:
            return self.with_epsilons(Grid(settings, ("gamma",), costs=check_values(self.cost)))
        lambdas = default_lambdas(np.floor(cell.rows * train), further=self.further[1])
        return self.with_epsilons(Grid(settings, ("gamma",), lambdas=lambdas, of_problem=True))
