"""Parameters of the classifiers, their text, and their names in messages.

They are the fields of the method, and those that all classifiers have.
"""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import Field, dataclass, fields
from difflib import get_close_matches
from functools import cache
from numbers import Real
from typing import Any

import numpy as np

from localsvm.errors import DataError, LocalSVMError, OptionError
from localsvm.methods import methods
from localsvm.methods.base import Method
from localsvm.methods.grids import parse_values
from localsvm.methods.option import EVENLY
from localsvm.naming import flag, named
from localsvm.representations.metric import EUCLIDEAN
from localsvm.targets.loss_names import LEAST_SQUARES, LOSSES


@dataclass(frozen=True)
class Kind:
    """Kind of estimators.

    Attributes
    ----------
    of_values : they predict values, and not classes.
    label : what is predicted, where it has no name.
    without : parameters of COMMON that they do not have.
    defaults : of parameters that have another default than elsewhere.
    about : text on attributes that all have not, for the documentation.
    """

    of_values: bool
    label: str
    without: tuple[str, ...] = ()
    defaults: tuple[tuple[str, Any], ...] = ()
    about: str = ""


CLASSES_TEXT = """\
classes_ : (classes,)
    The labels, ascending.
"""
OFFSET_TEXT = """\
offset_ : float
    The threshold, of several cells in the mean: decision_function(X) is score_samples(X) - offset_.
"""
OF_CLASSES = ("multiclass", "class_weight", "false_alarm", "probability", "copies", "decision_function_shape")
CLASSES = Kind(False, "label", about=CLASSES_TEXT)
VALUES = Kind(True, "value", OF_CLASSES, (("loss", LEAST_SQUARES),))
ONE_KIND = Kind(False, "kind", (*OF_CLASSES, "scoring", "coverage"), about=OFFSET_TEXT)


class ParameterError(OptionError, ValueError):
    """A value of a parameter, or a combination of parameters, that cannot be used."""


class RowsError(DataError, ValueError):
    """Rows or labels that cannot be used."""


@dataclass(frozen=True)
class Parameter:
    """A parameter of all classifiers.

    Attributes
    ----------
    default : its value unless given.
    field : its name in messages (`naming.opt`); "" where none is about it.
    kind, help : its type and its text in the documentation.
    """

    default: Any
    field: str
    kind: str
    help: str


