"""Losses of rows as functions of their decision values, which linear solvers minimise the sum of.

A loss that is not smooth is smoothed from below over a width h, and its derivatives are feasible dual coefficients.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from localsvm.solvers._linear import Descent, Margins, Residuals, RowLosses

Vector = NDArray[np.float64]
SMALLEST = float(np.finfo(np.float64).tiny)  # width of a loss that is not to be smoothed


class RowLoss(Protocol):
    """A loss of rows.

    Attributes
    ----------
    smooth : whether it has a derivative everywhere, so that there is no width.
    """

    @property
    def smooth(self) -> bool: ...

    def of(self, f: Vector, y: Vector) -> Vector:
        """The loss of decision values f and targets y, elementwise."""

    def at(self, y: Vector, cost: Vector, width: float) -> RowLosses:
        """The losses of rows of targets y and costs (n,), smoothed over a width unless the loss is smooth."""

    def alpha(self, coef: Vector, y: Vector) -> Vector:
        """Dual coefficients (n,), from minus the derivatives of the losses by the decision values."""

    def takes_part(self, y: Vector) -> NDArray[np.bool_]:
        """Whether the rows (n,) have a loss at all, whatever their costs."""

    @property
    def steepest(self) -> float:
        """The largest second derivative of a smooth loss, the largest first one of another."""

    def descent(self, size: int, rows: float, t0: float) -> Descent:
        """Stochastic subgradients of the loss, from weights (size,) of 0; a squared hinge has none."""


@dataclass(frozen=True)
class Hinge:
    """max(0, 1 - y f), or its square; y is 1 or -1, or 0 where a row takes no part."""

    squared: bool = False

    @property
    def smooth(self) -> bool:
        """True where it is squared."""
        return self.squared

    def of(self, f: Vector, y: Vector) -> Vector:
        """See `RowLoss`."""
        slack = np.maximum(0.0, 1.0 - y * f)
        return np.asarray(np.square(slack) if self.squared else slack)

    def at(self, y: Vector, cost: Vector, width: float) -> Margins:
        """See `RowLoss`."""
        return Margins(y, cost, 0.0 if self.squared else width)

    def alpha(self, coef: Vector, y: Vector) -> Vector:
        """Coefficients from 0: minus the derivatives by y f."""
        return np.asarray(coef * y)

    def takes_part(self, y: Vector) -> NDArray[np.bool_]:
        """True for the rows of the two classes."""
        return np.not_equal(y, 0.0)

    @property
    def steepest(self) -> float:
        """See `RowLoss`."""
        return 2.0 if self.squared else 1.0

    def descent(self, size: int, rows: float, t0: float) -> Descent:
        """See `RowLoss`."""
        assert not self.squared, "refused by the methods"
        return Descent(size, rows, t0)


HINGE, SQUARED_HINGE = Hinge(), Hinge(True)


@dataclass(frozen=True)
class Residual:
    """A loss of z = max(0, |y - f| - epsilon), taken `up` times where y > f, and `down` times elsewhere.

    Attributes
    ----------
    power : 1 for z itself, 2 for its square.
    bend : with power 2, z up to which the square goes on; from there the loss grows in proportion. 0 for no end.
    """

    power: int
    up: float = 1.0
    down: float = 1.0
    epsilon: float = 0.0
    bend: float = 0.0

    @property
    def smooth(self) -> bool:
        """True for squares."""
        return self.power == 2

    @property
    def quadratic(self) -> bool:
        """True where one step of Newton's method reaches the minimum."""
        return self.power == 2 and self.up == self.down and self.epsilon == self.bend == 0.0

    def of(self, f: Vector, y: Vector) -> Vector:
        """See `RowLoss`."""
        r = y - f
        z = np.maximum(np.abs(r) - self.epsilon, 0.0)
        inside = np.minimum(z, self.bend or np.inf)
        return np.asarray(np.where(r > 0.0, self.up, self.down) * (inside * (2.0 * z - inside) if self.smooth else z))

    def at(self, y: Vector, cost: Vector, width: float) -> Residuals:
        """See `RowLoss`; z^2 up to a bend k is 2 k times the form of width k."""
        if not self.smooth:
            return Residuals(y, cost, self.up, self.down, self.epsilon, width, False)
        times = 2.0 * self.bend if self.bend else 1.0
        return Residuals(y, cost, times * self.up, times * self.down, self.epsilon, self.bend, bool(self.bend))

    def alpha(self, coef: Vector, y: Vector) -> Vector:
        """The derivatives themselves."""
        return coef

    def takes_part(self, y: Vector) -> NDArray[np.bool_]:
        """True for all rows."""
        return np.ones(len(y), np.bool_)

    @property
    def steepest(self) -> float:
        """See `RowLoss`."""
        return self.power * max(self.up, self.down)

    def descent(self, size: int, rows: float, t0: float) -> Descent:
        """See `RowLoss`."""
        nothing = np.zeros(1)
        return Descent(size, rows, t0, self.at(nothing, nothing, SMALLEST))
