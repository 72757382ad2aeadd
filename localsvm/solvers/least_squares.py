"""Kernel ridge regression of many problems on one kernel matrix: block conjugate gradients with masks and shifts.

For each of m systems, a mask of rows (those that a fold holds out take no part) and a cost C give

    min_a  1/2 a'Ka + C sum_i w_i (y_i - (Ka)_i)^2,    (K + diag(1 / (2 C w))) a = y on the rows of the mask,

the problem of csrc/smo.h with the squared loss. All systems go through the kernel together, so that a pass over it
serves them all. Landmarks, every k-th row, precondition them (Nystroem): they know the largest eigenvalues of K, which
are what keeps conjugate gradients from ending soon. A single system that takes many passes all the same is solved by
Cholesky's factor of its matrix.

With r = y - Ka and the residual rho = y - Ka - a / (2 C w), the duality gap is sum_i C w_i rho_i^2. A system is done
when this is at most `tolerance` times the loss sum_i C w_i r_i^2, where r is a / (2 C w) up to rho.

References
----------
Frangella, Tropp, Udell: Randomized Nystroem preconditioning. SIAM Journal on Matrix Analysis 44, 2023.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve, eigvalsh
from scipy.linalg.blas import strsm

from localsvm.kernels._kernels import padded
from localsvm.kernels.scratch import Scratch
from localsvm.kernels.symmetric import widened
from localsvm.pulse import beat
from localsvm.solvers._conjugate import Passes
from localsvm.solvers._smo import DualReport

Floats = NDArray[np.float64]
Singles = NDArray[np.float32]
Product = Callable[[Singles], Singles]  # of vectors (m, padded n) with the kernel, aligned, as both are
FEWEST, LANDMARKS, ROWS_A_LANDMARK = 40, 500, 20  # between so many landmarks one for so many rows
MAX_PASSES, SCORING_PASSES = 1000, 100  # of a model; of a solution that is only compared with others
PATIENCE, ROWS_A_PASS = 40, 100  # passes, at least, and rows for each, that take about as long as Cholesky's factor
TINY, SPAN_JITTER = 1e-30, 1e-10
SPAN = 1e-5  # of the largest eigenvalue: smaller ones are not told from rounding
JITTERS = 5  # times that it grows tenfold: then it is as large as all eigenvalues
LOST = 1e6  # times the least residual: a search that comes so far from it does not come back
STALLED = 200  # passes without a smaller residual, after which rounding stands in the way
RENEWED = 50  # passes, after which residuals are computed anew and directions begin anew
LOOKS = 4  # passes between looks at held-out values
SETTLED = 0.02  # of the tolerance: changes of held-out values, as a share of their residuals, that are none; squared


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


class HeldOutValues:
    """Values of the rows that systems hold out, of solutions that these values alone are compared by.

    A small ridge leaves next to no loss, and a share of that takes many passes which change no held-out value. So a
    system is done, too, when LOOKS passes have changed these by less than a share of their residuals, both squared.

    Parameters
    ----------
    rows : of each system, the rows that it holds out.
    y : of each system, what these rows have instead of the values.
    """

    def __init__(self, rows: Sequence[slice], y: Sequence[Floats]) -> None:
        self._rows, self._y, self._before = rows, y, [np.full(len(each), np.inf) for each in y]

    def settled(self, f: Singles, some: NDArray[np.intp], share: float) -> NDArray[np.bool_]:
        """Which of some systems (k,) are done, by their products (k, n or more) with the kernel."""
        out = np.zeros(len(some), np.bool_)
        for place, i in enumerate(some.tolist()):
            values = f[place, self._rows[i]].astype(np.float64)
            change, left = values - self._before[i], values - self._y[i]
            out[place] = len(values) and change @ change <= share * (left @ left)
            self._before[i] = values
        return out


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

    @classmethod
    def joined(cls, parts: Sequence[Solved]) -> Self:
        """The solutions of all systems of some parts, in their order."""
        return cls(
            np.concatenate([part.a for part in parts]), np.concatenate([part.f for part in parts]),
            np.concatenate([part.passes for part in parts]), np.concatenate([part.converged for part in parts]),
        )  # fmt: skip

    def at(self, some: NDArray[np.intp]) -> Solved:
        """The solutions of some systems."""
        return Solved(self.a[some], self.f[some], self.passes[some], self.converged[some])


def landmark_count(n: int) -> int:
    """Number of landmarks among n rows."""
    return min(n, LANDMARKS, max(FEWEST, n // ROWS_A_LANDMARK))


def patience(n: int) -> int:
    """Passes over a kernel of n rows, after which its factor is the shorter way."""
    return max(PATIENCE, n // ROWS_A_PASS)


def places(n: int) -> NDArray[np.intp]:
    """Places of the landmarks among n rows."""
    k = landmark_count(n)
    return (np.arange(k) * n) // k


def triangle_bytes(n: int, systems: int) -> int:
    """Bytes that the triangles of so many systems of n rows take while they are made."""
    return 3 * 4 * padded(landmark_count(n)) ** 2 * systems


class Landmarks:
    """Preconditioner: K is nearly G'G, G (k, n) from k landmarks; csrc/conjugate.h has what is made of it.

    Its `level` is the mean ridge of a system and the smallest eigenvalue of GG', as those of K beyond the landmarks are
    about as large as that, or SPAN of the largest one: so products lose few digits in float32, however small the ridge.

    rows : (k, n or more) the kernel of the landmarks with all n rows.
    some : (k,) places of the landmarks.
    """

    def __init__(self, rows: NDArray[np.floating], n: int, some: NDArray[np.intp]) -> None:
        k = len(some)
        inner = rows[:, some].astype(np.float64)
        inner = (inner + inner.T) / 2.0
        jitter = SPAN * max(float(np.linalg.norm(inner, 1)), TINY)  # the norm is no less than the largest eigenvalue
        triangle = np.eye(padded(k), dtype=np.float32)
        triangle[:k, :k] = _triangle(inner, jitter)
        factor = widened(rows[:, :n], padded(n), padded(k))
        # columns of Fortran are rows of ours: so nothing is copied
        self.factor: Singles = strsm(1.0, triangle.T, factor.T, side=1, overwrite_b=1).T
        assert np.may_share_memory(self.factor, factor), "it is aligned"
        self._own = self.factor[:k, :n]
        self._whole: Singles = self._own @ self._own.T
        values = eigvalsh(self._whole.astype(np.float64), check_finite=False)
        self._least = max(float(values[0]), SPAN * float(values[-1]), TINY)
        self._inner: dict[int, Singles] = {}

    def triangles(self, systems: Systems) -> Singles:
        """(m, k, k) float32: L of each system, LL' = level + G M G'."""
        out = np.empty((len(systems.y), *self._whole.shape), np.float32)
        for place, group, mask, ridge in zip(out, systems.group.tolist(), systems.mask, systems.ridge, strict=True):
            place[:] = self._of_mask(group, mask)
            place.flat[:: len(place) + 1] += np.float32(ridge @ mask / max(1.0, float(mask.sum())) + self._least)
        return np.asarray(np.linalg.cholesky(out), np.float32)

    def _of_mask(self, group: int, mask: Singles) -> Singles:
        """G M G'."""
        if group not in self._inner:
            out = self._own[:, mask == 0.0]
            self._inner[group] = self._whole - out @ out.T
        return self._inner[group]


