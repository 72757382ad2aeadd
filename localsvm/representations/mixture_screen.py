"""Bounds that say which components of a mixture are too far from a row to count, in float32, for csrc/mixture.h."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Dense = NDArray[np.float32]
SIDES = 2  # LSVM_MIXTURE_SIDES
ELEMENTS = 1 << 20  # of distances that are worked on at once
FLAT = 1e-6  # of the largest distance: a mean that is nearer is at the same place
ROUNDS, LEAST = 8, 1e-3  # steps for a direction, and the least v . p in them, where |v| is about the root of K


@dataclass(frozen=True)
class Screen:
    """The arrays of bounds for K components of d features.

    Attributes
    ----------
    centre : (d,)
    directions : (K rounded up to an even number, SIDES, d)
    parts : (K, SIDES + 2) of each component its sides, offset and slope.
    """

    centre: Dense
    directions: Dense
    parts: Dense

    @classmethod
    def of(cls, offset: Floats, mean: Floats, factor: Floats) -> Self:
        """The screen of components as `_mixture.Components` has them."""
        K, d = mean.shape
        with np.errstate(over="ignore", invalid="ignore"):  # such bounds say nothing, and the core knows
            centre = mean.mean(axis=0).astype(np.float32)
            step = max(1, ELEMENTS // (K * d))
            parts = (slice(first, first + step) for first in range(0, K, step))
            u = np.concatenate([_apart(mean - mean[part, None], factor[part]) for part in parts])
            side = np.einsum("jqc,jc->jq", u, mean - centre)
            rounding = 128.0 * ((d + 4) * 2.0**-24) ** 2
            above = offset + 2.0**-22 * np.abs(offset) + rounding * np.square(side).sum(axis=1)
            slope = rounding * np.square(u).sum(axis=(1, 2))
            directions = np.concatenate([u, np.zeros((K % 2, SIDES, d))]).astype(np.float32)
            return cls(centre, directions, np.column_stack([side, above, slope]).astype(np.float32))


def _apart(away: Floats, factor: Floats) -> Floats:
    """Directions v'A (k, SIDES, d) of k components along which all other means lie far from 0.

    v is orthonormal, and the other means are A away of (k, K, d).
    """
    left = away * factor[:, None] if factor.ndim == 2 else away @ factor.transpose(0, 2, 1)
    near = FLAT * np.sqrt(np.square(left).sum(axis=2).max(axis=1))
    left = np.where(np.isfinite(near)[:, None, None], left, 0.0)
    v = np.zeros((len(left), SIDES, left.shape[2]))
    for q in range(SIDES):
        v[:, q] = _farthest(left, near)
        left = left - (left @ v[:, q, :, None]) * v[:, q, None]
    return v * factor[:, None] if factor.ndim == 2 else v @ factor


def _farthest(points: Floats, near: Floats) -> Floats:
    """Unit vectors v (k, d) for k sets of points (k, K, d) with a large product of |v . p|; 0 where all are `near` 0.

    With unit vectors p_k, signs so that they are on one side, v = sum_k a_k p_k and a_k = 1 / (v . p_k): the minimum of
    a convex function of a > 0. Where the p_k are orthogonal, the steps are those of Heron's square root.
    """
    length = np.sqrt(np.square(points).sum(axis=2))
    far = length > near[:, None]
    p = points * (far / np.where(far, length, 1.0))[:, :, None]
    first = np.linalg.eigh(p @ p.transpose(0, 2, 1))[1][:, :, -1:]
    p = p * np.where(first < 0.0, -1.0, 1.0)
    gram, a = p @ p.transpose(0, 2, 1), np.ones((len(p), p.shape[1], 1))
    for _ in range(ROUNDS):
        a = 0.5 * (a + 1.0 / np.maximum(gram @ a, LEAST))
    v = (p * a).sum(axis=1)
    size = np.sqrt(np.square(v).sum(axis=1, keepdims=True))
    return np.asarray(v * (size > FLAT) / np.maximum(size, FLAT))
