"""L3-SVM in its kernelised form (Zantedeschi, Emonet, Sebban 2017, appendix): the dual over projections, offset free.

For each binary problem: max_a sum_i a_i - 1/2 sum_ij a_i a_j y_i y_j [k(i) = k(j)] K(mu(x_i), mu(x_j)) over
0 <= a_i <= C, sum_i a_i y_i = 0: one SVM whose Gram matrix is block diagonal over the k-means clusters, held together
by the one offset that all share. (The appendix sums over one cluster only; all have to be summed over.) With the linear
kernel this is `l3` but for the bias, which is not regularised here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import TYPE_CHECKING, ClassVar

from localsvm.errors import OptionError
from localsvm.methods.base import Fit, Fitted, Prepared, State, View
from localsvm.methods.cell_size import CellSize
from localsvm.methods.grids import Grid, check_values
from localsvm.methods.kernel.method import KernelMethod
from localsvm.methods.linear.options import COSTS
from localsvm.methods.locally_linear.landmarked import Landmarked
from localsvm.methods.option import option
from localsvm.naming import opt
from localsvm.store.pieces import Pieces, index

if TYPE_CHECKING:
    from localsvm.methods.cell import Cell
    from localsvm.methods.locally_linear.systems.l3_kernel import ClusterPredictor, Projections
    from localsvm.targets.base import Target


@dataclass(frozen=True)
class KernelL3SVM(Landmarked, KernelMethod):
    """Options of the method."""

    name: ClassVar[str] = "l3-kernel"
    tiny: ClassVar[str] = "-K 2 -L 4 -g 0.5 -C 1,10"
    divides: ClassVar[bool] = False
    shows_support: ClassVar[bool] = False  # they are projections
    by_blocks: ClassVar[bool] = False  # blocks of rows have no kernel that is zero between clusters

    projection_gamma: tuple[float, ...] = option(
        (),
        "--projection-gamma",
        help=f"Gamma of the Gaussian projections of l3-kernel; {opt.gamma} is the gamma of its kernel.",
    )
    offset: bool = option(
        True, "--offset/--no-offset", help="Add a free offset b to the decision function, as LIBSVM does."
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        self.check_landmarks(self.projection_gamma, opt.projection_gamma)
        if self.projection == "linear" and self.projection_gamma:
            raise OptionError(f"{opt.projection_gamma} is for {opt.projection('rbf')}")

    def default_select(self, n_classes: int) -> str:
        """Choice of one model on all rows, as the paper has it."""
        return "refit"

    def grid(self, cell: Cell, average_rows: float, folds: int) -> Grid:
        """The user's values where given; else the costs of `l3` and, for each set of landmarks, widths as of `svm`."""
        import numpy as np

        axes = self.landmark_axes(cell.X.shape[1])
        if self.projection == "rbf":
            axes["projection_gamma"] = self.projection_gamma or COSTS
        settings = []
        for values in product(*list(axes.values())[1:]):  # the clusters change none of the projections
            setting = dict(zip(axes, (self.clusters[0], *values), strict=True))
            X = cell.X
            if not self.gamma and self.kernel != "linear":
                X, _ = self.projected(X, self.representation(cell, setting))
            gammas = self.gammas(np.floor(average_rows * (1.0 - 1.0 / max(2, folds))), X)
            settings += [(k, *values, gamma) for k in self.clusters for gamma in gammas]
        return Grid(tuple(settings), (*axes, "gamma"), costs=check_values(self.cost or COSTS))

    def representation(self, cell: Cell, setting: dict[str, float]) -> State:
        """Centres and landmarks."""
        return self.landmark_state(cell.X, setting, setting.get("projection_gamma", 0.0), cell.random)

    def prepare(self, cell: Cell, view: View) -> Prepared:
        """The rows; their projections are kept while only gamma changes."""
        from localsvm.methods.locally_linear.systems.l3_kernel import PreparedProjections

        return PreparedProjections(self, cell, view.scratch, several=view.settings > 1)

    def pack(self, cell: Cell, fits: Sequence[Fit]) -> Fitted:
        """The expansion's arrays over projections, with each support vector's cluster; centres and landmarks."""
        import numpy as np

        from localsvm.methods.kernel.systems.expansion import pack_models, report_of

        models = [fit.solution for fit in fits if fit.solution is not None]
        projected: Projections = fits[0].system.projected
        state = pack_models(projected.phi, cell.Y, models, projected.nearest)
        # a cell of few rows has fewer landmarks than others; all cells keep support vectors of one width
        short = self.most_landmarks(cell.X.shape[1]) - projected.phi.shape[1]
        state["support"] = np.pad(state["support"], ((0, 0), (0, short)))
        return Fitted(projected.state | state, report_of(models, cell))

    def predictor(self, state: State, target: Target, n_features: int) -> ClusterPredictor:
        """Decision functions of a saved cell."""
        from localsvm.methods.locally_linear.systems.l3_kernel import ClusterPredictor

        return ClusterPredictor(self, state, target)

    def hyperplanes(self, state: State, features: int) -> None:
        """None, as each cluster has one of its own."""
        return None

    def pieces(self, target: Target, dense: bool) -> Pieces:
        """Arrays of an expansion over projections, each support vector's cluster, and what makes projections."""
        from localsvm.methods.kernel.systems.expansion import expansion_pieces

        expansion = expansion_pieces(True, lambda lengths: self.most_landmarks(lengths["features"]))
        return {**expansion, "support_cluster": index("s", below="K"), **self.landmark_pieces()}

    def memory(self, size: CellSize) -> int:
        """Bytes of the kernel, which is always held whole, and of the projections."""
        landmarks = min(self.most_landmarks(size.width), size.rows)
        kept, making = self.landmark_bytes(size, int(max(self.clusters)), landmarks)
        projected = replace(size, few=False, features=landmarks, columns=landmarks, entries=None, dense=True)
        return kept + max(making, super().memory(projected))
