"""Multiple kernel learning: a kernel SVM whose kernel is a mixture, learned from a bank (SimpleMKL, SequentialMKL).

For each binary problem: min 1/2 (sum_m |f_m|)^2 + C sum_i max(0, 1 - y_i sum_m f_m(x_i)), f_m in the RKHS of kernel m.
The norms |f_m| are the weights of the kernels, of which few are above 0. The bank has Gaussians and polynomials of all
variables, and of each (localsvm/kernels/bank.py). There is no offset. See localsvm/solvers/mkl.py for both solvers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from localsvm.errors import OptionError
from localsvm.kernels import Kernel
from localsvm.methods.base import Fit, Fitted, Predictor, Prepared, State, View
from localsvm.methods.cell_size import CellSize
from localsvm.methods.linear.options import ONCE_REMEDY, CostOptions
from localsvm.methods.option import option, tolerance_option
from localsvm.methods.saved import table
from localsvm.naming import opt
from localsvm.store.pieces import Piece, Pieces, floats64, index, pointer

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from localsvm.methods.cell import Cell
    from localsvm.targets.base import Target

    Floats = NDArray[np.float64]


DEGREES = (1, 2, 3)
MOST_KERNELS = 20_000
SQUARES = 8  # matrices of a solve, and of the kernel that is being made, beside those that are kept


@dataclass(frozen=True)
class MultipleKernelSVM(CostOptions):
    """Options of the method."""

    name: ClassVar[str] = "mkl"
    tiny: ClassVar[str] = "--widths 0.5,2 -C 0.1,1"

    tolerance: float = tolerance_option(1e-2)
    mkl: str = option(
        "sequential",
        "--mkl",
        help="How mkl looks for kernels. sequential: from few kernels to more; simple: among all at once.",
        choices=("sequential", "simple"),
    )
    bank: str = option(
        "each",
        "--bank",
        help="Kernels that mkl chooses from. each: kernels of all features together and of each feature; whole: of all "
        "features together only.",
        choices=("each", "whole"),
    )
    online: str = option(
        "none",
        "--online",
        help="What the training looks at only once, in random order. none: nothing; kernels: each kernel; full: each "
        "kernel and each row, so that the rows need not fit in memory.",
        choices=("none", "kernels"),
        later=True,
    )
    widths: tuple[float, ...] = option(
        (0.5, 1.0, 2.0, 5.0, 7.0, 10.0, 12.0, 15.0, 17.0, 20.0),
        "--widths",
        help="Widths w of the Gaussian kernels exp(-|x-y|^2 / 2w^2) that mkl chooses from.",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if not all(1e-100 <= width <= 1e100 for width in self.widths):
            raise OptionError(f"{opt.widths} takes positive numbers, from 1e-100 to 1e100")
        if self.online != "none" and self.mkl != "sequential":
            raise OptionError(f"{opt.mkl('simple')} begins with all kernels; leave {opt.online} or {opt.mkl} out")

    @property
    def remedy(self) -> str:
        """Advice to the user; a single pass over the kernels cannot go on."""
        return super().remedy if self.online == "none" else ONCE_REMEDY

    @property
    def kinds(self) -> tuple[Kernel, ...]:
        """The kernels that are taken of all variables, and of each: Gaussians, and polynomials (x.y + 1)^p."""
        gaussians = tuple(Kernel("gaussian", 0.5 / width**2) for width in self.widths)
        return (*gaussians, *(Kernel("polynomial", 1.0, 1.0, degree) for degree in DEGREES))

    def prepare(self, cell: Cell, view: View) -> Prepared:
        """The bank: all folds, problems and costs share it."""
        from localsvm.methods.kernel.systems.mkl import PreparedBank

        return PreparedBank(self, cell)

    def pack(self, cell: Cell, fits: Sequence[Fit]) -> Fitted:
        """The union of the support vectors, and the models' coefficients and kernels."""
        from localsvm.methods.kernel.systems.expansion import pack_models, report_of
        from localsvm.methods.kernel.systems.mkl import kernel_model, mixed_kernels

        models = [kernel_model(fit) for fit in fits]
        state = pack_models(cell.X, cell.Y, models)
        del state["model_gamma"]
        return Fitted(state | mixed_kernels(fits), report_of(models, cell))

    def predictor(self, state: State, target: Target, n_features: int) -> Predictor:
        """Decision functions of a saved cell."""
        from localsvm.methods.kernel.systems.bank import BankPredictor

        return BankPredictor(state, self.kinds, target, n_features)

    def pieces(self, target: Target, dense: bool) -> Pieces:
        """Support vectors, a table of models, their coefficients, and their kernels with weights and divisors."""
        import numpy as np

        from localsvm.methods.kernel.systems.expansion import rows_pieces

        return {
            **rows_pieces(dense),
            **table("problem", "fold", "cost", "gap", "bias", "iterations", "converged"),
            "coef_ptr": pointer("m", ends="k"),
            "coef_index": index("k", below="s"),
            "coef": floats64("k"),
            "kernel_ptr": pointer("m", ends="q"),
            "kernel_variable": index("q", below="features", low=-1),
            "kernel_kind": Piece("i4", ("q",), low=0, high=len(self.kinds) - 1),
            "kernel_weight": floats64("q", low=0),
            "kernel_scale": floats64("q", low=np.finfo(np.float64).tiny),
        }

    def check(self, size: CellSize) -> None:
        """Refuse a bank of too many kernels."""
        kernels = len(self.kinds) * (1 + (size.features if self.bank == "each" else 0))
        if kernels > MOST_KERNELS:
            raise OptionError(
                f"{size.features:,} variables have {kernels:,} kernels, and {opt.method('mkl')} takes up to "
                f"{MOST_KERNELS:,}; give "
                f"{opt.bank('whole')}"
            )

    def memory(self, size: CellSize) -> int:
        """Bytes of kernel matrices, of which one is kept, of rows, and of solutions."""
        from localsvm.kernels._kernels import padded

        matrix = 8 * padded(size.rows) ** 2
        return (1 + SQUARES) * matrix + 24 * size.rows * size.features + 48 * size.rows * size.solutions
