"""Kernel ridge regression of many problems on one kernel matrix: block conjugate gradients with masks and shifts.

For each of m systems, a mask of rows (those that a fold holds out take no part) and a cost C give

    min_a  1/2 a'Ka + C sum_i w_i (y_i - (Ka)_i)^2,    (K + diag(1 / (2 C w))) a = y on the rows of the mask,

the problem of csrc/smo.h with the squared loss. All systems go through the kernel together, so that a pass over it
serves them all. Landmarks, every k-th row, precondition them (Nystroem): they know the largest eigenvalues of K, which
are what keeps conjugate gradients from ending soon.

With r = y - Ka and the residual rho = y - Ka - a / (2 C w), the duality gap is sum_i C w_i rho_i^2. A system is done
when this is at most `tolerance` times the loss sum_i C w_i r_i^2, where r is a / (2 C w) up to rho.

References
----------
Frangella, Tropp, Udell: Randomized Nystroem preconditioning. SIAM Journal on Matrix Analysis 44, 2023.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular

from localsvm.pulse import beat
from localsvm.solvers._smo import DualReport

Floats = NDArray[np.float64]
Singles = NDArray[np.float32]
Product = Callable[[Singles], Singles]  # of vectors (m, n) with the kernel (n, n)
FEWEST, LANDMARKS, ROWS_A_LANDMARK = 40, 500, 12  # between so many landmarks one for so many rows
MAX_PASSES, SCORING_PASSES = 1000, 100  # of a model; of a solution that is only compared with others
TINY, SPAN_JITTER = 1e-30, 1e-10
SPAN = 1e-5  # of the largest eigenvalue of the landmarks' kernel: smaller ones are not told from rounding
LOST = 1e6  # times the least residual: a search that comes so far from it does not come back
STALLED = 200  # passes without a smaller residual, after which rounding stands in the way
RENEWED = 50  # passes, after which residuals are computed anew and directions begin anew


@dataclass(frozen=True)
class Systems:
    """Some systems on the same n rows.

    Attributes
    ----------
    y : (m, n) float32, what each system is to learn; 0 where a row takes no part.
    ridge : (m, n) float32, 1 / (2 C w), of the rows that take part; 1 of the others.
    mask : (m, n) float32, 1 where a row takes part and 0 elsewhere.
    group : (m,) numbers of the masks: systems of one group have the same.
    """

    y: Singles
    ridge: Singles
    mask: Singles
    group: NDArray[np.int64]

    def at(self, some: NDArray[np.intp]) -> Systems:
        """Some of the systems."""
        return Systems(self.y[some], self.ridge[some], self.mask[some], self.group[some])


@dataclass(frozen=True)
class Solved:
    """Solutions of some systems.

    Attributes
    ----------
    a, f : (m, n) float32, the coefficients, and their products with the kernel for all rows.
    passes : (m,) over the kernel.
    converged : (m,) bool.
    """

    a: Singles
    f: Singles
    passes: NDArray[np.int64]
    converged: NDArray[np.bool_]

    @classmethod
    def none(cls, systems: Systems) -> Self:
        """Coefficients of 0."""
        m, nothing = len(systems.y), np.zeros_like(systems.y)
        return cls(nothing, nothing.copy(), np.zeros(m, np.int64), np.zeros(m, np.bool_))


def places(n: int) -> NDArray[np.intp]:
    """Places of the landmarks among n rows."""
    k = min(n, LANDMARKS, max(FEWEST, n // ROWS_A_LANDMARK))
    return (np.arange(k) * n) // k


class Landmarks:
    """Preconditioner: K is nearly G'G, G (k, n) from k landmarks.

    With the eigenvectors U of the masked G'G for its largest eigenvalues, L, and `least` the smallest of these, it is
    U (L + ridge)^-1 U' (least + ridge) + 1 - U U'. Products with it lose few digits in float32, however small the ridge
    is. U' is V' G for the eigenvectors of the masked GG', divided by the roots of L.

    rows : (k, n or more) the kernel of the landmarks with all n rows.
    some : (k,) places of the landmarks.
    """

    def __init__(self, rows: NDArray[np.floating], n: int, some: NDArray[np.intp]) -> None:
        rows = rows[:, :n].astype(np.float32)
        inner = rows[:, some].astype(np.float64)
        inner = (inner + inner.T) / 2.0
        jitter = SPAN * max(float(np.linalg.norm(inner, 1)), TINY)  # the norm is no less than the largest eigenvalue
        factor = np.linalg.cholesky(inner + jitter * np.eye(len(some))).astype(np.float32)
        self._factor: Singles = np.asarray(solve_triangular(factor, rows, lower=True, check_finite=False), np.float32)
        self._whole: Singles = self._factor @ self._factor.T
        self._known: dict[int, tuple[Floats, Singles]] = {}

    def of_mask(self, group: int, mask: Singles) -> tuple[Floats, Singles]:
        """The largest eigenvalues (l,), ascending, of the masked GG', and V (k, l) over their roots."""
        if group not in self._known:
            out = self._factor[:, mask == 0.0]
            values, vectors = np.linalg.eigh((self._whole - out @ out.T).astype(np.float64))
            kept = np.flatnonzero(values > SPAN * max(float(values[-1]), TINY))
            self._known[group] = values[kept], (vectors[:, kept] / np.sqrt(values[kept])).astype(np.float32)
        return self._known[group]

    def apply(self, systems: Systems, residual: Singles) -> Singles:
        """The preconditioner times residuals (m, n), 0 outside their masks, with the mean ridge of each system."""
        of_landmarks = residual @ self._factor.T
        for group in np.unique(systems.group):
            some = np.flatnonzero(systems.group == group)
            mask = systems.mask[some[0]]
            values, V = self.of_mask(int(group), mask)
            ridge = ((systems.ridge[some] @ mask) / max(1.0, float(mask.sum())))[:, None].astype(np.float64)
            least = values[0] if len(values) else 0.0
            share = 1.0 - (least + ridge) / (values + ridge)
            of_landmarks[some] = ((of_landmarks[some] @ V) * share.astype(np.float32)) @ V.T
        return np.asarray(residual - (of_landmarks @ self._factor) * systems.mask, np.float32)


