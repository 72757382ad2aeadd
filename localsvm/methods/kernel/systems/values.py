"""The problems of a cell whose loss is one of values, over one kernel.

A model is f(x) = c + b . x + sum_i a_i k(x, x_i). First comes the slope b of the rows that it is trained on, if there
is a trend, then the best constant c for what is left: a mean, or a quantile. So, far from all rows, a cell goes on
along its line. The sum is the solution of the dual problem of csrc/smo.h for y - c - b . x: least squares by conjugate
gradients, all folds and costs together (solvers/least_squares.py), other losses by SMO, fold by fold along the costs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from localsvm.kernels import Kernel
from localsvm.kernels._kernels import padded
from localsvm.kernels.blocks import KernelRows
from localsvm.kernels.symmetric import symmetric_times, widened
from localsvm.methods.base import WHOLE, System
from localsvm.methods.cell import Cell, Job
from localsvm.methods.kernel.systems.expansion import KernelModel
from localsvm.methods.kernel.systems.trend import Residuals, Trend, residuals
from localsvm.solvers import least_squares
from localsvm.solvers._smo import DualReport, KernelDual
from localsvm.solvers.boxes import Boxes, moved
from localsvm.solvers.least_squares import MAX_PASSES, SCORING_PASSES, Landmarks, Solved, Systems
from localsvm.targets.loss_names import LEAST_SQUARES
from localsvm.targets.losses import Loss

Floats = NDArray[np.float64]
Singles = NDArray[np.float32]
Matrix = NDArray[Any] | KernelRows
Pair = tuple[Floats, Floats]  # coefficients, and their products with the kernel
KNOWN = 4  # solutions for the costs before, in whose span the next one begins
ROUNDS = 4  # in which a solution that is kept may reach its tolerance


class ValueSolution(NamedTuple):
    """The solution of a job at one cost.

    a (n,) float64: coefficients; held_out: values of the rows that the fold holds out; cost: C; known: by least
    squares, coefficients and their products (n,) float32 of this cost and some before.
    """

    a: Floats
    cost: float
    held_out: Floats
    iterations: int
    known: tuple[tuple[Singles, Singles], ...] = ()


class ValueStart(NamedTuple):
    """Coefficients to begin from, found in so many iterations for a cost; known : see `ValueSolution`."""

    a: Floats
    cost: float
    iterations: int
    known: tuple[tuple[Singles, Singles], ...] = ()


class ValueSystem(System):
    """Every problem of a cell over one kernel.

    Parameters
    ----------
    K : the kernel matrix of the cell's rows, padded, or for least squares rows whose kernel is computed as needed.
    tolerance : of the models.
    losses : of the problems, in units of their values.
    trend : None for models without a slope.
    """

    def __init__(
        self, cell: Cell, K: Matrix, kernel: Kernel, tolerance: float, losses: Sequence[Loss],
        trend: Trend | None = None,
    ) -> None:  # fmt: skip
        self.cell, self.K, self.kernel, self.tolerance, self.n = cell, K, kernel, tolerance, len(cell.y)
        self.losses, self.trend = losses, trend
        self._known_rows: dict[tuple[int, int], Residuals] = {}

    def solve(
        self, jobs: Sequence[Job], starts: Sequence[ValueSolution | None], roughness: float
    ) -> list[list[ValueSolution]]:
        """The solutions along the costs."""
        begun = [
            None if start is None else ValueStart(start.a, start.cost, start.iterations, start.known)
            for start in starts
        ]
        return [path for path, _ in self._solved(jobs, begun, roughness * self.tolerance, certified=False)]

    def held_out(self, jobs: Sequence[Job], solutions: Sequence[Sequence[ValueSolution]], out: Floats) -> None:
        """Fill in the values."""
        for job, path in zip(jobs, solutions, strict=True):
            for values, solution in zip(out, path, strict=True):
                values[job.problem, self.cell.held_out(job.fold)] = solution.held_out

    def final(self, jobs: Sequence[Job], starts: Sequence[ValueStart | None]) -> list[KernelModel | None]:
        """Models solved on to the tolerance."""
        solved = self._solved(jobs, starts, self.tolerance, certified=True)
        return [
            self._model(job, path[0], reports[0]) for job, (path, reports) in zip(jobs, solved, strict=True)
        ]  # fmt: skip

    def start(self, solution: ValueSolution) -> ValueStart:
        """A copy of the coefficients."""
        return ValueStart(solution.a.copy(), solution.cost, solution.iterations)

    def whole_start(self, starts: Sequence[ValueStart]) -> ValueStart:
        """The mean, as each row is in all folds' training but one."""
        a = np.sum([start.a for start in starts], axis=0) / max(1, len(starts) - 1)
        return ValueStart(a, starts[0].cost, 0)

    def _solved(
        self, jobs: Sequence[Job], starts: Sequence[ValueStart | None], tolerance: float, certified: bool
    ) -> list[tuple[list[ValueSolution], list[DualReport]]]:
        rows = [self._rows(job) for job in jobs]
        squared = [i for i, job in enumerate(jobs) if self.losses[job.problem].name == LEAST_SQUARES]
        at_once = self._by_gradients(
            [jobs[i] for i in squared], [rows[i] for i in squared], [starts[i] for i in squared], tolerance, certified
        )
        solved = dict(zip(squared, at_once, strict=True))
        others = [i for i in range(len(jobs)) if i not in solved]
        units = {} if certified else self._units([(i, jobs[i], rows[i]) for i in others if starts[i] is None])
        for i in others:
            solved[i] = self._by_smo(jobs[i], rows[i], starts[i], units.get(i), tolerance, certified)
        return [solved[i] for i in range(len(jobs))]

    def _rows(self, job: Job) -> Residuals:
        if (job.problem, job.fold) not in self._known_rows:
            of = residuals(self.cell, self.losses[job.problem], job, self.trend)
            self._known_rows[job.problem, job.fold] = of
        return self._known_rows[job.problem, job.fold]

    # least squares

    def _by_gradients(
        self, jobs: Sequence[Job], rows: Sequence[Residuals], starts: Sequence[ValueStart | None], tolerance: float,
        certified: bool,
    ) -> list[tuple[list[ValueSolution], list[DualReport]]]:  # fmt: skip
        if not jobs:
            return []
        costs = np.asarray([job.costs for job in jobs])
        count = costs.shape[1]
        weight = np.repeat([each.weight for each in rows], count, axis=0)
        mask = weight > 0.0
        ridge = np.where(mask, 0.5 / np.where(mask, weight * costs.reshape(-1, 1), 1.0), 1.0)
        y = np.repeat([each.y for each in rows], count, axis=0)
        group = np.repeat([job.fold for job in jobs], count)
        systems = Systems(y.astype(np.float32), ridge.astype(np.float32), mask.astype(np.float32), group)
        most, begun = MAX_PASSES if certified else SCORING_PASSES, self._known(starts, count)
        solved = least_squares.solve(self._product, systems, self._landmarks, tolerance, begun, most)
        coefficients, products = solved.a.astype(np.float64), solved.f.astype(np.float64)
        if certified:
            solved, coefficients, products = self._certified(systems, solved, tolerance)
        results = []
        for i, (job, of, start) in enumerate(zip(jobs, rows, starts, strict=True)):
            path, reports, known = [], [], () if start is None else start.known
            for c, cost in enumerate(job.costs.tolist()):
                at = i * count + c
                known = (*known, (solved.a[at], solved.f[at]))[-KNOWN:]
                a, passes = coefficients[at], int(solved.passes[at])
                held_out = self.cell.held_out(job.fold)
                path.append(ValueSolution(a, cost, of.line[held_out] + products[at, held_out], passes, known))
                if certified:
                    report = least_squares.report_of(a, products[at], of.y, cost * of.weight)
                    reached = bool(solved.converged[at])
                    reports.append(replace(report, bias=of.constant, iterations=passes, converged=reached))
            results.append((path, reports))
        return results

    def _certified(self, systems: Systems, solved: Solved, tolerance: float) -> tuple[Solved, Floats, Floats]:
        """Solutions that meet the tolerance, or do not, in float64; their coefficients, and products with the kernel.

        Where float32 has misled the search, or it has run out of passes, its residual in float64 is solved for what the
        coefficients lack, as long as that halves the gap.
        """
        a, passes = solved.a.astype(np.float64), solved.passes
        best, of_best, least, converged = a.copy(), a.copy(), np.full(len(a), np.inf), np.zeros(len(a), np.bool_)
        for rounds in range(ROUNDS):
            products = np.stack([self._wide_product(each) for each in a])
            rho = systems.y - products * systems.mask - systems.ridge * a
            gap = (np.square(rho) / systems.ridge).sum(axis=1)
            asked = tolerance * (systems.ridge * np.square(a)).sum(axis=1)
            better, hopeful = ~(gap >= least), (gap > asked) & (gap < 0.5 * least)
            best[better], of_best[better], least[better] = a[better], products[better], gap[better]
            converged[better] = (gap <= asked)[better]
            if not hopeful.any() or rounds == ROUNDS - 1:
                break
            lacking, enough = replace(systems, y=rho.astype(np.float32)), np.where(hopeful, 0.5 * asked, np.inf)
            more = least_squares.solve(self._product, lacking, self._landmarks, tolerance, enough=enough)
            a, passes = a + more.a, passes + more.passes
        return Solved(best.astype(np.float32), of_best.astype(np.float32), passes, converged), best, of_best

    def _wide_product(self, a: Floats) -> Floats:
        """The kernel times coefficients (n,), summed in float64."""
        if isinstance(self.K, KernelRows):
            return self.K.times(self.K, a)
        size = self.K.shape[0]
        dual = KernelDual(self.K, np.zeros(size), unit_diagonal=self.kernel.uses_distances)
        return np.asarray(dual.multiply(np.pad(a, (0, size - self.n)))[: self.n])

    def _known(self, starts: Sequence[ValueStart | None], count: int) -> list[tuple[Singles, Singles]]:
        """Coefficients and products (jobs times `count` costs, n) from which the search begins."""
        begun = [start for start in starts if start is not None]
        if len(begun) < len(starts):
            return []
        if not begun[0].known:
            a = np.repeat([start.a for start in begun], count, axis=0).astype(np.float32)
            return [(a, self._product(widened(a, padded(self.n)))[:, : self.n])]
        depth = min(len(start.known) for start in begun)
        pairs = [[start.known[k] for start in begun] for k in range(-depth, 0)]
        return [
            (np.repeat([a for a, _ in pair], count, axis=0), np.repeat([f for _, f in pair], count, axis=0))
            for pair in pairs
        ]

    @cached_property
    def _landmarks(self) -> Landmarks:
        """The preconditioner of this kernel."""
        some = least_squares.places(self.n)
        rows = self.K.landmark_rows(some) if isinstance(self.K, KernelRows) else self.K[some]
        return Landmarks(rows, self.n, some)

    def _product(self, vectors: NDArray[np.float32]) -> NDArray[np.float32]:
        """Vectors (m, padded n) times the kernel; see `symmetric_times`."""
        if isinstance(self.K, KernelRows):
            return widened(self.K.products(vectors[:, : self.n]), vectors.shape[1])
        return symmetric_times(self.K, vectors, self.cell.threads)

    # other losses

    def _units(self, begun: Sequence[tuple[int, Job, Residuals]]) -> dict[int, Pair]:
        """Where the paths of some jobs begin: coefficients at their bounds at the first cost, and their products."""
        if not begun or isinstance(self.K, KernelRows):
            return {}
        starts = []
        for _, job, rows in begun:
            problem = Boxes.of(self.losses[job.problem].dual, float(job.costs[0]) * rows.weight)
            bound = np.where(rows.y > 0.0, problem.high, problem.low)
            starts.append(np.where(np.isfinite(bound), bound, 0.0))
        products = self._product(widened(np.asarray(starts), padded(self.n)))[:, : self.n].astype(np.float64)
        return {i: (b, f) for (i, _, _), b, f in zip(begun, starts, products, strict=True)}

    def _by_smo(
        self, job: Job, rows: Residuals, start: ValueStart | None, unit: Pair | None, tolerance: float, certified: bool
    ) -> tuple[list[ValueSolution], list[DualReport]]:
        """The solutions along the costs. Where nothing has to be certified, products with the kernel are kept."""
        assert not isinstance(self.K, KernelRows), "refused by the method"
        size, path, reports = self.K.shape[0], [], []

        def wide(values: NDArray[Any]) -> Floats:
            return np.pad(values.astype(np.float64), (0, size - self.n))

        dual = KernelDual(self.K, wide(rows.y), unit_diagonal=self.kernel.uses_distances)
        weight, numbers, last = wide(rows.weight), self.losses[job.problem].dual, float(job.costs[0])
        b: Floats | None = None
        f: Floats | None = None
        if start is not None:
            b, last = wide(start.a), start.cost
            f = wide(start.known[-1][1]) if start.known else None
        elif unit is not None:
            b, f = wide(unit[0]), wide(unit[1])
        for cost in job.costs.tolist():
            problem, first = Boxes.of(numbers, cost * weight), b
            if b is not None:
                first = problem.grown(b, cost / last, last * weight, numbers)
                if f is not None and not certified:
                    f = moved(dual, b, f, first, cost / last)
            known = None if certified or f is None else f
            b, f, report = dual.solve(problem.low, problem.high, tolerance, first, problem.terms, known)
            last, a, product = cost, b[: self.n].copy(), f[: self.n].astype(np.float32)
            held_out = self.cell.held_out(job.fold)
            held = rows.line[held_out] + f[: self.n][held_out]
            path.append(ValueSolution(a, cost, held, report.iterations, ((a.astype(np.float32), product),)))
            reports.append(report)
        return path, reports

    def _model(self, job: Job, solution: ValueSolution, report: DualReport) -> KernelModel | None:
        if job.fold != WHOLE and not self.cell.training_weight(job.fold).any():
            return None
        keep = np.flatnonzero(solution.a)
        total = solution.cost * float(self.cell.training_weight(job.fold).sum())
        gap = report.gap / total if total else 0.0
        rows = self._rows(job)
        report.bias = rows.constant
        return KernelModel(
            job.problem, job.fold, self.kernel, solution.cost, gap, report, keep, solution.a[keep], rows.slope
        )
