"""False alarms on test rows where a bound was promised, and missed rows, beside thresholds on held-out rows.

    python scripts/reproduce/detection.py DATA [--quick] [--out docs/results] [--sets magic,ijcnn1] [--seeds 5]
        [--methods "localsvm,SVC"]

DATA (default $LOCALSVM_DATA) has NAME.train.libsvm.xz and NAME.test.libsvm.xz. All rows of a set are put together; a
seed draws 5 000 of them for training and 20 000 others, or what is left, for the test. `lsvm-train --roc` makes one
model, and `lsvm-predict --false-alarm` asks it for each bound. The peers are scikit-learn's, and see three quarters of
the training rows; the rows of the smaller label in the fourth set the threshold of each bound. Finished runs are kept
in OUT/detection.jsonl; OUT/detection.md is written from the log. --quick: 2 000 rows for training, and 2 seeds.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).parents[1]))  # scripts, whose folders share the harness
from harness.commands import lsvm, pinned
from harness.datasets import joined
from harness.experiment import Experiment, carry_out
from harness.library import write
from harness.options import parsed, parser
from harness.runlog import Run
from harness.tables import table, thousands
from localsvm.targets.detection import CONFIDENCE

Floats = NDArray[np.float64]
SETS = ("magic", "cod-rna", "ijcnn1", "a9a")
BOUNDS = (0.01, 0.05, 0.1)
ROWS, QUICK_ROWS, TEST_ROWS = 5000, 2000, 20_000
QUICK_SEEDS = 2
OURS = {"localsvm": [], "localsvm (no metric)": ["--metric", "none"]}
TREES, SVC = "trees", "SVC"
QUANTILE, ORDER = " (quantile)", " (order statistic)"
METHODS = (*OURS, TREES + QUANTILE, TREES + ORDER, SVC + ORDER)
ABOUT = """\
# False alarms below a bound

Written by `make reproduce-detection DATA=...` (`scripts/reproduce/detection.py`) from `{log}.jsonl`. Of all rows of
a set {rows} are drawn for training, and up to 20 000 others for the test, with {seeds} seeds. The larger label raises
an alarm. The tables have the share of test rows of the smaller label that are false alarms, and of those of the larger
label that are missed, in per cent and in the mean over the seeds, and in how many runs false alarms are above the
bound. [The page on detection](../detection.md) says what is promised.

- **localsvm**: `lsvm-train --roc`, then `lsvm-predict --false-alarm` for each bound by the same model. All else is at
  its default; so only rows that did not choose the metric count. **No metric**: with `--metric none`, and all rows
  count.
- **trees** and **SVC**: scikit-learn's HistGradientBoostingClassifier, and SVC with `class_weight="balanced"` on
  standardised features, on three quarters of the training rows. The other quarter sets the threshold: by the plain
  quantile of its rows of the smaller label, which promises nothing, or by their order statistic that keeps the bound
  with a probability of 95 % (Tong, Feng and Li 2018). A dash: these rows are too few for that.
"""


@dataclass(frozen=True)
class Detection(Run):
    """A run: for each bound the shares of false alarms and of missed rows; None where the bound was refused.

    rows : for training and for the test.
    """

    KEY = ("name", "method", "seed")
    name: str
    method: str
    seed: int
    rows: tuple[int, int]
    false_alarms: list[float | None]
    missed: list[float | None]


def main() -> None:
    """Run what is missing, then write the page."""
    quick = "2 000 rows for training, 2 seeds; log and page of their own"
    options = parsed(parser(__doc__, out=Path("docs/results"), sets=SETS, seeds=5, methods=METHODS, quick=quick))
    os.environ.update(pinned(1))
    name = "detection-quick" if options.quick else "detection"
    carry_out(Experiment(name, Detection, cases, measure, page, progress), options)


def cases(options: Any) -> list[tuple[str, str, int]]:
    """The first seed of all sets before the next one."""
    seeds = min(options.seeds, QUICK_SEEDS) if options.quick else options.seeds
    return [(name, method, seed) for seed in range(seeds) for name in options.sets for method in options.methods]


@dataclass(frozen=True)
class Split:
    """Rows and labels for training and for the test."""

    train: tuple[Any, Floats]
    test: tuple[Any, Floats]


def measure(missing: list[Any], _: list[Detection], options: Any) -> Iterator[Detection]:
    """The missing runs."""
    for name, method, seed in missing:
        split = drawn(*rows_of(options.data, name), seed, QUICK_ROWS if options.quick else ROWS)
        wrong = ours(split, OURS[method], seed) if method in OURS else peer(split, method, seed)
        counts = len(split.train[1]), len(split.test[1])
        yield Detection(name, method, seed, counts, *([pair and pair[i] for pair in wrong] for i in (0, 1)))


@cache
def rows_of(folder: Path, name: str) -> tuple[Floats, Floats]:
    """All rows of a set, dense in float32, and their labels."""
    X, y = joined(folder, name)
    return X.astype(np.float32), y


def drawn(X: Floats, y: Floats, seed: int, rows: int) -> Split:
    """Rows for training and for the test, at random."""
    order = np.random.default_rng(seed).permutation(len(y))
    train, test = order[:rows], order[rows : rows + TEST_ROWS]
    return Split((X[train], y[train]), (X[test], y[test]))


def ours(split: Split, options: list[str], seed: int) -> list[tuple[float, float] | None]:
    """The shares of `wrong` by the command line, for each bound."""
    with tempfile.TemporaryDirectory() as folder:
        train, test, model, out = (str(Path(folder) / name) for name in ("train", "test", "model.h5", "out"))
        write(train, *split.train)
        write(test, *split.test)
        lsvm("train", ["-j", "1", "--seed", str(seed), "--roc", *options, train, model])
        found: list[tuple[float, float] | None] = []
        for bound in BOUNDS:
            try:
                score, _ = lsvm("predict", ["-j", "1", "--false-alarm", f"{bound:g}", test, model, out])
            except subprocess.CalledProcessError:  # too few held-out rows; it says so on stderr
                found.append(None)
                continue
            false, missed = (score[name]["wrong"] / score[name]["rows"] for name in ("false_alarms", "missed"))
            found.append((false, missed))
        return found


def peer(split: Split, method: str, seed: int) -> list[tuple[float, float] | None]:
    """The shares of `wrong` of scikit-learn's, whose threshold a quarter of the rows sets."""
    from sklearn.model_selection import train_test_split

    (X, y), (fresh, truth) = split.train, split.test
    learned, held, y_learned, y_held = train_test_split(X, y, test_size=0.25, random_state=seed, stratify=y)
    kind = method.partition(" (")[0]
    score = fitted(kind, learned, y_learned, seed)
    quiet, values = score(held)[y_held == y.min()], score(fresh)
    rule = plain if method.endswith(QUANTILE) else careful
    thresholds = [rule(quiet, bound) for bound in BOUNDS]
    return [None if t is None else wrong(values > t, truth == y.max()) for t in thresholds]


