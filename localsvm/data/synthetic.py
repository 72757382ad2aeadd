"""Synthetic sets with two classes and a known smallest error: for tests, the quick start and benchmarks of any size.

Each set has a distribution of x and a score s(x), with P(y = 1 | x) = 1 / (1 + exp(-s(x))). The Bayes rule, the sign
of s, has the smallest error rate: the mean of 1 / (1 + exp(|s(x)|)).

Functions NAME(n, rng) draw X (n, d) float32 and y (n,) float64 with values -1 and 1. NAME_score(X) is s (n,) float64,
and NAME_bayes_error() the smallest error rate.
"""

from __future__ import annotations

from functools import cache
from math import erfc, sqrt

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Labelled = tuple[npt.NDArray[np.float32], Floats]

HIGGS_FEATURES = 28
HIGGS_DIRECTIONS = 6
HIGGS_SEED = 20140226
BANANA_HALF_WIDTH = 2.0
ELLIPSE_MEANS = np.array([[0.5, 0.0], [0.0, 0.0]])  # of class 1, then of class -1
ELLIPSE_DEVIATIONS = np.array([[1.0, 0.6], [2.0, 1.5]])
XOR_DEVIATION = 0.4
ROLL_TURNS = 1.0  # of an arm of swiss_roll, from the centre to the edge
ROLL_SHARPNESS = 20.0  # largest score of swiss_roll
SINES_APART, SINES_DEVIATION = 0.5, 0.05
BLOCK_ROWS = 1 << 16


@cache
def _higgs_directions() -> Floats:
    """The matrix W (28, 6) of `higgs_like_score`, always the same."""
    rng = np.random.default_rng(HIGGS_SEED)
    W: Floats = rng.standard_normal((HIGGS_FEATURES, HIGGS_DIRECTIONS)) / np.sqrt(HIGGS_FEATURES)
    return W


def higgs_like_score(X: npt.NDArray[np.float32]) -> Floats:
    """Score of higgs_like for rows X (n, 28), a function of z = W'x (n, 6); z6 has no influence.

    s(x) = 2 (1.5 tanh(2 z1 z2) + z3^2 - 1 + .8 sin(3 z4) + .5 z5)
    """
    score = np.empty(len(X))
    for begin in range(0, len(X), BLOCK_ROWS):
        block = X[begin : begin + BLOCK_ROWS].astype(np.float64)
        z1, z2, z3, z4, z5, _ = np.einsum("nd,dk->kn", block, _higgs_directions())
        s = 1.5 * np.tanh(2 * z1 * z2) + z3**2 - 1 + 0.8 * np.sin(3 * z4) + 0.5 * z5
        score[begin : begin + BLOCK_ROWS] = 2 * s
    return score


def higgs_like(n: int, rng: np.random.Generator) -> Labelled:
    """Draw n rows of 28 features like those of HIGGS, standard normal."""
    X = rng.standard_normal((n, HIGGS_FEATURES), dtype=np.float32)
    return X, _labels(higgs_like_score(X), rng)


def banana_score(X: npt.NDArray[np.float32]) -> Floats:
    """Score of banana for rows X (n, 2): positive in a band around the parabola x2 = .8 x1^2 - 1.2."""
    x1, x2 = X.T.astype(np.float64)
    score: Floats = 10 * (0.8 - np.abs(x2 - 0.8 * x1**2 + 1.2))
    return score


def banana(n: int, rng: np.random.Generator) -> Labelled:
    """Draw n rows, uniform on [-2, 2]^2; class 1 is a crescent, class -1 around it."""
    X = rng.uniform(-BANANA_HALF_WIDTH, BANANA_HALF_WIDTH, (n, 2)).astype(np.float32)
    return X, _labels(banana_score(X), rng)


def ellipse_score(X: npt.NDArray[np.float32]) -> Floats:
    """Score of ellipse for rows X (n, 2): the logarithm of the ratio of the densities, positive inside an ellipse."""
    narrow, wide = (_normal_log_density(X.astype(np.float64), k) for k in (0, 1))
    return narrow - wide


def ellipse(n: int, rng: np.random.Generator) -> Labelled:
    """Draw n rows of two normal distributions: class 1 is narrow and lies inside class -1, which is wide.

    Both classes are equally likely. Their coordinates are independent, with means ELLIPSE_MEANS and standard deviations
    ELLIPSE_DEVIATIONS. The boundary of the Bayes rule is an ellipse, across which P(y | x) is smooth.
    """
    y = np.where(rng.random(n) < 0.5, 1.0, -1.0)
    which = (y < 0).astype(np.intp)
    X = ELLIPSE_MEANS[which] + ELLIPSE_DEVIATIONS[which] * rng.standard_normal((n, 2))
    return X.astype(np.float32), y


