"""Work on one cell: folds, selection, the final models.

It runs in a worker; everything here is a function of the seed.
"""

from __future__ import annotations

import time
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from localsvm.data.blocks.dealing import Mates
from localsvm.data.blocks.shared import ExamplesHandle, Handle
from localsvm.kernels.scratch import Scratch
from localsvm.methods.base import WHOLE, Fitted, Method, State
from localsvm.methods.cell import Cell
from localsvm.methods.fit_report import FitReport
from localsvm.methods.grids import Grid
from localsvm.selection.cross_validation import CellSelection, Kept, Pick, Point, Scores, finish
from localsvm.selection.search import Search
from localsvm.targets.base import Target
from localsvm.targets.classification import class_factors
from localsvm.threads import ALONE, Threads

LARGEST = float(np.finfo(np.float32).max)
MOST_CLASSES = 100  # with more, errors are not counted by class


@dataclass(frozen=True)
class CellReport:
    """Numbers of a trained cell for the summary.

    Attributes
    ----------
    rows : that it stands for, identical ones counted as often as they occur.
    seconds : of processor time.
    fit : what the method reports.
    weight : of the rows that were held out, for each part of the score (see Target.mass); empty where nothing was
        cross-validated.
    wrong : of this the weight that the chosen point decides wrongly, for each part.
    points : of the grid.
    chosen : the point of the grid that the model is of: the values of `CellResult.names`, then C on all rows of the
        cell where the grid has costs. Of several choices it is that in the middle.
    class_weight, class_wrong : the same of each class; empty where there are many, or nothing was cross-validated.
    ends : ends of the grid at which the chosen point lies, as messages name them.
    gains : of each choice, see `CellSelection.gains`.
    short : see `Target.short`; of the rows that `weight` is of.
    """

    rows: float
    seconds: float
    fit: FitReport
    weight: tuple[float, ...] = ()
    wrong: tuple[float, ...] = ()
    points: int = 1
    chosen: tuple[float, ...] = ()
    class_weight: tuple[float, ...] = ()
    class_wrong: tuple[float, ...] = ()
    ends: tuple[str, ...] = ()
    gains: tuple[float, ...] = ()
    short: float = 0.0


@dataclass(frozen=True)
class CellResult:
    """A trained cell: the arrays to keep, numbers for the summary, and its grid.

    Attributes
    ----------
    index, state, report : the cell's number, what the model file keeps of it, and numbers for the summary.
    names, settings : of the grid's parameters, and (settings, names) float64 their values.
    costs : (costs,) float64, C on all rows of the cell.
    loss : (settings, costs) float64 held-out losses, nan where a point was not scored; (0, 0) without cross-validation.
    best : (2,) int64, indices of the chosen setting and cost, or (choices, 2) where there are several; empty without
        cross-validation.
    values : (problems, rows) float32 held-out values of the chosen point; empty unless they are held.
    """

    index: int
    state: State
    report: CellReport
    names: tuple[str, ...]
    settings: NDArray[np.float64]
    costs: NDArray[np.float64]
    loss: NDArray[np.float64]
    best: NDArray[np.int64]
    values: NDArray[np.float32]


@dataclass(frozen=True)
class RunInputs:
    """Inputs that all cells of a coarse cell share; see `SharedCells` for how rows lie in shared memory.

    Attributes
    ----------
    method, target, folds, select, seed, class_weights, search : as the options say; see TrainingConfig.
    X, y : how to map all rows, (n, d) float32, and their labels, (n,) float64.
    mass, fresh : (n,) float64 of each row.
    mates : (n,) int64 numbers that rows have in common which stay together; None where the user does not say so.
    fit : whether cells are trained, or only cross-validated.
    holds : whether held-out values are kept, and one point is cross-validated for their sake.
    sharp : whether these are solved for as exactly as a model is.
    """

    method: Method
    target: Target
    folds: int
    select: str
    seed: int
    X: ExamplesHandle
    y: Handle
    mass: Handle
    class_weights: tuple[tuple[float, float], ...] = ()
    fresh: Handle | None = None
    fit: bool = True
    holds: bool = False
    sharp: bool = False
    search: Search = field(default_factory=Search)
    mates: Handle | None = None

    def cell(
        self, stream: tuple[int, ...], rows: slice, fold_rows: tuple[int, ...], behind: float,
        threads: Threads = ALONE, scratch: Scratch | None = None, room: int = 0,
    ) -> Cell:  # fmt: skip
        """The training cell of these rows, without a copy of them.

        stream : the name of its random numbers. fold_rows, behind, room : see `WorkUnit`.
        """
        y = self.y.open()[rows]
        return Cell(
            X=self.X.rows(rows),
            y=y,
            target=self.target,
            mass=self.mass.open()[rows],
            cost=class_factors(self.class_weights, y),
            folds=np.repeat(np.arange(len(fold_rows)), fold_rows),
            behind=behind,
            mates=None if self.mates is None else Mates(self.mates.open()[rows], whole=True),
            random=np.random.SeedSequence(self.seed, spawn_key=(*stream, 1)),
            threads=threads,
            scratch=scratch or Scratch(),
            room=room,
        )


