"""SVML: a kernel SVM whose metric is learned with it (Xu, Weinberger, Chapelle 2012).

For each binary problem: f(x) = sum_i a_i exp(-|L(x - x_i)|^2) + b, the SVM with the squared hinge, a free offset and
cost C. L and C are learned together from at most 8 000 rows (see localsvm/representations/svm_metric.py); then the SVM
with this L and C is solved on all rows (see localsvm/solvers/squared_hinge.py). There is no grid. Problems of several
classes have a metric each.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from localsvm.data.dataset import Dense, Examples, between, rows_of
from localsvm.errors import OptionError
from localsvm.features.metric import Metric
from localsvm.kernels.entries import base_of, few_entries
from localsvm.kernels.gram import active_columns, columns_of, double_base, transform_double
from localsvm.methods.base import CellSize, Fit, Fitted, Method, Prepared, Purpose, State, System, View, option
from localsvm.methods.cell import Cell, Job, fill_held_out
from localsvm.methods.clustered import stream
from localsvm.methods.grids import Grid
from localsvm.methods.kernel_expansion import KernelModel, expansion_pieces, pack_models, report_of
from localsvm.methods.mapped_expansion import DIAGONALS, GAUSSIAN, MappedPredictor, mapped, stored
from localsvm.partition import copies
from localsvm.partition._nearest import Matrix
from localsvm.representations.svm_metric import MOST_ROWS, Learned, Rows, first_map, learn, split
from localsvm.solvers._smo import DualReport
from localsvm.solvers.squared_hinge import solve
from localsvm.store.pieces import Lengths, Pieces, floats32
from localsvm.targets.base import Target

Floats = NDArray[np.float64]
FORMS = ("full", "diag", "sphere")
RANK = "rank:"
MOST_COLUMNS = 2000  # of a square matrix L: with more, a step takes seconds and the search gigabytes
LBFGS_VECTORS = 34  # of the size of L, in float64: those of scipy's L-BFGS and around it


@dataclass(frozen=True)
class SVML(Method):
    """Options of the method."""

    name: ClassVar[str] = "svml"
    learns_metric: ClassVar[bool] = True

    form: str = option(
        "full", "--form", help="Map that svml learns: full, diag, sphere (a multiple of the identity) or rank:R."
    )
    pull: float = option(0.1, "--pull", help="Weight of |L - I/d|^2 in svml; 100 leaves the metric as it is.")

    def __post_init__(self) -> None:
        count = self.form.removeprefix(RANK)
        ranked = self.form.startswith(RANK) and count.isdecimal() and int(count) >= 1
        if self.form not in FORMS and not ranked:
            raise OptionError(f"--form {self.form}: choose one of {', '.join(FORMS)} or rank:R, as rank:2")
        if not 0.0 <= self.pull < np.inf:
            raise OptionError(f"--pull must be a number from 0, not {self.pull:g}")

    @property
    def shift_invariant(self) -> bool:
        """The kernel is one of differences."""
        return True

    @property
    def remedy(self) -> str:
        """For Newton's method, which has no tolerance."""
        return "scale the data (--scale std)"

    def default_select(self, n_classes: int) -> str:
        """One model on all rows, as the paper has it."""
        return "refit"

    def height(self, columns: int) -> int:
        """Rows of a stored map; a diagonal is one."""
        if self.form == "full":
            return columns
        return min(columns, int(self.form.removeprefix(RANK))) if self.form.startswith(RANK) else 1

    def grid(self, cell: Cell, average_rows: float, folds: int) -> Grid:
        """One point: C is learned."""
        return Grid()

    def prepare(self, cell: Cell, view: View) -> Prepared:
        """Nothing is shared: a metric is of a problem and a fold."""
        return PreparedRows(self, cell)

    def pack(self, cell: Cell, fits: Sequence[Fit]) -> Fitted:
        """The expansion's arrays over the rows as they are, and the maps one below the other."""
        models = [fit.solution.model for fit in fits]
        state = pack_models(cell.X, cell.Y, models)
        state["map"] = np.concatenate([fit.solution.L for fit in fits])
        return Fitted(state, report_of(models, cell))

    def predictor(self, state: State, target: Target, n_features: int) -> MappedPredictor:
        """Decision functions of a saved cell."""
        return MappedPredictor(self.form, state, target, n_features)

    def metrics(self, column: Callable[[str], NDArray[Any]], models: int) -> list[Metric]:
        """The maps of so many models, one below the other as a state has them, each as a metric."""
        maps = column("map")
        each = maps.reshape(models, -1, maps.shape[1]) if models else ()
        return [Metric(L[0] if self.form in DIAGONALS else np.ascontiguousarray(L.T)) for L in each]

    def pieces(self, target: Target, dense: bool) -> Pieces:
        """Those of an expansion, and a map a model."""

        def rows(lengths: Lengths) -> Any:
            return lengths["m"] * self.height(int(lengths["features"]))

        return {**expansion_pieces(dense), "map": floats32(rows, "features")}

    def memory(self, size: CellSize) -> int:
        """A kernel, its factor and a border; rows in float64 and their like in a gradient; vectors of the search.

        OptionError where the map would be too large, or have more rows than columns.
        """
        n, part, columns, height = size.rows, min(size.rows, MOST_ROWS), size.features, self.height(size.width)
        if self.form == "full" and size.width > MOST_COLUMNS:
            raise OptionError(
                f"--form full learns a square matrix for at most {MOST_COLUMNS:,} columns, and there are "
                f"{size.width:,}; give --form diag or rank:10"
            )
        if self.form.startswith(RANK) and int(self.form.removeprefix(RANK)) > size.width:
            raise OptionError(
                f"--form {self.form}: there are only {size.width:,} features; give at most {RANK}{size.width}"
            )
        learning = 10 * part**2 + 40 * part * columns
        solving = 17 * n**2 + 20 * n * columns
        return int(max(learning, solving) + 8 * LBFGS_VECTORS * height * columns + 16 * height * size.width)


