"""Reruns Tables 3 and 4 of the L3-SVM paper (Zantedeschi, Emonet, Sebban 2017): seven methods on four sets.

    python scripts/reproduce_l3.py DATA [--quick] [--out docs/results/l3] [--sets svmguide1,usps] [--seeds 5]

Test accuracy and processor time with the paper's K clusters and as many landmarks as there are features, C from its
grid by 5-fold cross-validation, one-vs-all for many classes. DATA is a folder with NAME.train.libsvm.xz and
NAME.test.libsvm.xz. Every run is a whole `lsvm-train` and `lsvm-predict` process. Finished runs are kept in
OUT/table.jsonl and not repeated; OUT/table.md is written from it. --quick: svmguide1 alone, two seeds.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from measuring import command, examples, finished, keep, processor

from localsvm.data.writing import write

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


@dataclass(frozen=True)
class Run:
    """One training and prediction."""

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
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--out", type=Path, default=Path("docs/results/l3"))
    parser.add_argument("--sets", default=",".join(CLUSTERS))
    parser.add_argument("--methods", default=",".join(METHODS))
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--quick", action="store_true", help="svmguide1 alone, two seeds")
    options = parser.parse_args()
    if options.quick:
        options.sets, options.seeds = "svmguide1", min(2, options.seeds)
    options.out.mkdir(parents=True, exist_ok=True)
    log = options.out / "table.jsonl"
    done = finished(log, Run)
    for name in options.sets.split(","):
        known = {(r.method, r.seed) for r in done if r.name == name}
        limited = {"l3 chosen": CHOSEN, "csvm": PAPER["csvm"]}  # csvm: the sets of two classes, as in the paper
        methods = [m for m in options.methods.split(",") if name in limited.get(m, CLUSTERS)]
        wanted = [(m, s) for s in range(options.seeds) for m in methods if (m, s) not in known]
        for run in measured(options.data, name, wanted):
            told = f"{run.name} {run.method} seed {run.seed}: {run.accuracy:.2f} %, {run.train_cpu:.1f} s"
            print(told, file=sys.stderr)
            done.append(run)
            keep(log, run)
    (options.out / "table.md").write_text(page(done))


def measured(data: Path, name: str, wanted: list[tuple[str, int]]) -> Iterator[Run]:
    """The runs of one set."""
    if not wanted:
        return
    with tempfile.TemporaryDirectory() as folder:
        files = {part: Path(folder) / f"{part}.libsvm" for part in ("train", "test")}
        for part, file in files.items():
            found = examples(data, name, part)
            write(file, found.X, found.y)
        for method, seed in wanted:
            try:
                yield one(name, method, seed, files, Path(folder))
            except subprocess.CalledProcessError as failure:
                print(f"{name} {method} seed {seed}: failed with code {failure.returncode}", file=sys.stderr)


def one(name: str, method: str, seed: int, files: dict[str, Path], folder: Path) -> Run:
    """One run through the command line."""
    given = options_of(name, method, seed, files, folder)
    common = ["--json", "--force", "-q"]
    report, cpu, _ = command("train", [*given, *common, str(files["train"]), str(folder / "model.h5")])
    last = [str(folder / file) for file in ("test.libsvm", "model.h5", "out")]
    score, predict_cpu, _ = command("predict", [*common, *last])
    fit = report["summary"]
    cv = float("nan") if fit["cv_error"] is None else 100 * (1 - fit["cv_error"])
    return Run(name, method, seed, 100 * score["accuracy"], cv, fit["not_converged"], cpu, predict_cpu, " ".join(given))


def options_of(name: str, method: str, seed: int, files: dict[str, Path], folder: Path) -> list[str]:
    """What the paper names for a method; the kernel's parameters from a part of the rows where there are many."""
    given = ["-m", method.split()[0], "--scale", SCALES.get(name, "std"), "--seed", str(seed)]
    if method in ("csvm", "llsvm", "kmeans-svm", "l3"):
        given += ["-K", str(CLUSTERS[name])]
    if method.startswith("l3"):
        given += ["--loss", L3_LOSSES.get(name, "squared")]
    if method == "l3 chosen":
        given += CHOSEN[name]
    if method != "rbf":
        return given
    return given + kernel_point(given, files["train"], folder)


def kernel_point(given: list[str], train: Path, folder: Path) -> list[str]:
    """gamma and C of the global kernel SVM, chosen on at most RBF_ROWS rows."""
    from localsvm.data.reading import read

    data = read(train)
    if len(data.y) <= RBF_ROWS:
        return []
    rows = np.sort(np.random.default_rng(0).choice(len(data.y), RBF_ROWS, replace=False))
    write(folder / "part.libsvm", data.X[rows], data.y[rows])
    report, _, _ = command("cv", [*given, "--json", "-q", str(folder / "part.libsvm")])
    best = next(point for point in report["points"] if point["best"])
    return ["-g", str(best["gamma"]), "-C", str(best["cost"])]


def page(runs: list[Run]) -> str:
    """The tables."""
    names = [n for n in CLUSTERS if any(r.name == n for r in runs)]
    lines = ["# Linear local methods on the L3-SVM paper's sets", ""]
    lines += [
        "Written by `make reproduce-l3 DATA=...` (`scripts/reproduce_l3.py`): the paper's K ("
        + ", ".join(f"{n} {CLUSTERS[n]}" for n in names)
        + "), as many",
        "landmarks as features, C by 5-fold cross-validation, one-vs-all, std scaling (usps: none). C is 0.001 to 100;",
        "of l3, with the squared hinge of its authors' code (ijcnn1: the hinge), one of 1e-8 to 100; of ml3 it is 1.",
        "ml3 learns all classes at once, 10 models each, at C = 1 (lambda = 1/n) without selection, as in its paper.",
        f"Test accuracy in per cent, mean (standard deviation; runs) over the seeds; {processor()}, processor seconds",
        "of whole commands. The paper's value, one run, stands behind the stroke.",
        "",
        "## Accuracy",
        "",
        "| method | " + " | ".join(names) + " |",
        "|---" * (len(names) + 1) + "|",
    ]
    lines += [f"| {m} | " + " | ".join(accuracy(runs, m, n) for n in names) + " |" for m in METHODS]
    lines += ["", "## Time: training with selection, prediction", "", "| method | " + " | ".join(names) + " |"]
    lines += ["|---" * (len(names) + 1) + "|"]
    lines += [f"| {m} | " + " | ".join(seconds(runs, m, n) for n in names) + " |" for m in METHODS]
    return "\n".join(lines) + "\n"


def of(runs: list[Run], method: str, name: str) -> list[Run]:
    """The runs of one entry."""
    return [r for r in runs if (r.method, r.name) == (method, name)]


def accuracy(runs: list[Run], method: str, name: str) -> str:
    """An entry of the table."""
    found: Any = [r.accuracy for r in of(runs, method, name)]
    theirs = PAPER.get(method, {}).get(name)
    ours = f"{np.mean(found):.2f} ({np.std(found):.2f}; {len(found)})" if found else "-"
    return f"{ours} / {theirs:.2f}" if theirs else ours


def seconds(runs: list[Run], method: str, name: str) -> str:
    """Medians."""
    found = of(runs, method, name)
    if not found:
        return "-"
    return f"{np.median([r.train_cpu for r in found]):.1f}, {np.median([r.predict_cpu for r in found]):.1f}"


if __name__ == "__main__":
    main()
