"""What the linear local methods share: one problem, its solutions fold by fold, and its models.

    min_W  1/2 |W|^2 + sum_i C_i loss(y_i f(x_i)),    f(x) = sum_k m_k(x) W_k phi(x) (+ a bias, one a task or shared)

A method says how a row becomes features phi and memberships m (`represent`, `rows`); see csrc/linear.h for the problem
and localsvm/solvers/linear.py for its solvers. Representations do not look at labels: all folds, costs and binary
problems share one, as in the reference implementations.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from localsvm.data.dataset import DENSE_DENSITY, Examples, thinned
from localsvm.errors import OptionError
from localsvm.methods.base import (
    CellSize,
    Fit,
    FitReport,
    Fitted,
    Predictor,
    Prepared,
    Purpose,
    State,
    System,
    View,
    option,
)
from localsvm.methods.cell import Cell, Job, fill_held_out
from localsvm.methods.linear_options import LinearOptions
from localsvm.methods.saved import table
from localsvm.solvers._linear import LinearRows
from localsvm.solvers.linear import LinearSolution, few_weights, solve, working_bytes
from localsvm.solvers.primal import FIRST_WIDTH
from localsvm.store.pieces import Lengths, Piece, Pieces
from localsvm.targets.base import Target

Floats = NDArray[np.float64]
THINNED = 32  # bytes for each value of dense rows that become sparse
BIAS = 1.0  # the constant appended to every row: the bias is regularised, as in LIBLINEAR with -B 1


@dataclass(frozen=True)
class LinearMethod(LinearOptions):
    """What all linear methods do. Subclasses add options, and say what their rows are."""

    one_task_each: ClassVar[bool] = True  # each row belongs to one task, with share 1

    loss: str = option("hinge", "--loss", help="Loss of a linear method.", choices=("hinge", "squared"))

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.solver == "sgd" and self.loss != "hinge":
            raise OptionError("-s sgd is for --loss hinge; the squared hinge has -s sdca, -s primal and -s sag")
        if self.solver == "sag" and self.loss != "squared":
            raise OptionError("-s sag needs a smooth loss: give --loss squared, or another solver such as -s primal")

    @property
    def remedy(self) -> str:
        """Stochastic subgradients come near, whatever the tolerance, and average gradients do where costs are large."""
        remedies = {"sgd": "more --passes, or a smaller C (-C)", "sag": "-s primal, or a smaller C (-C)"}
        return remedies.get(self.solver) or super().remedy

    def represent(self, X: Examples, setting: dict[str, float], random: np.random.SeedSequence) -> State:
        """What is learned from the rows, whatever their labels, for one choice of parameters: arrays to keep."""
        return {}

    def rows(self, X: Examples, state: State) -> LinearRows:
        """Rows as the solver sees them."""
        return LinearRows(X, bias=BIAS)

    def prediction_rows(self, X: Examples, state: State) -> LinearRows:
        """Rows as prediction sees them, for the weights that `prediction_weights` gives."""
        return self.rows(X, state)

    def prediction_weights(self, w: Floats, state: State) -> Floats:
        """The weights that prediction uses, made of the solver's."""
        return w

    def prepare(self, cell: Cell, view: View) -> Prepared:
        """The rows, sparse where they hold mostly zeros; representations are kept from setting to setting."""
        return PreparedLinear(self, cell)

    def pack(self, cell: Cell, fits: Sequence[Fit]) -> Fitted:
        """The representation, a table of models, and their weights."""
        system: LinearSystem = fits[0].system
        return pack_linear(self, system.state, system.cost, [(fit.job, fit.solution) for fit in fits])

    def predictor(self, state: State, target: Target, n_features: int) -> Predictor:
        """Decision functions of a saved cell."""
        return LinearPredictor(self, state, target)

    def pieces(self, target: Target, dense: bool) -> Pieces:
        """The representation, and for each model the weights and the bias of each cluster, and the shared bias."""

        def weights(n: Lengths) -> Any:
            clusters, columns = n.get("K", 1), n["L"] if "L" in n else n["features"]
            return n["m"] * (clusters * (columns + 1) + 1)

        models = table("problem", "fold", "cost", "gap", "iterations", "converged")
        return {**self.represented(), **models, "weights": Piece("f8", (weights,), least=1)}

    def represented(self) -> Pieces:
        """What `represent` gives: of clusters K rows, of landmarks L."""
        return {}

    def memory(self, size: CellSize) -> int:
        """The rows as they are made, and the larger of what making them and what solving on them takes."""
        kept, making = self.representation_bytes(size)
        return kept + max(making, self.solving_bytes(size, self.sizes(size.width)[1], thin_entries(size)))

    def representation_bytes(self, size: CellSize) -> tuple[int, int]:
        """What is made of the rows and stays, and what else is needed meanwhile.

        Dense rows that hold mostly zeros become sparse.
        """
        thinned_bytes = THINNED * size.stored if size.dense and thin_entries(size) is not None else 0
        return thinned_bytes // 4, thinned_bytes - thinned_bytes // 4

    def solving_bytes(self, size: CellSize, features: int, entries: int | None) -> int:
        """Solutions and the work of one solver, for rows of so many features and, where sparse, entries.

        There are the solutions at a cost, those at the cost before, and those of the best point so far; where there is
        one point, its solutions and their weights as they are packed.
        """
        tasks = self.sizes(size.width)[0]
        points = self.grid_for(size.width).n_points
        solutions = 2 * size.problems if points == 1 else min(3, points) * size.problems * size.folds
        work = working_bytes(size.rows, features, tasks, entries, self.solver, self.one_task_each)
        return work + 8 * solutions * (size.rows + tasks * (features + 1)) + 8 * size.rows * size.problems

    def sizes(self, features: int) -> tuple[int, int]:
        """The most tasks, and the most features phi, for rows of so many features."""
        return 1, features


