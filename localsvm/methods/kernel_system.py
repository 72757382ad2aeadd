"""The binary problems of a cell over one kernel: solved along the costs fold by fold, and the models to keep.

Held-out rows stay in the solver's gradient with coefficient 0, so that their decision values come with the solution,
and each cost starts from the solution of the one before.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from localsvm.kernels import Kernel
from localsvm.kernels._kernels import padded
from localsvm.kernels.blocks import KernelRows
from localsvm.methods.base import System
from localsvm.methods.cell import WHOLE, Cell, Job
from localsvm.methods.kernel_expansion import KernelModel
from localsvm.solvers._smo import DualReport, KernelDual
from localsvm.solvers.blocks import BlockDual

Floats = NDArray[np.float64]
Matrix = NDArray[Any] | KernelRows


class PathPoint(NamedTuple):
    """The solution of a job at one cost.

    b (rows of the problem,): coefficients; held_out: decision values of the problem's rows that the fold holds out;
    end: where the path goes on, (cost, b, Kb) padded as the solver has them, None but at the last of some costs.
    """

    b: Floats
    bias: float
    iterations: int
    held_out: Floats
    end: tuple[float, Floats, Floats] | None


class KernelStart(NamedTuple):
    """Coefficients to begin from, found in so many iterations."""

    b: Floats
    iterations: int


class KernelSystem(System):
    """Every binary problem of a cell over one kernel.

    Parameters: K: the kernel matrix of the cell's rows, padded, or rows whose kernel is computed as it is needed;
    offset: with LIBSVM's offset b; tolerance: of the models.
    """

    def __init__(self, cell: Cell, K: Matrix, kernel: Kernel, offset: bool, tolerance: float) -> None:
        self.cell, self.K, self.kernel, self.offset, self.tolerance = cell, K, kernel, offset, tolerance

    def solve(self, jobs: Sequence[Job], starts: Sequence[PathPoint | None], roughness: float) -> list[list[PathPoint]]:
        """Problem by problem, as their kernels share memory."""
        return [
            path
            for p, first, last in _by_problem(jobs)
            for path in BinaryProblem(self, p).paths(jobs[first:last], starts[first:last], roughness * self.tolerance)
        ]

    def held_out(self, jobs: Sequence[Job], solutions: Sequence[Sequence[PathPoint]], out: Floats) -> None:
        """Rows of other classes count too: where there are many, decisions are made between all problems."""
        for p, first, last in _by_problem(jobs):
            BinaryProblem(self, p).held_out(jobs[first:last], solutions[first:last], out[:, p])

    def final(self, jobs: Sequence[Job], starts: Sequence[KernelStart | None]) -> list[KernelModel | None]:
        """Solved on to the tolerance; None for a job that has no rows."""
        return [
            model
            for p, first, last in _by_problem(jobs)
            for model in BinaryProblem(self, p).models(jobs[first:last], starts[first:last])
        ]

    def start(self, solution: PathPoint) -> KernelStart:
        """A copy of the coefficients: they are a view of the whole path."""
        return KernelStart(solution.b.copy(), solution.iterations)

    def whole_start(self, starts: Sequence[KernelStart]) -> KernelStart | None:
        """The mean, as each row is in all folds' training but one; with an offset nothing, as it would not add up."""
        if self.offset:
            return None
        return KernelStart(np.sum([start.b for start in starts], axis=0) / max(1, len(starts) - 1), 0)

    def support_share(self, cost: float) -> float:
        """Share of the rows that are support vectors of the first problem at this cost; 1 where nothing is solved."""
        return BinaryProblem(self, 0).support_share(cost)


