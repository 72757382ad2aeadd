"""Weights of rows: 0 is a row that is not there, 2 is a row that is there twice, and a file has one a line."""

from __future__ import annotations

import gzip
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from dividing import Divided, divide
from scipy import sparse
from selecting import observed_of
from sklearn.datasets import make_classification
from sklearn.svm import SVC, LinearSVC

from localsvm import estimators
from localsvm.data.blocks.dataset import Dataset, as_examples
from localsvm.data.blocks.dealing import renumbered
from localsvm.data.readers.weights import check_weights, read_weights
from localsvm.data.synthetic import banana
from localsvm.data.writers.libsvm import write
from localsvm.engines.disk import Disk
from localsvm.errors import DataError, ModelError
from localsvm.estimators import LocalSVC
from localsvm.methods import methods
from localsvm.methods.kernel.svm import KernelSVM
from localsvm.runs.cells.schedule import Resources
from localsvm.runs.config import TrainingConfig
from localsvm.runs.cross_validate import cross_validate
from localsvm.runs.partition import partition_only
from localsvm.runs.predict import LocalModel
from localsvm.runs.progress import Silent
from localsvm.runs.streams.train import train_stream
from localsvm.runs.train import train

FAST = KernelSVM(gamma=(0.5, 4.0), cost=(0.3, 3.0))
CELLS = TrainingConfig(FAST, "voronoi", 150, metric="none")


