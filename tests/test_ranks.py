"""Ranks beside the columns: the normal scores of scikit-learn, the same for any monotone change of a column."""

from __future__ import annotations

from dataclasses import replace

import hypothesis.extra.numpy as hnp
import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from scipy.special import ndtri
from sklearn.preprocessing import QuantileTransformer

from localsvm.data.blocks.dataset import as_examples
from localsvm.errors import OptionError
from localsvm.features import ranks as module
from localsvm.features.ranks import FEW, KNOTS, MOST, Ranks
from localsvm.naming import on_command_line
from localsvm.store.pieces import Unsound
from localsvm.threads import Threads


def columns(n: int = 400, seed: int = 0) -> np.ndarray:
    """Rows (n, 5): normal, of heavy tails, rounded, mostly 0, and of 3 values, which has no ranks."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 5))
    X[:, 1] = np.exp(4 * X[:, 1])
    X[:, 2] = np.round(3 * X[:, 2])
    X[:, 3] *= rng.random(n) < 0.3
    X[:, 4] = np.sign(np.round(X[:, 4]))
    return X.astype(np.float32)


def fitted(X: np.ndarray) -> Ranks:
    ranks = Ranks.fit(X)
    assert ranks is not None
    return ranks


def scores(ranks: Ranks, X: np.ndarray) -> np.ndarray:
    """The columns behind those of X."""
    out = ranks.apply(X)
    assert isinstance(out, np.ndarray) and out.dtype == np.float32
    assert_array_equal(out[:, : X.shape[1]], X)
    return out[:, X.shape[1] :]


@pytest.mark.parametrize("n", [60, 400, 3000])
def test_scores_are_those_of_scikit_learn(n: int) -> None:
    """All training values are compared where each is a knot; else the quantiles, between which scores are linear."""
    X = columns(n)
    ranks = fitted(X)
    assert ranks.ranked.tolist() == [0, 1, 2, 3]
    transformer = QuantileTransformer(
        output_distribution="normal", n_quantiles=min(KNOTS, n), subsample=None, random_state=0
    ).fit(X[:, :4].astype(np.float64))
    if n <= KNOTS:  # every row is a quantile; rounded percentiles are beside it, and equal values not equal
        transformer.quantiles_ = np.sort(X[:, :4].astype(np.float64), axis=0)
    at = X if n <= KNOTS else np.quantile(X, np.linspace(0, 1, KNOTS), axis=0).astype(np.float32)
    expected = np.clip(transformer.transform(at[:, :4].astype(np.float64)), -MOST, MOST)
    inside = (at[:, :4] > X[:, :4].min(axis=0)) & (at[:, :4] < X[:, :4].max(axis=0))  # it has others for equal ends
    # a knot is rounded to float32, and where the density is low a value beside it has another score
    assert_allclose(scores(ranks, at)[inside], expected[inside], atol=1e-5 if n <= KNOTS else 1e-2)


def test_the_score_of_a_value_is_in_the_middle_of_its_rows() -> None:
    rows = [5, *[1] * 9, 7]
    ranks = fitted(np.repeat(np.arange(11.0), rows).astype(np.float32)[:, None])
    last = np.cumsum(rows) - 1
    shares = (last - np.asarray(rows) + 1 + last) / 2 / last[-1]
    assert_array_equal(ranks.knots, np.arange(11))
    assert_allclose(ranks.scores, ndtri(shares), rtol=1e-5)


@pytest.mark.parametrize("values", [1, 2, FEW, FEW + 1])
def test_columns_of_few_values_have_none(values: int) -> None:
    X = np.c_[np.arange(200) % values, np.arange(200)].astype(np.float32)
    assert fitted(X).ranked.tolist() == ([1] if values <= FEW else [0, 1])
    assert (Ranks.fit(X[:, :1]) is None) == (values <= FEW)


CHANGES = {
    "exponential": np.exp,
    "cube": lambda x: x**3,
    "steps": lambda x: x + 50.0 * np.floor(x),
    "saturated": lambda x: np.arctan(x / 4),
}


@settings(max_examples=40, deadline=None)
@given(
    column=hnp.arrays(np.int16, st.integers(12, 80), elements=st.integers(-300, 300)),
    change=st.sampled_from(sorted(CHANGES)),
)
def test_monotone_changes_keep_the_scores(column: np.ndarray, change: str) -> None:
    X = (column[:, None] / 64).astype(np.float32)
    changed = CHANGES[change](X.astype(np.float64)).astype(np.float32)
    before, after = Ranks.fit(X), Ranks.fit(changed)
    assert (before is None) == (after is None) == (len(np.unique(X)) <= FEW)
    if before is not None and after is not None:
        assert_array_equal(before.scores, after.scores)
        assert_allclose(scores(before, X), scores(after, changed), atol=1e-6)
        falling = fitted(-X)
        assert_allclose(scores(falling, -X), -scores(before, X), atol=1e-5)


def test_a_row_has_the_same_scores_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    X = columns()
    ranks = fitted(X[:300])
    expected = ranks.apply(X)
    assert_array_equal(np.concatenate([np.asarray(ranks.apply(row[None])) for row in X]), expected)
    monkeypatch.setattr(module, "BLOCK", 35)
    assert_array_equal(ranks.apply(X), expected)


def test_threads_are_of_no_influence() -> None:
    X = columns()
    with Threads(2) as threads:
        other = Ranks.fit(X, threads)
    assert other is not None
    for name, array in fitted(X).state().items():
        assert_array_equal(other.state()[name], array)


def test_scores_are_linear_between_knots_and_constant_beyond() -> None:
    X = np.arange(10.0, dtype=np.float32)[:, None] ** 2
    ranks = fitted(X)
    low, high = scores(ranks, np.asarray([[-1e30], [-1.0], [0.0]], np.float32)), scores(ranks, X[-1:] + 1e6)
    assert_array_equal(low, -MOST)
    assert_array_equal(high, MOST)
    inner = scores(ranks, X)[:, 0]
    assert (np.diff(inner) > 0).all()
    between = scores(ranks, (X[:-1] + X[1:]) / 2)[:, 0]
    assert_allclose(between, (inner[:-1] + inner[1:]) / 2, atol=1e-6)


def test_knots_are_at_most_a_thousand() -> None:
    ranks = fitted(columns(5000))
    assert np.diff(ranks.knot_ptr).max() == KNOTS
    assert np.abs(ranks.scores).max() == MOST


def test_sparse_rows_are_refused_with_the_remedy() -> None:
    X = columns()
    with pytest.raises(OptionError) as refused:
        fitted(X).apply(as_examples(sparse.csr_array(X)))
    assert on_command_line(str(refused.value)) == (
        "--views ranks needs dense rows, and these are sparse; give --views none, or --scale zscore, which makes them "
        "dense"
    )


def test_moved_ranks_are_those_of_moved_rows() -> None:
    X = columns()[:, :3]
    ranks, by = fitted(X), np.asarray([0.0, 2.0, -5.0])
    moved = ranks.moved(by)
    assert_allclose(scores(moved, (X + by).astype(np.float32)), scores(ranks, X), atol=1e-3)
    assert ranks.moved(np.zeros(3)) is ranks


def test_ranks_that_were_moved_far_are_sound() -> None:
    """Knots that float32 does not tell apart so far from 0 are no damage: a file keeps them."""
    moved = fitted(columns()).moved(np.full(5, 1e9))
    again = Ranks.from_state(moved.state(), 5)
    there = np.full((1, 5), 1e9, np.float32)
    for X in (there, there - np.float32(1e8), there + np.float32(1e8)):
        assert_array_equal(again.apply(X), moved.apply(X))
    assert_array_equal(scores(again, there + np.float32(1e8))[0, 1:], MOST)


def test_a_state_gives_them_back() -> None:
    X = columns()
    ranks = fitted(X)
    assert_array_equal(Ranks.from_state(ranks.state(), 5).apply(X), ranks.apply(X))
    assert ranks.columns(5) == 9 and ranks.ranked.tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("columns", lambda a: a[::-1].copy()),
        ("columns", lambda a: a + 2),
        ("columns", lambda a: a - 1),
        ("columns", lambda a: a[:-1]),
        ("columns", lambda a: np.zeros_like(a)),
        ("columns", lambda a: a.astype(np.int32)),
        ("knot_ptr", lambda a: a[:-1]),
        ("knot_ptr", lambda a: a + 1),
        ("knot_ptr", lambda a: np.r_[a[:2], a[1:-2], a[-1:]]),
        ("knots", lambda a: a[::-1].copy()),
        ("knots", lambda a: a[:-1]),
        ("knots", lambda a: np.where(np.arange(len(a)) == 3, np.nan, a).astype(np.float32)),
        ("knots", lambda a: a.astype(np.float64)),
        ("scores", lambda a: -a),
        ("scores", lambda a: 2 * a),
        ("scores", lambda a: a[:, None]),
        ("scores", lambda a: np.where(np.arange(len(a)) == 3, np.inf, a).astype(np.float32)),
    ],
)
@pytest.mark.fast(17)
def test_a_damaged_state_is_refused(name: str, change: object) -> None:
    state = fitted(columns()).state()
    with pytest.raises(Unsound, match="/ranks"):
        Ranks.from_state(state | {name: change(state[name])}, 5)  # type: ignore[operator]
    for missing in state:
        with pytest.raises(Unsound, match=f"/ranks/{missing}"):
            Ranks.from_state({key: array for key, array in state.items() if key != missing}, 5)


def test_columns_are_those_of_the_rows() -> None:
    ranks = fitted(columns())
    with pytest.raises(Unsound, match="/ranks/columns"):
        Ranks.from_state(ranks.state(), 3)
    one = replace(ranks, ranked=ranks.ranked[:0], knot_ptr=ranks.knot_ptr[:1], knots=ranks.knots[:0])
    with pytest.raises(Unsound, match="/ranks"):
        Ranks.from_state(one.state(), 5)
