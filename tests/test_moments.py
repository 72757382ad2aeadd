"""Moments: those of numpy, however rows are cut into blocks, and in blocks that depend on the rows alone."""

from __future__ import annotations

from functools import reduce
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from localsvm.data.blocks.dataset import Examples, as_examples
from localsvm.features import moments
from localsvm.features.moments import Moments, merge, moments_of
from localsvm.threads import Threads

FIELDS = ("low", "high", "mean", "squares")


def rows(n: int = 200, d: int = 6, seed: int = 0) -> np.ndarray:
    """Columns of different scale, and many zeros; column 0 is constant, column 1 without a value."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) * 10.0 ** rng.integers(-3, 4, d) + rng.standard_normal(d)
    X *= rng.random((n, d)) < 0.5
    X[:, :2] = 3, 0
    return X.astype(np.float32)


def kinds(X: np.ndarray) -> list[Examples]:
    return [X, as_examples(sparse.csr_array(X))]


@settings(deadline=None, max_examples=40)
@given(cuts=st.lists(st.integers(1, 199), max_size=6), seed=st.integers(0, 5))
def test_merged_blocks_have_the_moments_of_all_rows(cuts: list[int], seed: int) -> None:
    X = rows(seed=seed)
    wide = X.astype(np.float64)
    edges = [0, *sorted(set(cuts)), len(X)]
    for kind in kinds(X):
        blocks = [Moments.of(as_examples(kind[a:b])) for a, b in pairwise(edges)]
        merged = reduce(merge, blocks)
        assert merged.rows == len(X)
        assert_array_equal(merged.low, wide.min(axis=0))
        assert_array_equal(merged.high, wide.max(axis=0))
        assert_allclose(merged.mean, wide.mean(axis=0), rtol=1e-12, atol=1e-12)
        assert_allclose(merged.deviation, wide.std(axis=0), rtol=1e-10, atol=1e-9)


def test_a_large_mean_costs_no_digits() -> None:
    X = (1e4 + np.random.default_rng(0).standard_normal((100_000, 1)) / 50).astype(np.float32)
    blocks = [Moments.of(X[i : i + 999]) for i in range(0, len(X), 999)]
    assert_allclose(reduce(merge, blocks).deviation, X.astype(np.float64).std(axis=0), rtol=1e-9)


@pytest.mark.parametrize("thin", [False, True])
def test_threads_do_not_change_the_bits(thin: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(moments, "BLOCK", 100)
    monkeypatch.setattr(moments, "PASS", 37)
    X = kinds(rows())[thin]
    alone = moments_of(X)
    with Threads(3) as threads:
        other = moments_of(X, threads)
    assert len(list(moments.row_blocks(X, 100))) > 4
    for name in FIELDS:
        assert_array_equal(getattr(other, name), getattr(alone, name))


def test_merging_changes_neither() -> None:
    a, b = Moments.of(rows(seed=1)), Moments.of(rows(seed=2))
    before = [getattr(each, name).copy() for each in (a, b) for name in FIELDS]
    merge(a, b)
    for old, new in zip(before, [getattr(each, name) for each in (a, b) for name in FIELDS], strict=True):
        assert_array_equal(old, new)
