"""l1 multiple kernel learning for kernels that are given by their matrices, see localsvm/solvers/active_set.py.

SimpleMKL lowers J(beta) of localsvm/solvers/mixed_svm.py on all kernels, along the reduced gradient (Rakotomamonjy,
Bach, Canu, Grandvalet, JMLR 9, 2008). SequentialMKL does so on an active set (Picard 2024). There a step is Newton's,
as second derivatives are at hand (Chapelle, Rakotomamonjy 2008). Both stop at the duality gap over the whole bank.

localsvm/solvers/feature_mkl.py does this for kernels that are given by few features, without matrices.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from localsvm.solvers.active_set import Certified, sequential, streamed
from localsvm.solvers.mixed_svm import Floats, Machine, MatrixBank, Names

ADMITTED = 16  # kernels that enter in a round


@dataclass(frozen=True)
class KernelMixture(Certified):
    """A solution.

    Attributes
    ----------
    names, beta : (M,) the kernels with weights, and the weights, which sum to 1.
    b, f : (n,) coefficients a_i y_i, and decision values.
    primal, dual : the objectives over the whole bank.
    solves, rounds : SVMs that were solved, and scores of the whole bank.
    converged : the gap is within the tolerance.
    """

    names: Names
    beta: Floats
    b: Floats
    f: Floats
    primal: float
    dual: float
    solves: int
    rounds: int
    converged: bool


def simple_mkl(
    bank: MatrixBank, y: Floats, cost: Floats, tolerance: float, start: KernelMixture | None = None
) -> KernelMixture:
    """SimpleMKL on all kernels of the bank, from equal weights.

    Parameters
    ----------
    y, cost : (n,) float64, +-1, or 0 where a row takes no part; and c_i >= 0.
    tolerance : for the duality gap, over the primal objective.
    start : the solution of a similar problem over the same bank and rows.
    """
    at = Machine(bank, y, cost, tolerance, _first(y, cost, start))
    names, beta = np.arange(bank.size), np.full(bank.size, 1.0 / bank.size)
    if start is not None:
        beta = np.zeros(bank.size)
        beta[start.names] = start.beta
    at.set(names, beta)
    at.descend(tolerance, newton=False)
    return _found(at, float(at.q.max()), 1)


def sequential_mkl(
    bank: MatrixBank,
    y: Floats,
    cost: Floats,
    tolerance: float,
    start: KernelMixture | None = None,
    parts: Sequence[Names] = (),
) -> KernelMixture:
    """SequentialMKL over the bank; other parameters as of `simple_mkl`.

    Parameters
    ----------
    parts : names of all kernels, if each is to be seen once; see solvers.active_set.streamed.
    """
    at, everything = Machine(bank, y, cost, tolerance, _first(y, cost, start)), np.arange(bank.size)
    if start is None:
        first = parts[0] if parts else everything
        at.set(first[[np.argmax(at.scores(first))]], np.ones(1))
    else:
        at.set(start.names, start.beta)
    active = ActiveMatrices(at)
    rounds = streamed(active, everything, tolerance, parts) if parts else sequential(active, everything, tolerance)
    return _found(at, float(active.scores.max()), rounds)


class ActiveMatrices:
    """The active kernels of solvers.active_set. scores: those of the kernels last looked at."""

    def __init__(self, at: Machine) -> None:
        self._at, self._looked = at, np.empty(0, np.int64)
        self.scores: Floats = np.empty(0)

    def solve(self, share: float) -> bool:
        """Solve by Newton's method on the weights; see `Active.solve`."""
        return self._at.descend(share, newton=True)

    def look(self, kernels: Names) -> float:
        """Score these kernels; matrices of active kernels are kept rather than theirs."""
        at = self._at
        at.bank.prefer(at.names[at.beta > 0.0])
        self._looked, self.scores = kernels, at.scores(kernels)
        return at.gap(float(self.scores.max()))

    def likely(self) -> None:
        """None: scores of all kernels are as cheap as those of few, where matrices are kept."""

    def admit(self) -> bool:
        """Take in kernels without weight; kernels that lost their weight leave."""
        at, active = self._at, self._at.beta > 0.0
        outside = np.where(np.isin(self._looked, at.names), 0.0, self.scores)
        entering = np.argsort(-outside, kind="stable")[:ADMITTED]
        entering = entering[outside[entering] > float(at.q.max())]
        if not len(entering):
            return False
        names = np.concatenate([at.names[active], self._looked[entering]])
        at.set(names, np.concatenate([at.beta[active], np.zeros(len(entering))]))
        return True


def _first(y: Floats, cost: Floats, start: KernelMixture | None) -> Floats:
    """Coefficients to begin from: at their bounds, or those of the start within the bounds."""
    bound = np.abs(y) * cost
    return (
        y * bound if start is None else np.asarray(np.clip(start.b, np.minimum(y, 0) * cost, np.maximum(y, 0) * cost))
    )


def _found(at: Machine, largest: float, rounds: int) -> KernelMixture:
    used, dual = at.beta > 0.0, at.sum_alpha - largest
    return KernelMixture(
        at.names[used], at.beta[used], at.b.copy(), at.f.copy(), at.primal, dual, at.solves, rounds,
        at.primal - dual <= at.tolerance * at.primal,
    )  # fmt: skip
