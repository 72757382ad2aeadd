"""Reruns the spatial-decomposition paper's experiments by size: error and training time against training rows.

    python scripts/reproduce/vp_sizes.py DATA [--quick] [--out docs/results/vp] [--sets covtype,skin_nonskin]
        [--higgs-rows 1000000] [--limit 30]

Voronoi cells and random chunks of 2 000, 5 000, 10 000 and 15 000 rows on seven training sizes: the whole set, its
half, and so on. DATA is a folder with NAME.train.libsvm.xz and NAME.test.libsvm.xz; the set higgs-like is generated.
Every run is a whole `lsvm-train` and `lsvm-predict` process with standard options but for --metric none; a command
over the limit (minutes) is stopped and reported so. Finished runs are kept in OUT/sizes.jsonl and not repeated, stopped
ones only under a larger limit; OUT/sizes.md and the pictures are written from it. --quick runs what has at most 16 000
training rows.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))  # scripts, whose folders share the harness
from harness.commands import lsvm
from harness.datasets import Files, examples
from harness.experiment import Experiment, carry_out
from harness.library import Dataset, write
from harness.options import integers, parsed, parser
from harness.runlog import Run
from harness.tables import thousands
from localsvm.data.synthetic import higgs_like
from reproduce import vp_sizes_page

HIGGS = "higgs-like"
SETS = ("covtype", "skin_nonskin", "cod-rna", HIGGS)
CELLS = (2000, 5000, 10000, 15000)
PARTITIONS = ("voronoi", "chunks")
SIZES = 7
QUICK_ROWS = 16_000
HIGGS_TEST_ROWS = 100_000
SHUFFLE_SEED = 0  # a training size is the first rows of one permutation


@dataclass(frozen=True)
class Plan:
    """A run to make: cell_size is 0 in one cell of all rows, which stands for all partitions into cells not smaller."""

    name: str
    rows: int
    partition: str
    cell_size: int


@dataclass(frozen=True)
class Fit(Run):
    """One training and prediction, as far as they came."""

    name: str
    rows: int
    partition: str
    cell_size: int
    limit: float  # minutes that each command had
    problem: str | None = None  # why there is no more
    features: int = 0
    cells: int = 0
    squares: float = 0  # sum of the squared cell sizes
    not_converged: int = 0
    train_cpu: float | None = None
    train_wall: float | None = None
    test_rows: int = 0
    error: float | None = None  # per cent, on the test file
    predict_cpu: float | None = None
    predict_wall: float | None = None

    @property
    def key(self) -> Plan:
        """The plan of the run."""
        return Plan(self.name, self.rows, self.partition, self.cell_size)


def main() -> None:
    """Run what is missing, then write the page."""
    quick = f"only sizes of at most {thousands(QUICK_ROWS)} rows"
    given = parser(__doc__, out=Path("docs/results/vp"), sets=SETS, quick=quick)
    given.add_argument("--cells", type=integers, default=list(CELLS), help="cell sizes (default %(default)s)")
    given.add_argument("--sizes", type=integers, help="training sizes of each set, instead of seven halvings")
    given.add_argument("--higgs-rows", type=int, default=1_000_000, help="training rows of higgs-like")
    given.add_argument("--limit", type=float, default=30.0, help="minutes that a command may take")
    carry_out(Experiment("sizes", Fit, plans, measure, vp_sizes_page.page, progress, good), parsed(given))


def good(run: Fit, options: Any) -> bool:
    """A run that was stopped is tried again under a larger limit."""
    return run.problem is None or run.limit >= options.limit


def plans(options: Any) -> list[Plan]:
    """All runs, each once."""
    return list(dict.fromkeys(plan for name in options.sets for plan in plans_of(name, options)))


def plans_of(name: str, options: Any) -> list[Plan]:
    """The runs of one set, small sizes first."""
    total = options.higgs_rows if name == HIGGS else len(examples(options.data, name, "train").y)
    halvings = [round(total / 2**k) for k in reversed(range(SIZES))]
    sizes = sorted({min(size, total) for size in options.sizes or halvings})
    return [
        Plan(name, rows, partition, cell) if rows > cell else Plan(name, rows, "none", 0)
        for rows in sizes
        if rows <= QUICK_ROWS or not options.quick
        for cell in options.cells
        for partition in PARTITIONS
    ]


def measure(missing: list[Plan], _: list[Fit], options: Any) -> Iterator[Fit]:
    """The missing runs, set by set, small sizes first."""
    for name in dict.fromkeys(plan.name for plan in missing):
        train, test = (shuffled(options.data, name, part, options.higgs_rows) for part in ("train", "test"))
        with tempfile.TemporaryDirectory() as folder:
            files, written = Files(Path(folder)), 0
            write(files.test, test.X, test.y)
            for plan in (plan for plan in missing if plan.name == name):
                if written != plan.rows:
                    write(files.train, train.X[: plan.rows], train.y[: plan.rows])
                    written = plan.rows
                yield fit(plan, options.limit, files)


def shuffled(data: Path, name: str, part: str, higgs_rows: int) -> Dataset:
    """A part of the set, its training rows in random order, so that the first ones are a sample."""
    if name == HIGGS:
        rows = higgs_rows if part == "train" else HIGGS_TEST_ROWS
        return Dataset(*higgs_like(rows, np.random.default_rng(1 if part == "train" else 2)))
    data_set = examples(data, name, part)
    order = np.random.default_rng(SHUFFLE_SEED).permutation(len(data_set.y)) if part == "train" else slice(None)
    return Dataset(data_set.X[order], data_set.y[order])


def fit(plan: Plan, limit: float, files: Files) -> Fit:
    """One run through the command line, each command within the limit."""
    result: dict[str, Any] = {}
    for step in (training, prediction):
        try:
            result |= step(plan, limit, files)
        except subprocess.TimeoutExpired:
            result["problem"] = f"{step.__name__} over {limit:g} min"
            break
        except subprocess.CalledProcessError as failure:
            result["problem"] = f"{step.__name__} failed with code {failure.returncode}"
            break
    return Fit(**asdict(plan), limit=limit, **result)


def training(plan: Plan, limit: float, files: Files) -> dict[str, Any]:
    """Figures of `lsvm train`: its report and its seconds."""
    cells = ["-c", str(plan.cell_size)] if plan.cell_size else []
    arguments = ["-P", plan.partition, "--metric", "none", *cells, str(files.train), str(files.model)]
    report, figures = lsvm("train", arguments, 60 * limit)
    summary, sizes = report["summary"], report["summary"]["cell_rows"]
    return {
        "features": summary["features"],
        "cells": summary["cells"],
        "squares": sizes["balance"] * sizes["cells"] * sizes["mean"] ** 2,
        "not_converged": summary["not_converged"],
        "train_cpu": figures["cpu"],
        "train_wall": figures["wall"],
    }


def prediction(plan: Plan, limit: float, files: Files) -> dict[str, Any]:
    """Figures of `lsvm predict`: its report and its seconds."""
    report, figures = lsvm("predict", [str(files.test), str(files.model), str(files.predictions)], 60 * limit)
    error = 100 * (1 - report["accuracy"])
    return {
        "test_rows": report["total"],
        "error": error,
        "predict_cpu": figures["cpu"],
        "predict_wall": figures["wall"],
    }


def progress(run: Fit) -> str:
    """The line that the terminal shows of a run."""
    outcome = run.problem or f"{run.error:.3f} %, training {run.train_cpu:.1f} s of processor time"
    return f"{run.name}, {thousands(run.rows)} rows, {run.partition} {run.cell_size or ''}: {outcome}"


if __name__ == "__main__":
    main()
