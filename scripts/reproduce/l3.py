"""Reruns Tables 3 and 4 of the L3-SVM paper (Zantedeschi, Emonet, Sebban 2017): seven methods on four sets.

    python scripts/reproduce/l3.py DATA [--quick] [--out docs/results/l3] [--sets svmguide1,usps] [--seeds 5]

Test accuracy and processor time with the paper's K clusters and as many landmarks as there are features, C from its
grid by 5-fold cross-validation, one-vs-all for many classes. DATA is a folder with NAME.train.libsvm.xz and
NAME.test.libsvm.xz. Every run is a whole `lsvm-train` and `lsvm-predict` process. Finished runs are kept in
OUT/table.jsonl and not repeated; OUT/table.md is written from it. --quick: svmguide1 alone, two seeds.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))  # scripts, whose folders share the harness
from harness.commands import best_point, train_and_test
from harness.datasets import Files, text_files
from harness.experiment import Experiment, carry_out, set_by_set
from harness.machine import processors
from harness.options import parsed, parser
from harness.runlog import Run
from harness.tables import table

CLUSTERS = {"svmguide1": 100, "ijcnn1": 100, "usps": 80, "mnist": 90}  # the paper's Table 2
# chosen on the training files: std fails on usps alone, whose rarely used pixels it blows up
SCALES = {"usps": "none"}
# the squared hinge as in the authors' code: on svmguide1 it cross-validates better than the hinge (96.30 and 95.78 %
# over five seeds), and with the grid's large costs it is solved several times faster on mnist; on ijcnn1 the hinge does
# (98.15 and 98.12 %, better for each of five seeds)
L3_LOSSES = {"ijcnn1": "hinge"}
CHOSEN = {  # what l3 chooses from by cross-validation, instead of the paper's K and as many landmarks as features
    "svmguide1": ["--projection", "rbf", "-K", "1,5,20,100", "-L", "20,100,400"],
    "ijcnn1": ["-K", "20,100,300", "-L", "11,22"],
}
METHODS = ("linear", "rbf", "csvm", "llsvm", "ml3", "kmeans-svm", "l3", "l3 chosen")
RBF_ROWS = 6000  # on which gamma and C of rbf are chosen where there are more
PAPER = {  # Table 3, test accuracy in per cent
    "rbf": {"svmguide1": 96.53, "ijcnn1": 97.08, "usps": 94.07, "mnist": 96.62},
    "linear": {"svmguide1": 95.38, "ijcnn1": 89.68, "usps": 91.72, "mnist": 91.8},
    "csvm": {"svmguide1": 95.05, "ijcnn1": 96.35},
    "llsvm": {"svmguide1": 94.08, "ijcnn1": 92.93, "usps": 75.69, "mnist": 88.65},
    "ml3": {"svmguide1": 96.68, "ijcnn1": 97.73, "usps": 93.22, "mnist": 97.04},
    "l3": {"svmguide1": 95.73, "ijcnn1": 95.74, "usps": 92.12, "mnist": 95.05},
}
ABOUT = """\
# Linear local methods on the L3-SVM paper's sets

