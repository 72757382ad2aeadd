"""Columns whose types are known, as of Parquet files and arrays, in the form that delimited text has.

What a number or a level is does not depend on the format: a model of one predicts the others.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from localsvm.data import _csv
from localsvm.data.blocks.table import Levels, Stretch, Table
from localsvm.data.readers.delimited import TableForm, TableLayout, Texts, check_named
from localsvm.errors import DataError
from localsvm.naming import opt

NUMBERS = "biuf"  # kinds of numpy types whose values are numbers, or True and False
EXACT = 2.0**53  # float64 holds all whole numbers below it
AROUND = " \t"  # blanks around a text, which are no part of it


@dataclass(frozen=True)
class TypedColumn:
    """A column and its type.

    Attributes
    ----------
    name : of the column.
    numeric : whether its values are numbers; else they are text.
    wrong : what its type is, where it is neither; "" else.
    """

    name: str
    numeric: bool
    wrong: str = ""


def layout_of(
    columns: list[TypedColumn], form: TableForm, text: Texts, known: Mapping[str, int] | None, file: str, header: bool
) -> TableLayout:
    """Layout of typed columns. header : whether they have names of their own; else these are numbers from 1.

    DataError : two columns of one name; a column that is asked for and is not there, or is neither numbers nor text.
    """
    names = tuple(column.name for column in columns)
    repeated = sorted({name for name in names if names.count(name) > 1}) if len(set(names)) < len(names) else []
    if repeated:
        raise DataError(f"{file}: two columns are called {repeated[0]!r}; give each a name of its own")
    check_named(sorted((form.categorical | form.ignored) - {""}), names, file)
    texts = text(names, header) if known is None else ()
    kinds = []
    for column in columns:
        if known is not None:
            kind = known.get(column.name, int(_csv.SKIP))
        elif column.name in form.ignored and column.name not in texts:
            kind = int(_csv.SKIP)
        elif column.name in texts or column.name in form.categorical:
            kind = int(_csv.LEVEL)
        elif not column.numeric and column.name in form.numbers:
            raise DataError(f"{file}: column {column.name!r} is described as one of numbers, and has text; write Categ")
        elif not column.numeric:
            kind = int(_csv.LEVEL if form.texts else _csv.SKIP)
        else:
            kind = int(_csv.NUMBER)
        if kind != _csv.SKIP and column.wrong:
            what = f"column {column.name!r} has values of the type {column.wrong}, which are neither numbers nor text"
            raise DataError(f"{file}: {what}; leave it out by {opt.ignore(column.name)}")
        if kind == _csv.NUMBER and not column.numeric:
            raise DataError(f"{file}: column {column.name!r} has text, and had numbers in training; write numbers")
        kinds.append(kind)
    return TableLayout(",", header, names, tuple(kinds), form.missing)


def even(units: int, size: int, wanted: int) -> list[Stretch]:
    """Stretches of units that make up a file of `size` bytes, of about `wanted` bytes each."""
    each = max(1, wanted * units // max(1, size))
    return [Stretch(begin, min(units, begin + each)) for begin in range(0, units, each)]


def table_of(layout: TableLayout, rows: int, values: Mapping[str, NDArray[Any]], file: str) -> Table:
    """Rows of typed columns. DataError for an infinite number; file : its name.

    values : (rows,) of each column that is read: numbers, or objects of which None stands for no value.
    """
    pairs = [(name, kind) for name, kind in zip(layout.names, layout.kinds, strict=True) if kind != _csv.SKIP]
    for name, kind in pairs:
        if kind == _csv.NUMBER and np.isinf(np.asarray(values[name], np.float64)).any():
            raise DataError(f"{file}: column {name!r} has an infinite number; replace it")
    return Table(
        layout.names,
        rows,
        {name: np.asarray(values[name], np.float64) for name, kind in pairs if kind == _csv.NUMBER},
        {name: levels_of(values[name], layout.missing) for name, kind in pairs if kind == _csv.LEVEL},
    )


def levels_of(values: NDArray[Any], missing: tuple[str, ...] = ()) -> Levels:
    """Levels of numbers or objects (n,); nan, None and the words `missing` stand for no value."""
    if values.dtype.kind in NUMBERS:
        different, codes = np.unique(values, return_inverse=True)
        narrow = values.dtype.kind == "f" and values.dtype.itemsize < 8  # as few digits as these need
        plain = [float(str(value)) for value in different] if narrow else different.tolist()
        texts: list[str | None] = [number_text(value) for value in plain]
    else:
        place: dict[Any, int] = {}
        codes = np.fromiter((place.setdefault(value, len(place)) for value in values.tolist()), np.int64, len(values))
        texts = [None if value is None or value != value else _text(value) for value in place]
    names = tuple(sorted({text for text in texts if text is not None and text not in missing and text != ""}))
    number = {name: i for i, name in enumerate(names)}
    place_of = np.asarray([number.get(text, -1) if text is not None else -1 for text in texts] or [-1], np.int32)
    return Levels(place_of[codes.reshape(-1)], names)


def number_text(value: Any) -> str | None:
    """Number as a text that delimited text would have: whole numbers without a point; None for nan."""
    if isinstance(value, bool | int):
        return str(value)
    if value != value:
        return None
    return str(int(value)) if value == int(value) and abs(value) < 1e15 else repr(value)


def _text(value: Any) -> str:
    return str(number_text(value)) if isinstance(value, bool | int | float) else str(value).strip(AROUND)
