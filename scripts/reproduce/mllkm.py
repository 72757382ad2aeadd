"""Reruns Table 2 of the MLLKM paper (Picard 2024): accuracy, kernels, size and time on four small sets.

    python scripts/reproduce/mllkm.py DATA [--quick] [--out docs/results/mllkm] [--sets sonar,heart]

Ten stratified splits of each set, 70 % for training, features scaled to [0, 1] by the training rows but for ionosphere,
which is as it is. C = 100 and ten geometric gammas from 0.01 to 10; and once more with C by cross-validation on the
training rows. The maps are run in [-1, 1], too, and component-wise ones with other gaps and costs, without
cross-validation. DATA is a folder with NAME.train.libsvm.xz and NAME.test.libsvm.xz; both parts are joined. Runs are
kept in OUT/table.jsonl and not repeated; the page is OUT/table.md. --quick: two splits.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.model_selection import StratifiedShuffleSplit
from threadpoolctl import threadpool_limits

sys.path.insert(0, str(Path(__file__).parents[1]))  # scripts, whose folders share the harness

from harness.datasets import joined
from harness.experiment import Experiment, carry_out
from harness.library import TARGET, fit_at_one_point, fit_selected, methods, parse_values, predicted
from harness.options import parsed, parser
from harness.timing import best_of
from reproduce.mllkm_page import HEAVY, MAPS, OTHERWISE, PAPER, UNSCALED, VARIANTS, WIDER, Key, Split, page

SPLITS, FOLDS = 10, 3
COST, COSTS, GAMMAS = 100.0, (0.01, 0.1, 1.0, 10.0, 100.0, 1000.0), "0.01:10:10"
OTHERS: dict[str, tuple[str, dict[str, Any]]] = {
    "linear": ("linear", {}),
    "LLSVM": ("llsvm", {"clusters": (32.0,)}),
    "kernel SVM": ("rbf", {}),
    "SequentialMKL": ("mkl", {}),
}
TIMED_ROWS, REPEATS = 10_000, 3


def main() -> None:
    """Run what is missing, then write the page."""
    given = parser(
        __doc__,
        out=Path("docs/results/mllkm"),
        sets=list(PAPER),
        methods=[*MAPS, *OTHERS, *VARIANTS],
        quick="two splits",
    )
    options = parsed(given)
    with threadpool_limits(1):
        carry_out(Experiment("table", Split, cases, measure, page, progress), options)


def cases(options: Any) -> list[Key]:
    """Split by split, so that an interrupted command has some of each."""
    splits = range(2 if options.quick else SPLITS)
    runs = [(name, kind, split) for split, name, kind in product(splits, options.sets, options.methods)]
    return [(name, kind, split) for name, kind, split in runs if not (name in UNSCALED and kind.endswith(WIDER))]


def measure(missing: list[Key], _: list[Split], options: Any) -> Iterator[Split]:
    """The missing runs."""
    whole = cache(lambda name: rows_of(options.data, name))
    for name, kind, split in missing:
        X, y = whole(name)
        seen, out = divided(y, split)
        yield run((name, kind, split), scaled(name, X, seen, kind.endswith(WIDER)), y, seen, out)


def scaled(name: str, X: Any, seen: Any, wider: bool = False) -> Any:
    """Features in [0, 1] by the rows `seen`, or in [-1, 1], in float32."""
    if name not in UNSCALED:
        low, high = X[seen].min(axis=0), X[seen].max(axis=0)
        X = (X - low) / np.where(high > low, high - low, 1.0)
        X = 2.0 * X - 1.0 if wider else X
    return X.astype(np.float32)


def run(key: Key, X: Any, y: Any, seen: Any, out: Any) -> Split:
    """Train on the rows `seen`, test on the others; the kernel SVM always has its gamma by cross-validation."""
    kind = next((kind for kind in MAPS if key[1].startswith(kind)), key[1])
    method = replace(method_of(kind, (COST,)), **OTHERWISE.get(key[1].removeprefix(kind), {}))
    begun = time.process_time()
    one_point = kind != "kernel SVM"
    fitted = fit_at_one_point(method, X[seen], y[seen]) if one_point else fit_selected(method, X[seen], y[seen], FOLDS)
    seconds = time.process_time() - begun
    chosen = None if kind != key[1] else fit_selected(method_of(kind, COSTS), X[seen], y[seen], FOLDS)
    accuracy, chosen_accuracy = (
        one and 100.0 * float(np.mean(predicted(one, X[out], method) == y[out])) for one in (fitted, chosen)
    )
    share = shares(fitted.state)
    _, gammas = np.unique(np.append(fitted.state.get("kernel_gamma", []), parse_values(GAMMAS)), return_counts=True)
    return Split(
        *key, accuracy, len(share), int(np.count_nonzero(share > HEAVY * share.sum())),
        len(fitted.state["support"]) if "support" in fitted.state else 1, fitted.report.largest_gap, seconds,
        microseconds(fitted.state, method, X[out]), sum(array.nbytes for array in fitted.state.values()),
        (gammas - 1).tolist(), chosen_accuracy, chosen and float(chosen.state["model_cost"][0]),
    )  # fmt: skip


def shares(state: Any) -> Any:
    """Weights of kernels; those of LLSVM's anchors, and of the only one of others, are equal."""
    for kept in ("kernel_share", "kernel_weight"):
        if kept in state:
            return state[kept]
    return np.ones(len(state.get("centres", [0])))


def method_of(kind: str, costs: tuple[float, ...]) -> Any:
    """A map of MLLKM, or another method, with these costs."""
    name, options = OTHERS.get(kind, ("mllkm", {}))
    if kind in MAPS:
        options = dict(zip(("map", "componentwise"), MAPS[kind], strict=True)) | {"bank_gammas": parse_values(GAMMAS)}
    return methods()[name](cost=costs, **options)


def microseconds(state: Any, method: Any, X: Any) -> float:
    """Processor time of prediction for each row, where there are many."""
    rows = np.resize(X, (TIMED_ROWS, X.shape[1]))
    predictor = method.predictor(state, TARGET, X.shape[1])
    predictor.decision_function(rows[:100])  # what is made on first use
    return 1e6 * best_of(REPEATS, lambda: predictor.decision_function(rows)) / TIMED_ROWS


def rows_of(data: Path, name: str) -> tuple[Any, Any]:
    """Both parts of a set: dense rows in float64, labels -1 and 1."""
    X, y = joined(data, name)
    return X, np.where(y == y.max(), 1.0, -1.0)


def divided(y: Any, split: int) -> tuple[Any, Any]:
    """Rows for training and for the test."""
    splits = StratifiedShuffleSplit(SPLITS, test_size=0.3, random_state=0).split(y, y)
    return list(splits)[split]


def progress(split: Split) -> str:
    """The line that the terminal shows of a run."""
    return f"{split.name} {split.map} split {split.split}: {split.accuracy:.1f} %, {split.kernels} kernels"


if __name__ == "__main__":
    main()
