"""Times least squares, quantiles and expectiles in cells beside liquidSVM's ls, qt and ex, on one core.

    python scripts/bench/values.py TABLES [--sets kin8nm,fried] [--peers liquidSVM] [--quick]

TABLES is a folder with NAME.train.csv.xz and NAME.test.csv.xz, and columns.json, which names the targets. Both get the
same rows, of numbers alone, in Voronoi cells of 2 000, choose by five folds on their default grids, and measure by the
Euclidean distance of columns with deviation 1. --quick: kin8nm alone.
"""

from __future__ import annotations

import argparse
import csv
import json
import lzma
import sys
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))  # scripts, whose folders share the harness
from harness import peers
from harness.comparison import Case, Comparison, Turn, main
from harness.summaries import Column, megabytes, summaries, summary_table
from harness.tables import number
from harness.timing import Figures, timed

SETS = ["kin8nm", "fried", "protein-casp"]
LEVELS = (0.05, 0.5, 0.95)
CELL = 2000
LOSSES = {"least-squares": "lsSVM", "quantile": "qtSVM", "expectile": "exSVM"}
WARM_UP_ROWS = 300


def cases(options: argparse.Namespace) -> list[Case]:
    """Sets, each with all losses."""
    if options.data is None:
        sys.exit("the folder TABLES is needed")
    names = options.sets or (SETS[:1] if options.quick else SETS)
    return [
        Case(name, len(table(options, name, "train")[1]), 1, (("loss", loss),)) for name in names for loss in LOSSES
    ]


def table(options: argparse.Namespace, name: str, part: str) -> tuple[Any, Any]:
    """Columns (n, d) and targets (n,) of a table, float64."""
    target = json.loads((options.data / "columns.json").read_text())[name]["target"]
    with lzma.open(options.data / f"{name}.{part}.csv.xz", "rt", newline="") as text:
        rows = list(csv.DictReader(text))
    X = np.array([[float(value) for column, value in row.items() if column != target] for row in rows])
    return X, np.array([float(row[target]) for row in rows])


def parts(case: Case, options: argparse.Namespace) -> tuple[Any, Any, Any, Any]:
    """Training and test rows, whose columns have mean 0 and deviation 1 in training, in the order of a draw."""
    (X, y), (X_test, y_test) = (table(options, case.set, part) for part in ("train", "test"))
    mean, deviation = X.mean(axis=0), X.std(axis=0)
    order = np.random.default_rng(options.draw).permutation(len(y))
    return (X[order] - mean) / deviation, y[order], (X_test - mean) / deviation, y_test


def lost(case: Case, answers: Any, y: Any) -> float:
    """Root of the mean square, or the mean loss over the levels, of answers (n, levels)."""
    from localsvm.targets.losses import Loss

    left = y[:, None] - np.asarray(answers, np.float64).reshape(len(y), -1)
    if case.get("loss") == "least-squares":
        return float(np.sqrt(np.square(left).mean()))
    of_levels = zip(LEVELS, left.T, strict=True)
    return float(np.mean([Loss(case.get("loss"), level)(residuals) for level, residuals in of_levels]))


def ours(case: Case, options: argparse.Namespace) -> Figures:
    """Training in Python."""
    from localsvm import LocalSVR

    X, y, X_test, y_test = parts(case, options)
    given = {} if case.get("loss") == "least-squares" else {"quantile": LEVELS}
    model = LocalSVR(
        loss=case.get("loss"), **given, partition="voronoi", cell_size=CELL, metric="none", scale="none", n_jobs=1,
        random_state=options.draw,
    )  # fmt: skip
    model.fit(X[:WARM_UP_ROWS], y[:WARM_UP_ROWS])
    return {**timed(lambda: model.fit(X, y), 1), "error": lost(case, model.predict(X_test), y_test)}


def liquid(case: Case, options: argparse.Namespace) -> Figures:
    """Training and selection of liquidSVM, which the constructor does; the weights are its levels."""
    X, y, X_test, y_test = parts(case, options)
    make = getattr(peers.liquid_svm(), LOSSES[case.get("loss")])
    given = {} if case.get("loss") == "least-squares" else {"weights": LEVELS}
    given |= {"partition_choice": peers.VORONOI_2000, "scale": False, "threads": 1}
    make(X[:WARM_UP_ROWS], y[:WARM_UP_ROWS], **given)
    models: list[Any] = []
    figures = timed(lambda: models.append(make(X, y, **given)), 1)
    answers, _ = models[-1].test(X_test, y_test)
    return {**figures, "error": lost(case, answers, y_test)}


def section(turns: list[Turn]) -> list[str]:
    """The table."""
    loss: list[Column] = [("loss", lambda s: str(s.case.get("loss")))]
    error: list[Column] = [("error", lambda s: number(s.figures.get("error")))]
    return summary_table(summaries(turns), [*error, ("peak MiB", megabytes())], loss)


COMPARISON = Comparison(
    "values",
    "Values in cells of 2 000 rows beside liquidSVM, one core",
    cases,
    {"localsvm": ours, "liquidSVM": liquid},
    section,
    introduction=[
        "Columns have mean 0 and deviation 1, and both measure by the Euclidean distance. Of least squares the error",
        "is the root of the mean square on the test rows; of quantiles and expectiles at 0.05, 0.5 and 0.95, which are",
        "trained at once, it is the mean loss over the levels. Cells are Voronoi cells of about 2 000 rows. Each has",
        "its own default grid, and five folds.",
    ],
    target="bench-values TABLES",
)

if __name__ == "__main__":
    main(COMPARISON, __doc__)
