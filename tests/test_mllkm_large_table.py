"""The page of MLLKM on larger sets, from sets of a few rows: all methods, kept and not repeated."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from shelf import draw, within

from harness import commands
from harness.datasets import Files
from localsvm.data.readers.libsvm import read
from localsvm.data.writers.libsvm import write
from reproduce import mllkm_large
from reproduce.mllkm_large import METHODS, Fit

pytestmark = pytest.mark.whole  # each takes seconds


def test_all_methods_have_a_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    draw(tmp_path, "magic", lambda X: np.where(X[:, 0] * X[:, 1] > 0, 1.0, -1.0), train=120, test=100)
    small = {
        "llsvm": ["-K", "4,8"],
        "l3": ["-K", "4", "-L", "5,20"],
        "mllkm kmeans": ["-K", "8", "-C", "1"],
        "rbf": ["-C", "10"],
    }
    given = {method: [*words, *small.get(method, [])] for method, words in METHODS.items()}
    monkeypatch.setattr(mllkm_large, "METHODS", given)
    monkeypatch.setattr(mllkm_large, "LIMITS", {"magic": (100,)})
    monkeypatch.setattr(mllkm_large, "SELECTION_ROWS", 80)
    monkeypatch.setattr(commands, "lsvm", within)
    monkeypatch.setattr(sys, "argv", ["x", str(tmp_path), "--quick", "--out", str(tmp_path / "out")])
    mllkm_large.main()
    out = tmp_path / "out"
    log = (out / "large.jsonl").read_text()
    page = (out / "large.md").read_text()
    lines = [[cell.strip() for cell in line.split("|")] for line in page.splitlines() if line.startswith("| ")][1:]
    assert [line[1] for line in lines] == list(METHODS)
    accuracy = {line[1]: float(line[2].split()[0]) for line in lines}
    assert accuracy["linear"] < 70 < min(accuracy["rbf"], accuracy["mllkm rows"])
    assert all(float(line[5]) > 1 for line in lines)
    assert "## magic, 100 training rows, 100 test rows" in page
    mllkm_large.main()
    assert (out / "large.jsonl").read_text() == log


def test_what_was_not_run_is_a_stroke() -> None:
    run = Fit("ijcnn1", "linear", 100_000, 49_990, 92.1, 1, 1.04, 0.5, 12_340, 91_701, "-m linear")
    page = mllkm_large.page([run], None)
    assert "| linear | 92.10 (1 not converged) | 1.04 | 0.5 | 12.3 |" in page
    assert "| rbf | - | - | - | - |" in page and "## ijcnn1, 49 990 training rows, 91 701 test rows" in page
    assert "## covtype" not in page


def test_parts_are_random_rows(tmp_path: Path) -> None:
    files = Files(tmp_path)
    write(files.train, np.arange(1, 31, dtype=np.float32)[:, None], np.ones(30))
    assert files.part(files.train, 30) == files.train
    values = read(files.part(files.train, 10)).X.ravel()
    assert len(set(values)) == 10 and list(values) != list(range(1, 11)) and set(values) <= set(range(1, 31))
