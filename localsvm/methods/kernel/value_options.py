"""The options of kernel methods that predict values, too: the loss, its levels and its epsilon.

For each level: min_f 1/2 |f|^2 + C sum_i w_i L(y_i - c - b . x_i, f(x_i)) over the RKHS of the kernel, for the losses
of localsvm/targets/losses.py; b is the slope of the trend, c the best constant. See
localsvm/methods/kernel/systems/values.py.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import ClassVar, Self

from localsvm.errors import OptionError
from localsvm.methods.cell_size import CellSize
from localsvm.methods.grids import Grid, guide_step
from localsvm.methods.kernel.method import WHOLE_ROWS, KernelMethod
from localsvm.methods.option import trend_option
from localsvm.methods.value_losses import ValueLosses
from localsvm.naming import opt
from localsvm.targets.loss_names import HINGE, LEAST_SQUARES, LOSSES, SQUARED_ERROR, SQUARED_HINGE

FURTHER = (4, 2)  # gammas, and costs, beyond those of classes
VALUES_GUIDE, CLASSES_GUIDE = 250, 500  # rows of a part that guides a search
AUTO, LINEAR, CONSTANT = "auto", "linear", "constant"  # trends
MOST_COLUMNS = 256  # with more, auto leaves the trend out: it would take much of the time of training


@dataclass(frozen=True)
class ValueOptions(ValueLosses, KernelMethod):
    """The options of kernel SVMs, and of their losses of values."""

    takes_factors: ClassVar[bool] = True

    trend: str = trend_option(AUTO, LINEAR, CONSTANT)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.check_loss()
        if self.trend == LINEAR and not self.learns_values:
            raise OptionError(
                f"{opt.trend(LINEAR)} is for losses of values, as {opt.loss(LEAST_SQUARES)}, and for "
                f"{opt.loss(SQUARED_ERROR)}; give one of them, or leave it out"
            )
        default = next(field.default for field in fields(self) if field.name == "offset")
        if self.loss != HINGE and self.offset and not default:
            raise OptionError(f"{opt.offset(True)} is for classes by {opt.loss(HINGE)} alone; leave it out")

    def seeing(self, columns: int) -> Self:
        """The method with the trend settled: linear, unless rows are wide; see `Method`."""
        if self.trend != AUTO or not self.learns_values:
            return self
        return replace(self, trend=LINEAR if columns <= MOST_COLUMNS else CONSTANT)

    def default_select(self, n_classes: int) -> str:
        """One model where squares are minimised: the mean of the fold models makes no fewer errors."""
        return "refit" if self.loss == SQUARED_ERROR else super().default_select(n_classes)

    @property
    def learns_values(self) -> bool:
        """True for losses of values, and for squares of classes."""
        return self.loss in LOSSES or self.loss == SQUARED_ERROR

    @property
    def squares_slack(self) -> bool:
        """True for the squared hinge."""
        return self.loss == SQUARED_HINGE

    @property
    def sloped(self) -> bool:
        """True where there is a linear trend; `seeing` has settled it."""
        return self.trend == LINEAR

    @property
    def further(self) -> tuple[int, int]:
        """Some for values, which a learned metric may leave with little noise: narrower kernels and larger costs."""
        return FURTHER if self.learns_values else (0, 0)

    @property
    def least_guide(self) -> int:
        """The least rows of a part that guides the search of a cell, 0 for none.

        Shares of wrong rows need more than losses. For one point of values it says how fast their losses fall.
        """
        if self.learns_values:
            return VALUES_GUIDE
        return 0 if self.is_point() else CLASSES_GUIDE

    @property
    def whole_rows(self) -> int:
        """The most rows of a cell whose kernel is held whole; SMO takes no other but for the hinge."""
        return super().whole_rows if self.loss == HINGE else WHOLE_ROWS

    @property
    def by_gradients(self) -> bool:
        """True for least squares."""
        return self.loss in (LEAST_SQUARES, SQUARED_ERROR)

    def is_point(self) -> bool:
        """Whether gamma, the cost and epsilon have one value each."""
        return len(self.gamma) == 1 == len(self.cost) and len(self.epsilon) <= 1

    def with_epsilons(self, grid: Grid) -> Grid:
        """A grid with each epsilon; a part of the rows guides its search where its settings are ordered."""
        grid = super().with_epsilons(grid)
        return replace(grid, least_guide=self.least_guide if grid.ordered else 0)

    def memory(self, size: CellSize) -> int:
        """Bytes of the kernel and what is made of it, and those of the rows that guide the search."""
        from localsvm.methods.kernel.systems.trend import trend_bytes

        step = guide_step(size.rows, self.least_guide)
        some = replace(size, rows=-(-size.rows // step), part=-(-size.part // step)) if step else size
        part = super().memory(some) if step else 0
        trends = size.problems if self.loss == SQUARED_ERROR else 1
        trend = trends * trend_bytes(size.rows, size.width, size.folds) * (1 + bool(step)) if self.sloped else 0
        linear = 4 * size.rows * (size.width + 1) if self.learns_values and self.kernel == "linear" else 0
        return super().memory(size) + part + trend + linear

    def check(self, size: CellSize) -> None:
        """Refuse cells whose kernel matrix is not held for SMO, as it is for all losses but the hinge and squares."""
        super().check(size)
        if self.loss in (HINGE, SQUARED_ERROR) or size.rows <= WHOLE_ROWS:
            return
        if self.loss != LEAST_SQUARES:
            given, other = str(opt.loss(self.loss)), str(opt.loss(LEAST_SQUARES if self.loss in LOSSES else HINGE))
        elif size.problems > 1:
            given, other = str(opt.coverage), f"no {opt.coverage}"
        else:
            return
        raise OptionError(
            f"{given} takes cells of up to {WHOLE_ROWS:,} rows, and one has {size.rows:,}; give "
            f"{opt.partition('voronoi')} or a smaller {opt.cell_size}, or {other}"
        )
