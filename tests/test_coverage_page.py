"""The experiment on intervals and sets of labels: its page, its runs, and what its peers answer."""

from __future__ import annotations

import json
import lzma
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose
from shelf import draw, within

from localsvm.targets.conformal import Coverage
from reproduce import coverage, coverage_page, coverage_peers
from reproduce.coverage_page import page
from reproduce.coverage_peers import CLASSES, VALUES, Quarters, names
from reproduce.values import Fit

FULL = SimpleNamespace(quick=False)


def fit(name: str, method: str, *pairs: tuple[float, float], deviation: float | None = 2.0, **more: Any) -> Fit:
    levels = coverage_page.PROMISES[VALUES if deviation else CLASSES]
    figures = {"train_cpu": 3.0, "predict_cpu": 0.5} | ({"deviation": deviation} if deviation else {})
    for level, pair in zip(levels, pairs, strict=True):
        figures |= zip(names(level), pair, strict=True)
    return Fit(name, method, **{"seed": 0, "status": "ok", "rows": (800, 200), "figures": figures} | more)


def test_the_page_says_first_how_many_sets_keep_the_promise() -> None:
    runs = [
        fit("a", "localsvm", (0.88, 1.0)),
        fit("a", "localsvm", (0.90, 1.0), seed=1),
        fit("b", "localsvm", (0.87, 1.0)),
        fit("beijing-air", "localsvm", (0.5, 1.0)),  # promises nothing
        fit("letter", "localsvm", (0.95, 1.002), (0.985, 1.2), deviation=None),
        fit("adult", "LightGBM", (0.925, 1.3), (0.97, 1.9), deviation=None),
    ]
    lines = page(runs, FULL).splitlines()
    verdicts = [line for line in lines if line.startswith("**")]
    assert verdicts == [
        "**localsvm** is within one point of the promised 90 % on 1 of 3 sets."
        " It covers more on letter (95.0 % with 1.00 labels a set). It covers less on b (87.0 %).",
        "**LightGBM** is within one point of the promised 90 % on 0 of 1 sets of classes."
        " It covers more on adult (92.5 %).",
        "**localsvm** is within one point of the promised 99 % on 1 of 1 sets of classes.",
        "**LightGBM** is within one point of the promised 99 % on 0 of 1 sets of classes."
        " It covers less on adult (97.0 %).",
    ]
    assert lines.index(verdicts[0]) < lines.index("## Values")


def test_the_page_has_coverages_widths_and_times() -> None:
    runs = [
        fit("large", "localsvm", (0.9, 1.5), rows=(9000, 1000)),
        fit("small", "LightGBM", (0.7, 1.0)),  # the smallest, but it does not cover
        fit("small", "localsvm", (0.9, 3.0)),
        fit("small", "MAPIE", (0.91, 4.0)),
        fit("letter", "localsvm", (0.9, 1.0), (0.99, 2.0), deviation=None),
        fit("letter", "LightGBM", (0.9, 1.1), (0.99, 1.9), deviation=None),
        Fit("small", "LightGBM blocks", 0, "timeout", "over 600 s", (800, 200)),
    ]
    lines = page(runs, FULL).splitlines()
    assert "| set | training / test rows | localsvm, % | width | LightGBM, % | width | MAPIE, % | width |" in lines
    assert "| small | 800 / 200 | 90.0 | **3** (1.5) | 70.0 | 1 (0.5) | 91.0 | 4 (2) |" in lines
    assert "| large | 9 000 / 1 000 | 90.0 | **1.5** (0.75) | - | - | - | - |" in lines
    assert "| letter | 800 / 200 | 90 % | 90.0 | **1** | 90.0 | 1.1 |" in lines
    assert "| letter | 800 / 200 | 99 % | 99.0 | 2 | 99.0 | **1.9** |" in lines
    assert "| small | 3 / 0.5 | 3 / 0.5 | 3 / 0.5 |" in lines and "| large | 3 / 0.5 | - | - |" in lines
    assert "- LightGBM blocks, over 600 s: small." in lines


def test_later_rows_have_a_paragraph() -> None:
    runs = [fit("beijing-air", "localsvm", (0.801, 1.0)), fit("beijing-air", "localsvm blocks", (0.856, 1.5))]
    text = page(runs, SimpleNamespace(quick=True))
    assert "`lsvm-train` with folds at random covers 80.1 % of the test rows, with a mean width of 1, 0.5 st" in text
    assert "`lsvm-train -v blocks` covers 85.6 % of the test rows, with a mean width of 1.5, 0.75 st" in text
    assert "An eighth of the rows" in text and "## Values" not in text and "**localsvm**" not in text


