"""Decision functions of MLLKM from a saved cell: f(x) = sum_m h_m(x) (x - c_m) . w_m, without training rows."""

from __future__ import annotations

from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from localsvm.data.blocks.dataset import Dense, Examples, between, dense_rows, within_reach
from localsvm.kernels import PRODUCTS, SQUARES
from localsvm.kernels._kernels import Panels, aligned, padded
from localsvm.kernels._local_maps import LocalMaps
from localsvm.kernels.gram import centre_of
from localsvm.methods.base import State
from localsvm.representations.local_kernels import transformed
from localsvm.targets.base import Target

Floats = NDArray[np.float64]
BLOCK_ELEMENTS = 1 << 18  # of rows, distances or products at once


class KernelRun(NamedTuple):
    """Kernels first .. last - 1, of one model and one gamma."""

    model: int
    gamma: float
    first: int
    last: int


class LocalPredictor:
    """Decision functions of one cell: products in float32, summed up in float64.

    What a row gets depends on that row alone. kind, componentwise: the options --map and --componentwise.
    """

    def __init__(self, kind: str, componentwise: bool, state: State, target: Target) -> None:
        self._kind, self._componentwise, self._state, self._target = kind, componentwise, state, target

    def decision_function(self, X: Examples) -> Floats:
        """Decision values (n, problems) float64; see Target.combine."""
        return self._target.combine(self.values(X), self._state["model_problem"])

    def values(self, X: Examples) -> Floats:
        """Decision values (n, models) float64."""
        X, lost = within_reach(X)
        n, d = X.shape
        out = np.zeros((n, len(self._state["model_problem"])))
        kernels = len(self._anchor)
        step = max(1, BLOCK_ELEMENTS // max(1, d, kernels))
        for first in range(0, n if kernels and d else 0, step):
            part = between(X, first, min(n, first + step))
            dense = part if isinstance(part, np.ndarray) else dense_rows(part, np.arange(part.shape[0]))
            self._add(dense, out[first : first + step])
        if lost is not None:
            out[lost] = np.nan
        return out

    def _add(self, X: Dense, out: Floats) -> None:
        """Add the values of all kernels, part by part."""
        if self._componentwise:
            values = aligned((len(X), padded(self._maps.size)), np.float32)
            self._maps.values(np.ascontiguousarray(X), values)
            for part in self._parts:
                sums = values[:, part.first : part.last].sum(axis=1, dtype=np.float64)
                out[:, part.model] += self._units[part.model] * sums
            return
        moved = X - self._centre
        squares, products = (aligned((len(X), padded(panels.size)), np.float32) for panels in self._panels)
        self._panels[0].products(moved, squares, self._panels[0].norms_of(moved))
        self._panels[1].products(moved, products)
        for part in self._parts:
            kernels = slice(part.first, part.last)
            maps = np.ascontiguousarray(squares[:, self._anchor[kernels]])
            transformed(self._kind, part.gamma, maps, maps)
            maps *= products[:, kernels] - self._offsets[kernels]
            out[:, part.model] += self._units[part.model] * maps.sum(axis=1, dtype=np.float64)

    @cached_property
    def _anchors(self) -> Dense:
        return np.ascontiguousarray(self._state["anchors"], np.float32)

    @cached_property
    def _anchor(self) -> NDArray[np.intp]:
        return self._state["kernel_anchor"].astype(np.intp)

    @cached_property
    def _centre(self) -> Dense:
        return centre_of(self._anchors)

    @cached_property
    def _model(self) -> NDArray[np.intp]:
        """Model (kernels,) of each kernel."""
        pointers = self._state["kernel_ptr"]
        return np.repeat(np.arange(len(pointers) - 1), np.diff(pointers))

    @cached_property
    def _parts(self) -> list[KernelRun]:
        gammas, k = self._state["kernel_gamma"], len(self._anchor)
        new = np.flatnonzero((np.diff(self._model) != 0) | (np.diff(gammas) != 0)) + 1
        edges = [0, *new.tolist(), k]
        return [KernelRun(int(self._model[a]), float(gammas[a]), a, b) for a, b in pairwise(edges)]

    @cached_property
    def _units(self) -> Floats:
        """Largest weight (models,) of each model, by which float32 weights are divided."""
        largest = np.abs(self._state["weights"]).max(axis=1, initial=0.0)
        units: Floats = np.full(len(self._state["model_problem"]), np.finfo(np.float64).tiny)
        np.maximum.at(units, self._model, largest)
        return units

    @cached_property
    def _exact_weights(self) -> Floats:
        return np.asarray(self._state["weights"] / self._units[self._model, None], np.float64)

    @cached_property
    def _weights(self) -> Dense:
        return self._exact_weights.astype(np.float32)

    @cached_property
    def _offsets(self) -> Dense:
        """Offsets (kernels,) of the kernels: (c_m - centre) . w_m."""
        moved = self._anchors.astype(np.float64) - self._centre
        return np.asarray(np.einsum("ij,ij->i", moved[self._anchor], self._exact_weights), np.float32)

    @cached_property
    def _maps(self) -> LocalMaps:
        gammas = np.asarray(self._state["kernel_gamma"], np.float32)
        return LocalMaps(self._kind, gammas, self._anchors[self._anchor], self._weights)

    @cached_property
    def _panels(self) -> tuple[Panels, Panels]:
        """Anchors, for distances, and weights, for products."""
        return Panels(self._anchors - self._centre, SQUARES), Panels(self._weights, PRODUCTS)
