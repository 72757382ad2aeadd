"""Synthetic two-class sets with a known best error, for tests, the quick start and benchmarks of any size.

Each set is a distribution of x and a score s(x) with P(y = 1 | x) = 1 / (1 + exp(-s(x))). No rule errs
less often than the Bayes rule, the sign of s: its error is the mean of 1 / (1 + exp(|s(x)|)).
"""

from __future__ import annotations

from functools import cache

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Labelled = tuple[npt.NDArray[np.float32], Floats]

HIGGS_FEATURES = 28
HIGGS_DIRECTIONS = 6
HIGGS_SEED = 20140226
BANANA_HALF_WIDTH = 2.0
BLOCK_ROWS = 1 << 16


@cache
def _higgs_directions() -> Floats:
    """W (28, 6), fixed once and for all."""
    rng = np.random.default_rng(HIGGS_SEED)
    W: Floats = rng.standard_normal((HIGGS_FEATURES, HIGGS_DIRECTIONS)) / np.sqrt(HIGGS_FEATURES)
    return W


def higgs_like_score(X: npt.NDArray[np.float32]) -> Floats:
    """s(x) (n,) of higgs_like for rows X (n, 28), with z = W'x (n, 6), the last of which is without effect:

    2 (1.5 tanh(2 z1 z2) + z3^2 - 1 + .8 sin(3 z4) + .5 z5)
    """
    score = np.empty(len(X))
    for begin in range(0, len(X), BLOCK_ROWS):
        block = X[begin : begin + BLOCK_ROWS].astype(np.float64)
        z1, z2, z3, z4, z5, _ = np.einsum("nd,dk->kn", block, _higgs_directions())
        s = 1.5 * np.tanh(2 * z1 * z2) + z3**2 - 1 + 0.8 * np.sin(3 * z4) + 0.5 * z5
        score[begin : begin + BLOCK_ROWS] = 2 * s
    return score


def higgs_like(n: int, rng: np.random.Generator) -> Labelled:
    """n rows of the shape of HIGGS: X (n, 28) standard normal float32, labels -1 and 1 (n,) float64."""
    X = rng.standard_normal((n, HIGGS_FEATURES), dtype=np.float32)
    return X, _labels(higgs_like_score(X), rng)


def banana_score(X: npt.NDArray[np.float32]) -> Floats:
    """s(x) (n,) of banana for rows X (n, 2): positive in a band around the parabola x2 = .8 x1^2 - 1.2."""
    x1, x2 = X.T.astype(np.float64)
    score: Floats = 10 * (0.8 - np.abs(x2 - 0.8 * x1**2 + 1.2))
    return score


def banana(n: int, rng: np.random.Generator) -> Labelled:
    """n rows: X (n, 2) float32 uniform on [-2, 2]^2, y (n,) float64, 1 in a crescent and -1 around it."""
    X = rng.uniform(-BANANA_HALF_WIDTH, BANANA_HALF_WIDTH, (n, 2)).astype(np.float32)
    return X, _labels(banana_score(X), rng)


def higgs_like_bayes_error(n: int = 1 << 20) -> float:
    """The least error rate possible on higgs_like: a mean over n fixed draws, good to .25 / sqrt(n)."""
    rng = np.random.default_rng(HIGGS_SEED)
    total = 0.0
    for begin in range(0, n, BLOCK_ROWS):
        X = rng.standard_normal((min(BLOCK_ROWS, n - begin), HIGGS_FEATURES), dtype=np.float32)
        total += _bayes_risk(higgs_like_score(X)).sum()
    return total / n


def banana_bayes_error(cells: int = 1000) -> float:
    """The least error rate that a rule can have on banana: the midpoint rule on a grid of cells x cells."""
    side = BANANA_HALF_WIDTH * ((2 * np.arange(cells) + 1) / cells - 1)
    grid = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2)
    return float(_bayes_risk(banana_score(grid.astype(np.float32))).mean())


def _bayes_risk(score: Floats) -> Floats:
    return 1 / (1 + np.exp(np.abs(score)))


def _labels(score: Floats, rng: np.random.Generator) -> Floats:
    return np.where(rng.random(len(score)) < 1 / (1 + np.exp(-score)), 1.0, -1.0)
