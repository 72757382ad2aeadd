"""Novelty detection by a kernel SVM of rows of one kind: which new rows are like them, and which are novel.

On n rows: min 1/2 |f|^2 + C sum_i w_i max(0, 1 - f(x_i)) over the RKHS of the kernel, the hinge loss with all labels 1.
Its solution, divided by the sum of its coefficients, is that of the one-class SVM (Schoelkopf, Platt, Shawe-Taylor,
Smola and Williamson 2001) whose nu is this sum over C n: a small C gives a kernel density, a large one the outline of
all rows. Here gamma and C are chosen by held-out rows, and so is the threshold up to which a row is novel: nu is the
share of new rows that is called novel by mistake (localsvm/targets/novelty.py).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from localsvm.errors import OptionError
from localsvm.methods.base import Prepared, View
from localsvm.methods.cell_size import CellSize
from localsvm.methods.grids import Grid, check_values
from localsvm.methods.kernel.method import KernelMethod
from localsvm.methods.option import option
from localsvm.naming import opt

if TYPE_CHECKING:
    from localsvm.methods.cell import Cell

COSTS = 8  # from C = 1 / n, where most coefficients are at their bound, to 1, which no coefficient exceeds


@dataclass(frozen=True)
class OneClassSVM(KernelMethod):
    """Options of the method."""

    name: ClassVar[str] = "one-class"
    tiny: ClassVar[str] = "-g 0.5,2 -C 0.1,1"

    nu: float = option(
        0.05,
        "--nu",
        help="Share of new rows of the training rows' kind that one-class may call novel: LIBSVM's -n, kept on rows "
        "that were held out.",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0.0 < self.nu < 1.0:
            raise OptionError(f"{opt.nu} must be a number between 0 and 1, as 0.05, not {self.nu:g}")
        if self.offset:
            raise OptionError(
                f"{opt.offset(True)} is for classes: one-class has a threshold in its place; leave it out"
            )

    @property
    def novel_share(self) -> float | None:
        """The share that was asked for; see `Method`."""
        return self.nu

    def default_select(self, n_classes: int) -> str:
        """Choice of the fold models, as the threshold is one of their values."""
        return "vote"

    def grid(self, cell: Cell, average_rows: float, folds: int) -> Grid:
        """The user's values where given; else the default widths (see methods.grids), and COSTS values of C."""
        import numpy as np

        train = 1.0 - 1.0 / max(2, folds)
        settings = tuple((gamma,) for gamma in self.gammas(np.floor(average_rows * train), cell.X))
        if self.cost:
            return Grid(settings, ("gamma",), costs=check_values(self.cost))
        rows = max(2.0, np.floor(cell.rows * train))
        lambdas = tuple(np.geomspace(0.5, 0.5 / rows, COSTS).tolist())
        return Grid(settings, ("gamma",), lambdas=lambdas, of_problem=True)

    def memory(self, size: CellSize) -> int:
        """Bytes that the base says, and those of the rows that are made up."""
        return super().memory(size) + int((4 if size.dense else 12) * size.stored)

    def prepare(self, cell: Cell, view: View) -> Prepared:
        """The distances of the cell's rows, and the rows that are made up."""
        from localsvm.methods.kernel.systems.one_class import PreparedOneClass

        return PreparedOneClass(self, cell, view.scratch, several=view.settings > 1)