COMMON: dict[str, Parameter] = {
    "partition": Parameter(
        None, "partition", "str or None",
        '"none", "chunks", "voronoi" or "kmeans": how to divide the space into cells. None: one cell up to cell_size '
        "rows, and Voronoi cells beyond if the method divides.",
    ),
    "cell_size": Parameter(
        None, "cell_size", "int or None",
        "No cell has more training rows than this. None: for LocalSVC and LocalSVR 10,000, with more rows 1.6e8 over "
        "their number (1e9 beyond 256 columns), but 4,000 at least, and up to twice as many where rows have little "
        "noise; else 2,000.",
    ),
    "coarse_size": Parameter(
        None, "coarse_size", "int or None",
        "About how many rows a coarse cell has. Coarse cells are found on a sample of the rows, and each is divided "
        "into cells by itself. None: up to 131,072 rows (or 64 cells, if that is more) are one coarse cell; more rows "
        "are divided into several of a fixed size.",
    ),
    "effort": Parameter(
        "normal", "effort", "str",
        'The time that training may take, where cell_size and metric are None: "low", Euclidean distances and cells of '
        '2,000 rows; "normal"; "high", larger cells, and repeats.',
    ),
    "scale": Parameter(
        "std", "scale", "str",
        'Scaling, kept in the model: "std" divides by the standard deviation without centring, "zscore" centres as '
        'well, "minmax" maps onto [-1, 1], "row" divides each row by its length, "none" changes nothing.',
    ),
    "metric": Parameter(
        None, "metric", "str or None",
        'Metric of the scaled rows, learned before they are divided: "none" (Euclidean), "diag", a weight for each '
        'feature, "full", a matrix, "rank:R", one onto R dimensions, "auto", the distance, the view of the columns and '
        'the metric that predict rows best that were held out from the learning, or "nca", "itml", "lmnn", published '
        'ones to compare with. None: "auto" for LocalSVC and LocalSVR with a kernel of distances, else "none".',
    ),
    "views": Parameter(
        "auto", "views", "str",
        'What columns of dense rows have beside them: "none", "ranks", the normal scores of their values among those '
        'of training, or "auto", ranks if metric="auto" chooses them.',
    ),
    "roots": Parameter(
        "auto", "roots", "str",
        'Whether square roots of values are learned in their place: "none", or "auto", with loss="least-squares" if '
        'metric="auto" finds that they predict held-out rows better, of at most 10,000 rows, and no value is below 0.',
    ),
    "metric_file": Parameter(
        None, "metric_file", "str or None",
        "A model or partition file whose metric is used as it is, after its scaling: leave metric and scale out then.",
    ),
    "folds": Parameter(
        5, "folds", "int or str",
        'Folds of the cross-validation that chooses from lists. "blocks", "blocks:10": stretches of consecutive rows.',
    ),
    "grid": Parameter(
        "adaptive", "grid", "str", '"adaptive" follows the held-out error to the best point, "full" scores all.'
    ),
    "select": Parameter(
        None, "select", "str or None",
        '"vote": the models of the folds become the model. "refit": one model on all rows. None: "vote" for '
        'LocalSVC with two classes and the hinge loss, else "refit".',
    ),
    "multiclass": Parameter(
        "ova", "multiclass", "str", 'More than two classes: "ova", one against all others, or "ava", all pairs.'
    ),
    "scoring": Parameter(
        None, "scoring", "str or None",
        'What cross-validation scores by: "accuracy", "tpr-tnr", the product of the recalls of all classes, "mse", '
        'squared errors of decision values, or "npl", of two classes the fewest missed rows of the second, with false '
        'alarms below false_alarm; values by "mse", "mae", "pinball", "r2". None: what fits the loss.',
    ),
    "false_alarm": Parameter(
        None, "false_alarm", "float or None",
        'With scoring="npl", the share of rows of the first class that may be given the second, as 0.05; held-out rows '
        "promise it with a probability of 95 %.",
    ),
    "categorical_features": Parameter(
        "from_dtype", "", "str, list or None",
        'Columns whose values are levels: "from_dtype", those of text and categories of a frame; None, none; or a list '
        "of names, of numbers, or of truth values.",
    ),
    "decision_function_shape": Parameter(
        "ovr", "", "str",
        'What decision_function gives for more than two classes: "ovr", a value a class, or, with multiclass="ava" '
        'alone, "ovo", a value a pair.',
    ),
    "class_weight": Parameter(
        None, "class_weights", 'dict, "balanced" or None',
        "Factors on C by label. Balanced: n / (classes * rows of the class), rows counted by their weights.",
    ),
    "probability": Parameter(
        False, "probability", "bool",
        "Calibrate probabilities: predict_proba and predict_log_proba are there, and predict gives the most probable "
        "label, which may differ from what decision_function says.",
    ),
    "coverage": Parameter(
        None, "coverage", "float or None",
        "Share of new rows whose truth predict_interval, or predict_set, is to hold, as 0.9; None for neither.",
    ),
    "copies": Parameter(
        None, "copies", "str or None",
        'What decides for a row that equals training rows in all columns: "none", the SVM, or "auto", the label that '
        "these have, if by cross-validation it is wrong at most a quarter as often as the SVM. None: "
        '"auto" where metric is, else "none".',
    ),
    "repeats": Parameter(
        None, "repeats", "int or None",
        "Partitions by as many seeds, in the best geometries if metric chooses them, whose decision values are "
        'averaged. None: 2 where metric "auto" finds two good geometries, else 1; 6 for effort="high".',
    ),
    "n_jobs": Parameter(
        None, "jobs", "int or None",
        "Processes: None for one, -1 for all cores, -2 for all but one. The result does not change.",
    ),
    "random_state": Parameter(
        0, "seed", "int, RandomState or None", "Seed of all random choices; None for a new one at each fit."
    ),
    "verbose": Parameter(False, "", "bool", "Tell on stderr how the training goes on."),
}  # fmt: skip
WANTED = {"bool": "True or False", "int": "a whole number", "float": "a number", "str": "a text"}
OPTIONAL = " | None"  # ends an annotation
ELSEWHERE = {"C": "cost", "tol": "tolerance", "cv": "folds", "seed": "random_state"}  # names of scikit-learn's
ALIKE = 0.75  # of two names, of which one may be meant by the other: "shrinking" is not "scoring"


