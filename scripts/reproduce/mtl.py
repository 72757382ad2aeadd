"""Reruns Table 1 of the LSVM-MTL paper (Mao, Wu, Hu, O'Donovan, CIKM 2014): eight methods on six sets.

    python scripts/reproduce/mtl.py DATA [--quick] [--out docs/results/mtl] [--sets svmguide1,pendigits] [--seeds 10]

Test accuracy and processor time with K = 14, all other parameters by cross-validation; on three sets with the best of
ten starts of k-means, too; and with C = 1, the paper's apparent setting. Seeds vary k-means (and folds); the methods
without k-means run once. DATA is a folder with NAME.train.libsvm.xz and NAME.test.libsvm.xz. Every run is a whole
`lsvm-train` and `lsvm-predict` process. Finished runs are kept in OUT/table.jsonl and not repeated; OUT/table.md is
written from it. --quick: svmguide1 alone, two seeds.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))  # scripts, whose folders share the harness
from harness.commands import train_and_test
from harness.datasets import Files, text_files
from harness.experiment import Experiment, carry_out, set_by_set
from harness.options import names_of, parsed, parser
from harness.runlog import Run
from reproduce.l3 import kernel_point
from reproduce.mtl_page import STARTED, STARTED_SETS, TEN_STARTS, page

CLUSTERS = "14"
COSTS, FEW_COSTS = "1:1e6:7", "1,100,10000"


@dataclass(frozen=True)
class Set:
    """The use of a set. scale: as the paper's numbers suggest. few: a smaller grid and three folds, for time."""

    file: str
    scale: str = "row"
    scheme: str = "ova"
    few: bool = False


SETS = {
    "svmguide1": Set("svmguide1"),
    "pendigits": Set("pendigits"),
    "satimage": Set("satimage", "zscore", "ava", few=True),
    "ijcnn1": Set("ijcnn1"),
    "skin": Set("skin_nonskin", few=True),
    "letter": Set("letter", "none", "ava", few=True),
}
HALVES = ("pendigits",)  # the classes 0 to 4 against 5 to 9
CLUSTERED = ("kmeans-svm", "mlsvm", "llsvm", "csvm", "mtl")
METHODS = ("linear", "rbf", "svm-knn", *CLUSTERED)
READINGS = ("chosen", "C = 1", TEN_STARTS)
Key = tuple[str, str, str, int]  # set, method, reading, seed


@dataclass(frozen=True)
class Fit(Run):
    """One training and prediction."""

    KEY = ("name", "method", "reading", "seed")
    name: str
    method: str
    reading: str
    seed: int
    accuracy: float  # per cent, on the test file
    cv_accuracy: float | None
    not_converged: int
    train_cpu: float
    predict_cpu: float
    options: str


def main() -> None:
    """Run what is missing, then write the table."""
    out, quick = Path("docs/results/mtl"), "svmguide1, two seeds"
    given = parser(__doc__, out=out, sets=list(SETS), seeds=10, methods=METHODS, quick=quick)
    given.add_argument(
        "--readings", type=names_of(READINGS), default=list(READINGS), help=f"default {','.join(READINGS)}"
    )
    options = parsed(given)
    if options.quick:
        options.sets, options.seeds = ["svmguide1"], min(2, options.seeds)
    carry_out(Experiment("table", Fit, cases, measure, page, progress), options)


def cases(options: Any) -> list[Key]:
    """Every set with its methods and seeds, set by set and in these seed by seed."""
    return [
        (name, method, reading, seed)
        for name in options.sets
        for seed in range(options.seeds)
        for reading in options.readings
        for method in options.methods
        if (method in CLUSTERED or seed == 0)
        and (reading != TEN_STARTS or (method in STARTED and name in STARTED_SETS))
    ]


def measure(missing: list[Key], _: list[Fit], options: Any) -> Iterator[Fit]:
    """The missing runs, set by set, with the classes that a set has here."""

    def files(name: str) -> AbstractContextManager[Files]:
        return text_files(options.data, SETS[name].file, halves if name in HALVES else None)

    return set_by_set(missing, files, fit)


def halves(y: np.ndarray) -> np.ndarray:
    """0 to 4 against 5 to 9."""
    return np.where(y < 5, -1.0, 1.0)


def fit(key: Key, files: Files) -> Fit:
    """One run through the command line."""
    given = options_of(*key, files)
    tested = train_and_test(given, files, ["-j", "1"])
    seconds = tested.training["cpu"], tested.prediction["cpu"]
    return Fit(*key, tested.accuracy, tested.cv_accuracy, tested.summary["not_converged"], *seconds, " ".join(given))


def progress(run: Fit) -> str:
    """The line that the terminal shows of a run."""
    return f"{run.name} {run.method} {run.reading} seed {run.seed}: {run.accuracy:.2f} %, {run.train_cpu:.1f} s"


def options_of(name: str, method: str, reading: str, seed: int, files: Files) -> list[str]:
    """The grid of a method. The paper says K = 14 and no more; of its other parameters there are several to choose."""
    used = SETS[name]
    given = ["-m", method, "--scale", used.scale, "--multiclass", used.scheme, "--seed", str(seed)]
    given += ["-v", "3"] if used.few else []
    if method == "rbf":
        return [*given, *(kernel_point(given, files) if reading == "chosen" else gammas(given, files))]
    given += ["-C", "1" if reading == "C = 1" else costs(method, used)]
    given += ["-K", CLUSTERS] if method in CLUSTERED else []
    given += ["--start", ",".join(map(str, range(1, 11)))] if reading == TEN_STARTS else []
    return given + [word for flag, value in own(method, used).items() for word in (flag, value)]


def costs(method: str, used: Set) -> str:
    """Values of C for a method. Neighbours are few, and their SVMs need none of the largest."""
    if method == "svm-knn":
        return "0.1,10" if used.few else "0.01:100:5"
    return FEW_COSTS if used.few else COSTS


def gammas(given: list[str], files: Files) -> list[str]:
    """Options gamma and C = 1 of the kernel SVM, gamma chosen on a part of the rows where there are many."""
    point = kernel_point([*given, "-C", "1", "-g", "0.1:1000:9"], files)
    return ["-C", "1", *(point[:2] or ["-g", "0.1:1000:9"])]


def own(method: str, used: Set) -> dict[str, str]:
    """Options of a method besides C and K."""
    return {
        "linear": {"--loss": "squared-hinge"},
        "svm-knn": {"--neighbours": "20,80" if used.few else "10,20,40,80"},
        "mlsvm": {"--shrinkage": "0.0001,0.1,10"},
        "mtl": {"--shrinkage": "0.0001,0.1,10", "--groups": "5", "--coupling": "0,10" if used.few else "0,10,100"},
        "llsvm": {"--neighbours": "2,5"},
        "csvm": {"--lambda": "1,10,100"},
    }.get(method, {})


if __name__ == "__main__":
    main()
