"""Writing the HDF5 container: in bounded memory, whole or not at all, equal content as equal bytes."""

from __future__ import annotations

import hashlib
import io
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

import h5py
import numpy as np

from localsvm import __version__
from localsvm.errors import RunError
from localsvm.store.container import (
    BLOCK_CHUNKS,
    FORMAT_VERSION,
    UNLISTED,
    AnyPath,
    attribute_entry,
    chunk_rows,
    dataset_entry,
)
from localsvm.store.outputs import replacing, signals_held, write_error
from localsvm.store.pieces import Array


class _Sink(io.FileIO):
    """The file under HDF5, which keeps a failure to itself.

    HDF5 does not survive a failed write: it fails again when the file is closed, and crashes the process at
    exit. So the first error is kept here, later writes are dropped, and `Writer.step` raises it after HDF5
    returned.
    """

    error: OSError | None = None

    def write(self, data: Any) -> int:
        size = len(data)
        try:
            while self.error is None and len(data):
                data = data[super().write(data) :]
        except OSError as error:
            self.error = error
        return size

    def truncate(self, size: int | None = None) -> int:
        try:
            return super().truncate(size) if self.error is None else 0
        except OSError as error:
            self.error = error
            return 0


class ContainerWriter:
    """Writes one container; made by `create`, which also completes it."""

    def __init__(self, path: str, sink: _Sink) -> None:
        self._path = path
        self._sink = sink
        self._manifest: dict[str, str] = {"/": "group"}
        self.file: Any = None

    def open(self) -> None:
        """Make the empty file; apart from the constructor so that `close` can follow whatever happens."""
        with self.step():
            self.file = _new_file(self._sink)

    def close(self) -> None:
        """Close the HDF5 file if it was opened; before its sink is closed, always."""
        if self.file is not None:
            with self.step():
                self.file.close()

    @contextmanager
    def step(self) -> Iterator[None]:
        """Keep interrupts out of what HDF5 calls back, around every call of it, and raise the sink's error."""
        try:
            with signals_held():
                yield
        finally:
            if self._sink.error is not None:
                raise write_error(self._path, self._sink.error) from self._sink.error

    def group(self, path: str, **attributes: str | int) -> None:
        """Make the group `path` (with a leading slash) and its attributes."""
        untimed = h5py.h5p.create(h5py.h5p.GROUP_CREATE)
        untimed.set_obj_track_times(False)
        with self.step():
            h5py.h5g.create(self.file.id, path.encode(), gcpl=untimed)
        self._manifest[path] = "group"
        for name, value in attributes.items():
            self.attribute(path, name, value)

    def attribute(self, path: str, name: str, value: str | int) -> None:
        """Attach an attribute, int64 or text in ASCII, to the group `path`.

        Text is stored with a fixed length: what has a variable length lies in HDF5's global heap, which has no
        checksum, and whose damage can send HDF5 round in circles for ever.

        Raises
        ------
        RunError : the file cannot be written, as for all methods.
        """
        stored = np.int64(value) if isinstance(value, int) else np.bytes_(value.encode("ascii"))
        with self.step():
            self.file[path].attrs[name] = stored
        if name not in UNLISTED:
            self._manifest[f"{path}@{name}"] = attribute_entry(value)

    def array(self, path: str, array: Array) -> None:
        """Write one numeric array as the dataset `path`."""
        column = AppendedArray(self, path, array.dtype, array.shape[1:])
        if array.ndim:
            column.append(array)
            column.finish()
        else:
            column.finish_scalar(array)

    def enter(self, path: str, dtype: np.dtype[Any], shape: tuple[int, ...], digest: str) -> None:
        """Enter a complete dataset into the manifest."""
        self._manifest[path] = dataset_entry(dtype, shape, digest)

    def finish(self) -> None:
        """Write the manifest; nothing may follow."""
        self.attribute("/", "manifest", json.dumps(self._manifest, sort_keys=True))


