"""Regression: values from problems that each learn one statistic of them, as their mean or a quantile."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from localsvm.targets.base import Observed, Target, ValueRange, Values
from localsvm.targets.losses import ABSOLUTE, INSENSITIVE, LEVELLED, QUANTILE, WITH_EPSILON, Loss

MSE, MAE, PINBALL, R2 = "mse", "mae", "pinball", "r2"
SCORES = (MSE, MAE, PINBALL, R2)
STRATA = 20  # parts of about equally many rows, by their values, whose rows are dealt out to folds evenly


@dataclass(frozen=True)
class Regression(Target):
    """The problems of some losses, one for each.

    Problems learn (y - mean) / deviation of the values y. Their answers are clipped to the range of the training
    values, which never raises a loss of ours (Steinwart, Hush and Scovel, JMLR 2011). Several answers are sorted, so
    that quantiles do not cross, which never raises the sum of their losses.

    Attributes
    ----------
    losses : of the problems, by ascending levels; an epsilon is the grid's.
    training : where the values of the training rows lie.
    scoring : what selection scores points by, one of SCORES; "" for the loss itself.
    """

    losses: tuple[Loss, ...]
    training: ValueRange
    scoring: str = ""

    @property
    def n_problems(self) -> int:
        """Number of losses."""
        return len(self.losses)

    @property
    def problems_a_row(self) -> int:
        """All problems: each learns from all rows."""
        return len(self.losses)

    @property
    def choices(self) -> int:
        """One for each problem, by its own loss: the best width of a tail is not that of the median."""
        return len(self.losses)

    @property
    def deviation(self) -> float:
        """Unit of the problems' values."""
        return self.training.deviation

    def largest_part(self, class_rows: Sequence[int]) -> int:
        """0, as no problem leaves rows out."""
        return 0

    def encode(self, y: Values) -> Values:
        """Standardised values (n, problems), the same for each problem."""
        standard = (y - self.training.mean) / self.deviation
        return np.repeat(standard[:, None], self.n_problems, axis=1)

    def guessing(self, observed: Observed) -> float | None:
        """The variance, where squares are scored."""
        return self.deviation**2 if self.score == MSE else None

    def strata(self, y: Values) -> Values:
        """Numbers (n,) of parts of about equally many rows, by ascending values."""
        place = np.empty(len(y))
        place[np.argsort(y, kind="stable")] = np.arange(len(y))
        return np.floor(place * min(STRATA, max(1, len(y) // STRATA)) / len(y))

    def wrong(self, values: Values, y: Values, Y: Values, weight: Values) -> tuple[Values, Values]:
        """Weighted loss of each problem, by the score, in units of the values; the tie is always 0."""
        out = np.empty((len(values), self.n_problems))
        for p, loss in enumerate(self.losses):
            for point, answers in zip(out, self._decoded(values[:, p]), strict=True):
                point[p] = self._scored(loss, y - answers) @ weight
        return out, np.zeros(len(values))

    def by_class(self, values: Values, y: Values, weight: Values) -> tuple[Values, Values]:
        """Nothing, as there are no classes."""
        return np.empty(0), np.empty(0)

    def mass(self, y: Values, weight: Values) -> Values:
        """Weight (problems,) of all rows, for each."""
        return np.full(self.n_problems, weight.sum())

    def loss(self, wrong: Values, mass: Values) -> Values:
        """The mean loss, over rows and problems."""
        return np.asarray((wrong / mass).mean(axis=1))

    def combine(self, values: Values, problem: NDArray[np.generic]) -> Values:
        """A problem's only model, or the mean of its fold models' values, each clipped to the range."""
        problem = problem.astype(np.intp)
        out, values = np.zeros((len(values), self.n_problems)), self.bounded(values)
        for m, p in enumerate(problem):
            out[:, p] += values[:, m]
        return out / np.maximum(np.bincount(problem, minlength=self.n_problems), 1)

    def bounded(self, values: Values) -> Values:
        """Values clipped to the range of the training values."""
        low, high = ((end - self.training.mean) / self.deviation for end in (self.training.low, self.training.high))
        return np.clip(values, low, high)

    def decide(self, values: Values) -> Values:
        """Values (n,) in the units of training, or (n, problems) ascending where there are several problems."""
        answers = self._decoded(values)
        return answers[:, 0] if self.n_problems == 1 else np.sort(answers, axis=1)

    def scores(self, answers: Values, y: Values) -> Values:
        """The score's loss of answers (n, problems) for values y (n,): (n, problems)."""
        return np.stack([self._scored(loss, y - answers[:, p]) for p, loss in enumerate(self.losses)], axis=1)

    @property
    def score_of_values(self) -> str:
        """The score."""
        return self.score

    @property
    def score(self) -> str:
        """The score: that which was asked for, or the one that fits the loss."""
        loss = self.losses[0]
        if self.scoring:
            return self.scoring
        if loss.name in LEVELLED:
            return PINBALL if loss.name == QUANTILE else "expectile"
        return MAE if loss.name in (ABSOLUTE, INSENSITIVE) or loss.name in WITH_EPSILON[2:] else MSE

    def _scored(self, loss: Loss, r: Values) -> Values:
        score = self.score
        if score == "expectile":
            return loss(r)
        if score == PINBALL:
            return Loss(QUANTILE, loss.level)(r)
        return np.abs(r) if score == MAE else np.square(r)

    def _decoded(self, values: Values) -> Values:
        answers = values * self.deviation + self.training.mean
        return np.clip(answers, self.training.low, self.training.high)
