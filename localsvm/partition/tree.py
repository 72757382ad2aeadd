"""A tree of centres: grown over rows, stored as arrays, routing rows to its leaves, the cells."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from localsvm.partition._nearest import Matrix, group
from localsvm.partition.base import Partition, State, TrainingCell, check_cell_size, check_rows, one_cell_each
from localsvm.partition.duplicates import collapse

if TYPE_CHECKING:
    from localsvm.data.dataset import Examples

Rows = NDArray[np.int64]


class Split(NamedTuple):
    """How a node's n rows go to k children: centres (k, d) float32, thresholds (k,) float64 (the first is
    0), and the child (n,) int32 of each row, as `Matrix.choose` finds it from the other two."""

    centres: NDArray[np.float32]
    thresholds: NDArray[np.float64]
    child: NDArray[np.int32]


# (matrix, rows, cell_size, rng): the split of more than cell_size rows, None for rows that nothing can divide
Splitter = Callable[[Matrix, Rows, int, np.random.Generator], Split | None]
# nodes of at most so many values are divided further in a copy of their rows that fits the caches: rows
# scattered over a large matrix cost 90 ns each, rows in a cache 15 (28 features, AMD EPYC)
LOCAL_VALUES = 1 << 21


@dataclass(frozen=True)
class CentreTree:
    """A tree whose inner nodes divide the space among two or more children by a power diagram.

    Child c of a node has a centre z_c and a weight w_c, and a row x goes to the child with the smallest
    |x - z_c|^2 - w_c, ties to the lower child. With w_0 = 0 that is the largest <x, z_c - z_0> - t_c, where
    t_0 = 0 and t_c = (|z_c|^2 - |z_0|^2 - w_c) / 2: that is how it is stored and computed (inner products
    in float64, in one fixed order), so the boundary lies exactly where the training rows were divided.
    Leaves are the cells, numbered in depth-first order, so that siblings are neighbours.

    centres (nodes, d) float32; thresholds (nodes,) float64; first_child, n_children (nodes,) int32: a
    node's children are n_children nodes from first_child on, 0 for a leaf; cell (nodes,) int32: a leaf's
    cell, -1 elsewhere. Centres are dense: 12 bytes a node and feature while routing, sparse rows or not.
    """

    centres: NDArray[np.float32]
    thresholds: NDArray[np.float64]
    first_child: NDArray[np.int32]
    n_children: NDArray[np.int32]
    cell: NDArray[np.int32]

    @property
    def n_cells(self) -> int:
        return int(self.cell.max()) + 1

    @cached_property
    def leaf_centres(self) -> NDArray[np.float32]:
        """The centre of each cell (n_cells, d)."""
        leaves = np.flatnonzero(self.cell >= 0)
        return self.centres[leaves[np.argsort(self.cell[leaves])]]

    @cached_property
    def _directions(self) -> NDArray[np.float64]:
        eldest = np.arange(len(self.cell))
        for node in np.flatnonzero(self.n_children):
            first = self.first_child[node]
            eldest[first : first + self.n_children[node]] = first
        directions: NDArray[np.float64] = self.centres.astype(np.float64) - self.centres[eldest]
        return directions

    def assign(self, X: Examples) -> NDArray[np.int32]:
        """The cell (n,) of each row of X (n, d) float32, dense or CSR; ValueError for another width."""
        return Matrix(X).route(
            self._directions, self.thresholds, self.first_child, self.n_children, self.cell
        )

    def state(self) -> State:
        return {f.name: getattr(self, f.name) for f in fields(self)}


def directions_of(centres: NDArray[np.float32]) -> NDArray[np.float64]:
    """What `Matrix.choose` multiplies rows by: z_c - z_0 (k, d) for the centres (k, d) of siblings."""
    directions: NDArray[np.float64] = centres.astype(np.float64) - centres[0]
    return directions


def subsample(rows: Rows, size: int, rng: np.random.Generator) -> Rows:
    """At most `size` of the rows at random, in their order."""
    if len(rows) <= size:
        return rows
    return rows[np.sort(rng.choice(len(rows), size, replace=False, shuffle=False))]


def take(X: Examples, rows: Rows) -> Examples:
    """A copy of some rows of X, in the same form."""
    part = X[rows]
    if isinstance(part, np.ndarray):
        return np.ascontiguousarray(part)
    # scikit-learn takes 32-bit row pointers only; parts are small
    arrays = part.data, part.indices.astype(np.int32), part.indptr.astype(np.int32)
    return sparse.csr_array(arrays, shape=part.shape)


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

    def grow(self, root: int, matrix: Matrix, rows: Rows, local: bool) -> None:
        """Divides `rows` below the node `root`, depth first, and sorts them into cell order."""
        stack = [(root, 0, len(rows))]
        while stack:
            node, begin, end = stack.pop()
            part = rows[begin:end]
            if not local and len(part) * matrix.width <= LOCAL_VALUES:
                self.grow_local(node, matrix, part)
                continue
            found = self.split(matrix, part, self.cell_size, self.rng) if len(part) > self.cell_size else None
            if found is None:
                self.cell[node] = len(self.sizes)
                self.sizes.append(len(part))
                continue
            bounds = (begin + group(part, found.child, len(found.thresholds))).tolist()
            stack.extend(reversed([*zip(self.divide(node, found), bounds[:-1], bounds[1:], strict=True)]))

    def grow_local(self, node: int, matrix: Matrix, rows: Rows) -> None:
        """As grow, in a copy of the rows."""
        order = np.arange(len(rows), dtype=np.int64)
        self.grow(node, Matrix(take(matrix.X, rows)), order, local=True)
        rows[:] = rows[order]

    def finish(self) -> CentreTree:
        links = (np.array(a, dtype=np.int32) for a in (self.first_child, self.n_children, self.cell))
        return CentreTree(np.array(self.centres), np.array(self.thresholds), *links)


def grow(
    matrix: Matrix, rows: Rows, cell_size: int, split: Splitter, rng: np.random.Generator
) -> tuple[CentreTree, Rows]:
    """Grows a tree over `rows` of the matrix, sorting them in place into cell order (ascending in each cell).

    A node of more than cell_size rows is divided by `split`, unless that returns None.
    Returns the tree and the bounds (cells + 1,) of the cells in `rows`.
    """
    growing = _Growing(split, cell_size, rng)
    root = growing.add((matrix.total(rows) / len(rows)).astype(np.float32), 0.0)
    growing.grow(root, matrix, rows, local=len(rows) * matrix.width <= LOCAL_VALUES)
    return growing.finish(), np.concatenate([[0], np.cumsum(growing.sizes)])


@dataclass(frozen=True)
class _Training:
    """The rows a tree was grown over, in cell order, and how many rows each row of the matrix stands for."""

    order: Rows
    bounds: Rows
    weight: NDArray[np.float64] | None

    def cell(self, index: int) -> TrainingCell:
        rows = self.order[self.bounds[index] : self.bounds[index + 1]]
        weight = None if self.weight is None else self.weight[rows]
        return TrainingCell(rows, None if weight is None or np.all(weight == 1) else weight)


class TreePartition(Partition):
    """A partition whose cells are the leaves of a tree of centres; subclasses say how a node is divided.

    No training cell has more than cell_size rows. Rows that occur more than cell_size / 2 times (on data of
    more than cell_size rows) are kept once per label and carry their number as weight. What remains
    undivided is only more than cell_size rows of equal values and all different labels.
    """

    def __init__(self, tree: CentreTree | None = None) -> None:
        self._tree = tree
        self._training: _Training | None = None

    @staticmethod
    @abstractmethod
    def split(matrix: Matrix, rows: Rows, cell_size: int, rng: np.random.Generator) -> Split | None:
        """How a node of more than cell_size rows is divided; None for rows that nothing can divide."""

    def fit(
        self, X: Examples, y: NDArray[np.float64], cell_size: int | None, rng: np.random.Generator
    ) -> Self:
        size, n, matrix = check_cell_size(cell_size), check_rows(X), Matrix(X)
        rows, weight = np.arange(n, dtype=np.int64), None
        if n > size:
            rows, weight = collapse(matrix, y, max(1, size // 2), rng)
        self._tree, bounds = grow(matrix, rows, size, self.split, rng)
        self._training = _Training(rows, bounds, weight)
        return self

    @property
    def tree(self) -> CentreTree:
        """The tree; RuntimeError before fit."""
        if self._tree is None:
            raise RuntimeError("the partition is not fitted")
        return self._tree

    def training_cells(self) -> list[TrainingCell]:
        if self._training is None:
            raise RuntimeError("this partition was not fitted here: it has no training cells")
        return [self._training.cell(i) for i in range(self.n_cells)]

    @property
    def n_cells(self) -> int:
        return self.tree.n_cells

    @property
    def centres(self) -> NDArray[np.float32]:
        return self.tree.leaf_centres

    def assign(self, X: Examples) -> NDArray[np.int32]:
        return self.tree.assign(X)

    def route(self, X: Examples) -> sparse.csr_array:
        return one_cell_each(self.assign(X), self.n_cells)

    def state(self) -> State:
        return self.tree.state()

    @classmethod
    def from_state(cls, state: State) -> Self:
        return cls(CentreTree(**{f.name: np.ascontiguousarray(state[f.name]) for f in fields(CentreTree)}))
