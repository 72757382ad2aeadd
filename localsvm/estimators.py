"""Classifiers for scikit-learn: `LocalSVC`, and one for each other method, made from its fields when asked for.

from localsvm.estimators import L3SVMClassifier, LocalSVC
"""

from __future__ import annotations

import inspect
import tempfile
from dataclasses import fields
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from localsvm.data.dataset import Dataset, Examples, as_examples
from localsvm.methods import methods
from localsvm.methods.base import Method
from localsvm.methods.svm import KernelSVM
from localsvm.parallel.local import cpu_count
from localsvm.runs.config import TrainingConfig
from localsvm.runs.prediction import LocalModel
from localsvm.runs.summary import Summary
from localsvm.runs.training import train

COMMON: dict[str, Any] = {
    "partition": None,
    "cell_size": 2000,
    "scale": "std",
    "folds": 5,
    "grid": "adaptive",
    "select": None,
    "multiclass": "ova",
    "class_weight": None,
    "n_jobs": None,
    "random_state": 0,
}


class LocalClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """What the estimators share: `LocalSVC`, and one for each other method, named after it: `L3SVMClassifier`.

    Parameters are the command line's, those of the method first: None or () for the default grid, a number, or a list
    to choose from by cross-validation. Of all methods: partition None (one cell, or what the method does with many
    rows), "none", "chunks", "voronoi" or "kmeans"; cell_size, scale, folds, grid, select and multiclass; class_weight
    a dict of factors on C by label, or "balanced"; n_jobs None for one process, -1 for all cores; random_state the
    seed, None for one drawn anew.

    Fitted: classes_ (classes,) sorted labels of any type; summary_ a runs.summary.Summary; model_ (bytes) the model
    file, which `localsvm.runs.prediction.LocalModel` and `lsvm-predict` read from a file (labels there: class numbers).
    """

    method: ClassVar[type[Method]]

    def __init_subclass__(cls, **options: Any) -> None:
        """The parameters, from the method's fields: scikit-learn reads them from the signature of __init__."""
        super().__init_subclass__(**options)
        own = {f.name: None if f.default == () else f.default for f in fields(cls.method)}  # type: ignore[arg-type]
        defaults = own | COMMON
        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
        parameters = [inspect.Parameter(name, kind, default=value) for name, value in defaults.items()]

        def __init__(self: LocalClassifier, *args: Any, **given: Any) -> None:
            bound = inspect.Signature(parameters).bind(*args, **given)
            for name, value in (defaults | bound.arguments).items():
                setattr(self, name, value)

        first = inspect.Parameter("self", kind)
        __init__.__signature__ = inspect.Signature([first, *parameters])  # type: ignore[attr-defined]
        cls.__init__ = __init__  # type: ignore[method-assign,assignment]

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Train on X (n, d), dense or sparse, and labels y (n,) of at least two classes."""
        X, y = validate_data(self, X, y, accept_sparse="csr", dtype=np.float32, ensure_min_samples=2)
        check_classification_targets(y)
        self.classes_, codes, counts = np.unique(y, return_inverse=True, return_counts=True)
        if len(self.classes_) < 2:
            raise ValueError(f"y has one class, {self.classes_[0]!r}; training needs at least two classes")
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "model.h5"
            data = Dataset(_own(X), codes.astype(np.float64))
            self.summary_: Summary = train(data, self._config(counts), path, jobs=self._jobs())
            self.model_ = path.read_bytes()
        return self

    def decision_function(self, X: ArrayLike) -> NDArray[np.float64]:
        """(n,) for two classes, positive for classes_[1]; else (n, problems), see targets.classification."""
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse="csr", dtype=np.float32, reset=False)
        values = self._with_model(lambda model: model.decision_function(_own(X)))
        return values[:, 0] if len(self.classes_) == 2 else values

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """(n,) labels."""
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse="csr", dtype=np.float32, reset=False)
        codes = self._with_model(lambda model: model.predict(_own(X)))
        return np.asarray(self.classes_[codes.astype(np.intp)])

    def _with_model(self, use: Any) -> NDArray[np.float64]:
        with tempfile.NamedTemporaryFile(suffix=".h5") as file:
            file.write(self.model_)
            file.flush()
            with LocalModel(file.name, self._jobs(), verify=False) as model:
                return np.asarray(use(model))

    def _config(self, counts: NDArray[np.int64]) -> TrainingConfig:
        given = {f.name: getattr(self, f.name) for f in fields(self.method)}  # type: ignore[arg-type]
        listed = {f.name: f.default for f in fields(self.method) if isinstance(f.default, tuple)}  # type: ignore[arg-type]
        values = {name: default if given[name] is None else _values(given[name]) for name, default in listed.items()}
        method = self.method(**(given | values))
        weights = {}
        for label, weight in self._class_weight(counts).items():
            if label not in self.classes_:
                raise ValueError(f"class_weight: {label!r} is no label of y")
            weights[float(np.flatnonzero(self.classes_ == label)[0])] = float(weight)
        seed = self.random_state
        if not isinstance(seed, (int, np.integer)):
            seed = check_random_state(seed).randint(1 << 31)
        return TrainingConfig(
            method=method,
            partition=self.partition,
            cell_size=self.cell_size,
            scale=self.scale,
            folds=self.folds,
            grid=self.grid,
            select=self.select,
            multiclass=self.multiclass,
            class_weights=tuple(sorted(weights.items())),
            seed=int(seed),
        )

    def _class_weight(self, counts: NDArray[np.int64]) -> dict[Any, float]:
        """Factors on C by label; "balanced" as in scikit-learn: rows / (classes * rows of the class)."""
        if self.class_weight is None:
            return {}
        if isinstance(self.class_weight, str):
            if self.class_weight != "balanced":
                raise ValueError(f'class_weight: {self.class_weight!r} is neither "balanced" nor a dict of factors')
            return dict(zip(self.classes_, counts.sum() / (len(counts) * counts), strict=True))
        return dict(self.class_weight)

    def _jobs(self) -> int:
        return 1 if not self.n_jobs else cpu_count() if self.n_jobs < 0 else self.n_jobs

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


class LocalSVC(LocalClassifier):
    """Local kernel SVMs with hyper-parameters chosen by cross-validation in each cell; what `lsvm-train` trains.

    gamma and cost None (a 10 x 10 grid), a number or a list; kernel "gaussian", "laplacian", "polynomial" or "linear";
    partition None is one cell up to cell_size rows, Voronoi cells beyond. The rest: see LocalClassifier.
    """

    method = KernelSVM


ESTIMATORS: dict[str, type[LocalClassifier]] = {}


def __getattr__(name: str) -> type[LocalClassifier]:
    if name not in ESTIMATORS:
        found = {f"{method.__name__}Classifier": method for method in methods().values()}
        if name not in found:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        about = f"The method {found[name].name!r}; see LocalClassifier."
        own = {"method": found[name], "__doc__": about, "__module__": __name__}
        ESTIMATORS[name] = type(name, (LocalClassifier,), own)
    return ESTIMATORS[name]


def _own(X: Any) -> Examples:
    """A copy that training may scale in place."""
    return as_examples(sparse.csr_array(X, copy=True)) if sparse.issparse(X) else np.array(X, np.float32, order="C")


def _values(value: float | list[float]) -> tuple[float, ...]:
    return tuple(float(v) for v in np.atleast_1d(np.asarray(value)))
