"""Losses of values: what a prediction t of a value y costs, and what that means for a dual problem.

With r = y - t and a level tau from 0 to 1:

    least-squares                 r^2
    quantile                      tau r where r > 0, (tau - 1) r else (pinball loss)
    expectile                     tau r^2 where r > 0, (1 - tau) r^2 else
    absolute                      |r|
    epsilon-insensitive           max(|r| - epsilon, 0)
    squared-epsilon-insensitive   max(|r| - epsilon, 0)^2
    huber                         r^2 up to |r| = epsilon, epsilon (2 |r| - epsilon) beyond

The dual of min_f 1/2 |f|^2 + sum_i C_i L(y_i, f(x_i)) is that of csrc/smo.h (Steinwart and Christmann 2008, chapter
11; Farooq and Steinwart 2017 for expectiles).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from localsvm.solvers.boxes import Dual
from localsvm.solvers.pinball import far_from_0, quantile
from localsvm.solvers.row_losses import Residual
from localsvm.targets.loss_names import (
    ABSOLUTE,
    EXPECTILE,
    HUBER,
    INSENSITIVE,
    LEVELLED,
    QUANTILE,
    SQUARED_INSENSITIVE,
)

Values = NDArray[np.float64]

MEAN_STEPS, MEAN_ENOUGH = 100, 1e-12  # of the search for an expectile
FEW = 0.01  # share of the rows that may be outliers: more of them may well be foreseen
OUTWEIGHED = 2.0  # times as large as the usual deviation is one that outliers make; no real table has it


@dataclass(frozen=True)
class Loss:
    """A loss of values.

    Attributes
    ----------
    name : one of `loss_names.LOSSES`.
    level : tau of a quantile or an expectile.
    epsilon : in units of the values; of those losses that have one.
    """

    name: str
    level: float = 0.5
    epsilon: float = 0.0

    def __call__(self, r: Values) -> Values:
        """The loss of residuals r = y - t, of any shape."""
        size = np.abs(r)
        if self.name in LEVELLED:
            side = np.where(r > 0.0, self.level, 1.0 - self.level)
            return np.asarray(side * (size if self.name == QUANTILE else np.square(r)))
        if self.name == HUBER:
            inside = np.minimum(size, self.epsilon)
            return np.asarray(inside * (2.0 * size - inside))
        if self.name in (INSENSITIVE, SQUARED_INSENSITIVE):
            size = np.maximum(size - self.epsilon, 0.0)
        return np.asarray(size if self.name in (ABSOLUTE, INSENSITIVE) else np.square(size))

    @property
    def dual(self) -> Dual:
        """Numbers of the dual problem, for rows of cost 1."""
        infinite, tau = float("inf"), self.level
        if self.name == QUANTILE:
            return Dual(tau - 1.0, tau)
        if self.name == EXPECTILE:
            return Dual(-infinite, infinite, plus=0.5 / tau, minus=0.5 / (1.0 - tau))
        if self.name == ABSOLUTE:
            return Dual(-1.0, 1.0)
        if self.name == INSENSITIVE:
            return Dual(-1.0, 1.0, e=self.epsilon)
        if self.name == HUBER:
            return Dual(-2.0 * self.epsilon, 2.0 * self.epsilon, plus=0.5, minus=0.5)
        return Dual(
            -infinite, infinite, e=self.epsilon if self.name == SQUARED_INSENSITIVE else 0.0, plus=0.5, minus=0.5
        )

    @property
    def residual(self) -> Residual:
        """The loss as the linear solvers have it; of a row the same as `self(y - f)`."""
        if self.name in LEVELLED:
            return Residual(1 if self.name == QUANTILE else 2, self.level, 1.0 - self.level)
        if self.name == HUBER:
            return Residual(2, bend=self.epsilon)
        epsilon = self.epsilon if self.name in (INSENSITIVE, SQUARED_INSENSITIVE) else 0.0
        return Residual(1 if self.name in (ABSOLUTE, INSENSITIVE) else 2, epsilon=epsilon)

    @property
    def robust(self) -> bool:
        """True where the loss grows in proportion to the residual at most; the constant is then a quantile."""
        return self.name in (QUANTILE, ABSOLUTE, INSENSITIVE, HUBER)

    def constant(self, y: Values, weight: Values) -> float:
        """The value that is best for all rows, sum_i w_i L(y_i, c): their mean, quantile or expectile.

        Of losses with an epsilon it is the median, or the mean where they are squared; it does not depend on epsilon,
        as the settings of a grid share it. y, weight : (n,), n > 0.
        """
        if self.name == EXPECTILE:
            return _expectile(y, weight, self.level)
        if self.robust:
            return quantile(y, weight, self.level)
        return float(y @ weight / weight.sum())


def usual_moments(some: Values, deviation: float, losses: Sequence[Loss]) -> tuple[float, float] | None:
    """The mean and the deviation of values without what those add that are far from nearly all others.

    Values count that are as far from their median as `far_from_0` says, and farther ones as if they were there. What
    a level asks for is not far: half of the tail beyond it is common, and so are at least 99 per cent of the rows.

    Parameters
    ----------
    some : (k, 2) values, and their weights.
    deviation : of all values.

    Returns
    -------
    mean, deviation : None where that of all is not much larger, and where a loss counts how far such values are.
    """
    if not all(loss.robust for loss in losses) or not len(some):
        return None
    y, weight = np.ascontiguousarray(some.T)
    weight = weight / weight.sum()
    common = max(1.0 - FEW, *(1.0 - min(loss.level, 1.0 - loss.level) / 2.0 for loss in losses))
    with np.errstate(over="ignore", invalid="ignore"):  # such values are refused later
        middle = quantile(y, weight, 0.5)
        left = y - middle
        far = max(far_from_0(left, weight), quantile(np.abs(left), weight, common))
        y = np.clip(y, middle - far, middle + far)
        mean = float(y @ weight)
        usual = float(np.sqrt(np.square(y - mean) @ weight))
    return (mean, usual) if 0.0 < usual * OUTWEIGHED < deviation else None


def _expectile(y: Values, weight: Values, level: float) -> float:
    """The c at which tau sum w (y - c)_+ = (1 - tau) sum w (c - y)_+: a mean whose weights depend on it."""
    c = float(y @ weight / weight.sum())
    for _ in range(MEAN_STEPS):
        own = weight * np.where(y > c, level, 1.0 - level)
        before, c = c, float(y @ own / own.sum())
        if abs(c - before) <= MEAN_ENOUGH * (1.0 + abs(c)):
            break
    return c
