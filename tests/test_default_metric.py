"""The metric that a run learns where --metric is not given: which methods learn one, and that it hinders no run."""

from __future__ import annotations

import json
import re
from pathlib import Path
from unittest.mock import Mock

import h5py
import numpy as np
import pytest
from command_line import error, invoke
from scipy import sparse
from selecting import observed_of

from localsvm.cli.metric_report import geometry_text
from localsvm.data.blocks.dataset import Dataset, Examples, as_examples
from localsvm.data.writers.libsvm import write
from localsvm.engines.memory import Memory
from localsvm.estimators import LocalSVC, load
from localsvm.memory import UNBOUNDED, Budget
from localsvm.methods import methods
from localsvm.methods.kernel.svm import KernelSVM
from localsvm.representations.metric import Geometry
from localsvm.runs.config import TrainingConfig
from localsvm.runs.partition import partition_only
from localsvm.runs.predict import LocalModel
from localsvm.runs.preparation import metric as measuring
from localsvm.runs.preparation.demand import Demand
from localsvm.runs.preparation.given import read_given
from localsvm.runs.preparation.metric import measure, measuring_bytes
from localsvm.runs.train import train
from localsvm.store.model import load_partition
from localsvm.threads import ALONE, Threads

POINT = KernelSVM(gamma=(0.5,), cost=(1.0,))
COSTS = ("-C", "0.3,3")  # gammas would be of one distance, and the other one not be tried


def rows(n: int = 240, d: int = 12) -> tuple[np.ndarray, np.ndarray]:
    """Rows (n, d) and labels (n,) that two of the columns decide, so that a metric is chosen."""
    X = np.random.default_rng(1).standard_normal((n, d)).astype(np.float32)
    return X, np.where(X[:, 2] + 0.5 * X[:, 7] > 0, 1.0, -1.0)


def wide(n: int = 300, width: int = 1_300_000, each: int = 20) -> tuple[Examples, np.ndarray]:
    """Sparse rows as those of texts: nearly every column that occurs has one value."""
    rng = np.random.default_rng(1)
    columns = np.sort(rng.choice(width, (n, each), replace=False), axis=1)
    X = sparse.csr_array((np.ones(n * each), columns.ravel(), np.arange(n + 1) * each), shape=(n, width))
    return as_examples(X), np.where(np.arange(n) % 2, 1.0, -1.0)


def test_only_svm_with_a_kernel_of_distances_learns_one() -> None:
    metrics = {name: TrainingConfig(method()).metric_name for name, method in methods().items()}
    assert metrics == dict.fromkeys(methods(), "none") | {"svm": "auto"}
    kernels = {kernel: TrainingConfig(KernelSVM(kernel=kernel)).metric_name for kernel in ("laplacian", "polynomial")}
    assert kernels == {"laplacian": "auto", "polynomial": "none"}
    assert TrainingConfig(metric="none").metric_name == "none"


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("default") / "rows.libsvm"
    write(path, *rows())
    return path


@pytest.mark.whole
def test_all_commands_and_the_classifier_have_the_same(file: Path, tmp_path: Path) -> None:
    """All commands and the classifier learn the metric of --metric auto by default, and divide into the same cells."""
    common, one = ("-P", "voronoi", "-c", 80, "-j", 1, "-q"), ("--repeats", 1)  # a file of cells has one geometry
    for name, options in (("default", ()), ("auto", ("--metric", "auto"))):
        invoke("train", *common, *one, *COSTS, *options, file, tmp_path / f"{name}.h5")
        invoke("partition", *common, *options, file, tmp_path / f"{name}.cells.h5")
    classifier = LocalSVC(partition="voronoi", cell_size=80, cost=[0.3, 3.0], repeats=1).fit(*rows())
    classifier.save(tmp_path / "python.h5")
    manifests, models = [], ("default.h5", "auto.h5", "python.h5")
    for model in models:
        with h5py.File(tmp_path / model) as model_file:
            config = json.loads(model_file.attrs["config"])
            chosen = Geometry.of(config["learned"]["name"])
            assert chosen is not None and (chosen.distance, chosen.form) == ("manhattan", "diag")
            assert config["method"]["kernel"] == "manhattan"
            manifest = json.loads(model_file.attrs["manifest"])
        manifests.append({key: value for key, value in manifest.items() if key.startswith(("/metric/", "/cells/"))})
    assert manifests[0] == manifests[1] == manifests[2] and "/metric/weights" in manifests[0]
    given = [read_given(tmp_path / name).measured for name in ("default.h5", "default.cells.h5", "auto.cells.h5")]
    assert all(np.array_equal(each.metric.values, given[0].metric.values) for each in given if each.metric)
    assert len({tuple(load_partition(tmp_path / f"{n}.cells.h5").sizes.tolist()) for n in ("default", "auto")}) == 1
    table = json.loads(invoke("cv", "--json", *common, *one, *COSTS, file).stdout)
    assert table["metric"] == given[0].description and table["config"]["metric"] == "auto"


def test_what_was_trained_is_told_and_kept(file: Path, tmp_path: Path) -> None:
    """A model says which metric it has, so that a refit of its classifier is of the same kind."""
    reported = invoke("train", "-g", 1, "-C", 1, "-j", 1, file, tmp_path / "auto.h5").stderr
    found = r"\ngeometry    Euclidean distance, .*learned .*\(error on fresh rows [\d.]+ -> [\d.]+ %\)\n"
    assert re.search(found, reported)
    reported = invoke("train", "-g", 1, "-C", 1, "-j", 1, "--metric", "none", file, tmp_path / "none.h5").stderr
    assert "metric" not in reported and "geometry" not in reported
    assert [load(tmp_path / f"{name}.h5").metric for name in ("auto", "none")] == ["auto", "none"]


