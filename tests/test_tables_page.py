"""The experiment on tables as CSV: its page, and how peers get a table."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from reproduce import held_out, table_peers, tables

pd = pytest.importorskip("pandas")


def fit(name: str, method: str, error: float, seed: int = 0, status: str = "ok") -> tables.Fit:
    figures = {"error": error, "train_cpu": 1.5} if status == "ok" else {}
    return tables.Fit(name, method, seed, status, "late" if status != "ok" else "", (800, 200), figures)


def test_the_page_counts_wins_draws_and_losses() -> None:
    runs = [
        *(fit("a", "localsvm", error, seed) for seed, error in enumerate((4.0, 6.0))),
        fit("a", "LightGBM", 12.0),
        fit("a", "LightGBM chosen", 11.0),
        fit("b", "localsvm", 30.0),
        fit("b", "LightGBM chosen", 10.0),
        fit("b", "CatBoost", 0.0, status="timeout"),
        tables.Fit("c", tables.READ, 0, "ok", "", (5, 5), {"train_cpu": 1.0}),
    ]
    page = tables.page(runs, None)
    assert "- wins: 1: a (5.00 and 11.00, LightGBM chosen)." in page and "- draws: 0." in page
    assert "- losses: 1: b (30.00 and 10.00, LightGBM chosen)." in page
    assert "At most .5 points above LightGBM chosen on 1 of 2 sets." in page
    assert "| a | 800 / 200 | **5** | 12 / 11 |" in page
    assert "Described and converted: 1 of 1 sets." in page and "- b, CatBoost: late" in page


def test_columns_are_told_by_their_names(tmp_path: Path) -> None:
    known = {"a": {"target": "y", "task": "classification", "ignore": ["id", ""]}, "v": {"task": "regression"}}
    (tmp_path / "columns.json").write_text(json.dumps(known))
    options = SimpleNamespace(data=tmp_path, sets=None, seeds=2, methods=["localsvm"])
    assert tables.cases(options) == [("v", "read", 0), ("a", "localsvm", 0), ("a", "localsvm", 1)]
    assert tables.told(known["a"]) == ["--label", "y", "--ignore", "id,"]


@pytest.mark.parametrize("peer", ["LightGBM", "CatBoost", "HistGradientBoosting", "random forest"])
def test_peers_get_categories_in_their_own_way(peer: str, tmp_path: Path) -> None:
    for name in ("train", "test"):
        (tmp_path / name).write_text(",y,n,kind\n1,a,?,x\n2,b,2,y\n3,a,3,\n")
    X, y, T, t = table_peers.frames([str(tmp_path / "train"), str(tmp_path / "test")], "y", [""], peer)
    assert list(X.columns) == ["n", "kind"] and y.tolist() == t.tolist() == [0, 1, 0]
    assert np.isnan(X["n"][0]) and X["n"][1] == 2
    kinds = {
        "LightGBM": "category",
        "HistGradientBoosting": "category",
        "CatBoost": "object",
        "random forest": "float64",
    }
    assert str(X["kind"].dtype) == str(T["kind"].dtype) == kinds.get(peer, "category")


def test_rows_are_set_aside_by_groups_or_by_time(tmp_path: Path) -> None:
    import lzma

    text = "patient_nbr,x\n" + "".join(f"p{i // 4},{i}\n" for i in range(40))
    for name in ("diabetes130", "electricity"):
        with lzma.open(tmp_path / f"{name}.csv.xz", "wt") as file:
            file.write(text)
    train, future, rows = held_out.split(tmp_path / "electricity.csv.xz", tmp_path, "electricity", False)
    assert rows == (28, 12) and future.read_text().splitlines()[1].endswith(",28")
    train, future, rows = held_out.split(tmp_path / "diabetes130.csv.xz", tmp_path, "diabetes130", False)
    groups = [{line.split(",")[0] for line in part.read_text().splitlines()[1:]} for part in (train, future)]
    assert rows == (32, 8) and not groups[0] & groups[1]


def test_values_become_classes_in_the_order_of_time() -> None:
    header, rows = ["year", "PM2.5"], [["3", "80"], ["1", "75"], ["2", "NA"], ["0", "76"]]
    assert held_out.classes(header, rows, "PM2.5", 75.0, ("year",), 2) == [["0", "high"], ["1", "low"]]
