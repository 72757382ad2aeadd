"""System of `svml`: the problems of a cell, each solved with a metric of its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from localsvm.data.blocks.dataset import Dense, Examples, between, rows_of
from localsvm.data.blocks.dealing import Mates
from localsvm.kernels import Kernel
from localsvm.kernels.entries import base_of, few_entries
from localsvm.kernels.gram import active_columns, columns_of, double_base, transform_double
from localsvm.methods.base import Prepared, Purpose, System
from localsvm.methods.cell import Cell, Job, fill_held_out
from localsvm.methods.kernel.svml import SVML
from localsvm.methods.kernel.systems.expansion import KernelModel, pack_models
from localsvm.methods.kernel.systems.mapped import mapped, stored
from localsvm.methods.random import stream
from localsvm.partition import copies
from localsvm.partition._nearest import Matrix
from localsvm.representations.svm_kernels import MAP_KERNELS
from localsvm.representations.svm_metric import MOST_ROWS, LearnedMap, ProblemRows, first_map, learn, split
from localsvm.solvers._smo import DualReport
from localsvm.solvers.squared_hinge import solve

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class MetricSolution:
    """A map (rows, d) float32 as it is stored, and the expansion over the mapped rows."""

    map: Dense
    model: KernelModel


class PreparedMetric(Prepared):
    """The rows of a cell."""

    def __init__(self, method: SVML, cell: Cell) -> None:
        self.method, self.cell = method, cell

    def at(self, setting: dict[str, float], purpose: Purpose) -> MetricSystem:
        """The system of the only setting."""
        return MetricSystem(self.method, self.cell)


class MetricSystem(System):
    """The problems of a cell, each with a metric of its own."""

    def __init__(self, method: SVML, cell: Cell) -> None:
        self.method, self.cell, self.kernel = method, cell, MAP_KERNELS[method.kernel]

    def solve(
        self, jobs: Sequence[Job], starts: Sequence[MetricSolution | None], roughness: float
    ) -> list[list[MetricSolution]]:
        """Solve one by one, as a kernel of all rows is in memory. The solutions are exact."""
        return [[self._solve(job)] for job in jobs]

    def held_out(self, jobs: Sequence[Job], solutions: Sequence[Sequence[MetricSolution]], out: Floats) -> None:
        """Fill in decision values as a predictor computes them."""
        cell, method = self.cell, self.method

        def values(i: int, c: int, rows: slice) -> Floats:
            solution = solutions[i][c]
            state = pack_models(cell.X, cell.Y, [solution.model]) | {"map": solution.map}
            predictor = method.predictor(state, cell.target, cell.X.shape[1])
            return predictor.values(between(cell.X, rows.start, rows.stop))[:, 0]

        fill_held_out(cell, jobs, out, values)

    def _solve(self, job: Job) -> MetricSolution:
        method, cell, of_mapped = self.method, self.cell, self.kernel.of_mapped
        y, weight = cell.Y[:, job.problem], cell.training_weight(job.fold)
        taken = np.flatnonzero((y != 0) & (weight > 0))
        learned = self._learn(taken, y[taken], weight[taken], job)
        M = stored(self.kernel.map_of(learned.L), self._columns, cell.X.shape[1], method.form)
        cost = learned.cost * weight[taken]
        solution = solve(matrix_of(of_mapped, mapped(rows_of(cell.X, taken), M, method.form)), y[taken], cost)
        gap = solution.gap(y[taken], cost) / max(float(cost.sum()), np.finfo(np.float64).tiny)
        report = DualReport(0.0, gap, 0.0, solution.bias, learned.solved + 1, solution.converged)
        rows, coef = taken[solution.support], solution.coef[solution.support]
        return MetricSolution(M, KernelModel(job.problem, job.fold, of_mapped, learned.cost, gap, report, rows, coef))

    def _learn(self, taken: NDArray[np.intp], y: Floats, weight: Floats, job: Job) -> LearnedMap:
        """Learn the map over the columns that have values, from the rows `taken` of this problem."""
        cell, method = self.cell, self.method
        random = stream(cell.random, 1 + (job.fold + 1) * cell.target.n_problems + job.problem)
        parts = split(y, random, None if self._mates is None else self._mates.of(taken))
        index = parts or [np.arange(min(len(y), MOST_ROWS))]
        dense = [columns_of(rows_of(cell.X, taken[i]), self._columns).astype(np.float64) for i in index]
        centre = dense[0].mean(axis=0) if len(dense[0]) else 0.0
        columns = cell.X.shape[1]
        L0 = self.kernel.of_map(first_map(method.form, method.height(columns), dense[0], columns))
        if parts is None:
            return LearnedMap(L0, 1.0, 0)
        train, validation, check = (ProblemRows(X - centre, y[i], weight[i]) for X, i in zip(dense, parts, strict=True))
        return learn(train, validation, check, L0, method.pull, self.kernel)

    @cached_property
    def _mates(self) -> Mates | None:
        """Rows that stay together: those of the user's groups, or equal ones; None where none do."""
        same = None if self.cell.mates else copies(Matrix(self.cell.X))
        return self.cell.mates if same is None else Mates(same)

    @cached_property
    def _columns(self) -> NDArray[np.int64] | None:
        return active_columns(self.cell.X)


def matrix_of(kernel: Kernel, X: Examples) -> Floats:
    """Kernel matrix of mapped rows, in float64."""
    if few_entries(X):
        base = base_of(X, X, kernel.base)
    else:
        rows = columns_of(X, active_columns(X))
        base = double_base(rows, rows, kernel.base)
    np.fill_diagonal(base, 0.0)
    transform_double(kernel, base, base)
    return base
