"""The contract of a target: what the labels mean to selection and prediction."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field

import numpy as np
from numpy.typing import NDArray

Values = NDArray[np.float64]


@dataclass(frozen=True)
class ValueRange:
    """Where the values of the training rows lie.

    Attributes
    ----------
    mean, deviation : weighted; the deviation is 1 where all values are equal.
    low, high : the least and the largest one.
    usual_mean, usual_deviation : both without what a few values far from all others add, where losses of values do not
        count that and it is much; None elsewhere. See `losses.usual_moments`.
    lowest, highest : between which the ends of intervals lie; None for low and high, or without intervals.
    root_mean, root_deviation : of square roots, which problems learn in place of the values; None where these are
        learned. See `representations.metric_roots`.
    root_short : what squares of learned roots fall short of values, in the mean; 0 where that is not known yet.
    """

    mean: float
    deviation: float
    low: float
    high: float
    usual_mean: float | None = None
    usual_deviation: float | None = None
    lowest: float | None = None
    highest: float | None = None
    root_mean: float | None = None
    root_deviation: float | None = None
    root_short: float | None = None

    @property
    def of_roots(self) -> bool:
        """Whether problems learn square roots."""
        return self.root_mean is not None

    @property
    def centre(self) -> float:
        """What is taken from values."""
        return self.mean if self.usual_mean is None else self.usual_mean

    @property
    def unit(self) -> float:
        """What values are divided by."""
        return self.deviation if self.usual_deviation is None else self.usual_deviation

    @property
    def ends(self) -> tuple[float, float]:
        """Numbers between which the ends of intervals lie."""
        return self.low if self.lowest is None else self.lowest, self.high if self.highest is None else self.highest

    def encoded(self, y: Values) -> Values:
        """What problems learn: values y, or their square roots, standardised; of any shape."""
        if self.root_mean is None or self.root_deviation is None:
            return np.asarray((y - self.centre) / self.unit)
        return np.asarray((np.sqrt(np.maximum(y, 0.0)) - self.root_mean) / self.root_deviation)

    def decoded(self, values: Values) -> Values:
        """Values of what problems give, which `encoded` is the inverse of."""
        if self.root_mean is None or self.root_deviation is None:
            return np.asarray(values * self.unit + self.centre)
        return np.square(np.maximum(values * self.root_deviation + self.root_mean, 0.0))

    def as_dict(self) -> dict[str, float]:
        """The range as JSON has it, without what is None."""
        return {name: value for name, value in asdict(self).items() if value is not None}


@dataclass(frozen=True)
class Observed:
    """What a pass over the rows has found of what is to be predicted.

    Attributes
    ----------
    rows : how many there are.
    labels, class_rows : (classes,) float64 ascending, and the rows of each; empty for values.
    values : where they lie; None for classes.
    """

    rows: int
    labels: Values = field(default_factory=lambda: np.empty(0))
    class_rows: tuple[int, ...] = ()
    values: ValueRange | None = None

    @classmethod
    def of_classes(cls, labels: Values, class_rows: Sequence[int]) -> Observed:
        """Classes, and the rows of each."""
        return cls(int(sum(class_rows)), labels, tuple(int(rows) for rows in class_rows))


class Target(ABC):
    """The problems that are solved for the labels, the loss that selection compares, and how values become answers."""

    @property
    @abstractmethod
    def n_problems(self) -> int:
        """Number of problems that are solved, and of decision values that a row has."""

    @property
    @abstractmethod
    def problems_a_row(self) -> int:
        """Number of problems in which a row takes part."""

    @property
    def answers(self) -> int:
        """Number of the first problems, which make the answers; more may make intervals."""
        return self.n_problems

    @property
    def n_values(self) -> int:
        """Number of values that a held-out row has: those of the problems, then more that points are compared by."""
        return self.n_problems

    @property
    def choices(self) -> int:
        """Number of points of a grid that are chosen: 1 for all problems together, or one for each of them."""
        return 1

    def crossed(self, folds: int) -> int:
        """Number of further choices: of each problem that makes intervals, one for each fold by the others' rows."""
        return (self.n_problems - self.answers) * folds if folds > 1 else 0

    @property
    def leaves_out(self) -> bool:
        """True where each problem is about some of the rows alone."""
        return self.problems_a_row < self.n_problems

    @abstractmethod
    def largest_part(self, class_rows: Sequence[int]) -> int:
        """Rows of the largest problem that leaves rows out, 0 where none does; class_rows: those of each class."""

    def is_solved(self, low: float, high: float) -> bool:
        """True where a problem has to be solved whose rows learn values from low to high; else these are the answer."""
        return low < 0.0 < high

    def in_cell(self, cell: int) -> Target:
        """The target with what answers of the cell of this number need."""
        return self

    @abstractmethod
    def encode(self, y: Values) -> Values:
        """Targets (n, problems) float64 that each problem is to learn, from the labels y (n,)."""

    def factors(self, y: Values) -> Values | None:
        """Factors (n, problems) on C and on the loss of rows with the labels y (n,); None where all are 1.

        A target with factors has as many choices as problems.
        """
        return None

    @property
    def score_of_values(self) -> str | None:
        """Name of the score of values; None for classes."""
        return None

    @property
    def novel_share(self) -> float | None:
        """Share of new rows that may be called novel, where all rows are of one kind; None elsewhere."""
        return None

    def guessing(self, observed: Observed) -> float | None:
        """The loss of the best answer that is the same for all rows; None where it is not known."""
        return None

    def counts(self, y: Values) -> tuple[int, ...]:
        """Number of the labels y (n,) that each class has; () where there are no classes."""
        return ()

    def strata(self, y: Values) -> Values:
        """Numbers (n,) of what rows are dealt out by to folds, so that each has its share: for classes the labels."""
        return y

    def steps(self, y: Values, step: int) -> NDArray[np.int64]:
        """One of so many rows (n,) like each one is in a part that guides a search: of most rows, one of `step`."""
        return np.full(len(y), step)

    @abstractmethod
    def wrong(self, values: Values, y: Values, Y: Values, weight: Values) -> tuple[Values, Values]:
        """Weight of the rows that some points of the grid decide wrongly.

        Parameters
        ----------
        values : (points, problems, n) float64 held-out decision values.
        y, weight : (n,) float64 labels, and weights of the rows.
        Y : (n, problems) float64, `encode` of the labels: whoever asks has it at hand.

        Returns
        -------
        wrong : (points, parts) float64, the weight of the rows of each part of the score that are decided wrongly.
        tie : (points, choices) float64, what selection compares points of equal loss by. Smaller is better.
        """

    def short(self, values: Values, y: Values, weight: Values) -> float:
        """By how much answers fall short of what they should be, summed with weights, where one constant mends that.

        values : (problems, n) decision values of the rows.
        """
        return 0.0

    @abstractmethod
    def by_class(self, values: Values, y: Values, weight: Values) -> tuple[Values, Values]:
        """Weights (classes,) of the rows of each class, and of those among them that are decided wrongly.

        values : (problems, n) decision values of the rows.
        """

    def counted(self, wrong: Values, mass: Values) -> tuple[float, float]:
        """Weights of the wrong rows and of all rows, whose share is shown while a run goes on; 0 for values.

        wrong, mass : (parts,), each summed over some rows.
        """
        return float(wrong.sum()), float(mass.sum())

    def error(self, wrong: Values, mass: Values) -> float | None:
        """What is wrong of all rows: for classes the share of their weight; None where no row counts.

        wrong, mass : (parts,), each summed over all rows.
        """
        of, all_rows = self.counted(wrong, mass)
        return of / all_rows if all_rows else None

    def recalls(self, wrong: Values, mass: Values) -> list[float | None] | None:
        """Share of right rows of each class, where points are scored class by class; None where they are not.

        wrong, mass : (parts,), each summed over all rows.
        """
        return None

    @abstractmethod
    def mass(self, y: Values, weight: Values) -> Values:
        """Weight (parts,) float64 of the rows of each part of the score; y, weight : (n,) float64."""

    @abstractmethod
    def loss(self, wrong: Values, mass: Values) -> Values:
        """Loss (points,) float64 that selection compares, from 0 to 1; smaller is better.

        wrong, mass : (points, parts) and (parts,), each summed over all rows.
        """

    @abstractmethod
    def combine(self, values: Values, problem: NDArray[np.generic]) -> Values:
        """Decision values of the problems from those of models.

        Parameters
        ----------
        values : (n, models) float64.
        problem : (models,) integers, the problem of each model; several models of one are its fold models.

        Returns
        -------
        (n, problems) float64; a row depends on the same row of `values` alone.
        """

    def bounded(self, values: Values) -> Values:
        """Decision values (..., problems) as they count where several are averaged: for classes clipped to [-1, 1]."""
        return np.clip(values, -1.0, 1.0)

    def shown(self, values: Values) -> Values:
        """Decision values as they are written beside answers: (n, columns), from those of the problems."""
        return values

    @abstractmethod
    def decide(self, values: Values) -> Values:
        """Answers (n,) from decision values (n, problems); (n, problems) where a row has several answers."""
