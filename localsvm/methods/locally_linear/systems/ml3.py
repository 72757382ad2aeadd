"""System and predictor of `ml3`: the problem of all classes, and its scores."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from localsvm.data.blocks.dataset import Dense, Examples, between, canonical
from localsvm.methods.base import (
    Prepared,
    Purpose,
    State,
    System,
)
from localsvm.methods.cell import Cell, Job, fill_held_out
from localsvm.methods.locally_linear.ml3 import ML3SVM
from localsvm.methods.random import stream
from localsvm.solvers.ml3 import ML3Problem, ML3Report, exact, scores, stochastic
from localsvm.targets.base import Target
from localsvm.targets.classification import Classification
from localsvm.threads import ALONE

Floats = NDArray[np.float64]

MOST_PRODUCTS = 1 << 28  # in a pass, up to which `auto` solves exactly; mnist, 15 times faster without, has 2^30


@dataclass(frozen=True)
class ML3Solution:
    """Weights (classes, m, d + 1), the problem's cost, its objective as above, and what was reached."""

    W: Dense
    cost: float
    objective: float
    report: ML3Report


class PreparedML3(Prepared):
    """The rows as they are."""

    def __init__(self, method: ML3SVM, cell: Cell) -> None:
        self.method, self.cell = method, cell

    def at(self, setting: dict[str, float], purpose: Purpose) -> ML3System:
        """The system with so many models for each class."""
        return ML3System(self.method, self.cell, int(setting["models"]))


class ML3System(System):
    """The problem of all classes, with so many models each."""

    def __init__(self, method: ML3SVM, cell: Cell, models: int) -> None:
        self.method, self.cell, self.models = method, cell, models
        self.classes = len(_classes(cell.target).labels)
        self.codes = _classes(cell.target).codes(cell.y).astype(np.int32)

    def solve(
        self, jobs: Sequence[Job], starts: Sequence[ML3Solution | None], roughness: float
    ) -> list[list[ML3Solution]]:
        """Solve each problem by itself, to the tolerance: these solutions may become the model.

        The exact solver copies the rows, so that only one may run at a time.
        """
        threads = self.cell.threads if self.solver == "sgd" else ALONE
        work = [(job, float(cost)) for job in jobs for cost in job.costs]
        solutions = iter(threads.map(lambda i: self._solve(*work[i]), len(work)))
        return [[next(solutions) for _ in job.costs] for job in jobs]

    def held_out(self, jobs: Sequence[Job], solutions: Sequence[Sequence[ML3Solution]], out: Floats) -> None:
        """Fill in the differences of the classes' scores."""
        pairs = np.asarray(_classes(self.cell.target).pairs)

        def values(i: int, c: int, rows: slice) -> Floats:
            X = between(self.cell.X, rows.start, rows.stop)
            return differences(scores(solutions[i][c].W, X, self.method.norm), pairs)

        fill_held_out(self.cell, jobs, out, values)

    @property
    def solver(self) -> str:
        """Solver that `auto` means for a cell, the same with and without a fold."""
        if self.method.solver != "auto":
            return self.method.solver
        X = self.cell.X
        stored = X.size if isinstance(X, np.ndarray) else len(X.data)
        return "sgd" if stored * self.classes * self.models > MOST_PRODUCTS else "primal"

    def _solve(self, job: Job, cost: float) -> ML3Solution:
        cell, method = self.cell, self.method
        seen = cell.folds != job.fold
        taken = int(np.count_nonzero(seen))
        if not taken:
            nothing = ML3Report(0.0, 0, 0.0, True, np.zeros(len(seen), np.bool_))
            W = np.zeros((self.classes, self.models, cell.X.shape[1] + 1), np.float32)
            return ML3Solution(W, cost, 0.0, nothing)
        weight, lam = cell.training_weight(job.fold), 1.0 / (cost * taken)
        problem = ML3Problem(cell.X, self.codes, weight, self.classes, self.models, method.norm, lam=lam)
        rng = stream(cell.random, job.fold + 1)
        if self.solver == "sgd":
            W, report = stochastic(problem, rng, method.passes)
        else:
            W, report = exact(problem, rng, method.tolerance)
        return ML3Solution(W, cost, cost * taken * report.objective, report)


class ML3Predictor:
    """Decision functions of one cell from its saved arrays."""

    def __init__(self, norm: float, state: State, target: Target, n_features: int) -> None:
        self._norm, self._target, self._pairs = norm, target, state["pairs"].astype(np.intp)
        shape = len(state["models"]), -1, int(state["models"][0]), n_features + 1  # -1: the classes
        self._weights = np.ascontiguousarray(state["weights"], np.float32).reshape(shape)

    def decision_function(self, X: Examples) -> Floats:
        """Decision values (n, problems) float64, from the scores of the only model, or the fold models' mean scores.

        Clipped differences, as other methods average, would let the labels depend on which differences are taken.
        """
        X = canonical(X)
        values = differences(np.mean([scores(W, X, self._norm) for W in self._weights], axis=0), self._pairs)
        return self._target.combine(values, np.arange(len(self._pairs)))  # one model a problem


def differences(s: Floats, pairs: NDArray[np.intp]) -> Floats:
    """Decision values (n, problems) of the binary problems `pairs`, from the scores s (n, classes)."""
    negative, positive = pairs.T
    if negative[0] < 0:
        return margin_over_others(s)
    return np.asarray(s[:, positive] - s[:, negative])


def margin_over_others(s: Floats) -> Floats:
    """Margins (n, classes): each class's score minus the largest score of the other classes."""
    ordered = np.sort(s, axis=1)
    others = np.where(s < ordered[:, -1:], ordered[:, -1:], ordered[:, -2:-1])
    return np.asarray(s - others)


def _classes(target: Target) -> Classification:
    if not isinstance(target, Classification):
        raise TypeError("ml3 is for classes")
    return target
