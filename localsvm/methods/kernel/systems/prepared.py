"""The kernel of a cell, whole or block by block, for any gamma."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from localsvm.kernels import Kernel
from localsvm.kernels.blocks import BlockGram, KernelRows
from localsvm.kernels.gram import Gram
from localsvm.kernels.scratch import Scratch
from localsvm.methods.base import Prepared, Purpose, System
from localsvm.methods.cell import Cell
from localsvm.methods.kernel.method import KernelMethod
from localsvm.methods.kernel.systems.binary_rows import BinaryRows
from localsvm.methods.kernel.systems.by_loss import ByLossSystem
from localsvm.methods.kernel.systems.duals import DualSystem
from localsvm.methods.kernel.systems.kernel import KernelSystem
from localsvm.methods.kernel.systems.squares import SquaresSystem
from localsvm.methods.kernel.systems.trend import Trend
from localsvm.methods.kernel.systems.values import LinearRows, ResidualsByJob
from localsvm.methods.kernel.value_options import ValueOptions

# where the solution of a single point has few support vectors, blocks need few kernel values: below this share in a
# solution on every eighth row up to 4 times faster, above .3 slower (skin_nonskin, ijcnn1, cod-rna, covtype)
PILOT_SHARE = 0.2
PILOT_ROWS = 2_000
PILOT_STEP = 8
PILOT_TOLERANCE = 0.1


class PreparedKernel(Prepared):
    """The rows of a cell, ready for any gamma; several: whether more than one will be asked for."""

    def __init__(self, method: KernelMethod, cell: Cell, scratch: Scratch, several: bool) -> None:
        self.method, self.cell, self._scratch, self._several = method, cell, scratch, several
        self._gram: Gram | BlockGram | None = None
        self._known: dict[tuple[int, bool], BinaryRows] = {}
        self._residuals: ResidualsByJob = {}
        self._last: tuple[Kernel, bool, NDArray[Any] | KernelRows] | None = None

    def at(self, setting: dict[str, float], purpose: Purpose) -> System:
        """The kernel of the cell's rows, whole or to be computed block by block."""
        method, cell, kernel = self.method, self.cell, self.method.kernel_of(setting["gamma"])
        K: NDArray[Any] | KernelRows
        if isinstance(method, ValueOptions) and method.learns_values:
            exact = method.is_double(purpose.cost * float(cell.weight.max())) and not method.by_gradients
            K = self._matrix(kernel, exact)
            losses, trends = method.losses_at(cell.target, setting), self._trends if method.sloped else ()
            given = cell, K, kernel, method.tolerance, losses, trends, self._residuals, self._linear
            return ByLossSystem(SquaresSystem(*given), DualSystem(*given))
        double = method.is_double(purpose.cost * float(cell.weight.max()))
        if purpose.single and self._few_support_vectors(kernel, purpose.cost):
            K = BlockGram(cell.X, cell.threads, cell.scratch).matrix(kernel, double)
        else:
            K = self._matrix(kernel, double)
        return KernelSystem(cell, K, kernel, method.offset, method.tolerance, self._known, method.online_epochs)

    def _matrix(self, kernel: Kernel, double: bool) -> NDArray[Any] | KernelRows:
        """The kernel of all rows: the last one again if it is asked for, as by the next choice at a setting."""
        if self._last is None or self._last[:2] != (kernel, double):
            self._last = None  # it is overwritten
            self._last = kernel, double, self._whole().matrix(kernel, double)
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

    def _few_support_vectors(self, kernel: Kernel, cost: float) -> bool:
        """True where the solution on a part of the rows has few support vectors.

        It is False for several problems, which share the whole matrix.
        """
        cell, method = self.cell, self.method
        if not method.by_blocks or cell.target.n_problems > 1 or not PILOT_ROWS <= len(cell.y) <= method.whole_rows:
            return False
        part = cell.part(np.arange(0, len(cell.y), PILOT_STEP))
        K = Gram(part.X, part.scratch, several=False).matrix(kernel, False)
        pilot = KernelSystem(part, K, kernel, method.offset, PILOT_TOLERANCE)
        return pilot.support_share(cost) < PILOT_SHARE
