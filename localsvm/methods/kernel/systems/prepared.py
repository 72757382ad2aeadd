"""The kernel of a cell, whole or block by block, for any gamma."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

from numpy.typing import NDArray

from localsvm.kernels import Kernel
from localsvm.kernels._kernels import RowsOnDemand
from localsvm.kernels.blocks import BlockGram, KernelRows
from localsvm.kernels.gram import Gram
from localsvm.kernels.scratch import Scratch
from localsvm.methods.base import Prepared, Purpose, System
from localsvm.methods.cell import Cell
from localsvm.methods.kernel.method import KernelMethod
from localsvm.methods.kernel.systems.binary_rows import BinaryRows
from localsvm.methods.kernel.systems.by_loss import ByLossSystem
from localsvm.methods.kernel.systems.duals import DualSystem
from localsvm.methods.kernel.systems.kernel import KernelSystem, Matrix
from localsvm.methods.kernel.systems.squares import SquaresSystem
from localsvm.methods.kernel.systems.trend import Trend
from localsvm.methods.kernel.systems.values import LinearRows, ResidualsByJob
from localsvm.methods.kernel.value_options import ValueOptions
from localsvm.solvers.boxes import HINGE, SQUARED_HINGE


class PreparedKernel(Prepared):
    """The rows of a cell, ready for any gamma; several: whether more than one will be asked for."""

    def __init__(self, method: KernelMethod, cell: Cell, scratch: Scratch, several: bool) -> None:
        self.method, self.cell, self._scratch, self._several = method, cell, scratch, several
        self._gram: Gram | BlockGram | None = None
        self._known: dict[tuple[int, bool], BinaryRows] = {}
        self._residuals: ResidualsByJob = {}
        self._last: tuple[Kernel, bool, Matrix] | None = None

    def at(self, setting: dict[str, float], purpose: Purpose) -> System:
        """The kernel of the cell's rows, whole or to be computed block by block."""
        method, cell, kernel = self.method, self.cell, self.method.kernel_of(setting["gamma"])
        if isinstance(method, ValueOptions) and method.learns_values:
            exact = method.is_double(purpose.cost * float(cell.weight.max())) and not method.by_gradients
            K, losses = self._matrix(kernel, exact), method.losses_at(cell.target, setting)
            trends = self._trends if method.sloped else ()
            given = cell, K, kernel, method.tolerance, losses, trends, self._residuals, self._linear
            return ByLossSystem(SquaresSystem(*given), DualSystem(*given))
        double = method.is_double(purpose.cost * float(cell.weight.max()))
        demanded = self._matrix(kernel, True) if double else self._on_demand(kernel)
        loss, offset = (SQUARED_HINGE, False) if method.squares_slack else (HINGE, method.offset)
        return KernelSystem(cell, demanded, kernel, offset, method.tolerance, self._known, method.online_epochs, loss)

    def _matrix(self, kernel: Kernel, double: bool) -> NDArray[Any] | KernelRows:
        """The kernel of all rows."""
        K = self._kept(kernel, double, lambda: self._whole().matrix(kernel, double))
        return K.whole() if isinstance(K, RowsOnDemand) else K

    def _on_demand(self, kernel: Kernel) -> Matrix:
        """The kernel of all rows in float32, of which those that no solver reads may never be computed."""
        gram = self._whole()
        find = gram.on_demand if isinstance(gram, Gram) else gram.matrix
        return self._kept(kernel, False, lambda: find(kernel))

    def _kept(self, kernel: Kernel, double: bool, find: Callable[[], Matrix]) -> Matrix:
        """What is found: the last one again if it is asked for, as by the next choice at a setting."""
        if self._last is None or self._last[:2] != (kernel, double):
            self._last = None  # it is overwritten
            self._last = kernel, double, find()
        return self._last[2]

    @cached_property
    def _trends(self) -> list[Trend]:
        """The trend of each problem, the same for all settings. Values of all problems are the same, and have one."""
        assert isinstance(self.method, ValueOptions)
        problems = self.cell.target.n_problems
        if losses := self.method.value_losses:
            return [Trend(self.cell, 0, losses[0].robust)] * problems
        return [Trend(self.cell, problem) for problem in range(problems)]

    @cached_property
    def _linear(self) -> LinearRows | None:
        """Rows whose products are the linear kernel of values; None for other kernels and for the hinge loss."""
        linear = self.method.learns_values and self.method.kernel == "linear"
        return LinearRows.of(self.cell.X, self.method.sloped) if linear else None

    def _whole(self) -> Gram | BlockGram:
        """Distances once for all settings, or nothing where the rows are too many."""
        if self._gram is None:
            cell, X = self.cell, self.cell.X if self._linear is None else self._linear.X
            if self.method.by_blocks and len(cell.y) > self.method.whole_rows:
                self._gram = BlockGram(X, cell.threads, cell.scratch)
            else:
                self._gram = Gram(X, self._scratch, self._several)
        return self._gram
