"""Descriptions of the arrays of a file, each made once by whom it belongs to, and checked before anything uses it.

A `Piece` says the dtype, the shape and the values of one array. Names in shapes are lengths: those of one name are
equal, and those that are `known` (as "features") have that value. So a cell of a kernel method is, in part,

    "support": floats32("s", "features"), "coef_ptr": pointer("m", "k"), "coef_index": index("k", below="s")

Arrays come by cells: each has the rows of many cells one after another, and all cells are checked at once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING, Any, TypeAlias

from localsvm.errors import ModelError

if TYPE_CHECKING:
    from numpy.typing import NDArray

Array: TypeAlias = "NDArray[Any]"
Lengths: TypeAlias = dict[str, Any]  # by name: a number, or (cells,) where cells differ
Length: TypeAlias = int | str | tuple[str, int] | Callable[[Lengths], Any]


class Unsound(ModelError):
    """A file's content is none that localsvm writes; the message says where and what, without the file's name."""


@dataclass(frozen=True)
class Piece:
    """One array.

    Attributes
    ----------
    dtype : as "f4"; stored little-endian.
    shape : a number, a name of a length, one with what is added to it, or a function of all lengths.
    least, most : rows of a cell.
    low, high : the smallest and the largest value.
    below : a length that whole numbers stay below.
    nan : whether "not a number" may be among the values.
    ends : row pointers: in each cell they ascend from 0 to this length.
    rows : whole numbers that ascend strictly within each of the rows that this array of pointers tells apart.
    value : all values of a cell are one number, from 1, which is the length of this name.
    total : the values of each cell add up to this length.
    equals : what the rows of each cell are.
    """

    dtype: str
    shape: tuple[Length, ...]
    least: int = 0
    most: Callable[[Lengths], Any] | None = None
    low: float = -inf
    high: float = inf
    below: str | None = None
    nan: bool = False
    ends: str | None = None
    rows: str | None = None
    value: str | None = None
    total: str | None = None
    equals: Array | None = None


Pieces: TypeAlias = Mapping[str, Piece]


def floats32(*shape: Length, least: int = 0, low: float = -inf) -> Piece:
    """Finite numbers."""
    return Piece("f4", shape, least, low=low)


def floats64(*shape: Length, least: int = 0, low: float = -inf, high: float = inf, nan: bool = False) -> Piece:
    """Finite numbers, or with `nan` also "not a number"."""
    return Piece("f8", shape, least, low=low, high=high, nan=nan)


def index(*shape: Length, below: str, low: int = 0) -> Piece:
    """Positions (int32) in something that has so many."""
    return Piece("i4", shape, low=low, below=below)


def pointer(rows: str, ends: str) -> Piece:
    """Row pointers (int64) of so many rows, from 0 to the length `ends`."""
    return Piece("i8", ((rows, 1),), low=0, ends=ends)
