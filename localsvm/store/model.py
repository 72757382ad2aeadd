"""The trained model and its file, and the partition file; `docs/model-format.md` is their specification.

What a cell keeps is a dict of arrays whose names and meaning belong to the method that trained it. The file
holds them as columns: for each name the arrays of all cells one after another, and a row pointer that tells
them apart.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from localsvm.errors import RunError
from localsvm.naming import opt
from localsvm.store.checking import Cells
from localsvm.store.container import MODEL, PARTITION, AnyPath, Container, checked, missing, open_container
from localsvm.store.container_writing import AppendedArray, ContainerWriter, create
from localsvm.store.pieces import Array, Unsound
from localsvm.store.structure import StoredRows

MAY_BE_NAN = {"model_fall"}  # in methods that do not know it
HEADER = ("format", "generator")
State = tuple[str, Mapping[str, Array]]
CellCheck = Callable[[Cells], object]  # raises Unsound
BLOCK_BYTES = 1 << 23  # of cells that are verified together


@dataclass(frozen=True)
class ModelContent:
    """Content of a model file beside its cells.

    Attributes
    ----------
    config : every option that determines the model, as JSON can hold it.
    labels : (classes,) float64, ascending.
    scaling, partition : the mode, the name; and the arrays of each, an array "0/centres" in a group "0".
    columns : (d,) int64, ascending, from 0: the columns of the data that cells know; None where these are all.
    metric : its kind and its arrays; None for the Euclidean one.
    ranks : the arrays of the rank view; None without.
    report : the names of the parameters that were chosen in each cell, a JSON list, and what was found; for people.
    calibration, coverage, front, copies : of what kind, and the arrays.
    run : key of the run that made it, by which a finished run is known.
    """

    config: dict[str, Any]
    labels: Array
    scaling: State
    partition: State
    columns: Array | None = None
    metric: State | None = None
    ranks: Mapping[str, Array] | None = None
    report: State | None = None
    calibration: State | None = None
    coverage: State | None = None
    front: State | None = None
    copies: State | None = None
    run: str = ""


def write_model(
    path: AnyPath, content: ModelContent, cells: Iterable[Mapping[str, Array]], n_cells: int, force: bool = False
) -> None:
    """Write a model: complete under `path` at the end, or not at all.

    Parameters
    ----------
    cells : the arrays of all n_cells cells in their order, consumed one at a time so that they need not fit in memory.
        Every cell has the same names, each with the same dtype and trailing shape; its length along axis 0 is free.
    force : whether `path` may be overwritten.

    Raises RunError where `path` is in the way or the disk is full: nothing is overwritten; ValueError for other cells.
    """
    with create(path, MODEL, content.config, force, content.run) as writer:
        writer.array("/labels", np.asarray(content.labels, np.float64))
        _write_columns(writer, content.columns)
        _write_state(writer, "scaling", "mode", content.scaling)
        _write_ranks(writer, content.ranks)
        _write_state(writer, "metric", "kind", content.metric)
        _write_state(writer, "partition", "name", content.partition)
        _write_cells(writer, cells, n_cells)
        _write_state(writer, "report", "names", content.report)
        _write_state(writer, "calibration", "kind", content.calibration)
        _write_state(writer, "coverage", "kind", content.coverage)
        _write_state(writer, "front", "kind", content.front)
        _write_state(writer, "copies", "kind", content.copies)


def load_model(path: AnyPath, verify: bool = True, adopt: Callable[[Model], CellCheck] | None = None) -> Model:
    """Open a model.

    Parameters
    ----------
    verify : read the whole content and compare it with its manifest first (seconds for a gigabyte). Without it, a
        damaged chunk is still refused when it is read, by its checksum.
    adopt : is given the model, whose cells cannot be trusted yet; checks what it finds outside of them, and returns
        what checks cells. That is called with all of them if they are verified, and with each when it is read.

    Raises
    ------
    ModelError : no such file, not HDF5, not a localsvm model, another format version, truncated, changed content, a
        missing piece, content that localsvm does not write; each has its message.
    """
    container = open_container(path, MODEL)
    try:
        with checked(path):
            if verify:
                container.verify(later=[f"/cells/{name}" for name in container.group("/cells")])
            model = _read_model(container)
            if adopt is not None:
                model._check = adopt(model)
            if verify:
                model._verify()
            return model
    except BaseException:
        container.close()
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
    report, calibration, coverage, front, copies : see `ModelContent`; None where the file has none.
    """

    path: AnyPath
    config: dict[str, Any]
    labels: NDArray[np.float64]
    columns: NDArray[np.int64] | None
    scaling: tuple[str, dict[str, Array]]
    ranks: dict[str, Array] | None
    metric: tuple[str, dict[str, Array]] | None
    partition: tuple[str, dict[str, Array]]
    n_cells: int
    row_ptr: dict[str, NDArray[np.int64]]
    report: tuple[str, dict[str, Array]] | None
    calibration: tuple[str, dict[str, Array]] | None
    coverage: tuple[str, dict[str, Array]] | None
    front: tuple[str, dict[str, Array]] | None
    copies: tuple[str, dict[str, Array]] | None
    _container: Container = field(repr=False)
    _columns: dict[str, StoredRows] = field(repr=False)
    _check: CellCheck = field(default=lambda cells: None, repr=False)

    @property
    def header(self) -> dict[str, Any]:
        """The root attributes that say what the file is: format, format_version, generator, created."""
        with checked(self.path):
            return self.check_header()

    def check_header(self) -> dict[str, Any]:
        """The header; Unsound where an attribute is missing or not a line of text."""
        version = {"format_version": self._container.attribute("/", "format_version", int)}
        header = version | {name: self._container.attribute("/", name, str) for name in HEADER}
        self._container.optional("run")  # a line of text, if it is there
        return header | {"created": self._container.optional("created")}

    @property
    def run(self) -> str:
        """Key of the run that made the model; "" where it is not known."""
        with checked(self.path):
            return self._container.optional("run")

    def cell(self, index: int) -> dict[str, Array]:
        """The arrays of one cell, as they were written; only its rows are read. ModelError where they are unsound."""
        with checked(self.path):
            cells = self._cells(index, index + 1)
            self._check(cells)
            return dict(cells.arrays)

    def column(self, name: str) -> Array:
        """The arrays of all cells under one name, one after another. Raises KeyError where no cell has it."""
        column = self._columns[name]
        with checked(self.path):
            return column.read()

    def close(self) -> None:
        """Close the file."""
        self._container.close()

    def _cells(self, first: int, last: int) -> Cells:
        """Cells first .. last - 1."""
        ptr = {name: pointer[first : last + 1] for name, pointer in self.row_ptr.items()}
        arrays = {name: rows.read(int(ptr[name][0]), int(ptr[name][-1])) for name, rows in self._columns.items()}
        return Cells(arrays, ptr, first)

    def cell_bytes(self) -> NDArray[np.int64]:
        """Bytes of the arrays of each cell (n_cells,)."""
        return np.diff(self._ends())

    def _ends(self) -> NDArray[np.int64]:
        """Bytes of the cells before each, and of all (n_cells + 1,)."""
        bytes_ = np.zeros(self.n_cells + 1, np.int64)
        for name, rows in self._columns.items():
            bytes_ += self.row_ptr[name] * int(np.prod(rows.shape[1:], dtype=np.int64) * rows.dtype.itemsize)
        return bytes_

    def _blocks(self) -> Iterator[Cells]:
        """All cells in order, some at once."""
        first, bytes_ = 0, self._ends()
        while first < self.n_cells:
            last = int(np.searchsorted(bytes_, bytes_[first] + BLOCK_BYTES, side="right")) - 1
            yield self._cells(first, last := min(max(last, first + 1), self.n_cells))
            first = last

    def _verify(self) -> None:
        """Read all cells: compare them with the manifest, and check them."""
        sums = {name: hashlib.sha256() for name in self._columns}
        unsound: Unsound | None = None

        def add(cells: Cells) -> None:
            for name, array in cells.arrays.items():
                sums[name].update(array.reshape(-1).data)

        with ThreadPoolExecutor(1) as thread:  # sums up a block while the next one is read
            summed = thread.submit(lambda: None)
            for cells in self._blocks():
                summed.result()
                summed = thread.submit(add, cells)
                try:
                    unsound or self._check(cells)
                except Unsound as error:
                    unsound = error
        summed.result()
        for name, total in sums.items():  # a file that was damaged by accident is to be called that
            self._container.verify_dataset(f"/cells/{name}", total.hexdigest())
        if unsound is not None:
            raise unsound

    def __enter__(self) -> Model:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


