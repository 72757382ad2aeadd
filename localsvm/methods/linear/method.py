"""Base of the linear local methods: one problem, its solutions fold by fold, and its models.

    min_W  1/2 |W|^2 + sum_i C_i loss(y_i, f(x_i)),    f(x) = sum_k m_k(x) W_k phi(x) (+ a bias, one a task or shared)

A method says how a row becomes features phi and memberships m (`represent`, `rows`); see csrc/linear.h for the problem
and localsvm/solvers/linear.py for its solvers. Representations do not look at labels: all folds, costs and binary
problems share one, as in the reference implementations. Where they are clusters, a pair of classes has its own
(localsvm/methods/linear/systems/parts.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from localsvm.methods.base import Fit, Fitted, Predictor, Prepared, State, View
from localsvm.methods.cell_size import CellSize
from localsvm.methods.linear.rows import LinearRepresentation
from localsvm.methods.saved import table
from localsvm.store.pieces import Lengths, Piece, Pieces

if TYPE_CHECKING:
    from localsvm.methods.cell import Cell
    from localsvm.methods.linear.systems.linear import LinearSystem
    from localsvm.solvers.stochastic import Descended
    from localsvm.targets.base import Target


THINNED = 32  # bytes for each value of dense rows that become sparse


@dataclass(frozen=True)
class LinearMethod(LinearRepresentation):
    """The parts that all linear methods share."""

    def prepare(self, cell: Cell, view: View) -> Prepared:
        """The rows, sparse where they hold mostly zeros; see `PreparedLinear` for what is kept of them."""
        from localsvm.methods.linear.systems.linear import PreparedLinear

        return PreparedLinear(self, cell)

    def pack(self, cell: Cell, fits: Sequence[Fit]) -> Fitted:
        """The representation, a table of models, and their weights."""
        import numpy as np

        from localsvm.methods.linear.systems.model import pack_linear

        system: LinearSystem = fits[0].system
        parts = system.parts.of([fit.job for fit in fits])
        models = [(fit.job, fit.solution) for fit in fits]
        inside = np.zeros(len(cell.y), np.bool_)
        for part, (_, solution) in zip(parts, models, strict=True):
            if solution.alpha is not None:
                inside[slice(None) if part.taken is None else part.taken] |= solution.alpha != 0
        states = [system.state(part) for part in parts]
        if not system.parts.paired:
            states = states[:1]
        return pack_linear(self, states, [fit.system.cost for fit in fits], models, int(np.count_nonzero(inside)))

    @property
    def descending(self) -> LinearMethod | None:
        """The method itself where it takes stochastic subgradients, else None."""
        return self if self.solver == "sgd" else None

    def packed(self, state: State, cost: float, descended: Descended) -> Fitted:
        """The fitted cell of the models of all problems; see `streams.Descending`."""
        from localsvm.methods.linear.systems.model import pack_descended

        return pack_descended(self, state, cost, descended)

    def predictor(self, state: State, target: Target, n_features: int) -> Predictor:
        """Decision functions of a saved cell."""
        from localsvm.methods.linear.systems.model import LinearPredictor

        return LinearPredictor(self, state, target)

    def pieces(self, target: Target, dense: bool) -> Pieces:
        """The representation, and for each model the weights and the bias of each cluster, and the shared bias."""

        def weights(n: Lengths) -> Any:
            clusters, columns = n.get("K", 1), n["L"] if "L" in n else n["features"]
            return n["m"] * (clusters * (columns + 1) + 1)

        models = table("problem", "fold", "cost", "gap", "iterations", "converged")
        return {**self.represented(), **models, "weights": Piece("f8", (weights,), least=1)}

    def represented(self) -> Pieces:
        """Description of what `represent` gives: of clusters K rows, of landmarks L."""
        return {}

    def memory(self, size: CellSize) -> int:
        """Bytes of the rows as they are made, and the larger of what making them and what solving on them takes."""
        kept, making = self.representation_bytes(size)
        return kept + max(making, self.solving_bytes(size, self.sizes(size.width)[1], thin_entries(size)))

    def representation_bytes(self, size: CellSize) -> tuple[int, int]:
        """Bytes of what is made of the rows and stays, and of what else is needed meanwhile.

        Dense rows that hold mostly zeros become sparse.
        """
        thinned_bytes = THINNED * size.stored if size.dense and thin_entries(size) is not None else 0
        return thinned_bytes // 4, thinned_bytes - thinned_bytes // 4

    def solving_bytes(self, size: CellSize, features: int, entries: int | None) -> int:
        """Bytes of solutions and the work of one solver, for rows of so many features and, where sparse, entries.

        There are the solutions at a cost, those at the cost before, and those of the best point so far; where there is
        one point, its solutions and their weights as they are packed.
        """
        from localsvm.solvers.linear import working_bytes

        tasks = self.sizes(size.width)[0]
        points = self.grid_for(size.width).n_points
        solutions = 2 * size.problems if points == 1 else min(3, points) * size.problems * size.folds
        work = working_bytes(size.rows, features, tasks, entries, self.solver, self.one_task_each)
        solution_floats = self.rows_of_problem(size) + tasks * (features + 1)
        return work + 8 * solutions * solution_floats + 8 * size.rows * size.problems

    def rows_of_problem(self, size: CellSize) -> int:
        """The most rows that a solution has coefficients of."""
        return size.rows

    def sizes(self, features: int) -> tuple[int, int]:
        """The most tasks, and the most features phi, for rows of so many features."""
        return 1, features


def thin_entries(size: CellSize) -> int | None:
    """Number of entries that the rows have when `thinned`; None where they stay dense."""
    from localsvm.data.blocks.dataset import DENSE_DENSITY

    return None if size.dense and size.stored >= DENSE_DENSITY * size.rows * size.width else size.stored
