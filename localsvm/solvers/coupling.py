"""Tasks that hold each other: 1/2 tr(W' B^-1 W) in place of 1/2 |W|^2, and the relaxation that finds B.

B is a positive definite covariance between tasks. Of clustered multi-task learning (Jacob, Bach, Vert 2008; Zhou, Chen,
Ye 2011), whose tasks fall into r unknown groups around the mean of each, it is the convex relaxation

    B = (eta I + M) / (1 + eta),    0 <= M <= I,  tr M = r,

in which an eigenvector of M with the value 1 is as free as an uncoupled task, and one with the value 0 costs
(1 + eta) / eta times as much. eta to infinity, or r = tasks, is B = I.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
HALVINGS = 200  # of the bracket of log nu: to the last digit


@dataclass(frozen=True)
class Coupling:
    """The covariance B (tasks, tasks) float64 between tasks; None for I.

    Weights are as in csrc/linear.h: those of the tasks one after another, then a shared bias, which B leaves alone.
    """

    covariance: Floats | None = None

    @cached_property
    def precision(self) -> Floats:
        """Inverse covariance B^-1 (tasks, tasks)."""
        assert self.covariance is not None
        return np.asarray(np.linalg.inv(self.covariance), np.float64)

    def spread(self, w: Floats) -> Floats:
        """Product (B (x) I) w."""
        return w if self.covariance is None else _times(self.covariance, w)

    def pull(self, w: Floats) -> Floats:
        """Product (B^-1 (x) I) w."""
        return w if self.covariance is None else _times(self.precision, w)


def _times(matrix: Floats, w: Floats) -> Floats:
    return np.append((matrix @ w[:-1].reshape(len(matrix), -1)).ravel(), w[-1])


ALONE = Coupling()


def covariance(M: Floats, coupling: float) -> Floats:
    """Covariance B = (I + coupling M) / (1 + coupling), which is (eta I + M) / (1 + eta) with coupling = 1 / eta."""
    return np.asarray((np.eye(len(M)) + coupling * M) / (1.0 + coupling))


def group_matrix(W: Floats, groups: float, coupling: float) -> Floats:
    """The M (tasks, tasks) that minimises tr(W' (eta I + M)^-1 W) over 0 <= M <= I, tr M = groups; coupling = 1 / eta.

    With the eigenvectors of WW' and its eigenvalues s^2, those of M are clip(s / nu - eta, 0, 1), nu such that they sum
    to `groups`. What W has nothing of shares the rest.

    Parameters
    ----------
    W : (tasks, weights) float64.
    groups : from 0; with as many as tasks, or more, M is I.
    coupling : above 0.
    """
    tasks = len(W)
    if groups >= tasks:
        return np.eye(tasks)
    squares, U = np.linalg.eigh(W @ W.T)
    s = np.sqrt(np.maximum(squares, 0.0))
    s[s <= 1e-12 * s.max()] = 0.0
    felt = int(np.count_nonzero(s))
    if felt <= groups:
        m = np.where(s > 0.0, 1.0, (groups - felt) / (tasks - felt))
    else:
        m = _shares(s, groups, 1.0 / coupling)
    return np.asarray((U * m) @ U.T)


def _shares(s: Floats, total: float, eta: float) -> Floats:
    """Values clip(s / nu - eta, 0, 1) with the sum `total`, which is below the number of s above 0."""
    low, high = np.log(s[s > 0.0].min() / (1.0 + eta)), np.log(s.max() / eta)  # all are 1, all are 0
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        if not low < middle < high:
            break
        low, high = (middle, high) if np.clip(s * np.exp(-middle) - eta, 0.0, 1.0).sum() > total else (low, middle)
    return np.asarray(np.clip(s * np.exp(-high) - eta, 0.0, 1.0))
