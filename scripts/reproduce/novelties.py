"""Novelties that are found, and rows that are called novel by mistake, beside detectors of scikit-learn.

    python scripts/reproduce/novelties.py DATA [--quick] [--out docs/results] [--sets magic,letter] [--seeds 3]

DATA (default $LOCALSVM_DATA) has NAME.train.libsvm.xz and NAME.test.libsvm.xz. A detector learns at most 20 000 rows of
the largest class of a training file, or of all classes but the smallest (`letter but one`), and is asked about all test
rows. Each is told that a share of .05 of new rows of these classes may be called novel. Finished runs are kept in
OUT/novelties.jsonl; OUT/novelties.md is written from the log. --quick: at most 2 000 rows.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.ensemble import IsolationForest
from sklearn.metrics import roc_auc_score
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import OneClassSVM

sys.path.insert(0, str(Path(__file__).parents[1]))  # scripts, whose folders share the harness
from harness.commands import lsvm, pinned
from harness.datasets import dense_parts
from harness.experiment import Experiment, carry_out
from harness.library import write
from harness.machine import processors, with_article
from harness.options import parsed, parser
from harness.runlog import Run
from harness.tables import table, thousands

NU = 0.05
MOST, QUICK = 20_000, 2_000  # training rows
BUT_ONE = " but one"  # of several classes all are learned but the smallest
SETS = (
    "pendigits", "pendigits" + BUT_ONE, "satimage", "satimage" + BUT_ONE, "letter", "letter" + BUT_ONE, "page-blocks",
    "magic", "cod-rna", "skin_nonskin", "covtype",
)  # fmt: skip
OURS = "localsvm"
PEERS: dict[str, Callable[[int], Any]] = {
    "OneClassSVM": lambda seed: OneClassSVM(gamma="scale", nu=NU),
    "IsolationForest": lambda seed: IsolationForest(contamination=NU, random_state=seed),
}
METHODS = (OURS, *PEERS)
ABOUT = """\
# Novelties beside detectors of scikit-learn

Written by `make reproduce-novelties DATA=...` (`scripts/reproduce/novelties.py`) from `novelties.jsonl`, on {machines}.
A detector learns training rows of the largest class of a set (*but one*: of all classes but the smallest), {most} at
most, and is asked about all test rows. A share of {nu:g} of new rows of these classes may be called novel. All
figures are means of {seeds} runs, with other rows and seeds.

- **AUC**: how well the values tell test rows of the other classes from those of the classes that were learned, in per
  cent. The best of a set is in bold.
- **novel by mistake**: the share of test rows of the learned classes that are called novel, in per cent; at most
  {promised:g} is promised.
- **found**: the share of test rows of the other classes that are called novel, in per cent.
- **seconds**: processor seconds of training and prediction; of localsvm those of the whole commands.

