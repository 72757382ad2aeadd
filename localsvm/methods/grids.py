"""Grids of hyper-parameters: the default one, and the values that a user writes."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from localsvm.errors import OptionError

SIZE = 10  # points an axis
MAX_SPREAD = 1e3  # the widest width over the base 5, where n is small against d and (1 + 5/n)^d explodes


def default_widths(average_rows: float, features: int, radius: float, size: int = SIZE) -> tuple[float, ...]:
    """Gaussian widths, descending and geometric, after liquidSVM's rule (METHODS: Thomann et al. 2017, section 5).

    From 5 (1 + 5/n)^d down to 0.2 n^(-1/d), n the average number of rows trained on, both moved by the whole number
    of grid steps that the cell's radius over sqrt(d) is away from 1: cells of all sizes stay on one lattice of
    widths.
    """
    n, d = max(1.0, average_rows), max(1, features)
    widest = 5.0 * math.exp(min(math.log(MAX_SPREAD), d * math.log1p(5.0 / n)))
    narrowest = 0.2 * n ** (-1.0 / d)
    step = (widest / narrowest) ** (1.0 / (size - 1))
    scale = radius / math.sqrt(d)
    moved = math.floor(math.log(scale) / math.log(step)) if scale > 0 else 0
    return tuple(float(widest * step ** (moved - i)) for i in range(size))


def default_lambdas(rows: float, size: int = SIZE) -> tuple[float, ...]:
    """Regularisation parameters, descending and geometric, from 0.01 to 0.001 / n for n rows trained on."""
    return tuple(float(v) for v in np.geomspace(0.01, 0.001 / max(1.0, rows), size))


def parse_number(text: str) -> float:
    """A positive number, written plainly (0.5, 1e-3) or as a power (2^-5)."""
    base, power, exponent = text.strip().partition("^")
    try:
        value = float(base) ** float(exponent) if power else float(base)
    except (ValueError, OverflowError, ZeroDivisionError):
        raise OptionError(f"{text.strip()!r} is not a number; write 0.5, 1e-3 or 2^-5") from None
    if isinstance(value, complex) or not 0 < value < math.inf:
        raise OptionError(f"{text.strip()!r} is not a positive number")
    return value


def parse_values(text: str) -> tuple[float, ...]:
    """One value (0.5), a list (0.1,1,10) or a geometric range LOW:HIGH[:COUNT] (2^-5:2^3:9; 10 points by default)."""
    if ":" not in text:
        return tuple(sorted({parse_number(part) for part in text.split(",")}))
    parts = text.split(":")
    if len(parts) > 3:
        raise OptionError(f"{text!r} is not a range; write LOW:HIGH or LOW:HIGH:COUNT")
    low, high = parse_number(parts[0]), parse_number(parts[1])
    count = parts[2] if len(parts) == 3 else str(SIZE)
    if not count.isdecimal() or int(count) < 2:
        raise OptionError(f"{text!r}: the count of a range is a whole number from 2")
    if low >= high:
        raise OptionError(f"{text!r}: the low end of a range comes first")
    return tuple(float(v) for v in np.geomspace(low, high, int(count)))


def check_values(values: Sequence[float], most: int = 64) -> tuple[float, ...]:
    """Values of a user's grid axis, ascending; at most 64 points."""
    if len(values) > most:
        raise OptionError(f"{len(values)} values on one axis of the grid; at most {most}")
    return tuple(sorted(values))
