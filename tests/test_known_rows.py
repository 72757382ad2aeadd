"""Test rows that have the values of a training row."""

from __future__ import annotations

import numpy as np
import pytest
from count_known_rows import remembered
from scipy import sparse

from localsvm.data.blocks.dataset import Dataset, as_examples


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
def test_known_rows_are_counted_and_their_most_frequent_labels_held_against_theirs(kind: type) -> None:
    rows = np.array([[0.0, 1.0], [0.0, 1.0], [0.0, 1.0], [2.0, 0.0], [2.0, 3.0]])
    train = Dataset(as_examples(kind(rows)), np.array([1.0, 1.0, -1.0, -1.0, 1.0]))
    test = Dataset(as_examples(kind(np.vstack([rows[[0, 0, 3]], [[1.0, 0.0]]]))), np.array([1.0, -1.0, -1.0, 1.0]))
    assert remembered(train, test) == (3, 1, 4)
