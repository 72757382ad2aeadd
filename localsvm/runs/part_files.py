"""Plain text that this machine sees: cut into parts here, and read by those that hold the parts.

Spark would hand each line from Java to Python in each pass; so the bytes stay where they are until a part is read.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from localsvm.data.compression import SUFFIXES
from localsvm.data.spans import spans
from localsvm.errors import RunError
from localsvm.parallel.parquet import SUFFIX as PARQUET

PART_BYTES = 32 << 20  # at most, as Spark has it
PARTS_EACH = 4  # for each core: so none waits long for the last
PIECE_BYTES = 4 << 20


class Part(NamedTuple):
    """Whole lines of a file: bytes begin .. end - 1."""

    path: str
    begin: int
    end: int


class Engine(Protocol):
    """See `parallel.spark.Spark`."""

    @property
    def cores(self) -> int: ...
    def text(self, path: str) -> Any: ...
    def of_parts(
        self, name: str, parts: list[Any], cut: Callable[[Iterable[Any]], Iterator[bytes]], head: Callable[[int], bytes]
    ) -> Any: ...


def text_of(engine: Engine, path: str) -> Any:
    """The lines of a file, or of the files of a folder in the order of their names, as the engine's `Text`.

    Plain files that are there are read by the workers themselves; the engine reads all else. RunError as `Spark.text`.
    """
    files = _plain_files(path)
    if not files:
        return engine.text(path)
    total = sum(os.path.getsize(file) for file in files)
    size = max(1, min(PART_BYTES, total // (PARTS_EACH * max(1, engine.cores))))
    parts = [part for file in files for part in _cut(file, size)]
    return engine.of_parts(path, parts, pieces, lambda lines: head(files, lines))


def _plain_files(path: str) -> list[str]:
    """None where there are none, or others among them."""
    if os.path.isfile(path):
        found = [os.path.realpath(path)]
    elif os.path.isdir(path):
        found = sorted(os.path.realpath(each) for each in Path(path).iterdir() if each.is_file())
        found = [each for each in found if not os.path.basename(each).startswith(("_", "."))]
    else:
        return []
    return [] if any(each.endswith((PARQUET, *SUFFIXES)) for each in found) else found


def _cut(path: str, size: int) -> list[Part]:
    with open(path, "rb") as file:
        found = spans(path, file.fileno(), os.path.getsize(path), 0, size)
    return [Part(path, span.begin, span.end) for span in found]


def head(files: list[str], lines: int) -> bytes:
    """The first lines of files, or all where there are fewer."""
    found: list[bytes] = []
    for path in files:
        with open(path, "rb") as file:
            while len(found) < lines and (line := file.readline()):
                found.append(line if line.endswith(b"\n") else line + b"\n")
    return b"".join(found)


def pieces(parts: Iterable[Part]) -> Iterator[bytes]:
    """Their text, some lines at a time. RunError where the file is not there."""
    for part in parts:
        try:
            with open(part.path, "rb") as file:
                for span in spans(part.path, file.fileno(), part.end, part.begin, PIECE_BYTES):
                    text = bytes(span.read())
                    yield text if text.endswith(b"\n") else text + b"\n"
        except FileNotFoundError as error:
            raise RunError(
                f"{part.path}: the workers do not see this input; put it where all machines do (a shared folder, "
                "hdfs://, s3a://)"
            ) from error
        except OSError as error:
            raise RunError(f"{part.path}: a worker cannot read it: {error.strerror or error}") from error