def defaults(method: type[Method], kind: Kind) -> dict[str, Any]:
    """The parameters of a method's estimator and their defaults, the method's own first."""
    known = {f.name: None if f.default == () else f.default for f in fields_of(method, kind)}
    known |= {name: parameter.default for name, parameter in COMMON.items() if name not in kind.without}
    return known | dict(kind.defaults)


def method_of(method: type[Method], given: dict[str, Any]) -> Method:
    """The method with these parameters. Where it takes lists, None is the default and a number a list of one.

    Raises
    ------
    ParameterError, TypeError : for a value that makes no sense.
    """
    values = {}
    for item in _fields(method):
        if item.name not in given:
            continue  # its default is the only one that the estimator may have
        value = given[item.name]
        if isinstance(item.default, tuple):
            value = item.default if value is None else _numbers(item.name, value)
        else:
            value = typed(item.name, value, str(item.type))
        values[item.name] = value
    return method(**values)


def parameters_of(
    method: type[Method], kind: Kind, config: dict[str, Any], classes: dict[float, Any]
) -> dict[str, Any]:  # fmt: skip
    """The parameters of a model's config. classes: the classes that its labels stand for."""
    of_method = fields_of(method, kind)
    stored = {item.name: config["method"].get(item.name, item.default) for item in of_method}  # none: see LATER
    given = {name: value or None if isinstance(value, (list, tuple)) else value for name, value in stored.items()}
    weights = {classes[label]: weight for label, weight in config["class_weights"]}
    known = {"metric": EUCLIDEAN} | {name: config[name] for name in COMMON if name in config}
    known |= {"class_weight": weights or None, "random_state": config["seed"]}
    return given | {name: value for name, value in known.items() if name not in kind.without}


def typed(name: str, value: Any, kind: str) -> Any:
    """A value as the bool, int or float that its annotation says; numpy's are taken, too. Others are as they are."""
    number = isinstance(value, Real) and not isinstance(value, (bool, np.bool_))
    if kind == "bool" and (isinstance(value, (bool, np.bool_)) or (number and value in (0, 1))):
        return bool(value)
    if kind.endswith(OPTIONAL):
        return None if value is None else typed(name, value, kind.removesuffix(OPTIONAL))
    if kind == "int" and number and float(value).is_integer():
        return int(value)
    if kind == "float" and number:
        return float(value)
    if kind not in WANTED or (kind == "str" and isinstance(value, str)):
        return value
    raise ParameterError(f"{name} must be {WANTED[kind]}, not {value!r}")


def refuse_unknown(classifier: str, given: Collection[str], known: Collection[str]) -> None:
    """Raise TypeError for the name of a parameter that a classifier does not have."""
    for name in given:
        if name not in known:
            near = get_close_matches(name, known, 1, ALIKE)
            meant = [ELSEWHERE[name]] if ELSEWHERE.get(name) in known else near
            raise TypeError(
                f"{classifier} has no parameter {name!r}" + (f"; did you mean {meant[0]}?" if meant else "")
            )


def _numbers(name: str, value: Any) -> tuple[float, ...]:
    given = value
    if isinstance(value, str):  # a list or a range, as on the command line
        try:
            return parse_values(value, zero=True, even=name in EVENLY)
        except OptionError:
            value = [value]
    try:
        numbers = tuple(float(v) for v in np.atleast_1d(np.asarray(value)))
    except (TypeError, ValueError):
        numbers = ()
    if not numbers:
        raise ParameterError(f"{name} takes a number, a list of numbers, a range as text, or None, not {given!r}")
    return numbers


