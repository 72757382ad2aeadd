"""Groups of rows: the file that names the group of each row."""

from __future__ import annotations

import os
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from localsvm.data.readers.compression import Source, open_source
from localsvm.data.readers.faults import LONGEST_LINE, long_line
from localsvm.data.readers.weights import line_a_row
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
    number: dict[bytes, int] = {}
    groups = np.empty(rows, np.int64)
    with open_source(path) as source:
        for row, (place, text) in enumerate(line_a_row(_lines(source), rows, source.name)):
            name = text.strip()
            if not name:
                raise DataError(f"{place}: the line is empty; write the name of the row's group")
            groups[row] = number.setdefault(name, len(number))
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
