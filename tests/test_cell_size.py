"""The size of cells where none is given: by the method and the number of rows, the same for all that make cells."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from command_line import invoke

from localsvm.data.readers.libsvm import read
from localsvm.data.synthetic import banana
from localsvm.data.writers.libsvm import write
from localsvm.engines.disk import Disk
from localsvm.errors import OptionError
from localsvm.estimators import LocalSVC, load
from localsvm.methods import methods
from localsvm.methods.kernel import svm
from localsvm.methods.kernel.svm import KernelSVM
from localsvm.methods.linear.linear import LinearSVM
from localsvm.runs.config import TrainingConfig
from localsvm.runs.preparation.measured import Measured
from localsvm.runs.train import train
from localsvm.store.model import load_model, load_partition

POINT = KernelSVM(gamma=(0.5,), cost=(1.0,))


@pytest.mark.parametrize(
    ("rows", "size"),
    [(1, 10_000), (16_000, 10_000), (20_000, 8000), (32_000, 5000), (40_000, 4000), (10**6, 4000), (10**9, 4000)],
)
@pytest.mark.fast(7)
def test_it_goes_by_the_number_of_rows(rows: int, size: int) -> None:
    assert TrainingConfig().for_rows(rows).cell_size == size
    others = {name: method().default_cell_size(rows, 500) for name, method in methods().items() if name != "svm"}
    assert others == dict.fromkeys(others, 2000) and len(others) > 10


@pytest.mark.parametrize(("rows", "size"), [(10_000, 10_000), (100_000, 10_000), (200_000, 5000), (250_000, 4000)])
def test_rows_of_many_columns_have_larger_cells(rows: int, size: int) -> None:
    assert TrainingConfig().for_rows(rows, svm.WIDE + 1).cell_size == size
    assert TrainingConfig().for_rows(rows, svm.WIDE).cell_size == TrainingConfig().for_rows(rows).cell_size


@pytest.mark.parametrize(
    ("rows", "error", "expected"),
    [
        (100_000, 0.05, 4000), (100_000, 0.04, 4000), (100_000, 0.032, 5000), (100_000, 0.02, 8000),
        (100_000, 0.0, 8000), (25_000, 0.01, 10_000), (9000, 0.0, 10_000),
    ],
)  # fmt: skip
@pytest.mark.fast(2)
def test_rows_of_little_noise_have_larger_cells(rows: int, error: float, expected: int) -> None:
    assert TrainingConfig().for_rows(rows, 1, error).cell_size == expected
    for asked in (TrainingConfig(effort="low"), TrainingConfig(effort="high"), TrainingConfig(cell_size=77)):
        assert asked.for_rows(rows, 1, error) == asked.for_rows(rows)
    others = {name: method().default_cell_size(rows, 1, error) for name, method in methods().items() if name != "svm"}
    assert others == dict.fromkeys(others, 2000)


def learned(**record: Any) -> Measured:
    return Measured(description={"name": "diag", "best": "diag", "error": (0.02, 0.01), **record})


def test_the_noise_of_rows_is_the_error_of_the_chosen_geometry() -> None:
    """That of plain distances comes first; of values there is none, nor where none was tried or asked for."""
    assert learned().error == 0.01
    assert learned(name="none").error == learned(name="ranks").error == 0.02
    for unknown in (learned(score="rmse"), learned(error=()), Measured(description={"name": "diag"}), Measured()):
        assert unknown.error is None


def test_the_help_says_so() -> None:
    train_help = " ".join(invoke("train", "--help").stdout.split())
    told = re.search(r"--cell-size .*?\[default: ([^\]]*)\]", train_help)
    assert told is not None and told[1].startswith("for svm 10000, with more")
    assert re.findall(r"\d+", told[1]) == ["10000", "10000", "1", "6", "8", "1", "9", "256", "4000", "2000"]
    assert (svm.LARGE, svm.CELL_WORK, svm.SMALL) == (10_000, 16 * 10**7, 4000)
    assert (svm.WIDE_WORK, svm.WIDE) == (10**9, 256)


def test_a_size_that_is_given_wins() -> None:
    assert TrainingConfig(cell_size=77).for_rows(10**6).cell_size == 77
    assert TrainingConfig(coarse_size=3000).for_rows(10**6).cell_size == 3000  # not more than a coarse cell has
    assert TrainingConfig(coarse_size=9000).for_rows(10**6).cell_size == 4000
    with pytest.raises(OptionError, match="coarse cell is divided into cells of up to 77"):
        TrainingConfig(cell_size=77, coarse_size=50)


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let few rows be many."""
    for name, value in (("LARGE", 60), ("SMALL", 20), ("CELL_WORK", 7500), ("WIDE_WORK", 12_500)):
        monkeypatch.setattr(svm, name, value)


