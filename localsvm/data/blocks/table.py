"""Columns of a table as they are: numbers, and levels of text."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Codes = NDArray[np.int32]
TRUTH = ("true", "false")
WHOLE = re.compile(r"^(-?(?:0|[1-9][0-9]*))\.0*$")


@dataclass(frozen=True)
class Levels:
    """A column of text.

    Attributes
    ----------
    codes : (n,) int32 numbers of the texts in `names`, -1 where the value is missing.
    names : the different texts; of a whole table in ascending order.
    """

    codes: Codes
    names: tuple[str, ...]

    def texts(self) -> list[str]:
        """Text of each row, "" where the value is missing."""
        names = (*self.names, "")
        return [names[code] for code in self.codes.tolist()]

    def taken(self, rows: NDArray[np.bool_]) -> Levels:
        """The rows where the mask (n,) is True, and the texts that these have."""
        used, codes = np.unique(np.append(self.codes[rows], -1), return_inverse=True)
        return Levels((codes[:-1] - 1).astype(np.int32), tuple(self.names[code] for code in used[1:].tolist()))

    def coded(self, names: Sequence[str]) -> Codes:
        """Numbers (n,) of the texts in other names; -1 where the value is missing, -2 where it is not among them.

        Formats write truth values and whole numbers in their own ways: true, True and TRUE are one, and so are 1 and
        1.0, if they are not two of the names.
        """
        place = {name: number for number, name in enumerate(names)}
        plain = {_plain(name): number for name, number in place.items()}
        numbers = [place.get(name, plain.get(_plain(name), -2)) for name in self.names]
        known = np.asarray([*numbers, -1], np.int32)
        return known[self.codes]  # a code of -1 takes the last


def _plain(name: str) -> str:
    """What texts of one truth value, or of one whole number, have in common."""
    return name.lower() if name.lower() in TRUTH else WHOLE.sub(r"\1", name)


@dataclass(frozen=True)
class Table:
    """Rows of a table.

    Attributes
    ----------
    names : of all columns, in the order of the file, those that are not read among them.
    rows : their number.
    numbers : (n,) float64 of the columns of numbers, by their names; nan where the value is missing.
    levels : the columns of text, by their names.
    """

    names: tuple[str, ...]
    rows: int
    numbers: dict[str, Floats] = field(default_factory=dict)
    levels: dict[str, Levels] = field(default_factory=dict)

    def taken(self, rows: NDArray[np.bool_]) -> Table:
        """The rows where the mask (n,) is True, and the levels that these have; the table itself where that is all."""
        if rows.all():
            return self
        numbers = {name: values[rows] for name, values in self.numbers.items()}
        levels = {name: column.taken(rows) for name, column in self.levels.items()}
        return Table(self.names, int(np.count_nonzero(rows)), numbers, levels)


@dataclass(frozen=True)
class Stretch:
    """Place of some rows of a file that follow each other.

    Attributes
    ----------
    begin, end : what lies from `begin` up to, not including `end`: bytes of a delimited text (decoded if it is
        compressed), row groups of Parquet, batches of Arrow, rows of arrays; an end of None is that of the file.
    line : number of the first line, in delimited text.
    """

    begin: int
    end: int | None = None
    line: int = 1


def together(parts: Sequence[Table]) -> Table:
    """One table of the rows of several that have the same columns."""
    first = parts[0]
    return Table(
        first.names,
        sum(part.rows for part in parts),
        {name: np.concatenate([part.numbers[name] for part in parts]) for name in first.numbers},
        {name: _joined([part.levels[name] for part in parts]) for name in first.levels},
    )


def _joined(parts: Sequence[Levels]) -> Levels:
    names = tuple(sorted(set().union(*(part.names for part in parts))))
    place = {name: number for number, name in enumerate(names)}
    known = [np.asarray([*map(place.__getitem__, part.names), -1], np.int32) for part in parts]
    return Levels(np.concatenate([numbers[part.codes] for numbers, part in zip(known, parts, strict=True)]), names)
