"""The rank view: beside the columns of a row, where its values stand among those of training.

Trees do not see a monotone change of a column, and distances do. Normal scores are the same for any such change; beside
the column itself, a metric can weigh each of the two.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache, partial
from statistics import NormalDist
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from localsvm.data.blocks.dataset import Dense, Examples, row_blocks
from localsvm.errors import OptionError
from localsvm.features.base import Transform
from localsvm.naming import opt
from localsvm.store.checking import check
from localsvm.store.pieces import Piece, Pieces, Unsound, floats32, pointer
from localsvm.threads import ALONE, Threads

VIEWS = ("none", "ranks", "auto")
WIDE = 256  # columns; with more, auto keeps them as they are
SAMPLE, SAMPLE_VALUES = 1 << 15, 1 << 23  # rows that knots are found from, and values of these, at most
FEW = 9  # a column of so many different values, or fewer, has no rank worth a column
KNOTS, MOST = 1000, 3.0  # of a column, at most; and the largest score
BLOCK = 1 << 16  # elements worked on at once
_PIECES: Pieces = {
    "columns": Piece("i8", ("ranked",), least=1, low=0, below="features"),
    "knot_ptr": pointer("ranked", "knots"),
    "knots": floats32("knots"),
    "scores": floats32("knots", low=-MOST),
}


@dataclass(frozen=True)
class Ranks(Transform):
    """Rows with the normal scores of some columns behind their own columns: (n, d) become (n, d + r).

    A score is linear between knots, which are quantiles of training rows, and constant beyond the last ones.

    Attributes
    ----------
    ranked : (r,) int64 ascending, the columns that have a score.
    knot_ptr : (r + 1,) int64, where the knots of each begin.
    knots, scores : (k,) float32, ascending in each column, and equal only where they were moved far; and the scores
        there, from -3 to 3.
    """

    ranked: NDArray[np.int64]
    knot_ptr: NDArray[np.int64]
    knots: Dense
    scores: Dense

    @classmethod
    def fit(cls, X: Dense, threads: Threads = ALONE) -> Self | None:
        """The scores of the columns of X (n, d) that have more than FEW values; None where no column has.

        With p the share of the rows below a value, and that of the rows not above it, both between the n - 1 steps from
        the smallest to the largest, the score of the value is the quantile of the normal distribution at the mean of
        the two, clipped at 3 and -3 (as of scikit-learn's QuantileTransformer, but where rows tie at an end).
        """
        found = threads.map(partial(_knots_of, X), X.shape[1])
        ranked = [column for column, knots in enumerate(found) if knots is not None]
        if not ranked:
            return None
        parts = [knots for knots in found if knots is not None]
        ends = np.cumsum([0] + [len(knots) for knots, _ in parts])
        knots, scores = (np.concatenate(each) for each in zip(*parts, strict=True))
        return cls(np.asarray(ranked, np.int64), ends.astype(np.int64), knots, scores)

    def columns(self, width: int) -> int:
        """The columns as they are, and the scores; see `Transform`."""
        return width + len(self.ranked)

    def apply(self, X: Examples, *, in_place: bool = False) -> Examples:
        """The rows and their scores. A row's result depends on that row alone; see `Transform`.

        OptionError where X is sparse: zeros have scores, too.
        """
        if not isinstance(X, np.ndarray):
            raise sparse_error()
        out = np.empty((X.shape[0], self.columns(X.shape[1])), np.float32)
        for rows in row_blocks(X, BLOCK):
            self._fill(X[rows], out[rows])
        return out

    def _fill(self, x: Dense, out: Dense) -> None:
        width = x.shape[1]
        out[:, :width] = x
        for number, column in enumerate(self.ranked.tolist()):
            part = slice(self.knot_ptr[number], self.knot_ptr[number + 1])
            out[:, width + number] = np.interp(x[:, column], self.knots[part], self.scores[part])

    def moved(self, by: NDArray[np.float64]) -> Self:
        """Ranks for rows to which so much (d,) was added."""
        shift = np.repeat(by[self.ranked], np.diff(self.knot_ptr))
        return self if not by.any() else replace(self, knots=(self.knots + shift).astype(np.float32))

    def state(self) -> dict[str, NDArray[Any]]:
        """The arrays that a file keeps."""
        return {"columns": self.ranked, "knot_ptr": self.knot_ptr, "knots": self.knots, "scores": self.scores}

    @classmethod
    def from_state(cls, state: Mapping[str, NDArray[Any]], features: int) -> Self:
        """Ranks with this `state()`, of rows with so many columns; Unsound if they do not fit."""
        check("/ranks", _PIECES, state, {"features": features})
        ranks = cls(*(np.ascontiguousarray(state[name]) for name in _PIECES))
        within = np.ones(len(ranks.knots), np.bool_)
        within[ranks.knot_ptr[:-1]] = False
        if np.any(np.diff(ranks.knot_ptr) < 1) or np.any((np.diff(ranks.knots) < 0) & within[1:]):
            raise Unsound("/ranks/knots do not ascend")
        if np.any(np.diff(ranks.ranked) <= 0):
            raise Unsound("/ranks/columns do not ascend")
        if np.any((np.diff(ranks.scores) < 0) & within[1:]) or ranks.scores.max() > MOST:
            raise Unsound("/ranks/scores do not ascend up to 3")
        return ranks


def sparse_error() -> OptionError:
    """The error of ranks for sparse rows."""
    return OptionError(
        f"{opt.views('ranks')} needs dense rows, and these are sparse; give {opt.views('none')}, or "
        f"{opt.scale('zscore')}, which makes them dense"
    )


def sample_rows(features: int) -> int:
    """Number of rows, of so many columns, that knots are found from at most."""
    return max(1, min(SAMPLE, SAMPLE_VALUES // max(1, features)))


def _knots_of(X: Dense, column: int) -> tuple[Dense, Dense] | None:
    """Knots and scores of a column; None for one of few values."""
    values = np.sort(X[:, column].astype(np.float64))
    if np.count_nonzero(np.diff(values)) < FEW:
        return None
    count = min(KNOTS, len(values))
    at = np.arange(count) * (len(values) - 1) / (count - 1)  # whole at rows: shares of 1 times rows would not be
    below = np.minimum(at.astype(np.int64), len(values) - 2)
    quantiles = values[below] + (at - below) * (values[below + 1] - values[below])
    knots, first = np.unique(quantiles.astype(np.float32), return_index=True)
    last = np.append(first[1:], len(quantiles)) - 1
    return knots, _scores(count)[first + last]


@cache
def _scores(knots: int) -> Dense:
    """Normal scores (2 knots - 1,) at steps of half the one from knot to knot."""
    quantile = NormalDist().inv_cdf
    inner = [quantile(place / (2 * (knots - 1))) for place in range(1, 2 * (knots - 1))]
    return np.clip([-MOST, *inner, MOST], -MOST, MOST).astype(np.float32)
