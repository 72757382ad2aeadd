"""The table of the MLLKM paper on a set of a few rows: all maps, kept and not repeated."""

from __future__ import annotations

import json
import lzma
import sys
from pathlib import Path

import bench_mllkm
import numpy as np
import pytest
import reproduce_mllkm
from mllkm_page import MAPS, PAPER, overlapping_t_test
from scipy import stats

from localsvm.data.writing import write


def test_all_maps_have_a_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    for part, n in (("train", 70), ("test", 30)):
        X = rng.standard_normal((n, 3))
        with lzma.open(tmp_path / f"heart.{part}.libsvm.xz", "wb") as file:
            write(file, X.astype(np.float32), np.where(X[:, 0] + X[:, 1] ** 2 > 0.5, 2.0, 1.0))
    monkeypatch.setattr(reproduce_mllkm, "SPLITS", 2)
    monkeypatch.setattr(reproduce_mllkm, "COST", 1.0)
    monkeypatch.setattr(reproduce_mllkm, "COSTS", (0.1, 1.0))
    out = tmp_path / "out"
    monkeypatch.setattr(sys, "argv", ["x", str(tmp_path), "--out", str(out), "--sets", "heart"])
    reproduce_mllkm.main()
    log = (out / "table.jsonl").read_text()
    assert log.count("\n") == 2 * len(PAPER["heart"])
    lines = [line.split("|") for line in (out / "table.md").read_text().splitlines() if line.startswith("| heart")]
    accuracy, size, gammas = lines[:8], lines[8:16], lines[16:]
    assert [line[2].strip() for line in accuracy] == [line[2].strip() for line in size] == list(PAPER["heart"])
    assert [line[2].strip() for line in gammas] == list(MAPS)
    for line, paper in zip(accuracy, PAPER["heart"].values(), strict=True):
        assert float(line[3].split()[0]) > 60 and float(line[4].split()[0]) == paper.accuracy
    for line, kernels, distribution in zip(size, log.splitlines(), gammas, strict=False):
        assert float(line[8]) <= 1.0 and json.loads(kernels)["kernels"] == sum(json.loads(kernels)["gammas"])
        assert sum(map(float, distribution[3:-1])) == pytest.approx(float(line[3].split()[0]), abs=0.6)
    reproduce_mllkm.main()
    assert (out / "table.jsonl").read_text() == log


def test_splits_are_stratified() -> None:
    y = np.repeat([1.0, -1.0], 50)
    seen, out = reproduce_mllkm.divided(y, 3)
    assert len(seen) == 70 and len(out) == 30 and not set(seen) & set(out)
    assert y[out].sum() == 0.0


def test_prediction_is_timed_beside_llsvm(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(bench_mllkm, "ROWS", 300)
    monkeypatch.setattr(bench_mllkm, "REPEATS", 1)
    monkeypatch.setattr(sys, "argv", ["x", "--quick", "--out", str(tmp_path)])
    bench_mllkm.main()
    lines = (tmp_path / "prediction.md").read_text().splitlines()
    assert [line.split("|")[1].strip() for line in lines if "." in line and line.startswith("|")] == [
        *bench_mllkm.CASES
    ]


def test_the_t_test_knows_that_splits_overlap() -> None:
    differences = np.random.default_rng(0).normal(1.0, 1.0, 10)
    plain = stats.ttest_1samp(differences, 0.0)
    t = plain.statistic * np.sqrt(0.1 / (0.1 + 0.3 / 0.7))
    assert overlapping_t_test(differences) == pytest.approx(2 * stats.t.sf(t, 9))
    assert overlapping_t_test(np.zeros(10)) == 1.0
