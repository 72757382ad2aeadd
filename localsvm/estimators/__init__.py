"""Estimators for scikit-learn: `LocalSVC`, `LocalSVR`, `LocalOneClass`, and others, made when first imported.

from localsvm import L3SVMClassifier, LocalOneClass, LocalSVC, LocalSVR
"""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

from localsvm.estimators.base import LocalEstimator
from localsvm.estimators.classifier import LocalClassifier, LocalSVC
from localsvm.estimators.fitted import classes_of
from localsvm.estimators.one_class import LocalOneClass
from localsvm.estimators.parameters import losses_of, parameters_of
from localsvm.estimators.regressor import LocalRegressor, LocalSVR
from localsvm.methods import methods
from localsvm.methods.base import Method
from localsvm.runs.predict import LocalModel
from localsvm.targets.loss_names import LEAST_SQUARES


def names() -> list[str]:
    """The classes of this module: those with a name of their own, a classifier for each method, regressors for some."""
    return sorted({"LocalOneClass", "LocalSVC", "LocalSVR", *_made()})


def load(path: str | os.PathLike[str]) -> LocalEstimator:
    """The fitted estimator of a model file, of `save` or of `lsvm-train`.

    Its parameters are the options that the model was trained with; classes_ are those that it was fitted on, and the
    labels of the training file for a model of `lsvm-train`. There is no summary_.

    Raises
    ------
    ModelError : the file cannot be read or is no model.
    """
    content = Path(path).read_bytes() if Path(path).is_file() else b""
    with LocalModel(Path(path)) as model:  # names what is wrong with a file, and verifies it
        estimator = _fitted(model)
        estimator.n_features_in_ = model.chain.width
        if model.table is not None:
            names = model.table.columns
            estimator.feature_names_in_, estimator.n_features_in_ = np.asarray(names, object), len(names)
    estimator._take(content)
    return estimator


def _fitted(model: LocalModel) -> LocalEstimator:
    """Estimator of what a model predicts, with its parameters."""
    if model.target.novel_share is not None:
        return LocalOneClass(**parameters_of(type(model.method), LocalOneClass.kind, dict(model.file.config), {}))
    return _of_values(model) if model.target.score_of_values is not None else _of_classes(model)


def _of_classes(model: LocalModel) -> LocalClassifier:
    config, method = dict(model.file.config), type(model.method)
    name = "LocalSVC" if method is LocalSVC.method else f"{method.__name__}Classifier"
    classes = classes_of(model.file.labels, config.get("classes"))
    stand_for = dict(zip(model.file.labels.tolist(), classes.tolist(), strict=True))
    made = globals().get(name) or __getattr__(name)
    classifier: LocalClassifier = made(**parameters_of(method, made.kind, config, stand_for))
    classifier.classes_ = classes
    return classifier


def _of_values(model: LocalModel) -> LocalRegressor:
    method = type(model.method)
    name = "LocalSVR" if method is LocalSVR.method else f"{method.__name__}Regressor"
    made = globals().get(name) or __getattr__(name)
    regressor: LocalRegressor = made(**parameters_of(method, made.kind, dict(model.file.config), {}))
    return regressor


def __dir__() -> list[str]:
    return [*names(), "LocalClassifier", "LocalEstimator", "LocalRegressor", "load"]


def __getattr__(name: str) -> type[LocalEstimator]:
    if name.startswith("__"):  # the import machinery asks for some: no reason to load all methods
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    known = _made()
    if name not in known:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    base, method = known[name]
    estimator = type(name, (base,), {"method": method, "__module__": __name__})
    globals()[name] = estimator  # made once, and found by pickle
    return estimator


def _made() -> dict[str, tuple[type[LocalEstimator], type[Method]]]:
    """Bases and methods of the estimators that are made, by their names."""
    made: dict[str, tuple[type[LocalEstimator], type[Method]]] = {}
    for method in methods().values():
        if method is LocalOneClass.method:
            continue
        made[f"{method.__name__}Classifier"] = LocalClassifier, method
        if method is not LocalSVR.method and LEAST_SQUARES in losses_of(method):
            made[f"{method.__name__}Regressor"] = LocalRegressor, method
    return made
