"""Kernels of rows with few entries in many columns, against the formula in float64, and against the dense way."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.metrics.pairwise import laplacian_kernel

from localsvm.data.blocks.dataset import Dataset, as_examples
from localsvm.kernels import SQUARES, SUMS, Kernel
from localsvm.kernels.entries import base_of, few_entries
from localsvm.kernels.gram import Gram, radius
from localsvm.kernels.scratch import Scratch
from localsvm.methods.kernel.svm import KernelSVM
from localsvm.runs.cells.schedule import Resources
from localsvm.runs.config import TrainingConfig
from localsvm.runs.predict import LocalModel
from localsvm.runs.train import train

WIDTH = 40_000
KERNELS = [
    Kernel("gaussian", 0.03, 0.0, 3), Kernel("laplacian", 0.2, 0.0, 3), Kernel("polynomial", 0.1, 1.0, 2),
    Kernel("manhattan", 0.02),
]  # fmt: skip


def hashed(n: int = 300, seed: int = 0) -> tuple[sparse.csr_array, np.ndarray]:
    """Rows with 20 of many columns, and for one class a few that are frequent."""
    rng = np.random.default_rng(seed)
    y = np.where(np.arange(n) % 2, 1.0, -1.0)
    X = sparse.random_array((n, WIDTH), density=20 / WIDTH, random_state=rng, dtype=np.float32).tolil()
    for i in np.flatnonzero(y > 0):
        X[i, rng.choice(40, 8, replace=False)] = 1.0
    return as_examples(sparse.csr_array(X)), y


def exact(A: np.ndarray, B: np.ndarray, kernel: Kernel) -> np.ndarray:
    if kernel.kind == "manhattan":
        return laplacian_kernel(A, B, gamma=kernel.gamma)
    products = A @ B.T
    squares = ((A**2).sum(axis=1)[:, None] + (B**2).sum(axis=1) - 2 * products).clip(0)
    squares[squares < 1e-12] = 0.0
    if kernel.kind == "gaussian":
        return np.exp(-kernel.gamma * squares)
    if kernel.kind == "laplacian":
        return np.exp(-kernel.gamma * np.sqrt(squares))
    return (kernel.gamma * products + kernel.coef0) ** kernel.degree


def test_only_rows_with_few_entries_go_this_way() -> None:
    assert few_entries(hashed()[0])
    rng = np.random.default_rng(1)
    assert not few_entries(as_examples(sparse.random_array((300, 2000), density=0.1, random_state=rng).tocsr()))
    assert not few_entries(np.zeros((3, 5), np.float32))
    assert not few_entries(as_examples(sparse.csr_array((3, 5))))


@pytest.mark.fast(1)
@pytest.mark.parametrize("kernel", KERNELS, ids=lambda k: k.kind)
@pytest.mark.parametrize("double", [False, True])
def test_kernel_matrices(kernel: Kernel, double: bool) -> None:
    X, _ = hashed(200)
    dense = X.toarray().astype(np.float64)
    expected = exact(dense, dense, kernel)
    several = Gram(X, Scratch()).matrix(kernel, double)[:200, :200].copy()
    assert_allclose(several, expected, rtol=1e-9 if double else 1e-5, atol=1e-9 if double else 1e-6)
    assert_array_equal(Gram(X, Scratch(), several=False).matrix(kernel, double)[:200, :200], several)


@pytest.mark.whole
def test_rows_far_from_zero_keep_their_distances() -> None:
    X, _ = hashed(60)
    X.data += 1000.0
    dense = X.toarray().astype(np.float64)
    squares = ((dense[:, None] - dense[None]) ** 2).sum(axis=2)
    assert_allclose(base_of(X, X, SQUARES), squares, rtol=1e-12, atol=1e-5)
    assert_allclose(base_of(X, X, SUMS), np.abs(dense[:, None] - dense[None]).sum(axis=2), rtol=1e-12, atol=1e-9)
    middle = dense.mean(axis=0)
    assert_allclose(radius(X), np.sqrt(((dense - middle) ** 2).sum(axis=1).max()), rtol=1e-9)
    assert_allclose(radius(X, SUMS), np.abs(dense - middle).sum(axis=1).max(), rtol=1e-9)
    few = np.ascontiguousarray(dense[:, X.indices[:50]], np.float32)
    assert_allclose(radius(few, SUMS), np.abs(few - few.mean(axis=0)).sum(axis=1).max(), rtol=1e-5)


@pytest.mark.fast(1)
@pytest.mark.parametrize("kernel", ["gaussian", "laplacian", "manhattan", "polynomial"])
def test_models_predict_by_the_formula(kernel: str, tmp_path: Path) -> None:
    X, y = hashed()
    config = TrainingConfig(KernelSVM(kernel=kernel, gamma=(0.01, 0.1), cost=(1.0, 10.0)), scale="none", metric="none")
    for jobs in (1, 2):
        train(Dataset(X.copy(), y.copy()), config, tmp_path / f"{jobs}.h5", resources=Resources(jobs=jobs))
    test, labels = hashed(seed=1)
    with LocalModel(tmp_path / "1.h5") as model, LocalModel(tmp_path / "2.h5") as other:
        values = model.decision_function(test)
        assert_array_equal(other.decision_function(test), values)
        assert (model.predict(test) == labels).mean() > 0.8
        assert_array_equal(model.decision_function(test[7:8]), values[7:8])
        state = model.file.cell(0)
        known = test.toarray().astype(np.float64)[:, model.chain.columns.kept]
    parts = tuple(state[f"support_{part}"] for part in ("data", "indices", "indptr"))
    support = sparse.csr_array(parts, shape=(len(parts[2]) - 1, known.shape[1])).toarray().astype(np.float64)
    K = exact(known, support, KernelSVM(kernel=kernel).kernel_of(float(state["model_gamma"][0])))
    fits = []
    for m, bias in enumerate(state["model_bias"]):
        mine = slice(*state["coef_ptr"][m : m + 2])
        fits.append(K[:, state["coef_index"][mine]] @ state["coef"][mine] + bias)
    assert_allclose(values[:, 0], np.clip(fits, -1, 1).mean(axis=0), rtol=1e-6, atol=1e-6)
