"""The problem of a cell whose rows are of one kind, and rows that are made up, by which its points are compared.

Half of the made-up rows have the values of each column in an order of their own, so that columns say nothing of each
other: the product of the marginal distributions. The others, of dense rows, are uniform in the range of each column.
They are made of the cell's rows alone. Each belongs to a row, and is evaluated by the models that its fold holds out.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from localsvm.data.blocks.dataset import Examples, as_examples
from localsvm.kernels.scratch import Scratch
from localsvm.methods.base import Purpose, System
from localsvm.methods.cell import Cell, Job
from localsvm.methods.kernel.method import KernelMethod
from localsvm.methods.kernel.systems.expansion import ExpansionPredictor, KernelModel, pack_models
from localsvm.methods.kernel.systems.kernel import KernelStart, KernelSystem, PathPoint
from localsvm.methods.kernel.systems.prepared import PreparedKernel
from localsvm.methods.random import MADE_UP, stream
from localsvm.solvers._smo import DualReport

Floats = NDArray[np.float64]


class PreparedOneClass(PreparedKernel):
    """The rows of a cell, and those that are made up, ready for any gamma."""

    def __init__(self, method: KernelMethod, cell: Cell, scratch: Scratch, several: bool) -> None:
        super().__init__(method, cell, scratch, several)
        compared = cell.target.n_values > cell.target.n_problems
        self._made = made_up(cell.X, stream(cell.random, MADE_UP)) if compared else None

    def at(self, setting: dict[str, float], purpose: Purpose) -> System:
        """The kernel of the cell's rows."""
        system = super().at(setting, purpose)
        assert isinstance(system, KernelSystem), "the loss is the hinge"
        return system if self._made is None else OneClassSystem(system, self._made)


class OneClassSystem(System):
    """The problem of a cell over one kernel; a held-out row has its own value, and that of a made-up row.

    Parameters
    ----------
    of_rows : the problem of the rows.
    made : (n, d) rows that are made up, one for each.
    """

    def __init__(self, of_rows: KernelSystem, made: Examples) -> None:
        self._rows, self._made = of_rows, made

    def solve(self, jobs: Sequence[Job], starts: Sequence[PathPoint | None], roughness: float) -> list[list[PathPoint]]:
        """The solutions along the costs."""
        return self._rows.solve(jobs, starts, roughness)

    def held_out(self, jobs: Sequence[Job], solutions: Sequence[Sequence[PathPoint]], out: Floats) -> None:
        """Fill in the values of held-out rows, out[:, 0], and of the rows made up for them, out[:, 1]."""
        self._rows.held_out(jobs, solutions, out)

        def work(i: int) -> None:
            held = self._rows.cell.held_out(jobs[i].fold)
            out[:, 1, held] = self._values(jobs[i], solutions[i], self._made[held]).T

        self._rows.cell.threads.map(work, len(jobs))

    def final(self, jobs: Sequence[Job], starts: Sequence[KernelStart | None]) -> list[KernelModel | None]:
        """Models solved on to the tolerance."""
        return self._rows.final(jobs, starts)

    def start(self, solution: PathPoint) -> KernelStart:
        """A copy of the coefficients."""
        return self._rows.start(solution)

    def whole_start(self, starts: Sequence[KernelStart]) -> KernelStart | None:
        """The mean of the starts."""
        return self._rows.whole_start(starts)

    def _values(self, job: Job, path: Sequence[PathPoint], X: Examples) -> Floats:
        """Values (rows, costs) of rows by the solutions of a job."""
        cell, kernel, models = self._rows.cell, self._rows.kernel, []
        for cost, point in zip(job.costs.tolist(), path, strict=True):
            keep = np.flatnonzero(point.b)
            report = DualReport(0.0, 0.0, 0.0, point.bias, 0, True)
            models.append(KernelModel(job.problem, job.fold, kernel, cost, 0.0, report, keep, point.b[keep]))
        state = pack_models(cell.X, cell.Y, models)
        return ExpansionPredictor(state, kernel, cell.target, cell.X.shape[1]).values(X)


def made_up(X: Examples, rng: np.random.Generator) -> Examples:
    """Rows (n, d) float32 that are made up of the rows X; of sparse ones all with columns in orders of their own."""
    n = X.shape[0]
    if isinstance(X, np.ndarray):
        dense = rng.permuted(X, axis=0)
        low, high = X.min(axis=0), X.max(axis=0)
        dense[1::2] = low + rng.random((n // 2, X.shape[1]), np.float32) * (high - low)
        return dense
    columns = sparse.csc_array(X)
    places, ends = np.empty(columns.nnz, np.int32), columns.indptr
    for j in np.flatnonzero(np.diff(ends)).tolist():
        places[ends[j] : ends[j + 1]] = rng.permutation(n)[: ends[j + 1] - ends[j]]
    made = sparse.csr_array(sparse.csc_array((columns.data, places, ends), X.shape))
    made.sort_indices()
    return as_examples(made)
