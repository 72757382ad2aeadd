"""Times the division of HIGGS-like rows in memory into Voronoi cells: scaling, the tree, the copy into cell order.

python scripts/bench_partition.py [ROWS] [--jobs 2] [--cell-size 2000] [--seed 0]
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import TypeVar

import numpy as np
from harness.library import SharedExamples, Threads, scaling_of, size_spread, voronoi
from harness.timing import timed

from localsvm.data.synthetic import higgs_like

Result = TypeVar("Result")


def print_seconds(name: str, work: Callable[[], Result]) -> Result:
    """What the work returns; its wall-clock and processor seconds are printed."""
    results: list[Result] = []
    figures = timed(lambda: results.append(work()), most=1)
    print(f"{name:<10}{figures['wall']:8.2f} s {figures['cpu']:8.2f} processor s", flush=True)
    return results[0]


def main() -> None:
    """Divide the rows, and say how the cells came out."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rows", nargs="?", type=int, default=1_000_000)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--cell-size", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    X, y = higgs_like(given.rows, np.random.default_rng(given.seed))
    with Threads(given.jobs) as threads:
        scaling = print_seconds("scaling", lambda: scaling_of(X, "std", threads))
        print_seconds("apply", lambda: scaling.apply(X, in_place=True))
        rng = np.random.default_rng(given.seed)
        fitted = print_seconds("tree", lambda: voronoi(X, y, given.cell_size, rng, threads))
        rows = np.concatenate([cell.rows for cell in fitted.training_cells()])
        print_seconds("copy", lambda: SharedExamples(X, rows, threads))
    print_seconds("assign", lambda: fitted.assign(X[:500_000]))
    found = size_spread([len(cell.rows) for cell in fitted.training_cells()])
    print(", ".join(f"{name} {value:g}" for name, value in found.items()))


if __name__ == "__main__":
    main()
