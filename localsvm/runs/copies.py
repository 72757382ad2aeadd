"""Whether rows that equal training rows get the labels of these, by the rows of a run that have copies among them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from localsvm.data.blocks.numbering import Hashes, signatures
from localsvm.engines.base import Block
from localsvm.runs.cells.averaged import SAMPLE_VALUES, held_rows
from localsvm.runs.cells.records import Record
from localsvm.runs.config import TrainingConfig
from localsvm.targets.base import Observed, Target
from localsvm.targets.classification import Classification
from localsvm.targets.copies import Copies

MOST_ROWS = 1 << 21  # of a run: signatures and labels of all are in memory together, some 70 bytes a row
LEAST = 20  # rows that have copies: by fewer nothing is judged
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
class Repeated:
    """Rows of a run that have copies.

    Attributes
    ----------
    signatures, labels : (k,) ascending, and the label of all rows that have these values; not of rows that disagree.
    rows, said : (m,) numbers, ascending, of the rows whose copies agree; the label that these have.
    wrong : how many of these rows have another label.
    """

    signatures: Hashes
    labels: Vector
    rows: NDArray[np.int64]
    said: Vector
    wrong: int

    @classmethod
    def of(cls, parts: Sequence[tuple[Hashes, Vector]], observed: Observed) -> Self | None:
        """What `Signed` has found; None where too few rows have copies, or their labels say too little to be judged."""
        marks, y = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
        order = np.argsort(marks, kind="stable")
        order = order[~np.isnan(y[order])]
        marks, sorted_y = marks[order], y[order]
        first = np.flatnonzero(np.append(True, marks[1:] != marks[:-1]))
        low, high = np.minimum.reduceat(sorted_y, first), np.maximum.reduceat(sorted_y, first)
        size = np.diff(np.append(first, len(marks)))
        group = np.repeat(np.arange(len(first)), size)
        lows, highs = (np.bincount(group, sorted_y == end[group]) for end in (low, high))
        at_low, agree = sorted_y == low[group], (low == high)[group]
        own = np.where(at_low, lows[group], highs[group])
        # the others of a kind agree on a row if all do, or if it is the only one that differs
        alone = ~agree & (own == 1) & (lows + highs == size)[group]
        known = alone | (agree & (own > 1))
        said = np.where(at_low, high[group], low[group])[known]
        rows, wrong = order[known], int(np.count_nonzero(alone))
        guessing = 1.0 - max(observed.class_rows) / observed.rows
        if len(rows) < LEAST or wrong > SHARE * guessing * len(rows):
            return None
        ascending, same = np.argsort(rows), np.flatnonzero(low == high)
        return cls(marks[first[same]], low[same], rows[ascending], said[ascending], wrong)


@dataclass(frozen=True)
class Judged:
    """Errors on the held-out rows that have copies, as shares of their weight.

    Attributes
    ----------
    rows : how many there are.
    error : of the labels of their copies.
    model_error : of the model, to which the copies were unknown.
    """

    rows: int
    error: float
    model_error: float

    def describe(self) -> dict[str, Any]:
        """Entries of a summary, as JSON can hold them."""
        return asdict(self)


def judge(
    repeated: Repeated, config: TrainingConfig, target: Target, records: Mapping[str, Record],
    repeats: Sequence[Sequence[str]], weights: Vector | None,
) -> tuple[Copies, Judged] | None:  # fmt: skip
    """The labels that copies get; None where these are not clearly better than what the model answers.

    Copies of a row that is held out are so, too: the model has not seen them, and is better where it has. So labels of
    copies have to make a quarter of its errors at most, and by a paired test clearly fewer. Some of the rows chose the
    metric: that flatters the model, and asks more of the labels.

    Parameters
    ----------
    records, repeats : of cells, by their names, with `records.held`; the names of each repeat's cells.
    weights : of the repeats in the mean; None where all weigh the same.
    """
    assert isinstance(target, Classification), "only classes have labels"
    step = max(1, len(repeated.rows) * len(repeats) * target.n_problems // SAMPLE_VALUES)
    held = held_rows(config, target, records, repeats, repeated.rows[::step], chosen=True)
    equal = np.full(len(repeats), 1.0 / len(repeats))
    answers = target.decide(np.tensordot(equal if weights is None else weights, held.values, 1).T)
    said = repeated.said[np.searchsorted(repeated.rows, held.numbers)]
    mass, missed, wrong = held.weight.sum(), held.weight * (answers != held.y), held.weight * (said != held.y)
    gain = missed - wrong
    clear = gain.sum() > CLEAR * np.sqrt(np.square(gain).sum())
    if not clear or wrong.sum() > SHARE * missed.sum():
        return None
    error = (repeated.wrong + 1.0) / (len(repeated.rows) + 2.0)
    classes = target.codes(repeated.labels).astype(np.int32)
    judged = Judged(len(held.y), float(wrong.sum() / mass), float(missed.sum() / mass))
    return Copies(repeated.signatures, classes, error), judged
