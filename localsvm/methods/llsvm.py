"""Locally linear SVM (Ladicky and Torr, ICML 2011): the weights of a row are mixed from those of its nearest anchors.

For each binary problem: min 1/2 |W|^2 + 1/2 |b|^2 + C sum_i loss(y_i gamma(x_i)'(W x_i + b)), W a row of weights an
anchor, gamma(x) the local coordinates of x on its nearest k-means anchors, which sum to 1. With lambda/2 |W|^2 and a
mean loss C = 1 / (lambda n).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from localsvm.data.dataset import Examples
from localsvm.errors import OptionError
from localsvm.methods.base import CellSize, State, option
from localsvm.methods.clustered import ClusteredMethod
from localsvm.methods.linear_method import BIAS
from localsvm.representations.kmeans import Centres
from localsvm.solvers._linear import LinearRows


@dataclass(frozen=True)
class LocallyLinearSVM(ClusteredMethod):
    """Options of the method; clusters are its anchors."""

    name: ClassVar[str] = "llsvm"
    one_task_each: ClassVar[bool] = False

    neighbours: int = option(8, "--neighbours", help="Nearest anchors that a row of llsvm is coded by.")
    coding: str = option(
        "inverse",
        "--coding",
        help="Local coordinates of llsvm: inverse squared distances, exponential of them, or the weights that rebuild "
        "the row linearly (LLE).",
        choices=("inverse", "exponential", "linear"),
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.neighbours < 1:
            raise OptionError(f"--neighbours must be a whole number from 1, not {self.neighbours}")

    def rows(self, X: Examples, state: State) -> LinearRows:
        """Each row in the tasks of its nearest anchors, by its local coordinates."""
        shares = Centres(state["centres"]).coordinates(X, self.neighbours, self.coding)
        return LinearRows(X, shares.shape[1], shares, BIAS, shared_bias=False)

    def representation_bytes(self, size: CellSize) -> tuple[int, int]:
        """With the shares of each row in its tasks."""
        kept, making = super().representation_bytes(size)
        return kept + 16 * size.rows * min(self.neighbours, int(max(self.clusters))), making
