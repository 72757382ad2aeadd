"""What the mixtures of linear SVMs share: a Gaussian and a linear SVM for each of K components, found by EM.

The problem is stated in localsvm/representations/svm_mixture.py. A row is decided by all components, each as far as it
answers for the row: f(x) = sum_j r_j(x) (exp(-loss(f_j)) - exp(-loss(-f_j))), r_j(x) the component's share of the
density of x. So f is in [-1, 1], and classes compare.

Points of the grid are scored with a mixture that EM finds without labels (localsvm/methods/mixture_parts.py), and the
weights for its responsibilities. The models to keep go on from there by EM with the labels of their rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from localsvm.data.dataset import between, rows_of, thinned
from localsvm.errors import OptionError
from localsvm.methods.base import CellSize, Fit, FitReport, Fitted, Prepared, Purpose, State, System, View, option
from localsvm.methods.cell import Cell, Job, fill_held_out
from localsvm.methods.clustered import Restarted
from localsvm.methods.grids import Values
from localsvm.methods.linear_options import MeanLoss, most_first
from localsvm.methods.mixture_parts import MixturePart, mass, mixture_parts
from localsvm.methods.mixture_predictor import MixturePredictor, decided
from localsvm.methods.parts import Parts
from localsvm.methods.saved import table
from localsvm.representations.mixture import BLOCK
from localsvm.representations.svm_mixture import Labelled, SVMMixture, Tasks, fit_svm_mixture, solve_tasks
from localsvm.solvers.linear import working_bytes
from localsvm.solvers.weighted_tasks import LARGEST_SYSTEM, TaskWeights, task_values
from localsvm.store.pieces import Lengths, Piece, Pieces, floats64, pointer
from localsvm.targets.base import Target

Floats = NDArray[np.float64]
COSTS: Values = tuple(10.0**k for k in range(7))
PAIRS = 1.3  # of a row and a component that answers for it, for each row
SPARSE_BYTES = 24  # for each entry of sparse rows while some are taken
KNOWN, BLOCK_COPIES = 6, 6  # arrays of a number for each row and component; of a block of dense rows, in float64
MOST_COLUMNS = 1000  # of full covariances
WITH_LABELS = 1e-4, 200  # of EM: the least rise of the objective a row, and the most rounds


@dataclass(frozen=True)
class MixtureMethod(Restarted, MeanLoss):
    """What all mixtures do. Subclasses say how the tasks are coupled."""

    covariance: str = option(
        "full", "--covariance", help="Covariances of a mixture: full or diagonal.", choices=("full", "diag")
    )
    shrinkage: tuple[float, ...] = option(
        (1e-4, 0.1, 10.0),
        "--shrinkage",
        help="Weight of a spherical prior on the covariances of a mixture, in rows over those of a component: a "
        "number, or a list to choose from.",
    )
    rule: str = option(
        "soft",
        "--rule",
        help="What decides in a mixture: all components by their share of the density, or the one with the largest.",
        choices=("soft", "hard"),
    )
    loss: str = option("hinge", "--loss", help="Loss of a linear method.", choices=("hinge", "squared"))

    def __post_init__(self) -> None:
        super().__post_init__()
        self.check_clusters()
        if not self.shrinkage or not all(1e-12 <= s <= 1e12 for s in self.shrinkage):
            raise OptionError("--shrinkage takes numbers from 1e-12 to 1e12")

    @property
    def default_costs(self) -> Values:
        """Tasks have few rows, and want large costs."""
        return COSTS

    def axes(self, features: int) -> dict[str, Values]:
        """Components, their start, and shrinkage, smoothest first; then what couples the tasks."""
        return self.cluster_axes | {"shrinkage": most_first(self.shrinkage)}

    def tasks(self, setting: dict[str, float], tolerance: float) -> Tasks:
        """How the tasks are coupled at a setting."""
        return Tasks(0.0, 0.0, self.loss == "squared", tolerance)

    def prepare(self, cell: Cell, view: View) -> Prepared:
        """Mixtures without labels, kept from setting to setting."""
        return PreparedMixture(self, cell)

    def pack(self, cell: Cell, fits: Sequence[Fit]) -> Fitted:
        """The components of all models one below the other, their weights, and what EM did."""
        found: list[SVMMixture] = [fit.solution for fit in fits]
        reports = [one.weights.report for one in found]
        gaps = [(r.primal - r.dual) / r.primal if r.primal > 0 else 0.0 for r in reports]
        done = [one.ended and not one.fell and one.weights.report.converged for one in found]
        factors = [one.mixture.factor.reshape(-1, cell.X.shape[1]) for one in found]
        state: dict[str, NDArray[Any]] = {
            "model_problem": np.asarray([fit.job.problem for fit in fits], np.int32),
            "model_fold": np.asarray([fit.job.fold for fit in fits], np.int32),
            "model_cost": np.asarray([float(fit.job.costs[0]) for fit in fits]),
            "model_gap": np.asarray(gaps, np.float64),
            "model_iterations": np.asarray([len(one.trace) - 1 for one in found], np.int64),
            "model_converged": np.asarray(done, np.uint8),
            "components": np.asarray([len(one.mixture.mean) for one in found], np.int32),
            "offset": np.concatenate([one.mixture.offsets for one in found]),
            "mean": np.concatenate([one.mixture.mean for one in found]),
            "factor": np.concatenate(factors),
            "weights": np.concatenate([one.weights.W for one in found]),
            "trace": np.concatenate([one.trace for one in found]),
            "trace_ptr": np.cumsum([0, *(len(one.trace) for one in found)]).astype(np.int64),
        }
        rounds = int(state["model_iterations"].sum())
        report = FitReport(len(found), rounds, sum(not ok for ok in done), max(gaps, default=0.0))
        return Fitted(state, report)

    def predictor(self, state: State, target: Target, n_features: int) -> MixturePredictor:
        """Decision functions of a saved cell."""
        return MixturePredictor(state, target, self.loss == "squared", self.rule == "hard")

    def pieces(self, target: Target, dense: bool) -> Pieces:
        """m models of K components each; a factor has a row a component, or as many as there are features."""

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

    def memory(self, size: CellSize) -> int:
        """Rows of pairs, of all problems and of one in EM; what is known of rows and components; solutions; and the
        larger of a block of rows with its differences from means and what a solver takes.

        OptionError where full covariances would be too large.
        """
        n, d, K = size.rows, size.width, int(max(self.clusters))
        if self.covariance == "full" and d > MOST_COLUMNS:
            raise OptionError(
                f"--covariance full makes square matrices for at most {MOST_COLUMNS:,} columns, and there are {d:,}; "
                "give --covariance diag"
            )
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
        own = (size.folds + 1) * (parts * (rows + 8 * n * K) + (size.problems * one if parts else 0))
        kept = 2 * rows + KNOWN * 8 * n * K + 2 * 8 * n + one * (models + 2) + scored + own
        return int(kept + max(BLOCK_COPIES * 8 * min(n * d, max(BLOCK, d)), solving))


class PreparedMixture(Prepared):
    """The rows of a cell, and the mixtures of the last number of components, start and shrinkage."""

    def __init__(self, method: MixtureMethod, cell: Cell) -> None:
        X = cell.X if isinstance(cell.X, np.ndarray) else thinned(cell.X)
        self.method, self.cell = method, replace(cell, X=X)
        self._known: dict[tuple[float, int, float], Parts[MixturePart]] = {}

    def at(self, setting: dict[str, float], purpose: Purpose) -> MixtureSystem:
        """The mixtures of this setting."""
        key = setting["clusters"], self.method.start_of(setting), setting["shrinkage"]
        if key not in self._known:
            self._known.clear()  # settings that share one follow each other, and memory is for one
            self._known[key] = mixture_parts(self.cell, int(key[0]), key[1], key[2], self.method.covariance == "full")
        return MixtureSystem(self.method, self.cell, setting, self._known[key])


@dataclass(frozen=True)
class Scored:
    """Weights and M for the mixture without labels."""

    weights: TaskWeights
    M: Floats


class MixtureSystem(System):
    """The problems of a cell, each over the mixture of its part."""

    def __init__(self, method: MixtureMethod, cell: Cell, setting: dict[str, float], parts: Parts[MixturePart]) -> None:
        self.method, self.cell, self.setting, self.parts = method, cell, setting, parts

    def solve(self, jobs: Sequence[Job], starts: Sequence[Scored | None], roughness: float) -> list[list[Scored]]:
        """Cost by cost, all jobs side by side."""
        found: list[list[Scored]] = [[] for _ in jobs]
        for c in range(len(jobs[0].costs)):
            before = [path[-1] if path else start for path, start in zip(found, starts, strict=True)]
            solved = self._scored(jobs, c, before, roughness)
            for path, one in zip(found, solved, strict=True):
                path.append(one)
        return found

    def held_out(self, jobs: Sequence[Job], solutions: Sequence[Sequence[Scored]], out: Floats) -> None:
        """By the rule of the method, with the densities of the mixture without labels."""
        method, parts = self.method, self.parts.of(jobs)

        def values(i: int, c: int, rows: slice) -> Floats:
            X, W, part = between(self.cell.X, rows.start, rows.stop), solutions[i][c].weights.W, parts[i]
            if part.taken is None:
                return decided(part.logs[rows], task_values(X, W), method.loss == "squared", method.rule == "hard")
            return part.decide(X, W, method.loss == "squared", method.rule == "hard")

        fill_held_out(self.cell, jobs, out, values)

    def final(self, jobs: Sequence[Job], starts: Sequence[Scored | None]) -> list[SVMMixture]:
        """EM with labels, from these weights or from those for the mixture without labels."""
        missing = [i for i, start in enumerate(starts) if start is None]
        begin = dict(zip(missing, self._scored([jobs[i] for i in missing], 0, [None] * len(missing), 1.0), strict=True))

        parts = self.parts.of(jobs)

        def work(i: int) -> SVMMixture:
            start, mixture = starts[i] or begin[i], parts[i].mixture
            return self._fitted(jobs[i], SVMMixture(mixture, start.weights, start.M, np.empty(0), False, False))

        return self.cell.threads.map(work, len(jobs))

    def whole_start(self, starts: Sequence[Scored]) -> Scored | None:
        """The means, where components are the same in all folds."""
        if self.parts.paired:
            return None
        weights = [start.weights for start in starts]
        W, width = np.mean([one.W for one in weights], axis=0), max(one.width for one in weights)
        M = np.mean([start.M for start in starts], axis=0)
        return Scored(TaskWeights(W, width, weights[0].report), M)

    def _scored(self, jobs: Sequence[Job], c: int, starts: Sequence[Scored | None], roughness: float) -> list[Scored]:
        tasks, parts = self.method.tasks(self.setting, roughness * self.method.tolerance), self.parts.of(jobs)

        def work(i: int) -> Scored:
            job, start, part = jobs[i], starts[i], parts[i]
            weight = job.costs[c] * self.cell.training_weight(job.fold)
            weights, M = (start.weights, start.M) if start else (None, None)
            y, weight = part.of(self.cell.Y[:, job.problem]), part.of(weight)
            return Scored(*solve_tasks(part.tasks, y, weight, tasks, weights, M))

        return self.cell.threads.map(work, len(jobs))

    def _fitted(self, job: Job, begin: SVMMixture) -> SVMMixture:
        cell, y, weight = self.cell, self.cell.Y[:, job.problem], self.cell.training_weight(job.fold)
        taken = np.flatnonzero((y != 0) & (weight > 0))
        if not len(taken):
            return replace(begin, trace=np.zeros(1), ended=True)
        data = Labelled(rows_of(cell.X, taken), y[taken], mass(cell)[taken], cell.cost[taken])
        tasks = self.method.tasks(self.setting, self.method.tolerance)
        return fit_svm_mixture(data, float(job.costs[0]), tasks, begin, *WITH_LABELS)
