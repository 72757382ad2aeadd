"""A metric: a linear map of the scaled rows.

The Euclidean distance after it is the one that partition, routing, kernels and linear methods see.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from localsvm.data.blocks.dataset import Dense, Examples, row_blocks, sparse_examples
from localsvm.errors import OptionError
from localsvm.features.base import Transform
from localsvm.kernels import PRODUCTS
from localsvm.kernels._kernels import Panels, aligned, padded
from localsvm.store.checking import check
from localsvm.store.pieces import Pieces, Unsound, floats32

BLOCK = 1 << 20  # elements worked on at once: bounds temporary arrays
WEIGHTS, MATRIX = "weights", "matrix"
_PIECES: dict[str, Pieces] = {
    WEIGHTS: {WEIGHTS: floats32("features")},
    MATRIX: {MATRIX: floats32("features", "rank", least=1)},
}


@dataclass(frozen=True)
class Metric(Transform):
    """Linear map x -> w x, feature by feature, or x -> M' x: rows (n, d) become (n, d) or (n, r).

    Attributes
    ----------
    values : (d,) float32, a weight for each feature, or (d, r) float32, the matrix M with 1 <= r <= d.
    """

    values: Dense

    @property
    def kind(self) -> str:
        """Kind of `values`: "weights" or "matrix"."""
        return WEIGHTS if self.values.ndim == 1 else MATRIX

    @property
    def mixes(self) -> bool:
        """True for a matrix."""
        return self.kind == MATRIX

    @property
    def features(self) -> int:
        """Number of columns of the rows before they are mapped."""
        return len(self.values)

    @property
    def rank(self) -> int:
        """Number of columns of the mapped rows."""
        return int(self.values.shape[-1])

    def columns(self, width: int) -> int:
        """Number of columns of the mapped rows; see `Transform`."""
        return self.rank

    def importance(self) -> NDArray[np.float64]:
        """Importance (d,) float64 of each feature: its weight, or the length of its row of the matrix."""
        wide = self.values.astype(np.float64)
        return np.asarray(np.abs(wide) if self.kind == WEIGHTS else np.sqrt(np.square(wide).sum(axis=1)))

    @np.errstate(over="ignore")
    def apply(self, X: Examples, *, in_place: bool = False) -> Examples:
        """The mapped rows. A row's result depends on that row alone.

        Parameters
        ----------
        X : (n, d) float32, scaled. OptionError where X is sparse and the metric is a matrix. What is beyond float32
            becomes infinite, as in scaling.
        in_place : overwrite and return a dense X where the columns stay as many. A sparse X is never changed.
        """
        if not isinstance(X, np.ndarray):
            if self.kind == MATRIX:
                raise OptionError("a metric that mixes features needs dense rows, and these are sparse; use diag")
            return sparse_examples(X.data * self.values[X.indices], X.indices, X.indptr, X.shape[1])
        square = self.rank == X.shape[1]
        out = X if in_place and square else np.empty((X.shape[0], self.rank), np.float32)
        panels = None if self.kind == WEIGHTS else Panels(np.ascontiguousarray(self.values.T), PRODUCTS)
        for rows in row_blocks(X, BLOCK):
            if panels is None:
                np.multiply(X[rows], self.values, out=out[rows])
            else:
                block = aligned((rows.stop - rows.start, padded(panels.size)), np.float32)
                panels.products(X[rows], block)
                out[rows] = block[:, : self.rank]
        return out

    def state(self) -> dict[str, NDArray[Any]]:
        """The arrays to store besides `kind`."""
        return {self.kind: self.values}

    @classmethod
    def from_state(cls, kind: str, state: Mapping[str, NDArray[Any]], features: int) -> Self:
        """The metric of this kind and `state()`, of so many features; Unsound if they do not fit."""
        if kind not in _PIECES:
            raise Unsound(f"the metric {kind!r} is not known to this version")
        lengths = check("/metric", _PIECES[kind], state, {"features": features})
        if kind == MATRIX and not 1 <= int(np.max(lengths["rank"])) <= features:
            raise Unsound(f"/metric/{MATRIX} has no column, or more columns than features")
        return cls(np.ascontiguousarray(state[kind]))


def mean_importance(metrics: Sequence[Metric]) -> NDArray[np.float64]:
    """Importance (d,) float64 of each feature in the mean over some metrics; see `Metric.importance`."""
    first, *others = metrics
    return np.asarray(sum((each.importance() for each in others), first.importance()) / len(metrics))
