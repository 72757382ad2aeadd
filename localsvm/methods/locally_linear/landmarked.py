"""Base of the forms of L3-SVM: k-means clusters, landmarks, and rows as their projections on these."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from localsvm.errors import OptionError
from localsvm.methods.base import State
from localsvm.methods.cell_size import CellSize
from localsvm.methods.grids import Values
from localsvm.methods.locally_linear.clustered import CENTRES_PIECE, Clustered
from localsvm.methods.option import are_whole, option
from localsvm.methods.random import LANDMARKS, stream
from localsvm.naming import opt
from localsvm.store.pieces import Lengths, Piece, Pieces, floats64

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from localsvm.data.blocks.dataset import Dense, Examples


@dataclass(frozen=True)
class Landmarked(Clustered):
    """The options of clusters and landmarks, to be inherited beside a method."""

    landmarks_count: tuple[float, ...] = option(
        (),
        "-L",
        "--n-landmarks",
        help="Number of landmarks of l3 and l3-kernel: one number, or a list to choose from.",
        shown="the number of features",
    )
    landmarks: str = option(
        "random",
        "--landmarks",
        help="What the landmarks of l3 and l3-kernel are. random: rows, at random; pca: principal axes.",
        choices=("random", "pca"),
    )
    projection: str = option(
        "linear",
        "--projection",
        help="What l3 and l3-kernel compute of a row and a landmark. linear: their product; rbf: a Gaussian of their "
        f"distance, with the gamma of {opt.gamma} for l3, of {opt.projection_gamma} for l3-kernel.",
        choices=("linear", "rbf"),
    )

    def check_landmarks(self, gamma: tuple[float, ...], flag: str) -> None:
        """Raise OptionError unless the options are sound, and the gammas of projections (of the option `flag`) too."""
        self.check_clusters()
        if not are_whole(self.landmarks_count):
            raise OptionError(f"{opt.landmarks_count} takes whole numbers from 1")
        if not all(0.0 < value < math.inf for value in gamma):
            raise OptionError(f"{flag} takes positive numbers")

    @property
    def shift_invariant(self) -> bool:
        """True for Gaussians around rows."""
        return self.projection == "rbf" and self.landmarks == "random"

    def landmark_axes(self, features: int) -> dict[str, Values]:
        """Numbers of clusters and of landmarks: by default as many landmarks as features."""
        return {"clusters": self.clusters, "landmarks_count": self.landmarks_count or (float(features),)}

    def landmark_state(
        self, X: Examples, setting: dict[str, float], gamma: float, random: np.random.SeedSequence
    ) -> State:
        """Centres, landmarks, and the gamma of projections (0 where they are linear)."""
        import numpy as np

        from localsvm.representations.landmarks import choose_landmarks

        points = choose_landmarks(X, int(setting["landmarks_count"]), self.landmarks, stream(random, LANDMARKS))
        return self.clustering(X, setting, random) | {"landmarks": points, "gamma": np.asarray([gamma])}

    def landmark_pieces(self) -> Pieces:
        """Description of what `landmark_state` gives: K centres and L landmarks."""

        def most(lengths: Lengths) -> int:
            return self.most_landmarks(lengths["features"])

        landmarks = Piece("f4", ("L", "features"), least=1, most=most)
        return {**CENTRES_PIECE, "landmarks": landmarks, "gamma": floats64(1, low=0)}

    def most_landmarks(self, features: int) -> int:
        """The most landmarks that a cell may have."""
        return int(max(self.landmarks_count or (features,)))

    def projected(self, X: Examples, state: State) -> tuple[Dense, NDArray[np.int32]]:
        """Projections (n, L) float32, and the nearest centre (n,) of each row."""
        from localsvm.representations.kmeans import Centres
        from localsvm.representations.landmarks import project

        phi = project(X, state["landmarks"], self.projection, float(state["gamma"][0]))
        return phi, Centres(state["centres"]).nearest(X)

    def landmark_bytes(self, size: CellSize, clusters: int, landmarks: int) -> tuple[int, int]:
        """Bytes of centres, landmarks and projections, and of what else is needed while they are made."""
        from localsvm.representations.kmeans import BLOCK_ELEMENTS

        kept = 4 * (size.rows * landmarks + (landmarks + clusters) * size.width)
        making = self.clustering_bytes(size, clusters) + 8 * landmarks * size.width + 8 * BLOCK_ELEMENTS
        whole = 8 * size.rows * size.width if self.landmarks == "pca" else 0
        return kept, making + whole