@dataclass(frozen=True)
class WorkUnit:
    """Work for a worker: the cell of rows first .. last - 1, and what is to be done with it.

    Attributes
    ----------
    stream : the name of the cell's random numbers.
    fold_rows : how many rows of the cell each fold holds out.
    behind : how many rows its rows stand for.
    average_rows : the mean size of a cell.
    coarse, place : the number of the coarse cell, and what messages say of it.
    guides : whether the search of the cell is all that is asked for.
    search : of the cell, where it is known; see `CellSelection.guided`.
    trials : numbers of the trials to score (see `Scores`); where empty, the cell is trained, or only cross-validated.
    scores : of its grid, where the search is over: the cell is fitted at their best point.
    known : scores of trials that an interrupted run has scored, by their numbers.
    tells : whether the scores of each trial are yielded when they are there.
    threads : how many may work inside it.
    room : bytes that it may use beside what it needs.
    """

    inputs: RunInputs
    index: int
    first: int
    last: int
    stream: tuple[int, ...]
    fold_rows: tuple[int, ...]
    behind: float
    average_rows: float
    coarse: int = 0
    place: str = ""
    guides: bool = False
    search: Search | None = None
    trials: tuple[int, ...] = ()
    scores: Scores | None = field(default=None, repr=False)
    known: Mapping[int, Scores] = field(default_factory=dict, repr=False)
    tells: bool = False
    threads: int = 1
    room: int = 0

    def __str__(self) -> str:
        return f"cell {self.index}{self.place} ({self.last - self.first:,} rows)"

    def __call__(self, scratch: Scratch) -> Generator[Scores, None, Any]:
        """Do the work: yield scores if `tells`, and return a CellResult.

        If it `guides` the result is a Search, and if there are `trials` the Scores of these.

        scratch: the worker's.
        """
        started, inputs = time.process_time(), self.inputs
        with Threads(self.threads) as threads:
            rows = slice(self.first, self.last)
            cell = inputs.cell(self.stream, rows, self.fold_rows, self.behind, threads, scratch, self.room)
            grid = inputs.method.grid(cell, self.average_rows, inputs.folds)
            selection = CellSelection(inputs.method, cell, grid)
            scores = self.scores
            wanted = inputs.folds > 1 and (grid.n_points > 1 or inputs.holds or not inputs.fit)
            search = self.search or (selection.guided(inputs.search) if wanted else inputs.search)
            if self.guides:
                return search
            if self.trials:
                return selection.score(self.trials, search)
            if scores is None and wanted:
                scores = yield from self._searched(selection, search)
            if scores is not None:
                scores = selection.complete(scores, search)
                scores = selection.sharpened(scores) if inputs.sharp else scores
            # of one point the model is the same with and without -b 1; a threshold is of fold models
            chosen = scores if grid.n_points > 1 or cell.target.novel_share is not None else None
            fitted = selection.fit(chosen, inputs.select) if inputs.fit else Fitted({})
        return self._result(selection, search, scores, fitted, time.process_time() - started)

    def _searched(self, selection: CellSelection, search: Search) -> Generator[Scores, None, Scores]:
        steps = selection.steps(search, self.known)
        return (yield from steps) if self.tells else finish(steps)

    def _error(self, cell: Cell, kept: Kept) -> dict[str, Any]:
        """Weights of the rows that say what the error is, and of those that the best point decides wrongly: see report.

        They are of each part of the score, and of each class.
        """
        weight, wrong = cell.weight, kept.wrong
        if self.inputs.fresh is not None and kept.values is not None:
            weight = weight * self.inputs.fresh.open()[self.first : self.last]
            wrong = cell.target.wrong(kept.values[None], cell.y, cell.Y, weight)[0][0]
        mass = tuple(cell.target.mass(cell.y, weight).tolist())
        error: dict[str, Any] = {"weight": mass, "wrong": tuple(wrong.tolist())}
        if kept.values is None:
            return error
        error["short"] = cell.target.short(kept.values, cell.y, weight)
        if len(cell.target.counts(cell.y[:1])) > MOST_CLASSES:
            return error
        of, missed = cell.target.by_class(kept.values, cell.y, weight)
        return error | {"class_weight": tuple(of.tolist()), "class_wrong": tuple(missed.tolist())}

    def _result(
        self, selection: CellSelection, search: Search, scores: Scores | None, fitted: Fitted, seconds: float
    ) -> CellResult:
        cell, grid = selection.cell, selection.grid
        settings, costs = np.asarray(grid.settings, np.float64), grid.costs_for(cell.trained_on(WHOLE))
        picks = scores.chosen if scores else [Pick(Point(np.nan, np.nan, 0, 0), None)]
        at = picks[min(len(picks), cell.target.answers) // 2].best
        cost = float(costs[at.cost])
        chosen = (*settings[at.setting].tolist(), *([] if np.isnan(cost) else [cost]))
        report = CellReport(cell.rows, seconds, fitted.report, points=grid.n_points, chosen=chosen)
        loss, best, values = np.empty((0, 0)), np.empty(0, np.int64), np.empty((0, 0), np.float32)
        if scores is not None and scores.kept is not None:
            kept = _joined([pick.kept for pick in picks if pick.kept is not None])
            if self.inputs.holds and kept.values is not None:
                values = kept.values.clip(-LARGEST, LARGEST).astype(np.float32)
            loss = scores.table(cell.target.answers)
            best = np.asarray([[pick.best.setting, pick.best.cost] for pick in picks])
            best = best if len(picks) > 1 else best[0]
            report = replace(
                report, **self._error(cell, kept), ends=_ends(grid, at), gains=selection.gains(scores, search)
            )
        return CellResult(self.index, fitted.state, report, grid.names, settings, costs, loss, best, values)


def wrong_rows(target: Target, reports: Sequence[CellReport]) -> tuple[float, float]:
    """Weights of the rows that some cells decide wrongly, and of all, for a share to be shown; see `Target.counted`."""
    found = totals(reports)
    return (0.0, 0.0) if found is None else target.counted(*found)


def totals(reports: Sequence[CellReport]) -> tuple[NDArray[np.float64], NDArray[np.float64]] | None:
    """Weight (parts,) that all cells decide wrongly, and of all rows; None where nothing was held out."""
    held_out = [r for r in reports if r.weight]
    if not held_out:
        return None
    return np.sum([r.wrong for r in held_out], axis=0), np.sum([r.weight for r in held_out], axis=0)


def _joined(kept: Sequence[Kept]) -> Kept:
    """What is kept of all choices, as of one point."""
    if len(kept) == 1:
        return kept[0]
    values = [each.values for each in kept if each.values is not None]
    return Kept([], np.concatenate(values) if values else None, np.concatenate([each.wrong for each in kept]))


def _ends(grid: Grid, best: Point) -> tuple[str, ...]:
    """Ends of a grid at which its best point lies, where more beyond may be better."""
    ends = ["the largest C"] if grid.n_costs > 1 and best.cost == grid.n_costs - 1 else []
    if "gamma" in grid.names:
        values = np.asarray(grid.settings, np.float64)[:, grid.names.index("gamma")]
        chosen = values[best.setting]
        ends += [
            f"the {name} gamma"
            for name, end in (("smallest", values.min()), ("largest", values.max()))
            if chosen == end and values.min() < values.max()
        ]
    return tuple(ends)
