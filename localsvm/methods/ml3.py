"""ML3, multiclass latent locally linear SVMs (Fornoni, Caputo, Orabona 2013): each class has m linear models, and a row
is scored by the best combination of them.

Problem, of all classes at once: min 1/2 |W|^2 + C sum_i c_i [1 + max_{r != y_i} s_r(x_i) - s_{y_i}(x_i)]_+ with
s_r(x) = max { b'W_r (x, 1) : b >= 0, |b|_p <= 1 } = |(W_r (x, 1))_+|_q, 1/p + 1/q = 1. In the paper's terms
lambda = 1 / (C n). It is not convex: what is found depends on the random start, and every point of the grid has one of
its own, as at small costs all models of a class become the same and would stay so. See localsvm/solvers/ml3.py.

The class with the largest score wins. The decision value of a binary problem is the difference between the scores of
its two classes; for one class against the rest, to the best of the rest.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from localsvm.data.dataset import Dense, Examples, between, canonical
from localsvm.errors import OptionError
from localsvm.methods.base import (
    CellSize,
    Fit,
    FitReport,
    Fitted,
    Prepared,
    Purpose,
    State,
    System,
    View,
    option,
)
from localsvm.methods.cell import Cell, Job, fill_held_out
from localsvm.methods.clustered import stream
from localsvm.methods.grids import Values
from localsvm.methods.linear_options import LinearOptions
from localsvm.methods.saved import table
from localsvm.solvers.ml3 import ML3Problem, ML3Report, exact, scores, stochastic
from localsvm.solvers.ml3_round import FULL_METRIC
from localsvm.store.pieces import Lengths, Piece, Pieces, floats32, floats64
from localsvm.targets.base import Target
from localsvm.targets.classification import Classification
from localsvm.threads import ALONE

MOST_PRODUCTS = 1 << 28  # in a pass, up to which `auto` solves exactly; mnist, 15 times faster without, has 2^30
LBFGS_VECTORS = 34  # of the size of all weights, in float64: those of scipy's L-BFGS and around it
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class ML3Solution:
    """Weights (classes, m, d + 1), the problem's cost, its objective as above, and what was reached."""

    W: Dense
    cost: float
    objective: float
    report: ML3Report


