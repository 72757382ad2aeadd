"""System and predictor of `l3-kernel`: one SVM over the projections of rows, whose kernel is zero between clusters."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from localsvm.data.blocks.dataset import Dense, Examples
from localsvm.kernels.gram import Gram
from localsvm.kernels.scratch import Scratch
from localsvm.methods.base import Prepared, Purpose, State
from localsvm.methods.cell import Cell
from localsvm.methods.kernel.systems.binary_rows import BinaryRows
from localsvm.methods.kernel.systems.expansion import ExpansionPredictor
from localsvm.methods.kernel.systems.kernel import KernelSystem
from localsvm.methods.locally_linear.l3_kernel import KernelL3SVM
from localsvm.targets.base import Target


class Projections(NamedTuple):
    """Rows (n, L) as their projections, the nearest centre (n,) of each, and the centres and landmarks themselves."""

    phi: Dense
    nearest: NDArray[np.int32]
    state: State


class ProjectedSystem(KernelSystem):
    """The binary problems over the kernel of projections."""

    projected: Projections


class PreparedProjections(Prepared):
    """The projections of a cell's rows, and their distances, for the setting asked for last."""

    def __init__(self, method: KernelL3SVM, cell: Cell, scratch: Scratch, several: bool) -> None:
        self.method, self.cell, self._scratch, self._several = method, cell, scratch, several
        self._key: tuple[float, ...] | None = None
        self._known: dict[tuple[int, bool], BinaryRows] = {}

    def at(self, setting: dict[str, float], purpose: Purpose) -> KernelSystem:
        """Kernels of the projections, zero between rows of different clusters."""
        method, cell = self.method, self.cell
        key = tuple(value for name, value in setting.items() if name != "gamma")
        if key != self._key:
            state = method.representation(cell, setting)
            self._key, self._projected = key, Projections(*method.projected(cell.X, state), state)
            self._gram = Gram(self._projected.phi, self._scratch, self._several)
        kernel, nearest = method.kernel_of(setting["gamma"]), self._projected.nearest
        K = self._gram.matrix(kernel, method.is_double(purpose.cost * float(cell.weight.max())))
        for k in np.unique(nearest):
            K[np.ix_(np.flatnonzero(nearest == k), np.flatnonzero(nearest != k))] = 0.0
        system = ProjectedSystem(cell, K, kernel, method.offset, method.tolerance, self._known)
        system.projected = self._projected
        return system


class ClusterPredictor:
    """Decision functions of one cell: in each cluster, the expansion over its own support vectors."""

    def __init__(self, method: KernelL3SVM, state: State, target: Target) -> None:
        self._method, self._state, self._target = method, state, target
        self._parts: dict[int, ExpansionPredictor] = {}

    def decision_function(self, X: Examples) -> NDArray[np.float64]:
        """Decision values (n, problems) float64."""
        phi, nearest = self._method.projected(X, self._state)
        out = np.zeros((len(phi), self._target.n_problems))
        for k in np.unique(nearest):
            out[nearest == k] = self._part(int(k)).decision_function(phi[nearest == k])
        return out

    def _part(self, k: int) -> ExpansionPredictor:
        if k not in self._parts:
            kernel, features = self._method.kernel_of(1.0), self._state["landmarks"].shape[0]
            self._parts[k] = ExpansionPredictor(cluster_part(self._state, k), kernel, self._target, features)
        return self._parts[k]


def cluster_part(state: State, cluster: int) -> State:
    """The arrays of an expansion (see pack_models) over the support vectors of one cluster alone."""
    mine = state["support_cluster"] == cluster
    place = np.cumsum(mine) - 1
    keep = mine[state["coef_index"]]
    ends = np.concatenate([[0], np.cumsum(keep)])[state["coef_ptr"]]
    return state | {
        "support": np.ascontiguousarray(state["support"][mine, : len(state["landmarks"])]),
        "coef_index": place[state["coef_index"][keep]],
        "coef": state["coef"][keep],
        "coef_ptr": ends,
    }
