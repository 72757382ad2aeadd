"""Several partitions of the same rows by different seeds, which answer together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from localsvm.errors import OptionError
from localsvm.naming import opt
from localsvm.partition.base import Partition, PartitionState, TrainingCell
from localsvm.threads import ALONE, Threads

if TYPE_CHECKING:
    from localsvm.data.blocks.dataset import Examples
    from localsvm.partition.members import Members


class Repeated(Partition):
    """R partitions of one name, which answer for a row together, each with 1 / R of its weight, or another share.

    The cells of a repeat follow those of the one before in one numbering. The first repeat is bit for bit the partition
    that the kind makes alone.

    Parameters
    ----------
    parts : sequence of Partition
        The repeats, at least one.
    members : which columns each of them sees; None for all.
    weights : (R,) of the repeats, whose sum is 1; None for equal ones.
    """

    def __init__(
        self, parts: Sequence[Partition], members: Members | None = None, weights: NDArray[np.float64] | None = None
    ) -> None:
        self.parts, self.name, self._members, self.weights = list(parts), parts[0].name, members, weights

    def fit(
        self,
        X: Examples,
        y: NDArray[np.float64],
        cell_size: int | None,
        rng: np.random.Generator,
        threads: Threads = ALONE,
    ) -> Self:
        first, *others = self.parts
        if first.fit(X, y, cell_size, rng, threads).n_cells == 1:
            raise OptionError(
                f"{opt.repeats(len(self.parts))}: all {X.shape[0]} rows are in one cell, which no other seed would "
                f"divide differently; leave {opt.repeats} out, or divide the rows ({opt.partition('voronoi')}, and a "
                f"smaller {opt.cell_size})"
            )
        # after the fit, which may itself have drawn streams of its own from this one
        for part, stream in zip(others, rng.spawn(len(others)), strict=True):
            part.fit(X, y, cell_size, stream, threads)
        return self

    def training_cells(self) -> list[TrainingCell]:
        return [cell for part in self.parts for cell in part.training_cells()]

    @property
    def n_cells(self) -> int:
        return sum(self.cells_by_repeat)

    @property
    def cells_by_repeat(self) -> list[int]:
        return [part.n_cells for part in self.parts]

    @property
    def cells_by_coarse(self) -> list[int] | None:
        by_part = [part.cells_by_coarse for part in self.parts]
        return None if None in by_part else [cells for of_part in by_part for cells in of_part or ()]

    def route(self, X: Examples) -> sparse.csr_array:
        if self.weights is None:
            routes = sparse.hstack([self._routed(X, i) for i in range(len(self.parts))], format="csr")
            return sparse.csr_array(routes / len(self.parts))
        nobody = [sparse.csr_array((X.shape[0], part.n_cells)) for part in self.parts]
        weighted = [self._routed(X, i) * w if w else nobody[i] for i, w in enumerate(self.weights.tolist())]
        return sparse.csr_array(sparse.hstack(weighted, format="csr"))

    def _routed(self, X: Examples, repeat: int) -> sparse.csr_array:
        seen = X if self._members is None else self._members.seen(repeat, X)
        return self.parts[repeat].route(seen)

    def assign(self, X: Examples) -> NDArray[np.int32]:
        raise OptionError("repeated partitions answer for every row together; a row belongs to one cell of one of them")

    def state(self) -> PartitionState:
        states = enumerate(part.state() for part in self.parts)
        return {f"{number}/{name}": array for number, state in states for name, array in state.items()}

    @classmethod
    def from_state(cls, state: PartitionState) -> Self:
        raise TypeError("arrays do not say of which kind the repeats are: `restore`, which is told, makes these")
