"""The peers of reproduce/values.py: boosted trees, forests and kernel machines that predict values.

    python scripts/reproduce/value_peers.py "LightGBM chosen" 0 pol.train.csv pol.test.csv foo "[]" 600 answers.npy

trains a peer with seed 0, writes its answers for the test rows, and prints its figures; the last words are the target,
the columns that are ignored, as JSON, the processor seconds after which the system ends it, and the file of the
answers. Settings of boosters are tried on three quarters of the training rows; those with the smallest loss on the
fourth are trained on all. The target of the test rows is not looked at.
"""

from __future__ import annotations

import argparse
import json
import resource
import sys
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))  # scripts, whose folders share the harness
from harness.commands import answer
from harness.timing import processor_seconds
from reproduce import table_peers
from reproduce.tabular_peers import XRFM_LEAF, Peer, learned, products, quarter, stop_lightgbm, stop_xgboost

MOST_TREES, RATE = 2000, 0.05
LEVELS = (0.05, 0.5, 0.95)  # of quantiles
SEARCH_ROWS = 3000  # on which the settings of SVR and KernelRidge are tried
PROCESS_ROWS, KERNEL_ROWS = 3000, 1000  # of the Gaussian process, and of the search for its kernel
BLOCK = 4000  # rows that a kernel machine predicts at once
WIDTHS = (0.03, 0.1, 0.3, 1.0, 3.0)  # gamma times the sum of the variances of the columns


def lightgbm(seed: int, **settings: Any) -> Any:
    """LightGBM on one thread."""
    from lightgbm import LGBMRegressor

    return LGBMRegressor(n_jobs=1, random_state=seed, verbose=-1, **settings)


def xgboost(seed: int, **settings: Any) -> Any:
    """XGBoost on one thread, which takes categories."""
    from xgboost import XGBRegressor

    return XGBRegressor(n_jobs=1, random_state=seed, enable_categorical=True, **settings)


def catboost(seed: int, **settings: Any) -> Any:
    """CatBoost on one thread, told which columns are text."""
    from catboost import CatBoostRegressor

    fixed = {"random_seed": seed, "thread_count": 1, "verbose": False, "allow_writing_files": False}
    return table_peers.CatBoost(seed, lambda _, **chosen: CatBoostRegressor(**fixed, **chosen), **settings)


def boosting(seed: int, **settings: Any) -> Any:
    """HistGradientBoosting of scikit-learn."""
    from sklearn.ensemble import HistGradientBoostingRegressor

    return HistGradientBoostingRegressor(random_state=seed, categorical_features="from_dtype", **settings)


def forest(seed: int, **settings: Any) -> Any:
    """Random forest of scikit-learn on one thread."""
    from sklearn.ensemble import RandomForestRegressor

    return RandomForestRegressor(n_jobs=1, random_state=seed, **settings)


class Scaled:
    """A model of encoded rows: numbers and the target have mean 0 and deviation 1.

    Gaps are medians, levels of categories 0 and 1; of a column's levels the rarest share one. Subclasses learn.
    """

    model: Any

    def __init__(self, seed: int) -> None:
        from sklearn import compose, impute, model_selection, pipeline, preprocessing  # noqa: F401, not timed

        self.seed, self.chosen = seed, {}  # type: tuple[int, dict[str, Any]]

    def fit(self, X: Any, y: Any) -> Scaled:
        rows = self.rows(len(y))
        X, y = X.iloc[rows], y[rows]
        self.encoder, self.mean, self.deviation = encoder(X), y.mean(), y.std() or 1.0
        self.learn(self.encoder.fit_transform(X), (y - self.mean) / self.deviation)
        return self

    def predict(self, X: Any) -> Any:
        parts = [self.answer(self.encoder.transform(X.iloc[i : i + BLOCK])) for i in range(0, len(X), BLOCK)]
        return np.concatenate(parts) * self.deviation + self.mean

    def rows(self, n: int) -> Any:
        """Numbers of the rows that are learned from."""
        return np.arange(n)

    def learn(self, X: Any, y: Any) -> None:
        """Train on encoded rows."""
        raise NotImplementedError

    def answer(self, X: Any) -> Any:
        """Answers to encoded rows."""
        return np.asarray(self.model.predict(X)).reshape(len(X))


