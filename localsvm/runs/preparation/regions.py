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


def centres_of(rows: int, rng: np.random.Generator) -> Numbers:
    """The rows, of so many, that regions are around."""
    return np.sort(rng.permutation(rows)[:REGIONS])


def _first(distance: Floats, numbers: Numbers) -> NDArray[np.intp]:
    """Places of the REGION_ROWS smallest distances; of equal ones, those of smaller numbers."""
    return np.lexsort((numbers, distance))[:REGION_ROWS]


class NearRows(NamedTuple):
    """Rows of regions in blocks: for each region its distances and numbers, and all rows in the order of numbers."""

    distance: list[Floats]
    numbers: list[Numbers]
    rows: Drawn


@dataclass(frozen=True)
class Regions:
    """Statistic of the rows of regions, which keeps them as they are read; see `NearRows`.

    Attributes
    ----------
    centres : (regions, d) float32, scaled.
    scaled : what scales rows, without changing those that it is given.
    before : rows from this number on are left out.
    """

    centres: Dense
    scaled: Step
    before: int

    def of(self, block: Block) -> NearRows:
        """Rows of a block that may be of a region."""
        block = block.between(block.first, max(block.first, min(block.first + len(block.y), self.before)))
        distance = away(self.scaled(block.X), self.centres)
        near = _nearest(list(distance), [block.numbers] * len(self.centres))
        return NearRows(*near, block.rows(np.flatnonzero(np.isin(block.numbers, np.concatenate(near[1])))))

    def merge(self, a: NearRows, b: NearRows) -> NearRows:
        """The nearest rows of both."""
        distance = [np.concatenate(pair) for pair in zip(a.distance, b.distance, strict=True)]
        numbers = [np.concatenate(pair) for pair in zip(a.numbers, b.numbers, strict=True)]
        near, rows = _nearest(distance, numbers), together([a.rows, b.rows])
        return NearRows(*near, rows.at(np.flatnonzero(np.isin(rows.numbers, np.concatenate(near[1])))))


def _nearest(distance: Sequence[Floats], numbers: Sequence[Numbers]) -> tuple[list[Floats], list[Numbers]]:
    """The smallest distances of each region, and the numbers of their rows."""
    kept = [_first(*pair) for pair in zip(distance, numbers, strict=True)]
    pairs = list(zip(distance, numbers, kept, strict=True))
    return [each[places] for each, _, places in pairs], [each[places] for _, each, places in pairs]
