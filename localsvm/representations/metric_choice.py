"""Chooses a metric by rows that it did not see: the Euclidean one stays unless another is better by more than noise.

Candidates are learned without each of FOLDS folds and judged by it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from localsvm.data.blocks.dataset import Dense, Examples, dense_rows, rows_of, sparse_examples
from localsvm.data.blocks.dealing import Mates, folds_of_groups
from localsvm.partition import create
from localsvm.representations.distances import DISTANCES, FAR, Distance, mapped
from localsvm.representations.metric import EUCLIDEAN
from localsvm.representations.metric_learning import (
    LEAST_RIDGE,
    MOST_RIDGE,
    SAMPLE,
    Course,
    Floats,
    LearningPlan,
    MetricLearner,
    Rows,
    Ties,
    centre_of,
    learning_bytes,
)
from localsvm.solvers._ridge import RidgeLoss
from localsvm.threads import Threads

FOLDS = 5
CELL = 500  # rows of the cells in which metrics are judged
TUNED = 4  # cells, by which the scale and the ridge of a metric are tuned, and at most half of all
SHARE = 6  # a sample of a candidate is at most one in so many rows: on few rows it takes most of the time
SCALES, RIDGES = (-0.5, 0.5, 1.0), (-1.5, 0.0, 1.5)  # steps of their logarithms
RISK = 0.05  # of leaving the Euclidean metric without a reason, all candidates together


class MetricRows(NamedTuple):
    """Rows to learn from: X (n, d) scaled, Y (n, problems) float32 of -1 and +1, (n,) float64 weights in the loss.

    ties, distance : see `MetricLearner`.
    """

    X: Examples
    Y: Dense
    weight: Floats
    ties: Ties | None = None
    distance: Distance = DISTANCES["euclidean"]

    def learner(self, rows: Rows, sample: int = SAMPLE, check: Callable[[], None] = lambda: None) -> MetricLearner:
        """Learner from some of the rows; see `MetricLearner`."""
        return MetricLearner(self.X, self.Y, self.weight, self.ties, rows, self.distance, sample, check)


@dataclass(frozen=True)
class Choice:
    """The metric that was chosen.

    Attributes
    ----------
    name : of the candidate; "none" for the Euclidean metric.
    best : of the candidate with the least loss, chosen or not; "none" where none was tried. Then the
        other fields are empty.
    loss, error : (2,) the mean loss, and the share of wrong rows, by the Euclidean metric and by the best one.
    z : (2,) of the paired tests, for both: the mean difference of the rows over its standard error.
    bound : (2,) what each z has to be below.
    """

    name: str
    best: str
    loss: tuple[float, ...]
    error: tuple[float, ...]
    z: tuple[float, ...]
    bound: tuple[float, ...]


NONE_TRIED = Choice(EUCLIDEAN, EUCLIDEAN, (), (), (), ())


def stratified_folds(
    codes: NDArray[np.intp], rng: np.random.Generator, mates: Mates | None = None
) -> NDArray[np.int64]:
    """Fold (n,) of each row: the rows of each class are dealt out at random.

    codes : (n,) the classes' numbers.
    mates : which rows stay together; None where none do.
    """
    if mates is not None:
        return folds_of_groups(codes.astype(np.float64), FOLDS, rng, mates)
    order = np.lexsort((rng.random(len(codes)), codes))
    folds = np.empty(len(codes), np.int64)
    folds[order] = np.arange(len(codes)) % FOLDS
    return folds


def choose(
    data: MetricRows, rows: Rows, folds: NDArray[np.int64], plan: LearningPlan, seed: int, threads: Threads,
    mates: Mates | None = None,
) -> Choice:  # fmt: skip
    """Judge the candidates of a plan; where not every fold has rows, the Euclidean metric is the choice.

    Parameters
    ----------
    rows, folds : (m,) the rows that may be looked at, and their folds.
    plan : what is learned.
    threads : of no influence on the result.
    mates : of the (m,) rows, which stay together; None where none do.
    """
    if len(np.unique(folds)) < FOLDS:
        return NONE_TRIED

    def of_fold(fold: int) -> dict[str, Floats]:
        learning = rows[folds != fold]
        learner = data.learner(learning, max(1, min(plan.sample, len(learning) // SHARE)), threads.check)
        courses = {EUCLIDEAN: learner.beginning(plan.rng(seed, fold, 0))}
        courses |= plan.candidates(learner, courses[EUCLIDEAN], seed, fold)
        return {
            name: judged(data, rows, folds == fold, course, seed, threads.check) for name, course in courses.items()
        }

    results = threads.map(of_fold, FOLDS)
    order = np.concatenate([np.flatnonzero(folds == fold) for fold in range(FOLDS)])
    same = None if mates is None else mates.of(order)
    return tested(
        {name: np.hstack([of[name] for of in results]) for name in results[0]}, data.weight[rows[order]], same
    )


def choosing_bytes(rows: int, columns: int, dense: bool, plan: LearningPlan, threads: int) -> int:
    """Bytes that `choose` holds at most, beside all rows.

    Each fold at work holds what is learned, or the rows that are mapped to be judged and a cell of them.
    """
    learning = learning_bytes(rows - rows // FOLDS, columns, "full" in plan.names, plan.sample)
    cell = min(rows, CELL)
    judging = 16 * (cell * (cell + columns) + (rows * columns if dense else 0))
    return min(threads, FOLDS) * max(learning, judging)


def tested(results: Mapping[str, Floats], weight: Floats, mates: Mates | None = None) -> Choice:
    """Choose the candidate of the least loss, if tests find it better than the Euclidean metric.

    One-sided paired z-tests over the rows have to find both its loss and its share of wrong rows smaller than those of
    the Euclidean metric. The loss distinguishes metrics by fewer rows than the error does; but where nearly all rows
    are right, it can fall without any gain. The level is RISK, for the loss over the number of candidates, as the best
    of them is tested.

    Parameters
    ----------
    results : for each metric (2, rows), what `judged` gives.
    weight : (rows,)
    mates : which rows stay together; they count as much as one row of their weight. None where none do.
    """
    from scipy.special import ndtri

    share = weight / weight.sum()
    mean = {name: values @ share for name, values in results.items()}
    names = [name for name in results if name != EUCLIDEAN]
    best = min(names, key=lambda name: float(mean[name][0]))
    difference = results[best] - results[EUCLIDEAN]
    gain = mean[best] - mean[EUCLIDEAN]
    away = difference - gain[:, None]
    if mates is None:
        spread = np.sqrt(np.square(away) @ np.square(share))
    else:
        number = np.unique(mates.number, return_inverse=True)[1].reshape(-1)
        spread = np.sqrt([np.square(np.bincount(number, each * share)).sum() for each in away])
    z = np.divide(gain, spread, out=np.zeros(2), where=spread > 0.0)
    bound = ndtri([RISK / len(names), RISK])
    loss, error = ((float(mean[EUCLIDEAN][i]), float(mean[best][i])) for i in range(2))
    return Choice(best if (z < bound).all() else EUCLIDEAN, best, loss, error, tuple(z.tolist()), tuple(bound.tolist()))


def judged(
    data: MetricRows, rows: Rows, judging: NDArray[np.bool_], course: Course, seed: int,
    check: Callable[[], None] = lambda: None,
) -> Floats:  # fmt: skip
    """Loss of each of the k judging rows, and 1 where it is wrong or 0 where it is right: (2, k) float64.

    All rows are divided into Voronoi cells in the metric. In each, kernel ridge regression of the other rows gives
    values to those that judge, and the loss is their squared hinge. The ridge, and then the scale, are those around the
    course's with the least loss in a few cells. `check` is called before each cell.
    """
    Z = _mapped(data.X, rows, data.distance.map_of(course.values).astype(np.float32))
    partition = create(data.distance.cells)
    partition.fit(Z, np.arange(len(rows), dtype=np.float64), CELL, np.random.default_rng(seed))  # none are merged
    cells = [cell.rows for cell in partition.training_cells() if judging[cell.rows].any()]
    out = np.zeros((2, len(rows)))

    def fill(cell: Rows, step: tuple[float, float]) -> float:
        """The loss of a cell's judging rows, whose places in `out` are filled in; z are the cell's mapped rows."""
        check()
        z = dense_rows(Z, cell)
        z = (z - z.mean(axis=0, dtype=np.float64)).astype(np.float32) * np.float32(np.exp(course.scale + step[0]))
        Y, places = data.Y[rows[cell]], np.flatnonzero(judging[cell])
        solver = RidgeLoss(len(cell), Y.shape[1], data.distance.base)
        ridge = float(np.clip(np.exp(course.ridge + step[1]), LEAST_RIDGE, MOST_RIDGE))
        try:
            solver.values(z, Y, np.full(len(cell), 1.0 / len(cell)), ridge)
            values = solver.left_out(places)
        except ArithmeticError:  # no inverse in float32: nothing is known of these rows
            values = np.zeros((len(places), Y.shape[1]))
        Y = Y[places]
        loss = np.square(np.maximum(0.0, 1.0 - Y * values)).sum(axis=1)
        wrong = Y[:, 0] * values[:, 0] <= 0 if Y.shape[1] == 1 else Y.argmax(axis=1) != values.argmax(axis=1)
        out[:, cell[places]] = loss, wrong
        return float(loss @ data.weight[rows[cell[places]]])

    order = np.random.default_rng(seed).permutation(len(cells))
    step = _tuned(fill, [cells[i] for i in order[: min(TUNED, max(1, len(cells) // 2))]])
    for cell in cells:
        fill(cell, step)
    return out[:, judging]


def _tuned(fill: Callable[[Rows, tuple[float, float]], float], cells: list[Rows]) -> tuple[float, float]:
    """The steps of scale and ridge with the least loss in these cells: first the ridge, then the scale by it."""
    loss = {(0.0, step): sum(fill(cell, (0.0, step)) for cell in cells) for step in RIDGES}
    ridge = min(loss, key=loss.__getitem__)[1]
    loss |= {(step, ridge): sum(fill(cell, (step, ridge)) for cell in cells) for step in SCALES}
    return min(loss, key=loss.__getitem__)


def _mapped(X: Examples, rows: Rows, L: Dense) -> Examples:
    """Rows (m, r) mapped by a metric; sparse ones stay sparse, and dense ones are moved to a row amid them before."""
    if isinstance(X, np.ndarray):
        part = X[rows]
        return mapped(part - centre_of(part), L)
    part = rows_of(X, rows)
    return sparse_examples(np.clip(part.data * L[part.indices], -FAR, FAR), part.indices, part.indptr, part.shape[1])