def test_cells_of_a_file_bring_their_metric(file: Path, tmp_path: Path) -> None:
    """Cells of a file without a metric give a model without one, and svml refuses cells of a learned metric."""
    invoke("partition", "--metric", "none", "-c", 80, "-q", file, tmp_path / "cells.h5")
    X, y = rows()
    train(Dataset(X, y), TrainingConfig(POINT), tmp_path / "m.h5", partition_file=str(tmp_path / "cells.h5"))
    with LocalModel(tmp_path / "m.h5") as model:
        assert model.chain.metric is None and "metric" not in model.file.config
    invoke("partition", "-c", 80, "-q", file, tmp_path / "learned.h5")
    result = invoke("train", "-m", "svml", "--partition-file", tmp_path / "learned.h5", file, tmp_path / "s.h5", code=2)
    assert "and cells of lsvm-partition --metric none" in " ".join(result.stderr.split())


def test_a_few_rows_train_as_without(tmp_path: Path) -> None:
    for n in (2, 3, 10):
        X, (y, values) = rows(n)[0], (np.arange(n) % 2.0, [])
        for metric in (None, "none"):
            summary = train(Dataset(X.copy(), y), TrainingConfig(POINT, metric=metric), tmp_path / f"{metric}{n}.h5")
            with LocalModel(tmp_path / f"{metric}{n}.h5") as model:
                values.append(model.decision_function(X.copy()))
        assert summary.metric is None
        np.testing.assert_array_equal(*values)


def test_wide_rows_are_left_as_they_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Wide sparse rows, of which no dense sample fits in memory, are trained on without a learned metric."""
    monkeypatch.setattr(measuring, "choose", Mock(side_effect=AssertionError("a metric was tried")))
    monkeypatch.setattr(measuring, "labelled_rows", Mock(side_effect=AssertionError("a metric was tried")))
    X, y = wide()
    measured = measure(Dataset(X, y), observed_of(y), TrainingConfig(), ALONE)
    assert measured.metric is None and measuring_bytes(X, TrainingConfig(), observed_of(y), 4) == 0
    values = []
    for metric in (None, "none"):
        X, y = wide()
        summary = train(Dataset(X, y), TrainingConfig(POINT, metric=metric), tmp_path / f"{metric}.h5")
        with LocalModel(tmp_path / f"{metric}.h5") as model:
            values.append(model.decision_function(wide()[0]))
        reported = summary.metric and geometry_text(summary.metric)
        assert reported == (None if metric else "Euclidean distance (too many columns to try one)")
    np.testing.assert_array_equal(*values)
    assert (
        "\ngeometry    Euclidean distance (too many columns to try one)\n"
        in invoke("inspect", tmp_path / "None.h5").stdout
    )


def test_wide_rows_are_those_of_many_values_in_a_sample() -> None:
    few = sparse.csr_array(np.ones((40, 20_000), np.float32))  # its samples are small
    assert measuring.untried(few.shape, observed_of(np.arange(2))) == ""
    assert measuring.untried((1 << 27, 1400), observed_of(np.arange(3))) == "too many classes to try one"
    assert measuring.untried((1 << 20, 1500), observed_of(np.arange(2))) == "too many columns to try one"
    assert measuring.untried((1 << 20, 1400), observed_of(np.arange(100))) == ""
    assert measuring.untried((1 << 27, 28), observed_of(np.arange(2))) == ""


@pytest.mark.parametrize("labels", ["one class", "values"])
def test_rows_without_classes_are_divided_as_without(labels: str, tmp_path: Path) -> None:
    """lsvm-partition learns no metric from rows without classes, and divides them as with --metric none."""
    X, y = rows(60)
    y = np.full(60, 3.0) if labels == "one class" else X[:, 0].astype(float)
    partitions = []
    for metric in (None, "none"):
        config = TrainingConfig(POINT, "voronoi", 20, metric=metric)
        partition_only(Dataset(X.copy(), y.copy()), config, tmp_path / f"{metric}.h5")
        partitions.append(load_partition(tmp_path / f"{metric}.h5"))
    np.testing.assert_array_equal(*(file.assignment for file in partitions))
    assert partitions[0].config["learned"]["name"] == "none" and "learned" not in partitions[1].config


def test_less_memory_takes_fewer_threads_and_then_names_the_remedy(file: Path, tmp_path: Path) -> None:
    X, y = rows(6000, 40)
    config = TrainingConfig(POINT)
    observed = observed_of(y)
    need = [measuring_bytes(X, config, observed, count) + X.nbytes + 16 * len(y) for count in (1, 2, 3)]
    room = UNBOUNDED.bytes - UNBOUNDED.room
    with Threads(3) as threads:
        engines = [Memory(Dataset(X, y), Budget(room + bytes)) for bytes in need]
        counts = [Demand(engine, config, threads).metric(observed) for engine in engines]
    assert counts == [1, 2, 3] and need[0] < need[1] < need[2]
    write(tmp_path / "rows", X, y)
    line = ("train", "-g", 1, "-C", 1, "-P", "voronoi", "-c", 100, "-j", 1, "--memory", "128M")
    assert error(*line, tmp_path / "rows", tmp_path / "m.h5").endswith("; give more --memory, or --metric none\n")
    invoke(*line, "--metric", "none", tmp_path / "rows", tmp_path / "m.h5")
