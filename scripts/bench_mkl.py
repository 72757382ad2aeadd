"""Times SequentialMKL against SimpleMKL on the whole bank of `-m mkl`, to the same certified gap of 1 %.

    python scripts/bench_mkl.py [DATA] [--sizes 300] [--sets ionosphere,heart] [--quick]

Each is the library's call for a cell at one cost, on one core, kernel matrices included. The sets are the generated one
and, from DATA, small ones; features are centred and divided by their deviations, as in the SimpleMKL paper.
"""

from __future__ import annotations

import argparse
from functools import partial
from typing import Any

import numpy as np
from harness.comparison import Case, Comparison, Turn, main
from harness.datasets import GENERATED, arrays, available, examples
from harness.library import fit_at_one_point, methods, scaling_of
from harness.summaries import fixed, megabytes, summaries, summary_table, whole
from harness.timing import Figures, timed

SETS = ["ionosphere", "sonar", "heart"]
COSTS = (1.0, 100.0)
ROWS, QUICK_ROWS = 300, 100


def cases(options: argparse.Namespace) -> list[Case]:
    """Sets and costs; of the real sets all training rows."""
    rows = {GENERATED: max(options.sizes or [QUICK_ROWS if options.quick else ROWS])}
    names = [GENERATED] if options.quick else [GENERATED, *SETS]
    return [Case(name, rows.get(name, 0), 1, (("C", cost),)) for name in available(options, names) for cost in COSTS]


def fitted(which: str, case: Case, options: argparse.Namespace) -> Figures:
    """One solver; what it reached stands beside the time."""
    if case.set == GENERATED:
        X, y = arrays(options, case.set, case.rows, "train")
    else:
        found = examples(options.data, case.set, "train")
        X, y = found.X, np.where(found.y == found.y.max(), 1.0, -1.0)
    X = np.ascontiguousarray(scaling_of(X, "zscore").apply(X), np.float32)
    method = methods()["mkl"](mkl=which, cost=(case.get("C"),))
    results: list[Any] = []
    figures = timed(lambda: results.append(fit_at_one_point(method, X, y)))
    state = results[-1].state
    gap, solves = float(state["model_gap"][0]), int(state["model_iterations"][0])
    return {**figures, "gap": 100 * gap, "solves": solves, "kernels": len(state["kernel_weight"])}


def section(turns: list[Turn]) -> list[str]:
    """The table."""
    more = [("gap %", fixed("gap", 2)), ("kernels", whole("kernels")), ("SVMs solved", whole("solves"))]
    return summary_table(
        summaries(turns), [*more, ("peak MiB", megabytes())], [("C", lambda s: f"{s.case.get('C'):g}")]
    )


COMPARISON = Comparison(
    "mkl",
    "One mixture of kernels, to a gap of 1 %, one core",
    cases,
    {"localsvm": partial(fitted, "sequential"), "localsvm, simple": partial(fitted, "simple")},
    section,
    target="bench-mkl",
    about=[
        "The bank of `-m mkl`: ten Gaussians and three polynomials of all variables, and of each. Features are centred",
        "and divided by their deviations. The times include the kernel matrices.",
    ],
)

if __name__ == "__main__":
    main(COMPARISON, __doc__)
