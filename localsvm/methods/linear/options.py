"""The options that methods made of linear models have, and the grid that these span."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from itertools import product
from typing import TYPE_CHECKING, ClassVar

from localsvm.errors import OptionError
from localsvm.methods.base import Method
from localsvm.methods.grids import LARGEST_COST, Grid, Values, check_values
from localsvm.methods.option import MOST_STORED, are_whole, cost_option, option, solver_option, tolerance_option
from localsvm.naming import opt

if TYPE_CHECKING:
    from localsvm.methods.cell import Cell


SMALLEST_TOLERANCE = 1e-12
ONCE_REMEDY = f"leave {opt.online} out, or loosen the tolerance ({opt.tolerance})"  # where each kernel is seen once
COSTS: Values = tuple(10.0**k for k in range(-3, 3))  # the grid of the L3-SVM paper


@dataclass(frozen=True)
class CostOptions(Method):
    """The options of the cost, and of when solvers stop."""

    divides: ClassVar[bool] = False
    gap_unit: ClassVar[str] = "of the objective"

    cost: tuple[float, ...] = cost_option()
    tolerance: float = tolerance_option(1e-3)

    def __post_init__(self) -> None:
        self.check_choices()
        if not all(1e-300 <= value <= LARGEST_COST for value in self.cost):  # 1 / C is finite
            raise OptionError(f"{opt.cost} takes positive numbers, from 1e-300 to {LARGEST_COST:g}")
        if not SMALLEST_TOLERANCE <= self.tolerance < math.inf:
            least = f"a number from {SMALLEST_TOLERANCE:g}, as float64 holds no finer ones apart"
            raise OptionError(f"{opt.tolerance} must be {least}, not {self.tolerance:g}; try {opt.tolerance(0.001)}")

    @property
    def default_costs(self) -> Values:
        """The costs to choose from where the user names none."""
        return COSTS

    def default_select(self, n_classes: int) -> str:
        """Choice of one model on all rows, as the papers have it."""
        return "refit"

    def axes(self, features: int) -> dict[str, Values]:
        """The method's parameters beside the cost, each with the values to choose from."""
        return {}

    def grid(self, cell: Cell, average_rows: float, folds: int) -> Grid:
        """All combinations of `axes`, and the default costs unless the user names others."""
        return self.grid_for(cell.X.shape[1])

    def grid_for(self, features: int) -> Grid:
        """The grid for rows of so many features."""
        axes = self.axes(features)
        costs = check_values(self.cost or self.default_costs)
        return Grid(tuple(product(*axes.values())), tuple(axes), costs=costs)


@dataclass(frozen=True)
class MeanLoss(CostOptions):
    """The options of the cost, and the choice of a mean loss."""

    mean_loss: bool = option(
        False,
        "--mean-loss/--sum-loss",
        help="Divide the cost of a linear method by the number m of rows that it is trained on, C = c/m.",
    )

    def grid_for(self, features: int) -> Grid:
        """The grid for rows of so many features; a mean loss with the factor c is lambda = 1 / 2c."""
        grid = super().grid_for(features)
        if not self.mean_loss:
            return grid
        return replace(grid, costs=(), lambdas=tuple(1.0 / (2.0 * c) for c in grid.costs))


@dataclass(frozen=True)
class LinearOptions(MeanLoss):
    """The options of cost and mean loss, and the choice of a solver."""

    solver: str = solver_option("auto", "sdca", "primal", "sag", "sgd")
    passes: int = option(20, "--passes", help=f"Passes that {opt.solver('sgd')} makes over the rows.")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.passes < 1:
            raise OptionError(f"{opt.passes} must be a whole number from 1, not {self.passes}")


def check_neighbours(neighbours: Values) -> None:
    """Raise OptionError unless they are whole numbers from 1 that a model file can hold."""
    if not neighbours or not are_whole(neighbours, MOST_STORED):
        raise OptionError(f"{opt.neighbours} takes whole numbers from 1")


def most_first(values: Values) -> Values:
    """Values of an axis of which large ones are the smoothest, smoothest first."""
    return tuple(sorted(values, reverse=True))
