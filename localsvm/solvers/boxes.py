"""The dual of a loss of values for rows of some costs; see csrc/smo.h."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from localsvm.solvers._smo import Terms

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Dual:
    """Numbers of the dual problem for rows of cost 1: bounds of the coefficients, and their terms; see csrc/smo.h.

    Bounds are C times, and the quadratic parts 1 / C times, what they are for C = 1.

    Attributes
    ----------
    low, high : bounds, minus and plus infinity for none.
    e, plus, minus : of the term.
    """

    low: float
    high: float
    e: float = 0.0
    plus: float = 0.0
    minus: float = 0.0

    @property
    def plain(self) -> bool:
        """True where there is no term."""
        return self.e == self.plus == self.minus == 0.0


@dataclass(frozen=True)
class Boxes:
    """Bounds of the coefficients of rows with some costs, and their terms, None where there are none."""

    low: Floats
    high: Floats
    terms: Terms | None

    @classmethod
    def of(cls, dual: Dual, cost: Floats) -> Boxes:
        """Bounds for rows of these costs (n,); a row of cost 0 takes no part."""
        inside = cost > 0.0
        safe = np.where(inside, cost, 1.0)
        low, high = np.where(inside, safe * dual.low, 0.0), np.where(inside, safe * dual.high, 0.0)
        if dual.plain:
            return cls(low, high, None)
        e, plus, minus = (np.where(inside, part, 0.0) for part in (dual.e, dual.plus / safe, dual.minus / safe))
        return cls(low, high, Terms(e, plus, minus, float(cost.sum())))
