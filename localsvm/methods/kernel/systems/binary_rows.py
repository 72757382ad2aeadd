"""The rows of a cell that take part in one binary problem, with their labels, weights and folds."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from localsvm.kernels._kernels import padded
from localsvm.methods.base import WHOLE
from localsvm.methods.cell import Cell
from localsvm.methods.kernel.systems.paths import zero_padded

Floats = NDArray[np.float64]


class BinaryRows:
    """The rows of a cell that take part in one binary problem.

    Attributes: places (n,) of the rows in the cell; y, weight (size,), padded with zeros for a solver on a matrix.
    """

    def __init__(self, cell: Cell, problem: int, pad: bool) -> None:
        self.problem = problem
        self.places = np.flatnonzero(cell.Y[:, problem])
        self.n = len(self.places)
        self.everybody = self.n == len(cell.y)
        self.size = padded(self.n) if pad else self.n
        self.y = self.pad(cell.Y[self.places, problem])
        self.weight = self.pad(cell.weight_of(problem)[self.places])
        self.folds = cell.folds[self.places]
        self._edges = np.searchsorted(self.folds, np.arange(cell.n_folds + 1)).tolist()
        low, high = self.y.min(initial=0.0), self.y.max(initial=0.0)
        # rows of one side only need no solver: their constant is the answer; with no rows nobody answers
        self.solved = cell.target.is_solved(low, high)
        self.constant = 0.0 if self.solved else float(low + high)

    def pad(self, values: Floats) -> Floats:
        """Values (n,), followed by zeros: (size,)."""
        return zero_padded(values, self.size)

    def held(self, fold: int) -> slice:
        """The problem's own rows that the fold holds out."""
        return slice(self._edges[fold], self._edges[fold + 1])

    def trained_on(self, fold: int) -> int:
        """Number of rows that are left without the fold."""
        held = self.held(fold) if fold != WHOLE else slice(0, 0)
        return self.n - (held.stop - held.start)

    def weight_without(self, *folds: int) -> Floats:
        """Copy (size,) of the weights, with 0 for the rows that the folds hold out."""
        weight = self.weight.copy()
        for fold in folds:
            if fold != WHOLE:
                weight[self.held(fold)] = 0.0
        return weight
