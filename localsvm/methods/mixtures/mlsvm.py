"""Mixture of linear SVMs (Fu, Robles-Kelly, Zhou 2010): Gaussians, and in each a linear SVM of its own, found by EM.

For each binary problem: max sum_i log sum_j pi_j N(x_i | m_j, S_j) exp(-loss(y_i (w_j . x_i + b_j)))
- 1/(2C) sum_j (|w_j|^2 + b_j^2) + log prior(S). It is `mtl` without its coupling.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from localsvm.methods.mixtures.method import MixtureMethod


@dataclass(frozen=True)
class MixtureSVM(MixtureMethod):
    """Options of the method."""

    name: ClassVar[str] = "mlsvm"
    tiny: ClassVar[str] = "-K 2 --shrinkage 0.1 --covariance diag -C 1,100"