`lsvm-train -m one-class --nu {nu:g}` chooses gamma and C in each cell by training rows alone. OneClassSVM has
`gamma="scale"` and IsolationForest `contamination={nu:g}`, both after a StandardScaler; all else is at its default. The
test rows of pendigits are of other writers, so nothing is promised about them. The class that is held out of `satimage
but one` lies between others: no detector finds it.
"""


@dataclass(frozen=True)
class Detection(Run):
    """A run. rows: learned ones, test rows of their classes, and others; auc and shares are in per cent."""

    KEY = ("name", "method", "seed")
    name: str
    method: str
    seed: int
    rows: tuple[int, int, int]
    auc: float
    mistaken: float
    found: float
    seconds: float


@dataclass(frozen=True)
class Rows:
    """Rows that are learned, and (n,) whether test rows are of their classes."""

    X: Any
    X_test: Any
    normal: Any

    @classmethod
    def of(cls, data: Path, name: str, most: int, seed: int) -> Rows:
        """The rows of a set, drawn by a seed."""
        (X, y), (X_test, truth) = dense_parts(data, name.removesuffix(BUT_ONE))
        labels, counts = np.unique(y, return_counts=True)
        order = np.argsort(-counts, kind="stable")
        learned = labels[order[:-1] if name.endswith(BUT_ONE) else order[:1]]
        mine = np.random.default_rng(seed).permutation(np.flatnonzero(np.isin(y, learned)))[:most]
        return cls(X[mine], X_test, np.isin(truth, learned))


def main() -> None:
    """Run what is missing, then write the page."""
    given = parser(__doc__, out=Path("docs/results"), sets=SETS, seeds=3, methods=METHODS, quick="at most 2 000 rows")
    options = parsed(given)
    os.environ.update(pinned(1))
    carry_out(Experiment("novelties", Detection, cases, measure, page, progress), options)


def cases(options: Any) -> list[tuple[str, str, int]]:
    """All methods on all sets."""
    return [
        (name, method, seed) for name in options.sets for seed in range(options.seeds) for method in options.methods
    ]


def measure(missing: list[Any], _: list[Detection], options: Any) -> Iterator[Detection]:
    """The missing runs."""
    most = QUICK if options.quick else MOST
    for name, method, seed in missing:
        rows = Rows.of(options.data, name, most, seed)
        detect = ours if method == OURS else partial(peer, make=PEERS[method])
        values, novel, seconds = detect(rows, seed)
        count = len(rows.X), int(rows.normal.sum()), int((~rows.normal).sum())
        auc, mistaken, found = roc_auc_score(rows.normal, values), novel[rows.normal].mean(), novel[~rows.normal].mean()
        yield Detection(name, method, seed, count, 100 * float(auc), 100 * float(mistaken), 100 * float(found), seconds)


def ours(rows: Rows, seed: int) -> tuple[Any, Any, float]:
    """Values of test rows, whether they are novel, and processor seconds, by the commands."""
    with tempfile.TemporaryDirectory() as folder:
        train, test, model, out = (str(Path(folder) / name) for name in ("train", "test", "model.h5", "out"))
        write(train, rows.X, np.ones(len(rows.X)))
        write(test, rows.X_test, np.where(rows.normal, 1.0, -1.0))
        given = ["-m", "one-class", "--nu", f"{NU:g}", "-j", "1", "--seed", str(seed)]
        _, training = lsvm("train", [*given, train, model])
        _, prediction = lsvm("predict", ["--decision-values", "-j", "1", test, model, out])
        labels, values = np.loadtxt(out, skiprows=1).T
    return values, labels < 0, training["cpu"] + prediction["cpu"]


def peer(rows: Rows, seed: int, make: Callable[[int], Any]) -> tuple[Any, Any, float]:
    """The same of a detector of scikit-learn."""
    started = time.process_time()
    detector: Pipeline = make_pipeline(StandardScaler(), make(seed)).fit(rows.X)
    values = detector.decision_function(rows.X_test)
    return values, values < 0, time.process_time() - started


def page(runs: list[Detection], options: Any) -> str:
    """The Markdown."""
    machines, seeds = with_article(processors(run.machine for run in runs)), len({run.seed for run in runs})
    most = thousands(QUICK if options.quick else MOST)
    lines = [ABOUT.format(machines=machines, seeds=seeds, nu=NU, promised=100 * NU, most=f"{most} rows")]
    methods = [method for method in METHODS if any(run.method == method for run in runs)]
    names = [name for name in SETS if any(run.name == name for run in runs)]
    for title, what, digits in (
        ("AUC", "auc", 2), ("novel by mistake", "mistaken", 1), ("found", "found", 1), ("seconds", "seconds", 1),
    ):  # fmt: skip
        body = []
        for name in names:
            of = {method: [run for run in runs if (run.name, run.method) == (name, method)] for method in methods}
            means = {m: float(np.mean([getattr(run, what) for run in each])) for m, each in of.items() if each}
            best = max(means.values()) if what == "auc" else None
            shown = [f"{'**' * (v == best)}{v:.{digits}f}{'**' * (v == best)}" for v in means.values()]
            first = next(run for run in runs if run.name == name)
            count = [" / ".join(map(thousands, first.rows))] if what == "auc" else []
            body.append((name, *count, *shown))
        head = ["set", *(["rows: learned / test of these / of others"] if what == "auc" else []), *methods]
        lines += [f"## {title[0].upper()}{title[1:]}", "", *table(head, body), ""]
    return "\n".join(lines)


def progress(run: Detection) -> str:
    """The line that the terminal shows of a run."""
    shares = f"AUC {run.auc:.2f}, novel by mistake {run.mistaken:.1f} %, found {run.found:.1f} %"
    return f"{run.name} {run.method} {run.seed}: {shares}, {run.seconds:.1f} s"


if __name__ == "__main__":
    main()
