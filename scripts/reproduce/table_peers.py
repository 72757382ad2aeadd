"""The peers of reproduce/tables.py: libraries of trees, each with the categories in its own way.

    python scripts/reproduce/table_peers.py "LightGBM chosen" 0 adult.train.csv adult.test.csv income "[]" 600

trains a peer with seed 0, predicts the test rows, and prints its figures; the last words are the label, the columns
that are ignored, as JSON, and the processor seconds after which the system ends it. A peer's settings
are tried on three quarters of the training rows; the one with the fewest wrong rows on the fourth is trained on all.
"""

from __future__ import annotations

import argparse
import json
import resource
import sys
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))  # scripts, whose folders share the harness
from harness.commands import answer
from harness.timing import error, processor_seconds
from reproduce.tabular_peers import PEERS as OF_NUMBERS
from reproduce.tabular_peers import Peer, catboost, forest, labels, learned, products

MISSING = ["", " ", "?", "NA", "N/A", "NaN", "nan", "null", "NULL"]
LEVELS = 255  # that HistGradientBoosting takes in a column; rarer ones are one level


def boosting(seed: int, **settings: Any) -> Any:
    """HistGradientBoosting of scikit-learn."""
    from sklearn.ensemble import HistGradientBoostingClassifier

    return HistGradientBoostingClassifier(random_state=seed, categorical_features="from_dtype", **settings)


def xgboost(seed: int, **settings: Any) -> Any:
    """XGBoost's classifier, which takes categories."""
    return OF_NUMBERS["XGBoost"].make(seed, enable_categorical=True, **settings)


class CatBoost:
    """A model of CatBoost, told which columns are text."""

    def __init__(self, seed: int, make: Any = catboost, **settings: Any) -> None:
        self.model = make(seed, **settings)

    def fit(self, X: Any, y: Any, **how: Any) -> Any:
        text = [name for name in X.columns if X[name].dtype == object]
        self.model.fit(X, y, cat_features=text, **how)
        return self.model


def stop_catboost(model: Any, X: Any, y: Any, held_out: tuple[Any, Any]) -> int:
    """Train CatBoost, and return the best number of trees on the held-out rows."""
    fitted = model.fit(X, y, eval_set=held_out, early_stopping_rounds=50)
    model.predict = fitted.predict
    return int(fitted.tree_count_)


PEERS: dict[str, Peer] = {
    "LightGBM": OF_NUMBERS["LightGBM"],
    "LightGBM chosen": replace(
        OF_NUMBERS["LightGBM chosen"],
        settings=products(learning_rate=(0.05,), n_estimators=(2000,), num_leaves=(7, 31, 127)),
    ),
    "XGBoost": Peer(xgboost, [{}]),
    "XGBoost chosen": replace(OF_NUMBERS["XGBoost chosen"], make=xgboost),
    "HistGradientBoosting": Peer(boosting, [{}]),
    "random forest": Peer(forest, [{}]),
    "CatBoost": Peer(CatBoost, [{}]),
    "CatBoost chosen": replace(OF_NUMBERS["CatBoost chosen"], make=CatBoost, stop=stop_catboost),
    "RealMLP": OF_NUMBERS["RealMLP"],
}


def frames(paths: list[str], label: str, ignored: list[str], peer: str) -> tuple[Any, ...]:
    """X, y, X_test, y_test: frames with the categories as the peer takes them, and labels 0, 1, ..."""
    parts = columns(paths, label, ignored, peer)
    classes = sorted(parts[0][1].astype(str).unique())
    return tuple(each for X, y in parts for each in (X, np.searchsorted(classes, y.astype(str))))


def columns(paths: list[str], label: str, ignored: list[str], peer: str) -> list[tuple[Any, Any]]:
    """Of each table a frame with the categories as the peer takes them, and the column of labels."""
    import pandas as pd

    parts = [pd.read_csv(path, na_values=MISSING, keep_default_na=False, skipinitialspace=True) for path in paths]
    names = [name for name in parts[0].columns if name != label and _plain(name) not in ignored]
    out = []
    for part in parts:
        X = part[names].copy()
        for name in names:
            if any(each[name].dtype.kind not in "biuf" for each in parts):
                X[name] = _coded(X[name], parts[0][name].dropna().astype(str), peer)
            elif peer == "RealMLP":  # which takes no missing numbers
                X[name] = X[name].fillna(parts[0][name].median())
        out.append((X, part[label]))
    return out


def _plain(name: str) -> str:
    """Name of a column in the file: pandas calls one without a name by its place."""
    return "" if name.startswith("Unnamed: ") else name


def _coded(column: Any, train: Any, peer: str) -> Any:
    """Levels of a column: text for CatBoost, whole numbers for a forest, categories for all others."""
    import pandas as pd

    text = column.astype(object).where(column.notna(), None)
    text = text.map(lambda value: None if value is None else str(value))
    if peer.startswith("CatBoost"):
        return text.fillna("").astype(object)
    levels = train.value_counts().index[:LEVELS] if peer.startswith("Hist") else sorted(train.unique())
    category = text.astype(pd.CategoricalDtype(sorted(levels)))
    if peer.startswith("random"):
        return category.cat.codes.astype(np.float64)
    return category


def main() -> None:
    """One training and prediction."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    for name in ("name", "seed", "train", "test", "label", "ignored", "limit"):
        parser.add_argument(name, type=int if name in ("seed", "limit") else str)
    order = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_CPU, (order.limit, resource.RLIM_INFINITY))
    warnings.simplefilter("ignore")  # of the peers
    X, y, X_test, y_test = frames([order.train, order.test], order.label, json.loads(order.ignored), order.name)
    peer = PEERS[order.name]
    peer.make(0, **peer.settings[0])  # imports the library, so that no time is that of loading it
    begun = processor_seconds()
    model, chosen = learned(peer, X, y, order.seed)
    trained = processor_seconds()
    predictions = labels(model, X_test)
    figures = {"train_cpu": trained - begun, "predict_cpu": processor_seconds() - trained, "chosen": chosen}
    answer({"error": error(predictions, y_test), **figures})


if __name__ == "__main__":
    main()
