"""SVML: a kernel SVM whose metric is learned with it (Xu, Weinberger, Chapelle 2012).

For each binary problem: f(x) = sum_i a_i exp(-|L(x - x_i)|^2) + b, the SVM with the squared hinge, a free offset and
cost C. L and C are learned together from at most 8 000 rows (see localsvm/representations/svm_metric.py); then the SVM
with this L and C is solved on all rows (see localsvm/solvers/squared_hinge.py). There is no grid. Problems of several
classes have a metric each. With the Manhattan kernel exp(-sum_j w_j |x_j - x_ij|), the weights w are learned.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from localsvm.errors import OptionError
from localsvm.kernels import Kernel
from localsvm.methods.base import Fit, Fitted, Method, Prepared, State, View
from localsvm.methods.cell_size import CellSize
from localsvm.methods.grids import Grid
from localsvm.methods.option import kernel_option, option
from localsvm.naming import opt
from localsvm.store.pieces import Lengths, Pieces, floats32

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from localsvm.features.metric import Metric
    from localsvm.methods.cell import Cell
    from localsvm.methods.kernel.systems.mapped import MappedPredictor
    from localsvm.targets.base import Target

    Floats = NDArray[np.float64]


AUTO, FULL, DIAG = "auto", "full", "diag"
FORMS = (AUTO, FULL, DIAG, "sphere")
RANK = "rank:"
MOST_COLUMNS = 2000  # of a square matrix L: with more, a step takes seconds and the search gigabytes
LBFGS_VECTORS = 34  # of the size of L, in float64: those of scipy's L-BFGS and around it


@dataclass(frozen=True)
class SVML(Method):
    """Options of the method."""

    name: ClassVar[str] = "svml"
    learns_metric: ClassVar[bool] = True

    kernel: str = kernel_option("gaussian", "manhattan", later=True)
    form: str = option(
        AUTO,
        "--form",
        help="The linear map that svml learns. full: a square matrix; diag: a diagonal one; sphere: a multiple of the "
        f"identity; rank:R: a matrix with R rows; auto: full, or diag with {opt.kernel('manhattan')}, which takes no "
        "other.",
    )
    pull: float = option(
        0.1, "--pull", help="How strongly svml pulls its map back to where it began; 100 leaves the map as it was."
    )

    def __post_init__(self) -> None:
        self.check_choices()
        if self.form == AUTO:  # decided here: models keep a form that says what their map is
            object.__setattr__(self, "form", DIAG if self.distance == "manhattan" else FULL)
        count = self.form.removeprefix(RANK)
        ranked = self.form.startswith(RANK) and count.isdecimal() and int(count) >= 1
        if self.form not in FORMS and not ranked:
            raise OptionError(f"{opt.form(self.form)}: choose one of {', '.join(FORMS)} or rank:R, as rank:2")
        if self.distance == "manhattan" and self.form != DIAG:
            raise OptionError(
                f"{opt.form(self.form)}: {opt.kernel(self.kernel)} learns a weight for each feature, and no other map; "
                f"give {opt.form(DIAG)}, or leave it out"
            )
        if not 0.0 <= self.pull < math.inf:
            raise OptionError(f"{opt.pull} must be a number from 0, not {self.pull:g}")

    @property
    def distances(self) -> tuple[str, ...]:
        """Distance of the kernel; see `Method`."""
        return ("manhattan" if self.kernel == "manhattan" else "euclidean",)

    @property
    def shift_invariant(self) -> bool:
        """True, as the kernel is one of differences."""
        return True

    @property
    def remedy(self) -> str:
        """Advice for Newton's method, which has no tolerance."""
        return f"scale the data ({opt.scale('std')})"

    def default_select(self, n_classes: int) -> str:
        """Choice of one model on all rows, as the paper has it."""
        return "refit"

    def height(self, columns: int) -> int:
        """Number of rows of a stored map; a diagonal has one."""
        if self.form == FULL:
            return columns
        return min(columns, int(self.form.removeprefix(RANK))) if self.form.startswith(RANK) else 1

    def grid(self, cell: Cell, average_rows: float, folds: int) -> Grid:
        """A grid of one point: C is learned."""
        return Grid()

    def prepare(self, cell: Cell, view: View) -> Prepared:
        """The rows; nothing else is shared, as each problem and fold has its own metric."""
        from localsvm.methods.kernel.systems.svml import PreparedMetric

        return PreparedMetric(self, cell)

    def pack(self, cell: Cell, fits: Sequence[Fit]) -> Fitted:
        """The expansion's arrays over the rows as they are, and the maps one below the other."""
        import numpy as np

        from localsvm.methods.kernel.systems.expansion import pack_models, report_of

        models = [fit.solution.model for fit in fits]
        state = pack_models(cell.X, cell.Y, models)
        state["map"] = np.concatenate([fit.solution.map for fit in fits])
        return Fitted(state, report_of(models, cell))

    def predictor(self, state: State, target: Target, n_features: int) -> MappedPredictor:
        """Decision functions of a saved cell."""
        from localsvm.methods.kernel.systems.mapped import MappedPredictor

        return MappedPredictor(Kernel(self.kernel, 1.0), self.form, state, target, n_features)

    def metrics(self, column: Callable[[str], NDArray[Any]], models: int) -> list[Metric]:
        """The maps of so many models, one below the other as a state has them, each as a metric."""
        import numpy as np

        from localsvm.features.metric import Metric
        from localsvm.methods.kernel.systems.mapped import DIAGONALS

        maps = column("map")
        each = maps.reshape(models, -1, maps.shape[1]) if models else ()
        return [Metric(L[0] if self.form in DIAGONALS else np.ascontiguousarray(L.T)) for L in each]

    def pieces(self, target: Target, dense: bool) -> Pieces:
        """Arrays of an expansion, and a map for each model."""
        from localsvm.methods.kernel.systems.expansion import expansion_pieces

        def rows(lengths: Lengths) -> Any:
            return lengths["m"] * self.height(int(lengths["features"]))

        least = 0.0 if self.distance == "manhattan" else -math.inf
        return {**expansion_pieces(dense), "map": floats32(rows, "features", low=least)}

    def check(self, size: CellSize) -> None:
        """Refuse a map that would be too large, or have more rows than columns."""
        if self.form == FULL and size.width > MOST_COLUMNS:
            raise OptionError(
                f"{opt.form(FULL)} learns a square matrix for at most {MOST_COLUMNS:,} columns, and there are "
                f"{size.width:,}; give {opt.form(DIAG)} or rank:10"
            )
        if self.form.startswith(RANK) and int(self.form.removeprefix(RANK)) > size.width:
            raise OptionError(
                f"{opt.form(self.form)}: there are only {size.width:,} features; give at most {RANK}{size.width}"
            )

    def memory(self, size: CellSize) -> int:
        """Bytes of a kernel, its factor and a border; rows in float64, and their like in a gradient; search vectors."""
        from localsvm.representations.svm_metric import MOST_ROWS

        n, part, columns, height = size.rows, min(size.rows, MOST_ROWS), size.features, self.height(size.width)
        learning = 10 * part**2 + 40 * part * columns
        solving = 17 * n**2 + 20 * n * columns
        return int(max(learning, solving) + 8 * LBFGS_VECTORS * height * columns + 16 * height * size.width)
