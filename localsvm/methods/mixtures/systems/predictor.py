"""The decision functions of saved mixtures of linear SVMs."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from localsvm.data.blocks.dataset import Examples, between, within_reach
from localsvm.methods.base import State
from localsvm.representations._mixture import Components
from localsvm.solvers.row_losses import HINGE, SQUARED_HINGE, RowLoss
from localsvm.targets.base import Target

Floats = NDArray[np.float64]
LOSSES: tuple[RowLoss | None, ...] = (HINGE, SQUARED_HINGE, None)  # as csrc/mixture.h numbers them; None: of values
NOTHING = 40.0  # a share smaller by exp of this is lost in the sum of the others
ROWS, ELEMENTS = 4096, 1 << 20  # rows, and of these elements, that are decided at once


def decided(logs: Floats, f: Floats, loss: int, hard: bool) -> Floats:
    """Decision values (n,) in [-1, 1]: sum_j r_j (exp(-loss(f_j)) - exp(-loss(-f_j))); of values sum_j r_j f_j.

    With `hard` they are the term of the largest r_j, whole. loss: as csrc/mixture.h numbers it.

    Parameters
    ----------
    logs, f : (n, K) float64, logarithms of what the r_j are proportional to, and decision values of the components.
    """
    if hard:
        return sides(np.take_along_axis(f, logs.argmax(axis=1)[:, None], axis=1)[:, 0], loss)
    most = logs.max(axis=1)
    felt = np.flatnonzero(logs >= (most - NOTHING)[:, None])  # one or two of a row; the largest itself, however huge
    row = felt // logs.shape[1]
    shares = np.exp(logs.ravel()[felt] - most[row])
    terms = shares * sides(f.ravel()[felt], loss)
    return np.bincount(row, terms, len(logs)) / np.bincount(row, shares, len(logs))


def sides(f: Floats, loss: int) -> Floats:
    """Terms exp(-loss(f)) - exp(-loss(-f)); of values they are f."""
    of_rows = LOSSES[loss]
    if of_rows is None:
        return f
    return np.asarray(np.exp(-of_rows.of(f, np.ones_like(f))) - np.exp(-of_rows.of(-f, np.ones_like(f))))


class MixturePredictor:
    """Decision functions of one cell from its saved arrays; each row is summed by itself."""

    def __init__(self, state: State, target: Target, loss: int, hard: bool) -> None:
        self._state, self._target, self._loss, self._hard = state, target, loss, hard

    def decision_function(self, X: Examples) -> Floats:
        """Decision values (n, problems) float64; see Target.combine."""
        problem = self._state["model_problem"]
        X, lost = within_reach(X)
        out = np.empty((X.shape[0], len(problem)))
        step = max(1, min(ROWS, ELEMENTS // max(1, X.shape[1])))
        for first in range(0, len(out), step):
            part = between(X, first, min(first + step, len(out)))
            dense = np.ascontiguousarray(part if isinstance(part, np.ndarray) else part.toarray(), np.float32)
            for m, components in enumerate(self._models):
                out[first : first + step, m] = components.decide(dense)
        if lost is not None:
            out[lost] = np.nan
        return self._target.combine(out, problem)

    @cached_property
    def _models(self) -> list[Components]:
        offset, mean, factor, weights = (
            self._state[name].astype(np.float64) for name in ("offset", "mean", "factor", "weights")
        )
        m, d = len(self._state["model_problem"]), mean.shape[1]
        K = len(offset) // m
        factor = factor.reshape((m, K, d) if len(factor) == len(mean) else (m, K, d, d))
        parts = zip(offset.reshape(m, K), mean.reshape(m, K, d), factor, weights.reshape(m, K, -1), strict=True)
        return [Components(*part, self._loss, self._hard) for part in parts]
