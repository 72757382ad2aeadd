"""Kernels that a map L is learned for through an SVM (see svm_metric.py), and how a loss changes with L.

The Gaussian one is exp(-|L(x - x')|^2), for a matrix L, a diagonal or a number on it. The Manhattan one is
exp(-sum_j L_j^2 |x_j - x'_j|), for a diagonal alone: its weights are squares, and so stay from 0.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from localsvm.kernels import Kernel
from localsvm.kernels._kernels import weighted_sums

Floats = NDArray[np.float64]
Rows = tuple[Floats, Floats]  # rows, and the same mapped


class MapKernel(ABC):
    """A kernel of mapped rows.

    Attributes
    ----------
    of_mapped : the kernel that mapped rows have.
    """

    of_mapped: ClassVar[Kernel]

    @abstractmethod
    def map_of(self, L: Floats) -> Floats:
        """What rows are multiplied by, in the form of L: models keep it."""

    @abstractmethod
    def of_map(self, M: Floats) -> Floats:
        """The L of a map, to begin from."""

    @abstractmethod
    def values(self, A: Floats, B: Floats) -> Floats:
        """Kernel values of mapped rows, (rows of A, rows of B)."""

    @abstractmethod
    def slope(self, L: Floats, AV: Floats, AS: Floats, outer: Rows, inner: Rows) -> Floats:
        """Minus half of the derivative by L, in its form, of the sum of weights A_ij times log k(x_i, x_j).

        AV, AS : the weights A_Vs and A_ss.
        outer, inner : the second part, and the support.
        """

    def mapped(self, X: Floats, L: Floats) -> Floats:
        """Rows X after their map."""
        M = self.map_of(L)
        return X @ M.T if M.ndim == 2 else X * M


class GaussianMap(MapKernel):
    """The Gaussian kernel."""

    of_mapped = Kernel("gaussian", 1.0)

    def map_of(self, L: Floats) -> Floats:
        """L itself."""
        return L

    def of_map(self, M: Floats) -> Floats:
        """The map itself."""
        return M

    def values(self, A: Floats, B: Floats) -> Floats:
        """Values exp(-|a - b|^2)."""
        out: Floats = A @ B.T
        out *= 2.0
        out -= np.einsum("ij,ij->i", A, A)[:, None]
        out -= np.einsum("ij,ij->i", B, B)
        return np.exp(np.minimum(out, 0.0, out=out), out=out)

    def slope(self, L: Floats, AV: Floats, AS: Floats, outer: Rows, inner: Rows) -> Floats:
        """Matrix L sum_ij A_ij (x_i - x_j)(x_i - x_j)', in the form of L."""
        (V, Q), (S, P) = outer, inner
        left = AV.sum(axis=1)[:, None] * V - AV @ S
        around = AV.sum(axis=0) + AS.sum(axis=0) + AS.sum(axis=1)
        right = around[:, None] * S - AV.T @ V - AS @ S - AS.T @ S
        if L.ndim == 2:
            return np.asarray(Q.T @ left + P.T @ right)
        total = np.einsum("ij,ij->j", Q, left) + np.einsum("ij,ij->j", P, right)
        return np.asarray(total if L.shape == total.shape else total.sum(keepdims=True))


class ManhattanMap(MapKernel):
    """The Manhattan kernel, whose L is a diagonal (d,)."""

    of_mapped = Kernel("manhattan", 1.0)

    def map_of(self, L: Floats) -> Floats:
        """Weights: squares of L."""
        return np.square(L)

    def of_map(self, M: Floats) -> Floats:
        """Roots of weights from 0."""
        return np.sqrt(M)

    def values(self, A: Floats, B: Floats) -> Floats:
        """Values exp(-sum_j |a_j - b_j|)."""
        from scipy.spatial.distance import cdist

        out: Floats = cdist(A, B, "cityblock")
        return np.exp(np.negative(out, out=out), out=out)

    def slope(self, L: Floats, AV: Floats, AS: Floats, outer: Rows, inner: Rows) -> Floats:
        """L_k sum_ij A_ij |x_ik - x_jk| for each feature k. The sums are of the support and the second part stacked."""
        V, S = outer[0], inner[0]
        stacked = np.concatenate([S, V]).astype(np.float32)
        weights = np.zeros((len(stacked), len(stacked)), np.float32)
        weights[: len(S), : len(S)] = AS
        weights[len(S) :, : len(S)] = AV
        return L * weighted_sums(weights, stacked)


GAUSSIAN = GaussianMap()
MAP_KERNELS: dict[str, MapKernel] = {each.of_mapped.kind: each for each in (GAUSSIAN, ManhattanMap())}
