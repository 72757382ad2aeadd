"""The peers of reproduce/coverage.py: split conformal prediction with LightGBM, by hand and by MAPIE.

    python scripts/reproduce/coverage_peers.py LightGBM 0 600 '{"kind": "values", "levels": [0.9],
        "paths": ["pol.train.csv", "pol.test.csv"], "target": "foo", "ignore": []}'

trains a peer with seed 0, and prints its figures; after 600 processor seconds the system ends it. Models see three
quarters of the training rows, and the fourth says when they stop, and how wide an interval or a set has to be. "blocks"
takes the last quarter of the table for the fourth, all others one at random. With "arrays", an NPZ file has the rows
(X, y, X_test, y_test; labels 0, 1, ...).

Of values, "LightGBM" has quantiles, conformalised (Romano, Patterson and Candes 2019), and "MAPIE" means with the
absolute error as the score, so that all intervals have one width. Of classes, both have 1 - p of the true label.
"""

from __future__ import annotations

import argparse
import json
import resource
import sys
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))  # scripts, whose folders share the harness
from harness.commands import answer
from harness.timing import processor_seconds
from reproduce import table_peers, tabular_peers, value_peers
from reproduce.tabular_peers import at, quarter, stop_lightgbm

VALUES, CLASSES = "values", "classes"
BLOCKS = " blocks"  # ends the name of a method whose held-out rows are later ones
CLASS_RATE = 0.1
Answers = Callable[[Any], list[Any]]  # of rows, for each level: intervals (n, 2), or masks (n, classes)


