"""The table of the MLLKM paper on a set of a few rows: all maps, kept and not repeated."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy import stats
from shelf import draw

from reproduce import mllkm
from reproduce.mllkm_page import MAPS, PAPER, VARIANTS, WIDER, Split, overlapping_t_test, scalings

pytestmark = pytest.mark.whole  # each takes seconds


def test_all_maps_have_a_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    draw(tmp_path, "heart", lambda X: np.where(X[:, 0] + X[:, 1] ** 2 > 0.5, 2.0, 1.0))
    monkeypatch.setattr(mllkm, "SPLITS", 2)
    monkeypatch.setattr(mllkm, "COST", 1.0)
    monkeypatch.setattr(mllkm, "COSTS", (0.1, 1.0))
    out = tmp_path / "out"
    monkeypatch.setattr(sys, "argv", ["x", str(tmp_path), "--out", str(out), "--sets", "heart"])
    mllkm.main()
    log = (out / "table.jsonl").read_text()
    assert log.count("\n") == 2 * (len(PAPER["heart"]) + len(VARIANTS))
    lines = [line.split("|") for line in (out / "table.md").read_text().splitlines() if line.startswith("| heart")]
    accuracy, size, scalings, others, gammas = lines[:8], lines[8:16], lines[16:20], lines[20:22], lines[22:]
    assert [line[2].strip() for line in accuracy] == [line[2].strip() for line in size] == list(PAPER["heart"])
    assert [line[2].strip() for line in gammas] == [line[2].strip() for line in scalings] == list(MAPS)
    for line, kernels in zip(others, scalings[2:], strict=True):
        assert line[2] == kernels[2] and line[3].split(",")[0].strip() == kernels[4].strip() and "-" not in line
    for line, there in zip(scalings, accuracy, strict=False):
        assert line[3] == there[3] and float(line[5].split()[0]) > 60 and line[7] == there[4]
    for line, paper in zip(accuracy, PAPER["heart"].values(), strict=True):
        assert float(line[3].split()[0]) > 60 and float(line[4].split()[0]) == paper.accuracy
    for line, kernels, distribution in zip(size, log.splitlines(), gammas, strict=False):
        assert float(line[8]) <= 1.0 and json.loads(kernels)["kernels"] == sum(json.loads(kernels)["gammas"])
        assert sum(map(float, distribution[3:-1])) == pytest.approx(float(line[3].split()[0]), abs=0.6)
    mllkm.main()
    assert (out / "table.jsonl").read_text() == log


def test_the_page_says_which_maps_are_far_from_the_paper() -> None:
    paper = PAPER["sonar"]["square"]
    far, few = paper.accuracy + 2.0 * paper.deviation, int(0.25 * paper.kernels)
    runs = [
        Split("sonar", "square", split, paper.accuracy, 20, 18, 1, 0.01, 1.0, 1.0, 1, [20]) for split in range(2)
    ] + [Split("sonar", "square" + WIDER, 0, far, 20, few, 1, 0.01, 1.0, 1.0, 1, [20])]
    *_, near, other = scalings(runs, [("sonar", "square"), ("sonar", "linear")])  # which was not run
    one = "accuracy within one of the paper's deviations in 1 of 1; kernels within a factor of 2 in 1 of 1"
    assert near == f"- In [0, 1]: {one}."
    assert "deviations in 0 of 1 (not sonar square, by +2.0)" in other and "in 0 of 1 (not sonar square, 0.22)" in other


def test_scales_are_those_of_the_training_rows() -> None:
    X, seen = np.asarray([[0.0], [4.0], [8.0]]), np.asarray([0, 1])
    assert mllkm.scaled("heart", X, seen).ravel().tolist() == [0.0, 1.0, 2.0]
    assert mllkm.scaled("heart", X, seen, True).ravel().tolist() == [-1.0, 1.0, 3.0]
    assert mllkm.scaled("ionosphere", X, seen, True).ravel().tolist() == [0.0, 4.0, 8.0]


def test_splits_are_stratified() -> None:
    y = np.repeat([1.0, -1.0], 50)
    seen, out = mllkm.divided(y, 3)
    assert len(seen) == 70 and len(out) == 30 and not set(seen) & set(out)
    assert y[out].sum() == 0.0


def test_the_t_test_knows_that_splits_overlap() -> None:
    differences = np.random.default_rng(0).normal(1.0, 1.0, 10)
    plain = stats.ttest_1samp(differences, 0.0)
    t = plain.statistic * np.sqrt(0.1 / (0.1 + 0.3 / 0.7))
    assert overlapping_t_test(differences) == pytest.approx(2 * stats.t.sf(t, 9))
    assert overlapping_t_test(np.zeros(10)) == 1.0
