"""The classifier of a method: scikit-learn's contract around a training run and its model."""

from __future__ import annotations

import inspect
import os
import re
import tempfile
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields, replace
from functools import partial
from numbers import Real
from pathlib import Path
from typing import Any, ClassVar, Self, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import assert_all_finite, check_random_state
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import (
    _check_sample_weight,
    check_consistent_length,
    check_is_fitted,
    column_or_1d,
    validate_data,
)

from localsvm.data.blocks.dataset import Dataset, Examples, as_examples, check_float32
from localsvm.data.readers.origin import from_array
from localsvm.errors import ModelError
from localsvm.estimators.fitted import Opened, best_params, hyperplane, kept_classes, label_values
from localsvm.estimators.frames import Column, encoded, fitted_rows, frame_of, is_frame
from localsvm.estimators.parameters import (
    COMMON,
    ParameterError,
    RowsError,
    about,
    defaults,
    in_python,
    method_of,
    named_in_python,
    refuse_unknown,
    typed,
)
from localsvm.estimators.progress import ProgressLines, Warned
from localsvm.methods.base import Method
from localsvm.methods.grids import LARGEST_COST
from localsvm.methods.kernel.svm import KernelSVM
from localsvm.parallel.local import cpu_count
from localsvm.runs.cells.schedule import Resources
from localsvm.runs.config import TrainingConfig
from localsvm.runs.predict import LocalModel
from localsvm.runs.preparation.given import Given, read_given
from localsvm.runs.train import train
from localsvm.store.outputs import replacing

Result = TypeVar("Result")
SMALLEST_CELL = 10  # as on the command line
FLOATS = (np.float64, np.float32)  # what rows are converted to: the first, unless they are one of them
# of TrainingConfig
RUN = (
    "partition", "cell_size", "coarse_size", "effort", "scale", "metric", "views", "folds", "grid", "select",
    "multiclass", "scoring", "probability",
    "repeats",
)  # fmt: skip


def _has_probabilities(self: LocalClassifier) -> bool:
    if not self.probability:
        raise AttributeError("probabilities need probability=True before fit")
    return True


class LocalClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Base of the classifiers: `LocalSVC`, and one for each other method, named after it, such as `L3SVMClassifier`.

    Each has the parameters of its method, then those of `parameters.COMMON`. Where the default of a method's parameter
    is None, it stands for the default grid; a number is used as it is; from a list, cross-validation chooses.
    """

    method: ClassVar[type[Method]]

    def __init_subclass__(cls, **options: Any) -> None:
        """Make __init__ from the fields of the method: scikit-learn reads the parameters from its signature."""
        super().__init_subclass__(**options)
        if "method" not in cls.__dict__ or "__init__" in cls.__dict__:
            return  # a subclass of a classifier has what it says, and inherits the rest
        known = defaults(cls.method)
        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
        parameters = [inspect.Parameter(name, kind, default=value) for name, value in known.items()]

        def __init__(self: LocalClassifier, *args: Any, **given: Any) -> None:
            if "C" in given and "cost" in known and "cost" not in given:  # as scikit-learn calls it
                given["cost"] = given.pop("C")
            refuse_unknown(type(self).__name__, given, known)
            bound = inspect.Signature(parameters).bind(*args, **given)
            for name, value in (known | bound.arguments).items():
                setattr(self, name, value)

        first = inspect.Parameter("self", kind)
        __init__.__signature__ = inspect.Signature([first, *parameters])  # type: ignore[attr-defined]
        cls.__init__ = __init__  # type: ignore[method-assign,assignment]
        cls.__doc__ = about(cls.method)

    def fit(
        self, X: Any, y: Any, sample_weight: ArrayLike | None = None, groups: ArrayLike | None = None
    ) -> Self:  # fmt: skip
        """Train on rows X (n, d), an array, dense or sparse, or a frame of pandas, polars or pyarrow, and labels y.

        sample_weight (n,): factors on C and on the held-out loss of the rows; a row of weight 0 is left out.
        groups (n,): rows of a group are held out together, so that the error is that of new groups.

        nan stands for a missing value in dense rows. Columns of a frame are known by their names.

        Raises ValueError, which names the parameter, for what cannot be used; ConvergenceWarning for models that did
        not reach their tolerance; UserWarning for columns so far from 0 that they are nearly constant to the method.
        """
        with self._kept_if_failing():
            observer = self._fit(X, y, sample_weight, groups)
        for text in observer.warnings:
            warnings.warn(in_python(text, self.method), UserWarning, stacklevel=2)
        if self.summary_.not_converged:
            what = f"{self.summary_.not_converged} of {self.summary_.models} models did not reach the tolerance"
            remedy = self._use(lambda model: model.method.remedy)
            warnings.warn(f"{what}; {in_python(remedy, self.method)}", ConvergenceWarning, stacklevel=2)
        return self

    @contextmanager
    def _kept_if_failing(self) -> Iterator[None]:
        """Keep the model that there was, its classes and its features, whatever fails in the block."""
        before = dict(vars(self))
        try:
            yield
        except BaseException:
            self.__dict__.clear()
            self.__dict__.update(before)
            raise

    def _fit(self, X: Any, y: Any, sample_weight: ArrayLike | None, groups: ArrayLike | None) -> Warned:
        """Train as `fit` does, but leave the warnings to the observer, which is returned."""
        label = str(getattr(y, "name", None) or "label")
        X, y, columns = self._validated(X, y)
        check_classification_targets(y)
        weight = None if sample_weight is None else _weights(sample_weight, y)
        group = None if groups is None else _groups(groups, y)
        if weight is not None and not weight.all():
            kept = weight > 0
            X = None if X is None else X[kept]
            columns = columns and {name: replace(each, values=each.values[kept]) for name, each in columns.items()}
            y, weight, group = y[kept], weight[kept], None if group is None else group[kept]
        classes, codes = np.unique(y, return_inverse=True)
        if len(classes) < 2:
            raise ValueError(f"y has one class, {classes.tolist()[0]!r}; training needs at least two classes")
        self._check_shape()
        with named_in_python(self.method), tempfile.TemporaryDirectory() as folder:
            labels = label_values(classes)
            given, path = self._given(self.n_features_in_, columns), Path(folder) / "model.h5"
            config = self._config(classes, np.bincount(codes, weight), given)
            table = None
            if columns is not None:
                fitted = fitted_rows(columns, self.categorical_features, codes, config.seed, group, label)
                X, table = fitted.X, fitted.table
            rows, shift = from_array(X, config.shifts)
            data = Dataset(
                as_examples(rows), labels[codes], kept_classes(classes), shift=shift, weight=weight, group=group,
                table=table,
            )  # fmt: skip
            observer = ProgressLines(partial(in_python, method=self.method)) if self.verbose else Warned()
            summary = train(data, config, path, given=given, resources=Resources(jobs=self._jobs(), observer=observer))
            assert summary is not None, "there was no model to resume"
            content = path.read_bytes()
        self.classes_, self.summary_ = classes, summary
        self._take(content)
        return observer

    def _validated(self, X: Any, y: Any) -> tuple[Any, NDArray[Any], dict[str, Column] | None]:
        """Rows X and labels of numbers alone; or, for a frame and for dense rows with missing values, its columns."""
        levels = self.categorical_features is not None and not isinstance(self.categorical_features, str)
        if is_frame(X) or (levels and not hasattr(X, "indptr")):
            columns = frame_of(X)
            if not columns:
                raise RowsError("X has 0 columns; give one or more")
            y = column_or_1d(y, warn=True)
            assert_all_finite(y, input_name="y")
            check_consistent_length(next(iter(columns.values())).values, y)
            if len(y) < 2:
                raise RowsError(f"X has {len(y)} rows; training needs two or more")
            self.n_features_in_ = len(columns)
            if is_frame(X):
                self.feature_names_in_ = np.asarray(list(columns), object)
            return None, y, columns
        X, y = validate_data(
            self, X, y, accept_sparse="csr", dtype=FLOATS, ensure_min_samples=2, ensure_all_finite="allow-nan"
        )
        if isinstance(X, np.ndarray) and np.isnan(X).any():
            return None, y, frame_of(X)
        return X, y, None

    def get_feature_names_out(self, input_features: ArrayLike | None = None) -> NDArray[Any]:
        """Names of the features that the model computes with: those of X, or of its encoded columns."""
        check_is_fitted(self)
        table = self._use(lambda model: model.table)
        if table is not None:
            return np.asarray(table.encoding.names, object)
        known = getattr(self, "feature_names_in_", [f"x{i}" for i in range(self.n_features_in_)])
        return np.asarray(known if input_features is None else input_features, object)

    def decision_function(self, X: ArrayLike) -> NDArray[np.float64]:
        """Decision values float64 of rows X (n, d).

        Returns
        -------
        (n,) for two classes, positive for classes_[1]. For more (n, classes): what `ova` says for each class, and with
        `ava` the pairs that it wins, with a share of less than a half for how clearly; the largest is what `predict`
        gives. With decision_function_shape="ovo" (n, pairs) in the order (0, 1), (0, 2), ..., (1, 2), ...; as in
        scikit-learn's SVC positive for the first class of the pair.
        """
        values = self._decisions(X)
        if len(self.classes_) == 2:
            return values[:, 0]
        if self.multiclass != "ava":
            return values
        self._check_shape()
        return (
            -values if self.decision_function_shape == "ovo" else self._use(lambda model: model.classes.votes(values))
        )

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """The predicted labels (n,): with `probability` the most probable ones."""
        if self.probability:
            most = self.predict_proba(X).argmax(axis=1)
            return np.asarray(self.classes_[most])
        values = self._decisions(X)
        labels = self._use(lambda model: model.file.labels.searchsorted(model.target.decide(values)))
        return np.asarray(self.classes_[labels])

    @available_if(_has_probabilities)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: ArrayLike) -> NDArray[np.float64]:
        """Probabilities (n, classes), classes as in classes_; only with `probability`. docs/probabilities.md."""
        return self._answers(X, LocalModel.probabilities)

    @available_if(_has_probabilities)  # type: ignore[untyped-decorator]
    def predict_log_proba(self, X: ArrayLike) -> NDArray[np.float64]:
        """The logarithms of `predict_proba`."""
        return np.asarray(np.log(np.maximum(self.predict_proba(X), np.finfo(np.float64).tiny)))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model file, for `localsvm.load` and `lsvm-predict`. What is at `path` is overwritten.

        `lsvm-predict` writes labels as they are in classes_, and takes 0, 1, ..., their places there, for those of a
        test file in LIBSVM text.

        Raises
        ------
        RunError : the file cannot be written.
        """
        check_is_fitted(self)
        if (kept_classes(self.classes_)).get("values", ()) is None:
            what = f"classes_ of these types ({self.classes_.dtype}) cannot be kept in a model file"
            raise ValueError(f"{what}; train with numbers or text as labels, or use pickle")
        with replacing(path, force=True) as temporary:
            temporary.write_bytes(self.model_)

    @property
    def best_params_(self) -> list[dict[str, float]]:
        """Parameters that cross-validation chose in each cell; where there was no choice, those that were given."""
        return self._attribute(lambda model: best_params(model.file.report))

    @property
    def n_support_(self) -> NDArray[np.int64]:
        """Number (classes,) of support vectors of each class, over all cells."""
        return self._attribute(lambda model: (model.file.report or ("", {}))[1]["support"].sum(axis=0))

    @property
    def coef_(self) -> NDArray[np.float64]:
        """Weights (problems, n_features_in_): the decision function is X @ coef_.T + intercept_."""
        return self._attribute(lambda model: self._signed(hyperplane(model)[0]))

    @property
    def intercept_(self) -> NDArray[np.float64]:
        """Offsets (problems,) of the decision function."""
        return self._attribute(lambda model: self._signed(hyperplane(model)[1]))

    def _signed(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Values with the signs that scikit-learn gives to pairs of classes: see decision_function."""
        return -values if self.multiclass == "ava" and len(self.classes_) > 2 else values

    def _decisions(self, X: ArrayLike) -> NDArray[np.float64]:
        return self._answers(X, LocalModel.decision_function)

    def _answers(self, X: ArrayLike, ask: Callable[[LocalModel, Examples], NDArray[np.float64]]) -> NDArray[np.float64]:
        check_is_fitted(self)
        table = self._use(lambda model: model.table)
        if table is None:
            X = validate_data(self, X, accept_sparse="csr", dtype=FLOATS, reset=False)
        with named_in_python(self.method):
            if table is not None:
                if hasattr(X, "indptr"):
                    raise RowsError("X is sparse, and the model was fitted on a table; give a frame, or X.toarray()")
                known = getattr(self, "feature_names_in_", None)
                X = encoded(
                    frame_of(X, [f"x{i}" for i in range(self.n_features_in_)] if known is None else known),
                    table.encoding,
                )
            check_float32(X)
            return self._use(lambda model: ask(model, X))

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "model_")

    def _take(self, content: bytes) -> None:
        """Become the model of a file's content."""
        self.model_ = content
        self._opened = Opened(content)

    def _use(self, function: Callable[[LocalModel], Result]) -> Result:
        with self._opened as opened:
            return function(opened.model(self._jobs()))

    def _attribute(self, function: Callable[[LocalModel], Result]) -> Result:
        """Value that the model has of itself; AttributeError, as scikit-learn has it, where it has none."""
        check_is_fitted(self)
        try:
            return self._use(function)
        except KeyError as missing:
            raise AttributeError(f"this model has no {missing.args[0]}") from None

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in super().__getstate__().items() if name != "_opened"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        if "model_" in state:
            self._take(self.model_)

    def _check_shape(self) -> None:
        shape, known = self.decision_function_shape, ("ovr", "ovo")
        if shape not in known or (shape == "ovo" and self.multiclass != "ava"):
            raise ParameterError(
                f'decision_function_shape must be "ovr", or "ovo" with multiclass="ava", not {shape!r}'
            )

    def _given(self, features: int, columns: Any = None) -> Given | None:
        """The metric of metric_file; None without one. columns : of a table, which no metric is for."""
        if self.metric_file is None:
            return None
        if columns is not None:
            raise ParameterError("metric_file is for rows of numbers, and X is a table; leave it out")
        if not isinstance(self.metric_file, (str, os.PathLike)):
            raise ParameterError(f"metric_file must be the name of a file, not {self.metric_file!r}")
        try:
            given = read_given(Path(self.metric_file))
        except ModelError as error:
            raise ParameterError(f"metric_file: {error.message}") from error
        if self.metric is not None:
            raise ParameterError("metric and metric_file both say what the metric is; give one of the two")
        if self.scale not in (COMMON["scale"].default, given.options["scale"]):
            raise ParameterError(f"scale={self.scale!r}: metric_file fixes it, as {given.options['scale']!r}")
        if features < (least := int(given.chain.columns.known[-1]) + 1):
            raise RowsError(f"X has {features} features, the metric of {given.path} is for {least}")
        return given

    def _config(self, classes: NDArray[Any], counts: NDArray[Any], metric: Given | None = None) -> TrainingConfig:
        kinds = {field.name: str(field.type) for field in fields(TrainingConfig)}
        given = {name: typed(name, getattr(self, name), kinds[name]) for name in RUN if name != "folds"}
        given |= _folds(self.folds)
        if given["cell_size"] is not None and given["cell_size"] < SMALLEST_CELL:
            raise ParameterError(f"cell_size must be at least {SMALLEST_CELL}, not {self.cell_size!r}")
        seed = self.random_state
        if not isinstance(seed, (int, np.integer)):
            seed = check_random_state(seed).randint(1 << 31)
        method = method_of(self.method, {name: getattr(self, name) for name in defaults(self.method)})
        weights = self._class_weights(classes, counts)
        config = TrainingConfig(method=method, class_weights=weights, seed=int(seed), **given)
        return metric.fix(config) if metric else config

    def _class_weights(self, classes: NDArray[Any], counts: NDArray[Any]) -> tuple[tuple[float, float], ...]:
        """Pairs (label, factor on C); "balanced" is n / (classes * rows of the class), rows counted by their weights.

        As in scikit-learn, a class that y lacks may have a weight where all classes of y have one.
        """
        weights, labels = self.class_weight, label_values(classes)
        if weights is None:
            return ()
        if isinstance(weights, str):
            if weights != "balanced":
                raise ParameterError(f'class_weight: {weights!r} is neither "balanced" nor a dict of factors')
            return tuple(zip(labels.tolist(), (counts.sum() / (len(counts) * counts)).tolist(), strict=True))
        if not isinstance(weights, Mapping):
            raise ParameterError(f'class_weight must be "balanced", a dict of factors or None, not {weights!r}')
        numbers = dict(zip(classes.tolist(), labels.tolist(), strict=True))
        factors, strange = {}, [label for label in weights if label not in numbers]
        for label, weight in weights.items():
            if not isinstance(weight, Real) or not 0.0 < weight <= LARGEST_COST:  # type: ignore[operator]
                what = f"a positive number up to {LARGEST_COST:g}"
                raise ParameterError(f"class_weight: the weight of {label!r} must be {what}, not {weight!r}")
            if label in numbers:
                factors[numbers[label]] = float(weight)
        if strange and len(factors) < len(classes):
            known = ", ".join(map(repr, classes[:8].tolist())) + (", ..." if len(classes) > 8 else "")
            raise ParameterError(f"class_weight: {strange[0]!r} is no label of y; the labels are {known}")
        return tuple(sorted(factors.items()))

    def _jobs(self) -> int:
        if self.n_jobs is None:
            return 1
        if not isinstance(self.n_jobs, (int, np.integer)) or self.n_jobs == 0:
            raise ParameterError(f"n_jobs must be a whole number other than 0, or None, not {self.n_jobs!r}")
        return max(1, cpu_count() + 1 + int(self.n_jobs)) if self.n_jobs < 0 else int(self.n_jobs)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = True
        return tags


class LocalSVC(LocalClassifier):
    """Classifier of the method `svm`; users see the text of `parameters.about`."""

    method = KernelSVM


def _folds(folds: Any) -> dict[str, Any]:
    """Number of folds, and whether they are blocks of consecutive rows: "blocks", or "blocks:10"."""
    if not isinstance(folds, str):
        return {"folds": typed("folds", folds, "int")}
    match = re.fullmatch(r"blocks(?::([0-9]{1,3}))?", folds)
    if match is None:
        raise ParameterError(f'folds must be a whole number, "blocks" or "blocks:10", not {folds!r}')
    return {"folds": int(match[1] or 5), "blocks": True}


def _groups(groups: ArrayLike, y: NDArray[Any]) -> NDArray[np.int64]:
    """Numbers (n,) of the rows' groups."""
    names = column_or_1d(groups)
    check_consistent_length(names, y)
    if any(name is None or name != name for name in names.tolist()):
        raise ParameterError("groups: some rows have none; give each one, of its own if need be")
    numbers: NDArray[np.int64] = np.unique(names.astype(str), return_inverse=True)[1].reshape(-1).astype(np.int64)
    if not numbers.any():
        raise ParameterError("groups: all rows are of one group; cross-validation needs two, better ten")
    return numbers


def _weights(sample_weight: ArrayLike, X: Any) -> NDArray[np.float64]:
    weight = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
    if not weight.any():
        raise ParameterError("sample_weight: all weights are 0; some must be positive")
    return np.asarray(weight)
