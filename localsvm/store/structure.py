"""Check that an HDF5 file is built as ours are, made before any of its content is read.

A file can make HDF5 open other files (external links, raw data elsewhere, virtual datasets), load plugins for its
filters, declare shapes without data, and go round in circles. HDF5 reads beyond its buffer where a compressed chunk
holds less than it should. `structure` and `StoredRows` refuse all of it; docs/model-format.md says what may be there.
"""

from __future__ import annotations

import re
import zlib
from math import prod
from typing import Any, NamedTuple

import h5py
import numpy as np
from h5py import h5a, h5d, h5l, h5o, h5s, h5t, h5z

from localsvm.store.pieces import Array, Unsound

CHUNK_BYTES = 1 << 18  # a chunk holds as much at most, or one row
MOST_DEPTH = 4  # groups inside each other
_NAME = re.compile(rb"[A-Za-z0-9_.-]{1,100}")
_FILTERS = (h5z.FILTER_SHUFFLE, h5z.FILTER_DEFLATE, h5z.FILTER_FLETCHER32)  # as they are applied to a chunk
_SUM_BYTES = 4  # of fletcher32, behind the chunk
_LAYOUTS = (h5d.COMPACT, h5d.CONTIGUOUS, h5d.CHUNKED)


class StoredLayout(NamedTuple):
    """Layout of a dataset in the file.

    Attributes
    ----------
    dtype, shape : of its values.
    chunk : (rows, *trailing) of a chunk, None without chunks.
    chunk_bytes : of its values.
    deflated, summed : whether chunks are compressed, and have a checksum.
    """

    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    chunk: tuple[int, ...] | None = None
    chunk_bytes: int = 0
    deflated: bool = False
    summed: bool = False


