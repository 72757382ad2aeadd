"""Kernels and distances, computed by csrc/kernels.c."""

from __future__ import annotations

from dataclasses import dataclass

BASES = PRODUCTS, SQUARES, SUMS = ("products", "squares", "sums")  # x.y, |x-y|^2, and sum_j |x_j-y_j|


@dataclass(frozen=True, order=True)
class Kernel:
    """A kernel function.

    Attributes
    ----------
    kind : str
        "gaussian": exp(-gamma |x-y|^2). "laplacian": exp(-gamma |x-y|), Euclidean norm.
        "polynomial": (gamma x.y + coef0)^degree. "linear": x.y. "manhattan": exp(-gamma sum_j |x_j-y_j|).
    gamma : float
        As in LIBSVM. liquidSVM's width w is gamma = 1/w^2 (gaussian) or 1/w (laplacian). scikit-learn's
        `laplacian_kernel` is "manhattan".
    coef0, degree
        Of the polynomial kernel.
    """

    kind: str = "gaussian"
    gamma: float = 1.0
    coef0: float = 0.0
    degree: int = 3

    @property
    def uses_distances(self) -> bool:
        """True where the kernel is a function of the distance, so that shifting all rows does not change it."""
        return self.base != PRODUCTS

    @property
    def base(self) -> str:
        """What the kernel is a function of: PRODUCTS, SQUARES or SUMS."""
        return {"gaussian": SQUARES, "laplacian": SQUARES, "manhattan": SUMS}.get(self.kind, PRODUCTS)
