"""The models of a linear local method as the file keeps them, and their decision functions."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from localsvm.data.blocks.dataset import Examples, thinned
from localsvm.methods.base import WHOLE, Fitted, State
from localsvm.methods.cell import Job
from localsvm.methods.fit_report import FitReport
from localsvm.methods.linear.rows import LinearRepresentation
from localsvm.solvers.linear import LinearSolution
from localsvm.solvers.stochastic import Descended
from localsvm.targets.base import Target

Floats = NDArray[np.float64]


def pack_linear(
    method: LinearRepresentation,
    states: Sequence[State],
    costs: Sequence[float],
    models: Sequence[tuple[Job, LinearSolution]],
    support: int,
) -> Fitted:
    """The fitted cell of some models.

    Parameters
    ----------
    states : the representation of each model, or one that all share.
    costs, support : C on the whole cell, of each model; rows inside the margin of any model.
    """
    reports = [solution.report for _, solution in models]
    gaps = [(r.primal - r.dual) / r.primal if r.primal > 0 else 0.0 for r in reports]
    each = states if len(states) == len(models) else [states[0]] * len(models)
    weights = [method.prediction_weights(solution.w, state) for (_, solution), state in zip(models, each, strict=True)]
    kept: dict[str, NDArray[Any]] = {
        "model_problem": np.asarray([job.problem for job, _ in models], np.int32),
        "model_fold": np.asarray([job.fold for job, _ in models], np.int32),
        "model_cost": np.asarray(costs, np.float64),
        "model_gap": np.asarray(gaps, np.float64),
        "model_iterations": np.asarray([r.steps for r in reports], np.int64),
        "model_converged": np.asarray([r.converged for r in reports], np.uint8),
        "weights": np.concatenate([*weights, np.empty(0)]),
    }
    report = FitReport(
        models=len(models),
        iterations=sum(r.steps for r in reports),
        not_converged=sum(not r.converged for r in reports),
        largest_gap=max(gaps, default=0.0),
        support_vectors=support,
    )
    return Fitted(method.joined(states) | kept, report)


def pack_descended(method: LinearRepresentation, state: State, cost: float, descended: Descended) -> Fitted:
    """The fitted cell of a model a problem, all rows trained on."""
    models = [
        (Job(problem, WHOLE, np.asarray([cost])), LinearSolution(w, None, 0.0, report))
        for problem, (w, report) in enumerate(zip(descended.weights, descended.reports, strict=True))
    ]
    return pack_linear(method, [state], [cost] * len(models), models, descended.support)


class LinearPredictor:
    """Decision functions of one cell from its saved arrays."""

    def __init__(self, method: LinearRepresentation, state: State, target: Target) -> None:
        self._method, self._state, self._target = method, state, target

    @cached_property
    def _weights(self) -> Floats:
        return np.ascontiguousarray(self._state["weights"], np.float64)

    def decision_function(self, X: Examples) -> Floats:
        """Decision values (n, problems) float64; see Target.combine."""
        X = X if isinstance(X, np.ndarray) else thinned(X)
        states, models = self._method.parted(self._state), len(self._state["model_problem"])
        values, read = np.empty((X.shape[0], models)), 0
        for m in range(models):
            if m < len(states):
                rows = self._method.prediction_rows(X, states[m])
            values[:, m] = rows.values(self._weights[read : read + rows.size])
            read += rows.size
        return self._target.combine(values, self._state["model_problem"])