class AppendedArray:
    """A dataset written by appending rows; equal rows give equal bytes however they are cut.

    Parameters
    ----------
    writer, path : of the container, and of the dataset in it.
    dtype : integers or floats; stored little-endian. Raises TypeError for another.
    trailing : the shape of a row.

    Attributes
    ----------
    rows : written so far; those appended last may still be gathered.
    """

    def __init__(self, writer: ContainerWriter, path: str, dtype: np.dtype[Any], trailing: tuple[int, ...]) -> None:
        if dtype.kind not in "iuf":
            raise TypeError(f"{path}: arrays of {dtype} cannot be stored")
        self.dtype = dtype.newbyteorder("<")
        self.trailing = trailing
        self.rows = 0
        self._writer = writer
        self._path = path
        self._sum = hashlib.sha256()
        self._chunk = chunk_rows(dtype, trailing)
        self._block = np.empty((self._chunk * BLOCK_CHUNKS, *trailing), self.dtype)
        self._filled = 0

    def append(self, rows: Array) -> None:
        """Append rows (k, *trailing) of this column's dtype; they are copied. Raises ValueError for other rows."""
        if rows.dtype.newbyteorder("<") != self.dtype or rows.ndim == 0 or rows.shape[1:] != self.trailing:
            raise ValueError(
                f"{self._path}: rows of {rows.dtype} {rows.shape[1:]}, where {self.dtype} {self.trailing} is stored"
            )
        taken = 0
        while taken < len(rows):
            if self._filled == len(self._block):
                self._flush(resizable=True)
            stop = min(len(rows), taken + len(self._block) - self._filled)
            self._block[self._filled : self._filled + stop - taken] = rows[taken:stop]
            self._filled += stop - taken
            taken = stop

    def finish(self) -> None:
        """Write what is left, and enter the dataset into the manifest."""
        self._flush(resizable=False)
        self._writer.enter(self._path, self.dtype, (self.rows, *self.trailing), self._sum.hexdigest())

    def finish_scalar(self, value: Array) -> None:
        """Write the one value of a dataset without rows."""
        plain = value.astype(self.dtype)
        with self._writer.step():
            self._writer.file.create_dataset(self._path, data=plain, track_times=False)
        self._writer.enter(self._path, self.dtype, (), hashlib.sha256(plain.tobytes()).hexdigest())

    def _flush(self, resizable: bool) -> None:
        block = self._block[: self._filled]
        with self._writer.step():
            if self.rows == 0:
                self._create(block, resizable)
            else:
                self._extend(block)
        self._sum.update(block.data)
        self.rows += len(block)
        self._filled = 0

    # HDF5 writes when a dataset is let go: each is opened in a function of its own, which ends within a step

    def _extend(self, block: Array) -> None:
        dataset = self._writer.file[self._path]
        dataset.resize(self.rows + len(block), axis=0)
        dataset[self.rows :] = block

    def _create(self, block: Array, resizable: bool) -> None:
        filters: dict[str, Any] = {}
        if block.size:
            filters = {"chunks": (min(self._chunk, len(block)), *self.trailing), "fletcher32": True}
            if self.dtype.kind in "iu":
                filters |= {"compression": "gzip", "compression_opts": 4, "shuffle": True}
        if resizable:
            filters["maxshape"] = (None, *self.trailing)
        self._writer.file.create_dataset(self._path, data=block, track_times=False, **filters)


@contextmanager
def create(
    path: AnyPath, kind: str, config: dict[str, Any], force: bool = False, run: str = ""
) -> Iterator[ContainerWriter]:  # fmt: skip
    """Write a container; it appears as `path` when the block ends well.

    Parameters
    ----------
    kind : MODEL or PARTITION.
    config : what JSON can hold, without nan.
    run : key of the run that made the file; "" for none.
    force : whether `path` may be overwritten.

    Yields
    ------
    The Writer, for content below the root.

    Raises
    ------
    RunError : as `outputs.replacing` does.
    """
    created = creation_time()
    with replacing(path, force) as temporary, _Sink(temporary, "w+") as sink:
        writer = ContainerWriter(os.fspath(path), sink)
        try:
            writer.open()
            writer.attribute("/", "format", kind)
            writer.attribute("/", "format_version", FORMAT_VERSION)
            writer.attribute("/", "generator", f"localsvm {__version__}")
            for name, value in {"created": created, "run": run}.items():
                if value:
                    writer.attribute("/", name, value)
            writer.attribute("/", "config", json.dumps(config, sort_keys=True, allow_nan=False))
            yield writer
            writer.finish()
        finally:
            writer.close()


def creation_time() -> str:
    """The time of SOURCE_DATE_EPOCH, in UTC; "" where that is not set: two equal runs give equal files.

    Raises RunError where the variable is not a number.
    """
    seconds = os.environ.get("SOURCE_DATE_EPOCH")
    if seconds is None:
        return ""
    try:
        return datetime.fromtimestamp(int(seconds), UTC).isoformat(timespec="seconds")
    except (ValueError, OverflowError, OSError):
        what = f"the variable SOURCE_DATE_EPOCH is {seconds!r}, which is no time in seconds since 1970"
        raise RunError(f"{what}; mend it, or unset it") from None


def _new_file(sink: _Sink) -> h5py.File:
    """An empty HDF5 file without timestamps; format 1.10 for its checksums over the metadata."""
    creation = h5py.h5p.create(h5py.h5p.FILE_CREATE)
    creation.set_obj_track_times(False)
    access = h5py.h5p.create(h5py.h5p.FILE_ACCESS)
    access.set_libver_bounds(h5py.h5f.LIBVER_V110, h5py.h5f.LIBVER_V110)
    access.set_fclose_degree(h5py.h5f.CLOSE_STRONG)
    access.set_fileobj_driver(h5py.h5fd.fileobj_driver, sink)
    return h5py.File(h5py.h5f.create(b"localsvm", h5py.h5f.ACC_TRUNC, fcpl=creation, fapl=access))
