"""System of the mixtures: problems of a cell are scored without labels, and then solved by EM with them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from localsvm.data.blocks.dataset import between, rows_of, thinned
from localsvm.methods.base import Prepared, Purpose, System
from localsvm.methods.cell import Cell, Job, fill_held_out
from localsvm.methods.linear.systems.parts import CellParts
from localsvm.methods.mixtures.method import MixtureMethod
from localsvm.methods.mixtures.systems.parts import MixturePart, mixture_parts
from localsvm.methods.mixtures.systems.predictor import decided
from localsvm.representations.svm_mixture import MixtureRows, SVMMixture, fit_svm_mixture, solve_tasks
from localsvm.solvers.weighted_tasks import TaskWeights, task_values

Floats = NDArray[np.float64]

WITH_LABELS = 1e-4, 200  # of EM: the least rise of the objective a row, and the most rounds


class PreparedMixture(Prepared):
    """The rows of a cell, and the mixtures of the last number of components, start and shrinkage."""

    def __init__(self, method: MixtureMethod, cell: Cell) -> None:
        X = cell.X if isinstance(cell.X, np.ndarray) else thinned(cell.X)
        self.method, self.cell = method, replace(cell, X=X)
        self._known: dict[tuple[float, int, float], CellParts[MixturePart]] = {}

    def at(self, setting: dict[str, float], purpose: Purpose) -> MixtureSystem:
        """The mixtures of this setting."""
        key = setting["clusters"], self.method.start_of(setting), setting["shrinkage"]
        if key not in self._known:
            self._known.clear()  # settings that share one follow each other, and memory is for one
            self._known[key] = mixture_parts(self.cell, int(key[0]), key[1], key[2], self.method.covariance == "full")
        return MixtureSystem(self.method, self.cell, setting, self._known[key])


@dataclass(frozen=True)
class Scored:
    """Weights and M for the mixture without labels."""

    weights: TaskWeights
    M: Floats


class MixtureSystem(System):
    """The problems of a cell, each over the mixture of its part."""

    def __init__(
        self, method: MixtureMethod, cell: Cell, setting: dict[str, float], parts: CellParts[MixturePart]
    ) -> None:
        self.method, self.cell, self.setting, self.parts = method, cell, setting, parts
        self.losses = method.row_losses(cell.target, setting)

    def solve(self, jobs: Sequence[Job], starts: Sequence[Scored | None], roughness: float) -> list[list[Scored]]:
        """Solve cost by cost, all jobs side by side."""
        paths: list[list[Scored]] = [[] for _ in jobs]
        for c in range(len(jobs[0].costs)):
            before = [path[-1] if path else start for path, start in zip(paths, starts, strict=True)]
            solved = self._scored(jobs, c, before, roughness)
            for path, one in zip(paths, solved, strict=True):
                path.append(one)
        return paths

    def held_out(self, jobs: Sequence[Job], solutions: Sequence[Sequence[Scored]], out: Floats) -> None:
        """Fill in decisions by the rule of the method, with the densities of the mixture without labels."""
        method, parts = self.method, self.parts.of(jobs)

        def values(i: int, c: int, rows: slice) -> Floats:
            X, W, part = between(self.cell.X, rows.start, rows.stop), solutions[i][c].weights.W, parts[i]
            if part.taken is None:
                return decided(part.logs[rows], task_values(X, W), method.loss_number, method.rule == "hard")
            return part.decide(X, W, method.loss_number, method.rule == "hard")

        fill_held_out(self.cell, jobs, out, values)

    def final(self, jobs: Sequence[Job], starts: Sequence[Scored | None]) -> list[SVMMixture]:
        """EM with labels, from these weights or from those for the mixture without labels."""
        missing = [i for i, start in enumerate(starts) if start is None]
        begin = dict(zip(missing, self._scored([jobs[i] for i in missing], 0, [None] * len(missing), 1.0), strict=True))

        parts = self.parts.of(jobs)

        def work(i: int) -> SVMMixture:
            start, mixture = starts[i] or begin[i], parts[i].mixture
            return self._fitted(jobs[i], SVMMixture(mixture, start.weights, start.M, np.empty(0), False, False))

        return self.cell.threads.map(work, len(jobs))

    def whole_start(self, starts: Sequence[Scored]) -> Scored | None:
        """The means, where components are the same in all folds."""
        if self.parts.paired:
            return None
        weights = [start.weights for start in starts]
        W, width = np.mean([one.W for one in weights], axis=0), max(one.width for one in weights)
        M = np.mean([start.M for start in starts], axis=0)
        return Scored(TaskWeights(W, width, weights[0].report), M)

    def _scored(self, jobs: Sequence[Job], c: int, starts: Sequence[Scored | None], roughness: float) -> list[Scored]:
        parts, tolerance = self.parts.of(jobs), roughness * self.method.tolerance

        def work(i: int) -> Scored:
            job, start, part = jobs[i], starts[i], parts[i]
            weight = job.costs[c] * self.cell.training_weight(job.fold)
            weights, M = (start.weights, start.M) if start else (None, None)
            y, weight = part.of(self.cell.Y[:, job.problem]), part.of(weight)
            tasks = self.method.tasks(self.setting, self.losses[job.problem], tolerance)
            return Scored(*solve_tasks(part.tasks, y, weight, tasks, weights, M))

        return self.cell.threads.map(work, len(jobs))

    def _fitted(self, job: Job, begin: SVMMixture) -> SVMMixture:
        cell, y, weight = self.cell, self.cell.Y[:, job.problem], self.cell.training_weight(job.fold)
        taken = np.flatnonzero(self.losses[job.problem].takes_part(y) & (weight > 0))
        if not len(taken):
            return replace(begin, trace=np.zeros(1), ended=True)
        data = MixtureRows(rows_of(cell.X, taken), y[taken], cell.mass[taken], cell.cost[taken])
        tasks = self.method.tasks(self.setting, self.losses[job.problem], self.method.tolerance)
        return fit_svm_mixture(data, float(job.costs[0]), tasks, begin, *WITH_LABELS)
