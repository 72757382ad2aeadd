"""Products and distances of rows with few entries in many columns, entry by entry: their cost follows the entries.

All in float64, so that distances need no centre.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from localsvm.data.blocks.dataset import Examples
from localsvm.kernels import SQUARES, SUMS

ENTRY_COST = 100  # a product of two entries takes as long as so many of dense rows
BLOCK = 256  # rows whose products are made at once


def few_entries(X: Examples) -> bool:
    """True where products of the rows of X with each other take less time entry by entry than as dense rows."""
    if isinstance(X, np.ndarray):
        return False
    _, counts = np.unique(X.indices, return_counts=True)
    products = np.square(counts, dtype=np.float64).sum()
    return bool(ENTRY_COST * products < float(X.shape[0]) ** 2 * len(counts))


def base_of(A: Any, B: Any, base: str) -> NDArray[np.float64]:
    """Products, squared or Manhattan distances (rows of A, rows of B) of two CSR matrices, in float64.

    What a row gets depends on that row alone.
    """
    a, b = _wide(A), _wide(B)
    if base == SUMS:
        from sklearn.metrics.pairwise import manhattan_distances

        return np.asarray(manhattan_distances(_short(a), _short(b)))
    others, norms = b.T.tocsr(), squared_norms(b)
    out = np.empty((a.shape[0], b.shape[0]))
    for first in range(0, len(out), BLOCK):
        part = out[first : first + BLOCK]
        rows = a[first : first + len(part)]
        part[:] = (rows @ others).toarray()
        if base == SQUARES:
            part *= -2.0
            part += squared_norms(rows)[:, None]
            part += norms
    return np.maximum(out, 0.0, out=out) if base == SQUARES else out


def _short(X: Any) -> Any:
    """Rows X with row pointers of 32 bits, as scikit-learn takes them: a cell has fewer entries."""
    return sparse.csr_matrix((X.data, X.indices, X.indptr.astype(np.int32)), X.shape)


def squared_norms(X: Any) -> NDArray[np.float64]:
    """Squared norms |x|^2 of the rows, (n,) float64."""
    return np.asarray(_wide(X).power(2).sum(axis=1)).ravel()


def entry_radius(X: Any, base: str = SQUARES) -> float:
    """The largest distance of a row from the mean of the rows; see `gram.radius`."""
    mean = np.asarray(_wide(X).mean(axis=0)).ravel()
    if base == SUMS:
        stored = _wide(X).tocoo()
        nearer = np.abs(stored.data - mean[stored.col]) - np.abs(mean[stored.col])  # than 0 is to the mean
        return float(max(0.0, np.abs(mean).sum() + np.bincount(stored.row, nearer, X.shape[0]).max(initial=0.0)))
    squares = squared_norms(X) - 2.0 * (_wide(X) @ mean) + mean @ mean
    return float(np.sqrt(max(0.0, squares.max(initial=0.0))))


def _wide(X: Any) -> Any:
    """Rows X with float64 values."""
    return X if X.dtype == np.float64 else sparse.csr_array((X.data.astype(np.float64), X.indices, X.indptr), X.shape)
