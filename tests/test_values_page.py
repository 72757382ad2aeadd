"""The experiment on values in tables: its runs and page, and how peers learn."""

from __future__ import annotations

import json
import lzma
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose
from shelf import within
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import Ridge
from sklearn.metrics import mean_pinball_loss
from sklearn.model_selection import GridSearchCV, PredefinedSplit

from reproduce import tabular_peers, value_peers, values, values_page
from reproduce.values import Fit

pd = pytest.importorskip("pandas")


def fit(name: str, method: str, rmse: float, seed: int = 0, **pairs: tuple[float, float]) -> Fit:
    rows = (800, 200) if name != "large" else (9000, 1000)
    named = {"CatBoost 0" if other == "catboost" else "localsvm 0": pair for other, pair in pairs.items()}
    return Fit(name, method, seed, "ok", "", rows, {"rmse": rmse, "train_cpu": 3 * rmse, "pairs": named})


def put(folder: Path, name: str, n: int, seed: int = 0) -> None:
    """Write both parts of a table of a number with gaps, a category and noise; and what is known of it."""
    rng = np.random.default_rng(seed)
    for part in ("train", "test"):
        x, kind, z = rng.standard_normal(n), rng.choice(["a", "b"], n), rng.standard_normal(n)
        y = 2 * x + np.where(kind == "a", 3, 0) + 0.1 * rng.standard_normal(n)
        rows = (f"{'?' if i == 5 else x[i]},{kind[i]},{z[i]},{y[i]},{i},\n" for i in range(n))
        with lzma.open(folder / f"{name}.{part}.csv.xz", "wt") as file:
            file.write("x,kind,z,y,id,empty\n" + "".join(rows))
    path = folder / "columns.json"
    known = json.loads(path.read_text()) if path.exists() else {"car": {"task": "classification"}}
    path.write_text(json.dumps(known | {name: {"target": "y", "task": "regression", "ignore": ["id"]}}))


def test_a_draw_is_within_a_standard_error_of_paired_rows() -> None:
    runs = [
        fit("large", "localsvm", 3.0, catboost=(1.0, 0.2)),  # of an earlier run of CatBoost: not taken
        fit("large", "CatBoost", 2.99),
        fit("won", "localsvm", 1.0, catboost=(-3.0, 2.9)),
        fit("won", "CatBoost", 2.0),
        fit("won", "SVR", 0.5),  # the smallest error, but no booster
        fit("even", "localsvm", 2.0),
        fit("even", "CatBoost", 1.0, localsvm=(-3.0, 3.1)),
        fit("lost", "localsvm", 2.0, catboost=(3.0, 2.0)),
        fit("lost", "localsvm", 4.0, 1, catboost=(15.0, 6.0)),
        fit("lost", "CatBoost", 1.0),
        fit("lost", "LightGBM", 1.5),
    ]
    page = values_page.page([*reversed(runs)], None)
    assert "- wins: 1: won (1 and 2, CatBoost)." in page
    assert "- draws: 2: even (2 and 1, CatBoost), large (3 and 2.99, CatBoost)." in page
    assert "- losses: 1: lost (3 and 1, CatBoost)." in page
    assert "Without paired rows, a draw within 1 % of the RMSE: large." in page


def test_the_page_has_errors_times_and_reasons() -> None:
    runs = [
        fit("large", "LightGBM chosen", 1.0),
        fit("small", "localsvm", 2.0),
        fit("small", "localsvm", 4.0, 1),
        fit("small", "LightGBM", 3.5),
        fit("small", "LightGBM chosen", 6.0),
        fit("small", "CatBoost chosen", 12.0),
        *(Fit(name, "SVR", 0, "timeout", "over 600 s", (800, 200)) for name in ("small", "other")),
    ]
    page = values_page.page(runs, None).splitlines()
    rows = [line for line in page if line.startswith(("| small", "| large"))]
    assert "| set | training / test rows | localsvm | LightGBM | CatBoost chosen |" in page
    assert rows[:2] == [
        "| small | 800 / 200 | **3** (1) | 3.5 / 6 | 12 |",
        "| large | 9 000 / 1 000 | - | - / **1** | - |",
    ]
    assert rows[2] == "| small | 800 / 200 | 9 | 10.5 / 18 | 36 |"
    assert next(line for line in page if "medians over the sets" in line).endswith(
        "localsvm 0.5 (1), LightGBM 0.58 (1), CatBoost chosen 2 (1)."
    )
    assert "- SVR, over 600 s: small, other." in page


