"""The pinball loss of residuals at some levels, each less a constant: their quantile, for which the loss is least."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
TINY = 1e-300
COMMON = 0.95  # share of the rows that are of the usual size
LARGE = 10.0  # times the mean of these, from which a row is far


def quantile(y: Floats, weight: Floats, level: float) -> float:
    """The smallest of the values y (n,) up to which there is at least a share `level` of the weight (n,)."""
    order = np.argsort(y, kind="stable")
    reached = np.cumsum(weight[order])
    return float(y[order[min(int(np.searchsorted(reached, level * reached[-1])), len(y) - 1)]])


def far_from_0(y: Floats, weight: Floats) -> float:
    """The size above 0 beyond which values y (n,) are far from nearly all others: an outlier does not change it."""
    size = np.abs(y)
    common = np.minimum(size, quantile(size, weight, COMMON))
    mean = float(common @ weight) / max(float(weight.sum()), TINY)
    return LARGE * mean or float(size.max(initial=0.0)) or 1.0


def pinball(left: Floats, levels: Sequence[float], others: Floats) -> Floats:
    """Mean loss (n,) over the levels of residuals (n,), less the quantiles of others (m,)."""
    weight = np.ones(len(others))
    apart = [left - quantile(others, weight, level) for level in levels]
    return np.asarray(np.mean([r * (level - (r < 0.0)) for r, level in zip(apart, levels, strict=True)], axis=0))


def pinball_slope(left: Floats, weight: Floats, levels: Sequence[float]) -> Floats:
    """Derivative (n,) of the mean pinball loss over the levels by residuals (n,), less their own quantiles.

    weight : (n,), of each row in the loss.
    """
    slopes = np.zeros((len(levels), len(left)))
    for slope, level in zip(slopes, levels, strict=True):
        apart = left - quantile(left, weight, level)
        slope[:] = weight * (level - (apart < 0.0))
        at = apart == 0.0  # the constant goes along with these rows, where the loss of all has its least
        slope[at] = weight[at] * (-slope[~at].sum() / max(float(weight[at].sum()), TINY))
    return np.asarray(slopes.mean(axis=0))
