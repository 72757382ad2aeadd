"""What one pass over a training table finds of its columns: what an encoding is made of.

The blocks that the table comes in do not matter: a median of many rows is that of some, drawn by their numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from localsvm.data.blocks.numbering import hashed
from localsvm.data.blocks.table import Levels, Table
from localsvm.features.encoding import (
    PARTS,
    Codes,
    Coding,
    Dates,
    Encoding,
    FewLevels,
    Floats,
    LevelMeans,
    ManyLevels,
    Number,
    Ordinal,
    parts_of,
)

FEW_LEVELS = 9  # up to so many, each has a feature
GAPS = 0.01  # share of missing values from which on a feature says where they are
SMOOTHING = 10.0  # rows of the mean over all rows that each level is given
FOLDS = 5  # of the rows, whose labels say nothing of themselves
MOST_CLASSES = 12  # with more, only the frequency of many levels is a feature
SAMPLED = 1 << 18  # rows that a median is of, if there are more
ENCODINGS = ("auto", "one-hot", "target", "ordinal")
HEAD = 1000  # rows that decide whether a column of numbers has few values
MOST_VALUES, TELLING = 50, 20  # a column with so few values may be the label's copy, of which each has so many rows
MERGED = 1 << 20  # pairs of levels and labels that wait to be counted together

FOLD_BITS, LABEL_BITS = 3, 29  # of a key: level, label, fold


@dataclass
class NumberSurvey:
    """A column of numbers: how many are missing, the range, and a sample of the rows."""

    rows: int = 0
    missing: int = 0
    least: float = np.inf
    most: float = -np.inf
    _keys: NDArray[np.uint64] = field(default_factory=lambda: np.empty(0, np.uint64))
    _values: Floats = field(default_factory=lambda: np.empty(0))
    _label_of: dict[float, int] | None = field(default_factory=dict)

    def add(self, values: Floats, keys: NDArray[np.uint64]) -> None:
        """Take in values (n,), nan where they are missing; the rows with the smallest keys (n,) are the sample."""
        known = ~np.isnan(values)
        self.rows, self.missing = self.rows + len(values), self.missing + int(np.count_nonzero(~known))
        values, keys = values[known], keys[known]
        if not len(values):
            return
        self.least, self.most = min(self.least, float(values.min())), max(self.most, float(values.max()))
        self._values, self._keys = np.concatenate([self._values, values]), np.concatenate([self._keys, keys])
        if len(self._keys) > 2 * SAMPLED:
            self._cut()

    def _cut(self) -> None:
        if len(self._keys) > SAMPLED:
            kept = np.argpartition(self._keys, SAMPLED)[:SAMPLED]
            self._values, self._keys = self._values[kept], self._keys[kept]

    @property
    def constant(self) -> bool:
        """True where the column says nothing: it has one value, or none."""
        return not self.least < self.most and (self.missing == 0 or self.missing == self.rows)

    def note_labels(self, values: Floats, labels: Codes) -> None:
        """Take in which labels occur with which values, until values are many or one has several labels."""
        if self._label_of is None:
            return
        if np.isnan(values).any() or len(np.unique(values[:HEAD])) > MOST_VALUES:
            self._label_of = None
            return
        different, inverse = np.unique(values, return_inverse=True)
        first = np.zeros(len(different), np.int64)
        first[inverse.reshape(-1)] = labels
        known = self._label_of
        alone = (first[inverse.reshape(-1)] == labels).all() and len(different) <= MOST_VALUES
        pairs = zip(different.tolist(), first.tolist(), strict=True)
        if not alone or any(known.setdefault(value, label) != label for value, label in pairs):
            self._label_of = None

    def tells_all(self, labels: Codes) -> bool:
        """True where each value has rows of one class alone, and there are few values. labels: see `TableSurvey`."""
        return self._label_of is not None and _tells(len(self._label_of), self.rows, labels)

    def coding(self, name: str) -> Number:
        """Coding of the column."""
        self._cut()
        some = self.missing < self.rows
        fill = float(np.median(self._values)) if some else 0.0
        return Number(name, fill, bool(self.missing > GAPS * self.rows and some))


@dataclass
class LevelSurvey:
    """A column of text: its levels, and how many rows of each label and fold each has, and the sum of their values."""

    rows: int = 0
    _place: dict[str, int] = field(default_factory=dict)
    _keys: list[NDArray[np.int64]] = field(default_factory=list)
    _counts: list[NDArray[np.int64]] = field(default_factory=list)
    _slots: dict[int, int] = field(default_factory=dict)
    _sums: Floats = field(default_factory=lambda: np.zeros(0))
    _waiting: int = 0

    def add(self, column: Levels, labels: Codes, folds: Codes, values: Floats | None = None) -> None:
        """Take in rows (n,) with the numbers of their labels and folds, or with the values to predict."""
        place = self._place
        numbers = np.asarray([place.setdefault(name, len(place)) for name in column.names] + [-1], np.int64)
        key = ((numbers[column.codes] + 1) << (FOLD_BITS + LABEL_BITS)) | (labels.astype(np.int64) << FOLD_BITS) | folds
        keys, inverse, counts = np.unique(key, return_inverse=True, return_counts=True)
        self._keys.append(keys)
        self._counts.append(counts)
        if values is not None:
            self._add(keys, inverse.reshape(-1), values)
        self.rows, self._waiting = self.rows + len(key), self._waiting + len(keys)
        if self._waiting > MERGED:
            self._merge()

    def _add(self, keys: NDArray[np.int64], places: Codes, values: Floats) -> None:
        """Add values, row by row: so the blocks that rows come in do not matter for what rounds."""
        known = self._slots
        slots = np.asarray([known.setdefault(key, len(known)) for key in keys.tolist()], np.int64)
        self._sums = np.append(self._sums, np.zeros(len(known) - len(self._sums)))
        np.add.at(self._sums, slots[places], values)

    def _merge(self) -> None:
        keys, inverse = np.unique(np.concatenate(self._keys), return_inverse=True)
        total = np.bincount(inverse.reshape(-1), np.concatenate(self._counts), len(keys)).astype(np.int64)
        self._keys, self._counts, self._waiting = [keys], [total], 0

    @property
    def names(self) -> tuple[str, ...]:
        """The levels, ascending."""
        return tuple(sorted(self._place))

    @property
    def missing(self) -> int:
        """Number of rows without a value."""
        self._merge()
        keys, counts = self._keys[0], self._counts[0]
        return int(counts[keys >> (FOLD_BITS + LABEL_BITS) == 0].sum())

    @property
    def constant(self) -> bool:
        """True where the column says nothing."""
        return len(self._place) + bool(self.missing) < 2 or not self._place

    @property
    def identity(self) -> bool:
        """True where all texts differ."""
        return len(self._place) == self.rows > 2

    def tells_all(self, labels: Codes) -> bool:
        """True where each level has rows of one class alone, and there are few levels. labels: see `TableSurvey`."""
        if not _tells(len(self._place), self.rows, labels) or self.missing:
            return False
        keys = self._keys[0] >> FOLD_BITS
        classes = np.stack([keys >> LABEL_BITS, labels[keys & ((1 << LABEL_BITS) - 1)]])
        return len(np.unique(classes, axis=1).T) == len(self._place)

    def counts(self, labels: Codes, classes: int) -> NDArray[np.int64]:
        """Rows (FOLDS, levels + 1, classes) of each fold, level (ascending, and at last missing) and class.

        labels : the class of each number of a label.
        """
        self._merge()
        table = np.zeros((FOLDS, len(self._place) + 1, classes), np.int64)
        fold, level, label = self._places()
        np.add.at(table, (fold, level, labels[label]), self._counts[0])
        return table

    def sums(self) -> Floats:
        """Sums (FOLDS, levels + 1) of the values to predict, of each fold and level."""
        self._merge()
        table = np.zeros((FOLDS, len(self._place) + 1))
        fold, level, _ = self._places()
        table[fold, level] = self._sums[[self._slots[key] for key in self._keys[0].tolist()]]
        return table

    def _places(self) -> tuple[Codes, Codes, Codes]:
        """Fold, rank of the level (ascending, and at last missing), and label of each key."""
        keys = self._keys[0]
        order = np.empty(len(self._place) + 1, np.int64)
        for rank, name in enumerate(self.names):
            order[self._place[name] + 1] = rank
        order[0] = len(self._place)
        label = (keys >> FOLD_BITS) & ((1 << LABEL_BITS) - 1)
        return keys & ((1 << FOLD_BITS) - 1), order[keys >> (FOLD_BITS + LABEL_BITS)], label


def _tells(values: int, rows: int, labels: Codes) -> bool:
    """True where so many values in so many rows would be no accident."""
    return values <= MOST_VALUES and rows >= TELLING * values and len(np.unique(labels)) > 1


@dataclass
class DateSurvey:
    """A column of dates: its parts."""

    parts: list[NumberSurvey]

    def coding(self, name: str) -> Dates | None:
        """Coding of the column; None where no part varies."""
        first = self.parts[0]
        kept = [(part, each.coding(part).fill) for part, each in zip(PARTS, self.parts, strict=True) if _varies(each)]
        gaps = bool(first.missing > GAPS * first.rows)
        return Dates(name, tuple(part for part, _ in kept), tuple(fill for _, fill in kept), gaps) if kept else None


def _varies(survey: NumberSurvey) -> bool:
    return survey.least < survey.most


@dataclass(frozen=True)
class RowFolds:
    """Folds of all rows of a table.

    Attributes
    ----------
    key : of folds at random.
    rows : number of all rows, where folds are stretches of consecutive rows; None for folds at random.
    """

    key: int
    rows: int | None = None

    def of(self, first: int, rows: int, group: NDArray[np.int64] | None) -> Codes:
        """Fold (n,) of each of some rows: by its group if it has one, else by its number, `first` for the first row."""
        number = np.arange(first, first + rows) if group is None else group
        if self.rows is not None and group is None:
            return number * FOLDS // self.rows
        return np.asarray(hashed(number, self.key) % np.uint64(FOLDS), np.int64)


class TableSurvey:
    """Survey of a training table.

    Parameters
    ----------
    seed : of the folds, and of the rows that medians are of.
    blocks : number of all rows, where folds are stretches of consecutive rows; None for folds at random.

    Attributes
    ----------
    rows : so far.
    folds : of the rows.
    """

    def __init__(self, seed: int, blocks: int | None = None) -> None:
        sequence = np.random.SeedSequence(seed, spawn_key=(1 << 20,))
        self.folds = RowFolds(int(sequence.generate_state(1, np.uint64)[0]), blocks)
        self.rows, self._of_values = 0, False
        self._numbers: dict[str, NumberSurvey] = {}
        self._levels: dict[str, LevelSurvey] = {}

    def add(
        self, table: Table, names: Sequence[str], labels: Codes, group: NDArray[np.int64] | None,
        values: Floats | None = None,
    ) -> None:  # fmt: skip
        """Take in a block of rows.

        Parameters
        ----------
        names : of the columns that may be features.
        labels, group : (n,) numbers of the rows' labels and groups.
        values : (n,) to predict; None for classes.
        """
        self._of_values = values is not None
        keys = hashed(np.arange(self.rows, self.rows + table.rows), self.folds.key ^ 1)
        folds = self.folds.of(self.rows, table.rows, group)
        self.rows += table.rows
        for name in names:
            if name in table.numbers:
                survey = self._numbers.setdefault(name, NumberSurvey())
                survey.add(table.numbers[name], keys)
                survey.note_labels(table.numbers[name], labels)
            else:
                self._levels.setdefault(name, LevelSurvey()).add(table.levels[name], labels, folds, values)

    def tells_all(self, name: str, labels: Codes) -> bool:
        """True where a column says what the label is, by few values; labels: the class of each number of a label."""
        column = self._numbers.get(name) or self._levels[name]
        return column.tells_all(labels)

    @property
    def largest(self) -> tuple[str, float]:
        """The column of numbers with the largest one beside its sign, and that one; 0 where there is none."""
        ends = [(name, end) for name, column in self._numbers.items() for end in (column.least, column.most)]
        return max((each for each in ends if np.isfinite(each[1])), key=lambda each: abs(each[1]), default=("", 0.0))

    def encoding(
        self, names: Sequence[str], labels: Codes, encode: str, dates: bool, leave_out: Callable[[str, str], None]
    ) -> Encoding:  # fmt: skip
        """The encoding of all columns that say something.

        Parameters
        ----------
        names : of the columns that may be features, in the order of the features.
        labels : the class of each number of a label, from 0.
        encode : one of ENCODINGS.
        dates : whether columns of dates are told from other text.
        leave_out : called with a column that is left out, and the reason.
        """
        codings: list[Coding] = []
        others: dict[str, Floats] = {}
        classes = int(labels.max(initial=0)) + 1
        for name in names:
            why, coding = self._coding(name, labels, classes, encode, dates, others)
            if coding is None:
                leave_out(name, why)
            else:
                codings.append(coding)
        return Encoding(tuple(codings), others)

    def _coding(
        self, name: str, labels: Codes, classes: int, encode: str, dates: bool, others: dict[str, Floats]
    ) -> tuple[str, Coding | None]:
        """Reason to leave a column out, or its coding. others : gets what other folds say."""
        if name in self._numbers:
            number = self._numbers[name]
            return ("one value only", None) if number.constant else ("", number.coding(name))
        column = self._levels[name]
        if column.constant:
            return "one value only", None
        levels = column.names
        if dates and (survey := date_survey(levels, column.missing, column.rows)) is not None:
            return "one date only", survey.coding(name)
        if column.identity:
            return "a text of its own in each row, as an id has", None
        if encode == "one-hot" or (encode == "auto" and len(levels) <= FEW_LEVELS):
            return "", FewLevels(name, levels)
        many = classes > MOST_CLASSES  # then only the frequency is told
        counts = column.counts(labels * 0 if many else labels, 1 if many else classes)
        if encode == "ordinal":
            return "", Ordinal(name, levels, _median_code(counts.sum(axis=(0, 2))[:-1]))
        if self._of_values:
            return "", _means(name, levels, counts[..., 0], column.sums(), others)
        whole = statistics(counts.sum(axis=0), classes)
        frequency = np.broadcast_to(whole[:, -1:], (FOLDS, len(whole), 1))  # says nothing of labels
        left = counts.sum(axis=0) - counts
        others[name] = np.concatenate([np.stack([statistics(each, classes)[:, :-1] for each in left]), frequency], 2)
        return "", ManyLevels(name, levels, tuple(map(tuple, whole.tolist())))


def _means(
    name: str, levels: tuple[str, ...], rows: NDArray[np.int64], sums: Floats, others: dict[str, Floats]
) -> LevelMeans:
    """Coding of a column of many levels by the mean of the values; others : gets what other folds say.

    rows, sums : (FOLDS, levels + 1) of the values.
    """
    every = rows.sum(axis=0), sums.sum(axis=0)
    whole = mean_statistics(*every)
    left = [mean_statistics(every[0] - own, every[1] - total)[:, :1] for own, total in zip(rows, sums, strict=True)]
    frequency = np.broadcast_to(whole[:, -1:], (FOLDS, len(whole), 1))  # says nothing of the values
    others[name] = np.concatenate([np.stack(left), frequency], 2)
    return LevelMeans(name, levels, tuple(map(tuple, whole.tolist())))


def mean_statistics(rows: NDArray[np.int64], sums: Floats) -> Floats:
    """Smoothed means of the values, and log10 of the rows: (levels + 1, 2).

    rows, sums : (levels + 1,) of the values.
    """
    mean = sums.sum() / max(1, rows.sum())
    return np.column_stack([(sums + SMOOTHING * mean) / (rows + SMOOTHING), np.log10(1.0 + rows)])


def date_survey(levels: Sequence[str], missing: int, rows: int) -> DateSurvey | None:
    """Survey of a column whose levels all are dates; None for another one."""
    if not levels:
        return None
    table = np.empty((len(levels), len(PARTS)))
    for number, text in enumerate(levels):
        parts = parts_of(text)
        if parts is None:
            return None
        table[number] = parts
    surveys = [NumberSurvey() for _ in PARTS]
    for survey, values in zip(surveys, table.T, strict=True):
        survey.add(values, np.arange(len(values), dtype=np.uint64))
        survey.missing, survey.rows = missing, rows
    return DateSurvey(surveys)


def statistics(counts: NDArray[np.int64], classes: int) -> Floats:
    """Smoothed shares of the classes (all but the first of two), and log10 of the rows: (levels + 1, features).

    counts : (levels + 1, classes) rows.
    """
    shown: Any = range(1, 2) if classes == 2 else range(classes if classes <= MOST_CLASSES else 0)
    rows, total = counts.sum(axis=1).astype(np.float64), counts.sum()
    mean = counts.sum(axis=0) / max(1, total)
    columns = [(counts[:, number] + SMOOTHING * mean[number]) / (rows + SMOOTHING) for number in shown]
    return np.column_stack([*columns, np.log10(1.0 + rows)])


def _median_code(rows: NDArray[np.int64]) -> float:
    """Number of the level at which half of the rows are reached."""
    return float(np.searchsorted(np.cumsum(rows), rows.sum() / 2))
