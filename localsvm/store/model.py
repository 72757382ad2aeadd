"""The trained model and its file, and the partition file; `docs/model-format.md` is their specification.

What a cell keeps is a dict of arrays whose names and meaning belong to the method that trained it. The file
holds them as columns: for each name the arrays of all cells one after another, and a row pointer that tells
them apart.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any

import h5py
import numpy as np
from numpy.typing import NDArray

from localsvm.errors import ModelError, RunError
from localsvm.store.container import (
    MODEL,
    PARTITION,
    AnyPath,
    Array,
    changed,
    checked,
    missing,
    open_container,
    piece,
    text,
)
from localsvm.store.container_writing import Column, Writer, create

MAY_BE_NAN = {"model_fall"}  # in methods that do not know it
HEADER = ("format", "format_version", "generator", "created")
State = tuple[str, Mapping[str, Array]]


def write_model(
    path: AnyPath,
    *,
    config: dict[str, Any],
    labels: Array,
    columns: Array | None = None,
    scaling: State,
    partition: State,
    cells: Iterable[Mapping[str, Array]],
    n_cells: int,
    report: State | None = None,
    force: bool = False,
) -> None:
    """Write a model: complete under `path` at the end, or not at all.

        Parameters
        ----------
        config : every option that determines the model, as JSON can hold it.
        labels : (classes,) float64, ascending.
        columns : (d,) int64, ascending, from 0: the columns of the data that cells know; None where these are all.
    scaling, partition : the mode, the name; and the arrays of each, an array "0/centres" in a group "0".
        cells : the arrays of each cell in cell order, consumed one at a time so that they need not fit in memory. Every
            cell has the same names, each with the same dtype and trailing shape; its length along axis 0 is free.
        report : the names of the parameters that were chosen in each cell, a JSON list, and what was found; for people
            alone, prediction does without.
        force : whether `path` may be overwritten.

        Raises
        ------
        RunError : `path` is in the way or the disk is full; nothing is overwritten then.
        ValueError : the cells do not fit together, or are not n_cells.
    """
    with create(path, MODEL, config, force) as writer:
        writer.array("/labels", np.asarray(labels, np.float64))
        _write_columns(writer, columns)
        _write_state(writer, "scaling", "mode", scaling)
        _write_state(writer, "partition", "name", partition)
        _write_cells(writer, cells, n_cells)
        if report is not None:
            _write_state(writer, "report", "names", report)


def load_model(path: AnyPath, verify: bool = True) -> Model:
    """Open a model. With `verify`, its whole content is read and compared with its manifest first.

    Raises
    ------
    ModelError : no such file, not HDF5, not a localsvm model, a newer format, truncated, changed content, a missing
        piece; each has its message.
    """
    file = open_container(path, MODEL, verify)
    try:
        with checked(path):
            return _read_model(path, file)
    except BaseException:
        file.close()
        raise


@dataclass
class Model:
    """An open model file; cells are read when asked for.

    Not to be sent to another process: send `path`, and open it there with `verify=False`.

    Attributes
    ----------
    config : every option that determined the model.
    labels : (classes,) float64, ascending.
    columns : (d,) int64, ascending: the columns of the data that cells know; None where these are all.
    scaling, partition : the mode, the name; and the arrays of each.
    row_ptr : for each name (n_cells + 1,) int64; the column's rows row_ptr[name][i] to row_ptr[name][i + 1] - 1 are
        cell i's.
    report : see `write_model`; None where the file has none.
    """

    path: AnyPath
    config: dict[str, Any]
    labels: NDArray[np.float64]
    columns: NDArray[np.int64] | None
    scaling: tuple[str, dict[str, Array]]
    partition: tuple[str, dict[str, Array]]
    n_cells: int
    row_ptr: dict[str, NDArray[np.int64]]
    report: tuple[str, dict[str, Array]] | None
    _file: h5py.File = field(repr=False)
    _columns: dict[str, h5py.Dataset] = field(repr=False)

    @property
    def header(self) -> dict[str, Any]:
        """The root attributes that say what the file is: format, format_version, generator, created."""
        attributes = {name: piece(self.path, self._file.attrs, name) for name in HEADER}
        return {name: int(v) if name == "format_version" else text(v) for name, v in attributes.items()}

    def cell(self, index: int) -> dict[str, Array]:
        """The arrays of one cell, as they were written; only its rows are read."""
        with checked(self.path):
            return {
                name: column[self.row_ptr[name][index] : self.row_ptr[name][index + 1]]
                for name, column in self._columns.items()
            }

    def column(self, name: str) -> Array:
        """The arrays of all cells under one name, one after another. Raises KeyError where no cell has it."""
        column = self._columns[name]
        with checked(self.path):
            return np.asarray(column[...])

    def close(self) -> None:
        self._file.close()

    def __enter__(self) -> Model:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


@dataclass(frozen=True)
class PartitionFile:
    """What a partition file holds; see `write_partition`."""

    config: dict[str, Any]
    columns: NDArray[np.int64] | None
    scaling: tuple[str, dict[str, Array]]
    partition: tuple[str, dict[str, Array]]
    assignment: Array
    weight: NDArray[np.float64]
    sizes: NDArray[np.int64]
    centres: Array | None


def write_partition(
    path: AnyPath,
    *,
    config: dict[str, Any],
    fingerprint: str,
    columns: Array | None = None,
    scaling: State,
    partition: State,
    assignment: Array,
    weight: Array,
    sizes: Array,
    centres: Array | None = None,
    force: bool = False,
) -> None:
    """Write a partition: complete under `path` at the end, or not at all.

    Parameters
    ----------
    fingerprint : of the data that was divided (`fingerprint.fingerprint`), kept in the config.
    assignment : (n,) int32 or int64, the cell of each training row, -1 for a row merged into another.
    weight : (n,), how many rows stand behind each row, 0 for one merged into another.
    sizes : (n_cells,) rows of each cell.
    centres : (n_cells, d), where the partition has them.

    The rest, and what is raised, is as in `write_model`.
    """
    with create(path, PARTITION, config | {"fingerprint": fingerprint}, force) as writer:
        _write_columns(writer, columns)
        _write_state(writer, "scaling", "mode", scaling)
        _write_state(writer, "partition", "name", partition)
        writer.array("/assignment", assignment)
        writer.array("/weight", np.asarray(weight, np.float64))
        writer.array("/sizes", np.asarray(sizes, np.int64))
        if centres is not None:
            writer.array("/centres", centres)


def load_partition(path: AnyPath, fingerprint: str | None = None) -> PartitionFile:
    """Read a partition, verified.

    Raises
    ------
    ModelError : as `load_model` does, and where `fingerprint` is given and other data were divided.
    """
    with open_container(path, PARTITION) as file, checked(path):
        config = _config(path, file)
        if fingerprint not in (None, config["fingerprint"]):
            raise ModelError(
                f"{path}: the partition was made from other data, or from the same data read or scaled with "
                "other options; run lsvm-partition on this data"
            )
        return PartitionFile(
            config=config,
            columns=_read_columns(path, file),
            scaling=_read_state(path, file, "scaling", "mode"),
            partition=_read_state(path, file, "partition", "name"),
            assignment=piece(path, file, "assignment")[...],
            weight=piece(path, file, "weight")[...],
            sizes=piece(path, file, "sizes")[...],
            centres=file["centres"][...] if "centres" in file else None,
        )


def _write_columns(writer: Writer, columns: Array | None) -> None:
    if columns is not None:
        writer.array("/columns", np.asarray(columns, np.int64))


def _read_columns(path: AnyPath, file: h5py.File) -> NDArray[np.int64] | None:
    if "columns" not in file:
        return None
    columns = np.asarray(file["columns"][...])
    ascending = columns.dtype == np.int64 and columns.ndim == 1 and bool((np.diff(columns) > 0).all())
    if not ascending or not len(columns) or columns[0] < 0 or columns[-1] >= np.iinfo(np.int32).max:
        raise changed(path, "/columns are not ascending column numbers")
    return columns


def check_finite(what: str, arrays: Mapping[str, Array]) -> None:
    """RunError where one of the arrays, of a cell or of what `what` names, holds a number that is not finite."""
    for name, array in arrays.items():
        if array.dtype.kind == "f" and name not in MAY_BE_NAN and not np.isfinite(array).all():
            raise RunError(
                f"{what}: {name} came out with numbers that are not finite, so there is no model; scale the data "
                "(--scale std), bound C and gamma (-C, -g), or loosen the tolerance (-e)"
            )


def _write_state(writer: Writer, group: str, key: str, state: State) -> None:
    name, arrays = state
    if group != "report":  # where nan says that there is nothing to report
        check_finite(f"the {group}", arrays)
    writer.group(f"/{group}", **{key: name})
    for within in sorted({array_name.rpartition("/")[0] for array_name in arrays} - {""}):
        writer.group(f"/{group}/{within}")
    for array_name in sorted(arrays):
        writer.array(f"/{group}/{array_name}", np.asarray(arrays[array_name]))


def _write_cells(writer: Writer, cells: Iterable[Mapping[str, Array]], n_cells: int) -> None:
    writer.group("/cells", n_cells=n_cells)
    writer.group("/cells/row_ptr")
    columns: dict[str, Column] = {}
    ends: dict[str, list[int]] = {}
    written = 0
    for cell in cells:
        if written == 0:
            columns = {
                name: Column(writer, f"/cells/{name}", cell[name].dtype, cell[name].shape[1:]) for name in sorted(cell)
            }
            ends = {name: [0] for name in columns}
        if cell.keys() != columns.keys():
            raise ValueError(f"cell {written} has the arrays {sorted(cell)}, others have {sorted(columns)}")
        check_finite(f"cell {written}", cell)
        for name, column in columns.items():
            column.append(cell[name])
            ends[name].append(ends[name][-1] + len(cell[name]))
        written += 1
    if written != n_cells:
        raise ValueError(f"{written} cells were given, {n_cells} were announced")
    for name, column in columns.items():
        column.finish()
        writer.array(f"/cells/row_ptr/{name}", np.array(ends[name], np.int64))


def _config(path: AnyPath, file: h5py.File) -> dict[str, Any]:
    return dict(json.loads(piece(path, file.attrs, "config")))


def _read_state(path: AnyPath, file: h5py.File, group: str, key: str) -> tuple[str, dict[str, Array]]:
    items = piece(path, file, group)
    arrays: dict[str, Array] = {}
    for name, item in items.items():
        if isinstance(item, h5py.Group):
            arrays |= {f"{name}/{within}": array[...] for within, array in item.items()}
        else:
            arrays[name] = item[...]
    return text(piece(path, items.attrs, key)), arrays


def _read_model(path: AnyPath, file: h5py.File) -> Model:
    cells = piece(path, file, "cells")
    n_cells = int(piece(path, cells.attrs, "n_cells"))
    row_ptr = {name: pointer[...] for name, pointer in piece(path, cells, "row_ptr").items()}
    columns = {name: column for name, column in cells.items() if name != "row_ptr"}
    for name in row_ptr.keys() | columns.keys():
        if name not in columns or name not in row_ptr:
            raise missing(path, f"/cells/{name}" if name in row_ptr else f"/cells/row_ptr/{name}")
        pointer = row_ptr[name]
        if len(pointer) != n_cells + 1 or pointer[0] != 0 or pointer[-1] != len(columns[name]):
            raise changed(path, f"/cells/row_ptr/{name} does not fit its column")
    return Model(
        path=path,
        config=_config(path, file),
        labels=piece(path, file, "labels")[...],
        columns=_read_columns(path, file),
        scaling=_read_state(path, file, "scaling", "mode"),
        partition=_read_state(path, file, "partition", "name"),
        n_cells=n_cells,
        row_ptr=row_ptr,
        report=_read_state(path, file, "report", "names") if "report" in file else None,
        _file=file,
        _columns=columns,
    )