def encoder(X: Any) -> Any:
    """What makes columns of numbers of a frame; all that are none have levels."""
    from sklearn.compose import ColumnTransformer
    from sklearn.impute import SimpleImputer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    plain = [name for name in X.columns if X[name].dtype.kind in "iuf"]
    levels = OneHotEncoder(handle_unknown="infrequent_if_exist", max_categories=table_peers.LEVELS, sparse_output=False)
    numbers = make_pipeline(SimpleImputer(strategy="median"), StandardScaler())
    return ColumnTransformer(
        [("numbers", numbers, plain), ("levels", levels, [name for name in X.columns if name not in plain])]
    )


def some(n: int, most: int, seed: int) -> Any:
    """Numbers of at most so many rows, at random."""
    return np.sort(np.random.default_rng([seed, 5]).permutation(n)[:most])


class Searched(Scaled):
    """SVR or KernelRidge: settings by three folds of some rows, then all rows."""

    def __init__(self, seed: int, make: Callable[[], Any], **grid: tuple[float, ...]) -> None:
        super().__init__(seed)
        self.model, self.grid = make(), grid

    def learn(self, X: Any, y: Any) -> None:
        from sklearn.model_selection import GridSearchCV, KFold

        few = some(len(y), SEARCH_ROWS, self.seed)
        folds = KFold(3, shuffle=True, random_state=self.seed)
        grid = self.grid | {"gamma": [width / X.var(axis=0).sum() for width in WIDTHS]}
        search = GridSearchCV(self.model, grid, scoring="neg_mean_squared_error", cv=folds, refit=False)
        self.chosen = dict(search.fit(X[few], y[few]).best_params_)
        self.model = self.model.set_params(**self.chosen).fit(X, y)


def svr(seed: int) -> Any:
    """SVR of scikit-learn."""
    from sklearn.svm import SVR

    return Searched(seed, lambda: SVR(cache_size=1000), C=(1.0, 10.0, 100.0), epsilon=(0.01, 0.1))


def ridge(seed: int) -> Any:
    """KernelRidge of scikit-learn."""
    from sklearn.kernel_ridge import KernelRidge

    return Searched(seed, lambda: KernelRidge(kernel="rbf"), alpha=(0.001, 0.01, 0.1, 1.0))


class Process(Scaled):
    """Gaussian process of some rows; one width for all columns, it and the noise by likelihood on fewer of them."""

    def __init__(self, seed: int) -> None:
        from sklearn import gaussian_process  # noqa: F401, not timed

        super().__init__(seed)

    def rows(self, n: int) -> Any:
        return some(n, PROCESS_ROWS, self.seed)

    def learn(self, X: Any, y: Any) -> None:
        from sklearn.gaussian_process import GaussianProcessRegressor
        from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel

        few = some(len(y), KERNEL_ROWS, self.seed + 1)
        kernel = ConstantKernel() * RBF(np.sqrt(X.var(axis=0).sum())) + WhiteKernel()
        kernel = GaussianProcessRegressor(kernel).fit(X[few], y[few]).kernel_
        self.chosen = {"kernel": str(kernel)}
        self.model = GaussianProcessRegressor(kernel, optimizer=None).fit(X, y)


class Recursive(Scaled):
    """xRFM at its defaults but for the leaves. It needs held-out rows, a quarter, and is not trained again on all."""

    def __init__(self, seed: int) -> None:
        import torch
        from xrfm import xRFM

        super().__init__(seed)
        torch.set_num_threads(1)
        self.model = xRFM(device="cpu", max_leaf_size=XRFM_LEAF, random_state=seed, n_threads=1, verbose=False)

    def learn(self, X: Any, y: Any) -> None:
        X, y = X.astype(np.float32), y.astype(np.float32)
        seen, out = quarter(y, self.seed)
        self.model.fit(X[seen], y[seen], X[out], y[out])

    def answer(self, X: Any) -> Any:
        return super().answer(X.astype(np.float32))


class Quantiles:
    """LightGBM's quantiles: a booster for each level, its leaves and trees chosen by the pinball loss at it."""

    def __init__(self, seed: int) -> None:
        lightgbm(seed)
        self.seed, self.models, self.chosen = seed, [], {}  # type: tuple[int, list[Any], dict[str, Any]]

    def fit(self, X: Any, y: Any) -> Quantiles:
        for level in LEVELS:
            make = partial(lightgbm, objective="quantile", alpha=level)
            model, self.chosen[f"{level:g}"] = learned(boosted(make, **LEAVES, loss=at_level(level)), X, y, self.seed)
            self.models.append(model)
        return self

    def predict(self, X: Any) -> Any:
        return np.stack([model.predict(X) for model in self.models], axis=1)


