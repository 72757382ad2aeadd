"""Classifiers for scikit-learn: `LocalSVC`, and one for each other method, made from its fields when first imported.

from localsvm import L3SVMClassifier, LocalSVC
"""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

from localsvm.estimators.classifier import LocalClassifier, LocalSVC
from localsvm.estimators.fitted import classes_of
from localsvm.estimators.parameters import parameters_of
from localsvm.methods import methods
from localsvm.runs.predict import LocalModel


def names() -> list[str]:
    """The classes of this module: `LocalSVC`, and one for each method."""
    return sorted({"LocalSVC", *(f"{method.__name__}Classifier" for method in methods().values())})


def load(path: str | os.PathLike[str]) -> LocalClassifier:
    """The fitted classifier of a model file, of `save` or of `lsvm-train`.

    Its parameters are the options that the model was trained with; classes_ are those that it was fitted on, and the
    labels of the training file for a model of `lsvm-train`. There is no summary_.

    Raises
    ------
    ModelError : the file cannot be read or is no model.
    """
    content = Path(path).read_bytes() if Path(path).is_file() else b""
    with LocalModel(Path(path)) as model:  # names what is wrong with a file, and verifies it
        config, method = dict(model.file.config), type(model.method)
        name = "LocalSVC" if method is LocalSVC.method else f"{method.__name__}Classifier"
        classes = classes_of(model.file.labels, config.get("classes"))
        given = parameters_of(method, config, dict(zip(model.file.labels.tolist(), classes.tolist(), strict=True)))
        kind: type[LocalClassifier] = globals().get(name) or __getattr__(name)
        classifier = kind(**given)
        classifier.classes_, classifier.n_features_in_ = classes, model.chain.width
        if model.table is not None:
            names = model.table.columns
            classifier.feature_names_in_, classifier.n_features_in_ = np.asarray(names, object), len(names)
    classifier._take(content)
    return classifier


def __dir__() -> list[str]:
    return [*names(), "LocalClassifier", "load"]


def __getattr__(name: str) -> type[LocalClassifier]:
    if name.startswith("__"):  # the import machinery asks for some: no reason to load all methods
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    known = {f"{method.__name__}Classifier": method for method in methods().values()}
    if name not in known:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    classifier = type(name, (LocalClassifier,), {"method": known[name], "__module__": __name__})
    globals()[name] = classifier  # made once, and found by pickle
    return classifier
