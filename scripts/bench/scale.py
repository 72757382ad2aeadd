"""Growth of training time: with the rows at cells of 2 000, and with the cell size at 100 000 rows, on two cores.

    python scripts/bench/scale.py [--sizes 10000,100000] [--quick]

Runs of bench/run.py that are the same (rows, cores, default cells) are taken from its results and not repeated. The
exponent is the slope of a straight line through the logarithms.
"""

from __future__ import annotations

import argparse
import sys
from functools import partial
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))  # scripts, whose folders share the harness
from harness import cell_models
from harness.comparison import Case, Comparison, Turn, main
from harness.datasets import GENERATED, available
from harness.summaries import Summary, fixed, summaries, summary_table
from harness.tables import number, thousands
from harness.timing import Figures

SIZES, QUICK_SIZES = [10_000, 30_000, 100_000, 300_000, 1_000_000, 3_000_000, 10_000_000], [4_000, 8_000, 16_000]
CELL_SIZES, QUICK_CELL_SIZES = [1000, 3000, 5000, 10_000, 20_000], [500, 1000]
CELL_ROWS, QUICK_CELL_ROWS, CORES = 100_000, 8_000, 2


def cases(options: argparse.Namespace) -> list[Case]:
    """The rows at cells of 2 000, then other cell sizes."""
    sizes = sorted(options.sizes or (QUICK_SIZES if options.quick else SIZES))
    rows, cell_sizes = (QUICK_CELL_ROWS, QUICK_CELL_SIZES) if options.quick else (CELL_ROWS, CELL_SIZES)
    names = available(options, [GENERATED])
    growing = [Case(name, n, CORES) for name in names for n in sizes]
    return growing + [Case(name, rows, CORES, (("cell_size", size),)) for name in names for size in cell_sizes]


def ours(search: str, case: Case, options: argparse.Namespace) -> Figures:
    """Figures of a training run, as in bench/run.py."""
    return cell_models.train(case, options, search)


def cell_size(s: Summary) -> int:
    """Rows that a cell may have."""
    return int(s.case.get("cell_size", cell_models.CELL_SIZE))


def slope(points: list[tuple[float, float]]) -> float | None:
    """The exponent of the power law through the points (least squares of the logarithms); None for fewer than two."""
    if len({x for x, _ in points}) < 2:
        return None
    x, y = np.log(np.asarray(points)).T
    return float(np.polyfit(x, y, 1)[0])


def exponents(rows_of_page: list[Summary], contestant: str) -> list[str]:
    """Time against rows, and against the cell size, of one contestant."""
    good = [s for s in rows_of_page if s.contestant == contestant and s.status == "ok" and s.case.cores == CORES]
    by_rows = [(s.case.rows, s.figures["wall"]) for s in good if cell_size(s) == cell_models.CELL_SIZE]
    trained = [(s.case.rows, s.figures["seconds"]["train"]) for s in good if cell_size(s) == cell_models.CELL_SIZE]
    rows = max((s.case.rows for s in good if s.case.get("cell_size")), default=0)
    by_cell = [(cell_size(s), s.figures["seconds"]["train"]) for s in good if s.case.rows == rows]
    slopes = [
        ("the whole run against rows", slope(by_rows)),
        ("the training phase against rows", slope(trained)),
        (f"the training phase against the cell size, {thousands(rows)} rows", slope(by_cell)),
    ]
    return [f"- {contestant}: {what}: {number(value)}" for what, value in slopes if value is not None]


def section(turns: list[Turn]) -> list[str]:
    """The table and the exponents."""
    names = [name for name in COMPARISON.contestants if any(t.contestant == name for t in turns)]
    mine = [s for s in summaries(turns) if s.contestant in names]
    shown = [s for s in mine if s.case.set == GENERATED and s.case.cores == CORES]
    shown.sort(key=lambda s: (cell_size(s), s.case.rows))
    more = [
        ("train s", lambda s: number(s.figures["seconds"]["train"]) if "seconds" in s.figures else ""),
        ("cells", fixed("cells", 0)),
        ("error %", fixed("error", 2)),
    ]
    lines = summary_table(shown, more, [("cell size", lambda s: thousands(cell_size(s)))])
    return [*lines, "", "Exponents (slopes on log-log axes):", "", *(e for n in names for e in exponents(shown, n))]


COMPARISON = Comparison(
    "scale",
    "How training time grows with rows and with cells",
    cases,
    {"localsvm": partial(ours, "full"), "localsvm, adaptive": partial(ours, "adaptive")},
    section,
    prepare=cell_models.make_texts,
    reuse=("run",),
    introduction=[
        "`lsvm-train -P voronoi --metric none` as a process on two cores, text file to model file, on HIGGS-like",
        "rows.",
    ],
)

if __name__ == "__main__":
    main(COMPARISON, __doc__)
