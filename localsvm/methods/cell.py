"""The training rows of one cell, and the problems to be solved on them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from localsvm.data.blocks.dataset import Examples, rows_of
from localsvm.data.blocks.dealing import Mates
from localsvm.kernels.scratch import Scratch
from localsvm.methods.base import ALL, WHOLE
from localsvm.targets.base import Target
from localsvm.threads import ALONE, Threads

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Cell:
    """The training rows of one cell.

    Attributes
    ----------
    X : (n, d) float32, dense or CSR, scaled; rows lie in the order of their folds.
    y : (n,) float64 labels, and `target` what they mean.
    mass : (n,) float64 > 0, the weights of the identical rows behind this one, summed; 1 for a row without either.
    cost : (n,) float64, factor on C (class weights).
    folds : (n,) int64 ascending, the fold that holds the row out.
    behind : how many rows these stand for; None where each has a mass of its number of rows.
    mates : rows that stay together wherever rows are held out, where the user says so; None else.
    random : for what a method draws; of this cell alone.
    threads, scratch, room : what the worker lends to the work on this cell, of no influence on its result; room are
        bytes beside those of `Method.memory`, for what would be computed again.
    """

    X: Examples
    y: Floats
    target: Target
    mass: Floats
    cost: Floats
    folds: NDArray[np.int64]
    behind: float | None = None
    mates: Mates | None = None
    random: np.random.SeedSequence = field(default_factory=partial(np.random.SeedSequence, 0))
    threads: Threads = field(default=ALONE, repr=False)
    scratch: Scratch = field(default_factory=Scratch, repr=False)
    room: int = field(default=0, repr=False)

    @cached_property
    def Y(self) -> Floats:
        """Values (n, problems) float64 that each problem is to learn.

        For classes they are -1, +1, or 0 where a row takes no part.
        """
        return self.target.encode(self.y)

    @cached_property
    def weight(self) -> Floats:
        """Factor (n,) of each row on C and on the loss of selection."""
        return self.mass * self.cost

    @cached_property
    def _factors(self) -> Floats | None:
        return self.target.factors(self.y)

    def weight_of(self, problem: int = ALL) -> Floats:
        """Factor (n,) of each row on C, and on the loss, of a problem; with ALL, without those of single problems."""
        return self.weight if self._factors is None or problem == ALL else self.weight * self._factors[:, problem]

    @cached_property
    def rows(self) -> float:
        """Number of rows, identical ones counted as often as they occur."""
        return float(self.mass.sum()) if self.behind is None else self.behind

    @cached_property
    def count(self) -> Floats:
        """Number of rows (n,) that each row stands for, where one of a mean weight counts as one."""
        return self.mass * (self.rows / float(self.mass.sum()))

    @property
    def n_folds(self) -> int:
        """Number of folds that hold rows out."""
        return int(self.folds.max()) + 1

    @cached_property
    def edges(self) -> NDArray[np.intp]:
        """Edges (folds + 1,): fold k holds out the rows edges[k] to edges[k + 1] - 1."""
        return np.searchsorted(self.folds, np.arange(self.n_folds + 1))

    def held_out(self, fold: int) -> slice:
        """The rows that a fold holds out; none for WHOLE."""
        return slice(0, 0) if fold == WHOLE else slice(int(self.edges[fold]), int(self.edges[fold + 1]))

    def part(self, rows: NDArray[np.intp]) -> Cell:
        """The cell of some rows, ascending, each of which stands for itself."""
        of_rows = {name: getattr(self, name)[rows] for name in ("y", "mass", "cost", "folds")}
        return replace(self, X=rows_of(self.X, rows), **of_rows, behind=None, mates=None)

    def thinned(self, step: int) -> Cell:
        """The cell of every step-th row of each fold, with buffers of its own.

        Of rows that the target wants more of there are more, which weigh so much less.
        """
        steps = self.target.steps(self.y, step)
        folds = [(int(a), steps[a:b]) for a, b in pairwise(self.edges)]
        some = np.sort(np.concatenate([a + np.flatnonzero(of == s)[::s] for a, of in folds for s in np.unique(steps)]))
        part = self.part(some)
        return replace(part, mass=part.mass * (steps[some] / step), scratch=Scratch())

    def training_weight(self, fold: int, problem: int = ALL) -> Floats:
        """Copy (n,) of `weight_of` a problem, with 0 for the rows that the fold holds out."""
        weight = self.weight_of(problem).copy()
        weight[self.held_out(fold)] = 0.0
        return weight

    def trained_on(self, fold: int, problem: int = ALL) -> float:
        """Number of rows, by their weights, that a problem is trained on without the fold; with ALL, those of the cell.

        This is n in C = 1 / (2 lambda n): a row of weight 2 is two rows, and a factor on all weights changes nothing.
        """
        taken = self.folds != fold
        return float(self.mass[taken if problem == ALL else taken & (self.Y[:, problem] != 0)].sum())


@dataclass(frozen=True)
class Job:
    """A problem without one fold, to be solved for ascending costs.

    Attributes
    ----------
    problem : its number, or ALL for a method that solves all classes at once.
    fold : the fold left out, or WHOLE.
    costs : (costs,) float64, C of LIBSVM's problem; nan where the grid has no costs.
    """

    problem: int
    fold: int
    costs: Floats

    def at(self, first: int, last: int) -> Job:
        """The job for the costs first .. last - 1 alone."""
        return Job(self.problem, self.fold, self.costs[first:last])


def fill_held_out(cell: Cell, jobs: Sequence[Job], out: Floats, values: Callable[[int, int, slice], Floats]) -> None:
    """Fill in decision values of the rows that the jobs' folds hold out; the jobs run on the cell's threads.

    Parameters
    ----------
    out : (costs, problems, n) float64.
    values : values(i, c, rows) by job i's solution for its cost number c: (rows,), or (rows, problems) for a job of
        ALL problems.
    """

    def work(i: int) -> None:
        job, rows = jobs[i], cell.held_out(jobs[i].fold)
        for c in range(len(job.costs)):
            if job.problem == ALL:
                out[c, :, rows] = values(i, c, rows).T
            else:
                out[c, job.problem, rows] = values(i, c, rows)

    cell.threads.map(work, len(jobs))
