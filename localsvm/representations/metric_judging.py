"""Judges a geometry by the rows of a fold: kernel ridge regression of the other rows, in cells, predicts them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from localsvm.data.blocks.dataset import Dense, Examples, dense_rows, rows_of, sparse_examples
from localsvm.partition import create
from localsvm.representations.distances import FAR, mapped
from localsvm.representations.metric_learning import LEAST_RIDGE, MOST_RIDGE, Course, Floats, Rows, centre_of
from localsvm.representations.metric_rows import MetricRows
from localsvm.solvers._ridge import LeftOut

FOLDS = 3
CELL = 600  # rows of a cell
TUNED = 3  # cells, by which the scale and the ridge of a geometry are tuned, and at most half of all
SCALES, RIDGES = (0.0, -0.5, 0.5, 1.0), (-1.5, 0.0, 1.5)  # steps of their logarithms
RESCUES = (1.0, 10.0, 100.0)  # times the ridge, until the kernel matrix is regular in float32
Step = tuple[float, float]  # of the logarithms of the scale and of the ridge


class Judged(NamedTuple):
    """What the k rows of a fold say of a geometry.

    Attributes
    ----------
    losses : (2, k) float64, loss and error; see `MetricRows.losses`.
    values : (k, problems) float64, that the rows are given by those of other folds.
    """

    losses: Floats
    values: Floats


def judged(
    data: MetricRows, folds: NDArray[np.int64], fold: int, course: Course, map_: Floats, seed: int,
    check: Callable[[], None] = lambda: None, step: Step | None = None,
) -> tuple[Judged, Step]:  # fmt: skip
    """Loss, error and values of the k rows of a fold.

    All rows are divided into Voronoi cells after the map. In each, kernel ridge regression of the other rows gives
    values to those of the fold, which the loss is of. `check` is called before each cell.

    Parameters
    ----------
    step : by which the logarithms of the course's scale and ridge are changed; None for the step that
        `_tuned` finds by the rows of all folds in a few cells, which is returned.
    """
    numbers = np.arange(len(folds), dtype=np.float64)  # labels of their own, so that no rows are merged
    Z = _mapped(data.X, map_.astype(np.float32))
    partition = create(data.distance.cells)
    partition.fit(Z, numbers, CELL, np.random.default_rng(seed))
    cells = [cell.rows for cell in partition.training_cells()]
    solver = LeftOut(max(len(cell) for cell in cells), data.Y.shape[1], data.distance.kernel)
    judge = _Judge(data, folds, Z, course, solver, check)
    if step is None:
        order = np.random.default_rng(seed).permutation(len(cells))
        step = _tuned(judge, [cells[i] for i in order[: min(TUNED, max(1, len(cells) // 2))]])
    of = np.flatnonzero(folds == fold)
    losses, values = np.zeros((2, len(of))), np.zeros((len(of), data.Y.shape[1]))
    for cell in cells:
        found, some = judge(cell, step, [fold]), folds[cell] == fold
        place = np.searchsorted(of, cell[some])
        losses[:, place], values[place] = found.losses[:, some], found.values[some]
    return Judged(losses, values), step


@dataclass(frozen=True)
class _Judge:
    """Judge of the rows of a cell. Z are all rows, mapped."""

    data: MetricRows
    folds: NDArray[np.int64]
    Z: Examples
    course: Course
    solver: LeftOut
    check: Callable[[], None]

    def __call__(self, cell: Rows, step: Step, judging: Sequence[int]) -> Judged:
        """Loss, error and values of a cell's rows; only those of the judging folds are any good."""
        self.check()
        course, Y, of = self.course, self.data.Y[cell], self.folds[cell]
        z = dense_rows(self.Z, cell)
        z = (z - z.mean(axis=0, dtype=np.float64)).astype(np.float32) * np.float32(np.exp(course.scale + step[0]))
        ridge = float(np.clip(np.exp(course.ridge + step[1]), LEAST_RIDGE, MOST_RIDGE))
        solver, values = self.solver, np.zeros(Y.shape)
        target: Floats = Y[:, 0].astype(np.float64)
        others = target
        groups = [np.flatnonzero(of == fold) for fold in judging]
        for more in RESCUES:  # singular in float32 with all of them: nothing is known of these rows
            with suppress(ArithmeticError):
                solver.fill(z, Y, more * ridge)
                if self.data.levels:
                    others = target - solver.each()[:, 0]
                for fold, places, found in zip(judging, groups, solver.left_out(groups), strict=True):
                    alone = len(places) == len(cell)  # copies, which stay in one fold, may fill a cell
                    values[places] = self.data.mean(self.folds != fold) if alone else found
                break
        return Judged(self.data.losses(Y, values, others), values)

    def loss(self, cells: Iterable[Rows], step: Step) -> float:
        """The loss of all rows of some cells, each by those of other folds."""
        return sum(float(self(cell, step, range(FOLDS)).losses[0] @ self.data.weight[cell]) for cell in cells)


def _tuned(judge: _Judge, cells: list[Rows]) -> Step:
    """The steps of scale and ridge with the least loss in these cells: first the ridge, then the scale by it.

    They are found downhill, which mostly finds what looking at all steps finds, in two thirds of the time.
    """
    loss = cache(lambda scale, ridge: judge.loss(cells, (scale, ridge)))
    ridge = _downhill(lambda step: loss(0.0, step), RIDGES)
    return _downhill(lambda step: loss(step, ridge), SCALES), ridge


def _downhill(loss: Callable[[float], float], steps: Sequence[float]) -> float:
    """The step that the loss falls to from 0 on: up, or else down, as far as it falls."""
    best = 0.0
    for way in (sorted(step for step in steps if step > 0.0), sorted((s for s in steps if s < 0.0), reverse=True)):
        for step in way:
            if not loss(step) < loss(best):
                break
            best = step
        if best:
            break
    return best


def _mapped(X: Examples, L: Dense) -> Examples:
    """Rows mapped by a metric; sparse ones stay sparse, and dense ones are moved to a row amid them before."""
    if isinstance(X, np.ndarray):
        return mapped(X - centre_of(X), L)
    part = rows_of(X, np.arange(X.shape[0]))
    return sparse_examples(np.clip(part.data * L[part.indices], -FAR, FAR), part.indices, part.indptr, part.shape[1])
