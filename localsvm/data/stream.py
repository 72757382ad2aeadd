"""A LIBSVM file whose rows are read anew for each pass, with memory for a few blocks."""

from __future__ import annotations

import os
from collections.abc import Generator, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from localsvm.data.columns import Columns, occurring
from localsvm.data.dataset import Dataset, Examples, as_examples, prefers_dense, thinned
from localsvm.data.pieces import BLOCK_BYTES
from localsvm.data.reading import measure, read_blocks
from localsvm.data.scaling import Scaling
from localsvm.errors import DataError

GOLDEN = np.uint64(0x9E3779B97F4A7C15)  # 2^64 / golden ratio: its multiples modulo 2^64 are spread evenly

COUNTED_ROWS = 1 << 20  # rows whose folds are counted at once


class StreamBlock(NamedTuple):
    """Rows sorted by fold: X (n, d), labels y (n,), folds (n,) int64."""

    X: Examples
    y: NDArray[np.float64]
    folds: NDArray[np.int64]


@dataclass(frozen=True)
class Survey:
    """What the first pass over a file finds.

    Attributes
    ----------
    labels : (classes,) float64
        Sorted and distinct.
    class_rows : (classes,) int64
        Number of rows of each label.
    scaling : Scaling
    sample : Examples
        A random sample of the rows, scaled.
    """

    labels: NDArray[np.float64]
    class_rows: NDArray[np.int64]
    scaling: Scaling
    sample: Examples


class Stream:
    """Rows of a file, block by block. The fold of a row depends only on its place in the file.

    Attributes
    ----------
    rows, features : int
        Features are the columns that occur: in which some row is not 0.
    width, columns : int, (features,) int64 or None
        Columns up to the largest index, and those of them that occur; None where all do.
    dense : bool

    Raises
    ------
    DataError
        There is a mistake in the file, or it changed between two passes.
    """

    def __init__(
        self, path: str | Path, folds: int, *, zero_based: bool = False, jobs: int = 1, block_bytes: int = BLOCK_BYTES
    ) -> None:
        if os.path.exists(path) and not os.path.isfile(path):
            what = "not a regular file, and --stream reads it several times"
            raise DataError(f"{path}: {what}; write it to a file first, or leave --stream out")
        self._path, self._folds = path, folds
        self._zero_based, self._jobs, self._block_bytes = zero_based, jobs, block_bytes
        counts = measure(path, zero_based=zero_based, jobs=jobs, block_bytes=block_bytes)
        self.rows, self.width = counts.rows, counts.width
        self.columns = self._occurring()
        self.features = self.width if self.columns is None else len(self.columns)
        self.dense = prefers_dense(self.rows, self.features, counts.entries)

    def survey(self, scale: str, sample: int, rng: np.random.Generator) -> Survey:
        """Make one pass over the rows and keep a random sample of at most `sample` of them."""
        chosen = np.sort(rng.choice(self.rows, min(sample, self.rows), replace=False))
        found: list[Examples] = []
        counts: dict[float, int] = {}

        def looked_at() -> Iterator[Examples]:
            for first, X, y in self._raw():
                for label, count in zip(*np.unique(y, return_counts=True), strict=True):
                    counts[float(label)] = counts.get(float(label), 0) + int(count)
                mine = chosen[slice(*np.searchsorted(chosen, [first, first + len(y)]))] - first
                found.append(X[mine])
                yield X

        scaling = Scaling.fit_blocks(looked_at(), scale)
        labels = np.asarray(sorted(counts))
        rows = np.concatenate(found) if self.dense else as_examples(sparse.vstack(found, format="csr"))
        class_rows = np.asarray([counts[label] for label in labels])
        return Survey(labels, class_rows, scaling, thinned(scaling.apply(rows)))

    def parts(self, scaling: Scaling) -> Iterator[StreamBlock]:
        """All rows, scaled, one block at a time."""
        for first, X, y in self._raw():
            folds = self.folds_of(first, len(y))
            order = np.argsort(folds, kind="stable")
            yield StreamBlock(thinned(scaling.apply(X, in_place=True)[order]), y[order], folds[order])

    def folds_of(self, first: int, n: int) -> NDArray[np.int64]:
        """The folds (n,) of rows first .. first + n - 1 of the file."""
        turned = np.arange(first, first + n, dtype=np.uint64) * GOLDEN >> np.uint64(32)
        return (turned * np.uint64(self._folds) >> np.uint64(32)).astype(np.int64)

    def fold_rows(self) -> NDArray[np.int64]:
        """Number of rows in each fold (folds,)."""
        counts = np.zeros(self._folds, np.int64)
        for first in range(0, self.rows, COUNTED_ROWS):
            folds = self.folds_of(first, min(COUNTED_ROWS, self.rows - first))
            counts += np.bincount(folds, minlength=self._folds)
        return counts

    def _occurring(self) -> Columns | None:
        """The columns that occur, None where all do: then the pass ends where the last of them was seen."""
        found = np.empty(0, np.int64)
        with closing(self._read(dense=False, columns=None)) as blocks:
            for block in blocks:
                found = np.union1d(found, occurring(block.X))
                if len(found) == self.width:
                    return None
        return found

    def _read(self, dense: bool, columns: Columns | None) -> Generator[Dataset]:
        yield from read_blocks(
            self._path, n_features=self.width, dense=dense, columns=columns, zero_based=self._zero_based,
            jobs=self._jobs, block_bytes=self._block_bytes,
        )  # fmt: skip

    def _raw(self) -> Iterator[tuple[int, Examples, NDArray[np.float64]]]:
        first = 0
        for part in self._read(self.dense, self.columns):
            yield first, part.X, part.y
            first += len(part.y)
        if first != self.rows:
            raise DataError(f"{self._path}: the file changed while it was read; train again when it is complete")
