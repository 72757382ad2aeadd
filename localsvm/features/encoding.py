"""Features of a table: numbers without gaps, parts of dates, levels, and what the labels say of many levels.

An encoding is learned from the training table and kept in the model, so that any table with the same names of columns
becomes the same features. `features.survey` learns it.
"""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass, field
from datetime import datetime
from functools import cached_property
from itertools import count
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from localsvm.data.blocks.table import Levels, Table
from localsvm.errors import DataError
from localsvm.naming import opt
from localsvm.store.pieces import Unsound

Floats = NDArray[np.float64]
Codes = NDArray[np.integer[Any]]

DATE = re.compile(
    r"[0-9]{4}-[01][0-9]-[0-3][0-9]([T ][0-2][0-9]:[0-5][0-9](:[0-6][0-9](\.[0-9]{1,9})?)?)?(Z|[+-][0-9:]+)?"
)
PARTS = ("year", "month", "weekday", "hour")  # of a date


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
class Ordinal:
    """A column of levels as numbers from 0, in the order of their texts.

    Attributes
    ----------
    name, levels : of the column, and its levels.
    fill : stands for a missing or unknown value.
    """

    kind: ClassVar[str] = "ordinal"
    name: str
    levels: tuple[str, ...]
    fill: float

    def apply(self, column: Levels) -> Floats:
        """Features (n, 1)."""
        codes = column.coded(self.levels)
        return np.where(codes < 0, self.fill, codes)[:, None]

    @property
    def features(self) -> list[str]:
        """Names of the features."""
        return [self.name]


@dataclass(frozen=True)
class ManyLevels:
    """A column of many levels: how frequent each is, and the share of each class among its rows.

    Shares are smoothed: each level gets some rows of the mean over all rows. So a rare level says little.

    Attributes
    ----------
    name, levels : of the column, and its levels.
    values : (levels + 1, features), the last row for missing and unknown values.
    """

    kind: ClassVar[str] = "statistics"
    name: str
    levels: tuple[str, ...]
    values: tuple[tuple[float, ...], ...]

    def apply(self, column: Levels) -> Floats:
        """Features (n, features), of rows that were not learned from."""
        return self._array[self.places(column)]

    def places(self, column: Levels) -> Codes:
        """Row (n,) of `values` for each row of a column."""
        codes = column.coded(self.levels)
        return np.where(codes < 0, len(self.levels), codes)

    @cached_property
    def _array(self) -> Floats:
        return np.asarray(self.values)

    @property
    def features(self) -> list[str]:
        """Names of the features."""
        shares = len(self.values[0]) - 1
        return [*(f"{self.name}: share of class {i + 1}" for i in range(shares)), f"{self.name}: frequency"]


@dataclass(frozen=True)
class LevelMeans(ManyLevels):
    """A column of many levels where values are predicted: how frequent each is, and the mean value of its rows."""

    kind: ClassVar[str] = "means"

    @property
    def features(self) -> list[str]:
        """Names of the features."""
        return [f"{self.name}: mean of the values", f"{self.name}: frequency"]


@dataclass(frozen=True)
class Dates:
    """A column of dates (ISO 8601): year, month (1 to 12), weekday (0 is Monday) and hour, those that vary.

    Attributes
    ----------
    name, parts : of the column, and which of PARTS are features.
    fill : stands for each part of a missing date.
    gaps : whether a further feature is 1 where the date is missing.
    """

    kind: ClassVar[str] = "dates"
    name: str
    parts: tuple[str, ...]
    fill: tuple[float, ...]
    gaps: bool

    def apply(self, column: Levels) -> Floats:
        """Features (n, parts). DataError for a text that is no date."""
        table = np.full((len(column.names) + 1, len(PARTS)), np.nan)
        for number, text in enumerate(column.names):
            parts = parts_of(text)
            if parts is None:
                what = f"column {self.name!r} has dates, and here {text[:40]!r}"
                raise DataError(f"{what}; write YYYY-MM-DD, or train with {opt.dates('none')}")
            table[number] = parts
        values = table[:, [PARTS.index(part) for part in self.parts]][column.codes]  # a code of -1 takes the last
        missing = np.isnan(values[:, :1])
        filled = np.where(missing, self.fill, values)
        return np.hstack([filled, missing]) if self.gaps else filled

    @property
    def features(self) -> list[str]:
        """Names of the features."""
        return [*(f"{self.name}: {part}" for part in self.parts), *([f"{self.name} is missing"] if self.gaps else [])]


