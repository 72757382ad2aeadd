"""L3-SVM in its kernelised form (Zantedeschi, Emonet, Sebban 2017, appendix): the dual over projections, offset free.

Problem, per binary task: max_a sum_i a_i - 1/2 sum_ij a_i a_j y_i y_j [k(i) = k(j)] K(mu(x_i), mu(x_j)) over
0 <= a_i <= C, sum_i a_i y_i = 0: one SVM whose Gram matrix is block diagonal over the k-means clusters, held together
by the one offset that all share. (The appendix sums over one cluster only; all have to be summed over.) With the linear
kernel this is `l3` but for the bias, which is not regularised here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from localsvm.data.dataset import Examples
from localsvm.errors import OptionError
from localsvm.kernels.gram import Gram
from localsvm.methods.base import Cell, Grid, State, option
from localsvm.methods.expansion import ExpansionPredictor, KernelModel, pack_models
from localsvm.methods.grids import check_values, default_widths
from localsvm.methods.landmarked import Landmarked
from localsvm.methods.linear_options import COSTS
from localsvm.methods.svm import KernelSVM, Matrices
from localsvm.threads import Threads


@dataclass(frozen=True)
class KernelL3SVM(Landmarked, KernelSVM):
    """Options of the method."""

    name: ClassVar[str] = "l3-kernel"
    divides: ClassVar[bool] = False
    by_blocks: ClassVar[bool] = False  # blocks of rows have no kernel that is zero between clusters

    projection_gamma: tuple[float, ...] = option(
        (), "--projection-gamma", help="Gamma of l3-kernel's Gaussian projections (-g is that of its kernel)."
    )
    offset: bool = option(
        True, "--offset/--no-offset", help="Add an offset b to the decision function, as LIBSVM does."
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        self.check_landmarks(self.projection_gamma)
        if self.projection == "linear" and self.projection_gamma:
            raise OptionError("--projection-gamma is for --projection rbf")

    def default_select(self, n_classes: int) -> str:
        """One model on all rows, as the paper has it."""
        return "refit"

    def grid(self, cell: Cell, average_rows: float, folds: int) -> Grid:
        """The user's values where given; else the costs of `l3` and, for each set of landmarks, widths as of `svm`."""
        axes = self.landmark_axes(cell.X.shape[1])
        names = (*axes, "projection_gamma", "gamma")
        lines = []
        for count in axes["landmarks"]:
            for around in (0.0,) if self.projection == "linear" else self.projection_gamma or COSTS:
                line = {"clusters": self.clusters[0], "landmarks": count, "projection_gamma": around}
                gammas = self._gammas(cell, line, average_rows * (1.0 - 1.0 / max(2, folds)))
                lines += [(k, count, around, gamma) for k in self.clusters for gamma in gammas]
        return Grid(tuple(lines), names, costs=check_values(self.cost or COSTS))

    def _gammas(self, cell: Cell, line: dict[str, float], rows: float) -> tuple[float, ...]:
        if self.kernel == "linear":
            return (1.0,)
        if self.gamma:
            return check_values(self.gamma)
        if self.kernel == "polynomial":
            return (1.0 / line["landmarks"],)
        phi, _ = self.projected(cell.X, self._state(cell, line))
        power = 2 if self.kernel == "gaussian" else 1
        return tuple(w**-power for w in default_widths(np.floor(rows), phi.shape[1], Gram(phi).radius()))

    def matrices(self, cell: Cell, threads: Threads, several: bool, blocks: bool = False) -> Matrices:
        """Kernels of the projections, zero between rows of different clusters."""
        known: dict[tuple[float, ...], tuple[Gram, NDArray[np.int32]]] = {}

        def matrix(line: dict[str, float], double: bool) -> NDArray[Any]:
            key = tuple(value for name, value in line.items() if name != "gamma")
            if key not in known:
                known.clear()
                phi, nearest = self.projected(cell.X, self._state(cell, line))
                known[key] = Gram(phi, several), nearest
            gram, nearest = known[key]
            K = gram.matrix(self.kernel_of(line["gamma"]), double)
            for k in np.unique(nearest):
                K[np.ix_(np.flatnonzero(nearest == k), np.flatnonzero(nearest != k))] = 0.0
            return K

        return matrix

    def packed(self, cell: Cell, line: dict[str, float], models: list[KernelModel]) -> State:
        """The expansion's arrays over projections, with each support vector's cluster; centres and landmarks."""
        state = self._state(cell, line)
        phi, nearest = self.projected(cell.X, state)
        return state | pack_models(phi, cell.Y, models, nearest)

    def _state(self, cell: Cell, line: dict[str, float]) -> State:
        return self.landmark_state(cell.X, line, line["projection_gamma"], cell.random)

    def predictor(self, state: State, n_problems: int, n_features: int) -> ClusterPredictor:
        """Decision functions of a saved cell."""
        return ClusterPredictor(self, state, n_problems)

    def memory(self, rows: int, features: int, weight: float, solutions: int, part: int) -> int:
        """That of the kernel, which is always held whole, and of the projections."""
        landmarks = int(max(self.landmarks_count or (features,)))
        return super().memory(rows, landmarks, weight, solutions, part) + 8 * rows * (features + landmarks)


class ClusterPredictor:
    """Decision functions of one cell: in each cluster, the expansion over its own support vectors."""

    def __init__(self, method: KernelL3SVM, state: State, n_problems: int) -> None:
        self._method, self._state, self._n_problems = method, state, n_problems
        self._parts: dict[int, ExpansionPredictor] = {}

    def decision_function(self, X: Examples) -> NDArray[np.float64]:
        """(n, problems) float64."""
        phi, nearest = self._method.projected(X, self._state)
        out = np.zeros((len(phi), self._n_problems))
        for k in np.unique(nearest):
            out[nearest == k] = self._part(int(k)).decision_function(phi[nearest == k])
        return out

    def _part(self, k: int) -> ExpansionPredictor:
        if k not in self._parts:
            kernel, features = self._method.kernel_of(1.0), self._state["landmarks"].shape[0]
            self._parts[k] = ExpansionPredictor(cluster_part(self._state, k), kernel, self._n_problems, features)
        return self._parts[k]


def cluster_part(state: State, cluster: int) -> State:
    """The arrays of an expansion (see pack_models) over the support vectors of one cluster alone."""
    mine = state["support_cluster"] == cluster
    place = np.cumsum(mine) - 1
    keep = mine[state["coef_index"]]
    ends = np.concatenate([[0], np.cumsum(keep)])[state["coef_ptr"]]
    return state | {
        "support": state["support"][mine],
        "coef_index": place[state["coef_index"][keep]],
        "coef": state["coef"][keep],
        "coef_ptr": ends,
    }
