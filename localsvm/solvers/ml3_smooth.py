"""Smooth bounds for the loss of a multiclass latent locally linear SVM, and their derivatives.

Maxima and norms have kinks. A smooth function replaces each (Nesterov 2005): it is larger by at most mu/2 for a maximum
and by at most mu for a norm. At distances from the kink much larger than mu, both are exact or nearly so, and
derivatives that are 0 stay exactly 0. Arrays may have any floating type, which results keep.

References
----------
Nesterov: Smooth minimization of non-smooth functions. Mathematical Programming 103, 2005.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Reals = NDArray[Any]


def largest(u: Reals, mu: float) -> tuple[Reals, Reals]:
    """Maximum max(0, u_1, ..., u_k) of each column of u (k, b), smoothed: values (b,) and derivatives (k, b).

    The value is the largest a'(u + mu/2) - mu/2 |a|^2 with a >= 0, sum a <= 1; the derivative is that a.
    """
    u = u + 0.5 * mu
    a = capped_simplex(u / mu)
    return np.einsum("kb,kb->b", a, u) - 0.5 * mu * np.einsum("kb,kb->b", a, a), a


def capped_simplex(v: Reals) -> Reals:
    """Projection of each column of v (k, b) onto {a >= 0, sum a <= 1}."""
    a = np.maximum(v, 0)
    outside = np.flatnonzero(a.sum(axis=0) > 1)
    if len(outside):
        part = v[:, outside]
        descending = -np.sort(-part, axis=0)
        excess = descending.cumsum(axis=0) - 1
        counts = np.arange(1, len(v) + 1, dtype=v.dtype)[:, None]
        last = (descending * counts > excess).sum(axis=0) - 1
        threshold = excess[last, np.arange(len(outside))] / (last + 1).astype(v.dtype)
        a[:, outside] = np.maximum(part - threshold, 0)
    return a


def norms(c: Reals, q: float, mu: float) -> Reals:
    """Norms |c_+|_q (r, b) over axis 1 of c (r, m, b), smoothed as (|c_+|_q^q + mu^q)^(1/q); `largest` for q = inf."""
    if np.isinf(q):
        return np.stack([largest(part, mu)[0] for part in c])
    t, most = _ratios(c, mu)
    total: Reals = most * (_powers(t, q).sum(axis=1) + (mu / most) ** q) ** (1 / q)
    return total


def norm_slopes(c: Reals, q: float, mu: float) -> Reals:
    """The derivatives (r, m, b) of `norms` by c."""
    if np.isinf(q):
        return np.stack([largest(part, mu)[1] for part in c])
    t, most = _ratios(c, mu)
    total = _powers(t, q).sum(axis=1) + (mu / most) ** q
    slopes: Reals = _powers(t, q - 1)
    slopes *= (total ** (1 / q - 1))[:, None]
    return slopes


def best_combinations(c: Reals, q: float) -> Reals:
    """Combinations b >= 0, |b|_p <= 1 with the largest b'c, for each column of c (m, b); 0 if no c is positive."""
    if np.isinf(q):
        first = np.arange(len(c))[:, None] == c.argmax(axis=0)
        return np.asarray(first & (c > 0), c.dtype)
    return np.asarray(norm_slopes(c[None], q, float(np.finfo(c.dtype).tiny))[0])


def _ratios(c: Reals, mu: float) -> tuple[Reals, Reals]:
    """Ratios of c_+ to its maximum, or to mu if larger, so that powers neither overflow nor all vanish; the divisor."""
    t: Reals = np.maximum(c, 0)
    most: Reals = np.maximum(t.max(axis=1), mu)
    t /= most[:, None]
    return t, most


def _powers(t: Reals, q: float) -> Reals:
    """Powers t^q for t >= 0; small whole exponents by multiplication, which is faster."""
    if q in (1, 2, 3, 4):
        power = t.copy()
        for _ in range(int(q) - 1):
            power *= t
        return power
    return np.power(t, q, dtype=t.dtype)