def thin_entries(size: CellSize) -> int | None:
    """How many entries the rows have when `thinned`; None where they stay dense."""
    return None if size.dense and size.stored >= DENSE_DENSITY * size.rows * size.width else size.stored


class PreparedLinear(Prepared):
    """The rows of a cell, and the representations that were made of them."""

    def __init__(self, method: LinearMethod, cell: Cell) -> None:
        self.method, self.cell, self.X = method, cell, thinned(cell.X)
        self._states: dict[tuple[float, ...], State] = {}

    def at(self, setting: dict[str, float], purpose: Purpose) -> LinearSystem:
        """The rows in the representation of this setting."""
        values = tuple(setting.values())
        if values not in self._states:
            self._states[values] = self.method.represent(self.X, setting, self.cell.random)
        state = self._states[values]
        return LinearSystem(self.method, self.cell, self.method.rows(self.X, state), state, purpose.cost)


class LinearSystem(System):
    """Every binary problem of a cell over one representation of its rows. cost: C on the whole cell."""

    def __init__(self, method: LinearMethod, cell: Cell, rows: LinearRows, state: State, cost: float) -> None:
        self.method, self.cell, self.rows, self.state, self.cost = method, cell, rows, state, cost
        # a solution that is only begun from needs its dual coefficients if Newton's method does not go on from weights
        self._weights_do = method.one_task_each and few_weights(rows)

    def solve(
        self, jobs: Sequence[Job], starts: Sequence[LinearSolution | None], roughness: float
    ) -> list[list[LinearSolution]]:
        """Cost by cost, all jobs side by side."""
        found: list[list[LinearSolution]] = [[] for _ in jobs]
        for c in range(len(jobs[0].costs)):
            solved = self._solve_all(jobs, c, starts, roughness * self.method.tolerance)
            for path, solution in zip(found, solved, strict=True):
                path.append(self._lean(solution))
            starts = [path[-1] for path in found]
        return found

    def held_out(self, jobs: Sequence[Job], solutions: Sequence[Sequence[LinearSolution]], out: Floats) -> None:
        """Products of the rows with the weights."""

        def values(i: int, c: int, rows: slice) -> Floats:
            return self.rows.values(solutions[i][c].w, rows.start, rows.stop)

        fill_held_out(self.cell, jobs, out, values)

    def final(self, jobs: Sequence[Job], starts: Sequence[LinearSolution | None]) -> list[LinearSolution]:
        """Solved on to the tolerance."""
        return self._solve_all(jobs, 0, starts, self.method.tolerance)

    def whole_start(self, starts: Sequence[LinearSolution]) -> LinearSolution:
        """Mean weights; mean coefficients of the models that saw a row."""
        alphas = [s.alpha for s in starts if s.alpha is not None]
        alpha = np.sum(alphas, axis=0) / max(1, len(starts) - 1) if len(alphas) == len(starts) else None
        w = np.mean([s.w for s in starts], axis=0)
        return LinearSolution(w, alpha, max(s.width for s in starts), starts[0].report)

    def _solve_all(
        self, jobs: Sequence[Job], c: int, starts: Sequence[LinearSolution | None], tolerance: float
    ) -> list[LinearSolution]:
        def work(i: int) -> LinearSolution:
            job, method = jobs[i], self.method
            y = np.ascontiguousarray(self.cell.Y[:, job.problem])
            weight = job.costs[c] * self.cell.training_weight(job.fold)
            return solve(
                self.rows, y, weight, method.loss == "squared", tolerance, method.solver,
                one_task_each=method.one_task_each, start=starts[i], passes=method.passes,
            )  # fmt: skip

        return self.cell.threads.map(work, len(jobs))

    def _lean(self, found: LinearSolution) -> LinearSolution:
        return replace(found, alpha=None) if found.width < FIRST_WIDTH and self._weights_do else found


