"""Reruns the main table: test error and processor time of local kernel SVMs on real data sets.

    python scripts/reproduce/vp.py DATA [--out docs/results] [--sets magic,ijcnn1] [--seeds 3]

DATA is a folder with NAME.train.libsvm.xz and NAME.test.libsvm.xz. Every run is a whole `lsvm-train` and `lsvm-predict`
process with standard options (`-c 2000`, std scaling, adaptive search) but for `--metric none`; times are processor
seconds of the process and its workers. Finished runs are kept in OUT/vp.jsonl and not repeated; OUT/vp.md is written
from it. "vp" is for the Voronoi partition.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))  # scripts, whose folders share the harness
from harness.commands import train_and_test
from harness.datasets import Files, text_files
from harness.experiment import Experiment, carry_out, set_by_set
from harness.machine import processors
from harness.options import parsed, parser
from harness.runlog import Run
from harness.tables import mean_and_deviation, table, thousands

BINARY = ("svmguide1", "higgs11k", "magic", "susy30k", "cod-rna", "ijcnn1", "skin_nonskin", "covtype")
# test error in per cent of liquidSVM's own run of the same protocol on the same files, and what ours is to stay under
REFERENCE = {
    "svmguide1": (3.03, 3.3),
    "higgs11k": (36.0, 36.8),
    "magic": (14.16, 14.5),
    "susy30k": (21.5, 21.8),
    "cod-rna": (4.71, 4.85),
    "ijcnn1": (1.49, 1.55),
    "skin_nonskin": (0.067, 0.08),
    "covtype": (4.77, 4.85),
}
MANY_CLASSES = ("letter", "pendigits", "satimage", "usps")
# error of scikit-learn's SVC in the cells of our partition of seed 0, and on all rows; measured once, C of 1 to 256 and
# gamma of 1/8 to 8 over the number of features by 5-fold cross-validation
SVC = {"letter": (3.94, 2.58), "pendigits": (2.09, 2.00), "satimage": (8.90, 8.80), "usps": (6.18, 5.43)}
QUICK_SETS = ["svmguide1", "satimage"]
BINARY_PLANS = [("voronoi", "ova"), ("chunks", "ova")]
MANY_PLANS = [("voronoi", "ova"), ("voronoi", "ava"), ("none", "ova"), ("none", "ava")]

ABOUT = """\
# Local kernel SVMs on real data

Written by `make reproduce-vp DATA=...` (`scripts/reproduce/vp.py`): cells and chunks of at most 2 000 rows,
std scaling, 10 x 10 grid (adaptive search), 5 folds, fold models vote. Errors in per cent on the test files,
mean (and standard deviation) over the seeds; times are processor seconds of the whole commands, reading and
writing included, on an {processor}. The reference is one run of liquidSVM of the same protocol
on the same files.
"""
ABOUT_MANY_CLASSES = """
## Many classes

