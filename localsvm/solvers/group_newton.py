"""The l1-MKL problem of a few kernels, given by their features, as a group lasso: Newton's method on all weights.

    min_w  P(w) = 1/2 (sum_m |w_m|)^2 + sum_i c_i max(0, 1 - y_i f(x_i)),    f(x) = sum_m phi_m(x) . w_m

Its dual is max_a sum_i a_i - max_m 1/2 |v_m|^2, 0 <= a_i <= c_i, with v_m = sum_i a_i y_i phi_m(x_i). The kernel of the
solution is sum_m beta_m phi_m . phi_m, beta_m = |w_m| / sum |w_m| (Rakotomamonjy, Bach, Canu, Grandvalet, 2008).

Where no w_m is 0, the first term is smooth, and weights and kernel weights are found together. The hinge is replaced by

    max over 0 <= a <= c of  a (1 - y f) - h (a - a0)^2 / 2c,

whose a are coefficients of the dual; then a0 = a, and so on, the method of multipliers (Rockafellar 1976; for MKL,
Suzuki and Tomioka 2011). So h need not become small, and the gap between P(w) and the dual at a says how far it is.
Kernels whose weights go through 0 are given up.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from localsvm.pulse import beat
from localsvm.solvers._linear import Margins, Terms

Vector = NDArray[np.float64]
Names = NDArray[np.int64]

FIRST_WIDTH, SMALLEST_WIDTH = 1.0, 1e-6
MAX_STEPS = 1000  # between two looks at the other kernels
MULTIPLIERS = 0.1  # multipliers move when a better w could gain no more than this share of what they could
FASTER = 0.3  # h is halved where they did not close this much of their part of the gap
LEAST_DAMPING, DAMPING = 1e-3, 10.0  # of growing and shrinking weights, at 1 that of fixed kernel weights; its factor
DIRECT, DIRECT_ELEMENTS = 256, 1 << 17  # unknowns, and elements of features, up to which directions are exact
CG_STEPS, RESIDUAL = 50, 1e-2  # of one direction; the squared residual that is left, over that at its start
FLOOR = 1e-3  # kernel weights are taken for at least this share of their mean where directions are scaled
LINE_STEPS, FLAT, SHORT = 40, 0.1, 0.01  # of a line search: most, the share of the slope, and of the bracket, to end at
CROSSING = 1e-3  # weights that a step shrinks below this share go to 0
GONE, NOTHING = 1e-5, 1e-12  # kernel weights that are given up if the gradient agrees, and in any case


class Features(Protocol):
    """Features of n rows for M kernels, those of a kernel one after another in vectors of weights.

    Attributes
    ----------
    sizes : (M,) int64, the number of features of each kernel, at least 1.
    """

    @property
    def sizes(self) -> NDArray[np.int64]: ...

    def values(self, w: Vector) -> Vector:
        """Values sum_m phi_m(x_i) . w_m of all rows, (n,)."""

    def add(self, coef: Vector) -> Vector:
        """Sums sum_i coef_i phi_m(x_i) for all kernels, (sum of sizes,)."""

    def matrix(self) -> Vector:
        """Matrix of all features, (n, sum of sizes) float64."""

    def of_rows(self, rows: NDArray[np.intp]) -> Self:
        """Features of some rows."""

    def of_kernels(self, kernels: NDArray[np.bool_]) -> Self:
        """Features of some kernels; kernels: (M,) mask."""

    def joined(self, other: Self) -> Self:
        """Features of these kernels, followed by those of `other`."""


class WeightGroups:
    """Vectors of weights that fall into groups."""

    def __init__(self, sizes: NDArray[np.int64]) -> None:
        self.sizes, self.starts = sizes, np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(np.intp)

    def dots(self, a: Vector, b: Vector) -> Vector:
        """The product a . b of each group (..., M), of vectors along the last axis."""
        return np.asarray(np.add.reduceat(a * b, self.starts, axis=-1))

    def norms(self, a: Vector) -> Vector:
        """The norm |a| of each group (M,)."""
        return np.sqrt(self.dots(a, a))

    def spread(self, each: NDArray[Any]) -> NDArray[Any]:
        """Numbers of the groups, repeated for each weight of a group."""
        return np.repeat(each, self.sizes, axis=-1)


class Own:
    """Second derivatives of 1/2 (sum |w_m|)^2: across the weights of a kernel, along them, and of the sum.

    Parameters
    ----------
    unit, across : (size,) directions of each kernel's weights, and the derivatives across these.
    along : the derivative along them.
    total : (size,) the gradient of the sum of norms, which has no part across them.
    """

    def __init__(self, groups: WeightGroups, unit: Vector, across: Vector, along: float, total: Vector) -> None:
        self._groups, self._unit, self._across, self._along, self._total = groups, unit, across, along, total

    def times(self, z: Vector) -> Vector:
        """The product with z (size,)."""
        return self._blocks(z, self._across, self._along) + self._total * float(self._total @ z)

    def _blocks(self, z: Vector, across: Vector, along: float) -> Vector:
        radial = self._groups.spread(self._groups.dots(self._unit, z)) * self._unit
        return np.asarray(across * (z - radial) + along * radial)

    def solve_with(self, G: Vector, right: Vector) -> Vector:
        """Solve (D + G'G) x = right for these derivatives D and G (k, size): k or size unknowns, whichever is less."""
        G = np.vstack([G, self._total])
        if len(G) >= G.shape[1]:
            whole = G.T @ G
            for start, size in zip(self._groups.starts, self._groups.sizes, strict=True):
                part = slice(start, start + size)
                whole[part, part] += np.outer((self._along - self._across[part]) * self._unit[part], self._unit[part])
            whole[np.diag_indices_from(whole)] += self._across
            return np.asarray(np.linalg.solve(whole, right))
        near = self._blocks(G, 1.0 / self._across, 1.0 / self._along)
        first = self._blocks(right, 1.0 / self._across, 1.0 / self._along)
        small = G @ near.T
        small[np.diag_indices_from(small)] += 1.0
        return np.asarray(first - near.T @ np.linalg.solve(small, G @ first))


class GroupNewton:
    """The state of the method: weights w, multipliers, and what follows from them.

    Internally costs are divided by the largest of them, and features multiplied by its root: that is the same problem.

    Parameters
    ----------
    names : (M,) int64, what the caller calls the kernels.
    features : of at least one kernel, none of which is 0 on all rows.
    y, cost : (n,) float64, +-1 and c_i > 0.
    w : (size,) float64 weights, no kernel's 0.
    alpha : (n,) float64 multipliers; None for 0.
    width : h.

    Attributes
    ----------
    steps : Newton steps so far.
    """

    def __init__(
        self, names: Names, features: Features, y: Vector, cost: Vector, w: Vector, alpha: Vector | None = None,
        width: float = FIRST_WIDTH,
    ) -> None:  # fmt: skip
        self.names, self.unit = names, float(cost.max())
        self._root = float(np.sqrt(self.unit))
        self.y, self._cost, self.width, self.steps = y, cost / self.unit, width, 0
        self._prior = np.zeros(len(y)) if alpha is None else np.clip(alpha / cost, 0.0, 1.0)  # a0 / c
        self._damping = 1.0
        self._set(features, w / self._root)

    def _set(self, features: Features, w: Vector) -> None:
        """Set other kernels, or other weights."""
        self.features, self._w, self._groups = features, w, WeightGroups(features.sizes)
        self._f = self._values(w)
        self._look()

    def _values(self, w: Vector) -> Vector:
        return self._root * self.features.values(w)

    def _look(self) -> None:
        """Compute losses, gradient and dual coefficients at the current weights and multipliers."""
        self._margins = Margins(self.y, self._cost, self.width)
        self._terms: Terms = self._margins.terms(self._shifted(self._f))
        self._pull = self._root * self.features.add(self._terms.coef)
        self._norms, self._pulls = self._groups.norms(self._w), self._groups.norms(self._pull)
        self._total = float(self._norms.sum())
        self._loss = float(self._cost @ np.maximum(0.0, 1.0 - self.y * self._f))

    def _shifted(self, f: Vector) -> Vector:
        return np.asarray(f - self.y * (self.width * self._prior))

    @property
    def w(self) -> Vector:
        """Weights (size,)."""
        return self._w * self._root

    @property
    def shares(self) -> Vector:
        """Dual coefficients times labels, a_i y_i (n,), over the largest cost."""
        return self._terms.coef

    @property
    def scores(self) -> Vector:
        """Score 1/2 |v_m|^2 of each kernel, over the largest cost."""
        return 0.5 * np.square(self._pulls)

    @property
    def primal(self) -> float:
        """The primal objective P(w), over the largest cost."""
        return 0.5 * self._total**2 + self._loss

    def dual(self, largest: float) -> float:
        """The dual objective over the largest cost, where the largest 1/2 |v|^2 of all kernels is this."""
        return float(np.abs(self._terms.coef).sum()) - largest

    def run(self, tolerance: float) -> bool:
        """Solve to a duality gap of tolerance times P among these kernels; False if rounding or MAX_STEPS ended it."""
        last = np.inf
        for _ in range(MAX_STEPS):
            beat(self.steps)
            weights, multipliers = self._gaps()
            if weights + multipliers <= tolerance * self.primal:
                return True
            if weights <= MULTIPLIERS * multipliers:
                last = self._move_multipliers(multipliers, last)
            elif self._step():
                self._give_up()
            elif self._damping < 1.0:
                self._damping = 1.0
            elif multipliers > FASTER * weights:
                last = self._move_multipliers(multipliers, last)
            else:
                return False
        return False

    def _gaps(self) -> tuple[float, float]:
        """Gain that better weights could bring, and better multipliers: both together are the gap."""
        largest = float(self._pulls.max(initial=0.0))
        weights = 0.5 * self._total**2 - float(self._w @ self._pull) + 0.5 * largest**2
        alpha = np.abs(self._terms.coef)
        return weights, self._loss - float(alpha @ (1.0 - self.y * self._f))

    def _move_multipliers(self, part: float, last: float) -> float:
        self._prior = np.abs(self._terms.coef) / self._cost
        if part > FASTER * last:
            self.width = max(0.5 * self.width, SMALLEST_WIDTH)
        self._look()
        return part

    def _step(self) -> bool:
        """Take a step; False if there is nothing to gain."""
        self.steps += 1
        step = self._direction()
        return self._to_zero(step) or self._along(step)

    def _direction(self) -> Vector:
        """Newton's direction, in weights over the roots of kernel weights.

        The second derivatives of 1/2 (sum |w_m|)^2 are total / |w_m| across w_m and 0 along it, but for the square of
        the sum. Some damping along w_m makes steps safe: with fixed kernel weights it would be 1.
        """
        groups, share = self._groups, self._norms / self._total
        each = np.sqrt(np.maximum(share, FLOOR / len(share)))
        root, unit = groups.spread(each), self._w / groups.spread(self._norms)
        inside = np.flatnonzero(self._terms.curvature)
        features, curvature = self.features.of_rows(inside), self._terms.curvature[inside] * self.unit
        derivatives = Own(groups, unit, groups.spread(each**2 / share), self._damping, root * unit)
        right = root * (self._pull - self._total * unit)
        few = min(len(inside), len(root))
        if few <= DIRECT and len(inside) * len(root) <= DIRECT_ELEMENTS:
            solved = derivatives.solve_with(np.sqrt(curvature)[:, None] * features.matrix() * root, right)
        else:
            solved = conjugate_gradients(
                lambda z: derivatives.times(z) + root * features.add(curvature * features.values(root * z)), right
            )
        return np.asarray(root * solved)

    def _to_zero(self, step: Vector) -> bool:
        """Take the whole step, which takes kernels to 0 whose weights it turns round; False if that does not gain."""
        shrunk = self._groups.dots(self._w, self._w + step) <= CROSSING * np.square(self._norms)
        shrunk &= self._pulls < self._total
        if not shrunk.any() or shrunk.all():
            return False
        w = np.where(self._groups.spread(shrunk), 0.0, self._w + step)
        f = self._values(w)
        after = 0.5 * float(self._groups.norms(w).sum()) ** 2 + self._margins.terms(self._shifted(f)).smooth
        if after >= 0.5 * self._total**2 + self._terms.smooth:
            return False
        self._w, self._f = w, f
        self._look()
        return True

    def _along(self, step: Vector) -> bool:
        df = self._values(step)
        length = self._least(step, df)
        if length == 0.0 or np.array_equal(self._w + length * step, self._w):
            return False
        easier = length >= 0.5
        self._damping = max(self._damping / DAMPING, LEAST_DAMPING) if easier else min(1.0, self._damping * DAMPING)
        self._w, self._f = self._w + length * step, self._f + length * df
        self._look()
        return True

    def _least(self, step: Vector, df: Vector) -> float:
        """Length of a step, by bisection on the slope, which jumps where a kernel goes through 0."""
        f, groups = self._shifted(self._f), self._groups
        start, cross, square = np.square(self._norms), groups.dots(self._w, step), groups.dots(step, step)

        def slope(t: float) -> float:
            norms = np.sqrt(np.maximum(start + t * (2.0 * cross + t * square), np.finfo(np.float64).tiny))
            return float(norms.sum() * ((cross + t * square) / norms).sum()) + self._margins.slope(f, df, t)[0]

        first = slope(0.0)
        if not first < 0.0:
            return 0.0
        low, high, t = 0.0, np.inf, 1.0
        for _ in range(LINE_STEPS):
            here = slope(t)
            if FLAT * first <= here <= 0.0:
                return t
            low, high = (t, high) if here < 0.0 else (low, t)
            if high - low <= SHORT * high:
                break
            t = 2.0 * low if high == np.inf else 0.5 * (low + high)
        return low  # beyond it the objective may be larger than at 0

    def _give_up(self) -> None:
        """Leave out kernels without weight."""
        gone = (self._norms <= GONE * self._total) & (self._pulls < self._total)
        gone |= self._norms <= NOTHING * self._total
        if gone.any() and not gone.all():
            self.keep(~gone)

    def keep(self, kernels: NDArray[np.bool_]) -> None:
        """Leave out the other kernels."""
        w = self._w[self._groups.spread(kernels)]
        self.names = self.names[kernels]
        self._set(self.features.of_kernels(kernels), w)

    def admit(self, names: Names, features: Features, share: float) -> None:
        """Take in kernels, with weights of this share of all together, in the directions of their gradients."""
        groups = WeightGroups(features.sizes)
        pull = features.add(self._terms.coef)
        each = share * self._total / (len(features.sizes) * groups.norms(pull))
        self.names, self._damping = np.concatenate([self.names, names]), 1.0
        self._set(self.features.joined(features), np.concatenate([self._w, groups.spread(each) * pull]))


def conjugate_gradients(product: Callable[[Vector], Vector], right: Vector) -> Vector:
    """Solve product(x) = right for x, nearly; product is positive semidefinite."""
    x, residual, direction = np.zeros_like(right), right.copy(), right.copy()
    square = first = float(right @ right)
    for _ in range(CG_STEPS):
        moved = product(direction)
        curve = float(direction @ moved)
        if curve <= 0.0:  # lost in rounding
            break
        length = square / curve
        x += length * direction
        residual -= length * moved
        before, square = square, float(residual @ residual)
        if square <= RESIDUAL * first:
            break
        direction = residual + square / before * direction
    return x
