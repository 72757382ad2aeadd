"""The contract of a learning method, and what a cell hands to it and gets back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from localsvm.data.dataset import Examples
from localsvm.multiclass import Scheme
from localsvm.selection.search import Search

State = dict[str, NDArray[Any]]


class Start(NamedTuple):
    """Fold models of one binary problem: coefficients (folds, its rows), found in so many iterations (folds,)."""

    coefficients: NDArray[np.float64]
    iterations: NDArray[np.int64]


@dataclass(frozen=True)
class Cell:
    """The training rows of one cell.

    X (n, d) float32 rows; y (n,) float64 labels; scheme: which binary problems they are; Y (n, problems) float64 in
    {-1, 0, +1}: the targets of those problems, 0 where a row takes no part; count (n,) float64: how many identical rows
    stand behind this one; cost (n,) float64: factor on C (class weights); folds (n,) int: the fold that holds the row
    out, ascending; threads: how many the work on this cell may use, no matter for what it gives.
    """

    X: Examples
    y: NDArray[np.float64]
    scheme: Scheme
    Y: NDArray[np.float64]
    count: NDArray[np.float64]
    cost: NDArray[np.float64]
    folds: NDArray[np.int64]
    threads: int = 1

    @property
    def weight(self) -> NDArray[np.float64]:
        """Per-row factor on C and on the selection's loss."""
        return self.count * self.cost


@dataclass(frozen=True)
class Grid:
    """Points of a cell's hyper-parameter grid, smoothest first: gammas ascending; lambdas descending or costs
    ascending.

    With lambdas, a problem trained on n rows gets C = 1 / (2 lambda n), so that refitting on more rows keeps lambda.
    """

    gammas: tuple[float, ...]
    lambdas: tuple[float, ...] = ()
    costs: tuple[float, ...] = ()

    @property
    def n_costs(self) -> int:
        """Points along the cost axis."""
        return len(self.lambdas) or len(self.costs)

    @property
    def n_points(self) -> int:
        """Points in all; a single one needs no cross-validation."""
        return len(self.gammas) * self.n_costs

    def costs_for(self, n: float) -> NDArray[np.float64]:
        """C of each point along the cost axis, ascending, for a problem trained on n rows."""
        if self.lambdas:
            return np.asarray([1.0 / (2.0 * value * n) for value in self.lambdas])
        return np.asarray(self.costs, dtype=np.float64)


@dataclass
class Scores:
    """What cross-validation found for some gammas of one cell.

    loss (gammas, costs): share of held-out rows that the combined decision of all binary problems gets wrong, weighted,
    nan where a point was not scored; best: (loss, tie, cost index, gamma index) of the best point, the order in which
    points are compared: equal losses go to the smaller tie (what a method puts there), then to the smaller cost, then
    to the smaller gamma; starts: what the method keeps of the best point for `fit`, an entry a binary problem.
    """

    loss: NDArray[np.float64]
    best: tuple[float, float, int, int]
    starts: list[Start]

    def merge(self, other: Scores) -> Scores:
        """Scores of both, which have no gamma in common; the order of merging does not matter."""
        pick = self if self.best <= other.best else other
        return Scores(np.where(np.isnan(self.loss), other.loss, self.loss), pick.best, pick.starts)


@dataclass
class Fitted:
    """A fitted cell: the arrays that the model file keeps, and what the summary reports."""

    state: State
    report: dict[str, float] = field(default_factory=dict)


class Predictor(Protocol):
    """Decision function of one cell, rebuilt from its saved state; bit-identical to the fitted one."""

    def decision_function(self, X: Examples) -> NDArray[np.float64]:
        """(n, problems) float64."""


class Method(Protocol):
    """A learning method: a frozen dataclass whose fields are the options that determine its models.

    A field's metadata (`flags`, `help`, `choices`) makes its command-line option.
    """

    name: ClassVar[str]

    def grid(self, cell: Cell, average_rows: float, folds: int) -> Grid:
        """The grid of one cell; average_rows is the mean size of all cells."""

    def score_grid(self, cell: Cell, grid: Grid, gammas: Sequence[int], search: Search) -> Scores:
        """Cross-validate the lines of grid.gammas[i], i in gammas, each until the search ends it."""

    def fit(self, cell: Cell, grid: Grid, scores: Scores | None, select: str) -> Fitted:
        """The model of the chosen point: fold models that vote, or one refitted on the whole cell.

        Without scores the grid has one point and the model is trained on the whole cell.
        """

    def predictor(self, state: State, n_problems: int, n_features: int) -> Predictor:
        """The decision function of a saved cell."""

    def memory(self, rows: int, features: int, weight: float, solutions: int, part: int) -> int:
        """Bytes that a worker needs for a cell of so many rows.

        weight: the largest factor on the cost of a row; solutions: of how many binary problems, fold by fold, a row is
        a part; part: the rows of the largest problem that leaves rows out, 0 where none does.
        """
