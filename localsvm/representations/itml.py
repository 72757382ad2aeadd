"""Information-theoretic metric learning (Davis, Kulis, Jain, Sra and Dhillon, ICML 2007).

The squared distance v' A v of a pair of rows, v = x_i - x_j, shall be at most u for similar pairs (of one class) and
at least l for dissimilar ones. A and the bounds b that take the place of u and l minimise

    D(A, I) + gamma sum_c (b_c / b0_c - log(b_c / b0_c) - 1),   D(A, I) = tr A - log det A - d,

under these constraints with b. Cyclic Bregman projections: one pair at a time is met exactly, as far as its multiplier
stays at 0 or more. The paper's Algorithm 1 prints the step 1/2 (1/p - gamma/b), which meets the constraint for
gamma = 1 only; the step here is gamma/(gamma + 1) (1/p - 1/b), as in the authors' code.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.blas import dger

Floats = NDArray[np.float64]
Numbers = NDArray[np.intp]
PAIRS = 20  # times the number of classes, squared
GAMMAS = (0.01, 0.1, 1.0, 10.0)  # slack is dear at 10; the paper's
NEIGHBOURS = 4  # of the classifier that chooses gamma
PROJECTIONS = 100_000
TOLERANCE = 1e-2  # relative change of the multipliers in a sweep at which projections end; as in the authors' code
SEEN = 1000  # pairs of rows whose squared distances give u and l, at
EQUAL = 1e-8  # rows nearer than this share of l would ask for a metric of no use
PERCENTILES = 5.0, 95.0  # of squared distances: u and l


class Pairs(NamedTuple):
    """Differences (m, d) of the rows of pairs, +1 or -1 (m,) for similar and dissimilar ones, and bounds (m,) > 0."""

    V: Floats
    sign: Floats
    bound: Floats


class Projected(NamedTuple):
    """Matrix A (d, d), the bounds b (m,) and the multipliers (m,) of the constraints."""

    A: Floats
    bound: Floats
    multiplier: Floats


def project(pairs: Pairs, gamma: float, tolerance: float = TOLERANCE, projections: int = PROJECTIONS) -> Projected:
    """Project until a sweep changes the multipliers by no more than `tolerance`, or for so many projections."""
    share, A = gamma / (gamma + 1.0), np.asfortranarray(np.eye(pairs.V.shape[1]))
    V, sign = list(pairs.V), pairs.sign.tolist()  # numbers in lists: their arithmetic is most of the time
    inverse, multiplier = (1.0 / pairs.bound).tolist(), [0.0] * len(V)
    for _ in range(max(1, projections // max(1, len(V)))):
        before = np.asarray(multiplier)
        for c, v in enumerate(V):
            Av = A @ v
            p = float(v @ Av)
            step = min(multiplier[c], sign[c] * share * (1.0 / p - inverse[c]))
            multiplier[c] -= step
            step *= sign[c]
            inverse[c] += step / gamma
            A = dger(step / (1.0 - step * p), Av, Av, a=A, overwrite_a=1)
        now = np.asarray(multiplier)
        if np.abs(now - before).sum() <= tolerance * (np.linalg.norm(now) + np.linalg.norm(before)):
            break
    return Projected(A, 1.0 / np.asarray(inverse), now)


def draw(X: Floats, codes: Numbers, rng: np.random.Generator) -> Pairs:
    """Draw random pairs, half of them similar, without those of rows that are as good as equal.

    Parameters
    ----------
    X : (n, d).
    codes : (n,) the classes' numbers, of two classes at least.
    """
    n, half = len(X), PAIRS * len(np.unique(codes)) ** 2 // 2
    order, sizes = np.argsort(codes, kind="stable"), np.bincount(codes)
    starts = np.cumsum(sizes) - sizes
    i = rng.integers(n, size=2 * half)
    start, size = starts[codes[i]], sizes[codes[i]]
    same, other = start[:half] + rng.integers(size[:half]), start[half:] + size[half:] + rng.integers(n - size[half:])
    V = X[i] - X[order[np.concatenate([same, other]) % n]]
    sign = np.repeat((1.0, -1.0), half)
    any_pair = np.square(X[rng.integers(n, size=SEEN)] - X[rng.integers(n, size=SEEN)]).sum(axis=1)
    if not any_pair.any():
        return Pairs(V[:0], sign[:0], sign[:0])
    upper, lower = np.percentile(any_pair[any_pair > 0.0], PERCENTILES)
    keep = np.square(V).sum(axis=1) > EQUAL * lower
    return Pairs(V[keep], sign[keep], np.where(sign[keep] > 0.0, upper, lower))


def itml(X: Floats, codes: Numbers, rng: np.random.Generator) -> Floats:
    """The map M (d, d) of rows x to M' x with A = M M'; the Euclidean one where there is one class, or no pair.

    Of the GAMMAS, the one with the fewest errors of 4 nearest neighbours on two folds is used, the smallest of equals.

    Parameters
    ----------
    X : (n, d) float64, scaled; centring changes nothing.
    codes : (n,) the classes' numbers.
    rng : draws the pairs and deals the folds.
    """
    X = X - X.mean(axis=0)
    order = rng.permutation(len(X))
    order = order[np.argsort(codes[order], kind="stable")]
    halves = order[::2], order[1::2]
    wrong = np.zeros(len(GAMMAS))
    for learn, judge in (halves, halves[::-1]):
        pairs = _draw(X[learn], codes[learn], rng)
        for g, gamma in enumerate(GAMMAS):
            M = _root(project(pairs, gamma).A)
            wrong[g] += _wrong(X[learn] @ M, codes[learn], X[judge] @ M, codes[judge])
    return _root(project(_draw(X, codes, rng), GAMMAS[int(np.argmin(wrong))]).A)


def _draw(X: Floats, codes: Numbers, rng: np.random.Generator) -> Pairs:
    if len(np.unique(codes)) > 1:
        return draw(X, codes, rng)
    return Pairs(X[:0], np.zeros(0), np.zeros(0))


def _root(A: Floats) -> Floats:
    """Matrix M with M M' = A; rounding may have made a small eigenvalue negative."""
    values, vectors = np.linalg.eigh(A)
    return np.asarray(vectors * np.sqrt(np.maximum(values, 0.0)))


def _wrong(X: Floats, codes: Numbers, Z: Floats, truth: Numbers) -> int:
    """Number of the rows Z that the nearest neighbours among the rows X get wrong."""
    from sklearn.neighbors import KNeighborsClassifier

    if not len(X) or not len(Z):
        return 0
    return int(np.count_nonzero(KNeighborsClassifier(min(NEIGHBOURS, len(X))).fit(X, codes).predict(Z) != truth))
