"""Scaling of features: learned from the training rows, stored in the model, applied to all rows that the model sees.

A feature that is constant in training says nothing, like one that never occurs there. So `std`, `zscore` and `minmax`
give it the factor 0: it is 0 in every scaled row, whatever a test file holds.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from numpy.typing import NDArray

from localsvm.data.blocks.dataset import Dense, Examples, densify, is_dense, places_of, row_blocks, sparse_examples
from localsvm.errors import DataError, OptionError
from localsvm.features.base import Transform
from localsvm.features.moments import Moments, moments_bytes, moments_of
from localsvm.store.checking import check
from localsvm.store.pieces import Pieces, Unsound, floats32
from localsvm.threads import ALONE, Threads

MODES = ("std", "none", "zscore", "minmax", "row")
MEASURED = ("std", "zscore", "minmax")  # those that have to be learned
CENTRED = ("zscore", "minmax")  # those that undo a shift of all rows
LARGEST = np.finfo(np.float32).max
OFF_CENTRE, SAMPLE = 100.0, 4096  # see off_centre_columns
BLOCK = 1 << 20  # elements worked on at once: bounds temporary arrays
NEAR = 1 << 16  # as many, of which temporary arrays stay in the cache
DENSIFY_BYTES = 1 << 33  # the largest dense matrix that scaling makes of a sparse one
Vector = npt.NDArray[np.float64]
_FACTOR, _OFFSET = floats32("features", low=0), floats32("features")
_PIECES: dict[str, Pieces] = {
    "std": {"factor": _FACTOR},
    "zscore": {"factor": _FACTOR, "offset": _OFFSET},
    "minmax": {"factor": _FACTOR, "offset": _OFFSET},
}


@dataclass(frozen=True)
class Scaling(Transform):
    """Map x -> (x - offset) * factor for each feature, in float32; or x -> x / |x| for each row.

    Attributes
    ----------
    mode : str
        "std": factor 1/s and no offset, so that sparse rows stay sparse; s is the population standard deviation
        (ddof 0, zeros counted), computed in float64.
        "zscore": offset the mean, factor 1/s. "minmax": onto [-1, 1] as svm-scale does it, with the middle of the
        range as offset and the factor 2 / (max - min). Both make sparse rows dense.
        "row": each row is divided by its Euclidean norm; zero rows stay as they are. "none": nothing is changed.
    factor, offset : (d,) float32 or None
        None where the mode has none.
    """

    mode: str
    factor: Dense | None = None  # (d,)
    offset: Dense | None = None  # (d,)

    @classmethod
    def fit(cls, moments: Moments | None, mode: str) -> Self:
        """The scaling of the rows with these moments, which only the modes MEASURED ask for.

        OptionError where there is no such mode.
        """
        if mode not in MODES:
            raise OptionError(f"unknown scaling {mode!r}; choose one of {', '.join(MODES)}")
        if mode not in MEASURED:
            return cls(mode)
        assert moments is not None, "of a mode that asks for them"
        if mode == "minmax":
            return cls._from_range(moments.low, moments.high)
        return cls._from_moments(mode, moments.low, moments.high, moments.mean, moments.deviation)

    @classmethod
    def _from_range(cls, low: Vector, high: Vector) -> Self:
        half = (high - low) / 2
        return cls("minmax", _inverse(half, low, high), (low + half).astype(np.float32))

    @classmethod
    def _from_moments(cls, mode: str, low: Vector, high: Vector, mean: Vector, deviation: Vector) -> Self:
        factor = _inverse(deviation, low, high)
        return cls(mode, factor, mean.astype(np.float32) if mode == "zscore" else None)

    def without(self, columns: NDArray[np.int64]) -> Self:
        """The scaling that leaves these columns as they are; "row" and "minmax" do not."""
        if self.mode not in ("std", "zscore") or not len(columns) or self.factor is None:
            return self
        factor = self.factor.copy()
        factor[columns] = np.where(factor[columns] > 0, np.float32(1), np.float32(0))
        return replace(self, factor=factor)

    def apply(self, X: Examples, *, in_place: bool = False) -> Examples:
        """The scaled rows (n, d). A row's result depends on that row alone.

        Parameters
        ----------
        X : (n, d) Examples
            With as many columns as the scaling was learned from; DataError otherwise.
        in_place : bool
            Overwrite and return a dense X. A sparse X is never changed.

        Returns
        -------
        rows : (n, d) Examples
            X itself if there is nothing to do. Sparse results share the indices of X; zscore and minmax return dense
            ones.
        """
        if self.factor is not None and X.shape[1] != len(self.factor):
            what = f"the examples have {X.shape[1]} features, the scaling {len(self.factor)}"
            raise DataError(f"{what}; read them with n_features={len(self.factor)}")
        if self.mode == "none":
            return X
        with np.errstate(over="ignore"):  # what is too large becomes infinite, and is looked for where it matters
            if not isinstance(X, np.ndarray):
                return self._apply_sparse(X)
            out = X if in_place else np.empty_like(X)
            for rows in row_blocks(X, NEAR):
                self._scale(X[rows], out[rows])
            return out

    def _scale(self, x: Dense, out: Dense) -> None:
        if self.factor is None:
            wide = x.astype(np.float64)
            squares = np.einsum("ij,ij->i", wide, wide)  # three times as fast as a sum of squares
            out[:] = np.multiply(wide, _inverse_roots(squares)[:, None], out=wide)
            return
        if self.offset is not None:
            x = np.subtract(x, self.offset, out=out)
            np.clip(x, -LARGEST, LARGEST, out=x)  # what is infinite could not be multiplied by 0
        np.multiply(x, self.factor, out=out)

    def _apply_sparse(self, X: Any) -> Examples:
        if self.offset is not None:
            return self._densify(X)
        values = np.empty_like(X.data)
        for rows in row_blocks(X, BLOCK):
            bounds = X.indptr[rows.start : rows.stop + 1]
            span = slice(bounds[0], bounds[-1])
            if self.factor is None:
                inverse = _inverse_roots(_sparse_squares(X.data[span], bounds))
                np.multiply(X.data[span], np.repeat(inverse, np.diff(bounds)), out=values[span], casting="same_kind")
            else:
                np.multiply(X.data[span], self.factor[X.indices[span]], out=values[span])
        return sparse_examples(values, X.indices, X.indptr, X.shape[1])

    def _densify(self, X: Any) -> Dense:
        check_dense_size(X.shape[0], X.shape[1], False, self.mode)
        out = np.empty(X.shape, np.float32)
        for rows in row_blocks(out, BLOCK):
            densify(X, rows, out[rows])
            self._scale(out[rows], out[rows])
        return out

    def moved(self, by: Vector) -> Self:
        """Scaling for rows from which so much (d,) more was subtracted; without an offset it is the same."""
        return self if self.offset is None else replace(self, offset=(self.offset - by).astype(np.float32))

    def state(self) -> dict[str, np.ndarray]:
        """The arrays to store besides the mode: "factor" and "offset", as far as the mode has them."""
        arrays = {"factor": self.factor, "offset": self.offset}
        return {name: array for name, array in arrays.items() if array is not None}

    @classmethod
    def from_state(cls, mode: str, state: Mapping[str, np.ndarray], features: int) -> Self:
        """The scaling with this mode and this `state()`, of so many features; Unsound if they do not fit."""
        if mode not in MODES:
            raise Unsound(f"the scaling {mode!r} is not known to this version")
        check("/scaling", _PIECES.get(mode, {}), state, {"features": features})
        return cls(mode, **dict(state))


def off_centre_columns(X: Examples) -> int:
    """Number of columns of scaled rows at OFF_CENTRE deviations from 0 or more, by SAMPLE rows spread over all."""
    rows = np.arange(0, X.shape[0], max(1, X.shape[0] // SAMPLE))
    if isinstance(X, np.ndarray):
        part = X[rows].astype(np.float64)
        mean, deviation = part.mean(axis=0), part.std(axis=0)
    else:
        _, places = places_of(X, rows)
        values, index, n = X.data[places].astype(np.float64), X.indices[places], X.shape[1]
        mean = np.bincount(index, values, n) / len(rows)
        squares = np.bincount(index, np.square(values - mean[index]), n)
        squares += (len(rows) - np.bincount(index, minlength=n)) * np.square(mean)
        deviation = np.sqrt(squares / len(rows))
    return int(np.count_nonzero((np.abs(mean) >= OFF_CENTRE * deviation) & (deviation > 0)))


def check_dense_size(rows: int, features: int, dense: bool, mode: str) -> None:
    """Raise DataError where a scaling would make more than 8 GiB of dense values of so many sparse rows."""
    size = 4 * rows * features
    if mode in CENTRED and not dense and size > DENSIFY_BYTES:
        what = f"{mode} scaling would turn these sparse examples into {size / 2**30:.1f} GiB of dense ones"
        raise DataError(f"{what}; scale by std, row or none, which keep them sparse")


def scaling_of(X: Examples, mode: str, threads: Threads = ALONE) -> Scaling:
    """The scaling of all rows X (n, d), n >= 1. The bits do not depend on the number of threads.

    Raises
    ------
    OptionError : as `fit`.
    DataError : X is sparse, and zscore or minmax would make more than 8 GiB of dense values of it.
    """
    check_dense_size(X.shape[0], X.shape[1], is_dense(X), mode)
    return Scaling.fit(moments_of(X, threads) if mode in MEASURED else None, mode)


def made_bytes(X: Any, mode: str, threads: int = 1) -> int:
    """Bytes that scaling makes in memory beside X: moments of its rows, and the scaled rows of a sparse X in memory."""
    size = moments_bytes(X, threads) if mode in MEASURED else 0
    if mode == "none" or is_dense(X):
        return size
    return size + int(4 * X.shape[0] * X.shape[1] if mode in CENTRED else 4 * X.nnz)


def _inverse(spread: Vector, low: Vector, high: Vector) -> Dense:
    """Inverse 1 / spread, 0 for constant columns, at most the largest float32."""
    inverse = np.divide(1.0, spread, out=np.zeros_like(spread), where=(low < high) & (spread > 0))
    return np.minimum(inverse, np.finfo(np.float32).max).astype(np.float32)


def _inverse_roots(squares: Vector) -> Vector:
    """Inverse 1 / |x| in float64 for the squared norm of every row; 1 for zero rows."""
    return 1.0 / np.sqrt(np.where(squares > 0, squares, 1.0))


def _sparse_squares(values: Dense, bounds: npt.NDArray[np.int64]) -> Vector:
    """Squared norms of CSR rows with these values; `bounds` are their row pointers, which need not start at 0."""
    squares = np.zeros(len(bounds) - 1)
    filled = np.flatnonzero(np.diff(bounds))
    if len(filled):
        squares[filled] = np.add.reduceat(np.square(values, dtype=np.float64), bounds[filled] - bounds[0])
    return squares
