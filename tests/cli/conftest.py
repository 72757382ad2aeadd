"""Small data sets and a trained model for the tests of the commands."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from command_line import FAST, invoke

from localsvm.data.synthetic import banana
from localsvm.data.writers.libsvm import write


def banana_file(path: Path, rows: int, seed: int) -> Path:
    X, y = banana(rows, np.random.default_rng(seed))
    write(path, X, y)
    return path


@pytest.fixture(scope="session")
def train_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """300 rows, two features, labels -1 and 1."""
    return banana_file(tmp_path_factory.mktemp("data") / "small.train.libsvm", 300, 0)


@pytest.fixture(scope="session")
def test_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """200 rows like those of train_file."""
    return banana_file(tmp_path_factory.mktemp("data") / "small.test.libsvm", 200, 1)


@pytest.fixture(scope="session")
def large_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """16 000 rows, for runs that are to be stopped."""
    return banana_file(tmp_path_factory.mktemp("data") / "large.libsvm", 16000, 2)


@pytest.fixture(scope="session")
def classes_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """300 rows with the labels 0.5, 2 and 10."""
    X, y = banana(300, np.random.default_rng(3))
    path = tmp_path_factory.mktemp("data") / "classes.libsvm"
    write(path, X, np.where(X[:, 0] > 1, 0.5, np.where(y > 0, 10.0, 2.0)))
    return path


@pytest.fixture(scope="session")
def model_file(tmp_path_factory: pytest.TempPathFactory, train_file: Path) -> Path:
    """A model of train_file with four cells."""
    path = tmp_path_factory.mktemp("model") / "model.h5"
    invoke("train", "-P", "voronoi", "-c", 80, *FAST, "-j", 1, "-q", train_file, path)
    return path
