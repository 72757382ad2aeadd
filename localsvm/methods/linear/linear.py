"""The linear SVM: one weight vector for all rows (LIBLINEAR's -s 3 and, with the squared loss, -s 1 and -s 2).

For each binary problem: min 1/2 |w|^2 + 1/2 b^2 + C sum_i loss(y_i (w . x_i + b)), as LIBLINEAR with -B 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from localsvm.methods.base import State
from localsvm.methods.linear.method import LinearMethod
from localsvm.methods.linear.rows import BIAS

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True)
class LinearSVM(LinearMethod):
    """Options of the method."""

    name: ClassVar[str] = "linear"
    tiny: ClassVar[str] = "-C 0.1,1"
    takes_factors: ClassVar[bool] = True

    def hyperplanes(self, state: State, features: int) -> tuple[NDArray[Any], NDArray[Any]]:
        """The weights of the rows, and those of the constant: of the task, and shared; one of them is 0."""
        both = state["weights"].reshape(len(state["model_problem"]), -1)
        return both[:, :-2], BIAS * both[:, -2:].sum(axis=1)
