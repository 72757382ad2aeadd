"""The tables beside boosted trees: their runs, settings and page.

Runs are kept and not repeated, settings are chosen as scikit-learn would, the page says who wins, and a peer that fails
or is too slow is reported.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from shelf import put, within
from sklearn.model_selection import GridSearchCV, PredefinedSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC

from reproduce import tabular, tabular_page, tabular_peers
from reproduce.tabular import Fit, Rows

METHODS = ["localsvm none", "random forest", "LinearSVC chosen"]


def noisy(n: int, seed: int = 0) -> tuple[Any, Any]:
    """Rows of three columns, two classes with some wrong labels."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 3)).astype(np.float32)
    return X, (X[:, 0] + 0.7 * X[:, 1] + 0.6 * rng.standard_normal(n) > 0).astype(np.int64)


def in_this_process(command: list[str], **_: Any) -> dict[str, Any]:
    """The record of a peer's process, made in this one."""
    with np.load(command[4]) as arrays:
        rows = [arrays[part] for part in ("X", "y", "X_test", "y_test")]
    return {"status": "ok", "figures": tabular_peers.figures(command[2], int(command[3]), *rows)}


def test_methods_have_a_line_and_are_not_repeated(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for part, seed in (("train", 0), ("test", 1)):
        X, y = noisy(120, seed)
        put(tmp_path, "svmguide1", part, X, 3.0 * y)
    monkeypatch.setattr(tabular, "lsvm", within)
    monkeypatch.setattr(tabular, "run_contestant", in_this_process)
    out = tmp_path / "out"
    given = ["reproduce/tabular.py", str(tmp_path), "--quick", "--methods", ",".join(METHODS), "--out", str(out)]
    monkeypatch.setattr(sys, "argv", given)
    tabular.main()
    log = (out / "tabular.jsonl").read_text()
    runs = [json.loads(line) for line in log.splitlines()]
    assert [run["method"] for run in runs] == METHODS
    assert all(run["status"] == "ok" and 5 < run["figures"]["error"] < 35 for run in runs)
    row = next(
        line for line in (out / "tabular.md").read_text().splitlines() if line.startswith("| svmguide1 | 120 / 120")
    )
    errors = [cell.strip(" *") for cell in row.split("|")[3:-1]]
    assert errors == [f"{run['figures']['error']:.2f}" for run in runs]
    tabular.main()
    assert (out / "tabular.jsonl").read_text() == log


@pytest.mark.parametrize(("name", "model", "grid"), [
    ("LinearSVC chosen", LinearSVC(random_state=5), {"C": (0.01, 0.1, 1.0, 10.0)}),
    ("SVC chosen", SVC(), {"gamma": tuple(w / 3 for w in (0.25, 1.0, 4.0, 16.0)), "C": (1.0, 10.0, 100.0)}),
])  # fmt: skip
def test_settings_are_chosen_on_a_quarter_of_the_training_rows(name: str, model: Any, grid: dict[str, Any]) -> None:
    X, y = noisy(160)
    fold = np.full(len(y), -1)
    fold[tabular_peers.quarter(y, 5)[1]] = 0
    assert np.sum(fold == 0) == 40
    named = {f"{type(model).__name__.lower()}__{key}": values for key, values in grid.items()}
    search = GridSearchCV(make_pipeline(StandardScaler(), model), named, cv=PredefinedSplit(fold)).fit(X, y)
    best = search.cv_results_["mean_test_score"] == search.best_score_
    allowed = [
        {k.split("__")[1]: v for k, v in p.items()}
        for p, b in zip(search.cv_results_["params"], best, strict=True)
        if b
    ]
    _, chosen = tabular_peers.learned(tabular_peers.PEERS[name], X, y, 5)
    if "width" in chosen:
        chosen = {"gamma": chosen["width"] / 3, "C": chosen["C"]}
    assert chosen in allowed


def test_the_number_of_trees_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    created = []

    class Booster:
        def __init__(self, **settings: Any) -> None:
            created.append(settings)

        def fit(self, X: Any, y: Any) -> Any:
            return self

        def predict(self, X: Any) -> Any:
            return np.zeros((len(X), 1))

    peer = tabular_peers.boosted(lambda seed, **s: Booster(**s), "trees", lambda *_: 17, depth=(4, 6))
    tabular_peers.learned(peer, *noisy(40), 0)
    assert [m["depth"] for m in created] == [4, 6, 4]
    assert [m["trees"] for m in created] == [1000, 1000, 17]


@pytest.mark.parametrize(("name", "labels"), [("covtype", [1, -1, 1, -1]), ("covtype7", [2, 7, 2, 1])])
def test_covtype_has_two_classes_or_seven(tmp_path: Path, name: str, labels: list[int]) -> None:
    for part in ("train", "test"):
        put(tmp_path, "covtype", part, noisy(4)[0], [2, 7, 2, 1])
    with Rows.of(tmp_path, name) as rows:
        assert rows.train[1].tolist() == rows.test[1].tolist() == labels


def fit(name: str, method: str, error: float) -> Fit:
    figures = {"error": error, "train_cpu": 2.0, "predict_cpu": 1.0}
    return Fit(name, method, 0, "ok", rows=(5000, 10_000), figures=figures)


def test_the_page_says_who_wins_and_what_is_missing() -> None:
    runs = [
        fit("magic", "localsvm auto", 12.0), fit("magic", "LightGBM chosen", 12.1), fit("magic", "XGBoost", 14.0),
        fit("letter", "localsvm auto", 2.0), fit("letter", "LightGBM chosen", 5.0),
        fit("satimage", "localsvm auto", 9.0), fit("satimage", "LightGBM", 7.0),
        fit("magic", "localsvm none", 12.2), fit("letter", "localsvm none", 4.0), fit("satimage", "localsvm none", 7.5),
        fit("magic", "localsvm high", 10.0), fit("letter", "localsvm high", 1.9),
        fit("covtype", "localsvm auto", 2.0), fit("covtype", "LightGBM", 9.0),
        Fit("satimage", "xRFM", 0, "failed", "No module named 'xrfm'"),
        Fit("letter", "XGBoost", 0, "timeout", "over 600 s"),
        Fit("covtype", "XGBoost", 0, "not begun", "over 600 s on letter"),
    ]  # fmt: skip
    sets, methods, ours = (
        ["letter", "magic", "usps", "satimage", "covtype"],
        tabular.METHODS,
        tuple(tabular.OURS),
    )
    text = tabular_page.page(runs, None, sets=sets, methods=methods, ours=ours)
    assert "**A peer wins** on 1: satimage (9.00 and 7.00, LightGBM)" in text
    assert "**Even** within a standard error on 1: magic (12.00 and 12.10, LightGBM chosen)" in text
    assert "wins** against every peer that ended in time on 1: letter (2.00 and 5.00, LightGBM chosen)" in text
    assert "was run, on 1: covtype (2.00 and 9.00, LightGBM)" in text and "3 sets. By the figure alone" in text
    assert "- Not run at all, so far: usps, XGBoost chosen" in text
    assert "makes fewer errors on letter (2.00 and 4.00); more errors on satimage (9.00 and 7.50)." in text
    assert "With `--effort high` it wins on 2 (letter, magic) of the 2 sets where that was run." in text
    assert "- XGBoost: over 600 s: letter; not run: satimage; over 600 s on letter: covtype." in text
    assert "- xRFM failed with the message: No module named 'xrfm'" in text


def test_a_peer_that_is_too_slow_is_ended(tmp_path: Path) -> None:
    rows = Rows(tmp_path, noisy(3000), noisy(50))
    outcome = tabular.peer(("any", "SVC chosen", 0), rows, 1)  # its imports alone take about a second
    assert outcome == {"status": "timeout", "message": "over 1 s"}


def test_a_peer_that_the_system_kills_had_too_little_memory(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    killed = {"status": "failed", "message": "ended with exit status -9"}
    monkeypatch.setattr(tabular, "run_contestant", lambda *_, **__: killed)
    outcome = tabular.peer(("any", "xRFM", 0), Rows(tmp_path, noisy(30), noisy(5)), 1)
    assert outcome == {"status": "timeout", "message": "out of memory"}


@pytest.mark.parametrize(("size", "begun"), [((60, 3, 2), False), ((59, 9, 9), True), ((99, 2, 2), True)])
def test_a_peer_that_was_stopped_is_not_begun_on_larger_sets(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, size: tuple[int, ...], begun: bool
) -> None:
    monkeypatch.setattr(tabular, "run_contestant", lambda *_, **__: {"status": "ok"})
    known = [Fit("usps", "xRFM", 0, "timeout", "over 600 s", size=(60, 3, 2)), Fit("usps", "XGBoost", 0, "ok")]
    rows = Rows(tmp_path, noisy(60), noisy(9))
    monkeypatch.setattr(Rows, "size", size)
    outcome = tabular.peer(("magic", "xRFM", 0), rows, 600, known)
    assert outcome == ({"status": "ok"} if begun else {"status": "not begun", "message": "over 600 s on usps"})
    assert tabular.peer(("magic", "XGBoost", 0), rows, 600, known)["status"] == "ok"


def test_the_grid_of_svc_is_not_begun_on_many_rows(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(tabular, "run_contestant", lambda *_, **__: {"status": "ok"})
    monkeypatch.setattr(tabular, "SVC_ROWS", 60)
    key = "magic", "SVC chosen", 0
    assert tabular.peer(key, Rows(tmp_path, noisy(60), noisy(9)), 600) == {"status": "ok"}
    many = {"status": "not begun", "message": "over 60 rows"}
    assert tabular.peer(key, Rows(tmp_path, noisy(61), noisy(9)), 600) == many


def test_a_peer_that_is_absent_is_reported_once_and_tried_again(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in ("svmguide1", "magic"):
        for part in ("train", "test"):
            put(tmp_path, name, part, *noisy(30))
    tried = []

    def absent(command: list[str], **_: Any) -> dict[str, Any]:
        tried.append(command[2])
        return {"status": "failed", "message": "ModuleNotFoundError: No module named 'xrfm'"}

    monkeypatch.setattr(tabular, "run_contestant", absent)
    given = ["reproduce/tabular.py", str(tmp_path), "--sets", "svmguide1,magic", "--seeds", "2", "--methods", "xRFM"]
    monkeypatch.setattr(sys, "argv", [*given, "--out", str(tmp_path / "out")])
    for times in (1, 2):
        tabular.main()
        assert tried == ["xRFM"] * times
    assert "No module named 'xrfm'" in (tmp_path / "out" / "tabular.md").read_text()
