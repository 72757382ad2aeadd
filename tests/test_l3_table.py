"""The table of the L3-SVM paper on a set of a few rows: all methods through the command line, kept and not repeated."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from shelf import draw, within

from harness import commands
from reproduce import l3

pytestmark = pytest.mark.whole  # each takes seconds

METHODS = [name for name in l3.METHODS if name != "l3 chosen"]


def test_all_methods_have_a_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    draw(tmp_path, "svmguide1", lambda X: np.where(X[:, 0] * X[:, 1] > 0, 1.0, 0.0), train=80, test=80, columns=4)
    out = tmp_path / "out"
    given = ["reproduce/l3.py", str(tmp_path), "--quick", "--seeds", "1", "--methods", ",".join(METHODS)]
    monkeypatch.setattr(sys, "argv", [*given, "--out", str(out)])
    monkeypatch.setattr(l3, "CLUSTERS", {"svmguide1": 4})
    whole = l3.options_of
    monkeypatch.setattr(l3, "options_of", lambda *key: [*whole(*key), "-C", "1,10"])  # few costs: seconds
    monkeypatch.setattr(commands, "lsvm", within)
    l3.main()
    log = (out / "table.jsonl").read_text()
    assert log.count("\n") == len(METHODS)
    page = (out / "table.md").read_text()
    lines = [line.split("|") for line in page.splitlines() if "/ 9" in line]
    accuracies = {line[1].strip(): line[2].split()[0] for line in lines}
    assert set(accuracies) == {"linear", "rbf", "csvm", "llsvm", "ml3", "l3"}  # what the paper's table has
    assert float(accuracies["linear"]) < 75 < float(accuracies["rbf"])
    l3.main()
    assert (out / "table.jsonl").read_text() == log
