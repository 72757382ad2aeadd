"""Features of a table: numbers without gaps, a column for each of few levels, and what the labels say of many levels.

An encoding is learned from the training table and kept in the model, so that any table with the same names of columns
becomes the same features.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from localsvm.data.blocks.table import Levels, Table
from localsvm.store.pieces import Unsound

Floats = NDArray[np.float64]

FEW_LEVELS = 9  # up to so many, each has a column
GAPS = 0.01  # share of missing numbers from which on a column says where they are
SMOOTHING = 10.0  # rows of the mean over all rows that each level is given
FOLDS = 5  # of the rows, whose labels say nothing of themselves
MOST_CLASSES = 12  # with more, only the frequency of many levels is a feature


@dataclass(frozen=True)
class Number:
    """A column of numbers.

    Attributes
    ----------
    name : of the column.
    fill : stands for a missing value: the median.
    gaps : whether a second feature is 1 where the value is missing.
    """

    kind: ClassVar[str] = "number"
    name: str
    fill: float
    gaps: bool

    @classmethod
    def fit(cls, name: str, values: Floats) -> Number:
        """Learn from the values (n,), nan where they are missing."""
        missing = np.isnan(values)
        fill = 0.0 if missing.all() else float(np.median(values[~missing]))
        return cls(name, fill, bool(missing.mean() > GAPS and not missing.all()))

    def apply(self, values: Floats) -> Floats:
        """Features (n, 1 or 2)."""
        missing = np.isnan(values)
        filled = np.where(missing, self.fill, values)
        return np.column_stack([filled, missing]) if self.gaps else filled[:, None]

    @property
    def features(self) -> list[str]:
        """Names of the features."""
        return [self.name, f"{self.name} is missing"] if self.gaps else [self.name]


@dataclass(frozen=True)
class FewLevels:
    """A column of few levels: a feature for each, 1 or 0; all 0 where the value is missing or unknown.

    Attributes
    ----------
    name, levels : of the column, and its levels.
    """

    kind: ClassVar[str] = "levels"
    name: str
    levels: tuple[str, ...]

    def apply(self, column: Levels) -> Floats:
        """Features (n, levels)."""
        codes = column.coded(self.levels)
        return np.asarray(codes[:, None] == np.arange(len(self.levels)), np.float64)

    @property
    def features(self) -> list[str]:
        """Names of the features."""
        return [f"{self.name}={level}" for level in self.levels]


@dataclass(frozen=True)
class ManyLevels:
    """A column of many levels: how frequent each is, and the share of each class among its rows.

    Shares are smoothed: each level gets SMOOTHING rows of the mean over all rows. So a rare level says little.

    Attributes
    ----------
    name, levels : of the column, and its levels.
    values : (levels + 1, features), the last row for missing and unknown values.
    """

    kind: ClassVar[str] = "statistics"
    name: str
    levels: tuple[str, ...]
    values: tuple[tuple[float, ...], ...]

    @classmethod
    def fit(cls, name: str, column: Levels, codes: NDArray[np.intp], classes: int) -> ManyLevels:
        """Learn from the levels of rows and the codes (n,) of their classes."""
        values = _statistics(column.codes, len(column.names), codes, classes)
        return cls(name, column.names, tuple(map(tuple, values.tolist())))

    def apply(self, column: Levels) -> Floats:
        """Features (n, features), of rows that were not learned from."""
        codes = column.coded(self.levels)
        return self._array[np.where(codes < 0, len(self.levels), codes)]

    @cached_property
    def _array(self) -> Floats:
        return np.asarray(self.values)

    @property
    def features(self) -> list[str]:
        """Names of the features."""
        shares = len(self.values[0]) - 1
        return [*(f"{self.name}: share of class {i + 1}" for i in range(shares)), f"{self.name}: frequency"]


def _statistics(levels: NDArray[np.int32], n_levels: int, codes: NDArray[np.intp], classes: int) -> Floats:
    """Smoothed shares of the classes (all but the first of two), and log10 of the rows: (n_levels + 1, features)."""
    shown = range(1, 2) if classes == 2 else range(classes if classes <= MOST_CLASSES else 0)
    place = np.where(levels < 0, n_levels, levels)
    rows = np.bincount(place, minlength=n_levels + 1).astype(np.float64)
    columns = []
    for number in shown:
        share = float(np.mean(codes == number)) if len(codes) else 0.0
        of_class = np.bincount(place[codes == number], minlength=n_levels + 1)
        columns.append((of_class + SMOOTHING * share) / (rows + SMOOTHING))
    return np.column_stack([*columns, np.log10(1.0 + rows)])


Coding = Number | FewLevels | ManyLevels
KINDS: dict[str, Any] = {each.kind: each for each in (Number, FewLevels, ManyLevels)}


@dataclass(frozen=True)
class Encoding:
    """Codings of the columns of a table, in the order of the features."""

    codings: tuple[Coding, ...]

    @classmethod
    def fit(cls, table: Table, names: Sequence[str], codes: NDArray[np.intp], seed: int) -> tuple[Encoding, Floats]:
        """Learn from a table; the encoding, and the features (n, features) of the rows that it was learned from.

        What the labels say of a row's level comes from rows of other folds alone.

        Parameters
        ----------
        names : of the columns that are features.
        codes : (n,) numbers of the rows' classes, from 0.
        seed : of the folds.
        """
        classes = int(codes.max(initial=0)) + 1
        rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(1 << 20,)))
        folds = rng.permutation(table.rows) % FOLDS
        codings: list[Coding] = []
        features = []
        for name in names:
            if name in table.numbers:
                number = Number.fit(name, table.numbers[name])
                codings.append(number)
                features.append(number.apply(table.numbers[name]))
                continue
            column = table.levels[name]
            if len(column.names) <= FEW_LEVELS:
                few = FewLevels(name, column.names)
                codings.append(few)
                features.append(few.apply(column))
            else:
                many = ManyLevels.fit(name, column, codes, classes)
                codings.append(many)
                features.append(_from_other_folds(column, codes, classes, folds))
        return cls(tuple(codings)), np.hstack(features) if features else np.empty((table.rows, 0))

    def apply(self, table: Table) -> Floats:
        """Features (n, features) of rows that were not learned from; all columns of the encoding are in the table."""
        columns: list[Floats] = []
        for coding in self.codings:
            if isinstance(coding, Number):
                columns.append(coding.apply(table.numbers[coding.name]))
            else:
                columns.append(coding.apply(table.levels[coding.name]))
        return np.hstack(columns)

    @property
    def names(self) -> list[str]:
        """Names of the features."""
        return [name for coding in self.codings for name in coding.features]

    @property
    def unscaled(self) -> list[int]:
        """Numbers of the features that are 0 or 1, and mean a level."""
        of_level = [isinstance(coding, FewLevels) for coding in self.codings for _ in coding.features]
        return [i for i, level in enumerate(of_level) if level]

    def as_dict(self) -> dict[str, Any]:
        """What a model keeps, as JSON can hold it."""
        return {"columns": [{"kind": coding.kind} | asdict(coding) for coding in self.codings]}

    @classmethod
    def from_dict(cls, state: dict[str, Any]) -> Encoding:
        """The encoding that a model keeps. Unsound for what is none."""
        try:
            return cls(tuple(_coding(dict(each)) for each in state["columns"]))
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise Unsound(f"/@config: the option table has no columns of an encoding ({error})") from None


def _coding(state: dict[str, Any]) -> Coding:
    kind = KINDS[state.pop("kind")]
    if not isinstance(state["name"], str):
        raise ValueError("a name is no text")
    if kind is Number:
        return Number(state["name"], _finite(state["fill"]), bool(state["gaps"]))
    if "levels" in state:
        state["levels"] = tuple(str(level) for level in state["levels"])
        if len(set(state["levels"])) < len(state["levels"]):
            raise ValueError("a level occurs twice")
    if "values" in state:
        state["values"] = tuple(tuple(_finite(v) for v in row) for row in state["values"])
        if len(state["values"]) != len(state["levels"]) + 1 or len({len(row) for row in state["values"]}) != 1:
            raise ValueError("values and levels differ")
    coding: Coding = kind(**state)
    return coding


def _finite(value: Any) -> float:
    number = float(value)
    if not np.isfinite(number):
        raise ValueError("a value is not finite")
    return number


def _from_other_folds(
    column: Levels, codes: NDArray[np.intp], classes: int, folds: NDArray[np.int64]
) -> Floats:  # fmt: skip
    """Features (n, features) of a column of many levels, of each row by the rows of other folds.

    The frequency is that among all rows, since it says nothing of labels.
    """
    n_levels = len(column.names)
    whole = _statistics(column.codes, n_levels, codes, classes)
    out = whole[column.codes]
    for fold in range(FOLDS):
        mine, others = folds == fold, folds != fold
        shares = _statistics(column.codes[others], n_levels, codes[others], classes)[:, :-1]
        if classes > MOST_CLASSES or not others.any():
            continue
        width = min(shares.shape[1], out.shape[1] - 1)
        out[mine, :width] = shares[column.codes[mine], :width]
    return out
