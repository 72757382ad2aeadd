"""Groups of rows: the file that names the group of each row."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from localsvm.data.readers.compression import Source, open_source
from localsvm.data.readers.faults import LONGEST_LINE, long_line
from localsvm.errors import DataError

BLOCK_BYTES = 1 << 20


def numbered(names: Sequence[Any]) -> NDArray[np.int64]:
    """Numbers (n,) of names, from 0 in the order in which names first occur."""
    place: dict[Any, int] = {}
    return np.fromiter((place.setdefault(name, len(place)) for name in names), np.int64, len(names))


def check_groups(groups: NDArray[np.int64], name: str = "the groups") -> NDArray[np.int64]:
    """The groups. DataError where there is one alone. name : of their source, for messages."""
    if len(groups) and (groups == groups[0]).all():
        raise DataError(f"{name}: all {len(groups):,} rows are of one group; cross-validation needs two, better ten")
    return groups


def read_groups(path: str | os.PathLike[str], rows: int) -> NDArray[np.int64]:
    """The group (rows,) of each row, numbered from 0: a name a line, plain or compressed, "-" for stdin.

    DataError : an empty line, with its number; too few or too many lines; one group alone.
    """
    place: dict[bytes, int] = {}
    groups, line = np.empty(rows, np.int64), 0
    with open_source(path) as source:
        for text in _lines(source):
            line += 1
            if line > rows:
                raise DataError(f"{source.name}:{line}: the training file has only {rows} rows; write a line a row")
            name = text.strip()
            if not name:
                raise DataError(f"{source.name}:{line}: the line is empty; write the name of the row's group")
            groups[line - 1] = place.setdefault(name, len(place))
        if line < rows:
            raise DataError(f"{source.name}: ends after line {line}; the training file has {rows} rows")
        return check_groups(groups, source.name)


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
