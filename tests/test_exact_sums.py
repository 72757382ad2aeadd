"""Exact sums: the moments that rational numbers give, whatever blocks the rows come in."""

from __future__ import annotations

from fractions import Fraction
from math import sqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from localsvm.data import exact_sums
from localsvm.data.dataset import Examples, as_examples
from localsvm.data.exact_sums import ExactSums
from localsvm.features.scaling import Scaling, scaling_of

VALUES = st.one_of(
    st.floats(width=32, allow_nan=False, allow_infinity=False),
    st.sampled_from([0.0, 1e-45, -1e-45, 3.4028235e38, -3.4028235e38, 1.0, 1e-38]),
)


def summed(X: Examples, edges: list[int]) -> ExactSums:
    """Of the blocks between these edges, the later half merged into the earlier one."""
    parts = [ExactSums(X.shape[1]), ExactSums(X.shape[1])]
    for i, (first, last) in enumerate(zip([0, *edges], [*edges, X.shape[0]], strict=True)):
        parts[2 * i > len(edges)].add(as_examples(X[first:last]) if sparse.issparse(X) else X[first:last])
    parts[0].merge(parts[1])
    return parts[0]


def exact(column: np.ndarray) -> tuple[float, float]:
    values = [Fraction(float(v)) for v in column]
    mean = sum(values) / len(values)
    return float(mean), sqrt(sum((v - mean) ** 2 for v in values) / len(values))


@given(rows=st.lists(st.tuples(VALUES, VALUES), min_size=1, max_size=20), data=st.data())
@settings(deadline=None, max_examples=50)
def test_moments_are_those_of_rational_numbers(rows: list[tuple[float, float]], data: st.DataObject) -> None:
    X = np.asarray(rows, np.float32)
    edges = sorted(data.draw(st.lists(st.integers(0, len(rows)), max_size=3)))
    for examples in (X, as_examples(sparse.csr_array(X))):
        found = summed(examples, edges)
        np.testing.assert_array_equal(np.transpose(found.moments()), [exact(column) for column in X.T])
        np.testing.assert_array_equal(np.stack(found.extremes()), [X.min(axis=0), X.max(axis=0)])


@pytest.mark.parametrize("thin", [False, True])
def test_many_rows_and_columns(thin: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    X = (rng.normal(size=(5000, 40)) * 10.0 ** rng.integers(-6, 6, 40)).astype(np.float32)
    X[rng.random(X.shape) < 0.6] = 0.0
    examples = as_examples(sparse.csr_array(X)) if thin else X
    whole = summed(examples, [])
    np.testing.assert_allclose(whole.moments(), [X.mean(0, np.float64), X.std(0, np.float64)], rtol=1e-12)
    monkeypatch.setattr(exact_sums, "BLOCK", 999)
    monkeypatch.setattr(exact_sums, "TABLE", 0)  # sorted bins, as of very many columns
    for edges in ([], [1, 2500], [4999]):
        np.testing.assert_array_equal(summed(examples, edges).moments(), whole.moments())


@pytest.mark.parametrize("mode", ["std", "zscore", "minmax", "none", "row"])
def test_scaling_by_exact_sums_is_that_of_all_rows(mode: str) -> None:
    rng = np.random.default_rng(1)
    X = (rng.normal(size=(300, 5)) * [1.0, 1e3, 1e-3, 0.0, 7.0] + 3.0).astype(np.float32)
    sums = summed(X, [10, 200])
    one, other = scaling_of(X, mode), Scaling.of_sums(sums, mode)
    assert one.mode == other.mode and one.state().keys() == other.state().keys()
    for name, array in one.state().items():
        np.testing.assert_allclose(array, other.state()[name], rtol=2e-7)
