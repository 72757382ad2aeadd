"""Kernel expansions of a cell: how fitted models become the model file's columns, and decision functions again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from localsvm.data.blocks.dataset import Examples, within_reach
from localsvm.kernels import PRODUCTS, SQUARES, SUMS, Kernel
from localsvm.kernels._kernels import Expansion, Panels, aligned, padded
from localsvm.kernels.entries import base_of, few_entries
from localsvm.kernels.gram import active_columns, centre_of, columns_of, transform_double
from localsvm.methods.base import State
from localsvm.methods.cell import Cell
from localsvm.methods.fit_report import FitReport
from localsvm.methods.saved import table
from localsvm.solvers._smo import DualReport
from localsvm.store.pieces import Length, Piece, Pieces, floats32, floats64, index, pointer
from localsvm.targets.base import Target

BLOCK_FLOATS = 1 << 22  # rows are evaluated in blocks of about this many floats


@dataclass(frozen=True)
class KernelModel:
    """One solution: f(x) = sum_j coef_j kernel(x, x_rows[j]) + bias, of a binary problem and a fold (-1: all rows).

    gap is the duality gap over the sum of the rows' costs. Where there is a slope (d,), slope . x is added.
    """

    problem: int
    fold: int
    kernel: Kernel
    cost: float
    gap: float
    report: DualReport
    rows: NDArray[np.int64]
    coef: NDArray[np.float64]
    slope: NDArray[np.float64] | None = None


def pack_models(
    X: Examples, Y: NDArray[np.float64], models: Sequence[KernelModel], clusters: NDArray[np.int32] | None = None,
    sloped: bool = False,
) -> State:  # fmt: skip
    """The arrays that docs/model-format.md lists: the union of the support vectors, a table of models, coefficients.

    clusters (n,): what each row belongs to, where that is to be kept of the support vectors.
    sloped: whether models have a slope.
    """
    union = np.unique(np.concatenate([m.rows for m in models] or [np.empty(0, np.int64)])).astype(np.int64)
    union = union[np.lexsort(Y[union].T)]  # rows of one class together: a pair of classes then uses few panels
    place = np.zeros(len(Y), np.int32)
    place[union] = np.arange(len(union))
    state: State = dict(support_state(X, union))
    if clusters is not None:
        state["support_cluster"] = clusters[union]
    columns = {
        "model_problem": ([m.problem for m in models], np.int32),
        "model_fold": ([m.fold for m in models], np.int32),
        "model_gamma": ([m.kernel.gamma for m in models], np.float64),
        "model_cost": ([m.cost for m in models], np.float64),
        "model_gap": ([m.gap for m in models], np.float64),
        "model_bias": ([m.report.bias for m in models], np.float64),
        "model_iterations": ([m.report.iterations for m in models], np.int64),
        "model_converged": ([m.report.converged for m in models], np.uint8),
        "coef_ptr": (np.cumsum([0] + [len(m.rows) for m in models]), np.int64),
        "coef_index": (place[np.concatenate([m.rows for m in models] or [union])], np.int32),
        "coef": (np.concatenate([m.coef for m in models] or [np.empty(0)]), np.float64),
    }
    state.update({name: np.asarray(values, dtype=dtype) for name, (values, dtype) in columns.items()})
    if sloped:
        state["model_slope"] = np.reshape([m.slope for m in models if m.slope is not None], (-1, X.shape[1]))
    return state


def report_of(models: Sequence[KernelModel], cell: Cell) -> FitReport:
    """Summary of some models of a cell."""
    rows = np.unique(np.concatenate([m.rows for m in models] or [np.empty(0, np.int64)])).astype(np.int64)
    return FitReport(
        models=len(models),
        iterations=sum(m.report.iterations for m in models),
        not_converged=sum(not m.report.converged for m in models),
        largest_gap=max((m.gap for m in models), default=0.0),
        support_vectors=len(rows),
        support=cell.target.counts(cell.y[rows]),
    )


def support_state(X: Examples, rows: NDArray[np.int64]) -> State:
    """The arrays of support vectors, rows of X."""
    if isinstance(X, np.ndarray):
        return {"support": np.ascontiguousarray(X[rows], dtype=np.float32)}
    part = sparse.csr_array(X)[rows]
    return {
        "support_data": part.data.astype(np.float32),
        "support_indices": part.indices.astype(np.int32),
        "support_indptr": part.indptr.astype(np.int64),
    }


def sparse_support(state: State, n_features: int) -> sparse.csr_array:
    """The support vectors of a cell of sparse rows."""
    parts = tuple(state[f"support_{part}"] for part in ("data", "indices", "indptr"))
    return sparse.csr_array(parts, shape=(len(parts[2]) - 1, n_features))


def linear_weights(state: State, n_features: int) -> NDArray[np.float64]:
    """Weights (models, n_features) of a saved cell whose kernel is linear, with slopes and without the biases."""
    support = sparse.csr_array(state["support"]) if "support" in state else sparse_support(state, n_features)
    shape = len(state["coef_ptr"]) - 1, support.shape[0]
    coef = sparse.csr_array((state["coef"], state["coef_index"], state["coef_ptr"]), shape=shape)
    weights = np.asarray((coef @ support.astype(np.float64)).toarray())
    return weights + state["model_slope"] if "model_slope" in state else weights


def expansion_pieces(dense: bool, width: Length = "features", sloped: bool = False) -> Pieces:
    """Description of the arrays of `pack_models`, for support vectors of `width` columns; dense: whether rows are."""
    models = table("problem", "fold", "gamma", "cost", "gap", "bias", "iterations", "converged")
    expansion = {"coef_ptr": pointer("m", ends="k"), "coef_index": index("k", below="s"), "coef": floats64("k")}
    slopes = {"model_slope": floats64("m", width)} if sloped else {}
    return {**rows_pieces(dense, width), **models, **slopes, **expansion}


def rows_pieces(dense: bool, width: Length = "features") -> Pieces:
    """Description of the arrays of `support_state`, for s rows of `width` columns; dense: whether these are."""
    if dense:
        return {"support": floats32("s", width)}
    return {
        "support_data": floats32("stored"),
        "support_indices": Piece("i4", ("stored",), low=0, below="features", rows="support_indptr"),
        "support_indptr": pointer("s", ends="stored"),
    }


class ExpansionPredictor:
    """Decision functions of one cell from its saved arrays (see pack_models); built on first use.

    Squared distances are taken from the mean of the support vectors, for the sake of float32.
    """

    def __init__(self, state: State, kernel: Kernel, target: Target, n_features: int) -> None:
        self._state, self._kernel, self._target, self._n_features = state, kernel, target, n_features

    def decision_function(self, X: Examples) -> NDArray[np.float64]:
        """Decision values (n, problems) float64; see Target.combine."""
        out = np.zeros((X.shape[0], self._target.n_problems))
        for rows in self._blocks(X.shape[0]):
            out[rows] = self._target.combine(self._values(X[rows]), self._state["model_problem"])
        return out

    def values(self, X: Examples) -> NDArray[np.float64]:
        """Decision values (n, models) float64, of each model by itself."""
        out = np.zeros((X.shape[0], len(self._state["model_bias"])))
        for rows in self._blocks(X.shape[0]):
            out[rows] = self._values(X[rows])
        return out

    def _blocks(self, n_rows: int) -> list[slice]:
        step = max(1, BLOCK_FLOATS // max(1, self._width))
        return [slice(first, first + step) for first in range(0, n_rows, step)]

    def _values(self, X: Examples) -> NDArray[np.float64]:
        lost = None
        if self._kernel.uses_distances:
            X, lost = within_reach(X)
        values = (self._by_entries(X) if self._few_entries else self._by_panels(X)) + self._lines(X)
        if lost is not None:
            values[lost] = np.nan
        return values

    def _by_panels(self, X: Examples) -> NDArray[np.float64]:
        """Decision values without bias (n, models), of dense rows of the columns that support vectors have."""
        rows = columns_of(X, self._columns)
        outside = None
        if not isinstance(X, np.ndarray) and self._kernel.uses_distances:
            power = 1 if self._kernel.base == SUMS else 2
            total = np.asarray((abs(X) if power == 1 else X.multiply(X)).sum(axis=1)).ravel()
            outside = (total - (abs(rows.astype(np.float64)) ** power).sum(axis=1)).clip(0).astype(np.float32)
        return np.asarray(self._expansion(rows - self._centre, outside))

    def _by_entries(self, X: Examples) -> NDArray[np.float64]:
        """Decision values without bias (n, models); sums over support vectors do not depend on the block of a row."""
        base = base_of(X, self._sparse, self._kernel.base)
        gammas, out = self._state["model_gamma"], np.empty((X.shape[0], len(self._state["model_gamma"])))
        for gamma in np.unique(gammas):
            mine, values = np.flatnonzero(gammas == gamma), np.empty_like(base)
            transform_double(replace(self._kernel, gamma=float(gamma)), base, values)
            out[:, mine] = (self._coefficients[mine] @ values.T).T
        return out

    def _lines(self, X: Examples) -> NDArray[np.float64]:
        """The biases (models,), or with slopes lines (n, models)."""
        state = self._state
        bias = state["model_bias"].astype(np.float64)
        if "model_slope" not in state:
            return bias
        slopes = state["model_slope"].astype(np.float64)
        if not isinstance(X, np.ndarray):
            return np.asarray(X @ slopes.T) + bias
        if not self._kernel.uses_distances:  # these have no centre, far from which float32 would lose digits
            return np.asarray(np.einsum("ij,kj->ik", X.astype(np.float64), slopes)) + bias
        products = aligned((len(X), padded(self._slopes.size)), np.float32)
        self._slopes.products(columns_of(X, None) - self._centre, products)
        return products[:, : len(bias)] + (bias + slopes @ self._centre)

    @cached_property
    def _slopes(self) -> Panels:
        return Panels(self._state["model_slope"].astype(np.float32), PRODUCTS)

    @cached_property
    def _coefficients(self) -> sparse.csr_array:
        state = self._state
        shape = len(state["coef_ptr"]) - 1, len(state["support_indptr"]) - 1
        return sparse.csr_array((state["coef"].astype(np.float64), state["coef_index"], state["coef_ptr"]), shape)

    @cached_property
    def _few_entries(self) -> bool:
        return self._sparse is not None and few_entries(self._sparse)

    @property
    def _width(self) -> int:
        """Number of floats that a row takes."""
        if self._few_entries:
            return len(self._state["support_indptr"]) - 1
        return self._n_features if self._columns is None else len(self._columns)

    @cached_property
    def _columns(self) -> NDArray[np.int64] | None:
        return active_columns(self._sparse) if self._sparse is not None else None

    @cached_property
    def _sparse(self) -> sparse.csr_array | None:
        return None if "support" in self._state else sparse_support(self._state, self._n_features)

    @cached_property
    def _support(self) -> NDArray[np.float32]:
        if self._sparse is None:
            return np.asarray(self._state["support"], dtype=np.float32)
        return columns_of(self._sparse, self._columns)

    @cached_property
    def _centre(self) -> NDArray[np.float32]:
        support = self._support
        if self._sparse is None and self._kernel.base == SQUARES and len(support):
            return centre_of(support)
        return np.zeros(support.shape[1], np.float32)

    @cached_property
    def _expansion(self) -> Expansion:
        kernels = [replace(self._kernel, gamma=float(g)) for g in self._state["model_gamma"]]
        ptr, index = self._state["coef_ptr"].astype(np.int64), self._state["coef_index"].astype(np.int32)
        coef = self._state["coef"].astype(np.float64)
        return Expansion(self._support - self._centre, kernels, ptr, index, coef)
