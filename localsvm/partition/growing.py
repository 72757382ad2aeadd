"""Growing a tree of centres over rows.

The top of a large tree is grown on a sample. Each part of the rows below it is then copied, so that it fits the caches.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from localsvm.data.dataset import places_of
from localsvm.data.spilled import RowsOnDisk, Spilled
from localsvm.partition._nearest import Matrix, group
from localsvm.partition.centre_tree import CentreTree
from localsvm.partition.on_disk import AnyMatrix, DiskMatrix
from localsvm.threads import Threads

if TYPE_CHECKING:
    from localsvm.data.dataset import Examples

RowIndices = NDArray[np.int64]


class Split(NamedTuple):
    """How a node divides its n rows among k children.

    Attributes
    ----------
    centres : (k, d) float32
    thresholds : (k,) float64
        The first is 0.
    child : (n,) int32
        The child of each row: what `Matrix.choose` gives for these centres and thresholds.
    """

    centres: NDArray[np.float32]
    thresholds: NDArray[np.float64]
    child: NDArray[np.int32]


# (matrix, rows, cell_size, rng) -> the split of more than cell_size rows, None if nothing can divide them
Splitter = Callable[[Matrix, RowIndices, int, np.random.Generator], Split | None]
# The rows of a node with at most this many values are copied before they are divided further, so that they fit the
# caches: a row scattered over a large matrix costs 90 ns, a row in a cache 15 ns (28 features, AMD EPYC).
LOCAL_VALUES = 1 << 21
# The top of a large tree is grown on a sample and ends in parts, which are then divided one by one. The sample makes
# the size of a part a few per cent wrong, which does not matter for a part of many cells. None of this depends on how
# rows are stored, so the tree does not either.
PART_ROWS = 1 << 15  # rows of a part, ...
PART_CELLS = 16  # ... or at least this many cells
PART_SAMPLE = 1 << 10  # sampled rows for each part
LEAST_PARTS = 4  # with fewer parts, a sample saves no time
STRIP_VALUES = 1 << 20  # values of the rows that a thread routes at once


def sampled(rows: RowIndices, size: int, share: float) -> int:
    """How many rows to draw: at most `size`, and at most this share of them, but two where there are as many."""
    return min(size, max(int(share * len(rows)), 2))


def subsample(rows: RowIndices, size: int, rng: np.random.Generator) -> RowIndices:
    """At most `size` of the rows, drawn at random, in their order."""
    if len(rows) <= size:
        return rows
    return rows[np.sort(rng.choice(len(rows), size, replace=False, shuffle=False))]


def thin_out(rows: RowIndices, size: int, rng: np.random.Generator) -> RowIndices:
    """One random row from each of `size` equal stretches of the rows: a large sample without permuting all rows."""
    bounds = np.arange(size + 1) * len(rows) // size
    return rows[rng.integers(bounds[:-1], bounds[1:])]


def take(X: Examples | Spilled, rows: RowIndices) -> Examples:
    """A copy of some rows of X, dense or CSR like X."""
    if isinstance(X, RowsOnDisk):
        return X.take(rows)
    if isinstance(X, np.ndarray):
        return X.take(rows, axis=0)  # takes a quarter of the time of X[rows]
    counts, places = places_of(X, rows)
    # scikit-learn accepts only 32-bit row pointers, and the rows taken are few enough for them
    pointers = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
    arrays = X.data[places], X.indices[places].astype(np.int32, copy=False), pointers
    return sparse.csr_array(arrays, shape=(len(rows), X.shape[1]))


def loaded_rows(rows: int, cell_size: int) -> int:
    """How many of so many rows on a disk are in memory at once in each thread that grows a tree."""
    part = max(PART_ROWS, PART_CELLS * cell_size)
    return rows if rows <= LEAST_PARTS * part else 2 * part


@dataclass
class _Growing:
    """The columns of a CentreTree while nodes are added, and the sizes of the cells so far.

    A node of at most `enough` rows becomes a leaf: cell_size rows, or more in a tree that is grown on a sample.
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
        """Append a node without children; returns its number."""
        self.centres.append(centre)
        self.thresholds.append(threshold)
        self.first_child.append(0)
        self.n_children.append(0)
        self.cell.append(-1)
        return len(self.cell) - 1

    def divide(self, node: int, split: Split) -> list[int]:
        """Append the children of a node; returns their numbers."""
        self.first_child[node] = len(self.cell)
        self.n_children[node] = len(split.thresholds)
        return [self.add(z, float(t)) for z, t in zip(split.centres, split.thresholds, strict=True)]

    def grow(self, root: int, matrix: Matrix, rows: RowIndices, local: bool) -> None:
        """Divide `rows` below the node `root`, depth first, and sort them into cell order.

        local: the rows are already in a copy that fits the caches.
        """
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
        """As `grow`, on a copy of the rows."""
        order = np.arange(len(rows), dtype=np.int64)
        self.grow(node, Matrix(take(matrix.X, rows)), order, local=True)
        rows[:] = rows[order]

    def append(self, node: int, other: _Growing) -> None:
        """Replace the leaf `node` by another tree, whose root it becomes."""
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
    matrix: AnyMatrix, rows: RowIndices, cell_size: int, split: Splitter, rng: np.random.Generator, threads: Threads
) -> tuple[CentreTree, RowIndices]:
    """Grow a tree over `rows` of the matrix and sort them, in place, into cell order (ascending in each cell).

    `split` divides each node of more than cell_size rows, unless it returns None. If there are very many rows, the top
    of the tree is grown on a sample, all rows go down it in one pass, and each part of the rows that arrives at a leaf
    is divided exactly: the sizes of cells do not depend on the sample. Nothing depends on the number of threads.

    Returns
    -------
    tree : CentreTree
    bounds : (cells + 1,) int64
        Cell i has the rows bounds[i] .. bounds[i + 1] - 1 of `rows`.
    """
    growing = _grow(matrix, rows, _Growing(split, cell_size, cell_size, rng), threads)
    return growing.finish(), np.concatenate([[0], np.cumsum(growing.sizes)])


