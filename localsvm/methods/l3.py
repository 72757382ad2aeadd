"""L3-SVM (Zantedeschi, Emonet, Sebban 2017): k-means clusters, shared landmarks, one linear SVM with one bias.

Problem, per binary task: min 1/2 |theta|^2 + 1/2 b^2 + C sum_i loss(y_i (theta_k(i) . mu(x_i) + b)), k(i) the nearest
centre, mu(x) = (mu(x, l_1), ..., mu(x, l_L)) products with L landmarks or Gaussians around them. The bias is
regularised, as in the paper's section on stability and in the authors' code.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from localsvm.data.dataset import Examples
from localsvm.errors import OptionError
from localsvm.kernels.landmarks import choose_landmarks, project
from localsvm.methods.base import State, option
from localsvm.methods.clustered import LANDMARKS, ClusteredMethod, stream
from localsvm.methods.linear_base import BIAS, COSTS, Line
from localsvm.partition.clusters import Centres
from localsvm.solvers._linear import LinearRows


@dataclass(frozen=True)
class L3SVM(ClusteredMethod):
    """Options of the method."""

    name: ClassVar[str] = "l3"

    landmarks_count: tuple[float, ...] = option(
        (), "-L", "--n-landmarks", help="Landmarks of l3: one number, or a list to choose from."
    )
    landmarks: str = option(
        "random", "--landmarks", help="Landmarks of l3: random rows, or principal axes.", choices=("random", "pca")
    )
    projection: str = option(
        "linear",
        "--projection",
        help="What l3 makes of a row and a landmark: their product, or a Gaussian of their distance (gamma by -g).",
        choices=("linear", "rbf"),
    )
    gamma: tuple[float, ...] = option(
        (),
        "-g",
        "--gamma",
        help="Gamma of the kernel as in LIBSVM, exp(-gamma |x-y|^2): one value, a list (0.1,1,10) or a geometric range "
        "LOW:HIGH:COUNT (2^-5:2^3:9). A width w of liquidSVM is gamma = 1/w^2.",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if not all(k >= 1 and k == int(k) for k in self.landmarks_count):
            raise OptionError("-L/--n-landmarks takes whole numbers from 1")
        if not all(0.0 < value < np.inf for value in self.gamma):
            raise OptionError("-g/--gamma takes positive numbers")
        for flag, value in (("landmarks", self.landmarks), ("projection", self.projection)):
            choices = self.__dataclass_fields__[flag].metadata["choices"]
            if value not in choices:
                raise OptionError(f"--{flag} {value}: choose one of {', '.join(choices)}")

    def axes(self, features: int) -> dict[str, Line]:
        """Clusters, landmarks (as many as there are features), and gamma of Gaussian projections."""
        axes = super().axes(features) | {"landmarks": self.landmarks_count or (float(features),)}
        return axes if self.projection == "linear" else axes | {"gamma": self.gamma or COSTS}

    def represent(self, X: Examples, line: dict[str, float], random: np.random.SeedSequence) -> State:
        """Centres, landmarks, and gamma (0 where projections are linear)."""
        points = choose_landmarks(X, int(line["landmarks"]), self.landmarks, stream(random, LANDMARKS))
        gamma = np.asarray([line.get("gamma", 0.0)])
        return super().represent(X, line, random) | {"landmarks": points, "gamma": gamma}

    def rows(self, X: Examples, state: State) -> LinearRows:
        """Each row in the task of its nearest centre, as its projections on the landmarks."""
        centres = Centres(state["centres"])
        phi = project(X, state["landmarks"], self.projection, float(state["gamma"][0]))
        return LinearRows(phi, len(centres.centres), centres.nearest(X), BIAS, shared_bias=True)

    def sizes(self, features: int) -> tuple[int, int]:
        """A task a cluster, a feature a landmark."""
        return int(max(self.clusters)), int(max(self.landmarks_count or (features,)))
