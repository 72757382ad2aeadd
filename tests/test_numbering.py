"""What the numbers of rows decide: the same for whoever has which rows."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from localsvm.data.dataset import as_examples
from localsvm.data.numbering import Draw, digest


@pytest.mark.parametrize(
    ("rows", "count"), [(1, 0), (1, 1), (2, 1), (7, 5), (100, 80), (101, 80), (1000, 7), (999, 998), (4096, 2048)]
)
def test_a_draw_has_its_count_whoever_has_which_rows(rows: int, count: int) -> None:
    draw = Draw(rows, count, 5)
    found = draw(np.arange(rows))
    assert int(found.sum()) == count
    parts = [draw(np.arange(first, min(first + 13, rows))) for first in range(0, rows, 13)]
    np.testing.assert_array_equal(np.concatenate(parts), found)


def test_every_row_is_drawn_as_often_as_any_other_over_the_keys() -> None:
    found = np.mean([Draw(50, 10, key)(np.arange(50)) for key in range(4000)], axis=0)
    np.testing.assert_allclose(found, 0.2, atol=6 * np.sqrt(0.2 * 0.8 / 4000))
    left_out = np.mean([Draw(50, 40, key)(np.arange(50)) for key in range(4000)], axis=0)
    np.testing.assert_allclose(left_out, 0.8, atol=6 * np.sqrt(0.2 * 0.8 / 4000))


def test_large_numbers_do_not_overflow() -> None:
    draw = Draw(1 << 40, 100_000, (1 << 63) - 1)
    stretch = (1 << 40) // 100_000
    numbers = np.arange((1 << 40) - 3 * stretch, 1 << 40)
    assert int(draw(numbers).sum()) in (2, 3, 4)


def test_a_digest_is_that_of_any_blocks_dense_or_sparse_narrowed_or_whole() -> None:
    rng = np.random.default_rng(0)
    X = np.where(rng.random((40, 9)) < 0.5, rng.normal(size=(40, 9)), 0).astype(np.float32)
    X[:, [2, 5]], X[0, 0], X[1, 1] = 0, 0.0, -0.0
    y = rng.integers(0, 3, 40).astype(np.float64)
    whole, kept = digest(X, y), np.flatnonzero(X.any(axis=0))
    thin = as_examples(sparse.csr_array(X))
    assert digest(thin, y) == whole
    assert digest(X[:, kept], y, columns=kept) == whole
    assert digest(as_examples(sparse.csr_array(X[:, kept])), y, columns=kept) == whole
    assert (digest(X[:17], y[:17]) + digest(X[17:], y[17:], 17)) % (1 << 64) == whole


def test_a_digest_tells_rows_labels_and_their_order_apart() -> None:
    X, y = np.arange(12, dtype=np.float32).reshape(4, 3), np.array([1.0, 1.0, 2.0, 2.0])
    seen = {digest(X, y)}
    for other, labels in ((X[[1, 0, 2, 3]], y), (X, y[::-1]), (X[:, ::-1].copy(), y), (X[:3], y[:3])):
        seen.add(digest(np.ascontiguousarray(other), labels))
    assert len(seen) == 5
