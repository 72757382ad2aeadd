"""Times prediction with refitted models in cells of 2 000 rows: rows a second, on one core and two.

    python scripts/bench/predict.py DATA [--sizes 100000] [--sets higgs_like] [--quick]

SIZES are training rows; each model predicts 100 000 and 1 000 000 test rows (10 000 with --quick). The whole command
goes from text to text; the others have their rows in memory: our library, liquidSVM's model of the same rows in
Voronoi cells (trained before the clock starts), and one scikit-learn-intelex SVC of 5 000 rows, compared by row x
support vector. Our models are kept in the work folder (bench/run.py leaves its refitted ones there).
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))  # scripts, whose folders share the harness
from harness import cell_models, peers
from harness.commands import lsvm
from harness.comparison import OURS, Case, Comparison, Turn, main
from harness.datasets import GENERATED, Rows, arrays, available
from harness.library import LocalModel, support_pairs
from harness.summaries import Summary, fixed, megabytes, summaries, summary_table
from harness.tables import thousands
from harness.timing import Figures, error, timed

SETS = [GENERATED, "covtype"]
SIZES, QUICK_SIZES = [100_000, 1_000_000], [10_000]
TEST_ROWS, QUICK_TEST_ROWS = [100_000, 1_000_000], [10_000]
LARGEST_FOR_PEERS, SVC_ROWS, WARM_UP_ROWS = 100_000, 5000, 200


def cases(options: argparse.Namespace) -> list[Case]:
    """Training sizes, test sizes and cores; of a real set its own test rows."""
    sizes = sorted(options.sizes or (QUICK_SIZES if options.quick else SIZES))
    tests = QUICK_TEST_ROWS if options.quick else TEST_ROWS
    return [
        Case(name, rows, cores, (("test_rows", test),))
        for name in available(options, [GENERATED] if options.quick else SETS)
        for rows in (sizes if name == GENERATED else options.sizes or [0])
        for test in (tests if name == GENERATED else [0])
        for cores in (1, 2)
    ]


def takes_part(contestant: str, case: Case) -> bool:
    """Peers on the smaller test only, and at sizes that liquidSVM finishes to train (its training is not timed)."""
    if contestant.startswith(OURS):
        return True
    return case.get("test_rows") < TEST_ROWS[1] and case.rows <= LARGEST_FOR_PEERS


def prepare(case: Case, options: argparse.Namespace) -> None:
    """Files and the model."""
    cell_models.make_texts(case, options)
    cell_models.test_text(case, options, case.get("test_rows"))
    cell_models.model_file(case, options)


def test_arrays(case: Case, options: argparse.Namespace) -> tuple[Any, Any]:
    """The test rows as the file has them."""
    return arrays(options, case.set, case.get("test_rows") or 1 << 40, "test")


def command(case: Case, options: argparse.Namespace) -> Figures:
    """`lsvm-predict`, text to text."""
    test = cell_models.test_text(case, options, case.get("test_rows"))
    model = cell_models.model_file(case, options)
    with tempfile.TemporaryDirectory(dir=options.work) as folder:
        output = str(Path(folder) / "labels.txt")
        report, figures = lsvm("predict", ["-j", str(case.cores), str(test), str(model), output])
    return {**figures, "rows": report["total"], "error": 100 * (1 - report["accuracy"])}


def library(case: Case, options: argparse.Namespace) -> Figures:
    """`LocalModel.predict` on rows in memory; pairs: rows times the support vectors of the cells they fall into."""
    X, y = test_arrays(case, options)
    with LocalModel(cell_models.model_file(case, options), case.cores) as model:
        model.predict(X[:WARM_UP_ROWS])
        results: list[Any] = []
        figures = timed(lambda: results.append(model.predict(X)))
        pairs = support_pairs(model, X)
    return {**figures, "rows": len(y), "error": error(results[-1], y), "pairs": pairs}


def liquid(case: Case, options: argparse.Namespace) -> Figures:
    """A liquidSVM model's test of the same rows; its default, voting fold models."""
    module = peers.liquid_svm()
    rows = Rows.of(Case(case.set, case.rows or 1 << 40), options, case.get("test_rows") or 1 << 40)
    X, y = peers.rows_for("liquidSVM", rows.X, rows.y)
    model = module.mcSVM(X, y, threads=case.cores, partition_choice=peers.VORONOI_2000)
    wrong: list[float] = []
    figures = timed(lambda: wrong.append(peers.liquid_error(model, rows.X_test, rows.y_test)))
    return {**figures, "rows": len(rows.y_test), "error": wrong[-1]}


def intelex(case: Case, options: argparse.Namespace) -> Figures:
    """One SVC in float32, C = 1 and gamma = 1 / features."""
    make, rows = peers.svc("scikit-learn-intelex"), Rows.of(case, options, case.get("test_rows") or 1 << 40)
    X, y = peers.rows_for("scikit-learn-intelex", rows.X[:SVC_ROWS], rows.y[:SVC_ROWS])
    model = make(C=1.0, gamma=1 / X.shape[1]).fit(X, y)
    model.predict(X[:WARM_UP_ROWS])
    results: list[Any] = []
    figures = timed(lambda: results.append(model.predict(rows.X_test)))
    wrong = error(results[-1], rows.y_test)
    return {**figures, "rows": len(rows.y_test), "error": wrong, "pairs": len(rows.y_test) * peers.support(model)}


def rate(s: Summary) -> str:
    """Rows a second."""
    return thousands(round(s.figures["rows"] / s.figures["wall"])) if "rows" in s.figures else ""


def per_pair(s: Summary) -> str:
    """Nanoseconds per row and support vector."""
    return f"{1e9 * s.figures['wall'] / s.figures['pairs']:.3f}" if s.figures.get("pairs") else ""


def section(turns: list[Turn]) -> list[str]:
    """The table."""
    more = [("rows/s", rate), ("ns per row x SV", per_pair), ("error %", fixed("error", 2)), ("peak MiB", megabytes())]
    parameters = [("test rows", lambda s: thousands(s.case.get("test_rows")) if s.case.get("test_rows") else "all")]
    return summary_table(summaries(turns), more, parameters)


COMPARISON = Comparison(
    "predict",
    "Prediction with refitted models in cells of 2 000 rows",
    cases,
    {"localsvm": library, "localsvm, whole command": command, "liquidSVM": liquid, "scikit-learn-intelex": intelex},
    section,
    takes_part,
    prepare,
    introduction=[
        "localsvm is the library on rows in memory, as are the peers; the whole command is text to text.",
        "liquidSVM's model is its own on the same training rows, Voronoi cells of 2 000, and the fold models vote, as",
        "is its default. scikit-learn-intelex predicts in float32 with one SVC of at most 5 000 training rows: not the",
        "same model, hence the column of nanoseconds per row and support vector.",
    ],
)

if __name__ == "__main__":
    main(COMPARISON, __doc__)
