"""Clustered SVM (Gu and Han, AISTATS 2013): linear SVMs in k-means clusters, held together by their common part.

For each binary problem: min lambda/2 |w|^2 + 1/2 sum_k |w_k - w|^2 + 1/2 b^2 + C sum_i loss(y_i (w_k(i) . x_i + b)).
With v_k = w_k - w this is one linear SVM whose tasks have the covariance I + 11'/lambda: each row belongs to its
cluster's task with share 1 and to a task of all rows with share 1/sqrt(lambda). lambda to infinity: every cluster on
its own; lambda to 0: one linear SVM with cost C/lambda. The bias is one and regularised, as in SwarmSVM.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from localsvm.errors import OptionError
from localsvm.methods.base import State
from localsvm.methods.cell_size import CellSize
from localsvm.methods.grids import Values
from localsvm.methods.linear.rows import BIAS
from localsvm.methods.locally_linear.clustered import ClusteredMethod
from localsvm.methods.option import option
from localsvm.naming import opt
from localsvm.store.pieces import Pieces, floats64

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from localsvm.data.blocks.dataset import Examples
    from localsvm.solvers._linear import LinearRows


@dataclass(frozen=True)
class ClusteredSVM(ClusteredMethod):
    """Options of the method."""

    name: ClassVar[str] = "csvm"
    tiny: ClassVar[str] = "-K 3 --lambda 1,10 -C 0.1,1"
    one_task_each: ClassVar[bool] = False

    common: tuple[float, ...] = option(
        (1.0, 5.0, 10.0, 20.0, 50.0, 100.0),
        "--lambda",
        help="How strongly csvm regularises the part that all clusters share: one value, or a list to choose from.",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.common or not all(0.0 < value < math.inf for value in self.common):
            raise OptionError(f"{opt.common} takes positive numbers")

    def axes(self, features: int) -> dict[str, Values]:
        """Clusters, their start, and lambda."""
        return super().axes(features) | {"lambda": self.common}

    def chosen(self, setting: dict[str, float]) -> State:
        """Lambda."""
        import numpy as np

        return {"lambda": np.asarray([setting["lambda"]])}

    def represented(self) -> Pieces:
        """Centres, and lambda."""
        return {**super().represented(), "lambda": floats64(1, low=0)}

    def rows(self, X: Examples, state: State) -> LinearRows:
        """Each row in its cluster's task and in the last one, that of all rows."""
        import numpy as np
        from scipy import sparse

        from localsvm.representations.kmeans import Centres
        from localsvm.solvers._linear import LinearRows

        n, tasks = X.shape[0], len(state["centres"]) + 1
        nearest = Centres(state["centres"]).nearest(X)
        index = np.stack([nearest, np.full(n, tasks - 1, np.int32)], axis=1).ravel()
        share = np.tile([1.0, float(state["lambda"][0]) ** -0.5], n)
        shares = sparse.csr_array((share, index, np.arange(0, 2 * n + 1, 2)), shape=(n, tasks))
        return LinearRows(X, tasks, shares, BIAS, shared_bias=True)

    def prediction_rows(self, X: Examples, state: State) -> LinearRows:
        """Each row in its cluster's task, whose weights hold the common part already."""
        from localsvm.representations.kmeans import Centres
        from localsvm.solvers._linear import LinearRows

        centres = Centres(state["centres"])
        return LinearRows(X, len(centres.centres), centres.nearest(X), BIAS, shared_bias=True)

    def prediction_weights(self, w: NDArray[np.float64], state: State) -> NDArray[np.float64]:
        """Weights w_k = v_k + w of the clusters."""
        import numpy as np

        tasks = w[:-1].reshape(len(state["centres"]) + 1, -1)
        together = tasks[:-1] + float(state["lambda"][0]) ** -0.5 * tasks[-1]
        return np.append(together.ravel(), w[-1])

    def sizes(self, features: int) -> tuple[int, int]:
        """One task more than clusters."""
        tasks, columns = super().sizes(features)
        return tasks + 1, columns

    def representation_bytes(self, size: CellSize) -> tuple[int, int]:
        """Bytes as of other clusters, with the shares of each row in its tasks."""
        kept, making = super().representation_bytes(size)
        return kept + 16 * size.rows * 2, making
