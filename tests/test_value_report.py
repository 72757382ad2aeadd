"""The report on predicted values: its numbers against scikit-learn and numpy, few and many rows, its pictures."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn import metrics

from localsvm.cli import score_report, value_report
from localsvm.runs.predict import Predicted
from localsvm.runs.prediction import value_report as reporting
from localsvm.runs.prediction.value_report import SHARES, ValueReport
from localsvm.targets.base import ValueRange
from localsvm.targets.losses import Loss
from localsvm.targets.regression import Regression

RANGE = ValueRange(100.0, 30.0, 0.0, 200.0)
LEVELS = (0.1, 0.5, 0.9)


def target(*losses: Loss) -> Regression:
    return Regression(losses, RANGE)


QUANTILES = target(*(Loss("quantile", level) for level in LEVELS))
SQUARES = target(Loss("least-squares"))


def rows(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Values around answers, with a deviation that grows with these; and answers of three levels."""
    rng = np.random.default_rng(seed)
    f = rng.normal(100.0, 30.0, n)
    size = 1.0 + np.abs(f) / 20.0
    return f + size * rng.standard_normal(n), f[:, None] + size[:, None] * np.asarray([-1.28, 0.0, 1.28])


def added(report: ValueReport, y: np.ndarray, labels: np.ndarray, ends: np.ndarray | None = None) -> ValueReport:
    """The report with these rows, in blocks."""
    for first in range(0, len(y), 300):
        some = slice(first, first + 300)
        report.add(Predicted(labels[some], np.empty(0), y[some], intervals=None if ends is None else ends[some]))
    return report


def test_scores_are_those_of_scikit_learn() -> None:
    """Rows of a table that have no value do not count."""
    y, answers = rows(1000)
    report = added(ValueReport(QUANTILES), np.append(y, np.nan), np.vstack([answers, answers[:1]])).as_dict()
    assert report["rows"] == report["drawn_rows"] == 1000 and report["coverage"] is None
    for k, (level, found) in enumerate(zip(LEVELS, report["answers"], strict=True)):
        f = answers[:, k]
        known = {
            "level": level,
            "mean_squared_error": metrics.mean_squared_error(y, f),
            "root_mean_squared_error": metrics.root_mean_squared_error(y, f),
            "mean_absolute_error": metrics.mean_absolute_error(y, f),
            "mean_pinball_loss": metrics.mean_pinball_loss(y, f, alpha=level),
            "mean_residual": (y - f).mean(),
            "r2": metrics.r2_score(y, f),
            "squared_correlation": np.corrcoef(y, f)[0, 1] ** 2,
            "below": (y <= f).mean(),
        }
        assert found == pytest.approx(known, rel=1e-9)


def test_bins_have_equal_counts_and_the_quantiles_of_their_residuals() -> None:
    y, answers = rows(1000)
    ends = answers[:, [0, 2]]
    report = added(ValueReport(QUANTILES, 0.8), y, answers, ends)
    bins, f = report.bins(), answers[:, 1]
    order = np.argsort(f)
    assert len(bins) == 15 and sum(each["rows"] for each in bins) == 1000
    assert {each["rows"] for each in bins} <= {66, 67}
    first = 0
    for each in bins:
        some = order[first : first + each["rows"]]
        first += each["rows"]
        assert each["prediction"] == pytest.approx(f[some].mean())
        assert each["residual_quantiles"] == pytest.approx(np.quantile(y[some] - f[some], SHARES))
        assert each["below"] == pytest.approx((y[some, None] <= answers[some]).mean(axis=0))
        inside = (ends[some, 0] <= y[some]) & (y[some] <= ends[some, 1])
        assert each["covered"] == pytest.approx(inside.mean())
        assert each["width"] == pytest.approx(np.diff(ends[some]).mean())
    covered = np.mean((ends[:, 0] <= y) & (y <= ends[:, 1]))
    known = {"asked": 0.8, "covered": covered, "mean_width": np.diff(ends).mean()}
    assert report.as_dict()["coverage"] == pytest.approx(known)


