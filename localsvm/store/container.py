"""The HDF5 container of models and partitions: checked when opened, byte for byte reproducible when written.

`docs/model-format.md` is its specification. Datasets of whole numbers are compressed, floats are stored raw,
and every chunk carries a fletcher32 checksum. A manifest of SHA-256 sums in the root attribute `manifest`
covers every dataset, group and attribute of the file but three: itself, `created` and `run`. Equal runs give equal
files, but for `created`, which is there with SOURCE_DATE_EPOCH alone.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from math import isfinite, prod
from typing import Any, TypeVar

import h5py
import numpy as np

from localsvm import __version__
from localsvm.errors import ModelError
from localsvm.store.pieces import Array, Unsound
from localsvm.store.structure import CHUNK_BYTES, StoredRows, structure

FORMAT_VERSION = 2
MODEL = "localsvm-model"
PARTITION = "localsvm-partition"

_KINDS = {MODEL: "model", PARTITION: "partition"}
_SIGNATURE = b"\x89HDF\r\n\x1a\n"
_SUPERBLOCK_BYTES = 48
BLOCK_CHUNKS = 8  # rows are gathered to blocks of so many chunks before they are written
UNLISTED = {"created", "run", "manifest"}


@dataclass(frozen=True)
class Image(os.PathLike[str]):
    """The bytes of a container in memory, in place of its path; the path is what messages call it."""

    content: bytes

    def __fspath__(self) -> str:
        return str(self)

    def __str__(self) -> str:
        return "the model in memory"


AnyPath = str | os.PathLike[str]
T = TypeVar("T", int, str)
J = TypeVar("J", dict[str, Any], list[Any])

_REMEDY = "copy it again from its source, or make it anew"


class Container:
    """An open container that is built as ours are; a context manager over its file.

    Raises
    ------
    ModelError : by all methods where a piece is missing or not of the kind that is asked for.
    """

    def __init__(self, path: AnyPath, file: h5py.File) -> None:
        self.path = path
        self._file = file
        self._items = structure(file)  # groups and datasets by path, "/" first
        self._rows = {place: item for place, item in self._items.items() if isinstance(item, StoredRows)}
        self._listed: dict[str, Any] = {}

    def __enter__(self) -> Container:
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file; its rows cannot be read any more."""
        self._file.close()

    def group(self, place: str) -> dict[str, StoredRows]:
        """The datasets of a group, by name."""
        if place not in self._items or place in self._rows:
            raise missing(place)
        names = {path: path[len(place) + 1 :] for path in self._rows if path.startswith(f"{place}/")}
        return {name: self._rows[path] for path, name in names.items() if "/" not in name}

    def arrays(self, place: str) -> dict[str, Array]:
        """The values of a group's datasets and of those in its groups, by name, as "0/centres"."""
        if place not in self._items or place in self._rows:
            raise missing(place)
        inside = f"{place}/"
        return {path[len(inside) :]: rows.read() for path, rows in self._rows.items() if path.startswith(inside)}

    def array(self, place: str) -> Array:
        """The values of a dataset."""
        if place not in self._rows:
            raise missing(place)
        return self._rows[place].read()

    def has(self, place: str) -> bool:
        """True where there is such a group or dataset."""
        return place in self._items

    def attribute(self, place: str, name: str, kind: type[T]) -> T:
        """An attribute: a whole number, or a line of ASCII."""
        attributes = self._items[place].attrs if place in self._items else {}
        if name not in attributes:
            raise missing(f"{place}@{name}")
        value = attributes[name]
        parsed = text(value) if isinstance(value, bytes) else int(value)
        if not isinstance(parsed, kind) or (
            isinstance(parsed, str) and not (parsed.isascii() and parsed.isprintable())
        ):
            raise Unsound(f"{place}@{name} is not {'a whole number' if kind is int else 'a line of text'}")
        return parsed

    def optional(self, name: str) -> str:
        """A root attribute that is a line of ASCII; "" where there is none."""
        return self.attribute("/", name, str) if name in self._items["/"].attrs else ""

    def json(self, name: str) -> dict[str, Any]:
        """Value of the root attribute `name`, which is JSON."""
        return parse(f"/@{name}", self.attribute("/", name, str), dict)

    def verify(self, later: Collection[str] = ()) -> None:
        """Compare the content with the manifest, but for the datasets that `verify_dataset` is called for later."""
        self._listed, names = self.json("manifest"), set(self._names())
        for name in sorted(self._listed.keys() | names):
            if name not in names:
                raise missing(name)
            if name not in later and self._listed.get(name) != self._entry(name):
                raise changed(self.path, name)
        for name in sorted(set(later) - self._listed.keys()):
            raise changed(self.path, name)

    def verify_dataset(self, place: str, digest: str) -> None:
        """Compare the SHA-256 of a dataset's bytes with the manifest."""
        rows = self._rows[place]
        if self._listed[place] != dataset_entry(rows.dtype, rows.shape, digest):
            raise changed(self.path, place)

    def _names(self) -> Iterator[str]:
        for path, item in self._items.items():
            yield path
            yield from (f"{path}@{name}" for name in item.attrs if not (path == "/" and name in UNLISTED))

    def _entry(self, name: str) -> str:
        path, _, attribute = name.partition("@")
        if attribute:
            return attribute_entry(self._items[path].attrs[attribute])
        return _digest(self._rows[path]) if path in self._rows else "group"


