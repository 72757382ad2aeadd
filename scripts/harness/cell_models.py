"""Models in cells of 2 000 rows by whole `lsvm` commands, as the comparisons run, predict and scale time them.

train(case, options, search="full")     # the figures of a run on the case's file and of the test of its model
model_file(case, options)               # the refitted model, trained if it is not there
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path
from typing import Any

from harness.commands import lsvm
from harness.comparison import Case
from harness.datasets import GENERATED, text
from harness.machine import cores
from harness.timing import Figures

CELL_SIZE, TEST_ROWS = 2000, 100_000


def train(case: Case, options: argparse.Namespace, search: str = "full", refit: bool = False) -> Figures:
    """Train on the case's rows and cores; error on up to 100 000 test rows, which is not timed.

    A refitted model stays in the work folder, for the comparison predict.
    """
    with tempfile.TemporaryDirectory(dir=options.work) as folder:
        model, output = Path(folder) / "model.h5", Path(folder) / "labels.txt"
        select = ["--select", "refit"] if refit else []
        arguments = [*cells(case), "--grid", search, *select, *options.train.split(), "-j", str(case.cores)]
        report, figures = lsvm("train", [*arguments, str(training_text(case, options)), str(model)])
        size = model.stat().st_size
        test = ["-j", str(case.cores), str(test_text(case, options)), str(model), str(output)]
        score, _ = lsvm("predict", test)
        if refit:
            model.replace(kept_model(case, options))
    return {**figures, **figures_of(report["summary"]), "model_bytes": size, "error": 100 * (1 - score["accuracy"])}


def figures_of(summary: dict[str, Any]) -> Figures:
    """Figures that the table shows of a run's report; squares: the sum of the squared cell sizes."""
    sizes = summary["cell_rows"]
    kept = ("features", "cells", "support_vectors", "iterations", "not_converged", "seconds")
    return {name: summary[name] for name in kept} | {
        "train_rows": summary["rows"],
        "balance": sizes["balance"],
        "largest": sizes["largest"],
        "squares": sizes["balance"] * sizes["cells"] * sizes["mean"] ** 2,
    }


def cells(case: Case) -> list[str]:
    """The options of the partition, by Euclidean distances."""
    return ["-P", "voronoi", "--metric", "none", "-c", str(case.get("cell_size", CELL_SIZE))]


def training_text(case: Case, options: argparse.Namespace) -> Path:
    """The case's training file."""
    return text(options, case.set, case.rows, "train")


def test_text(case: Case, options: argparse.Namespace, rows: int = TEST_ROWS) -> Path:
    """Test rows: so many generated ones, or all that a real set has."""
    return text(options, case.set, rows if case.set == GENERATED else 0, "test")


def make_texts(case: Case, options: argparse.Namespace) -> None:
    """Make both files before anything is timed."""
    training_text(case, options)
    test_text(case, options)


def model_file(case: Case, options: argparse.Namespace) -> Path:
    """The refitted model of cells of 2 000 on the case's rows, trained on all cores if it is not there."""
    model = kept_model(case, options)
    if not model.exists():
        arguments = [*cells(case), "--grid", "full", "--select", "refit", "-j", str(cores())]
        lsvm("train", [*arguments, str(training_text(case, options)), str(model)])
    return model


def kept_model(case: Case, options: argparse.Namespace) -> Path:
    """Path at which the refitted model of the case's rows is kept."""
    return Path(options.work) / f"{case.set}.{case.rows}.refit.h5"