def rows_of(n: int = 400, classes: int = 2, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    X, y = banana(n, np.random.default_rng(seed))
    return X, np.where(X[:, 0] > 1, 5.0, y) if classes == 3 else y


def weights_of(n: int = 400, seed: int = 1) -> np.ndarray:
    """Weights (n,) of 0, 1, 2 or 3."""
    return np.random.default_rng(seed).integers(0, 4, n).astype(np.float64)


def values(data: Dataset, config: TrainingConfig, X: np.ndarray, folder: Path) -> np.ndarray:
    train(data, config, folder / "m.h5", force=True)
    with LocalModel(folder / "m.h5") as model:
        return model.decision_function(X)


@pytest.mark.fast(1)
@pytest.mark.parametrize("name", ["voronoi", "kmeans", "chunks"])
def test_weight_0_is_no_row_for_every_partition(name: str, tmp_path: Path) -> None:
    (X, y), w = rows_of(), np.minimum(weights_of(), 1.0)
    config = replace(CELLS, partition=name, cell_size=80, repeats=2)
    weighted = values(Dataset(X.copy(), y, weight=w), config, X, tmp_path)
    np.testing.assert_array_equal(weighted, values(Dataset(X[w > 0], y[w > 0]), config, X, tmp_path))


def test_weight_0_is_no_row_for_groups(tmp_path: Path) -> None:
    """They are numbered in the order in which they come, and dealt out by their numbers."""
    (X, y), w = rows_of(), np.minimum(weights_of(), 1.0)
    group = np.random.default_rng(0).permutation(len(y)) % 40
    kept = w > 0
    expected = values(Dataset(X[kept], y[kept], group=renumbered(group[kept])), CELLS, X, tmp_path)
    np.testing.assert_array_equal(
        values(Dataset(X.copy(), y, weight=w, group=renumbered(group)), CELLS, X, tmp_path), expected
    )
    write(tmp_path / "rows", X, y)
    (tmp_path / "weights").write_text("".join(f"{each:g}\n" for each in w))
    (tmp_path / "groups").write_text("".join(f"g{each}\n" for each in group))
    given = {"weights": tmp_path / "weights", "groups": tmp_path / "groups"}
    train(Disk(tmp_path / "rows", zero_based=False, shifts=CELLS.shifts, **given), CELLS, tmp_path / "disk.h5")
    with LocalModel(tmp_path / "disk.h5") as model:
        np.testing.assert_array_equal(model.decision_function(X), expected)
    quick: dict[str, Any] = {"gamma": [0.5], "cost": [3.0], "metric": "none"}
    by_weight = LocalSVC(**quick).fit(X, y, sample_weight=w, groups=group).decision_function(X)
    alone = LocalSVC(**quick).fit(X[kept], y[kept], groups=group[kept]).decision_function(X)
    np.testing.assert_array_equal(by_weight, alone)


TWICE: list[tuple[str, dict[str, Any]]] = [
    ("svm", {"offset": True, "gamma": (0.5,)}),
    ("svm", {"gamma": (0.5,)}),
    ("svm", {"gamma": (0.5,), "kernel": "polynomial"}),
    ("rbf", {"gamma": (0.5,)}),
    ("lasvm", {"gamma": (0.5,)}),
    ("linear", {}),
    ("linear", {"loss": "squared-hinge", "solver": "primal"}),
    ("linear", {"loss": "squared-hinge", "solver": "sag"}),
    ("linear", {"mean_loss": True}),
]


@pytest.mark.fast(4)
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize(("name", "options"), TWICE, ids=lambda v: str(v))
def test_weight_2_is_a_row_twice(name: str, options: dict[str, Any], classes: int, tmp_path: Path) -> None:
    X, y = make_classification(150, 4, n_redundant=0, n_informative=4, n_classes=classes, random_state=0)
    X, y, w = X.astype(np.float32), y.astype(np.float64), weights_of(150)
    method = methods()[name](**{"cost": (2.0,), "tolerance": 1e-10, **options})
    config, rows = TrainingConfig(method, "none", scale="none", metric="none"), np.repeat(np.arange(150), w.astype(int))
    weighted = values(Dataset(X.copy(), y, weight=w), config, X, tmp_path)
    np.testing.assert_allclose(weighted, values(Dataset(X[rows], y[rows]), config, X, tmp_path), atol=1e-4)
    plain = values(Dataset(X.copy(), y), config, X, tmp_path)
    assert np.abs(plain - weighted).max() > 1e-3


def test_values_are_those_of_scikit_learn() -> None:
    X, y = make_classification(150, 5, n_redundant=0, class_sep=0.5, random_state=0)
    X, w = X.astype(np.float32), np.random.default_rng(0).exponential(size=150) * (np.arange(150) % 5 > 0)
    ours = LocalSVC(gamma=0.4, cost=3.0, offset=True, scale="none", metric="none", tolerance=1e-6)
    ours.fit(X, y, sample_weight=w)
    theirs = SVC(gamma=0.4, C=3.0, tol=1e-6).fit(X, y, sample_weight=w)
    np.testing.assert_allclose(ours.decision_function(X), theirs.decision_function(X), atol=1e-4)
    linear = estimators.LinearSVMClassifier(cost=3.0, scale="none", tolerance=1e-8).fit(X, y, sample_weight=w)
    other = LinearSVC(C=3.0, loss="hinge", tol=1e-9, max_iter=10**6).fit(X, y, sample_weight=w)
    np.testing.assert_allclose(linear.decision_function(X), other.decision_function(X), atol=1e-4)


@pytest.mark.parametrize("factor", [2.0**-20, 2.0**12])
def test_a_factor_on_all_weights_changes_nothing_where_the_costs_are_chosen(factor: float, tmp_path: Path) -> None:
    (X, y), w = rows_of(), weights_of()
    config = TrainingConfig(KernelSVM(), "voronoi", 150, metric="none")
    one, other = (values(Dataset(X.copy(), y, weight=w * by), config, X, tmp_path) for by in (1.0, factor))
    np.testing.assert_array_equal(one, other)


def test_the_cost_that_is_told_is_that_of_weighted_rows(tmp_path: Path) -> None:
    (X, y), w = rows_of(), 3.0 * weights_of()
    model = LocalSVC(gamma=1.0, select="refit").fit(X, y, w)
    (tmp_path / "m.h5").write_bytes(model.model_)
    with LocalModel(tmp_path / "m.h5") as saved:
        assert [model.best_params_[0]["cost"]] == saved.file.column("model_cost").tolist()


def test_weights_count_in_the_cross_validated_error() -> None:
    X, y = rows_of()
    wrong = np.arange(400) % 10 == 0
    y[wrong] = -y[wrong]
    known = TrainingConfig(KernelSVM(gamma=(1.0,), cost=(1.0,)), "none", metric="none")
    even, less = (cross_validate(Dataset(X.copy(), y, weight=np.where(wrong, w, 1.0)), known) for w in (1.0, 0.01))
    assert even.error > less.error + 0.05


def masses(X: np.ndarray, y: np.ndarray, w: np.ndarray, repeats: int, file: Path | None = None) -> Divided:
    return divide(Dataset(X.copy(), y, weight=w), replace(CELLS, repeats=repeats), file)


@pytest.mark.parametrize("repeats", [1, 3])
def test_merged_rows_sum_their_weights(repeats: int) -> None:
    rng = np.random.default_rng(0)
    X = np.concatenate([np.zeros((700, 2)), rng.standard_normal((300, 2))]).astype(np.float32)[rng.permutation(1000)]
    y, w = np.where(rng.random(1000) < 0.2, 1.0, -1.0), rng.integers(1, 5, 1000) / 4
    divided = masses(X, y, w, repeats)
    zero = (X == 0).all(axis=1)
    for label in (-1.0, 1.0):
        merged = [
            float(cells.mass.array[i])
            for cells in divided.coarse
            for i in np.flatnonzero((cells.X.handle().rows(slice(0, len(cells.y.array))) == 0).all(axis=1))
            if cells.y.array[i] == label
        ]
        assert merged == [w[zero & (y == label)].sum()] * repeats
    for cells in divided.coarse:
        assert cells.mass.array.sum() == pytest.approx(w.sum())
        assert sum(cells.behind) == 1000
    assert len(divided.coarse) == repeats


def test_a_partition_file_goes_with_weights(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    X = np.concatenate([np.zeros((700, 2)), rng.standard_normal((300, 2))]).astype(np.float32)
    y, w = np.where(rng.random(1000) < 0.2, 1.0, -1.0), rng.integers(0, 5, 1000) / 4
    partition_only(Dataset(X.copy(), y), CELLS, tmp_path / "p.h5")
    loaded = masses(X, y, w, 1, tmp_path / "p.h5").only
    assert loaded.mass.array.sum() == pytest.approx(w.sum()) and loaded.mass.array.min() > 0
    assert len(loaded.mass.array) == 2 + np.count_nonzero(w[700:])
    cell = divide(Dataset(X.copy(), y), CELLS, tmp_path / "p.h5").partition.assign(X / X.std(axis=0)) == 0
    with pytest.raises(DataError, match="all rows of cell 0 have the weight 0"):
        masses(X, y, np.where(cell, 0.0, 1.0), 1, tmp_path / "p.h5")


def test_a_resume_with_other_weights_is_refused(tmp_path: Path) -> None:
    class Stop(Silent):
        def cell_done(self, wrong: float, weight: float) -> None:
            raise KeyboardInterrupt

    X, y = rows_of()
    with pytest.raises(KeyboardInterrupt):
        train(Dataset(X.copy(), y, weight=weights_of()), CELLS, tmp_path / "m.h5", resources=Resources(observer=Stop()))
    for other in (None, weights_of(seed=2)):
        with pytest.raises(ModelError, match="the weights of the rows differs"):
            train(Dataset(X.copy(), y, weight=other), CELLS, tmp_path / "m.h5", resume=True)
    train(Dataset(X.copy(), y, weight=weights_of()), CELLS, tmp_path / "m.h5", resume=True, resources=Resources(jobs=2))
    train(Dataset(X.copy(), y, weight=weights_of()), CELLS, tmp_path / "whole.h5")
    with LocalModel(tmp_path / "m.h5") as one, LocalModel(tmp_path / "whole.h5") as two:
        np.testing.assert_array_equal(one.decision_function(X), two.decision_function(X))


def test_balanced_weights_are_those_of_scikit_learn() -> None:
    observed = observed_of(np.repeat([1.0, 2.0, 7.0], [30, 60, 10]))
    config = TrainingConfig(balanced=True, class_weights=((2.0, 3.0),)).for_labels(observed)
    assert config.class_weights == ((1.0, 100 / 90), (2.0, 3 * 100 / 180), (7.0, 100 / 30))
    assert config.for_labels(observed) == config
    assert "balanced" in TrainingConfig(balanced=True).as_dict() and "balanced" not in config.as_dict()
    X, y = rows_of(classes=3)
    w = weights_of()
    repeated = np.repeat(np.arange(400), w.astype(int))
    given = {
        "gamma": 1.0,
        "cost": 1.0,
        "scale": "none",
        "class_weight": "balanced",
        "tolerance": 1e-7,
        "metric": "none",
    }
    one, two = LocalSVC(**given).fit(X, y, w), LocalSVC(**given).fit(X[repeated], y[repeated])
    np.testing.assert_allclose(one.decision_function(X), two.decision_function(X), atol=1e-4)


def test_what_is_no_weight_is_refused() -> None:
    for wrong, said in (
        ([1.0, -1.0], "row 2 has the weight -1"),
        ([np.nan, 1.0], "row 1 has the weight nan"),
        ([1.0, np.inf], "row 2 has the weight inf"),
        ([0.0, 0.0], "all 2 weights are 0"),
        ([1e308, 1e308], "the sum of the weights, inf, is not between 1e-40 and 1e\\+40; divide all"),
        ([1e-310, 0.0], "the sum of the weights, 1e-310, is not"),
        ([1.0], "2 rows need as many weights"),
    ):
        with pytest.raises(DataError, match=said):
            check_weights(wrong, 2)
    X, y = rows_of(20)
    for bad in (np.full(20, -1.0), np.zeros(20), np.ones(19), np.full(20, np.nan)):
        with pytest.raises(ValueError):
            LocalSVC(gamma=1.0, cost=1.0).fit(X, y, sample_weight=bad)
    with pytest.raises(ValueError, match="one class"):
        LocalSVC(gamma=1.0, cost=1.0).fit(X, y, sample_weight=(y > 0).astype(float))


def test_a_file_has_a_weight_a_line(tmp_path: Path) -> None:
    path, expected = tmp_path / "w", [0.5, 0.0, 3.0, 1e-3]
    for text in (b"0.5\n0\n3\n1e-3\n", b" 0.5\r\n0\r\n+3\r\n1e-3", gzip.compress(b"0.5\n0\n3\n.001\n")):
        path.write_bytes(text)
        assert read_weights(path, 4).tolist() == expected
    many = np.random.default_rng(0).random(300_000)
    path.write_text("".join(f"{value!r}\n" for value in many.tolist()))
    np.testing.assert_array_equal(read_weights(path, 300_000), many)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("1\nx\n3\n", "w:2: 'x' is no weight"),
        ("1\n\n3\n", "w:2: '' is no weight"),
        ("1\n-2\n3\n", "w:2: '-2' is no weight"),
        ("1\n2\ninf\n", "w:3: 'inf' is no weight"),
        ("nan\n2\n3\n", "w:1: 'nan' is no weight"),
        ("1 2\n2\n3\n", "w:1: '1 2' is no weight"),
        ("1_0\n2\n3\n", "w:1: '1_0' is no weight"),
        ("1e400\n2\n3\n", "w:1: '1e400' is no weight"),
        ("1\n2\n", "w: ends after line 2; the training file has 3 rows"),
        ("1\n2\n3\n4\n", "w:4: the training file has only 3 rows"),
        ("0\n0\n0\n", "w: all 3 weights are 0"),
        ("1e200\n0\n0\n", "w: the sum of the weights, 1e+200, is not between"),
        ("", "w: "),
        ("1" * (3 << 20), "w:1: '1111"),
    ],
)
def test_a_file_that_is_none_is_refused_with_the_line(text: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "w").write_text(text)
    with pytest.raises(DataError) as refused:
        read_weights(tmp_path / "w", 3)
    assert said in str(refused.value) and len(str(refused.value)) < 300


