"""Errors with and without square roots of values: few rows of a training file are learned, and others predicted.

    python scripts/reproduce/roots.py TABLES [--rows 2000] [--draws 5] [--sets abalone,bike-hour]

TABLES has NAME.train.csv.xz and columns.json. A line a set goes to stdout: the RMSE with `--roots auto` over that with
`--roots none`, of each draw.
"""

from __future__ import annotations

import argparse
import csv
import json
import lzma
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))  # scripts, whose folders share the harness
from harness.commands import lsvm, pinned
from reproduce.tables import told

SETS = "abalone,bike-hour,california-housing,miami-housing,house_8L,used-cars-uk,diamonds,car-msrp,hotel-rates"
FRESH = 5000  # rows that are predicted, at most


def rmse(folder: Path, described: dict[str, Any], roots: str) -> float:
    """The error of a model of the rows in a folder."""
    train, test, model, out = (str(folder / name) for name in ("train.csv", "test.csv", "model.h5", "values.txt"))
    lsvm("train", ["-j", "1", "--loss", "least-squares", *told(described), "--roots", roots, train, model])
    score, _ = lsvm("predict", ["-j", "1", test, model, out])
    return float(score["mean_squared_error"][0] ** 0.5)


def ratios(tables: Path, name: str, described: dict[str, Any], rows: int, draws: int) -> list[float]:
    """Errors with roots over errors without, of each draw of the rows."""
    with lzma.open(tables / f"{name}.train.csv.xz", "rt", newline="") as file:
        head, *lines = list(csv.reader(file))
    found = []
    for draw in range(draws):
        order = np.random.default_rng(draw).permutation(len(lines))
        parts = {"train.csv": order[:rows], "test.csv": order[rows : rows + FRESH]}
        with tempfile.TemporaryDirectory() as folder:
            for part, some in parts.items():
                with (Path(folder) / part).open("w", newline="") as out:
                    csv.writer(out).writerows([head, *(lines[i] for i in some)])
            none, auto = (rmse(Path(folder), described, roots) for roots in ("none", "auto"))
        found.append(auto / none)
    return found


def main() -> None:
    """Print a line for each set."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("tables", type=Path)
    parser.add_argument("--rows", type=int, default=2000, help="training rows (default %(default)s)")
    parser.add_argument("--draws", type=int, default=5, help="of the rows (default %(default)s)")
    parser.add_argument("--sets", default=SETS, help="default: %(default)s")
    given = parser.parse_args()
    os.environ.update(pinned(1))
    columns = json.loads((given.tables / "columns.json").read_text())
    for name in given.sets.split(","):
        found = ratios(given.tables, name, columns[name], given.rows, given.draws)
        print(name, *(f"{ratio:.3f}" for ratio in found), flush=True)


if __name__ == "__main__":
    main()
