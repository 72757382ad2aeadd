"""The experiment on novelties: its rows, a run of each method, and its page."""

from __future__ import annotations

import lzma
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from localsvm.data.writers.libsvm import write
from reproduce import novelties
from reproduce.novelties import Detection, Rows, page


def put(folder: Path, name: str) -> None:
    """Write both parts of a set of three classes: 60, 40 and 20 rows, of which the last are far away."""
    rng = np.random.default_rng(0)
    y = np.repeat([1, 2, 3], [60, 40, 20])
    for part in ("train", "test"):
        X = rng.standard_normal((120, 2)) + np.where(y == 3, 9.0, 0.0)[:, None]
        write(folder / "plain", X.astype(np.float32), y)
        with lzma.open(folder / f"{name}.{part}.libsvm.xz", "wb") as file:
            file.write((folder / "plain").read_bytes())


def test_rows_are_those_of_the_largest_class_or_of_all_but_the_smallest(tmp_path: Path) -> None:
    put(tmp_path, "three")
    one, but_one = Rows.of(tmp_path, "three", 1000, 0), Rows.of(tmp_path, "three but one", 50, 0)
    assert len(one.X) == 60 and one.normal.sum() == 60
    assert len(but_one.X) == 50 and but_one.normal.sum() == 100 and np.abs(but_one.X).max() < 6.0


@pytest.mark.whole
def test_each_method_gives_values_and_answers(tmp_path: Path) -> None:
    put(tmp_path, "three")
    options = SimpleNamespace(data=tmp_path, quick=True)
    missing = [("three but one", method, 0) for method in novelties.METHODS]
    runs = list(novelties.measure(missing, [], options))
    assert [run.method for run in runs] == list(novelties.METHODS)
    for run in runs:
        assert run.rows == (100, 100, 20) and run.auc > 99.0 and run.found == 100.0 and run.mistaken < 30.0


def test_the_page_has_means_and_the_best_in_bold() -> None:
    runs = [
        Detection("magic", "localsvm", 0, (10, 20, 30), 80.0, 5.0, 50.0, 2.0),
        Detection("magic", "localsvm", 1, (10, 20, 30), 82.0, 6.0, 51.0, 2.0),
        Detection("magic", "OneClassSVM", 0, (10, 20, 30), 70.0, 4.0, 40.0, 1.0),
    ]
    lines = page(runs, SimpleNamespace(quick=False)).splitlines()
    assert "| magic | 10 / 20 / 30 | **81.00** | 70.00 |" in lines
    assert "| magic | 5.5 | 4.0 |" in lines and "| magic | 50.5 | 40.0 |" in lines
