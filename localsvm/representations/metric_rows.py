"""Rows with what they should learn, and the losses that geometries are judged by."""

from __future__ import annotations

from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from localsvm.data.blocks.dataset import Dense, Examples, rows_of
from localsvm.representations.distances import DISTANCES, Distance
from localsvm.representations.metric_losses import LARGEST_RESIDUAL
from localsvm.solvers.pinball import pinball

Floats = NDArray[np.float64]
Rows = NDArray[np.int64]
Ties = NDArray[np.int64]


class MetricRows(NamedTuple):
    """Rows that a metric is learned from, or a geometry judged by.

    Attributes
    ----------
    X : (n, d), scaled.
    Y : (n, problems) float32, -1 or +1; or values of mean 0 and deviation 1.
    weight : (n,) float64, of the rows in the loss.
    ties : (d,) a number that features have in common which have one weight; None where each has its own.
    distance : that the metric is for.
    values : whether Y are values.
    levels : of quantiles, if those are what the metric is for.
    group : (n,) a number that rows have in common which do not predict each other; None where all do.
    """

    X: Examples
    Y: Dense
    weight: Floats
    ties: Ties | None = None
    distance: Distance = DISTANCES["euclidean"]
    values: bool = False
    levels: tuple[float, ...] = ()
    group: NDArray[np.int64] | None = None

    def of(self, rows: Rows) -> Self:
        """Some of the rows."""
        group = None if self.group is None else self.group[rows]
        return self._replace(X=rows_of(self.X, rows), Y=self.Y[rows], weight=self.weight[rows], group=group)

    def losses(self, Y: Dense, values: Floats, others: Floats | None = None) -> Floats:
        """Loss and error (2, n) of values (n, problems) for what they should be.

        Of classes they are the squared hinge, and 1 where a row is wrong or 0 where it is right. Of values they are the
        square of what is left, where a few large ones count as no more than LARGEST_RESIDUAL, and the square itself. Of
        quantiles both are the mean pinball loss over the levels, of the value and the quantile of all that is left.

        others : what is left (m,) of the rows whose quantiles are taken; None for these rows themselves.
        """
        if self.levels:
            left = Y[:, 0] - values[:, 0]
            return np.stack([pinball(left, self.levels, left if others is None else others)] * 2)
        if self.values:
            left = np.abs(Y - values)
            return np.stack([np.square(np.minimum(left, LARGEST_RESIDUAL)).sum(axis=1), np.square(left).sum(axis=1)])
        loss = np.square(np.maximum(0.0, 1.0 - Y * values)).sum(axis=1)
        wrong = Y[:, 0] * values[:, 0] <= 0 if Y.shape[1] == 1 else Y.argmax(axis=1) != values.argmax(axis=1)
        return np.stack([loss, wrong])

    def mean(self, rows: Rows | NDArray[np.bool_] | slice) -> Floats:
        """The weighted mean (problems,) of what some rows should learn; 0 where they weigh nothing."""
        weight = self.weight[rows]
        return np.asarray((weight / (weight.sum() or 1.0)) @ self.Y[rows])

    def guess(self, rows: Rows) -> Floats:
        """The loss (k,) of some rows by somebody who always answers the mean, and does not look at the columns."""
        always = self.mean(slice(None))
        return np.asarray(self.losses(self.Y[rows], np.broadcast_to(always, (len(rows), len(always))))[0])
