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
TUNED = 4  # cells of the first fold, by which the scale and the ridge of a metric are tuned
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
    gain : the share of the Euclidean loss that the best one saves.
    t : of the paired test, the mean difference of the folds over its standard error; `bound` is what it has to be
        below.
    """

    name: str
    best: str
    gain: float
    t: float
    bound: float


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

    def fold_losses(fold: int) -> dict[str, float]:
        learned_from = Learner(data.X, data.Y, data.weight, rows[folds != fold], plan.sample)
        courses = {EUCLIDEAN: learned_from.beginning(plan.rng(seed, fold, 0))}
        courses |= plan.candidates(learned_from, courses[EUCLIDEAN], seed, fold)
        return {name: judged(data, rows, folds == fold, course, seed) for name, course in courses.items()}

    found = threads.map(fold_losses, FOLDS)
    losses = {name: np.asarray([of_fold[name] for of_fold in found]) for name in found[0]}
    return tested(losses.pop(EUCLIDEAN), losses)


def tested(euclidean: Floats, candidates: Mapping[str, Floats]) -> Choice:
    """The candidate of the least loss, if a one-sided paired t-test over the folds finds it better.

    euclidean, candidates: (folds,) losses. The level is RISK over the number of candidates (Bonferroni), as the best
    one of them is tested.
    """
    from scipy.stats import t as student

    best = min(candidates, key=lambda name: float(candidates[name].mean()))
    difference = candidates[best] - euclidean
    spread = float(difference.std(ddof=1)) / np.sqrt(len(difference))
    t = float(difference.mean()) / spread if spread > 0.0 else 0.0
    bound = float(student.ppf(RISK / len(candidates), len(difference) - 1))
    gain = float(-difference.mean() / max(float(euclidean.mean()), 1e-300))
    return Choice(best if t < bound else EUCLIDEAN, best, gain, t, bound)


def judged(data: Labelled, rows: Rows, judging: NDArray[np.bool_], course: Course, seed: int) -> float:
    """The mean loss of the judging rows.

    All rows are divided into Voronoi cells in the metric. In each, kernel ridge regression of the other rows gives
    values to those that judge, and the loss is their squared hinge. The scale and the ridge are those of a small grid
    around the course's with the least loss in a few cells.
    """
    L = course.values.astype(np.float32)
    X = data.X[rows] if isinstance(data.X, np.ndarray) else dense_rows(data.X, rows)
    Z = np.ascontiguousarray(X * L if L.ndim == 1 else X @ L)
    partition = create("voronoi")
    partition.fit(Z, np.arange(len(rows), dtype=np.float64), CELL, np.random.default_rng(seed))  # no two rows alike
    cells = [cell.rows for cell in partition.training_cells() if judging[cell.rows].any()]

    def loss(cell: Rows, scale: float, ridge: float) -> float:
        Y, places = data.Y[rows[cell]], np.flatnonzero(judging[cell])
        solver = RidgeLoss(len(cell), Y.shape[1])
        ridge = float(np.clip(np.exp(ridge), LEAST_RIDGE, MOST_RIDGE))
        solver.values(Z[cell] * np.float32(np.exp(scale)), Y, np.full(len(cell), 1.0 / len(cell)), ridge)
        hinge = np.maximum(0.0, 1.0 - Y[places] * solver.left_out(places))
        return float(data.weight[rows[cell[places]]] @ np.square(hinge).sum(axis=1))

    tuning = [cells[i] for i in np.random.default_rng(seed).permutation(len(cells))[:TUNED]]
    steps = min(
        product(SCALES, RIDGES),
        key=lambda step: sum(loss(cell, course.scale + step[0], course.ridge + step[1]) for cell in tuning),
    )
    total = sum(loss(cell, course.scale + steps[0], course.ridge + steps[1]) for cell in cells)
    return total / float(data.weight[rows[judging]].sum())
