"""Growing a tree of centres over rows: the top on a sample, then each part of the rows in a copy that fits caches."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from localsvm.data.dataset import places_of
from localsvm.partition._nearest import Matrix, group
from localsvm.partition.centre_tree import CentreTree
from localsvm.threads import Threads

if TYPE_CHECKING:
    from localsvm.data.dataset import Examples

RowIndices = NDArray[np.int64]


class Split(NamedTuple):
    """How a node's n rows go to k children: centres (k, d) float32, thresholds (k,) float64 (the first is
    0), and the child (n,) int32 of each row, as `Matrix.choose` finds it from the other two."""

    centres: NDArray[np.float32]
    thresholds: NDArray[np.float64]
    child: NDArray[np.int32]


# (matrix, rows, cell_size, rng): the split of more than cell_size rows, None for rows that nothing can divide
Splitter = Callable[[Matrix, RowIndices, int, np.random.Generator], Split | None]
# nodes of at most so many values are divided further in a copy of their rows that fits the caches: rows
# scattered over a large matrix cost 90 ns each, rows in a cache 15 (28 features, AMD EPYC)
LOCAL_VALUES = 1 << 21
# The top of a large tree is grown on a sample, down to parts of so many rows (or cells, if that is more) that are then
# divided each by itself. With so many rows of the sample for each, a part's size is a few per cent off, which costs
# nothing where it becomes many cells. None of this depends on how rows are stored, so nor does the tree.
PART_ROWS = 1 << 15
PART_CELLS = 16
PART_SAMPLE = 1 << 10
LEAST_PARTS = 4  # below so many a sample saves nothing
STRIP_VALUES = 1 << 20  # values of the rows that a thread routes at once


def subsample(rows: RowIndices, size: int, rng: np.random.Generator) -> RowIndices:
    """At most `size` of the rows at random, in their order."""
    if len(rows) <= size:
        return rows
    return rows[np.sort(rng.choice(len(rows), size, replace=False, shuffle=False))]


def thin_out(rows: RowIndices, size: int, rng: np.random.Generator) -> RowIndices:
    """One row at random of each of `size` equal stretches: a large sample, made without a list of all rows."""
    bounds = np.arange(size + 1) * len(rows) // size
    return rows[rng.integers(bounds[:-1], bounds[1:])]


def take(X: Examples, rows: RowIndices) -> Examples:
    """A copy of some rows of X, in the same form."""
    if isinstance(X, np.ndarray):
        return X.take(rows, axis=0)  # a quarter of the time that X[rows] needs
    counts, places = places_of(X, rows)
    # scikit-learn takes 32-bit row pointers only; parts are small
    pointers = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
    arrays = X.data[places], X.indices[places].astype(np.int32, copy=False), pointers
    return sparse.csr_array(arrays, shape=(len(rows), X.shape[1]))


@dataclass
class _Growing:
    """The columns of a CentreTree while nodes are added, and the sizes of the cells so far.

    Nodes of at most `enough` rows are left as they are: cell_size of them, or more in a sketch.
    """

    split: Splitter
    cell_size: int
    enough: int
    rng: np.random.Generator
    centres: list[NDArray[np.float32]] = field(default_factory=list)
    thresholds: list[float] = field(default_factory=list)
    first_child: list[int] = field(default_factory=list)
    n_children: list[int] = field(default_factory=list)
    cell: list[int] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)

    def add(self, centre: NDArray[np.float32], threshold: float) -> int:
        self.centres.append(centre)
        self.thresholds.append(threshold)
        self.first_child.append(0)
        self.n_children.append(0)
        self.cell.append(-1)
        return len(self.cell) - 1

    def divide(self, node: int, split: Split) -> list[int]:
        self.first_child[node] = len(self.cell)
        self.n_children[node] = len(split.thresholds)
        return [self.add(z, float(t)) for z, t in zip(split.centres, split.thresholds, strict=True)]

    def grow(self, root: int, matrix: Matrix, rows: RowIndices, local: bool) -> None:
        """Divides `rows` below the node `root`, depth first, and sorts them into cell order."""
        stack = [(root, 0, len(rows))]
        while stack:
            node, begin, end = stack.pop()
            part = rows[begin:end]
            if not local and _fits(matrix, part):
                self.grow_local(node, matrix, part)
                continue
            found = self.split(matrix, part, self.cell_size, self.rng) if len(part) > self.enough else None
            if found is None:
                self.cell[node] = len(self.sizes)
                self.sizes.append(len(part))
                continue
            bounds = (begin + group(part, found.child, len(found.thresholds))).tolist()
            stack.extend(reversed([*zip(self.divide(node, found), bounds[:-1], bounds[1:], strict=True)]))

    def grow_local(self, node: int, matrix: Matrix, rows: RowIndices) -> None:
        """As grow, in a copy of the rows."""
        order = np.arange(len(rows), dtype=np.int64)
        self.grow(node, Matrix(take(matrix.X, rows)), order, local=True)
        rows[:] = rows[order]

    def append(self, node: int, other: _Growing) -> None:
        """Puts the nodes of another tree below the leaf `node`, which becomes its root."""
        shift = len(self.cell) - 1
        first = [child + shift if n else 0 for child, n in zip(other.first_child, other.n_children, strict=True)]
        cell = [c + len(self.sizes) if c >= 0 else -1 for c in other.cell]
        self.first_child[node], self.n_children[node], self.cell[node] = first[0], other.n_children[0], cell[0]
        self.centres += other.centres[1:]
        self.thresholds += other.thresholds[1:]
        self.first_child += first[1:]
        self.n_children += other.n_children[1:]
        self.cell += cell[1:]
        self.sizes += other.sizes

    def finish(self) -> CentreTree:
        links = (np.array(a, dtype=np.int32) for a in (self.first_child, self.n_children, self.cell))
        return CentreTree(np.array(self.centres), np.array(self.thresholds), *links)


def grow(
    matrix: Matrix, rows: RowIndices, cell_size: int, split: Splitter, rng: np.random.Generator, threads: Threads
) -> tuple[CentreTree, RowIndices]:
    """Grows a tree over `rows` of the matrix, sorting them in place into cell order (ascending in each cell).

    A node of more than cell_size rows is divided by `split`, unless that returns None. Where the rows are many parts
    that fit the caches, the nodes above these are divided by their part of a sample, all rows go down this sketch in
    one pass, and what arrives in a part, more or less than the sample said, is divided exactly: no cell depends on how
    good the sample is for its size.
    Returns the tree and the bounds (cells + 1,) of the cells in `rows`. The number of threads has no influence.
    """
    growing = _grow(matrix, rows, _Growing(split, cell_size, cell_size, rng), threads)
    return growing.finish(), np.concatenate([[0], np.cumsum(growing.sizes)])


def _grow(matrix: Matrix, rows: RowIndices, empty: _Growing, threads: Threads) -> _Growing:
    """The tree over the rows: grown in `empty`, or put together by its rules."""
    part = max(PART_ROWS, PART_CELLS * empty.enough)
    if len(rows) > LEAST_PARTS * part:
        return _grow_parts(matrix, rows, part, empty, threads)
    centre = (matrix.total(rows) / len(rows)).astype(np.float32)
    empty.grow(empty.add(centre, 0.0), matrix, rows, local=_fits(matrix, rows))
    return empty


def _fits(matrix: Matrix, rows: RowIndices) -> bool:
    return len(rows) * matrix.width <= LOCAL_VALUES


def _grow_parts(matrix: Matrix, rows: RowIndices, part: int, empty: _Growing, threads: Threads) -> _Growing:
    """As _grow, for rows that make several parts of about `part` rows."""
    growing = _sketch(matrix, rows, part, empty, threads)
    top = growing.finish()
    bounds, centres, streams = _sort(matrix, rows, top, threads), top.leaf_centres, empty.rng.spawn(top.n_cells)

    def below(i: int) -> _Growing:
        branch = _Growing(empty.split, empty.cell_size, empty.enough, streams[i])
        branch.grow(branch.add(centres[i], 0.0), matrix, rows[bounds[i] : bounds[i + 1]], local=False)
        return branch

    leaves, growing.sizes = np.argsort(top.cell, kind="stable")[-top.n_cells :], []
    for leaf, branch in zip(leaves.tolist(), threads.map(below, top.n_cells), strict=True):
        growing.append(leaf, branch)
    return growing


def _sketch(matrix: Matrix, rows: RowIndices, part: int, empty: _Growing, threads: Threads) -> _Growing:
    """The tree down to parts of at most about `part` rows, grown on a sample (its own top on a sample of that)."""
    sample = Matrix(take(matrix.X, thin_out(rows, len(rows) * PART_SAMPLE // part, empty.rng)))
    cell_size = max(1, empty.cell_size * PART_SAMPLE // part)
    rules = _Growing(empty.split, cell_size, PART_SAMPLE, empty.rng)
    return _grow(sample, np.arange(sample.shape[0], dtype=np.int64), rules, threads)


def _sort(matrix: Matrix, rows: RowIndices, tree: CentreTree, threads: Threads) -> list[int]:
    """Sorts rows in place by the cells of the tree; returns the bounds of these."""
    cell = np.empty(matrix.shape[0], dtype=np.int32)

    def route(first: int, last: int) -> None:
        cell[first:last] = tree.route(matrix, first, last)

    threads.strips(route, matrix.shape[0], max(1, STRIP_VALUES // max(1, matrix.width)))
    bounds: list[int] = group(rows, cell if len(rows) == len(cell) else cell[rows], tree.n_cells).tolist()
    return bounds
