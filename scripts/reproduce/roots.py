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
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

SETS = "abalone,bike-hour,california-housing,miami-housing,house_8L,used-cars-uk,diamonds,car-msrp,hotel-rates"
FRESH = 5000  # rows that are predicted, at most


def rmse(folder: Path, described: dict[str, Any], roots: str) -> float:
    """The error of a model of the rows in a folder."""
    model, out = folder / "model.h5", folder / "values.txt"
    ignored = ["--ignore", ",".join(described["ignore"])] if described["ignore"] else []
    train = ["lsvm-train", "-q", "-j", "1", "--force", "--loss", "least-squares", "--label", described["target"]]
    subprocess.run([*train, *ignored, "--roots", roots, folder / "train.csv", model], check=True)
    predict = ["lsvm-predict", "-q", "--force", "--format", "libsvm", folder / "test.csv", model, out]
    subprocess.run(predict, check=True, stderr=subprocess.DEVNULL)
    with (folder / "test.csv").open(newline="") as file:
        truth = [float(row[described["target"]]) for row in csv.DictReader(file)]
    return float(np.sqrt(np.mean(np.square(np.loadtxt(out) - truth))))


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
    columns = json.loads((given.tables / "columns.json").read_text())
    for name in given.sets.split(","):
        found = ratios(given.tables, name, columns[name], given.rows, given.draws)
        print(name, *(f"{ratio:.3f}" for ratio in found), flush=True)


if __name__ == "__main__":
    main()
