"""What the methods on k-means clusters share: how many, where they are, and which one a row belongs to."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from localsvm.data.dataset import Examples
from localsvm.errors import OptionError
from localsvm.methods.base import CellSize, Method, State, option
from localsvm.methods.grids import Values
from localsvm.methods.linear_method import BIAS, LinearMethod
from localsvm.representations.kmeans import BLOCK_ELEMENTS, ROWS_PER_CLUSTER, Centres, find_centres
from localsvm.solvers._linear import LinearRows
from localsvm.store.pieces import Pieces, floats32

CENTRE_BYTES = 20  # for each value of the centres: they, their copies in float64, and packed
DENSE_BYTES, SPARSE_BYTES = 8, 44  # for each value of a block of rows whose distances are computed
CENTRES, LANDMARKS, KERNELS, EPOCHS = 0, 1, 2, 3  # random streams of a cell
CENTRES_PIECE: Pieces = {"centres": floats32("K", "features", least=1)}


def stream(random: np.random.SeedSequence, which: int) -> np.random.Generator:
    """A random generator of the cell for one purpose, the same whatever else is drawn: settings share their centres."""
    return np.random.default_rng(np.random.SeedSequence(random.entropy, spawn_key=(*random.spawn_key, which)))


@dataclass(frozen=True)
class Clustered(Method):
    """The option of what makes clusters of its own, to be inherited beside a method."""

    clusters: tuple[float, ...] = option(
        (8.0,), "-K", "--clusters", help="Clusters of a method that makes its own: a number, or a list to choose from."
    )

    def check_clusters(self) -> None:
        """OptionError unless they are whole numbers from 1."""
        if not self.clusters or not all(k >= 1 and k == int(k) for k in self.clusters):
            raise OptionError("-K/--clusters takes whole numbers from 1")

    def clustering_bytes(self, size: CellSize, clusters: int) -> int:
        """What finding centres, and the nearest of each row, takes: centres, the sample, and a block of rows."""
        share = min(1.0, ROWS_PER_CLUSTER * clusters / max(1, size.rows))
        stored = int(size.rows * size.width if size.dense else size.stored)
        entry, blocked = (DENSE_BYTES, 8) if size.dense else (SPARSE_BYTES, 12)
        centres = CENTRE_BYTES * clusters * int(size.width)
        return centres + int(blocked * share * stored) + entry * min(stored, BLOCK_ELEMENTS)

    def clustering(self, X: Examples, setting: dict[str, float], random: np.random.SeedSequence) -> State:
        """K-means centres."""
        return {"centres": find_centres(X, int(setting["clusters"]), stream(random, CENTRES))}


@dataclass(frozen=True)
class ClusteredMethod(Clustered, LinearMethod):
    """A linear model in each of K clusters, each with its own bias; subclasses couple them."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.check_clusters()

    def axes(self, features: int) -> dict[str, Values]:
        """The number of clusters."""
        return {"clusters": self.clusters}

    def represent(self, X: Examples, setting: dict[str, float], random: np.random.SeedSequence) -> State:
        """K-means centres."""
        return self.clustering(X, setting, random)

    def represented(self) -> Pieces:
        """K centres."""
        return CENTRES_PIECE

    def rows(self, X: Examples, state: State) -> LinearRows:
        """Each row in the task of its nearest centre."""
        centres = Centres(state["centres"])
        return LinearRows(X, len(centres.centres), centres.nearest(X), BIAS, shared_bias=False)

    def representation_bytes(self, size: CellSize) -> tuple[int, int]:
        """The rows, and what makes the clusters."""
        kept, making = super().representation_bytes(size)
        clusters = self.sizes(size.width)[0]
        return kept + 4 * clusters * size.width, making + self.clustering_bytes(size, clusters)

    def sizes(self, features: int) -> tuple[int, int]:
        """A task a cluster."""
        return int(max(self.clusters)), features