def put(folder: Path, name: str, n: int, label: Callable[[Any], Any], **known: Any) -> None:
    """Write both parts of a table with hours that go down, a number and a category; and what is known of it."""
    rng = np.random.default_rng(0)
    for part in ("train", "test"):
        x = rng.standard_normal(n)
        rows = (f"1,1,1,{n - i},{x[i]},{'ab'[i % 2]},{value}\n" for i, value in enumerate(label(x)))
        with lzma.open(folder / f"{name}.{part}.csv.xz", "wt") as file:
            file.write("year,month,day,hour,x,kind,y\n" + "".join(rows))
    path = folder / "columns.json"
    before = json.loads(path.read_text()) if path.exists() else {}
    path.write_text(json.dumps(before | {name: {"target": "y", "categorical": ["kind"], "ignore": ["day"]} | known}))


def test_rows_are_put_in_the_order_of_time_and_categories_are_left_out(tmp_path: Path) -> None:
    put(tmp_path, "beijing-air", 40, np.sin)
    put(tmp_path, "adult", 40, lambda x: np.where(x > 0, "u", "v"))
    options = SimpleNamespace(data=tmp_path, libsvm=tmp_path, quick=True)
    with coverage.files("beijing-air", options) as task:
        table = np.genfromtxt(task.paths[0], delimiter=",", names=True, dtype=None, encoding=None)
        y = np.genfromtxt(task.paths[1], delimiter=",", names=True, dtype=None, encoding=None)["y"]
    assert task.kind == VALUES and task.rows == (5, 5) and (np.diff(table["hour"]) > 0).all()
    assert task.deviation == y.std() and task.told == ["--label", "y", "--ignore", "day"]
    with coverage.files("adult", options) as task:
        assert task.kind == CLASSES and task.given["ignore"] == ["day", "kind"] and task.deviation is None
    draw(tmp_path, "letter", lambda X: np.where(X[:, 0] > 0, 3, 7), train=80, test=40)
    with coverage.files("letter", options) as task, np.load(task.given["arrays"]) as arrays:
        assert task.rows == (10, 5) and set(arrays["y"]) <= {0, 1} and len(arrays["X_test"]) == 5


def test_sets_without_files_and_mapie_are_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("bike-hour", "beijing-air"):
        put(tmp_path, name, 8, np.sin)
    monkeypatch.setattr(coverage, "find_spec", lambda name: None)
    options = SimpleNamespace(
        data=tmp_path, libsvm=None, sets=["bike-hour", "letter", "beijing-air"], methods=coverage.METHODS, seeds=2
    )
    plain = ["localsvm", "LightGBM"]
    assert coverage.cases(options) == [
        case
        for seed in (0, 1)
        for case in [
            *(("bike-hour", method, seed) for method in plain),
            *(("beijing-air", m, seed) for method in plain for m in (method, f"{method} blocks")),
        ]
    ]
    assert "left out: letter" in capsys.readouterr().err


def learned(self: Quarters, make: Any) -> Any:
    """What takes the place of LightGBM: trees of scikit-learn with the same loss."""
    from sklearn.ensemble import GradientBoostingRegressor
    from sklearn.tree import DecisionTreeClassifier

    if make.func is coverage_peers.tabular_peers.lightgbm:
        return DecisionTreeClassifier(min_samples_leaf=10).fit(self.X, self.y)
    model = GradientBoostingRegressor(loss="quantile", alpha=make.keywords["alpha"], n_estimators=10)
    return model.fit(self.X, self.y)


def in_this_process(command: list[str], **_: Any) -> dict[str, Any]:
    """The record of a peer's process, made in this one."""
    name, seed, _, given = command[2:]
    return {"status": "ok", "figures": coverage_peers.figures(name, int(seed), json.loads(given))}


def loaded(given: dict[str, Any], loaded: Any = coverage_peers.loaded) -> tuple[Any, ...]:
    """Rows without categories, which trees of scikit-learn do not take."""
    X, y, X_test, y_test = loaded(given)
    drop = [name for name in ("kind",) if hasattr(X, "columns") and name in X.columns]
    return (X.drop(columns=drop), y, X_test.drop(columns=drop), y_test) if drop else (X, y, X_test, y_test)


def test_runs_are_measured_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pytest.importorskip("pandas")
    put(tmp_path, "beijing-air", 130, lambda x: np.sin(x) + 0.1 * np.cos(40 * x))
    put(tmp_path, "adult", 130, lambda x: np.where(x + 0.5 * np.sin(40 * x) > 0, "u", "v"))
    draw(tmp_path, "letter", lambda X: 1 + (X[:, 0] > 0.5) + (X[:, 1] > 0), train=130, test=60)
    calls: list[list[str]] = []

    def ours(name: str, arguments: list[str], limit: Any) -> tuple[Any, dict[str, float]]:
        calls.append([name, *arguments])
        more = ["--metric", "none", "-g", "0.5", "-C", "1"] if name == "train" else []
        return within(name, [*more, *arguments])

    monkeypatch.setattr(coverage, "lsvm", ours)
    monkeypatch.setattr(coverage, "run_contestant", in_this_process)
    monkeypatch.setattr(coverage_peers, "loaded", loaded)
    monkeypatch.setattr(Quarters, "trained", learned)
    for of in (coverage_peers.value_peers, coverage_peers.tabular_peers):
        monkeypatch.setattr(of, "lightgbm", lambda seed, **_: None)
    monkeypatch.setattr(coverage, "find_spec", lambda name: None)
    given = [str(tmp_path), "--libsvm", str(tmp_path), "--sets", "letter,adult,beijing-air", "--out", str(tmp_path)]
    monkeypatch.setattr(sys, "argv", ["coverage.py", *given])
    coverage.main()
    runs = [Fit(**json.loads(line)) for line in (tmp_path / "coverage.jsonl").read_text().splitlines()]
    assert len(runs) == 8 and {run.status for run in runs} == {"ok"}
    for run in runs:
        level = 0.9 if run.name == "beijing-air" else 0.99
        assert run.figures[names(level)[0]] > level - 0.15 and run.figures[names(level)[1]] > 0
    words = [call for call in calls if call[0] == "train"]
    assert len(words) == 4 and all(call[call.index("--coverage") + 1] == "0.9" for call in words)
    assert sum("blocks" in call for call in words) == 1 and len(calls) == 10
    assert "## Later rows: beijing-air" in (tmp_path / "coverage.md").read_text()
    coverage.main()
    assert len(calls) == 10