def squared(model: Any, X: Any, y: Any) -> float:
    """Mean squared error."""
    return float(np.mean(np.square(np.asarray(model.predict(X)) - y)))


def pinball(answers: Any, y: Any, level: float) -> float:
    """Mean pinball loss of answers at a level."""
    below = y - answers
    return float(np.mean(np.maximum(level * below, (level - 1) * below)))


def at_level(level: float) -> Callable[[Any, Any, Any], float]:
    """The pinball loss of a model."""
    return lambda model, X, y: pinball(np.asarray(model.predict(X)), y, level)


def boosted(make: Any, trees: str, stop: Any, loss: Any = squared, **sizes: tuple[int, ...]) -> Peer:
    """Boosted trees: `stop` finds the number of trees, and the combinations of `sizes` are tried."""
    return Peer(make, products(learning_rate=(RATE,), **{trees: (MOST_TREES,)}, **sizes), trees, stop, loss=loss)


LEAVES: dict[str, Any] = {"trees": "n_estimators", "stop": stop_lightgbm, "num_leaves": (7, 31, 127)}
PEERS: dict[str, Peer] = {
    "LightGBM": Peer(lightgbm, [{}]),
    "LightGBM chosen": boosted(lightgbm, **LEAVES),
    "XGBoost": Peer(xgboost, [{}]),
    "XGBoost chosen": boosted(xgboost, "n_estimators", stop_xgboost, max_depth=(6, 8)),
    "CatBoost": Peer(catboost, [{}]),
    "CatBoost chosen": boosted(catboost, "iterations", table_peers.stop_catboost, depth=(6, 8)),
    "HistGradientBoosting": Peer(boosting, [{}]),
    "random forest": Peer(forest, [{}]),
    "SVR": Peer(svr, [{}]),
    "KernelRidge": Peer(ridge, [{}]),
    "Gaussian process": Peer(Process, [{}]),
    "xRFM": Peer(Recursive, [{}]),
    "LightGBM quantiles": Peer(Quantiles, [{}]),
}
BOOSTERS = [name for name in PEERS if "Boost" in name or name in ("LightGBM", "LightGBM chosen")]
NUMBERS = ("SVR", "KernelRidge", "Gaussian process", "xRFM")  # take text from us, as CatBoost does, and encode it
LARGEST = {"SVR": 20_000, "KernelRidge": 20_000, "xRFM": 20_000}  # training rows of which it is not begun with more


def figures(name: str, seed: int, paths: list[str], target: str, ignored: list[str]) -> tuple[dict[str, Any], Any]:
    """Processor seconds and settings; and answers (rows, levels) for the test table."""
    coding = "CatBoost" if name in NUMBERS else name
    (X, y), (X_test, _) = table_peers.columns(paths, target, ignored, coding)
    some_value = X.columns[X.notna().any()]  # HistGradientBoosting takes no others
    X, X_test = X[some_value], X_test[some_value]
    peer = PEERS[name]
    peer.make(0, **peer.settings[0])  # imports the library, so that no time is that of loading it
    begun = processor_seconds()
    model, chosen = learned(peer, X, y.to_numpy(np.float64), seed)
    trained = processor_seconds()
    answers = np.asarray(model.predict(X_test), np.float64).reshape(len(X_test), -1)
    seconds = {"train_cpu": trained - begun, "predict_cpu": processor_seconds() - trained}
    return {**seconds, "chosen": getattr(model, "chosen", chosen)}, answers


def main() -> None:
    """One training and prediction."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    for name in ("name", "seed", "train", "test", "target", "ignored", "limit", "answers"):
        parser.add_argument(name, type=int if name in ("seed", "limit") else str)
    order = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_CPU, (order.limit, resource.RLIM_INFINITY))
    warnings.simplefilter("ignore")  # of the peers
    try:
        found, answers = figures(
            order.name, order.seed, [order.train, order.test], order.target, json.loads(order.ignored)
        )
    except ModuleNotFoundError as missing:
        sys.exit(f"{missing.name} is not installed (`make peers`)")
    np.save(order.answers, answers)
    answer(found)


if __name__ == "__main__":
    main()
