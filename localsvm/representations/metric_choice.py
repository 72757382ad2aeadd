"""Chooses a metric by rows that it did not see: the Euclidean one stays unless another is better by more than noise.

Candidates are learned without each of FOLDS folds and judged by it. A fold is a stretch of consecutive rows of each
class, as rows that follow each other may be alike, and what is only true of a stretch is then seen to fail.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from localsvm.data.dataset import Dense, Examples, dense_rows
from localsvm.partition import create
from localsvm.representations.metric import EUCLIDEAN
from localsvm.representations.metric_learning import LEAST_RIDGE, MOST_RIDGE, Course, Floats, Learner, Plan, Rows
from localsvm.solvers._ridge import RidgeLoss
from localsvm.threads import Threads

FOLDS = 5
CELL = 500  # rows of the cells in which metrics are judged
TUNED = 4  # cells, by which the scale and the ridge of a metric are tuned
SCALES, RIDGES = (-0.5, 0.0, 0.5, 1.0), (-1.5, 0.0, 1.5)  # steps of their logarithms
RISK = 0.05  # of leaving the Euclidean metric without a reason, all candidates together


class Labelled(NamedTuple):
    """Rows to learn from: X (n, d) scaled, Y (n, problems) float32 of -1 and +1, (n,) float64 weights in the loss."""

    X: Examples
    Y: Dense
    weight: Floats


@dataclass(frozen=True)
class Choice:
    """Which metric was chosen.

    Attributes
    ----------
    name : of the candidate; "none" for the Euclidean metric.
    best : of the candidate with the least loss, chosen or not.
    loss, error : (2,) the mean loss, and the share of wrong rows, by the Euclidean metric and by the best one.
    t : (2,) of the paired tests, for both: the mean difference of the folds over its standard error.
    bound : (2,) what each t has to be below.
    """

    name: str
    best: str
    loss: tuple[float, ...]
    error: tuple[float, ...]
    t: tuple[float, ...]
    bound: tuple[float, ...]


def consecutive_folds(codes: NDArray[np.intp]) -> NDArray[np.int64]:
    """(n,) the fold of each row: equal stretches of the rows of each class."""
    folds = np.empty(len(codes), np.int64)
    for code in np.unique(codes):
        rows = np.flatnonzero(codes == code)
        folds[rows] = np.arange(len(rows)) * FOLDS // len(rows)
    return folds


def choose(data: Labelled, rows: Rows, folds: NDArray[np.int64], plan: Plan, seed: int, threads: Threads) -> Choice:
    """Judge the candidates of a plan.

    Parameters
    ----------
    rows, folds : (m,) the rows that may be looked at, and their folds.
    plan : what is learned.
    threads : of no influence on the result.
    """

    def of_fold(fold: int) -> dict[str, Floats]:
        learner = Learner(data.X, data.Y, data.weight, rows[folds != fold], plan.sample)
        courses = {EUCLIDEAN: learner.beginning(plan.rng(seed, fold, 0))}
        courses |= plan.candidates(learner, courses[EUCLIDEAN], seed, fold)
        return {name: judged(data, rows, folds == fold, course, seed) for name, course in courses.items()}

    found = threads.map(of_fold, FOLDS)
    return tested({name: np.stack([judgement[name] for judgement in found]) for name in found[0]})


def tested(found: Mapping[str, Floats]) -> Choice:
    """The candidate of the least loss, if one-sided paired t-tests over the folds find both its loss and its error
    smaller than the Euclidean ones.

    The loss tells metrics apart by fewer rows than the error does; but where nearly all rows are right, it can fall
    without any gain. The level is RISK, for the loss over the number of candidates, as the best of them is tested.

    Parameters
    ----------
    found : for each metric (folds, 2), what `judged` gives.
    """
    from scipy.stats import t as student

    names = [name for name in found if name != EUCLIDEAN]
    best = min(names, key=lambda name: float(found[name][:, 0].mean()))
    difference = found[best] - found[EUCLIDEAN]
    folds = len(difference)
    spread = difference.std(axis=0, ddof=1) / np.sqrt(folds)
    t = np.divide(difference.mean(axis=0), spread, out=np.zeros(2), where=spread > 0.0)
    bound = student.ppf([RISK / len(names), RISK], folds - 1)
    loss, error = (tuple(float(found[name][:, i].mean()) for name in (EUCLIDEAN, best)) for i in range(2))
    name = best if (t < bound).all() else EUCLIDEAN
    return Choice(name, best, loss, error, tuple(t.tolist()), tuple(bound.tolist()))


def judged(data: Labelled, rows: Rows, judging: NDArray[np.bool_], course: Course, seed: int) -> Floats:
    """(2,) the mean loss and the share of wrong ones of the judging rows.

    All rows are divided into Voronoi cells in the metric. In each, kernel ridge regression of the other rows gives
    values to those that judge, and the loss is their squared hinge. The scale and the ridge are those of a small grid
    around the course's with the least loss in a few cells.
    """
    L = course.values.astype(np.float32)
    X = data.X[rows] if isinstance(data.X, np.ndarray) else dense_rows(data.X, rows)
    Z = np.ascontiguousarray(X * L if L.ndim == 1 else X @ L)
    partition = create("voronoi")
    partition.fit(Z, np.arange(len(rows), dtype=np.float64), CELL, np.random.default_rng(seed))  # none are merged
    cells = [cell.rows for cell in partition.training_cells() if judging[cell.rows].any()]

    def of_cell(cell: Rows, scale: float, ridge: float) -> Floats:
        Y, places = data.Y[rows[cell]], np.flatnonzero(judging[cell])
        solver = RidgeLoss(len(cell), Y.shape[1])
        ridge = float(np.clip(np.exp(ridge), LEAST_RIDGE, MOST_RIDGE))
        solver.values(Z[cell] * np.float32(np.exp(scale)), Y, np.full(len(cell), 1.0 / len(cell)), ridge)
        values, Y = solver.left_out(places), Y[places]
        loss = np.square(np.maximum(0.0, 1.0 - Y * values)).sum(axis=1)
        wrong = Y[:, 0] * values[:, 0] <= 0 if Y.shape[1] == 1 else Y.argmax(axis=1) != values.argmax(axis=1)
        return np.asarray(np.stack([loss, wrong]) @ data.weight[rows[cell[places]]])

    def total(of: list[Rows], step: tuple[float, float]) -> Floats:
        return np.asarray(sum(of_cell(cell, course.scale + step[0], course.ridge + step[1]) for cell in of))

    tuning = [cells[i] for i in np.random.default_rng(seed).permutation(len(cells))[:TUNED]]
    step = min(product(SCALES, RIDGES), key=lambda step: float(total(tuning, step)[0]))
    return np.asarray(total(cells, step) / data.weight[rows[judging]].sum())
