"""Blocks of rows on their way through a prediction."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from localsvm.data.blocks.dataset import Dataset, as_examples
from localsvm.data.synthetic import banana
from localsvm.methods.base import Method
from localsvm.methods.kernel.svm import KernelSVM
from localsvm.methods.locally_linear.l3 import L3SVM
from localsvm.runs import predict as prediction
from localsvm.runs.config import TrainingConfig
from localsvm.runs.train import train


@pytest.mark.parametrize("thin", [False, True])
@pytest.mark.parametrize("limit", [{"most_rows": 25}, {"most_bytes": 25 * 3 * 4}])
def test_small_blocks_are_decided_together(limit: dict[str, int], thin: bool) -> None:
    X = np.arange(1.0, 301.0, dtype=np.float32).reshape(100, 3)
    rows = as_examples(sparse.csr_array(X)) if thin else X
    edges = [0, 10, 20, 31, 31, 40, 90, 97, 100]
    parts = [Dataset(rows[a:b], np.arange(a, b, dtype=np.float64)) for a, b in pairwise(edges)]
    blocks = list(prediction.merged(parts, **limit))
    assert 3 <= len(blocks) <= 7
    assert all(len(block.y) == block.X.shape[0] for block in blocks)
    together = [block.X if isinstance(block.X, np.ndarray) else block.X.toarray() for block in blocks]
    np.testing.assert_array_equal(np.concatenate(together), X)
    np.testing.assert_array_equal(np.concatenate([block.y for block in blocks]), np.arange(100.0))


@pytest.mark.parametrize("method", [KernelSVM(gamma=(1.0,), cost=(1.0,)), L3SVM(clusters=(3.0,), cost=(0.1,))])
@pytest.mark.parametrize("thin", [False, True])
def test_one_large_cell_is_decided_in_strips_by_all_threads(
    method: Method, thin: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    X, y = banana(500, np.random.default_rng(0))
    rows = as_examples(sparse.csr_array(X)) if thin else X
    train(Dataset(as_examples(rows), y), TrainingConfig(method, "none", metric="none"), tmp_path / "m.h5")
    seen: list[int] = []
    predictor = prediction.LocalModel._predictor

    class Noted:
        """A decision function that notes how many rows it gets."""

        def __init__(self, *arguments: Any) -> None:
            self._own = predictor(*arguments)

        def decision_function(self, X: Any) -> np.ndarray:
            seen.append(X.shape[0])
            return self._own.decision_function(X)

    monkeypatch.setattr(prediction.LocalModel, "_predictor", lambda *arguments: Noted(*arguments))
    decisions = {}
    for strip, jobs in ((1 << 12, 1), (64, 1), (64, 3), (7, 2)):
        monkeypatch.setattr(prediction, "STRIP", strip)
        with prediction.LocalModel(tmp_path / "m.h5", jobs) as model:
            decisions[strip, jobs] = model.decision_function(rows)
        assert sum(seen) == 500 and max(seen) <= strip
        seen.clear()
    for values in decisions.values():
        np.testing.assert_array_equal(values, decisions[1 << 12, 1])
