"""A tree of centres, stored as arrays: it routes rows to its leaves, the cells."""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from localsvm.data.dataset import Examples
from localsvm.partition._nearest import Matrix
from localsvm.partition.base import PartitionState


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
        matrix = Matrix(X)
        return self.route(matrix, 0, matrix.shape[0])

    def route(self, matrix: Matrix, first: int, last: int) -> NDArray[np.int32]:
        """The cell of rows first .. last - 1."""
        links = self.first_child, self.n_children, self.cell
        return matrix.route(self._directions, self.thresholds, *links, first, last)

    def state(self) -> PartitionState:
        return {f.name: getattr(self, f.name) for f in fields(self)}


def directions_of(centres: NDArray[np.float32]) -> NDArray[np.float64]:
    """What `Matrix.choose` multiplies rows by: z_c - z_0 (k, d) for the centres (k, d) of siblings."""
    directions: NDArray[np.float64] = centres.astype(np.float64) - centres[0]
    return directions
