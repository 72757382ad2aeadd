"""The work on one cell: folds, selection, the final models. Runs in a worker; everything here is a function of the
seed.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from localsvm.data.shared import ExamplesHandle, Handle
from localsvm.methods.base import Cell, Fitted, Grid, Method, Scores, State
from localsvm.selection.folds import ordered_folds
from localsvm.selection.search import Search
from localsvm.targets.classification import Scheme


@dataclass(frozen=True)
class CellResult:
    """A trained cell: the arrays to keep, numbers for the summary, and its grid.

    lines (lines, names): the values of the parameters that have these names; costs (costs,): C on the cell's rows; loss
    (lines, costs): held-out errors; best: indices of the chosen line and cost, empty without cross-validation.
    """

    index: int
    state: State
    report: dict[str, float]
    names: tuple[str, ...]
    lines: NDArray[np.float64]
    costs: NDArray[np.float64]
    loss: NDArray[np.float64]
    best: NDArray[np.int64]


@dataclass(frozen=True)
class Job:
    """What all cells of a run have in common. Rows lie in shared memory in the order of cells and their folds."""

    method: Method
    scheme: Scheme
    folds: int
    select: str
    seed: int
    average_rows: float
    X: ExamplesHandle
    y: Handle
    count: Handle
    class_weights: tuple[tuple[float, float], ...] = ()
    fit: bool = True
    search: Search = field(default_factory=Search)

    def cell(self, index: int, first: int, last: int) -> Cell:
        """The training cell of rows first .. last - 1: where dense, without a copy of them."""
        y = self.y.open()[first:last]
        cost = np.ones(len(y))
        for label, weight in self.class_weights:
            cost[y == label] = weight
        return Cell(
            self.X.rows(first, last), y, self.scheme, self.scheme.targets(y),
            self.count.open()[first:last], cost, ordered_folds(len(y), self.folds),
            np.random.SeedSequence(self.seed, spawn_key=(index, 1)),
        )  # fmt: skip


def select(method: Method, cell: Cell, grid: Grid, search: Search) -> Scores:
    """Cross-validate a cell: all rounds of the search."""
    score = partial(method.score_grid, cell, grid, search=search)
    scores = score(search.next_lines(np.full((len(grid.lines), 1), np.nan), grid.ordered))
    while lines := search.next_lines(scores.loss, grid.ordered):
        scores = scores.merge(score(lines))
    return scores


@dataclass(frozen=True)
class CellTask:
    """Train one cell, or score some lines of its grid for it, or go on from `scores`; `threads` may work inside it."""

    job: Job
    index: int
    first: int
    last: int
    lines: tuple[int, ...] = ()
    scores: Scores | None = field(default=None, repr=False)
    threads: int = 1

    def __call__(self) -> Any:
        started = time.process_time()
        cell = replace(self.job.cell(self.index, self.first, self.last), threads=self.threads)
        grid = self.job.method.grid(cell, self.job.average_rows, self.job.folds)
        if self.lines:
            return self.job.method.score_grid(cell, grid, self.lines, self.job.search)
        scores = self.scores
        if scores is None and (grid.n_points > 1 or not self.job.fit) and self.job.folds > 1:
            scores = select(self.job.method, cell, grid, self.job.search)
        fitted = self.job.method.fit(cell, grid, scores, self.job.select) if self.job.fit else Fitted({})
        return self._result(cell, grid, scores, fitted, time.process_time() - started)

    def split(self, loss: NDArray[np.float64], ordered: bool) -> list[CellTask]:
        """The next round of the search, a task a line, given the loss so far; none when the search has ended."""
        return [replace(self, lines=(i,), scores=None) for i in self.job.search.next_lines(loss, ordered)]

    def _result(self, cell: Cell, grid: Grid, scores: Scores | None, fitted: Fitted, seconds: float) -> CellResult:
        report = fitted.report | {"rows": float(cell.count.sum()), "seconds": seconds}
        costs = grid.costs_for(float(np.floor(cell.count.sum())))
        loss, best = np.empty((0, 0)), np.empty(0, np.int64)
        if scores is not None:
            c, line = scores.best[2:]
            loss, best = scores.loss, np.asarray([line, c])
            report["weight"] = float(cell.weight.sum())
            report["wrong"] = scores.best[0] * report["weight"]
        lines = np.asarray(grid.lines, np.float64)
        return CellResult(self.index, fitted.state, report, grid.names, lines, costs, loss, best)
