"""Published ways to learn a metric, to compare with: each makes a matrix of some rows and their classes."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from importlib import import_module

import numpy as np
from numpy.typing import NDArray

BASELINES = ("nca", "itml", "lmnn")
Baseline = Callable[[NDArray[np.float64], NDArray[np.intp], np.random.Generator], NDArray[np.float64]]
BASELINE_ROWS = 2000  # that one learns from: nca takes 5 s for so many of magic, and 60 s for twice as many
MANY_CLASSES = "The number of unique classes"  # a warning of scikit-learn, which takes them for values of a regression


def learned_by(
    name: str, X: NDArray[np.float64], codes: NDArray[np.intp], rng: np.random.Generator
) -> NDArray[np.float64]:
    """The matrix (d, d) that a baseline learns from rows X (n, d) and their classes `codes` (n,)."""
    learn: Baseline = getattr(import_module(f"localsvm.representations.{name}"), name)  # which takes long
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", MANY_CLASSES, UserWarning)
        return learn(X, codes, rng)


def baseline_bytes(name: str, rows: int, features: int) -> int:
    """Bytes that a baseline holds at most, of `rows` rows in all: pairs of rows, rows, and what L-BFGS keeps.

    lmnn holds the pairs of rows that are near each other and of other classes: where all are, these are all pairs.
    """
    of_pairs, of_rows, of_matrices = {"nca": (4, 15, 20), "itml": (0, 4, 10), "lmnn": (20, 10, 20)}[name]
    n = min(rows, BASELINE_ROWS)
    return 8 * (of_pairs * n * n + of_rows * n * features + of_matrices * features * features)
