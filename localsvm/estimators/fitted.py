"""Fitted classifiers: their model in memory, the classes that it keeps, and attributes that are read from it."""

from __future__ import annotations

import json
import os
import threading
from typing import Any

import numpy as np
from numpy.typing import NDArray

from localsvm.errors import ModelError
from localsvm.features.metric import Metric
from localsvm.runs.predict import LocalModel
from localsvm.store.container import Image
from localsvm.targets.regression import Regression

Floats = NDArray[np.float64]
LONGEST_NAME = 1 << 20  # bytes of a class: each takes as many as the dtype in a file says
EXACT = 2.0**53  # up to this, float64 holds every whole number


class Opened:
    """A model file in memory, open from the first prediction on.

    A copy in another process opens it again: threads and open files do not go with it.
    """

    def __init__(self, content: bytes) -> None:
        self._content, self._lock = content, threading.Lock()
        self._key: tuple[int, int] | None = None
        self._model: LocalModel | None = None

    def __enter__(self) -> Opened:
        self._lock.acquire()
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        self._lock.release()

    def model(self, jobs: int) -> LocalModel:
        """The model, for one thread at a time: within a `with` statement."""
        if self._model is None or self._key != (os.getpid(), jobs):
            self._model = LocalModel(Image(self._content), jobs, verify=False)
            self._key = os.getpid(), jobs
        return self._model


def label_values(classes: NDArray[Any]) -> Floats:
    """Numbers (classes,) that the model has for its classes: numeric labels as they are, else 0, 1, ..."""
    if classes.dtype.kind in "iuf" and np.all(np.abs(classes) < EXACT):
        return classes.astype(np.float64)
    return np.arange(len(classes), dtype=np.float64)


def kept_classes(classes: NDArray[Any]) -> dict[str, Any]:
    """Record that the model keeps of classes_: their dtype, and their values where labels are only numbers of them."""
    kept: dict[str, Any] = {"dtype": classes.dtype.str}
    if label_values(classes).tolist() != classes.tolist() or classes.dtype.kind not in "iuf":
        values = classes.tolist()
        plain = all(isinstance(v, (str, bool, int)) for v in values) and json.loads(json.dumps(values)) == values
        plain = plain and classes.dtype.itemsize <= LONGEST_NAME
        kept["values"] = values if plain else None
    return kept


def classes_of(labels: Floats, kept: dict[str, Any] | None) -> NDArray[Any]:
    """Classes by their record; the labels themselves for a model of the command line.

    kept : the result of `kept_classes`; None for a model of the command line. ModelError for what is never kept.
    """
    if kept is None:
        return labels
    values, dtype = kept.get("values", labels.tolist()), str(kept.get("dtype"))
    plain = isinstance(values, list) and all(isinstance(v, (str, bool, int, float)) for v in values)
    try:
        kind = np.dtype(dtype)
        plain = plain and kind.kind in "iufbUO" and kind.itemsize <= LONGEST_NAME
        classes = np.asarray(values if plain else [], kind if plain else None)
        plain = plain and classes.shape == labels.shape and len(np.unique(classes)) == len(labels)
    except (TypeError, ValueError, OverflowError):
        plain = False
    if not plain:
        raise ModelError("/@config: the classes are none that a classifier keeps; train again")
    return classes


def best_params(report: tuple[str, dict[str, NDArray[Any]]] | None) -> list[dict[str, float]]:
    """The chosen parameters of each cell; KeyError where the model does not have them."""
    if report is None:
        raise KeyError("best_params_")
    names = json.loads(report[0])
    return [dict(zip(names, values, strict=True)) for values in report[1]["chosen"].tolist()]


def hyperplane(model: LocalModel) -> tuple[Floats, Floats]:
    """Weights (problems, d) and offsets (problems,) of a model that is a linear function of unscaled rows.

    Raises KeyError for a model that is none.
    """
    method, chain, scaling = model.method, model.chain, model.chain.scaling
    if model.file.n_cells != 1 or scaling.mode == "row":
        raise KeyError("coef_: it has several cells, or rows scaled to length 1")
    state = model.file.cell(0)
    if (planes := method.hyperplanes(state, chain.mapped_columns)) is None:
        raise KeyError("coef_: it is not linear")
    weights, offsets = planes
    problem, target = state["model_problem"], model.target
    problems = range(target.answers)
    weights, offsets = (np.stack([v[problem == p].mean(axis=0) for p in problems]) for v in (weights, offsets))
    if isinstance(chain.metric, Metric):  # members, which have several, are several cells
        values = chain.metric.values
        weights = weights * values if values.ndim == 1 else weights @ values.T
    if scaling.factor is not None:
        weights = weights * scaling.factor
    if scaling.offset is not None:
        offsets = offsets - weights @ scaling.offset
    if chain.origin.values is not None:
        offsets = offsets - weights @ chain.origin.values
    if isinstance(target, Regression):
        weights, offsets = weights * target.unit, offsets * target.unit + target.training.centre
    return _spread(weights, chain.columns.kept, chain.width), offsets


def _spread(weights: Floats, columns: NDArray[np.int64] | None, features: int) -> Floats:
    """Weights of the columns that the model knows as weights of all columns."""
    if columns is None:
        return weights
    out = np.zeros((len(weights), features))
    out[:, columns] = weights
    return out
