"""The kernelised form of L3-SVM against LIBSVM on the paper's Gram matrix and on explicit features."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
import selecting
from numpy.testing import assert_allclose
from selecting import fitted, score
from sklearn.metrics.pairwise import polynomial_kernel, rbf_kernel
from sklearn.svm import SVC

from localsvm.data.blocks.dataset import Dataset
from localsvm.methods.cell import Cell
from localsvm.methods.locally_linear.l3_kernel import KernelL3SVM
from localsvm.runs.config import TrainingConfig
from localsvm.runs.predict import LocalModel
from localsvm.runs.train import train
from localsvm.targets.classification import Classification

C, GAMMA = 2.0, 0.2
METHOD = KernelL3SVM(clusters=(3.0,), landmarks_count=(4.0,), cost=(C,), gamma=(GAMMA,), tolerance=1e-6)


def examples(n: int = 160, classes: int = 2) -> tuple[np.ndarray, np.ndarray]:
    return selecting.examples(n, classes=classes, seed=3)


def cell_of(X: np.ndarray, y: np.ndarray) -> Cell:
    scheme = Classification(np.unique(y), "ova")
    n = len(y)
    return Cell(X, y, scheme, np.ones(n), np.ones(n), np.sort(np.arange(n) % 4))


def manifest(path: Path) -> bytes:
    with h5py.File(path) as file:
        return bytes(file.attrs["manifest"])


def projections(method: KernelL3SVM, X: np.ndarray, state: dict[str, Any]) -> tuple[np.ndarray, np.ndarray]:
    """mu and clusters, in float64."""
    points, centres = state["landmarks"].astype(np.float64), state["centres"].astype(np.float64)
    X = X.astype(np.float64)
    mu = X @ points.T if method.projection == "linear" else rbf_kernel(X, points, gamma=method.projection_gamma[0])
    return mu, np.square(X[:, None] - centres).sum(axis=2).argmin(axis=1)


@pytest.mark.parametrize("kernel", ["gaussian", "polynomial", "linear"])
@pytest.mark.parametrize("projection", ["linear", "rbf"])
def test_it_is_an_svm_with_the_gram_matrix_of_the_appendix(kernel: str, projection: str) -> None:
    X, y = examples()
    gamma = (0.3,) if projection == "rbf" else ()
    method = replace(METHOD, kernel=kernel, projection=projection, projection_gamma=gamma)
    cell = cell_of(X, y)
    predictor, state = fitted(method, cell)
    mu, cluster = projections(method, X, state)
    gram = {
        "gaussian": rbf_kernel(mu, gamma=GAMMA),
        "polynomial": polynomial_kernel(mu, degree=3, gamma=GAMMA, coef0=0.0),
        "linear": mu @ mu.T,
    }[kernel] * (cluster[:, None] == cluster)
    theirs = SVC(kernel="precomputed", C=C, tol=1e-6).fit(gram, cell.Y[:, 0])
    values = predictor.decision_function(X)[:, 0]
    assert_allclose(values, theirs.decision_function(gram), atol=2e-3)
    assert len(np.unique(state["support_cluster"])) == 3


def test_the_linear_kernel_is_a_linear_svm_on_explicit_features() -> None:
    X, y = examples()
    method = replace(METHOD, kernel="linear")
    predictor, state = fitted(method, cell_of(X, y))
    mu, cluster = projections(method, X, state)
    blocks = np.zeros((len(X), 3, mu.shape[1]))
    blocks[np.arange(len(X)), cluster] = mu
    explicit = SVC(kernel="linear", C=C, tol=1e-6).fit(blocks.reshape(len(X), -1), y)
    f = explicit.decision_function(blocks.reshape(len(X), -1))
    assert_allclose(predictor.decision_function(X)[:, 0], f, atol=2e-3)
    sign = 2.0 * y - 1.0
    primal = 0.5 * np.square(explicit.coef_).sum() + C * np.maximum(0.0, 1.0 - sign * f).sum()
    alpha, chosen = np.abs(explicit.dual_coef_[0]), explicit.support_
    gram = (mu @ mu.T * (cluster[:, None] == cluster))[np.ix_(chosen, chosen)]
    b = alpha * sign[chosen]
    assert alpha.sum() - 0.5 * b @ gram @ b == pytest.approx(primal, rel=1e-4)


def test_one_cluster_is_an_svm_on_projections_and_a_far_cluster_is_not_asked() -> None:
    X, y = examples()
    one = replace(METHOD, clusters=(1.0,))
    predictor, state = fitted(one, cell_of(X, y))
    mu, _ = projections(one, X, state)
    theirs = SVC(gamma=GAMMA, C=C, tol=1e-6).fit(mu, y)
    assert_allclose(predictor.decision_function(X)[:, 0], theirs.decision_function(mu), atol=2e-3)


def test_parameters_are_chosen_from_lists() -> None:
    X, y = examples()
    method = KernelL3SVM(clusters=(1.0, 3.0), landmarks_count=(2.0, 5.0), cost=(0.1, 10.0))
    cell = cell_of(X, y)
    grid = method.grid(cell, len(y), 4)
    assert len(grid.settings) == 2 * 2 * 10 and grid.names == ("clusters", "landmarks_count", "gamma")
    scores = score(method, cell, grid)
    chosen = grid.setting(scores.best[3])
    predictor, state = fitted(method, cell)
    assert (len(state["centres"]), len(state["landmarks"])) == (chosen["clusters"], chosen["landmarks_count"])
    assert scores.best[0] < 0.25
    assert np.mean((predictor.decision_function(X)[:, 0] > 0) == y) > 0.8


@pytest.mark.fast(1)
@pytest.mark.parametrize("method", [KernelL3SVM(cost=(1.0,), gamma=(1.0,)), KernelL3SVM(landmarks_count=(2.0, 6.0))])
def test_cells_of_fewer_rows_than_landmarks(method: KernelL3SVM, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((50, 8)).astype(np.float32)
    y = np.where(X[:, 0] > 0, 1.0, -1.0)
    config = TrainingConfig(replace(method, clusters=(2.0,)), "chunks", 6, folds=3)
    train(Dataset(X.copy(), y), config, tmp_path / "m.h5")
    with LocalModel(tmp_path / "m.h5") as model:
        assert {len(model.file.cell(i)["landmarks"]) for i in range(model.file.n_cells)} != {8}
        assert (model.predict(X) == y).mean() > 0.7