@dataclass(frozen=True)
class ML3SVM(LinearOptions):
    """Options of the method."""

    name: ClassVar[str] = "ml3"
    joint: ClassVar[bool] = True
    gap_unit: ClassVar[str] = "of the objective in the last round"

    cost: tuple[float, ...] = option(
        (1.0,), "-C", "--cost", help="Cost C of LIBSVM's problem (its -c): one value, a list or a range, as for -g."
    )
    solver: str = option("auto", "-s", "--solver", help="Solver of a linear method.", choices=("auto", "primal", "sgd"))
    passes: int = option(30, "--passes", help="Passes over the rows that -s sgd makes.")
    models: tuple[float, ...] = option(
        (10.0,), "--models", help="Linear models of each class of ml3: a number, or a list to choose from."
    )
    norm: float = option(1.5, "--norm", help="p of the p-norm that bounds combinations of models in ml3, from 1.")

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.models or not all(m >= 1 and m == int(m) for m in self.models):
            raise OptionError("--models takes whole numbers from 1")
        if not 1.0 <= self.norm < np.inf:
            raise OptionError(f"--norm must be a number from 1, not {self.norm:g}")

    def axes(self, features: int) -> dict[str, Values]:
        """The number of models."""
        return {"models": self.models}

    def prepare(self, cell: Cell, view: View) -> Prepared:
        """Nothing is shared."""
        return PreparedML3(self, cell)

    def pack(self, cell: Cell, fits: Sequence[Fit]) -> Fitted:
        """The weights of all classes, and a table of models."""
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
        return ML3Predictor(self.norm, state, target, n_features)

    def pieces(self, target: Target, dense: bool) -> Pieces:
        """The weights of all classes: n models for each, and m times, once for each fold."""

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
        """Solutions; of the exact solver two copies of the rows, combinations, L-BFGS's vectors and the coordinates'
        matrices; of the other one a few float32 copies of the weights.

        There are at least two classes, and at most one more than problems that a row takes part in.
        """
        models, columns = int(max(self.models)), int(size.width) + 1
        classes = max(2, size.solutions // size.folds + 1)
        weights, points = 4 * classes * models * columns, self.grid_for(size.width).n_points
        own = weights * (2 if points == 1 else min(3, points) * size.folds)
        if self.solver == "sgd":
            return own + 6 * weights
        metric = 3 * 8 * columns**2 if size.width < FULL_METRIC else 0
        rows = int(4 * size.rows * size.width if size.dense else 12 * size.stored)
        return own + 2 * rows + 8 * size.rows * (classes + models) + 2 * LBFGS_VECTORS * weights + metric


class PreparedML3(Prepared):
    """The rows as they are."""

    def __init__(self, method: ML3SVM, cell: Cell) -> None:
        self.method, self.cell = method, cell

    def at(self, setting: dict[str, float], purpose: Purpose) -> ML3System:
        """With so many models a class."""
        return ML3System(self.method, self.cell, int(setting["models"]))


class ML3System(System):
    """The problem of all classes, with so many models each."""

    def __init__(self, method: ML3SVM, cell: Cell, models: int) -> None:
        self.method, self.cell, self.models = method, cell, models
        self.classes = len(_classes(cell.target).labels)
        self.codes = _classes(cell.target).codes(cell.y).astype(np.int32)

    def solve(
        self, jobs: Sequence[Job], starts: Sequence[ML3Solution | None], roughness: float
    ) -> list[list[ML3Solution]]:
        """Each by itself, to the tolerance: these solutions may become the model. The exact solver copies the rows, so
        that only one may run.
        """
        threads = self.cell.threads if self.solver == "sgd" else ALONE
        work = [(job, float(cost)) for job in jobs for cost in job.costs]
        found = iter(threads.map(lambda i: self._solve(*work[i]), len(work)))
        return [[next(found) for _ in job.costs] for job in jobs]

    def held_out(self, jobs: Sequence[Job], solutions: Sequence[Sequence[ML3Solution]], out: Floats) -> None:
        """Differences of the classes' scores."""
        pairs = np.asarray(_classes(self.cell.target).pairs)

        def values(i: int, c: int, rows: slice) -> Floats:
            X = between(self.cell.X, rows.start, rows.stop)
            return differences(scores(solutions[i][c].W, X, self.method.norm), pairs)

        fill_held_out(self.cell, jobs, out, values)

    @property
    def solver(self) -> str:
        """What `auto` means for a cell, the same with and without a fold."""
        if self.method.solver != "auto":
            return self.method.solver
        X = self.cell.X
        stored = X.size if isinstance(X, np.ndarray) else len(X.data)
        return "sgd" if stored * self.classes * self.models > MOST_PRODUCTS else "primal"

    def _solve(self, job: Job, cost: float) -> ML3Solution:
        cell, method = self.cell, self.method
        seen = cell.folds != job.fold
        taken = int(np.count_nonzero(seen))
        if not taken:
            nothing = ML3Report(0.0, 0, 0.0, True, np.zeros(len(seen), np.bool_))
            W = np.zeros((self.classes, self.models, cell.X.shape[1] + 1), np.float32)
            return ML3Solution(W, cost, 0.0, nothing)
        weight, lam = cell.training_weight(job.fold), 1.0 / (cost * taken)
        problem = ML3Problem(cell.X, self.codes, weight, self.classes, self.models, method.norm, lam=lam)
        rng = stream(cell.random, job.fold + 1)
        if self.solver == "sgd":
            W, report = stochastic(problem, rng, method.passes)
        else:
            W, report = exact(problem, rng, method.tolerance)
        return ML3Solution(W, cost, cost * taken * report.objective, report)


class ML3Predictor:
    """Decision functions of one cell from its saved arrays."""

    def __init__(self, norm: float, state: State, target: Target, n_features: int) -> None:
        self._norm, self._target, self._pairs = norm, target, state["pairs"].astype(np.intp)
        shape = len(state["models"]), -1, int(state["models"][0]), n_features + 1  # -1: the classes
        self._weights = np.ascontiguousarray(state["weights"], np.float32).reshape(shape)

    def decision_function(self, X: Examples) -> Floats:
        """(n, problems) float64, from the scores of the only model, or the mean scores of the fold models: clipped
        differences, as other methods average, would let the labels depend on which are taken.
        """
        X = canonical(X)
        values = differences(np.mean([scores(W, X, self._norm) for W in self._weights], axis=0), self._pairs)
        return self._target.combine(values, np.arange(len(self._pairs)))  # one model a problem


def differences(s: Floats, pairs: NDArray[np.intp]) -> Floats:
    """(n, problems) decision values of the binary problems `pairs` from the scores (n, classes)."""
    other, own = pairs.T
    if other[0] < 0:
        return margin_over_others(s)
    return np.asarray(s[:, own] - s[:, other])


def margin_over_others(s: Floats) -> Floats:
    """(n, classes): each class's score minus the largest score of the other classes."""
    ordered = np.sort(s, axis=1)
    others = np.where(s < ordered[:, -1:], ordered[:, -1:], ordered[:, -2:-1])
    return np.asarray(s - others)


def _classes(target: Target) -> Classification:
    if not isinstance(target, Classification):
        raise TypeError("ml3 is for classes")
    return target
