"""Two steps: coarse cells whose centres a sample of the rows gives, and in each of them a partition of its own rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from localsvm.data.blocks.dataset import rows_of
from localsvm.data.blocks.numbering import hashed
from localsvm.partition._nearest import group
from localsvm.partition.base import Partition, PartitionState, TrainingCell, check_rows
from localsvm.partition.centre_tree import PIECES, CentreTree
from localsvm.partition.growing import RowIndices
from localsvm.partition.voronoi import ManhattanVoronoi, Voronoi
from localsvm.store.checking import Cells, check, check_cells
from localsvm.store.pieces import Piece, Unsound
from localsvm.threads import ALONE, Threads

if TYPE_CHECKING:
    from localsvm.data.blocks.dataset import Examples

SAMPLE_ROWS = 1 << 17  # that coarse centres come from at most, ...
SAMPLE_LEAST = 1 << 14  # ... as many as two coarse cells have, but at least so many, ...
SAMPLE_EACH = 32  # ... or so many a coarse cell, where that is more
SHARE = 0.5  # of a node's sampled rows, from which the coarse centres of a further repeat come
COARSE, POINTER = "coarse_", "fine_ptr"  # in the state: before the names of the coarse tree; whose cells are whose
_FINE_PTR = Piece("i8", (("coarse", 1),), least=2, low=0)

SeedStream = np.random.SeedSequence  # of random numbers
Maker = Callable[[], Partition]  # of a partition that is not fitted


class TwoStep(Partition):
    """Coarse cells of about coarse_size rows, each with a partition of its own.

    The coarse cells are those of a tree of Voronoi splits that is grown on a sample: their sizes are as even as the
    sample says. What is inside a coarse cell depends on its rows in their order, and on its random stream alone.

    Parameters
    ----------
    fine : makes the partitions inside.
    coarse_size : rows.
    share : of a node's sampled rows, from which coarse centres come at most; see `Voronoi`.

    References
    ----------
    Thomann, Blaschzyk, Meister, Steinwart: Spatial Decompositions for Large Scale SVMs. AISTATS 2017, section 5.1.
    """

    def __init__(self, fine: Maker, coarse_size: int = 0, share: float = 1.0) -> None:
        self._make, self._coarse_size, self._share, self.name = fine, coarse_size, share, fine().name
        self._coarse: CentreTree | None = None
        self.fine: list[Partition] = []
        self._rows: list[RowIndices] = []

    def fit(
        self,
        X: Examples,
        y: NDArray[np.float64],
        cell_size: int | None,
        rng: np.random.Generator,
        threads: Threads = ALONE,
    ) -> Self:
        n, rows = check_rows(X), np.arange(X.shape[0], dtype=np.int64)
        chosen = np.flatnonzero(drawn(rows, n, self._coarse_size, draw_key(rng))).astype(np.int64)
        streams = self.sketch(rows_of(X, chosen), y[chosen], n, rng, threads)
        bounds = group(rows, self.coarse.assign(X), self.coarse.n_cells).tolist()
        self._rows = [rows[first:last] for first, last in pairwise(bounds)]
        self.fine = [
            self._make().fit(rows_of(X, cell_rows), y[cell_rows], cell_size, np.random.default_rng(stream))
            for cell_rows, stream in zip(self._rows, streams, strict=True)
        ]
        return self

    def sketch(
        self, X: Examples, y: NDArray[np.float64], rows: int, rng: np.random.Generator, threads: Threads = ALONE
    ) -> list[SeedStream]:
        """Find the coarse cells of `rows` rows by a sample X of them, which `drawn` gives.

        Returns
        -------
        The random stream of the partition inside each coarse cell.
        """
        sampled = X.shape[0]
        size = self._coarse_size if sampled == rows else max(1, self._coarse_size * sampled // rows)
        kind = ManhattanVoronoi if self._make().manhattan else Voronoi
        self._coarse = kind(share=self._share).fit(X, y, size, rng, threads).tree
        seeds = rng.bit_generator.seed_seq
        assert isinstance(seeds, np.random.SeedSequence), "of default_rng"
        return list(seeds.spawn(self._coarse.n_cells))

    @property
    def coarse(self) -> CentreTree:
        """The tree whose leaves are the coarse cells; RuntimeError before `sketch`."""
        if self._coarse is None:
            raise RuntimeError("the partition is not fitted")
        return self._coarse

    def training_cells(self) -> list[TrainingCell]:
        if not self._rows:
            raise RuntimeError("this partition was not fitted here: it has no training cells")
        parts = zip(self._rows, self.fine, strict=True)
        return [TrainingCell(rows[cell.rows], cell.weight) for rows, part in parts for cell in part.training_cells()]

    @property
    def n_cells(self) -> int:
        return sum(self.cells_by_coarse)

    @property
    def cells_by_coarse(self) -> list[int]:
        return [part.n_cells for part in self.fine]

    @property
    def centres(self) -> NDArray[np.float32] | None:
        by_part = [centres for part in self.fine if (centres := part.centres) is not None]
        return np.concatenate(by_part) if by_part else None

    def assign(self, X: Examples) -> NDArray[np.int32]:
        cells = np.empty(X.shape[0], np.int32)
        for part, rows, before in self._inside(X):
            cells[rows] = part.assign(rows_of(X, rows)) + before
        return cells

    def route(self, X: Examples) -> sparse.csr_array:
        parts, order = [sparse.csr_array((0, self.n_cells))], [np.empty(0, np.int64)]
        for part, rows, before in self._inside(X):
            inner = part.route(rows_of(X, rows))
            shape = len(rows), self.n_cells
            parts.append(sparse.csr_array((inner.data, inner.indices + before, inner.indptr), shape=shape))
            order.append(rows)
        return sparse.csr_array(sparse.vstack(parts, format="csr")[np.argsort(np.concatenate(order))])

    def _inside(self, X: Examples) -> Iterator[tuple[Partition, RowIndices, int]]:
        """The coarse cells that have rows of X: the partition inside, its rows, and the number of cells before it."""
        before = np.concatenate([[0], np.cumsum(self.cells_by_coarse)]).tolist()
        rows, cell = np.arange(X.shape[0], dtype=np.int64), self.coarse.assign(X)
        bounds = group(rows, cell, len(self.fine)).tolist()
        for i in np.unique(cell).tolist():
            yield self.fine[i], rows[bounds[i] : bounds[i + 1]], before[i]

    def state(self) -> PartitionState:
        """The coarse tree, and what the partitions inside have, one after another: columns, as the model has cells."""
        states = [part.state() for part in self.fine]
        lengths = [len(next(iter(state.values()))) if state else 0 for state in states]
        pointer = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        columns = {name: np.concatenate([state[name] for state in states]) for name in states[0]}
        return {f"{COARSE}{name}": array for name, array in self.coarse.state().items()} | columns | {POINTER: pointer}

    def complete(self, fine: Sequence[Partition]) -> Self:
        """Take in the partitions inside, in the order of the coarse cells."""
        self.fine = list(fine)
        return self

    @classmethod
    def from_state(cls, state: PartitionState) -> Self:
        raise TypeError("arrays do not say of which kind the partitions inside are: `restored`, which is told, does")

    @classmethod
    def restored(cls, place: str, kind: type[Partition], state: PartitionState, features: int) -> Self:
        """The partition that `state()` described, with partitions of this kind inside; Unsound where it is none."""
        tree = {name.removeprefix(COARSE): array for name, array in state.items() if name.startswith(COARSE)}
        check(place, PIECES, tree, {"features": features})
        self = cls(kind)
        self._coarse = CentreTree.from_state(tree, kind.manhattan)
        columns = {name: array for name, array in state.items() if not name.startswith(COARSE) and name != POINTER}
        check(place, {POINTER: _FINE_PTR}, {POINTER: state[POINTER]}, {"coarse": self._coarse.n_cells})
        ends = state[POINTER].astype(np.int64)
        rows = max((len(array) for array in columns.values() if np.ndim(array)), default=0)
        if ends[0] != 0 or ends[-1] != rows or np.any(np.diff(ends) < 0):
            raise Unsound(f"{place}/{POINTER} does not ascend from 0 to the number of rows that it tells apart")
        if any(np.shape(array)[:1] != (rows,) for array in columns.values()):
            raise Unsound(f"{place}: the partitions inside coarse cells are not equally long in all arrays")
        check_cells(place, kind.pieces, Cells(columns, dict.fromkeys(columns, ends)), {"features": features})
        return self.complete([kind.from_state(part) for part in _parts(columns, ends)])


def _parts(columns: dict[str, NDArray[Any]], ends: NDArray[np.int64]) -> Iterator[PartitionState]:
    for first, last in pairwise(ends.tolist()):
        yield {name: array[first:last] for name, array in columns.items()}


def draw_key(rng: np.random.Generator) -> int:
    """Key for `drawn`: the first number of the partition's random stream."""
    return int(rng.integers(1 << 63))


def drawn(numbers: NDArray[np.int64], rows: int, coarse_size: int, key: int) -> NDArray[np.bool_]:
    """Mask (n,) of the rows in the sample that coarse cells come from, by their numbers among `rows` rows.

    The sample is all rows where these are few. It depends on the number of each row alone, which is hashed.

    numbers : (n,) the rows.
    key : from `draw_key`.
    """
    wanted = sample_rows(rows, coarse_size)
    if rows <= wanted:
        return np.ones(len(numbers), np.bool_)
    return hashed(numbers, key) < np.uint64((wanted << 64) // rows)


def sample_rows(rows: int, coarse_size: int) -> int:
    """Number of rows that `drawn` takes from `rows` rows, about."""
    most = min(SAMPLE_ROWS, max(SAMPLE_LEAST, 2 * coarse_size))
    return min(rows, max(most, SAMPLE_EACH * -(-rows // coarse_size)))
