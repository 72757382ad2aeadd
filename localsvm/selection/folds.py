"""Stratified folds."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def stratified(y: NDArray[np.float64], n_folds: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """The fold that holds out each row.

    Rows are dealt out class by class, in random order, one fold after the other, so that both the folds' sizes and each
    class's share differ by at most one row. With fewer rows than folds, there are as many folds as rows.

    Parameters
    ----------
    y : (n,) labels.
    n_folds : at least 1.

    Returns
    -------
    (n,) int64, from 0 to n_folds - 1.
    """
    n_folds = max(1, min(n_folds, len(y)))
    folds = np.empty(len(y), np.int64)
    dealt = 0
    for label in np.unique(y):
        rows = rng.permutation(np.flatnonzero(y == label))
        folds[rows] = (dealt + np.arange(len(rows))) % n_folds
        dealt += len(rows)
    return folds


def fold_order(y: NDArray[np.float64], n_folds: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """(n,) int64 rows in the order of their `stratified` folds; those of a fold keep their order."""
    return np.argsort(stratified(y, n_folds, rng), kind="stable")


def ordered_folds(n: int, n_folds: int) -> NDArray[np.int64]:
    """(n,) int64 folds of rows in `fold_order`: how many each has follows from the way they are dealt out."""
    return np.sort(np.arange(n) % max(1, min(n_folds, n)))
