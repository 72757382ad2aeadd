"""--memory bounds every phase of a run: one that does not fit is refused before it begins, with a remedy that helps."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pytest
from dividing import divide
from scipy import sparse

from localsvm.data.blocks.dataset import Dataset, as_examples
from localsvm.data.readers.libsvm import read
from localsvm.data.writers.libsvm import write
from localsvm.errors import DataError, RunError
from localsvm.memory import PROCESS_BYTES, Budget, shown
from localsvm.methods.kernel.svm import KernelSVM
from localsvm.methods.locally_linear.l3 import L3SVM
from localsvm.runs.cells.schedule import Resources
from localsvm.runs.config import TrainingConfig
from localsvm.runs.partition import partition_only
from localsvm.runs.predict import LocalModel
from localsvm.runs.preparation.given import read_given
from localsvm.runs.streams.train import train_stream
from localsvm.runs.train import train

MIB = 1 << 20
POINT = KernelSVM(gamma=(0.5,), cost=(1.0,))


def rows(kind: str, n: int = 1000, d: int = 400) -> Dataset:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, d)).astype(np.float32)
    y = np.where(X[:, 0] > 0, 1.0, -1.0)
    if kind == "sparse":
        X[rng.random((n, d)) > 0.1] = 0
        X[0, :] = 1  # so that every column occurs
    return Dataset(X if kind == "dense" else as_examples(sparse.csr_array(X)), y)


def refusals(work: Callable[[int], object]) -> list[str]:
    """Messages of `work` under budgets that grow by a tenth until one suffices, each once."""
    messages: list[str] = []
    for step in range(60):
        try:
            work(PROCESS_BYTES + int(MIB * 1.1**step))
        except RunError as error:
            assert "\n" not in str(error) and "--memory" in str(error)
            messages += [words] if (words := str(error).split(" need")[0]) not in messages else []
        else:
            return messages
    raise AssertionError("never enough")


@pytest.mark.whole
@pytest.mark.parametrize("kind", ["dense", "sparse"])
@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_reading_is_bounded(tmp_path: Path, kind: str, pack: Callable[[bytes], bytes]) -> None:
    data, path = rows(kind, 5000, 100), tmp_path / "data.libsvm"
    write(path, data.X, data.y)
    path.write_bytes(pack(path.read_bytes()))
    with pytest.raises(RunError, match=r"data.libsvm: its rows need 12.* and --memory allows 120.2 MiB; give more"):
        read(path, dense=kind == "dense", budget=Budget(PROCESS_BYTES + MIB // 4))
    matrix = read(path, dense=kind == "dense", budget=Budget(PROCESS_BYTES + 12 * MIB)).X
    assert (matrix != (data.X.astype(np.float32))).sum() <= 0.1 * matrix.size  # rounded by the text at most


def test_a_line_is_part_of_the_budget(tmp_path: Path) -> None:
    path = tmp_path / "data.libsvm.gz"
    path.write_bytes(gzip.compress(b"1 1:1\n2 1:2" + b" " * (3 * MIB) + b"\n"))
    assert read(path, budget=Budget(PROCESS_BYTES + 64 * MIB)).X.shape == (2, 1)
    with pytest.raises(
        DataError, match=r"gz:2: the line is longer than 1 MiB \(for so little --memory\); end each row"
    ):
        read(path, budget=Budget(PROCESS_BYTES + 8 * MIB))


def test_the_phases_of_training_are_bounded(tmp_path: Path) -> None:
    def work(memory: int) -> object:
        return train(
            rows("dense"),
            TrainingConfig(POINT, "none", metric="none"),
            tmp_path / "m.h5",
            force=True,
            resources=Resources(memory=memory),
        )

    messages = refusals(work)
    assert messages[0] == "finding the columns that occur" and "dividing the rows into cells" in messages
    assert messages[-1] == "a cell of 1000 rows"
    without = tmp_path / "without.h5"
    train(rows("dense"), TrainingConfig(POINT, "none", metric="none"), without)

    X = rows("dense").X
    with LocalModel(tmp_path / "m.h5") as bounded, LocalModel(without) as free:
        assert np.array_equal(bounded.decision_function(X), free.decision_function(X))


@pytest.mark.whole
@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_streams_are_bounded(tmp_path: Path, kind: str) -> None:
    data, path = rows(kind), tmp_path / "data.libsvm"
    write(path, data.X, data.y)
    config = TrainingConfig(L3SVM(solver="sgd", passes=1, cost=(0.01,), landmarks_count=(20,), clusters=(2,)))

    def work(memory: int | None) -> None:
        output = tmp_path / ("free.h5" if memory is None else "bounded.h5")
        train_stream(path, config, output, force=True, block_bytes=1 << 18, resources=Resources(memory=memory, jobs=3))

    with pytest.raises(RunError, match=r"libsvm: its blocks of text need 12.* and --memory allows .*; give more"):
        work(PROCESS_BYTES + MIB // 2)
    messages = refusals(work)
    assert messages[0].endswith("finding the columns that occur") and messages[-1] == "training block by block"
    work(None)
    with LocalModel(tmp_path / "bounded.h5") as bounded, LocalModel(tmp_path / "free.h5") as free:
        assert np.array_equal(bounded.decision_function(data.X), free.decision_function(data.X))


def test_scaling_sparse_rows_is_bounded(tmp_path: Path) -> None:
    config = TrainingConfig(POINT, "none", scale="zscore", metric="none")

    def work(memory: int) -> object:
        return partition_only(rows("sparse"), config, tmp_path / "p.h5", True, memory=memory)

    assert "scaling by zscore" in refusals(work)
    with pytest.raises(RunError, match="scale sparse rows by std, row or none, or give more --memory"):
        work(PROCESS_BYTES + int(3.2 * MIB))


@pytest.mark.whole
@pytest.mark.parametrize(("metric", "kind", "n", "d"), [("auto", "dense", 1000, 400), ("diag", "sparse", 10_000, 100)])
def test_learning_a_metric_is_bounded(metric: str, kind: str, n: int, d: int, tmp_path: Path) -> None:
    config, stopped = TrainingConfig(POINT, "none", metric=metric), RuntimeError("it would be learned now")

    def work(memory: int) -> None:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("localsvm.runs.preparation.prepare.measure", Mock(side_effect=stopped))
            with pytest.raises(RuntimeError, match="would be learned"):
                partition_only(rows(kind, n, d), config, tmp_path / "p.h5", True, memory=memory)

    assert refusals(work)[-1] == "learning the metric"


@pytest.mark.whole
def test_mapping_by_a_metric_that_is_given_is_bounded(tmp_path: Path) -> None:
    config, path = TrainingConfig(POINT, "none", scale="none", metric="rank:300"), tmp_path / "metric.h5"
    partition_only(rows("dense"), config, path)
    given = read_given(path)

    def work(memory: int) -> object:
        return partition_only(rows("dense"), given.fix(config), tmp_path / "p.h5", True, memory=memory, given=given)

    def loaded(memory: int) -> object:
        return divide(rows("dense"), config, path, memory=memory)

    assert "mapping the rows by the metric" in refusals(work)
    assert "mapping the rows by the metric" in refusals(loaded)


def test_the_division_is_bounded(tmp_path: Path) -> None:
    config = TrainingConfig(POINT, "voronoi", cell_size=10, repeats=3, metric="none")
    messages = refusals(lambda memory: partition_only(rows("dense"), config, tmp_path / "p.h5", True, memory=memory))
    assert "dividing the rows into cells" in messages


def test_what_is_free_bounds_a_run_without_the_option(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("localsvm.memory.available_memory", lambda: MIB)
    with pytest.raises(RunError, match=r"finding the columns that occur needs .* are free; give more --memory"):
        train(rows("dense"), TrainingConfig(POINT, "none", metric="none"), tmp_path / "m.h5")


@pytest.mark.parametrize("partition", ["voronoi", "chunks"])
def test_prediction_follows_the_memory(tmp_path: Path, partition: str) -> None:
    data, model = rows("dense", 3000, 50), tmp_path / "m.h5"
    train(data, TrainingConfig(POINT, partition, cell_size=1000, metric="none"), model)
    write(tmp_path / "test.libsvm", rows("dense", 3000, 50).X, np.ones(3000))
    values, blocks = [], []
    for room, jobs in ((None, 2), (20 * MIB, 1), (24 * MIB, 2), (200 * MIB, 2)):
        memory = None if room is None else PROCESS_BYTES + room
        with LocalModel(model, jobs, memory=memory) as local:
            parts = [part.decisions for part in local.predict_blocks(local.read(tmp_path / "test.libsvm"))]
        values.append(np.concatenate(parts))
        blocks.append(len(parts))
    assert all(np.array_equal(values[0], other) for other in values[1:])
    assert blocks[1] > blocks[0] == 1
    with pytest.raises(
        RunError, match=r"the largest of \d cells, .* and --memory allows 121.0 MiB; give more --memory"
    ):
        LocalModel(model, 1, memory=PROCESS_BYTES + MIB)


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (0, "0 bytes"),
        (1023, "1023 bytes"),
        (1024, "1.0 KiB"),
        (3 << 18, "768.0 KiB"),
        (1 << 20, "1.0 MiB"),
        (1234 << 20, "1.21 GiB"),
    ],
)
def test_sizes_have_units_that_suit_them(size: int, text: str) -> None:
    assert shown(size) == text
