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
from localsvm.kernels._kernels import RowsOnDemand
from localsvm.kernels.blocks import KernelRows
from localsvm.methods.base import WHOLE, System
from localsvm.methods.cell import Cell, Job
from localsvm.methods.kernel.systems.binary_rows import BinaryRows
from localsvm.methods.kernel.systems.expansion import KernelModel
from localsvm.methods.kernel.systems.paths import PathEnd, ends_of
from localsvm.methods.kernel.systems.seeds import Seeds, Solver
from localsvm.solvers._smo import DualReport, KernelDual
from localsvm.solvers.blocks import BlockDual
from localsvm.solvers.boxes import HINGE, Boxes, Dual
from localsvm.solvers.lasvm import OnlineDual

Floats = NDArray[np.float64]
Matrix = NDArray[Any] | RowsOnDemand | KernelRows


class PathPoint(NamedTuple):
    """The solution of a job at one cost.

    b (rows of the problem,): coefficients; held_out: decision values of the problem's rows that the fold holds out;
    end: where the path goes on, (cost, b, Kb) padded as the solver has them, None but at the last of some costs.
    """

    b: Floats
    bias: float
    iterations: int
    held_out: Floats
    end: PathEnd | None


class KernelStart(NamedTuple):
    """Coefficients to begin from, found in so many iterations."""

    b: Floats
    iterations: int


class KernelSystem(System):
    """Every binary problem of a cell over one kernel.

    Parameters
    ----------
    K : the kernel matrix of the cell's rows, padded, with all rows or those that were read; or rows whose kernel is
        computed block by block
    offset : with LIBSVM's offset b
    tolerance : of the models
    known : the rows of the cell's problems, shared by its systems; filled as they are needed
    online_epochs : of LaSVM, before the solver; the kernel matrix is whole then
    loss : that of classes; others than the hinge have no offset, and take matrices alone
    """

    def __init__(
        self,
        cell: Cell,
        K: Matrix,
        kernel: Kernel,
        offset: bool,
        tolerance: float,
        known: dict[tuple[int, bool], BinaryRows] | None = None,
        online_epochs: int = 0,
        loss: Dual = HINGE,
    ) -> None:
        self.cell, self.K, self.kernel, self.offset, self.tolerance = cell, K, kernel, offset, tolerance
        self._known, self.online_epochs, self.loss = {} if known is None else known, online_epochs, loss

    def solve(self, jobs: Sequence[Job], starts: Sequence[PathPoint | None], roughness: float) -> list[list[PathPoint]]:
        """Solve problem by problem, as their kernels share memory."""
        return [
            path
            for p, first, last in _by_problem(jobs)
            for path in self._problem(p).paths(jobs[first:last], starts[first:last], roughness * self.tolerance)
        ]

    def held_out(self, jobs: Sequence[Job], solutions: Sequence[Sequence[PathPoint]], out: Floats) -> None:
        """Fill in decision values.

        Rows of other classes count too: where there are many, decisions are made between all problems.
        """
        for p, first, last in _by_problem(jobs):
            self._problem(p).held_out(jobs[first:last], solutions[first:last], out[:, p])

    def final(self, jobs: Sequence[Job], starts: Sequence[KernelStart | None]) -> list[KernelModel | None]:
        """Models solved on to the tolerance; None for a job that has no rows."""
        return [
            model
            for p, first, last in _by_problem(jobs)
            for model in self._problem(p).models(jobs[first:last], starts[first:last])
        ]

    def start(self, solution: PathPoint) -> KernelStart:
        """A copy of the coefficients: they are a view of the whole path."""
        return KernelStart(solution.b.copy(), solution.iterations)

    def whole_start(self, starts: Sequence[KernelStart]) -> KernelStart | None:
        """The mean, as each row is in all folds' training but one; None with an offset, as it would not add up."""
        if self.offset:
            return None
        return KernelStart(np.sum([start.b for start in starts], axis=0) / max(1, len(starts) - 1), 0)

    @property
    def whole(self) -> NDArray[Any] | KernelRows:
        """The kernel, with all its rows where it is a matrix."""
        return self.K.whole() if isinstance(self.K, RowsOnDemand) else self.K

    def _problem(self, index: int) -> BinaryProblem:
        key = index, not isinstance(self.K, KernelRows)
        if key not in self._known:
            self._known[key] = BinaryRows(self.cell, *key)
        return BinaryProblem(self, self._known[key])


