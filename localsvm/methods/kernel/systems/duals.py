"""Losses of values but squares over one kernel, by SMO: fold by fold, along the costs.

Held-out rows stay in the solver's gradient with coefficient 0, so that their values come with the solution, and each
cost starts from the solution of the one before.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from localsvm.kernels.blocks import KernelRows
from localsvm.kernels.symmetric import symmetric_times, widened
from localsvm.methods.cell import Job
from localsvm.methods.kernel.systems.expansion import KernelModel
from localsvm.methods.kernel.systems.paths import PathEnd, ends_of, zero_padded
from localsvm.methods.kernel.systems.trend import Residuals
from localsvm.methods.kernel.systems.values import Floats, ValueSystem
from localsvm.solvers._smo import KernelDual
from localsvm.solvers.boxes import Boxes


class DualSolution(NamedTuple):
    """The solution of a job at one cost.

    a (n,) : coefficients; held_out: values of the rows that the fold holds out; end: where the path goes on, (cost, b,
    Kb) padded as the solver has them, None but at the last of some costs.
    """

    a: Floats
    held_out: Floats
    end: PathEnd | None


class DualSystem(ValueSystem):
    """Every problem of a cell over one kernel matrix, for a loss whose dual problem SMO solves."""

    def solve(
        self, jobs: Sequence[Job], starts: Sequence[DualSolution | None], roughness: float
    ) -> list[list[DualSolution]]:
        """The solutions along the costs."""
        units = self._units(jobs) if starts[0] is None else [None] * len(jobs)
        paths = []
        for job, start, unit in zip(jobs, starts, units, strict=True):
            rows, held = self._rows(job), self.cell.held_out(job.fold)
            end, weight = None if start is None else start.end, self._wide(rows.weight)
            dual = self.losses[job.problem].dual
            b, f, _ = self._solver(rows).path(weight, unit, job.costs, roughness * self.tolerance, end, dual)
            each = zip(b[:, : self.n], rows.line[held] + f[:, held], ends_of(job.costs, b, f), strict=True)
            paths.append([DualSolution(*solution) for solution in each])
        return paths

    def final(self, jobs: Sequence[Job], starts: Sequence[Floats | None]) -> list[KernelModel | None]:
        """Models solved on to the tolerance."""
        models = []
        for job, start in zip(jobs, starts, strict=True):
            rows = self._rows(job)
            boxes = Boxes.of(self.losses[job.problem].dual, float(job.costs[0]) * self._wide(rows.weight))
            first = None if start is None else np.clip(self._wide(start), boxes.low, boxes.high)
            b, _, report = self._solver(rows).solve(boxes.low, boxes.high, self.tolerance, first, boxes.terms)
            models.append(self._model(job, b[: self.n], report))
        return models

    @property
    def _matrix(self) -> NDArray[Any]:
        assert not isinstance(self.K, KernelRows), "refused by the method"
        return self.K

    def _units(self, jobs: Sequence[Job]) -> list[Floats]:
        """Products of the kernel with the coefficients from which the paths begin, at cost 1."""
        if not np.isfinite(self.losses[jobs[0].problem].dual.high):  # then that of the others is not, either
            return [np.zeros(len(self._matrix))] * len(jobs)
        starts = []
        for job in jobs:
            rows = self._rows(job)
            boxes = Boxes.of(self.losses[job.problem].dual, rows.weight)
            starts.append(np.where(rows.y > 0.0, boxes.high, boxes.low))
        products = symmetric_times(self._matrix, widened(np.asarray(starts), len(self._matrix)), self.cell.threads)
        return list(products.astype(np.float64))

    def _solver(self, rows: Residuals) -> KernelDual:
        return KernelDual(self._matrix, self._wide(rows.y), unit_diagonal=self.kernel.uses_distances)

    def _wide(self, values: Floats) -> Floats:
        """Values (n,), followed by zeros for the padding of the matrix."""
        return zero_padded(values, len(self._matrix))
