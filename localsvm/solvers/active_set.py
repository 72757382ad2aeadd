"""SequentialMKL (Picard 2024): l1 multiple kernel learning over a bank of kernels, of which few get weights.

    P = min_f  1/2 (sum_m |f_m|)^2 + sum_i c_i max(0, 1 - y_i f(x_i)),    f = sum_m f_m,  f_m of kernel m,
    D = max over 0 <= a <= c:  sum_i a_i - max_m q_m(a),    q_m(a) = 1/2 (a y)' K_m (a y), the score of kernel m

It is solved on an active set. The kernels outside with the largest scores, which exceed those inside, enter, until one
duality gap over the whole bank, P - D over P, is small enough. How the active kernels are solved depends on how they
are given: by matrices in localsvm/solvers/mkl.py, by few features in localsvm/solvers/feature_mkl.py.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol, TypeVar

Kernels = TypeVar("Kernels")  # how some kernels of its bank are given to a problem

MOST_ROUNDS = 500
ACTIVE_SHARE = 0.5  # of the tolerance, for the gap among the active kernels; halved where that is not enough
ROUGHER = 0.2  # of the gap over the bank: what the next round may leave among the active kernels, before the last ones
FINEST = 1e-3  # the smallest share of the tolerance for the active kernels


class Certified:
    """A solution, with the objectives P and D over the whole bank."""

    primal: float
    dual: float

    @property
    def gap(self) -> float:
        """The duality gap over the primal objective."""
        return (self.primal - self.dual) / self.primal if self.primal > 0.0 else 0.0


class Active(Protocol[Kernels]):
    """The problem of the active kernels, with its solution so far."""

    def solve(self, share: float) -> bool:
        """Solve until the gap among the active kernels is this share of P; False if rounding ended it."""

    def look(self, kernels: Kernels) -> float:
        """Score these kernels: the duality gap over them and the active ones, over P."""

    def likely(self) -> Kernels | None:
        """Kernels, of those last looked at, that may soon enter; None where it takes little time to score all."""

    def admit(self) -> bool:
        """Take in the best of the kernels last looked at; False if none exceeds the active ones."""


def sequential(active: Active[Kernels], bank: Kernels, tolerance: float) -> int:
    """Solve to this duality gap over the whole bank, as far as rounding allows.

    Returns
    -------
    int
        Number of times that the whole bank was scored.
    """
    finest, gap, rounds = ACTIVE_SHARE * tolerance, 1.0, 0
    while True:
        rounds += 1
        share = max(finest, ROUGHER * min(gap, 1.0))
        solved = active.solve(share)
        gap = active.look(bank)
        if gap <= tolerance or rounds == MOST_ROUNDS:
            return rounds
        likely = active.likely()
        if active.admit():
            if likely is not None:
                _among(active, likely, max(finest, ROUGHER * gap))
            continue
        if not solved or finest <= FINEST * tolerance:
            return rounds
        if share == finest:
            finest *= 0.5


def _among(active: Active[Kernels], likely: Kernels, share: float) -> None:
    """Run rounds over a few kernels until the gap over these is twice `share` or less; others are scored afterwards."""
    for _ in range(MOST_ROUNDS):
        active.solve(share)
        if active.look(likely) <= 2.0 * share or not active.admit():
            return


def streamed(active: Active[Kernels], bank: Kernels, tolerance: float, parts: Iterable[Kernels]) -> int:
    """Make one pass over the parts of the bank: what exceeds the active kernels enters, and no part is seen again.

    The whole bank is scored once, at the end: that certifies the gap, which may be larger than the tolerance.

    Returns
    -------
    int
        Number of parts that were scored, and 1 for the whole bank.
    """
    finest, rounds = ACTIVE_SHARE * tolerance, 1
    active.solve(ROUGHER)
    for part in parts:
        gap = active.look(part)
        rounds += 1
        if active.admit():
            active.solve(max(finest, ROUGHER * min(gap, 1.0)))
    active.solve(finest)
    active.look(bank)
    return rounds
