"""Mixtures of Gaussians by EM, in float64 and with logarithms throughout.

Covariances are full or diagonal. Each has the prior of `strength` rows that lie with the variance v in every direction,

    S_j = (sum_i q_ij (x_i - m_j)(x_i - m_j)' + strength v I) / (sum_i q_ij + strength),

so that rows on a sphere, few rows, or none have one, too: it maximises the likelihood with an inverse Wishart prior on
S_j, whose logarithm is strength / 2 times (log |S_j^-1| - v tr S_j^-1). EM raises the sum of both.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from localsvm.data.blocks.dataset import Examples, between

Floats = NDArray[np.float64]
BLOCK = 1 << 20  # elements of rows that are worked on at once
NOTHING = 1e-300  # the share of a component that has no rows
LOG_2PI = float(np.log(2.0 * np.pi))


@dataclass(frozen=True)
class Prior:
    """The prior of covariances: `strength` rows of this variance in every direction; full, or else diagonal ones."""

    variance: float
    strength: float
    full: bool

    @classmethod
    def of(cls, X: Examples, count: Floats, shrinkage: float, components: int, full: bool) -> Prior:
        """The prior with the mean variance of the columns, and `shrinkage` times the rows of an average component.

        count : (n,) float64, the number of rows that each row of X stands for.
        """
        total, mean = float(count.sum()), np.zeros(X.shape[1])
        for rows, dense in blocks(X):
            mean += count[rows] @ dense / total
        variance = sum(float(count[rows] @ np.square(dense - mean).mean(axis=1)) for rows, dense in blocks(X)) / total
        # where all rows are equal, any variance will do
        return cls(variance if variance > 0.0 else 1.0, shrinkage * total / components, full)


@dataclass(frozen=True)
class Mixture:
    """A mixture of K Gaussians.

    Attributes
    ----------
    log_share : (K,) float64, logarithms of the shares of the components.
    mean : (K, d)
    factor : A_j (K, d, d), lower triangles with S_j^-1 = A_j'A_j; of diagonal covariances their diagonals (K, d).
    prior : that of the covariances.
    """

    log_share: Floats
    mean: Floats
    factor: Floats
    prior: Prior

    def log_densities(self, X: Examples) -> Floats:
        """Logarithms (n, K) of share times density."""
        out = np.empty((X.shape[0], len(self.mean)))
        for rows, dense in blocks(X):
            for j in range(len(self.mean)):
                z = self._whitened(dense - self.mean[j], j)
                out[rows, j] = -0.5 * np.einsum("ij,ij->i", z, z)
        return np.asarray(out + self.offsets)

    @property
    def offsets(self) -> Floats:
        """Terms (K,) that the logarithms have besides -1/2 |A_j (x - m_j)|^2."""
        return np.asarray(self.log_share + self._log_determinants - 0.5 * self.mean.shape[1] * LOG_2PI)

    def log_prior(self) -> float:
        """The logarithm of the prior, without its constant."""
        squares = np.square(self.factor).sum(axis=tuple(range(1, self.factor.ndim)))
        terms = 2.0 * self._log_determinants - self.prior.variance * squares
        return 0.5 * self.prior.strength * float(terms.sum())

    @property
    def _log_determinants(self) -> Floats:
        diagonal = self.factor if self.factor.ndim == 2 else np.diagonal(self.factor, axis1=1, axis2=2)
        return np.asarray(np.log(diagonal).sum(axis=1))

    def _whitened(self, X: Floats, j: int) -> Floats:
        return np.asarray(X * self.factor[j] if self.factor.ndim == 2 else X @ self.factor[j].T)


def estimate(X: Examples, q: Floats, prior: Prior, before: Floats) -> Mixture:
    """The mixture that maximises likelihood and prior for these responsibilities.

    Parameters
    ----------
    q : (n, K) float64, responsibilities times the number of rows that each row stands for.
    before : (K, d) means that components keep where no row is left to them.
    """
    rows_of = q.sum(axis=0)
    sums = np.zeros((q.shape[1], X.shape[1]))
    for rows, dense in blocks(X):
        sums += q[rows].T @ dense
    mean = np.where(rows_of[:, None] > NOTHING, sums / np.maximum(rows_of, NOTHING)[:, None], before)
    shape = (*mean.shape, X.shape[1]) if prior.full else mean.shape
    scatter = np.zeros(shape)
    for rows, dense in blocks(X):
        for j in range(len(mean)):
            taken = np.flatnonzero(q[rows, j])
            away, weight = dense[taken] - mean[j], q[rows, j][taken]
            scatter[j] += (away * weight[:, None]).T @ away if prior.full else weight @ np.square(away)
    total = rows_of + prior.strength
    share = np.log(np.maximum(rows_of / rows_of.sum(), NOTHING))
    if not prior.full:
        variance = (scatter + prior.strength * prior.variance) / total[:, None]
        return Mixture(share, mean, 1.0 / np.sqrt(variance), prior)
    added = prior.strength * prior.variance * np.eye(X.shape[1])
    lower = np.linalg.cholesky((scatter + added) / total[:, None, None])
    return Mixture(share, mean, np.asarray(np.tril(np.linalg.inv(lower))), prior)


def fit_mixture(X: Examples, count: Floats, q: Floats, prior: Prior, tolerance: float, rounds: int) -> Mixture:
    """Run EM without labels, from responsibilities q (n, K), for rows X that stand for `count` (n,) rows each.

    It ends where a round raises the logarithm of likelihood and prior by less than `tolerance` a row.
    """
    at = estimate(X, q * count[:, None], prior, np.zeros((q.shape[1], X.shape[1])))
    last = -np.inf
    for _ in range(rounds):
        logs = at.log_densities(X)
        likelihood = logsumexp(logs, axis=1)
        now = float(count @ likelihood) + at.log_prior()
        if now - last < tolerance * float(count.sum()):
            break
        last = now
        at = estimate(X, np.exp(logs - likelihood[:, None]) * count[:, None], prior, at.mean)
    return at


def responsibilities(logs: Floats) -> Floats:
    """Responsibilities (n, K), which sum to 1 in a row, from logarithms of what they are proportional to."""
    return np.asarray(np.exp(logs - logsumexp(logs, axis=1, keepdims=True)))


def blocks(X: Examples) -> Iterator[tuple[slice, Floats]]:
    """Rows a block at a time, dense and in float64."""
    step = max(1, BLOCK // max(1, X.shape[1]))
    for first in range(0, X.shape[0], step):
        part = between(X, first, min(first + step, X.shape[0]))
        dense = part if isinstance(part, np.ndarray) else part.toarray()
        yield slice(first, first + len(dense)), dense.astype(np.float64)
