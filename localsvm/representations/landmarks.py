"""Landmarks: a few vectors with which rows are compared, by products or Gaussians, to get a projection."""

from __future__ import annotations

import numpy as np

from localsvm.data.blocks.dataset import Dense, Examples, dense_rows, densify, within_reach
from localsvm.kernels import PRODUCTS, SQUARES, Kernel
from localsvm.kernels._kernels import Panels, aligned, padded
from localsvm.kernels.gram import centre_of

BLOCK_ELEMENTS = 1 << 20  # elements of rows or results that are worked on at once
KINDS = ("random", "pca")
PROJECTIONS = ("linear", "rbf")


def choose_landmarks(X: Examples, count: int, kind: str, rng: np.random.Generator) -> Dense:
    """Choose landmarks (L, d) float32, at most `count`.

    kind "random": rows of X drawn without replacement. "pca": leading principal axes of X, which are orthonormal; there
    are at most min(n, d) of them.
    """
    rows, features = X.shape
    if kind == "random":
        return dense_rows(X, np.sort(rng.choice(rows, min(count, rows), replace=False)))
    from sklearn.decomposition import PCA
    from threadpoolctl import threadpool_limits

    dense = X if isinstance(X, np.ndarray) else X.toarray()
    with threadpool_limits(1), np.errstate(invalid="ignore", divide="ignore"):  # rows that are all equal divide 0 by 0
        axes = PCA(min(count, rows, features), random_state=int(rng.integers(2**31))).fit(dense).components_
    return np.ascontiguousarray(axes, np.float32)


def project(X: Examples, landmarks: Dense, kind: str, gamma: float) -> Dense:
    """The projection (n, L) float32 of rows X (n, d) on landmarks l.

    kind "linear": x . l. "rbf": exp(-gamma |x - l|^2). The result for a row depends on that row alone.
    """
    X, lost = within_reach(X) if kind == "rbf" else (X, None)
    centre = centre_of(landmarks) if kind == "rbf" else np.zeros(landmarks.shape[1], np.float32)
    kernel = Kernel("gaussian", gamma) if kind == "rbf" else Kernel("linear")
    panels = Panels(np.ascontiguousarray(landmarks - centre), SQUARES if kind == "rbf" else PRODUCTS)
    out = np.empty((X.shape[0], len(landmarks)), np.float32)
    step = max(1, BLOCK_ELEMENTS // max(X.shape[1], padded(panels.size)))
    for first in range(0, len(out), step):
        rows = slice(first, min(first + step, len(out)))
        dense = np.empty((rows.stop - first, X.shape[1]), np.float32)
        if isinstance(X, np.ndarray):
            np.subtract(X[rows], centre, out=dense)
        else:
            densify(X, rows, dense)
            dense -= centre
        block = aligned((len(dense), padded(panels.size)), np.float32)
        panels.kernel_matrix(kernel, dense, block, panels.norms_of(dense) if kind == "rbf" else None)
        out[rows] = block[:, : len(landmarks)]
    if lost is not None:
        out[lost] = np.nan
    return out
