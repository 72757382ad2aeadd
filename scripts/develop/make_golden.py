#!/usr/bin/env python3
"""Write the golden files of tests/golden that are not there yet.

    python scripts/develop/make_golden.py [--force] [NAME ...]

A golden file is a model as an earlier version wrote it. Later versions have to read it and to predict the same, so it
is not made anew when the code changes: files that are there stay as they are. A new method is given a line in GOLDEN.
--force replaces files all the same, for a new format version that cannot read the old one.

Models are trained on rows.libsvm (two classes) or rows-sparse.libsvm (three), and NAME.decisions.txt is what `lsvm
predict --decision-values` says of the same rows.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

FOLDER = Path(__file__).resolve().parents[2] / "tests" / "golden"
DENSE, SPARSE = "rows.libsvm", "rows-sparse.libsvm"
ROWS = 60
SPARSE_COLUMNS = 1100  # beyond 1 024, small data are kept sparse
PARTITION = "cells"  # the one that lsvm partition writes

# the rows, and the options of train (of partition for PARTITION)
GOLDEN: dict[str, tuple[str, str]] = {
    "mllkm-online": (DENSE, "-m mllkm --online kernels --bank-gammas 0.1,1 -C 0.1,1 -v 3"),
    "mllkm-one-pass": (DENSE, "-m mllkm --online full --kept-rows 30 --bank-gammas 0.1,1 -C 0.1,1"),
    "svm-voronoi": (DENSE, "-m svm -P voronoi -c 20 --metric none -g 0.5,2 -C 1,10 -v 3"),
    "svm-default": (DENSE, "-m svm"),
    "svm-metric": (DENSE, "-m svm -P voronoi -c 20 --metric rank:2 -g 0.5,2 -C 1,10 -v 3"),
    # written when files said from which rows a metric was learned
    "svm-metric-rows": (DENSE, "-m svm -P voronoi -c 20 --metric rank:2 -g 0.5,2 -C 1,10 -v 3"),
    "svm-manhattan": (DENSE, "-m svm -P voronoi -c 20 -t manhattan --metric diag -g 0.5,2 -C 1,10 -v 3"),
    "svml-manhattan": (DENSE, "-m svml -t manhattan -v 3"),
    "svm-sparse-ava": (SPARSE, "-m svm --metric none --multiclass ava -g 0.1 -C 1,10 -v 3"),
    "csvm-ava": (SPARSE, "-m csvm -K 3 --lambda 1,10 --multiclass ava -C 0.1,1 -v 3"),
    # written when pairs shared their clusters
    "kmeans-svm-shared": (SPARSE, "-m kmeans-svm -K 3 --multiclass ava -C 0.1,1 -v 3"),
    "svm-coarse": (DENSE, "-m svm -P voronoi -c 12 --coarse-size 30 --metric none -g 0.5,2 -C 1,10 -v 3"),
    PARTITION: (DENSE, "-P kmeans -c 20 --metric none"),
}


def golden() -> dict[str, tuple[str, str]]:
    """Every method with its tiny grid, and GOLDEN."""
    from localsvm.methods import methods

    plain = {item.name: "--metric none " * (item.default_metric != "none") for item in methods().values()}
    return {name: (DENSE, f"-m {name} {plain[name]}{item.tiny} -v 3") for name, item in methods().items()} | GOLDEN


def main(arguments: list[str] | None = None) -> int:
    """Write what is asked for and not there; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help="by default all")
    parser.add_argument("--force", action="store_true", help="replace files that are there")
    options = parser.parse_args(arguments)
    unknown = [name for name in options.names if name not in golden()]
    if unknown:
        parser.error(f"there is no method or golden model {', '.join(unknown)}")
    write_rows(FOLDER)
    for name in options.names or golden():
        path = FOLDER / f"{name}.h5"
        if path.exists() and not options.force:
            print(f"{path.name} is there and stays", file=sys.stderr)
        else:
            write(name)
    return 0


def write_rows(folder: Path) -> None:
    """The rows, where they are not there: golden models are never without theirs."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, make in ((DENSE, dense_rows), (SPARSE, sparse_rows)):
        if not (folder / name).exists():
            (folder / name).write_text(make(np.random.default_rng(1)))


def dense_rows(rng: np.random.Generator) -> str:
    """Two half circles in each other, and a column of noise."""
    y = np.where(np.arange(ROWS) % 2, 1, -1)
    angle = np.pi * rng.random(ROWS)
    X = np.stack([np.cos(angle) * y, np.sin(angle) * y - 0.4 * y, rng.standard_normal(ROWS)], axis=1)
    return text(X + 0.15 * rng.standard_normal(X.shape), y)


def sparse_rows(rng: np.random.Generator) -> str:
    """Three classes, each with six columns that are frequent in it, and one column that is in a single row."""
    y = np.arange(ROWS) % 3
    X = np.zeros((ROWS, SPARSE_COLUMNS))
    for c in range(3):
        near, columns = (y == c)[:, None], 30 * c + 5 * np.arange(6)
        X[:, columns] = (rng.random((ROWS, 6)) < np.where(near, 0.5, 0.15)) * (0.5 + rng.random((ROWS, 6)))
    X[0, -1] = 1.0
    return text(X, y)


def text(X: NDArray[np.float64], y: NDArray[np.int64]) -> str:
    """LIBSVM text, four digits a value."""
    pairs = (" ".join(f"{j + 1}:{row[j]:.4g}" for j in np.flatnonzero(row)) for row in X)
    return "".join(f"{label} {row}".rstrip() + "\n" for label, row in zip(y, pairs, strict=True))


def write(name: str) -> None:
    """One golden file, and its decision values."""
    data, options = golden()[name]
    rows, path = str(FOLDER / data), str(FOLDER / f"{name}.h5")
    if name == PARTITION:
        lsvm("partition", "-q", "--force", *options.split(), rows, path)
    else:
        lsvm("train", "-q", "--force", *options.split(), rows, path)
        lsvm("predict", "--force", "--decision-values", rows, path, str(FOLDER / f"{name}.decisions.txt"))
    print(f"wrote {name}.h5, {Path(path).stat().st_size:,} bytes", file=sys.stderr)


def lsvm(*arguments: str) -> None:
    """Run a command in this process; its errors end the script."""
    from localsvm.cli.group import lsvm as group

    if group.main(list(arguments), prog_name="lsvm", standalone_mode=False):
        sys.exit(1)


if __name__ == "__main__":
    sys.exit(main())
