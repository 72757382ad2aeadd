"""Options of methods given as text, and the table of two columns."""

from __future__ import annotations

import sys
from pathlib import Path

import compare_commits
import pytest
from compare_options import changed

from localsvm.methods.locally_linear.csvm import ClusteredSVM
from localsvm.runs.config import TrainingConfig


def test_options_of_the_run_and_of_its_method() -> None:
    config = TrainingConfig()
    for text in ("method=csvm", "common=1,10", "tolerance=0.01", "mean_loss=1", "passes=3", "select=refit", "folds=3"):
        config = changed(config, *text.split("="))
    method = ClusteredSVM(common=(1.0, 10.0), tolerance=0.01, mean_loss=True, passes=3)
    assert config == TrainingConfig(method, select="refit", folds=3)


def test_runs_are_paired(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    old, new = tmp_path / "old", tmp_path / "new"
    old.write_text("a 10 0 5.0 1.0\na 10 1 7.0 1.0\na 10 2 9.0 1.0\nb 20 0 4.0 2.0\nb 20 1 4.0 2.0\n")
    new.write_text("a 10 1 6.0 2.0\na 10 0 5.0 2.0\nb 20 0 4.0 1.0\nb 20 1 5.0 1.0\nc 5 0 1.0 1.0\n")
    monkeypatch.setattr(sys, "argv", ["compare_commits.py", str(old), str(new)])
    compare_commits.main()
    assert capsys.readouterr().out.splitlines()[2:] == [
        "| a | 10 | 2 | 6.000 | 5.500 | -0.500 ± 0.500 | 1, 0 | 2.00 |",
        "| b | 20 | 2 | 4.000 | 4.500 | +0.500 ± 0.500 | 0, 1 | 0.50 |",
        "| all | | | 5.000 | 5.000 | +0.000 ± 0.354 | | 1.00 |",
    ]
