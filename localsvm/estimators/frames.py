"""Frames of pandas, polars and pyarrow, and arrays with missing values, as tables.

A frame is told by what it can do, so that none of the libraries is needed. A model that was fitted on a frame is that
of a table: columns are matched by their names, here and on the command line.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from localsvm.data.blocks.table import Table
from localsvm.data.readers.columnar import EXACT, TypedColumn, layout_of, levels_of
from localsvm.data.readers.delimited import MISSING, TableForm, nearest
from localsvm.estimators.parameters import ParameterError, RowsError
from localsvm.features.encoding import Encoding, Number, new_levels_text, unknown
from localsvm.features.survey import TableSurvey
from localsvm.runs.preparation.tables import description_of

if TYPE_CHECKING:
    from localsvm.estimators.base import Answers

FROM_DTYPE = "from_dtype"
NUMBERS = "iuf"
NUMBER_TYPES = (Real, Decimal)  # of the objects in a column of numbers


@dataclass(frozen=True)
class FrameColumn:
    """A column of a frame: numbers, or objects with None; and whether its type says that it has levels."""

    values: NDArray[Any]
    levels: bool


def is_frame(X: Any) -> bool:
    """True for a frame with named columns."""
    return _columns_of(X) is not None


def frame_of(X: Any, names: Sequence[str] | None = None) -> dict[str, FrameColumn]:
    """Columns of a frame, or of an array whose columns have these names.

    ValueError for an array with another number of columns, or a column of a type that is neither numbers nor text.
    """
    columns = _columns_of(X)
    if columns is None:
        array = np.asarray(X)
        known = [f"x{i}" for i in range(array.shape[1])] if names is None else list(names)
        if array.ndim != 2 or array.shape[1] != len(known):
            raise RowsError(f"X has the shape {array.shape}, and the model was fitted on {len(known)} features")
        columns = {name: array[:, i] for i, name in enumerate(known)}
    return {name: _column(name, values) for name, values in columns.items()}


def _named(names: Sequence[Any], columns: Sequence[Any]) -> dict[str, Any]:
    """Columns by their names. RowsError for two of one name."""
    texts = [str(name) for name in names]
    if len(set(texts)) < len(texts):
        twice = next(name for name in texts if texts.count(name) > 1)
        raise RowsError(f"X has two columns called {twice!r}; give each a name of its own")
    return dict(zip(texts, columns, strict=True))


def _columns_of(X: Any) -> dict[str, Any] | None:
    """Columns by their names, each an array or with a `to_numpy`; None for no frame. RowsError for a lazy one."""
    if hasattr(X, "iloc") and hasattr(X, "columns"):  # pandas
        return _named(X.columns, [X.iloc[:, i] for i in range(X.shape[1])])
    if hasattr(X, "get_columns") and hasattr(X, "columns"):  # polars
        return _named(X.columns, X.get_columns())
    if hasattr(X, "collect") and hasattr(X, "lazy"):  # polars
        raise RowsError("X is a lazy frame, which has no rows yet; give X.collect()")
    if hasattr(X, "schema") and hasattr(X, "itercolumns"):  # pyarrow
        return _named(X.schema.names, list(X.itercolumns()))
    return None


def _column(name: str, values: Any) -> FrameColumn:
    kind = str(getattr(values, "dtype", getattr(values, "type", ""))).lower()
    if hasattr(values, "null_count") and hasattr(values, "to_pylist"):  # pyarrow
        from localsvm.data.readers.arrow import has_numbers, values_of

        whole = values.combine_chunks() if hasattr(values, "chunks") else values
        return FrameColumn(values_of(whole), levels=not has_numbers(whole.type))
    if kind.startswith(("category", "categorical", "enum")):
        return FrameColumn(_objects(values), levels=True)
    array = _array(name, values)
    if array.dtype.kind == "f" and kind.startswith(("int", "uint")) and (np.abs(array) >= EXACT).any():
        return FrameColumn(_objects(values), levels=False)  # missing values made them floats
    if array.dtype.kind in NUMBERS:
        return FrameColumn(array, levels=False)
    if array.dtype.kind == "m":  # as seconds
        return FrameColumn(array / np.timedelta64(1, "s"), levels=False)
    if array.dtype.kind == "M":
        return FrameColumn(
            np.asarray([None if np.isnat(v) else str(v.astype("M8[us]")) for v in array], object), levels=True
        )
    objects = _objects(array)
    strange = next((value for value in objects if isinstance(value, list | dict | set | np.ndarray)), None)
    if strange is not None:
        raise _neither(name, type(strange).__name__)
    known = [value for value in objects if value is not None]
    nullable = kind.startswith(("int", "uint", "float"))  # of pandas
    numbers = nullable or (len(known) > 0 and all(isinstance(value, NUMBER_TYPES) for value in known))
    return FrameColumn(objects, levels=not numbers)


def _array(name: str, values: Any) -> NDArray[Any]:
    """Values (n,) of a column, times as its zone has them. RowsError for what has no array of one value each."""
    if isinstance(values, np.ndarray):
        return values
    if getattr(values.dtype, "time_zone", None):  # polars would give them in UTC
        values = values.dt.replace_time_zone(None)
    try:
        array = np.asarray(values.to_numpy())
    except MemoryError:
        raise
    except Exception as error:  # of a library that need not be there
        raise _neither(name, values.dtype) from error
    if array.ndim != 1:
        raise _neither(name, values.dtype)
    return array


def _neither(name: str, kind: Any) -> RowsError:
    what = f"column {name!r} of X has values of the type {kind}"
    return RowsError(f"{what}, which are neither numbers nor text; leave it out")


def _objects(values: Any) -> NDArray[Any]:
    """Objects (n,), of which None stands for no value, and truth values are text."""
    listed = values.tolist() if hasattr(values, "tolist") else values.to_list()
    out = np.empty(len(listed), object)
    for i, value in enumerate(listed):
        gone = value is None or str(value) in ("<NA>", "NaT", "nan")
        out[i] = None if gone else str(value) if isinstance(value, bool) else value
    return out


def categorical(asked: Any, columns: dict[str, FrameColumn]) -> set[str]:
    """Names of the columns that have levels.

    asked : "from_dtype", None, a mask, numbers, or names of columns. ParameterError for anything else.
    """
    names = list(columns)
    if asked is None or (isinstance(asked, str) and asked == FROM_DTYPE):
        return {name for name, column in columns.items() if column.levels and asked is not None}
    given = np.asarray(asked)
    if given.ndim != 1 or given.dtype.kind not in "biuUO":
        raise ParameterError(
            f'categorical_features must be "from_dtype", None, or names, numbers or truth values, not {asked!r}'
        )
    if given.dtype.kind == "b":
        if len(given) != len(names):
            raise ParameterError(f"categorical_features has {len(given)} truth values for {len(names)} columns")
        return {name for name, flag in zip(names, given.tolist(), strict=True) if flag}
    chosen = set()
    for each in given.tolist():
        number = isinstance(each, int) and -len(names) <= each < len(names)
        if not number and each not in names:
            raise ParameterError(f"categorical_features: no column is called {each!r}{nearest(str(each), names)}")
        chosen.add(names[each] if number else str(each))
    return chosen


@dataclass(frozen=True)
class FrameRows:
    """Rows of a frame, encoded.

    Attributes
    ----------
    X : (n, features) float64.
    table : description for the model; see `Dataset.table`.
    """

    X: NDArray[np.float64]
    table: dict[str, Any]


def fitted_rows(
    columns: dict[str, FrameColumn], asked: Any, answers: Answers, seed: int, group: NDArray[np.int64] | None,
    label: str,
) -> FrameRows:  # fmt: skip
    """Learn the encoding of a frame, and apply it to its rows.

    Parameters
    ----------
    asked : which columns have levels; see `categorical`.
    answers, group : what is to be predicted; (n,) numbers of the rows' groups, if they have any.
    seed : of the folds of target statistics.
    label : name of the labels.
    """
    texts = categorical(asked, columns)
    table = _table(columns, texts)
    survey = TableSurvey(seed)
    codes = np.zeros(table.rows, np.intp) if answers.codes is None else answers.codes
    survey.add(table, list(columns), codes, group, answers.labels if answers.codes is None else None)
    left_out: list[str] = []

    def leave_out(name: str, why: str) -> None:
        left_out.append(f"{name!r}: {why}")

    labels = np.arange(int(codes.max(initial=0)) + 1)
    encoding = survey.encoding(list(columns), labels, "auto", True, leave_out)
    if not encoding.codings:
        raise RowsError("X has no column that is a feature: each has one value only, or a text of its own in each row")
    if left_out:
        warnings.warn(f"columns of X are left out: {'; '.join(left_out)}", UserWarning, stacklevel=4)
    while label in columns:
        label += "_"
    typed = [TypedColumn(name, numeric=name not in texts and name != label) for name in [*columns, label]]
    layout = layout_of(typed, TableForm(), lambda names, header: (), None, "X", header=True)
    return FrameRows(
        encoding.apply(table, survey.folds.of(0, table.rows, group)), description_of(encoding, layout, label)
    )  # fmt: skip


def encoded(columns: dict[str, FrameColumn], encoding: Encoding) -> NDArray[np.float64]:
    """Rows (n, features) float64 of a frame, as a model's encoding has them. RowsError for an absent column."""
    for coding in encoding.codings:
        if coding.name not in columns:
            raise RowsError(f"X has no column {coding.name!r}{nearest(coding.name, list(columns))}")
    texts = {coding.name for coding in encoding.codings if not isinstance(coding, Number)}
    used = {coding.name: columns[coding.name] for coding in encoding.codings}
    table = _table(used, texts)
    for coding in encoding.codings:
        new = unknown(coding, table)
        if new:
            warnings.warn(new_levels_text(coding.name, new, " of X"), UserWarning, stacklevel=5)
    return encoding.apply(table)


def _table(columns: dict[str, FrameColumn], texts: set[str]) -> Table:
    """A table of these columns, of which those in `texts` have levels."""
    rows = len(next(iter(columns.values())).values)
    numbers, levels = {}, {}
    for name, column in columns.items():
        if name in texts:
            levels[name] = levels_of(column.values, MISSING)
            continue
        try:
            numbers[name] = np.asarray([np.nan if v is None else v for v in column.values], np.float64)
        except (OverflowError, TypeError, ValueError):
            what = f"column {name!r} has values that are no numbers"
            raise RowsError(f"{what}; convert them, or name the column in categorical_features") from None
        if np.isinf(numbers[name]).any():
            raise RowsError(f"column {name!r} of X contains infinity; replace it")
    return Table(tuple(columns), rows, numbers, levels)
