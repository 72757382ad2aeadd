"""The global Gaussian SVM that local methods are measured by: LIBSVM's problem on all rows, with its offset.

For each binary problem: min 1/2 |f|^2 + C sum_i max(0, 1 - y_i (f(x_i) + b)) over the RKHS of exp(-gamma |x - y|^2).
It is `svm` with --offset and the grid of the L3-SVM paper; one point of it (-g, -C) is what large sets have time for.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from localsvm.methods.grids import Grid, check_values
from localsvm.methods.kernel.method import KernelMethod
from localsvm.methods.kernel.value_options import ValueOptions
from localsvm.methods.option import option, trend_option

if TYPE_CHECKING:
    from localsvm.methods.cell import Cell


GRID = tuple(10.0**k for k in range(-3, 3))  # of both gamma and C


@dataclass(frozen=True)
class GlobalKernel(KernelMethod):
    """What the kernel SVMs of all rows share: the offset, and the grid of the paper."""

    tiny: ClassVar[str] = "-g 0.5,2 -C 1,10"
    divides: ClassVar[bool] = False

    offset: bool = option(
        True, "--offset/--no-offset", help="Add a free offset b to the decision function, as LIBSVM does."
    )

    def default_select(self, n_classes: int) -> str:
        """Choice of one model on all rows, as LIBSVM has it."""
        return "refit"

    def grid(self, cell: Cell, average_rows: float, folds: int) -> Grid:
        """The user's values where given; else those of the paper."""
        gammas = check_values(self.gamma or GRID)
        return Grid(tuple((gamma,) for gamma in gammas), ("gamma",), costs=check_values(self.cost or GRID))


@dataclass(frozen=True)
class GlobalSVM(GlobalKernel, ValueOptions):
    """Options of the method."""

    name: ClassVar[str] = "rbf"

    trend: str = trend_option("constant", "linear")

    def grid(self, cell: Cell, average_rows: float, folds: int) -> Grid:
        """The grid, with each epsilon."""
        return self.with_epsilons(super().grid(cell, average_rows, folds))