def test_quantiles_have_a_section() -> None:
    figures = [{"pinball": losses, "inside": 0.88, "train_cpu": 4.0} for losses in ([0.1, 0.5, 0.3], [0.2, 0.4, 0.3])]
    runs = [
        Fit("pol", method, 0, "ok", "", (800, 200), each)
        for method, each in zip(values_page.QUANTILES, figures, strict=True)
    ]
    page = values_page.page(runs, None).splitlines()
    assert "| pol | localsvm | **0.1** | 0.5 | **0.3** | 88.0 | 4 |" in page
    assert "| pol | LightGBM | 0.2 | **0.4** | **0.3** | 88.0 | 4 |" in page


def test_sets_of_later_rows_have_a_section() -> None:
    runs = [
        Fit("air", "localsvm blocks", 0, "ok", "", (800, 200), {"rmse": 21.29, "train_cpu": 30.0}),
        Fit("air", "localsvm", 0, "ok", "", (800, 200), {"rmse": 60.0, "train_cpu": 90.0}),
    ]
    page = values_page.page(runs, None)
    assert "## Later rows" in page and "- air: RMSE 21.29 in 30 s." in page
    assert "## Later rows" not in values_page.page(runs[1:], None)


def test_rows_are_put_in_the_order_of_columns(tmp_path: Path) -> None:
    path = tmp_path / "air.train.csv"
    path.write_text('year,text,hour\n2014,"b,1",9\n2013,a,10\n2013,c,9\n')
    assert values.rewritten(path, ("year", "hour")) == 3
    assert path.read_text() == 'year,text,hour\n2013,c,9\n2013,a,10\n2014,"b,1",9\n'
    assert values.TIMED["beijing-air"] == ("year", "month", "day", "hour")


def test_small_sets_come_first_and_methods_have_their_sets(tmp_path: Path) -> None:
    for name, rows in (("middle", 30), ("abalone", 20), ("big", 40)):
        put(tmp_path, name, rows)
    methods = ["localsvm", "localsvm high", "LightGBM quantiles", "SVR"]
    options = SimpleNamespace(data=tmp_path, sets=None, seeds=2, methods=methods)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(values.LARGEST, "SVR", 30)
        assert values.cases(options) == [
            *(("abalone", method, 0) for method in methods),
            *(("middle", method, 0) for method in ("localsvm", "localsvm high", "SVR")),
            *(("big", method, 0) for method in ("localsvm", "localsvm high")),
            *((name, "localsvm", 1) for name in ("abalone", "middle", "big")),
        ]


def in_this_process(command: list[str], **_: Any) -> dict[str, Any]:
    """The record of a peer's process, made in this one."""
    name, seed, train, test, target, ignored, _, out = command[2:]
    if name == "LightGBM":
        return {"status": "failed", "message": "lightgbm is not installed (`make peers`)"}
    figures, answers = value_peers.figures(name, int(seed), [train, test], target, json.loads(ignored))
    np.save(out, answers)
    return {"status": "ok", "figures": figures}


