"""Parts of a method that can be trained on rows that are not held: in passes (`--stream`), or in one pass."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from localsvm.data.blocks.dataset import Dense, Examples
    from localsvm.methods.base import Fitted, State
    from localsvm.methods.cell_size import CellSize
    from localsvm.methods.grids import Grid, Values
    from localsvm.solvers._linear import LinearRows
    from localsvm.solvers.row_losses import RowLoss
    from localsvm.solvers.stochastic import Descended
    from localsvm.targets.base import Target

    Floats = NDArray[np.float64]


class Descending(Protocol):
    """Stochastic subgradients, in passes over blocks of rows; see methods/linear/method.py.

    passes : over the rows, for each solution.
    """

    @property
    def passes(self) -> int: ...
    def grid_for(self, features: int) -> Grid: ...
    def sizes(self, features: int) -> tuple[int, int]: ...
    def memory(self, size: CellSize) -> int: ...
    def represent(self, X: Examples, setting: dict[str, float], random: np.random.SeedSequence) -> State: ...
    def rows(self, X: Examples, state: State) -> LinearRows: ...
    def row_losses(self, target: Target, setting: dict[str, float]) -> Sequence[RowLoss]: ...
    def packed(self, state: State, cost: float, descended: Descended) -> Fitted:
        """The fitted cell of the models of all problems."""


class Learner(Protocol):
    """A model that learns part after part of the rows; see methods/locally_linear/systems/mllkm_online.py."""

    def values(self, X: Floats) -> Floats: ...
    def learn(self, part: Any) -> None: ...
    def finish(self) -> None: ...


class LearningOnce(Protocol):
    """Learners that see every row once and keep some; see methods/locally_linear/mllkm.py.

    kept_rows : of a learner.
    """

    @property
    def kept_rows(self) -> int: ...
    def grid_for(self, features: int) -> Grid: ...
    def solving_bytes(self, size: CellSize) -> int: ...
    def gammas_of(self, spread: float, features: int) -> Values: ...

    def learner(self, gammas: Values, features: int, rng: np.random.Generator) -> Learner: ...
    def part(self, X: Floats, y: Floats, cost: Floats, number: NDArray[np.int64]) -> Any:
        """Rows (n, d), +-1, costs, and numbers of the rows, as a learner takes them."""

    def pack_learned(
        self, learners: Sequence[Any], cost: float, gammas: Values, stored: Callable[[Floats], Dense]
    ) -> Fitted:
        """The fitted cell of a learner a problem. stored: anchors as the model has them."""