def about(method: type[Method], kind: Kind) -> str:
    """The docstring of a method's estimator, with its own parameters."""
    first = str(sys.modules[method.__module__].__doc__).partition("\n\n")[0]
    lines = [" ".join(first.split()), "", f"What `lsvm-train -m {method.name}` trains.", "", "Parameters", "----------"]
    known = defaults(method, kind)
    for item in fields_of(method, kind):
        shown = f"{item.name} : {_kind(item, known[item.name], kind)}"
        lines += [shown, *_indented(in_python(item.metadata["help"], method))]
    for name, parameter in COMMON.items():
        if name in known:
            lines += [f"{name} : {parameter.kind}, default={known[name]!r}", *_indented(parameter.help)]
    return "\n".join(lines) + "\n\n" + ATTRIBUTES.format(more=kind.about)


ATTRIBUTES = """\
Attributes
----------
{more}n_features_in_ : int
best_params_ : list of dict
    What cross-validation chose in each cell; where there was no choice, what was given.
n_support_ : (classes,) int64
    Support vectors of each class. Only where the method has them.
coef_, intercept_ : (problems, n_features_in_) and (problems,) float64
    The decision function as a linear function of X; of fold models that vote, their mean. Only where it is linear: a
    linear kernel or method, one cell, and no scaling of rows to length 1.
summary_ : localsvm.runs.summary.Summary
    What the training did: sizes, cross-validated error, seconds. Not in a loaded model.
model_ : bytes
    The model file.
"""


def _kind(item: Field[Any], default: Any, kind: Kind) -> str:
    choices = item.metadata["choices"]
    if choices and item.name == "loss":
        choices = [loss for loss in choices if (loss in LOSSES) == kind.of_values]
    if choices:
        return "{" + ", ".join(f'"{choice}"' for choice in choices) + f"}}, default={default!r}"
    if isinstance(item.default, tuple):
        shown = list(item.default) if item.default else None
        return f"float, list of float or None, default={shown}" if shown is None else f"float or list, default={shown}"
    return f"{type(item.default).__name__}, default={item.default!r}"


def _indented(text: str, width: int = 116) -> Iterator[str]:
    line = "   "
    for word in text.split():
        if len(line) + 1 + len(word) > width:
            yield line
            line = "   "
        line += f" {word}"
    yield line


@contextmanager
def named_in_python(method: type[Method]) -> Iterator[None]:
    """Raise the errors of a run as ValueErrors where a parameter or the rows are wrong; they name parameters."""
    try:
        yield
    except (ParameterError, RowsError):
        raise
    except LocalSVMError as error:
        text = in_python(error.message, method)
        kinds = ((OptionError, ParameterError), (DataError, RowsError))
        raise next((named for kind, named in kinds if isinstance(error, kind)), type(error))(text) from error


def in_python(text: str, method: type[Method]) -> str:
    """Message that names parameters. An option that is no parameter keeps its name of the command line."""
    names = _names(method)

    def name(field: str, value: Any) -> str:
        if field not in names:
            return flag(field, value)
        kind = COMMON[names[field]].kind if names[field] in COMMON else ""
        shown = bool(value) if kind == "bool" else value
        return names[field] if value is None else f"{names[field]}={shown!r}"

    return named(text, name)


@cache
def _names(method: type[Method]) -> dict[str, str]:
    """Names of the parameters by their fields."""
    every = [*methods().values(), method]  # a text may speak of another method
    by_field = {item.name: item.name for one in every for item in _fields(one)}
    return by_field | {parameter.field: name for name, parameter in COMMON.items() if parameter.field}


def fields_of(method: type[Method], kind: Kind) -> tuple[Field[Any], ...]:
    """The options of a method that an estimator has: of classes those without levels, and a loss if there are two."""
    every = _fields(method)
    if kind.of_values:
        return every
    several = len(set(losses_of(method)) - set(LOSSES)) > 1
    left_out = {"quantile", "epsilon", "trend"} | (set() if several else {"loss"})
    return tuple(item for item in every if item.name not in left_out)


def losses_of(method: type[Method]) -> tuple[str, ...]:
    """Losses that a method can be given; none where it has one of its own."""
    return next((item.metadata["choices"] for item in _fields(method) if item.name == "loss"), ())


def _fields(method: type[Method]) -> tuple[Field[Any], ...]:
    return fields(method)  # type: ignore[arg-type]
