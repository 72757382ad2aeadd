"""Writing tables as delimited text, Parquet, Arrow or arrays, block by block."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from localsvm.data.blocks.table import Table
from localsvm.data.readers.arrow import pyarrow
from localsvm.data.readers.columnar import number_text
from localsvm.data.readers.compression import SUFFIXES, open_sink
from localsvm.data.readers.tables import BINARY, by_suffix, is_tab
from localsvm.errors import DataError

Columns = Mapping[str, NDArray[Any]]  # (n,) float64 with nan, or objects with None, of each column
Write = Callable[[Columns], None]


def columns_of(table: Table) -> dict[str, NDArray[Any]]:
    """Columns of a table that were read, in its order."""
    out: dict[str, NDArray[Any]] = {}
    for name in table.names:
        if name in table.numbers:
            out[name] = table.numbers[name]
        elif name in table.levels:
            column = table.levels[name]
            out[name] = np.asarray([*column.names, None], object)[column.codes]
    return out


@contextmanager
def table_output(path: str, names: Sequence[str]) -> Iterator[Write]:
    """Give a function that writes blocks of rows; the file appears when it is complete.

    The format follows from the name of the file; "-" is delimited text on stdout.

    Parameters
    ----------
    names : of the columns.

    Raises
    ------
    DataError : text in a file of arrays.
    RunError : the file cannot be written; pyarrow is not installed.
    """
    kind = by_suffix(path) or "csv"
    if kind in BINARY and path.lower().endswith(tuple(SUFFIXES)):
        raise DataError(f"{path}: files of this format are not compressed from outside; leave the last ending out")
    with open_sink(path) as sink:
        if kind in ("parquet", "arrow"):
            with _arrow(sink, kind) as write:
                yield write
        elif kind == "npy":
            blocks: list[Columns] = []
            yield blocks.append
            _save(sink, blocks, names, path)
        else:
            yield _text(sink, names, "\t" if is_tab(path) else ",")


def _text(sink: BinaryIO, names: Sequence[str], delimiter: str) -> Write:
    """Delimited text: numbers with as few digits as are read back the same, nothing for a missing value."""

    def put(rows: Any) -> None:
        out = io.StringIO()
        csv.writer(out, delimiter=delimiter, lineterminator="\n").writerows(rows)
        sink.write(out.getvalue().encode())

    def write(columns: Columns) -> None:
        put(zip(*(_texts(columns[name]) for name in names), strict=True))

    put([names])
    return write


def _texts(values: NDArray[Any]) -> list[str | None]:
    return [number_text(value) for value in values.tolist()] if values.dtype.kind == "f" else values.tolist()


@contextmanager
def _arrow(sink: BinaryIO, kind: str) -> Iterator[Write]:
    library = pyarrow()
    writers: list[Any] = []

    def write(columns: Columns) -> None:
        table = library.table({name: _plain(library, values) for name, values in columns.items()})
        if not writers:
            make = library.parquet.ParquetWriter if kind == "parquet" else library.ipc.new_file
            writers.append(make(sink, table.schema))
        writers[0].write_table(table)

    try:
        yield write
    finally:
        for writer in writers:
            writer.close()


def _plain(library: Any, values: NDArray[Any]) -> Any:
    if values.dtype.kind == "f":
        return library.array(values, from_pandas=True)  # nan is null
    return library.array(values.tolist(), library.string())


def _save(sink: BinaryIO, blocks: list[Columns], names: Sequence[str], path: str) -> None:
    columns = {name: np.concatenate([block[name] for block in blocks]) for name in names}
    if path.lower().endswith(".npz"):
        arrays: dict[str, Any] = {name: _array(values) for name, values in columns.items()}
        np.savez_compressed(sink, **arrays)
        return
    text = next((name for name, values in columns.items() if values.dtype.kind != "f"), None)
    if text is not None:
        what = f"column {text!r} is text, and a matrix has numbers"
        raise DataError(f"{path}: {what}; write .npz, or numbers alone")
    np.save(sink, np.column_stack([columns[name] for name in names]))


def _array(values: NDArray[Any]) -> NDArray[Any]:
    """Numbers, or text in which nothing stands for a missing value."""
    return values if values.dtype.kind == "f" else np.asarray(["" if text is None else text for text in values])
