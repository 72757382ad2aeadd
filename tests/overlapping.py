"""Cells of a few classes that overlap."""

from __future__ import annotations

import numpy as np

from localsvm.methods.cell import Cell
from localsvm.selection.folds import stratified
from localsvm.targets.classification import ACCURACY, Classification

LABELS = np.asarray([1.0, 2.0, 5.0])


def overlapping(
    classes: int = 2, scheme: str = "ova", n: int = 200, weighted: bool = False, scoring: str = ACCURACY
) -> Cell:
    """Rows of some of the classes, in four folds."""
    rng = np.random.default_rng(0)
    y = LABELS[rng.integers(0, classes, n)]
    X = rng.standard_normal((n, 3)).astype(np.float32)
    X[:, 0] += y.astype(np.float32)
    held = stratified(y, 4, rng)
    order = np.argsort(held, kind="stable")
    mass = rng.integers(1, 4, n).astype(np.float64) if weighted else np.ones(n)
    return Cell(X[order], y[order], Classification(LABELS[:classes], scheme, scoring), mass, np.ones(n), held[order])
