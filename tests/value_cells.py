"""Rows with values, and cells of them, for the tests of regression."""

from __future__ import annotations

import numpy as np

from localsvm.methods.cell import Cell
from localsvm.selection.folds import stratified
from localsvm.targets.base import ValueRange
from localsvm.targets.loss_names import LEAST_SQUARES
from localsvm.targets.losses import Loss
from localsvm.targets.regression import Regression

SQUARES = (Loss(LEAST_SQUARES),)


def examples(n: int = 150, d: int = 3, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Rows, and values around 40 whose noise grows with the second feature."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)).astype(np.float32)
    y = 40.0 + 5.0 * np.sin(2.0 * X[:, 0]) + (0.5 + np.abs(X[:, 1])) * rng.standard_normal(n)
    return X, y


def noisy(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows, and values around 50 whose noise is four times as large where the second feature is above 0."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1.0, 1.0, (n, 2)).astype(np.float32)
    return X, 50.0 + 5.0 * np.sin(3.0 * X[:, 0]) + np.where(X[:, 1] > 0.0, 2.0, 0.5) * rng.standard_normal(n)


def range_of(y: np.ndarray, weight: np.ndarray | None = None) -> ValueRange:
    mean = float(np.average(y, weights=weight))
    deviation = float(np.sqrt(np.average((y - mean) ** 2, weights=weight)))
    return ValueRange(mean, deviation or 1.0, float(y.min()), float(y.max()))


def target_of(y: np.ndarray, losses: tuple[Loss, ...] = SQUARES, scoring: str = "") -> Regression:
    return Regression(losses, range_of(y), scoring)


def cell_of_values(
    X: np.ndarray, y: np.ndarray, folds: int = 4, losses: tuple[Loss, ...] = SQUARES, weight: np.ndarray | None = None
) -> Cell:
    """Cell of these rows, in folds by their values."""
    weight = np.ones(len(y)) if weight is None else weight
    target = Regression(losses, range_of(y, weight))
    held = stratified(target.strata(y), folds, np.random.default_rng(0))
    order = np.argsort(held, kind="stable")
    return Cell(X[order], y[order], target, weight[order], np.ones(len(y)), held[order])
