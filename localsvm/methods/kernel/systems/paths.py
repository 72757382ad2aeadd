"""Where a solution along the costs ends, and vectors as a solver on a padded matrix has them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
PathEnd = tuple[float, Floats, Floats]  # a cost, the coefficients (size,) for it, and their products with the kernel


def zero_padded(values: Floats, size: int) -> Floats:
    """Values (n,), followed by zeros: (size,)."""
    out = np.zeros(size)
    out[: len(values)] = values
    return out


def ends_of(costs: Floats, b: Floats, f: Floats) -> list[PathEnd | None]:
    """Where a path goes on, after each of its costs: None but at the last one, of which copies are kept.

    costs : (m,). b, f : (m, size) coefficients and products.
    """
    last = len(costs) - 1
    return [(float(costs[c]), b[c].copy(), f[c].copy()) if c == last else None for c in range(len(costs))]


def scaled(end: PathEnd, cost: float) -> PathEnd:
    """What is nearly a solution for a cost near to that of `end`: bounds are still bounds, and products products."""
    before, b, f = end
    return cost, b * (cost / before), f * (cost / before)
