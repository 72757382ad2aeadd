"""MLLKM (Picard, Multiple Locally Linear Kernel Machines, 2024): a sum of linear functions, each around an anchor.

For each binary problem: f(x) = sum_m phi_m(x) . w_m, phi_m(x) = h_m(x) (x - c_m), and

    min_w  1/2 (sum_m |w_m|)^2 + C sum_i max(0, 1 - y_i f(x_i)),

l1 multiple kernel learning over the kernels phi_m . phi_m of all anchors c_m and all gammas of their maps h_m. Few of
them get weights. There is no bias. See localsvm/solvers/feature_mkl.py for how it is solved, and
localsvm/representations/local_kernels.py for the maps.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

from localsvm.errors import OptionError
from localsvm.methods.base import Fit, Fitted, Prepared, State, View
from localsvm.methods.cell_size import CellSize
from localsvm.methods.grids import SIZE, Values
from localsvm.methods.locally_linear.mllkm_options import LocalOptions
from localsvm.methods.saved import table
from localsvm.naming import opt
from localsvm.store.pieces import Pieces, floats32, floats64, index, pointer

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from localsvm.data.blocks.dataset import Dense
    from localsvm.methods.cell import Cell
    from localsvm.methods.locally_linear.systems.mllkm import LocalSystem
    from localsvm.methods.locally_linear.systems.mllkm_online import KeptRows, OnePass
    from localsvm.methods.locally_linear.systems.mllkm_predictor import LocalPredictor
    from localsvm.solvers.feature_mkl import Found
    from localsvm.targets.base import Target

    Floats = NDArray[np.float64]


ACTIVE, ROWS, SCORES, COPIES = 3, 12, 4, 4  # sets of entering kernels in the active one; copies of arrays, see `memory`
MOST_GAMMA = 1e33  # finite in float32, and above all that options and defaults give


@dataclass(frozen=True)
class LocallyLinearKernels(LocalOptions):
    """The method; its options are those of the base."""

    name: ClassVar[str] = "mllkm"
    tiny: ClassVar[str] = "--map square --bank-gammas 0.1,1 -C 0.1,1"

    def prepare(self, cell: Cell, view: View) -> Prepared:
        """The rows in float64, from their mean; k-means centres of all of them."""
        from localsvm.methods.locally_linear.systems.mllkm import PreparedAnchors

        return PreparedAnchors(self, cell)

    def pack(self, cell: Cell, fits: Sequence[Fit]) -> Fitted:
        """The anchors that are used, a table of models, and for each of its kernels the weights."""
        import numpy as np

        from localsvm.methods.locally_linear.systems.mllkm import packed, report_of

        system: LocalSystem = fits[0].system
        solutions: list[Found] = [fit.solution for fit in fits]
        state, used = packed([fit.job for fit in fits], solutions, len(system.anchors), system.prepared.gammas)
        weights = system.spread(np.concatenate([one.w for one in solutions]))
        inside = np.any([one.coef != 0.0 for one in solutions], axis=0)
        report = replace(
            report_of(solutions),
            support_vectors=int(np.count_nonzero(inside)),
            support=cell.target.counts(cell.y[inside]),
        )
        return Fitted(state | {"anchors": system.stored(used), "weights": weights}, report)

    def predictor(self, state: State, target: Target, n_features: int) -> LocalPredictor:
        """Decision functions of a saved cell."""
        from localsvm.methods.locally_linear.systems.mllkm_predictor import LocalPredictor

        return LocalPredictor(self.map, self.componentwise, state, target)

    def pieces(self, target: Target, dense: bool) -> Pieces:
        """Arrays of m models with k kernels together, on a anchors."""
        return {
            **table("problem", "fold", "cost", "gap", "iterations", "converged"),
            "kernel_ptr": pointer("m", "k"),
            "kernel_anchor": index("k", below="a"),
            "kernel_gamma": floats64("k", low=0, high=MOST_GAMMA),
            "kernel_share": floats64("k", low=0),
            "anchors": floats32("a", "features"),
            "weights": floats64("k", "features"),
        }

    def check(self, size: CellSize) -> None:
        """Refuse cells where rows are to stream by."""
        if self.online == "full":
            raise OptionError(
                f"{opt.online('full')} trains on a file, as a stream: it is for lsvm-train, without cells"
            )

    def memory(self, size: CellSize) -> int:
        """Bytes that solving takes."""
        return self.solving_bytes(size)

    def solving_bytes(self, size: CellSize) -> int:
        """Bytes of the rows in float64 and their copies, a block of distances, the scores, and active kernels."""
        from localsvm.representations.local_kernels import BLOCK

        n, d, active = size.rows, size.features, ACTIVE * self.admit
        candidates = (n if self.anchors == "rows" else int(max(self.clusters))) * (len(self.bank_gammas) or SIZE)
        values = 8 * n * active * (d if self.componentwise else 1)
        return int(ROWS * 8 * n * d + 8 * BLOCK + 8 * SCORES * candidates + COPIES * values)

    @property
    def learning_once(self) -> LocallyLinearKernels | None:
        """The method itself with --online full, else None."""
        return self if self.online == "full" else None

    def learner(self, gammas: Values, features: int, rng: np.random.Generator) -> OnePass:
        """A learner of one problem; see `streams.LearningOnce`."""
        from localsvm.methods.locally_linear.systems.mllkm_online import OnePass

        return OnePass(self, gammas, features, rng)

    def part(self, X: Floats, y: Floats, cost: Floats, number: NDArray[np.int64]) -> KeptRows:
        """Rows without coefficients."""
        from localsvm.methods.locally_linear.systems.mllkm_online import KeptRows

        return KeptRows(X, y, cost, 0.0 * y, number)

    def pack_learned(
        self, learners: Sequence[OnePass], cost: float, gammas: Values, stored: Callable[[Floats], Dense]
    ) -> Fitted:
        """The anchors of all learners, and their models."""
        from localsvm.methods.locally_linear.systems.mllkm import pack_learned

        return pack_learned(learners, cost, gammas, stored)
