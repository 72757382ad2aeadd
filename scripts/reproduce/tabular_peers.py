"""The peers of reproduce/tabular.py: each at its defaults, and the settings that are tried for it.

    python scripts/reproduce/tabular_peers.py "LightGBM chosen" 0 rows.npz 600

trains a peer with seed 0 on the training rows of rows.npz (X, y, X_test, y_test; labels 0, 1, ...), predicts the test
rows, and prints its figures; after 600 processor seconds the system ends it. A peer's settings are tried on three
quarters of the training rows; the one with the fewest wrong rows on the fourth is trained on all. The test labels serve
for nothing but the final error.
"""

from __future__ import annotations

import argparse
import resource
import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))  # scripts, whose folders share the harness
from harness.commands import answer
from harness.timing import error, processor_seconds

Settings = dict[str, Any]
MOST_TREES, PATIENCE = 1000, 50
SEARCH_TREES = 30  # of forests that are tried; the chosen one has the default number
XRFM_LEAF = 5000  # rows; at its default, 60 000, a leaf takes many times ten minutes on one core


def products(**values: tuple[Any, ...]) -> list[Settings]:
    """All combinations, the last name fastest."""
    combinations: list[Settings] = [{}]
    for name, options in values.items():
        combinations = [settings | {name: value} for settings in combinations for value in options]
    return combinations


def lightgbm(seed: int, **settings: Any) -> Any:
    """LightGBM's classifier on one thread."""
    from lightgbm import LGBMClassifier

    return LGBMClassifier(n_jobs=1, random_state=seed, verbose=-1, **settings)


def xgboost(seed: int, **settings: Any) -> Any:
    """XGBoost's classifier on one thread."""
    from xgboost import XGBClassifier

    return XGBClassifier(n_jobs=1, random_state=seed, **settings)


def catboost(seed: int, **settings: Any) -> Any:
    """CatBoost's classifier on one thread."""
    from catboost import CatBoostClassifier

    return CatBoostClassifier(thread_count=1, random_seed=seed, verbose=False, allow_writing_files=False, **settings)


def forest(seed: int, **settings: Any) -> Any:
    """Random forest of scikit-learn on one thread."""
    from sklearn.ensemble import RandomForestClassifier

    return RandomForestClassifier(n_jobs=1, random_state=seed, **settings)


class Gaussian:
    """SVC on scaled rows; width: gamma times the number of features."""

    def __init__(self, seed: int, width: float, C: float) -> None:
        from sklearn.svm import SVC

        self.width, self.model = width, SVC(C=C, cache_size=1000)

    def fit(self, X: Any, y: Any) -> Any:
        self.model.set_params(gamma=self.width / X.shape[1])
        return scaled(self.model).fit(X, y)


def linear(seed: int, **settings: Any) -> Any:
    """Linear SVM of scikit-learn on scaled rows."""
    from sklearn.svm import LinearSVC

    return scaled(LinearSVC(random_state=seed, **settings))


def scaled(model: Any) -> Any:
    """Pipeline that scales rows for a model."""
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    return make_pipeline(StandardScaler(), model)


def realmlp(seed: int, **settings: Any) -> Any:
    """RealMLP of pytabkit, a network with tuned defaults, on one thread; it holds out a fifth of the rows by itself."""
    from pytabkit import RealMLP_TD_Classifier

    return RealMLP_TD_Classifier(device="cpu", random_state=seed, n_threads=1, **settings)


# trains with an eye on held-out rows, and gives the number of trees with the smallest held-out loss
def stop_lightgbm(model: Any, X: Any, y: Any, held_out: tuple[Any, Any]) -> int:
    """Train LightGBM, and return the best number of trees on the held-out rows."""
    from lightgbm import early_stopping

    model.fit(X, y, eval_set=[held_out], callbacks=[early_stopping(PATIENCE, verbose=False)])
    return int(model.best_iteration_)


def stop_xgboost(model: Any, X: Any, y: Any, held_out: tuple[Any, Any]) -> int:
    """Train XGBoost, and return the best number of trees on the held-out rows."""
    model.set_params(early_stopping_rounds=PATIENCE).fit(X, y, eval_set=[held_out], verbose=False)
    return int(model.best_iteration) + 1


def stop_catboost(model: Any, X: Any, y: Any, held_out: tuple[Any, Any]) -> int:
    """Train CatBoost, and return the best number of trees on the held-out rows."""
    model.fit(X, y, eval_set=held_out, early_stopping_rounds=PATIENCE)
    return int(model.tree_count_)


def wrong_rows(model: Any, X: Any, y: Any) -> float:
    """Wrong rows of a classifier, in per cent."""
    return error(labels(model, X), y)


@dataclass(frozen=True)
class Peer:
    """A peer.

    make: (seed, settings) to a classifier. settings: the settings that are tried. trees: the name of the number of
    trees, where `stop` finds it on the held-out rows. final: more settings of the one that is trained on all rows.
    loss: of a trained one on held-out rows; the settings with the smallest are taken.
    """

    make: Callable[..., Any]
    settings: list[Settings]
    trees: str = ""
    stop: Callable[[Any, Any, Any, tuple[Any, Any]], int] | None = None
    final: tuple[tuple[str, Any], ...] = ()
    loss: Callable[[Any, Any, Any], float] = wrong_rows


def boosted(make: Callable[..., Any], trees: str, stop: Any, **sizes: tuple[int, ...]) -> Peer:
    """Peer of boosted trees: `stop` finds the number of trees, and the combinations of `sizes` are tried."""
    return Peer(make, products(learning_rate=(0.1,), **{trees: (MOST_TREES,)}, **sizes), trees, stop)


