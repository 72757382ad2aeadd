"""Scores of predicted values in detail, in bounded memory: sums over all rows, and rows drawn from them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from localsvm.runs.predict import Predicted
from localsvm.runs.prediction.value_scores import ValueScore
from localsvm.targets.loss_names import EXPECTILE, LEVELLED, QUANTILE
from localsvm.targets.losses import Loss
from localsvm.targets.regression import Regression

Values = NDArray[np.float64]
DRAWN = 1 << 18  # rows at most: a share of 0.9 of a fifteenth of them is known to 0.0023
BINS, SMALLEST_BIN = 15, 20  # bins at most; rows of each at least
SHARES = (0.05, 0.25, 0.5, 0.75, 0.95)  # quantiles of residuals


class ValueReport:
    """Scores of the rows whose value is known, and how their residuals change with the prediction.

    Residuals are values minus predictions. Bins and pictures are of rows drawn at random, which are all up to DRAWN.
    Of several levels they are by the answer whose level is nearest to 0.5.

    Parameters
    ----------
    target : of the model.
    coverage : of the intervals; None for none.
    """

    of = "value"

    def __init__(self, target: Regression, coverage: float | None = None) -> None:
        self._score, self.coverage = ValueScore(target), coverage
        self.levels = [loss.level for loss in target.losses[: target.answers]]
        self.middle = target.middle
        # of each answer: sums of residuals, their sizes and pinball losses; weights below it, and of all rows
        self._sums = np.zeros((5, target.answers))
        self._rng = np.random.default_rng(0)
        self._kept: list[Values] = []  # keys, values, answers and ends of intervals of rows, (n, columns)

    @property
    def rows(self) -> int:
        """Number of rows that have a value."""
        return self._score.total

    @property
    def levelled(self) -> bool:
        """True where answers have a level that they may miss."""
        return self._score.target.losses[0].name in LEVELLED

    @property
    def counted(self) -> str:
        """What shares of levels are of."""
        return "distances" if self._score.target.losses[0].name == EXPECTILE else "values"

    def add(self, block: Predicted) -> None:
        """Count a block."""
        self._score.add(block)
        known = ~np.isnan(block.y)
        y, answers = block.y[known], block.labels.reshape(len(block.y), -1)[known]
        with np.errstate(over="ignore"):
            self._sums += self._of_rows(y[:, None] - answers).sum(axis=1)
        ends = np.empty((len(y), 0)) if block.intervals is None else block.intervals[known]
        self._kept.append(np.column_stack([self._rng.random(len(y)), y, answers, ends]))
        if sum(map(len, self._kept)) > 2 * DRAWN:
            self._kept = [self._drawn()]

    def _of_rows(self, r: Values) -> Values:
        """What is summed of residuals (n, answers): (5, n, answers).

        An expectile is where the distances to the values below are a share `level` of all distances, and a quantile is
        the same of their numbers.
        """
        pinball = np.stack([Loss(QUANTILE, level)(r[:, k]) for k, level in enumerate(self.levels)], axis=1)
        weight = np.abs(r) if self.counted == "distances" else np.ones_like(r)
        return np.stack([r, np.abs(r), pinball, np.where(r <= 0.0, weight, 0.0), weight])

    def _drawn(self) -> Values:
        rows = np.concatenate(self._kept) if self._kept else np.empty((0, 2 + len(self.levels)))
        return rows if len(rows) <= DRAWN else rows[np.argpartition(rows[:, 0], DRAWN)[:DRAWN]]

    def drawn(self) -> tuple[Values, Values, Values]:
        """Values (n,), answers (n, answers) and ends of intervals (n, 2), or (n, 0), of rows drawn at random."""
        rows, n = self._drawn(), len(self.levels)
        return rows[:, 1], rows[:, 2 : 2 + n], rows[:, 2 + n :]

    def bins(self) -> list[dict[str, Any]]:
        """Bins of about equally many drawn rows by their prediction: entries of report.json."""
        y, answers, ends = self.drawn()
        f = answers[:, self.middle]
        _, place, counts = np.unique(f, return_inverse=True, return_counts=True)
        number = min(BINS, max(1, len(y) // SMALLEST_BIN))
        group = ((counts.cumsum() - counts / 2) * number // max(1, len(y)))[place]
        return [self._bin(y[some], answers[some], ends[some]) for some in (group == g for g in np.unique(group))]

    def _bin(self, y: Values, answers: Values, ends: Values) -> dict[str, Any]:
        f = answers[:, self.middle]
        found: dict[str, Any] = {"rows": len(y), "prediction": float(f.mean())}
        found["residual_quantiles"] = np.quantile(y - f, SHARES).tolist()
        if self.levelled:
            below, weight = self._of_rows(y[:, None] - answers)[3:].sum(axis=1)
            found["below"] = _shares(below, weight)
        if ends.shape[1]:
            low, high = ends.T
            found |= {"covered": float(((low <= y) & (y <= high)).mean()), "width": float((high - low).mean())}
        return found

    def as_dict(self) -> dict[str, Any]:
        """Entries of report.json; None for what is not finite."""
        rows = max(1, self.rows)
        coverage = None
        if self._score.intervals:
            covered, width = self._score.covered / rows, self._score.width / rows
            coverage = {"asked": self.coverage, "covered": covered, "mean_width": width}
        return {
            "rows": self.rows,
            "drawn_rows": len(self._drawn()),
            "answers": [self._answer(k) for k in range(len(self.levels))],
            "coverage": coverage,
            "residual_quantiles": SHARES,
            "bins": self.bins(),
        }

    def _answer(self, k: int) -> dict[str, Any]:
        rows, mse = max(1, self.rows), float(self._score.squares[k]) / max(1, self.rows)
        variance = self._score.variance
        residual, size, pinball = (self._sums[:3, k] / rows).tolist()
        found = {
            "level": self.levels[k],
            "mean_squared_error": mse,
            "root_mean_squared_error": math.sqrt(mse),
            "mean_absolute_error": size,
            "mean_pinball_loss": pinball,
            "mean_residual": residual,
            "r2": 1.0 - mse / variance if variance else math.nan,
            "squared_correlation": self._score.correlation(k),
        }
        if self.levelled:
            found["below"] = _shares(*self._sums[3:])[k]
        return {name: value if value is not None and math.isfinite(value) else None for name, value in found.items()}


def _shares(below: Values, weight: Values) -> list[float | None]:
    """Shares of weights; None where there is none."""
    return [float(b / w) if w > 0.0 else None for b, w in zip(below, weight, strict=True)]
