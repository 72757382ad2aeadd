"""LaSVM: the kernel SVM with an offset, by an online solver (Bordes, Ertekin, Weston, Bottou, JMLR 6, 2005).

For each binary problem: min 1/2 |f|^2 + C sum_i max(0, 1 - y_i (f(x_i) + b)) over the RKHS of the kernel, as `rbf`. The
rows are learned one by one in random order, --epochs times, and a finishing step takes the solution to the tolerance
-e. It is the same solution as that of `rbf`; the method is for comparisons. The kernel matrix is held whole.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from localsvm.errors import OptionError
from localsvm.methods.kernel.rbf import GlobalKernel
from localsvm.methods.option import option
from localsvm.naming import opt


@dataclass(frozen=True)
class LaSVM(GlobalKernel):
    """Options of the method."""

    name: ClassVar[str] = "lasvm"
    by_blocks: ClassVar[bool] = False

    epochs: int = option(
        1,
        "--epochs",
        help="How often lasvm goes through the rows before its finishing step, or mllkm with "
        f"{opt.solver('sdca')} for each inner solution.",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.offset:
            raise OptionError(
                f"{opt.method('lasvm')} has an offset; without one there is {opt.method('rbf')} {opt.offset(False)}"
            )
        if not 1 <= self.epochs < 1 << 31:
            raise OptionError(f"{opt.epochs} must be a whole number from 1, not {self.epochs}")

    @property
    def online_epochs(self) -> int:
        """Epochs that the option asks for."""
        return self.epochs
