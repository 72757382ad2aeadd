"""The options of kernel methods that predict values, too: the loss, its levels and its epsilon.

For each level: min_f 1/2 |f|^2 + C sum_i w_i L(y_i - c, f(x_i)) over the RKHS of the kernel, for the losses of
localsvm/targets/losses.py; c is the best constant. See localsvm/methods/kernel/systems/values.py.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import ClassVar

from localsvm.errors import OptionError
from localsvm.methods.cell_size import CellSize
from localsvm.methods.grids import Grid, guide_step
from localsvm.methods.kernel.method import WHOLE_ROWS, KernelMethod
from localsvm.methods.value_losses import ValueLosses
from localsvm.naming import opt
from localsvm.targets.loss_names import LEAST_SQUARES, LOSSES

FURTHER = (4, 2)  # gammas, and costs, beyond those of classes


@dataclass(frozen=True)
class ValueOptions(ValueLosses, KernelMethod):
    """The options of kernel SVMs, and of their losses of values."""

    takes_factors: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        self.check_loss()
        default = next(field.default for field in fields(self) if field.name == "offset")
        if self.loss in LOSSES and self.offset and not default:
            raise OptionError(
                f"{opt.offset(True)} is for classes: the models of values have a constant anyway; leave it out"
            )

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

    def with_epsilons(self, grid: Grid) -> Grid:
        """A grid with each epsilon; of values, a part of the rows guides its search where its settings are ordered."""
        grid = super().with_epsilons(grid)
        return replace(grid, guided=bool(self.value_losses) and grid.ordered)

    def memory(self, size: CellSize) -> int:
        """Bytes of the kernel and what is made of it, and for values those of the rows that guide the search."""
        step = guide_step(size.rows) if self.value_losses else 0
        return super().memory(size) + (super().memory(replace(size, rows=-(-size.rows // step))) if step else 0)

    def check(self, size: CellSize) -> None:
        """Refuse cells whose kernel matrix is not held for SMO."""
        super().check(size)
        if self.loss in LOSSES and self.loss != LEAST_SQUARES and size.rows > WHOLE_ROWS:
            raise OptionError(
                f"{opt.loss(self.loss)} takes cells of up to {WHOLE_ROWS:,} rows, and one has {size.rows:,}; give "
                f"{opt.partition('voronoi')} or a smaller {opt.cell_size}, or {opt.loss(LEAST_SQUARES)}"
            )
