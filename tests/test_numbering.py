"""Digests of rows by their numbers: equal however rows are cut into blocks and stored."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from localsvm.data.blocks.dataset import as_examples
from localsvm.data.blocks.numbering import contents, digest


def digest_of(X: Any, y: Any, first: int = 0, columns: Any = None) -> int:
    return digest(contents(X, columns), y, first)


def test_a_digest_is_that_of_any_blocks_dense_or_sparse_narrowed_or_whole() -> None:
    rng = np.random.default_rng(0)
    X = np.where(rng.random((40, 9)) < 0.5, rng.normal(size=(40, 9)), 0).astype(np.float32)
    X[:, [2, 5]], X[0, 0], X[1, 1] = 0, 0.0, -0.0
    y = rng.integers(0, 3, 40).astype(np.float64)
    whole, kept = digest_of(X, y), np.flatnonzero(X.any(axis=0))
    thin = as_examples(sparse.csr_array(X))
    assert digest_of(thin, y) == whole
    assert digest_of(X[:, kept], y, columns=kept) == whole
    assert digest_of(as_examples(sparse.csr_array(X[:, kept])), y, columns=kept) == whole
    assert (digest_of(X[:17], y[:17]) + digest_of(X[17:], y[17:], 17)) % (1 << 64) == whole


def test_a_digest_tells_rows_labels_and_their_order_apart() -> None:
    X, y = np.arange(12, dtype=np.float32).reshape(4, 3), np.array([1.0, 1.0, 2.0, 2.0])
    seen = {digest_of(X, y)}
    for other, labels in ((X[[1, 0, 2, 3]], y), (X, y[::-1]), (X[:, ::-1].copy(), y), (X[:3], y[:3])):
        seen.add(digest_of(np.ascontiguousarray(other), labels))
    assert len(seen) == 5
