"""Sources of rows for scratch files: LIBSVM text, which is read as it is, and tables, which are encoded."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from localsvm.data.blocks.dataset import Dataset
from localsvm.data.blocks.shift import Shift
from localsvm.data.readers.faults import LONGEST_LINE
from localsvm.data.readers.groups import read_groups
from localsvm.data.readers.libsvm import Layout, read, read_blocks
from localsvm.data.readers.measuring import measure, shift_in
from localsvm.data.readers.pieces import BLOCK_BYTES, Counts
from localsvm.data.readers.weights import read_weights
from localsvm.memory import Budget


class RowSource(Protocol):
    """Source of rows, which can be read twice.

    Attributes
    ----------
    name : of the file.
    shift : columns that are read from an origin; known when the first of the blocks is there.
    """

    name: str
    shift: Shift | None

    def counts(self, jobs: int) -> Counts:
        """Counts of the rows."""

    def blocks(self, counts: Counts, dense: bool, jobs: int) -> Generator[Dataset]:
        """All rows, block by block, dense or CSR."""

    def read(self, jobs: int) -> Dataset:
        """All rows in memory, with their weights and groups."""

    def of_rows(self, rows: int) -> tuple[NDArray[np.float64] | None, NDArray[np.int64] | None]:
        """Weights and groups (rows,) of the rows; None where they have none."""

    @property
    def described(self) -> dict[str, Any]:
        """Fields of `Head` on what the labels stand for, and how a table became the rows."""


class TextSource:
    """LIBSVM text; parameters as of `engines.disk.Disk`."""

    def __init__(
        self, path: str | Path, zero_based: bool, shifts: bool, weights: str | Path | None, groups: str | Path | None,
        budget: Budget, counts: Counts | None = None, block_bytes: int | None = None,
    ) -> None:  # fmt: skip
        self.name = str(path)
        self.shift: Shift | None = None
        self._zero_based, self._shifts, self._files = zero_based, shifts, (weights, groups)
        self._budget, self._counts, self._block_bytes = budget, counts, block_bytes

    def counts(self, jobs: int) -> Counts:
        """Counts of the rows; see `RowSource`."""
        return self._counts or counts_of(self.name, self._zero_based, self._budget, jobs)

    def blocks(self, counts: Counts, dense: bool, jobs: int) -> Generator[Dataset]:
        """All rows; see `RowSource`."""
        self.shift = shift_in(self.name, zero_based=self._zero_based) if self._shifts else None
        yield from read_blocks(
            self.name, Layout(counts.width, dense, shift=self.shift), zero_based=self._zero_based, jobs=jobs,
            block_bytes=self._block_bytes or self._budget.block_bytes(BLOCK_BYTES, jobs),
            longest=self._budget.text_bytes(LONGEST_LINE),
        )  # fmt: skip

    def read(self, jobs: int) -> Dataset:
        """All rows in memory; see `RowSource`."""
        data = read(self.name, zero_based=self._zero_based, shifts=self._shifts, jobs=jobs, budget=self._budget)
        data.weight, data.group = self.of_rows(len(data.y))
        return data

    def of_rows(self, rows: int) -> tuple[NDArray[np.float64] | None, NDArray[np.int64] | None]:
        """Weights and groups of the rows; see `RowSource`."""
        weights, groups = self._files
        return (
            None if weights is None else read_weights(weights, rows),
            None if groups is None else read_groups(groups, rows),
        )

    @property
    def described(self) -> dict[str, Any]:
        """Nothing; see `RowSource`."""
        return {}


def counts_of(path: str | Path, zero_based: bool, budget: Budget, jobs: int) -> Counts:
    """Counts of a file."""
    block, longest = budget.block_bytes(BLOCK_BYTES, jobs), budget.text_bytes(LONGEST_LINE)
    return measure(path, zero_based=zero_based, jobs=jobs, block_bytes=block, longest=longest).counts
