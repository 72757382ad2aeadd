"""Times L3-SVM on mnist beside a linear SVM on the same landmarks, a linear SVM, and a Gaussian one.

    python scripts/bench_l3.py DATA [--repeats 1]

Whole `lsvm-train` and `lsvm-predict` processes on one core, each method at the point that cross-validation on 6 000
training rows chose (not timed), the costs divided by ten for ten times the rows; the ten classes one against the rest.
"""

from __future__ import annotations

import argparse
import tempfile
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from harness.commands import lsvm
from harness.comparison import Case, Comparison, Turn, main
from harness.datasets import available, examples
from harness.library import LocalModel, as_examples, write
from harness.summaries import fixed, megabytes, summaries, summary_table
from harness.tables import number
from harness.timing import Figures, timed
from scipy import sparse

CHOOSE_ROWS = 6000
K = 90  # the paper's
L3 = ["-m", "l3", "--loss", "squared"]
METHODS = {
    "l3": [*L3, "-K", str(K)],
    "l3, one cluster": [*L3, "-K", "1"],
    "linear": ["-m", "linear", "--loss", "squared"],
    "rbf": ["-m", "rbf"],
}


def cases(options: argparse.Namespace) -> list[Case]:
    """Mnist."""
    return [Case(name, 0, 1) for name in available(options, ["mnist"])]


def run(method: str, case: Case, options: argparse.Namespace) -> Figures:
    """Train and predict; figures of the training, with those of prediction as predict_*."""
    point = chosen(method, case, options)
    train = text_of(case, options, "train")
    test = examples(options.data, case.set, "test")
    with tempfile.TemporaryDirectory(dir=options.work) as folder:
        model = Path(folder) / "model.h5"
        report, figures = lsvm("train", [*METHODS[method], *point, "-j", "1", str(train), str(model)])
        size = model.stat().st_size
        labels: list[Any] = []
        with LocalModel(model) as fitted:
            X = as_wide(test.X, fitted.features)
            predicting = timed(lambda: labels.append(fitted.predict(X.copy())))
    summary = report["summary"]
    return {
        **figures,
        "fit": summary["seconds"]["train"],
        "predict": predicting["wall"],
        "error": 100 * float(np.mean(labels[-1] != test.y)),
        "not_converged": summary["not_converged"],
        "model_bytes": size,
        "data_bytes": 4 * summary["rows"] * summary["features"],
        "point": " ".join(point),
    }


def chosen(method: str, case: Case, options: argparse.Namespace) -> list[str]:
    """-C, and -g where there is one, as cross-validation on a part of the training rows has them; kept as a file."""
    path = Path(options.work) / f"{case.set}.{method.replace(', ', '-').replace(' ', '-')}.point"
    if not path.exists():
        data = examples(options.data, case.set, "train")
        rows = np.sort(np.random.default_rng(0).choice(len(data.y), CHOOSE_ROWS, replace=False))
        with tempfile.TemporaryDirectory(dir=options.work) as folder:
            part = Path(folder) / "part.libsvm"
            write(part, data.X[rows], data.y[rows])
            report, _ = lsvm("cv", [*METHODS[method], "-j", "1", str(part)])
        best = next(point for point in report["points"] if point["best"])
        gamma = ["-g", f"{best['gamma']:g}"] if "gamma" in best else []
        cost = best["cost"] if method == "rbf" else best["cost"] * CHOOSE_ROWS / len(data.y)
        path.write_text(" ".join([*gamma, "-C", f"{cost:g}"]))
    return path.read_text().split()


def text_of(case: Case, options: argparse.Namespace, part: str) -> Path:
    """The set as LIBSVM text, with all its classes."""
    path = Path(options.work) / f"{case.set}.classes.{part}.libsvm"
    if not path.exists():
        found = examples(options.data, case.set, part)
        write(path, found.X, found.y)
    return path


def as_wide(X: Any, features: int) -> Any:
    """Sparse rows with so many columns: a test file may name fewer, or more, than the training file."""
    X = sparse.csr_array(X)
    X.resize(X.shape[0], features)
    return as_examples(X)


def section(turns: list[Turn]) -> list[str]:
    """The table."""
    return summary_table(
        summaries(turns),
        [
            ("fit, s", lambda s: number(s.figures.get("fit"))),
            ("predict, s", lambda s: number(s.figures.get("predict"))),
            ("error %", fixed("error", 2)),
            ("model MiB", megabytes("model_bytes")),
            ("data as dense float32, MiB", megabytes("data_bytes")),
            ("peak MiB", megabytes()),
            ("point", lambda s: s.figures.get("point", "")),
        ],
    )


COMPARISON = Comparison(
    "l3",
    "L3-SVM beside a linear and a Gaussian SVM, one core",
    cases,
    {"localsvm": partial(run, "l3")} | {name: partial(run, name) for name in METHODS if name != "l3"},
    section,
    target="bench-linear",
    about=[
        "Mnist, ten classes one against the rest. localsvm: `-m l3 -K 90 --loss squared`, as many random landmarks as",
        "features. Seconds of whole `lsvm-train` commands at one point, which was chosen on 6 000 training rows; fit:",
        "without reading and writing; predict: the test rows, in memory.",
    ],
)

if __name__ == "__main__":
    main(COMPARISON, __doc__)
