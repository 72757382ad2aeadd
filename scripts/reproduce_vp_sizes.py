"""Reruns the spatial-decomposition paper's experiments by size: error and training time against training rows.

    python scripts/reproduce_vp_sizes.py DATA [--quick] [--out docs/results/vp] [--sets covtype,skin_nonskin]
        [--higgs-rows 1000000] [--limit 30]

Voronoi cells and random chunks of 2 000, 5 000, 10 000 and 15 000 rows on seven training sizes: the whole set, its
half, and so on. DATA is a folder with NAME.train.libsvm.xz and NAME.test.libsvm.xz; the set higgs-like is generated.
Every run is a whole `lsvm-train` and `lsvm-predict` process with standard options; a command over the limit (minutes)
is stopped and reported so. Finished runs are kept in OUT/sizes.jsonl and not repeated, stopped ones only under a
larger limit; OUT/sizes.md and the pictures are written from it. --quick runs what has at most 16 000 training rows.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import vp_sizes_page
from measuring import command, examples, finished, keep, thousands

from localsvm.data.dataset import Dataset
from localsvm.data.synthetic import higgs_like
from localsvm.data.writing import write

SETS = ("covtype", "skin_nonskin", "cod-rna", "higgs-like")
CELLS = (2000, 5000, 10000, 15000)
PARTITIONS = ("voronoi", "chunks")
SIZES = 7
QUICK_ROWS = 16_000
HIGGS_TEST_ROWS = 100_000
SHUFFLE_SEED = 0  # a training size is the first rows of one permutation


@dataclass(frozen=True)
class Plan:
    """What is run: cell_size is 0 in one cell of all rows, which stands for every partition into cells not smaller."""

    name: str
    rows: int
    partition: str
    cell_size: int


@dataclass(frozen=True)
class Run:
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
    def plan(self) -> Plan:
        """What was run."""
        return Plan(self.name, self.rows, self.partition, self.cell_size)


def main() -> None:
    """Run what is missing, then write the page."""
    options = parsed()
    options.out.mkdir(parents=True, exist_ok=True)
    log = options.out / "sizes.jsonl"
    done = {run.plan: run for run in finished(log, Run)}  # of two runs of a plan the last counts
    for name in options.sets.split(","):
        with tempfile.TemporaryDirectory() as folder:
            for run in runs(name, options, done, Path(folder)):
                print(line(run), file=sys.stderr)
                done[run.plan] = run
                keep(log, run)
    vp_sizes_page.write_page(list(done.values()), options.out)


def parsed() -> Any:
    """The options of the command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    numbers = partial(str.split, sep=",")
    parser.add_argument("data", type=Path)
    parser.add_argument("--out", type=Path, default=Path("docs/results/vp"))
    parser.add_argument("--sets", default=",".join(SETS))
    parser.add_argument("--cells", type=numbers, default=CELLS, help="cell sizes, default 2000,5000,10000,15000")
    parser.add_argument("--sizes", type=numbers, help="training sizes of each set, instead of seven halvings")
    parser.add_argument("--higgs-rows", type=int, default=1_000_000, help="training rows of higgs-like")
    parser.add_argument("--limit", type=float, default=30.0, help="minutes that a command may take")
    parser.add_argument("--quick", action="store_true", help=f"only sizes of at most {thousands(QUICK_ROWS)} rows")
    return parser.parse_args()


def runs(name: str, options: Any, done: dict[Plan, Run], folder: Path) -> Iterator[Run]:
    """The missing runs of one set, small sizes first."""
    train, test = (shuffled(options.data, name, part, options.higgs_rows) for part in ("train", "test"))
    here = None
    for plan in plans(name, len(train.y), options):
        if plan in done and (done[plan].problem is None or done[plan].limit >= options.limit):
            continue
        if here is None:
            write(folder / "test.libsvm", test.X, test.y)
        if here != plan.rows:
            write(folder / "train.libsvm", train.X[: plan.rows], train.y[: plan.rows])
            here = plan.rows
        yield measured(plan, options.limit, folder)


def plans(name: str, total: int, options: Any) -> list[Plan]:
    """All runs of one set, each once."""
    halvings = [round(total / 2**k) for k in reversed(range(SIZES))]
    sizes = sorted({min(int(s), total) for s in options.sizes or halvings})
    wanted = [
        Plan(name, rows, partition, int(cell)) if rows > int(cell) else Plan(name, rows, "none", 0)
        for rows in sizes
        if rows <= QUICK_ROWS or not options.quick
        for cell in options.cells
        for partition in PARTITIONS
    ]
    return list(dict.fromkeys(wanted))


def shuffled(data: Path, name: str, part: str, higgs_rows: int) -> Dataset:
    """A part of the set, its training rows in random order, so that the first ones are a sample."""
    if name == "higgs-like":
        rows = higgs_rows if part == "train" else HIGGS_TEST_ROWS
        return Dataset(*higgs_like(rows, np.random.default_rng(1 if part == "train" else 2)))
    found = examples(data, name, part)
    order = np.random.default_rng(SHUFFLE_SEED).permutation(len(found.y)) if part == "train" else slice(None)
    return Dataset(found.X[order], found.y[order])


def measured(plan: Plan, limit: float, folder: Path) -> Run:
    """One run through the command line, each command within the limit."""
    result: dict[str, Any] = {}
    for step in (training, prediction):
        try:
            result |= step(plan, limit, folder)
        except subprocess.TimeoutExpired:
            result["problem"] = f"{step.__name__} over {limit:g} min"
            break
        except subprocess.CalledProcessError as failure:
            result["problem"] = f"{step.__name__} failed with code {failure.returncode}"
            break
    return Run(**asdict(plan), limit=limit, **result)


def training(plan: Plan, limit: float, folder: Path) -> dict[str, Any]:
    """What `lsvm train` says and takes."""
    cells = ["-c", str(plan.cell_size)] if plan.cell_size else []
    files = [str(folder / "train.libsvm"), str(folder / "model.h5")]
    report, cpu, wall = command("train", ["-P", plan.partition, *cells, "--json", "--force", "-q", *files], 60 * limit)
    fit, sizes = report["summary"], report["summary"]["cell_rows"]
    return {
        "features": fit["features"],
        "cells": fit["cells"],
        "squares": sizes["balance"] * sizes["cells"] * sizes["mean"] ** 2,
        "not_converged": fit["not_converged"],
        "train_cpu": cpu,
        "train_wall": wall,
    }


def prediction(plan: Plan, limit: float, folder: Path) -> dict[str, Any]:
    """What `lsvm predict` says and takes."""
    files = [str(folder / file) for file in ("test.libsvm", "model.h5", "out.txt")]
    report, cpu, wall = command("predict", ["--json", "--force", "-q", *files], 60 * limit)
    error = 100 * (1 - report["accuracy"])
    return {"test_rows": report["total"], "error": error, "predict_cpu": cpu, "predict_wall": wall}


def line(run: Run) -> str:
    """What a person who waits reads of a run."""
    outcome = run.problem or f"{run.error:.3f} %, training {run.train_cpu:.1f} s of processor time"
    return f"{run.name}, {thousands(run.rows)} rows, {run.partition} {run.cell_size or ''}: {outcome}"


if __name__ == "__main__":
    main()
