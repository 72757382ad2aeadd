"""Arrays of numpy (NPY, NPZ) as tables."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from localsvm.data.blocks.table import Stretch, Table
from localsvm.data.readers.columnar import NUMBERS, TypedColumn, even, layout_of, table_of
from localsvm.data.readers.compression import open_file
from localsvm.data.readers.delimited import TableForm, TableLayout, Texts
from localsvm.errors import DataError

BLOCK_ROWS = 1 << 16
TEXT = "US"  # kinds of numpy types whose values are text


@dataclass
class ArraysReader:
    """Columns of arrays; see `tables.TableSource`."""

    name: str
    layout: TableLayout
    _columns: dict[str, NDArray[Any]]

    def blocks(self, jobs: int = 1) -> Iterator[Table]:
        """All rows, block by block."""
        return self.between(Stretch(0))

    def between(self, stretch: Stretch, jobs: int = 1) -> Iterator[Table]:
        """Some rows, block by block."""
        wanted, end = self.layout.wanted, self._rows if stretch.end is None else stretch.end
        for first in range(stretch.begin, end, BLOCK_ROWS):
            last = min(end, first + BLOCK_ROWS)
            part = {name: _plain(self._columns[name][first:last]) for name in wanted}
            yield table_of(self.layout, last - first, part, self.name)

    def stretches(self, size: int) -> list[Stretch]:
        """Stretches of the rows, of about `size` bytes of the file each."""
        return even(self._rows, os.path.getsize(self.name), size)

    @property
    def _rows(self) -> int:
        return len(next(iter(self._columns.values())))


def open_arrays(path: str, form: TableForm, text: Texts, known: Mapping[str, int] | None) -> ArraysReader:
    """Columns of an NPY file, a matrix or an array of records, or of an NPZ file: X and y, or an array a column.

    Columns of a matrix are called 1, 2, ...; those of records and of an NPZ file have their names.
    """
    columns, header = _columns_of(path)
    lengths = {len(values) for values in columns.values()}
    if len(lengths) > 1:
        sizes = ", ".join(f"{name} has {len(values):,}" for name, values in list(columns.items())[:4])
        raise DataError(f"{path}: arrays of different lengths ({sizes}); give each a value for each row")
    if not lengths or not lengths.pop():
        raise DataError(f"{path}: there are no rows; give a file with rows")
    typed = [_typed(name, values) for name, values in columns.items()]
    return ArraysReader(path, layout_of(typed, form, text, known, path, header), columns)


def _columns_of(path: str) -> tuple[dict[str, NDArray[Any]], bool]:
    """Columns by their names, and whether these are in the file."""
    if path == "-":
        raise DataError("stdin: arrays are read from files alone; write them to a file first")
    try:
        with open_file(path) as file:
            loaded: Any = np.load(file, allow_pickle=False)
            if isinstance(loaded, np.ndarray):
                return _of_array(loaded, path)
            arrays = {name: loaded[name] for name in loaded.files}
    except DataError:
        raise
    except OSError as error:
        raise DataError(f"{path}: {os.strerror(error.errno) if error.errno else error}") from error
    except Exception as error:  # numpy and zipfile have many
        first = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise DataError(f"{path}: no whole NPY or NPZ file ({first}); write it anew by numpy.save") from error
    matrices = [name for name, values in arrays.items() if values.ndim == 2]
    if not matrices:
        return {name: np.atleast_1d(values) for name, values in arrays.items()}, True
    if len(matrices) > 1 or any(values.ndim > 2 for values in arrays.values()):
        raise DataError(f"{path}: {len(matrices)} matrices; an NPZ file has one matrix, and columns beside it")
    columns = _of_array(arrays.pop(matrices[0]), path)[0]
    return {**{name: np.atleast_1d(values) for name, values in arrays.items()}, **columns}, True


def _of_array(array: NDArray[Any], path: str) -> tuple[dict[str, NDArray[Any]], bool]:
    if array.dtype.names:
        return {name: np.atleast_1d(array[name]) for name in array.dtype.names}, True
    if array.ndim != 2 or not array.shape[1]:
        raise DataError(f"{path}: an array of shape {array.shape}, and a table has rows and columns; save a matrix")
    return {str(i + 1): array[:, i] for i in range(array.shape[1])}, False


def _typed(name: str, values: NDArray[Any]) -> TypedColumn:
    kind = values.dtype.kind
    right = values.ndim == 1 and (kind in NUMBERS + TEXT + "M")
    return TypedColumn(name, numeric=kind in "iuf", wrong="" if right else f"{values.dtype}, shape {values.shape}")


def _plain(values: NDArray[Any]) -> NDArray[Any]:
    """Numbers as they are; text, truth values and dates as objects, without dates that are none."""
    kind = values.dtype.kind
    if kind in "iuf":
        return values
    if kind == "M":
        return np.asarray([None if np.isnat(value) else str(value) for value in values], object)
    if kind == "S":
        try:
            return np.asarray([value.decode() for value in values.tolist()], object)
        except UnicodeDecodeError:
            raise DataError("an array has bytes that are not UTF-8 text; save text") from None
    return np.asarray([str(value) for value in values.tolist()], object)
