"""The table and the figures of the LSVM-MTL paper on a set of a few rows: measured, kept, not repeated, written."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import chi2, chi2_contingency, ttest_ind
from shelf import draw, within

from harness import commands
from reproduce import mtl, mtl_figures, mtl_page
from reproduce.mtl import METHODS, Fit

pytestmark = pytest.mark.whole  # each takes seconds


@pytest.fixture
def shelf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    draw(tmp_path, "svmguide1", lambda X: np.where(X[:, 0] * X[:, 1] > 0, 1.0, 0.0), train=90, test=90)
    monkeypatch.setattr(commands, "lsvm", within)
    monkeypatch.setattr(mtl, "CLUSTERS", "3")
    monkeypatch.setattr(mtl, "COSTS", "1,100")
    return tmp_path


def test_all_methods_have_a_line(shelf: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = shelf / "out"
    given = ["reproduce/mtl.py", str(shelf), "--quick", "--seeds", "2", "--readings", "chosen", "--out", str(out)]
    monkeypatch.setattr(sys, "argv", given)
    mtl.main()
    log = (out / "table.jsonl").read_text()
    assert log.count("\n") == len(METHODS) + len(mtl.CLUSTERED)  # those without k-means run once
    page = (out / "table.md").read_text()
    cells = [line.split("|") for line in page.splitlines() if (line.startswith("|") and "/ 7" in line) or "/ 8" in line]
    accuracies = {line[1].strip(): float(line[3].split()[0]) for line in cells if line[3].split()[0] != "-"}
    assert set(accuracies) == set(mtl_page.NAMES.values())
    assert accuracies["linear SVM"] < 75 < accuracies["LSVM-MTL"]
    mtl.main()
    assert (out / "table.jsonl").read_text() == log


def test_differences_are_of_means_with_the_p_of_welch_or_of_the_test_rows() -> None:
    def runs(method: str, *accuracies: float) -> list[Fit]:
        return [Fit("letter", method, "chosen", i, a, None, 0, 1.0, 1.0, "") for i, a in enumerate(accuracies)]

    fits = [*runs("mtl", 91.0, 91.2), *runs("csvm", 90.0, 90.2), *runs("kmeans-svm", 94.0)]
    assert mtl_page.entry(mtl_page.difference(fits, "csvm", "letter")) == "**+1.00** (p = 0.02)"
    gain, p = mtl_page.difference(fits, "kmeans-svm", "letter") or (0.0, 0.0)
    right = chi2_contingency([[4555, 445], [4700, 300]], correction=False)[0]  # z squared, of the rows alone
    rows = 2.9**2 / right
    assert gain == pytest.approx(-2.9)
    assert p == pytest.approx(chi2.sf(2.9**2 / (rows + 0.02 * 1.5), 1), rel=0.05)  # as two seeds differ, and one
    assert mtl_page.entry(mtl_page.difference(fits, "csvm", "skin")) == "-"
    verdict = mtl_page.verdict({"a": (1.0, 0.01), "b": (-1.0, 0.01), "c": (-2.0, 0.2), "d": None})
    assert verdict == "significantly better on 1 and worse on 1 of 3 sets"
    a, b = [1.0, 2.5, 2.0], [3.0, 2.0, 4.5, 5.0]
    assert mtl_page.welch(a, b) == pytest.approx(ttest_ind(a, b, equal_var=False).pvalue)


def test_figures(shelf: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = shelf / "out"
    monkeypatch.setattr(mtl_figures, "REPEATS", 1)
    monkeypatch.setattr(mtl_figures, "ROWS", 400)
    monkeypatch.setattr(mtl_figures, "CLUSTERS", (1, 4))
    given = ["reproduce/mtl_figures.py", str(shelf), "--sets", "svmguide1", "--seeds", "1", "--out", str(out)]
    monkeypatch.setattr(sys, "argv", given)
    mtl_figures.main()
    assert (out / "figures.jsonl").read_text().count("\n") == 4 + 4
    page = (out / "figures.md").read_text()
    assert "| svmguide1, LSVM-MTL |" in page and "| LSVM-MTL, K = 10 |" in page
    assert all((out / name).stat().st_size > 0 for name in ("sines.png", "clusters.png"))


def test_shares_without_any_variance_are_equal_or_not() -> None:
    assert mtl_page.by_rows([100.0], [100.0, 100.0], 1000) == 1.0
    assert mtl_page.by_rows([100.0], [0.0], 1000) == 0.0
