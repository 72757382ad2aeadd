"""The page of MLLKM's online forms, from sets of a few rows: all forms, kept and not repeated."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import bench_mllkm_online
import numpy as np
import pytest
from bench_mllkm_online import FORMS, FULL, KERNELS, WHOLE
from shelf import draw, within


def test_all_forms_have_a_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    draw(tmp_path, "ijcnn1", lambda X: np.where(X[:, 0] * X[:, 1] > 0, 1.0, -1.0), train=150, test=100)

    def measured(name: str, arguments: list[str]) -> tuple[Any, dict[str, float]]:
        report, spent = within(name, arguments)
        return report, spent | {"peak": 2.5e7}

    monkeypatch.setattr(bench_mllkm_online, "lsvm", measured)
    monkeypatch.setattr(bench_mllkm_online, "ROWS", {KERNELS: 800, FULL: 1200})
    fewer = {FULL: (WHOLE, ["--online", "full", "--kept-rows", "60"])}
    monkeypatch.setattr(bench_mllkm_online, "FORMS", FORMS | fewer)
    out = tmp_path / "out"
    monkeypatch.setattr(sys, "argv", ["x", str(tmp_path), "--quick", "--out", str(out)])
    bench_mllkm_online.main()
    log, text = (out / "online.jsonl").read_text(), (out / "online.md").read_text()
    lines = [[cell.strip() for cell in line.split("|")] for line in text.splitlines() if line.startswith("| ijcnn1")]
    assert [line[2] for line in lines] == [
        "`-P none`",
        "`-P none --online kernels`",
        "`-P none`",
        "`--online full --kept-rows 60`",
    ]
    assert all(float(line[3]) > 70 and 0 <= float(line[4]) < 1 and line[5:7] == ["1", "25"] for line in lines)
    assert "## `--online kernels`, 80 rows" in text and "## `--online full`, 120 rows" in text
    bench_mllkm_online.main()
    assert (out / "online.jsonl").read_text() == log