def fitted(kind: str, X: Floats, y: Floats, seed: int) -> Callable[[Floats], Floats]:
    """A function that scores rows, larger for the larger label."""
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    from sklearn.svm import SVC as Machine

    if kind == SVC:
        model = make_pipeline(StandardScaler(), Machine(class_weight="balanced")).fit(X, y)
        return lambda rows: np.asarray(model.decision_function(rows))
    trees = HistGradientBoostingClassifier(random_state=seed, early_stopping=True).fit(X, y)
    return lambda rows: np.asarray(trees.decision_function(rows))


def plain(quiet: Floats, bound: float) -> float:
    """The threshold that a share of the held-out values of the smaller label is above."""
    return float(np.quantile(quiet, 1.0 - bound))


def careful(quiet: Floats, bound: float) -> float | None:
    """The lowest held-out value that keeps the bound as a threshold with a probability of CONFIDENCE; None for none."""
    from scipy.stats import binom

    n = len(quiet)
    above = np.arange(n)  # so many held-out rows may be above the threshold: as few fresh ones would be by chance
    kept = np.flatnonzero(binom.cdf(above, n, bound) <= 1.0 - CONFIDENCE)
    return float(np.sort(quiet)[n - 1 - kept[-1]]) if len(kept) else None


def wrong(alarm: NDArray[np.bool_], positive: NDArray[np.bool_]) -> tuple[float, float]:
    """Shares of false alarms and of missed rows."""
    return float(alarm[~positive].mean()), float((~alarm)[positive].mean())


def page(runs: list[Detection], options: Any) -> str:
    """The Markdown."""
    rows = QUICK_ROWS if options.quick else ROWS
    log, seeds = ("detection-quick" if options.quick else "detection"), len({run.seed for run in runs})
    about = ABOUT.format(log=log, rows=thousands(rows), seeds=seeds)
    order = [method for method in METHODS if any(run.method == method for run in runs)]
    head = ("set", "method", *(f"bound {100 * bound:g} %" for bound in BOUNDS))
    lines = []
    for name in [name for name in SETS if any(run.name == name for run in runs)]:
        for method in order:
            mine = [run for run in runs if (run.name, run.method) == (name, method)]
            lines.append((name, method, *(cell(mine, i) for i in range(len(BOUNDS)))))
    broken = [(method, *(broken_of([run for run in runs if run.method == method], i) for i in range(len(BOUNDS))))
              for method in order]  # fmt: skip
    return "\n".join(
        [about, "## Runs above the bound", "", *table(("method", *head[2:]), broken), "",
         "## By set", "", "False alarms / missed; in parentheses the runs above the bound, if any.", "",
         *table(head, lines), ""]
    )  # fmt: skip


def cell(runs: list[Detection], i: int) -> str:
    """Mean shares of a set and a method at a bound."""
    pairs = [(run.false_alarms[i], run.missed[i]) for run in runs]
    known = np.asarray([pair for pair in pairs if pair[0] is not None], np.float64)
    if len(known) < len(pairs) or not len(known):
        return "—"
    above = int((known[:, 0] > BOUNDS[i]).sum())
    false, missed = 100 * known.mean(axis=0)
    return f"{false:.2f} / {missed:.1f}{f' ({above})' if above else ''}"


def broken_of(runs: list[Detection], i: int) -> str:
    """How many runs are above the bound, of those that were not refused."""
    known = [run.false_alarms[i] for run in runs if run.false_alarms[i] is not None]
    return f"{sum(value > BOUNDS[i] for value in known)} of {len(known)}"


def progress(run: Detection) -> str:
    """The line that the terminal shows of a run."""
    pairs = zip(BOUNDS, run.false_alarms, run.missed, strict=True)
    said = ("refused" if false is None else f"{false:.2%} / {missed:.1%}" for _, false, missed in pairs)
    return f"{run.name} {run.method} {run.seed}: {', '.join(said)}"


if __name__ == "__main__":
    main()
