"""A tree of centres, stored as arrays, that routes rows to its leaves, the cells."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from localsvm.data.blocks.dataset import Examples
from localsvm.partition._nearest import Matrix
from localsvm.partition.base import PartitionState
from localsvm.store.pieces import Piece, Pieces, Unsound, floats32, floats64, index

PIECES: Pieces = {
    "centres": floats32("nodes", "features"),
    "thresholds": floats64("nodes"),
    "first_child": index("nodes", below="nodes"),
    "n_children": Piece("i4", ("nodes",), low=0),
    "cell": index("nodes", below="nodes", low=-1),
}


@dataclass(frozen=True)
class CentreTree:
    """A tree in which each inner node divides the space among two or more children by a power diagram.

    Child c of a node has a centre z_c and a weight w_c. A row x goes to the child with the smallest |x - z_c|^2 - w_c,
    the lower child if two are equal. With w_0 = 0 this is the child with the largest <x, z_c - z_0> - t_c, where t_0 =
    0 and t_c = (|z_c|^2 - |z_0|^2 - w_c) / 2. The tree stores t_c and computes this second form, with inner products in
    float64 in one fixed order: so each boundary lies exactly where it divided the training rows. In the Manhattan
    distance the smallest |x - z_c| - w_c decides, and t_c = |z_c| - |z_0| - w_c (csrc/nearest.h).

    Leaves are the cells, numbered in depth-first order, so that siblings are neighbours. Routing takes 12 bytes per
    node and feature, even for sparse rows, because centres are dense.

    Attributes
    ----------
    centres : (nodes, d) float32
    thresholds : (nodes,) float64
        t_c of each node, as a child of its parent.
    first_child, n_children : (nodes,) int32
        The children of a node are n_children nodes from first_child on; n_children is 0 for a leaf.
    cell : (nodes,) int32
        The cell of a leaf, -1 for inner nodes.
    manhattan : bool
        Whether rows are measured by that distance, else by the Euclidean one.
    """

    centres: NDArray[np.float32]
    thresholds: NDArray[np.float64]
    first_child: NDArray[np.int32]
    n_children: NDArray[np.int32]
    cell: NDArray[np.int32]
    manhattan: bool = False

    @classmethod
    def from_state(cls, state: Mapping[str, NDArray[Any]], manhattan: bool) -> Self:
        """The tree of arrays as `state` gives them; Unsound where they are none."""
        tree = cls(**{name: np.ascontiguousarray(state[name]) for name in PIECES}, manhattan=manhattan)
        tree.check()
        return tree

    def check(self) -> None:
        """Raise Unsound unless each node but the first is a child of an earlier one, and each leaf has its own cell."""
        nodes, inner = len(self.cell), self.n_children > 0
        first, last = self.first_child.astype(np.int64), self.first_child.astype(np.int64) + self.n_children
        if nodes == 0:
            raise Unsound("/partition has no nodes")
        if np.any(inner & ((first <= np.arange(nodes)) | (last > nodes) | (self.n_children < 2))):
            raise Unsound("/partition/first_child: the children of a node are not two or more nodes behind it")
        parents = np.zeros(nodes + 1, np.int64)
        np.add.at(parents, first[inner], 1)
        np.add.at(parents, last[inner], -1)
        if np.any(np.cumsum(parents)[1:nodes] != 1):
            raise Unsound("/partition/first_child: a node is not the child of exactly one other")
        leaves = np.sort(self.cell[~inner])
        if np.any(self.cell[inner] != -1) or not np.array_equal(leaves, np.arange(len(leaves))):
            raise Unsound("/partition/cell: the leaves are not the cells, each once")

    @property
    def n_cells(self) -> int:
        return int(self.cell.max()) + 1

    @cached_property
    def leaf_centres(self) -> NDArray[np.float32]:
        """The centre of each cell (n_cells, d)."""
        leaves = np.flatnonzero(self.cell >= 0)
        return self.centres[leaves[np.argsort(self.cell[leaves])]]

    @cached_property
    def _vectors(self) -> NDArray[np.float64]:
        """Directions z_c - z_0 of each node (nodes, d), where z_0 is the centre of its first sibling; or all z_c."""
        if self.manhattan:
            return self.centres.astype(np.float64)
        eldest = np.arange(len(self.cell))
        for node in np.flatnonzero(self.n_children):
            first = self.first_child[node]
            eldest[first : first + self.n_children[node]] = first
        directions: NDArray[np.float64] = self.centres.astype(np.float64) - self.centres[eldest]
        return directions

    def assign(self, X: Examples) -> NDArray[np.int32]:
        """The cell (n,) of each row of X (n, d) float32, dense or CSR; ValueError if d does not fit."""
        matrix = Matrix(X)
        return self.route(matrix, 0, matrix.shape[0])

    def route(self, matrix: Matrix, first: int, last: int) -> NDArray[np.int32]:
        """The cells (last - first,) of rows first .. last - 1."""
        links = self.first_child, self.n_children, self.cell
        return matrix.route(self._vectors, self.thresholds, *links, first, last, self.manhattan)

    def state(self) -> PartitionState:
        return {name: getattr(self, name) for name in PIECES}


def vectors_of(centres: NDArray[np.float32], manhattan: bool = False) -> NDArray[np.float64]:
    """What `Matrix.choose` takes of the centres (k, d) of siblings: directions z_c - z_0, or the centres."""
    vectors: NDArray[np.float64] = centres.astype(np.float64)
    return vectors if manhattan else vectors - centres[0]
