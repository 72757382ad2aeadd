"""Rows as a linear local method sees them: features phi, and memberships m in tasks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from localsvm.errors import OptionError
from localsvm.methods.base import State
from localsvm.methods.linear.options import LinearOptions
from localsvm.methods.option import loss_option
from localsvm.methods.value_losses import ValueLosses
from localsvm.naming import opt
from localsvm.targets.loss_names import LOSSES, SQUARED_HINGE

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from localsvm.data.blocks.dataset import Examples
    from localsvm.methods.grids import Grid
    from localsvm.solvers._linear import LinearRows

    Floats = NDArray[np.float64]


BIAS = 1.0  # the constant appended to every row: the bias is regularised, as in LIBLINEAR with -B 1


@dataclass(frozen=True)
class LinearRepresentation(ValueLosses, LinearOptions):
    """The rows of a linear method. Subclasses add options, and say what their rows are."""

    one_task_each: ClassVar[bool] = True  # each row belongs to one task, with share 1
    of_pairs: ClassVar[bool] = False  # a pair of classes has a representation of its own
    drawn_by: ClassVar[tuple[str, ...]] = ()  # the parameters that `drawn` depends on; () for all

    loss: str = loss_option("hinge", SQUARED_HINGE, *LOSSES)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.check_loss()
        if self.loss in LOSSES and self.solver not in ("auto", "primal", "sgd"):
            raise OptionError(
                f"{opt.solver(self.solver)} is for classes; values have {opt.solver('primal')}, as without "
                f"{opt.solver}, and {opt.solver('sgd')}"
            )
        if self.solver == "sgd" and self.loss == SQUARED_HINGE:
            raise OptionError(
                f"{opt.solver('sgd')} is for {opt.loss('hinge')} and losses of values; the squared hinge has "
                f"{opt.solver('sdca')}, {opt.solver('primal')} and {opt.solver('sag')}"
            )
        if self.solver == "sag" and self.loss != SQUARED_HINGE:
            raise OptionError(
                f"{opt.solver('sag')} needs a smooth loss: give {opt.loss(SQUARED_HINGE)}, or another solver such as "
                f"{opt.solver('primal')}"
            )

    def grid_for(self, features: int) -> Grid:
        """The grid for rows of so many features."""
        return self.with_epsilons(super().grid_for(features))

    @property
    def remedy(self) -> str:
        """Advice to the user, by solver.

        Stochastic subgradients come near, whatever the tolerance, and average gradients do where costs are large.
        """
        remedies = {
            "sgd": f"more {opt.passes}, or a smaller C ({opt.cost})",
            "sag": f"{opt.solver('primal')}, or a smaller C ({opt.cost})",
        }
        return remedies.get(self.solver) or super().remedy

    def represent(self, X: Examples, setting: dict[str, float], random: np.random.SeedSequence) -> State:
        """Arrays to keep of what is learned from the rows, whatever their labels, for one choice of parameters."""
        return self.drawn(X, setting, random) | self.chosen(setting)

    def drawn(self, X: Examples, setting: dict[str, float], random: np.random.SeedSequence) -> State:
        """Arrays of the representation that it takes time to make."""
        return {}

    def chosen(self, setting: dict[str, float]) -> State:
        """Arrays of the representation that are parameters."""
        return {}

    def joined(self, states: Sequence[State]) -> State:
        """The representations of several models as arrays of one name each."""
        return states[0]

    def parted(self, state: State) -> list[State]:
        """States that `joined` was given; one where all models have the same."""
        return [state]

    def rows(self, X: Examples, state: State) -> LinearRows:
        """Rows as the solver sees them."""
        from localsvm.solvers._linear import LinearRows

        return LinearRows(X, bias=BIAS)

    def prediction_rows(self, X: Examples, state: State) -> LinearRows:
        """Rows as prediction sees them, for the weights that `prediction_weights` gives."""
        return self.rows(X, state)

    def prediction_weights(self, w: Floats, state: State) -> Floats:
        """The weights that prediction uses, made of the solver's."""
        return w
