"""Probabilities of `-b 1` against scikit-learn's CalibratedClassifierCV around the same classifier.

    python scripts/bench/probabilities.py DATA [--sets magic,letter] [--metrics none,auto] [--quick]

Scores are those of the test file: mean log loss, and the expected calibration error of the most probable label over 15
bins of equal count. Large sets are cut to the first training rows of a random order.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.calibration import CalibratedClassifierCV
from sklearn.metrics import log_loss

sys.path.insert(0, str(Path(__file__).parents[1]))  # scripts, whose folders share the harness
from harness.experiment import Experiment, carry_out
from harness.machine import cores_of_processors
from harness.options import names, parsed, parser
from harness.runlog import Run
from harness.tables import table, thousands
from localsvm import LocalSVC
from localsvm.data.readers.libsvm import read

ROWS = {  # of training: all of them where there are fewer
    "svmguide1": 20_000, "satimage": 20_000, "pendigits": 20_000, "magic": 20_000, "a9a": 12_000, "susy30k": 12_000,
    "cod-rna": 15_000, "ijcnn1": 20_000, "covtype": 15_000,
}  # fmt: skip
BINARY_COVTYPE = 2  # class 2 against the rest
TEST_ROWS, QUICK_ROWS = 30_000, 1000
BINS = 15
METRICS = ("none", "auto")
OURS, REPEATED = "localsvm -b 1", "localsvm -b 1 --repeats 5"
OWN: dict[str, dict[str, Any]] = {OURS: {}, REPEATED: {"repeats": 5}}
PEERS: dict[str, dict[str, Any]] = {"ensemble": {}, "one model": {"ensemble": False}}


@dataclass(frozen=True, kw_only=True)
class ProbabilityRun(Run):
    """One calibrated classifier on one set; a quick run has no more than QUICK_ROWS training rows."""

    KEY = ("set", "contestant", "quick", "metric")
    set: str
    contestant: str
    quick: bool
    rows: int
    test_rows: int
    classes: int
    seconds: float
    log_loss: float
    calibration_error: float
    error: float
    metric: str = "none"


def cases(options: argparse.Namespace) -> list[Hashable]:
    """All sets with one contestant after the other."""
    contestants = [(contestant, metric) for metric in options.metrics for contestant in (*OWN, *PEERS)]
    return [(name, contestant, options.quick, metric) for contestant, metric in contestants for name in options.sets]


def measure(
    wanted: list[Hashable], known: list[ProbabilityRun], options: argparse.Namespace
) -> Iterator[ProbabilityRun]:
    """Fit, and score the test rows."""
    for case in wanted:
        name, contestant, quick, metric = case  # type: ignore[misc]
        (X, y), (X_test, y_test) = rows_of(options, name, quick)
        ours = contestant in OWN
        model = LocalSVC(probability=ours, metric=metric)
        model = model if ours else CalibratedClassifierCV(model, cv=5)
        model.set_params(**(OWN | PEERS)[contestant])
        start = time.process_time()
        model.fit(X, y)
        seconds = time.process_time() - start
        p, codes = model.predict_proba(X_test), model.classes_.searchsorted(y_test)
        yield ProbabilityRun(
            set=name, contestant=contestant, quick=quick, rows=len(y), test_rows=len(y_test), classes=p.shape[1],
            seconds=seconds, metric=metric, **scores(p, codes),
        )  # fmt: skip


def rows_of(options: argparse.Namespace, name: str, quick: bool) -> list[tuple[Any, Any]]:
    """(X, y) of training and test."""
    parts, width = [], None
    most = {"train": QUICK_ROWS if quick else ROWS[name], "test": TEST_ROWS}
    for part, limit in most.items():
        data = read(options.data / f"{name}.{part}.libsvm.xz", dense=True, n_features=width)
        width = data.X.shape[1]
        y = np.where(data.y == BINARY_COVTYPE, 1.0, -1.0) if name == "covtype" else data.y
        taken = np.random.default_rng(0).permutation(len(y))[:limit]
        parts.append((data.X[taken], y[taken]))
    return parts


def scores(p: Any, codes: Any) -> dict[str, float]:
    """Log loss, expected calibration error of the most probable class, and share of wrong labels."""
    top, right = p.max(axis=1), p.argmax(axis=1) == codes
    bins = np.array_split(np.argsort(top, kind="stable"), BINS)
    return {
        "log_loss": float(log_loss(codes, np.maximum(p, 1e-15), labels=np.arange(p.shape[1]))),
        "calibration_error": float(sum(abs(top[b].sum() - right[b].sum()) for b in bins) / len(codes)),
        "error": float(1.0 - right.mean()),
    }


def page(runs: list[ProbabilityRun], options: argparse.Namespace) -> str:
    """A table a metric; quick runs only where there are no others."""
    kept = [run for run in runs if not run.quick] or runs
    sections = []
    for metric in METRICS:
        lines = table_of([run for run in kept if run.metric == metric])
        sections += ["", f"## `--metric {metric}`", "", *lines] if lines else []
    return "\n".join(
        [
            "# Probabilities",
            "",
            "`-b 1` (`LocalSVC(probability=True)`), also with `--repeats 5`, against scikit-learn's",
            "`CalibratedClassifierCV(LocalSVC(), cv=5)`: its default, an ensemble of five classifiers with a sigmoid",
            "each, and `ensemble=False`, one classifier and the sigmoid of its cross-validated decision values. Both",
            "run the whole selection five or six times. All have the same metric. Mean log loss and expected",
            "calibration error (ECE: most probable label, 15 bins of equal count) on the test file (at most",
            f"{thousands(TEST_ROWS)} rows of it). Processor seconds of training, one process on",
            f"{cores_of_processors(run.machine for run in kept)}, other work beside it: they are rough. The last",
            "columns of a peer are ratios of log losses. covtype is class 2 against the rest.",
            *sections,
            "",
            "`make bench-probabilities DATA=folder` measures this again.",
        ]
    )


def table_of(runs: list[ProbabilityRun]) -> list[str]:
    """The lines of the runs with one metric, none without runs of `-b 1`."""
    known = {(run.set, run.contestant): run for run in runs}
    peers = [peer for peer in PEERS if any((run.set, peer) in known for run in runs)]
    lines = []
    for name in dict.fromkeys(run.set for run in runs):
        if (ours := known.get((name, OURS))) is None:
            continue
        cells: list[Any] = [name, thousands(ours.rows), thousands(ours.test_rows), ours.classes, *figures(ours)]
        repeated = known.get((name, REPEATED))
        cells += figures(repeated)
        for peer in peers:
            cells += against(known.get((name, peer)), ours, repeated)
        lines.append(cells)
    head = ["set", "rows", "test rows", "classes", "log loss", "ECE", "error %", "s"]
    for peer in ["5 repeats", *peers]:
        head += [f"{peer}: log loss", "ECE", "error %", "s"]
        head += ["ours / theirs", "5 repeats / theirs"] if peer in PEERS else []
    return table(head, lines) if lines else []


def figures(run: ProbabilityRun | None) -> list[str]:
    """The cells of a run beside ours."""
    if run is None:
        return [""] * 4
    return [f"{run.log_loss:.4f}", f"{run.calibration_error:.4f}", f"{100 * run.error:.2f}", f"{run.seconds:.1f}"]


def against(theirs: ProbabilityRun | None, *ours: ProbabilityRun | None) -> list[str]:
    """The cells of a peer: its figures, and the ratios of our log losses to its."""
    return figures(theirs) + [f"{run.log_loss / theirs.log_loss:.3f}" if run and theirs else "" for run in ours]


def progress(run: ProbabilityRun) -> str:
    """The line that the terminal shows of a run."""
    scores_text = f"log loss {run.log_loss:.4f}, ECE {run.calibration_error:.4f}, error {100 * run.error:.2f} %"
    return f"{run.set}, {run.contestant}: {scores_text}, {run.seconds:.1f} s"


EXPERIMENT = Experiment("probabilities", ProbabilityRun, cases, measure, page, progress)

if __name__ == "__main__":
    given = parser(__doc__, out=Path("docs/results/bench"), sets=list(ROWS), quick=f"{QUICK_ROWS} training rows")
    given.add_argument("--metrics", type=names, default=list(METRICS), help=f"default {','.join(METRICS)}")
    carry_out(EXPERIMENT, parsed(given))
