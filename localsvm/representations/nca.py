"""Neighbourhood components analysis (Goldberger, Roweis, Hinton and Salakhutdinov 2004), by scikit-learn."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

STEPS = 100  # of L-BFGS, as metric-learn has them


def nca(X: NDArray[np.float64], codes: NDArray[np.intp], rng: np.random.Generator) -> NDArray[np.float64]:
    """The map M (d, d) of rows x to M' x that makes a row's random neighbour likely one of its class.

    Parameters
    ----------
    X : (n, d) float64, scaled; centring changes nothing.
    codes : (n,) the classes' numbers.
    rng : not used: it starts at the Euclidean metric, and nothing is drawn.
    """
    from sklearn.neighbors import NeighborhoodComponentsAnalysis

    if len(X) < 2:
        return np.eye(X.shape[1])
    fitted = NeighborhoodComponentsAnalysis(init="identity", max_iter=STEPS).fit(X - X.mean(axis=0), codes)
    return np.ascontiguousarray(fitted.components_.T, np.float64)
