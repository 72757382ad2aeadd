"""Numbers and tables in Markdown.

table(("set", "error %"), [("magic", "13.9")])     # the lines
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np


def table(head: Sequence[object], rows: Iterable[Iterable[object]]) -> list[str]:
    """The lines of a table."""
    return [_row(head), "|---" * len(head) + "|", *map(_row, rows)]


def _row(cells: Iterable[object]) -> str:
    return f"| {' | '.join(map(str, cells))} |"


def thousands(n: int) -> str:
    """12 345."""
    return f"{n:,}".replace(",", " ")


def number(value: float | None, digits: int = 3) -> str:
    """So many significant digits; from 1 000 on the whole number; nothing for None."""
    if value is None:
        return ""
    return thousands(round(value)) if abs(value) >= 1000 else f"{value:.{digits}g}"


def mean_and_deviation(values: Sequence[float], digits: int) -> str:
    """3.208 (0.031)."""
    return f"{np.mean(values):.{digits}f} ({np.std(values):.{digits}f})"
