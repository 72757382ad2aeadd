"""The contract of a learning method, and what a cell hands to it and gets back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from localsvm.data.dataset import Examples
from localsvm.selection.search import Search
from localsvm.targets.classification import Scheme

State = dict[str, NDArray[Any]]


@dataclass(frozen=True)
class Cell:
    """The training rows of one cell.

    X (n, d) float32 rows; y (n,) float64 labels; scheme: which binary problems they are; Y (n, problems) float64 in
    {-1, 0, +1}: the targets of those problems, 0 where a row takes no part; count (n,) float64: how many identical rows
    stand behind this one; cost (n,) float64: factor on C (class weights); folds (n,) int: the fold that holds the row
    out, ascending; random: for what a method draws; threads: how many the work on this cell may use, no matter for what
    it gives.
    """

    X: Examples
    y: NDArray[np.float64]
    scheme: Scheme
    Y: NDArray[np.float64]
    count: NDArray[np.float64]
    cost: NDArray[np.float64]
    folds: NDArray[np.int64]
    random: np.random.SeedSequence = field(default_factory=partial(np.random.SeedSequence, 0))
    threads: int = 1

    @property
    def weight(self) -> NDArray[np.float64]:
        """Per-row factor on C and on the selection's loss."""
        return self.count * self.cost


@dataclass(frozen=True)
class Grid:
    """Points of a cell's hyper-parameter grid: lines, along each of which the cost grows.

    lines: the values of the parameters other than the cost, in the order of their `names`; smoothest first, as gammas
    ascending. Without other parameters names is () and lines is ((),). lambdas descending or costs ascending: with
    lambdas, a problem trained on n rows gets C = 1 / (2 lambda n), so that refitting on more rows keeps lambda.
    """

    lines: tuple[tuple[float, ...], ...]
    names: tuple[str, ...] = ("gamma",)
    lambdas: tuple[float, ...] = ()
    costs: tuple[float, ...] = ()

    @property
    def ordered(self) -> bool:
        """Whether lines that follow each other are neighbours: they are the values of a single parameter."""
        return len(self.names) == 1

    @property
    def n_costs(self) -> int:
        """Points along the cost axis."""
        return len(self.lambdas) or len(self.costs)

    @property
    def n_points(self) -> int:
        """Points in all; a single one needs no cross-validation."""
        return len(self.lines) * self.n_costs

    def line(self, index: int) -> dict[str, float]:
        """The parameters of a line, by name."""
        return dict(zip(self.names, self.lines[index], strict=True))

    def costs_for(self, n: float) -> NDArray[np.float64]:
        """C of each point along the cost axis, ascending, for a problem trained on n rows."""
        if self.lambdas:
            return np.asarray([1.0 / (2.0 * value * n) for value in self.lambdas])
        return np.asarray(self.costs, dtype=np.float64)


@dataclass
class Scores:
    """What cross-validation found for some lines of one cell's grid.

    loss (lines, costs): share of held-out rows that the combined decision of all binary problems gets wrong, weighted,
    nan where a point was not scored; best: (loss, tie, cost index, line index) of the best point, the order in which
    points are compared: equal losses go to the smaller tie (what a method puts there), then to the smaller cost, then
    to the earlier line; starts: what the method keeps of the best point for `fit`, an entry a binary problem.
    """

    loss: NDArray[np.float64]
    best: tuple[float, float, int, int]
    starts: list[Any]

    def merge(self, other: Scores) -> Scores:
        """Scores of both, which have no line in common; the order of merging does not matter."""
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


def option(default: Any, *flags: str, help: str, choices: tuple[str, ...] = ()) -> Any:
    """A method's field with its command-line option, which is read from the source: write literals."""
    return field(default=default, metadata={"flags": flags, "help": help, "choices": choices})


class Method(Protocol):
    """A learning method: a frozen dataclass whose fields are the options that determine its models.

    A field made by `option` has a command-line option. divides: without -P, data larger than the cell size are cut into
    Voronoi cells; where it is False, the method is meant for all rows, and they stay one cell.
    """

    name: ClassVar[str]
    divides: ClassVar[bool] = True
    gap_unit: ClassVar[str] = "C n"  # of the duality gaps in reports and models

    @property
    def remedy(self) -> str:
        """What a user can do about models that did not converge."""
        return "scale the data (--scale std), bound C (-C), or loosen the tolerance (-e)"

    def default_select(self, n_classes: int) -> str:
        """What `fit` is to do without --select: "vote" for two classes, "refit" for more."""
        return "vote" if n_classes == 2 else "refit"

    def grid(self, cell: Cell, average_rows: float, folds: int) -> Grid:
        """The grid of one cell; average_rows is the mean size of all cells.

        All cells of a run, even one of a single row, have the same names and as many lines.
        """

    def score_grid(self, cell: Cell, grid: Grid, lines: Sequence[int], search: Search) -> Scores:
        """Cross-validate grid.lines[i] for i in lines, each along the costs until the search ends it."""

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
