"""Weights of rows: the file that holds them, and what they may be."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from localsvm.data.blocks.dataset import Dataset, rows_of
from localsvm.data.blocks.dealing import renumbered
from localsvm.data.readers.compression import Source, open_source
from localsvm.errors import DataError

BLOCK_BYTES = 1 << 20
LINE_BYTES = 1 << 12  # no number is as long
LARGEST_TOTAL = 1e40  # of all weights, and one over the smallest: costs and what becomes of them stay finite
SHOWN = 40  # bytes of a line in a message
ALLOWED = "a weight is a finite number from 0, and some must be positive"


def check_weights(weights: ArrayLike, rows: int, name: str = "the weights") -> NDArray[np.float64]:
    """The weights (rows,) as float64. DataError unless there is one a row, all finite, none negative, not all 0.

    name : name of their source, for messages.
    """
    checked = np.asarray(weights, np.float64)
    if checked.shape != (rows,):
        raise DataError(f"{name}: {rows} rows need as many weights, not an array of shape {checked.shape}")
    wrong = np.flatnonzero(~((checked >= 0) & np.isfinite(checked)))
    if len(wrong):
        raise DataError(f"{name}: row {wrong[0] + 1} has the weight {checked[wrong[0]]:g}; {ALLOWED}")
    with np.errstate(over="ignore"):
        total = checked.sum()
    if total == 0:
        raise DataError(f"{name}: all {rows} weights are 0; {ALLOWED}")
    if not 1 / LARGEST_TOTAL <= total <= LARGEST_TOTAL:
        what = f"the sum of the weights, {total:g}, is not between {1 / LARGEST_TOTAL:g} and {LARGEST_TOTAL:g}"
        raise DataError(f"{name}: {what}; divide all of them by a number")
    return checked


def read_weights(path: str | os.PathLike[str], rows: int) -> NDArray[np.float64]:
    """The weights (rows,) of a file: a number a line, plain or compressed, "-" for stdin.

    Raises
    ------
    DataError : a line that is no weight, with its number; too few or too many lines; all weights are 0.
    """
    lines = weight_lines(path)
    check_lines(lines, rows)
    return check_weights(lines.values, rows, lines.name)


class Lines(NamedTuple):
    """Values (lines,) of the lines of a file, one for each row, and the name of the file; see `check_lines`."""

    values: NDArray[Any]
    name: str


def weight_lines(path: str | os.PathLike[str]) -> Lines:
    """The weights of a file, of rows whose number is not known yet. DataError as of `read_weights`."""
    with open_source(path) as source:
        lines = enumerate(_lines(source), 1)
        return Lines(np.fromiter((_weight(text, f"{source.name}:{line}") for line, text in lines), float), source.name)


def check_lines(lines: Lines, rows: int) -> None:
    """Raise DataError unless there are as many lines as rows."""
    count, name = len(lines.values), lines.name
    if count > rows:
        raise DataError(f"{name}:{rows + 1}: the training file has only {rows} rows; write a line a row")
    if count < rows:
        raise DataError(f"{name}: ends after line {count}; the training file has {rows} rows")


def left_out_text(left_out: int, rows: int) -> str:
    """Note on rows that have the weight 0."""
    return f"{left_out:,} of {rows:,} rows have the weight 0 and are left out"


def leave_out(data: Dataset) -> None:
    """Keep only the rows of positive weight: one of weight 0 takes no part, not even in scaling and division."""
    if data.weight is not None and not data.weight.all():
        rows = np.flatnonzero(data.weight)
        data.X = rows_of(data.X, rows)
        data.y, data.weight = data.y[rows], data.weight[rows]
        data.group = None if data.group is None else renumbered(data.group[rows])


def _weight(text: bytes, place: str) -> float:
    try:
        weight = float(text) if b"_" not in text else np.nan  # Python's numbers may have some, files may not
    except ValueError:
        weight = np.nan
    if not 0 <= weight < np.inf:
        shown = text[:SHOWN].decode("ascii", "backslashreplace").strip()
        raise DataError(f"{place}: {shown!r} is no weight; {ALLOWED}")
    return weight


def _lines(source: Source) -> Iterator[bytes]:
    """The lines without their ends; where one is too long to be a number, only its beginning."""
    rest = b""
    while block := source.read(BLOCK_BYTES):
        *lines, rest = (rest + block).split(b"\n")
        yield from lines
        if len(rest) > LINE_BYTES:
            break
    if rest:
        yield rest