class BinaryProblem:
    """One binary problem of a cell: the rows that take part, padded for the solver."""

    def __init__(self, system: KernelSystem, index: int) -> None:
        cell = system.cell
        self.system, self.cell, self.index = system, cell, index
        self.rows = np.flatnonzero(cell.Y[:, index])
        self.n = len(self.rows)
        self.everybody = self.n == len(cell.y)
        self.size = self.n if isinstance(system.K, KernelRows) else padded(self.n)
        self.y = self._pad(cell.Y[self.rows, index])
        self.weight = self._pad(cell.weight[self.rows])
        self.folds = cell.folds[self.rows]
        sides = np.unique(self.y[: self.n])
        # rows of one side only need no solver: their constant is the answer; with no rows nobody answers
        self.solved = len(sides) == 2
        self.constant = float(sides[0]) if len(sides) == 1 else 0.0

    def paths(self, jobs: Sequence[Job], starts: Sequence[PathPoint | None], tolerance: float) -> list[list[PathPoint]]:
        """The solutions along the costs of the problem's jobs, one a fold."""
        if not self.solved:
            return [self._constant_path(job) for job in jobs]
        solver = self._solver()
        units = self._units(solver, jobs) if starts[0] is None else [None] * len(jobs)
        found = []
        for job, start, unit in zip(jobs, starts, units, strict=True):
            weight, end = self._weight_without(job.fold), None if start is None else start.end
            b, f, reports = solver.path(weight, unit, job.costs, tolerance, end)
            held, last = self._held(job.fold), len(job.costs) - 1
            ends = [None] * last + [(float(job.costs[last]), b[last].copy(), f[last].copy())]
            found.append(
                [
                    PathPoint(b[c, : self.n], report.bias, report.iterations, f[c, held] + report.bias, ends[c])
                    for c, report in enumerate(reports)
                ]
            )
        return found

    def held_out(self, jobs: Sequence[Job], solutions: Sequence[Sequence[PathPoint]], out: Floats) -> None:
        """Fill out (costs, rows of the cell) with decision values by the model of the fold that holds the row out."""
        K = self.system.K
        part: Matrix | None = None
        if not self.everybody and self.solved:
            part = K.part(self.rows) if isinstance(K, KernelRows) else K[self.rows]  # once for all folds
        for job, path in zip(jobs, solutions, strict=True):
            held = self.cell.held_out(job.fold)
            if not self.everybody:
                out[:, held] = np.asarray([point.bias for point in path])[:, None]
            if part is not None:
                out[:, held] += _products(K, part, np.stack([point.b for point in path]), held)
            own = self.rows[self._held(job.fold)]
            out[:, own] = np.stack([point.held_out for point in path])

    def models(self, jobs: Sequence[Job], starts: Sequence[KernelStart | None]) -> list[KernelModel | None]:
        """The models to keep; rows of one side have one constant model for all folds."""
        if not self.solved:
            report = DualReport(0.0, 0.0, 0.0, self.constant, 0, True)
            nothing = np.empty(0, np.int64), np.empty(0)
            model = KernelModel(self.index, WHOLE, self.system.kernel, 0.0, 0.0, report, *nothing) if self.n else None
            return [model, *[None] * (len(jobs) - 1)]
        solver = self._solver()
        return [
            self._model(solver, job, start) if np.any(self.folds != job.fold) else None
            for job, start in zip(jobs, starts, strict=True)
        ]

    def support_share(self, cost: float) -> float:
        """Share of the rows that are support vectors at this cost; 1 where nothing is solved."""
        if not self.solved:
            return 1.0
        signed = cost * self.weight * self.y
        lo, hi = np.minimum(signed, 0.0), np.maximum(signed, 0.0)
        b, _, _ = self._solver().solve(lo, hi, self.system.tolerance)
        return float(np.count_nonzero(b)) / self.n

    def _model(self, solver: KernelDual | BlockDual, job: Job, start: KernelStart | None) -> KernelModel:
        """Solve and certify."""
        cost = float(job.costs[0])
        box = cost * self._weight_without(job.fold)
        hi, lo = np.where(self.y > 0, box, 0.0), np.where(self.y < 0, -box, 0.0)
        first = None if start is None else np.clip(self._pad(start.b), lo, hi)
        b, _, report = solver.solve(lo, hi, self.system.tolerance, first)
        report.iterations += 0 if start is None else start.iterations
        keep = np.flatnonzero(b[: self.n])
        gap = report.gap / box.sum() if box.sum() else 0.0
        return KernelModel(self.index, job.fold, self.system.kernel, cost, gap, report, self.rows[keep], b[keep])

    def _solver(self) -> KernelDual | BlockDual:
        K, offset = self.system.K, self.system.offset
        if isinstance(K, KernelRows):
            return BlockDual(K if self.everybody else K.part(self.rows), self.y, offset)
        part = K if self.everybody else self._gather(K)
        return KernelDual(part, self.y, offset, self.system.kernel.uses_distances)

    def _gather(self, K: NDArray[Any]) -> NDArray[Any]:
        out = self.cell.scratch.array("part", (self.size, self.size), K.dtype)
        out[:] = 0
        out[: self.n, : self.n] = K[np.ix_(self.rows, self.rows)]
        return out

    def _units(self, solver: KernelDual | BlockDual, jobs: Sequence[Job]) -> list[Floats]:
        """K (y * weight) without each fold, where the paths begin: the sum over the other folds."""
        if self.system.offset:  # paths start at zero
            return [np.zeros(self.size) for _ in jobs]
        whole = (self.weight * self.y)[: self.n]
        parts = [solver.multiply(self._pad(whole * (self.folds == k))) for k in range(self.cell.n_folds)]
        total = np.sum(parts, axis=0)
        return [total - parts[job.fold] for job in jobs]

    def _constant_path(self, job: Job) -> list[PathPoint]:
        rows = self._held(job.fold)
        values = np.full(rows.stop - rows.start, self.constant)
        return [PathPoint(np.zeros(self.n), self.constant, 0, values, None) for _ in job.costs]

    def _held(self, fold: int) -> slice:
        """The problem's own rows that the fold holds out."""
        return slice(*(int(i) for i in np.searchsorted(self.folds, [fold, fold + 1])))

    def _weight_without(self, fold: int) -> Floats:
        return self._pad(self.weight[: self.n] * (self.folds != fold))

    def _pad(self, values: Floats) -> Floats:
        out = np.zeros(self.size)
        out[: self.n] = values
        return out


def _by_problem(jobs: Sequence[Job]) -> list[tuple[int, int, int]]:
    """(problem, first, last): the jobs first .. last - 1 are that problem's."""
    problems = [job.problem for job in jobs]
    edges = [i for i in range(len(jobs)) if i == 0 or problems[i] != problems[i - 1]]
    return [(problems[a], a, z) for a, z in zip(edges, [*edges[1:], len(jobs)], strict=True)]


def _products(K: Matrix, part: Matrix, b: Floats, held: slice) -> Any:
    """(costs, held rows): b (costs, rows of part) times the kernel of part with the held-out rows."""
    if isinstance(K, KernelRows):
        assert isinstance(part, KernelRows)
        rows = K.part(np.arange(held.start, held.stop))
        return np.asarray([rows.times(part, coef) for coef in b])
    assert isinstance(part, np.ndarray)
    return b.astype(K.dtype) @ part[:, held]
