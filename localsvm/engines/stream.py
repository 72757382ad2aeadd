"""The rows of a LIBSVM file block by block, as often as asked for, with memory for a few blocks."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from localsvm.data.blocks.dataset import Examples, thinned
from localsvm.data.readers.faults import LONGEST_LINE
from localsvm.data.readers.measuring import measure
from localsvm.data.readers.pieces import BLOCK_BYTES, Counts
from localsvm.engines.disk import Disk
from localsvm.engines.stream_memory import BlockBounds
from localsvm.errors import DataError
from localsvm.memory import UNBOUNDED, Budget
from localsvm.naming import opt
from localsvm.threads import Threads

GOLDEN = np.uint64(0x9E3779B97F4A7C15)  # 2^64 / golden ratio: its multiples modulo 2^64 are spread evenly

COUNTED_ROWS = 1 << 20  # rows whose folds are counted at once


class StreamBlock(NamedTuple):
    """Rows sorted by fold: X (n, d), labels y (n,), folds (n,) int64, weights (n,) of the rows."""

    X: Examples
    y: NDArray[np.float64]
    folds: NDArray[np.int64]
    weight: NDArray[np.float64]


class Stream:
    """Rows of a file, block by block. The fold of a row depends only on its place in the file.

    With weights, rows of weight 0 are passed over, as if the file did not have them; the other weights are in memory.

    Attributes
    ----------
    name : str
        Of the file, for messages.
    rows, entries, features : int
        Entries of all rows, of which some may be 0; features are the columns that occur: in which some row is not 0.
    width, columns : int, (features,) int64 or None
        Columns up to the largest index, and those of them that occur; None where all do.
    shift : Shift or None
        Which of these are read from an origin.
    dense : bool
    weighted : bool
        Whether there are weights.
    left_out : int
        Rows of weight 0.
    mass : float
        The weights of all rows, summed; their number without weights.
    block : BlockBounds
        The most that a block of rows holds.

    Raises
    ------
    DataError
        There is a mistake in the file, or it changed between two passes.
    RunError
        Not even the blocks that a pass holds fit into the budget.
    """

    def __init__(
        self,
        path: str | Path,
        folds: int,
        *,
        zero_based: bool = False,
        jobs: int = 1,
        block_bytes: int = BLOCK_BYTES,
        shifts: bool = False,
        weights: str | Path | None = None,
        budget: Budget = UNBOUNDED,
    ) -> None:
        """Count what the file holds, take the first look at its rows, and write them down.

        shifts : whether columns may have origins (data.readers.origin).
        weights : the file of the rows' weights, see `weights.read_weights`.
        jobs : the most threads that read; they are fewer where memory is short, but blocks, which decide bits, are
            never smaller.
        """
        if os.path.exists(path) and not os.path.isfile(path):
            what = f"not a regular file, and {opt.stream} reads it several times"
            raise DataError(f"{path}: {what}; write it to a file first, or leave {opt.stream} out")
        self._path, self._folds, self.name = path, folds, str(path)
        self._zero_based, self._jobs, self._block_bytes = zero_based, jobs, block_bytes
        self._weights: NDArray[np.float64] | None = None
        self._budget, self._longest = budget, budget.text_bytes(LONGEST_LINE)
        self.block = BlockBounds.of_text(path, block_bytes)
        counts = self._measured(8 if weights is not None else 0)
        self._rows = Disk(
            path, zero_based=zero_based, shifts=shifts, weights=weights, budget=budget, counts=counts,
            block_bytes=block_bytes,
        )  # fmt: skip
        self._rows.threads = Threads(self._jobs)
        head = self._rows.head()
        self.rows, self.entries, self.width = head.rows, counts.entries, head.columns.width
        self.left_out, self.weighted, self._weights = head.left_out, head.weighted, self._rows.weight
        self.mass = float(self.rows) if self._weights is None else float(self._weights.sum())
        self.columns, self.shift, self.features = head.columns.kept, head.shift, head.features
        self.dense = head.columns.dense
        self.block = replace(self.block, columns=self.features, dense=self.dense)

    def fit_in(self, what: str, size: int, remedy: str = "") -> None:
        """Make `size` bytes fit in beside what a pass holds, with fewer threads if need be.

        RunError where not even one thread suffices. what: what needs the bytes, with its verb.
        """
        while self._jobs > 1 and not self._fits(size, self._jobs):
            self._jobs -= 1
        self._budget.check(what, self._held(size, self._jobs), remedy)

    def fits(self, size: int) -> bool:
        """True where `size` bytes fit in, if one thread reads."""
        return self._fits(size, 1)

    def _fits(self, size: int, jobs: int) -> bool:
        return self._held(size, jobs) <= self._budget.room

    def _held(self, size: int, jobs: int) -> int:
        return size + (0 if self._weights is None else self._weights.nbytes) + self.block.passing_bytes(jobs)

    def _measured(self, row_bytes: int) -> Counts:
        """Counts of the file, whose blocks are measured, too; row_bytes: bytes of a row's weight."""
        path, size = self._path, self._block_bytes
        self.fit_in(f"{path}: its blocks of text need", 0)
        measured = measure(
            path, zero_based=self._zero_based, jobs=self._jobs, block_bytes=size, longest=self._longest
        )  # fmt: skip
        counts = measured.counts
        self.block = BlockBounds(measured.text, measured.most.rows, measured.most.entries, counts.width)
        needed = self.block.columns_bytes(counts.entries) + 2 * row_bytes * counts.rows
        self.fit_in(f"{path}: finding the columns that occur needs", needed)
        return counts

    def parts(self, work: Callable[[Examples], Examples]) -> Iterator[StreamBlock]:
        """All rows after `work`, block by block, sorted by fold.

        work : makes each row of itself alone, and may overwrite it.
        """
        for first, X, y, weight in self.blocks():
            folds = self.folds_of(first, len(y))
            order = np.argsort(folds, kind="stable")
            yield StreamBlock(thinned(work(X)[order]), y[order], folds[order], weight[order])

    def folds_of(self, first: int, n: int) -> NDArray[np.int64]:
        """The folds (n,) of rows first .. first + n - 1 of the file."""
        turned = np.arange(first, first + n, dtype=np.uint64) * GOLDEN >> np.uint64(32)
        return (turned * np.uint64(self._folds) >> np.uint64(32)).astype(np.int64)

    def fold_mass(self) -> NDArray[np.float64]:
        """The weights of the rows in each fold (folds,), summed."""
        sums, first = np.zeros(self._folds), 0
        for weight in self._positive():
            sums += np.bincount(self.folds_of(first, len(weight)), weight, minlength=self._folds)
            first += len(weight)
        return sums

    def _positive(self) -> Iterator[NDArray[np.float64]]:
        """The weights of the rows that are not passed over, some at a time."""
        for first in range(0, self.rows, COUNTED_ROWS):
            last = min(self.rows, first + COUNTED_ROWS)
            yield np.ones(last - first) if self._weights is None else self._weights[first:last]

    def blocks(self) -> Iterator[tuple[int, Examples, NDArray[np.float64], NDArray[np.float64]]]:
        """Blocks of the rows that are not passed over: the number of the first row, X, y, weights."""
        for block in self._rows.read_again():
            yield block.first, block.X, block.y, np.ones(len(block.y)) if block.weight is None else block.weight
