"""Kernels and squared distances: thin Cython over csrc/kernels.c."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, order=True)
class Kernel:
    """A kernel function.

    gaussian: exp(-gamma |x-y|^2); laplacian: exp(-gamma |x-y|), Euclidean norm; polynomial: (gamma x.y + coef0)^degree;
    linear: x.y. gamma is LIBSVM's; a width w in the sense of liquidSVM is gamma = 1/w^2 (gaussian), 1/w (laplacian).
    """

    kind: str = "gaussian"
    gamma: float = 1.0
    coef0: float = 0.0
    degree: int = 3

    @property
    def uses_distances(self) -> bool:
        """Whether the kernel is a function of the distance, and so blind to a shift of the data."""
        return self.kind in ("gaussian", "laplacian")
