"""Where the solutions of a binary problem without each of its folds begin, at the first cost.

Folds have most of their rows in common, and so most of a solution. But what is held out must not have taken part, not
even in where a solution began, which rough solutions remember. So there is a tree (Joulani, Gyorgy and Szepesvari,
Fast cross-validation for incremental learning, IJCAI 2015): a solution without several folds is where those without
fewer of them begin, which goes on to each fold.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from localsvm.methods.cell import Job
from localsvm.methods.kernel.systems.binary_rows import BinaryRows
from localsvm.methods.kernel.systems.paths import PathEnd, scaled
from localsvm.solvers._smo import KernelDual
from localsvm.solvers.blocks import BlockDual
from localsvm.solvers.lasvm import OnlineDual

TELLING = 64  # rows whose products with the kernel say how good it is to begin at the bounds

Floats = NDArray[np.float64]
Solver = KernelDual | BlockDual | OnlineDual


class Seeds:
    """Beginnings of one problem's solutions.

    Parameters
    ----------
    solver : of the problem.
    rows : of the problem.
    tolerance : of the solutions without several folds.
    bounds : whether a solution may begin with all coefficients at their bounds, as suits small costs.
    tree : False for all to begin at zero.
    """

    def __init__(self, solver: Solver, rows: BinaryRows, tolerance: float, bounds: bool, tree: bool) -> None:
        self._solver, self._rows, self._tolerance = solver, rows, tolerance
        self._bounds, self._tree = bounds and tree, tree
        self._signed = rows.weight * rows.y
        self._n_folds = int(rows.folds.max(initial=0)) + 1

    def of(self, jobs: Sequence[Job]) -> list[PathEnd | None]:
        """Where the paths of jobs begin, which are one a fold."""
        nothing = np.zeros(self._rows.size)
        zero = _cost(jobs), nothing, nothing
        return self._under(jobs, zero) if self._tree else [scaled(zero, _cost([job])) for job in jobs]

    def _under(self, jobs: Sequence[Job], end: PathEnd) -> list[PathEnd | None]:
        """Where the paths of jobs begin, of which `end` is a solution without all folds."""
        if len(jobs) == 1:
            return [self._at_bounds(jobs[0]) if self._suits_bounds(jobs, end) else scaled(end, _cost(jobs))]
        seeds: list[PathEnd | None] = []
        half = (len(jobs) + 1) // 2
        for some in (jobs[:half], jobs[half:]):
            seeds += self._under(some, self._solved(some, end) if len(some) > 1 else end)
        return seeds

    def _solved(self, jobs: Sequence[Job], end: PathEnd) -> PathEnd:
        """The solution without the folds of jobs; `end` where those without fewer of them begin at their bounds."""
        if self._suits_bounds(jobs, end):
            return end
        weight, cost = self._rows.weight_without(*(job.fold for job in jobs)), _cost(jobs)
        b, f, _ = self._solver.path(weight, None, jobs[0].costs[:1], self._tolerance, scaled(end, cost))
        return cost, b[0], f[0]

    def _suits_bounds(self, jobs: Sequence[Job], end: PathEnd) -> bool:
        """Whether the dual objective without the folds of jobs is larger with all coefficients at their bounds.

        It is C sum_i w_i - C^2 / 2 (wy)' K (wy) there, of which some rows tell enough.
        """
        if not self._bounds:
            return False
        cost, b, f = scaled(end, _cost(jobs))
        without = [job.fold for job in jobs]
        kept = np.asarray([fold not in without for fold in range(self._n_folds)])
        weight, square = self._of_folds
        at_bounds = cost * (weight[kept].sum() - 0.5 * cost * square[kept][:, kept].sum())
        return bool(at_bounds > b @ (self._rows.y - 0.5 * f))

    def _at_bounds(self, job: Job) -> PathEnd:
        """All coefficients of a job at their bounds."""
        cost, kept = _cost([job]), np.arange(self._n_folds) != job.fold
        return cost, cost * self._rows.weight_without(job.fold) * self._rows.y, cost * self._products[kept].sum(axis=0)

    @cached_property
    def _of_folds(self) -> tuple[Floats, Floats]:
        """Weights (folds,), and (wy)' K (wy) by the folds of both rows (folds, folds), from some of the rows."""
        rows, n, count = self._rows, self._rows.n, self._n_folds
        told = np.arange(n) % max(1, n // TELLING) == 0
        products = [self._solver.multiply(self._of(k, told)) * self._signed for k in range(count)]
        square = np.asarray([np.bincount(rows.folds, product[:n], count) for product in products])
        weight: Floats = np.bincount(rows.folds, rows.weight[:n], count).astype(np.float64)
        return weight, square / told.mean()

    @cached_property
    def _products(self) -> Floats:
        """Products (folds, size) of the kernel with w y of the rows of each fold."""
        everybody = np.ones(self._rows.n, np.bool_)
        return np.asarray([self._solver.multiply(self._of(k, everybody)) for k in range(self._n_folds)])

    def _of(self, fold: int, some: NDArray[np.bool_]) -> Floats:
        """The w y of some of the rows (size,), 0 outside a fold."""
        return self._rows.pad(self._signed[: self._rows.n] * (some & (self._rows.folds == fold)))


def _cost(jobs: Sequence[Job]) -> float:
    """The first cost of jobs, which is nearly that of each."""
    return float(jobs[0].costs[0])
