"""The HDF5 container of models and partitions: checked when opened, byte for byte reproducible when written.

`docs/model-format.md` is its specification. Datasets of whole numbers are compressed, floats are stored raw,
and every chunk carries a fletcher32 checksum. A manifest of SHA-256 sums in the root attribute `manifest`
covers every dataset, group and attribute of the file but two: itself and `created`, the only thing in which
two equal runs differ.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from math import prod
from typing import Any

import h5py
import numpy as np
from numpy.typing import NDArray

from localsvm import __version__
from localsvm.errors import ModelError

FORMAT_VERSION = 2
MODEL = "localsvm-model"
PARTITION = "localsvm-partition"

_KINDS = {MODEL: "model", PARTITION: "partition"}
_SIGNATURE = b"\x89HDF\r\n\x1a\n"
_SUPERBLOCK_BYTES = 48
_CHUNK_BYTES = 1 << 18  # a cell is read by whole chunks; the default chunk cache holds a few of these
BLOCK_CHUNKS = 8  # rows are gathered to blocks of so many chunks before they are written
UNLISTED = {"created", "manifest"}

Array = NDArray[Any]
AnyPath = str | os.PathLike[str]

_REMEDY = "copy it again from its source, or make it anew"


def open_container(path: AnyPath, kind: str, verify: bool = True) -> h5py.File:
    """Open a container for reading.

    Parameters
    ----------
    kind : MODEL or PARTITION.
    verify : read the whole content and compare it with the manifest (about a second a gigabyte). Without it, a
        damaged chunk is still refused when it is read, by its fletcher32 checksum.

    Raises
    ------
    ModelError : no such file; not HDF5; not ours; of the other kind; a newer format; truncated; changed content; a
        missing piece.
    """
    _check_signature(path, kind)
    with checked(path), ExitStack() as opened:
        file = opened.enter_context(h5py.File(path, "r"))
        _check_kind(path, kind, file.attrs)
        if verify:
            _check_manifest(path, file)
        opened.pop_all()
    return file


@contextmanager
def checked(path: AnyPath) -> Iterator[None]:
    """Around reads of a container: what h5py raises at damaged or missing content becomes a ModelError."""
    try:
        yield
    except (KeyError, OSError, RuntimeError, ValueError, TypeError) as error:
        if "truncated file" in str(error):
            raise truncated(path) from error
        raise changed(path, f"HDF5 cannot read it ({error})") from error


def piece(path: AnyPath, parent: Any, name: str) -> Any:
    """What `parent` (a group or its attributes) holds under `name`. Raises ModelError where it is missing."""
    if name not in parent:
        raise missing(path, name)
    return parent[name]


def missing(path: AnyPath, name: str) -> ModelError:
    """The error for a file without the piece `name`."""
    return ModelError(f"{path}: a piece is missing from the file: {name}; {_REMEDY}")


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
    return max(1, _CHUNK_BYTES // max(1, dtype.itemsize * prod(trailing)))


def attribute_entry(value: Any) -> str:
    """The manifest's entry of an attribute."""
    if isinstance(value, str | bytes):
        return f"text {hashlib.sha256(text(value).encode()).hexdigest()}"
    return f"integer {value}"


def dataset_entry(dtype: np.dtype[Any], shape: tuple[int, ...], digest: str) -> str:
    """The manifest's entry of a dataset: its dtype, its shape, and `digest`, the SHA-256 of its bytes (little-endian, C
    order).
    """
    return f"{dtype.newbyteorder('<').str} {json.dumps(shape)} {digest}"


def _check_signature(path: AnyPath, kind: str) -> None:
    try:
        with open(path, "rb") as file:
            head = file.read(_SUPERBLOCK_BYTES)
    except OSError as error:
        raise ModelError(f"{path}: cannot read the {_KINDS[kind]}: {error.strerror}") from error
    if head[: len(_SIGNATURE)] != _SIGNATURE[: len(head)] or not head:
        raise ModelError(f"{path}: not a localsvm {_KINDS[kind]} (not an HDF5 file)")
    if len(head) < _SUPERBLOCK_BYTES:
        raise truncated(path)


def _check_kind(path: AnyPath, kind: str, attributes: Any) -> None:
    found = text(attributes.get("format"))
    if found not in _KINDS:
        raise ModelError(f"{path}: an HDF5 file, but not a localsvm {_KINDS[kind]}")
    if found != kind:
        raise ModelError(f"{path}: a localsvm {_KINDS[found]}, where a {_KINDS[kind]} is expected")
    version = int(piece(path, attributes, "format_version"))
    if version > FORMAT_VERSION:
        raise ModelError(
            f"{path}: format version {version} is newer than localsvm {__version__} can read "
            f"(up to {FORMAT_VERSION}); upgrade localsvm"
        )


def _check_manifest(path: AnyPath, file: h5py.File) -> None:
    listed = dict(json.loads(piece(path, file.attrs, "manifest")))
    found = dict(_entries(file))
    for name in sorted(listed.keys() | found.keys()):
        if name not in found:
            raise missing(path, name)
        if listed.get(name) != found[name]:
            raise changed(path, name)


def _entries(file: h5py.File) -> Iterator[tuple[str, str]]:
    """The manifest of what the file holds now."""
    objects: list[tuple[str, Any]] = [("/", file)]
    file.visititems(lambda name, item: objects.append((f"/{name}", item)))
    for path, item in objects:
        yield path, _digest(item) if isinstance(item, h5py.Dataset) else "group"
        for name, value in item.attrs.items():
            if not (path == "/" and name in UNLISTED):
                yield f"{path}@{name}", attribute_entry(value)


def _digest(dataset: h5py.Dataset) -> str:
    total = hashlib.sha256(dataset[...].tobytes() if dataset.ndim == 0 else b"")
    if dataset.ndim:
        rows = chunk_rows(dataset.dtype, dataset.shape[1:]) * BLOCK_CHUNKS
        for start in range(0, len(dataset), rows):
            total.update(dataset[start : start + rows].data)
    return dataset_entry(dataset.dtype, dataset.shape, total.hexdigest())
