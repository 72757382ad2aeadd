"""Plain text that this machine sees: cut into parts here, and read by those that hold the parts.

Spark would hand each line from Java to Python in each pass; so the bytes stay where they are until a part is read.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from localsvm.data.readers.compression import SUFFIXES, open_source
from localsvm.data.readers.pieces import BOM
from localsvm.data.readers.spans import spans
from localsvm.data.readers.tables import TablePart
from localsvm.errors import RunError
from localsvm.parallel.parquet import SUFFIX as PARQUET
from localsvm.parallel.spark import NESTED, NOT_SEEN, PIECE_BYTES
from localsvm.runs.prediction.table_rows import TableRows

PART_BYTES = 32 << 20  # at most, as Spark has it
PARTS_EACH = 4  # for each core: so none waits long for the last


class FilePart(NamedTuple):
    """Whole lines of a file: bytes begin .. end - 1."""

    path: str
    begin: int
    end: int


class Cluster(Protocol):
    """Machines that read text in parts; see `parallel.spark.SparkApplication`."""

    @property
    def cores(self) -> int: ...
    def text(self, path: str) -> Any: ...
    def of_parts(
        self, name: str, parts: list[Any], cut: Callable[[Iterable[Any]], Iterator[Any]],
        head: Callable[[int], bytes] | None = None, kept: bool = False,
    ) -> Any: ...  # fmt: skip


def text_of(engine: Cluster, path: str) -> Any:
    """The lines of a file, or of the files of a folder in the order of their names, as the engine's `Text`.

    Plain files that are there are read by the workers themselves; the engine reads all else. RunError as `Spark.text`.
    """
    files = _plain_files(path)
    if not files:
        return engine.text(path)
    size = part_bytes(files, engine.cores)
    parts = [part for file in files for part in _cut(file, size)]
    return engine.of_parts(path, parts, pieces, lambda lines: head(files, lines))


def part_bytes(files: Sequence[str], cores: int) -> int:
    """Bytes of a part of files that are there."""
    total = sum(os.path.getsize(file) for file in files if os.path.isfile(file))
    return max(1, min(PART_BYTES, total // (PARTS_EACH * max(1, cores))))


def table_of(engine: Cluster, path: str, reader: TableRows) -> Any:
    """A table to predict in parts, as the engine's `Text`, whose pieces are `TablePart`. DataError as of `reader`."""
    return engine.of_parts(path, reader.parts(path, part_bytes([path], engine.cores)), present)


def present(parts: Iterable[TablePart]) -> Iterator[TablePart]:
    """The parts of tables themselves. RunError where a file is not there."""
    for part in parts:
        if not os.path.exists(part.path):
            raise RunError(NOT_SEEN.format(path=part.path))
        yield part


def _plain_files(path: str) -> list[str]:
    """Real paths of the files at `path`; empty where there are none, or others than plain text among them.

    The paths are where links lead to; their order and their suffixes are those of the links.
    """
    if os.path.isfile(path):
        paths = [path]
    elif os.path.isdir(path):
        inside = sorted(each for each in Path(path).iterdir() if each.name[0] not in "_.")
        if folder := next((each for each in inside if each.is_dir()), None):
            raise RunError(NESTED.format(path=folder))
        paths = [str(each) for each in inside if each.is_file()]
    else:
        return []
    if any(each.endswith((PARQUET, *SUFFIXES)) for each in paths):
        return []
    for each in paths:
        _check_plain(each)
    return [os.path.realpath(each) for each in paths]


def _check_plain(path: str) -> None:
    """Raise RunError for compressed text that is not called so, as the engine knows it by its name.

    Raises DataError for no text.
    """
    with open_source(path) as source:
        if source.kind is not None:
            ending = next(suffix for suffix, kind in SUFFIXES.items() if kind == source.kind)
            what = f"this is {source.kind} data, which Spark knows by the end of the name"
            raise RunError(f"{path}: {what}; rename it to NAME{ending}")


def _cut(path: str, size: int) -> list[FilePart]:
    with open(path, "rb") as file:
        line_spans = spans(path, file.fileno(), os.path.getsize(path), 0, size)
    return [FilePart(path, span.begin, span.end) for span in line_spans]


def head(files: list[str], lines: int) -> bytes:
    """The first lines of files, or all where there are fewer."""
    first_lines: list[bytes] = []
    for path in files:
        with open(path, "rb") as file:
            file_lines = list(islice(file, lines - len(first_lines)))
        first_lines += [_whole(line, first=number == 0) for number, line in enumerate(file_lines)]
    return b"".join(first_lines)


def pieces(parts: Iterable[FilePart]) -> Iterator[bytes]:
    """Text of the parts, some lines at a time. RunError where a file is not there."""
    for part in parts:
        try:
            with open(part.path, "rb") as file:
                for span in spans(part.path, file.fileno(), part.end, part.begin, PIECE_BYTES):
                    yield _whole(bytes(span.read()), first=span.begin == 0)
        except FileNotFoundError as error:
            raise RunError(NOT_SEEN.format(path=part.path)) from error
        except OSError as error:
            raise RunError(f"{part.path}: a worker cannot read it: {error.strerror or error}") from error


def _whole(text: bytes, first: bool) -> bytes:
    """Lines of a file that end, the first ones without the mark that it may begin with."""
    text = text.removeprefix(BOM) if first else text
    return text if text.endswith(b"\n") else text + b"\n"
