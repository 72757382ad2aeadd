"""SequentialMKL for kernels that are given by few features, without matrices; see localsvm/solvers/active_set.py.

The problem is that of localsvm/solvers/group_newton.py over all kernels of a bank. There it is solved for the active
ones.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol, Self

import numpy as np
from numpy.typing import NDArray

from localsvm.solvers.active_set import Certified, sequential, streamed
from localsvm.solvers.group_newton import FIRST_WIDTH, Features, GroupNewton, Names, WeightGroups

Vector = NDArray[np.float64]

ADMITTED = 32  # kernels that enter in a round
SAMPLE = 2000  # rows by which the first kernels are chosen
ROUNDING = 1e-3  # relative errors of a bank's scores
FIRST_SHARE = 1e-3  # weight of kernels that enter, of that of all, ...
AGAIN, LEAST_SHARE = 0.1, 1e-9  # ... less by a factor for each time that one entered before, but no less than this
LARGE, EVERY = 8000, 4  # from so many rows on, every fourth is solved first
COARSE = 10.0  # times the tolerance, there


class FeatureBank(Protocol):
    """A bank of kernels over n rows, named 0 to size - 1."""

    @property
    def size(self) -> int: ...

    def scores(self, coef: Vector) -> Vector:
        """Scores 1/2 |sum_i coef_i phi_m(x_i)|^2 of all kernels (size,), perhaps in float32, from coef (n,) float64."""

    def features(self, names: Names) -> Features:
        """The features of some kernels."""

    def of_rows(self, rows: NDArray[np.intp]) -> Self:
        """Bank over some rows, with the same names; perhaps with fewer candidates."""

    def likely(self, scores: Vector) -> Self | None:
        """Bank of the kernels with the largest scores (size,), same names; None where scoring all takes little time."""


@dataclass(frozen=True)
class Found(Certified):
    """A solution.

    Attributes
    ----------
    names : (M,) int64, the kernels with weights.
    w : float64 weights, kernel after kernel.
    norms : (M,) |w_m|; the weights of the kernels are norms / sum of norms.
    coef : (n,) float64 dual coefficients times labels.
    width : the h of the method of multipliers.
    primal, dual : the objectives over the whole bank.
    steps, rounds : Newton steps, and scores of the whole bank.
    converged : the gap is within the tolerance.
    """

    names: Names
    w: Vector
    norms: Vector
    coef: Vector
    width: float
    primal: float
    dual: float
    steps: int = 0
    rounds: int = 0
    converged: bool = field(default=True)


def feature_mkl(
    bank: FeatureBank, y: Vector, cost: Vector, tolerance: float, admitted: int = ADMITTED, start: Found | None = None,
    parts: Sequence[FeatureBank] = (),
) -> Found:  # fmt: skip
    """Solve to a duality gap of `tolerance` times the primal objective, or in one pass over the parts of the bank.

    Parameters
    ----------
    y, cost : (n,) float64, +-1 and c_i > 0; n may be 0.
    admitted : kernels that enter in a round.
    start : the solution of a similar problem over the same bank and rows: its kernels and coefficients are begun from.
    parts : of the bank, with its names, if each kernel is to be seen once; see solvers.active_set.streamed.
    """
    if start is None and not parts and len(y) >= LARGE:
        start = _from_fewer(bank, y, cost, tolerance, admitted)
        solution = feature_mkl(bank, y, cost, tolerance, admitted, start)
        return replace(solution, steps=solution.steps + start.steps)
    begun = (_begin(part, y, cost, admitted, start) for part in parts or (bank,))
    at = next((one for one in begun if one is not None), None)
    if at is None:
        return nothing(y, cost)
    active = ActiveFeatures(at, admitted)
    rounds = streamed(active, bank, tolerance, parts) if parts else sequential(active, bank, tolerance)
    return active.found(rounds, tolerance)


def _from_fewer(bank: FeatureBank, y: Vector, cost: Vector, tolerance: float, admitted: int) -> Found:
    """Start from the solution on every fourth row, whose costs stand for those of all; coefficients as margins say."""
    rows = np.arange(0, len(y), EVERY)
    costs = cost[rows] * (cost.sum() / cost[rows].sum())
    solution = feature_mkl(bank.of_rows(rows), y[rows], costs, COARSE * tolerance, admitted)
    margin = y * bank.features(solution.names).values(solution.w)
    return replace(solution, coef=y * cost * np.clip(0.5 + (1.0 - margin) / solution.width, 0.0, 1.0))


class ActiveFeatures:
    """The active kernels of solvers.active_set, at a state of Newton's method. admitted: most that enter in a round."""

    def __init__(self, at: GroupNewton, admitted: int) -> None:
        self._at, self._admitted = at, admitted
        self._entering: tuple[Names, Features] | None = None
        self._likely: FeatureBank | None = None
        self._entered: Counter[int] = Counter()
        self._dual = 0.0

    def solve(self, share: float) -> bool:
        """Solve by Newton's method; see `Active.solve`."""
        return self._at.run(share)

    def look(self, kernels: FeatureBank) -> float:
        """Score these kernels, and keep the features of those that may enter; see `Active.look`."""
        at = self._at
        inside = float(at.scores.max())
        self._entering, scores = outside(kernels, at.names, at.shares, at.unit, self._admitted, inside)
        self._likely, largest = kernels.likely(scores), float(scores.max(initial=0.0))
        self._dual = at.dual(max(inside, largest))
        return (at.primal - self._dual) / at.primal

    def likely(self) -> FeatureBank | None:
        """Kernels that may soon enter, the best of a large bank; see `Active.likely`."""
        return self._likely

    def admit(self) -> bool:
        """Take in kernels with little weight; with less where one entered before, as with too much it leaves again."""
        if self._entering is None:
            return False
        names, features = self._entering
        before = max(self._entered[name] for name in names.tolist())
        self._entered.update(names.tolist())
        self._at.admit(names, features, max(LEAST_SHARE, FIRST_SHARE * AGAIN**before))
        return True

    def found(self, rounds: int, tolerance: float) -> Found:
        """The solution, where kernels were last looked at."""
        at, w, groups = self._at, self._at.w, WeightGroups(self._at.features.sizes)
        converged = at.primal - self._dual <= tolerance * at.primal
        return Found(
            at.names, w, groups.norms(w), at.shares * at.unit, at.width, at.primal * at.unit, self._dual * at.unit,
            at.steps, rounds, converged,
        )  # fmt: skip


