"""Compares one metric for all rows with one that is refined in every cell, on hold-outs of training files.

    python scripts/compare_cell_metrics.py DATA [--sets covtype,letter] [--steps 20,60] [--seeds 2]

The global metric is learned as --metric full or diag does, whichever --form says, and the rows are divided into Voronoi
cells of 2 000 in it. In each cell, weights that begin with 1 are then learned from its rows by so many steps on samples
of 400, and the cell is trained on the rows with these weights. A Markdown table goes to stdout: hold-out errors in per
cent, the mean over the seeds, and processor seconds of the cells. Test files are never touched.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

import numpy as np
from harness.datasets import examples
from harness.library import Dataset, Learner, TrainingConfig, create, measure, scaling_of
from threadpoolctl import threadpool_limits

from localsvm import LocalSVC
from localsvm.threads import ALONE

SAMPLE, CELL, MOST_HELD = 400, 2000, 10_000
SETS = "covtype,letter,susy30k,cod-rna,magic,higgs11k"


def main() -> None:
    """Print the table, a row a set."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--sets", default=SETS)
    parser.add_argument("--form", default="full", choices=("diag", "full"))
    parser.add_argument("--steps", default="20,60", help="of the weights of a cell")
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--rows", type=int, default=40_000, help="at most so many rows of a set, drawn at random")
    options = parser.parse_args()
    steps = [0, *(int(count) for count in options.steps.split(","))]
    names = ["global", *(f"{count} steps" for count in steps[1:])]
    print(f"| set | rows | {' | '.join(f'{name}, s' for name in names)} |\n|---|---|{'---|' * len(names)}")
    with threadpool_limits(1):
        for name in options.sets.split(","):
            found = np.asarray([run(name, options, steps, seed) for seed in range(options.seeds)]).mean(axis=0)
            cells = " | ".join(f"{error:.2f}, {seconds:.1f}" for error, seconds in found[:, :2])
            print(f"| {name} | {found[0, 2]:.0f} | {cells} |", flush=True)


def run(name: str, options: argparse.Namespace, steps: list[int], seed: int) -> list[tuple[float, float, int]]:
    """For each number of steps the error in per cent, the processor seconds, and the rows trained on."""
    data = examples(options.data, name, "train")
    order = np.random.default_rng(1000 + seed).permutation(len(data.y))[: options.rows]
    held, rest = np.split(order, [min(len(order) // 4, MOST_HELD)])
    rows = data.X if isinstance(data.X, np.ndarray) else data.X.toarray()
    scaling = scaling_of(rows[rest], "std")
    y, y_held = data.y[rest], data.y[held]
    X, Z = scaling.apply(rows[rest]), scaling.apply(rows[held])
    metric = measure(Dataset(X, y), TrainingConfig(metric=options.form, seed=seed), ALONE).metric
    assert metric is not None
    X, Z = metric.apply(X), metric.apply(Z)
    partition = create("voronoi")
    partition.fit(X, y, CELL, np.random.default_rng(seed))
    owner = partition.route(Z).tocsr().indices
    wrong, seconds = np.zeros(len(steps)), np.zeros(len(steps))
    for index, cell in enumerate(partition.training_cells()):
        cell_rows, mine = np.sort(cell.rows), np.flatnonzero(owner == index)
        for i, count in enumerate(steps):
            started = time.process_time()
            weights = refined(X, y, cell_rows, count, seed)
            answers = labels(X[cell_rows] * weights, y[cell_rows], Z[mine] * weights)
            seconds[i] += time.process_time() - started
            wrong[i] += np.count_nonzero(answers != y_held[mine])
    print(f"{name} seed {seed}: {wrong}", file=sys.stderr)
    return [(100 * w / len(held), s, len(rest)) for w, s in zip(wrong, seconds, strict=True)]


def refined(X: np.ndarray, y: np.ndarray, rows: np.ndarray, count: int, seed: int) -> np.ndarray:
    """(d,) float32 weights of one cell; 1 without steps, or with one class."""
    classes = np.unique(y[rows])
    if not count or len(classes) < 2:
        return np.ones(X.shape[1], np.float32)
    Y = np.where(y[:, None] == (classes if len(classes) > 2 else classes[1:]), 1, -1).astype(np.float32)
    learner = Learner(X, Y, np.ones(len(y)), rows, SAMPLE)
    begin = learner.beginning(np.random.default_rng(seed))
    weights = learner.steps(begin, count, np.random.default_rng(seed)).values / begin.values
    return (weights * np.sqrt(len(weights) / np.square(weights).sum())).astype(np.float32)


def labels(X: np.ndarray, y: np.ndarray, Z: np.ndarray) -> np.ndarray:
    """What a cell answers for the rows Z."""
    if not len(Z):
        return np.empty(0)
    if len(np.unique(y)) < 2:
        return np.full(len(Z), y[0])
    return LocalSVC(scale="none", partition="none", metric="none", n_jobs=1).fit(X, y).predict(Z)


if __name__ == "__main__":
    main()
