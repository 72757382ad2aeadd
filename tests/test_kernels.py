"""Products, kernels and expansions against numpy, at every SIMD level of this machine."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.metrics.pairwise import (
    euclidean_distances,
    laplacian_kernel,
    manhattan_distances,
    polynomial_kernel,
    rbf_kernel,
)

from localsvm.data.blocks.dataset import as_examples
from localsvm.errors import OptionError
from localsvm.kernels import PRODUCTS, SQUARES, SUMS, Kernel
from localsvm.kernels._kernels import (
    KINDS,
    LEVELS,
    PAD,
    Expansion,
    Panels,
    RowsOnDemand,
    aligned,
    padded,
    simd_level,
    symmetric_products,
    transform,
    weighted_sums,
)
from localsvm.kernels.gram import Gram
from localsvm.kernels.scratch import Scratch
from localsvm.kernels.symmetric import MOST, symmetric_times, widened
from localsvm.solvers._smo import KernelDual
from localsvm.threads import Threads

LEVEL_NUMBERS = range(simd_level() + 1)


def rows(n: int, d: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((n, d)).astype(np.float32)


def compress(coef: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Pointers, indices and values of the compressed sparse rows, zeros left out."""
    rows = sparse.csr_array(coef)
    return rows.indptr, rows.indices, rows.data


@pytest.mark.parametrize("level", LEVEL_NUMBERS)
@settings(deadline=None, max_examples=40)
@given(n=st.integers(1, 70), m=st.integers(1, 70), d=st.integers(0, 40))
def test_products_and_distances(level: int, n: int, m: int, d: int) -> None:
    A, B = rows(n, d, 1), rows(m, d, 2)
    wide_a, wide_b = A.astype(np.float64), B.astype(np.float64)
    expected = {PRODUCTS: wide_a @ wide_b.T, SQUARES: np.zeros((n, m)), SUMS: np.zeros((n, m))}
    if d:
        expected[SQUARES] = euclidean_distances(wide_a, wide_b, squared=True)
        expected[SUMS] = manhattan_distances(wide_a, wide_b)
    for base, values in expected.items():
        panels = Panels(B, base, level)
        out = aligned((n, padded(m)), np.float32)
        panels.products(A, out, None if base == PRODUCTS else panels.norms_of(A))
        np.testing.assert_allclose(out[:, :m], values, atol=1e-5 * max(1, d))


@pytest.mark.parametrize("base", [SQUARES, SUMS])
@pytest.mark.parametrize("level", LEVEL_NUMBERS)
def test_distance_of_equal_rows_is_zero(level: int, base: str) -> None:
    X = rows(50, 37) * 1000
    panels = Panels(X, base, level)
    out = aligned((50, padded(50)), np.float32)
    panels.products(X, out, panels.norms)
    assert not np.diagonal(out[:, :50]).any()
    np.testing.assert_array_equal(out[:, :50], out[:, :50].T)


def test_kernels_against_scikit_learn() -> None:
    X = rows(45, 6, 3)
    wide = X.astype(np.float64)
    squared = euclidean_distances(wide, squared=True)
    expected = {
        Kernel("gaussian", 0.2): rbf_kernel(wide, gamma=0.2),
        Kernel("laplacian", 0.3): np.exp(-0.3 * np.sqrt(squared)),
        Kernel("polynomial", 0.1, 1.0, 5): polynomial_kernel(wide, degree=5, gamma=0.1, coef0=1.0),
        Kernel("linear"): wide @ wide.T,
        Kernel("manhattan", 0.3): laplacian_kernel(wide, gamma=0.3),
    }
    for kernel, matrix in expected.items():
        for double, allowed in [(False, 3e-5), (True, 1e-11)]:
            K = Gram(X, Scratch()).matrix(kernel, double)[:45, :45]
            np.testing.assert_allclose(K, matrix, rtol=allowed, atol=3e-6)


@pytest.mark.parametrize("level", LEVELS[: simd_level() + 1])
@pytest.mark.parametrize("kind", KINDS)
def test_matrix_of_one_kernel_is_that_of_several(monkeypatch: pytest.MonkeyPatch, level: str, kind: str) -> None:
    monkeypatch.setenv("LOCALSVM_SIMD", level)
    X, kernel = rows(131, 7, 8), Kernel(kind, 0.3, 0.5, 3)  # two strips and a rest
    several = Gram(X, Scratch()).matrix(kernel)[:131, :131].copy()
    np.testing.assert_array_equal(Gram(X, Scratch(), several=False).matrix(kernel)[:131, :131], several)


