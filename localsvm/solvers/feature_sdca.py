"""SequentialMKL as Algorithm 1 of its paper has it (Picard 2024): dual coordinate ascent and reduced gradients.

Epochs of the ascent take turns with steps on the weights of the kernels. It is here for comparisons:
localsvm/solvers/feature_mkl.py solves the same problem.

With weights beta of the active kernels, an epoch visits all rows in random order, and sets

    alpha_i = clip(alpha_i + (1 - y_i f(x_i)) / K_ii, 0, c_i),   f(x_i) = sum_j alpha_j y_j K_ij,  K = sum_m beta_m K_m.

Where K_ii = 0, as for a row that no active kernel reaches, alpha_i = c_i: were it left out, no kernel would ever be
drawn to it. The epochs are not a stopping rule: alpha is not optimal, scores of kernels are noisy, and the gap, which
is certified all the same, stays open. As printed, the algorithm lacks labels y_i, and updates only rows behind i.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from localsvm.pulse import beat
from localsvm.solvers.active_set import sequential
from localsvm.solvers.feature_mkl import FeatureBank, Found, largest_of, nothing, outside
from localsvm.solvers.group_newton import FIRST_WIDTH, Features, Names, WeightGroups

Vector = NDArray[np.float64]
STEPS, HALVINGS = 50, 10  # of a descent on the weights, and of the length of one step
FALLS = 1e-4  # the share of J by which a step has to lower it
ROUNDS = 100  # in which kernels enter
GONE = 1e-8  # weights below it go to 0


def feature_sdca(
    bank: FeatureBank, y: Vector, cost: Vector, tolerance: float, admitted: int, epochs: int, rng: np.random.Generator
) -> Found:
    """Run Algorithm 1 from the kernel with the largest score. It ends where no kernel enters.

    Parameters
    ----------
    y, cost, tolerance, admitted : as of `feature_mkl`; a gap within the tolerance ends it, too.
    epochs : number of them in each solution for alpha.
    rng : draws the order of the rows.
    """
    shares = y * cost
    names = largest_of(bank.scores(shares), 1) if len(y) else np.empty(0, np.int64)
    if not len(names):
        return nothing(y, cost)
    active = ActiveEpochs(names, bank.features(names), y, cost, admitted, epochs, rng)
    return active.found(sequential(active, bank, tolerance), tolerance)


class ActiveEpochs:
    """The active kernels of solvers.active_set: weights beta (M,) and coefficients alpha (n,)."""

    def __init__(
        self, names: Names, features: Features, y: Vector, cost: Vector, admitted: int, epochs: int,
        rng: np.random.Generator,
    ) -> None:  # fmt: skip
        self._y, self._cost, self._admitted, self._epochs, self._rng = y, cost, admitted, epochs, rng
        self._names, self._features, self._beta = names, features, np.ones(len(names))
        self._alpha, self._steps = cost.copy(), 0
        self._rounds = 0
        self._entering: tuple[Names, Features] | None = None
        self._dual = 0.0

    def solve(self, share: float) -> bool:
        """Follow reduced gradients until J does not fall; False: the epochs, not the share, limit how exact that is."""
        self._matrix, self._groups = self._features.matrix(), WeightGroups(self._features.sizes)
        self._alpha, self._J = self._ascent(self._beta)
        for _ in range(STEPS):
            if not self._descend():
                break
        kept = self._beta > 0.0
        self._names, self._features, self._beta = self._names[kept], self._features.of_kernels(kept), self._beta[kept]
        return False

    def look(self, kernels: FeatureBank) -> float:
        """Score these kernels, and keep the features of those that may enter; see `Active.look`."""
        pulls = WeightGroups(self._features.sizes).norms(self._features.add(self._shares))
        inside = 0.5 * float(np.square(pulls).max())
        self._entering, scores = outside(kernels, self._names, self._shares, 1.0, self._admitted, inside)
        largest = float(scores.max(initial=0.0))
        self._dual = float(self._alpha.sum()) - max(inside, largest)
        primal = self._primal(*self._weights())
        return (primal - self._dual) / primal

    def likely(self) -> None:
        """None: the paper scores all kernels."""

    def admit(self) -> bool:
        """Take in kernels without weight. Epochs that are cut short let kernels come and go, so rounds are bounded."""
        self._rounds += 1
        if self._entering is None or self._rounds == ROUNDS:
            return False
        names, features = self._entering
        self._names, self._features = np.concatenate([self._names, names]), self._features.joined(features)
        self._beta = np.concatenate([self._beta, np.zeros(len(names))])
        return True

    def found(self, rounds: int, tolerance: float) -> Found:
        """The solution, w_m = beta_m sum_i alpha_i y_i phi_m(x_i)."""
        w, norms = self._weights()
        primal = self._primal(w, norms)
        converged = primal - self._dual <= tolerance * primal
        return Found(
            self._names, w, norms, self._shares, FIRST_WIDTH, primal, self._dual, self._steps, rounds, converged
        )  # fmt: skip

    @property
    def _shares(self) -> Vector:
        return self._alpha * self._y

    def _weights(self) -> tuple[Vector, Vector]:
        """Weights, and their norms kernel by kernel."""
        groups = WeightGroups(self._features.sizes)
        w = groups.spread(self._beta) * self._features.add(self._shares)
        return w, groups.norms(w)

    def _primal(self, w: Vector, norms: Vector) -> float:
        hinge = np.maximum(0.0, 1.0 - self._y * self._features.values(w))
        return 0.5 * float(norms.sum()) ** 2 + float(self._cost @ hinge)

    def _ascent(self, beta: Vector) -> tuple[Vector, float]:
        """Coefficients alpha after the epochs, from where they are, and the dual objective J of these weights there."""
        Z = self._matrix * np.sqrt(self._groups.spread(beta))
        alpha, y, cost, squares = self._alpha.copy(), self._y, self._cost, np.einsum("ij,ij->i", Z, Z)
        alpha[squares == 0.0] = cost[squares == 0.0]
        u = (alpha * y) @ Z
        for _ in range(self._epochs):
            for i in self._rng.permutation(np.flatnonzero(squares)):
                to = min(max(alpha[i] + (1.0 - y[i] * (Z[i] @ u)) / squares[i], 0.0), cost[i])
                if to != alpha[i]:
                    u += ((to - alpha[i]) * y[i]) * Z[i]
                    alpha[i] = to
        self._steps += self._epochs
        beat(self._steps)
        return alpha, float(alpha.sum()) - 0.5 * float(u @ u)

    def _descend(self) -> bool:
        """Take a step along the reduced gradient; False if it lowers J at no length."""
        v = self._shares @ self._matrix
        q, beta = 0.5 * self._groups.dots(v, v), self._beta
        first = int(np.argmax(beta))
        step = q - q[first]
        step[(beta <= 0.0) & (step < 0.0)] = 0.0
        step[first] = 0.0
        step[first] = -step.sum()
        falling = step < 0.0
        if not falling.any():
            return False
        step *= (beta[falling] / -step[falling]).min()
        for _ in range(HALVINGS):
            to = np.maximum(beta + step, 0.0)
            to[to < GONE] = 0.0
            to /= to.sum()
            alpha, J = self._ascent(to)
            if J < (1.0 - FALLS) * self._J:
                self._alpha, self._J, self._beta = alpha, J, to
                return True
            step *= 0.5
        return False