def pack_linear(
    method: LinearMethod,
    state: State,
    cost: float,
    models: Sequence[tuple[Job, LinearSolution]],
    support: int | None = None,
) -> Fitted:
    """The fitted cell of some models. cost: C on the whole cell; support: rows inside the margin, where the solutions'
    dual coefficients do not tell.
    """
    reports = [solution.report for _, solution in models]
    gaps = [(r.primal - r.dual) / r.primal if r.primal > 0 else 0.0 for r in reports]
    weights = [method.prediction_weights(solution.w, state) for _, solution in models]
    kept: dict[str, NDArray[Any]] = {
        "model_problem": np.asarray([job.problem for job, _ in models], np.int32),
        "model_fold": np.asarray([job.fold for job, _ in models], np.int32),
        "model_cost": np.full(len(models), cost),
        "model_gap": np.asarray(gaps, np.float64),
        "model_iterations": np.asarray([r.steps for r in reports], np.int64),
        "model_converged": np.asarray([r.converged for r in reports], np.uint8),
        "weights": np.concatenate([*weights, np.empty(0)]),
    }
    if support is None:
        inside = [solution.alpha > 0 for _, solution in models if solution.alpha is not None]
        support = int(np.count_nonzero(np.any(inside, axis=0))) if inside else 0
    report = FitReport(
        models=len(models),
        iterations=sum(r.steps for r in reports),
        not_converged=sum(not r.converged for r in reports),
        largest_gap=max(gaps, default=0.0),
        support_vectors=support,
    )
    return Fitted(state | kept, report)


class LinearPredictor:
    """Decision functions of one cell from its saved arrays."""

    def __init__(self, method: LinearMethod, state: State, target: Target) -> None:
        self._method, self._state, self._target = method, state, target

    @cached_property
    def _weights(self) -> Floats:
        models = len(self._state["model_problem"])
        return np.ascontiguousarray(self._state["weights"].reshape(models, -1), np.float64)

    def decision_function(self, X: Examples) -> Floats:
        """(n, problems) float64, see Target.combine."""
        X = X if isinstance(X, np.ndarray) else thinned(X)
        rows = self._method.prediction_rows(X, self._state)
        values = np.stack([rows.values(w) for w in self._weights], axis=1)
        return self._target.combine(values, self._state["model_problem"])
