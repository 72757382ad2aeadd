"""Copies of a row stay together: in folds, in draws that judge, whatever their labels."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from command_line import invoke
from dividing import divide
from scipy import sparse
from selecting import observed_of
from sklearn.metrics import log_loss

from localsvm.data.blocks.dataset import Dataset, Examples, as_examples
from localsvm.data.blocks.dealing import Mates
from localsvm.data.writers.libsvm import write
from localsvm.methods import methods
from localsvm.partition import copies
from localsvm.partition._nearest import Matrix
from localsvm.representations.metric import EUCLIDEAN, Geometry
from localsvm.representations.metric_tests import tested as judged_by
from localsvm.representations.svm_metric import split
from localsvm.runs.config import TrainingConfig
from localsvm.runs.cross_validate import cross_validate
from localsvm.runs.preparation.metric import measure
from localsvm.threads import ALONE

ROWS = 300  # each is there twice
POINTS = {  # of methods with a grid, one point that would learn copies by heart; the others have one by themselves
    "svm": {"gamma": (8.0,), "cost": (100.0,)},
    "rbf": {"gamma": (8.0,), "cost": (100.0,)},
    "lasvm": {"gamma": (8.0,), "cost": (100.0,)},
    "l3": {"cost": (1.0,), "clusters": (20,)},
    "kmeans-svm": {"cost": (100.0,), "clusters": (20,)},
    "svm-knn": {"neighbours": (1,), "cost": (1.0,)},
}


def noise(rows: int = ROWS, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return rng.standard_normal((rows, 4)).astype(np.float32), rng.choice([-1.0, 1.0], rows)


def twice(form: str = "dense") -> Dataset:
    """Rows with labels of pure noise, every row and its label twice."""
    X, y = noise()
    both = np.concatenate([X, X])
    return Dataset(as_examples(sparse.csr_array(both)) if form == "sparse" else both, np.concatenate([y, y]))


def test_equal_rows_are_found() -> None:
    X = np.asarray([[1, 0, 2], [1, -0.0, 2], [2, 0, 1], [0, 0, 0], [1, 0, 2], [2, 0, 1], [0, 2, 1]], np.float32)
    expected = [0, 0, 2, 3, 0, 2, 6]
    stored = sparse.csr_array(X)
    stored.data[0] = 1.0
    explicit = sparse.csr_array((X.ravel(), np.tile(np.arange(3), 7), np.arange(0, 22, 3)), shape=X.shape)
    for form in (X, as_examples(stored), as_examples(explicit)):
        assert_equal(form, expected)
    assert copies(Matrix(X[[0, 2, 3]])) is None


def assert_equal(X: Examples, expected: list[int]) -> None:
    first_equal = copies(Matrix(X))
    assert first_equal is not None and first_equal.tolist() == expected


@pytest.mark.parametrize("partition", ["none", "voronoi", "kmeans", "chunks"])
@pytest.mark.parametrize("form", ["dense", "sparse"])
def test_no_two_folds_share_a_row(partition: str, form: str) -> None:
    data = twice(form)
    config = TrainingConfig(methods()["linear"](), partition=partition, cell_size=150, metric=EUCLIDEAN)
    cells = divide(data, config).only
    assert cells.copies == ROWS and len(cells.fold_rows) == len(cells.sizes)
    for cell, rows in enumerate(cells.fold_rows):
        assert sum(rows) == cells.sizes[cell]
        X = cells.X.handle().rows(slice(int(cells.edges[cell]), int(cells.edges[cell + 1])))
        dense = X if isinstance(X, np.ndarray) else X.toarray()
        folds = np.repeat(np.arange(len(rows)), rows)
        kept = {tuple(row): fold for row, fold in zip(dense.tolist(), folds, strict=True)}
        assert all(kept[tuple(row)] == fold for row, fold in zip(dense.tolist(), folds, strict=True))


@pytest.mark.parametrize("name", sorted(POINTS))
def test_the_error_of_noise_is_a_half(name: str) -> None:
    method = methods()[name](**POINTS[name])
    config = TrainingConfig(method, partition="none", metric=EUCLIDEAN)
    error = cross_validate(twice(), config).error
    assert abs(error - 0.5) < 3 * np.sqrt(0.25 / ROWS)


@pytest.mark.parametrize("options", ["-P none -g 8 -C 100", "-P chunks -c 200", "-P voronoi -c 200 --metric auto"])
def test_probabilities_of_noise_know_nothing(options: str, tmp_path: Path) -> None:
    data = twice()
    write(tmp_path / "train.libsvm", data.X, data.y)
    X, y = noise(2000, seed=1)
    write(tmp_path / "test.libsvm", X, y)
    model, lines = tmp_path / "model.h5", tmp_path / "lines.txt"
    reported = invoke("train", "-b", 1, "-j", 1, *options.split(), tmp_path / "train.libsvm", model).stderr
    assert "300 of 600 rows are copies of others; copies stay in one fold" in reported
    invoke("predict", "-b", 1, tmp_path / "test.libsvm", model, lines)
    values = np.loadtxt(lines, skiprows=1)
    assert log_loss(y, values[:, 1:], labels=[-1.0, 1.0]) < 0.75


def test_single_rows_are_no_news(tmp_path: Path) -> None:
    write(tmp_path / "train.libsvm", *noise(40))
    command = "train", "-j", "1", "-m", "linear", "-C", "1", tmp_path / "train.libsvm"
    assert "copies" not in invoke(*command, tmp_path / "a.h5").stderr
    with open(tmp_path / "train.libsvm", "a") as file:
        file.write((tmp_path / "train.libsvm").read_text().splitlines()[0] + "\n")
    assert "1 of 41 rows is a copy of another one; copies stay" in invoke(*command, tmp_path / "b.h5").stderr


@pytest.mark.parametrize("asked", ["diag", "full"])
def test_a_metric_is_told_of_by_rows_without_copies_among_the_learned(asked: str) -> None:
    data = twice()
    data.y = np.where(data.X[:, 0] > 0, 1.0, -1.0)  # type: ignore[index]
    measured = measure(data, observed_of(data.y), TrainingConfig(methods()["svm"](), metric=asked), ALONE)
    assert measured.fresh is not None and 0.15 < measured.fresh.mean() < 0.25
    np.testing.assert_array_equal(measured.fresh[:ROWS], measured.fresh[ROWS:])


def test_a_metric_that_learned_copies_by_heart_is_not_chosen() -> None:
    """Paired tests know that a row and its copy tell as much as one row."""
    rng = np.random.default_rng(3)
    difference = rng.normal(-0.1, 1.0, 400)
    once = {Geometry(): np.zeros((2, 400)), Geometry(form="diag"): np.stack([difference, difference])}
    both = {name: np.tile(values, 2) for name, values in once.items()}
    alone = judged_by(once, 0.05, np.ones(400))
    np.testing.assert_allclose(judged_by(both, 0.05, np.ones(800), Mates(np.tile(np.arange(400), 2))).z, alone.z)
    np.testing.assert_allclose(judged_by(both, 0.05, np.ones(800)).z, np.sqrt(2) * np.asarray(alone.z))


def test_parts_of_svml_share_no_row() -> None:
    y = np.repeat(noise(400)[1], 2)
    pairs = np.arange(800) // 2
    parts = split(y, np.random.default_rng(0), Mates(pairs))
    assert parts is not None and [len(part) for part in parts] == [400, 200, 200]
    seen = [set(pairs[part]) for part in parts]
    assert not (seen[0] & seen[1] or seen[0] & seen[2] or seen[1] & seen[2])