@dataclass(frozen=True)
class Quarters:
    """Three quarters of the training rows, and the fourth."""

    X: Any
    y: Any
    X_out: Any
    y_out: Any
    seed: int

    @classmethod
    def of(cls, X: Any, y: Any, seed: int, later: bool) -> Quarters:
        """The fourth is the last one, or at random."""
        n = len(y)
        seen, out = (np.arange(n - n // 4), np.arange(n - n // 4, n)) if later else quarter(y, seed)
        return cls(at(X, seen), y[seen], at(X, out), y[out], seed)

    def trained(self, make: Callable[..., Any]) -> Any:
        """A model of the three quarters, with as many trees as the fourth wants."""
        model = make(self.seed)
        stop_lightgbm(model, self.X, self.y, (self.X_out, self.y_out))
        return model


def values(**settings: Any) -> Callable[..., Any]:
    """What makes LightGBM for values, from a seed."""
    return partial(
        value_peers.lightgbm, n_estimators=value_peers.MOST_TREES, learning_rate=value_peers.RATE, **settings
    )


def classes() -> Callable[..., Any]:
    """What makes LightGBM for classes, from a seed."""
    return partial(tabular_peers.lightgbm, n_estimators=tabular_peers.MOST_TREES, learning_rate=CLASS_RATE)


def margin(scores: Any, level: float) -> float:
    """The ceil(level (n + 1))-th smallest of n scores; infinity where there is none."""
    rank = int(np.ceil(level * (len(scores) + 1) - 1e-9))
    return float(np.sort(scores)[rank - 1]) if rank <= len(scores) else np.inf


def quantiles(rows: Quarters, levels: Sequence[float]) -> Answers:
    """Conformalised quantiles."""
    ends = []
    for level in levels:
        tails = (1 - level) / 2, (1 + level) / 2
        low, high = (rows.trained(values(objective="quantile", alpha=tail)) for tail in tails)
        outside = np.maximum(low.predict(rows.X_out) - rows.y_out, rows.y_out - high.predict(rows.X_out))
        ends.append((low, high, margin(outside, level)))
    return lambda X: [np.stack([low.predict(X) - q, high.predict(X) + q], axis=1) for low, high, q in ends]


def label_sets(rows: Quarters, levels: Sequence[float]) -> Answers:
    """Labels whose probability is large enough, and the most probable one."""
    model = rows.trained(classes())
    scores = 1 - model.predict_proba(rows.X_out)[np.arange(len(rows.y_out)), rows.y_out]
    margins = [margin(scores, level) for level in levels]

    def answers(X: Any) -> list[Any]:
        p = model.predict_proba(X)
        return [(p >= 1 - q) | (p == p.max(axis=1, keepdims=True)) for q in margins]

    return answers


def mapie_intervals(rows: Quarters, levels: Sequence[float]) -> Answers:
    """Intervals of MAPIE."""
    from mapie.regression import SplitConformalRegressor

    split = SplitConformalRegressor(rows.trained(values()), confidence_level=[*levels], prefit=True)
    split.conformalize(rows.X_out, rows.y_out)
    return lambda X: [*np.moveaxis(split.predict_interval(X)[1], 2, 0)]


def mapie_sets(rows: Quarters, levels: Sequence[float]) -> Answers:
    """Sets of MAPIE, which may be empty."""
    from mapie.classification import SplitConformalClassifier

    split = SplitConformalClassifier(
        rows.trained(classes()), confidence_level=[*levels], conformity_score="lac", prefit=True
    )
    split.conformalize(rows.X_out, rows.y_out)
    return lambda X: [*np.moveaxis(split.predict_set(X)[1].astype(bool), 2, 0)]


PEERS: dict[str, dict[str, Callable[[Quarters, Sequence[float]], Answers]]] = {
    "LightGBM": {VALUES: quantiles, CLASSES: label_sets},
    "MAPIE": {VALUES: mapie_intervals, CLASSES: mapie_sets},
}


def scored(answers: Any, y: Any) -> tuple[float, float]:
    """The share of rows that intervals or sets hold, and their mean width or number of labels."""
    if answers.dtype == bool:
        return float(answers[np.arange(len(y)), y].mean()), float(answers.sum(axis=1).mean())
    low, high = answers.T
    return float(np.mean((low <= y) & (y <= high))), float(np.mean(high - low))


def names(level: float) -> tuple[str, str]:
    """Names of the two figures of a promise."""
    return f"covered {level:g}", f"width {level:g}"


def loaded(given: dict[str, Any]) -> tuple[Any, Any, Any, Any]:
    """Rows and truths for training and for the test."""
    if "arrays" in given:
        with np.load(given["arrays"]) as arrays:
            X, y, X_test, y_test = (arrays[part] for part in ("X", "y", "X_test", "y_test"))
        return X, y, X_test, y_test
    words = given["paths"], given["target"], given["ignore"], "LightGBM"
    if given["kind"] == CLASSES:
        X, y, X_test, y_test = table_peers.frames(*words)
        return X, y, X_test, y_test
    (X, y), (X_test, y_test) = table_peers.columns(*words)
    return X, y.to_numpy(np.float64), X_test, y_test.to_numpy(np.float64)


def figures(name: str, seed: int, given: dict[str, Any]) -> dict[str, float]:
    """Processor seconds; and of each level the share of test rows that is covered, and the mean width."""
    X, y, X_test, y_test = loaded(given)
    (values if given["kind"] == VALUES else classes)()(0)  # imports LightGBM, so that no time is that of loading it
    if name == "MAPIE":
        import mapie.classification
        import mapie.regression  # noqa: F401
    begun = processor_seconds()
    rows = Quarters.of(X, y, seed, name.endswith(BLOCKS))
    answers = PEERS[name.removesuffix(BLOCKS)][given["kind"]](rows, given["levels"])
    trained = processor_seconds()
    found = answers(X_test)
    seconds = {"train_cpu": trained - begun, "predict_cpu": processor_seconds() - trained}
    pairs = [zip(names(level), scored(a, y_test), strict=True) for level, a in zip(given["levels"], found, strict=True)]
    return {name: figure for pair in pairs for name, figure in pair} | seconds


def main() -> None:
    """One training and prediction."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("name", help="the peer")
    parser.add_argument("seed", type=int)
    parser.add_argument("limit", type=int, help="processor seconds")
    parser.add_argument("given", type=json.loads, help="the rows and the promises, as JSON")
    order = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_CPU, (order.limit, resource.RLIM_INFINITY))
    warnings.simplefilter("ignore")  # of the peers
    try:
        answer(figures(order.name, order.seed, order.given))
    except ModuleNotFoundError as missing:
        sys.exit(f"{missing.name} is not installed (`make peers`)")


if __name__ == "__main__":
    main()
