"""Times linear SVMs against LIBLINEAR: hinge and squared hinge, C = 0.01 and 1, bias appended and regularised.

    python scripts/bench/linear.py DATA [--sets a9a,covtype] [--peers none] [--quick]

Each solver as its users call it: ours to a duality gap of a thousandth of the objective, LIBLINEAR (by scikit-learn)
with its own tolerances, .1 for the dual solvers (-s 3, -s 1) and .01 for the primal one (-s 2), at most 300 passes as
in its command. The objective that each reaches, evaluated in float64, stands beside the time.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

sys.path.insert(0, str(Path(__file__).parents[1]))  # scripts, whose folders share the harness
from harness.comparison import Case, Comparison, Turn, main
from harness.datasets import GENERATED, arrays, available, examples
from harness.library import Examples, Hinge, LinearProblem, LinearRows, scaling_of, solve, thinned
from harness.summaries import fixed, megabytes, summaries, summary_table
from harness.timing import Figures, timed

SPARSE, DENSE = ["a9a", "w8a", "mnist"], ["ijcnn1", "covtype", GENERATED]
COSTS = (0.01, 1.0)
LOSSES = ("hinge", "squared")
ROWS, QUICK_ROWS, PASSES = 1_000_000, 20_000, 300
TOLERANCE = 1e-3
ROUND_DIGIT = 5  # of mnist: against the rest


def cases(options: argparse.Namespace) -> list[Case]:
    """Sets, losses and costs."""
    rows = {GENERATED: max(options.sizes or [QUICK_ROWS if options.quick else ROWS])}
    return [
        Case(name, rows.get(name, 0), 1, (("C", cost), ("loss", loss)))
        for name in available(options, DENSE[::-1] + SPARSE)
        for loss in LOSSES
        for cost in COSTS
    ]


def problem(case: Case, options: argparse.Namespace) -> tuple[Examples, Any]:
    """Rows, scaled by their deviations where they are dense, mnist's to [0, 1]; targets -1 and 1."""
    if case.set == GENERATED:
        X, y = arrays(options, case.set, case.rows, "train")
    else:
        data = examples(options.data, case.set, "train")
        X, y = data.X, np.where(data.y == (ROUND_DIGIT if case.set == "mnist" else data.y.max()), 1.0, -1.0)
    if case.set in SPARSE:
        X = thinned(X)
        X.data /= np.abs(X.data).max()
        return X, y
    return scaling_of(X, "std").apply(X), y


def objective(X: Examples, y: Any, case: Case, weights: Any) -> float:
    """Objective 1/2 |w|^2 + C sum of losses, with the bias as the last weight."""
    values = (X @ weights[:-1].astype(np.float64)) + weights[-1]
    slack = np.maximum(0.0, 1.0 - y * values)
    return float(0.5 * weights @ weights + case.get("C") * (slack**2 if case.get("loss") == "squared" else slack).sum())


def ours(solver: str, case: Case, options: argparse.Namespace) -> Figures:
    """The solver that `-m linear` calls."""
    X, y = problem(case, options)
    solutions: list[Any] = []

    def fit() -> None:
        rows, cost = LinearRows(X), np.full(len(y), case.get("C"))
        solutions.append(solve(LinearProblem(rows, y, cost, Hinge(case.get("loss") == "squared")), TOLERANCE, solver))

    figures = timed(fit)
    w = solutions[-1].w
    weights = np.append(w[: X.shape[1]], w[-1])
    return {**figures, "objective": objective(X, y, case, weights), "converged": solutions[-1].report.converged}


def liblinear(dual: bool, case: Case, options: argparse.Namespace) -> Figures:
    """LIBLINEAR on float64 rows with the constant appended, as scikit-learn hands them to it."""
    from sklearn.svm import LinearSVC

    X, y = problem(case, options)
    ones = np.ones((len(y), 1))
    if isinstance(X, np.ndarray):
        rows = np.hstack([X, ones]).astype(np.float64)
    else:
        rows = sparse.csr_matrix(sparse.hstack([X.astype(np.float64), sparse.csr_array(ones)], format="csr"))
    if sparse.issparse(rows):
        rows.indices, rows.indptr = rows.indices.astype(np.int32), rows.indptr.astype(np.int32)
    loss = {"hinge": "hinge", "squared": "squared_hinge"}[case.get("loss")]
    tolerance = 0.1 if dual else 0.01
    model = LinearSVC(
        C=case.get("C"), loss=loss, dual=dual, tol=tolerance, fit_intercept=False, max_iter=PASSES, random_state=0
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the pass limit: it is in the table
        figures = timed(lambda: model.fit(rows, y))
    reached = objective(X, y, case, model.coef_.ravel())
    return {**figures, "objective": reached, "converged": bool(model.n_iter_ < PASSES)}


def takes_part(contestant: str, case: Case) -> bool:
    """True but for LIBLINEAR's primal solver and the hinge, which it has not."""
    return contestant != "LIBLINEAR, primal" or case.get("loss") == "squared"


def section(turns: list[Turn]) -> list[str]:
    """The table."""
    more = [
        ("objective", fixed("objective", 3)),
        ("within its limit", lambda s: {True: "yes", False: "no"}.get(s.figures.get("converged"), "")),
        ("peak MiB", megabytes()),
    ]
    parameters = [("loss", lambda s: s.case.get("loss")), ("C", lambda s: f"{s.case.get('C'):g}")]
    return summary_table(summaries(turns), more, parameters)


COMPARISON = Comparison(
    "linear",
    "One linear SVM, one core",
    cases,
    {
        "localsvm": partial(ours, "auto"),
        "localsvm, sdca": partial(ours, "sdca"),
        "LIBLINEAR, dual": partial(liblinear, True),
        "LIBLINEAR, primal": partial(liblinear, False),
    },
    section,
    takes_part,
    target="bench-linear DATA",
    introduction=[
        "Rows in memory. Dense sets are divided by their standard deviations; mnist is its digit 5 against the rest,",
        "in [0, 1]. Ours stop at a duality gap of a thousandth of the objective, LIBLINEAR at its own tolerances (.1",
        "dual, .01 primal) or after 300 passes.",
    ],
)

if __name__ == "__main__":
    main(COMPARISON, __doc__)
