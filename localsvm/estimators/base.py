"""Base of the estimators: scikit-learn's contract around a training run and its model."""

from __future__ import annotations

import inspect
import os
import re
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, fields, replace
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Self, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import assert_all_finite, check_random_state
from sklearn.utils.validation import (
    _check_sample_weight,
    check_consistent_length,
    check_is_fitted,
    column_or_1d,
    validate_data,
)

from localsvm.data.blocks.dataset import Dataset, Examples, as_examples, check_float32
from localsvm.data.blocks.dealing import renumbered
from localsvm.data.readers.origin import from_array
from localsvm.errors import ModelError
from localsvm.estimators.fitted import Opened, best_params, hyperplane
from localsvm.estimators.frames import FrameColumn, encoded, fitted_rows, frame_of, is_frame
from localsvm.estimators.parameters import (
    COMMON,
    Kind,
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
    "partition", "cell_size", "coarse_size", "effort", "scale", "metric", "views", "roots", "folds", "grid", "select",
    "multiclass", "scoring", "false_alarm", "probability", "coverage", "copies", "repeats",
)  # fmt: skip


@dataclass(frozen=True)
class Answers:
    """What a run is to learn to answer.

    Attributes
    ----------
    labels : (n,) float64 of the rows.
    codes : (n,) numbers of their classes, None for values.
    classes : what the labels stand for; see `Dataset.classes`.
    weights : pairs of a label and a factor on C.
    """

    labels: NDArray[np.float64]
    codes: NDArray[np.intp] | None = None
    classes: dict[str, Any] | None = None
    weights: tuple[tuple[float, float], ...] = field(default=())


def has_coverage(self: LocalEstimator) -> bool:
    """True for an estimator whose parameter asks for a coverage; AttributeError for another one."""
    if self.coverage is None:
        raise AttributeError("intervals and sets need coverage=0.9, or another share, before fit")
    return True