Cells of 2 000 rows and one cell of all rows (`-P none`), one model refitted, against scikit-learn's SVC,
C and gamma from a 5-fold grid search (30 points, one for all pairs), on all rows and in each cell of our
partition of seed 0. Means over the seeds; processor s.
"""
Key = tuple[str, str, str, int]  # set, partition, multiclass, seed


@dataclass(frozen=True)
class Fit(Run):
    """One training and prediction."""

    KEY = ("name", "partition", "multiclass", "seed")
    name: str
    partition: str
    multiclass: str
    seed: int
    train_rows: int
    test_rows: int
    error: float  # per cent, on the test file
    cv_error: float  # per cent, on held-out rows of the training file
    cells: int
    support_vectors: int
    not_converged: int
    train_cpu: float
    predict_cpu: float
    train_wall: float
    predict_wall: float


def main() -> None:
    """Run what is missing, then write the tables."""
    quick = f"{' and '.join(QUICK_SETS)}, one seed"
    given = parser(__doc__, out=Path("docs/results"), sets=BINARY + MANY_CLASSES, seeds=3, quick=quick)
    options = parsed(given)
    if options.quick:
        options.sets, options.seeds = [name for name in options.sets if name in QUICK_SETS], 1
    carry_out(Experiment("vp", Fit, cases, measure, page, progress), options)


def cases(options: Any) -> list[Key]:
    """Every set with its plans and seeds."""
    return [
        (name, partition, multiclass, seed)
        for name in options.sets
        for partition, multiclass in (BINARY_PLANS if name in BINARY else MANY_PLANS)
        for seed in range(options.seeds)
    ]


def measure(missing: list[Key], _: list[Fit], options: Any) -> Iterator[Fit]:
    """The missing runs, set by set."""
    return set_by_set(missing, lambda name: text_files(options.data, name), fit)


def fit(key: Key, files: Files) -> Fit:
    """One run through the command line."""
    _, partition, multiclass, seed = key
    options = ["-P", partition, "-c", "2000", "--metric", "none", "--multiclass", multiclass, "--seed", str(seed)]
    tested = train_and_test(options, files)
    summary, training, prediction = tested.summary, tested.training, tested.prediction
    return Fit(
        *key, summary["rows"], tested.score["total"], 100 - tested.accuracy, 100 * summary["cv_error"],
        summary["cells"], summary["support_vectors"], summary["not_converged"],
        training["cpu"], prediction["cpu"], training["wall"], prediction["wall"],
    )  # fmt: skip


def progress(run: Fit) -> str:
    """The line that the terminal shows of a run."""
    return f"{run.name} {run.partition} {run.multiclass} seed {run.seed}: {run.error:.3f} %"


def page(runs: list[Fit], _: Any) -> str:
    """The tables in Markdown."""
    head = ("set", "train / test rows", "liquidSVM", "to reach", "Voronoi cells", "chunks", "cells",
            "train s: cells, chunks", "predict s: cells, chunks")  # fmt: skip
    rows = [binary_row(name, runs) for name in BINARY if any(run.name == name for run in runs)]
    return "\n".join(
        [ABOUT.format(processor=processors(run.machine for run in runs)), *table(head, rows), *many_classes(runs)]
    )


def binary_row(name: str, runs: list[Fit]) -> list[str]:
    """A row of the main table."""
    voronoi, chunks = ([r for r in runs if (r.name, r.partition) == (name, p)] for p in ("voronoi", "chunks"))
    one, (reference, goal) = (voronoi or chunks)[0], REFERENCE[name]
    return [
        name, f"{thousands(one.train_rows)} / {thousands(one.test_rows)}", str(reference), str(goal),
        spread(voronoi), spread(chunks), str(one.cells),
        f"{mean(voronoi, 'train_cpu'):.1f}, {mean(chunks, 'train_cpu'):.1f}",
        f"{mean(voronoi, 'predict_cpu'):.1f}, {mean(chunks, 'predict_cpu'):.1f}",
    ]  # fmt: skip


def many_classes(runs: list[Fit]) -> list[str]:
    """The table of the sets with more than two classes."""
    head = ("set", "rows", "cells, ova", "cells, ava", "SVC in cells", "one cell, ova", "one cell, ava", "SVC",
            "train s, in the same order")  # fmt: skip
    rows = []
    for name in MANY_CLASSES:
        parts = [[r for r in runs if (r.name, r.partition, r.multiclass) == (name, p, m)] for p, m in MANY_PLANS]
        if any(parts):
            size = thousands(next(part for part in parts if part)[0].train_rows)
            ours = [spread(part) for part in parts]
            peers = [f"{error:.2f}" for error in SVC[name]]
            times = ", ".join(f"{mean(part, 'train_cpu'):.0f}" for part in parts)
            rows.append([name, size, *ours[:2], peers[0], *ours[2:], peers[1], times])
    return [ABOUT_MANY_CLASSES, *table(head, rows)]


def mean(runs: list[Fit], field: str) -> float:
    """Mean of a figure over the seeds."""
    return float(np.mean([getattr(r, field) for r in runs])) if runs else float("nan")


def spread(runs: list[Fit]) -> str:
    """Mean and standard deviation of the error."""
    return mean_and_deviation([run.error for run in runs], 3) if runs else "not run"


if __name__ == "__main__":
    main()
