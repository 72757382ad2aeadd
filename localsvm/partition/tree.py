"""The common part of the partitions by a tree of centres: the leaves are the cells."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from localsvm.partition._nearest import Matrix
from localsvm.partition.base import Partition, PartitionState, TrainingCell, check_cell_size, check_rows, one_cell_each
from localsvm.partition.centre_tree import PIECES, CentreTree
from localsvm.partition.duplicates import collapse
from localsvm.partition.growing import RowIndices, Split, grow
from localsvm.store.pieces import Pieces
from localsvm.threads import ALONE, Threads

if TYPE_CHECKING:
    from localsvm.data.blocks.dataset import Examples

NEEDLESS = 1.3  # cells, as a factor of the fewest possible: boundaries follow the rows
FURTHER_SHARE = 0.5  # of a node's rows in a further repeat: few rows would all be in the sample, whatever the seed


@dataclass(frozen=True)
class _GrownRows:
    """The rows of a tree in cell order, and how many rows each row of the training matrix stands for."""

    order: RowIndices
    bounds: RowIndices
    weight: NDArray[np.float64] | None

    def cell(self, index: int) -> TrainingCell:
        rows = self.order[self.bounds[index] : self.bounds[index + 1]]
        weight = None if self.weight is None else self.weight[rows]
        return TrainingCell(rows, None if weight is None or np.all(weight == 1) else weight)


class TreePartition(Partition):
    """A partition whose cells are the leaves of a tree of centres; subclasses divide one node.

    No training cell has more than cell_size rows, with one exception: more than cell_size rows of equal values and all
    different labels cannot be divided. If n > cell_size, values that occur in more than cell_size / 2 rows are kept
    once per label, with their number as weight.
    """

    def __init__(self, tree: CentreTree | None = None, share: float = 1.0) -> None:
        """Make a partition with this tree, or one that is not fitted.

        share : largest share of a node's rows from which its centres come.
        """
        self._tree, self.share = tree, share
        self._training: _GrownRows | None = None

    pieces: ClassVar[Pieces] = PIECES

    @classmethod
    def fitting_bytes(cls, X: Examples, cell_size: int) -> int:
        """Bytes of the centres, twice: while the tree grows, and as one array."""
        rows, features = X.shape
        nodes = 2 * int(NEEDLESS * rows / max(1, cell_size))
        return int(features * 8 * (nodes + 1))

    @classmethod
    def further(cls) -> Self:
        return cls(share=FURTHER_SHARE)

    @abstractmethod
    def split(self, matrix: Matrix, rows: RowIndices, cell_size: int, rng: np.random.Generator) -> Split | None:
        """Divide a node of more than cell_size rows; None if nothing can divide them."""

    def fit(
        self,
        X: Examples,
        y: NDArray[np.float64],
        cell_size: int | None,
        rng: np.random.Generator,
        threads: Threads = ALONE,
    ) -> Self:
        size, n, matrix = check_cell_size(cell_size), check_rows(X), Matrix(X)
        rows, weight = np.arange(n, dtype=np.int64), None
        if n > size:
            rows, weight = collapse(matrix, y, max(1, size // 2), rng, threads)
        self._tree, bounds = grow(matrix, rows, size, self.split, rng, self.manhattan)
        self._training = _GrownRows(rows, bounds, weight)
        return self

    @property
    def tree(self) -> CentreTree:
        """The tree; RuntimeError before `fit`."""
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

    def state(self) -> PartitionState:
        return self.tree.state()

    @classmethod
    def from_state(cls, state: PartitionState) -> Self:
        return cls(CentreTree.from_state(state, cls.manhattan))
