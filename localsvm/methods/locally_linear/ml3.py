"""ML3, multiclass latent locally linear SVMs (Fornoni, Caputo, Orabona 2013): each class has m linear models.

A row is scored by the best combination of them.

Problem, of all classes at once: min 1/2 |W|^2 + C sum_i c_i [1 + max_{r != y_i} s_r(x_i) - s_{y_i}(x_i)]_+ with
s_r(x) = max { b'W_r (x, 1) : b >= 0, |b|_p <= 1 } = |(W_r (x, 1))_+|_q, 1/p + 1/q = 1. In the paper's terms
lambda = 1 / (C n). It is not convex: what is found depends on the random start, and every point of the grid has one of
its own, as at small costs all models of a class become the same and would stay so. See localsvm/solvers/ml3.py.

The class with the largest score wins. The decision value of a binary problem is the difference between the scores of
its two classes; for one class against the rest, to the best of the rest.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from localsvm.errors import OptionError
from localsvm.methods.base import Fit, Fitted, Prepared, State, View
from localsvm.methods.cell_size import CellSize
from localsvm.methods.fit_report import FitReport
from localsvm.methods.grids import Values
from localsvm.methods.linear.options import LinearOptions
from localsvm.methods.option import are_whole, cost_option, option, solver_option
from localsvm.methods.saved import table
from localsvm.naming import opt
from localsvm.store.pieces import Lengths, Piece, Pieces, floats32, floats64

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from localsvm.methods.cell import Cell
    from localsvm.methods.locally_linear.systems.ml3 import ML3Predictor, ML3Solution
    from localsvm.targets.base import Target

    Floats = NDArray[np.float64]


LBFGS_VECTORS = 34  # of the size of all weights, in float64: those of scipy's L-BFGS and around it


@dataclass(frozen=True)
class ML3SVM(LinearOptions):
    """Options of the method."""

    name: ClassVar[str] = "ml3"
    tiny: ClassVar[str] = "--models 3 -C 1"
    joint: ClassVar[bool] = True
    gap_unit: ClassVar[str] = "of the objective in the last round"

    cost: tuple[float, ...] = cost_option((1.0,))
    solver: str = solver_option("auto", "primal", "sgd")
    passes: int = option(30, "--passes", help=f"Passes that {opt.solver('sgd')} makes over the rows.")
    models: tuple[float, ...] = option(
        (10.0,),
        "--models",
        help="Number of linear models that ml3 has for each class: one number, or a list to choose from.",
    )
    norm: float = option(1.5, "--norm", help="The p, from 1, of the p-norm that bounds how ml3 combines its models.")

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.models or not are_whole(self.models):
            raise OptionError(f"{opt.models} takes whole numbers from 1")
        if not 1.0 <= self.norm < math.inf:
            raise OptionError(f"{opt.norm} must be a number from 1, not {self.norm:g}")

    def axes(self, features: int) -> dict[str, Values]:
        """The number of models."""
        return {"models": self.models}

    def prepare(self, cell: Cell, view: View) -> Prepared:
        """The rows; settings share nothing else."""
        from localsvm.methods.locally_linear.systems.ml3 import PreparedML3

        return PreparedML3(self, cell)

    def pack(self, cell: Cell, fits: Sequence[Fit]) -> Fitted:
        """The weights of all classes, and a table of models."""
        import numpy as np

        from localsvm.methods.locally_linear.systems.ml3 import _classes

        solutions: list[ML3Solution] = [fit.solution for fit in fits]
        reports = [solution.report for solution in solutions]
        state = {
            "pairs": np.asarray(_classes(cell.target).pairs, np.int32),
            "models": np.asarray([solution.W.shape[1] for solution in solutions], np.int32),
            "model_fold": np.asarray([fit.job.fold for fit in fits], np.int32),
            "model_cost": np.asarray([solution.cost for solution in solutions]),
            "model_objective": np.asarray([solution.objective for solution in solutions]),
            "model_fall": np.asarray([report.fell for report in reports]),
            "model_iterations": np.asarray([report.rounds for report in reports], np.int64),
            "model_converged": np.asarray([report.converged for report in reports], np.uint8),
            "weights": np.concatenate([solution.W.ravel() for solution in solutions]),
        }
        report = FitReport(
            models=len(solutions),
            iterations=sum(report.rounds for report in reports),
            not_converged=sum(not report.converged for report in reports),
            largest_gap=float(np.nan_to_num(state["model_fall"]).max()),
            support_vectors=int(np.count_nonzero(np.any([report.inside for report in reports], axis=0))),
        )
        return Fitted(state, report)

    def predictor(self, state: State, target: Target, n_features: int) -> ML3Predictor:
        """Decision functions of a saved cell."""
        from localsvm.methods.locally_linear.systems.ml3 import ML3Predictor

        return ML3Predictor(self.norm, state, target, n_features)

    def pieces(self, target: Target, dense: bool) -> Pieces:
        """The weights of all classes: n models for each, and m times, once for each fold."""
        import numpy as np

        from localsvm.methods.locally_linear.systems.ml3 import _classes

        def weights(length: Lengths) -> Any:
            return length["m"] * length["classes"] * length["n"] * (length["features"] + 1)

        return {
            "pairs": Piece("i4", ("problems", 2), equals=np.asarray(_classes(target).pairs, np.int32)),
            "models": Piece("i4", ("m",), least=1, value="n"),
            **table("fold", "cost", "iterations", "converged"),
            "model_objective": floats64("m"),
            "model_fall": floats64("m", nan=True),
            "weights": floats32(weights),
        }

    def memory(self, size: CellSize) -> int:
        """Bytes of solutions, and of what the solver holds.

        For the exact solver these are two copies of the rows, combinations, L-BFGS's vectors and the coordinates'
        matrices; for the other one a few float32 copies of the weights.

        There are at least two classes, and at most one more than problems that a row takes part in.
        """
        from localsvm.solvers.ml3_round import FULL_METRIC

        models, columns = int(max(self.models)), int(size.width) + 1
        classes = max(2, size.solutions // size.folds + 1)
        weights, points = 4 * classes * models * columns, self.grid_for(size.width).n_points
        solution_bytes = weights * (2 if points == 1 else min(3, points) * size.folds)
        if self.solver == "sgd":
            return solution_bytes + 6 * weights
        metric = 3 * 8 * columns**2 if size.width < FULL_METRIC else 0
        rows = int(4 * size.rows * size.width if size.dense else 12 * size.stored)
        return solution_bytes + 2 * rows + 8 * size.rows * (classes + models) + 2 * LBFGS_VECTORS * weights + metric