PEERS = {
    "LightGBM": Peer(lightgbm, [{}]),
    "LightGBM chosen": boosted(lightgbm, "n_estimators", stop_lightgbm, num_leaves=(15, 63, 255)),
    "XGBoost": Peer(xgboost, [{}]),
    "XGBoost chosen": boosted(xgboost, "n_estimators", stop_xgboost, max_depth=(4, 6, 10)),
    "CatBoost": Peer(catboost, [{}]),
    "CatBoost chosen": boosted(catboost, "iterations", stop_catboost, depth=(4, 6, 8)),
    "random forest": Peer(forest, [{}]),
    "random forest chosen": Peer(
        forest,
        products(n_estimators=(SEARCH_TREES,), max_features=("sqrt", 0.5), min_samples_leaf=(1, 5)),
        final=(("n_estimators", 100),),
    ),
    "SVC chosen": Peer(Gaussian, products(width=(0.25, 1.0, 4.0, 16.0), C=(1.0, 10.0, 100.0))),
    "LinearSVC chosen": Peer(linear, products(C=(0.01, 0.1, 1.0, 10.0))),
    "RealMLP": Peer(realmlp, [{}]),
}
XRFM = {"xRFM": (10.0,), "xRFM chosen": (3.0, 10.0, 30.0)}  # bandwidths; the first is its default
NAMES = [*PEERS, *XRFM]


def quarter(y: Any, seed: int) -> tuple[Any, Any]:
    """(three quarters, a quarter) of the rows, at random."""
    order = np.random.default_rng([seed, 4]).permutation(len(y))
    return np.sort(order[len(y) // 4 :]), np.sort(order[: len(y) // 4])


def learned(peer: Peer, X: Any, y: Any, seed: int) -> tuple[Any, Settings]:
    """The peer's model trained on all rows, and its settings."""
    chosen = peer.settings[0]
    if len(peer.settings) > 1:
        chosen = dict(best_of(peer, X, y, seed)) | dict(peer.final)
    return peer.make(seed, **chosen).fit(X, y), chosen


def best_of(peer: Peer, X: Any, y: Any, seed: int) -> Settings:
    """The settings with the smallest loss on the held-out quarter; of equals the first."""
    seen, out = quarter(y, seed)
    scores = []
    for tried in peer.settings:
        model = peer.make(seed, **tried)
        if peer.stop:
            tried = tried | {peer.trees: peer.stop(model, at(X, seen), y[seen], (at(X, out), y[out]))}
        else:
            model = model.fit(at(X, seen), y[seen])
        scores.append((peer.loss(model, at(X, out), y[out]), tried))
    return min(scores, key=lambda score: score[0])[1]


def at(X: Any, rows: Any) -> Any:
    """Rows of an array or a frame, by their numbers."""
    return X.iloc[rows] if hasattr(X, "iloc") else X[rows]


def labels(model: Any, X: Any) -> Any:
    """Predicted labels, of whatever shape and type the peer gives."""
    return np.asarray(model.predict(X)).reshape(len(X)).astype(np.int64)


def learned_xrfm(bandwidths: tuple[float, ...], X: Any, y: Any, seed: int) -> tuple[Any, Settings]:
    """Trained xRFM, and its settings. It needs held-out rows in training, a quarter: it is not trained again on all."""
    import torch
    from sklearn.preprocessing import StandardScaler
    from xrfm import xRFM

    torch.set_num_threads(1)
    scaler = StandardScaler().fit(X)
    X = scaler.transform(X).astype(np.float32)
    seen, out = quarter(y, seed)
    tried = []
    for bandwidth in bandwidths:
        model = xRFM(device="cpu", max_leaf_size=XRFM_LEAF, random_state=seed, n_threads=1, verbose=False)
        model.rfm_params["model"]["bandwidth"] = bandwidth
        model.fit(X[seen], y[seen], X[out], y[out])
        tried.append((error(labels(model, X[out]), y[out]), bandwidth, model))
    _, bandwidth, best = min(tried, key=lambda one: one[0])
    return Scaled(scaler, best), {"bandwidth": bandwidth}


@dataclass(frozen=True)
class Scaled:
    """A trained xRFM and the scaling of its rows."""

    scaler: Any
    model: Any

    def predict(self, X: Any) -> Any:
        return self.model.predict(self.scaler.transform(X).astype(np.float32))


def figures(name: str, seed: int, X: Any, y: Any, X_test: Any, y_test: Any) -> dict[str, Any]:
    """Test error in per cent, processor seconds, and the settings."""
    warm_up(name)
    begun = processor_seconds()
    model, chosen = learned_xrfm(XRFM[name], X, y, seed) if name in XRFM else learned(PEERS[name], X, y, seed)
    trained = processor_seconds()
    predictions = labels(model, X_test)
    done = processor_seconds()
    wrong = error(predictions, y_test)
    return {"error": wrong, "train_cpu": trained - begun, "predict_cpu": done - trained, "chosen": chosen}


def warm_up(name: str) -> None:
    """Import the peer, so that no time is that of loading libraries."""
    if name in XRFM:
        import torch  # noqa: F401
        import xrfm  # noqa: F401
    else:
        PEERS[name].make(0, **PEERS[name].settings[0])


def main() -> None:
    """One training and prediction."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("name", help="the peer")
    parser.add_argument("seed", type=int)
    parser.add_argument("path", help="NPZ file of X, y, X_test, y_test")
    parser.add_argument("limit", type=int, help="processor seconds")
    order = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_CPU, (order.limit, resource.RLIM_INFINITY))
    warnings.simplefilter("ignore")  # of the peers
    with np.load(order.path) as arrays:
        rows = [arrays[part] for part in ("X", "y", "X_test", "y_test")]
    answer(figures(order.name, order.seed, *rows))


if __name__ == "__main__":
    main()
