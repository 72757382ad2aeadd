"""Locally linear kernels (Picard 2024): k(x, x') = h(x) h(x') (x - c) . (x' - c), c the anchor, and banks of them.

h is one of five maps of the distance r of a row from the anchor. With component-wise maps each feature has a map of its
own distance |x_j - c_j|:  phi(x)_j = h(|x_j - c_j|) (x_j - c_j).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray

from localsvm.data.blocks.dataset import Dense
from localsvm.representations.component_sums import component_sums

Floats = NDArray[np.float64]
Names = NDArray[np.int64]

MAPS = ("exponential", "gaussian", "linear", "square", "plain")
BLOCK = 1 << 22  # distances in memory at once
STRIP = 1024  # rows whose products are still in the cache when they are used
MANY, LIKELY = 4000, 16  # anchors: where there are more, the likeliest are one of so many
PART, PARTS = 16, 32  # the most anchors of a part, and how many parts there are at least


def transformed(kind: str, gamma: float, squares: NDArray[np.floating], out: NDArray[np.floating]) -> None:
    """The map of squared distances: exp(-g r), exp(-g r^2), max(0, 1 - g r), max(0, 1 - g r^2) or 1, into `out`."""
    if kind == "plain":
        out[:] = 1.0
        return
    base = np.sqrt(squares, out=out) if kind in ("exponential", "linear") else squares
    with np.errstate(over="ignore"):  # where it does, a row is too far from the anchor for either map
        np.multiply(base, -gamma, out=out)
    if kind in ("exponential", "gaussian"):
        np.exp(out, out=out)
    else:
        np.add(out, 1.0, out=out)
        np.maximum(out, 0.0, out=out)


@dataclass(frozen=True)
class LocalFeatures:
    """Features of kernels with global maps, as solvers.group_newton has them: never made, only H is.

    Attributes
    ----------
    X, A : (n, d), (M, d) float64, rows and anchors.
    H : (n, M) float64, their maps.
    """

    X: Floats
    A: Floats
    H: Floats

    @property
    def sizes(self) -> NDArray[np.int64]:
        """Number of features of each kernel (M,), which is d for all."""
        return np.full(len(self.A), self.A.shape[1], np.int64)

    def values(self, w: Floats) -> Floats:
        """Values sum_m h_m(x) (x - c_m) . w_m of the rows (n,)."""
        W, out = w.reshape(self.A.shape), np.empty(len(self.X))
        at_anchors = np.einsum("ij,ij->i", W, self.A)
        for rows in strips(len(out)):
            out[rows] = np.einsum("ij,ij->i", self.H[rows], self.X[rows] @ W.T - at_anchors)
        return out

    def add(self, coef: Floats) -> Floats:
        """Sums sum_i coef_i h_m(x_i) (x_i - c_m) of the kernels, one after another."""
        rows = np.flatnonzero(coef)
        part = self if len(rows) == len(coef) else self.of_rows(rows)
        out, total, coef = np.zeros(self.A.shape), np.zeros(len(self.A)), coef[rows]
        for strip in strips(len(rows)):
            shares = part.H[strip] * coef[strip, None]
            out += shares.T @ part.X[strip]
            total += shares.sum(axis=0)
        return np.asarray(out - total[:, None] * self.A).ravel()

    def matrix(self) -> Floats:
        """Matrix of the features h_m(x_i) (x_i - c_m), (n, M d)."""
        return np.asarray((self.H[:, :, None] * (self.X[:, None, :] - self.A)).reshape(len(self.X), self.A.size))

    def of_rows(self, rows: NDArray[np.intp]) -> Self:
        """Features of some rows."""
        return type(self)(self.X[rows], self.A, self.H[rows])

    def of_kernels(self, kernels: NDArray[np.bool_]) -> Self:
        """Features of some kernels; kernels: (M,) mask."""
        return type(self)(self.X, self.A[kernels], self.H[:, kernels])

    def joined(self, other: Self) -> Self:
        """Features of these kernels, followed by those of `other`, on the same rows."""
        return type(self)(self.X, np.concatenate([self.A, other.A]), np.hstack([self.H, other.H]))


@dataclass(frozen=True)
class MadeFeatures:
    """Features as a matrix F (n, sum of sizes) float64."""

    F: Floats
    sizes: NDArray[np.int64]

    def values(self, w: Floats) -> Floats:
        """Values F w of the rows (n,)."""
        return np.asarray(self.F @ w)

    def add(self, coef: Floats) -> Floats:
        """Sums F' coef over the rows."""
        return np.asarray(coef @ self.F)

    def matrix(self) -> Floats:
        """Matrix F itself."""
        return self.F

    def of_rows(self, rows: NDArray[np.intp]) -> Self:
        """Features of some rows."""
        return type(self)(self.F[rows], self.sizes)

    def of_kernels(self, kernels: NDArray[np.bool_]) -> Self:
        """Features of some kernels; kernels: (M,) mask."""
        return type(self)(self.F[:, np.repeat(kernels, self.sizes)], self.sizes[kernels])

    def joined(self, other: Self) -> Self:
        """Features of these kernels, followed by those of `other`, on the same rows."""
        return type(self)(np.hstack([self.F, other.F]), np.concatenate([self.sizes, other.sizes]))


