"""Base of the methods on k-means clusters: how many there are, where they are, and which one a row belongs to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from localsvm.errors import OptionError
from localsvm.methods.base import Method, State
from localsvm.methods.cell_size import CellSize
from localsvm.methods.grids import Values
from localsvm.methods.linear.method import LinearMethod
from localsvm.methods.linear.rows import BIAS
from localsvm.methods.option import MOST_STORED, are_whole, option
from localsvm.methods.random import starting
from localsvm.naming import opt
from localsvm.store.pieces import Lengths, Piece, Pieces, floats32

if TYPE_CHECKING:
    import numpy as np

    from localsvm.data.blocks.dataset import Examples
    from localsvm.solvers._linear import LinearRows
    from localsvm.targets.base import Target


CENTRE_BYTES = 20  # for each value of the centres: they, their copies in float64, and packed
DENSE_BYTES, SPARSE_BYTES = 8, 44  # for each value of a block of rows whose distances are computed
CENTRES_PIECE: Pieces = {"centres": floats32("K", "features", least=1)}


@dataclass(frozen=True)
class Clustered(Method):
    """The option of methods that make clusters of their own, to be inherited beside a method."""

    clusters: tuple[float, ...] = option(
        (8.0,),
        "-K",
        "--clusters",
        help="Number of clusters of a method that makes its own, of components (mtl, mlsvm) or of anchors (llsvm, and "
        f"mllkm with {opt.anchors('kmeans')}): one number, or a list to choose from.",
    )

    def check_clusters(self) -> None:
        """Raise OptionError unless the numbers of clusters are whole numbers from 1."""
        if not self.clusters or not are_whole(self.clusters):
            raise OptionError(f"{opt.clusters} takes whole numbers from 1")

    def clustering_bytes(self, size: CellSize, clusters: int) -> int:
        """Bytes to find centres, and the nearest of each row: of centres, the sample, and a block of rows."""
        from localsvm.representations.kmeans import BLOCK_ELEMENTS, ROWS_PER_CLUSTER

        share = min(1.0, ROWS_PER_CLUSTER * clusters / max(1, size.rows))
        stored = int(size.rows * size.width if size.dense else size.stored)
        entry, blocked = (DENSE_BYTES, 8) if size.dense else (SPARSE_BYTES, 12)
        centres = CENTRE_BYTES * clusters * int(size.width)
        return centres + int(blocked * share * stored) + entry * min(stored, BLOCK_ELEMENTS)

    def start_of(self, setting: dict[str, float]) -> int:
        """Number of the start of k-means; see `starting`."""
        return 1

    def clustering(self, X: Examples, setting: dict[str, float], random: np.random.SeedSequence) -> State:
        """K-means centres."""
        from localsvm.representations.kmeans import find_centres

        rng = starting(random, self.start_of(setting))
        return {"centres": find_centres(X, int(setting["clusters"]), rng)}


@dataclass(frozen=True)
class Restarted(Clustered):
    """Clusters, and the option of where k-means begins: only the labels can say which clusters serve them best."""

    start: tuple[float, ...] = option(
        (1.0,),
        "--start",
        help="Which of the random starts of k-means is taken: its number, from 1, or a list to choose from.",
        later=True,
    )

    def check_clusters(self) -> None:
        """Raise OptionError unless clusters and starts are whole numbers from 1."""
        super().check_clusters()
        if not self.start or not are_whole(self.start, MOST_STORED):
            raise OptionError(
                f"{opt.start} takes whole numbers from 1 to 2147483647, such as 1,2,3 (1:8:4 is 1, 2, 4, 8)"
            )

    @property
    def cluster_axes(self) -> dict[str, Values]:
        """The number of clusters, and the start where there is a choice."""
        axes: dict[str, Values] = {"clusters": self.clusters}
        return axes | {"start": self.start} if len(self.start) > 1 else axes

    def start_of(self, setting: dict[str, float]) -> int:
        """Number of the start: the setting's, or the only one."""
        return int(setting.get("start", self.start[0]))


@dataclass(frozen=True)
class ClusteredMethod(Restarted, LinearMethod):
    """A linear model in each of K clusters, each with its own bias; subclasses couple them.

    A pair of classes has clusters of its rows alone.
    """

    of_pairs: ClassVar[bool] = True
    drawn_by: ClassVar[tuple[str, ...]] = ("clusters", "start")

    def __post_init__(self) -> None:
        super().__post_init__()
        self.check_clusters()

    def axes(self, features: int) -> dict[str, Values]:
        """Clusters, and their start."""
        return self.cluster_axes

    def drawn(self, X: Examples, setting: dict[str, float], random: np.random.SeedSequence) -> State:
        """K-means centres."""
        return self.clustering(X, setting, random)

    def joined(self, states: Sequence[State]) -> State:
        """All centres one below the other, and how many each model has."""
        import numpy as np

        if len(states) == 1:
            return states[0]
        centres = [state["centres"] for state in states]
        counts = np.asarray([len(one) for one in centres], np.int32)
        return states[0] | {"centres": np.concatenate(centres), "clusters": counts}

    def parted(self, state: State) -> list[State]:
        """The centres of each model, or those of all."""
        import numpy as np

        if "clusters" not in state:
            return [state]
        ends = np.cumsum(state["clusters"])
        return [state | {"centres": part} for part in np.split(state["centres"], ends[:-1])]

    def pieces(self, target: Target, dense: bool) -> Pieces:
        """Arrays as of other linear models; of pairs K counts the clusters of all models."""

        def weights(n: Lengths) -> Any:
            return n["K"] * (n["features"] + 1) + n["m"]

        shared = super().pieces(target, dense)
        pair_pieces = {"clusters": Piece("i4", ("m",), low=1, total="K"), "weights": Piece("f8", (weights,), least=1)}
        return {**shared, **pair_pieces} if target.leaves_out else shared

    def variants(self, target: Target, dense: bool) -> tuple[Pieces, ...]:
        """Descriptions of saved cells: in the first models, and in those of a stream, pairs share clusters too."""
        return (self.pieces(target, dense), super().pieces(target, dense))

    def represented(self) -> Pieces:
        """K centres."""
        return CENTRES_PIECE

    def rows(self, X: Examples, state: State) -> LinearRows:
        """Each row in the task of its nearest centre."""
        from localsvm.representations.kmeans import Centres
        from localsvm.solvers._linear import LinearRows

        centres = Centres(state["centres"])
        return LinearRows(X, len(centres.centres), centres.nearest(X), BIAS, shared_bias=False)

    def representation_bytes(self, size: CellSize) -> tuple[int, int]:
        """Bytes of the rows and centres, and of what makes the clusters."""
        kept, making = super().representation_bytes(size)
        clusters = self.sizes(size.width)[0]
        centres = 4 * clusters * size.width
        if size.part:  # centres of each pair without each fold, and its rows
            kept += size.problems * (size.folds + 1) * centres
            making += int(size.part / size.rows * (4 * size.rows * size.width if size.dense else 12 * size.stored))
        return kept + centres, making + self.clustering_bytes(size, clusters)

    def rows_of_problem(self, size: CellSize) -> int:
        """The most rows of a problem: a pair has those of its classes alone."""
        return size.part or size.rows

    def sizes(self, features: int) -> tuple[int, int]:
        """One task for each cluster, and the features."""
        return int(max(self.clusters)), features
