"""Training on a text in parts gives the model of a run in one process, bit for bit."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from parts_of_text import Parts

from localsvm.data.synthetic import banana
from localsvm.data.writers.libsvm import write
from localsvm.engines import base, spark, text_parts
from localsvm.engines.spark import Spark
from localsvm.errors import DataError, LocalSVMError, OptionError, RunError
from localsvm.features import ranks
from localsvm.methods.kernel.svm import KernelSVM
from localsvm.partition import two_step
from localsvm.runs.config import TrainingConfig
from localsvm.runs.preparation import draws
from localsvm.runs.summary import Summary
from localsvm.runs.train import train

FAST = KernelSVM(gamma=(0.5, 4.0), cost=(0.3, 3.0))
COARSE = TrainingConfig(FAST, "voronoi", 60, coarse_size=250, metric="none")


def manifest(path: Path) -> bytes:
    with h5py.File(path) as file:
        return bytes(file.attrs["manifest"])


def plain(path: Path, n: int = 700) -> None:
    write(path, *banana(n, np.random.default_rng(0)))


def train_text(text: Any, config: TrainingConfig, output: Path, **extra: Any) -> Summary:
    return train(Spark(text, zero_based=config.zero_based, shifts=config.shifts), config, output, **extra)


def test_small_blocks_and_no_part_of_a_cell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plain(tmp_path / "rows")
    train_text(Parts(tmp_path / "rows", [10, 20]), COARSE, tmp_path / "one.h5")
    monkeypatch.setattr(spark, "HELD_BYTES", 1)
    train_text(Parts(tmp_path / "rows", list(range(0, 700, 50)), 7), COARSE, tmp_path / "two.h5")
    assert manifest(tmp_path / "one.h5") == manifest(tmp_path / "two.h5")


class Stopped(Exception):
    """Ends a run in the middle."""


def test_a_resumed_run_gives_the_same_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plain(tmp_path / "rows")
    text, asked, trained = Parts(tmp_path / "rows", [200]), [], spark._trained

    def stopping(wanted: Any, parts: Any) -> Any:
        if len(asked) == 2:
            raise Stopped
        asked.append(wanted[1])
        return trained(wanted, parts)

    train_text(text, COARSE, tmp_path / "one.h5")
    with monkeypatch.context() as patch:
        patch.setattr(spark, "_trained", stopping)
        with pytest.raises(Stopped):
            train_text(text, COARSE, tmp_path / "two.h5")
    with pytest.raises(RunError, match="an interrupted run left"):
        train_text(text, COARSE, tmp_path / "two.h5")
    with pytest.raises(LocalSVMError, match="--seed was 0, is 1"):
        train_text(text, replace(COARSE, seed=1), tmp_path / "two.h5", resume=True)
    done: list[int] = []
    monkeypatch.setattr(spark, "_trained", lambda wanted, parts: done.append(wanted[1]) or trained(wanted, parts))
    train_text(Parts(tmp_path / "rows", [5, 90]), COARSE, tmp_path / "two.h5", resume=True)
    assert asked and not set(asked) & set(done)
    assert manifest(tmp_path / "one.h5") == manifest(tmp_path / "two.h5")
    (tmp_path / "rows").write_text((tmp_path / "rows").read_text().replace("1:", "1:1", 1))
    assert not list(tmp_path.glob("*.journal"))


def test_a_journal_of_other_rows_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plain(tmp_path / "rows")
    lines = (tmp_path / "rows").read_text().splitlines()
    lines[3], lines[4] = lines[4], lines[3]  # the same sums of columns
    (tmp_path / "other").write_text("\n".join(lines) + "\n")
    stopped, trained = iter([False, True]), spark._trained

    def stopping(wanted: Any, parts: Any) -> Any:
        if next(stopped):
            raise Stopped
        return trained(wanted, parts)

    with monkeypatch.context() as patch:
        patch.setattr(spark, "_trained", stopping)
        with pytest.raises(Stopped):
            train_text(Parts(tmp_path / "rows", []), COARSE, tmp_path / "m.h5")
    with pytest.raises(LocalSVMError, match="the content of the data"):
        train_text(Parts(tmp_path / "other", []), COARSE, tmp_path / "m.h5", resume=True)


def test_a_mistake_is_told_with_its_line(tmp_path: Path) -> None:
    plain(tmp_path / "rows")
    lines = (tmp_path / "rows").read_text().splitlines()
    lines[611] = "1 1:x"
    (tmp_path / "rows").write_text("\n".join(lines) + "\n")
    with pytest.raises(DataError, match=r"rows:612:\d+: "):
        train_text(Parts(tmp_path / "rows", [300, 500]), COARSE, tmp_path / "m.h5")
    for nothing, message in (("\n\n", "only blank lines"), ("", "the file is empty")):
        (tmp_path / "rows").write_text(nothing)
        with pytest.raises(DataError, match=message):
            train_text(Parts(tmp_path / "rows", [1]), COARSE, tmp_path / "m.h5")
    (tmp_path / "rows").write_text("1 1:1\n1 1:2\n")
    with pytest.raises(DataError, match="at least two classes"):
        train_text(Parts(tmp_path / "rows", [1]), COARSE, tmp_path / "m.h5")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"metric": "rank:3"}, "only 2 features"),
    ],
)
def test_what_cannot_be_done_in_parts_is_refused(options: dict[str, Any], message: str, tmp_path: Path) -> None:
    plain(tmp_path / "rows", 20)
    with pytest.raises(OptionError, match=message):
        train_text(Parts(tmp_path / "rows", []), replace(COARSE, **options), tmp_path / "m.h5")


def test_memory_of_the_driver_does_not_grow_with_the_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Parts send the driver samples of a fixed number of rows, to sketch cells, and to learn metric and ranks from."""
    monkeypatch.setattr(two_step, "SAMPLE_ROWS", 100)
    monkeypatch.setattr(draws, "MOST_LEARN", 60)
    monkeypatch.setattr(ranks, "SAMPLE", 80)
    monkeypatch.setattr(base, "BLOCK_VALUES", 20)
    plain(tmp_path / "rows", 3000)
    text, config = Parts(tmp_path / "rows", [1000, 2000]), replace(COARSE, metric="auto", coarse_size=1000)
    sent: list[list[Any]] = []
    each = text.each

    def kept(work: Any) -> list[Any]:
        sent.append(each(work))
        return sent[-1]

    monkeypatch.setattr(text, "each", kept)
    train_text(text, config, tmp_path / "m.h5")
    _, parts, *_ = sent  # the first pass counts
    nodes = [values for reduced in parts for values in reduced.nodes.values()]
    drawn = [sum(len(part.y) for values in nodes for part in values[i]) for i in (3, 4, 5)]  # behind three sums
    loose = sum(len(block.y) for reduced in parts for block in reduced.ends)
    assert all(0 < rows + loose < bound for rows, bound in zip(drawn, (200, 120, 160), strict=True))
    assert loose <= 2 * len(parts) * 30
    with h5py.File(tmp_path / "m.h5") as model:
        assert "fresh" not in model.get("metric", ())


def test_machines_of_another_simd_level_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plain(tmp_path / "rows", 50)
    with monkeypatch.context() as patch:
        patch.setattr(text_parts, "simd_level", lambda: 0)
        patch.setattr(spark, "simd_level", lambda: 1)
        with pytest.raises(RunError, match="SIMD level baseline, this machine at avx2"):
            train_text(Parts(tmp_path / "rows", []), COARSE, tmp_path / "m.h5")
