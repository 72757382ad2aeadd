"""The columns that occur in training: those in which some row is not 0. Methods see these alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from localsvm.data.blocks.columns import Columns, dense_copy, keep_columns, occurring, widened
from localsvm.data.blocks.dataset import Dataset, Examples, as_examples, is_dense, prefers_dense
from localsvm.features.base import Transform
from localsvm.store.checking import check
from localsvm.store.pieces import Piece, Unsound

MOST_FEATURES = (1 << 31) - 1  # the largest index of a data file
Announce = Callable[[int], None]  # called with the bytes that dense rows take, before they are made of sparse ones


def _silent(size: int) -> None:
    """Announce nothing."""


@dataclass(frozen=True)
class KeptColumns(Transform):
    """Rows of the columns that training knows, dense or sparse as rows were there: bits depend on it.

    Attributes
    ----------
    kept : (d,) int64, ascending; None where these are all.
    width : how many columns rows have before.
    dense : whether rows become dense.
    """

    kept: Columns | None
    width: int
    dense: bool

    @classmethod
    def fit(cls, data: Dataset, announce: Announce = _silent) -> Self:
        """Leave out the columns of X in which all rows are 0; data.columns notes the others, None where all occur.

        A dense X is changed in place. A sparse X becomes dense where that is better for the columns that are left.
        """
        width = data.X.shape[1]
        _keep(data, occurring(data.X), announce)
        return cls(data.columns, width, is_dense(data.X))

    @classmethod
    def of(cls, data: Dataset, width: int) -> Self:
        """The columns that rows were read with, of `width`."""
        return cls(data.columns, width, is_dense(data.X))

    def narrow(self, data: Dataset, announce: Announce = _silent) -> Self:
        """Keep the same columns of other rows, as `fit` leaves them; those that X is too narrow for are 0."""
        columns, (rows, width) = self.known, data.X.shape
        needed = int(columns[-1]) + 1
        if width < needed:
            announce(4 * rows * needed if isinstance(data.X, np.ndarray) else 0)
            data.X = widened(data.X, needed)
        _keep(data, columns, announce)
        return type(self).of(data, max(width, needed))

    @property
    def known(self) -> Columns:
        """Kept columns (d,), also where these are all."""
        return np.arange(self.width) if self.kept is None else self.kept

    def apply(self, X: Examples, *, in_place: bool = False) -> Examples:
        """Rows in the columns that are kept, dense or sparse as in training; see `Transform`."""
        X = X if self.kept is None else keep_columns(X, self.kept, in_place=in_place)
        if self.dense == isinstance(X, np.ndarray):
            return X
        return sparse.csr_array(X).toarray() if self.dense else as_examples(sparse.csr_array(X))

    def places(self, columns: Sequence[int]) -> NDArray[np.int64]:
        """Places, among those that are kept, of these columns; of those that are left out there are none."""
        return np.flatnonzero(np.isin(self.known, columns)).astype(np.int64)

    def columns(self, width: int) -> int:
        """Number of columns that are kept; see `Transform`."""
        return self.width if self.kept is None else len(self.kept)

    def state(self) -> dict[str, np.ndarray]:
        """The kept columns, where some are left out."""
        return {} if self.kept is None else {"columns": self.kept}

    @classmethod
    def from_state(cls, kept: NDArray[Any] | None, features: int, width: int | None, dense: bool) -> Self:
        """The columns that a file keeps; Unsound if they do not fit.

        features, width : how many are kept, and of how many; width None where it is not known, or all are.
        """
        if kept is None:
            return cls(None, features, dense)
        check_columns(kept, features)
        if width is not None and not kept[-1] < width <= MOST_FEATURES:
            raise Unsound("/columns are not below the option width")
        return cls(kept, int(kept[-1]) + 1 if width is None else width, dense)


def check_columns(columns: NDArray[Any], features: int) -> None:
    """Raise Unsound unless these are so many columns of a data file, ascending."""
    check("", {"columns": Piece("i8", ("features",), low=0)}, {"columns": columns}, {"features": features})
    if np.any(np.diff(columns) <= 0) or columns[-1] >= MOST_FEATURES:
        raise Unsound("/columns are not ascending column numbers")


def _keep(data: Dataset, columns: Columns, announce: Announce) -> None:
    if len(columns) == data.X.shape[1]:
        return
    X: Any = keep_columns(data.X, columns, in_place=True)
    if not is_dense(X) and prefers_dense(X.shape[0], X.shape[1], X.nnz):
        announce(4 * X.shape[0] * X.shape[1])
        X = dense_copy(X)
    data.X, data.columns = X, columns
    data.shift = None if data.shift is None else data.shift.among(columns)
