"""Decision functions of mixtures of kernels: an expansion for each kernel that has a weight in any model."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from localsvm.data.blocks.dataset import Dense, Examples
from localsvm.kernels import Kernel
from localsvm.kernels.gram import columns_of
from localsvm.methods.base import State
from localsvm.methods.kernel.systems.expansion import ExpansionPredictor, sparse_support, support_state
from localsvm.targets.base import Target

Floats = NDArray[np.float64]
ALL_VARIABLES = -1


class BankPredictor:
    """The decision functions of one cell from its saved arrays; kinds: the kernels that `kernel_kind` counts."""

    def __init__(self, state: State, kinds: Sequence[Kernel], target: Target, n_features: int) -> None:
        self._state, self._kinds, self._target, self._features = state, kinds, target, n_features

    def decision_function(self, X: Examples) -> Floats:
        """Decision values (n, problems) float64; see Target.combine."""
        state = self._state
        out = np.tile(state["model_bias"].astype(np.float64), (X.shape[0], 1))
        for (variable, _), (models, expansion) in self._expansions.items():
            values = expansion.values(X if variable == ALL_VARIABLES else column(X, variable))
            for place, model in enumerate(models):
                out[:, model] += values[:, place]
        return self._target.combine(out, state["model_problem"])

    @cached_property
    def _expansions(self) -> dict[tuple[int, int], tuple[list[int], ExpansionPredictor]]:
        """Expansions by kernel (variable, kind): the models that mix it in, and their parts of it."""
        state = self._state
        ends = state["kernel_ptr"]
        models = np.repeat(np.arange(len(ends) - 1), np.diff(ends))
        members: dict[tuple[int, int], list[int]] = {}
        for place, key in enumerate(zip(state["kernel_variable"].tolist(), state["kernel_kind"].tolist(), strict=True)):
            members.setdefault(key, []).append(place)
        return {
            key: (models[places].tolist(), self._expansion(key, places, models[places]))
            for key, places in members.items()
        }

    def _expansion(self, key: tuple[int, int], places: list[int], models: NDArray[np.intp]) -> ExpansionPredictor:
        state, (variable, kind) = self._state, key
        support = self._support if variable == ALL_VARIABLES else column(self._support, variable)
        owned = [slice(*state["coef_ptr"][model : model + 2]) for model in models]
        factors = state["kernel_weight"][places] / state["kernel_scale"][places]
        part = support_state(support, np.arange(support.shape[0])) | {
            "coef": np.concatenate([f * state["coef"][span] for f, span in zip(factors, owned, strict=True)]),
            "coef_index": np.concatenate([state["coef_index"][span] for span in owned]),
            "coef_ptr": np.cumsum([0, *(span.stop - span.start for span in owned)]),
            "model_gamma": np.full(len(places), self._kinds[kind].gamma),
            "model_bias": np.zeros(len(places)),
            "model_problem": state["model_problem"][models],
        }
        return ExpansionPredictor(part, self._kinds[kind], self._target, support.shape[1])

    @cached_property
    def _support(self) -> Examples:
        if "support" in self._state:
            return np.asarray(self._state["support"], np.float32)
        return sparse_support(self._state, self._features)


def column(X: Examples, variable: int) -> Dense:
    """One column (n, 1), dense."""
    if isinstance(X, np.ndarray):
        return np.ascontiguousarray(X[:, variable : variable + 1])
    return columns_of(X, np.asarray([variable]))
