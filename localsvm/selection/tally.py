"""The held-out loss of grid points, and what decides between points of equal loss: one rule for all methods."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from localsvm.targets.classification import Scheme

Values = NDArray[np.float64]


class Tally:
    """Held-out losses of some points, summed over blocks of rows.

    Parameters: scheme: the binary problems; n: how many points. Two sums a point: wrong, the weight of the rows whose
    combined decision is wrong, and hinge, the hinge loss of all binary problems, clipped at 2, weighted. Points of
    equal loss are compared by the hinge loss.
    """

    def __init__(self, scheme: Scheme, n: int) -> None:
        self._scheme = scheme
        self._wrong, self._hinge, self._weight = np.zeros(n), np.zeros(n), 0.0

    def add(self, values: Values, y: Values, weight: Values) -> None:
        """Count rows with held-out decision values (points, problems, n), labels y (n,) and weights (n,)."""
        Y, scheme = self._scheme.targets(y), self._scheme
        votes = np.zeros((len(values), len(y), len(scheme.labels)))
        for p in range(Y.shape[1]):
            slack = np.clip(1.0 - values[:, p] * Y[:, p], 0.0, 2.0) * (Y[:, p] != 0)
            self._hinge += slack @ weight
            for c in range(len(values)):
                scheme.vote(votes[c], p, values[c, p])
        self._wrong += (votes.argmax(axis=2) != np.searchsorted(scheme.labels, y)) @ weight
        self._weight += float(weight.sum())

    def losses(self) -> list[tuple[float, float]]:
        """(share of wrong rows, hinge loss) of each point."""
        return [(float(wrong) / self._weight, float(h)) for wrong, h in zip(self._wrong, self._hinge, strict=True)]
