"""A metric that a model or a partition file holds, given to another run."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from localsvm.engines.base import Head
from localsvm.errors import DataError, ModelError, OptionError
from localsvm.features.chain import Chain
from localsvm.features.columns import MOST_FEATURES, KeptColumns
from localsvm.features.joint import JOINT
from localsvm.features.learned import about_metric, metric_arrays
from localsvm.methods import method_called
from localsvm.naming import opt
from localsvm.representations.metric import EUCLIDEAN
from localsvm.runs.config import TrainingConfig
from localsvm.runs.preparation.measured import Measured
from localsvm.runs.preparation.stored import check_kept, config_of, stored_chain
from localsvm.store.container import MODEL, checked, size_of
from localsvm.store.metric_file import MetricFile, load_metric
from localsvm.store.pieces import Unsound


@dataclass(frozen=True)
class Given:
    """A metric, and what comes before it.

    Attributes
    ----------
    path : of the file.
    options : of the run that learned it, which it fixes: scale, metric, views, zero_based.
    chain : up to the metric.
    measured : what the file says of the metric.
    digest : SHA-256 of all of this, as hexadecimal digits.
    """

    path: str
    options: dict[str, Any]
    chain: Chain
    measured: Measured
    digest: str

    def fix(self, config: TrainingConfig) -> TrainingConfig:
        """The options of a run that uses this metric; OptionError for a matrix, where the distance takes weights."""
        matrix = self.chain.metric is not None and self.chain.metric.mixes
        if matrix and config.method.distance == "manhattan":
            what = f"the metric of {self.path} mixes features, and the Manhattan distance has weights alone"
            raise OptionError(f"{opt.metric_file}: {what}; give one of {opt.metric('diag')}")
        method = config.method.measuring(self.measured.distance or config.method.distance)
        return replace(config, method=method, repeats=config.repeats or 1, **self.options)

    def chain_of(self, head: Head) -> Chain:
        """The chain, for rows that were read as the head says, in the columns that it knows.

        DataError where no row has a value in these. OptionError where the metric is not for sparse rows.
        """
        if head.absent == self.chain.features:
            where = f"{head.name}: " if head.name else ""
            raise DataError(f"{where}no row has a feature that the metric of {self.path} knows; give it other data")
        chain = replace(self.chain, columns=head.columns).read_from(head.shift)
        if chain.metric is not None and chain.metric.mixes and not chain.dense:
            what = f"the metric of {self.path} mixes features and needs dense rows, and these are sparse"
            raise OptionError(f"{opt.metric_file}: {what}; give one of {opt.metric('diag')}")
        if chain.ranks is not None and not chain.dense:
            what = f"the metric of {self.path} has ranks and needs dense rows, and these are sparse"
            raise OptionError(f"{opt.metric_file}: {what}; give one of {opt.views('none')}")
        return chain


def _why_none(file: MetricFile) -> str:
    """Reason why a file has no metric, and what has one, for the end of a message."""
    name = dict(file.config.get("method", {})).get("name")
    method = method_called(name) if isinstance(name, str) else None
    if method is not None and method.learns_metric:
        return (
            f" but that of {name}, which belongs to its kernel; lsvm-partition --metric full makes one for other runs"
        )
    why = "" if about_metric(file.config) is None else f", as {opt.metric('auto')} chose none"
    return f"{why}; lsvm-partition --metric full makes one that has"


def read_given(path: str | Path) -> Given:
    """The metric of a model or partition file.

    Raises
    ------
    ModelError : the file cannot be read, is not as localsvm writes it, or has no metric.
    """
    file = load_metric(path)
    with checked(path):
        if file.metric is None:
            raise ModelError(f"{path}: no metric in this file{_why_none(file)}")
        if file.metric[0] == JOINT:
            raise ModelError(f"{path}: several metrics, of members; train with {opt.repeats(1)} for a file of one")
        features, options = _options_of(file)
        columns = KeptColumns.from_state(file.columns, features, file.config.get("width"), dense=True)
        chain = stored_chain(columns, file)
    measured = Measured(chain.metric, chain.ranks, about_metric(file.config), from_file=True)
    return Given(str(path), options, chain, measured, _digest(file))


def _options_of(file: MetricFile) -> tuple[int, dict[str, Any]]:
    """The number of features, and the options that the file fixes."""
    if file.kind == MODEL:
        config, features, _ = config_of(file.config, file.columns, size_of(file.path))
        zero_based = config.zero_based
    else:
        check_kept(file.config)
        sizes = {len(array) for array in metric_arrays(file.metric or ("", {})).values() if array.ndim}
        ranked = 0 if file.ranks is None else len(np.atleast_1d(file.ranks.get("columns", [])))
        features = sizes.pop() - ranked if len(sizes) == 1 else 0
        if not 1 <= features <= MOST_FEATURES:
            raise Unsound("/metric does not say for how many features it is")
        zero_based = bool(file.config.get("zero_based", False))
    return features, {
        "scale": file.scaling[0],
        "metric": str(file.config.get("metric", EUCLIDEAN)),
        "views": str(file.config.get("views", "none")),
        "zero_based": zero_based,
    }


def _digest(file: MetricFile) -> str:
    description = [about_metric(file.config), file.config["metric"]]
    total = hashlib.sha256(json.dumps(description, sort_keys=True).encode())
    assert file.metric is not None, "there is one"
    columns = {} if file.columns is None else {"": file.columns}
    states = [file.scaling, (file.metric[0], metric_arrays(file.metric)), ("columns", columns)]
    if file.ranks is not None:
        states.append(("ranks", file.ranks))
    for kind, arrays in states:
        for name in sorted(arrays):
            array = np.ascontiguousarray(arrays[name])
            total.update(f"{kind} {name} {array.dtype.str} {array.shape}\n".encode())
            total.update(array.data)
    return total.hexdigest()