@dataclass(frozen=True)
class PartitionFile:
    """Content of a partition file.

    Attributes
    ----------
    path : of the file.
    config : options, and the "fingerprint" of the data that was divided (`data.blocks.numbering.named`).
    scaling, partition, columns, metric, ranks : as in `ModelContent`.
    assignment : (n,) int32 or int64, the cell of each training row, -1 for a row merged into another.
    weight : (n,), how many rows stand behind each row, 0 for one merged into another.
    sizes : (n_cells,) rows of each cell.
    centres : (n_cells, d), where the partition has them.
    """

    path: AnyPath
    config: dict[str, Any]
    scaling: State
    partition: State
    assignment: Array
    weight: NDArray[np.float64]
    sizes: NDArray[np.int64]
    columns: NDArray[np.int64] | None = None
    metric: State | None = None
    ranks: Mapping[str, Array] | None = None
    centres: Array | None = None


def write_partition(file: PartitionFile, force: bool = False) -> None:
    """Write a partition: complete under its path at the end, or not at all. Raises what `write_model` raises."""
    with create(file.path, PARTITION, file.config, force) as writer:
        _write_columns(writer, file.columns)
        _write_state(writer, "scaling", "mode", file.scaling)
        _write_ranks(writer, file.ranks)
        _write_state(writer, "metric", "kind", file.metric)
        _write_state(writer, "partition", "name", file.partition)
        writer.array("/assignment", file.assignment)
        writer.array("/weight", np.asarray(file.weight, np.float64))
        writer.array("/sizes", np.asarray(file.sizes, np.int64))
        if file.centres is not None:
            writer.array("/centres", file.centres)


