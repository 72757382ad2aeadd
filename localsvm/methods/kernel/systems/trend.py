"""The line of a cell's values, c + b . x, along which a model goes on far from all rows, where a kernel is 0.

The slope b is that of a ridge regression of the rows x_i with values y_i and weights w_i,

    min_(b, m) sum_i w_i (y_i - m - b . x_i)^2 / sum_i w_i + r s |b|^2,

where s is the sum of the variances of the columns: columns to which a metric gives little weight get little slope; and
r is RIDGE, or d / (COLUMN n) where that is more: the slope of few rows n with many columns d would follow their noise.
The constant c is the best one, by the loss, for what the slope leaves. Smola, Friess and Schoelkopf (Semiparametric
support vector machines, NIPS 1998) solve for such a part along with the kernel; here it comes before, so that solvers,
starts and gaps stay what they are.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from localsvm.data.blocks.dataset import dense_rows
from localsvm.methods.base import WHOLE
from localsvm.methods.cell import Cell, Job
from localsvm.solvers.pinball import far_from_0, quantile
from localsvm.targets.loss_names import LEAST_SQUARES
from localsvm.targets.losses import Loss

Floats = NDArray[np.float64]
RIDGE, COLUMN = 1e-3, 32.0
ROUNDED = 1e-12  # of the second moments: smaller variances are what is left of rounding
STEEPEST = 1e18  # slopes beyond, of columns that are nearly 0, would overflow float32 with the farthest rows
ROWS = 1000  # whose median is the centre
BLOCK = 1 << 20  # values of rows that are looked at together


class Residuals(NamedTuple):
    """The rows (n,) of a job: values without its line, and weights; both are 0 where the fold holds a row out.

    line : (n,) of all rows, constant + slope . x. slope : (d,); None without a trend. far : size of y from which it is
    far from 0; 0 for least squares, which do not ask.
    """

    y: Floats
    weight: Floats
    line: Floats
    constant: float
    slope: Floats | None
    far: float


class Trend:
    """The slopes of the values that a problem of a cell learns: of all rows, and one without each fold.

    robust : whether values far from the median of the cell count as less far ones, so that no row moves the slope by
        more than others do.
    """

    def __init__(self, cell: Cell, problem: int = 0, robust: bool = False) -> None:
        self._cell, self._slopes, self._products = cell, dict[int, Floats](), dict[int, Floats]()
        self._values, self._weight = values_of(cell, problem), weight_of(cell, WHOLE, problem)
        if robust:
            middle = quantile(self._values, self._weight, 0.5)
            limit = far_from_0(self._values - middle, self._weight)
            self._values = np.clip(self._values, middle - limit, middle + limit)

    def slope(self, fold: int) -> Floats:
        """The slope (d,) by the rows that a fold does not hold out; WHOLE holds out none."""
        if fold not in self._slopes:
            # a difference of sums would lose what an outlier has rounded off
            kept = np.arange(self._cell.n_folds) != fold
            self._slopes[fold] = _slope(self._sums[kept].sum(axis=0), int(self._rows[kept].sum()))
        return self._slopes[fold]

    def products(self, fold: int) -> Floats:
        """Products (n,) of all rows with the slope of a fold."""
        if fold not in self._products:
            slope = self.slope(fold)
            products = np.concatenate([rows @ slope for _, rows in self._blocks()])
            self._products[fold] = products + self._centre @ slope
        return self._products[fold]

    @cached_property
    def _centre(self) -> Floats:
        """A point (d,) amid the rows, whatever few of them hold, from which sums lose no digits."""
        some = dense_rows(self._cell.X, np.arange(min(len(self._cell.y), ROWS)))
        return np.median(some, axis=0).astype(np.float64)

    @cached_property
    def _rows(self) -> NDArray[np.int64]:
        """Number (folds,) of the rows of each fold that have a weight."""
        return np.bincount(self._cell.folds[self._weight > 0.0], minlength=self._cell.n_folds)

    @cached_property
    def _sums(self) -> Floats:
        """Weighted sums (folds, d + 2, d + 2) of the products of columns, values and 1, over the rows of each fold."""
        cell = self._cell
        side = cell.X.shape[1] + 2
        sums = np.zeros((cell.n_folds, side, side))
        for places, rows in self._blocks():
            seen = np.column_stack([rows, self._values[places], np.ones(len(rows))])
            weighted = seen * self._weight[places, None]
            edges = np.clip(cell.edges, places[0], places[-1] + 1) - places[0]
            for fold, (first, last) in enumerate(pairwise(edges.tolist())):
                sums[fold] += weighted[first:last].T @ seen[first:last]
        return sums

    def _blocks(self) -> Iterator[tuple[NDArray[np.int64], Floats]]:
        """Places of the rows, block by block, and the rows from the centre on."""
        n, d = self._cell.X.shape
        step = max(1, BLOCK // max(1, d))
        for first in range(0, n, step):
            places = np.arange(first, min(n, first + step))
            yield places, dense_rows(self._cell.X, places) - self._centre


def _slope(sums: Floats, rows: int) -> Floats:
    """The slope (d,) of weighted sums (d + 2, d + 2); 0 where no row has a weight, or all are in one point.

    rows : with a weight. One of weight 2 is two rows; but where all weights are small, they are in another unit.
    """
    none, total = np.zeros(len(sums) - 2), sums[-1, -1]
    if not total:
        return none
    mean = sums[-1, :-1] / total
    moments = sums[:-1, :-1] / total - np.outer(mean, mean)
    variances, products = moments[:-1, :-1], moments[:-1, -1]
    spread = float(np.trace(variances))
    if spread <= ROUNDED * float(np.trace(sums[:-2, :-2])) / total:
        return none
    ridge = max(RIDGE, len(products) / (COLUMN * max(rows, total)))
    slope = np.linalg.solve(variances + ridge * spread * np.eye(len(products)), products)
    return slope if np.abs(slope).max() < STEEPEST else none


def values_of(cell: Cell, problem: int) -> Floats:
    """Values (n,) that a problem learns, in memory of their own: sums do not depend on the number of problems."""
    return np.ascontiguousarray(cell.Y[:, problem])


def weight_of(cell: Cell, fold: int, problem: int) -> Floats:
    """Copy (n,) of the weights of a problem, with 0 for rows that the fold holds out, or that take no part."""
    weight = cell.training_weight(fold, problem)
    if cell.target.leaves_out:
        weight[cell.Y[:, problem] == 0.0] = 0.0
    return weight


def residuals(cell: Cell, loss: Loss, job: Job, trend: Trend | None) -> Residuals:
    """What a job has to learn beside its line."""
    y = values_of(cell, job.problem)
    weight, line, slope = weight_of(cell, job.fold, job.problem), np.zeros(len(y)), None
    if trend is not None:
        slope, line = trend.slope(job.fold), trend.products(job.fold)
    constant = 0.0  # of a cell of one row, which the fold holds out
    if weight.any():
        constant = loss.constant(y - line, weight)
    elif job.fold == WHOLE:
        constant = float(y.mean())
    line = line + constant
    left = np.where(weight > 0.0, y - line, 0.0)
    far = 0.0 if loss.name == LEAST_SQUARES else far_from_0(left, weight)
    return Residuals(left, weight, line, constant, slope, far)


def trend_bytes(rows: int, features: int, folds: int) -> int:
    """Bytes that `Trend` holds at most, for rows of so many columns."""
    moments, blocks = (2 * folds + 4) * (features + 2) ** 2, 4 * min(rows * (features + 2), BLOCK)
    return 8 * (moments + blocks + (folds + 1) * rows)
