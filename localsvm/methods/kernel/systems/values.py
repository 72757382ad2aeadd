"""What the problems of a cell whose losses are of values share; squares.py and duals.py solve them, see by_loss.py.

A model is f(x) = c + b . x + sum_i a_i k(x, x_i). First comes the slope b of the rows that it is trained on, if there
is a trend, then the best constant c for what is left: a mean, or a quantile. So, far from all rows, a cell goes on
along its line. The sum is the solution of the dual problem of csrc/smo.h for y - c - b . x.

A linear kernel is (x - m) . (x_i - m) + 1 here, about the mean m of the cell's rows: else no constant but c could be
learned, and rows far from 0 would need one. The sum is a line then, which is added to the other if there is one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from localsvm.data.blocks.dataset import Examples, as_examples
from localsvm.kernels import Kernel
from localsvm.kernels.blocks import KernelRows
from localsvm.methods.base import WHOLE, System
from localsvm.methods.cell import Cell, Job
from localsvm.methods.kernel.systems.expansion import KernelModel
from localsvm.methods.kernel.systems.trend import Residuals, Trend, residuals
from localsvm.solvers._smo import DualReport
from localsvm.targets.losses import Loss

Floats = NDArray[np.float64]
Matrix = NDArray[Any] | KernelRows
ResidualsByJob = dict[tuple[int, int], Residuals]  # by (problem, fold): no parameter of the grid is of influence


class LinearRows(NamedTuple):
    """The rows of a cell whose products are the linear kernel.

    X : (n, d + 1), the rows about the centre, and ones.
    centre : (d,); 0 for sparse rows, and where models have no slope, which takes up what a centre changes.
    """

    X: Examples
    centre: Floats

    @classmethod
    def of(cls, X: Examples, sloped: bool) -> Self:
        """Rows of a cell. sloped : whether its models have a slope."""
        n, d = X.shape
        if not isinstance(X, np.ndarray):
            places = X.indices.astype(X.indptr.dtype)  # as scipy wants them
            rows = sparse.csr_array((X.data, places, X.indptr), shape=X.shape)
            return cls(as_examples(sparse.hstack([rows, np.ones((n, 1), np.float32)], format="csr")), np.zeros(d))
        centre = X.mean(axis=0, dtype=np.float64).astype(np.float32) if sloped else np.zeros(d, np.float32)
        return cls(np.column_stack([X - centre, np.ones(n, np.float32)]), centre.astype(np.float64))

    def line(self, a: Floats) -> tuple[Floats, float]:
        """Slope (d,) and constant of the sum of coefficients a (n,)."""
        slope = a @ self.X if not isinstance(self.X, np.ndarray) else np.einsum("i,ij->j", a, self.X)
        return slope[:-1], float(slope[-1] - slope[:-1] @ self.centre)


class ValueSystem(System):
    """Every problem of a cell over one kernel.

    Parameters
    ----------
    K : the kernel matrix of the cell's rows, padded, or for least squares rows whose kernel is computed as needed.
    tolerance : of the models.
    losses : of the problems, in units of their values.
    trends : of the problems; empty for models without a slope.
    residuals : what the jobs have to learn, shared by the systems of a cell; filled as it is needed.
    linear : rows of a linear kernel; None for others.
    """

    def __init__(
        self, cell: Cell, K: Matrix, kernel: Kernel, tolerance: float, losses: Sequence[Loss],
        trends: Sequence[Trend] = (), residuals: ResidualsByJob | None = None, linear: LinearRows | None = None,
    ) -> None:  # fmt: skip
        self.cell, self.K, self.kernel, self.tolerance, self.n = cell, K, kernel, tolerance, len(cell.y)
        self.losses, self.trends, self._residuals = losses, trends, {} if residuals is None else residuals
        self._linear = linear

    def held_out(self, jobs: Sequence[Job], solutions: Sequence[Sequence[Any]], out: Floats) -> None:
        """Fill in the values."""
        for job, path in zip(jobs, solutions, strict=True):
            for values, solution in zip(out, path, strict=True):
                values[job.problem, self.cell.held_out(job.fold)] = solution.held_out

    def start(self, solution: Any) -> Floats:
        """A copy of the coefficients (n,) float64: they may be a view of a whole path."""
        return np.array(solution.a, np.float64)

    def whole_start(self, starts: Sequence[Floats]) -> Floats:
        """The mean of the coefficients, as each row is in all folds' training but one."""
        return np.asarray(np.sum(starts, axis=0) / max(1, len(starts) - 1))

    def _rows(self, job: Job) -> Residuals:
        if (job.problem, job.fold) not in self._residuals:
            trend = self.trends[job.problem] if self.trends else None
            of = residuals(self.cell, self.losses[job.problem], job, trend)
            self._residuals[job.problem, job.fold] = of
        return self._residuals[job.problem, job.fold]

    def _model(self, job: Job, a: Floats, report: DualReport) -> KernelModel | None:
        """The model of coefficients a (n,); None for a job that has no rows."""
        rows, cost = self._rows(job), float(job.costs[0])
        if job.fold != WHOLE and not rows.weight.any():
            return None
        total, keep = cost * float(rows.weight.sum()), np.flatnonzero(a)
        gap = report.gap / total if total else 0.0
        report.bias, slope = rows.constant, rows.slope
        if self._linear is not None:
            of_sum, constant = self._linear.line(a)
            report.bias += constant
            if slope is not None:
                slope, keep = slope + of_sum, keep[:0]
        return KernelModel(job.problem, job.fold, self.kernel, cost, gap, report, keep, a[keep], slope)
