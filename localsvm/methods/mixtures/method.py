"""Base of the mixtures of linear SVMs: a Gaussian and a linear SVM for each of K components, found by EM.

The problem is stated in localsvm/representations/svm_mixture.py. A row is decided by all components, each as far as it
answers for the row: f(x) = sum_j r_j(x) (exp(-loss(f_j)) - exp(-loss(-f_j))), r_j(x) the component's share of the
density of x. So f is in [-1, 1], and classes compare.

Points of the grid are scored with a mixture that EM finds without labels (systems/parts.py), and the weights
for its responsibilities. The models to keep go on from there by EM with the labels of their rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from localsvm.errors import OptionError
from localsvm.methods.base import Fit, Fitted, Prepared, State, View
from localsvm.methods.cell_size import CellSize
from localsvm.methods.fit_report import FitReport
from localsvm.methods.grids import Values
from localsvm.methods.linear.options import MeanLoss, most_first
from localsvm.methods.locally_linear.clustered import Restarted
from localsvm.methods.option import loss_option, option
from localsvm.methods.saved import table
from localsvm.naming import opt
from localsvm.store.pieces import Lengths, Piece, Pieces, floats64, pointer

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from localsvm.methods.cell import Cell
    from localsvm.methods.mixtures.systems.predictor import MixturePredictor
    from localsvm.representations.svm_mixture import SVMMixture, Tasks
    from localsvm.targets.base import Target

    Floats = NDArray[np.float64]


COSTS: Values = tuple(10.0**k for k in range(7))
PAIRS = 1.3  # of a row and a component that answers for it, for each row
SPARSE_BYTES = 24  # for each entry of sparse rows while some are taken
KNOWN, BLOCK_COPIES = 6, 6  # arrays of a number for each row and component; of a block of dense rows, in float64
MOST_COLUMNS = 1000  # of full covariances


@dataclass(frozen=True)
class MixtureMethod(Restarted, MeanLoss):
    """The parts that all mixtures share. Subclasses say how the tasks are coupled."""

    covariance: str = option(
        "full",
        "--covariance",
        help="Covariances of the components of a mixture. full: with all entries; diag: diagonal.",
        choices=("full", "diag"),
    )
    shrinkage: tuple[float, ...] = option(
        (1e-4, 0.1, 10.0),
        "--shrinkage",
        help="How strongly the covariances of a mixture are drawn to a sphere: as strongly as by this many times the "
        "rows of an average component. One number, or a list to choose from.",
    )
    rule: str = option(
        "soft",
        "--rule",
        help="Which components of a mixture decide about a row. soft: all, by their shares of the density there; hard: "
        "the one with the largest share.",
        choices=("soft", "hard"),
    )
    loss: str = loss_option("hinge", "squared")

    def __post_init__(self) -> None:
        super().__post_init__()
        self.check_clusters()
        if not self.shrinkage or not all(1e-12 <= s <= 1e12 for s in self.shrinkage):
            raise OptionError(f"{opt.shrinkage} takes numbers from 1e-12 to 1e12")

    @property
    def default_costs(self) -> Values:
        """Large costs, as tasks have few rows."""
        return COSTS

    def axes(self, features: int) -> dict[str, Values]:
        """Components, their start, and shrinkage, smoothest first; then what couples the tasks."""
        return self.cluster_axes | {"shrinkage": most_first(self.shrinkage)}

    def tasks(self, setting: dict[str, float], tolerance: float) -> Tasks:
        """Coupling of the tasks at a setting."""
        from localsvm.representations.svm_mixture import Tasks

        return Tasks(0.0, 0.0, self.loss == "squared", tolerance)

    def prepare(self, cell: Cell, view: View) -> Prepared:
        """Mixtures without labels, kept from setting to setting."""
        from localsvm.methods.mixtures.systems.mixture import PreparedMixture

        return PreparedMixture(self, cell)

    def pack(self, cell: Cell, fits: Sequence[Fit]) -> Fitted:
        """The components of all models one below the other, their weights, and what EM did."""
        import numpy as np

        solutions: list[SVMMixture] = [fit.solution for fit in fits]
        reports = [one.weights.report for one in solutions]
        gaps = [(r.primal - r.dual) / r.primal if r.primal > 0 else 0.0 for r in reports]
        done = [one.ended and not one.fell and one.weights.report.converged for one in solutions]
        factors = [one.mixture.factor.reshape(-1, cell.X.shape[1]) for one in solutions]
        state: dict[str, NDArray[Any]] = {
            "model_problem": np.asarray([fit.job.problem for fit in fits], np.int32),
            "model_fold": np.asarray([fit.job.fold for fit in fits], np.int32),
            "model_cost": np.asarray([float(fit.job.costs[0]) for fit in fits]),
            "model_gap": np.asarray(gaps, np.float64),
            "model_iterations": np.asarray([len(one.trace) - 1 for one in solutions], np.int64),
            "model_converged": np.asarray(done, np.uint8),
            "components": np.asarray([len(one.mixture.mean) for one in solutions], np.int32),
            "offset": np.concatenate([one.mixture.offsets for one in solutions]),
            "mean": np.concatenate([one.mixture.mean for one in solutions]),
            "factor": np.concatenate(factors),
            "weights": np.concatenate([one.weights.W for one in solutions]),
            "trace": np.concatenate([one.trace for one in solutions]),
            "trace_ptr": np.cumsum([0, *(len(one.trace) for one in solutions)]).astype(np.int64),
        }
        rounds = int(state["model_iterations"].sum())
        report = FitReport(len(solutions), rounds, sum(not ok for ok in done), max(gaps, default=0.0))
        return Fitted(state, report)

    def predictor(self, state: State, target: Target, n_features: int) -> MixturePredictor:
        """Decision functions of a saved cell."""
        from localsvm.methods.mixtures.systems.predictor import MixturePredictor

        return MixturePredictor(state, target, self.loss == "squared", self.rule == "hard")

    def pieces(self, target: Target, dense: bool) -> Pieces:
        """Arrays of m models of K components each; a factor has a row a component, or as many as there are features."""

        def components(n: Lengths) -> Any:
            return n["m"] * n["K"]

        def factors(n: Lengths) -> Any:
            return n["m"] * n["K"] * (n["features"] if self.covariance == "full" else 1)

        def weights(n: Lengths) -> Any:
            return n["features"] + 1

        return {
            **table("problem", "fold", "cost", "gap", "iterations", "converged"),
            "components": Piece("i4", ("m",), least=1, value="K"),
            "offset": floats64(components),
            "mean": floats64(components, "features"),
            "factor": floats64(factors, "features"),
            "weights": floats64(components, weights),
            "trace": floats64("T"),
            "trace_ptr": pointer("m", ends="T"),
        }

    def check(self, size: CellSize) -> None:
        """Refuse full covariances that would be too large."""
        if self.covariance == "full" and size.width > MOST_COLUMNS:
            raise OptionError(
                f"{opt.covariance('full')} makes square matrices for at most {MOST_COLUMNS:,} columns, and there are "
                f"{size.width:,}; give {opt.covariance('diag')}"
            )

    def memory(self, size: CellSize) -> int:
        """Bytes of rows, of what is known of rows and components, of solutions, and of the work.

        The rows are those of pairs, of all problems and of one in EM. The work is the larger of a block of rows with
        its differences from means and what a solver takes.
        """
        from localsvm.representations.mixture import BLOCK
        from localsvm.solvers.linear import working_bytes
        from localsvm.solvers.weighted_tasks import LARGEST_SYSTEM

        n, d, K = size.rows, size.width, int(max(self.clusters))
        pairs, entries = int(PAIRS * n), None if size.dense else int(PAIRS * size.stored)
        rows = 4 * pairs * d if entries is None else SPARSE_BYTES * entries
        one = 8 * K * (d * (d + 2 if self.covariance == "full" else 3) + K)
        scored = 8 * K * (d + 1 + K) * size.problems * size.folds * min(3, self.grid_for(d).n_points)
        models = size.problems * (size.folds if self.default_select(2) == "vote" else 1)
        system = 24 * min(K * (d + 1), LARGEST_SYSTEM) ** 2 if K * (d + 1) <= LARGEST_SYSTEM else 0
        solving = working_bytes(pairs, d, K, entries, "primal", True) + system
        parts = (
            size.solutions // size.folds if size.part else 0
        )  # pairs of classes that a row is in: each knows its rows
        part_bytes = (size.folds + 1) * (parts * (rows + 8 * n * K) + (size.problems * one if parts else 0))
        kept = 2 * rows + KNOWN * 8 * n * K + 2 * 8 * n + one * (models + 2) + scored + part_bytes
        return int(kept + max(BLOCK_COPIES * 8 * min(n * d, max(BLOCK, d)), solving))