def xor_score(X: npt.NDArray[np.float32]) -> Floats:
    """Score of xor for rows X (n, 2): the logarithm of the ratio of the densities, with the sign of x1 x2."""
    x1, x2 = X.T.astype(np.float64)
    return _log_cosh((x1 + x2) / XOR_DEVIATION**2) - _log_cosh((x1 - x2) / XOR_DEVIATION**2)


def xor(n: int, rng: np.random.Generator) -> Labelled:
    """Draw n rows of four normal distributions with means (+-1, +-1); y is the product of the mean's coordinates.

    The four are equally likely, and each coordinate has the standard deviation XOR_DEVIATION.
    """
    means = np.where(rng.random((n, 2)) < 0.5, 1.0, -1.0)
    X = means + XOR_DEVIATION * rng.standard_normal((n, 2))
    return X.astype(np.float32), means.prod(axis=1)


def swiss_roll_score(X: npt.NDArray[np.float32]) -> Floats:
    """Score of swiss_roll for rows X (n, 2): ROLL_SHARPNESS cos(angle - 2 pi ROLL_TURNS radius)."""
    x1, x2 = X.T.astype(np.float64)
    score: Floats = ROLL_SHARPNESS * np.cos(np.arctan2(x2, x1) - 2 * np.pi * ROLL_TURNS * np.hypot(x1, x2))
    return score


def swiss_roll(n: int, rng: np.random.Generator) -> Labelled:
    """Draw n rows, uniform on the unit disc: two arms, one for each class, rolled up around each other.

    At every radius both arms take the same share of the circle. P(y | x) is smooth across their borders.
    """
    radius, angle = np.sqrt(rng.random(n)), 2 * np.pi * rng.random(n)
    X = (radius * np.stack([np.cos(angle), np.sin(angle)])).T.astype(np.float32)
    return X, _labels(swiss_roll_score(X), rng)


def higgs_like_bayes_error(n: int = 1 << 20) -> float:
    """Smallest error rate on higgs_like: a mean over n fixed draws, with a standard error of at most .25 / sqrt(n)."""
    rng = np.random.default_rng(HIGGS_SEED)
    total = 0.0
    for begin in range(0, n, BLOCK_ROWS):
        X = rng.standard_normal((min(BLOCK_ROWS, n - begin), HIGGS_FEATURES), dtype=np.float32)
        total += _bayes_risk(higgs_like_score(X)).sum()
    return total / n


def banana_bayes_error(cells: int = 1000) -> float:
    """Smallest error rate on banana, by the midpoint rule on a grid of cells x cells."""
    side = BANANA_HALF_WIDTH * ((2 * np.arange(cells) + 1) / cells - 1)
    grid = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2)
    return float(_bayes_risk(banana_score(grid.astype(np.float32))).mean())


def ellipse_bayes_error(nodes: int = 64) -> float:
    """Smallest error rate on ellipse, (P(outside | y = 1) + P(inside | y = -1)) / 2, to 14 digits.

    The ellipse is mapped to a circle and integrated by Gauss-Legendre over the radius and by the trapezoid rule over
    the angle, with `nodes` nodes each. As the densities are analytic, 32 nodes are exact up to rounding.
    """
    centre, axes = _ellipse_boundary()
    radius, weight = np.polynomial.legendre.leggauss(nodes)
    radius, weight = (radius + 1) / 2, weight / 2
    angle = 2 * np.pi * np.arange(nodes) / nodes
    points = centre + axes * np.stack([np.outer(radius, np.cos(angle)), np.outer(radius, np.sin(angle))], axis=-1)
    area = (weight * radius)[:, None] * (2 * np.pi / nodes) * axes.prod()
    narrow, wide = (float((np.exp(_normal_log_density(points, k)) * area).sum()) for k in (0, 1))
    return (1 - narrow + wide) / 2


def xor_bayes_error() -> float:
    """Smallest error rate on xor: the probability that exactly one coordinate has the wrong sign."""
    wrong = 0.5 * erfc(1 / (XOR_DEVIATION * sqrt(2)))
    return 2 * wrong * (1 - wrong)


