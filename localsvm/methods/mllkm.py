"""MLLKM (Picard, Multiple Locally Linear Kernel Machines, 2024): a sum of linear functions, each around an anchor.

For each binary problem: f(x) = sum_m phi_m(x) . w_m, phi_m(x) = h_m(x) (x - c_m), and

    min_w  1/2 (sum_m |w_m|)^2 + C sum_i max(0, 1 - y_i f(x_i)),

l1 multiple kernel learning over the kernels phi_m . phi_m of all anchors c_m and all gammas of their maps h_m. Few of
them get weights. There is no bias. See localsvm/solvers/feature_mkl.py for how it is solved, and
localsvm/representations/local_kernels.py for the maps.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from localsvm.data.dataset import Dense, between, dense_rows
from localsvm.kernels.gram import active_columns, columns_of
from localsvm.methods.base import CellSize, Fit, FitReport, Fitted, Prepared, Purpose, State, System, View
from localsvm.methods.cell import Cell, Job, fill_held_out
from localsvm.methods.clustered import CENTRES, KERNELS, stream
from localsvm.methods.grids import SIZE
from localsvm.methods.mllkm_options import LocalOptions
from localsvm.methods.mllkm_predictor import LocalPredictor
from localsvm.methods.saved import table
from localsvm.representations.kmeans import find_centres
from localsvm.representations.local_kernels import BLOCK, LocalBank
from localsvm.solvers.feature_mkl import Found, feature_mkl
from localsvm.store.pieces import Pieces, floats32, floats64, index, pointer
from localsvm.targets.base import Target

Floats = NDArray[np.float64]
ACTIVE, ROWS, SCORES, COPIES = 3, 12, 4, 4  # sets of entering kernels in the active one; copies of arrays, see `memory`
MOST_GAMMA = 1e33  # finite in float32, and above all that options and defaults give
ROUGHEST = 3.0  # times the tolerance for solutions that are only compared: 3 % by default


@dataclass(frozen=True)
class LocallyLinearKernels(LocalOptions):
    """The method; its options are those of the base."""

    name: ClassVar[str] = "mllkm"

    def prepare(self, cell: Cell, view: View) -> Prepared:
        """The rows in float64, from their mean; k-means centres of all of them."""
        return PreparedRows(self, cell)

    def pack(self, cell: Cell, fits: Sequence[Fit]) -> Fitted:
        """The anchors that are used, a table of models, and for each of its kernels the weights."""
        system: LocalSystem = fits[0].system
        found: list[Found] = [fit.solution for fit in fits]
        names = np.concatenate([one.names for one in found])
        which, anchor = np.divmod(names, max(1, len(system.anchors)))
        used, place = np.unique(anchor, return_inverse=True)
        shares = [one.norms / max(float(one.norms.sum()), np.finfo(np.float64).tiny) for one in found]
        state: State = {
            "model_problem": np.asarray([fit.job.problem for fit in fits], np.int32),
            "model_fold": np.asarray([fit.job.fold for fit in fits], np.int32),
            "model_cost": np.asarray([float(fit.job.costs[0]) for fit in fits]),
            "model_gap": np.asarray([one.gap for one in found]),
            "model_iterations": np.asarray([one.steps for one in found], np.int64),
            "model_converged": np.asarray([one.converged for one in found], np.uint8),
            "kernel_ptr": np.cumsum([0, *(len(one.names) for one in found)]).astype(np.int64),
            "kernel_anchor": place.astype(np.int32),
            "kernel_gamma": np.asarray(system.prepared.gammas)[which],
            "kernel_share": np.concatenate(shares),
            "anchors": system.stored(used),
            "weights": system.spread(np.concatenate([one.w for one in found])),
        }
        return Fitted(state, _report(cell, found))

    def predictor(self, state: State, target: Target, n_features: int) -> LocalPredictor:
        """Decision functions of a saved cell."""
        return LocalPredictor(self.map, self.componentwise, state, target)

    def pieces(self, target: Target, dense: bool) -> Pieces:
        """m models with k kernels together, on a anchors."""
        return {
            **table("problem", "fold", "cost", "gap", "iterations", "converged"),
            "kernel_ptr": pointer("m", "k"),
            "kernel_anchor": index("k", below="a"),
            "kernel_gamma": floats64("k", low=0, high=MOST_GAMMA),
            "kernel_share": floats64("k", low=0),
            "anchors": floats32("a", "features"),
            "weights": floats64("k", "features"),
        }

    def memory(self, size: CellSize) -> int:
        """The rows in float64 and their copies, a block of distances, the scores, and what active kernels take."""
        n, d, active = size.rows, size.features, ACTIVE * self.admit
        candidates = (n if self.anchors == "rows" else int(max(self.clusters))) * (len(self.bank_gammas) or SIZE)
        values = 8 * n * active * (d if self.componentwise else 1)
        return int(ROWS * 8 * n * d + 8 * BLOCK + 8 * SCORES * candidates + COPIES * values)


def _report(cell: Cell, found: Sequence[Found]) -> FitReport:
    inside = np.any([one.coef != 0.0 for one in found], axis=0)
    return FitReport(
        models=len(found),
        iterations=sum(one.steps for one in found),
        not_converged=sum(not one.converged for one in found),
        largest_gap=max((one.gap for one in found), default=0.0),
        support_vectors=int(np.count_nonzero(inside)),
        support=cell.target.counts(cell.y[inside]),
    )


class PreparedRows(Prepared):
    """The rows of a cell in the columns that have values, and the centres found so far."""

    def __init__(self, method: LocallyLinearKernels, cell: Cell) -> None:
        self.method, self.cell, self.columns = method, cell, active_columns(cell.X)
        rows = columns_of(cell.X, self.columns)
        self.centre = rows.mean(axis=0, dtype=np.float64)
        self.X = rows - self.centre
        spread = 2.0 * float(np.square(self.X).sum()) / max(1, len(self.X))
        self.gammas = method.gammas(spread / max(1, self.X.shape[1]) if method.componentwise else spread)
        self._centres: dict[int, Dense] = {}

    def at(self, setting: dict[str, float], purpose: Purpose) -> LocalSystem:
        """With these anchors."""
        if self.method.anchors == "rows":
            return LocalSystem(self, None)
        count = int(setting["clusters"])
        if count not in self._centres:
            self._centres[count] = find_centres(self.cell.X, count, stream(self.cell.random, CENTRES))
        return LocalSystem(self, self._centres[count])


class LocalSystem(System):
    """The problems of a cell. centres: the anchors; None for its rows. A solution's coef has a place for each row."""

    def __init__(self, prepared: PreparedRows, centres: Dense | None) -> None:
        self.prepared, self.method, self.cell, self._centres = prepared, prepared.method, prepared.cell, centres
        if centres is None:
            self.anchors = prepared.X
        else:
            self.anchors = columns_of(centres, None)[:, self._columns].astype(np.float64) - prepared.centre

    @property
    def _columns(self) -> Any:
        return slice(None) if self.prepared.columns is None else self.prepared.columns

    def solve(self, jobs: Sequence[Job], starts: Sequence[Found | None], roughness: float) -> list[list[Found]]:
        """Cost by cost, from the active kernels of the cost before; all jobs side by side."""
        found: list[list[Found]] = [[] for _ in jobs]
        tolerance = min(roughness, ROUGHEST) * self.method.tolerance
        for c in range(len(jobs[0].costs)):
            starts = self._solve_all([job.at(c, c + 1) for job in jobs], starts, tolerance)
            for path, one in zip(found, starts, strict=True):
                path.append(one)
        return found

    def held_out(self, jobs: Sequence[Job], solutions: Sequence[Sequence[Found]], out: Floats) -> None:
        """As a predictor has it."""

        def values(i: int, c: int, rows: slice) -> Floats:
            state = self.method.pack(self.cell, [Fit(self, jobs[i].at(c, c + 1), solutions[i][c])]).state
            predictor = LocalPredictor(self.method.map, self.method.componentwise, state, self.cell.target)
            return predictor.values(between(self.cell.X, rows.start, rows.stop))[:, 0]

        fill_held_out(self.cell, jobs, out, values)

    def final(self, jobs: Sequence[Job], starts: Sequence[Found | None]) -> list[Found]:
        """Solved on to the tolerance."""
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
        before = None if start is None else replace(start, coef=start.coef[taken])
        parts = bank.parts(stream(cell.random, KERNELS)) if method.online == "kernels" else ()
        found = feature_mkl(bank, y[taken], cost[taken], tolerance, method.admit, before, parts)
        coef: Floats = np.zeros(len(y))
        coef[taken] = found.coef
        order = np.argsort(found.names)  # kernels of one gamma together
        W = found.w.reshape(len(order), self.prepared.X.shape[1])[order]
        return replace(found, names=found.names[order], w=W.ravel(), norms=found.norms[order], coef=coef)
