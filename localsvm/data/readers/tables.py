"""Tables in any format: which one a file has, and the reader for it."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol

from localsvm.data.blocks.table import Stretch, Table
from localsvm.data.readers.compression import SUFFIXES as COMPRESSED
from localsvm.data.readers.compression import open_source
from localsvm.data.readers.delimited import (
    DELIMITERS,
    NUMBER,
    TableForm,
    TableLayout,
    Texts,
    no_texts,
    open_delimited,
    open_stretch,
)
from localsvm.errors import LocalSVMError

FORMATS = {  # the endings of names; LIBSVM text has any other
    "csv": (".csv", ".tsv", ".tab"),
    "parquet": (".parquet", ".pq"),
    "arrow": (".arrow", ".feather", ".ipc"),
    "npy": (".npy", ".npz"),
    "libsvm": (".libsvm", ".svm", ".svmlight"),
}
ARCHIVE = b"PK\x03\x04"  # begins NPZ files, and all others of zip
MAGIC = {b"PAR1": "parquet", b"ARROW1": "arrow", b"\x93NUMPY": "npy", ARCHIVE: "npy"}  # begins other files
BINARY = ("parquet", "arrow", "npy")
FIRST_BYTES = 1 << 16
LIBSVM_LINE = re.compile(rb"\s*[^\s,:;|]+(\s+(qid|[0-9]+):\S+)*\s*(#.*)?\Z")

SEVERAL_LABELS = re.compile(rb"\s*\S+(\s+(qid|[0-9]+):[^\s,;|]+)+\s*(#.*)?\Z")


class TableSource(Protocol):
    """An open table."""

    @property
    def name(self) -> str:
        """Name of the file, for messages."""

    @property
    def layout(self) -> TableLayout:
        """Layout of the columns."""

    def blocks(self, jobs: int = 1) -> Iterator[Table]:
        """All rows, block by block. DataError for a mistake, with its place, after the blocks before it."""

    def stretches(self, size: int) -> list[Stretch]:
        """Places of the rows, of about `size` bytes each, for `TablePart`."""


class TypedSource(TableSource, Protocol):
    """An open table whose file says where rows are."""

    def between(self, stretch: Stretch, jobs: int = 1) -> Iterator[Table]:
        """Some rows, block by block."""


@dataclass(frozen=True)
class TablePart:
    """Some rows of a table; pickle carries it to whoever reads them.

    Attributes
    ----------
    path, kind, layout : of the file, its format and its columns.
    stretch : where the rows are.
    """

    path: str
    kind: str
    layout: TableLayout
    stretch: Stretch

    def blocks(self) -> Iterator[Table]:
        """The rows, block by block. DataError as of `TableSource.blocks`."""
        layout = self.layout
        if self.kind not in BINARY:
            with open_stretch(self.path, layout, self.stretch) as text:
                yield from text.blocks()
            return
        known = dict(zip(layout.names, layout.kinds, strict=True))
        with _open_typed(self.path, self.kind, TableForm(missing=layout.missing), no_texts, known) as source:
            yield from source.between(self.stretch)


def parts_of(source: TableSource, path: str, kind: str, size: int) -> list[TablePart]:
    """An open table in parts of about `size` bytes of its file each."""
    return [TablePart(os.path.abspath(path), kind, source.layout, stretch) for stretch in source.stretches(size)]


def by_suffix(path: str) -> str | None:
    """Format that the name of a file says; None for a name that says nothing."""
    name = _unpacked(path)
    return next((kind for kind, suffixes in FORMATS.items() if name.endswith(suffixes)), None)


def is_tab(path: str) -> bool:
    """True for a name that ends as one of tab-delimited text."""
    return _unpacked(path).endswith((".tsv", ".tab"))


def _unpacked(path: str) -> str:
    """Name of a file in small letters, without the ending that says how it is compressed."""
    name = path.lower()
    for suffix in COMPRESSED:
        name = name.removesuffix(suffix)
    return name


def format_of(path: str) -> str:
    """Format of a file: by its name, then by its first bytes, then by its first line."""
    return by_suffix(path) or _by_content(path)


def is_table(path: str) -> bool:
    """True for a file that is a table by its name or its content."""
    return format_of(path) != "libsvm"


def _by_content(path: str) -> str:
    if not os.path.isfile(path):  # a pipe cannot be read twice
        return "libsvm"
    try:
        with open(path, "rb") as file:
            first = file.read(64)
        for magic, kind in MAGIC.items():
            if first.startswith(magic) and (magic != ARCHIVE or b".npy" in first):
                return kind
        with open_source(path) as source:
            lines = [line for line in source.read(FIRST_BYTES).split(b"\n") if line.strip()]
    except (OSError, LocalSVMError):  # who reads it says what is wrong
        return "libsvm"
    if not lines or lines[0].lstrip().startswith(b"#") or is_libsvm(lines[0]):
        return "libsvm"
    return "csv" if any(delimiter.encode() in lines[0] for delimiter in DELIMITERS) else "libsvm"


def is_libsvm(line: bytes) -> bool:
    """Whether a line looks like a row of LIBSVM text."""
    if SEVERAL_LABELS.match(line):  # the reader of LIBSVM text says what is wrong
        return True
    label = line.split(maxsplit=1)[0].decode(errors="replace")
    return LIBSVM_LINE.match(line) is not None and (b":" in line or NUMBER.fullmatch(label) is not None)


@contextmanager
def open_table(
    path: str, form: TableForm, text: Texts = no_texts, known: Mapping[str, int] | None = None
) -> Iterator[TableSource]:
    """Open a table of any format; a context manager.

    Parameters
    ----------
    path, form, text, known : as of `delimited.open_delimited`; in formats other than delimited text, the form says
        which columns are left out or have levels, and which words stand for no value.

    Raises
    ------
    DataError : as of `open_delimited`; a column whose type is neither numbers, text, nor dates.
    RunError : pyarrow is not installed.
    """
    kind = form.kind or format_of(path)
    if kind in BINARY:
        with _open_typed(path, kind, form, text, known) as typed:
            yield typed
    else:
        with open_delimited(path, form, text, known) as delimited:
            yield delimited


@contextmanager
def _open_typed(
    path: str, kind: str, form: TableForm, text: Texts, known: Mapping[str, int] | None
) -> Iterator[TypedSource]:
    """Open a table in one of the formats BINARY."""
    if kind == "npy":
        from localsvm.data.readers.arrays import open_arrays

        yield open_arrays(path, form, text, known)
    else:
        from localsvm.data.readers.arrow import open_arrow

        with open_arrow(path, kind, form, text, known) as reader:
            yield reader
