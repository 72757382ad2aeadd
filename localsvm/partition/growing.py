"""Growing a tree of centres over rows. Each part of the rows is copied as soon as it fits the caches."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from localsvm.data.blocks.dataset import places_of
from localsvm.partition._nearest import Matrix, group
from localsvm.partition.centre_tree import CentreTree

if TYPE_CHECKING:
    from localsvm.data.blocks.dataset import Examples

RowIndices = NDArray[np.int64]


class Split(NamedTuple):
    """A division of a node's n rows among k children.

    Attributes
    ----------
    centres : (k, d) float32
    thresholds : (k,) float64
        The first is 0.
    child : (n,) int32
        The child of each row: what `Matrix.choose` gives for these centres, thresholds, and the partition's distance.
    """

    centres: NDArray[np.float32]
    thresholds: NDArray[np.float64]
    child: NDArray[np.int32]


# (matrix, rows, cell_size, rng) -> the split of more than cell_size rows, None if nothing can divide them
Splitter = Callable[[Matrix, RowIndices, int, np.random.Generator], Split | None]
# The rows of a node with at most this many values are copied before they are divided further, so that they fit the
# caches: a row scattered over a large matrix costs 90 ns, a row in a cache 15 ns (28 features, AMD EPYC).
LOCAL_VALUES = 1 << 21


def sampled(rows: RowIndices, size: int, share: float) -> int:
    """Number of rows to draw: at most `size`, and at most this share of the rows, but two where there are as many."""
    return min(size, max(int(share * len(rows)), 2))


def subsample(rows: RowIndices, size: int, rng: np.random.Generator) -> RowIndices:
    """Random sample of at most `size` of the rows, in their order."""
    if len(rows) <= size:
        return rows
    return rows[np.sort(rng.choice(len(rows), size, replace=False, shuffle=False))]


def take(X: Examples, rows: RowIndices) -> Examples:
    """A copy of some rows of X, dense or CSR like X."""
    if isinstance(X, np.ndarray):
        return X.take(rows, axis=0)  # takes a quarter of the time of X[rows]
    counts, places = places_of(X, rows)
    # scikit-learn accepts only 32-bit row pointers, and the rows taken are few enough for them
    pointers = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
    arrays = X.data[places], X.indices[places].astype(np.int32, copy=False), pointers
    return sparse.csr_array(arrays, shape=(len(rows), X.shape[1]))


@dataclass
class _Growing:
    """The columns of a CentreTree while nodes are added, and the sizes of the cells so far."""

    split: Splitter
    cell_size: int
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
            split = self.split(matrix, part, self.cell_size, self.rng) if len(part) > self.cell_size else None
            if split is None:
                self.cell[node] = len(self.sizes)
                self.sizes.append(len(part))
                continue
            bounds = (begin + group(part, split.child, len(split.thresholds))).tolist()
            stack.extend(reversed([*zip(self.divide(node, split), bounds[:-1], bounds[1:], strict=True)]))

    def grow_local(self, node: int, matrix: Matrix, rows: RowIndices) -> None:
        """Divide `rows` below the node as `grow` does, on a copy of the rows."""
        order = np.arange(len(rows), dtype=np.int64)
        self.grow(node, Matrix(take(matrix.X, rows)), order, local=True)
        rows[:] = rows[order]

    def finish(self, manhattan: bool) -> CentreTree:
        first, number, cell = (np.array(a, dtype=np.int32) for a in (self.first_child, self.n_children, self.cell))
        return CentreTree(np.array(self.centres), np.array(self.thresholds), first, number, cell, manhattan)


def grow(
    matrix: Matrix, rows: RowIndices, cell_size: int, split: Splitter, rng: np.random.Generator,
    manhattan: bool = False,
) -> tuple[CentreTree, RowIndices]:  # fmt: skip
    """Grow a tree over `rows` of the matrix and sort them, in place, into cell order (ascending in each cell).

    `split` divides each node of more than cell_size rows, unless it returns None; manhattan : by that distance.

    Returns
    -------
    tree : CentreTree
    bounds : (cells + 1,) int64
        Cell i has the rows bounds[i] .. bounds[i + 1] - 1 of `rows`.
    """
    growing = _Growing(split, cell_size, rng)
    centre = (matrix.total(rows) / len(rows)).astype(np.float32)
    growing.grow(growing.add(centre, 0.0), matrix, rows, local=_fits(matrix, rows))
    return growing.finish(manhattan), np.concatenate([[0], np.cumsum(growing.sizes)])


def _fits(matrix: Matrix, rows: RowIndices) -> bool:
    return len(rows) * matrix.width <= LOCAL_VALUES
