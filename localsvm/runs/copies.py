"""Whether rows that equal training rows get the labels of these, by the rows of a run that have copies among them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from localsvm.data.blocks.numbering import Hashes, signatures
from localsvm.engines.base import Block
from localsvm.runs.cells.averaged import held_rows
from localsvm.runs.cells.records import Record
from localsvm.runs.config import TrainingConfig
from localsvm.targets.base import Observed, Target
from localsvm.targets.classification import Classification
from localsvm.targets.copies import Copies

MOST_COPIES = 1 << 20  # of a run: signatures and labels of all are in memory together
FINDING_BYTES, KEPT_BYTES = 136, 32  # a row: while copies are looked for, and afterwards, at most
LEAST = 20  # different values of rows that have copies: by fewer nothing is judged
SHARE = 0.25  # of the errors of the model: the most that labels of copies may make
CLEAR = 3.0  # deviations that the difference of the errors has to be from 0
Vector = NDArray[np.float64]


class Signed:
    """Statistic: signatures and labels of all rows, in parts; the labels of rows without weight are nan."""

    def of(self, block: Block) -> list[tuple[Hashes, Vector]]:
        """Signatures and labels of the rows of a block."""
        y = block.y if block.weight is None else np.where(block.weight > 0, block.y, np.nan)
        return [(signatures(block.X, block.columns), y)]

    def merge(self, a: list[tuple[Hashes, Vector]], b: list[tuple[Hashes, Vector]]) -> list[tuple[Hashes, Vector]]:
        """Parts of both, in their order."""
        return a + b


@dataclass(frozen=True)
class CopiedRows:
    """Rows of a run that have copies.

    Attributes
    ----------
    signatures, labels : (k,) ascending, and the label of all rows that have these values; not of rows that disagree.
    rows, said : (m,) numbers, ascending, of the rows whose copies agree; the label that these have.
    kind : (m,) numbers of the different values of these rows, from 0.
    error : the share of the rows that have another label than their copies, in the mean over the kinds.
    """

    signatures: Hashes
    labels: Vector
    rows: NDArray[np.int64]
    said: Vector
    kind: NDArray[np.intp]
    error: float

    @classmethod
    def of(cls, parts: list[tuple[Hashes, Vector]], observed: Observed) -> Self | None:
        """What `Signed` has found, which is consumed.

        None where too few rows have copies, or their labels say too little to be judged.
        """
        marks, y, order = _sorted(parts)
        first = np.flatnonzero(np.append(True, marks[1:] != marks[:-1]))
        size = np.diff(np.append(first, len(marks)))
        low, high = np.minimum.reduceat(y, first), np.maximum.reduceat(y, first)
        same = low == high
        signatures, labels = marks[first[same]], low[same]
        some = np.repeat(size > 1, size)  # from here on of rows that have copies
        y, order = y[some], order[some]
        size, low, high, same = (each[size > 1] for each in (size, low, high, same))
        of = np.repeat(np.arange(len(size)), size)
        at_low = y == low[of]
        lows, highs = (np.bincount(of[at], minlength=len(size)) for at in (at_low, y == high[of]))
        # the others of a kind agree on a row if all do, or if it is the only one that differs
        alone = (~same & (lows + highs == size))[of] & (np.where(at_low, lows[of], highs[of]) == 1)
        known = alone | same[of]
        rows, said, (kinds, kind) = order[known], np.where(at_low, high[of], low[of])[known], _numbered(of[known])
        error = float(np.mean(_by_kind(alone[known], kind, kinds))) if kinds else 0.0
        if kinds < LEAST or error > SHARE * (1.0 - max(observed.class_rows) / observed.rows):
            return None
        ascending = np.argsort(rows)
        return cls(signatures, labels, rows[ascending], said[ascending], kind[ascending], error)


def _sorted(parts: list[tuple[Hashes, Vector]]) -> tuple[Hashes, Vector, NDArray[np.int64]]:
    """Signatures, ascending, and labels of the rows of all parts, which are consumed, without those of label nan.

    The third array has the numbers of the rows.
    """
    n = sum(len(y) for _, y in parts)
    marks, labels = np.empty(n, np.uint64), np.empty(n)
    while parts:
        some, y = parts.pop()
        marks[n - len(y) : n], labels[n - len(y) : n] = some, y
        n -= len(y)
    order = np.argsort(marks, kind="stable")
    if np.isnan(labels).any():
        order = order[~np.isnan(labels[order])]
    return marks[order], labels[order], order


def _numbered(kind: NDArray[np.integer]) -> tuple[int, NDArray[np.intp]]:
    """How many different kinds there are, and their numbers (n,) from 0."""
    different, numbers = np.unique(kind, return_inverse=True)
    return len(different), numbers.reshape(-1)


def _by_kind(values: NDArray[Any], kind: NDArray[np.intp], kinds: int, weight: Vector | None = None) -> Vector:
    """Means (kinds,) of the values of the rows of each kind: the rows of a kind are one witness."""
    weight = np.ones(len(kind)) if weight is None else weight
    return np.asarray(np.bincount(kind, values * weight, kinds) / np.bincount(kind, weight, kinds))


@dataclass(frozen=True)
class CopyErrors:
    """Errors on the held-out rows that have copies, in the mean over their different values.

    Attributes
    ----------
    rows, values : how many there are, and of how many different values.
    error : of the labels of their copies.
    model_error : of the model, to which the copies were unknown.
    """

    rows: int
    values: int
    error: float
    model_error: float

    def describe(self) -> dict[str, Any]:
        """Entries of a summary, as JSON can hold them."""
        return asdict(self)


def judge(
    repeated: CopiedRows, config: TrainingConfig, target: Target, records: Mapping[str, Record],
    repeats: Sequence[Sequence[str]], weights: Vector | None,
) -> tuple[Copies, CopyErrors] | None:  # fmt: skip
    """The labels that copies get; None where these are not clearly better than what the model answers.

    Copies of a row that is held out are so, too: the model has not seen them, and is better where it has. So labels of
    copies have to make a quarter of its errors at most, and by a test of the differences, paired by the values of rows,
    clearly fewer. Some of the rows chose the metric: that flatters the model, and asks more of the labels.

    Parameters
    ----------
    records, repeats : of cells, by their names, with `records.held`; the names of each repeat's cells.
    weights : of the repeats in the mean; None where all weigh the same.
    """
    assert isinstance(target, Classification), "only classes have labels"
    held = held_rows(config, target, records, repeats, repeated.rows, chosen=True)
    answers = target.decide(held.mean(weights).T)
    place = np.searchsorted(repeated.rows, held.numbers)
    kinds, kind = _numbered(repeated.kind[place])
    missed, wrong = (_by_kind(each != held.y, kind, kinds, held.weight) for each in (answers, repeated.said[place]))
    gain = missed - wrong
    clear = gain.sum() > CLEAR * np.sqrt(np.square(gain).sum())
    if kinds < LEAST or not clear or wrong.sum() > SHARE * missed.sum():
        return None
    count = repeated.kind.max() + 1.0
    classes = target.codes(repeated.labels).astype(np.int32)
    copies = Copies(repeated.signatures, classes, (repeated.error * count + 1.0) / (count + 2.0))
    return copies, CopyErrors(len(held.y), kinds, float(wrong.mean()), float(missed.mean()))