@dataclass(frozen=True)
class MetricSolution:
    """A map (rows, d) float32 as it is stored, and the expansion over the mapped rows."""

    L: Dense
    model: KernelModel


class PreparedRows(Prepared):
    """The rows of a cell."""

    def __init__(self, method: SVML, cell: Cell) -> None:
        self.method, self.cell = method, cell

    def at(self, setting: dict[str, float], purpose: Purpose) -> MetricSystem:
        """There is one setting."""
        return MetricSystem(self.method, self.cell)


class MetricSystem(System):
    """The problems of a cell, each with a metric of its own."""

    def __init__(self, method: SVML, cell: Cell) -> None:
        self.method, self.cell = method, cell

    def solve(
        self, jobs: Sequence[Job], starts: Sequence[MetricSolution | None], roughness: float
    ) -> list[list[MetricSolution]]:
        """One by one, as a kernel of all rows is in memory. The solutions are exact."""
        return [[self._solve(job)] for job in jobs]

    def held_out(self, jobs: Sequence[Job], solutions: Sequence[Sequence[MetricSolution]], out: Floats) -> None:
        """As a predictor has it."""
        cell, method = self.cell, self.method

        def values(i: int, c: int, rows: slice) -> Floats:
            found = solutions[i][c]
            state = pack_models(cell.X, cell.Y, [found.model]) | {"map": found.L}
            predictor = MappedPredictor(method.form, state, cell.target, cell.X.shape[1])
            return predictor.values(between(cell.X, rows.start, rows.stop))[:, 0]

        fill_held_out(cell, jobs, out, values)

    def _solve(self, job: Job) -> MetricSolution:
        cell, y, weight = self.cell, self.cell.Y[:, job.problem], self.cell.training_weight(job.fold)
        taken = np.flatnonzero((y != 0) & (weight > 0))
        found = self._learn(taken, y[taken], weight[taken], job)
        L = stored(found.L, self._columns, cell.X.shape[1], self.method.form)
        cost = found.cost * weight[taken]
        solution = solve(kernel_of(mapped(rows_of(cell.X, taken), L, self.method.form)), y[taken], cost)
        gap = solution.gap(y[taken], cost) / max(float(cost.sum()), np.finfo(np.float64).tiny)
        report = DualReport(0.0, gap, 0.0, solution.bias, found.solved + 1, solution.converged)
        rows, coef = taken[solution.support], solution.coef[solution.support]
        return MetricSolution(L, KernelModel(job.problem, job.fold, GAUSSIAN, found.cost, gap, report, rows, coef))

    def _learn(self, taken: NDArray[np.intp], y: Floats, weight: Floats, job: Job) -> Learned:
        """The map over the columns that have values, of rows of this problem."""
        cell, method = self.cell, self.method
        random = stream(cell.random, 1 + (job.fold + 1) * cell.target.n_problems + job.problem)
        parts = split(y, random, None if self._copies is None else self._copies[taken])
        index = parts or [np.arange(min(len(y), MOST_ROWS))]
        dense = [columns_of(rows_of(cell.X, taken[i]), self._columns).astype(np.float64) for i in index]
        centre = dense[0].mean(axis=0) if len(dense[0]) else 0.0
        L0 = first_map(method.form, method.height(cell.X.shape[1]), dense[0], cell.X.shape[1])
        if parts is None:
            return Learned(L0, 1.0, 0)
        train, validation, check = (Rows(X - centre, y[i], weight[i]) for X, i in zip(dense, parts, strict=True))
        return learn(train, validation, check, L0, method.pull)

    @cached_property
    def _copies(self) -> NDArray[np.int64] | None:
        """Which rows of the cell are equal."""
        return copies(Matrix(self.cell.X))

    @cached_property
    def _columns(self) -> NDArray[np.int64] | None:
        return active_columns(self.cell.X)


def kernel_of(X: Examples) -> Floats:
    """exp(-|x - x'|^2) of mapped rows, in float64."""
    if few_entries(X):
        base = base_of(X, X, True)
    else:
        rows = columns_of(X, active_columns(X))
        base = double_base(rows, rows, True)
    np.fill_diagonal(base, 0.0)
    transform_double(GAUSSIAN, base, base)
    return base
