"""Sums over rows that component-wise kernels are scored by, one feature at a time, along sorted values.

For a feature, rows x_i with factors b_i and anchors c:  s(c) = sum_i b_i h(|x_i - c|) (x_i - c). With u = x - c, h is
0 beyond a radius for the linear and the square map, and a polynomial in u on either side of 0 within: moments of bins
as wide as the radius, summed up along the bins, give the sums. The exponential map goes along the values in both
directions, as exp(-g u) decays from each to the next. Both take O((n + anchors) log n). The Gaussian is summed up
directly.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
BLOCK = 1 << 20  # differences in memory at once


def component_sums(kind: str, gamma: float, X: Floats, b: Floats, A: Floats) -> Floats:
    """Sums s (anchors, d) float64 for rows X (n, d), factors b (n,) and anchors A (anchors, d)."""
    if kind == "exponential":
        return _along(gamma, X, b, A)
    if kind == "gaussian":
        return _direct(gamma, X, b, A)
    if kind == "plain":
        return np.asarray(b @ X - b.sum() * A)
    radius = 1.0 / gamma if kind == "linear" else 1.0 / np.sqrt(gamma)
    columns = [_within(kind, gamma, radius, *pair) for pair in ((X[:, j], b, A[:, j]) for j in range(X.shape[1]))]
    return np.stack(columns, axis=1) if columns else np.zeros(A.shape)


def _direct(gamma: float, X: Floats, b: Floats, A: Floats) -> Floats:
    out = np.empty(A.shape)
    step = max(1, BLOCK // max(1, len(X)))
    for j in range(X.shape[1]):
        for first in range(0, len(A), step):
            moved = X[:, j] - A[first : first + step, j, None]
            out[first : first + step, j] = (np.exp(-gamma * np.square(moved)) * moved) @ b
    return out


def _along(gamma: float, X: Floats, b: Floats, A: Floats) -> Floats:
    """Sums of all features at once for the exponential map.

    E0 and E1 are sum_i b_i u_i^p exp(-gamma u_i), p = 0 and 1, over the rows passed.
    """
    points = np.concatenate([X, A])
    order = np.argsort(points, axis=0, kind="stable")
    values = np.take_along_axis(points, order, axis=0)
    factors = np.concatenate([b, np.zeros(len(A))])[order]
    steps = np.diff(values, axis=0)
    decay = np.exp(-gamma * steps)
    before, after = _passed(factors, steps, decay), _passed(factors[::-1], steps[::-1], decay[::-1])[::-1]
    sums = np.empty(points.shape)
    np.put_along_axis(sums, order, after - before, axis=0)
    return sums[len(X) :]


def _passed(factors: Floats, steps: Floats, decay: Floats) -> Floats:
    out = np.zeros(factors.shape)
    e0, e1 = np.zeros(factors.shape[1]), np.zeros(factors.shape[1])
    for i in range(len(steps)):
        e0 = e0 + factors[i]
        e1 = decay[i] * (e1 + steps[i] * e0)
        e0 = decay[i] * e0
        out[i + 1] = e1
    return out


def _within(kind: str, gamma: float, radius: float, x: Floats, b: Floats, c: Floats) -> Floats:
    """Sums of one feature, for a map that is 0 from the radius on."""
    order = np.argsort(x, kind="stable")
    x, b = x[order], b[order]
    bins = np.floor(x / radius)
    local = x - (bins + 0.5) * radius
    powers = b * local ** np.arange(4)[:, None]
    moments = np.concatenate([np.zeros((4, 1)), np.cumsum(powers, axis=1)], axis=1)
    out = np.zeros(len(c))
    low, middle, high = (np.searchsorted(x, c + t) for t in (-radius, 0.0, radius))
    home = np.floor(c / radius)
    for bin in (home - 1, home, home + 1):
        first, last = np.searchsorted(bins, bin), np.searchsorted(bins, bin, side="right")
        moved = (bin + 0.5) * radius - c
        for side, (begin, end) in ((-1.0, (low, middle)), (1.0, (middle, high))):
            begin, end = np.clip(begin, first, last), np.clip(end, first, last)
            m = moments[:, end] - moments[:, begin]
            one = m[1] + moved * m[0]
            if kind == "linear":
                out += one - side * gamma * (m[2] + moved * (2.0 * m[1] + moved * m[0]))
            else:
                out += one - gamma * (m[3] + moved * (3.0 * m[2] + moved * (3.0 * m[1] + moved * m[0])))
    return out
