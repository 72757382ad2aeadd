"""SVM-KNN (Zhang, Berg, Maire, Malik, CVPR 2006): a linear SVM for each row that is to be decided, on its neighbours.

The k nearest training rows decide where they are of one class; else a linear SVM with a free offset is trained on them,

    min over w, b: 1/2 |w|^2 + C sum_i loss(y_i (w . x_i + b)),    i among the neighbours,

with the hinge loss. Nothing happens in training but the choice of k and C, by the neighbours of each row outside its
fold. The search is exact. A row that stands for several rows is as many neighbours, the last of which may not be
counted; so is a row with a weight, where one of the mean weight of the cell counts as one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from localsvm.methods.base import Fit, Fitted, Prepared, State, View
from localsvm.methods.cell_size import CellSize
from localsvm.methods.fit_report import FitReport
from localsvm.methods.grids import Values
from localsvm.methods.linear.options import CostOptions, check_neighbours, most_first
from localsvm.methods.option import option
from localsvm.methods.saved import table
from localsvm.store.pieces import Piece, Pieces, floats64, index

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from localsvm.methods.cell import Cell
    from localsvm.methods.lazy.systems.svm_knn import NeighbourPredictor
    from localsvm.targets.base import Target

    Floats = NDArray[np.float64]


SMALLEST = 2.0**-1022  # number of rows that one with a weight stands for
BLOCK_BYTES = 60  # for each distance of a block: it, its place, and both in order


@dataclass(frozen=True)
class NeighbourSVM(CostOptions):
    """Options of the method."""

    name: ClassVar[str] = "svm-knn"
    tiny: ClassVar[str] = "--neighbours 4,8 -C 0.1,1"
    costs_at_once: ClassVar[int] = 1 << 30  # neighbours and their products are the same for all
    gap_unit: ClassVar[str] = "in the KKT conditions"

    neighbours: tuple[float, ...] = option(
        (10.0, 20.0, 40.0, 80.0),
        "--neighbours",
        help="Number of nearest anchors that the local coordinates of a row have (llsvm), or of nearest rows that "
        "decide (svm-knn): one number, or a list to choose from.",
        became_list=True,
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        check_neighbours(self.neighbours)

    @property
    def shift_invariant(self) -> bool:
        """True for distances, and for SVMs with a free offset."""
        return True

    def axes(self, features: int) -> dict[str, Values]:
        """The number of neighbours, the largest first: it is the smoothest."""
        return {"neighbours": most_first(self.neighbours)}

    def prepare(self, cell: Cell, view: View) -> Prepared:
        """The neighbours of all rows outside their folds, for the largest k."""
        from localsvm.methods.lazy.systems.svm_knn import PreparedNeighbours

        return PreparedNeighbours(self, cell)

    def pack(self, cell: Cell, fits: Sequence[Fit]) -> Fitted:
        """All rows, as training has them, and what is to be done with them."""
        import numpy as np

        from localsvm.methods.kernel.systems.expansion import support_state

        n = len(cell.y)
        state: dict[str, NDArray[Any]] = {
            "model_problem": np.asarray([fit.job.problem for fit in fits], np.int32),
            "model_fold": np.asarray([fit.job.fold for fit in fits], np.int32),
            "model_cost": np.asarray([float(fit.job.costs[0]) for fit in fits]),
            **support_state(cell.X, np.arange(n)),
            "support_label": np.asarray(cell.y, np.float64),
            "support_count": np.asarray(cell.count, np.float64),
            "support_weight": np.asarray(cell.weight / cell.count, np.float64),
            "support_fold": cell.folds.astype(np.int32),
            "neighbours": np.asarray([fits[0].system.k], np.int32),
        }
        missed = [fit.solution.violation for fit in fits]
        report = FitReport(
            len(fits), not_converged=sum(v > 0.0 for v in missed), largest_gap=max(missed, default=0.0),
            support_vectors=n, support=cell.target.counts(cell.y),
        )  # fmt: skip
        return Fitted(state, report)

    def predictor(self, state: State, target: Target, n_features: int) -> NeighbourPredictor:
        """Decision functions of a saved cell."""
        from localsvm.methods.lazy.systems.svm_knn import NeighbourPredictor

        return NeighbourPredictor(self.tolerance, state, target, n_features)

    def pieces(self, target: Target, dense: bool) -> Pieces:
        """Arrays of n rows, their labels, and how many rows each stands for."""
        from localsvm.methods.kernel.systems.expansion import rows_pieces

        return {
            **table("problem", "fold", "cost"),
            **rows_pieces(dense),
            "support_label": floats64("s"),
            "support_count": floats64("s", low=SMALLEST, high=2.0**53),
            "support_weight": floats64("s", low=0),
            "support_fold": index("s", below="folds"),
            "neighbours": Piece("i4", (1,), low=1, high=max(self.neighbours)),
        }

    def memory(self, size: CellSize) -> int:
        """Bytes of the rows packed for the search, a block of distances, all neighbours, and the rows to keep."""
        from localsvm.representations.neighbours import CHUNK, QUERIES

        k, costs = min(size.rows, int(max(self.neighbours))), len(self.cost or self.default_costs)
        rows = 4 * size.rows * size.features
        kept = rows if size.dense else 8 * size.stored
        search = BLOCK_BYTES * min(QUERIES, size.rows) * min(CHUNK, size.rows) + (0 if size.few else 2 * rows)
        return int(search + kept + 2 * 8 * size.rows * k + 8 * size.rows * size.problems * costs)
