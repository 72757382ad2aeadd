"""lsvm cv: the grid's table, the best point, the picture."""

from __future__ import annotations

import csv
import io
import json
import sys
from pathlib import Path

import pytest
from command_line import FAST, PLAIN, error, invoke, usage_error
from malformed import MALFORMED

GRID = ("-g", "0.1:10:5", "-C", "0.5:50:4", *PLAIN)


def table(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def test_the_table_has_a_line_a_point(train_file: Path) -> None:
    result = invoke("cv", *GRID, train_file)
    rows = table(result.stdout)
    assert list(rows[0]) == ["cell", "rows", "gamma", "cost", "error", "best"]
    assert len(rows) == 20
    best = [row for row in rows if row["best"] == "1"]
    assert len(best) == 1
    assert float(best[0]["error"]) == min(float(row["error"]) for row in rows)
    chosen = f"-g {float(best[0]['gamma']):.6g} -C {float(best[0]['cost']):.6g}"
    assert chosen in result.stderr and "cross-validated, over 300 rows" in result.stderr


def test_training_chooses_the_best_point(train_file: Path, tmp_path: Path) -> None:
    from localsvm.store.model import load_model

    best = next(row for row in table(invoke("cv", *GRID, train_file).stdout) if row["best"] == "1")
    invoke("train", *GRID, "-q", train_file, tmp_path / "m.h5")
    with load_model(tmp_path / "m.h5") as model:
        assert set(model.column("model_gamma")) == {float(best["gamma"])}
        assert set(model.column("model_cost")) == {float(best["cost"])}


def test_cells_choose_on_their_own(classes_file: Path) -> None:
    result = invoke("cv", *FAST, "-P", "voronoi", "-c", 80, classes_file)
    rows = table(result.stdout)
    cells = {row["cell"] for row in rows}
    assert len(cells) > 2 and len(rows) == 4 * len(cells)
    assert sum(row["best"] == "1" for row in rows) == len(cells)
    assert "chosen" in result.stderr and f"by each of {len(cells)} cells" in result.stderr


def test_the_report(classes_file: Path) -> None:
    report = json.loads(invoke("cv", "--json", "-q", *FAST, classes_file).stdout)
    assert (report["schema_version"], report["command"], report["cells"], report["rows"]) == (1, "cv", 1, 300)
    assert len(report["points"]) == 4
    assert sum(point["best"] for point in report["points"]) == 1
    assert 0 < report["error"] < 0.3 and report["config"]["folds"] == 5


@pytest.mark.fast(1)
@pytest.mark.parametrize(
    ("name", "magic", "options"),
    [("a.png", b"\x89PNG", GRID), ("a.svg", b"<?xml", FAST), ("a.pdf", b"%PDF", ("-g", "1", "-C", "0.1:10:3"))],
)
def test_pictures(name: str, magic: bytes, options: tuple[str, ...], train_file: Path, tmp_path: Path) -> None:
    invoke("cv", "-q", *options, "--plot", tmp_path / name, train_file)
    assert (tmp_path / name).read_bytes().startswith(magic)


def test_pictures_are_not_overwritten(train_file: Path, tmp_path: Path) -> None:
    (tmp_path / "a.png").write_text("precious")
    assert "exists already" in error("cv", "--plot", tmp_path / "a.png", train_file)
    assert (tmp_path / "a.png").read_text() == "precious"


def test_pictures_need_a_known_format_and_matplotlib(
    train_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    message = invoke("cv", "--plot", tmp_path / "a.bmp", train_file, code=2).stderr
    assert "pictures end in .png, .pdf or .svg" in message
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    message = invoke("cv", "--plot", tmp_path / "a.png", train_file, code=2).stderr
    assert message == "error: pictures need matplotlib, which is not installed: pip install 'localsvm[plot]'\n"


def test_malformed_data_and_options(tmp_path: Path, train_file: Path) -> None:
    name, text, message = MALFORMED[0]
    (tmp_path / name).write_bytes(text)
    assert error("cv", tmp_path / name).startswith(f"{tmp_path / name}{message}")
    assert "the cost C is -C" in usage_error("cv", "-c", "0.5", train_file)
