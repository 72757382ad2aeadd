"""Base of the kernel SVMs: their options, the kernel of a cell, and its memory.

For each binary problem on n rows (Thomann et al. 2017, section 2): min lambda |f|^2 + 1/n sum_i w_i max(0, 1 - y_i
f(x_i)) over the RKHS of the kernel, in its dual with C = 1 / (2 lambda n); with `offset` LIBSVM's problem, f + b.

One matrix of squared distances serves a cell, and one kernel matrix a gamma serves all folds and all binary problems;
localsvm/methods/kernel/systems/kernel.py has what is done with it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Self

from localsvm.errors import OptionError
from localsvm.kernels import Kernel
from localsvm.methods.base import Fit, Fitted, Method, Predictor, Prepared, State, View
from localsvm.methods.cell_size import CellSize
from localsvm.methods.grids import LARGEST_COST, SIZE, check_values, default_widths, exponential_widths
from localsvm.methods.option import cost_option, kernel_option, option, tolerance_option
from localsvm.naming import opt
from localsvm.store.pieces import Pieces

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from localsvm.data.blocks.dataset import Examples
    from localsvm.methods.cell import Cell
    from localsvm.targets.base import Target


# cells of more rows are solved block by block, without the whole matrix (3.2 GB with its distances at this size): by
# the number of rows and points alone, so that neither -j nor --memory decides what a model is
WHOLE_ROWS = 20_000
SINGLE_ROWS = 6_000  # for a single point, where folds and costs do not share the matrix and fresh memory costs more
# float32 kernels carry the certified gap down to these; beyond them the matrix is made in float64. C is the cell's: a
# pair of classes with few of its rows has a larger one for the same lambda, and as much less to sum up
SINGLE_TOLERANCE = 1e-4
SINGLE_COST = 1e4
AUTO = "auto"
OF_DISTANCE = {"euclidean": "gaussian", "manhattan": "manhattan", "laplacian": "laplacian"}
LARGEST_DEFAULT_COST = 500.0  # 1 / (2 lambda n) at lambda = 0.001 / n


@dataclass(frozen=True)
class KernelMethod(Method):
    """The options of kernel SVMs. gamma and cost are empty for the default grid."""

    shows_support: ClassVar[bool] = True
    costs_at_once: ClassVar[int] = 1 << 30  # the path along the costs is solved in C
    by_blocks: ClassVar[bool] = True  # many rows, or few support vectors, do without the whole matrix

    kernel: str = kernel_option(AUTO, "gaussian", "laplacian", "manhattan", "polynomial", "linear")
    gamma: tuple[float, ...] = option(
        (),
        "-g",
        "--gamma",
        help=f"Gamma of the kernel, as in LIBSVM's exp(-gamma |x-y|^2), or of the Gaussian projections of l3: one "
        f"value, a list or a range, written as for {opt.cost}. A width w of liquidSVM is gamma = 1/w^2.",
    )
    cost: tuple[float, ...] = cost_option()
    degree: int = option(3, "--degree", help="Polynomial degree.")
    coef0: float = option(0.0, "--coef0", help="Polynomial constant.")
    offset: bool = option(
        False, "--offset/--no-offset", help="Add a free offset b to the decision function, as LIBSVM does."
    )
    tolerance: float = tolerance_option(1e-3)

    def __post_init__(self) -> None:
        self.check_choices()
        if not all(0.0 < value < math.inf for value in self.gamma) or not all(
            0.0 < v <= LARGEST_COST for v in self.cost
        ):
            raise OptionError(f"{opt.gamma} takes positive numbers, and {opt.cost} those up to {LARGEST_COST:g}")
        if not 0.0 < self.tolerance < math.inf:
            raise OptionError(
                f"{opt.tolerance} must be a positive number, not {self.tolerance:g}; try {opt.tolerance(0.001)}"
            )
        if not 1 <= self.degree < 1 << 31:
            raise OptionError(f"{opt.degree} must be a whole number from 1, not {self.degree}")
        if not math.isfinite(self.coef0):
            raise OptionError(f"{opt.coef0} must be a finite number, not {self.coef0:g}")

    @property
    def shift_invariant(self) -> bool:
        """True for kernels of distances."""
        return self.kernel_of(1.0).uses_distances

    @property
    def through_origin(self) -> bool:
        """True for classes by products without an offset; those of polynomials may have a constant."""
        constant = self.offset or (self.kernel == "polynomial" and self.coef0 != 0.0)
        return not (constant or self.shift_invariant or self.learns_values or self.novel_share is not None)

    @property
    def distances(self) -> tuple[str, ...]:
        """Distance of the kernel; of `auto` several, unless gammas are given, which are of one; see `Method`."""
        if self.kernel == AUTO and not self.gamma:
            rough = ("laplacian",) if self.value_losses else ()  # of classes it was no better
            return ("euclidean", "manhattan", *rough)
        return (self.kernel if self.kernel in OF_DISTANCE else "euclidean",)

    def measuring(self, distance: str) -> Self:
        """The method with a kernel of this distance, if the kernel is `auto`; see `Method`."""
        return replace(self, kernel=OF_DISTANCE[distance]) if self.kernel == AUTO else self

    def prepare(self, cell: Cell, view: View) -> Prepared:
        """The distances of the cell's rows."""
        from localsvm.methods.kernel.systems.prepared import PreparedKernel

        return PreparedKernel(self, cell, view.scratch, several=view.settings > 1)

    def pack(self, cell: Cell, fits: Sequence[Fit]) -> Fitted:
        """The union of the support vectors, and the models' coefficients."""
        from localsvm.methods.kernel.systems.expansion import pack_models, report_of

        models = [fit.solution for fit in fits if fit.solution is not None]
        return Fitted(pack_models(cell.X, cell.Y, models, sloped=self.sloped), report_of(models, cell))

    def predictor(self, state: State, target: Target, n_features: int) -> Predictor:
        """Decision functions of a saved cell."""
        from localsvm.methods.kernel.systems.expansion import ExpansionPredictor

        return ExpansionPredictor(state, self.kernel_of(1.0), target, n_features)

    def hyperplanes(self, state: State, features: int) -> tuple[NDArray[Any], NDArray[Any]] | None:
        """The expansions, summed, where the kernel is linear."""
        from localsvm.methods.kernel.systems.expansion import linear_weights

        return (linear_weights(state, features), state["model_bias"]) if self.kernel == "linear" else None

    def pieces(self, target: Target, dense: bool) -> Pieces:
        """Arrays of an expansion."""
        from localsvm.methods.kernel.systems.expansion import expansion_pieces

        return expansion_pieces(dense, sloped=self.sloped)

    def memory(self, size: CellSize) -> int:
        """Bytes of the kernel, what is copied of it for a problem of some rows, the rows, paths and votes.

        The kernel is held with the distances of wide rows and, for least squares, its factor; in float64 always with
        distances and the product that they are made from, or as a block.
        """
        from localsvm.kernels._kernels import padded
        from localsvm.kernels.gram import NARROW
        from localsvm.solvers.blocks import working_bytes
        from localsvm.solvers.least_squares import triangle_bytes

        side = padded(size.rows)
        costs = self.cost or (LARGEST_DEFAULT_COST,)
        systems = size.solutions * (len(self.cost) or SIZE)
        paths = 8 * size.rows * systems
        if self.by_gradients:
            paths += triangle_bytes(size.rows, systems) // 2  # which counts twice
        double = self.is_double(max(costs) * size.weight)
        if self.by_blocks and size.rows > self.whole_rows:
            return working_bytes(size.rows, size.features, double) + 2 * paths + 16 * side * 64
        wide = size.features > NARROW or size.few
        square = side * side * (3 * 8 if double else 4 * (1 + wide + self.by_gradients))
        square += size.part * (size.part + side) * (8 if double else 4)
        copies = 8 * side * side if size.few else 3 * 4 * size.rows * size.features
        return square + copies + 2 * paths + 16 * side * 64

    @property
    def whole_rows(self) -> int:
        """The most rows of a cell whose kernel is held whole."""
        one_gamma = len(self.gamma) == 1 or (not self.gamma and self.kernel in ("linear", "polynomial"))
        return SINGLE_ROWS if one_gamma and len(self.cost) == 1 else WHOLE_ROWS

    @property
    def further(self) -> tuple[int, int]:
        """Number of gammas above, and of costs above, the usual ends of the default grid."""
        return 0, 0

    @property
    def learns_values(self) -> bool:
        """True where problems learn values, beside a constant: those of classes are -1 and 1."""
        return False

    @property
    def by_gradients(self) -> bool:
        """True where conjugate gradients solve the problems, in float32: least squares."""
        return False

    @property
    def squares_slack(self) -> bool:
        """True where classes are learned by the squared hinge, which has no offset and takes whole matrices."""
        return False

    @property
    def sloped(self) -> bool:
        """True where models have a linear trend beside the kernel."""
        return False

    @property
    def online_epochs(self) -> int:
        """Epochs of LaSVM before the solver; 0 for none."""
        return 0

    def kernel_of(self, gamma: float) -> Kernel:
        """The kernel with this gamma."""
        return Kernel("gaussian" if self.kernel == AUTO else self.kernel, gamma, self.coef0, self.degree)

    def gammas(self, rows: float, X: Examples) -> tuple[float, ...]:
        """Gammas of a grid: those that the user gave, or for X and models trained on so many rows the default ones."""
        from localsvm.kernels.gram import radius

        if self.kernel == "linear":
            return (1.0,)
        if self.gamma:
            return check_values(self.gamma)
        if self.kernel == "polynomial":
            return (1.0 / max(1, X.shape[1]),)
        kernel = self.kernel_of(1.0)
        rule = default_widths if kernel.kind == "gaussian" else exponential_widths
        widths = rule(rows, X.shape[1], radius(X, kernel.base), further=self.further[0])
        return tuple(w ** (-2 if kernel.kind == "gaussian" else -1) for w in widths)

    def is_double(self, cost: float) -> bool:
        """True where the tolerance, or the largest weighted cost, asks for a float64 kernel."""
        return self.tolerance < SINGLE_TOLERANCE or cost > SINGLE_COST
