"""The balanced binary Voronoi tree: cells of nearly equal size between shifted bisectors."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from localsvm.partition._nearest import Matrix
from localsvm.partition.base import smallest_size
from localsvm.partition.tree import Rows, Split, TreePartition, directions_of, subsample

Vector = NDArray[np.float64]
# rows of a node that its two centres are found from (the boundary is then placed with all rows); 2000 rows or
# 20 steps gave cells no tighter on covtype, ijcnn1 and cod-rna, 2 steps clearly wider ones
SAMPLE = 1000
LLOYD_STEPS = 8


class Voronoi(TreePartition):
    """Cells of at most cell_size rows by a balanced binary Voronoi tree.

    A node with n rows that must become m = ceil(n / cell_size) cells is divided between two centres, into
    floor(m / 2) and ceil(m / 2) cells. The centres come from farthest-first traversal on a random
    subsample, moved by a few steps of balanced Lloyd; the boundary is their bisector, shifted to where the
    wanted numbers of rows lie on either side. Thomann, Blaschzyk, Meister, Steinwart, Spatial
    Decompositions for Large Scale SVMs (AISTATS 2017) divide by farthest-first centres too; their cells are
    not balanced.

    Every side keeps at least `smallest_size(cell_size)` rows unless rows of equal projection leave no other
    way to keep cells within cell_size.
    """

    name: ClassVar[str] = "voronoi"

    @staticmethod
    def split(matrix: Matrix, rows: Rows, cell_size: int, rng: np.random.Generator) -> Split | None:
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
    (the numbers that need no more cells than ceil(n / cell_size)), and at least `smallest` on each side."""

    n: int
    target: int
    fewest: int
    most: int
    smallest: int

    @classmethod
    def of(cls, n: int, cell_size: int) -> Plan:
        cells = -(-n // cell_size)
        low, high = cells // 2, cells - cells // 2
        target = (2 * n * low + cells) // (2 * cells)
        return cls(n, target, n - high * cell_size, low * cell_size, smallest_size(cell_size))

    def cut(self, n_low: int, below: float, above: float) -> Cut:
        """The cut between two neighbouring projections, below < above, with n_low rows up to `below`."""
        middle = below / 2 + above / 2
        threshold = middle if below <= middle < above else below
        too_small = min(n_low, self.n - n_low) < self.smallest
        return Cut(too_small, not self.fewest <= n_low <= self.most, abs(n_low - self.target), threshold)


def halve(matrix: Matrix, rows: Rows, cell_size: int, rng: np.random.Generator) -> Split | None:
    """Divides rows between two centres as the plan wants it; None when all rows are equal."""
    plan = Plan.of(len(rows), cell_size)
    best: tuple[Cut, NDArray[np.float32], Vector] | None = None
    for pair in _pairs(matrix, rows, plan, rng):
        centres = np.array(pair).astype(np.float32)
        projection = matrix.project(rows, directions_of(centres)[1])
        cut = best_cut(projection, plan)
        if cut is not None and (best is None or cut < best[0]):
            best = cut, centres, projection
        if best is not None and not best[0].too_small:
            break
    if best is None:
        return None
    (*_, threshold), centres, projection = best
    return Split(centres, np.array([0.0, threshold]), (projection > threshold).astype(np.int32))


def _pairs(
    matrix: Matrix, rows: Rows, plan: Plan, rng: np.random.Generator
) -> Iterator[tuple[Vector, Vector]]:
    """Pairs of centres to try, best first. Two rows that differ always have different projections on their
    difference, so the last pair divides whatever can be divided."""
    sample = subsample(rows, SAMPLE, rng)
    far = _farthest_first(matrix, sample)
    yield _balanced_lloyd(matrix, sample, far, plan)
    yield far
    other = np.flatnonzero(~matrix.same(rows, np.full(plan.n, rows[0])))
    if len(other):
        yield matrix.total(rows[:1]), matrix.total(rows[other[:1]])


def _farthest_first(matrix: Matrix, sample: Rows) -> tuple[Vector, Vector]:
    """Two rows: the farthest from the sample's mean, and the farthest from that one."""
    squares = matrix.squares(sample)
    first = _farthest(matrix, sample, squares, matrix.total(sample) / len(sample))
    return first, _farthest(matrix, sample, squares, first)


def _farthest(matrix: Matrix, sample: Rows, squares: Vector, centre: Vector) -> Vector:
    at = int(np.argmax(squares - 2 * matrix.project(sample, centre)))
    return matrix.total(sample[at : at + 1])


def _balanced_lloyd(
    matrix: Matrix, sample: Rows, pair: tuple[Vector, Vector], plan: Plan
) -> tuple[Vector, Vector]:
    """Moves two centres to the means of the wanted shares of the sample on either side of their bisector.

    Farthest rows are outliers (after scaling by the standard deviation, a rare binary column is 100 wide),
    and a direction between outliers says nothing about the rest; the means of two large halves do. Rows of
    equal projection are dealt to the halves as they come, which lets the other columns decide next.
    """
    low, high = pair
    n_low = min(max(1, round(len(sample) * plan.target / plan.n)), len(sample) - 1)
    before = np.zeros(len(sample), dtype=bool)
    for _ in range(LLOYD_STEPS):
        is_low = _lowest(matrix.project(sample, high - low), n_low)
        if np.array_equal(is_low, before):
            break
        low = matrix.total(sample[is_low]) / n_low
        high = matrix.total(sample[~is_low]) / (len(sample) - n_low)
        before = is_low
    return low, high


def _lowest(values: Vector, count: int) -> NDArray[np.bool_]:
    """Which of the values are the `count` lowest; of equal ones the first."""
    last = np.partition(values, count - 1)[count - 1]
    lowest: NDArray[np.bool_] = values < last
    lowest[np.flatnonzero(values == last)[: count - np.count_nonzero(lowest)]] = True
    return lowest


def best_cut(projection: Vector, plan: Plan) -> Cut | None:
    """The best place to cut n projections in two: exactly at the target where its neighbours differ,
    otherwise before or after the rows that share its value (farther cuts are worse by every measure). None
    when all are equal."""
    value = float(np.partition(projection, plan.target)[plan.target])
    less, more = projection < value, projection > value
    n_less, n_more = int(np.count_nonzero(less)), int(np.count_nonzero(more))
    cuts = []
    if n_less:
        cuts.append(plan.cut(n_less, float(np.max(projection, where=less, initial=-np.inf)), value))
    if n_more:
        cuts.append(plan.cut(plan.n - n_more, value, float(np.min(projection, where=more, initial=np.inf))))
    return min(cuts, default=None)