class LocalEstimator(BaseEstimator):  # type: ignore[misc]
    """Base of the estimators of all methods.

    Each has the parameters of its method, then those of `parameters.COMMON`. Where the default of a method's parameter
    is None, it stands for the default grid; a number is used as it is; from a list, cross-validation chooses.
    """

    method: ClassVar[type[Method]]
    kind: ClassVar[Kind]

    def __init_subclass__(cls, **options: Any) -> None:
        """Make __init__ from the fields of the method: scikit-learn reads the parameters from its signature."""
        super().__init_subclass__(**options)
        if "method" not in cls.__dict__ or "__init__" in cls.__dict__:
            return  # a subclass of an estimator has what it says, and inherits the rest
        known = defaults(cls.method, cls.kind)
        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
        parameters = [inspect.Parameter(name, kind, default=value) for name, value in known.items()]

        def __init__(self: LocalEstimator, *args: Any, **given: Any) -> None:
            if "C" in given and "cost" in known and "cost" not in given:  # as scikit-learn calls it
                given["cost"] = given.pop("C")
            refuse_unknown(type(self).__name__, given, known)
            bound = inspect.Signature(parameters).bind(*args, **given)
            for name, value in (known | bound.arguments).items():
                setattr(self, name, value)

        first = inspect.Parameter("self", kind)
        __init__.__signature__ = inspect.Signature([first, *parameters])  # type: ignore[attr-defined]
        cls.__init__ = __init__  # type: ignore[method-assign,assignment]
        cls.__doc__ = about(cls.method, cls.kind)

    def fit(
        self, X: Any, y: Any, sample_weight: ArrayLike | None = None, groups: ArrayLike | None = None
    ) -> Self:  # fmt: skip
        """Train on rows X (n, d) and their labels or values y (n,).

        X : an array, dense or sparse, or a frame of pandas, polars or pyarrow.

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
        """Keep the model that there was, and what is known of its rows, whatever fails in the block."""
        before = dict(vars(self))
        try:
            yield
        except BaseException:
            self.__dict__.clear()
            self.__dict__.update(before)
            raise

    def _fit(self, X: Any, y: Any, sample_weight: ArrayLike | None, groups: ArrayLike | None) -> Warned:
        """Train as `fit` does, but leave the warnings to the observer, which is returned."""
        label = str(getattr(y, "name", None) or self.kind.label)
        X, y, columns = self._validated(X, y)
        self._check_answers(y)
        weight = None if sample_weight is None else _weights(sample_weight, y)
        group = None if groups is None else _groups(groups, y)
        if weight is not None and not weight.all():
            kept = weight > 0
            X = None if X is None else X[kept]
            columns = columns and {name: replace(each, values=each.values[kept]) for name, each in columns.items()}
            y, weight, group = y[kept], weight[kept], None if group is None else renumbered(group[kept])
        answers = self._answers_of(y, weight)
        with named_in_python(self.method), tempfile.TemporaryDirectory() as folder:
            given, path = self._given(self.n_features_in_, columns), Path(folder) / "model.h5"
            config = self._config(answers, given)
            table = None
            if columns is not None:
                fitted = fitted_rows(columns, self.categorical_features, answers, config.seed, group, label)
                X, table = fitted.X, fitted.table
            rows, shift = from_array(X, config.shifts)
            data = Dataset(
                as_examples(rows), answers.labels, answers.classes, shift=shift, weight=weight, group=group, table=table
            )
            observer = ProgressLines(partial(in_python, method=self.method)) if self.verbose else Warned()
            summary = train(data, config, path, given=given, resources=Resources(jobs=self._jobs(), observer=observer))
            assert summary is not None, "there was no model to resume"
            content = path.read_bytes()
        self._learned(y)
        self.summary_ = summary
        self._take(content)
        return observer

    def _check_answers(self, y: NDArray[Any]) -> None:
        """Raise ValueError for labels of another kind."""
        raise NotImplementedError

    def _answers_of(self, y: NDArray[Any], weight: NDArray[np.float64] | None) -> Answers:
        """What is to be learned of y (n,), whose rows have these weights."""
        raise NotImplementedError

    def _learned(self, y: NDArray[Any]) -> None:
        """Take note of what was learned."""

    def _validated(self, X: Any, y: Any) -> tuple[Any, NDArray[Any], dict[str, FrameColumn] | None]:
        """Rows X and labels of numbers alone; or, for a frame and for dense rows with missing values, its columns."""
        levels = self.categorical_features is not None and not isinstance(self.categorical_features, str)
        if levels and hasattr(X, "indptr"):
            raise ParameterError("categorical_features: X is sparse, and its columns are numbers; give X.toarray()")
        if is_frame(X) or levels:
            columns = frame_of(X)
            if not columns:
                raise RowsError("X has 0 columns; give one or more")
            y = column_or_1d(y, warn=True)
            if self.kind.of_values and y.dtype.kind == "O":
                with suppress(TypeError, ValueError):
                    y = y.astype(np.float64)
            assert_all_finite(y, input_name="y")
            check_consistent_length(next(iter(columns.values())).values, y)
            if len(y) < 2:
                raise RowsError(f"X has {len(y)} rows; training needs two or more")
            self.n_features_in_ = len(columns)
            if is_frame(X):
                self.feature_names_in_ = np.asarray(list(columns), object)
            return None, y, columns
        X, y = validate_data(
            self, X, y, accept_sparse="csr", dtype=FLOATS, ensure_min_samples=2, ensure_all_finite="allow-nan",
            y_numeric=self.kind.of_values,
        )  # fmt: skip
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

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model file, for `localsvm.load` and `lsvm-predict`. What is at `path` is overwritten.

        Raises
        ------
        RunError : the file cannot be written.
        """
        check_is_fitted(self)
        with replacing(path, force=True) as temporary:
            temporary.write_bytes(self.model_)

    @property
    def best_params_(self) -> list[dict[str, float]]:
        """Parameters that cross-validation chose in each cell; where there was no choice, those that were given."""
        return self._attribute(lambda model: best_params(model.file.report))

    @property
    def coef_(self) -> NDArray[np.float64]:
        """Weights (problems, n_features_in_): X @ coef_.T + intercept_ is the decision function, or the values."""
        return self._attribute(lambda model: self._signed(hyperplane(model)[0]))

    @property
    def intercept_(self) -> NDArray[np.float64]:
        """Offsets (problems,) of the decision function, or of the values."""
        return self._attribute(lambda model: self._signed(hyperplane(model)[1]))

    def _signed(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Weights or offsets of problems, with their usual signs."""
        return values

    def _answers(self, X: ArrayLike, ask: Callable[[LocalModel, Examples], NDArray[Any]]) -> NDArray[Any]:
        check_is_fitted(self)
        table = self._use(lambda model: model.table)
        if table is None:
            X = validate_data(self, X, accept_sparse="csr", dtype=FLOATS, reset=False, ensure_all_finite="allow-nan")
            if np.isnan(getattr(X, "data", X) if hasattr(X, "indptr") else X).any():
                what = "X contains NaN, and the rows that the model was fitted on did not"
                raise RowsError(f"{what}; fill it, or fit on rows that have some")
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

    def _config(self, answers: Answers, metric: Given | None = None) -> TrainingConfig:
        kinds, known = (
            {field.name: str(field.type) for field in fields(TrainingConfig)},
            defaults(self.method, self.kind),
        )
        given = {
            name: typed(name, getattr(self, name), kinds[name]) for name in RUN if name in known and name != "folds"
        }
        given |= _folds(self.folds)
        if given["cell_size"] is not None and given["cell_size"] < SMALLEST_CELL:
            raise ParameterError(f"cell_size must be at least {SMALLEST_CELL}, not {self.cell_size!r}")
        seed = self.random_state
        if not isinstance(seed, (int, np.integer)):
            seed = check_random_state(seed).randint(1 << 31)
        method = method_of(self.method, {name: getattr(self, name) for name in known})
        config = TrainingConfig(method=method, class_weights=answers.weights, seed=int(seed), **given)
        return metric.fix(config) if metric else config

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


def _folds(folds: Any) -> dict[str, Any]:
    """Number of folds, and whether they are blocks of consecutive rows: "blocks", or "blocks:10"."""
    if not isinstance(folds, str):
        return {"folds": typed("folds", folds, "int")}
    match = re.fullmatch(r"blocks(?::([0-9]{1,3}))?", folds)
    if match is None:
        raise ParameterError(f'folds must be a whole number, "blocks" or "blocks:10", not {folds!r}')
    return {"folds": int(match[1] or 5), "blocks": True}


def _groups(groups: ArrayLike, y: NDArray[Any]) -> NDArray[np.int64]:
    """Numbers (n,) of the rows' groups, in the order in which they come, as the command line has them."""
    names = column_or_1d(groups)
    check_consistent_length(names, y)
    if any(name is None or name != name for name in names.tolist()):
        raise ParameterError("groups: some rows have none; give each one, of its own if need be")
    numbers = renumbered(names.astype(str))
    if not numbers.any():
        raise ParameterError("groups: all rows are of one group; cross-validation needs two, better ten")
    return numbers


def _weights(sample_weight: ArrayLike, X: Any) -> NDArray[np.float64]:
    weight = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
    if not weight.any():
        raise ParameterError("sample_weight: all weights are 0; some must be positive")
    return np.asarray(weight)
