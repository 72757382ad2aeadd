"""Parquet and Arrow (Feather) files as tables, by pyarrow, one batch of rows after the other."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from localsvm.data.blocks.table import Stretch, Table
from localsvm.data.readers.columnar import EXACT, TypedColumn, even, layout_of, table_of
from localsvm.data.readers.compression import open_file
from localsvm.data.readers.delimited import TableForm, TableLayout, Texts
from localsvm.errors import DataError, RunError

BATCH_ROWS = 1 << 16
NAMES = {"parquet": "Parquet", "arrow": "Arrow"}


def pyarrow() -> Any:
    """The library. RunError where it is not installed."""
    try:
        import pyarrow as library
        import pyarrow.ipc
        import pyarrow.parquet
    except ImportError:
        raise RunError("Parquet and Arrow files need pyarrow; pip install 'localsvm[parquet]'") from None
    return library


@dataclass
class ArrowReader:
    """An open file; see `tables.TableSource`."""

    name: str
    layout: TableLayout
    _batches: Any
    _units: int  # row groups, or record batches
    _kind: str

    def blocks(self, jobs: int = 1) -> Iterator[Table]:
        """All rows, batch by batch. DataError where the file is damaged, or has no rows."""
        rows = 0
        for table in self.between(Stretch(0), jobs):
            rows += table.rows
            yield table
        if not rows:
            raise DataError(f"{self.name}: there are no rows; give a file with rows")

    def between(self, stretch: Stretch, jobs: int = 1) -> Iterator[Table]:
        """Some rows, batch by batch."""
        wanted, units = self.layout.wanted, range(stretch.begin, self._units if stretch.end is None else stretch.end)
        with _damage(self.name, self._kind):
            for batch in self._batches(units, wanted, jobs > 1):
                if batch.num_rows:
                    values = {name: values_of(batch.column(i)) for i, name in enumerate(wanted)}
                    yield table_of(self.layout, batch.num_rows, values, self.name)

    def stretches(self, size: int) -> list[Stretch]:
        """Stretches of the rows, of about `size` bytes of the file each."""
        return even(self._units, os.path.getsize(self.name), size)


@contextmanager
def open_arrow(
    path: str, kind: str, form: TableForm, text: Texts, known: Mapping[str, int] | None
) -> Iterator[ArrowReader]:
    """Open a file of this kind, "parquet" or "arrow"; see `tables.open_table`."""
    library = pyarrow()
    if path == "-":
        raise DataError(f"stdin: {NAMES[kind]} is read from files alone; write it to a file first")
    open_file(path).close()  # which tells more of what cannot be opened
    with _damage(path, kind):
        source = library.OSFile(path, "rb")
        schema, batches, units = _parquet(library, source) if kind == "parquet" else _arrow(library, source)
    with source:
        columns = [_typed(library, field) for field in schema]
        yield ArrowReader(path, layout_of(columns, form, text, known, path, header=True), batches, units, kind)


def _parquet(library: Any, source: Any) -> tuple[Any, Any, int]:
    file = library.parquet.ParquetFile(source)

    def batches(units: range, names: list[str], threads: bool) -> Iterator[Any]:
        yield from file.iter_batches(BATCH_ROWS, list(units), columns=names, use_threads=threads)

    return file.schema_arrow, batches, file.num_row_groups


def _arrow(library: Any, source: Any) -> tuple[Any, Any, int]:
    file = library.ipc.open_file(source)

    def batches(units: range, names: list[str], threads: bool) -> Iterator[Any]:
        for number in units:
            yield file.get_batch(number).select(names)

    return file.schema, batches, file.num_record_batches


@contextmanager
def _damage(path: str, kind: str) -> Iterator[None]:
    """DataError for what pyarrow says of a file that is damaged, or of another format."""
    import pyarrow as library

    try:
        yield
    except DataError:
        raise
    except OSError as error:
        if error.strerror:
            raise DataError(f"{path}: {error.strerror}") from error
        raise DataError(f"{path}: {_broken(kind, error)}") from error
    except library.ArrowException as error:
        raise DataError(f"{path}: {_broken(kind, error)}") from error


def _broken(kind: str, error: Exception) -> str:
    first = str(error).splitlines()[0] if str(error) else type(error).__name__
    return f"no whole {NAMES[kind]} file ({first}); write it anew, or give its format by --format"


def _typed(library: Any, field: Any) -> TypedColumn:
    types, kind = library.types, field.type
    if types.is_dictionary(kind):
        return TypedColumn(field.name, numeric=False)
    if has_numbers(kind):
        return TypedColumn(field.name, numeric=True)
    text = types.is_string(kind) or types.is_large_string(kind) or types.is_boolean(kind)
    text = text or types.is_date(kind) or types.is_timestamp(kind) or getattr(types, "is_string_view", bool)(kind)
    return TypedColumn(field.name, numeric=False, wrong="" if text else str(kind))


def has_numbers(kind: Any) -> bool:
    """Whether the values of a type are numbers."""
    types = pyarrow().types
    return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind) or types.is_null(kind))


def values_of(column: Any) -> NDArray[Any]:
    """Values (n,) of a column: numbers, or objects with None for nulls; dates as ISO text.

    Numbers with nulls are float64 with nan, but objects where float64 does not hold them.
    """
    types = pyarrow().types
    kind = column.type
    if types.is_dictionary(kind):
        column, kind = column.dictionary_decode(), kind.value_type
    if types.is_null(kind):
        return np.full(len(column), np.nan)
    if types.is_decimal(kind):
        column = column.cast("float64")
    elif types.is_timestamp(kind) or types.is_date(kind):
        return np.asarray([None if value is None else value.isoformat() for value in _whole(column)], object)
    elif types.is_boolean(kind):
        return np.asarray([None if value is None else str(value) for value in column.to_pylist()], object)
    if has_numbers(kind):
        values = np.asarray(column.to_numpy(zero_copy_only=False))
        lossy = types.is_integer(kind) and values.dtype.kind == "f" and bool((np.abs(values) >= EXACT).any())
        if not lossy:
            return values
    return np.asarray([*column.to_pylist(), None], object)[:-1]


def _whole(column: Any) -> list[Any]:
    """Dates or times as Python's, cut to microseconds."""
    types = pyarrow().types
    if types.is_timestamp(column.type) and column.type.unit == "ns":
        column = column.cast(pyarrow().timestamp("us", column.type.tz), safe=False)
    return list(column.to_pylist())
