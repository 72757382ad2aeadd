"""Kernel expansions over linearly mapped rows, f(x) = sum_i a_i k(Lx, Lx_i) + b, each model with its own L.

The kernel k(z, z') of mapped rows is exp(-|z - z'|^2), or the Manhattan one exp(-sum_j |z_j - z'_j|).

Support vectors are kept as they are in the data, so that models share them, and are mapped on first use. A map has the
form of `-m svml --form`: with "diag" and "sphere" it is a diagonal, kept as one row; otherwise a matrix (rows, d).
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from localsvm.data.blocks.dataset import Dense, Examples, rows_of, within_reach
from localsvm.kernels import Kernel
from localsvm.methods.base import State
from localsvm.methods.kernel.systems.expansion import ExpansionPredictor, sparse_support, support_state
from localsvm.representations.landmarks import project
from localsvm.targets.base import Target

Floats = NDArray[np.float64]
DIAGONALS = ("diag", "sphere")


class MappedPredictor:
    """The decision functions of one cell from its saved arrays. kernel: of mapped rows; form: the option --form."""

    def __init__(self, kernel: Kernel, form: str, state: State, target: Target, n_features: int) -> None:
        self._kernel, self._form = kernel, form
        self._state, self._target, self._features = state, target, n_features
        models = len(state["model_bias"])
        self._maps = np.ascontiguousarray(state["map"], np.float32).reshape(models, -1, n_features)
        self._known: dict[int, ExpansionPredictor] = {}

    def decision_function(self, X: Examples) -> Floats:
        """Decision values (n, problems) float64; see Target.combine."""
        return self._target.combine(self.values(X), self._state["model_problem"])

    def values(self, X: Examples) -> Floats:
        """Decision values (n, models) float64."""
        X, lost = within_reach(X)
        columns = [self._expansion(i).values(mapped(X, L, self._form)) for i, L in enumerate(self._maps)]
        values = np.concatenate(columns, axis=1) if columns else np.zeros((X.shape[0], 0))
        if lost is not None:
            values[lost] = np.nan
        return values

    @cached_property
    def _support(self) -> Examples:
        state = self._state
        if "support" in state:
            return np.asarray(state["support"], np.float32)
        return sparse_support(state, self._features)

    def _expansion(self, model: int) -> ExpansionPredictor:
        """One model over its own support vectors, mapped."""
        if model not in self._known:
            state, span = self._state, slice(*self._state["coef_ptr"][model : model + 2])
            rows = rows_of(self._support, state["coef_index"][span].astype(np.int64))
            support = mapped(rows, self._maps[model], self._form)
            part = {name: state[name][model : model + 1] for name in ("model_gamma", "model_bias", "model_problem")}
            part |= support_state(support, np.arange(support.shape[0]))
            part |= {"coef": state["coef"][span], "coef_index": np.arange(support.shape[0], dtype=np.int32)}
            part["coef_ptr"] = np.asarray([0, support.shape[0]])
            self._known[model] = ExpansionPredictor(part, self._kernel, self._target, support.shape[1])
        return self._known[model]


def mapped(X: Examples, L: Dense, form: str) -> Examples:
    """Rows L x in float32; a diagonal map (1, d) keeps sparse rows sparse. What a row gets depends on it alone."""
    if form not in DIAGONALS:
        return project(X, L, "linear", 0.0)
    if isinstance(X, np.ndarray):
        return np.asarray(X * L[0])
    return sparse.csr_array((X.data * L[0][X.indices], X.indices, X.indptr), X.shape)


def stored(L: Floats, columns: NDArray[np.int64] | None, features: int, form: str) -> Dense:
    """A map over some columns as one over all (rows, features) float32; diagonals are 1 / features elsewhere.

    columns: the columns that the map L is over, None for all.
    """
    columns = np.arange(features) if columns is None else columns
    if form == "full":
        out = np.eye(features) / features
        out[np.ix_(columns, columns)] = L
    elif form in DIAGONALS:
        out = np.full((1, features), L[0] if form == "sphere" else 1.0 / features)
        out[0, columns] = L
    else:
        out = np.zeros((len(L), features))
        out[:, columns] = L
    return out.astype(np.float32)
