"""Nearest centroid: a row belongs to the class whose mean it is nearest to. The example of docs/adding-a-method.md.

For each binary problem: f(x) = |x - m_-|^2 - |x - m_+|^2, m_+ and m_- the means of the rows of either side, each at the
share `keep` of its distance from the mean of all rows. The decision is linear, and there is nothing to iterate.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from localsvm.data.blocks.dataset import Examples
from localsvm.errors import OptionError
from localsvm.methods.base import Fit, FitReport, Fitted, Method, Prepared, Purpose, State, System, View
from localsvm.methods.cell import Cell, Job, fill_held_out
from localsvm.methods.cell_size import CellSize
from localsvm.methods.grids import Grid
from localsvm.methods.option import option
from localsvm.methods.saved import table
from localsvm.naming import opt
from localsvm.store.pieces import Pieces, floats64
from localsvm.targets.base import Target

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class NearestCentroid(Method):
    """Options of the method."""

    name: ClassVar[str] = "nearest-centroid"

    keep: tuple[float, ...] = option(
        (0.5, 0.75, 1.0), "--keep", help="Share of their distance that class means keep: a number, or a list."
    )

    def __post_init__(self) -> None:
        if not all(0 < share <= 1 for share in self.keep):
            raise OptionError(f"{opt.keep} takes numbers above 0, up to 1")

    def grid(self, cell: Cell, average_rows: float, folds: int) -> Grid:
        """A setting a share; there is no cost."""
        return Grid(tuple((share,) for share in self.keep), ("keep",))

    def prepare(self, cell: Cell, view: View) -> Prepared:
        """Nothing is shared: the class means need the labels of each fold."""
        return PreparedRows(cell)

    def pack(self, cell: Cell, fits: Sequence[Fit]) -> Fitted:
        """A linear decision function a model."""
        state: dict[str, NDArray[Any]] = {
            "model_problem": np.asarray([fit.job.problem for fit in fits], np.int32),
            "model_fold": np.asarray([fit.job.fold for fit in fits], np.int32),
            "weights": np.asarray([fit.solution for fit in fits], np.float64),
        }
        return Fitted(state, FitReport(models=len(fits)))

    def predictor(self, state: State, target: Target, n_features: int) -> CentroidPredictor:
        """The decision functions of a saved cell."""
        return CentroidPredictor(state, target)

    def pieces(self, target: Target, dense: bool) -> Pieces:
        """Description of the arrays of m models: their problems and folds, and the weights."""
        return {**table("problem", "fold"), "weights": floats64("m", lambda n: n["features"] + 1, least=1)}

    def memory(self, size: CellSize) -> int:
        """The rows in float64."""
        return 8 * size.rows * size.features


class PreparedRows(Prepared):
    """The rows of a cell."""

    def __init__(self, cell: Cell) -> None:
        self.cell = cell

    def at(self, setting: dict[str, float], purpose: Purpose) -> Centroids:
        """System of a setting: the share of their distance that class means keep."""
        return Centroids(self.cell, setting["keep"])


class Centroids(System):
    """The class means of all problems and folds. A solution is the weights of f, the constant last."""

    def __init__(self, cell: Cell, keep: float) -> None:
        self.cell, self.keep = cell, keep

    def solve(self, jobs: Sequence[Job], starts: Sequence[Any], roughness: float) -> list[list[Floats]]:
        """One solution a job, as there is one cost."""
        return [[self._means(job)] for job in jobs]

    def held_out(self, jobs: Sequence[Job], solutions: Sequence[Sequence[Floats]], out: Floats) -> None:
        """The value of f for the rows that were left out."""
        fill_held_out(self.cell, jobs, out, lambda i, c, rows: values(self.cell.X[rows], solutions[i][c]))

    def _means(self, job: Job) -> Floats:
        y, weight = self.cell.Y[:, job.problem], self.cell.training_weight(job.fold)
        sides = [np.where(y == side, weight, 0.0) for side in (-1.0, 1.0)]
        centre = self._mean(sides[0] + sides[1])
        low, high = (centre + self.keep * (self._mean(side) - centre) for side in sides)
        return np.append(2 * (high - low), low @ low - high @ high)

    def _mean(self, weight: Floats) -> Floats:
        return np.asarray(weight @ self.cell.X) / max(1.0, weight.sum())


class CentroidPredictor:
    """The decision functions of one cell from its saved arrays."""

    def __init__(self, state: State, target: Target) -> None:
        self._state, self._target = state, target

    def decision_function(self, X: Examples) -> Floats:
        """(n, problems) float64, see Target.combine."""
        found = np.stack([values(X, w) for w in self._state["weights"]], axis=1)
        return self._target.combine(found, self._state["model_problem"])


def values(X: Examples, weights: Floats) -> Floats:
    """(n,) float64; each row is summed by itself, so that it does not depend on the rows beside it."""
    if isinstance(X, np.ndarray):
        return np.asarray(np.einsum("ij,j->i", X.astype(np.float64), weights[:-1])) + weights[-1]
    return np.asarray(X @ weights[:-1]) + weights[-1]