def parts_of(text: str) -> tuple[float, ...] | None:
    """Parts of a date; None for a text that is none."""
    if not DATE.fullmatch(text):
        return None
    try:
        date = datetime.fromisoformat(re.sub(r"(\.[0-9]{6})[0-9]+", r"\1", text))
    except ValueError:
        return None
    return float(date.year), float(date.month), float(date.weekday()), float(date.hour)


Coding = Number | FewLevels | Ordinal | ManyLevels | Dates
KINDS: dict[str, Any] = {each.kind: each for each in (Number, FewLevels, Ordinal, ManyLevels, LevelMeans, Dates)}


@dataclass(frozen=True)
class Encoding:
    """Codings of the columns of a table, in the order of the features.

    Attributes
    ----------
    others : of columns of many levels, by their names, (folds, levels + 1, features): as `ManyLevels.values`, but what
        the rows of all other folds say. Training rows get these; a model does not keep them.
    """

    codings: tuple[Coding, ...]
    others: dict[str, Floats] = field(default_factory=dict, compare=False, repr=False)

    def apply(self, table: Table, folds: Codes | None = None) -> Floats:
        """Features (n, features); all columns of the encoding are in the table.

        folds : (n,) of rows that the encoding was learned from; None for other rows.
        """
        columns: list[Floats] = []
        for coding in self.codings:
            if isinstance(coding, Number):
                columns.append(coding.apply(table.numbers[coding.name]))
            elif isinstance(coding, ManyLevels) and folds is not None:
                columns.append(self.others[coding.name][folds, coding.places(table.levels[coding.name])])
            else:
                columns.append(coding.apply(table.levels[coding.name]))
        return np.hstack(columns) if columns else np.empty((table.rows, 0))

    @cached_property
    def names(self) -> list[str]:
        """Names of the features."""
        return [name for coding in self.codings for name in coding.features]

    @property
    def unscaled(self) -> list[int]:
        """Numbers of the features that are 0 or 1, and mean a level."""
        of_level = [isinstance(coding, FewLevels) for coding in self.codings for _ in coding.features]
        return [i for i, level in enumerate(of_level) if level]

    @property
    def columns(self) -> list[int]:
        """Number of the column that each feature is of, where the features of a column have one weight in a metric.

        These are the features of few levels; each other feature counts as a column of its own.
        """
        return [column for column, (_, numbers) in enumerate(self.weighed) for _ in numbers]

    @property
    def weighed(self) -> list[tuple[str, list[int]]]:
        """Names of what has a weight of its own in a metric, and its features: a column of few levels, or a feature."""
        pairs: list[tuple[str, list[int]]] = []
        number = count()
        for coding in self.codings:
            features = list(zip(coding.features, number, strict=False))
            if isinstance(coding, FewLevels):
                pairs.append((coding.name, [each for _, each in features]))
            else:
                pairs += [(name, [each]) for name, each in features]
        return pairs

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


def unknown(coding: Coding, table: Table) -> int:
    """Number of values of a column that are levels which training did not have."""
    if isinstance(coding, Number | Dates):
        return 0
    return int(np.count_nonzero(table.levels[coding.name].coded(coding.levels) == -2))


def new_levels_text(name: str, values: int, of: str = "") -> str:
    """What is said of a column that has so many of these values. of : what it is a column of, as " of X"."""
    have = "1 value" if values == 1 else f"{values:,} values"
    return f"column {name!r}{of} has {have} that training did not have"


def _coding(state: dict[str, Any]) -> Coding:
    kind = KINDS[state.pop("kind")]
    if not isinstance(state["name"], str):
        raise ValueError("a name is no text")
    if kind is Number:
        return Number(state["name"], _finite(state["fill"]), bool(state["gaps"]))
    if kind is Dates:
        parts, fill = tuple(state["parts"]), tuple(map(_finite, state["fill"]))
        if not set(parts) <= set(PARTS) or len(fill) != len(parts) or not parts:
            raise ValueError("parts of dates do not fit")
        return Dates(state["name"], parts, fill, bool(state["gaps"]))
    state["levels"] = tuple(str(level) for level in state["levels"])
    if len(set(state["levels"])) < len(state["levels"]):
        raise ValueError("a level occurs twice")
    if kind is Ordinal:
        state["fill"] = _finite(state["fill"])
    if issubclass(kind, ManyLevels):
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
