"""The linear SVM: one weight vector for all rows (LIBLINEAR's -s 3 and, with the squared loss, -s 1 and -s 2).

For each binary problem: min 1/2 |w|^2 + 1/2 b^2 + C sum_i loss(y_i (w . x_i + b)), as LIBLINEAR with -B 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from localsvm.methods.linear.method import LinearMethod


@dataclass(frozen=True)
class LinearSVM(LinearMethod):
    """Options of the method."""

    name: ClassVar[str] = "linear"
    tiny: ClassVar[str] = "-C 0.1,1"
