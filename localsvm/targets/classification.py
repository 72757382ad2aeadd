"""Classification: many classes from binary problems, one-vs-all or all-vs-all, over any binary method."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from localsvm.errors import ModelError
from localsvm.targets.base import Observed, Target, Values

SCHEMES = ("ova", "ava")
ACCURACY, TPR_TNR, MSE = "accuracy", "tpr-tnr", "mse"
SCORES = (ACCURACY, TPR_TNR, MSE)
LEAST_OTHERS = 50  # rows outside the largest class, if there are so many, of a part that guides a search


@dataclass(frozen=True)
class Classification(Target):
    """The binary problems of some classes.

    Two classes are one problem, the larger label positive. With `ova` problem k is class k (positive) against the rest;
    with `ava` the problems are all pairs (i, j), i < j, in lexicographic order, j positive.

    Attributes
    ----------
    labels : (classes,) float64, ascending.
    scheme : "ova" or "ava".
    scoring : what selection scores points by: "accuracy", or "tpr-tnr", the product of the recalls of all classes. With
        two classes these are the true positive and the true negative rate (Thomann et al. 2017, section 5.1). Or "mse",
        the mean square of how far decision values, clipped to [-1, 1], are from -1 or 1.
    """

    labels: NDArray[np.float64]
    scheme: str = "ova"
    scoring: str = ACCURACY

    @property
    def pairs(self) -> list[tuple[int, int]]:
        """Pairs (negative class, positive class), one a problem; -1 is all other classes."""
        k = len(self.labels)
        if k == 2:
            return [(0, 1)]
        if self.scheme == "ova":
            return [(-1, c) for c in range(k)]
        return [(i, j) for i in range(k) for j in range(i + 1, k)]

    @property
    def problems(self) -> list[tuple[float | None, float]]:
        """The labels of `pairs`; None is all other classes."""
        return [(None if i < 0 else float(self.labels[i]), float(self.labels[j])) for i, j in self.pairs]

    @property
    def n_problems(self) -> int:
        """Number of problems: one for two classes; with `ova` one a class, with `ava` one a pair."""
        return len(self.pairs)

    @property
    def problems_a_row(self) -> int:
        """Number of problems in which a row takes part."""
        k = len(self.labels)
        return 1 if k <= 2 else k if self.scheme == "ova" else k - 1

    def largest_part(self, class_rows: Sequence[int]) -> int:
        """Rows of the largest problem that leaves rows out, 0 where none does."""
        return sum(sorted(class_rows)[-2:]) if self.scheme == "ava" and len(self.labels) > 2 else 0

    def guessing(self, observed: Observed) -> float:
        """The share of rows that are not of the largest class."""
        return 1 - max(observed.class_rows) / observed.rows

    def codes(self, y: NDArray[np.float64]) -> NDArray[np.intp]:
        """Number (n,) of each row's class."""
        return np.searchsorted(self.labels, y)

    def counts(self, y: NDArray[np.float64]) -> tuple[int, ...]:
        """Number of the labels y (n,) that each class has."""
        return tuple(np.bincount(self.codes(y), minlength=len(self.labels)).tolist())

    def steps(self, y: NDArray[np.float64], step: int) -> NDArray[np.int64]:
        """The step for the largest class, and a smaller one for the others where they would be too few."""
        counts = self.counts(y)
        others = max(1, min(step, (len(y) - max(counts)) // LEAST_OTHERS))
        return np.where(self.codes(y) == np.argmax(counts), step, others)

    def encode(self, y: NDArray[np.float64]) -> NDArray[np.float64]:
        """Targets (n, problems) in {-1, 0, +1} for the labels y; 0 where a row takes no part."""
        codes = self.codes(y)
        pairs = self.pairs
        targets = np.zeros((len(y), len(pairs)))
        for p, (negative, positive) in enumerate(pairs):
            targets[:, p] = -1.0 if negative < 0 else -(codes == negative).astype(float)
            targets[codes == positive, p] = 1.0
        return targets

    def comparable(self, y: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Mask (n,) of the labels of a file that answers are compared with; nan is none."""
        return ~np.isnan(y)

    def vote(self, votes: NDArray[np.float64], problem: int, decisions: NDArray[np.float64]) -> None:
        """Add to the votes what one problem says.

        ova: the value, for the problem's class. ava: one vote for the class that won the pair, none at exactly 0, and,
        to break ties, a share of the value clipped to [-1, 1], so small that all shares together stay below half a
        vote.

        Parameters
        ----------
        votes : (n, classes) float64, added to in place.
        problem : its number.
        decisions : (n,) float64, its decision values.
        """
        i, j = self.pairs[problem]
        if i < 0 or len(self.labels) == 2:
            votes[:, j] += decisions
            return
        share = 0.4 / len(self.labels) * np.clip(decisions, -1, 1)
        votes[:, i] += (decisions < 0) - share
        votes[:, j] += (decisions > 0) + share

    def votes(self, decisions: NDArray[np.float64]) -> NDArray[np.float64]:
        """Votes (n, classes) of all problems, from (n, problems) decision values; see `vote`."""
        votes = np.zeros((len(decisions), len(self.labels)))
        for p in range(len(self.pairs)):
            self.vote(votes, p, decisions[:, p])
        return votes

    def decide(self, decisions: NDArray[np.float64]) -> NDArray[np.float64]:
        """Labels (n,) from (n, problems) decision values.

        One problem: positive above 0. ova: the largest value. ava: the most pairs won; ties go to the larger sum of
        values clipped to [-1, 1]. Further ties go to the smaller label.
        """
        if len(self.labels) == 1:
            return np.full(len(decisions), self.labels[0])
        return np.asarray(self.labels[self.votes(decisions).argmax(axis=1)])

    def wrong(self, values: Values, y: Values, Y: Values, weight: Values) -> tuple[Values, Values]:
        """Weight of the rows whose combined decision is wrong, of all or of each class; and the tie.

        The tie is the hinge loss of all binary problems, each clipped at 2, weighted. With "mse" the second part has
        the squares of these, in the mean over the problems of a row.
        """
        hinge, squares = np.zeros(len(values)), np.zeros(len(values))
        for p, target in enumerate(Y.T):
            slack = np.minimum(np.maximum(1.0 - values[:, p] * target, 0.0), 2.0) * (target != 0)
            hinge += [point @ weight for point in slack]
            if self.scoring == MSE:
                squares += [point @ weight for point in np.square(slack)]
        wrong, parts = self._chosen(values) != self.codes(y), self._parts(y, weight)
        counted = np.asarray([[point @ part for part in parts] for point in wrong])  # equal sums stay equal
        if self.scoring == MSE:
            counted = np.column_stack([counted, squares / self.problems_a_row])
        return counted, hinge[:, None]

    def by_class(self, values: Values, y: Values, weight: Values) -> tuple[Values, Values]:
        """Weights (classes,) of the rows of each class, and of those that are decided wrongly; see `Target`."""
        codes, chosen = self.codes(y), self._chosen(values[None])[0]
        count = len(self.labels)
        wrong = np.bincount(codes, weight * (chosen != codes), count)
        return np.asarray(np.bincount(codes, weight, count), np.float64), np.asarray(wrong, np.float64)

    def recalls(self, wrong: Values, mass: Values) -> list[float | None] | None:
        """Share of right rows of each class, None for one without rows; None where these are not scored."""
        return known_recalls(recalls(wrong, mass)) if self.scoring == TPR_TNR else None

    def mass(self, y: Values, weight: Values) -> Values:
        """Weight of all rows (1,), with "mse" (2,), or (classes,) of each class."""
        parts = self._parts(y, weight) * (2 if self.scoring == MSE else 1)
        return np.asarray([part.sum() for part in parts])

    def loss(self, wrong: Values, mass: Values) -> Values:
        """The share of wrong rows, the mean square, or 1 - the product of the recalls."""
        if self.scoring == TPR_TNR:
            return 1.0 - recall_product(recalls(wrong, mass))
        return np.asarray(wrong[:, -1] / mass[-1])

    def counted(self, wrong: Values, mass: Values) -> tuple[float, float]:
        """Weights of the wrong rows and of all rows."""
        return super().counted(wrong, mass) if self.scoring == TPR_TNR else (float(wrong[0]), float(mass[0]))

    def _parts(self, y: Values, weight: Values) -> list[Values]:
        """The weights of all rows, or for each class with those of the others 0."""
        if self.scoring != TPR_TNR:
            return [weight]
        codes = self.codes(y)
        return [np.where(codes == k, weight, 0.0) for k in range(len(self.labels))]

    def _chosen(self, values: Values) -> NDArray[np.intp]:
        """Numbers (points, n) of the classes that decision values (points, problems, n) decide for."""
        if len(self.labels) == 2:
            return (values[:, 0] > 0).astype(np.intp)
        votes = np.zeros((len(values), values.shape[2], len(self.labels)))
        for p in range(self.n_problems):
            for point in range(len(values)):
                self.vote(votes[point], p, values[point, p])
        return np.asarray(votes.argmax(axis=2))

    def combine(self, values: Values, problem: NDArray[np.generic]) -> Values:
        """A problem's only model, or the mean of its fold models' values clipped to [-1, 1]."""
        problem = problem.astype(np.intp)
        models = np.bincount(problem, minlength=self.n_problems)
        if (models == 1).all():
            return np.asarray(values[:, np.argsort(problem)])
        values = np.where(models[problem] > 1, np.clip(values, -1.0, 1.0), values)
        out = np.zeros((len(values), self.n_problems))
        for m, p in enumerate(problem):
            out[:, p] += values[:, m]
        return out / np.maximum(models, 1)


def class_factors(weights: Iterable[tuple[float, float]], y: Values) -> Values:
    """Factor (n,) on C of rows with the labels y (n,), by pairs of a label and its factor; 1 without one."""
    factors = np.ones(len(y))
    for label, factor in weights:
        factors[y == label] = factor
    return factors


def classes_of(target: Target) -> Classification:
    """The target of a model of classes; ModelError for one of values."""
    if not isinstance(target, Classification):
        raise ModelError("the model predicts values, and this is for classes")
    return target


def recalls(wrong: Values, mass: Values) -> Values:
    """Share (..., classes) float64 of each class that is decided rightly; nan for a class without rows."""
    shares = 1.0 - wrong / np.where(mass > 0.0, mass, np.nan)
    return np.asarray(np.maximum(shares, 0.0))  # sums of all rows may be a rounding apart


def recall_product(recalls: Values) -> Values:
    """Product (...) float64 of recalls (..., classes).

    A class without rows has no part: no answer to it can be right or wrong.
    """
    return np.asarray(np.nanprod(recalls, axis=-1))


def known_recalls(recalls: Values) -> list[float | None]:
    """Recalls as JSON can hold them: None for a class without rows."""
    return [None if np.isnan(recall) else float(recall) for recall in recalls]
