"""The problems of a cell with losses of values, each by the solver of its loss: squares may have levels beside them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from localsvm.methods.base import System
from localsvm.methods.cell import Job
from localsvm.methods.kernel.systems.duals import DualSystem
from localsvm.methods.kernel.systems.expansion import KernelModel
from localsvm.methods.kernel.systems.squares import SquaresSystem
from localsvm.methods.kernel.systems.values import Floats
from localsvm.targets.loss_names import LEAST_SQUARES


class ByLossSystem(System):
    """Every problem of a cell over one kernel. What both systems inherit is the same for all problems.

    Parameters
    ----------
    squares, duals : systems of all problems, of which each solves those of its losses.
    """

    def __init__(self, squares: SquaresSystem, duals: DualSystem) -> None:
        self.squares, self.duals = squares, duals

    def solve(self, jobs: Sequence[Job], starts: Sequence[Any], roughness: float) -> list[list[Any]]:
        """The solutions along the costs."""
        return self._each(jobs, starts, lambda system, *mine: system.solve(*mine, roughness))

    def held_out(self, jobs: Sequence[Job], solutions: Sequence[Sequence[Any]], out: Floats) -> None:
        """Fill in the values."""
        self.squares.held_out(jobs, solutions, out)

    def final(self, jobs: Sequence[Job], starts: Sequence[Floats | None]) -> list[KernelModel | None]:
        """Models solved on to the tolerance."""
        return self._each(jobs, starts, lambda system, *mine: system.final(*mine))

    def start(self, solution: Any) -> Floats:
        """A copy of the coefficients."""
        return self.squares.start(solution)

    def whole_start(self, starts: Sequence[Floats]) -> Floats:
        """The mean of the coefficients."""
        return self.squares.whole_start(starts)

    def _each(
        self, jobs: Sequence[Job], starts: Sequence[Any], work: Callable[[System, list[Job], list[Any]], list[Any]]
    ) -> list[Any]:
        """Results of the jobs, in their order, by the system of their loss."""
        results: list[Any] = [None] * len(jobs)
        squared = [self.squares.losses[job.problem].name == LEAST_SQUARES for job in jobs]
        for system, kind in ((self.squares, True), (self.duals, False)):
            mine = [i for i in range(len(jobs)) if squared[i] == kind]
            found = work(system, [jobs[i] for i in mine], [starts[i] for i in mine]) if mine else []
            for i, result in zip(mine, found, strict=True):
                results[i] = result
        return results