@pytest.mark.parametrize("level", LEVELS[: simd_level() + 1])
@pytest.mark.parametrize("kind", ["gaussian", "laplacian", "manhattan"])
@pytest.mark.parametrize(("n", "d"), [(1, 1), (17, 3), (131, 7), (230, 41)])
def test_rows_on_demand_are_those_of_the_matrix(
    monkeypatch: pytest.MonkeyPatch, level: str, kind: str, n: int, d: int
) -> None:
    monkeypatch.setenv("LOCALSVM_SIMD", level)
    X, kernel = rows(n, d, n), Kernel(kind, 0.3)
    whole = Gram(X, Scratch(), several=False).matrix(kernel)
    K = Gram(X, Scratch(), several=False).on_demand(kernel)
    assert isinstance(K, RowsOnDemand)
    K.array[:, :n] = np.nan  # what is not computed is not read
    dual = KernelDual(K, np.zeros(padded(n)), unit_diagonal=True)
    assert K.computed == 0
    read = [n - 1, n // 2, n - 1]
    for i in read:
        assert_array_equal(dual.multiply(np.eye(padded(n))[i])[:n], whole[i, :n])
    assert K.computed == len(set(read))
    assert_array_equal(K.whole(), whole)
    assert K.computed == n


def test_rows_are_on_demand_where_that_is_possible() -> None:
    gaussian, narrow, wide = Kernel("gaussian", 0.3), rows(40, 64), rows(40, 65)
    few = as_examples(sparse.eye_array(40, 64, dtype=np.float32, format="csr"))
    assert isinstance(Gram(narrow, Scratch()).on_demand(gaussian), RowsOnDemand)
    assert isinstance(Gram(wide, Scratch(), several=False).on_demand(gaussian), RowsOnDemand)
    for X, kernel in ((wide, gaussian), (narrow, Kernel("polynomial", 1.0)), (few, gaussian), (rows(40, 0), gaussian)):
        assert_array_equal(Gram(X, Scratch()).on_demand(kernel), Gram(X, Scratch()).matrix(kernel))
    K = aligned((48, 48), np.float32)
    for X, kernel, out in ((narrow, Kernel("linear"), K), (rows(40, 0), gaussian, K), (rows(60, 2), gaussian, K)):
        with pytest.raises(ValueError, match=r"there must be|one of distances|as large as"):
            RowsOnDemand(X, kernel, out)
    with pytest.raises(ValueError, match="unit diagonal"):
        KernelDual(Gram(narrow, Scratch()).on_demand(gaussian), np.zeros(padded(40)))


def test_exponential_is_accurate_over_its_range() -> None:
    x = np.linspace(0, 86, 320 * 320).astype(np.float32).reshape(320, 320)
    source, out = aligned((320, 320), np.float32), aligned((320, 320), np.float32)
    source[:] = x
    transform(Kernel("gaussian", 1.0), source, out)
    np.testing.assert_allclose(out, np.exp(-x.astype(np.float64)), rtol=2.5e-7)
    source[:] = 1e30
    transform(Kernel("gaussian", 1.0), source, out)
    assert np.all((out >= 0) & (out < 1e-37))


@pytest.mark.parametrize("level", LEVEL_NUMBERS)
@pytest.mark.parametrize("kind", KINDS)
def test_expansions_of_several_models(level: int, kind: str) -> None:
    B, X = rows(83, 5, 4), rows(29, 5, 5)
    kernels = [Kernel(kind, g, 0.5, 2) for g in (0.5, 0.1, 0.5)]
    coef = np.random.default_rng(6).standard_normal((3, 83)) * 10
    values = Expansion(B, kernels, *compress(coef), level)(X)
    stacked = np.concatenate([X, B])
    for m, kernel in enumerate(kernels):
        expected = Gram(stacked, Scratch()).matrix(kernel, True)[:29, 29 : 29 + 83] @ coef[m]
        np.testing.assert_allclose(values[:, m], expected, atol=2e-3 if kind == "polynomial" else 1e-4)


@pytest.mark.parametrize("level", LEVELS[: simd_level() + 1])
@pytest.mark.parametrize(("n", "d"), [(1, 3), (7, 1), (95, 4), (64, 30)])
def test_weighted_sums_of_absolute_differences(monkeypatch: pytest.MonkeyPatch, level: str, n: int, d: int) -> None:
    monkeypatch.setenv("LOCALSVM_SIMD", level)
    X, W = rows(n, d), aligned((n, padded(n)), np.float32)
    W[:] = np.nan  # what lies beyond the columns is not read
    W[:, :n] = rows(n, n, 1)
    expected = np.einsum("ij,ijk->k", W[:, :n].astype(np.float64), np.abs(X[:, None].astype(np.float64) - X))
    np.testing.assert_allclose(weighted_sums(W[:, :n], X), expected, rtol=1e-5, atol=1e-4 * n)
    t = n // 2
    expected = np.einsum("ij,ijk->k", W[:, :t].astype(np.float64), np.abs(X[:, None].astype(np.float64) - X[:t]))
    np.testing.assert_allclose(weighted_sums(W[:, :t], X), expected, rtol=1e-5, atol=1e-4 * n)


def test_an_expansion_does_not_depend_on_the_block() -> None:
    coef = np.random.default_rng(8).standard_normal((1, 200))
    expansion = Expansion(rows(200, 9, 7), [Kernel("gaussian", 0.1)], *compress(coef))
    X = rows(64, 9, 9)
    whole = expansion(X)
    for size in (1, 5, 6, 7, 63):
        parts = [expansion(X[i : i + size]) for i in range(0, 64, size)]
        np.testing.assert_array_equal(np.concatenate(parts), whole)


def test_an_expansion_over_nothing_is_zero() -> None:
    assert not Expansion(rows(0, 3), [Kernel()], *compress(np.zeros((1, 0))))(rows(4, 3)).any()
    assert Expansion(rows(5, 3), [], *compress(np.zeros((0, 5))))(rows(4, 3)).shape == (4, 0)


def test_models_with_few_coefficients_use_few_panels() -> None:
    B, X = rows(300, 4, 10), rows(9, 4, 11)
    kernels = [Kernel("gaussian", 0.5), Kernel("gaussian", 0.2), Kernel("gaussian", 0.5)]
    coef = np.zeros((3, 300))
    coef[0, 3], coef[1, [299, 31, 32]], coef[2, 100:140] = 2.0, [1.0, -4.0, 5.0], -1.0
    K = {k: Gram(np.concatenate([X, B]), Scratch()).matrix(k, True)[:9, 9:309].copy() for k in kernels}
    expected = np.stack([K[k] @ c for k, c in zip(kernels, coef, strict=True)], axis=1)
    np.testing.assert_allclose(Expansion(B, kernels, *compress(coef))(X), expected, atol=1e-5)


def test_an_unknown_level_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOCALSVM_SIMD", "neon2")
    with pytest.raises(OptionError, match="LOCALSVM_SIMD=neon2: this machine runs baseline"):
        simd_level()


def test_the_environment_chooses_the_level() -> None:
    code = "from localsvm.kernels._kernels import simd_level; print(simd_level())"
    for number in LEVEL_NUMBERS:
        environment = {**os.environ, "LOCALSVM_SIMD": LEVELS[number]}
        out = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
        assert int(out.stdout) == number


@pytest.mark.parametrize("level", LEVEL_NUMBERS)
@pytest.mark.parametrize("vectors", [1, 5])
def test_symmetric_products_read_half(level: int, vectors: int) -> None:
    n = 5 * PAD
    K, X, out = (aligned((rows, n), np.float32) for rows in (n, vectors, vectors))
    upper = np.triu(np.random.default_rng(0).random((n, n), np.float32))
    K[:], X[:], out[:] = upper + np.triu(upper, 1).T, np.random.default_rng(0).standard_normal((vectors, n)), 0.0
    expected = X.astype(np.float64) @ K.astype(np.float64)
    K[np.tril_indices(n, -PAD)] = np.nan  # beyond the blocks on the diagonal, the lower triangle is not read
    for first, last in ((0, 2 * PAD), (2 * PAD, n)):
        symmetric_products(K, X, first, last, out, level)
    assert_allclose(out, expected, rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("level", LEVEL_NUMBERS)
def test_symmetric_products_leave_small_numbers_of_others_alone(level: int) -> None:
    n = 2 * PAD
    K, X, out = (aligned((rows, n), np.float32) for rows in (n, 1, 1))
    K[:], X[:], out[:] = 1.6e-38, 1e-3, 0.0  # the kernel of far rows: its products are below the least normal number
    np.fill_diagonal(K, 1.0)
    symmetric_products(K, X, 0, n, out, level)
    assert_allclose(out, X, rtol=1e-6)
    assert np.float32(1.6e-38) * X[0, 0] > 0.0


def test_products_of_a_symmetric_matrix_do_not_depend_on_threads() -> None:
    n = 2100
    K = aligned((padded(n), padded(n)), np.float32)
    K[:] = np.random.default_rng(0).random(K.shape, np.float32)
    K[:] = np.triu(K) + np.triu(K, 1).T
    few = np.random.default_rng(0).standard_normal((3, n)).astype(np.float32)

    def times(vectors: np.ndarray, threads: Threads) -> np.ndarray:
        return symmetric_times(K, widened(vectors, len(K)), threads)[:, :n]

    alone = times(few, Threads(1))
    with Threads(2) as threads:
        assert_array_equal(times(few, threads), alone)
        assert_array_equal(times(few[1:2], threads), alone[1:2])
    many = np.tile(few, (MOST // 3 + 1, 1))
    assert_allclose(times(many, Threads(1))[:3], alone, rtol=1e-4, atol=1e-3)
    assert_allclose(alone, few.astype(np.float64) @ K[:n, :n].astype(np.float64), rtol=1e-4, atol=1e-3)


def test_arrays_that_do_not_fit_a_symmetric_product_are_refused() -> None:
    K, X = aligned((PAD, PAD), np.float32), aligned((1, PAD), np.float32)
    for rows, vectors, ends in ((K, X[:, :8].copy(), (0, PAD)), (K, X, (0, PAD - 1)), (K, X, (PAD, 2 * PAD))):
        with pytest.raises(ValueError, match=r"K must be|the rows must"):
            symmetric_products(rows, vectors, *ends, vectors.copy())
