"""Test error and processor time of `lsvm-train` beside boosted trees, forests and other SVMs, on tables of many rows.

    python scripts/reproduce/tabular.py DATA [--quick] [--out docs/results] [--sets magic,letter] [--seeds 3]
        [--methods "localsvm auto,LightGBM"]

DATA is a folder with NAME.train.libsvm.xz and NAME.test.libsvm.xz; covtype7 is covtype with its seven classes. The
higgs_like sets are generated. Ours are whole commands on LIBSVM text, a peer (tabular_peers.py) is a process that has
the rows already. All take one thread. Finished runs are kept in OUT/tabular.jsonl and not repeated; a peer that is not
installed is reported and tried again by the next call. OUT/tabular.md is written from the log. --quick: svmguide1
alone, one seed.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))  # scripts, whose folders share the harness
from harness.commands import lsvm, pinned, run_contestant
from harness.datasets import GENERATED, SEVEN, examples, generated
from harness.experiment import Experiment, carry_out
from harness.library import write
from harness.options import parsed, parser
from harness.runlog import Run
from harness.tables import thousands
from reproduce import tabular_page, tabular_peers

MILLION = "higgs_like_1m"
SETS = (  # those of 3 000 training rows or more, small ones first
    "svmguide1", "page-blocks", "satimage", "pendigits", "magic", "higgs11k", "susy30k", "cod-rna", "letter", GENERATED,
    "ijcnn1", "usps", "a9a", "w8a", "skin_nonskin", "covtype", SEVEN, "mnist", MILLION,
)  # fmt: skip
MADE = {GENERATED: (100_000, 100_000), MILLION: (1_000_000, 300_000)}  # training and test rows
OURS = {
    "localsvm none": ["--metric", "none"],
    "localsvm auto": ["--metric", "auto"],
    "localsvm high": ["--metric", "auto", "--effort", "high"],
}
METHODS = [*OURS, *tabular_peers.NAMES]
SVC_ROWS = 25_000  # with more, the grid of SVC is not started
Key = tuple[str, str, int]  # set, method, seed


@dataclass(frozen=True)
class Fit(Run):
    """One training and prediction. status: ok, failed, timeout or not begun; message: why it is not ok.

    error: per cent. size: training rows, features, classes.
    """

    KEY = ("name", "method", "seed")
    name: str
    method: str
    seed: int
    status: str
    message: str = ""
    rows: tuple[int, int] = (0, 0)
    size: tuple[int, ...] = ()
    figures: dict[str, Any] = field(default_factory=dict)


def main() -> None:
    """Run what is missing, then write the page."""
    given = parser(__doc__, out=Path("docs/results"), sets=SETS, seeds=3, methods=METHODS, quick="svmguide1, one seed")
    given.add_argument("--limit", type=int, default=600, help="processor seconds of a peer (default %(default)s)")
    options = parsed(given)
    if options.quick:
        options.sets, options.seeds = ["svmguide1"], 1
    os.environ.update(pinned(1))
    page = partial(tabular_page.page, sets=SETS, methods=METHODS, ours=tuple(OURS))
    done = lambda run, _: run.status != "failed"  # noqa: E731
    carry_out(Experiment("tabular", Fit, cases, measure, page, progress, done), options)


def cases(options: Any) -> list[Key]:
    """The first seed of all sets before the next seed, so that an interrupted command has some of each."""
    return [
        (name, method, seed) for seed in range(options.seeds) for name in options.sets for method in options.methods
    ]


def measure(missing: list[Key], known: list[Fit], options: Any) -> Iterator[Fit]:
    """The missing runs, set by set; what was stopped or could not be installed is not tried with another seed."""
    hopeless = [run for run in known if run.status in ("timeout", "not begun")]
    absent: set[str] = set()
    for seed, name in dict.fromkeys((seed, name) for name, _, seed in missing):
        with Rows.of(options.data, name) as rows:
            for key in (key for key in missing if (key[2], key[0]) == (seed, name)):
                method = key[1]
                again = any((run.name, run.method) == (name, method) for run in hopeless)
                if again or method in absent:
                    continue
                outcome = ours(key, rows) if method in OURS else peer(key, rows, options.limit, hopeless)
                if "No module named" in outcome.get("message", ""):
                    absent.add(method)
                run = Fit(*key, **outcome, rows=rows.counts, size=rows.size)
                hopeless += [run] if run.status in ("timeout", "not begun") else []
                yield run


def whole(rows: int, part: str) -> tuple[Any, Any]:
    """The generated rows."""
    X, y = zip(*generated(rows, part), strict=True)
    return np.concatenate(X), np.concatenate(y)


@dataclass
class Rows:
    """A set in a folder, as text and as arrays, each made when it is first asked for."""

    folder: Path
    train: Any
    test: Any

    @classmethod
    @contextmanager
    def of(cls, data: Path, name: str) -> Iterator[Rows]:
        """A set; its files go at the end."""
        if name in MADE:
            parts = [whole(rows, part) for rows, part in zip(MADE[name], ("train", "test"), strict=True)]
        else:
            parts = [(loaded.X, loaded.y) for loaded in (examples(data, name, part) for part in ("train", "test"))]
        with tempfile.TemporaryDirectory() as folder:
            yield cls(Path(folder), *parts)

    @property
    def counts(self) -> tuple[int, int]:
        """Rows for training and test."""
        return len(self.train[1]), len(self.test[1])

    @property
    def size(self) -> tuple[int, int, int]:
        """Training rows, features and classes."""
        X, y = self.train
        return len(y), X.shape[1], len(np.unique(y))

    @cached_property
    def texts(self) -> list[str]:
        """Paths of LIBSVM text."""
        paths = [self.folder / f"{part}.libsvm" for part in ("train", "test")]
        for path, (X, y) in zip(paths, (self.train, self.test), strict=True):
            write(path, X, y)
        return [str(path) for path in paths]

    @cached_property
    def arrays(self) -> str:
        """Path of dense float32 rows of equal width, labels 0, 1, ..."""
        width = max(X.shape[1] for X, _ in (self.train, self.test))
        classes = np.unique(self.train[1])
        dense: dict[str, Any] = {}
        for end, (X, y) in (("", self.train), ("_test", self.test)):
            dense["X" + end] = np.zeros((len(y), width), np.float32)
            dense["X" + end][:, : X.shape[1]] = X if isinstance(X, np.ndarray) else X.toarray()
            dense["y" + end] = np.searchsorted(classes, y)
        np.savez(self.folder / "rows.npz", **dense)
        return str(self.folder / "rows.npz")


def ours(key: Key, rows: Rows) -> dict[str, Any]:
    """A run through the command line."""
    train, test = rows.texts
    model, predictions = (str(rows.folder / name) for name in ("model.h5", "predictions.txt"))
    given = [*OURS[key[1]], "-j", "1", "--seed", str(key[2])]
    try:
        report, training = lsvm("train", [*given, train, model])
        score, prediction = lsvm("predict", ["-j", "1", test, model, predictions])
    except subprocess.CalledProcessError as failure:
        return {"status": "failed", "message": f"exit status {failure.returncode}"}
    figures = {"error": 100 * (1 - score["accuracy"]), "train_cpu": training["cpu"], "predict_cpu": prediction["cpu"]}
    chosen = {"metric": report["summary"].get("metric")}
    return {"status": "ok", "figures": figures | {"chosen": chosen}}


def peer(key: Key, rows: Rows, limit: int, known: Sequence[Fit] = ()) -> dict[str, Any]:
    """A peer's run, which ends when it has used so many processor seconds.

    It is not begun if the peer was stopped on a set of no more rows, features and classes, nor SVC on many rows.
    """
    _, method, seed = key
    if method == "SVC chosen" and rows.counts[0] > SVC_ROWS:
        return {"status": "not begun", "message": f"over {thousands(SVC_ROWS)} rows"}
    for run in known:
        stopped = (run.method, run.status) == (method, "timeout") and run.size
        if stopped and all(mine >= its for mine, its in zip(rows.size, run.size, strict=True)):
            return {"status": "not begun", "message": f"{run.message} on {run.name}"}
    command = [sys.executable, tabular_peers.__file__, method, str(seed), rows.arrays, str(limit)]
    outcome = run_contestant(command, cores=1, limit=None)
    stopped = {signal.SIGXCPU: f"over {limit} s", signal.SIGKILL: "out of memory"}  # the system kills the largest
    for by, message in stopped.items():
        if outcome["status"] == "failed" and outcome["message"].endswith(f" {-by}"):
            return {"status": "timeout", "message": message}
    return outcome


def progress(run: Fit) -> str:
    """The line that the terminal shows of a run."""
    what = f"{run.name} {run.method} seed {run.seed}: "
    if run.status != "ok":
        return what + f"{run.status}, {run.message}"
    figures = run.figures
    return what + f"{figures['error']:.2f} %, {figures['train_cpu']:.1f} s and {figures['predict_cpu']:.1f} s"


if __name__ == "__main__":
    main()
