"""System of `mllkm`: the problems of a cell, their solutions, and how these are packed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from localsvm.data.blocks.dataset import Dense, between, dense_rows
from localsvm.kernels.gram import active_columns, columns_of
from localsvm.methods.base import WHOLE, Fit, Fitted, Prepared, Purpose, State, System
from localsvm.methods.cell import Cell, Job, fill_held_out
from localsvm.methods.fit_report import FitReport
from localsvm.methods.grids import Values
from localsvm.methods.locally_linear.mllkm import LocallyLinearKernels
from localsvm.methods.locally_linear.systems.mllkm_online import OnePass
from localsvm.methods.locally_linear.systems.mllkm_predictor import LocalPredictor
from localsvm.methods.random import CENTRES, EPOCHS, KERNELS, stream
from localsvm.representations.kmeans import find_centres
from localsvm.representations.local_kernels import LocalBank
from localsvm.solvers.feature_mkl import Found, feature_mkl
from localsvm.solvers.feature_sdca import feature_sdca

Floats = NDArray[np.float64]

Names = NDArray[np.int64]
ROUGHEST = 3.0  # times the tolerance for solutions that are only compared: 3 % by default


def packed(jobs: Sequence[Job], solutions: Sequence[Found], anchors: int, gammas: Values) -> tuple[State, Names]:
    """A table of models with their kernels; and the numbers of the anchors that these use, of `anchors` in all."""
    names = np.concatenate([one.names for one in solutions])
    which, anchor = np.divmod(names, max(1, anchors))
    used, place = np.unique(anchor, return_inverse=True)
    shares = [one.norms / max(float(one.norms.sum()), np.finfo(np.float64).tiny) for one in solutions]
    state: State = {
        "model_problem": np.asarray([job.problem for job in jobs], np.int32),
        "model_fold": np.asarray([job.fold for job in jobs], np.int32),
        "model_cost": np.asarray([float(job.costs[0]) for job in jobs]),
        "model_gap": np.asarray([one.gap for one in solutions]),
        "model_iterations": np.asarray([one.steps for one in solutions], np.int64),
        "model_converged": np.asarray([one.converged for one in solutions], np.uint8),
        "kernel_ptr": np.cumsum([0, *(len(one.names) for one in solutions)]).astype(np.int64),
        "kernel_anchor": place.astype(np.int32),
        "kernel_gamma": np.asarray(gammas)[which],
        "kernel_share": np.concatenate(shares),
    }
    return state, used


def pack_learned(learners: Sequence[OnePass], cost: float, gammas: Values, stored: Callable[[Floats], Dense]) -> Fitted:
    """The models that were learned in one pass, one a problem. stored: anchors as the model has them."""
    first = np.cumsum([0, *(len(one.anchors) for one in learners)])
    solutions, anchors = [], np.concatenate([one.anchors for one in learners])
    for one, start in zip(learners, first, strict=False):
        which, anchor = np.divmod(one.solution.names, max(1, len(one.anchors)))
        moved = replace(one.solution, names=which * len(anchors) + anchor + start)
        solutions.append(by_gamma(moved, anchors.shape[1]))
    jobs = [Job(p, WHOLE, np.asarray([cost])) for p in range(len(learners))]
    state, used = packed(jobs, solutions, len(anchors), gammas)
    weights = np.concatenate([one.w for one in solutions]).reshape(-1, anchors.shape[1])
    support = np.unique(np.concatenate([one.rows.number[one.rows.coef != 0.0] for one in learners]))
    report = replace(report_of(solutions), support_vectors=len(support))
    return Fitted(state | {"anchors": stored(anchors[used]), "weights": weights}, report)


def report_of(solutions: Sequence[Found]) -> FitReport:
    """Summary of solutions."""
    return FitReport(
        models=len(solutions),
        iterations=sum(one.steps for one in solutions),
        not_converged=sum(not one.converged for one in solutions),
        largest_gap=max((one.gap for one in solutions), default=0.0),
    )


def by_gamma(solution: Found, features: int) -> Found:
    """A solution with kernels of one gamma together."""
    order = np.argsort(solution.names)
    W = solution.w.reshape(len(order), features)[order]
    return replace(solution, names=solution.names[order], w=W.ravel(), norms=solution.norms[order])


class PreparedAnchors(Prepared):
    """The rows of a cell in the columns that have values, and the centres found so far."""

    def __init__(self, method: LocallyLinearKernels, cell: Cell) -> None:
        self.method, self.cell, self.columns = method, cell, active_columns(cell.X)
        rows = columns_of(cell.X, self.columns)
        self.centre = rows.mean(axis=0, dtype=np.float64)
        self.X = rows - self.centre
        spread = 2.0 * float(np.square(self.X).sum()) / max(1, len(self.X))
        self.gammas = method.gammas_of(spread, self.X.shape[1])
        self._centres: dict[int, Dense] = {}

    def at(self, setting: dict[str, float], purpose: Purpose) -> LocalSystem:
        """The system with the anchors of the setting."""
        if self.method.anchors == "rows":
            return LocalSystem(self, None)
        count = int(setting["clusters"])
        if count not in self._centres:
            self._centres[count] = find_centres(self.cell.X, count, stream(self.cell.random, CENTRES))
        return LocalSystem(self, self._centres[count])


class LocalSystem(System):
    """The problems of a cell. centres: the anchors; None for its rows. A solution's coef has a place for each row."""

    def __init__(self, prepared: PreparedAnchors, centres: Dense | None) -> None:
        self.prepared, self.method, self.cell, self._centres = prepared, prepared.method, prepared.cell, centres
        if centres is None:
            self.anchors = prepared.X
        else:
            self.anchors = columns_of(centres, None)[:, self._columns].astype(np.float64) - prepared.centre

    @property
    def _columns(self) -> Any:
        return slice(None) if self.prepared.columns is None else self.prepared.columns

    def solve(self, jobs: Sequence[Job], starts: Sequence[Found | None], roughness: float) -> list[list[Found]]:
        """Solve cost by cost, from the active kernels of the cost before; all jobs side by side."""
        paths: list[list[Found]] = [[] for _ in jobs]
        tolerance = min(roughness, ROUGHEST) * self.method.tolerance
        for c in range(len(jobs[0].costs)):
            starts = self._solve_all([job.at(c, c + 1) for job in jobs], starts, tolerance)
            for path, one in zip(paths, starts, strict=True):
                path.append(one)
        return paths

    def held_out(self, jobs: Sequence[Job], solutions: Sequence[Sequence[Found]], out: Floats) -> None:
        """Fill in decision values as a predictor computes them."""

        def values(i: int, c: int, rows: slice) -> Floats:
            state = self.method.pack(self.cell, [Fit(self, jobs[i].at(c, c + 1), solutions[i][c])]).state
            predictor = LocalPredictor(self.method.map, self.method.componentwise, state, self.cell.target)
            return predictor.values(between(self.cell.X, rows.start, rows.stop))[:, 0]

        fill_held_out(self.cell, jobs, out, values)

    def final(self, jobs: Sequence[Job], starts: Sequence[Found | None]) -> list[Found]:
        """Solutions, solved on to the tolerance."""
        return self._solve_all(jobs, starts, self.method.tolerance)

    def whole_start(self, starts: Sequence[Found]) -> Found:
        """The kernels of all fold models, with mean weights; mean coefficients of the models that saw a row."""
        names, place = np.unique(np.concatenate([one.names for one in starts]), return_inverse=True)
        W: Floats = np.zeros((len(names), self.prepared.X.shape[1]))
        np.add.at(W, place, np.concatenate([one.w for one in starts]).reshape(len(place), W.shape[1]) / len(starts))
        coef = np.sum([one.coef for one in starts], axis=0) / max(1, len(starts) - 1)
        some = W.any(axis=1)
        return replace(starts[0], names=names[some], w=W[some].ravel(), coef=coef, width=max(s.width for s in starts))

    def stored(self, anchors: NDArray[np.int64]) -> Dense:
        """Anchors as the model has them, (anchors, features) float32."""
        return dense_rows(self.cell.X if self._centres is None else self._centres, anchors)

    def spread(self, w: Floats) -> Floats:
        """Weights (kernels, features), 0 for columns without values."""
        W = w.reshape(-1, max(1, self.prepared.X.shape[1]))
        out: Floats = np.zeros((len(W), self.cell.X.shape[1]))
        out[:, self._columns] = W
        return out

    def _solve_all(self, jobs: Sequence[Job], starts: Sequence[Found | None], tolerance: float) -> list[Found]:
        return self.cell.threads.map(lambda i: self._solve(jobs[i], starts[i], tolerance), len(jobs))

    def _solve(self, job: Job, start: Found | None, tolerance: float) -> Found:
        cell, method, y = self.cell, self.method, self.cell.Y[:, job.problem]
        cost = job.costs[0] * cell.training_weight(job.fold)
        taken = np.flatnonzero((y != 0) & (cost > 0))
        may = taken if self._centres is None else np.arange(len(self.anchors))
        gammas, X = self.prepared.gammas, self.prepared.X[taken]
        bank = LocalBank(X, self.anchors, may, method.map, gammas, method.componentwise)
        if method.solver == "sdca":
            rng = stream(cell.random, EPOCHS)
            solution = feature_sdca(bank, y[taken], cost[taken], tolerance, method.admit, method.epochs, rng)
            return self._placed(solution, taken)
        before = None if start is None else replace(start, coef=start.coef[taken])
        parts = bank.parts(stream(cell.random, KERNELS)) if method.online == "kernels" else ()
        solution = feature_mkl(bank, y[taken], cost[taken], tolerance, method.admit, before, parts)
        return self._placed(solution, taken)

    def _placed(self, solution: Found, taken: NDArray[np.intp]) -> Found:
        """A solution with kernels of one gamma together, and a coefficient for each row of the cell."""
        coef: Floats = np.zeros(len(self.cell.y))
        coef[taken] = solution.coef
        return replace(by_gamma(solution, self.prepared.X.shape[1]), coef=coef)
