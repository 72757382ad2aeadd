"""Regions of rows: against all distances, whoever merges the blocks."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy import sparse

from localsvm.data.blocks.dataset import as_examples
from localsvm.engines.base import Block, InOrder
from localsvm.runs.preparation import regions
from localsvm.runs.preparation.regions import Regions


def doubled(X: Any) -> Any:
    return X * np.float32(2)


@pytest.mark.parametrize("thin", [False, True])
@pytest.mark.parametrize("before", [200, 150])
def test_regions_have_the_rows_nearest_to_their_centres(
    thin: bool, before: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(regions, "REGION_ROWS", 9)
    rng = np.random.default_rng(0)
    X = np.round(rng.normal(size=(200, 3)), 1).astype(np.float32)  # with equal distances
    X[100:120] = X[:20]
    y, group = rng.integers(0, 2, 200).astype(np.float64), rng.integers(0, 50, 200)
    centres = 2 * X[[3, 77, 140]]
    statistic = Regions(centres, doubled, before)
    found = []
    for size in (7, 60):
        tree = InOrder([statistic])
        for number, first in enumerate(range(0, 200, size)):
            part = slice(first, first + size)
            rows = as_examples(sparse.csr_array(X[part])) if thin else X[part]
            tree.add(Block(first, rows, y[part], group=group[part]), number)
        found.append(tree.result()[0].rows)
    away = np.square(2.0 * X[:before].astype(np.float64)[:, None] - centres).sum(axis=2)
    wanted = [np.lexsort((np.arange(before), np.round(distance, 4)))[:9] for distance in away.T]
    for rows in found:
        assert_array_equal(rows.numbers, np.unique(wanted))
        assert_array_equal(rows.y, y[rows.numbers])
        assert_array_equal(rows.group, group[rows.numbers])
        assert_array_equal(rows.X.toarray() if thin else rows.X, X[rows.numbers])
