"""Times one fit of one problem with offset: gamma = 1 / features, C = 1 and 16, LIBSVM's tolerance 0.001.

    python scripts/bench_single.py DATA [--sizes 2000,10000] [--sets higgs_like] [--peers thundersvm] [--quick]

Up to 15 000 rows on one core, the library's call for a cell. From 20 000 rows on a whole training run without a
partition on two cores within 8 GiB, its model file included. Peers: scikit-learn, scikit-learn-intelex, thundersvm.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from functools import partial
from pathlib import Path
from typing import Any

from harness import peers
from harness.comparison import Case, Comparison, Turn, main
from harness.datasets import Rows, available, dataset
from harness.library import LocalModel, Summary, TrainingConfig, fit_at_one_point, kernel_svm, predicted, train
from harness.memory import Memory
from harness.summaries import fixed, megabytes, summaries, summary_table, whole
from harness.timing import Figures, error, timed

SETS = ["higgs_like", "covtype", "ijcnn1", "skin_nonskin", "cod-rna"]
SIZES, QUICK_SIZES = [2000, 5000, 10_000, 15_000, 20_000, 100_000], [2000]
COSTS = (1.0, 16.0)
LARGE, MEMORY, TOLERANCE, WARM_UP_ROWS = 20_000, 8 << 30, 1e-3, 200


def cases(options: argparse.Namespace) -> list[Case]:
    """Sets, costs and sizes; sizes that a set does not have are left out."""
    sizes = options.sizes or (QUICK_SIZES if options.quick else SIZES)
    largest = {"ijcnn1": 35_000, "cod-rna": 60_000}  # all their rows and no more
    return [
        Case(name, rows, 1 if rows < LARGE else 2, (("C", cost),))
        for name in available(options, SETS)
        for cost in COSTS
        for rows in sorted(sizes)
        if rows <= largest.get(name, rows)
    ]


def ours(case: Case, options: argparse.Namespace) -> Figures:
    """One core: what a worker does with a cell; two: a run of the library."""
    rows = Rows.of(case, options, draw=options.draw)
    method = kernel_svm(1 / rows.X.shape[1], case.get("C"), TOLERANCE)
    return in_cell(method, rows) if case.cores == 1 else whole_run(method, rows, case)


def in_cell(method: Any, rows: Rows) -> Figures:
    """Fit within this process."""
    fit_at_one_point(method, rows.X[:WARM_UP_ROWS], rows.y[:WARM_UP_ROWS])
    results: list[Any] = []
    figures = timed(lambda: results.append(fit_at_one_point(method, rows.X, rows.y)))
    wrong = error(predicted(results[-1], rows.X_test, method), rows.y_test)
    return {**figures, "error": wrong, "support_vectors": results[-1].report.support_vectors}


def whole_run(method: Any, rows: Rows, case: Case) -> Figures:
    """`lsvm-train -P none --metric none --offset --memory 8G` without the reading; no repetition."""
    config = TrainingConfig(method=method, partition="none", scale="none", metric="none", select="refit")
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as folder:
        model, data, results = Path(folder) / "model.h5", dataset(rows), list[Summary]()
        with Memory(os.getpid()) as memory:
            run = partial(train, data, config, model, jobs=case.cores, memory=MEMORY)
            figures = timed(lambda: results.append(run()), most=1)  # it consumes the data
        with LocalModel(model, case.cores) as local:
            wrong = error(local.predict(rows.X_test), rows.y_test)
    return {**figures, "peak": memory.peak, "error": wrong, "support_vectors": results[-1].support_vectors}


def theirs(peer: str, case: Case, options: argparse.Namespace) -> Figures:
    """A peer's SVC."""
    make, rows = peers.svc(peer), Rows.of(case, options, draw=options.draw)
    X, y = peers.rows_for(peer, rows.X, rows.y)
    X_test, _ = peers.rows_for(peer, rows.X_test, rows.y_test)
    parameters = {"kernel": "rbf", "C": case.get("C"), "gamma": 1 / X.shape[1], "tol": TOLERANCE}
    make(**parameters).fit(X[:WARM_UP_ROWS], y[:WARM_UP_ROWS])
    model = make(**parameters)
    figures = timed(lambda: model.fit(X, y))
    wrong = error(model.predict(X_test), rows.y_test)
    return {**figures, "error": wrong, "support_vectors": peers.support(model)}


def section(turns: list[Turn]) -> list[str]:
    """The table."""
    more = [("error %", fixed("error", 2)), ("support vectors", whole("support_vectors")), ("peak MiB", megabytes())]
    return summary_table(summaries(turns), more, [("C", lambda s: f"{s.case.get('C'):g}")])


COMPARISON = Comparison(
    "single",
    "One fit with offset, gamma = 1 / features, tolerance 0.001",
    cases,
    {"localsvm": ours} | {peer: partial(theirs, peer) for peer in peers.SVCS},
    section,
    about=[
        "Rows are divided by their standard deviations; errors are on up to 20 000 test rows. Up to 15 000 rows it is",
        "the call that a worker makes for a cell, on one core; beyond, a run of the library without a partition within",
        "8 GiB, its model file included, on two. scikit-learn-intelex gets float32. Kernel caches of the peers hold",
        "1 000 MB.",
    ],
)

if __name__ == "__main__":
    main(COMPARISON, __doc__)
