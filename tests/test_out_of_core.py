"""Runs with --out-of-core keep rows in scratch files, and give the bits of a run in memory."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from scipy import sparse

from localsvm.data.blocks import scratch
from localsvm.data.blocks.dataset import as_examples, is_dense, rows_of
from localsvm.data.blocks.scratch import ScratchRows, check_room
from localsvm.data.readers.libsvm import read
from localsvm.data.readers.weights import read_weights
from localsvm.engines import base, disk
from localsvm.engines.disk import Disk
from localsvm.engines.memory import Memory
from localsvm.errors import DataError, OptionError, RunError
from localsvm.features import ranks
from localsvm.features.scaling import MODES
from localsvm.memory import PROCESS_BYTES, Budget
from localsvm.methods.kernel.svm import KernelSVM
from localsvm.methods.linear.linear import LinearSVM
from localsvm.naming import on_command_line
from localsvm.partition import two_step
from localsvm.runs.cells.schedule import Resources
from localsvm.runs.config import TrainingConfig
from localsvm.runs.cross_validate import cross_validate
from localsvm.runs.partition import partition_only
from localsvm.runs.preparation.demand import with_remedy
from localsvm.runs.preparation.engine import engine_for, needs_disk
from localsvm.runs.preparation.given import read_given
from localsvm.runs.train import train

FAST = KernelSVM(gamma=(0.5, 4.0), cost=(0.3, 3.0))
EITHER = KernelSVM(cost=(0.3, 3.0))  # of either distance, as no gamma is given
CELLS = TrainingConfig(FAST, "voronoi", 30, metric="none", coarse_size=150)
ROWS = 700


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Make blocks and samples small, so that few rows are many."""
    monkeypatch.setattr(base, "BLOCK_VALUES", 200)
    monkeypatch.setattr(disk, "WRITTEN", 150)
    monkeypatch.setattr(two_step, "SAMPLE_ROWS", 300)
    monkeypatch.setattr(ranks, "SAMPLE", 300)
    (tmp_path / "scratch").mkdir()
    monkeypatch.setattr(scratch.tempfile, "tempdir", str(tmp_path / "scratch"))


