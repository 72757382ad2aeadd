"""The check of a file's arrays against what their pieces say."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from localsvm.store.pieces import Array, Lengths, Piece, Pieces, Unsound


@dataclass(frozen=True)
class Cells:
    """The arrays of some cells that follow each other.

    Attributes
    ----------
    arrays : by name, the rows of all these cells.
    ptr : by name (cells + 1,) int64; cell i has the rows ptr[i] - ptr[0] to ptr[i + 1] - ptr[0] - 1.
    first : number of the first cell.
    """

    arrays: Mapping[str, Array]
    ptr: Mapping[str, NDArray[np.int64]]
    first: int = 0

    def bounds(self, name: str) -> NDArray[np.int64]:
        """Places (cells + 1,) where the rows of each cell begin in arrays[name]."""
        starts: NDArray[np.int64] = self.ptr[name] - self.ptr[name][0]
        return starts


def check(place: str, pieces: Pieces, arrays: Mapping[str, Array], known: Mapping[str, int]) -> Lengths:
    """The lengths of all names; Unsound unless the arrays in the group `place` are what these pieces say."""
    scalar = [name for name, array in arrays.items() if np.ndim(array) == 0]
    if scalar:
        raise Unsound(f"{place}/{scalar[0]} has no rows")
    ptr = {name: np.asarray([0, len(array)]) for name, array in arrays.items()}
    return check_cells(place, pieces, Cells(arrays, ptr), known)


def check_cells(place: str, pieces: Pieces, cells: Cells, known: Mapping[str, int]) -> Lengths:
    """The lengths of all names, for many cells at once; see `check`."""
    for name in pieces.keys() ^ cells.arrays.keys():
        what = "a piece is missing from the file: " if name in pieces else "no piece has this name: "
        raise Unsound(f"{what}{place}/{name}")
    lengths: Lengths = dict(known)
    for name, piece in pieces.items():
        _check_form(f"{place}/{name}", piece, cells.arrays[name])
        _bind(f"{place}/{name}", piece, _lengths(cells, name), lengths, cells.first)
    for name, piece in pieces.items():
        if piece.value is not None:
            _bind_value(f"{place}/{name}", piece.value, cells, name, lengths)
    for name in sorted(pieces, key=lambda name: pieces[name].ends is None):  # pointers first: others ask them
        piece = pieces[name]
        for actual, expected in zip(_lengths(cells, name), piece.shape, strict=True):
            if callable(expected):
                _same(f"{place}/{name}", actual, expected(lengths), cells.first)
        if piece.most is not None and np.any(_lengths(cells, name)[0] > piece.most(lengths)):
            raise Unsound(f"{place}/{name} has too many rows")
        check_values(f"{place}/{name}", piece, cells.arrays[name])
        _check_relations(f"{place}/{name}", name, piece, cells, lengths)
    return lengths


def check_values(place: str, piece: Piece, array: Array) -> None:
    """Raise Unsound where a value is not finite or outside the piece's bounds."""
    if not array.size:
        return
    least, most = (np.nanmin, np.nanmax) if piece.nan and not np.isnan(array).all() else (np.min, np.max)
    low, high = least(array), most(array)
    if not (piece.nan and np.isnan(low)) and not (np.isfinite(low) and np.isfinite(high)):
        raise Unsound(f"{place} holds a number that is not finite")
    if low < piece.low or high > piece.high:
        raise Unsound(f"{place} holds {low if low < piece.low else high:g}, which is out of its bounds")


def _check_form(place: str, piece: Piece, array: Array) -> None:
    if array.dtype.newbyteorder("=") != np.dtype(piece.dtype):
        raise Unsound(f"{place} is of {array.dtype}, not {np.dtype(piece.dtype)}")
    if array.ndim != len(piece.shape):
        raise Unsound(f"{place} has {array.ndim} dimensions, not {len(piece.shape)}")


def _lengths(cells: Cells, name: str) -> list[Any]:
    return [np.diff(cells.ptr[name]), *cells.arrays[name].shape[1:]]


