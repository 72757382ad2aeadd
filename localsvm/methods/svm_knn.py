"""SVM-KNN (Zhang, Berg, Maire, Malik, CVPR 2006): a linear SVM for each row that is to be decided, on its neighbours.

The k nearest training rows decide where they are of one class; else a linear SVM with a free offset is trained on them,

    min over w, b: 1/2 |w|^2 + C sum_i loss(y_i (w . x_i + b)),    i among the neighbours,

with the hinge loss. Nothing happens in training but the choice of k and C, by the neighbours of each row outside its
fold. The search is exact. A row that stands for several is several neighbours, the last of which may not be counted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from localsvm.data.dataset import Examples, between, rows_of
from localsvm.kernels.gram import active_columns, columns_of
from localsvm.methods.base import CellSize, Fit, FitReport, Fitted, Prepared, Purpose, State, System, View, option
from localsvm.methods.cell import Cell, Job
from localsvm.methods.grids import Values
from localsvm.methods.kernel_expansion import rows_pieces, sparse_support, support_state
from localsvm.methods.linear_options import CostOptions, check_neighbours, most_first
from localsvm.methods.saved import table
from localsvm.representations.neighbours import CHUNK, QUERIES, Neighbours
from localsvm.solvers.local_svm import decision_values
from localsvm.store.pieces import Piece, Pieces, floats64, index
from localsvm.targets.base import Target

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]
BLOCK_BYTES = 60  # for each distance of a block: it, its place, and both in order
STRIP = 1024  # rows that a thread decides at once


@dataclass(frozen=True)
class NeighbourSVM(CostOptions):
    """Options of the method."""

    name: ClassVar[str] = "svm-knn"
    costs_at_once: ClassVar[int] = 1 << 30  # neighbours and their products are the same for all

    neighbours: tuple[float, ...] = option(
        (10.0, 20.0, 40.0, 80.0),
        "--neighbours",
        help="Nearest anchors that a row of llsvm is coded by, or nearest rows of svm-knn: a number, or a list to "
        "choose from.",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        check_neighbours(self.neighbours)

    @property
    def shift_invariant(self) -> bool:
        """Distances, and SVMs with a free offset."""
        return True

    def axes(self, features: int) -> dict[str, Values]:
        """The number of neighbours, the largest first: it is the smoothest."""
        return {"neighbours": most_first(self.neighbours)}

    def prepare(self, cell: Cell, view: View) -> Prepared:
        """The neighbours of all rows outside their folds, for the largest k."""
        return PreparedNeighbours(self, cell)

    def pack(self, cell: Cell, fits: Sequence[Fit]) -> Fitted:
        """All rows, as training has them, and what is to be done with them."""
        n = len(cell.y)
        state: dict[str, NDArray[Any]] = {
            "model_problem": np.asarray([fit.job.problem for fit in fits], np.int32),
            "model_fold": np.asarray([fit.job.fold for fit in fits], np.int32),
            "model_cost": np.asarray([float(fit.job.costs[0]) for fit in fits]),
            **support_state(cell.X, np.arange(n)),
            "support_label": np.asarray(cell.y, np.float64),
            "support_count": np.asarray(cell.count, np.float64),
            "support_weight": np.asarray(cell.weight / cell.count, np.float64),
            "support_fold": cell.folds.astype(np.int32),
            "neighbours": np.asarray([fits[0].system.k], np.int32),
        }
        return Fitted(state, FitReport(len(fits), support_vectors=n, support=cell.target.counts(cell.y)))

    def predictor(self, state: State, target: Target, n_features: int) -> NeighbourPredictor:
        """Decision functions of a saved cell."""
        return NeighbourPredictor(self.tolerance, state, target, n_features)

    def pieces(self, target: Target, dense: bool) -> Pieces:
        """n rows, their labels, and how many each is."""
        return {
            **table("problem", "fold", "cost"),
            **rows_pieces(dense),
            "support_label": floats64("s"),
            "support_count": floats64("s", low=1, high=2.0**53),
            "support_weight": floats64("s", low=0),
            "support_fold": index("s", below="folds"),
            "neighbours": Piece("i4", (1,), low=1, high=max(self.neighbours)),
        }

    def memory(self, size: CellSize) -> int:
        """The rows packed for the search, a block of distances, and all neighbours; rows as the model keeps them."""
        k, costs = min(size.rows, int(max(self.neighbours))), len(self.cost or self.default_costs)
        rows = 4 * size.rows * size.features
        kept = rows if size.dense else 8 * size.stored
        search = BLOCK_BYTES * min(QUERIES, size.rows) * min(CHUNK, size.rows) + (0 if size.few else 2 * rows)
        return int(search + kept + 2 * 8 * size.rows * k + 8 * size.rows * size.problems * costs)


class PreparedNeighbours(Prepared):
    """The neighbours of the rows of a cell, found when they are first asked for."""

    def __init__(self, method: NeighbourSVM, cell: Cell) -> None:
        self.method, self.cell = method, cell
        self._known: dict[int, Indices] = {}

    def at(self, setting: dict[str, float], purpose: Purpose) -> NeighbourSystem:
        """With so many neighbours."""
        return NeighbourSystem(self, int(setting["neighbours"]))

    def outside(self, fold: int) -> Indices:
        """(rows of the fold, most neighbours) places of their nearest rows outside it, the nearest first."""
        if fold not in self._known:
            cell, held = self.cell, self.cell.held_out(fold)
            others = np.flatnonzero(cell.folds != fold)
            search = Neighbours(rows_of(cell.X, others))
            queries = between(cell.X, held.start, held.stop)
            most = min(int(max(self.method.neighbours)), len(others))
            found: Indices = np.empty((held.stop - held.start, most), np.int64)

            def strip(first: int, last: int) -> None:
                found[first:last] = others[search.nearest(between(queries, first, last), most)]

            cell.threads.strips(strip, len(found), STRIP)
            self._known[fold] = found
        return self._known[fold]


class NeighbourSystem(System):
    """The problems of a cell with k neighbours. There is nothing to solve before a row asks."""

    def __init__(self, prepared: PreparedNeighbours, k: int) -> None:
        self.prepared, self.cell, self.k = prepared, prepared.cell, k

    def solve(self, jobs: Sequence[Job], starts: Sequence[Any], roughness: float) -> list[list[Any]]:
        """Nothing."""
        return [[() for _ in job.costs] for job in jobs]

    def held_out(self, jobs: Sequence[Job], solutions: Sequence[Sequence[Any]], out: Floats) -> None:
        """By the neighbours outside the fold, of all problems of a fold at once."""
        for fold in sorted({job.fold for job in jobs}):
            self._fill([job for job in jobs if job.fold == fold], out)

    def _fill(self, jobs: Sequence[Job], out: Floats) -> None:
        cell, fold, problems = self.cell, jobs[0].fold, [job.problem for job in jobs]
        near, first_held = self.prepared.outside(fold), cell.held_out(fold).start
        known = Known(cell.X, cell.Y[:, problems], cell.count, cell.weight / cell.count)

        def strip(first: int, last: int) -> None:
            held = slice(first_held + first, first_held + last)
            rows = between(cell.X, held.start, held.stop)
            values = known.values(rows, near[first:last], self.k, jobs[0].costs, self.prepared.method.tolerance)
            for p, problem in enumerate(problems):
                out[:, problem, held] = values[:, :, p]

        cell.threads.strips(strip, len(near), STRIP)

    def final(self, jobs: Sequence[Job], starts: Sequence[Any]) -> list[Any]:
        """Nothing."""
        return [() for _ in jobs]


@dataclass(frozen=True)
class Known:
    """Training rows. X (n, d), Y (n, problems); count (n,) how many each is, and weight (n,) of one of these."""

    X: Examples
    Y: Floats
    count: Floats
    weight: Floats

    def values(self, rows: Examples, near: Indices, k: int, costs: Floats, tolerance: float) -> Floats:
        """(costs, m, problems) decision values of rows by the first k of their neighbours near (m, most), near to far.

        Rows with the same neighbours share their SVM.
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
        out = np.empty((len(costs), len(near), self.Y.shape[1]))
        for members in groups.values():
            own, weight = places[members[0], : many[members[0]]], counted[members[0], : many[members[0]]]
            out[:, members] = self._decided(own, weight * self.weight[own], costs, rows, members, tolerance)
        return out

    def _decided(
        self, places: Indices, weight: Floats, costs: Floats, rows: Examples, members: list[int], tolerance: float
    ) -> Floats:
        Y, taking = self.Y[places], weight > 0
        if all(one_sided(Y[taking, p]) for p in range(Y.shape[1])):
            none: Floats = np.empty((len(places), 0))
            return decision_values(none, Y, weight, costs, none[:1].repeat(len(members), axis=0), tolerance)
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
        """(n, problems) float64, see Target.combine."""
        state, problem = self._state, self._state["model_problem"]
        out = np.zeros((X.shape[0], len(problem)))
        for fold, (search, others) in self._searches.items():
            mine = np.flatnonzero(state["model_fold"] == fold)
            known = replace(self._known, Y=self._known.Y[:, problem[mine]])
            costs = state["model_cost"][mine[:1]].astype(np.float64)
            for first in range(0, len(out), STRIP):
                rows = between(X, first, min(first + STRIP, len(out)))
                near = others[search.nearest(rows, min(self._k, len(others)))]
                values = known.values(rows, near, self._k, costs, self._tolerance)
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
        """By the fold that a model leaves out, the rows that it has."""
        folds = np.unique(self._state["model_fold"])
        others = {int(fold): np.flatnonzero(self._state["support_fold"] != fold) for fold in folds}
        return {fold: (Neighbours(rows_of(self._known.X, rows)), rows) for fold, rows in others.items()}


def one_sided(y: Floats) -> bool:
    """Whether there are not both sides among them."""
    return not ((y > 0).any() and (y < 0).any())
