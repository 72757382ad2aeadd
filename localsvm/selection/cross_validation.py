"""The cross-validation of a cell: the one loop over the points of a grid, for every method and for streaming.

For each setting of the grid that the search asks for, all problems are solved without each fold, along ascending costs.
The point of the smallest held-out loss is chosen, or one for each problem by a search of its own (Target.choices): a
setting is scored for one choice at a time, which is called a trial. Ties go to the smaller tie of the target (for
classes the hinge loss), then to the smaller cost, then to the earlier setting. Of the ends of intervals a point is
chosen once more for each fold, by the rows of the others: so what chose a point does not judge it. See
docs/selection.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from localsvm.errors import RunError
from localsvm.methods.base import ALL, WHOLE, Fit, Fitted, Method, Prepared, Purpose, Solution, Start, System, View
from localsvm.methods.cell import Cell, Job
from localsvm.methods.grids import Grid
from localsvm.naming import opt
from localsvm.selection.search import Begin, Search, beside
from localsvm.selection.tally import Tally

Floats = NDArray[np.float64]
ROUGHNESS = 10.0  # solutions that score a grid are only compared by their held-out errors


class Point(NamedTuple):
    """A point of a grid, in the order in which points are compared."""

    loss: float
    tie: float
    cost: int  # its index along the costs
    setting: int


class Kept(NamedTuple):
    """Part of a scored point that stays.

    Attributes
    ----------
    starts : one a job, for the final solutions; empty where these begin from nothing.
    values : (values, n) float64 held-out values (Target.n_values), None where they were not held in memory.
    wrong : (parts,) float64 weight that is decided wrongly, see Target.wrong.
    """

    starts: list[Start]
    values: Floats | None
    wrong: Floats = np.zeros(1)


class Pick(NamedTuple):
    """The best point of a choice, and what stays of it; None where only the scores were kept."""

    best: Point
    kept: Kept | None


NOTHING = Point(np.inf, np.inf, 0, 0)


@dataclass
class Scores:
    """Scores that cross-validation found at some settings of one cell's grid.

    Attributes
    ----------
    loss : (trials, costs) float64, the held-out loss of each point (Target.loss: for classes the weighted share of
        rows that the combined decision gets wrong, or 1 - TPR x TNR), nan where a point was not scored. Trials are all
        settings for the first choice, then for the next.
    best : the best point, and `kept` what stays of it; None where only the scores were kept (see `complete`).
    others : the same of further choices, where there are several.
    crossed : how many of these, the last ones, are of folds (Target.crossed), and do not make the model.
    """

    loss: Floats
    best: Point = NOTHING
    kept: Kept | None = field(default_factory=lambda: Kept([], None))
    others: list[Pick] = field(default_factory=list)
    crossed: int = 0

    @classmethod
    def of(cls, grid: Grid, choices: int = 1, crossed: int = 0) -> Scores:
        """Scores of a grid of which nothing is scored yet."""
        loss = np.full((choices * len(grid.settings), grid.n_costs), np.nan)
        others = [Pick(NOTHING, Kept([], None)) for _ in range(choices + crossed - 1)]
        return cls(loss, others=others, crossed=crossed)

    @property
    def picks(self) -> list[Pick]:
        """The best point of each choice."""
        return [Pick(self.best, self.kept), *self.others]

    @property
    def chosen(self) -> list[Pick]:
        """The best points that make the model."""
        return self.picks[: len(self.others) + 1 - self.crossed]

    @property
    def settings(self) -> int:
        """Number of settings of the grid."""
        return len(self.loss) // len(self.chosen)

    @property
    def trial(self) -> int:
        """The first trial that was scored."""
        return int(np.argmax(~np.isnan(self.loss).all(axis=1)))

    def of_choice(self, choice: int) -> Floats:
        """Losses (settings, costs) of a choice."""
        return self.loss[choice * self.settings : (choice + 1) * self.settings]

    def table(self, answers: int) -> Floats:
        """Losses (settings, costs), the mean over so many choices; nan where one of them was not scored."""
        return np.asarray(self.loss.reshape(-1, self.settings, self.loss.shape[1])[:answers].mean(axis=0))

    def picked(self, picks: Sequence[Pick]) -> Scores:
        """The scores with other best points."""
        return replace(self, best=picks[0].best, kept=picks[0].kept, others=list(picks[1:]))

    @property
    def unkept(self) -> Scores:
        """The scores without what is kept of the best points."""
        return self.picked([pick._replace(kept=None) for pick in self.picks])

    def merge(self, other: Scores) -> Scores:
        """Scores of both, which have no trial in common; the order of merging does not matter."""
        pairs = zip(self.picks, other.picks, strict=True)
        loss = np.where(np.isnan(self.loss), other.loss, self.loss)
        return replace(self, loss=loss).picked([a if a.best <= b.best else b for a, b in pairs])


class Path(Protocol):
    """The solutions of a trial along the costs, found for `costs_at_once` costs at a time."""

    costs_at_once: int

    def advance(self, first: int, last: int) -> list[tuple[float, float]]:
        """Solve for the costs first .. last - 1, next to those before; (loss, tie) of each of these points."""

    def of_folds(self, cost: int) -> list[tuple[int, float, float]]:
        """The further choices that are made by such a point, and its (loss, tie) for them; see Target.crossed."""

    def keep(self, cost: int, choice: int) -> Kept:
        """Part that stays of a point for a choice; its cost was among the last ones advanced by."""


def score(
    grid: Grid, trials: Sequence[int], search: Search, path_at: Callable[[int, int], Path], choices: int = 1,
    crossed: int = 0,
) -> Scores:  # fmt: skip
    """Score some settings of a grid, each along the costs until the search ends it.

    Parameters
    ----------
    trials : their numbers; see `Scores`.
    path_at : makes the path of the setting with this index for a choice.
    choices, crossed : how many points are chosen, and how many more for folds.
    """
    scores = Scores.of(grid, choices, crossed)
    picks = scores.picks
    for trial in trials:
        k, i = divmod(trial, len(grid.settings))
        path = None  # the one before goes first: two do not fit into the memory that a worker is given
        path, loss = path_at(i, k), scores.loss[trial]
        ties = np.full_like(loss, np.nan)
        while costs := search.of(k).next_costs(loss, ties):
            for a in costs[:: path.costs_at_once]:
                points = path.advance(a, min(costs.stop, a + path.costs_at_once))
                for c, (held_out_loss, tie) in enumerate(points, start=a):
                    if math.isnan(held_out_loss + tie):  # it would count as not scored, for ever
                        raise RunError(
                            f"a held-out loss is not a number; scale the data ({opt.scale('std')}) or bound C "
                            f"({opt.cost})"
                        )
                    loss[c], ties[c] = held_out_loss, tie
                    for p, own, own_tie in [(k, held_out_loss, tie), *path.of_folds(c)]:
                        if (point := Point(own, own_tie, c, i)) < picks[p].best:
                            picks[p] = Pick(point, path.keep(c, p))
    return scores.picked(picks)


def search_grid(
    grid: Grid,
    search: Search,
    score_one: Callable[[Search, int], Scores],
    known: Mapping[int, Scores] | None = None,
    choices: int = 1,
    crossed: int = 0,
) -> Generator[Scores, None, Scores]:
    """Run all rounds of the search, trial by trial.

    Parameters
    ----------
    score_one : scores the trial of this number; the search knows the rounds before.
    known : scores of trials that were scored before, by number. They are taken when the search comes to them: it must
        go the way that it would have gone without them.
    choices, crossed : how many points are chosen, and how many more for folds.

    Yields
    ------
    The scores of each trial that was not known, without what is kept; returns those of all together.
    """
    scores, known = Scores.of(grid, choices, crossed), known or {}
    while trials := next_trials(search, scores, grid.ordered):
        search = after(search, scores)
        for trial in trials:
            if trial in known:
                scores = scores.merge(known[trial])
                continue
            one = score_one(search, trial)
            yield one.unkept
            scores = scores.merge(one)
    return scores


def next_trials(search: Search, scores: Scores, ordered: bool) -> list[int]:
    """The trials of the next round of the search of each choice, those of one setting together; none at the end.

    ordered : see Grid.
    """
    n, found = scores.settings, []
    for k, pick in enumerate(scores.chosen):
        if search.kind == "full" or pick.best.loss + pick.best.tie > 0.0:  # else nothing is better
            found += [(i, k) for i in search.of(k).next_settings(scores.of_choice(k), ordered, pick.best.setting)]
    return [k * n + i for i, k in sorted(found)]


def after(search: Search, scores: Scores) -> Search:
    """The search after rounds of these scores; see `Search.after`."""
    parts = tuple(search.of(k).after(scores.of_choice(k)) for k in range(len(scores.chosen)))
    return parts[0] if len(parts) == 1 else replace(search, parts=parts)


def finish(search: Generator[Scores, None, Scores]) -> Scores:
    """The result of a search whose steps nobody watches."""
    while True:
        try:
            next(search)
        except StopIteration as end:
            scores: Scores = end.value
            return scores


class CellSelection:
    """Chooses a point of one cell's grid by cross-validation, and fits the cell there.

    What the settings of the grid share is prepared once, however many rounds there are.

    Attributes
    ----------
    choices : how many points are chosen, and how many more for folds; see `Scores`.
    """

    def __init__(self, method: Method, cell: Cell, grid: Grid) -> None:
        self.method, self.cell, self.grid = method, cell, grid
        self._prepared: dict[tuple[int, int], Prepared] = {}
        self._voted: list[Fit] | None = None
        self.choices = cell.target.choices, cell.target.crossed(cell.n_folds)

    def search(self, search: Search) -> Scores:
        """Cross-validate the grid: all rounds of the search."""
        return finish(self.steps(search))

    def guided(self, search: Search) -> Search:
        """The search, or for a grid that is guided one that begins where that of a part of the rows ends, or is usual.

        Fewer rows want a smoother function, so that the optimum lies at larger costs and gammas for all rows; but it is
        near. Most points are scored by the part, where this takes next to no time.
        """
        step = search.guide_step(self.grid, len(self.cell.y))
        if not step:
            return search
        if search.usual:
            return search.beginning([Begin(self.grid.nearest(value), cost) for value, cost in search.usual])
        part = CellSelection(self.method, self.cell.thinned(step), self.grid)
        found = part.search(replace(search, part=True))
        bests, values = [pick.best for pick in found.chosen], self.grid.settings
        begins = [Begin(best.setting, best.cost, best.loss, value=values[best.setting][0]) for best in bests]
        if self.cell.target.score_of_values is not None:  # so few errors of classes say nothing of other settings
            begins = [
                begin._replace(beside=beside(found.of_choice(k), begin.setting)) for k, begin in enumerate(begins)
            ]
        return search.beginning(begins)

    def gains(self, scores: Scores, search: Search) -> tuple[float, ...]:
        """Factors (choices,), at most 1, by which losses shrink from models of the folds to those of all rows.

        The loss of the part that guided the search, and that of the cell, are two points of a learning curve, which is
        taken for a power of the number of rows. None where nothing guided the search, or there are classes.
        """
        step, folds = search.guide_step(self.grid, len(self.cell.y)), self.cell.n_folds
        begins = [search.of(k).begin for k in range(len(scores.chosen))]
        if not step or None in begins or self.cell.target.score_of_values is None:
            return ()
        power = math.log(folds / (folds - 1)) / math.log(step)
        losses = [(pick.best.loss, begin.loss) for pick, begin in zip(scores.chosen, begins, strict=True) if begin]
        return tuple(min(1.0, of_all / of_part) ** power if of_part > 0.0 else 1.0 for of_all, of_part in losses)

    def steps(self, search: Search, known: Mapping[int, Scores] | None = None) -> Generator[Scores, None, Scores]:
        """Cross-validate the grid trial by trial, without those that are known; see `search_grid`."""
        n_settings = len(self.grid.settings)
        score_one = partial(self._score_one, n_settings)
        return search_grid(self.grid, search, score_one, known, *self.choices)

    def score(self, trials: Sequence[int], search: Search) -> Scores:
        """Cross-validate some trials."""
        return self._score(trials, search, len(trials))

    def complete(self, scores: Scores, search: Search) -> Scores:
        """Scores with what stays of their best point, whose setting is scored again if that was not kept.

        Solutions depend on the way along the costs, so this goes all of it: the bits are those of a run that was not
        interrupted.
        """
        if all(pick.kept is not None for pick in scores.picks):
            return scores
        n, again = scores.settings, Scores.of(self.grid, *self.choices)
        problems = [*range(len(scores.chosen)), *self._of_further]
        for k, i in sorted({(k, pick.best.setting) for k, pick in zip(problems, scores.picks, strict=True)}):
            again = again.merge(self.score([k * n + i], search.of(k).before(scores.of_choice(k), i)))
        if [pick.best for pick in again.picks] != [pick.best for pick in scores.picks]:
            raise RunError(f"the scores in the journal are not those of this data; give {opt.force} to start afresh")
        return scores.picked(again.picks)

    def sharpened(self, scores: Scores) -> Scores:
        """The scores, with held-out values by models that are solved for as those that predict.

        Rough solutions decide as exact ones do, but their values may be larger: at a small gamma, a float32 gradient
        that began at large values keeps their rounding. Probabilities made of them would be too sure of themselves.
        Those of the ends of intervals are of the points that the other folds chose.
        """
        cell, picks = self.cell, scores.chosen
        fits = {(fit.job.problem, fit.job.fold): fit for fit in (*self._fits(scores, "vote"), *self._crossed(scores))}
        values = np.concatenate([pick.kept.values for pick in picks if pick.kept and pick.kept.values is not None])
        for fold in range(cell.n_folds):
            mine = [fit for (_, of), fit in fits.items() if of == fold and fit.solution is not None]
            rows = cell.held_out(fold)
            if not mine:
                continue
            state = self.method.pack(cell, mine).state
            exact = self.method.predictor(state, cell.target, cell.X.shape[1]).decision_function(cell.X[rows])
            for problem in {fit.job.problem for fit in mine}:
                every = slice(None) if problem == ALL else problem
                values[every, rows] = exact[:, every].T
        parts = np.split(values, len(picks))
        pairs = zip(picks, parts, strict=True)
        sharp = [p._replace(kept=p.kept and p.kept._replace(values=part)) for p, part in pairs]
        return scores.picked([*sharp, *scores.picks[len(sharp) :]])

    def fit(self, scores: Scores | None, select: str) -> Fitted:
        """The model of the best point.

        Parameters
        ----------
        scores : of the grid, complete; None where it has one point, which is then solved on the whole cell.
        select : "vote" for the fold models, "refit" for one model of the whole cell.
        """
        return self.method.pack(self.cell, self._fits(scores, select))

    def _fits(self, scores: Scores | None, select: str) -> list[Fit]:
        """Solutions of the best points, with their jobs and systems; those of the folds are found once."""
        if select == "vote" and scores is not None and self._voted is not None:
            return self._voted
        vote = select == "vote" and scores is not None
        jobs, choices = self.fold_jobs if vote else self.jobs([WHOLE]), self.cell.target.choices
        fits: dict[int, Fit] = {}
        for k, pick in enumerate(scores.chosen if scores else [Pick(Point(np.nan, np.nan, 0, 0), None)] * choices):
            mine = [i for i, job in enumerate(jobs) if choices == 1 or job.problem == k]
            fits |= self._solved(jobs, mine, pick)
        found = [fits[i] for i in sorted(fits)]
        self._voted = found if vote else None
        return found

    def _crossed(self, scores: Scores) -> list[Fit]:
        """Solutions without a fold, at the points that the other folds chose, where these are not the best ones."""
        chosen, jobs = scores.chosen, self.fold_jobs
        fits: dict[int, Fit] = {}
        first = len(jobs) - scores.crossed
        for i, (problem, pick) in enumerate(zip(self._of_further, scores.picks[len(chosen) :], strict=True), first):
            if pick.best[2:] != chosen[problem].best[2:]:
                fits |= self._solved(jobs, [i], pick)
        return list(fits.values())

    def _solved(self, jobs: list[Job], mine: Sequence[int], pick: Pick) -> dict[int, Fit]:
        """Solutions at a point of some of the jobs, by their places, which begin from what is kept of it."""
        point, known = pick.best, pick.kept.starts if pick.kept else None
        cost = float(self.grid.costs_for(self.cell.trained_on(WHOLE))[point.cost])
        purpose = Purpose(cost, final=True)
        at_point: list[Job] = [job.at(point.cost, point.cost + 1) for job in jobs]
        fits: dict[int, Fit] = {}
        for view, places in self.views(at_point, mine).items():
            system, some = self.system(view, point.setting, purpose, 1), [at_point[i] for i in places]
            of_folds = bool(known) and some[0].fold != WHOLE
            starts = [known[i] if known and of_folds else self._whole_start(system, known, i) for i in places]
            solutions = system.final(some, starts)
            fits |= {i: Fit(system, at_point[i], each) for i, each in zip(places, solutions, strict=True)}
        return fits

    def jobs(self, folds: Sequence[int]) -> list[Job]:
        """All problems without each of some folds, problem by problem, for all costs."""
        problems = [ALL] if self.method.joint else range(self.cell.target.n_problems)
        return [Job(p, k, self._costs(p, k)) for p in problems for k in folds]

    @cached_property
    def fold_jobs(self) -> list[Job]:
        """The jobs of cross-validation: all problems without each fold."""
        return self.jobs(range(self.cell.n_folds))

    def views(self, jobs: Sequence[Job], chosen: Sequence[int] | None = None) -> dict[tuple[int, int], list[int]]:
        """Places of the jobs that share what may be looked at to prepare, by (fold, problem) of that.

        chosen : places of the jobs that are asked about; None for all.
        """
        by_view: dict[tuple[int, int], list[int]] = {}
        for i in range(len(jobs)) if chosen is None else chosen:
            job = jobs[i]
            fold = WHOLE if self.method.sees == "rows" else job.fold
            by_view.setdefault((fold, job.problem if self.method.sees == "problem" else ALL), []).append(i)
        return by_view

    def system(self, view: tuple[int, int], setting: int, purpose: Purpose, settings: int) -> System:
        """The system of a view (fold, problem) at the setting of this index, one of so many settings."""
        if view not in self._prepared:
            # systems of several views are in use at the same time: none may overwrite another one's kernel
            scratch = self.cell.scratch if self.method.sees == "rows" else self.cell.scratch.part(view)
            self._prepared[view] = self.method.prepare(self.cell, View(*view, settings, scratch))
        return self._prepared[view].at(self.grid.setting(setting), purpose)

    def _score(self, trials: Sequence[int], search: Search, n_settings: int) -> Scores:
        return score(self.grid, trials, search, lambda i, k: CellPath(self, i, n_settings, k), *self.choices)

    def _score_one(self, n_settings: int, search: Search, trial: int) -> Scores:
        return self._score([trial], search, n_settings)

    @property
    def _of_further(self) -> list[int]:
        """The problem of each further choice; jobs are in the same order, and those of the ends of intervals last."""
        jobs = self.fold_jobs
        return [job.problem for job in jobs[len(jobs) - self.choices[1] :]]

    def _costs(self, problem: int, fold: int) -> Floats:
        rows = self.cell.trained_on(fold, problem if self.grid.of_problem else ALL)
        return self.grid.costs_for(rows or 1.0)

    def _whole_start(self, system: System, known: list[Start] | None, problem: int) -> Start | None:
        """Start of a job of all rows, of which there is one a problem."""
        n = self.cell.n_folds
        return system.whole_start(known[problem * n : (problem + 1) * n]) if known else None


class CellPath:
    """The solutions of one cell's jobs along the costs, at one setting of its grid; of several choices those of one."""

    def __init__(self, selection: CellSelection, setting: int, n_settings: int, choice: int = 0) -> None:
        self._selection, self.costs_at_once = selection, selection.method.costs_at_once
        self._choice, self._several = choice, selection.choices[0] > 1
        purpose = Purpose(float(selection.grid.costs_for(selection.cell.trained_on(WHOLE)).max()))
        self._jobs = selection.fold_jobs
        mine = [i for i, job in enumerate(self._jobs) if not self._several or job.problem == choice]
        self._systems = [
            (selection.system(view, setting, purpose, n_settings), places)
            for view, places in selection.views(self._jobs, mine).items()
        ]
        self._solutions: list[list[Solution]] = [[None]] * len(self._jobs)
        self._first = 0

    def advance(self, first: int, last: int) -> list[tuple[float, float]]:
        """Solve the jobs for the costs first .. last - 1; (loss, tie) of each of these points."""
        cell, jobs = self._selection.cell, [job.at(first, last) for job in self._jobs]
        self._values = np.empty(0)  # frees those of the costs before
        self._values = np.zeros((last - first, cell.target.n_values, len(cell.y)))  # 0 for problems of other choices
        self._first = first
        for system, places in self._systems:
            mine = [jobs[i] for i in places]
            solutions = system.solve(mine, [self._solutions[i][-1] for i in places], ROUGHNESS)
            system.held_out(mine, solutions, self._values)
            for i, job_solutions in zip(places, solutions, strict=True):
                self._solutions[i] = job_solutions
        self._tally = self._tallied(slice(None), slice(None))
        return [self._of_choice(self._tally, c) for c in range(last - first)] if self._several else self._tally.losses()

    def of_folds(self, cost: int) -> list[tuple[int, float, float]]:
        """A choice for each fold, by the rows of the others, where values of this problem make intervals."""
        c, cell, (choices, crossed) = cost - self._first, self._selection.cell, self._selection.choices
        end = self._choice - cell.target.answers
        if end < 0 or not crossed:
            return []
        others = [self._tallied(slice(c, c + 1), cell.folds != fold) for fold in range(cell.n_folds)]
        first = choices + end * cell.n_folds
        return [(first + fold, *self._of_choice(tally, 0)) for fold, tally in enumerate(others)]

    def _tallied(self, points: slice, rows: slice | NDArray[np.bool_]) -> Tally:
        cell, tally = self._selection.cell, Tally(self._selection.cell.target)
        tally.add(self._values[points, :, rows], cell.y[rows], cell.Y[rows], cell.weight[rows])
        return tally

    def _of_choice(self, tally: Tally, point: int) -> tuple[float, float]:
        return tally.of_choices(point)[self._choice]

    def keep(self, cost: int, choice: int) -> Kept:
        """A start of each job of a choice, its held-out values, and what is wrong of them; of a fold starts alone."""
        c, (choices, crossed), n = cost - self._first, self._selection.choices, len(self._jobs)
        only = n - crossed + choice - choices  # the place of a fold's only job
        starts: list[Start] = [None] * n
        for system, places in self._systems:
            for i in places:
                if choice < choices or i == only:
                    starts[i] = system.start(self._solutions[i][c])
        if choice >= choices:
            return Kept(starts, None)
        part = slice(choice, choice + 1) if self._several else slice(None)
        return Kept(starts, self._values[c][part].copy(), self._tally.wrong(c)[part])


def cross_validate(method: Method, cell: Cell, grid: Grid, search: Search) -> Scores:
    """Cross-validate a cell's grid: all rounds of the search."""
    return CellSelection(method, cell, grid).search(search)
