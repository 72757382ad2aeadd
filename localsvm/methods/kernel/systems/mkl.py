"""System of `mkl`: the problems of a cell, solved over its bank of kernels."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from localsvm.kernels import Kernel
from localsvm.kernels.bank import KernelBank
from localsvm.methods.base import Fit, Prepared, Purpose, State, System
from localsvm.methods.cell import Cell, Job, fill_held_out
from localsvm.methods.kernel.mkl import MultipleKernelSVM
from localsvm.methods.kernel.systems.expansion import KernelModel
from localsvm.methods.random import KERNELS, stream
from localsvm.solvers._smo import DualReport
from localsvm.solvers.mkl import KernelMixture, sequential_mkl, simple_mkl

Floats = NDArray[np.float64]


class PreparedBank(Prepared):
    """The bank of a cell's rows."""

    def __init__(self, method: MultipleKernelSVM, cell: Cell) -> None:
        self.method, self.cell = method, cell
        self._bank = KernelBank(cell.X, method.kinds, method.bank == "each", cell.room)

    def at(self, setting: dict[str, float], purpose: Purpose) -> BankSystem:
        """The system of the only setting."""
        return BankSystem(self.method, self.cell, self._bank)


class BankSystem(System):
    """Every binary problem of a cell over its bank. Held-out rows stay in it with cost 0, and so get their values."""

    def __init__(self, method: MultipleKernelSVM, cell: Cell, bank: KernelBank) -> None:
        self.method, self.cell, self.bank = method, cell, bank

    def solve(
        self, jobs: Sequence[Job], starts: Sequence[KernelMixture | None], roughness: float
    ) -> list[list[KernelMixture]]:
        """Solve one by one, as problems share the matrices; each cost starts from the solution of the one before."""
        paths = []
        for job, start in zip(jobs, starts, strict=True):
            path: list[KernelMixture] = []
            for cost in job.costs:
                path.append(self._solve(job, float(cost), path[-1] if path else start, roughness))
            paths.append(path)
        return paths

    def held_out(self, jobs: Sequence[Job], solutions: Sequence[Sequence[KernelMixture]], out: Floats) -> None:
        """Fill in the decision values that come with the solutions."""
        fill_held_out(self.cell, jobs, out, lambda i, c, rows: solutions[i][c].f[rows])

    def final(self, jobs: Sequence[Job], starts: Sequence[KernelMixture | None]) -> list[KernelMixture]:
        """Solutions, solved on to the tolerance."""
        return [self._solve(job, float(job.costs[0]), start, 1.0) for job, start in zip(jobs, starts, strict=True)]

    def _solve(self, job: Job, cost: float, start: KernelMixture | None, roughness: float) -> KernelMixture:
        y, weight = self.cell.Y[:, job.problem], cost * self.cell.training_weight(job.fold)
        sides = np.unique(y[weight > 0])
        if not (-1.0 in sides and 1.0 in sides):
            return constant(float(sides.sum()), len(y))
        begun = start if start is not None and len(start.names) else None
        tolerance = roughness * self.method.tolerance
        if self.method.mkl == "simple":
            return simple_mkl(self.bank, y, weight, tolerance, begun)
        once = self.method.online == "kernels"
        parts = self.bank.parts(stream(self.cell.random, KERNELS)) if once else ()
        return sequential_mkl(self.bank, y, weight, tolerance, begun, parts)


def constant(side: float, n: int) -> KernelMixture:
    """The solution for rows of one side, which are unanimous, or for none."""
    nothing = np.empty(0)
    return KernelMixture(np.empty(0, np.int64), nothing, np.zeros(n), np.full(n, side), 0.0, 0.0, 0, 0, True)


def kernel_model(fit: Fit) -> KernelModel:
    """A solution as the model of an expansion, apart from its kernel."""
    solution: KernelMixture = fit.solution
    rows = np.flatnonzero(solution.b)
    bias = 0.0 if len(solution.names) else float(solution.f[0])
    report = DualReport(solution.dual, solution.primal - solution.dual, 0.0, bias, solution.solves, solution.converged)
    job = fit.job
    return KernelModel(
        job.problem,
        job.fold,
        Kernel(),
        float(job.costs[0]),
        solution.gap,
        report,
        rows.astype(np.int64),
        solution.b[rows],
    )


def mixed_kernels(fits: Sequence[Fit]) -> State:
    """The kernels of some models: whose variable they are of, their kind, weight, and what they are divided by."""
    each = [(fit.system.bank, int(name), weight) for fit in fits for name, weight in zip(*mixture(fit), strict=True)]
    what = np.asarray([bank.what(name) for bank, name, _ in each], np.int32).reshape(-1, 2)
    return {
        "kernel_ptr": np.cumsum([0, *(len(fit.solution.names) for fit in fits)]).astype(np.int64),
        "kernel_variable": np.ascontiguousarray(what[:, 0]),
        "kernel_kind": np.ascontiguousarray(what[:, 1]),
        "kernel_weight": np.asarray([weight for *_, weight in each], np.float64),
        "kernel_scale": np.asarray([bank.scale(name) for bank, name, _ in each], np.float64),
    }


def mixture(fit: Fit) -> tuple[NDArray[np.int64], Floats]:
    """The kernels of a solution, and their weights."""
    return fit.solution.names, fit.solution.beta