@dataclass(frozen=True)
class LocalBank:
    """A kernel for each anchor and gamma, as solvers.feature_mkl has them; m = gamma number * anchors + anchor.

    Attributes
    ----------
    X : (n, d) float64 rows, centred.
    anchors : (anchors, d) float64, shifted as X.
    open : numbers of the anchors that may get weights.
    kind, gammas : of the map.
    componentwise : a map for each feature.
    """

    X: Floats
    anchors: Floats
    open: NDArray[np.intp]
    kind: str
    gammas: tuple[float, ...]
    componentwise: bool = False

    @property
    def size(self) -> int:
        """Number of kernels: anchors times gammas."""
        return len(self.gammas) * len(self.anchors)

    def parts(self, rng: np.random.Generator) -> list[Self]:
        """Banks of all gammas of a few anchors each, in random order: the open ones fall into at least PARTS."""
        size = min(PART, -(-len(self.open) // PARTS))
        order = rng.permutation(self.open)
        return [replace(self, open=order[first : first + size]) for first in range(0, len(order), max(1, size))]

    def of_rows(self, rows: NDArray[np.intp]) -> Self:
        """Bank over some rows. Where these are fewer than the open anchors, evenly as many of them are open."""
        step = -(-len(self.open) // max(1, len(rows)))
        return replace(self, X=self.X[rows], open=self.open[:: max(1, step)])

    def likely(self, scores: Floats) -> Self | None:
        """Bank with the anchors of the largest scores (size,) open; None where it takes little time to score all."""
        if self.componentwise or len(self.open) < MANY:
            return None
        best = scores.reshape(len(self.gammas), -1).max(axis=0)[self.open]
        return replace(self, open=np.sort(self.open[np.argsort(-best, kind="stable")[: len(best) // LIKELY]]))

    def features(self, names: Names) -> LocalFeatures | MadeFeatures:
        """Features of some kernels in float64; names: (M,) their numbers."""
        which, anchor = np.divmod(names, len(self.anchors))
        A = self.anchors[anchor]
        if self.componentwise:
            return self._made(A, which)
        H: Floats = np.asarray(squared_distances(self.X, A), np.float64)
        for k in np.unique(which):
            mine = np.flatnonzero(which == k)
            part = np.ascontiguousarray(H[:, mine])
            transformed(self.kind, self.gammas[k], part, part)
            H[:, mine] = part
        return LocalFeatures(self.X, A, H)

    def _made(self, A: Floats, which: NDArray[np.int64]) -> MadeFeatures:
        n, d = self.X.shape
        F: Floats = np.empty((n, len(A) * d))
        for m, k in enumerate(which):
            moved = self.X - A[m]
            H = np.square(moved)
            transformed(self.kind, self.gammas[k], H, H)
            np.multiply(H, moved, out=F[:, m * d : (m + 1) * d])
        return MadeFeatures(F, np.full(len(A), d, np.int64))

    def scores(self, coef: Floats) -> Floats:
        """Scores 1/2 |v|^2 of all kernels (size,), from coef (n,); 0 for closed anchors.

        Global maps are scored by products in float32, component-wise ones in float64.
        """
        out = np.zeros((len(self.gammas), len(self.anchors)))
        rows, largest = np.flatnonzero(coef), float(np.abs(coef).max(initial=0.0))
        if not largest:
            return out.ravel()
        X, share, A = self.X[rows], coef[rows] / largest, self.anchors[self.open]
        if self.componentwise:
            for k, gamma in enumerate(self.gammas):
                out[k, self.open] = np.square(component_sums(self.kind, gamma, X, share, A)).sum(axis=1)
        else:
            out[:, self.open] = self._global(X.astype(np.float32), share.astype(np.float32), A.astype(np.float32))
        return 0.5 * largest**2 * out.ravel()

    def _global(self, X: Dense, share: Dense, A: Dense) -> Floats:
        """Squares |v|^2 (gammas, anchors): v = X' (share * h) - (share . h) c, for blocks of anchors c."""
        out = np.empty((len(self.gammas), len(A)))
        weighted = np.hstack([X * share[:, None], share[:, None]])
        step = max(1, BLOCK // len(X))
        for first in range(0, len(A), step):
            part = A[first : first + step]
            squares = squared_distances(part, X)
            H = np.empty_like(squares)
            for k, gamma in enumerate(self.gammas):
                transformed(self.kind, gamma, squares, H)
                sums = H @ weighted
                v = sums[:, :-1].astype(np.float64) - sums[:, -1:] * part.astype(np.float64)
                out[k, first : first + step] = np.einsum("ij,ij->i", v, v)
        return out


def strips(n: int) -> Iterator[slice]:
    """Slices of n rows, STRIP rows each."""
    return (slice(first, first + STRIP) for first in range(0, n, STRIP))


def squared_distances(A: NDArray[np.floating], B: NDArray[np.floating]) -> NDArray[np.floating]:
    """Squared distances (rows of A, rows of B), in the type of A and B."""
    out = A @ B.T
    out *= -2.0
    out += np.einsum("ij,ij->i", A, A)[:, None]
    out += np.einsum("ij,ij->i", B, B)
    return np.maximum(out, 0.0, out=out)
