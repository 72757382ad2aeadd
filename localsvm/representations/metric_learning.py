"""Learns a metric from labelled rows: stochastic steps on a loss of kernel ridge regression.

Each step draws a sample of rows and moves the metric against the gradient of the loss of their values by others of them
(representations/metric_losses.py), by Adam (Kingma and Ba 2015). The iterates of the last part are averaged. The kernel
is exp(-|z_i - z_j|^2) of the mapped rows z, or that of another distance (representations/distances.py); a factor on the
metric and the ridge are learned along.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from localsvm.data.blocks.dataset import Dense, dense_rows
from localsvm.kernels._kernels import padded
from localsvm.representations.distances import mapped
from localsvm.representations.metric_losses import ClassLoss, MetricLoss, ValueLoss
from localsvm.representations.metric_rows import MetricRows

Floats = NDArray[np.float64]
Rows = NDArray[np.int64]
SAMPLE = 700  # rows of half a sample; 500 lost 2.8 points on HIGGS-like rows, 1000 take three times the time
SHARE = 4  # half a sample is at most one row in so many
TRAINED, MATRIX_TRAINED = 0.4, 400  # share of a sample that predicts the others; at least so many rows for a matrix
POOL, POOL_ELEMENTS = 50_000, 1 << 24  # near samples are the nearest of so many random rows, or of fewer long ones
POOL_STEPS = 10  # for which a pool serves: the metric changes little meanwhile
RATE, DECAY = 0.02, 0.02  # the first step, and the share of it that is left at the end
MATRIX_RATE, NEAR_RATE = 0.06, 0.01  # of matrices before near samples, and by those: fast at first, then exact
AVERAGED = 0.4  # the share of the iterates, the last ones, that is averaged
LEAST_RIDGE, MOST_RIDGE = 1e-3, 1e3  # below, the kernel matrix has no inverse in float32
LEAST_LOG, MOST_LOG = math.log(LEAST_RIDGE), math.log(MOST_RIDGE)
FIRST_RIDGE = 0.3
SMALLEST = 1e-30  # of how far two rows are apart on average: below, the metric would not be finite in float32
NEAR_FROM = 10 * SAMPLE  # rows: with fewer, near samples are much of all rows, and matrices were too close to them
MORE_FROM, MOST_TIMES = 12_000, 3.5  # rows: with more, there are more near steps, up to so many times as many
FURTHER_TIMES = 2.0  # the same for a metric that near samples have taught already
MATRICES = 5  # as large as the kernel of half a sample: that of all its rows with a half, its distances, and a factor
OUTPUT_BYTES = 48  # of an output of a row of half a sample: targets, values and derivatives
MATRIX_ARRAYS = 12  # as large as a matrix that is learned, in float64: its means, gradients and steps
METRIC_KEY = (1 << 32) - 2  # the random stream of metrics; those of cells begin with the cell's number


class Adam:
    """Steps for parameters of one shape: running means of gradients over the root of those of their squares."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        self._mean, self._square, self._steps = np.zeros(shape), np.zeros(shape), 0

    def __call__(self, gradient: Floats) -> Floats:
        """The direction of the next step, each entry about -1 to 1."""
        self._steps += 1
        self._mean = 0.9 * self._mean + 0.1 * gradient
        self._square = 0.98 * self._square + 0.02 * gradient * gradient
        mean, square = self._mean / (1 - 0.9**self._steps), self._square / (1 - 0.98**self._steps)
        return np.asarray(mean / (np.sqrt(square) + 1e-8))


@dataclass
class Course:
    """The state of the learning of a metric.

    Attributes
    ----------
    values : (d,) or (d, r) float64, the parameters of the metric; see `representations.distances`.
    unit : by which steps for the values are multiplied, so that the scale of the rows does not matter; 1 for columns
        with a deviation of 1.
    scale, ridge : logarithms of the factor on it, and of the ridge.
    """

    values: Floats
    unit: float = 1.0
    scale: float = 0.0
    ridge: float = field(default_factory=lambda: float(np.log(FIRST_RIDGE)))

    def at(self, values: Floats) -> Course:
        """State with other values and the same rest."""
        return replace(self, values=values)


