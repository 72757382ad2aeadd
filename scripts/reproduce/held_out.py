"""What the cross-validated error promises, with folds at random, of groups, and of blocks, beside the error that comes.

    python scripts/reproduce/held_out.py TABLES [--quick] [--out docs/results] [--sets electricity,diabetes130]

Some rows of NAME.train.csv.xz in TABLES are set aside as the future: the last 30 % in the order of the file (time), or
all rows of a fifth of the groups. lsvm-train sees the others. The label of beijing-air is whether PM2.5 is above 75,
and its rows are the first 60 000 readings of all stations. Finished runs are kept in OUT/held-out.jsonl;
OUT/held-out.md is written from the log. --quick: the first 6 000 rows of each set.
"""

from __future__ import annotations

import csv
import json
import lzma
import os
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))  # scripts, whose folders share the harness
from harness.commands import lsvm, pinned
from harness.experiment import Experiment, carry_out
from harness.options import parsed, parser
from harness.runlog import Run
from harness.tables import table, thousands

GROUPS: dict[str, str] = {"diabetes130": "patient_nbr"}  # the column of groups; other sets are in the order of time
# Of a set of values: the column, the bound above which a row is "high", the columns of time, and how many rows are used
VALUES = {"beijing-air": ("PM2.5", 75.0, ("year", "month", "day", "hour"), 60_000)}
SETS = ("electricity", "diabetes130", "beijing-air")
LATER, NEW = 0.3, 0.2  # shares of rows and groups that are the future
QUICK_ROWS = 6000
ABOUT = """\
# What the cross-validated error promises

Written by `make reproduce-held-out TABLES=...` (`scripts/reproduce/held_out.py`) from `held-out.jsonl`. Rows that come
later, or rows of new groups, are set aside. The table has the error that `lsvm-train` expects of the other rows, with
folds at random and with folds as the rows will come (`-v blocks`, `--group-column`), and the error on the rows that
were set aside; in per cent. Of beijing-air, the label is whether PM2.5 is above 75, in the first 60 000 readings of all
stations.
"""


@dataclass(frozen=True)
class Promise(Run):
    """A run: how rows were held out, what was expected, and what came. rows: for training, and set aside."""

    KEY = ("name", "way")
    name: str
    way: str
    rows: tuple[int, int]
    expected: float
    came: float


def main() -> None:
    """Run what is missing, then write the page."""
    options = parsed(parser(__doc__, out=Path("docs/results"), sets=SETS, quick="6 000 rows of each set"))
    os.environ.update(pinned(1))
    carry_out(Experiment("held-out", Promise, cases, measure, page, progress), options)


def cases(options: Any) -> list[tuple[str, str]]:
    """Two ways of each set."""
    return [(name, way) for name in options.sets for way in ("random", "groups" if name in GROUPS else "blocks")]


def measure(missing: list[Any], _: list[Promise], options: Any) -> Iterator[Promise]:
    """The missing runs."""
    described = json.loads((options.data / "columns.json").read_text())
    for name, way in missing:
        with tempfile.TemporaryDirectory() as folder:
            train, future, rows = split(options.data / f"{name}.train.csv.xz", Path(folder), name, options.quick)
            known = described[name]
            group = GROUPS.get(name)
            ignored = [column for column in known["ignore"] if way != "groups" or column != group]
            how = {"random": [], "blocks": ["-v", "blocks"], "groups": ["--group-column", str(group)]}[way]
            told = ["--label", known["target"], *(["--ignore", ",".join(ignored)] if ignored else [])]
            model = str(Path(folder) / "model.h5")
            report, _figures = lsvm("train", ["-j", "1", *told, *how, str(train), model])
            score, _figures = lsvm("predict", [str(future), model, str(Path(folder) / "out.csv")])
            yield Promise(name, way, rows, 100 * report["summary"]["cv_error"], 100 * (1 - score["accuracy"]))


def split(path: Path, folder: Path, name: str, quick: bool) -> tuple[Path, Path, tuple[int, int]]:
    """Files of the rows for training and of those that are set aside, and their numbers."""
    with lzma.open(path, "rt", newline="") as file:
        header, *rows = csv.reader(file)
    if name in VALUES:
        rows = classes(header, rows, *VALUES[name])
    rows = rows[:QUICK_ROWS] if quick else rows
    if name in GROUPS:
        groups = np.asarray([row[header.index(GROUPS[name])] for row in rows])
        every = np.unique(groups)
        new = np.random.default_rng(0).choice(every, int(NEW * len(every)), replace=False)
        aside = np.isin(groups, new)
    else:
        aside = np.arange(len(rows)) >= (1 - LATER) * len(rows)
    paths = folder / "train.csv", folder / "future.csv"
    for part, wanted in zip(paths, (False, True), strict=True):
        with part.open("w", newline="") as out:
            writer = csv.writer(out)
            writer.writerow(header)
            writer.writerows(row for row, later in zip(rows, aside.tolist(), strict=True) if later == wanted)
    return *paths, (int((~aside).sum()), int(aside.sum()))


def classes(
    header: list[str], rows: list[list[str]], column: str, bound: float, times: tuple[str, ...], most: int
) -> list[list[str]]:  # fmt: skip
    """The first rows in the order of time that have a value, which becomes "high" or "low"."""
    place, of_time = header.index(column), [header.index(each) for each in times]
    known = [row for row in rows if row[place] not in ("", "NA", "?")]
    known.sort(key=lambda row: [int(row[i]) for i in of_time])
    for row in known:
        row[place] = "high" if float(row[place]) > bound else "low"
    return known[:most]


def page(runs: list[Promise], _: Any) -> str:
    """The Markdown."""
    lines = []
    for run in runs:
        rows = " / ".join(map(thousands, run.rows))
        lines.append((run.name, rows, run.way, f"{run.expected:.2f}", f"{run.came:.2f}"))
    return "\n".join([ABOUT, *table(("set", "rows / set aside", "folds", "expected", "came"), lines), ""])


def progress(run: Promise) -> str:
    """The line that the terminal shows of a run."""
    return f"{run.name} {run.way}: expected {run.expected:.2f} %, came {run.came:.2f} %"


if __name__ == "__main__":
    main()
