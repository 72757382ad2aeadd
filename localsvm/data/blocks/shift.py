"""Columns that are read from an origin, and what is subtracted from their values (see data.readers.origin)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Shift:
    """Some columns and their origins; at least one.

    Attributes
    ----------
    columns : (k,) int64, ascending.
    origin : (k,) float64.
    """

    columns: NDArray[np.int64]
    origin: NDArray[np.float64]

    @classmethod
    def of(cls, whole: NDArray[np.float64] | None) -> Shift | None:
        """Shift by the origin `whole` (d,) of all columns, 0 where a column has none; None where no column has one."""
        columns = np.flatnonzero(np.empty(0) if whole is None else whole)
        return cls(columns, whole[columns]) if whole is not None and len(columns) else None

    def whole(self, features: int) -> NDArray[np.float64]:
        """The origin (features,) of all columns, 0 where there is none."""
        out = np.zeros(features)
        out[self.columns] = self.origin
        return out

    def where(self, kept: NDArray[np.bool_]) -> Shift | None:
        """Shift of some of its columns, by a mask (k,); None without any."""
        return Shift(self.columns[kept], self.origin[kept]) if kept.any() else None

    def among(self, columns: NDArray[np.int64]) -> Shift | None:
        """Shift for rows that have these columns alone, ascending; None where none of its columns is left."""
        places = np.searchsorted(columns, self.columns)
        kept = np.isin(self.columns, columns)
        remaining = self.where(kept)
        return None if remaining is None else Shift(places[kept].astype(np.int64), remaining.origin)

    def within(self, columns: NDArray[np.int64]) -> Shift:
        """Shift for the rows that its own rows were cut from, `columns` being those that were kept: undoes `among`."""
        return Shift(columns[self.columns], self.origin)