class MetricLearner:
    """A learner of metrics from some rows.

    Parameters
    ----------
    data : rows, with what they should learn.
    rows : (m,) int64 ascending, the places of those that may be looked at.
    sample : rows of half a sample, at most.
    check : is called before each step; what it raises ends the learning.

    Attributes
    ----------
    rows : their number.
    has_cells : True where they are enough for near samples.
    """

    def __init__(
        self, data: MetricRows, rows: Rows, sample: int = SAMPLE, check: Callable[[], None] = lambda: None
    ) -> None:
        self._data, self._rows, self._check, self.distance = data, rows, check, data.distance
        self.rows, self.has_cells = len(rows), len(rows) >= NEAR_FROM
        self._size = min(len(rows), 2 * _half_size(len(rows), sample))
        self._centre = centre_of(dense_rows(data.X, rows[:: max(1, -(-len(rows) // sample))]))

    def beginning(self, rng: np.random.Generator) -> Course:
        """Equal weights, at a scale at which two rows are about 1 apart."""
        d = self._data.X.shape[1]
        part = self._rows_at(self._random(rng)).astype(np.float64)
        apart = self.distance.apart(part) or 2.0 * d
        first = 1.0 / np.sqrt(max(apart, SMALLEST))
        return Course(np.full(d, first), first * np.sqrt(2.0 * d))

    def steps(
        self, course: Course, count: int, rng: np.random.Generator, rate: float = RATE, near: bool = False
    ) -> Course:
        """The metric after so many steps.

        Parameters
        ----------
        course : where to begin.
        count : number of steps.
        rate : of the first steps.
        near : samples are the rows nearest to a random one, in the metric so far, as those of a cell are; else they
            are drawn from all rows.
        """
        if self._size < 2:
            return course
        values = course.values
        loss = self._loss(_trained(self._size, values.ndim == 2))
        scalars = np.asarray([course.scale, course.ridge])
        step, scalar_step = Adam(values.shape), Adam((2,))
        total, averaged = np.zeros_like(values), 0
        for k in range(1, count + 1):
            self._check()
            if near and k % POOL_STEPS == 1:
                parts = self._near(values, rng)
            part = next(parts) if near else self._random(rng)
            slope, scalar_slope = self._gradient(loss, self._shuffled(part, rng), values, scalars)
            if self._data.ties is not None and values.ndim == 1:
                slope = np.asarray(np.bincount(self._data.ties, slope)[self._data.ties], np.float64)
            size = rate * min(1.0, 2.0 * (1.0 - k / count) + DECAY)
            values = values - size * course.unit * step(course.unit * slope)
            scalars = scalars - size * np.asarray([2.0, 3.0]) * scalar_step(scalar_slope)
            scalars[1] = min(max(scalars[1], LEAST_LOG), MOST_LOG)
            if k > (1.0 - AVERAGED) * count:
                total, averaged = total + values, averaged + 1
        scale, ridge = (float(scalar) for scalar in scalars)
        return Course(total / averaged, course.unit, scale, ridge)

    def _loss(self, trained: int) -> MetricLoss:
        """The loss of samples of which so many rows predict the others."""
        n, problems, kernel = self._size, self._data.Y.shape[1], self.distance.kernel
        if self._data.values:
            return ValueLoss(n, trained, kernel, self._data.levels)
        return ClassLoss(n, trained, problems, kernel)

    def _gradient(self, loss: MetricLoss, part: Rows, values: Floats, scalars: Floats) -> tuple[Floats, Floats]:
        """Gradient of the sample's loss: by the metric, and by the logarithms of its factor and of the ridge.

        A sample whose kernel matrix has no inverse in float32 teaches nothing.
        """
        factor, ridge = float(np.exp(scalars[0])), float(np.exp(scalars[1]))
        L, X = (factor * self.distance.map_of(values)).astype(np.float32), self._rows_at(part)
        try:
            pairs, ridge_slope = loss.slope(mapped(X, L), self._data.Y[part], self._weights(part, loss.trained), ridge)
        except ArithmeticError:
            return np.zeros(values.shape), np.zeros(2)
        slope = self.distance.slope(X, L, pairs)
        by_values = factor * self.distance.by_values(values, slope)
        return by_values, np.asarray([float((slope * L).sum()), ridge * ridge_slope])

    def _random(self, rng: np.random.Generator) -> Rows:
        return np.asarray(np.sort(rng.choice(self._rows, self._size, replace=False)))

    def _shuffled(self, part: Rows, rng: np.random.Generator) -> Rows:
        """The rows of a sample at random, and those of a group side by side: the first ones predict the others."""
        part = rng.permutation(part)
        if self._data.group is None:
            return part
        groups, of = np.unique(self._data.group[part], return_inverse=True)
        return np.asarray(part[np.argsort(rng.permutation(len(groups))[of.reshape(-1)], kind="stable")])

    def _weights(self, part: Rows, trained: int) -> Floats:
        """Weights of the rows of a sample: 0 for those behind the first ones whose group is among these, too."""
        weight = self._data.weight[part]
        if self._data.group is not None:
            group = self._data.group[part]
            weight[trained:] *= ~np.isin(group[trained:], group[:trained])
        return weight

    def _near(self, values: Floats, rng: np.random.Generator) -> Iterator[Rows]:
        """POOL_STEPS samples: the rows of a pool that are nearest to a random one, by the metric of some parameters."""
        rows, X = self._pool(rng)
        Z = mapped(X, self.distance.map_of(values).astype(np.float32))
        for distance in self.distance.from_rows(Z, rng.integers(len(rows), size=POOL_STEPS)):
            yield np.sort(rows[np.argpartition(distance, self._size - 1)[: self._size]])

    def _pool(self, rng: np.random.Generator) -> tuple[Rows, Dense]:
        """Random rows, and what they hold; all rows where there are no more."""
        size = _pool_size(self.rows, self._size, self._data.X.shape[1])
        if self.rows <= size:
            return self._everybody
        rows = np.sort(rng.choice(self._rows, size, replace=False))
        return rows, self._rows_at(rows)

    @cached_property
    def _everybody(self) -> tuple[Rows, Dense]:
        """All rows, and what they hold."""
        return self._rows, self._rows_at(self._rows)

    def _rows_at(self, rows: Rows) -> Dense:
        return dense_rows(self._data.X, rows) - self._centre


def learning_bytes(rows: int, columns: int, matrix: int, sample: int = SAMPLE, outputs: int = 1) -> int:
    """Bytes that a learner of so many rows, with so many outputs each, holds at most beside these.

    It holds kernel matrices, outputs and rows of a sample, the rows of a pool while they are mapped, their distances,
    and, where a matrix has `matrix` columns and not 0, the arrays of it and of Adam.
    """
    half = _half_size(rows, sample)
    pool = _pool_size(rows, 2 * half, columns) if rows >= NEAR_FROM else 0
    return (
        4 * MATRICES * half * half
        + OUTPUT_BYTES * outputs * half
        + MATRIX_ARRAYS * 8 * matrix * matrix
        + 4 * columns * max(8 * half + pool, 4 * pool)
        + 4 * POOL_STEPS * padded(pool)
    )


def _trained(size: int, matrix: bool) -> int:
    """Number of rows in a sample of so many that predict the others, for weights or a matrix: half of them at most."""
    wanted = max(int(TRAINED * size), MATRIX_TRAINED if matrix else 1)
    return max(1, min(wanted, size // 2))


def _half_size(rows: int, most: int) -> int:
    """Number of rows in half a sample of so many rows."""
    return max(1, min(most, rows // SHARE))


def _pool_size(rows: int, sample: int, columns: int) -> int:
    """Number of rows in a pool of so many rows, for samples of this size."""
    return min(rows, max(sample, min(POOL, POOL_ELEMENTS // max(1, columns))))


def centre_of(X: Dense) -> Dense:
    """Row (d,) float32 amid some rows, whatever few of them hold: distances from 0 would round off what is far."""
    return np.median(X, axis=0) if len(X) else np.zeros(X.shape[1], np.float32)


@dataclass(frozen=True)
class LearningPlan:
    """The plan of what is learned: weights, and from there a matrix.

    Where there are rows for many cells, each goes on by near samples. Then a matrix takes half of its steps before, and
    larger ones: near ones settle the rest.

    Attributes
    ----------
    sample : rows of half a sample.
    weight_steps, matrix_steps, near_steps : of each; MORE_FROM has when near steps are more.
    """

    sample: int = SAMPLE
    weight_steps: int = 120
    matrix_steps: int = 120
    near_steps: int = 120

    @staticmethod
    def rng(seed: int, fold: int, purpose: int) -> np.random.Generator:
        """Random stream of one course of learning; fold: the one that is left out, -1 for none."""
        return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(METRIC_KEY, fold + 1, purpose)))

    def weights(self, learner: MetricLearner, euclidean: Course, seed: int, fold: int) -> Course:
        """Weights after their first steps, from where `finished` goes on."""
        return learner.steps(euclidean, self.weight_steps, self.rng(seed, fold, 1))

    def finished(self, form: str, learner: MetricLearner, weights: Course, seed: int, fold: int) -> Course:
        """The metric of a form, "diag" or "full", after all steps, from weights after their first ones."""
        if form == "full":
            return self.refined(learner, weights, seed, fold)
        return self._near(learner, weights, self.rng(seed, fold, 2))

    def refined(self, learner: MetricLearner, course: Course, seed: int, fold: int) -> Course:
        """A matrix after all steps, from weights or another matrix."""
        matrix = course if course.values.ndim == 2 else course.at(np.diag(course.values))
        steps, rate = (self.matrix_steps // 2, MATRIX_RATE) if learner.has_cells else (self.matrix_steps, RATE)
        matrix = learner.steps(matrix, steps, self.rng(seed, fold, 3), rate)
        return self._near(learner, matrix, self.rng(seed, fold, 4))

    def further(self, learner: MetricLearner, course: Course, seed: int) -> Course:
        """A metric after further steps, on rows that are more than those it was learned from, or samples that are."""
        if learner.has_cells:
            return self._near(learner, course, self.rng(seed, -1, 2), FURTHER_TIMES)
        steps = self.weight_steps if course.values.ndim == 1 else self.matrix_steps
        return learner.steps(course, steps // 2, self.rng(seed, -1, 1))

    def begun(self, learner: MetricLearner, course: Course, seed: int, fold: int) -> Course:
        """The metric of a distance after some steps, from the metric of the distance that it begins with."""
        if learner.has_cells:
            return self._near(learner, course, self.rng(seed, fold, 6), 1.0)
        return learner.steps(course, self.weight_steps // 2, self.rng(seed, fold, 6))

    def _near(
        self, learner: MetricLearner, course: Course, rng: np.random.Generator, most: float = MOST_TIMES
    ) -> Course:
        if not learner.has_cells:
            return course
        steps = int(self.near_steps * min(max(learner.rows / MORE_FROM, 1.0), most))
        return learner.steps(course, steps, rng, NEAR_RATE, near=True)