def _bind(place: str, piece: Piece, actual: list[Any], lengths: Lengths, first: int) -> None:
    least = max(piece.least, piece.shape[0][1] if isinstance(piece.shape[0], tuple) else 0)
    if np.any(actual[0] < least):
        raise Unsound(f"{place} has less than {least} rows in a cell")
    for length, expected in zip(actual, piece.shape, strict=True):
        if isinstance(expected, str):
            _same(place, length, lengths.setdefault(expected, length), first)
        elif isinstance(expected, tuple):
            name, more = expected
            _same(place, length, lengths.setdefault(name, length - more) + more, first)
        elif not callable(expected):
            _same(place, length, expected, first)


def _same(place: str, actual: Any, expected: Any, first: int) -> None:
    wrong = np.flatnonzero(np.atleast_1d(actual != np.asarray(expected)))
    if len(wrong):
        cell = int(wrong[0])
        has, should = (int(v if np.ndim(v) == 0 else v[min(cell, len(v) - 1)]) for v in (actual, expected))
        raise Unsound(f"{place} has a length of {has}{_in_cell(place, first + cell)}, not {should}")


def _in_cell(place: str, cell: int) -> str:
    return f" in cell {cell}" if place.startswith("/cells/") else ""


def _bind_value(place: str, length: str, cells: Cells, name: str, lengths: Lengths) -> None:
    array, bounds = cells.arrays[name], cells.bounds(name)
    if np.any(np.diff(bounds) == 0):
        raise Unsound(f"{place} is empty")
    value = array[bounds[:-1]].astype(np.int64)
    if value.min() < 1 or not np.array_equal(np.repeat(value, np.diff(bounds)), array):
        raise Unsound(f"{place} holds different numbers, or one below 1")
    lengths[length] = value


def _check_relations(place: str, name: str, piece: Piece, cells: Cells, lengths: Lengths) -> None:
    array, bounds = cells.arrays[name], cells.bounds(name)
    if piece.ends is not None and len(bounds) > 1:
        steps = np.diff(array)
        steps[bounds[1:-1] - 1] = 0  # from cell to cell
        ends = np.broadcast_to(lengths[piece.ends], len(bounds) - 1)
        if np.any(array[bounds[:-1]] != 0) or np.any(array[bounds[1:] - 1] != ends) or np.any(steps < 0):
            raise Unsound(f"{place} does not ascend from 0 to the number of rows that it tells apart")
    if piece.below is not None and array.size:
        filled = np.flatnonzero(np.diff(bounds))
        flat = array.reshape(len(array), -1).max(axis=1) if array.ndim > 1 else array
        most = np.maximum.reduceat(flat, bounds[filled])
        limit = np.broadcast_to(lengths[piece.below], len(bounds) - 1)[filled]
        if np.any(most >= limit):
            worst = int(np.argmax(most >= limit))
            where = _in_cell(place, cells.first + int(filled[worst]))
            raise Unsound(f"{place} holds {int(most[worst])}{where}, where there are {int(limit[worst])}")
    if piece.rows is not None:
        begins = np.zeros(len(array) + 1, np.bool_)
        owner = cells.bounds(piece.rows)
        begins[np.repeat(bounds[:-1], np.diff(owner)) + cells.arrays[piece.rows]] = True
        if np.any((np.diff(array) <= 0) & ~begins[1:-1]):
            raise Unsound(f"{place} does not ascend within a row")
    if piece.total is not None:
        before = np.append(0, np.cumsum(array, dtype=np.int64))[bounds]
        if np.any(np.diff(before) != lengths[piece.total]):
            raise Unsound(f"{place} does not add up to the number of rows that it tells apart")
    if piece.equals is not None:
        expected = np.tile(piece.equals, (len(bounds) - 1,) + (1,) * (array.ndim - 1))
        if not np.array_equal(array, expected):
            raise Unsound(f"{place} is not what the labels ask for")
