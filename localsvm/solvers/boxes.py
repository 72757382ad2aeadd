"""The dual of a loss for rows of some costs; see csrc/smo.h."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from localsvm.solvers._smo import DualReport, KernelDual, Terms

if TYPE_CHECKING:
    from localsvm.solvers.blocks import BlockDual
    from localsvm.solvers.lasvm import OnlineDual

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Dual:
    """Numbers of the dual problem for rows of cost 1: bounds of the coefficients, and their terms; see csrc/smo.h.

    Bounds are C times, and the quadratic parts 1 / C times, what they are for C = 1.

    Attributes
    ----------
    low, high : bounds, minus and plus infinity for none.
    e, plus, minus : of the term.
    sided : whether labels are -1 and 1, and the bound on the other side than a row's label is 0.
    """

    low: float
    high: float
    e: float = 0.0
    plus: float = 0.0
    minus: float = 0.0
    sided: bool = False

    @property
    def plain(self) -> bool:
        """True where there is no term."""
        return self.e == self.plus == self.minus == 0.0


HINGE = Dual(-1.0, 1.0, sided=True)
SQUARED_HINGE = Dual(-math.inf, math.inf, plus=0.5, minus=0.5, sided=True)


@dataclass(frozen=True)
class Boxes:
    """Bounds of the coefficients of rows with some costs, and their terms, None where there are none."""

    low: Floats
    high: Floats
    terms: Terms | None

    @classmethod
    def of(cls, dual: Dual, cost: Floats, y: Floats) -> Boxes:
        """Bounds for rows of these costs (n,), and values or labels y (n,); a row of cost 0 takes no part."""
        inside = cost > 0.0
        safe = np.where(inside, cost, 1.0)
        grows, shrinks = (inside & (y > 0.0), inside & (y < 0.0)) if dual.sided else (inside, inside)
        low, high = np.where(shrinks, safe * dual.low, 0.0), np.where(grows, safe * dual.high, 0.0)
        if dual.plain:
            return cls(low, high, None)
        e, plus, minus = (np.where(inside, part, 0.0) for part in (dual.e, dual.plus / safe, dual.minus / safe))
        return cls(low, high, Terms(e, plus, minus, float(cost.sum())))

    def solved(
        self, solver: KernelDual | BlockDual | OnlineDual, tolerance: float, start: Floats | None
    ) -> tuple[Floats, Floats, DualReport]:
        """What `KernelDual.solve` finds in these boxes, from coefficients that are clipped to them, or from zeros."""
        first = None if start is None else np.clip(start, self.low, self.high)
        if self.terms is None:
            return solver.solve(self.low, self.high, tolerance, first)
        assert isinstance(solver, KernelDual), "others have no terms"
        return solver.solve(self.low, self.high, tolerance, first, self.terms)