def solve(
    product: Product, systems: Systems, landmarks: Landmarks, tolerance: float,
    known: Sequence[tuple[Singles, Singles]] = (), most: int = MAX_PASSES,
) -> Solved:  # fmt: skip
    """Solve all systems.

    Parameters
    ----------
    product : multiplies vectors (m, n) by the kernel.
    landmarks : of the kernel.
    tolerance : of the gap, as a share of the loss.
    known : solutions of systems that differ by their ridges alone, (a, f) as in `Solved`; what is best of their span is
        where the search begins.
    most : passes after which the best solution so far is taken.
    """
    out, some, least = Solved.none(systems), np.arange(len(systems.y)), _Least.of(len(systems.y))
    a, f = _begun(systems, known)
    rho = systems.y - f * systems.mask - systems.ridge * a
    direction, size = np.zeros_like(a), np.ones(len(a))
    for passes in range(most + 1):
        left = _left(out, some, systems, (a, f, rho), least, tolerance)
        out.passes[some] = passes
        if len(left) < len(some):
            some, systems, a, f, rho = some[left], systems.at(left), a[left], f[left], rho[left]
            direction, size, least = direction[left], size[left], least.at(left)
        if not len(some) or passes == most:
            break
        z = landmarks.apply(systems, rho)
        before, size = size, _dot(rho, z)
        # from time to time anew: in float32 the residual and the directions drift
        share = np.zeros(len(some)) if passes % RENEWED == 0 else size / np.maximum(before, TINY)
        direction = z + share[:, None].astype(np.float32) * direction
        image = product(direction)
        step = _step(systems, direction, image, size, least.residual)
        a = a + step * direction
        f = product(a) if passes % RENEWED == RENEWED - 1 else f + step * image
        rho = systems.y - f * systems.mask - systems.ridge * a
        beat(passes)
    return out