def is_hdf5(path: str) -> bool:
    """True where a file begins as HDF5 does; False for one that cannot be read."""
    try:
        with open(path, "rb") as file:
            return file.read(len(_SIGNATURE)) == _SIGNATURE
    except OSError:
        return False


def open_container(path: AnyPath, *kinds: str) -> Container:
    """Open a container for reading, and look whether it is built as ours are. Its content is not read.

    Parameters
    ----------
    kinds : MODEL, PARTITION, or both.

    Raises
    ------
    ModelError : no such file; not HDF5; not ours; of the other kind; another format version; truncated; a link to
        another file, a shape without data or anything else that is never in a file of ours.
    """
    wanted = " or ".join(_KINDS[kind] for kind in kinds)
    _check_signature(path, wanted)
    with checked(path):
        file = _open(path)
        try:
            _check_kind(path, kinds, wanted, file.attrs)
            return Container(path, file)
        except BaseException:
            file.close()
            raise


def parse(place: str, source: str, kind: type[J]) -> J:
    """The value that some JSON says; Unsound for one of another kind, numbers that are not finite, and a key twice."""

    def number(written: str) -> float:
        value = float(written)
        if not isfinite(value):
            raise Unsound(f"{place}: a number of the JSON is not finite")
        return value

    def keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        if len(dict(pairs)) < len(pairs):
            raise Unsound(f"{place}: the JSON has a key twice")
        return dict(pairs)

    try:
        parsed = json.loads(source, parse_constant=number, parse_float=number, object_pairs_hook=keys)
    except (ValueError, RecursionError) as error:
        raise Unsound(f"{place} is not JSON") from error
    if not isinstance(parsed, kind):
        raise Unsound(f"{place} is not a JSON {'object' if kind is dict else 'list'}")
    return parsed


@contextmanager
def checked(path: AnyPath) -> Iterator[None]:
    """Turn errors at damaged or unsound content into a ModelError with the file's name, around what reads a file."""
    try:
        yield
    except Unsound as error:
        raise ModelError(f"{path}: not as localsvm writes it: {error}; {_REMEDY}") from error
    except (KeyError, OSError, RuntimeError, ValueError, TypeError, OverflowError) as error:
        if "truncated file" in str(error):
            raise truncated(path) from error
        raise changed(path, f"HDF5 cannot read it ({error})") from error


def missing(name: str) -> Unsound:
    """The error for a file without the piece `name`."""
    return Unsound(f"a piece is missing from the file: {name}")