def swiss_roll_bayes_error(nodes: int = 1024) -> float:
    """Smallest error rate on swiss_roll, by the midpoint rule over a quarter turn.

    One integral is enough, since the angle in the score is uniform at every radius.
    """
    phase = np.pi / 2 * (np.arange(nodes) + 0.5) / nodes
    return float(_bayes_risk(ROLL_SHARPNESS * np.cos(phase)).mean())


def _log_cosh(x: Floats) -> Floats:
    """Values of log(2 cosh(x)), without overflow."""
    value: Floats = np.logaddexp(x, -x)
    return value


def _ellipse_boundary() -> tuple[Floats, Floats]:
    """Centre c (2,) and half axes (2,) of the ellipse where the score is 0: s(x) = s(c) - (x - c)' Q (x - c) / 2."""
    precision = ELLIPSE_DEVIATIONS**-2
    Q = precision[0] - precision[1]
    centre: Floats = (precision[0] * ELLIPSE_MEANS[0] - precision[1] * ELLIPSE_MEANS[1]) / Q
    top = _normal_log_density(centre, 0) - _normal_log_density(centre, 1)
    return centre, np.sqrt(2 * top / Q)


def _normal_log_density(points: Floats, k: int) -> Floats:
    """Log density (...) at points (..., 2) of ellipse's class 1 (k = 0) or class -1 (k = 1)."""
    scaled = (points - ELLIPSE_MEANS[k]) / ELLIPSE_DEVIATIONS[k]
    density: Floats = -0.5 * (scaled**2).sum(axis=-1) - np.log(2 * np.pi * ELLIPSE_DEVIATIONS[k].prod())
    return density


def _bayes_risk(score: Floats) -> Floats:
    return 1 / (1 + np.exp(np.abs(score)))


def two_sines_score(X: npt.NDArray[np.float32]) -> Floats:
    """Score of two_sines for rows X (n, 2): their height above the middle of both curves, in its own unit."""
    above = X[:, 1].astype(np.float64) - np.sin(X[:, 0].astype(np.float64)) - 0.5 * SINES_APART
    return np.asarray(SINES_APART / SINES_DEVIATION**2 * above)


def two_sines(n: int, rng: np.random.Generator) -> Labelled:
    """Draw n rows around sin x and, for class 1, sin x + 0.5, x uniform on [0, 2 pi].

    This is Figure 2 of the LSVM-MTL paper.
    """
    x, y = rng.uniform(0.0, 2.0 * np.pi, n), np.where(rng.random(n) < 0.5, -1.0, 1.0)
    height = np.sin(x) + SINES_APART * (y > 0) + SINES_DEVIATION * rng.standard_normal(n)
    return np.column_stack([x, height]).astype(np.float32), y


def two_sines_bayes_error() -> float:
    """The smallest error rate for two_sines: half the distance of the curves, in deviations, on the wrong side."""
    return 0.5 * erfc(0.5 * SINES_APART / SINES_DEVIATION / sqrt(2.0))


def _labels(score: Floats, rng: np.random.Generator) -> Floats:
    return np.where(rng.random(len(score)) < 1 / (1 + np.exp(-score)), 1.0, -1.0)


DISTRICTS = (
    "Altstadt",
    "Bahnhof",
    "Feuersee",
    "Hafen",
    "Heide",
    "Kessel",
    "Lerchen",
    "Moor",
    "Park",
    "Rebberg",
    "Ufer",
)


def flats(n: int, rng: np.random.Generator) -> tuple[list[tuple[float, int, float, str]], Floats]:
    """Made-up flats, (size, floor, minutes to the centre, district) each, and their rents (n,).

    The rent grows with the size, less so for large flats, and falls with the way to the centre; districts have levels
    of their own. What is left is noise in proportion to the rent, a tenth of it.
    """
    size = np.round(np.exp(rng.normal(4.1, 0.4, n)), 1)
    floor, minutes = rng.integers(0, 9, n), np.round(rng.gamma(3.0, 6.0, n), 1)
    district = rng.integers(0, len(DISTRICTS), n)
    level = 1.0 + 0.25 * np.sin(2.0 * np.arange(len(DISTRICTS)))[district]
    rent = 90.0 + 11.0 * size**0.95 * level * (1.0 + 0.4 * np.exp(-minutes / 8.0)) + 12.0 * np.minimum(floor, 4)
    rent *= 1.0 + 0.1 * rng.standard_normal(n)
    rows = zip(size.tolist(), floor.tolist(), minutes.tolist(), (DISTRICTS[i] for i in district), strict=True)
    return list(rows), np.round(rent, 2)