def load_partition(path: AnyPath) -> PartitionFile:
    """Read a partition, verified. ModelError as `load_model` does."""
    with open_container(path, PARTITION) as file, checked(path):
        file.verify()
        config = file.json("config")
        return PartitionFile(
            path=path,
            config=config,
            columns=file.array("/columns") if file.has("/columns") else None,
            scaling=(file.attribute("/scaling", "mode", str), file.arrays("/scaling")),
            ranks=read_ranks(file),
            metric=read_metric(file),
            partition=(file.attribute("/partition", "name", str), file.arrays("/partition")),
            assignment=file.array("/assignment"),
            weight=file.array("/weight"),
            sizes=file.array("/sizes"),
            centres=file.array("/centres") if file.has("/centres") else None,
        )


def _write_columns(writer: ContainerWriter, columns: Array | None) -> None:
    if columns is not None:
        writer.array("/columns", np.asarray(columns, np.int64))


def _write_ranks(writer: ContainerWriter, ranks: Mapping[str, Array] | None) -> None:
    if ranks is not None:
        writer.group("/ranks")
        for name in sorted(ranks):
            writer.array(f"/ranks/{name}", np.asarray(ranks[name]))


def check_finite(what: str, arrays: Mapping[str, Array]) -> None:
    """Raise RunError where one of the arrays, which are those of `what`, holds a number that is not finite."""
    for name, array in arrays.items():
        if array.dtype.kind == "f" and name not in MAY_BE_NAN and not np.isfinite(array).all():
            raise RunError(
                f"{what}: {name} came out with numbers that are not finite, so there is no model; scale the data "
                f"({opt.scale('std')}), bound C and gamma ({opt.cost}, {opt.gamma}), or loosen the tolerance "
                f"({opt.tolerance})"
            )


