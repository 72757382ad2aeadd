"""K-means + SVM: k-means clusters, and in each a linear SVM of its own.

For each binary problem: min sum_k (1/2 |w_k|^2 + 1/2 b_k^2) + C sum_i loss(y_i (w_k(i) . x_i + b_k(i))), k(i) the
nearest centre: K problems that have nothing in common but C.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from localsvm.methods.locally_linear.clustered import ClusteredMethod


@dataclass(frozen=True)
class KMeansSVM(ClusteredMethod):
    """Options of the method."""

    name: ClassVar[str] = "kmeans-svm"
    tiny: ClassVar[str] = "-K 3 -C 0.1,1"
