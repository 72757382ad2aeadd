"""The binary Voronoi tree: boundaries are bisectors of two centres, shifted only as far as nearly full cells need."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from localsvm.partition._nearest import Matrix
from localsvm.partition.base import smallest_size
from localsvm.partition.centre_tree import vectors_of
from localsvm.partition.growing import RowIndices, Split, sampled, subsample
from localsvm.partition.tree import TreePartition

Vector = NDArray[np.float64]
# The two centres of a node come from a sample of its rows; all rows then place the boundary. Neither 2000 rows nor 20
# steps gave tighter cells on covtype, ijcnn1 and cod-rna; 2 steps gave clearly wider ones.
SAMPLE = 1000
BALANCED_STEPS = 4  # of Lloyd's algorithm between equal halves of the sample, ...
NEAREST_STEPS = 8  # ... and then at most this many between the rows nearest to each centre
SLACK = 1.15  # about this many times the fewest possible cells
LEAST_SHARE = 0.2  # of a node's rows on either side


class Voronoi(TreePartition):
    """Cells of at most cell_size rows by a tree of Voronoi splits, balanced unless the data suggest otherwise.

    A node of n rows has to become m = max(ceil(n / cell_size), floor(1.15 n / cell_size)) cells. It is divided between
    two centres: farthest-first traversal of a random sample gives them, and a few steps of Lloyd's algorithm move them.
    The boundary is their bisector, shifted only until either side has at least a fifth of the rows and no more than its
    share of the m cells can hold. So boundaries follow the data while cells stay nearly full.

    Each side keeps at least `smallest_size(cell_size)` rows, unless rows with equal projections leave no other way to
    keep cells within cell_size.

    References
    ----------
    Thomann, Blaschzyk, Meister, Steinwart: Spatial Decompositions for Large Scale SVMs. AISTATS 2017. They divide by
    farthest-first centres, too, but do not balance the cells.
    """

    name = "voronoi"

    def split(self, matrix: Matrix, rows: RowIndices, cell_size: int, rng: np.random.Generator) -> Split | None:
        return halve(matrix, rows, cell_size, rng, self.share, self.manhattan)


class ManhattanVoronoi(Voronoi):
    """Voronoi cells by the Manhattan distance: a row goes to the centre with the smallest sum of absolute differences.

    The centres are found as for `Voronoi`, by Lloyd's steps, which take means; only the boundaries and the routing are
    measured by this distance, as the kernel measures.
    """

    name = "voronoi-manhattan"
    manhattan = True


class Cut(NamedTuple):
    """A boundary. The lesser of two is better; the order of the fields is the order of comparison.

    Attributes
    ----------
    too_small : bool
        A side has fewer rows than the plan's `smallest`.
    outside : bool
        The low side has fewer rows than `fewest` or more than `most`.
    distance : int
        Rows between the low side and the plan's `target`.
    threshold : float
        The projection at which the boundary lies.
    """

    too_small: bool
    outside: bool
    distance: int
    threshold: float


@dataclass(frozen=True)
class SplitPlan:
    """The numbers of a node's n rows that should lie on the low side.

    Attributes
    ----------
    n : int
    target : int
        The best number of rows.
    fewest, most : int
        Good numbers: what the low side's share of the node's cells can hold.
    smallest : int
        Fewest rows on either side.
    """

    n: int
    target: int
    fewest: int
    most: int
    smallest: int

    @classmethod
    def of(cls, n: int, cell_size: int, wanted: int) -> SplitPlan:
        """The plan with its target as close to `wanted` rows as the limits allow."""
        cells = max(-(-n // cell_size), int(SLACK * n / cell_size), 2)
        least = max(1, int(LEAST_SHARE * n))
        wanted = min(max(wanted, least), n - least)
        low = min(max(round(cells * wanted / n), 1), cells - 1)
        fewest, most = n - (cells - low) * cell_size, low * cell_size
        return cls(n, min(max(wanted, fewest), most), fewest, most, smallest_size(cell_size))

    def cut(self, n_low: int, below: float, above: float) -> Cut:
        """The cut between two neighbouring projections, below < above, if n_low rows have projections up to `below`."""
        middle = below / 2 + above / 2
        threshold = middle if below <= middle < above else below
        too_small = min(n_low, self.n - n_low) < self.smallest
        return Cut(too_small, not self.fewest <= n_low <= self.most, abs(n_low - self.target), threshold)


def halve(
    matrix: Matrix, rows: RowIndices, cell_size: int, rng: np.random.Generator, share: float = 1.0,
    manhattan: bool = False,
) -> Split | None:  # fmt: skip
    """Divide rows between two centres, as close to their bisector as the plan allows; None if all rows are equal.

    Parameters
    ----------
    share : largest share of the rows from which the centres come.
    manhattan : whether the distance to the centres is that one.
    """
    best: tuple[Cut, NDArray[np.float32], Vector] | None = None
    for pair in _pairs(matrix, subsample(rows, sampled(rows, SAMPLE, share), rng), rows):
        centres = np.array(pair).astype(np.float32)
        vectors = vectors_of(centres, manhattan)
        projection = matrix.apart(rows, vectors) if manhattan else matrix.project(rows, vectors[1])
        nearer = projection <= _bisector(centres[0], centres[1], manhattan)
        plan = SplitPlan.of(len(rows), cell_size, int(np.count_nonzero(nearer)))
        cut = best_cut(projection, plan)
        if cut is not None and (best is None or cut < best[0]):
            best = cut, centres, projection
        if best is not None and not best[0].too_small:
            break
    if best is None:
        return None
    (*_, threshold), centres, projection = best
    return Split(centres, np.array([0.0, threshold]), (projection > threshold).astype(np.int32))


def _bisector(low: NDArray[Any], high: NDArray[Any], manhattan: bool) -> float:
    """The projection on high - low, or with `manhattan` what `Matrix.apart` gives, where both are equally far."""
    low, high = low.astype(np.float64), high.astype(np.float64)
    if manhattan:
        return float(np.abs(high).sum() - np.abs(low).sum())
    return float(high @ high - low @ low) / 2


def _pairs(matrix: Matrix, sample: RowIndices, rows: RowIndices) -> Iterator[tuple[Vector, Vector]]:
    """Pairs of centres to try, best first, from a sample of the rows.

    The last pair are two rows that differ: their projections on the difference differ, so they divide whatever can be
    divided.
    """
    moved, far = matrix.pair(sample, BALANCED_STEPS, NEAREST_STEPS, max(1, int(LEAST_SHARE * len(sample))))
    yield moved[0], moved[1]
    yield far[0], far[1]
    other = np.flatnonzero(~matrix.same(rows, np.full(len(rows), rows[0])))
    if len(other):
        yield matrix.total(rows[:1]), matrix.total(rows[other[:1]])


def best_cut(projection: Vector, plan: SplitPlan) -> Cut | None:
    """The best cut of n projections in two; None if all are equal.

    It lies exactly at the target if the projections on both sides of that place differ. Otherwise it lies before or
    after the rows that share the value there; cuts farther away are worse in every respect.
    """
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
