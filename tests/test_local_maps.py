"""Locally linear functions with a map for each feature, in C, against the formula, at every SIMD level."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from test_kernels import LEVEL_NUMBERS, rows
from test_mllkm import map_of

from localsvm.kernels._kernels import aligned, padded
from localsvm.kernels._local_maps import MAPS, LocalMaps
from localsvm.representations import local_kernels


def values_of(maps: LocalMaps, X: np.ndarray) -> np.ndarray:
    out = aligned((len(X), padded(maps.size)), np.float32)
    out[:] = np.nan
    maps.values(X, out)
    return np.asarray(out[:, : maps.size])


@pytest.mark.parametrize("level", LEVEL_NUMBERS)
@pytest.mark.parametrize("kind", MAPS)
@settings(deadline=None, max_examples=20)
@given(n=st.integers(1, 20), m=st.integers(1, 70), d=st.integers(0, 30))
def test_values_are_those_of_the_formula(level: int, kind: str, n: int, m: int, d: int) -> None:
    X, A, W = rows(n, d, 1), rows(m, d, 2), rows(m, d, 3)
    gammas = np.geomspace(0.01, 30.0, m).astype(np.float32)
    values = values_of(LocalMaps(kind, gammas, A, W, level), X)
    moved = X[:, None].astype(np.float64) - A
    phi = map_of(kind, gammas[:, None].astype(np.float64), np.abs(moved)) * moved
    assert_allclose(values[:, :m], (phi * W).sum(axis=2), atol=3e-6 * max(1, d))
    assert not values[:, m:].any()


@pytest.mark.parametrize("level", LEVEL_NUMBERS)
@pytest.mark.parametrize("kind", MAPS)
def test_a_value_does_not_depend_on_the_block(level: int, kind: str) -> None:
    X, gammas = rows(61, 7), np.geomspace(0.1, 3.0, 40).astype(np.float32)
    maps = LocalMaps(kind, gammas, rows(40, 7, 1), rows(40, 7, 2), level)
    whole = values_of(maps, X)
    for step in (1, 3, 8):
        parts = [values_of(maps, X[i : i + step]) for i in range(0, len(X), step)]
        assert_array_equal(np.concatenate(parts), whole)


@pytest.mark.parametrize("level", LEVEL_NUMBERS)
@pytest.mark.parametrize("kind", ["exponential", "gaussian"])
def test_the_decay_is_accurate_over_its_range(level: int, kind: str) -> None:
    r = np.geomspace(1e-3, 20.0, 5000).astype(np.float32)
    one = np.ones((1, 1), np.float32)
    values = values_of(LocalMaps(kind, np.ones(1, np.float32), 0 * one, one, level), r[:, None])[:, 0]
    exponent = r.astype(np.float64) ** (1 if kind == "exponential" else 2)
    exact = r * np.exp(-exponent)
    seen = exponent < 87.0
    assert_allclose(values[seen], exact[seen], rtol=1e-5)  # the exponent itself is in float32
    near = exponent < 1.0
    assert_allclose(values[near], exact[near], rtol=5e-7)
    assert not values[exponent > 88.0].any()


def test_the_maps_are_those_of_the_method() -> None:
    assert set(MAPS) == set(local_kernels.MAPS)


def test_shapes_that_do_not_fit_are_refused() -> None:
    gammas, A = np.ones(3, np.float32), rows(3, 2)
    with pytest.raises(ValueError, match="as many"):
        LocalMaps("square", gammas, A, rows(3, 4))
    maps = LocalMaps("square", gammas, A, A)
    with pytest.raises(ValueError, match="fit"):
        maps.values(rows(5, 3), aligned((5, 32), np.float32))
    with pytest.raises(ValueError, match="fit"):
        maps.values(rows(5, 2), aligned((4, 32), np.float32))