@pytest.mark.parametrize("thin", [False, True])
def test_streams_take_weights(thin: bool, tmp_path: Path) -> None:
    """Weights of 0 leave rows out of a stream of one block, and weights of rows are as those of their classes.

    Rows are shuffled within blocks, which are cut elsewhere without the rows of weight 0.
    """
    X, y = rows_of()
    if thin:
        X = np.hstack([X, np.zeros((400, 2000), np.float32)])
        X[:, -1] = 1.0
    w = weights_of() / 4
    classes = np.where(y > 0, 2.0, 1.0)
    method = methods()["linear"](solver="sgd", passes=20, cost=(0.1, 1.0))
    write(tmp_path / "all", X, y)
    write(tmp_path / "some", X[w > 0], y[w > 0])
    results = {}
    for name, weight, config in (
        ("all", w, TrainingConfig(method, metric="none")),
        ("some", w[w > 0], TrainingConfig(method, metric="none")),
        ("all", classes, TrainingConfig(method, metric="none")),
        ("all", None, TrainingConfig(method, class_weights=((1.0, 2.0),), metric="none")),
    ):
        file = None if weight is None else tmp_path / "w"
        (tmp_path / "w").write_text("" if weight is None else "".join(f"{value:g}\n" for value in weight))
        summary = train_stream(tmp_path / name, config, tmp_path / "m.h5", weights=file, force=True)
        with LocalModel(tmp_path / "m.h5") as model:
            rows = as_examples(sparse.csr_array(X)) if thin else X
            results[len(results)] = summary.cv_error, summary.rows, model.decision_function(rows)
    for one, other in ((0, 1), (2, 3)):
        assert results[one][:2] == results[other][:2]
        np.testing.assert_array_equal(results[one][2], results[other][2])
    assert results[0][1] == np.count_nonzero(w)


def test_probabilities_count_rows_by_their_weights(tmp_path: Path) -> None:
    """A class that weighs four times as much as another one of the same rows is four times as likely."""
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((1200, 2)).astype(np.float32), np.where(rng.random(1200) < 0.5, 1.0, -1.0)
    w = np.where(y > 0, 4.0, 1.0)
    config = TrainingConfig(
        KernelSVM(gamma=(0.1,), cost=(0.1,)), "voronoi", 300, repeats=2, probability=True, metric="none"
    )
    means = []
    for weight in (None, w, 1000 * w):
        train(Dataset(X.copy(), y, weight=weight), config, tmp_path / "m.h5", force=True)
        with LocalModel(tmp_path / "m.h5") as model:
            means.append(float(model.probabilities(X.copy())[:, 1].mean()))
    assert abs(means[0] - 0.5) < 0.05 and abs(means[1] - 0.8) < 0.05 and abs(means[2] - 0.8) < 0.05
