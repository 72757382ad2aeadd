"""Times the whole selection of one cell: 10 x 10 grid, 5 folds, the best point refitted, on one core.

    python scripts/bench_cell.py DATA [--sizes 2000,5000] [--sets higgs_like] [--peers liquidSVM] [--quick]

Peers: liquidSVM, the same protocol with its default grid and voting fold models (refitting is not its default); and one
single fit of scikit-learn's SVC with C = 1 and gamma = scale, which selects nothing, as a unit of time.
"""

from __future__ import annotations

import argparse
from functools import partial
from typing import Any

import numpy as np
from benchmarking import inside, peers
from benchmarking.report import fixed, megabytes, number, summaries, table, whole
from benchmarking.running import Case, Job, Record, main
from benchmarking.sets import Rows, available

from localsvm.methods.base import Cell, Fitted, Grid, Scores
from localsvm.methods.svm import KernelSVM
from localsvm.runs.cell_work import select
from localsvm.selection.folds import stratified
from localsvm.selection.search import Search
from localsvm.targets.classification import Scheme

SETS = ["higgs_like", "covtype", "ijcnn1", "skin_nonskin"]
SIZES, QUICK_SIZES = [2000, 5000, 10_000, 15_000], [1000, 2000]
FOLDS, SEED, WARM_UP_ROWS = 5, 0, 200


def cases(options: argparse.Namespace) -> list[Case]:
    """Sets and sizes, small ones first."""
    sizes = options.sizes or (QUICK_SIZES if options.quick else SIZES)
    return [Case(name, rows) for name in available(options, SETS) for rows in sorted(sizes)]


def cell_of(X: Any, y: Any) -> Cell:
    """The training cell, rows in the order of their folds."""
    folds = stratified(y, FOLDS, np.random.default_rng(SEED))
    order = np.argsort(folds, kind="stable")
    scheme, y = Scheme(np.array([-1.0, 1.0])), y[order]
    return Cell(X[order], y, scheme, scheme.targets(y), np.ones(len(y)), np.ones(len(y)), folds[order])


def train(search: str, X: Any, y: Any) -> tuple[Cell, Grid, Scores, Fitted]:
    """Score the grid, refit the best point."""
    cell, method = cell_of(X, y), KernelSVM()
    grid = method.grid(cell, float(len(y)), FOLDS)
    scores = select(method, cell, grid, Search(search))
    return cell, grid, scores, method.fit(cell, grid, scores, "refit")


def ours(search: str, case: Case, options: argparse.Namespace) -> Record:
    """The calls that a worker makes for a cell."""
    rows = Rows.of(case, options, draw=options.draw)
    train(search, rows.X[:WARM_UP_ROWS], rows.y[:WARM_UP_ROWS])
    results = []
    figures = inside.timed(lambda: results.append(train(search, rows.X, rows.y)))
    cell, grid, scores, fitted = results[-1]
    voting = KernelSVM().fit(cell, grid, scores, "vote")
    figures |= {"error": wrong(fitted, rows), "error_voting": wrong(voting, rows)}
    return {**figures, "support_vectors": fitted.report["support_vectors"]}


def wrong(fitted: Fitted, rows: Rows) -> float:
    """Test error in per cent."""
    decisions = KernelSVM().predictor(fitted.state, 1, rows.X.shape[1]).decision_function(rows.X_test)[:, 0]
    return inside.error(np.where(decisions > 0, 1.0, -1.0), rows.y_test)


def liquid(case: Case, options: argparse.Namespace) -> Record:
    """mcSVM's constructor trains and selects."""
    module, rows = peers.liquid_svm(), Rows.of(case, options, draw=options.draw)
    X, y = peers.rows_for("liquidSVM", rows.X, rows.y)
    module.mcSVM(X[:WARM_UP_ROWS], y[:WARM_UP_ROWS], threads=1)
    models = []
    figures = inside.timed(lambda: models.append(module.mcSVM(X, y, threads=1)))
    return {**figures, "error": peers.liquid_error(models[-1], rows.X_test, rows.y_test)}


def one_fit(case: Case, options: argparse.Namespace) -> Record:
    """One SVC of scikit-learn."""
    make, rows = peers.svc("scikit-learn"), Rows.of(case, options, draw=options.draw)
    X, y = peers.rows_for("scikit-learn", rows.X, rows.y)
    make().fit(X[:WARM_UP_ROWS], y[:WARM_UP_ROWS])
    model = make(C=1.0, gamma="scale")
    figures = inside.timed(lambda: model.fit(X, y))
    wrong = inside.error(model.predict(rows.X_test), rows.y_test)
    return {**figures, "error": wrong, "support_vectors": peers.support(model)}


def page(records: list[Record]) -> list[str]:
    """The table and, below it, the cross-validation in units of one fit."""
    found = summaries(records)
    more = [
        ("error %", fixed("error", 2)),
        ("if folds vote", fixed("error_voting", 2)),
        ("support vectors", whole("support_vectors")),
        ("peak MiB", megabytes()),
    ]
    units = [
        f"- {s.case.set}, {s.case.rows} rows: {number(1 / s.ratio)} fits"
        for s in found
        if s.contestant == "one scikit-learn fit" and s.ratio
    ]
    heading = ["", "The whole selection costs as much as this many fits of scikit-learn's SVC:", ""]
    return [*table(found, more), *(heading + units if units else [])]


JOB = Job(
    "cell",
    "One cell: 10 x 10 grid, 5 folds, refitted, one core",
    cases,
    {
        "localsvm": partial(ours, "full"),
        "localsvm, adaptive": partial(ours, "adaptive"),
        "liquidSVM": liquid,
        "one scikit-learn fit": one_fit,
    },
    page,
    about=[
        "Rows are divided by their standard deviations; errors are on up to 20 000 test rows. liquidSVM selects on its",
        "own default grid of the same size; its fold models vote, as is its default: compare its error with the column",
        "of ours for that. One SVC fit (C = 1, gamma = scale) selects nothing and stands for a unit of time.",
    ],
)

if __name__ == "__main__":
    main(JOB)
