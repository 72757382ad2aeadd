"""Many classes from binary problems: one-vs-all and all-vs-all over any binary method."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

SCHEMES = ("ova", "ava")


@dataclass(frozen=True)
class Scheme:
    """How the classes become binary problems.

    labels (classes,) float64 ascending. Two classes are one problem, the larger label positive. With `ova` problem k is
    class k (positive) against the rest; with `ava` the problems are all pairs (i, j), i < j, in lexicographic order, j
    positive. Fields i < 0 of `pairs` stand for "the rest".
    """

    labels: NDArray[np.float64]
    kind: str = "ova"

    @property
    def pairs(self) -> list[tuple[int, int]]:
        """(negative class, positive class) of each problem; -1 is all other classes."""
        k = len(self.labels)
        if k == 2:
            return [(0, 1)]
        if self.kind == "ova":
            return [(-1, c) for c in range(k)]
        return [(i, j) for i in range(k) for j in range(i + 1, k)]

    @property
    def problems(self) -> list[tuple[float | None, float]]:
        """The labels of `pairs`; None is all other classes."""
        return [(None if i < 0 else float(self.labels[i]), float(self.labels[j])) for i, j in self.pairs]

    @property
    def problems_a_row(self) -> int:
        """In how many problems a row takes part."""
        k = len(self.labels)
        return 1 if k <= 2 else k if self.kind == "ova" else k - 1

    def largest_part(self, class_rows: Sequence[int]) -> int:
        """Rows of the largest problem that leaves rows out, 0 where none does."""
        return sum(sorted(class_rows)[-2:]) if self.kind == "ava" and len(self.labels) > 2 else 0

    def targets(self, y: NDArray[np.float64]) -> NDArray[np.float64]:
        """(n, problems) targets in {-1, 0, +1} for the labels y."""
        codes = np.searchsorted(self.labels, y)
        pairs = self.pairs
        targets = np.zeros((len(y), len(pairs)))
        for p, (negative, positive) in enumerate(pairs):
            targets[:, p] = -1.0 if negative < 0 else -(codes == negative).astype(float)
            targets[codes == positive, p] = 1.0
        return targets

    def vote(self, votes: NDArray[np.float64], problem: int, decisions: NDArray[np.float64]) -> None:
        """Add to votes (n, classes) what the decision values (n,) of one problem say.

        ova: the value, for the problem's class. ava: one vote for the class that won the pair, none at exactly 0, and,
        to break ties, a share of the value clipped to [-1, 1], so small that all shares together stay below half a
        vote.
        """
        i, j = self.pairs[problem]
        if i < 0 or len(self.labels) == 2:
            votes[:, j] += decisions
            return
        share = 0.4 / len(self.labels) * np.clip(decisions, -1, 1)
        votes[:, i] += (decisions < 0) - share
        votes[:, j] += (decisions > 0) + share

    def decide(self, decisions: NDArray[np.float64]) -> NDArray[np.float64]:
        """(n,) labels from (n, problems) decision values.

        One problem: positive above 0. ova: the largest value. ava: the most pairs won; ties go to the larger sum of
        values clipped to [-1, 1]. Further ties go to the smaller label.
        """
        if len(self.labels) == 1:
            return np.full(len(decisions), self.labels[0])
        votes = np.zeros((len(decisions), len(self.labels)))
        for p in range(len(self.pairs)):
            self.vote(votes, p, decisions[:, p])
        return np.asarray(self.labels[votes.argmax(axis=1)])


def combine(values: NDArray[np.float64], problem: NDArray[np.generic], n_problems: int) -> NDArray[np.float64]:
    """(n, problems) decision values from those of models (n, models), model m belonging to problem[m]: those of a
    problem's only model, or the mean of its fold models' values clipped to [-1, 1].
    """
    problem = problem.astype(np.intp)
    votes = np.bincount(problem, minlength=n_problems)
    values = np.where(votes[problem] > 1, np.clip(values, -1.0, 1.0), values)
    out = np.zeros((len(values), n_problems))
    for m, p in enumerate(problem):
        out[:, p] += values[:, m]
    return out / np.maximum(votes, 1)
