"""Scaling: against scikit-learn and numpy, sparse as dense, and row by row the same however rows are cut."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.preprocessing import MinMaxScaler, StandardScaler, normalize

from localsvm.data.blocks.dataset import Examples, as_examples
from localsvm.errors import DataError, ModelError, OptionError
from localsvm.features import scaling
from localsvm.features.scaling import MODES, Scaling, scaling_of


def examples(rows: int = 300, columns: int = 12) -> np.ndarray:
    """Columns of different scale and sparsity; 0 is constant, 1 all zero; two rows are zero elsewhere."""
    rng = np.random.default_rng(8)
    X = rng.standard_normal((rows, columns)) * 10.0 ** rng.integers(-3, 4, columns)
    X += rng.standard_normal(columns)
    X *= rng.random((rows, columns)) < 0.5
    X[:, :2] = 3, 0
    X[5:7] = 0
    X[5:7, 0] = 3
    return X.astype(np.float32)


def dense_of(X: Examples) -> np.ndarray:
    return X if isinstance(X, np.ndarray) else X.toarray()


def oracle(X: np.ndarray, mode: str) -> np.ndarray:
    X = X.astype(np.float64)
    if mode == "row":
        return normalize(X)
    if mode == "minmax":
        out = MinMaxScaler((-1, 1)).fit_transform(X)
        out[:, X.min(axis=0) == X.max(axis=0)] = 0
        return out
    if mode == "none":
        return X
    out = StandardScaler(with_mean=mode == "zscore").fit_transform(X)
    out[:, X.min(axis=0) == X.max(axis=0)] = 0
    return out


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("sparse", [True, False])
def test_against_scikit_learn(mode: str, sparse: bool) -> None:
    X = examples()
    given_X = as_examples(sp.csr_array(X)) if sparse else X
    out = scaling_of(given_X, mode).apply(given_X)
    assert out.dtype == np.float32
    assert isinstance(out, np.ndarray) is (not sparse or mode in ("zscore", "minmax"))
    np.testing.assert_allclose(dense_of(out), oracle(X, mode), rtol=3e-6, atol=3e-6)


@pytest.mark.parametrize("mode", MODES)
def test_dense_and_sparse_fits_agree(mode: str) -> None:
    X = examples()
    dense, sparse = scaling_of(X, mode), scaling_of(as_examples(sp.csr_array(X)), mode)
    assert set(dense.state()) == set(sparse.state())
    for name, array in dense.state().items():
        np.testing.assert_allclose(sparse.state()[name], array, rtol=1e-6)


@pytest.mark.parametrize("mode", ["std", "zscore", "minmax"])
@pytest.mark.parametrize("sparse", [True, False])
def test_a_constant_column_is_zero_whatever_comes(mode: str, sparse: bool) -> None:
    rows = np.full((7, 2), 0.1, np.float32)  # whose mean is not .1 exactly
    rows[:, 1] = range(7)
    rule = scaling_of(as_examples(sp.csr_array(rows)) if sparse else rows, mode)
    assert rule.factor is not None
    assert rule.factor[0] == 0
    assert np.all(rule.apply(np.array([[0.1, 1], [55, 2]], np.float32))[:, 0] == 0)


def test_the_standard_deviation_of_large_values() -> None:
    X = (1e4 + np.random.default_rng(0).standard_normal((100_000, 1)) / 50).astype(np.float32)
    factor = scaling_of(X, "std").factor
    assert factor is not None
    assert factor[0] == pytest.approx(1 / X.astype(np.float64).std(), rel=1e-6)


@pytest.mark.parametrize("mode", ["std", "zscore", "minmax"])
def test_extreme_columns_stay_finite(mode: str) -> None:
    largest, least = np.finfo(np.float32).max, np.float32(1e-45)
    X = np.array([[largest, least], [-largest, 0]], np.float32)
    assert np.isfinite(scaling_of(X, mode).apply(X)).all()


@settings(deadline=None, max_examples=40)
@given(mode=st.sampled_from(MODES), block=st.integers(1, 400), cut=st.integers(0, 60), columns=st.integers(1, 40))
def test_a_row_does_not_depend_on_the_rows_around_it(mode: str, block: int, cut: int, columns: int) -> None:
    X = examples(60, columns + 2)
    for kind in (X, as_examples(sp.csr_array(X))):
        rule = scaling_of(kind, mode)
        expected = dense_of(rule.apply(kind)).tobytes()
        parts = [as_examples(part) for part in (kind[:cut], kind[cut:]) if part.shape[0]]
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(scaling, "BLOCK", block)
            assert dense_of(rule.apply(kind)).tobytes() == expected
            assert np.concatenate([dense_of(rule.apply(part)) for part in parts]).tobytes() == expected


@pytest.mark.parametrize("mode", MODES)
def test_in_place(mode: str) -> None:
    X = examples()
    rule, before = scaling_of(X, mode), X.copy()
    expected = rule.apply(X)
    assert np.array_equal(X, before)
    assert rule.apply(X, in_place=True) is X
    assert np.array_equal(X, expected)


def test_sparse_examples_are_not_changed() -> None:
    X = as_examples(sp.csr_array(examples()))
    before = X.data.copy()
    for mode in MODES:
        out = scaling_of(X, mode).apply(X, in_place=True)
        assert np.array_equal(X.data, before)
        assert isinstance(out, np.ndarray) or out.indptr.dtype == np.int64


@pytest.mark.parametrize("mode", MODES)
def test_state(mode: str) -> None:
    X = examples()
    rule = scaling_of(X, mode)
    again = Scaling.from_state(mode, rule.state(), X.shape[1])
    assert again.apply(X).tobytes() == rule.apply(X).tobytes()
    assert all(array.dtype == np.float32 for array in rule.state().values())


def test_wrong_states() -> None:
    rule = scaling_of(examples(), "std")
    for mode, state in (("zscore", rule.state()), ("none", rule.state()), ("std", {}), ("log", {})):
        with pytest.raises(ModelError, match=r"/scaling|the scaling 'log'"):
            Scaling.from_state(mode, state, examples().shape[1])


def test_mistakes() -> None:
    with pytest.raises(OptionError, match="unknown scaling 'log'; choose one of std, none, zscore, minmax, row"):
        scaling_of(examples(), "log")
    with pytest.raises(DataError, match="the examples have 3 features, the scaling 12"):
        scaling_of(examples(), "std").apply(np.zeros((2, 3), np.float32))


@pytest.mark.parametrize("mode", ["zscore", "minmax"])
def test_no_dense_matrix_that_is_too_large(mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    wide = as_examples(sp.csr_array(([1.0], ([0], [2**31 - 2])), shape=(2, 2**31 - 1)))
    with pytest.raises(DataError, match=rf"{mode} scaling would turn these sparse examples into 16\.0 GiB"):
        scaling_of(wide, mode)
    X = as_examples(sp.csr_array(examples()))
    rule = scaling_of(X, mode)
    monkeypatch.setattr(scaling, "DENSIFY_BYTES", 4 * X.shape[0] * X.shape[1])
    assert rule.apply(X).shape == X.shape
    monkeypatch.setattr(scaling, "DENSIFY_BYTES", 4 * X.shape[0] * X.shape[1] - 1)
    with pytest.raises(DataError, match="std, row or none"):
        rule.apply(X)