def test_margins_are_those_of_the_model() -> None:
    scores = np.random.default_rng(1).standard_normal(40)
    for level in (0.5, 0.9, 0.97):
        assert coverage_peers.margin(scores, level) == Coverage.of(scores, level).margin(level)
    assert coverage_peers.margin(scores, 0.99) == np.inf


def quarters(later: bool = False) -> tuple[Any, Any, Quarters]:
    X = np.random.default_rng(0).standard_normal((60, 1))
    y = X[:, 0] + np.random.default_rng(1).standard_normal(60)
    return X, y, Quarters.of(X, y, 0, later)


def test_held_out_rows_are_a_quarter_at_random_or_the_last_one() -> None:
    X, y, rows = quarters(later=True)
    assert rows.X_out.tolist() == X[45:].tolist() and rows.y.tolist() == y[:45].tolist()
    X, y, rows = quarters()
    assert sorted([*rows.y, *rows.y_out]) == sorted(y) and rows.y_out.tolist() not in ([], y[45:].tolist())


def test_intervals_are_moved_quantiles(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y, rows = quarters()

    def model(self: Quarters, make: Any) -> Any:
        end = {0.1: -1.0, 0.9: 1.0}[round(make.keywords["alpha"], 9)]
        return SimpleNamespace(predict=lambda X: X[:, 0] + end)

    monkeypatch.setattr(Quarters, "trained", model)
    (found,) = coverage_peers.quantiles(rows, [0.8])(X)
    scores = np.sort(np.abs(rows.y_out - rows.X_out[:, 0])) - 1
    assert_allclose(found, X + np.array([[-1, 1]]) * (1 + scores[12]))  # ceil(.8 * 16) = 13
    inside = np.abs(y - X[:, 0]) <= 1 + scores[12]
    assert_allclose(coverage_peers.scored(found, y), (inside.mean(), 2 + 2 * scores[12]))


def test_sets_have_the_most_probable_label(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = Quarters(None, None, np.full((9, 1), 0.8), np.array([0] * 7 + [1] * 2), 0)

    def model(self: Quarters, make: Any) -> Any:
        return SimpleNamespace(predict_proba=lambda X: np.hstack([X, 1 - X]))

    monkeypatch.setattr(Quarters, "trained", model)
    X = np.array([[0.9], [0.7], [0.25], [0.5]])
    few, all_labels = coverage_peers.label_sets(rows, [0.7, 0.9])(X)  # the 7th and the 9th score: .2 and .8
    assert few.tolist() == [[True, False], [True, False], [False, True], [True, True]]
    assert all_labels.tolist() == [[True, False], [True, True], [True, True], [True, True]]
    assert coverage_peers.scored(few, np.array([0, 1, 1, 0])) == (0.75, 1.25)


@pytest.mark.filterwarnings("ignore")  # of the peer
def test_mapie_is_asked_for_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("mapie")
    from sklearn.linear_model import LinearRegression, LogisticRegression

    X, y, rows = quarters()
    monkeypatch.setattr(Quarters, "trained", lambda self, make: LinearRegression().fit(self.X, self.y))
    (found,) = coverage_peers.mapie_intervals(rows, [0.8])(X)
    line = LinearRegression().fit(rows.X, rows.y)
    margin = coverage_peers.margin(np.abs(rows.y_out - line.predict(rows.X_out)), 0.8)
    assert_allclose(found, line.predict(X)[:, None] + np.array([[-margin, margin]]))
    rows = Quarters.of(X, (y > 0).astype(int), 0, False)
    monkeypatch.setattr(Quarters, "trained", lambda self, make: LogisticRegression().fit(self.X, self.y))
    ours, theirs = (of(rows, [0.7, 0.9]) for of in (coverage_peers.label_sets, coverage_peers.mapie_sets))
    for mine, its in zip(ours(X), theirs(X), strict=True):
        assert its.dtype == bool and (its <= mine).all() and (mine == its)[its.any(axis=1)].all()
