"""The contract of a target: what the labels mean to selection and prediction."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Values = NDArray[np.float64]


class Target(ABC):
    """The problems that are solved for the labels, the loss that selection compares, and how values become answers."""

    @property
    @abstractmethod
    def n_problems(self) -> int:
        """How many problems are solved, and decision values a row has."""

    @property
    @abstractmethod
    def problems_a_row(self) -> int:
        """In how many problems a row takes part."""

    @abstractmethod
    def largest_part(self, class_rows: Sequence[int]) -> int:
        """Rows of the largest problem that leaves rows out, 0 where none does."""

    @abstractmethod
    def encode(self, y: Values) -> Values:
        """(n, problems) float64: what each problem is to learn of the labels y (n,)."""

    @abstractmethod
    def losses(self, values: Values, y: Values, weight: Values) -> tuple[Values, Values]:
        """Two sums over n rows for each of some points of the grid, both (points,) float64: the weighted loss, which
        selection compares, and the tie, by which it compares points of equal loss.

        values (points, problems, n): held-out decision values; y (n,) labels; weight (n,).
        """

    @abstractmethod
    def combine(self, values: Values, problem: NDArray[np.generic]) -> Values:
        """(n, problems) decision values from those of models (n, models); model m belongs to problem[m]."""

    @abstractmethod
    def decide(self, values: Values) -> Values:
        """(n,) answers from decision values (n, problems)."""
