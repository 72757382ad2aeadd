"""The options of kernel methods that predict values, too: the loss, its levels and its epsilon.

For each level: min_f 1/2 |f|^2 + C sum_i w_i L(y_i - c, f(x_i)) over the RKHS of the kernel, for the losses of
localsvm/targets/losses.py; c is the best constant. See localsvm/methods/kernel/systems/values.py.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, replace
from itertools import product
from typing import TYPE_CHECKING, ClassVar

from localsvm.errors import OptionError
from localsvm.methods.cell_size import CellSize
from localsvm.methods.grids import Grid, check_values
from localsvm.methods.kernel.method import WHOLE_ROWS, KernelMethod
from localsvm.methods.option import epsilon_option, loss_option, quantile_option
from localsvm.naming import opt
from localsvm.targets.loss_names import EXPECTILE, LEAST_SQUARES, LEVELLED, LOSSES, QUANTILE, WITH_EPSILON

if TYPE_CHECKING:
    from localsvm.targets.losses import Loss

MOST_LEVELS = 64
FURTHER = (4, 2)  # gammas, and costs, beyond those of classes
EPSILON = 0.1  # in deviations of the values


@dataclass(frozen=True)
class ValueOptions(KernelMethod):
    """The options of kernel SVMs, and of their losses of values."""

    takes_factors: ClassVar[bool] = True

    loss: str = loss_option("hinge", *LOSSES, unsaid=True)
    quantile: tuple[float, ...] = quantile_option()
    epsilon: tuple[float, ...] = epsilon_option()

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.quantile and self.loss not in LEVELLED:
            raise OptionError(f"{opt.quantile} is for {opt.loss(QUANTILE)} and {opt.loss(EXPECTILE)}; give one of them")
        if not all(0.0 < level < 1.0 for level in self.quantile) or len(self.quantile) > MOST_LEVELS:
            raise OptionError(f"{opt.quantile} takes up to {MOST_LEVELS} numbers between 0 and 1")
        if self.epsilon and self.loss not in WITH_EPSILON:
            raise OptionError(
                f"{opt.epsilon} is for {', '.join(map(str, map(opt.loss, WITH_EPSILON)))}; give one of them"
            )
        if not all(0.0 < value < math.inf for value in self.epsilon):
            raise OptionError(f"{opt.epsilon} takes finite numbers above 0")
        default = next(field.default for field in fields(self) if field.name == "offset")
        if self.loss in LOSSES and self.offset and not default:
            raise OptionError(
                f"{opt.offset(True)} is for classes: the models of values have a constant anyway; leave it out"
            )

    @property
    def value_losses(self) -> tuple[Loss, ...]:
        """Losses of values: one, or one for each level; () for classes."""
        if self.loss not in LOSSES:
            return ()
        from localsvm.targets.losses import Loss

        if self.loss not in LEVELLED:
            return (Loss(self.loss),)
        return tuple(Loss(self.loss, level) for level in sorted(set(self.quantile)) or (0.5,))

    @property
    def further(self) -> tuple[int, int]:
        """Some for values, which a learned metric may leave with little noise: narrower kernels and larger costs."""
        return FURTHER if self.loss in LOSSES else (0, 0)

    @property
    def whole_rows(self) -> int:
        """The most rows of a cell whose kernel is held whole; SMO of values takes no other."""
        return WHOLE_ROWS if self.loss in LOSSES else super().whole_rows

    @property
    def by_gradients(self) -> bool:
        """True for least squares."""
        return bool(self.loss == LEAST_SQUARES)

    def epsilons(self, deviation: float) -> tuple[float, ...]:
        """Values of the epsilon: those that the user gave, or a share of the deviation."""
        if self.loss not in WITH_EPSILON:
            return (0.0,)
        return check_values(self.epsilon) if self.epsilon else (EPSILON * deviation,)

    def with_epsilons(self, grid: Grid) -> Grid:
        """A grid, with each epsilon for each of its settings where there are several."""
        if len(self.epsilon) < 2:
            return grid
        settings = tuple((*setting, epsilon) for setting, epsilon in product(grid.settings, check_values(self.epsilon)))
        return replace(grid, settings=settings, names=(*grid.names, "epsilon"))

    def check(self, size: CellSize) -> None:
        """Refuse cells whose kernel matrix is not held for SMO."""
        super().check(size)
        if self.loss in LOSSES and self.loss != LEAST_SQUARES and size.rows > WHOLE_ROWS:
            raise OptionError(
                f"{opt.loss(self.loss)} takes cells of up to {WHOLE_ROWS:,} rows, and one has {size.rows:,}; give "
                f"{opt.partition('voronoi')} or a smaller {opt.cell_size}, or {opt.loss(LEAST_SQUARES)}"
            )
