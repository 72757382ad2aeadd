"""Rows of a table that take no part are as rows that are not in the file, and files beside a table are as columns."""

from __future__ import annotations

from pathlib import Path

import h5py
import numpy as np
import pytest
from command_line import FAST, error, invoke

TASKS = {"values": ("--loss", "least-squares", "--label", "value"), "classes": ("--label", "kind")}
OTHER = {"values": "kind", "classes": "value"}  # columns that tell the label


def lines_of(seed: int) -> list[list[str]]:
    """Rows of [city, x, value, kind, weight, group]; those of weight 0 have towns, values and a class of their own."""
    rng, lines = np.random.default_rng(seed), []
    for i in range(300):
        city, x, counts = int(rng.integers(20)), float(rng.normal()), rng.random() < 0.6
        value = float(np.sin(city) * 2.0 + x) if counts else 1000.0
        name = f"city {city}" if counts or i % 2 else f"town {i % 3}"
        kind = ("more" if value > 0.0 else "less") if counts else "neither"
        shown = "" if rng.random() < 0.1 else repr(x if counts else x + 50.0)
        lines.append([name, shown, repr(value), kind, str(int(counts) * (1 + i % 2)), f"g{int(rng.integers(30))}"])
    return lines


def written(path: Path, lines: list[list[str]], columns: int = 6) -> Path:
    """A table of the first columns."""
    rows = [["city", "x", "value", "kind", "weight", "group"], *lines]
    path.write_text("".join(",".join(row[:columns]) + "\n" for row in rows))
    return path


def arrays_of(path: Path) -> dict[str, bytes]:
    """All arrays of a model."""
    found: dict[str, bytes] = {}
    with h5py.File(path) as file:
        file.visititems(lambda name, item: found.update({name: item[()].tobytes()} if hasattr(item, "shape") else {}))
    return found


@pytest.mark.parametrize("way", [(), ("--out-of-core",), ("-v", "blocks:3")], ids=["memory", "disk", "blocks"])
@pytest.mark.parametrize("task", TASKS)
def test_a_row_of_weight_0_is_as_one_that_is_not_there(task: str, way: tuple[str, ...], tmp_path: Path) -> None:
    """Neither medians nor levels, their statistics, groups, folds or classes know it."""
    lines = lines_of(3)
    there = [line for line in lines if line[4] != "0"]
    common, blocks = (*FAST, *TASKS[task], *way), "-v" in way
    ignored = OTHER[task] + ",group" * blocks
    common += () if blocks else ("--group-column", "group")
    weighted = *common, "--ignore", ignored, "--weight-column", "weight"
    noted = invoke("train", *weighted, written(tmp_path / "all.csv", lines), tmp_path / "all.h5").stderr
    assert f"{300 - len(there)} of 300 rows have the weight 0 and are left out" in noted
    invoke("train", *weighted, written(tmp_path / "some.csv", there), tmp_path / "some.h5")
    assert arrays_of(tmp_path / "all.h5") == arrays_of(tmp_path / "some.h5")
    (tmp_path / "w.txt").write_text("".join(f"{line[4]}\n" for line in lines))
    beside = *common, "--ignore", f"{ignored},weight", "--weights", tmp_path / "w.txt"
    invoke("train", *beside, tmp_path / "all.csv", tmp_path / "file.h5")
    assert arrays_of(tmp_path / "file.h5") == arrays_of(tmp_path / "some.h5")


@pytest.mark.parametrize("task", TASKS)
def test_groups_of_a_file_are_those_of_a_column(task: str, tmp_path: Path) -> None:
    """Statistics of levels leave out what is held out together, and numbers of groups do not count rows left out."""
    lines = [[*line[:4], "1", line[5]] for line in lines_of(4) if line[4] != "0"]
    label = 2 if task == "values" else 3
    lines[0][label] = lines[7][label] = ""
    common = *FAST, *TASKS[task], "--ignore", f"{OTHER[task]},weight", "--drop-unlabelled"
    table = written(tmp_path / "t.csv", lines)
    invoke("train", *common, "--group-column", "group", table, tmp_path / "column.h5")
    (tmp_path / "g.txt").write_text("".join(f"{line[5]}\n" for line in lines))
    common = *common, "--group-file", tmp_path / "g.txt"
    invoke("train", *common, written(tmp_path / "t5.csv", lines, 5), tmp_path / "file.h5")
    assert arrays_of(tmp_path / "file.h5") == arrays_of(tmp_path / "column.h5")


def test_what_is_wrong_with_weights_is_said_with_its_row(tmp_path: Path) -> None:
    lines = [[*line[:4], weight, line[5]] for line, weight in zip(lines_of(5), ["1", "0", "", "-2"] * 75, strict=True)]
    common = *TASKS["values"], "--ignore", "kind,group", "--weight-column", "weight"
    message = error("train", *common, written(tmp_path / "t.csv", lines), tmp_path / "m.h5")
    assert "t.csv: row 3 has no weight in 'weight'; give it one" in message
    lines = [[*line[:4], line[4] or "0", line[5]] for line in lines]
    message = error("train", *common, written(tmp_path / "t.csv", lines), tmp_path / "m.h5")
    assert "t.csv: row 4 has a weight in 'weight' that is negative or not finite" in message
    lines = [[*line[:4], "0", line[5]] for line in lines]
    message = error("train", *common, written(tmp_path / "t.csv", lines), tmp_path / "m.h5")
    assert "t.csv: all 300 weights are 0; a weight is a finite number from 0" in message


def test_a_label_that_is_left_out_is_named_so(tmp_path: Path) -> None:
    table = written(tmp_path / "t.csv", lines_of(6))
    for option in ("--ignore", "--id-column"):
        line = "--loss", "least-squares", "--label", "value", option, "value", table, tmp_path / "m.h5"
        assert f"column 'value' is named by --label and by {option}; choose one" in error("train", *line)
