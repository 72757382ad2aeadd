"""Time of mixtures of linear SVMs on ijcnn1, beside CSVM, our own kernel SVM and LIBSVM: training and prediction.

    python scripts/bench_mtl.py DATA [--out docs/results/mtl] [--repeats 9]

K = 14, rows of length 1, one point of the grid each. Times are processor seconds of one thread: of training, its worker
included, and of decision values of the test rows, the smallest of some repeats. The kernel SVM has the gamma and C that
cross-validation chooses on 6 000 rows. LIBSVM (scikit-learn's SVC) has 7 924 support vectors as the paper's; its time
depends on their number alone, and is measured on a part of the rows. OUT/speed.jsonl and OUT/speed.md.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from harness.datasets import examples
from harness.experiment import Experiment, carry_out
from harness.library import Dataset, LocalModel, TrainingConfig, methods, train
from harness.machine import processors
from harness.options import parsed, parser
from harness.runlog import Run
from harness.tables import table
from harness.timing import processor_seconds
from reproduce_l3 import kernel_point
from reproduce_mtl import text_files
from sklearn.svm import SVC
from threadpoolctl import threadpool_limits

SET, K, COST = "ijcnn1", 14.0, 1000.0
SUPPORT_VECTORS, PART = 7924, 1000
MIXTURE = {"clusters": (K,), "cost": (COST,), "shrinkage": (0.0001,), "coupling": (10.0,)}
CASES: dict[str, tuple[str, dict[str, Any]]] = {
    "LSVM-MTL": ("mtl", MIXTURE),
    "LSVM-MTL, diagonal": ("mtl", MIXTURE | {"covariance": "diag"}),
    "CSVM": ("csvm", {"clusters": (K,), "cost": (COST,), "common": (10.0,)}),
    "K-means+SVM": ("kmeans-svm", {"clusters": (K,), "cost": (COST,)}),
    "kernel SVM": ("rbf", {}),
    "LIBSVM": ("", {}),
}
ABOUT = """\
# Time of LSVM-MTL on ijcnn1

Written by `python scripts/bench_mtl.py DATA`: 49 990 training and {rows} test rows, 22 features, K = {clusters:g}, rows
of length 1. Processor seconds of one thread, at one point of the grid: C = {cost:g}, coupling 10 and 5 groups, lambda
of CSVM 10. Prediction is of all test rows, the best of {repeats} repeats. The kernel SVM has what cross-validation on
6 000 rows chooses, LIBSVM as many support vectors as the paper's ({vectors}); {processor}.
"""


@dataclass(frozen=True)
class Timing(Run):
    """Seconds of one case."""

    case: str
    train: float | None
    predict: float
    support_vectors: int
    accuracy: float | None
    rows: int

    @property
    def key(self) -> str:
        """The case."""
        return self.case


def main() -> None:
    """Measure what is missing, then write the page."""
    given = parser(__doc__, out=Path("docs/results/mtl"))
    given.add_argument("--repeats", type=int, default=9, help="predictions of a case (default %(default)s)")
    carry_out(Experiment("speed", Timing, lambda _: list(CASES), measure, page, progress), parsed(given))


def measure(missing: list[str], _: list[Timing], options: Any) -> Iterator[Timing]:
    """Case by case, on one thread."""
    data, test = (examples(options.data, SET, part) for part in ("train", "test"))
    with threadpool_limits(1):
        for case in missing:
            method, given = CASES[case]
            if case == "LIBSVM":
                yield libsvm(data, test, options.repeats)
            else:
                yield ours(
                    case, method, chosen(options.data) if method == "rbf" else given, data, test, options.repeats
                )


def ours(case: str, method: str, given: dict[str, Any], data: Any, test: Any, repeats: int) -> Timing:
    """Training and prediction in this process."""
    config = TrainingConfig(methods()[method](**given), partition="none", scale="row")
    with tempfile.TemporaryDirectory() as folder:
        path, started = Path(folder) / "m.h5", processor_seconds()
        summary = train(Dataset(data.X.copy(), data.y), config, path, jobs=1)
        spent = processor_seconds() - started
        with LocalModel(path) as model:
            model.decision_function(test.X[:100])  # what is made on first use
            values, seconds = best_of(repeats, lambda: model.decision_function(test.X))
    right = float(np.mean((np.ravel(values) > 0) == (test.y > 0)))
    return Timing(case, spent, seconds, summary.support_vectors, 100 * right, len(test.y))


def chosen(data: Path) -> dict[str, Any]:
    """gamma and C of the kernel SVM."""
    with text_files(data, SET) as files:
        words = kernel_point(["-m", "rbf", "--scale", "row"], files)
    return {"gamma": (float(words[1]),), "cost": (float(words[3]),)}


def libsvm(data: Any, test: Any, repeats: int) -> Timing:
    """A model in which every row is a support vector."""
    X = data.X[:: len(data.y) // SUPPORT_VECTORS][:SUPPORT_VECTORS]
    model = SVC(C=1e-3, gamma=1e4).fit(X, np.where(np.arange(len(X)) % 2, 1, -1))
    _, seconds = best_of(repeats, lambda: model.decision_function(test.X[:PART]))
    return Timing("LIBSVM", None, seconds * len(test.y) / PART, int(model.n_support_.sum()), None, len(test.y))


def best_of(repeats: int, work: Any) -> tuple[Any, float]:
    """The result, and the fewest processor seconds."""
    seconds = []
    for _ in range(repeats):
        started = processor_seconds()
        found = work()
        seconds.append(processor_seconds() - started)
    return found, min(seconds)


def progress(run: Timing) -> str:
    """What the terminal shows of a case."""
    return f"{run.case}: training {run.train or 0:.2f} s, prediction {run.predict:.3f} s"


def page(runs: Sequence[Timing], options: Any) -> str:
    """The table."""
    rows, known = max(run.rows for run in runs), {run.case: run for run in runs}
    about = ABOUT.format(
        rows=f"{rows:,}".replace(",", " "), clusters=K, cost=COST, repeats=options.repeats, vectors=SUPPORT_VECTORS,
        processor=processors(run.machine for run in runs),
    )  # fmt: skip
    mixture = known.get("LSVM-MTL")
    lines = [
        [
            case,
            "" if run.train is None else f"{run.train:.2f}",
            f"{run.predict:.3f}",
            "" if mixture is None else f"{run.predict / mixture.predict:.1f}",
            run.support_vectors or "",
            "" if run.accuracy is None else f"{run.accuracy:.2f}",
        ]
        for case, run in known.items()
    ]
    head = ("", "training", "prediction", "of LSVM-MTL's", "support vectors", "accuracy %")
    return "\n".join([about, *table(head, lines)])


if __name__ == "__main__":
    main()