def _write_state(writer: ContainerWriter, group: str, key: str, state: State | None) -> None:
    if state is None:
        return
    name, arrays = state
    if group in ("scaling", "metric", "partition", "calibration", "coverage", "front"):
        check_finite(f"the {group}", arrays)
    writer.group(f"/{group}", **{key: name})
    for within in sorted({array_name.rpartition("/")[0] for array_name in arrays} - {""}):
        writer.group(f"/{group}/{within}")
    for array_name in sorted(arrays):
        writer.array(f"/{group}/{array_name}", np.asarray(arrays[array_name]))


def _write_cells(writer: ContainerWriter, cells: Iterable[Mapping[str, Array]], n_cells: int) -> None:
    writer.group("/cells", n_cells=n_cells)
    writer.group("/cells/row_ptr")
    columns: dict[str, AppendedArray] = {}
    ends: dict[str, list[int]] = {}
    written = 0
    for cell in cells:
        if written == 0:
            columns = {
                name: AppendedArray(writer, f"/cells/{name}", cell[name].dtype, cell[name].shape[1:])
                for name in sorted(cell)
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


def _read_model(file: Container) -> Model:
    n_cells, columns = file.attribute("/cells", "n_cells", int), file.group("/cells")
    row_ptr = file.arrays("/cells/row_ptr")
    for name in row_ptr.keys() | columns.keys():
        if name not in columns or name not in row_ptr:
            raise missing(f"/cells/{name}" if name in row_ptr else f"/cells/row_ptr/{name}")
        _check_pointer(name, row_ptr[name], n_cells, columns[name])
    return Model(
        path=file.path,
        config=file.json("config"),
        labels=file.array("/labels"),
        columns=file.array("/columns") if file.has("/columns") else None,
        scaling=(file.attribute("/scaling", "mode", str), file.arrays("/scaling")),
        ranks=read_ranks(file),
        metric=read_metric(file),
        partition=(file.attribute("/partition", "name", str), file.arrays("/partition")),
        n_cells=n_cells,
        row_ptr=row_ptr,
        report=(file.attribute("/report", "names", str), file.arrays("/report")) if file.has("/report") else None,
        calibration=_read_kind(file, "calibration"),
        coverage=_read_kind(file, "coverage"),
        front=_read_kind(file, "front"),
        copies=_read_kind(file, "copies"),
        _container=file,
        _columns=columns,
    )


def read_ranks(file: Container) -> dict[str, Array] | None:
    """The arrays of the rank view of a file; None where it has none."""
    return file.arrays("/ranks") if file.has("/ranks") else None


def read_metric(file: Container) -> tuple[str, dict[str, Array]] | None:
    """Kind and arrays of the metric of a file; None where it has none."""
    return (file.attribute("/metric", "kind", str), file.arrays("/metric")) if file.has("/metric") else None


def _read_kind(file: Container, group: str) -> tuple[str, dict[str, Array]] | None:
    """Kind and arrays of a group; None where the file does not have it."""
    return (file.attribute(f"/{group}", "kind", str), file.arrays(f"/{group}")) if file.has(f"/{group}") else None


def _check_pointer(name: str, pointer: Array, n_cells: int, column: StoredRows) -> None:
    fits = pointer.dtype == np.int64 and pointer.shape == (n_cells + 1,) and len(column.shape) > 0
    fits = fits and pointer[0] == 0 and pointer[-1] == len(column) and pointer.min() == 0
    if not fits or np.any(np.diff(pointer) < 0):
        raise Unsound(f"/cells/row_ptr/{name} does not fit its column")