def test_expectiles_share_distances() -> None:
    """At the expectile itself the share is its level: tau E(y - t)_+ = (1 - tau) E(t - y)_+."""
    y, level = rows(2000)[0], 0.3
    constant = Loss("expectile", level).constant(y, np.ones(2000))
    report = added(ValueReport(target(Loss("expectile", level))), y, np.full(2000, constant))
    assert report.as_dict()["answers"][0]["below"] == pytest.approx(level, abs=1e-6)
    (alone,) = report.bins()  # one prediction is one bin
    assert alone["rows"] == 2000 and alone["below"] == pytest.approx([level], abs=1e-6)


def test_many_rows_are_drawn_and_all_are_scored(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows in the order of their values are drawn evenly, whatever the blocks are."""
    monkeypatch.setattr(reporting, "DRAWN", 500)
    y = np.linspace(0.0, 200.0, 5000)
    report = added(ValueReport(SQUARES), y, y - 1.0)
    assert report.as_dict()["answers"][0]["mean_squared_error"] == pytest.approx(1.0)
    kept, answers, _ = report.drawn()
    assert len(kept) == 500 and len(np.unique(kept)) == 500 and sum(map(len, report._kept)) <= 1000 + 300
    np.testing.assert_allclose(answers[:, 0], kept - 1.0)
    assert np.histogram(kept, 5, (0.0, 200.0))[0] == pytest.approx(100, abs=35)
    whole = ValueReport(SQUARES)
    whole.add(Predicted(y - 1.0, np.empty(0), y))
    np.testing.assert_array_equal(np.sort(whole.drawn()[0]), np.sort(kept))


def few(n: int) -> tuple[np.ndarray, np.ndarray]:
    y, answers = rows(n)
    return y, answers[:, 1]


CASES = {
    "one row": few(1),
    "few rows": few(5),
    "many rows": few(3000),
    "one prediction": (rows(100)[0], np.full(100, 100.0)),
    "one place": (np.full(50, 7.0), np.full(50, 7.0)),
    "far away": (np.append(rows(100)[0], 1e300), np.full(101, 200.0)),
}


@pytest.mark.parametrize("name", CASES)
def test_every_report_is_drawn(name: str, tmp_path: Path) -> None:
    y, f = CASES[name]
    report = added(ValueReport(SQUARES), y, f)
    pictures = value_report.pictures(report)
    score_report.write(str(tmp_path), report, pictures, False)
    assert {path.name for path in tmp_path.iterdir()} == {"report.json", "predicted-observed.png", "residuals.png"}
    found = json.loads((tmp_path / "report.json").read_text())
    assert found["rows"] == len(y) and (found["answers"][0]["mean_squared_error"] is None) == (name == "far away")


def test_pictures_show_the_rows_and_the_bins(figures: list[Any], tmp_path: Path) -> None:
    y, answers = rows(400)
    report = added(ValueReport(QUANTILES, 0.8), y, answers, answers[:, [0, 2]])
    score_report.write(str(tmp_path), report, value_report.pictures(report), False)
    observed, residuals, reliability = figures
    np.testing.assert_array_equal(np.sort(observed.axes[0].collections[0].get_offsets()[:, 1]), np.sort(y))
    assert observed.axes[0].get_title().startswith("RMSE ") and "400 rows" in observed.axes[0].get_title()
    bins = report.bins()
    lines = {line.get_label(): line for line in residuals.axes[0].lines}
    assert lines["median"].get_ydata().tolist() == [each["residual_quantiles"][2] for each in bins]
    assert residuals.axes[0].get_xlabel() == "predicted value at level 0.5"
    shares, widths = reliability.axes
    drawn = [line.get_ydata() for line in shares.lines if line.get_marker() == "o"]
    assert [float(ys[0]) for ys in drawn] == bins[0]["below"]
    assert widths.lines[0].get_ydata().tolist() == [each["width"] for each in bins]
    names = [text.get_text() for text in reliability.legends[0].get_texts()]
    assert names[0].startswith("level 0.1: ") and names[3].startswith("interval of 0.8: ")
