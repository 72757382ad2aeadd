"""The loss of a method that predicts classes or values: its name, its levels and its epsilon."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import TYPE_CHECKING

from localsvm.errors import OptionError
from localsvm.methods.base import Method
from localsvm.methods.grids import Grid, check_values
from localsvm.methods.option import epsilon_option, loss_option, quantile_option
from localsvm.naming import opt
from localsvm.targets.loss_names import (
    ABSOLUTE,
    EXPECTILE,
    HINGE,
    HUBER,
    LEAST_SQUARES,
    LEVELLED,
    LOSSES,
    QUANTILE,
    SQUARED_ERROR,
    SQUARED_HINGE,
    WITH_EPSILON,
)

if TYPE_CHECKING:
    from localsvm.solvers.row_losses import RowLoss
    from localsvm.targets.base import Target
    from localsvm.targets.losses import Loss

MOST_LEVELS = 64
EPSILON = 0.1  # in deviations of the values


@dataclass(frozen=True)
class ValueLosses(Method):
    """The options of the loss, to be inherited beside a method."""

    loss: str = loss_option(HINGE, SQUARED_HINGE, SQUARED_ERROR, *LOSSES, unsaid=True)
    quantile: tuple[float, ...] = quantile_option()
    epsilon: tuple[float, ...] = epsilon_option()

    def check_loss(self) -> None:
        """Raise OptionError unless levels and epsilons are sound, and of the loss."""
        if self.quantile and self.loss not in LEVELLED:
            raise OptionError(f"{opt.quantile} is for {opt.loss(QUANTILE)} and {opt.loss(EXPECTILE)}; give one of them")
        if not all(0.0 < level < 1.0 for level in self.quantile) or len(self.quantile) > MOST_LEVELS:
            raise OptionError(f"{opt.quantile} takes up to {MOST_LEVELS} numbers between 0 and 1")
        if self.epsilon and self.loss not in WITH_EPSILON:
            raise OptionError(
                f"{opt.epsilon} is for {', '.join(map(str, map(opt.loss, WITH_EPSILON)))}; give one of them"
            )
        if not all(0.0 <= value < math.inf for value in self.epsilon):
            raise OptionError(f"{opt.epsilon} takes finite numbers from 0")
        if self.loss == HUBER and 0.0 in self.epsilon:
            raise OptionError(f"{opt.loss(HUBER)} takes {opt.epsilon} above 0; {opt.loss(ABSOLUTE)} is near to it")

    @property
    def value_losses(self) -> tuple[Loss, ...]:
        """Losses of values: one, or one for each level; () for classes."""
        if self.loss not in LOSSES:
            return ()
        from localsvm.targets.losses import Loss

        if self.loss not in LEVELLED:
            return (Loss(self.loss),)
        return tuple(Loss(self.loss, level) for level in sorted(set(self.quantile)) or (0.5,))

    def losses_at(self, target: Target, setting: dict[str, float]) -> list[Loss]:
        """Loss of each problem at a setting, in units of the problems' values; of classes these are -1 and 1.

        An epsilon counts up to the range of the training values, beyond which no residual is.
        """
        from localsvm.targets.losses import Loss
        from localsvm.targets.regression import Regression

        if self.loss == SQUARED_ERROR:
            return [Loss(LEAST_SQUARES)] * target.n_problems
        assert isinstance(target, Regression), "the loss is one of values"
        most = target.training.high - target.training.low
        epsilon = min(most, setting.get("epsilon", *self.epsilons(target.unit)[:1]))
        return [replace(loss, epsilon=epsilon / target.unit) for loss in target.losses]

    def row_losses(self, target: Target, setting: dict[str, float]) -> Sequence[RowLoss]:
        """Loss of each problem, of classes or values, as the linear solvers have it."""
        from localsvm.solvers.row_losses import Hinge

        if self.loss not in LOSSES:
            return [Hinge(self.loss == SQUARED_HINGE)] * target.n_problems
        return [loss.residual for loss in self.losses_at(target, setting)]

    def epsilons(self, unit: float) -> tuple[float, ...]:
        """Values of the epsilon: those that the user gave, or a share of the unit of the values."""
        if self.loss not in WITH_EPSILON:
            return (0.0,)
        return check_values(self.epsilon) if self.epsilon else (EPSILON * unit,)

    def with_epsilons(self, grid: Grid) -> Grid:
        """A grid, with each epsilon for each of its settings where there are several."""
        if len(self.epsilon) < 2:
            return grid
        settings = tuple((*setting, epsilon) for setting, epsilon in product(grid.settings, check_values(self.epsilon)))
        return replace(grid, settings=settings, names=(*grid.names, "epsilon"))