Written by `make reproduce-l3 DATA=...` (`scripts/reproduce/l3.py`): the paper's K ({clusters}), as many
landmarks as features, C by 5-fold cross-validation, one-vs-all, std scaling (usps: none). C is 0.001 to 100;
of l3, with the squared hinge of its authors' code (ijcnn1: the hinge), one of 1e-8 to 100; of ml3 it is 1.
ml3 learns all classes at once, 10 models each, at C = 1 (lambda = 1/n) without selection, as in its paper.
Test accuracy in per cent, mean (standard deviation; runs) over the seeds; {processor}, processor seconds
of whole commands. The paper's value, one run, stands behind the stroke.
"""
Key = tuple[str, str, int]  # set, method, seed


@dataclass(frozen=True)
class Fit(Run):
    """One training and prediction."""

    KEY = ("name", "method", "seed")
    name: str
    method: str
    seed: int
    accuracy: float  # per cent, on the test file
    cv_accuracy: float
    not_converged: int
    train_cpu: float
    predict_cpu: float
    options: str


def main() -> None:
    """Run what is missing, then write the table."""
    given = parser(
        __doc__, out=Path("docs/results/l3"), sets=CLUSTERS, seeds=5, methods=METHODS, quick="svmguide1, two seeds"
    )
    options = parsed(given)
    if options.quick:
        options.sets, options.seeds = ["svmguide1"], min(2, options.seeds)
    carry_out(Experiment("table", Fit, cases, measure, page, progress), options)


def cases(options: Any) -> list[Key]:
    """Every set with its methods and seeds; csvm on the sets of two classes, as in the paper."""
    limited = {"l3 chosen": CHOSEN, "csvm": PAPER["csvm"]}
    return [
        (name, method, seed)
        for name in options.sets
        for seed in range(options.seeds)
        for method in options.methods
        if name in limited.get(method, CLUSTERS)
    ]


def measure(missing: list[Key], _: list[Fit], options: Any) -> Iterator[Fit]:
    """The missing runs, set by set."""
    return set_by_set(missing, lambda name: text_files(options.data, name), fit)


def fit(key: Key, files: Files) -> Fit:
    """One run through the command line."""
    given = options_of(*key, files)
    tested = train_and_test(given, files)
    cv = float("nan") if tested.cv_accuracy is None else tested.cv_accuracy
    seconds = tested.training["cpu"], tested.prediction["cpu"]
    return Fit(*key, tested.accuracy, cv, tested.summary["not_converged"], *seconds, " ".join(given))


def progress(run: Fit) -> str:
    """The line that the terminal shows of a run."""
    return f"{run.name} {run.method} seed {run.seed}: {run.accuracy:.2f} %, {run.train_cpu:.1f} s"


def options_of(name: str, method: str, seed: int, files: Files) -> list[str]:
    """Options that the paper names for a method; the kernel's parameters come from a part of many rows."""
    given = ["-m", method.split()[0], "--scale", SCALES.get(name, "std"), "--seed", str(seed)]
    if method in ("csvm", "llsvm", "kmeans-svm", "l3"):
        given += ["-K", str(CLUSTERS[name])]
    if method.startswith("l3"):
        given += ["--loss", L3_LOSSES.get(name, "squared-hinge")]
    if method == "l3 chosen":
        given += CHOSEN[name]
    if method != "rbf":
        return given
    return given + kernel_point(given, files)


def kernel_point(given: list[str], files: Files) -> list[str]:
    """Options gamma and C of the global kernel SVM, chosen on at most RBF_ROWS rows."""
    rows = files.part(files.train, RBF_ROWS)
    return [] if rows == files.train else best_point(given, rows)


def page(runs: list[Fit], _: Any) -> str:
    """The tables."""
    sets = [name for name in CLUSTERS if any(run.name == name for run in runs)]
    clusters = ", ".join(f"{name} {CLUSTERS[name]}" for name in sets)
    lines = [ABOUT.format(clusters=clusters, processor=processors(run.machine for run in runs))]
    for title, entry in (("Accuracy", accuracy), ("Time: training with selection, prediction", seconds)):
        rows = [[method, *(entry(runs, method, name) for name in sets)] for method in METHODS]
        lines += [f"## {title}", "", *table(("method", *sets), rows), ""]
    return "\n".join(lines)


def of(runs: list[Fit], method: str, name: str) -> list[Fit]:
    """The runs of one entry."""
    return [r for r in runs if (r.method, r.name) == (method, name)]


def accuracy(runs: list[Fit], method: str, name: str) -> str:
    """An entry of the table."""
    values: Any = [r.accuracy for r in of(runs, method, name)]
    theirs = PAPER.get(method, {}).get(name)
    ours = f"{np.mean(values):.2f} ({np.std(values):.2f}; {len(values)})" if values else "-"
    return f"{ours} / {theirs:.2f}" if theirs else ours


def seconds(runs: list[Fit], method: str, name: str) -> str:
    """Medians of the processor seconds of training and prediction."""
    fits = of(runs, method, name)
    if not fits:
        return "-"
    return f"{np.median([r.train_cpu for r in fits]):.1f}, {np.median([r.predict_cpu for r in fits]):.1f}"


if __name__ == "__main__":
    main()
