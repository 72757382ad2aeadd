"""Cells and selection by hand, for the tests of methods."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from localsvm.methods.base import Fitted, Method
from localsvm.methods.cell import Cell
from localsvm.methods.grids import Grid
from localsvm.selection.cross_validation import CellSelection, Scores
from localsvm.selection.folds import stratified
from localsvm.selection.search import Search
from localsvm.targets.base import Observed
from localsvm.targets.classification import Classification


def examples(n: int = 150, d: int = 3, classes: int = 2, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Rows (n, d) whose classes follow the product of two features, with some noise."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)).astype(np.float32)
    value = X[:, 0] * X[:, 1] + 0.3 * X[:, 2] + 0.2 * rng.standard_normal(n)
    return X, np.digitize(value, np.quantile(value, np.arange(1, classes) / classes)).astype(np.float64)


def observed_of(y: np.ndarray) -> Observed:
    """What a run finds of these labels of classes."""
    labels, rows = np.unique(y, return_counts=True)
    return Observed.of_classes(labels, rows.tolist())


def cell_of(X: Any, y: np.ndarray, folds: int = 4, scheme: str = "ova") -> Cell:
    """Cell of these rows, in stratified folds."""
    order = np.argsort(stratified(y, folds, np.random.default_rng(0)), kind="stable")
    held = np.sort(stratified(y, folds, np.random.default_rng(0)))
    ones = np.ones(len(y))
    return Cell(X[order], y[order], Classification(np.unique(y), scheme), ones, ones, held)


def score(
    method: Method, cell: Cell, grid: Grid, settings: Sequence[int] | None = None, search: str = "full"
) -> Scores:
    """Cross-validate some settings of a grid, by default all, for each choice, each along the costs."""
    chosen, n = range(len(grid.settings)) if settings is None else settings, len(grid.settings)
    trials = [k * n + i for k in range(cell.target.choices) for i in chosen]
    return CellSelection(method, cell, grid).score(trials, Search(search))


def fit(method: Method, cell: Cell, grid: Grid, scores: Scores | None, select: str) -> Fitted:
    """The model of the best point, in another process, as it were: nothing prepared is shared."""
    return CellSelection(method, cell, grid).fit(scores, select)


def fitted(method: Method, cell: Cell, select: str = "refit") -> tuple[Any, dict[str, Any]]:
    """The decision functions and the saved state of the point that cross-validation chooses."""
    grid = method.grid(cell, float(len(cell.y)), 4)
    scores = score(method, cell, grid) if grid.n_points > 1 or select == "vote" else None
    state = fit(method, cell, grid, scores, select).state
    return method.predictor(state, cell.target, cell.X.shape[1]), state
