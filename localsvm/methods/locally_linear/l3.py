"""L3-SVM (Zantedeschi, Emonet, Sebban 2017): k-means clusters, shared landmarks, one linear SVM with one bias.

For each binary problem: min 1/2 |theta|^2 + 1/2 b^2 + C sum_i loss(y_i (theta_k(i) . mu(x_i) + b)), k(i) the nearest
centre, mu(x) = (mu(x, l_1), ..., mu(x, l_L)) products with L landmarks or Gaussians around them. The bias is
regularised, as in the paper's section on stability and in the authors' code; l3_kernel.py has the one that is not.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from localsvm.errors import OptionError
from localsvm.methods.base import State
from localsvm.methods.cell_size import CellSize
from localsvm.methods.grids import Values
from localsvm.methods.linear.method import LinearMethod
from localsvm.methods.linear.options import COSTS
from localsvm.methods.linear.rows import BIAS
from localsvm.methods.locally_linear.landmarked import Landmarked
from localsvm.methods.option import option
from localsvm.naming import opt
from localsvm.store.pieces import Pieces

if TYPE_CHECKING:
    import numpy as np

    from localsvm.data.blocks.dataset import Examples
    from localsvm.solvers._linear import LinearRows


WIDE_COSTS: Values = tuple(10.0**k for k in range(-8, 3))


@dataclass(frozen=True)
class L3SVM(Landmarked, LinearMethod):
    """Options of the method."""

    name: ClassVar[str] = "l3"
    tiny: ClassVar[str] = "-K 2 -L 4 --projection rbf -g 0.5 -C 1,10"

    gamma: tuple[float, ...] = option(
        (),
        "-g",
        "--gamma",
        help=f"Gamma of the kernel, as in LIBSVM's exp(-gamma |x-y|^2), or of the Gaussian projections of l3: one "
        f"value, a list or a range, written as for {opt.cost}. A width w of liquidSVM is gamma = 1/w^2.",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        self.check_landmarks(self.gamma, opt.gamma)
        if self.projection == "linear" and self.gamma:
            raise OptionError(f"{opt.gamma} of l3 is for {opt.projection('rbf')}")

    @property
    def default_costs(self) -> Values:
        """Costs of the paper's grid in both of its readings, C and C/m.

        Products with landmarks grow with the squared norm of the rows, so that the best C of many features is millions
        of times smaller than that of few.
        """
        return COSTS if self.mean_loss or self.projection == "rbf" else WIDE_COSTS

    def axes(self, features: int) -> dict[str, Values]:
        """Clusters, landmarks, and gamma of Gaussian projections."""
        axes = self.landmark_axes(features)
        return axes if self.projection == "linear" else axes | {"gamma": self.gamma or COSTS}

    def drawn(self, X: Examples, setting: dict[str, float], random: np.random.SeedSequence) -> State:
        """Centres, landmarks, and gamma."""
        return self.landmark_state(X, setting, setting.get("gamma", 0.0), random)

    def rows(self, X: Examples, state: State) -> LinearRows:
        """Each row in the task of its nearest centre, as its projections on the landmarks."""
        from localsvm.solvers._linear import LinearRows

        phi, nearest = self.projected(X, state)
        return LinearRows(phi, len(state["centres"]), nearest, BIAS, shared_bias=True)

    def sizes(self, features: int) -> tuple[int, int]:
        """One task for each cluster, and one feature for each landmark."""
        return int(max(self.clusters)), self.most_landmarks(features)

    def represented(self) -> Pieces:
        """Centres, landmarks, and gamma."""
        return self.landmark_pieces()

    def memory(self, size: CellSize) -> int:
        """Bytes as of other linear methods, but projections are dense; there are no more landmarks than rows."""
        clusters, landmarks = self.sizes(size.width)
        landmarks = min(landmarks, size.rows)
        kept, making = self.landmark_bytes(size, clusters, landmarks)
        thin, thinning = self.representation_bytes(size)
        return thin + kept + max(thinning, making, self.solving_bytes(size, landmarks, None))