def _triangle(K: Floats, jitter: float, more: int = JITTERS) -> Floats:
    """L, LL' = K + jitter I, with ten times as much jitter as long as rounding leaves that indefinite.

    Rows far from all others may be far from the centre, too, and then their kernel in float32 has few digits.
    """
    try:
        return np.asarray(np.linalg.cholesky(K + jitter * np.eye(len(K))))
    except np.linalg.LinAlgError:
        if not more:
            raise
        return _triangle(K, 10.0 * jitter, more - 1)


def solve(
    product: Product, systems: Systems, landmarks: Landmarks, tolerance: float,
    known: Sequence[tuple[Singles, Singles]] = (), most: int = MAX_PASSES, enough: Floats | None = None,
    held_out: HeldOutValues | None = None,
) -> Solved:  # fmt: skip
    """Solve all systems.

    Parameters
    ----------
    product : multiplies vectors by the kernel.
    landmarks : of the kernel.
    tolerance : of the gap, as a share of the loss.
    known : solutions of systems that differ by their ridges alone, (a, f) as in `Solved`; what is best of their span is
        where the search begins.
    most : passes after which the best solution so far is taken.
    enough : (m,) if given, the gaps themselves at which systems are done, and `tolerance` does not count.
    held_out : if given, systems are also done when these values no longer change.
    """
    out, some, least = Solved.none(systems), np.arange(len(systems.y)), _Least.of(len(systems.y))
    a, f = _begun(systems, known)
    search = Passes(systems.y, systems.ridge, systems.mask, a, f, landmarks.factor, landmarks.triangles(systems))
    for passes in range(most + 1):
        gap = tolerance * search.loss if enough is None else enough[some]
        if held_out is not None and passes % LOOKS == 0:
            gap = np.where(held_out.settled(search.f, some, SETTLED * tolerance), np.inf, gap)
        left = _left(out, some, search, least, gap)
        out.passes[some] = passes
        if len(left) < len(some):
            some, least = some[left], least.at(left)
            search.keep(left)
        if not len(some) or passes == most:
            break
        # from time to time anew: in float32 the residual and the directions drift
        search.turn(passes % RENEWED == 0)
        search.step(product(search.direction))
        least.residual[search.curvature <= 0.0] = -np.inf  # rounding has made the system indefinite: it is lost
        if passes % RENEWED == RENEWED - 1:
            search.look(product(search.a))
        beat(passes)
    return out