class _Least(NamedTuple):
    """The least residual (m,) of each system so far, and for how many passes (m,) it has been that."""

    residual: Floats
    passes: NDArray[np.int64]

    @classmethod
    def of(cls, m: int) -> Self:
        """No residual yet, for m systems."""
        return cls(np.full(m, np.inf), np.zeros(m, np.int64))

    def at(self, some: NDArray[np.intp]) -> _Least:
        """The least residuals of some systems."""
        return _Least(self.residual[some], self.passes[some])

    def update(self, residual: Floats) -> None:
        """Bring it up to date."""
        self.passes[:] = np.where(residual < self.residual, 0, self.passes + 1)
        np.minimum(self.residual, residual, out=self.residual)


def _left(
    out: Solved, some: NDArray[np.intp], systems: Systems, at: tuple[Singles, Singles, Singles], least: _Least,
    tolerance: float,
) -> NDArray[np.intp]:  # fmt: skip
    """Keep what is done and what is best so far of some systems; which of them (k,) are neither done nor lost.

    at : (a, f, rho), each (m, n).
    least : of the systems, which is brought up to date.
    """
    a, f, rho = at
    excess = _dot(rho / systems.ridge, rho)  # the ridges turn residuals into losses: C w r^2 = r^2 / (2 ridge)
    done, lost = excess <= tolerance * _dot(systems.ridge * a, a), ~(excess <= LOST * least.residual)
    least.update(excess)
    lost |= least.passes > STALLED
    kept = done | (excess <= least.residual)
    out.a[some[kept]], out.f[some[kept]], out.converged[some[done]] = a[kept], f[kept], True
    return np.flatnonzero(~(done | lost))


def _step(systems: Systems, direction: Singles, image: Singles, size: Floats, least: Floats) -> Singles:
    """Lengths (m, 1) of the steps; a system without curvature, which rounding has made indefinite, is lost."""
    curvature = _dot(direction, image) + _dot(systems.ridge * direction, direction)
    least[curvature <= 0.0] = -np.inf
    return np.where(curvature > 0.0, size / np.maximum(curvature, TINY), 0.0)[:, None].astype(np.float32)


def _begun(systems: Systems, known: Sequence[tuple[Singles, Singles]]) -> tuple[Singles, Singles]:
    """Coefficients (m, n) to begin from, and their products: of the span of known ones those nearest to the solution.

    They minimise 1/2 a'(K + ridge) a - y'a over the span (Galerkin's condition).
    """
    if not known:
        return np.zeros_like(systems.y), np.zeros_like(systems.y)
    bases = np.stack([a for a, _ in known], axis=1).astype(np.float64)  # (m, k, n)
    images = np.stack([f for _, f in known], axis=1).astype(np.float64)
    matrix = np.einsum("mkn,mln->mkl", bases, images + systems.ridge[:, None] * bases)
    matrix = (matrix + np.swapaxes(matrix, 1, 2)) / 2.0
    scale = np.sqrt(np.maximum(np.einsum("mkk->mk", matrix), TINY))
    matrix = matrix / (scale[:, :, None] * scale[:, None, :]) + SPAN_JITTER * np.eye(len(known))
    right = np.einsum("mkn,mn->mk", bases, systems.y) / scale
    share = np.linalg.solve(matrix, right[:, :, None])[:, :, 0] / scale
    a, f = (np.einsum("mk,mkn->mn", share, each).astype(np.float32) for each in (bases, images))
    return a, f


def report_of(a: Floats, f: Floats, y: Floats, cost: Floats) -> DualReport:
    """The report of coefficients a (n,) with f = Ka, in float64. y, cost : (n,) of the rows, C w; 0 takes no part."""
    inside = cost > 0.0
    own, r, part = cost[inside], (y - f)[inside], a[inside]
    gap = float(np.sum(np.square(part - 2.0 * own * r) / (4.0 * own)))
    objective = float(part @ (y[inside] - 0.5 * f[inside]) - np.sum(np.square(part) / (4.0 * own)))
    return DualReport(objective, gap, 0.0, 0.0, 0, True)


def _dot(a: Singles, b: Singles) -> Floats:
    """Products (m,) float64 of the rows of both."""
    return np.asarray(np.einsum("ij,ij->i", a, b, dtype=np.float64))
