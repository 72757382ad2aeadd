"""Least squares over one kernel: all folds and costs of a cell at once, by solvers/least_squares.py."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from localsvm.kernels._kernels import padded
from localsvm.kernels.blocks import KernelRows
from localsvm.kernels.symmetric import symmetric_times, widened
from localsvm.methods.cell import Job
from localsvm.methods.kernel.systems.expansion import KernelModel
from localsvm.methods.kernel.systems.paths import zero_padded
from localsvm.methods.kernel.systems.values import Floats, ValueSystem
from localsvm.solvers import least_squares
from localsvm.solvers._smo import KernelDual
from localsvm.solvers.least_squares import MAX_PASSES, SCORING_PASSES, HeldOutValues, Landmarks, Solved, Systems

Singles = NDArray[np.float32]
Pair = tuple[Singles, Singles]  # coefficients, and their products with the kernel
KNOWN = 4  # solutions for the costs before, in whose span the next one begins
Lacking = tuple[Floats, NDArray[np.int64]]  # what coefficients (m, n) lack, and the passes (m,) that it took
Solver = Callable[[Systems, Floats], Lacking]
ROUNDS = 4  # in which a solution that is kept may reach its tolerance


class SquaresSolution(NamedTuple):
    """The solution of a job at one cost.

    a (n,) float32: coefficients; held_out: values of the rows that the fold holds out; known: coefficients and their
    products (n,) of this cost and some before.
    """

    a: Singles
    held_out: Floats
    known: tuple[Pair, ...]


class SquaresSystem(ValueSystem):
    """Every problem of a cell over one kernel, for least squares."""

    def solve(
        self, jobs: Sequence[Job], starts: Sequence[SquaresSolution | None], roughness: float
    ) -> list[list[SquaresSolution]]:
        """The solutions along the costs."""
        count, begun = len(jobs[0].costs), [start for start in starts if start is not None]
        known = self._known(begun, count) if len(begun) == len(starts) else []
        solved = least_squares.solve(
            self._product, self._systems(jobs), self._landmarks, roughness * self.tolerance, known, SCORING_PASSES,
            held_out=self._held_out(jobs, count),
        )  # fmt: skip
        paths = []
        for i, (job, start) in enumerate(zip(jobs, starts, strict=True)):
            path, before = [], () if start is None else start.known
            held_out = self.cell.held_out(job.fold)
            line = self._rows(job).line[held_out]
            for a, f in zip(solved.a[i * count : (i + 1) * count], solved.f[i * count : (i + 1) * count], strict=True):
                before = (*before, (a, f))[-KNOWN:]
                path.append(SquaresSolution(a, line + f[held_out], before))
            paths.append(path)
        return paths

    def final(self, jobs: Sequence[Job], starts: Sequence[Floats | None]) -> list[KernelModel | None]:
        """Models solved on to the tolerance."""
        systems, begun = self._systems(jobs), [start for start in starts if start is not None]
        known = [self._with_products(np.asarray(begun))] if len(begun) == len(starts) else []
        solved, coefficients, products = self._solved(systems, known)
        models = []
        for i, job in enumerate(jobs):
            rows = self._rows(job)
            report = least_squares.report_of(coefficients[i], products[i], rows.y, float(job.costs[0]) * rows.weight)
            report = replace(report, iterations=int(solved.passes[i]), converged=bool(solved.converged[i]))
            models.append(self._model(job, coefficients[i], report))
        return models

    def _systems(self, jobs: Sequence[Job]) -> Systems:
        """The systems of all jobs and costs, job by job."""
        rows, costs = [self._rows(job) for job in jobs], np.asarray([job.costs for job in jobs])
        count = costs.shape[1]
        weight = np.repeat([each.weight for each in rows], count, axis=0)
        mask = weight > 0.0
        ridge = np.where(mask, 0.5 / np.where(mask, weight * costs.reshape(-1, 1), 1.0), 1.0)
        y = np.repeat([each.y for each in rows], count, axis=0)
        parts = [job.problem if self.cell.target.leaves_out else 0 for job in jobs]  # whose rows take part
        group = np.repeat(
            [job.fold + part * (self.cell.n_folds + 1) for job, part in zip(jobs, parts, strict=True)], count
        )
        return Systems(y.astype(np.float32), ridge.astype(np.float32), mask.astype(np.float32), group)

    def _held_out(self, jobs: Sequence[Job], count: int) -> HeldOutValues:
        """The rows that the systems of jobs hold out, of so many costs each."""
        rows, y = [], []
        for job in jobs:
            held = self.cell.held_out(job.fold)
            rows += [held] * count
            y += [self.cell.Y[held, job.problem] - self._rows(job).line[held]] * count
        return HeldOutValues(rows, y)

    def _solved(self, systems: Systems, known: Sequence[Pair]) -> tuple[Solved, Floats, Floats]:
        """Solutions of some systems as `_certified` returns them.

        Those of a whole kernel that take many passes, as where a ridge is small, are solved by its factor.
        """
        whole, m = isinstance(self.K, np.ndarray), len(systems.y)
        most = least_squares.patience(self.n) if whole else MAX_PASSES
        search = self._search(systems, known, most)
        if not whole or search.converged.all():
            return self._certified(systems, search, self.tolerance)
        found = []
        for i in range(m):
            one, begun = systems.at(np.asarray([i])), search.at(np.asarray([i]))
            found.append(self._certified(one, begun, self.tolerance) if search.converged[i] else self._hard(one, begun))
        solved, a, f = zip(*found, strict=True)
        return Solved.joined(solved), np.concatenate(a), np.concatenate(f)

    def _hard(self, one: Systems, begun: Solved) -> tuple[Solved, Floats, Floats]:
        """The solution of a single system, from what a search has begun, by its factor; else by further passes."""
        solver = self._by_factor(one)
        if solver is not None:
            found = self._certified(one, begun, self.tolerance, solver)
            if found[0].converged.all():
                return found
        search = self._search(one, [(begun.a, begun.f)], MAX_PASSES)
        return self._certified(one, search, self.tolerance)

    def _by_passes(self, lacking: Systems, enough: Floats) -> Lacking:
        """Coefficients of the gaps that are enough (m,), by further passes."""
        more = least_squares.solve(self._product, lacking, self._landmarks, self.tolerance, enough=enough)
        return more.a.astype(np.float64), more.passes

    def _search(self, systems: Systems, known: Sequence[Pair], most: int) -> Solved:
        return least_squares.solve(self._product, systems, self._landmarks, self.tolerance, known, most)

    def _by_factor(self, one: Systems) -> Solver | None:
        """What solves a single system by its factor; None where it has none."""
        assert isinstance(self.K, np.ndarray)
        factor = least_squares.factored(self.K, one.ridge[0], one.mask[0], self.cell.scratch)
        if factor is None:
            return None
        return lambda lacking, _: (factor(lacking.y[0])[None], np.ones(1, np.int64))

    def _certified(
        self, systems: Systems, solved: Solved, tolerance: float, solver: Solver | None = None
    ) -> tuple[Solved, Floats, Floats]:
        """Solutions that meet the tolerance, or do not, in float64; their coefficients, and products with the kernel.

        Where float32 has misled the search, or it has run out of passes, its residual in float64 is solved for what the
        coefficients lack, as long as that halves the gap. solver : of this; None for further passes.
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
            more, further = (solver or self._by_passes)(lacking, enough)
            a, passes = a + more, passes + further
        return Solved(best.astype(np.float32), of_best.astype(np.float32), passes, converged), best, of_best

    def _wide_product(self, a: Floats) -> Floats:
        """The kernel times coefficients (n,), summed in float64."""
        if isinstance(self.K, KernelRows):
            return self.K.times(self.K, a)
        size = self.K.shape[0]
        dual = KernelDual(self.K, np.zeros(size), unit_diagonal=self.kernel.uses_distances)
        return np.asarray(dual.multiply(zero_padded(a, size))[: self.n])

    def _known(self, starts: Sequence[SquaresSolution], count: int) -> list[Pair]:
        """Coefficients and products (jobs times `count` costs, n) from which the search begins."""
        depth = min(len(start.known) for start in starts)
        pairs = [[start.known[k] for start in starts] for k in range(-depth, 0)]
        return [
            (np.repeat([a for a, _ in pair], count, axis=0), np.repeat([f for _, f in pair], count, axis=0))
            for pair in pairs
        ]

    def _with_products(self, a: Floats) -> Pair:
        """Coefficients (m, n), and their products with the kernel."""
        single = a.astype(np.float32)
        return single, self._product(widened(single, padded(self.n)))[:, : self.n]

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
