"""Figures of the SVML paper are measured, kept and drawn on a set of a few rows; the search is shown as it is."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from shelf import draw

from localsvm.representations import svm_metric
from reproduce import svml, svml_figures
from reproduce.svml import Set

pytestmark = pytest.mark.whole  # each takes seconds


def test_all_figures_are_drawn_and_kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    draw(tmp_path, "tiny", lambda X: np.where(X[:, 0] + X[:, 1] ** 2 > 0.5, 1.0, -1.0))
    monkeypatch.setitem(svml.SETS, "Credit", Set("tiny", -1))
    monkeypatch.setattr(svml_figures, "SPLITS", 2)
    out = tmp_path / "out"
    monkeypatch.setattr(sys, "argv", ["reproduce/svml_figures.py", str(tmp_path), "--out", str(out)])
    svml_figures.main()
    for picture in svml_figures.PICTURES.values():
        assert (out / picture).read_bytes().startswith(b"\x89PNG")
        assert f"({picture})" in (out / "figures.md").read_text()
    assert "of 30 rows" in (out / "figures.md").read_text()
    log = (out / "figures.jsonl").read_text()
    svml_figures.main()
    assert (out / "figures.jsonl").read_text() == log


def test_the_course_is_that_of_the_search() -> None:
    """The step that the course says is kept has the errors of the map that `learn` gives."""
    X, y = svml.generated(240)
    train, test = svml.divided(X, y, 0)
    course = svml_figures.searched(train, test, 0)
    kept, last = svml_figures.kept_and_last(course["hold-out"], svm_metric.PATIENCE)
    assert 0 < kept < last
    parts = svm_metric.split(train[1], np.random.default_rng(0))
    assert parts is not None
    rows = [svm_metric.ProblemRows(train[0][i], train[1][i], np.ones(len(i))) for i in parts]
    learned = svm_metric.learn(*rows, np.eye(2) / 2, 0.1)
    objective, point = svm_metric.Objective(*rows[:2], np.eye(2) / 2, 0.1), np.append(learned.L, np.log(learned.cost))
    assert objective(point)[0] == pytest.approx(course["loss"][kept])
    assert 100 * objective.error(point, rows[2]) == pytest.approx(course["hold-out"][kept])
    assert 100 * objective.error(point, svm_metric.ProblemRows(*test, np.ones(len(test[1])))) == course["test"][kept]


@pytest.mark.parametrize(("errors", "patience", "expected"), [
    ([3, 2, 2, 2, 1], 2, (1, 3)), ([3, 2, 2, 1], 9, (3, 3)), ([1, 1, 1], 1, (0, 1)),
])  # fmt: skip
def test_a_search_ends_when_it_has_waited(errors: list[float], patience: int, expected: tuple[int, int]) -> None:
    assert svml_figures.kept_and_last(errors, patience) == expected
