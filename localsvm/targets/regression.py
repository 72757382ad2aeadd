"""Regression: values from problems that each learn one statistic of them, as their mean or a quantile."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from localsvm.errors import ModelError
from localsvm.targets.base import Observed, Target, ValueRange, Values
from localsvm.targets.loss_names import ABSOLUTE, HUBER, INSENSITIVE, LEVELLED, QUANTILE
from localsvm.targets.losses import Loss

MSE, MAE, PINBALL, R2 = "mse", "mae", "pinball", "r2"
SCORES = (MSE, MAE, PINBALL, R2)
Problem = int | slice | NDArray[np.intp]  # the number of one, or which of them the last axis has
STRATA = 20  # parts of about equally many rows, by their values, whose rows are dealt out to folds evenly


@dataclass(frozen=True)
class Regression(Target):
    """The problems of some losses, one for each.

    Problems learn (y - centre) / unit of the values y, or the same of their square roots (see `ValueRange`). Squares of
    learned roots are answers, with what they fall short of the values in the mean. Answers are clipped to the range of
    the training values, which never raises a loss of ours (Steinwart, Hush and Scovel, JMLR 2011). Several answers are
    sorted, so that quantiles do not cross, which never raises the sum of their losses. The ends of an interval may lie
    beyond the range (ValueRange.ends).

    Attributes
    ----------
    losses : of the problems, by ascending levels; an epsilon is the grid's. With an interval the last two are the
        quantiles at its ends.
    training : where the values of the training rows lie.
    scoring : what selection scores points by, one of SCORES; "" for the loss itself.
    interval : whether the last two problems are the ends of an interval.
    """

    losses: tuple[Loss, ...]
    training: ValueRange
    scoring: str = ""
    interval: bool = False

    @property
    def answers(self) -> int:
        """Number of the first problems, whose values are answers themselves."""
        return len(self.losses) - 2 * self.interval

    @property
    def middle(self) -> int:
        """Number of the answer whose level is nearest to 0.5, which stands for all where one is shown."""
        return int(np.argmin([abs(loss.level - 0.5) for loss in self.losses[: self.answers]]))

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
    def unit(self) -> float:
        """Unit of values, in which an epsilon counts."""
        return self.training.unit

    def largest_part(self, class_rows: Sequence[int]) -> int:
        """0, as no problem leaves rows out."""
        return 0

    def encode(self, y: Values) -> Values:
        """Standardised values (n, problems), the same for each problem."""
        return np.repeat(self.training.encoded(y)[:, None], self.n_problems, axis=1)

    def guessing(self, observed: Observed) -> float | None:
        """The variance, where squares are scored."""
        return self.training.deviation**2 if self.score_of_values in (MSE, R2) else None

    def strata(self, y: Values) -> Values:
        """Numbers (n,) of parts of about equally many rows, by ascending values."""
        place = np.empty(len(y))
        place[np.argsort(y, kind="stable")] = np.arange(len(y))
        return np.floor(place * min(STRATA, max(1, len(y) // STRATA)) / len(y))

    def wrong(self, values: Values, y: Values, Y: Values, weight: Values) -> tuple[Values, Values]:
        """Weighted loss of each problem, by the score, in units of the values; the tie is always 0."""
        out = np.empty((len(values), self.n_problems))
        for p, loss in enumerate(self.losses):
            for point, answers in zip(out, self._decoded(values[:, p], p), strict=True):
                point[p] = (loss if p >= self.answers else partial(self._scored, loss))(y - answers) @ weight
        return out, np.zeros(out.shape)

    def short(self, values: Values, y: Values, weight: Values) -> float:
        """The weighted sum of what is left of values by squares of learned roots; 0 where values are learned."""
        return float((y - self._decoded(values[0], 0)) @ weight) if self.training.of_roots else 0.0

    def by_class(self, values: Values, y: Values, weight: Values) -> tuple[Values, Values]:
        """Nothing, as there are no classes."""
        return np.empty(0), np.empty(0)

    def mass(self, y: Values, weight: Values) -> Values:
        """Weight (problems,) of all rows, for each."""
        return np.full(self.n_problems, weight.sum())

    def loss(self, wrong: Values, mass: Values) -> Values:
        """The mean loss, over rows and answers."""
        return np.asarray((wrong / mass)[:, : self.answers].mean(axis=1))

    def counted(self, wrong: Values, mass: Values) -> tuple[float, float]:
        """0, as values are not right or wrong."""
        return 0.0, 0.0

    def error(self, wrong: Values, mass: Values) -> float | None:
        """The mean loss of one point, over rows and answers; None where no row counts."""
        return float(self.loss(wrong[None], mass)[0]) if mass.sum() else None

    def combine(self, values: Values, problem: NDArray[np.generic]) -> Values:
        """A problem's only model, or the mean of its fold models' values, each bounded."""
        of = problem.astype(np.intp)
        out, values = np.zeros((len(values), self.n_problems)), self._clipped(values, of)
        for m, p in enumerate(of):
            out[:, p] += values[:, m]
        return out / np.maximum(np.bincount(of, minlength=self.n_problems), 1)

    def bounded(self, values: Values) -> Values:
        """Values clipped to the range of the training values, or for ends of intervals to a wider one."""
        return self._clipped(values, slice(None))

    def decide(self, values: Values) -> Values:
        """Values (n,) in the units of training, or (n, answers) ascending where there are several."""
        answers = self._decoded(values[:, : self.answers], slice(self.answers))
        return answers[:, 0] if self.answers == 1 else np.sort(answers, axis=1)

    def outside(self, values: Values, y: Values) -> Values:
        """How far (n,) values y are outside of the interval of some decision values (n, problems); below 0 inside."""
        low, high = self._ends(values)
        return np.maximum(low - y, y - high)

    def intervals(self, values: Values, margin: float, shrink: float = 1.0) -> Values:
        """Intervals (n, 2) of decision values (n, problems), wider by a margin, then by a factor; at least a point."""
        low, high = self._ends(values)
        middle, half = (low + high) / 2.0, np.maximum((high - low) / 2.0 + margin, 0.0) * shrink
        return np.stack([middle - half, middle + half], axis=1)

    def _ends(self, values: Values) -> tuple[Values, Values]:
        ends = np.sort(self._decoded(values[:, self.answers :], slice(self.answers, None)), axis=1)
        return ends[:, 0], ends[:, 1]

    def scores(self, answers: Values, y: Values) -> Values:
        """The score's loss of answers (n, answers) for values y (n,): (n, answers)."""
        losses = self.losses[: self.answers]
        return np.stack([self._scored(loss, y - answers[:, p]) for p, loss in enumerate(losses)], axis=1)

    def total(self, values: Values, Y: Values, weight: Values) -> float:
        """The score's loss of standardised answers (answers, n) for values Y (n, answers), with weights, summed."""
        return float(self.scores(values.T, Y[:, 0]).sum(axis=1) @ weight)

    @property
    def score_of_values(self) -> str:
        """The score: that which was asked for, or the one that fits the loss."""
        loss = self.losses[0]
        if self.scoring:
            return self.scoring
        if loss.name in LEVELLED:
            return PINBALL if loss.name == QUANTILE else "expectile"
        return MAE if loss.name in (ABSOLUTE, INSENSITIVE, HUBER) else MSE

    def _scored(self, loss: Loss, r: Values) -> Values:
        score = self.score_of_values
        if score == "expectile":
            return loss(r)
        if score == PINBALL:
            return Loss(QUANTILE, loss.level)(r)
        return np.abs(r) if score == MAE else np.square(r)

    def _decoded(self, values: Values, problem: Problem) -> Values:
        low, high = self._range(problem)
        decoded = self.training.decoded(values)
        if self.training.root_short is not None:
            decoded = decoded + self.training.root_short * self._are_answers(problem)
        return np.clip(decoded, low, high)

    def _clipped(self, values: Values, problem: Problem) -> Values:
        low, high = (self.training.encoded(end) for end in self._range(problem))
        return np.clip(values, low, high)

    def _range(self, problem: Problem) -> tuple[Values, Values]:
        """Where values of some problems, or of one, may lie, in the units of training."""
        (lowest, highest), answers = self.training.ends, self._are_answers(problem)
        return np.where(answers, self.training.low, lowest), np.where(answers, self.training.high, highest)

    def _are_answers(self, problem: Problem) -> NDArray[np.bool_]:
        """Whether some problems, or one, make answers, and not ends of intervals."""
        return np.asarray((np.arange(self.n_problems) < self.answers)[problem])


def regression_of(target: Target) -> Regression:
    """The target of a model of values; ModelError for one of classes."""
    if not isinstance(target, Regression):
        raise ModelError("the model predicts classes, and this is for values")
    return target