class StoredRows:
    """Reads the rows of a dataset that is stored as ours are.

    HDF5 trusts what a compressed chunk inflates to. So each is inflated here once before HDF5 does it, no further than
    it may.
    """

    def __init__(self, item: Any, layout: StoredLayout) -> None:
        self.dtype, self.shape, self.stored = layout.dtype, layout.shape, int(item.get_storage_size())
        self._dataset, self._layout = h5py.Dataset(item), layout
        self._sound: set[int] = set()  # chunks

    @property
    def attrs(self) -> Any:
        """The attributes."""
        return self._dataset.attrs

    def __len__(self) -> int:
        return self.shape[0]

    def read(self, start: int = 0, stop: int | None = None) -> Array:
        """Rows start .. stop - 1, by default all; of a scalar the value."""
        if not self.shape:
            return np.asarray(self._dataset[()])
        stop = len(self) if stop is None else stop
        if self._layout.deflated and self._layout.chunk and stop > start:
            step = self._layout.chunk[0]
            for chunk in range(start // step, (stop - 1) // step + 1):
                if chunk not in self._sound:
                    self._inflate(chunk * step)
                    self._sound.add(chunk)
        return np.asarray(self._dataset[start:stop])

    def _inflate(self, row: int) -> None:
        _, packed = self._dataset.id.read_direct_chunk((row,) + (0,) * (len(self.shape) - 1))
        inflater = zlib.decompressobj()
        try:
            content = inflater.decompress(packed, self._layout.chunk_bytes + 1)
        except zlib.error as error:
            raise OSError(f"a chunk of {self._dataset.name} cannot be inflated: {error}") from error
        if len(content) != self._layout.chunk_bytes or not inflater.eof:
            raise OSError(f"a chunk of {self._dataset.name} does not hold what its shape says")


def structure(file: h5py.File) -> dict[str, h5py.Group | StoredRows]:
    """All groups and datasets by path, "/" first. Unsound where the file is not built as ours are."""
    size, root = int(file.id.get_filesize()), file["/"].id
    items: dict[str, h5py.Group | StoredRows] = {}
    _walk(root, "/", {h5o.get_info(root).addr}, items, size)
    stored = sum(item.stored for item in items.values() if isinstance(item, StoredRows))
    if stored > size:
        raise Unsound(f"its datasets share storage: they have {stored} bytes in a file of {size}")
    return items


def _walk(group: Any, path: str, seen: set[int], items: dict[str, h5py.Group | StoredRows], size: int) -> None:
    items[path] = h5py.Group(group)
    _check_attributes(group, path, size)
    for name in group:
        place = f"{path.rstrip('/')}/{name.decode('ascii', 'replace')}"
        if not _NAME.fullmatch(name) or place.count("/") > MOST_DEPTH:
            raise Unsound(f"{place[:100]!a} is no name of ours")
        if group.links.get_info(name).type != h5l.TYPE_HARD:
            raise Unsound(f"{place} is a soft or an external link")
        info = h5o.get_info(group, name)
        if info.addr in seen:
            raise Unsound(f"{place} is an object that has another name, too")
        seen.add(info.addr)
        if info.type not in (h5o.TYPE_GROUP, h5o.TYPE_DATASET):
            raise Unsound(f"{place} is neither a group nor a dataset")
        item = h5o.open(group, name)
        if info.type == h5o.TYPE_GROUP:
            _walk(item, place, seen, items, size)
        else:
            items[place] = StoredRows(item, _layout(item, place))
            _check_attributes(item, place, size)


def _layout(item: Any, place: str) -> StoredLayout:
    """Layout of a dataset; Unsound unless it is as ours are, all its data in the file."""
    creation = item.get_create_plist()  # a virtual dataset looks for its sources as soon as its shape is asked for
    way = creation.get_layout()
    if way not in _LAYOUTS or creation.get_external_count():
        raise Unsound(f"{place}: its values are in another place")
    kind, space = item.get_type(), item.get_space()
    if kind.get_class() not in (h5t.INTEGER, h5t.FLOAT) or not kind.equal(h5t.py_create(kind.dtype)):
        raise Unsound(f"{place}: its type is not a plain number")
    dtype = kind.dtype
    if dtype.itemsize > 8 or dtype.newbyteorder("<") != dtype:
        raise Unsound(f"{place}: numbers of {dtype} are none of ours")
    if space.get_simple_extent_type() not in (h5s.SIMPLE, h5s.SCALAR):
        raise Unsound(f"{place} has no shape")
    layout = StoredLayout(dtype, space.shape)
    if way == h5d.CHUNKED:
        chunk = creation.get_chunk()
        deflated, summed = _filters(creation, dtype, place)
        layout = StoredLayout(dtype, space.shape, chunk, prod(chunk) * dtype.itemsize, deflated, summed)
        _check_chunks(item, layout, place)
    elif item.get_storage_size() != prod(space.shape) * dtype.itemsize:
        raise Unsound(f"{place}: its shape is {space.shape}, but its data are not there")
    return layout


def _filters(creation: Any, dtype: np.dtype[Any], place: str) -> tuple[bool, bool]:
    filters = [creation.get_filter(i) for i in range(creation.get_nfilters())]
    codes = [code for code, *_ in filters]
    if codes != [code for code in _FILTERS if code in codes]:
        raise Unsound(f"{place}: the filters {codes} are none of ours")
    if any(code == h5z.FILTER_SHUFFLE and tuple(values) != (dtype.itemsize,) for code, _, values, _ in filters):
        raise Unsound(f"{place}: its shuffle filter does not fit its type")
    return h5z.FILTER_DEFLATE in codes, h5z.FILTER_FLETCHER32 in codes


def _check_chunks(item: Any, layout: StoredLayout, place: str) -> None:
    chunk, shape = layout.chunk or (), layout.shape
    if chunk[1:] != shape[1:] or (chunk[0] > 1 and layout.chunk_bytes > CHUNK_BYTES):
        raise Unsound(f"{place}: chunks of {chunk} are none of ours")
    places: set[tuple[int, ...]] = set()
    sizes: list[int] = []

    def note(stored: Any) -> None:
        places.add(stored.chunk_offset)
        sizes.append(0 if stored.filter_mask else stored.size)

    expected = -(-shape[0] // chunk[0]) if prod(shape) else 0
    if item.get_num_chunks() == expected:
        item.chunk_iter(note)
    if len(places) != expected:
        raise Unsound(f"{place}: its shape is {shape}, but its data are not there")
    exact = layout.chunk_bytes + _SUM_BYTES * layout.summed
    low, high = (1, exact + layout.chunk_bytes // 1000 + 64) if layout.deflated else (exact, exact)
    if any(not low <= stored <= high for stored in sizes):  # deflate may make a chunk a little larger
        raise Unsound(f"{place}: a chunk does not hold what its shape says")


def _check_attributes(item: Any, place: str, size: int) -> None:
    for i in range(h5a.get_num_attrs(item)):
        attribute = h5a.open(item, index=i)
        name = attribute.name.decode("ascii", "replace")
        if not _NAME.fullmatch(attribute.name):
            raise Unsound(f"{place}@{name[:100]!a} is no name of ours")
        kind = attribute.get_type()
        text = kind.get_class() == h5t.STRING and not kind.is_variable_str()
        whole = kind.get_class() == h5t.INTEGER and kind.equal(h5t.STD_I64LE)
        plain = attribute.get_space().get_simple_extent_type() == h5s.SCALAR
        if not (plain and (text or whole)) or attribute.get_storage_size() > size:
            raise Unsound(f"{place}@{name}: not a whole number or a text of fixed length")
