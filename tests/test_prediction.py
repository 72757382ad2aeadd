"""Blocks of rows on their way through a prediction."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from scipy import sparse

from localsvm.data.dataset import Dataset, as_examples
from localsvm.runs import prediction


@pytest.mark.parametrize("thin", [False, True])
@pytest.mark.parametrize(("limit", "value"), [("ROW_BLOCK", 25), ("BLOCK_BYTES", 25 * 3 * 4)])
def test_small_blocks_are_decided_together(limit: str, value: int, thin: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prediction, limit, value)
    X = np.arange(1.0, 301.0, dtype=np.float32).reshape(100, 3)
    rows = as_examples(sparse.csr_array(X)) if thin else X
    edges = [0, 10, 20, 31, 31, 40, 90, 97, 100]
    parts = [Dataset(rows[a:b], np.arange(a, b, dtype=np.float64)) for a, b in pairwise(edges)]
    found = list(prediction.merged(parts))
    assert 3 <= len(found) <= 7
    assert all(len(block.y) == block.X.shape[0] for block in found)
    together = [block.X if isinstance(block.X, np.ndarray) else block.X.toarray() for block in found]
    np.testing.assert_array_equal(np.concatenate(together), X)
    np.testing.assert_array_equal(np.concatenate([block.y for block in found]), np.arange(100.0))