def factored(K: NDArray[Any], ridge: Singles, mask: Singles, scratch: Scratch) -> Callable[[Singles], Floats] | None:
    """What solves one system, but for rounding: y (n,) to a (n,). None where rounding leaves K + ridge indefinite.

    Parameters
    ----------
    K : (n or more, n or more) of all rows, C-order.
    ridge, mask : (n,) of the system.
    scratch : where the factor stays, as long as it is used.
    """
    rows = np.flatnonzero(mask)
    matrix = scratch.array("factor", (len(rows), len(rows)), K.dtype)
    for place, row in zip(matrix, rows.tolist(), strict=True):
        np.take(K[row], rows, out=place, mode="clip")  # else a row is copied first
    matrix.flat[:: len(rows) + 1] += ridge[rows]
    try:
        factor = cho_factor(matrix.T, lower=True, overwrite_a=True, check_finite=False)
    except np.linalg.LinAlgError:
        return None

    def solved(y: Singles) -> Floats:
        a = np.zeros(len(mask))
        a[rows] = cho_solve(factor, y[rows].astype(K.dtype), check_finite=False)
        return a

    return solved


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


def _left(out: Solved, some: NDArray[np.intp], search: Passes, least: _Least, enough: Floats) -> NDArray[np.intp]:
    """Keep what is done and what is best so far of some systems; which of them (k,) are neither done nor lost.

    enough : (k,) the gaps at which they are done.
    least : of the systems, which is brought up to date.
    """
    # the ridges turn residuals into losses: C w r^2 = r^2 / (2 ridge)
    done, lost = search.excess <= enough, ~(search.excess <= LOST * least.residual)
    least.update(search.excess)
    lost |= least.passes > STALLED
    kept, n = done | (search.excess <= least.residual), out.a.shape[1]
    out.a[some[kept]], out.f[some[kept]] = search.a[kept, :n], search.f[kept, :n]
    out.converged[some[done]] = True
    return np.flatnonzero(~(done | lost))


def _begun(systems: Systems, known: Sequence[tuple[Singles, Singles]]) -> tuple[Singles, Singles]:
    """Coefficients (m, n) to begin from, and their products: of the span of known ones those nearest to the solution.

    They minimise 1/2 a'(K + ridge) a - y'a over the span (Galerkin's condition).
    """
    if not known:
        return np.zeros_like(systems.y), np.zeros_like(systems.y)
    bases = np.stack([a for a, _ in known], axis=1).astype(np.float64)  # (m, k, n)
    images = np.stack([f for _, f in known], axis=1).astype(np.float64)
    matrix = bases @ np.swapaxes(images + systems.ridge[:, None] * bases, 1, 2)
    matrix = (matrix + np.swapaxes(matrix, 1, 2)) / 2.0
    scale = np.sqrt(np.maximum(np.einsum("mkk->mk", matrix), TINY))
    matrix = matrix / (scale[:, :, None] * scale[:, None, :]) + SPAN_JITTER * np.eye(len(known))
    right = (bases @ systems.y[:, :, None].astype(np.float64)) / scale[:, :, None]
    try:
        share = np.linalg.solve(matrix, right)
    except np.linalg.LinAlgError:  # of some system, whose known solutions are alike
        share = np.linalg.pinv(matrix, hermitian=True) @ right
    share = np.swapaxes(share / scale[:, :, None], 1, 2)
    a, f = ((share @ each)[:, 0].astype(np.float32) for each in (bases, images))
    return a, f


def report_of(a: Floats, f: Floats, y: Floats, cost: Floats) -> DualReport:
    """The report of coefficients a (n,) with f = Ka, in float64. y, cost : (n,) of the rows, C w; 0 takes no part."""
    inside = cost > 0.0
    own, r, part = cost[inside], (y - f)[inside], a[inside]
    gap = float(np.sum(np.square(part - 2.0 * own * r) / (4.0 * own)))
    objective = float(part @ (y[inside] - 0.5 * f[inside]) - np.sum(np.square(part) / (4.0 * own)))
    return DualReport(objective, gap, 0.0, 0.0, 0, True)
