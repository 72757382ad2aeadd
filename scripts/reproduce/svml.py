"""Reruns Tables 1 and 2 of the SVML paper (Xu, Weinberger, Chapelle 2012): a learned metric against cross-validation.

    python scripts/reproduce/svml.py DATA [--quick] [--out docs/results/svml] [--sets Haber,Page] [--methods SVML]

Test error over random splits, 80 % for training, and processor seconds. All methods have the SVM with the squared hinge
and an offset: Euclidean ones choose its C and width from the paper's grid, also after a metric that NCA, ITML or LMNN
learned; SVML learns both. DATA is a folder with NAME.train.libsvm.xz and NAME.test.libsvm.xz; both parts are joined.
Ten splits are a run (two of Page, the one of Gamma); runs are kept in OUT/table.jsonl and not repeated. All of them
take many hours, most of them on Gamma; --splits N stops after so many. --quick: the first run of each set but Gamma.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

sys.path.insert(0, str(Path(__file__).parents[1]))  # scripts, whose folders share the harness
from harness.datasets import joined
from harness.experiment import Experiment, carry_out
from harness.library import (
    BASELINE_ROWS,
    BASELINES,
    SVML,
    fit_at_one_point,
    learned_by,
    predicted,
    squared_hinge,
    svm_metric,
)
from harness.options import parsed, parser
from harness.runlog import Run
from reproduce.svml_page import page

COSTS = (0.1, 1.0, 10.0, 100.0)
WIDTHS = (4.0, 2.0, 1.0, 0.5, 0.25)  # sigma^2 over the number of features; the kernel is exp(-|x - x'|^2 / sigma^2)
FOLDS = (5, 3, 1)
HOLD_OUT = 5  # "1-fold" holds one of so many parts out


class Set(NamedTuple):
    """A set of the paper.

    It has the file, the labels of class -1 and, where not all others, of class 1; the number of splits, and the number
    of them in a run.
    """

    file: str
    negative: float
    positive: float | None = None
    splits: int = 200
    block: int = 10


SETS = {
    "Haber": Set("haberman", 1),
    "Credit": Set("crx", -1),
    "ACredit": Set("australian", -1),
    "Trans": Set("blood-transfusion", 0),
    "Diabts": Set("diabetes", -1),
    "Mammo": Set("mammographic", 0),
    "CMC": Set("cmc", 1, 2),
    "Page": Set("page-blocks", 1, splits=20, block=2),
    "Gamma": Set("magic", -1, splits=1, block=1),
}
Floats = Any
Key = tuple[str, str, int]  # set, method, block of splits
# trains on scaled rows and labels, and gives a function that predicts the labels of others
Learner = Callable[[Floats, Floats], Callable[[Floats], Floats]]


@dataclass(frozen=True)
class Block(Run):
    """The splits of a set from its block of them on: test errors in per cent, and processor seconds of training."""

    KEY = ("name", "method", "block")
    name: str
    method: str
    block: int
    errors: list[float]
    seconds: list[float]


def euclidean(folds: int) -> Learner:
    """Learner with C and the width by so many folds; 1: by one part that is held out."""

    def learn(X: Floats, y: Floats) -> Callable[[Floats], Floats]:
        distances = squared_distances(X, X)
        parts = np.arange(len(y)) % (folds if folds > 1 else HOLD_OUT)  # rows are in random order
        wrong = np.zeros((len(WIDTHS), len(COSTS)))
        for (i, width), fold in product(enumerate(WIDTHS), range(folds)):
            seen, out = np.flatnonzero(parts != fold), np.flatnonzero(parts == fold)
            K = np.exp(distances[seen] / (-width * X.shape[1]))
            held_out, K = K[:, out].T, K[:, seen]
            start = None
            for j, cost in enumerate(COSTS):
                solution = squared_hinge.solve(K, y[seen], np.full(len(seen), cost), start)
                start = solution.coef, solution.bias
                wrong[i, j] += np.sum((held_out @ solution.coef + solution.bias > 0) != (y[out] > 0))
        i, j = np.unravel_index(np.argmin(wrong), wrong.shape)  # of equals the widest with the smallest C
        scale = -1.0 / (WIDTHS[i] * X.shape[1])
        model = squared_hinge.solve(np.exp(scale * distances), y, np.full(len(y), COSTS[j]))
        support = X[model.support]
        coef = model.coef[model.support]
        return lambda Z: np.sign(np.exp(scale * squared_distances(Z, support)) @ coef + model.bias)

    return learn


def after(name: str, folds: int) -> Learner:
    """A published metric, learned from some of the rows, and then Euclidean selection."""
    select = euclidean(folds)

    def learn(X: Floats, y: Floats) -> Callable[[Floats], Floats]:
        rng = np.random.default_rng(0)
        rows = rng.permutation(len(y))[:BASELINE_ROWS]
        M = learned_by(name, X[rows], (y[rows] > 0).astype(np.intp), rng)
        M = M * np.sqrt(len(M) / np.square(M).sum())  # so that the grid of widths fits, as it does the Euclidean metric
        classify = select(X @ M, y)
        return lambda Z: classify(Z @ M)

    return learn


def svml(form: str, pull: float = 0.1, most_rows: int = svm_metric.MOST_ROWS) -> Learner:
    """The method of the package, on one cell; most_rows: that the metric is learned from."""

    def learn(X: Floats, y: Floats) -> Callable[[Floats], Floats]:
        method = SVML(form=form, pull=pull)
        usual, svm_metric.MOST_ROWS = svm_metric.MOST_ROWS, most_rows
        try:
            fitted = fit_at_one_point(method, X.astype(np.float32), y)
        finally:
            svm_metric.MOST_ROWS = usual
        return lambda Z: predicted(fitted, Z.astype(np.float32), method)

    return learn


METHODS: dict[str, Learner] = {
    **{f"Euclidean {folds}-fold": euclidean(folds) for folds in FOLDS},
    **{f"{name.upper()} {folds}-fold": after(name, folds) for name in BASELINES for folds in FOLDS},
    "SVML": svml("full"),
    "SVML-Diag": svml("diag"),
    "SVML-Sphere": svml("sphere"),
    "SVML (L frozen)": svml("full", pull=100.0),
    "SVML (half of the rows)": svml("full", most_rows=1 << 40),
}
ONLY = {"SVML (half of the rows)": ["Gamma"]}  # elsewhere it is SVML


def main() -> None:
    """Run what is missing, then write the page."""
    out, quick = Path("docs/results/svml"), "the first run of each set but Gamma"
    given = parser(__doc__, out=out, sets=list(SETS), methods=list(METHODS), quick=quick)
    given.add_argument("--splits", type=int, default=max(used.splits for used in SETS.values()), help="of each set")
    options = parsed(given)
    with threadpool_limits(1):
        carry_out(Experiment("table", Block, cases, measure, page, progress), options)


def cases(options: Any) -> list[Key]:
    """Keys with the same splits of all sets before the next ones, so that an interrupted command has some of each.

    Gamma is last.
    """
    keys = []
    for name, method in product(options.sets, options.methods):
        used = SETS[name]
        if name not in ONLY.get(method, SETS) or (options.quick and used.splits == 1):
            continue
        blocks = 1 if options.quick else -(-min(used.splits, options.splits) // used.block)
        keys += [(name, method, block) for block in range(blocks)]
    return sorted(keys, key=lambda key: (SETS[key[0]].splits == 1, key[2] * SETS[key[0]].block))


def measure(missing: list[Key], _: list[Block], options: Any) -> Iterator[Block]:
    """The missing runs."""
    whole = cache(lambda name: rows_of(options.data, name))
    for method in dict.fromkeys(method for _, method, _ in missing):  # so that no time is that of loading libraries
        run(METHODS[method], *generated(100), split=0)
    for name, method, block in missing:
        used = SETS[name]
        splits = range(used.block * block, min(used.splits, used.block * (block + 1)))
        runs = [run(METHODS[method], *whole(name), split) for split in splits]
        errors, seconds = (list(column) for column in zip(*runs, strict=True))
        yield Block(name, method, block, errors, seconds)


def rows_of(data: Path, name: str) -> tuple[Floats, Floats]:
    """Both parts of a set: dense rows in float64, labels -1 and 1."""
    used = SETS[name]
    X, y = joined(data, used.file)
    taken = np.ones(len(y), bool) if used.positive is None else np.isin(y, (used.negative, used.positive))
    return X[taken], np.where(y[taken] == used.negative, -1.0, 1.0)


def generated(n: int) -> tuple[Floats, Floats]:
    """Rows of two columns; the sign of their product."""
    X = np.random.default_rng(0).standard_normal((n, 2))
    return X, np.sign(X[:, 0] * X[:, 1])


def run(learner: Learner, X: Floats, y: Floats, split: int) -> tuple[float, float]:
    """One split: test error in per cent, processor seconds of training."""
    (Z, y), (Z_out, y_out) = divided(X, y, split)
    begun = time.process_time()
    classify = learner(Z, y)
    seconds = time.process_time() - begun
    return 100.0 * float(np.mean(classify(Z_out) != y_out)), seconds


def divided(X: Floats, y: Floats, split: int) -> tuple[tuple[Floats, Floats], tuple[Floats, Floats]]:
    """Rows and labels for training and for the test, in random order. Features have the deviation 1 in training."""
    order = np.random.default_rng(split).permutation(len(y))
    seen, out = np.split(order, [round(0.8 * len(y))])
    mean, deviation = X[seen].mean(axis=0), X[seen].std(axis=0)
    Z = (X - mean) / np.where(deviation > 0, deviation, 1.0)
    return (Z[seen], y[seen]), (Z[out], y[out])


def squared_distances(A: Floats, B: Floats) -> Floats:
    """(rows of A, rows of B)."""
    return np.maximum(0.0, (A * A).sum(1)[:, None] + (B * B).sum(1) - 2.0 * A @ B.T)


def progress(block: Block) -> str:
    """The line that the terminal shows of a run."""
    each = f"{np.mean(block.seconds):.2f} s each"
    return f"{block.name} {block.method} block {block.block}: {np.mean(block.errors):.2f} %, {each}"


if __name__ == "__main__":
    main()
