"""Grids of hyper-parameters: what a grid is, the default axes, and the values that a user writes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from localsvm.errors import OptionError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


Values = tuple[float, ...]

SIZE, MOST_VALUES = 10, 64  # points an axis
MOST_GUIDE, THINNED = 5000, 4  # rows of a part that guides a search; and one of so many at most
LARGEST_COST = 1e50  # of C, and of a factor on it: squares of sums of their products are finite
SHORT, ROUNDING = 12, 1e-14  # digits, and relative errors of a range's values
# of the default widths, before n and d move them; of Manhattan ones where narrower ones follow, and where none do
GAUSSIAN_ENDS, MANHATTAN_ENDS, MANHATTAN_ALL = (5.0, 0.2), (20.0, 0.5), (20.0, 0.1)
MAX_SPREAD = 1e3  # the widest width over its end, where n is small against d and (1 + 5/n)^d explodes


@dataclass(frozen=True)
class Grid:
    """The points of a cell's grid: settings, at each of which the cost grows.

    Attributes
    ----------
    settings : the values of the parameters other than the cost, in the order of their `names`; smoothest first, as
        gammas ascending. Without other parameters names is () and settings is ((),).
    lambdas : descending. A problem trained on n rows gets C = 1 / (2 lambda n), so that a refit on more rows keeps
        lambda.
    costs : ascending, instead of lambdas. With neither there is one point a setting, and its cost is nan.
    of_problem : n are the rows of the binary problem, not all of the cell's.
    least_guide : rows of a part of a cell's rows, from which on an adaptive search begins where that of the part ends;
        its settings are ordered. 0 if no part says where to begin.
    """

    settings: tuple[Values, ...] = ((),)
    names: tuple[str, ...] = ()
    lambdas: Values = ()
    costs: Values = ()
    of_problem: bool = False
    least_guide: int = 0

    @property
    def ordered(self) -> bool:
        """True where settings that follow each other are neighbours: they are the values of a single parameter."""
        return len(self.names) == 1

    @property
    def n_costs(self) -> int:
        """Number of points along the cost axis."""
        return len(self.lambdas) or len(self.costs) or 1

    @property
    def n_points(self) -> int:
        """Number of points; a single one needs no cross-validation."""
        return len(self.settings) * self.n_costs

    def setting(self, index: int) -> dict[str, float]:
        """The parameters of a setting, by name."""
        return dict(zip(self.names, self.settings[index], strict=True))

    def nearest(self, value: float) -> int:
        """The index of the setting whose only parameter is nearest to a value, by its logarithm."""
        return min(range(len(self.settings)), key=lambda index: abs(math.log(self.settings[index][0] / value)))

    def costs_for(self, n: float) -> NDArray[np.float64]:
        """Costs C of the points along the cost axis, ascending, for a problem trained on n rows."""
        import numpy as np

        if self.lambdas:
            return np.asarray([1.0 / (2.0 * value * n) for value in self.lambdas])
        return np.asarray(self.costs or (np.nan,), dtype=np.float64)


def guide_step(rows: int, least: int) -> int:
    """One of so many rows of a cell is in the part that guides its search; 0 where it would be below the least.

    least : 0 if no part guides.
    """
    return max(THINNED, -(-rows // MOST_GUIDE)) if least and rows >= THINNED * least else 0


def default_widths(
    average_rows: float, features: int, radius: float, size: int = SIZE, further: int = 0
) -> tuple[float, ...]:
    """Gaussian widths, descending and geometric, after liquidSVM's rule (Thomann et al. 2017, section 5).

    They go from 5 (1 + 5/n)^d down to 0.2 n^(-1/d), both moved by the whole number of grid steps that the cell's radius
    over sqrt(d) is away from 1: cells of all sizes stay on one lattice of widths.

    Parameters
    ----------
    average_rows : n, the average number of rows that fold models are trained on, over all cells.
    features : d.
    radius : the largest distance of a row of the cell from the cell's mean.
    size, further : how many widths; and how many narrower ones follow them.
    """
    scale = radius / math.sqrt(max(1, features))
    return _lattice(average_rows, max(1, features), scale, size, GAUSSIAN_ENDS, further)


def exponential_widths(
    average_rows: float, features: int, radius: float, size: int = SIZE, further: int = 0
) -> tuple[float, ...]:
    """Widths 1 / gamma of the kernels exp(-gamma r), Manhattan and Laplacian, descending and geometric.

    Parameters are as of `default_widths`; the radius is a distance r. Widths go from 20 (1 + 5/n)^d down to
    0.1 n^(-1/d) times it. With further ones they go to 0.5 n^(-1/d), and on in these smaller steps. Leave-one-out
    errors on tables are smallest at widths from a third of the median distance up to thirty times that, and a few rows
    far away make the radius much larger.
    """
    ends = MANHATTAN_ENDS if further else MANHATTAN_ALL
    return _lattice(average_rows, max(1, features), radius, size, ends, further)


def _lattice(
    average_rows: float, features: int, scale: float, size: int, ends: tuple[float, float], further: int
) -> tuple[float, ...]:
    """Widths whose ends, for scale 1, are those for many features and rows, widened for fewer."""
    n, d = max(1.0, average_rows), features
    widest = ends[0] * math.exp(min(math.log(MAX_SPREAD), d * math.log1p(5.0 / n)))
    narrowest = ends[1] * n ** (-1.0 / d)
    step = (widest / narrowest) ** (1.0 / (size - 1))
    moved = math.floor(math.log(scale) / math.log(step)) if scale > 0 else 0
    return tuple(float(widest * step ** (moved - i)) for i in range(size + further))


def default_lambdas(rows: float, size: int = SIZE, further: int = 0) -> tuple[float, ...]:
    """Regularisation parameters, descending and geometric, from 0.01 to 0.001 / n for n rows trained on.

    further : how many smaller ones follow them.
    """
    import numpy as np

    usual = tuple(float(v) for v in np.geomspace(0.01, 0.001 / max(1.0, rows), size))
    step = usual[-1] / usual[-2]
    return (*usual, *(usual[-1] * step ** (k + 1) for k in range(further)))


def parse_number(text: str, zero: bool = False) -> float:
    """A positive number, written plainly (0.5, 1e-3) or as a power (2^-5). Raises OptionError for anything else.

    zero: whether it may be 0.
    """
    base, power, exponent = text.strip().partition("^")
    try:
        value = float(base) ** float(exponent) if power else float(base)
    except (ValueError, OverflowError, ZeroDivisionError):
        raise OptionError(f"{text.strip()!r} is not a number; write 0.5, 1e-3 or 2^-5") from None
    if zero and value == 0:
        return 0.0
    if isinstance(value, complex) or not 0 < value < math.inf:
        raise OptionError(f"{text.strip()!r} is not {'0 or ' if zero else ''}a positive number")
    return value


def parse_values(text: str, zero: bool = False, even: bool = False) -> tuple[float, ...]:
    """One value (0.5), a list (0.1,1,10) or a geometric range LOW:HIGH[:COUNT] (2^-5:2^3:9; 10 points by default).

    zero: whether 0 may be a value, or one of a list. even: whether the points of a range are equally far apart.

    Returns
    -------
    The values, ascending; those of a list once each.

    Raises
    ------
    OptionError : not a positive number, or not a range.
    """
    if ":" not in text:
        return tuple(sorted({parse_number(part, zero) for part in text.split(",")}))
    parts = text.split(":")
    if len(parts) > 3:
        raise OptionError(f"{text!r} is not a range; write LOW:HIGH or LOW:HIGH:COUNT")
    low, high = parse_number(parts[0]), parse_number(parts[1])
    count = parts[2] if len(parts) == 3 else str(SIZE)
    if not count.isdecimal() or len(count) > 9 or not 2 <= int(count) <= MOST_VALUES:
        raise OptionError(f"{text!r}: the count of a range is a whole number from 2 to {MOST_VALUES}")
    if low >= high:
        raise OptionError(f"{text!r}: the low end of a range comes first")
    return evenly(low, high, int(count)) if even else geometric(low, high, int(count))


def evenly(low: float, high: float, count: int) -> tuple[float, ...]:
    """An even range; .1:.9:9 has a .3 in it, not a .30000000000000004."""
    return tuple(_short(low + (high - low) * k / (count - 1)) for k in range(count))


def geometric(low: float, high: float, count: int) -> tuple[float, ...]:
    """A geometric range; 2^-2:2^10:13 has a 2 in it, not a 1.9999999999999993."""
    import numpy as np

    (low_part, low_power), (high_part, high_power) = math.frexp(low), math.frexp(high)
    if low_part == high_part == 0.5:  # powers of two are exact
        return tuple(float(v) for v in np.exp2(np.linspace(low_power - 1, high_power - 1, count)))
    return tuple(_short(float(v)) for v in np.geomspace(low, high, count))


def _short(value: float) -> float:
    """The number of at most SHORT digits that differs by no more than rounding errors; else the value itself."""
    short = float(f"{value:.{SHORT}g}")
    return short if abs(short - value) <= ROUNDING * value else value


def check_values(values: Sequence[float], most: int = MOST_VALUES) -> tuple[float, ...]:
    """Values of a user's grid axis, ascending. Raises OptionError for more than `most`."""
    if len(values) > most:
        raise OptionError(f"{len(values)} values on one axis of the grid; at most {most}")
    return tuple(sorted(values))
