"""Times the whole selection of one cell: 10 x 10 grid, 5 folds, the best point refitted, on one core.

    python scripts/bench/cell.py DATA [--sizes 2000,5000] [--sets higgs_like] [--peers liquidSVM] [--quick]

Peers: liquidSVM, the same protocol with its default grid and voting fold models (refitting is not its default); and one
single fit of scikit-learn's SVC with C = 1 and gamma = scale, which selects nothing, as a unit of time.
"""

from __future__ import annotations

import argparse
import sys
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))  # scripts, whose folders share the harness
from harness import peers
from harness.comparison import Case, Comparison, Turn, main
from harness.datasets import Rows, available
from harness.library import SelectedCell, predicted
from harness.summaries import fixed, megabytes, summaries, summary_table, whole
from harness.tables import number
from harness.timing import Figures, error, timed

SETS = ["higgs_like", "covtype", "ijcnn1", "skin_nonskin"]
SIZES, QUICK_SIZES = [2000, 5000, 10_000, 15_000], [1000, 2000]
WARM_UP_ROWS = 200


def cases(options: argparse.Namespace) -> list[Case]:
    """Sets and sizes, small ones first."""
    sizes = options.sizes or (QUICK_SIZES if options.quick else SIZES)
    return [Case(name, rows) for name in available(options, SETS) for rows in sorted(sizes)]


def ours(search: str, case: Case, options: argparse.Namespace) -> Figures:
    """The calls that a worker makes for a cell."""
    rows = Rows.of(case, options, draw=options.draw)
    SelectedCell(rows.X[:WARM_UP_ROWS], rows.y[:WARM_UP_ROWS], search)
    results: list[SelectedCell] = []
    figures = timed(lambda: results.append(SelectedCell(rows.X, rows.y, search)))
    fitted, voting = results[-1].refitted, results[-1].voting()
    figures |= {name: error(predicted(f, rows.X_test), rows.y_test)
                for name, f in (("error", fitted), ("error_voting", voting))}  # fmt: skip
    return {**figures, "support_vectors": fitted.report.support_vectors}


def liquid(case: Case, options: argparse.Namespace) -> Figures:
    """Training and selection of liquidSVM, which the constructor of mcSVM does."""
    module, rows = peers.liquid_svm(), Rows.of(case, options, draw=options.draw)
    X, y = peers.rows_for("liquidSVM", rows.X, rows.y)
    module.mcSVM(X[:WARM_UP_ROWS], y[:WARM_UP_ROWS], threads=1)
    models = []
    figures = timed(lambda: models.append(module.mcSVM(X, y, threads=1)))
    return {**figures, "error": peers.liquid_error(models[-1], rows.X_test, rows.y_test)}


def one_fit(case: Case, options: argparse.Namespace) -> Figures:
    """One SVC of scikit-learn."""
    make, rows = peers.svc("scikit-learn"), Rows.of(case, options, draw=options.draw)
    X, y = peers.rows_for("scikit-learn", rows.X, rows.y)
    make().fit(X[:WARM_UP_ROWS], y[:WARM_UP_ROWS])
    model = make(C=1.0, gamma="scale")
    figures = timed(lambda: model.fit(X, y))
    wrong = error(model.predict(rows.X_test), rows.y_test)
    return {**figures, "error": wrong, "support_vectors": peers.support(model)}


def section(turns: list[Turn]) -> list[str]:
    """The table and, below it, the cross-validation in units of one fit."""
    rows = summaries(turns)
    more = [
        ("error %", fixed("error", 2)),
        ("if folds vote", fixed("error_voting", 2)),
        ("support vectors", whole("support_vectors")),
        ("peak MiB", megabytes()),
    ]
    units = [
        f"- {s.case.set}, {s.case.rows} rows: {number(1 / s.ratio)} fits"
        for s in rows
        if s.contestant == "one scikit-learn fit" and s.ratio
    ]
    heading = ["", "The whole selection costs as much as this many fits of scikit-learn's SVC:", ""]
    return [*summary_table(rows, more), *(heading + units if units else [])]


COMPARISON = Comparison(
    "cell",
    "One cell: 10 x 10 grid, 5 folds, refitted, one core",
    cases,
    {
        "localsvm": partial(ours, "full"),
        "localsvm, adaptive": partial(ours, "adaptive"),
        "liquidSVM": liquid,
        "one scikit-learn fit": one_fit,
    },
    section,
    introduction=[
        "Rows are divided by their standard deviations; errors are on up to 20 000 test rows. liquidSVM selects on its",
        "own default grid of the same size; its fold models vote, as is its default: compare its error with the column",
        "of ours for that. One SVC fit (C = 1, gamma = scale) selects nothing and stands for a unit of time.",
    ],
)

if __name__ == "__main__":
    main(COMPARISON, __doc__)
