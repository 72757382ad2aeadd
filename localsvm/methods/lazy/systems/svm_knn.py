"""System and predictor of `svm-knn`: the neighbours of rows, and the SVM of those that are of several classes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from localsvm.data.blocks.dataset import Examples, between, rows_of
from localsvm.kernels.gram import active_columns, columns_of
from localsvm.methods.base import Prepared, Purpose, State, System
from localsvm.methods.cell import Cell, Job
from localsvm.methods.kernel.systems.expansion import sparse_support
from localsvm.methods.lazy.svm_knn import NeighbourSVM
from localsvm.representations.neighbours import Neighbours
from localsvm.solvers.local_svm import decision_values
from localsvm.targets.base import Target

Floats = NDArray[np.float64]

Indices = NDArray[np.int64]
STRIP = 1024  # rows that a thread decides at once


class PreparedNeighbours(Prepared):
    """The neighbours of the rows of a cell, found when they are first asked for."""

    def __init__(self, method: NeighbourSVM, cell: Cell) -> None:
        self.method, self.cell = method, cell
        self._known: dict[int, Indices] = {}

    def at(self, setting: dict[str, float], purpose: Purpose) -> NeighbourSystem:
        """The system with so many neighbours."""
        return NeighbourSystem(self, int(setting["neighbours"]))

    def outside(self, fold: int) -> Indices:
        """Places (rows of the fold, most neighbours) of their nearest rows outside the fold, the nearest first."""
        if fold not in self._known:
            cell, held = self.cell, self.cell.held_out(fold)
            others = np.flatnonzero(cell.folds != fold)
            search = Neighbours(rows_of(cell.X, others))
            queries = between(cell.X, held.start, held.stop)
            most = min(int(max(self.method.neighbours)), len(others))
            nearest: Indices = np.empty((held.stop - held.start, most), np.int64)

            def strip(first: int, last: int) -> None:
                nearest[first:last] = others[search.nearest(between(queries, first, last), most)]

            cell.threads.strips(strip, len(nearest), STRIP)
            self._known[fold] = nearest
        return self._known[fold]


@dataclass
class Decided:
    """State of the SVMs of held-out rows: the largest violation of those that did not converge, else 0."""

    violation: float = 0.0


class NeighbourSystem(System):
    """The problems of a cell with k neighbours. There is nothing to solve before a row asks."""

    def __init__(self, prepared: PreparedNeighbours, k: int) -> None:
        self.prepared, self.cell, self.k = prepared, prepared.cell, k

    def solve(self, jobs: Sequence[Job], starts: Sequence[Any], roughness: float) -> list[list[Any]]:
        """Empty solutions, as nothing is solved yet."""
        return [[Decided() for _ in job.costs] for job in jobs]

    def held_out(self, jobs: Sequence[Job], solutions: Sequence[Sequence[Any]], out: Floats) -> None:
        """Fill in decisions by the neighbours outside the fold, of all problems of a fold at once."""
        for fold in sorted({job.fold for job in jobs}):
            mine = [i for i, job in enumerate(jobs) if job.fold == fold]
            violations = self._fill([jobs[i] for i in mine], out)
            for p, i in enumerate(mine):
                for decided, violation in zip(solutions[i], violations[:, p].tolist(), strict=True):
                    decided.violation = violation

    def _fill(self, jobs: Sequence[Job], out: Floats) -> Floats:
        """Fill in the decision values of one fold's jobs; the largest violations (costs, jobs) are returned."""
        cell, fold, problems = self.cell, jobs[0].fold, [job.problem for job in jobs]
        near, first_held = self.prepared.outside(fold), cell.held_out(fold).start
        known = Known(cell.X, cell.Y[:, problems], cell.count, cell.weight / cell.count)
        missed = np.zeros((-(-len(near) // STRIP), out.shape[0], len(problems)))

        def strip(first: int, last: int) -> None:
            held = slice(first_held + first, first_held + last)
            rows = between(cell.X, held.start, held.stop)
            values, violations = known.values(
                rows, near[first:last], self.k, jobs[0].costs, self.prepared.method.tolerance
            )
            missed[first // STRIP] = violations
            for p, problem in enumerate(problems):
                out[:, problem, held] = values[:, :, p]

        cell.threads.strips(strip, len(near), STRIP)
        return np.asarray(missed.max(axis=0, initial=0.0))

    def final(self, jobs: Sequence[Job], starts: Sequence[Decided | None]) -> list[Decided]:
        """The starts as they are; what is known comes from the choice of k and C."""
        return [Decided() if start is None else start for start in starts]

    def whole_start(self, starts: Sequence[Decided]) -> Decided:
        """The largest violation of all folds."""
        return Decided(max((start.violation for start in starts), default=0.0))


@dataclass(frozen=True)
class Known:
    """Training rows. X (n, d), Y (n, problems); count (n,) how many each is, and weight (n,) of one of these."""

    X: Examples
    Y: Floats
    count: Floats
    weight: Floats

    def values(self, rows: Examples, near: Indices, k: int, costs: Floats, tolerance: float) -> tuple[Floats, Floats]:
        """Decision values (costs, m, problems) of rows by the first k of their neighbours near (m, most), near to far.

        The second array (costs, problems) has the largest violation of SVMs that did not converge. Rows with the same
        neighbours share their SVM.
        """
        count = self.count[near]
        counted = np.clip(
            k - (np.cumsum(count, axis=1) - count), 0.0, count
        )  # of the last as many as there is room for
        many = np.count_nonzero(counted, axis=1)
        order = np.argsort(np.where(counted > 0, near, len(self.weight)), axis=1)  # the same for the same neighbours
        places, counted = np.take_along_axis(near, order, axis=1), np.take_along_axis(counted, order, axis=1)
        groups: dict[bytes, list[int]] = {}
        for i, m in enumerate(many):
            groups.setdefault(places[i, :m].tobytes() + counted[i, :m].tobytes(), []).append(i)
        out, missed = np.empty((len(costs), len(near), self.Y.shape[1])), np.zeros((len(costs), self.Y.shape[1]))
        for members in groups.values():
            neighbours, weight = places[members[0], : many[members[0]]], counted[members[0], : many[members[0]]]
            decided = self._decided(neighbours, weight * self.weight[neighbours], costs, rows, members, tolerance)
            out[:, members], missed = decided[0], np.maximum(missed, decided[1])
        return out, missed

    def _decided(
        self, places: Indices, weight: Floats, costs: Floats, rows: Examples, members: list[int], tolerance: float
    ) -> tuple[Floats, Floats]:
        Y, taking = self.Y[places], weight > 0
        if all(one_sided(Y[taking, p]) for p in range(Y.shape[1])):
            none = np.empty((len(places), 0)), np.empty((len(members), 0))
            return decision_values(none[0], Y, weight, costs, none[1], tolerance)
        X = rows_of(self.X, places)
        columns = active_columns(X)  # without a value in them, others have no weight
        points = columns_of(rows_of(rows, np.asarray(members)), columns).astype(np.float64)
        return decision_values(columns_of(X, columns).astype(np.float64), Y, weight, costs, points, tolerance)


class NeighbourPredictor:
    """Decision functions of a saved cell; the search is made ready on first use."""

    def __init__(self, tolerance: float, state: State, target: Target, n_features: int) -> None:
        self._tolerance, self._state, self._target, self._n_features = tolerance, state, target, n_features
        self._k = int(state["neighbours"][0])

    def decision_function(self, X: Examples) -> Floats:
        """Decision values (n, problems) float64; see Target.combine."""
        state, problem = self._state, self._state["model_problem"]
        out = np.zeros((X.shape[0], len(problem)))
        for fold, (search, others) in self._searches.items():
            mine = np.flatnonzero(state["model_fold"] == fold)
            known = replace(self._known, Y=self._known.Y[:, problem[mine]])
            costs = state["model_cost"][mine[:1]].astype(np.float64)
            for first in range(0, len(out), STRIP):
                rows = between(X, first, min(first + STRIP, len(out)))
                near = others[search.nearest(rows, min(self._k, len(others)))]
                values, _ = known.values(rows, near, self._k, costs, self._tolerance)
                out[first : first + STRIP, mine] = values[0]
        return self._target.combine(out, problem)

    @cached_property
    def _known(self) -> Known:
        state = self._state
        X = state["support"] if "support" in state else sparse_support(state, self._n_features)
        count, weight = (state[f"support_{name}"].astype(np.float64) for name in ("count", "weight"))
        return Known(X, self._target.encode(state["support_label"].astype(np.float64)), count, weight)

    @cached_property
    def _searches(self) -> dict[int, tuple[Neighbours, Indices]]:
        """Searches over the rows that models have, and these rows, by the fold that the models leave out."""
        folds = np.unique(self._state["model_fold"])
        others = {int(fold): np.flatnonzero(self._state["support_fold"] != fold) for fold in folds}
        return {fold: (Neighbours(rows_of(self._known.X, rows)), rows) for fold, rows in others.items()}


def one_sided(y: Floats) -> bool:
    """True where there are not both sides among the labels."""
    return not ((y > 0).any() and (y < 0).any())
