"""Running scores of predicted values against those of a file."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from localsvm.targets.regression import Regression

if TYPE_CHECKING:
    from localsvm.runs.predict import Predicted


Values = NDArray[np.float64]

ROUNDING = 1e-12  # of a mean square: a smaller variance is what is left of sums


@dataclass
class ValueScore:
    """Sums over the rows whose value is known.

    Attributes
    ----------
    target : of the model.
    total : rows.
    losses : (problems,) sums of the score's loss, and `squares` of the squared errors.
    moments : of each problem's answers f and of the values y: sums of f, f^2, y f; and of y, y^2. Of both the mean of
        the training values is taken first.
    below : (problems,) rows whose value is not above the answer.
    intervals, covered, width : rows with an interval, those whose value it holds, and the sum of the widths.
    """

    target: Regression
    total: int = 0
    losses: Any = field(default_factory=lambda: np.zeros(1))
    squares: Any = field(default_factory=lambda: np.zeros(1))
    moments: Any = field(default_factory=lambda: np.zeros((5, 1)))
    below: Any = field(default_factory=lambda: np.zeros(1))
    intervals: int = 0
    covered: int = 0
    width: float = 0.0

    def add(self, block: Predicted) -> None:
        """Count a block."""
        known = ~np.isnan(block.y)  # rows of a table may have no value
        y, mean = block.y[known], self.target.training.mean
        answers = block.labels.reshape(len(block.y), -1)[known]
        f, d = answers - mean, (y - mean)[:, None]
        self.total += len(y)
        if block.intervals is not None:
            low, high = block.intervals[known].T
            self.intervals, self.width = self.intervals + len(y), self.width + float((high - low).sum())
            self.covered += int(np.count_nonzero((low <= y) & (y <= high)))
        self._sum(answers, y, f, d)

    @np.errstate(over="ignore")
    def _sum(self, answers: Values, y: Values, f: Values, d: Values) -> None:
        self.losses = self.losses + self.target.scores(answers, y).sum(axis=0)
        self.squares = self.squares + np.square(d - f).sum(axis=0)
        self.below = self.below + (y[:, None] <= answers).sum(axis=0)
        self.moments = self.moments + np.stack(
            [np.broadcast_to(each, f.shape).sum(axis=0) for each in (f, f * f, d * f, d, d * d)]
        )

    def merge(self, other: ValueScore) -> None:
        """Count the rows of another one."""
        self.total += other.total
        for name in ("losses", "squares", "moments", "below", "intervals", "covered", "width"):
            setattr(self, name, getattr(self, name) + getattr(other, name))

    def as_dict(self) -> dict[str, Any]:
        """Entries of the JSON report, of the problems one after the other; the correlation is that of one alone.

        Means over no rows are None.
        """
        rows = self.total or math.nan
        report: dict[str, Any] = {
            "total": self.total,
            "score": self.target.score_of_values,
            "loss": _finite(self.losses / rows),
        }
        report |= {"mean_squared_error": _finite(self.squares / rows)}
        report |= {"squared_correlation": [self.correlation(p) for p in range(len(self.squares))]}
        if self.intervals:
            report |= {"covered": self.covered, "mean_width": self.width / self.intervals}
        return report | {
            "levels": [loss.level for loss in self.target.losses[: self.target.answers]],
            "below": _finite(self.below / rows),
        }

    @property
    def variance(self) -> float:
        """Mean squared distance of the values from their mean; 0 where it is no more than rounding."""
        mean, square = (self.moments[3:, 0] / max(1, self.total)).tolist()
        return float(square - mean * mean) if square - mean * mean > ROUNDING * square else 0.0

    def correlation(self, problem: int = 0) -> float | None:
        """The squared correlation coefficient, as svm-predict has it; None where all values or answers are equal."""
        n, (f, ff, yf, y, yy) = self.total, self.moments[:, problem].tolist()
        both, joint = (n * ff - f * f) * (n * yy - y * y), n * yf - f * y
        return joint * joint / both if both > 0.0 and math.isfinite(both + joint * joint) else None


def _finite(values: Values) -> list[float | None]:
    """Numbers for JSON, which has no infinite ones: None for these."""
    return [value if math.isfinite(value) else None for value in values.tolist()]