@pytest.mark.filterwarnings("ignore")  # of the peers
def test_runs_are_kept_compared_and_not_repeated(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    put(tmp_path, "abalone", 60)
    calls: list[str] = []

    def ours(name: str, arguments: list[str], limit: Any) -> tuple[Any, dict[str, float]]:
        calls.append(name)
        more = ["--metric", "none", "-g", "0.1", "-C", "1"] if name == "train" else []
        return within(name, [*more, *arguments])

    monkeypatch.setattr(values, "lsvm", ours)
    monkeypatch.setattr(values, "run_contestant", in_this_process)
    methods = "localsvm,localsvm quantiles,LightGBM,random forest"
    given = [str(tmp_path), "--quick", "--methods", methods, "--out", str(tmp_path), "--kept", str(tmp_path / "kept")]
    monkeypatch.setattr(sys, "argv", ["values.py", *given])
    values.main()
    runs = {run["method"]: run for run in map(json.loads, (tmp_path / "values.jsonl").read_text().splitlines())}
    assert runs["LightGBM"]["status"] == "failed" and runs["localsvm"]["rows"] == [60, 60]
    assert len(runs["localsvm quantiles"]["figures"]["pinball"]) == 3
    with lzma.open(tmp_path / "abalone.test.csv.xz", "rt") as file:
        y = pd.read_csv(file)["y"].to_numpy()
    mine, theirs = (np.load(tmp_path / "kept/abalone" / f"{method} 0.npy") for method in ("localsvm", "random forest"))
    assert_allclose(runs["localsvm"]["figures"]["rmse"] ** 2, np.mean((mine - y) ** 2))
    more = (theirs - y) ** 2 - (mine - y) ** 2
    assert_allclose(runs["random forest"]["figures"]["pairs"]["localsvm 0"], (more.mean(), more.std(ddof=1) / 60**0.5))
    assert "- LightGBM, lightgbm is not installed (`make peers`): abalone." in (tmp_path / "values.md").read_text()
    values.main()
    assert calls == ["train", "predict"] * 2


@pytest.mark.filterwarnings("ignore")  # of the peers
@pytest.mark.fast(5)
@pytest.mark.parametrize("peer", ["HistGradientBoosting", "random forest", "SVR", "KernelRidge", "Gaussian process"])
def test_peers_learn_from_numbers_gaps_and_categories(
    peer: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(value_peers, "SEARCH_ROWS", 60)
    put(tmp_path, "made", 120)
    with values.texts(tmp_path, "made") as paths:
        figures, answers = value_peers.figures(peer, 0, [*map(str, paths)], "y", ["id"])
        y = values.targets(paths[1], "y")
    assert answers.shape == (120, 1) and figures["train_cpu"] >= 0
    assert values.scores(answers[:, 0], y)["rmse"] < 0.4 * y.std()


def test_encoded_rows_have_mean_0_and_a_column_a_level() -> None:
    X = pd.DataFrame({"n": [1.0, np.nan, 3.0, 8.0], "kind": np.array(["a", "b", "a", ""], object)})
    encoder = value_peers.encoder(X).fit(X)
    filled = np.array([1.0, 3.0, 3.0, 8.0])  # the gap is the median
    expected = np.column_stack([(filled - filled.mean()) / filled.std(), np.eye(3)[[1, 2, 1, 0]]])
    assert_allclose(encoder.transform(X), expected)
    new = pd.DataFrame({"n": [3.75], "kind": np.array(["never seen"], object)})
    assert_allclose(encoder.transform(new), [[0.0, 0.0, 0.0, 0.0]], atol=1e-12)


def test_settings_are_chosen_on_a_quarter_by_the_loss_of_values() -> None:
    rng = np.random.default_rng(3)
    X = rng.standard_normal((80, 2))
    y = np.sin(2 * X[:, 0]) + 0.3 * rng.standard_normal(80)
    settings = tabular_peers.products(gamma=(0.01, 0.5, 20.0), alpha=(0.01, 1.0))
    peer = tabular_peers.Peer(lambda seed, **chosen: KernelRidge(kernel="rbf", **chosen), settings)
    peer = replace(peer, loss=value_peers.squared)
    fold = np.full(80, -1)
    fold[tabular_peers.quarter(y, 0)[1]] = 0
    grid = [{name: [value] for name, value in each.items()} for each in settings]
    search = GridSearchCV(KernelRidge(kernel="rbf"), grid, cv=PredefinedSplit(fold), scoring="neg_mean_squared_error")
    assert tabular_peers.learned(peer, X, y, 0)[1] == search.fit(X, y).best_params_


def test_trees_are_as_many_as_the_held_out_rows_want() -> None:
    made = []

    def make(seed: int, n_estimators: int, **settings: Any) -> Any:
        made.append((n_estimators, settings))
        return Ridge(alpha=settings["num_leaves"])

    def stop(model: Any, X: Any, y: Any, held_out: Any) -> int:
        model.fit(X, y)
        return 17

    peer = value_peers.boosted(make, "n_estimators", stop, num_leaves=(1, 1000))
    X = np.arange(40.0)[:, None]
    _, chosen = tabular_peers.learned(peer, X, X[:, 0], 0)
    assert chosen == {"learning_rate": 0.05, "n_estimators": 17, "num_leaves": 1}
    assert [trees for trees, _ in made] == [2000, 2000, 17]


def test_pinball_losses_are_those_of_scikit_learn() -> None:
    rng = np.random.default_rng(0)
    y, answers = rng.standard_normal(50), np.sort(rng.standard_normal((50, 3)))
    found = values.quantile_scores(answers, y)
    expected = [mean_pinball_loss(y, answers[:, i], alpha=level) for i, level in enumerate((0.05, 0.5, 0.95))]
    assert_allclose(found["pinball"], expected)
    model = SimpleNamespace(predict=partial(np.take, answers[:, 2]))
    assert_allclose(value_peers.at_level(0.95)(model, np.arange(50), y), expected[2])
    assert found["inside"] == np.mean([a < b <= c for (a, _, c), b in zip(answers, y, strict=True)])
