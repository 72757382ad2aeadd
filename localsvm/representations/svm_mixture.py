"""Mixtures of linear SVMs by EM (Mao, Wu, Hu, O'Donovan, CIKM 2014): a Gaussian and a linear SVM for each component.

    max  sum_i n_i log sum_j pi_j N(x_i | m_j, S_j) exp(-c_i loss(y_i, f_j(x_i))) + log prior(S) - 1/(2C) tr(W' B^-1 W)

over the mixture, the weights W (one f_j a row) and, with a coupling, over the matrix M that B is made of. n_i is how
many rows a row is, c_i a factor on its loss. E: q_ij in proportion to the terms of the inner sum. M: the mixture in
closed form, then M in closed form, then W: an SVM of several tasks (localsvm/solvers/weighted_tasks.py).
No step lowers the objective, but for what the weights up to SMALLEST that it leaves out are worth.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from localsvm.data.blocks.dataset import Examples
from localsvm.pulse import beat
from localsvm.representations.mixture import Mixture, estimate
from localsvm.solvers.coupling import ALONE, Coupling, covariance, group_matrix
from localsvm.solvers.row_losses import RowLoss
from localsvm.solvers.weighted_tasks import SMALLEST, TaskWeights, WeightedTasks, task_values

Floats = NDArray[np.float64]
FALL = 1e-6  # a round that lowers the objective by more than this a row has made it fall
ALTERNATIONS = 2  # solutions for W, each with the M of the one before, where no rounds of EM follow


@dataclass(frozen=True)
class Tasks:
    """The coupling of tasks, and the tolerance to which their weights are solved for.

    Attributes
    ----------
    coupling : alpha / beta of the paper; 0 for tasks of their own.
    groups : r, the trace of M.
    loss : of the rows.
    tolerance : duality gap over the objective.
    """

    coupling: float
    groups: float
    loss: RowLoss
    tolerance: float

    def matrix(self, tasks: int) -> Floats:
        """The M to begin with: nothing is known of groups."""
        return np.eye(tasks) * min(1.0, self.groups / tasks)

    def of(self, M: Floats) -> Coupling:
        """The coupling by M."""
        return Coupling(covariance(M, self.coupling)) if self.coupling > 0.0 else ALONE

    def next(self, W: Floats, M: Floats) -> Floats:
        """The best M for these weights."""
        return group_matrix(W, self.groups, self.coupling) if self.coupling > 0.0 else M


@dataclass(frozen=True)
class MixtureRows:
    """Rows X (n, d) of a problem, y (n,) +-1 or values, count n_i and factor c_i."""

    X: Examples
    y: Floats
    count: Floats
    factor: Floats


@dataclass(frozen=True)
class SVMMixture:
    """The state of EM: a mixture, the weights of its tasks, M, and `trace` (rounds,), the objective before each round.

    Attributes
    ----------
    ended : the objective no longer rose.
    fell : it fell in some round.
    """

    mixture: Mixture
    weights: TaskWeights
    M: Floats
    trace: Floats
    ended: bool
    fell: bool


def solve_tasks(
    rows: WeightedTasks, y: Floats, cost: Floats, tasks: Tasks, weights: TaskWeights | None, M: Floats | None
) -> tuple[TaskWeights, Floats]:
    """Solve for W and M with given responsibilities, from those of a similar problem; cost (n,): C n_i c_i."""
    M = tasks.matrix(rows.rows.tasks) if M is None else M
    for _ in range(ALTERNATIONS if tasks.coupling > 0.0 else 1):
        M = M if weights is None else tasks.next(weights.W, M)
        weights = rows.solve(y, cost, tasks.of(M), tasks.loss, tasks.tolerance, weights)
    assert weights is not None
    return weights, M


def fit_svm_mixture(
    data: MixtureRows, cost: float, tasks: Tasks, begin: SVMMixture, tolerance: float, rounds: int
) -> SVMMixture:
    """Run EM with labels, until a round raises the objective by less than `tolerance` a row."""
    mixture, weights, M = begin.mixture, begin.weights, begin.M
    total, ended = float(data.count.sum()), False
    trace: list[float] = []
    while True:
        beat(len(trace))
        loss = data.factor[:, None] * tasks.loss.of(task_values(data.X, weights.W), data.y[:, None])
        joint = mixture.log_densities(data.X) - loss
        likelihood = logsumexp(joint, axis=1)
        penalty = float(np.vdot(weights.W, tasks.of(M).pull(_flat(weights.W))[:-1])) / (2.0 * cost)
        trace.append(float(data.count @ likelihood) + mixture.log_prior() - penalty)
        ended = len(trace) > 1 and trace[-1] - trace[-2] < tolerance * total
        if ended or len(trace) > rounds:
            break
        q = np.exp(joint - likelihood[:, None])
        mixture = estimate(data.X, q * data.count[:, None], mixture.prior, mixture.mean)
        M = tasks.next(weights.W, M)
        weights = _not_worse(data, q, cost, tasks, M, weights, loss)
    fell = bool(np.any(np.diff(trace) < -FALL * total))
    return SVMMixture(mixture, weights, M, np.asarray(trace), ended, fell)


def _not_worse(
    data: MixtureRows, q: Floats, cost: float, tasks: Tasks, M: Floats, before: TaskWeights, loss: Floats
) -> TaskWeights:
    """The weights for these responsibilities; those before where the solver's tolerance is more than the step gains."""
    coupling, weight = tasks.of(M), cost * data.count
    solved = WeightedTasks(data.X, q).solve(data.y, weight * data.factor, coupling, tasks.loss, tasks.tolerance, before)
    penalty = 0.5 * float(np.vdot(before.W, coupling.pull(_flat(before.W))[:-1]))
    kept = penalty + float(weight @ np.where(q > SMALLEST, q * loss, 0.0).sum(axis=1))
    return solved if solved.report.primal <= kept else before


def _flat(W: Floats) -> Floats:
    return np.append(W.ravel(), 0.0)
