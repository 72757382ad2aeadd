"""The figures of the L3-SVM paper, on sets of a few rows: what is measured, kept, not repeated, drawn and written."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from shelf import put

from harness.datasets import examples
from reproduce import l3_figures
from reproduce import l3_landmarks as landmarks
from reproduce import l3_regions as regions
from reproduce import l3_small as small
from reproduce.l3_measurement import Measurement

pytestmark = pytest.mark.whole  # each takes seconds


def shelf(folder: Path, name: str, rows: int, columns: int, classes: int) -> None:
    """NAME.train.libsvm.xz and NAME.test.libsvm.xz in a folder, the first column constant."""
    rng = np.random.default_rng(columns)
    for part in ("train", "test"):
        y = np.arange(rows) % classes
        X = rng.standard_normal((rows, columns)) + 2 * y[:, None]
        X[:, 0] = 1
        put(folder, name, part, X, y)


def run(monkeypatch: pytest.MonkeyPatch, data: Path, *options: str) -> list[dict[str, Any]]:
    """The log after a call of the script."""
    out = data / "out"
    monkeypatch.setattr(sys, "argv", ["reproduce/l3_figures.py", str(data), "--quick", "--out", str(out), *options])
    l3_figures.main()
    return [json.loads(line) for line in (out / "figures.jsonl").read_text().splitlines()]


def test_small_sets(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    shelf(tmp_path, "heart", 20, 3, 2)
    monkeypatch.setattr(small, "QUICK_SETS", ("heart",))
    monkeypatch.setattr(small, "LANDMARKS", {"heart": (1, 2)})
    monkeypatch.setattr(small, "COSTS", (0.1, 1.0))
    log = run(monkeypatch, tmp_path, "--figures", "3")
    assert [line["clusters"] for line in log] == [1, 2]
    assert np.shape(log[0]["figures"]["outer"]) == np.shape(log[0]["figures"]["inner"]) == (small.FOLDS, 2)
    assert np.mean(log[0]["figures"]["outer"]) > 80
    assert (tmp_path / "out" / small.PICTURE).stat().st_size > 0
    page = (tmp_path / "out" / "figures.md").read_text()
    assert "| K | L = 1 | L = 2 | best over L | L by inner selection |" in page
    assert run(monkeypatch, tmp_path, "--figures", "3") == log


def test_constant_features_are_dropped(tmp_path: Path) -> None:
    shelf(tmp_path, "heart", 20, 3, 2)
    X, y = small.varying(tmp_path, "heart")
    assert (X.shape, y.shape) == ((40, 2), (40,))
    np.testing.assert_array_equal(X[:20], examples(tmp_path, "heart", "train").X[:, 1:])


def test_the_two_readings_of_the_best_landmarks() -> None:
    figures = {"outer": [[90.0, 80.0], [60.0, 80.0]], "inner": [[70.0, 60.0], [50.0, 40.0]]}
    runs = [Measurement(3, "heart", "random", 1, 0, figures)]
    assert small.best(runs).tolist() == [80.0]
    assert small.selected(runs).tolist() == [75.0]


def test_choosing_landmarks(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    shelf(tmp_path, "mnist", 90, 6, 3)
    monkeypatch.setattr(landmarks, "QUICK_LANDMARKS", (2, 6))
    monkeypatch.setattr(landmarks, "QUICK_CLUSTERS", 3)
    log = run(monkeypatch, tmp_path, "--figures", "4")
    assert [line["variant"] for line in log] == ["random 2", "pca 2", "random 6", "pca 6"]
    assert all(line["figures"]["cost"] in landmarks.COSTS and line["figures"]["seconds"] >= 0 for line in log)
    assert log[-1]["figures"]["accuracy"] > 70
    assert (tmp_path / "out" / landmarks.PICTURE).exists()
    assert run(monkeypatch, tmp_path, "--figures", "4") == log


def test_regions(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    models = {
        title: ("L3SVMClassifier", {"clusters": 4.0, "landmarks_count": 2.0, "cost": [0.1, 1.0]})
        for title in regions.MODELS
    }
    monkeypatch.setattr(regions, "MODELS", models)
    monkeypatch.setattr(regions, "SIDE", 20)
    log = run(monkeypatch, tmp_path, "--figures", "1")
    assert [line["variant"] for line in log] == list(models)
    assert log[0]["figures"]["accuracy"] > 90
    assert 0 < log[0]["figures"]["support_vectors"] < 200
    assert (tmp_path / "out" / "xor.png").exists()
    assert run(monkeypatch, tmp_path, "--figures", "1") == log