class BinaryProblem:
    """One binary problem of a cell over the kernel of a system."""

    def __init__(self, system: KernelSystem, rows: BinaryRows) -> None:
        self.system, self.cell, self.rows = system, system.cell, rows

    def paths(self, jobs: Sequence[Job], starts: Sequence[PathPoint | None], tolerance: float) -> list[list[PathPoint]]:
        """The solutions along the costs of the problem's jobs, one a fold."""
        if not self.rows.solved:
            return [self._constant_path(job) for job in jobs]
        solver = self._solver()
        ends = [None if start is None else start.end for start in starts]
        if starts[0] is None:
            ends = self._seeds(solver, tolerance).of(jobs)
        paths = []
        for job, end in zip(jobs, ends, strict=True):
            b, f, reports = solver.path(self.rows.weight_without(job.fold), None, job.costs, tolerance, end)
            held = self.rows.held(job.fold)
            paths.append(
                [
                    PathPoint(b[c, : self.rows.n], report.bias, report.iterations, f[c, held] + report.bias, end)
                    for c, (report, end) in enumerate(zip(reports, ends_of(job.costs, b, f), strict=True))
                ]
            )
        return paths

    def held_out(self, jobs: Sequence[Job], solutions: Sequence[Sequence[PathPoint]], out: Floats) -> None:
        """Fill `out` (costs, rows of the cell) with decision values by the model of the fold that holds the row out."""
        part: NDArray[Any] | KernelRows | None = None
        if not self.rows.everybody and self.rows.solved:
            K = self.system.whole
            part = K.part(self.rows.places) if isinstance(K, KernelRows) else K[self.rows.places]  # once for all folds
        for job, path in zip(jobs, solutions, strict=True):
            held = self.cell.held_out(job.fold)
            if not self.rows.everybody:
                out[:, held] = np.asarray([point.bias for point in path])[:, None]
            if part is not None:
                out[:, held] += _products(K, part, np.stack([point.b for point in path]), held)
            problem_rows = held if self.rows.everybody else self.rows.places[self.rows.held(job.fold)]
            for values, point in zip(out, path, strict=True):
                values[problem_rows] = point.held_out

    def models(self, jobs: Sequence[Job], starts: Sequence[KernelStart | None]) -> list[KernelModel | None]:
        """The models to keep; rows of one side have one constant model for all folds."""
        if not self.rows.solved:
            report = DualReport(0.0, 0.0, 0.0, self.rows.constant, 0, True)
            nothing = np.empty(0, np.int64), np.empty(0)
            model = KernelModel(self.rows.problem, WHOLE, self.system.kernel, 0.0, 0.0, report, *nothing)
            return [model if self.rows.n else None, *[None] * (len(jobs) - 1)]
        solver = self._solver()
        return [
            self._model(solver, job, start) if self.rows.trained_on(job.fold) else None
            for job, start in zip(jobs, starts, strict=True)
        ]

    def _model(self, solver: Solver, job: Job, start: KernelStart | None) -> KernelModel:
        """Solve a job on from its start, and certify the model."""
        cost = float(job.costs[0])
        box = cost * self.rows.weight_without(job.fold)
        first = None if start is None else self.rows.pad(start.b)
        boxes = Boxes.of(self.system.loss, box, self.rows.y)
        b, _, report = boxes.solved(solver, self.system.tolerance, first)
        report.iterations += 0 if start is None else start.iterations
        keep = np.flatnonzero(b[: self.rows.n])
        gap = report.gap / box.sum() if box.sum() else 0.0
        rows, kernel = self.rows, self.system.kernel
        return KernelModel(rows.problem, job.fold, kernel, cost, gap, report, rows.places[keep], b[keep])

    def _solver(self) -> Solver:
        offset, epochs = self.system.offset, self.system.online_epochs
        K = self.system.K
        if isinstance(K, KernelRows):
            return BlockDual(K if self.rows.everybody else K.part(self.rows.places), self.rows.y, offset)
        if isinstance(K, RowsOnDemand) and (epochs or not self.rows.everybody):
            K = K.whole()
        part = K if isinstance(K, RowsOnDemand) or self.rows.everybody else self._gather(K)
        loss = None if self.system.loss.plain else self.system.loss
        dual = KernelDual(part, self.rows.y, offset, self.system.kernel.uses_distances, dual=loss)
        return OnlineDual(dual, epochs, self.cell.random) if epochs else dual

    def _gather(self, K: NDArray[Any]) -> NDArray[Any]:
        out = self.cell.scratch.array("part", (self.rows.size, self.rows.size), K.dtype)
        out[:] = 0
        out[: self.rows.n, : self.rows.n] = K[np.ix_(self.rows.places, self.rows.places)]
        return out

    def _seeds(self, solver: Solver, tolerance: float) -> Seeds:
        return Seeds(
            solver,
            self.rows,
            tolerance,
            bounds=not self.system.offset and self.system.loss.plain,
            tree=not self.system.online_epochs,
        )

    def _constant_path(self, job: Job) -> list[PathPoint]:
        rows = self.rows.held(job.fold)
        values = np.full(rows.stop - rows.start, self.rows.constant)
        return [PathPoint(np.zeros(self.rows.n), self.rows.constant, 0, values, None) for _ in job.costs]


def _by_problem(jobs: Sequence[Job]) -> list[tuple[int, int, int]]:
    """Triples (problem, first, last): the jobs first .. last - 1 are that problem's."""
    problems = [job.problem for job in jobs]
    edges = [i for i in range(len(jobs)) if i == 0 or problems[i] != problems[i - 1]]
    return [(problems[a], a, z) for a, z in zip(edges, [*edges[1:], len(jobs)], strict=True)]


def _products(K: NDArray[Any] | KernelRows, part: NDArray[Any] | KernelRows, b: Floats, held: slice) -> Any:
    """Products (costs, held rows) of b (costs, rows of part) with the kernel of part and the held-out rows."""
    if isinstance(K, KernelRows):
        assert isinstance(part, KernelRows)
        rows = K.part(np.arange(held.start, held.stop))
        return np.asarray([rows.times(part, coef) for coef in b])
    assert isinstance(part, np.ndarray)
    return b.astype(K.dtype) @ part[:, held]