def manifest(path: Path) -> bytes:
    with h5py.File(path) as file:
        return bytes(file.attrs["manifest"])


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize(("wide", "size"), [(2, 30), (1, 50)])
def test_all_that_make_cells_make_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wide: int, size: int
) -> None:
    """Commands, the classifier and runs out of core; a partition file keeps the size, and -c replaces it."""
    monkeypatch.setattr(svm, "WIDE", wide)
    X, y = banana(250, np.random.default_rng(0))
    write(tmp_path / "rows", X, y)
    common = ("--metric", "none", "-q", "-j", 1, tmp_path / "rows")
    invoke("train", "-g", 0.5, "-C", 1, *common, tmp_path / "m.h5")
    invoke("partition", *common, tmp_path / "cells.h5")
    invoke("train", "-g", 0.5, "-C", 1, "--partition-file", tmp_path / "cells.h5", *common[2:], tmp_path / "p.h5")
    invoke("train", "-g", 0.5, "-C", 1, "-c", size, *common, tmp_path / "c.h5")
    config = TrainingConfig(POINT, metric="none")
    train(Disk(tmp_path / "rows", zero_based=False, shifts=config.shifts), config, tmp_path / "d.h5")
    classifier = LocalSVC(gamma=0.5, cost=1.0, metric="none").fit(read(tmp_path / "rows").X, y)
    assert classifier.cell_size is None
    classifier.save(tmp_path / "e.h5")
    kept = load_partition(tmp_path / "cells.h5")
    assert kept.config["cell_size"] == size and kept.config["partition"] == "voronoi" and kept.sizes.max() <= size
    for name in "mpcde":
        with load_model(tmp_path / f"{name}.h5") as model:
            assert model.config["cell_size"] == size and model.n_cells == len(kept.sizes)
    assert len({manifest(tmp_path / f"{name}.h5") for name in "mpcd"}) == 1
    assert load(tmp_path / "e.h5").cell_size == size


@pytest.mark.usefixtures("small")
def test_few_rows_are_one_cell_and_chunks_have_the_size(tmp_path: Path) -> None:
    for rows, partition, cells in ((60, None, 1), (61, None, 2), (250, "chunks", 9), (250, "none", 1)):
        data = banana(rows, np.random.default_rng(0))
        write(tmp_path / "rows", *data)
        config = TrainingConfig(POINT, partition, metric="none")
        summary = train(read(tmp_path / "rows"), config, tmp_path / "m.h5", force=True)
        assert summary.cells >= cells if cells == 2 else summary.cells == cells
    other = replace(config, method=LinearSVM(cost=(1.0,)), partition="voronoi")
    train(read(tmp_path / "rows"), other, tmp_path / "m.h5", force=True)
    with load_model(tmp_path / "m.h5") as model:
        assert model.config["cell_size"] == 2000


@pytest.mark.usefixtures("small")
def test_a_run_has_larger_cells_where_rows_have_little_noise(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In all that make cells alike; not where a size or another effort is asked for, nor beyond a coarse cell."""
    monkeypatch.setattr(svm, "LARGE", 300)
    rng = np.random.default_rng(0)
    X = rng.uniform(-1.0, 1.0, (1200, 2)).astype(np.float32)
    write(tmp_path / "quiet", X, np.where(X[:, 0] > 0.0, 1.0, -1.0))
    write(tmp_path / "noisy", X, np.where((X[:, 0] > 0.0) == (rng.random(1200) < 0.8), 1.0, -1.0))

    def size(rows: str, *options: Any) -> int:
        invoke("train", "--force", "-q", "-j", 1, "-g", 1, "-C", "1,10", *options, tmp_path / rows, tmp_path / "m.h5")
        with load_model(tmp_path / "m.h5") as model:
            return int(model.config["cell_size"])

    assert (size("quiet"), size("noisy")) == (40, 20)
    assert (size("quiet", "--metric", "none"), size("quiet", "-c", 25), size("quiet", "--coarse-size", 30)) == (
        20,
        25,
        30,
    )
    assert size("quiet", "--effort", "high") == TrainingConfig(effort="high").for_rows(1200).cell_size
    invoke("partition", "--force", "-q", "-j", 1, tmp_path / "quiet", tmp_path / "cells.h5")
    assert load_partition(tmp_path / "cells.h5").config["cell_size"] == 40
    assert size("quiet", "--partition-file", tmp_path / "cells.h5") == 40