def _begin(bank: FeatureBank, y: Vector, cost: Vector, admitted: int, start: Found | None) -> GroupNewton | None:
    """First state of Newton's method; None if no kernel has a feature other than 0."""
    if start is not None and len(start.names):
        features = bank.features(start.names)
        return GroupNewton(start.names, features, y, cost, start.w, np.abs(start.coef), start.width)
    if not len(y):
        return None
    shares = y * (cost / cost.max())
    sample = np.zeros(len(y))
    sample[:: -(-len(y) // SAMPLE)] = 1.0
    for coef in (sample * shares, shares):  # the sample may lie where all features are 0
        names = largest_of(bank.scores(coef), admitted)
        if not len(names):
            continue
        features = bank.features(names)
        pull = features.add(shares)
        felt = WeightGroups(features.sizes).norms(pull) > 0.0
        if felt.any():
            features, pull = features.of_kernels(felt), pull[WeightGroups(features.sizes).spread(felt)]
            return GroupNewton(names[felt], features, y, cost, _safe(features, pull, float(cost.max())))
    return None


def _safe(features: Features, pull: Vector, unit: float) -> Vector:
    """Weights along the gradient that reach no margin."""
    w = unit * pull / len(features.sizes)
    return np.asarray(w / max(1.0, float(np.abs(features.values(w)).max())))


def largest_of(scores: Vector, count: int, above: float = 0.0) -> Names:
    """The names of the largest scores, the largest first, of equal ones the first."""
    names = np.flatnonzero(scores > above)
    if len(names) > count:
        least = np.partition(scores[names], len(names) - count)[len(names) - count]
        names = names[scores[names] >= least]
    return names[np.argsort(-scores[names], kind="stable")][:count].astype(np.int64)


def outside(
    bank: FeatureBank, names: Names, shares: Vector, unit: float, admitted: int, inside: float
) -> tuple[tuple[Names, Features] | None, Vector]:
    """The kernels to take in, and the scores of the bank, 0 for active ones. What is close to deciding is exact.

    Parameters
    ----------
    names, inside : of the active kernels, and the largest of their scores.
    shares, unit : coefficients over the unit; scores are over it, too.
    """
    scores = bank.scores(shares) * unit
    scores[names] = 0.0
    best = largest_of(scores, admitted, (1.0 - ROUNDING) * inside)
    if not len(best):
        return None, scores
    features = bank.features(best)
    exact = 0.5 * unit * np.square(WeightGroups(features.sizes).norms(features.add(shares)))
    scores[best] = exact
    better = exact > inside
    return ((best[better], features.of_kernels(better)) if better.any() else None), scores


def nothing(y: Vector, cost: Vector) -> Found:
    """The solution where all features are 0, or there are no rows: f = 0."""
    none: Vector = np.empty(0)
    total = float(cost.sum())
    return Found(np.empty(0, np.int64), none, none, y * cost, FIRST_WIDTH, total, total)
