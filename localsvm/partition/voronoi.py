"""The binary Voronoi tree: nearly full cells between bisectors, shifted no further than that takes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from localsvm.partition._nearest import Matrix
from localsvm.partition.base import smallest_size
from localsvm.partition.centre_tree import directions_of
from localsvm.partition.growing import RowIndices, Split, subsample
from localsvm.partition.tree import TreePartition

Vector = NDArray[np.float64]
# rows of a node that its two centres are found from (the boundary is then placed with all rows); 2000 rows or
# 20 steps gave cells no tighter on covtype, ijcnn1 and cod-rna, 2 steps clearly wider ones
SAMPLE = 1000
BALANCED_STEPS = 4
NEAREST_STEPS = 8
SLACK = 1.15
LEAST_SHARE = 0.2


class Voronoi(TreePartition):
    """Cells of at most cell_size rows by a tree of Voronoi splits, balanced binary where the data do not ask otherwise.

    A node with n rows that must become m = max(ceil(n / cell_size), floor(1.15 n / cell_size)) cells is divided between
    two centres. They come from farthest-first traversal on a random subsample, moved by a few steps of Lloyd; the
    boundary is their bisector, shifted only as far as it takes for either side to hold a fifth of the rows at least and
    no more than its share of the m cells can: boundaries follow the data while the cells stay nearly full. Thomann,
    Blaschzyk, Meister, Steinwart, Spatial Decompositions for Large Scale SVMs (AISTATS 2017) divide by farthest-first
    centres too; their cells are not balanced.

    Every side keeps at least `smallest_size(cell_size)` rows unless rows of equal projection leave no other
    way to keep cells within cell_size.
    """

    name: ClassVar[str] = "voronoi"

    @staticmethod
    def split(matrix: Matrix, rows: RowIndices, cell_size: int, rng: np.random.Generator) -> Split | None:
        return halve(matrix, rows, cell_size, rng)


class Cut(NamedTuple):
    """A boundary; of two, the lesser is better: no side too small, then within what the cell size allows,
    then close to the wanted division."""

    too_small: bool
    outside: bool
    distance: int
    threshold: float


@dataclass(frozen=True)
class Plan:
    """How many of a node's n rows should lie on the low side: `target`, at best from `fewest` to `most`
    (the numbers that its share of the node's cells can hold), and at least `smallest` on each side."""

    n: int
    target: int
    fewest: int
    most: int
    smallest: int

    @classmethod
    def of(cls, n: int, cell_size: int, wanted: int) -> Plan:
        """The plan nearest to `wanted` rows on the low side."""
        cells = max(-(-n // cell_size), int(SLACK * n / cell_size), 2)
        least = max(1, int(LEAST_SHARE * n))
        wanted = min(max(wanted, least), n - least)
        low = min(max(round(cells * wanted / n), 1), cells - 1)
        fewest, most = n - (cells - low) * cell_size, low * cell_size
        return cls(n, min(max(wanted, fewest), most), fewest, most, smallest_size(cell_size))

    def cut(self, n_low: int, below: float, above: float) -> Cut:
        """The cut between two neighbouring projections, below < above, with n_low rows up to `below`."""
        middle = below / 2 + above / 2
        threshold = middle if below <= middle < above else below
        too_small = min(n_low, self.n - n_low) < self.smallest
        return Cut(too_small, not self.fewest <= n_low <= self.most, abs(n_low - self.target), threshold)


def halve(matrix: Matrix, rows: RowIndices, cell_size: int, rng: np.random.Generator) -> Split | None:
    """Divides rows between two centres at the plan nearest to their bisector; None when all rows are equal."""
    best: tuple[Cut, NDArray[np.float32], Vector] | None = None
    for pair in _pairs(matrix, rows, rng):
        centres = np.array(pair).astype(np.float32)
        projection = matrix.project(rows, directions_of(centres)[1])
        plan = Plan.of(len(rows), cell_size, int(np.count_nonzero(projection <= _bisector(*centres))))
        cut = best_cut(projection, plan)
        if cut is not None and (best is None or cut < best[0]):
            best = cut, centres, projection
        if best is not None and not best[0].too_small:
            break
    if best is None:
        return None
    (*_, threshold), centres, projection = best
    return Split(centres, np.array([0.0, threshold]), (projection > threshold).astype(np.int32))


def _bisector(low: NDArray[Any], high: NDArray[Any]) -> float:
    """Where the projection on high - low is the same for both centres' distances."""
    low, high = low.astype(np.float64), high.astype(np.float64)
    return float(high @ high - low @ low) / 2


def _pairs(matrix: Matrix, rows: RowIndices, rng: np.random.Generator) -> Iterator[tuple[Vector, Vector]]:
    """Pairs of centres to try, best first. Two rows that differ always have different projections on their
    difference, so the last pair divides whatever can be divided."""
    sample = subsample(rows, SAMPLE, rng)
    moved, far = matrix.pair(sample, BALANCED_STEPS, NEAREST_STEPS, max(1, int(LEAST_SHARE * len(sample))))
    yield moved[0], moved[1]
    yield far[0], far[1]
    other = np.flatnonzero(~matrix.same(rows, np.full(len(rows), rows[0])))
    if len(other):
        yield matrix.total(rows[:1]), matrix.total(rows[other[:1]])


def best_cut(projection: Vector, plan: Plan) -> Cut | None:
    """The best place to cut n projections in two: exactly at the target where its neighbours differ,
    otherwise before or after the rows that share its value (farther cuts are worse by every measure). None
    when all are equal."""
    parts = np.partition(projection, plan.target)
    value = float(parts[plan.target])
    less, more = parts[: plan.target], parts[plan.target + 1 :]
    if np.max(less, initial=-np.inf) == value:
        less = less[less < value]
    if np.min(more, initial=np.inf) == value:
        more = more[more > value]
    cuts = []
    if len(less):
        cuts.append(plan.cut(len(less), float(np.max(less)), value))
    if len(more):
        cuts.append(plan.cut(plan.n - len(more), value, float(np.min(more))))
    return min(cuts, default=None)
