"""Rows with what a metric is learned by: their labels, or values or the square roots of these, and their weights."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray

from localsvm.data.blocks.dataset import Dataset
from localsvm.representations.metric_judging import FOLDS as CHOICE_FOLDS
from localsvm.representations.metric_rows import MetricRows
from localsvm.runs.config import TrainingConfig
from localsvm.targets.base import Observed, Target, ValueRange
from localsvm.targets.classification import Classification, class_factors
from localsvm.targets.loss_names import QUANTILE

FAR = 10.0  # usual deviations, as which values far from nearly all others count that losses do not count
ROOT_ROWS = 10_000  # rows, up to which roots of values may be learned: the noise of more is averaged out as it is


def by_blocks(config: TrainingConfig, data: Dataset) -> bool:
    """True where the first rows learn, and the later ones say what the error is."""
    return config.blocks and data.group is None


def stretches(n: int, count: int = CHOICE_FOLDS) -> NDArray[np.int64]:
    """Stretches (n,) of rows in an order: as many as folds, or so many."""
    return np.arange(n) * count // max(n, 1)


@dataclass(frozen=True)
class Roots:
    """Rows that learn the square roots of their values.

    Attributes
    ----------
    values : where the values lie, and their roots.
    data, y : the rows, and (n,) their values.
    """

    values: ValueRange
    data: MetricRows
    y: NDArray[np.float64]

    @classmethod
    def of(cls, data: Dataset, observed: Observed, config: TrainingConfig, learning: int) -> Self | None:
        """The roots of values; None where some values have none, rows are many, or the options leave them out."""
        known = observed.values
        if known is None or known.low < 0.0 or len(data.y) > ROOT_ROWS or not config.tries_roots:
            return None
        roots, share = np.sqrt(np.maximum(data.y, 0.0)), np.ones(len(data.y)) if data.weight is None else data.weight
        mean = float(roots @ share / share.sum())
        deviation = float(np.sqrt(np.square(roots - mean) @ share / share.sum()))
        if not deviation > 0.0:
            return None
        values = replace(known, root_mean=mean, root_deviation=deviation)
        return cls(values, labelled_rows(data, replace(observed, values=values), config, learning)[0], data.y)


def labelled_rows(
    data: Dataset, observed: Observed, config: TrainingConfig, learning: int
) -> tuple[MetricRows, NDArray[np.float64]]:
    """The rows with what they should learn, their weights; and what they are dealt out by.

    Classes have a problem each, values one: standardised. learning : so many of the rows, the first ones, are learned
    from where folds are stretches.
    """
    weight, of_values = np.ones(len(data.y)), observed.values is not None
    target: Target
    if of_values:
        target = config.target(observed)
    else:
        target = Classification(observed.labels, "ova")
        cost = class_factors(config.class_weights, observed.labels)
        weight = (cost / cost.max())[target.codes(data.y)]
    if data.weight is not None:
        weight *= data.weight / data.weight.max()
    Y = target.encode(data.y).astype(np.float32)
    losses = config.method.value_losses
    levels = tuple(loss.level for loss in losses) if all(loss.name == QUANTILE for loss in losses) else ()
    if observed.values is not None:
        Y = Y[:, :1] if observed.values.usual_mean is None else np.clip(Y[:, :1], -FAR, FAR)
    group = data.group
    if by_blocks(config, data):
        group = np.full(len(Y), CHOICE_FOLDS - 1, np.int64)
        group[:learning] = stretches(learning)
    rows = MetricRows(data.X, Y, weight, _ties(data), values=of_values, levels=levels, group=group)
    return rows, target.strata(data.y)


def _ties(data: Dataset) -> NDArray[np.int64] | None:
    """The column of its table that each feature is of; None where no column has several features."""
    ties = np.asarray((data.table or {}).get("ties", []), np.int64)
    if data.columns is not None and len(ties):
        ties = ties[data.columns]
    numbers = np.unique(ties, return_inverse=True)[1].reshape(-1).astype(np.int64)
    return numbers if 0 < len(np.unique(numbers)) < len(numbers) else None
