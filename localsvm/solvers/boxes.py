"""The dual of a loss of values for rows of some costs, and the way from one cost to the next; see csrc/smo.h."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from localsvm.solvers._smo import KernelDual, Terms

Floats = NDArray[np.float64]
ROUNDING = 1e-12  # relative, of a coefficient that is to be a multiple of another


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

    def grown(self, b: Floats, ratio: float, cost: Floats, dual: Dual) -> Floats:
        """Coefficients of a solution for the costs before, with those at a bound grown by the ratio to the next."""
        with np.errstate(invalid="ignore"):
            bound = np.where(b > 0.0, cost * dual.high, cost * dual.low)
        at_bound = np.isfinite(bound) & (np.abs(b) >= np.abs(bound) * (1.0 - ROUNDING)) & (b != 0.0)
        return np.clip(np.where(at_bound, b * ratio, b), self.low, self.high)


def moved(dual: KernelDual, b: Floats, f: Floats, first: Floats, ratio: float) -> Floats:
    """Products of the kernel with coefficients `first`, most of which are b or b times the ratio; f are those of b.

    f' = f + K (first - b) = ratio f + K (first - ratio b): the one with fewer coefficients other than 0.
    """
    kept, grown = first - b, first - ratio * b
    kept[np.abs(kept) <= ROUNDING * np.abs(b)] = 0.0
    grown[np.abs(grown) <= ROUNDING * np.abs(first)] = 0.0
    if np.count_nonzero(kept) <= np.count_nonzero(grown):
        return f + dual.multiply(kept)
    return np.asarray(ratio * f + dual.multiply(grown))
