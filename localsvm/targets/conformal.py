"""Intervals and sets of labels that promise a coverage, by held-out values: split conformal prediction.

A score says how far a row's truth is from its answer. With n held-out rows, Q is the ceil(c (n + 1))-th smallest of
their scores, where a row that stands for several counts as often; answers
within Q hold the truth of a new row with a probability of c at least, if it comes from where they
came (Vovk, Gammerman and Shafer 2005). Of values the score is how far outside of two quantiles the value is,

    max(low(x) - y, y - high(x)),    the interval [low(x) - Q, high(x) + Q]    (Romano, Patterson and Candes 2019),

and of classes 1 - p of the true class: the set has all labels with p >= 1 - Q, and the most probable one.

Held-out values are those of fold models. The model of all rows is better than these, and its intervals are narrower by
a factor r, which a learning curve of the training rows says. They have chosen gamma and C, too: the promise is kept
within a point in practice, and is no theorem then (docs/coverage.md).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from localsvm.errors import DataError, OptionError
from localsvm.naming import opt

Values = NDArray[np.float64]
LEVELS = (*(k / 100 for k in range(50, 100)), 0.995, 0.999)  # coverages that a model can promise
KIND = "conformal"
ROUNDING = 1e-9  # of a rank, as a share of the rows


@dataclass(frozen=True)
class Coverage:
    """Margins that make answers cover the truth.

    Attributes
    ----------
    levels : (k,) float64 ascending, coverages.
    margins : (k,) float64, Q of each.
    shrink : factor r on the widths of intervals.
    """

    levels: Values
    margins: Values
    shrink: float = 1.0

    @classmethod
    def of(cls, scores: Values, asked: float, weight: Values | None = None) -> Self:
        """Margins by the scores of held-out rows (n,); those of the levels that so many rows can promise.

        weight (n,): how many rows each score stands for; None for one. DataError where they cannot promise what is
        asked for.
        """
        order = np.argsort(scores, kind="stable")
        up_to = np.cumsum(np.ones(len(scores)) if weight is None else weight[order])
        n = float(up_to[-1]) if len(up_to) else 0.0
        levels = np.asarray(sorted({*LEVELS, asked}))
        check_rows(n, asked)
        rank = _ranks(levels, n)
        place = np.searchsorted(up_to, rank[rank <= n])
        return cls(levels[rank <= n], scores[order[place]])

    @classmethod
    def from_state(cls, arrays: Mapping[str, NDArray[Any]]) -> Self:
        """Make it from the arrays that the model file keeps."""
        return cls(arrays["levels"], arrays["margins"], float(arrays["shrink"][0]))

    def state(self) -> dict[str, NDArray[Any]]:
        """The arrays that the model file keeps."""
        arrays = {"levels": self.levels, "margins": self.margins}
        return arrays if self.shrink == 1.0 else arrays | {"shrink": np.asarray([self.shrink])}

    def margin(self, level: float) -> float:
        """Q of the smallest coverage that is not below a level; OptionError for one that the model cannot promise."""
        place = int(np.searchsorted(self.levels, level - 1e-12))
        if place == len(self.levels) or not level > 0.0:
            what = f"the model promises coverages from {self.levels[0]:g} to {self.levels[-1]:g}"
            raise OptionError(f"{opt.coverage(level)}: {what}; give one of these")
        return float(self.margins[place])


def check_rows(n: float, asked: float) -> None:
    """Raise DataError where so many held-out rows cannot promise a coverage."""
    if _ranks(np.asarray([asked]), n)[0] > n:
        raise DataError(f"{n:g} held-out rows cannot promise {opt.coverage(asked)}: give more rows, or a smaller one")


def _ranks(levels: Values, n: float) -> Values:
    """Least numbers of scores, of n, up to a margin that promises these coverages."""
    return np.asarray((levels - ROUNDING) * (n + 1.0))


def label_sets(p: Values, margin: float) -> NDArray[np.bool_]:
    """Sets of labels (n, classes) by their probabilities, and Q: each has the most probable one, so none is empty."""
    sets: NDArray[np.bool_] = p >= 1.0 - margin
    sets[np.arange(len(p)), p.argmax(axis=1)] = True
    return sets
