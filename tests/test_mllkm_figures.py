"""Figures of the MLLKM paper and the tables beside them are measured, drawn and written on a set of a few rows."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from shelf import draw

from reproduce import mllkm_figures
from reproduce.mllkm_figures import ALL_MAPS, COMPARED

pytestmark = pytest.mark.whole  # each takes seconds


def test_all_is_measured_and_drawn(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    draw(tmp_path, "heart", lambda X: np.where(X[:, 0] + X[:, 1] ** 2 > 0.5, 2.0, 1.0))
    small = {
        "BANK_SPLITS": 2,
        "COST": 1.0,
        "ROWS": 60,
        "FIGURE_COST": 10.0,
        "ADMITTED": (1, 8),
        "ADMITTED_ROWS": 50,
        "PIXELS": 9,
    }
    for name, value in (small | {"ADMITTED_SETS": ("heart",), "GAMMAS": "0.1:10:3"}).items():
        monkeypatch.setattr(mllkm_figures, name, value)
    out = tmp_path / "out"
    monkeypatch.setattr(sys, "argv", ["x", str(tmp_path), "--out", str(out), "--sets", "heart"])
    mllkm_figures.main()
    for picture in (mllkm_figures.CLOUD_PICTURE, mllkm_figures.MODELS_PICTURE):
        assert (out / picture).read_bytes().startswith(b"\x89PNG")
        assert f"({picture})" in (out / "figures.md").read_text()
    lines = [line.split("|")[1:-1] for line in (out / "figures.md").read_text().splitlines() if line.startswith("| ")]
    figure, bank, admit = (
        [line for line in lines if line[0].strip() in names] for names in (ALL_MAPS, ("heart",), ("1", "8"))
    )
    assert len(figure) == len(ALL_MAPS) and all(0 < float(line[1]) < 50 for line in figure)
    assert len(bank) == len(COMPARED) and all(float(line[2].split()[0]) > 60 for line in bank)
    assert all(float(line[-1]) in (0.1, 1.0, 10.0, 0.55, 5.5) for line in bank)
    assert len(admit) == 2 and admit[0][1] != admit[1][1]
