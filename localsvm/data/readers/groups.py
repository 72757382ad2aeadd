"""Groups of rows: the file that names the group of each row."""

from __future__ import annotations

import os
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from localsvm.data.readers.compression import Source, open_source
from localsvm.data.readers.faults import LONGEST_LINE, long_line
from localsvm.data.readers.weights import Lines, check_lines
from localsvm.errors import DataError

BLOCK_BYTES = 1 << 20


def check_groups(groups: NDArray[np.int64], name: str = "the groups") -> NDArray[np.int64]:
    """The groups. DataError where there is one alone. name : of their source, for messages."""
    if len(groups) and (groups == groups[0]).all():
        raise DataError(f"{name}: all {len(groups):,} rows are of one group; cross-validation needs two, better ten")
    return groups


def read_groups(path: str | os.PathLike[str], rows: int) -> NDArray[np.int64]:
    """The group (rows,) of each row, numbered from 0: a name a line, plain or compressed, "-" for stdin.

    DataError : an empty line, with its number; too few or too many lines; one group alone.
    """
    lines = group_lines(path)
    check_lines(lines, rows)
    return check_groups(lines.values, lines.name)


def group_lines(path: str | os.PathLike[str]) -> Lines:
    """The groups of a file, of rows whose number is not known yet. DataError for an empty line."""
    number: dict[bytes, int] = {}

    def numbers(source: Source) -> Iterator[int]:
        for line, text in enumerate(_lines(source), 1):
            if not (name := text.strip()):
                raise DataError(f"{source.name}:{line}: the line is empty; write the name of the row's group")
            yield number.setdefault(name, len(number))

    with open_source(path) as source:
        return Lines(np.fromiter(numbers(source), np.int64), source.name)


def _lines(source: Source) -> Iterator[bytes]:
    rest, line = b"", 1
    while block := source.read(BLOCK_BYTES):
        *lines, rest = (rest + block).split(b"\n")
        yield from lines
        line += len(lines)
        if len(rest) > LONGEST_LINE:
            raise long_line(source.name, line, LONGEST_LINE)
    if rest:
        yield rest
