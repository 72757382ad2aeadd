"""Locally linear SVM (Ladicky and Torr, ICML 2011): the weights of a row are mixed from those of its nearest anchors.

For each binary problem: min 1/2 |W|^2 + 1/2 |b|^2 + C sum_i loss(y_i gamma(x_i)'(W x_i + b)), W a row of weights an
anchor, gamma(x) the local coordinates of x on its nearest k-means anchors, which sum to 1. With lambda/2 |W|^2 and a
mean loss C = 1 / (lambda n).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from localsvm.methods.base import State
from localsvm.methods.cell_size import CellSize
from localsvm.methods.grids import Values
from localsvm.methods.linear.options import check_neighbours, most_first
from localsvm.methods.linear.rows import BIAS
from localsvm.methods.locally_linear.clustered import ClusteredMethod
from localsvm.methods.option import option
from localsvm.store.pieces import Piece, Pieces

if TYPE_CHECKING:
    from localsvm.data.blocks.dataset import Examples
    from localsvm.solvers._linear import LinearRows


@dataclass(frozen=True)
class LocallyLinearSVM(ClusteredMethod):
    """Options of the method; clusters are its anchors."""

    name: ClassVar[str] = "llsvm"
    tiny: ClassVar[str] = "-K 5 --neighbours 3 -C 0.1,1"
    one_task_each: ClassVar[bool] = False

    neighbours: tuple[float, ...] = option(
        (8.0,),
        "--neighbours",
        help="Number of nearest anchors that the local coordinates of a row have (llsvm), or of nearest rows that "
        "decide (svm-knn): one number, or a list to choose from.",
        became_list=True,
    )
    coding: str = option(
        "inverse",
        "--coding",
        help="How llsvm computes local coordinates. inverse: from inverse squared distances; exponential: from their "
        "exponential; linear: the weights with which the anchors rebuild the row (LLE).",
        choices=("inverse", "exponential", "linear"),
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        check_neighbours(self.neighbours)

    def axes(self, features: int) -> dict[str, Values]:
        """The number of anchors, and of those that a row is coded by, the most first: they are the smoothest."""
        return super().axes(features) | {"neighbours": most_first(self.neighbours)}

    def chosen(self, setting: dict[str, float]) -> State:
        """Number of anchors that code a row, where there was a choice."""
        import numpy as np

        return {"neighbours": np.asarray([setting["neighbours"]], np.int32)} if self._chooses else {}

    def represented(self) -> Pieces:
        """Description of the anchors, and of how many code a row."""
        return {
            **super().represented(),
            **({"neighbours": Piece("i4", (1,), low=1, high=max(self.neighbours))} if self._chooses else {}),
        }

    @property
    def _chooses(self) -> bool:
        """True where there are several numbers of neighbours. The first models had one, as an option."""
        return len(self.neighbours) > 1

    def rows(self, X: Examples, state: State) -> LinearRows:
        """Each row in the tasks of its nearest anchors, by its local coordinates."""
        from localsvm.representations.kmeans import Centres
        from localsvm.solvers._linear import LinearRows

        neighbours = state["neighbours"][0] if self._chooses else self.neighbours[0]
        shares = Centres(state["centres"]).coordinates(X, int(neighbours), self.coding)
        return LinearRows(X, shares.shape[1], shares, BIAS, shared_bias=False)

    def representation_bytes(self, size: CellSize) -> tuple[int, int]:
        """Bytes as of other clusters, with the shares of each row in its tasks."""
        kept, making = super().representation_bytes(size)
        return kept + 16 * size.rows * min(int(max(self.neighbours)), int(max(self.clusters))), making
