"""The binary problems of a cell in a linear local method, solved along the costs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from localsvm.data.blocks.dataset import between, thinned
from localsvm.methods.base import Prepared, Purpose, State, System
from localsvm.methods.cell import Cell, Job, fill_held_out
from localsvm.methods.linear.rows import LinearRepresentation
from localsvm.methods.linear.systems.parts import CellParts, ProblemPart, Taken
from localsvm.solvers._linear import LinearRows
from localsvm.solvers.linear import LinearSolution, few_weights, solve
from localsvm.solvers.primal import FIRST_WIDTH, LinearProblem
from localsvm.solvers.row_losses import RowLoss

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Represented(ProblemPart):
    """Rows of a cell, and what is `drawn` from them."""

    drawn: State


class PreparedLinear(Prepared):
    """The rows of a cell, and the last representation that was made of them."""

    def __init__(self, method: LinearRepresentation, cell: Cell) -> None:
        self.method, self.cell, self.X = method, cell, thinned(cell.X)
        self._known: dict[tuple[float, ...], CellParts[Represented]] = {}

    def at(self, setting: dict[str, float], purpose: Purpose) -> LinearSystem:
        """The rows in the representation of this setting."""
        own = self.method.drawn_by or setting.keys() - {"epsilon"}
        values = tuple(value for name, value in setting.items() if name in own)
        paired = self.method.of_pairs and self.cell.target.leaves_out
        if values not in self._known:
            self._known.clear()  # settings that share one follow each other, and memory is for one
            self._known[values] = self._parts(setting, paired)
        losses = self.method.row_losses(self.cell.target, setting)
        return LinearSystem(self, self._known[values], self.method.chosen(setting), losses, purpose.cost)

    def _parts(self, setting: dict[str, float], paired: bool) -> CellParts[Represented]:
        """Parts that do not refer to this object, or the rows would stay in memory until garbage is collected."""
        method, X, random = self.method, self.X, self.cell.random

        def drawn(taken: Taken) -> Represented:
            return Represented(taken, method.drawn(ProblemPart(taken).rows(X), setting, random))

        return CellParts(self.cell, drawn, paired)


class LinearSystem(System):
    """Every binary problem of a cell over one representation of its rows, or each over its own.

    chosen: what the representations have besides; losses: of the problems; cost: C on the whole cell.
    """

    def __init__(
        self, prepared: PreparedLinear, parts: CellParts[Represented], chosen: State, losses: Sequence[RowLoss],
        cost: float,
    ) -> None:  # fmt: skip
        self.method, self.cell, self.X = prepared.method, prepared.cell, prepared.X
        self.parts, self.chosen, self.losses, self.cost = parts, chosen, losses, cost
        self._shared = None if parts.paired else self.method.rows(self.X, self.state(parts.shared))

    def state(self, part: Represented) -> State:
        """The representation of a part."""
        return part.drawn | self.chosen

    def solve(
        self, jobs: Sequence[Job], starts: Sequence[LinearSolution | None], roughness: float
    ) -> list[list[LinearSolution]]:
        """Solve cost by cost, all jobs side by side."""
        paths: list[list[LinearSolution]] = [[] for _ in jobs]
        for c in range(len(jobs[0].costs)):
            solved = self._solve_all(jobs, c, starts, roughness * self.method.tolerance, lean=True)
            for path, solution in zip(paths, solved, strict=True):
                path.append(solution)
            starts = [path[-1] for path in paths]
        return paths

    def held_out(self, jobs: Sequence[Job], solutions: Sequence[Sequence[LinearSolution]], out: Floats) -> None:
        """Fill in the products of the rows with the weights."""
        parts = self.parts.of(jobs)

        def values(i: int, c: int, rows: slice) -> Floats:
            w = solutions[i][c].w
            if self._shared is not None:
                return self._shared.values(w, rows.start, rows.stop)
            return self.method.rows(between(self.X, rows.start, rows.stop), self.state(parts[i])).values(w)

        fill_held_out(self.cell, jobs, out, values)

    def final(self, jobs: Sequence[Job], starts: Sequence[LinearSolution | None]) -> list[LinearSolution]:
        """Solutions, solved on to the tolerance."""
        return self._solve_all(jobs, 0, starts, self.method.tolerance, lean=False)

    def whole_start(self, starts: Sequence[LinearSolution]) -> LinearSolution | None:
        """Mean weights; mean coefficients of the models that saw a row. None where folds have tasks of their own."""
        if self.parts.paired:
            return None
        alphas = [s.alpha for s in starts if s.alpha is not None]
        alpha = np.sum(alphas, axis=0) / max(1, len(starts) - 1) if len(alphas) == len(starts) else None
        w = np.mean([s.w for s in starts], axis=0)
        return LinearSolution(w, alpha, max(s.width for s in starts), starts[0].report)

    def _solve_all(
        self, jobs: Sequence[Job], c: int, starts: Sequence[LinearSolution | None], tolerance: float, lean: bool
    ) -> list[LinearSolution]:
        parts, method = self.parts.of(jobs), self.method

        def work(i: int) -> LinearSolution:
            job, part = jobs[i], parts[i]
            rows = self._shared or method.rows(part.rows(self.X), self.state(part))
            y = np.ascontiguousarray(part.of(self.cell.Y[:, job.problem]))
            weight = part.of(job.costs[c] * self.cell.training_weight(job.fold, job.problem))
            solution = solve(
                LinearProblem(rows, y, weight, self.losses[job.problem]), tolerance, method.solver,
                one_task_each=method.one_task_each, start=starts[i], passes=method.passes,
            )  # fmt: skip
            return self._lean(solution, rows) if lean else solution

        return self.cell.threads.map(work, len(jobs))

    def _lean(self, solution: LinearSolution, rows: LinearRows) -> LinearSolution:
        """The solution without its dual coefficients, where Newton's method can go on from the weights alone."""
        weights_do = self.method.one_task_each and few_weights(rows)
        return replace(solution, alpha=None) if solution.width < FIRST_WIDTH and weights_do else solution
