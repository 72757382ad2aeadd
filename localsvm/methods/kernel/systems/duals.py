"""Losses of values but squares over one kernel, by SMO: fold by fold, along the costs.

Held-out rows stay in the solver's gradient with coefficient 0, so that their values come with the solution, and each
cost starts from the solution of the one before.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from localsvm.kernels.blocks import KernelRows
from localsvm.kernels.symmetric import symmetric_times, widened
from localsvm.methods.cell import Job
from localsvm.methods.kernel.systems.expansion import KernelModel
from localsvm.methods.kernel.systems.paths import PathEnd, ends_of, zero_padded
from localsvm.methods.kernel.systems.values import Floats, ValueSystem
from localsvm.solvers._smo import KernelDual
from localsvm.solvers.boxes import Boxes

# scores within 15 per cent of the objective choose as well as those within 1: a solution that is kept is solved on
ROUGHER, ROUGHEST = 15.0, 0.15
# iterations for a score of n rows: without noise large costs take thousands a row
MOST_STEPS, MOST_STEPS_A_ROW = 10_000, 3
RAMP, MOST_RAMP = 4.0, 16  # from cost to cost, and how many there are, where a path would begin at a large one


class DualSolution(NamedTuple):
    """The solution of a job at one cost.

    a (n,) : coefficients; held_out: values of the rows that the fold holds out; end: where the path goes on, (cost, b,
    Kb) padded as the solver has them, None but at the last of some costs; ended: whether larger costs take too many
    iterations. They have this solution, too.
    """

    a: Floats
    held_out: Floats
    end: PathEnd | None
    ended: bool = False


def _ramp(first: float) -> Floats:
    """Costs from 1 on that lead to a first one which is larger: all coefficients at their bounds are far from it."""
    steps = math.ceil(math.log(first, RAMP)) if first > 1.0 else 0
    return np.geomspace(1.0, first, min(steps, MOST_RAMP), endpoint=False)


class DualSystem(ValueSystem):
    """Every problem of a cell over one kernel matrix, for a loss whose dual problem SMO solves."""

    def solve(
        self, jobs: Sequence[Job], starts: Sequence[DualSolution | None], roughness: float
    ) -> list[list[DualSolution]]:
        """The solutions along the costs."""
        units = self._units(jobs) if starts[0] is None else [None] * len(jobs)
        tolerance = max(min(ROUGHER * roughness * self.tolerance, ROUGHEST), self.tolerance)
        return [self._path(job, start, unit, tolerance) for job, start, unit in zip(jobs, starts, units, strict=True)]

    def final(self, jobs: Sequence[Job], starts: Sequence[Floats | None]) -> list[KernelModel | None]:
        """Models solved on to the tolerance."""
        models = []
        for job, start in zip(jobs, starts, strict=True):
            rows = self._rows(job)
            cost = float(job.costs[0]) * self._wide(rows.weight)
            boxes = Boxes.of(self.losses[job.problem].dual, cost, self._wide(rows.y))
            first = None if start is None else self._wide(start)
            b, _, report = boxes.solved(self._solver(job), self.tolerance, first)
            models.append(self._model(job, b[: self.n], report))
        return models

    def _path(self, job: Job, start: DualSolution | None, unit: Floats | None, tolerance: float) -> list[DualSolution]:
        """The solutions along the costs of a job, to whose first one others may lead."""
        if start is None and len(ramp := _ramp(float(job.costs[0]))):
            start = self._along(job, ramp, None, unit, tolerance)[-1]
        return self._along(job, job.costs, start, unit, tolerance)

    def _along(
        self, job: Job, costs: Floats, start: DualSolution | None, unit: Floats | None, tolerance: float
    ) -> list[DualSolution]:
        """The solutions along some costs; where iterations do not suffice, that of the last cost before."""
        end = None if start is None else start.end
        if start is not None and end is not None and start.ended and costs[0] > end[0]:
            return [start] * len(costs)
        rows, held, steps = self._rows(job), self.cell.held_out(job.fold), MOST_STEPS + MOST_STEPS_A_ROW * self.n
        b, f, reports = self._solver(job, steps).path(self._wide(rows.weight), unit, costs, tolerance, end)
        solved = len(reports) if reports[-1].converged else len(reports) - 1
        known = max(solved, int(end is None or costs[0] < end[0]))  # of such a first cost there is nothing better
        ends = ends_of(costs[:known], b[:known], f[:known])
        each = zip(b[:known, : self.n], rows.line[held] + f[:known, held], ends, strict=True)
        path = [DualSolution(*solution) for solution in each]
        if solved < len(costs):
            last = path.pop() if path else start
            assert last is not None
            path.extend([last._replace(ended=True)] * (len(costs) - len(path)))
        return path

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
            boxes = Boxes.of(self.losses[job.problem].dual, rows.weight, rows.y)
            starts.append(np.where(rows.y > 0.0, boxes.high, boxes.low))
        products = symmetric_times(self._matrix, widened(np.asarray(starts), len(self._matrix)), self.cell.threads)
        return list(products.astype(np.float64))

    def _solver(self, job: Job, steps: int = 0) -> KernelDual:
        rows, unit, dual = self._rows(job), self.kernel.uses_distances, self.losses[job.problem].dual
        return KernelDual(self._matrix, self._wide(rows.y), False, unit, steps, rows.far, dual)

    def _wide(self, values: Floats) -> Floats:
        """Values (n,), followed by zeros for the padding of the matrix."""
        return zero_padded(values, len(self._matrix))