def _grow(matrix: AnyMatrix, rows: RowIndices, empty: _Growing, threads: Threads) -> _Growing:
    """The tree over the rows, by the rules of `empty`: in `empty` itself, or in parts if the rows are many."""
    part = max(PART_ROWS, PART_CELLS * empty.enough)
    if len(rows) > LEAST_PARTS * part:
        return _grow_parts(matrix, rows, part, empty, threads)
    if isinstance(matrix, DiskMatrix):
        order = np.arange(len(rows), dtype=np.int64)
        _grow(Matrix(take(matrix.X, rows)), order, empty, threads)
        rows[:] = rows[order]
        return empty
    centre = (matrix.total(rows) / len(rows)).astype(np.float32)
    empty.grow(empty.add(centre, 0.0), matrix, rows, local=_fits(matrix, rows))
    return empty


def _fits(matrix: Matrix, rows: RowIndices) -> bool:
    return len(rows) * matrix.width <= LOCAL_VALUES


def _grow_parts(matrix: AnyMatrix, rows: RowIndices, part: int, empty: _Growing, threads: Threads) -> _Growing:
    """As `_grow`, for rows that make several parts of about `part` rows."""
    growing = _sketch(matrix, rows, part, empty, threads)
    top = growing.finish()
    bounds, centres, streams = sort_by(matrix, rows, top, threads), top.leaf_centres, empty.rng.spawn(top.n_cells)

    arranged = matrix.X.ordered(rows) if isinstance(matrix, DiskMatrix) else None

    def below(i: int) -> _Growing:
        branch = _Growing(empty.split, empty.cell_size, empty.enough, streams[i])
        root, own = branch.add(centres[i], 0.0), rows[bounds[i] : bounds[i + 1]]
        if arranged is not None:
            order = np.arange(len(own), dtype=np.int64)
            branch.grow(root, Matrix(arranged.between(bounds[i], bounds[i + 1])), order, local=False)
            own[:] = own[order]
        elif isinstance(matrix, Matrix):
            branch.grow(root, matrix, own, local=False)
        return branch

    leaves, growing.sizes = np.argsort(top.cell, kind="stable")[-top.n_cells :], []
    for leaf, branch in zip(leaves.tolist(), threads.map(below, top.n_cells), strict=True):
        growing.append(leaf, branch)
    return growing


def _sketch(matrix: AnyMatrix, rows: RowIndices, part: int, empty: _Growing, threads: Threads) -> _Growing:
    """The top of the tree, grown on a sample: each leaf stands for about `part` rows at most.

    A large sample is itself grown in parts.
    """
    sample = Matrix(take(matrix.X, thin_out(rows, len(rows) * PART_SAMPLE // part, empty.rng)))
    cell_size = max(1, empty.cell_size * PART_SAMPLE // part)
    rules = _Growing(empty.split, cell_size, PART_SAMPLE, empty.rng)
    return _grow(sample, np.arange(sample.shape[0], dtype=np.int64), rules, threads)


def sort_by(matrix: AnyMatrix, rows: RowIndices, tree: CentreTree, threads: Threads) -> list[int]:
    """Sort rows, in place and stably, by the cells of the tree; returns the bounds of the cells."""
    cell = np.empty(matrix.shape[0], dtype=np.int32)

    def route(first: int, last: int) -> None:
        cell[first:last] = tree.route(matrix, first, last)

    threads.strips(route, matrix.shape[0], max(1, STRIP_VALUES // max(1, matrix.width)))
    bounds: list[int] = group(rows, cell if len(rows) == len(cell) else cell[rows], tree.n_cells).tolist()
    return bounds
