"""The classifier of a method: scikit-learn's contract around a training run and its model."""

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
from localsvm.data.origin import from_array
from localsvm.methods.base import Method
from localsvm.methods.svm import KernelSVM
from localsvm.parallel.local import cpu_count
from localsvm.runs.config import TrainingConfig
from localsvm.runs.prediction import LocalModel
from localsvm.runs.summary import Summary
from localsvm.runs.training import train

FLOATS = (np.float64, np.float32)  # what rows are converted to: the first, unless they are one of them
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
    "repeats": 1,
    "random_state": 0,
}


class LocalClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Base of the estimators: `LocalSVC`, and one for each other method, named after it, such as `L3SVMClassifier`.

    Parameters
    ----------
    parameters of the method
        They come first. Where the default is None, it stands for the default grid; a number is used as it is; from a
        list, cross-validation chooses.
    partition : str or None
        "none", "chunks", "voronoi" or "kmeans"; None for one cell, or what the method does with many rows.
    cell_size, scale, folds, grid, select, multiclass
        As on the command line.
    class_weight : dict, "balanced" or None
        Factors on C by label.
    n_jobs : int or None
        Number of processes: None for one, -1 for all cores.
    random_state : int, RandomState or None
        The seed; None for a new one at each fit.

    Attributes
    ----------
    classes_ : (classes,)
        Sorted labels, of any type.
    summary_ : runs.summary.Summary
    model_ : bytes
        The model file, which `localsvm.runs.prediction.LocalModel` and `lsvm-predict` can read once it is written to
        disk. Its labels are indices into classes_.
    """

    method: ClassVar[type[Method]]

    def __init_subclass__(cls, **options: Any) -> None:
        """Make __init__ from the fields of the method: scikit-learn reads the parameters from its signature."""
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
        """Train on rows X (n, d), dense or sparse, and labels y (n,); ValueError for fewer than two classes."""
        X, y = validate_data(self, X, y, accept_sparse="csr", dtype=FLOATS, ensure_min_samples=2)
        check_classification_targets(y)
        self.classes_, codes, counts = np.unique(y, return_inverse=True, return_counts=True)
        if len(self.classes_) < 2:
            raise ValueError(f"y has one class, {self.classes_[0]!r}; training needs at least two classes")
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "model.h5"
            config = self._config(counts)
            X, origin = _own(X, config.shifts)
            data = Dataset(X, codes.astype(np.float64), origin=origin)
            self.summary_: Summary = train(data, config, path, jobs=self._jobs())
            self.model_ = path.read_bytes()
        return self

    def decision_function(self, X: ArrayLike) -> NDArray[np.float64]:
        """Decision values float64: (n,) for two classes, positive for classes_[1]; else (n, binary problems).

        The order of the binary problems is that of targets.classification.
        """
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse="csr", dtype=FLOATS, reset=False)
        values = self._with_model(lambda model: model.decision_function(_rows(X)))
        return values[:, 0] if len(self.classes_) == 2 else values

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """The predicted labels (n,)."""
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse="csr", dtype=FLOATS, reset=False)
        codes = self._with_model(lambda model: model.predict(_rows(X)))
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
            repeats=self.repeats,
        )

    def _class_weight(self, counts: NDArray[np.int64]) -> dict[Any, float]:
        """Factors on C by label; "balanced" is n / (classes * rows of the class), as in scikit-learn."""
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
    """Local kernel SVMs, with gamma and C chosen in each cell by cross-validation: what `lsvm-train` trains by default.

    Parameters
    ----------
    kernel : str
        "gaussian", "laplacian", "polynomial" or "linear".
    gamma, cost : float, list or None
        None for a grid of 10 x 10.
    partition : str or None
        None for one cell up to cell_size rows, and Voronoi cells beyond.

    All other parameters, and the attributes: see LocalClassifier.
    """

    method = KernelSVM


def _rows(X: Any) -> Any:
    """X as a model takes it: dense rows keep their digits."""
    return as_examples(sparse.csr_array(X)) if sparse.issparse(X) else X


def _own(X: Any, shifts: bool) -> tuple[Examples, NDArray[np.float64] | None]:
    """A copy of X that training may scale in place, and the origin of its columns."""
    if sparse.issparse(X):
        return as_examples(sparse.csr_array(X, copy=True)), None
    X, origin = from_array(X, shifts)
    return as_examples(X), origin


def _values(value: float | list[float]) -> tuple[float, ...]:
    return tuple(float(v) for v in np.atleast_1d(np.asarray(value)))
