"""The decision functions of saved mixtures of linear SVMs."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from localsvm.data.dataset import Examples, within_reach
from localsvm.methods.base import State
from localsvm.representations.mixture import blocks, responsibilities
from localsvm.targets.base import Target

Floats = NDArray[np.float64]


def decided(shares: Floats, f: Floats, squared: bool, hard: bool) -> Floats:
    """(n,) in [-1, 1]: sum_j r_j (exp(-loss(f_j)) - exp(-loss(-f_j))); with `hard` the term of the largest r_j, whole.

    Parameters
    ----------
    shares, f : (n, K) float64, r_j and the decision values of the components.
    """
    above, below = np.maximum(0.0, 1.0 - f), np.maximum(0.0, 1.0 + f)
    if squared:
        above, below = np.square(above), np.square(below)
    terms = np.exp(-above) - np.exp(-below)
    if hard:
        return np.asarray(np.take_along_axis(terms, shares.argmax(axis=1)[:, None], axis=1)[:, 0])
    return np.asarray((shares * terms).sum(axis=1))


class MixturePredictor:
    """Decision functions of one cell from its saved arrays; each row is summed by itself."""

    def __init__(self, state: State, target: Target, squared: bool, hard: bool) -> None:
        self._state, self._target, self._squared, self._hard = state, target, squared, hard

    def decision_function(self, X: Examples) -> Floats:
        """(n, problems) float64, see Target.combine."""
        problem = self._state["model_problem"]
        X, lost = within_reach(X)
        out = np.empty((X.shape[0], len(problem)))
        for rows, dense in blocks(X):
            for m in range(len(problem)):
                out[rows, m] = self._values(dense, m)
        if lost is not None:
            out[lost] = np.nan
        return self._target.combine(out, problem)

    def _values(self, X: Floats, m: int) -> Floats:
        offset, mean, factor, weights = (part[m] for part in self._models)
        logs = np.empty((len(X), len(mean)))
        for j in range(len(mean)):
            away = X - mean[j]
            z = away * factor[j] if factor.ndim == 2 else np.einsum("ij,kj->ik", away, factor[j])
            logs[:, j] = -0.5 * np.einsum("ij,ij->i", z, z)
        f = np.einsum("ij,kj->ik", X, weights[:, :-1]) + weights[:, -1]
        return decided(responsibilities(logs + offset), f, self._squared, self._hard)

    @cached_property
    def _models(self) -> tuple[Floats, Floats, Floats, Floats]:
        """Offsets (m, K), means (m, K, d), factors (m, K, d, d) or (m, K, d), weights (m, K, d + 1)."""
        state = {name: self._state[name].astype(np.float64) for name in ("offset", "mean", "factor", "weights")}
        m, d = len(self._state["model_problem"]), state["mean"].shape[1]
        K = len(state["offset"]) // m
        diagonal = len(state["factor"]) == len(state["mean"])
        factor = state["factor"].reshape((m, K, d) if diagonal else (m, K, d, d))
        return state["offset"].reshape(m, K), state["mean"].reshape(m, K, d), factor, state["weights"].reshape(m, K, -1)
