"""Stratified folds."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from localsvm.data.blocks.dealing import Mates, Numbers, folds_of_groups


def stratified(y: NDArray[np.float64], n_folds: int, rng: np.random.Generator, mates: Mates | None = None) -> Numbers:
    """The fold that holds out each row.

    Rows are dealt out class by class, in random order, one fold after the other, so that both the folds' sizes and each
    class's share differ by at most one row. With fewer rows than folds, there are as many folds as rows.

    Parameters
    ----------
    y : (n,) labels.
    n_folds : at least 1.
    mates : which rows stay together, see `folds_of_groups`; None where none do.

    Returns
    -------
    (n,) int64, from 0 to n_folds - 1.
    """
    if mates is not None and len(np.unique(mates.number)) < len(y):
        return folds_of_groups(y, n_folds, rng, mates)
    n_folds = max(1, min(n_folds, len(y)))
    folds = np.empty(len(y), np.int64)
    dealt = 0
    for label in np.unique(y):
        rows = rng.permutation(np.flatnonzero(y == label))
        folds[rows] = (dealt + np.arange(len(rows))) % n_folds
        dealt += len(rows)
    return folds


def fold_order(
    y: NDArray[np.float64], n_folds: int, rng: np.random.Generator, mates: Mates | None = None
) -> tuple[Numbers, Numbers]:
    """Rows (n,) int64 in the order of their `stratified` folds, and (folds,) int64 how many each fold holds out.

    The rows of a fold keep their order.
    """
    folds = stratified(y, n_folds, rng, mates)
    return np.argsort(folds, kind="stable"), np.bincount(folds)
