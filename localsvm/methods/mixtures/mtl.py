"""LSVM-MTL (Mao, Wu, Hu, O'Donovan, CIKM 2014): a mixture of linear SVMs whose weights fall into groups.

For each binary problem: max sum_i log sum_j pi_j N(x_i | m_j, S_j) exp(-loss(y_i (w_j . x_i + b_j))) + log prior(S)
- alpha sum_c sum_{j in c} |w_j - mean_c|^2 - beta |W|^2, the biases among the weights, with r groups c that are not
known: they are relaxed as in localsvm/solvers/coupling.py. C = 1/(2 beta), and --coupling is alpha/beta: 0 is `mlsvm`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from localsvm.errors import OptionError
from localsvm.methods.grids import Values
from localsvm.methods.linear.options import most_first
from localsvm.methods.mixtures.method import MixtureMethod
from localsvm.methods.option import option
from localsvm.naming import opt

if TYPE_CHECKING:
    from localsvm.representations.svm_mixture import Tasks
    from localsvm.solvers.row_losses import RowLoss


@dataclass(frozen=True)
class MultiTaskSVM(MixtureMethod):
    """Options of the method."""

    name: ClassVar[str] = "mtl"
    tiny: ClassVar[str] = "-K 3 --shrinkage 0.1 --groups 2 --coupling 1,10 -C 1,100"

    groups: tuple[float, ...] = option(
        (5.0,),
        "--groups",
        help="Number of groups that the linear SVMs of mtl fall into: one number, or a list to choose from.",
    )
    coupling: tuple[float, ...] = option(
        (0.0, 10.0, 100.0),
        "--coupling",
        help="How strongly mtl holds the linear SVMs of a group together, the paper's alpha/beta; 0: not at all. One "
        "number, or a list to choose from.",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.groups or not all(0.0 < r < math.inf for r in self.groups):
            raise OptionError(f"{opt.groups} takes positive numbers")
        if not self.coupling or not all(0.0 <= value <= 1e12 for value in self.coupling):
            raise OptionError(f"{opt.coupling} takes numbers from 0 to 1e12")

    def axes(self, features: int) -> dict[str, Values]:
        """Components and shrinkage; groups and coupling, the strongest first."""
        return super().axes(features) | {"groups": self.groups, "coupling": most_first(self.coupling)}

    def tasks(self, setting: dict[str, float], loss: RowLoss, tolerance: float) -> Tasks:
        """Coupling of the tasks at a setting, and their loss."""
        from localsvm.representations.svm_mixture import Tasks

        return Tasks(setting["coupling"], setting["groups"], loss, tolerance)
