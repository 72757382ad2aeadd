"""The fingerprint of a data set: the same for the same data however it is held, another for any other."""

from __future__ import annotations

import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from localsvm.store.fingerprint import fingerprint

X = np.random.default_rng(0).random((300, 5), np.float32)
Y = np.repeat([-1.0, 1.0, 2.0], 100)


def test_equal_data_however_it_is_held(tmp_path: Path) -> None:
    X.tofile(tmp_path / "x")
    mapped = np.memmap(tmp_path / "x", np.float32, "r", shape=X.shape)
    expected = fingerprint(X, Y)
    assert len(expected) == 64
    for held in (mapped, np.asfortranarray(X), np.repeat(X, 2, axis=0)[::2]):
        assert fingerprint(held, Y) == expected
    assert fingerprint(sp.csr_array(X), Y) == fingerprint(sp.csr_array(X.copy()), Y)


def changed(X: np.ndarray, row: int, column: int) -> np.ndarray:
    other = X.copy()
    other[row, column] += 1
    return other


@pytest.mark.parametrize("store", [np.asarray, sp.csr_array])
def test_other_data(store: Any) -> None:
    seen = {
        fingerprint(store(X), Y),
        fingerprint(store(changed(X, 0, 0)), Y),
        fingerprint(store(changed(X, 299, 4)), Y),
        fingerprint(store(X[:-1]), Y[:-1]),
        fingerprint(store(X), -Y),
        fingerprint(store(X[::-1]), Y),
        fingerprint(store(np.hstack([X, np.zeros((300, 1), np.float32)])), Y),
        fingerprint(store(X.reshape(500, 3)), Y),
    }
    assert len(seen) == 8


def test_storage_counts_and_empty_data_has_a_fingerprint() -> None:
    assert fingerprint(X, Y) != fingerprint(sp.csr_array(X), Y)
    empty = np.empty((0, 3), np.float32)
    assert fingerprint(empty, Y[:0]) != fingerprint(np.empty((0, 4), np.float32), Y[:0])
    assert len(fingerprint(sp.csr_array(empty), Y[:0])) == 64
    assert len(fingerprint(np.empty((3, 0), np.float32), Y[:3])) == 64


def test_memory_is_bounded(tmp_path: Path) -> None:
    np.zeros((1 << 20, 8), np.float32).tofile(tmp_path / "x")  # 32 MiB
    mapped = np.memmap(tmp_path / "x", np.float32, "r", shape=(8, 1 << 20)).T  # needs copies, block by block
    tracemalloc.start()
    fingerprint(mapped, np.zeros(1 << 20))
    assert tracemalloc.get_traced_memory()[1] < 16 << 20
    tracemalloc.stop()
