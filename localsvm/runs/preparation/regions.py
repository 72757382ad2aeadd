"""Regions of many rows: those nearest to some of them, as dense as all rows are there.

A geometry that suits few rows far from each other need not suit many near ones, and cells hold near ones. So where
there are many times as many rows as can choose, regions do.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from localsvm.data.blocks.dataset import Dense, Examples
from localsvm.engines.base import Block, Drawn, Step, together

REGIONS, REGION_ROWS = 20, 1000
Floats = NDArray[np.float64]
Numbers = NDArray[np.int64]


def away(X: Examples, centres: Dense) -> Floats:
    """Squared distances (regions, n) of rows X (n, d) from centres, without a constant of each centre.

    Each is of its row alone, to the last bit.
    """
    if isinstance(X, np.ndarray):
        squares, products = np.einsum("ij,ij->i", X, X), np.einsum("ij,kj->ki", X, centres)
    else:
        squares = np.asarray(X.multiply(X).sum(axis=1), np.float64).reshape(-1)
        products = np.asarray(X @ centres.T).T
    return np.asarray(squares - 2.0 * products, np.float64)


def _first(distance: Floats, numbers: Numbers) -> NDArray[np.intp]:
    """Places of the REGION_ROWS smallest distances; of equal ones, those of smaller numbers."""
    return np.lexsort((numbers, distance))[:REGION_ROWS]


class Found(NamedTuple):
    """Rows of regions in blocks: for each region its distances and numbers, and all rows in the order of numbers."""

    distance: list[Floats]
    numbers: list[Numbers]
    rows: Drawn


@dataclass(frozen=True)
class Regions:
    """Statistic of the rows of regions, which keeps them as they are read; see `Found`.

    Attributes
    ----------
    centres : (regions, d) float32, scaled.
    scaled : what scales rows, without changing those that it is given.
    before : rows from this number on are left out.
    """

    centres: Dense
    scaled: Step
    before: int

    def of(self, block: Block) -> Found:
        """Rows of a block that may be of a region."""
        block = block.between(block.first, max(block.first, min(block.first + len(block.y), self.before)))
        distance = away(self.scaled(block.X), self.centres)
        return _trimmed(list(distance), [block.numbers] * len(self.centres), block.rows(np.arange(len(block.y))))

    def merge(self, a: Found, b: Found) -> Found:
        """The nearest rows of both."""
        distance = [np.concatenate(pair) for pair in zip(a.distance, b.distance, strict=True)]
        numbers = [np.concatenate(pair) for pair in zip(a.numbers, b.numbers, strict=True)]
        return _trimmed(distance, numbers, together([a.rows, b.rows]))


def _trimmed(distance: Sequence[Floats], numbers: Sequence[Numbers], rows: Drawn) -> Found:
    kept = [_first(*pair) for pair in zip(distance, numbers, strict=True)]
    near = [each[places] for each, places in zip(numbers, kept, strict=True)]
    places = np.flatnonzero(np.isin(rows.numbers, np.concatenate(near)))
    return Found([each[places] for each, places in zip(distance, kept, strict=True)], near, rows.at(places))