def truncated(path: AnyPath) -> ModelError:
    """The error for a file that ends too early."""
    return ModelError(f"{path}: the file is truncated, it ends before its content does; {_REMEDY}")


def changed(path: AnyPath, what: str) -> ModelError:
    """The error for a file whose content is not what was written; `what` says where."""
    return ModelError(f"{path}: the content has changed since it was written: {what}; {_REMEDY}")


def text(value: Any) -> str:
    """A text attribute as str: h5py gives bytes for one of fixed length."""
    return value.decode() if isinstance(value, bytes) else str(value)


def chunk_rows(dtype: np.dtype[Any], trailing: tuple[int, ...]) -> int:
    """Rows of a chunk of the usual size, for rows of this dtype and shape."""
    return max(1, CHUNK_BYTES // max(1, dtype.itemsize * prod(trailing)))


def attribute_entry(value: Any) -> str:
    """The manifest's entry of an attribute."""
    if isinstance(value, str | bytes):
        return f"text {hashlib.sha256(text(value).encode()).hexdigest()}"
    return f"integer {value}"


def dataset_entry(dtype: np.dtype[Any], shape: tuple[int, ...], digest: str) -> str:
    """The manifest's entry of a dataset: its dtype, its shape, and `digest`.

    digest : the SHA-256 of its bytes (little-endian, C order).
    """
    return f"{dtype.newbyteorder('<').str} {json.dumps(shape)} {digest}"


def size_of(path: AnyPath) -> int:
    """Bytes of a container."""
    return len(path.content) if isinstance(path, Image) else os.path.getsize(path)


def _open(path: AnyPath) -> h5py.File:
    if isinstance(path, Image):
        return h5py.File(h5py.h5f.open_file_image(path.content))
    return h5py.File(path, "r")


def _check_signature(path: AnyPath, wanted: str) -> None:
    try:
        with io.BytesIO(path.content) if isinstance(path, Image) else open(path, "rb") as file:
            head = file.read(_SUPERBLOCK_BYTES)
    except OSError as error:
        what = f"{path}: cannot read the {wanted}: {error.strerror}"
        raise ModelError(f"{what}; check the name and the permissions") from error
    if head[: len(_SIGNATURE)] != _SIGNATURE[: len(head)] or not head:
        raise ModelError(f"{path}: not a localsvm {wanted} (not an HDF5 file)")
    if len(head) < _SUPERBLOCK_BYTES:
        raise truncated(path)


def _check_kind(path: AnyPath, kinds: tuple[str, ...], wanted: str, attributes: Any) -> None:
    kind = text(attributes.get("format"))
    if kind not in _KINDS:
        raise ModelError(f"{path}: an HDF5 file, but not a localsvm {wanted}")
    if kind not in kinds:
        maker = {_KINDS[PARTITION]: "lsvm-partition", _KINDS[MODEL]: "lsvm-train"}.get(wanted)
        remedy = f"; {maker} makes one" if maker else ""
        raise ModelError(f"{path}: a localsvm {_KINDS[kind]}, where a {wanted} is expected{remedy}")
    if "format_version" not in attributes:
        raise missing("/@format_version")
    version = attributes["format_version"]
    if not isinstance(version, np.integer):
        raise Unsound("/@format_version is not a whole number")
    if version < 1:
        raise Unsound(f"there is no format version {version}")
    if version > FORMAT_VERSION:
        raise ModelError(
            f"{path}: format version {version} is newer than localsvm {__version__} can read "
            f"(up to {FORMAT_VERSION}); upgrade localsvm"
        )


def _digest(rows: StoredRows) -> str:
    if not rows.shape:
        return dataset_entry(rows.dtype, (), hashlib.sha256(rows.read().tobytes()).hexdigest())
    total, step = hashlib.sha256(), chunk_rows(rows.dtype, rows.shape[1:]) * BLOCK_CHUNKS
    for start in range(0, len(rows), step):
        total.update(rows.read(start, min(start + step, len(rows))).data)
    return dataset_entry(rows.dtype, rows.shape, total.hexdigest())
