"""A metric that a model or a partition file holds, given to another run."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from localsvm.data.columns import keep_given, occurring
from localsvm.data.dataset import Dataset, is_dense
from localsvm.data.shift import Shift
from localsvm.errors import DataError, ModelError, OptionError
from localsvm.features.scaling import Scaling
from localsvm.methods.svml import SVML
from localsvm.representations.metric import EUCLIDEAN, MATRIX
from localsvm.runs.config import TrainingConfig
from localsvm.runs.measuring import Measured
from localsvm.runs.stored import FRESH, MOST_FEATURES, check_columns, check_kept, config_of
from localsvm.store.container import MODEL, checked, size_of
from localsvm.store.metric_file import MetricFile, load_metric
from localsvm.store.pieces import Unsound


@dataclass(frozen=True)
class Given:
    """A metric, and what comes before it.

    Attributes
    ----------
    path : of the file.
    options : of the run that learned it, which it fixes: scale, metric, zero_based.
    columns : (features,) int64, ascending: the columns of the data that it knows.
    scaling, measured : as the file has them.
    digest : SHA-256 of all of this, as hexadecimal digits.
    """

    path: str
    options: dict[str, Any]
    columns: NDArray[np.int64]
    scaling: Scaling
    measured: Measured
    digest: str

    @property
    def least_columns(self) -> int:
        """That rows need to have all columns that the metric knows."""
        return int(self.columns[-1]) + 1

    def fix(self, config: TrainingConfig) -> TrainingConfig:
        """The options of a run that uses this metric."""
        return replace(config, **self.options)

    def narrow(self, data: Dataset, announce: Callable[[int], None] = lambda size: None) -> int:
        """Leave the columns that the metric knows; see `keep_given`. How many of them no row has a value in.

        DataError where that is all.
        """
        keep_given(data, self.columns, announce)
        found = len(occurring(data.X))
        if not found:
            where = f"{data.name}: " if data.name else ""
            raise DataError(f"{where}no row has a feature that the metric of {self.path} knows; give it other data")
        return len(self.columns) - found

    def scaling_of(self, data: Dataset) -> Scaling:
        """The scaling, for rows that are read as these narrowed ones were."""
        return moved(self.scaling, data.shift, len(self.columns))

    def metric_of(self, data: Dataset, fingerprint: str) -> Measured:
        """The metric, for scaled rows. fingerprint: of the data. OptionError where it is not for sparse rows."""
        metric = self.measured.metric
        if metric is not None and metric.kind == MATRIX and not is_dense(data.X):
            what = f"the metric of {self.path} mixes features and needs dense rows, and these are sparse"
            raise OptionError(f"--metric-file: {what}; give one of --metric diag")
        with checked(self.path):
            return self.measured.used_on(fingerprint, len(data.y))


def moved(scaling: Scaling, shift: Shift | None, features: int) -> Scaling:
    """The same scaling for rows from another origin. Where it does not centre, scaled rows are shifted all alike."""
    origin = None if shift is None else shift.whole(features)
    offset = scaling.offset
    if offset is not None:
        before, after = (np.zeros(features) if each is None else each for each in (scaling.origin, origin))
        offset = (offset + before - after).astype(np.float32)
    return replace(scaling, offset=offset, origin=origin)


def _why_none(file: MetricFile, measured: Measured) -> str:
    """And what has one."""
    if dict(file.config.get("method", {})).get("name") == SVML.name:
        return " but that of svml, which belongs to its kernel; lsvm-partition --metric full makes one for other runs"
    why = "" if measured.about is None else ", as --metric auto kept the Euclidean one"
    return f"{why}; lsvm-partition --metric full makes one that has"


def read_given(path: str | Path) -> Given:
    """The metric of a model or partition file.

    Raises
    ------
    ModelError : the file cannot be read, is not as localsvm writes it, or has no metric.
    """
    file = load_metric(path)
    with checked(path):
        features, options = _options_of(file) if file.metric else (0, {})
        measured = Measured.from_state(file.metric, file.config, features)
        if measured.metric is None:
            raise ModelError(f"{path}: no metric in this file{_why_none(file, measured)}")
        scaling = Scaling.from_state(*file.scaling, features)
    columns = np.arange(features) if file.columns is None else file.columns
    return Given(str(path), options, columns, scaling, measured, _digest(file))


def _options_of(file: MetricFile) -> tuple[int, dict[str, Any]]:
    """The number of features, and the options that the file fixes."""
    if file.kind == MODEL:
        config, features, _ = config_of(file.config, file.columns, size_of(file.path))
        zero_based = config.zero_based
    else:
        check_kept(file.config)
        sizes = {len(array) for name, array in (file.metric or ("", {}))[1].items() if name != FRESH and array.ndim}
        features = sizes.pop() if len(sizes) == 1 else 0
        if not 1 <= features <= MOST_FEATURES:
            raise Unsound("/metric does not say for how many features it is")
        if file.columns is not None:
            check_columns(file.columns, features)
        zero_based = bool(file.config.get("zero_based", False))
    return features, {
        "scale": file.scaling[0],
        "metric": str(file.config.get("metric", EUCLIDEAN)),
        "zero_based": zero_based,
    }


def _digest(file: MetricFile) -> str:
    total = hashlib.sha256(json.dumps([file.config["learned"], file.config["metric"]], sort_keys=True).encode())
    states = file.scaling, file.metric or ("", {}), ("columns", {} if file.columns is None else {"": file.columns})
    for kind, arrays in states:
        for name in sorted(arrays):
            array = np.ascontiguousarray(arrays[name])
            total.update(f"{kind} {name} {array.dtype.str} {array.shape}\n".encode())
            total.update(array.data)
    return total.hexdigest()