def text(path: Path, kind: str) -> Path:
    """File of rows of two overlapping classes: dense, sparse, with columns that have no value, or far from 0."""
    rng = np.random.default_rng(1)
    y = rng.integers(0, 2, ROWS)
    columns = 1300 if kind in ("sparse", "gaps") else 4
    X = np.zeros((ROWS, columns))
    used = np.arange(0, columns, 21 if kind == "gaps" else 1)[:60] if columns > 4 else np.arange(4)
    X[:, used] = rng.standard_normal((ROWS, len(used))) + y[:, None] * (1 if columns > 4 else 2)
    if columns > 4:
        X[:, used] *= rng.random((ROWS, len(used))) < 0.2
        X[0, -1] = kind == "sparse"
    if kind == "far":
        X[:, 1] += 1e9
        X[:, 3] = 3e9 + 1  # constant
    X[: ROWS // 10] = X[0]  # more often than half a cell
    lines = (" ".join(f"{j + 1}:{x[j]:.11g}" for j in np.flatnonzero(x)) for x in X)
    path.write_text("".join(f"{label} {line}\n" for label, line in zip(y, lines, strict=True)))
    return path


def manifest(path: Path) -> bytes:
    with h5py.File(path) as file:
        return bytes(file.attrs["manifest"])


def in_memory(file: Path, config: TrainingConfig, weights: Path | None = None) -> Memory:
    data = read(file, zero_based=config.zero_based, shifts=config.shifts)
    data.weight = None if weights is None else read_weights(weights, len(data.y))
    return Memory(data)


def on_disk(file: Path, config: TrainingConfig, weights: Path | None = None) -> Disk:
    return Disk(file, zero_based=config.zero_based, shifts=config.shifts, weights=weights)


def both(tmp_path: Path, kind: str, config: TrainingConfig, weights: Path | None = None, **extra: Any) -> None:
    """Train in memory and out of core, and compare."""
    file = text(tmp_path / "rows.txt", kind)
    train(in_memory(file, config, weights), config, tmp_path / "memory.h5")
    train(on_disk(file, config, weights), config, tmp_path / "disk.h5", **extra)
    assert manifest(tmp_path / "disk.h5") == manifest(tmp_path / "memory.h5")
    assert os.listdir(tmp_path / "scratch") == []


@pytest.mark.fast(3)
@pytest.mark.parametrize("coarse", [None, 150])
@pytest.mark.parametrize("partition", ["voronoi", "kmeans", "chunks", "none"])
@pytest.mark.parametrize("kind", ["dense", "sparse", "gaps", "far"])
def test_the_model_is_that_of_a_run_in_memory(kind: str, partition: str, coarse: int | None, tmp_path: Path) -> None:
    both(tmp_path, kind, replace(CELLS, partition=partition, coarse_size=coarse))


@pytest.mark.fast(1)
@pytest.mark.parametrize("kind", ["dense", "sparse"])
@pytest.mark.parametrize("scale", MODES)
def test_every_scaling_is_the_same(scale: str, kind: str, tmp_path: Path) -> None:
    both(tmp_path, kind, replace(CELLS, scale=scale, method=LinearSVM(cost=(1.0,))))


@pytest.mark.fast(1)
@pytest.mark.parametrize(
    ("options", "weighted"),  # every other one with weights
    [
        ({"metric": "auto"}, False),
        ({"metric": "diag", "probability": True}, True),
        ({"metric": "full"}, False),
        ({"metric": "rank:2"}, True),
        ({"metric": "nca"}, False),
        ({"views": "ranks"}, True),
        ({"views": "ranks", "metric": "diag", "probability": True}, False),
        ({"metric": "auto", "method": EITHER}, True),
        ({"repeats": 2, "probability": True}, False),
        ({"repeats": 2, "coarse_size": 150, "metric": "diag"}, True),
        ({"select": "refit", "balanced": True}, False),
    ],
    ids=str,
)
def test_options_mean_the_same(options: dict[str, Any], weighted: bool, tmp_path: Path) -> None:
    weights = tmp_path / "weights.txt"
    weights.write_text("".join(f"{1 + i % 3}\n" for i in range(ROWS)))
    both(tmp_path, "dense", replace(CELLS, **options), weights if weighted else None, resources=Resources(jobs=2))


@pytest.mark.whole
@pytest.mark.parametrize("kind", ["dense", "sparse", "gaps", "far"])
@pytest.mark.parametrize("options", [{}, {"metric": "auto"}, {"repeats": 2, "coarse_size": 150}], ids=str)
def test_rows_of_weight_0_are_left_out_alike(options: dict[str, Any], kind: str, tmp_path: Path) -> None:
    weights = tmp_path / "weights.txt"
    weights.write_text("".join(f"{i % 4}\n" for i in range(ROWS)))
    both(tmp_path, kind, replace(CELLS, **options), weights)


@pytest.mark.fast(1)
@pytest.mark.parametrize("kind", ["dense", "gaps"])
@pytest.mark.parametrize("metric", ["diag", "rank:2"])
@pytest.mark.parametrize("narrow", [False, True])
def test_a_given_metric_is_the_same(narrow: bool, metric: str, kind: str, tmp_path: Path) -> None:
    """Metrics learned from all columns, or from fewer or others than the rows have, give the same model."""
    file, other = text(tmp_path / "rows.txt", kind), tmp_path / "other.txt"
    rows = file.read_text().splitlines()
    last = max(int(pair.partition(":")[0]) for row in rows for pair in row.split()[1:])
    swap = {last: last + 6} if narrow else {}

    def moved(pair: str) -> str:
        column, _, value = pair.partition(":")
        return f"{swap.get(int(column), column)}:{value}" if value else pair  # a label

    other.write_text("\n".join(" ".join(map(moved, row.split())) for row in rows))
    partition_only(read(other, shifts=True), config := replace(CELLS, metric=metric), tmp_path / "cells.h5")
    given = read_given(tmp_path / "cells.h5")
    fixed = given.fix(config)
    for name, engine in (("one", in_memory(file, fixed)), ("two", on_disk(file, fixed))):
        train(engine, fixed, tmp_path / f"{name}.h5", given=given)
    assert manifest(tmp_path / "one.h5") == manifest(tmp_path / "two.h5")


@pytest.mark.fast(1)
@pytest.mark.parametrize("kind", ["dense", "sparse"])
@pytest.mark.parametrize("options", [{"metric": "diag"}, {"views": "ranks"}, {"coarse_size": 150}], ids=str)
def test_cells_and_tables_are_the_same(options: dict[str, Any], kind: str, tmp_path: Path) -> None:
    """Cells of lsvm-partition and tables of lsvm-cv are those of a run in memory."""
    file, config = text(tmp_path / "rows.txt", kind), replace(CELLS, **options)
    for name, asked in (("one", False), ("two", True)):
        partition_only(engine_for(file, config, asked, str), config, tmp_path / f"{name}.h5")
    assert manifest(tmp_path / "one.h5") == manifest(tmp_path / "two.h5")
    one, two = (cross_validate(engine_for(file, config, asked, str), config) for asked in (False, True))
    assert one.points == two.points and one.error == two.error


def test_a_partition_file_serves_both(tmp_path: Path) -> None:
    file = text(tmp_path / "rows.txt", "dense")
    partition_only(read(file, shifts=True), CELLS, tmp_path / "cells.h5")
    for name, engine in (("one", in_memory(file, CELLS)), ("two", on_disk(file, CELLS))):
        train(engine, CELLS, tmp_path / f"{name}.h5", partition_file=tmp_path / "cells.h5")
    assert manifest(tmp_path / "one.h5") == manifest(tmp_path / "two.h5")


@pytest.mark.parametrize("thin", [False, True])
def test_rows_in_scratch_files_are_read_and_put_in_order(thin: bool, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    D = (rng.standard_normal((500, 30)) * (rng.random((500, 30)) < 0.2)).astype(np.float32)
    X = as_examples(sparse.csr_array(D)) if thin else D
    rows = ScratchRows(str(tmp_path), 30, not thin)
    for first in range(0, 500, 77):
        rows.append(rows_of(X, np.arange(first, min(500, first + 77))))
    order = rng.permutation(500)
    placed = ScratchRows(str(tmp_path), 30, not thin, np.diff(rows.pointers)[order] if thin else None)
    for first in (450, 0, 13):
        last = {450: 500, 0: 13, 13: 450}[first]
        placed.put(first, rows_of(X, order[first:last]))

    def dense(part: Any) -> np.ndarray:
        assert is_dense(part) != thin
        return np.asarray(part.toarray() if thin else part)

    for first, last in ((0, 500), (0, 0), (3, 4), (70, 160), (499, 500)):
        np.testing.assert_array_equal(dense(rows.between(first, last)), D[first:last])
        np.testing.assert_array_equal(dense(placed.between(first, last)), D[order[first:last]])


def test_a_folder_without_room_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(RunError, match=r"are free; free some space, or name another folder \(TMPDIR\)"):
        check_room(str(tmp_path), 1 << 60)
    with pytest.raises(RunError, match="No such file"):
        check_room(str(tmp_path / "none"), 1)
    monkeypatch.setattr(scratch.tempfile, "tempdir", str(tmp_path / "none"))
    with pytest.raises(RunError, match="TMPDIR"):
        on_disk(text(tmp_path / "rows.txt", "dense"), CELLS).head()
    rows = ScratchRows(str(tmp_path), 3, True)
    monkeypatch.setattr(scratch.os, "pwrite", lambda *_: (_ for _ in ()).throw(OSError(28, "No space left on device")))
    with pytest.raises(RunError, match="no scratch file there: No space left on device; free some space"):
        rows.append(np.zeros((2, 3), np.float32))


def test_what_cannot_be_read_twice_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for name in ("-", tmp_path / "pipe"):
        with pytest.raises(OptionError, match="cannot from a pipe"):
            on_disk(name, CELLS)
    with pytest.raises(DataError, match="no such file; check the name"):
        on_disk(tmp_path / "none", CELLS).head()
    with pytest.raises(DataError, match="this is a directory"):
        on_disk(tmp_path, CELLS).head()


def test_it_is_chosen_where_the_memory_is_too_small_for_cells_alone(tmp_path: Path) -> None:
    file = text(tmp_path / "rows.txt", "dense")
    small, large = Budget(PROCESS_BYTES + 100 * ROWS), Budget(PROCESS_BYTES + (1 << 20))
    assert needs_disk(file, CELLS, small, 1) and not needs_disk(file, CELLS, large, 1)
    whole = replace(CELLS, partition="none", coarse_size=None)
    assert not needs_disk(file, whole, small, 1) and needs_disk(file, replace(whole, coarse_size=60), small, 1)
    assert not needs_disk("-", CELLS, small, 1)


def advice(config: TrainingConfig, file: Any, budget: Budget) -> str:
    return on_command_line(with_remedy(budget, config, file).remedy)


def test_it_is_advised_where_it_helps(tmp_path: Path) -> None:
    file, least = text(tmp_path / "rows.txt", "dense"), Budget(PROCESS_BYTES + 100 * ROWS)
    whole = replace(CELLS, partition="none", coarse_size=None)
    assert advice(CELLS, file, least).endswith("in scratch files (--out-of-core)")
    assert advice(replace(whole, coarse_size=60), file, least).endswith("in scratch files (--out-of-core)")
    assert "(-P voronoi --out-of-core); linear methods" in advice(whole, file, least)
    for name in ("-", "<stdin>", "/dev/null"):
        assert advice(CELLS, name, least).endswith("or write the rows to a file, for --out-of-core")
    assert advice(CELLS, file, Budget(PROCESS_BYTES)) == "give more --memory"
