"""Columns that are read from an origin, as float32 would lose their digits (see data.readers.origin)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from localsvm.data.blocks.columns import Columns
from localsvm.data.blocks.dataset import Examples
from localsvm.data.blocks.shift import Shift
from localsvm.data.readers.origin import shifted
from localsvm.features.base import Transform
from localsvm.store.checking import check
from localsvm.store.pieces import floats64


@dataclass(frozen=True)
class Origin(Transform):
    """Origin that is subtracted from rows in float64, before they are rounded to float32.

    Attributes
    ----------
    values : (d,) float64, of the columns that are kept; None where nothing is subtracted.
    kept : (d,) int64, which these are of the columns of a row; None for all.
    """

    values: NDArray[np.float64] | None = None
    kept: Columns | None = None

    @classmethod
    def fit(cls, shift: Shift | None, kept: Columns | None, features: int) -> Self:
        """Origin by the shift of readers, in the columns that are kept, of which there are `features`."""
        return cls(None if shift is None else shift.whole(features), kept)

    @property
    def shift(self) -> Shift | None:
        """Shift in the columns that are kept, as readers take it."""
        return Shift.of(self.values)

    def apply(self, X: Examples, *, in_place: bool = False) -> Examples:
        """Rows in float32, their origin subtracted; see `Transform`.

        X may be of float64, and the origin is subtracted before values are rounded. X is never changed.
        """
        shift = self.shift
        return shifted(X, shift if shift is None or self.kept is None else shift.within(self.kept))

    def state(self) -> dict[str, np.ndarray]:
        """The origin, where there is one; see `Transform`."""
        return {} if self.values is None else {"origin": self.values}

    @classmethod
    def from_state(cls, values: NDArray[Any] | None, kept: Columns | None, features: int) -> Self:
        """The origin with this `state()`; Unsound if it does not fit."""
        if values is not None:
            check("/scaling", {"origin": floats64("features")}, {"origin": values}, {"features": features})
        return cls(values, kept)
