"""Whether values are learned by their square roots: where their noise grows with them, held-out rows say.

Noise of prices, counts and the like grows with their size. Squares of residuals then count little but the largest
values; square roots have about the same noise everywhere (Bartlett: The square root transformation in analysis of
variance. 1936; Box and Cox: An analysis of transformations. 1964).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from localsvm.representations.metric_judging import FOLDS, judged
from localsvm.representations.metric_learning import Floats, LearningPlan, MetricLearner
from localsvm.representations.metric_losses import LARGEST_RESIDUAL
from localsvm.representations.metric_rows import MetricRows
from localsvm.representations.metric_tests import paired

ZEROS = 0.05  # share of values that are 0, at most: roots of small noise are large
GROWS = 0.25  # rank correlation of what is predicted and the size of what is left, at least; ...
CLEAR = 2.0  # ... and in standard errors
NEAR = 1.0  # standard errors, by which the squares may be worse on these rows

Decoded = Callable[[Floats], Floats]


def roots_pay(
    rows: tuple[MetricRows, MetricRows], decoded: tuple[Decoded, Decoded], y: Floats, folds: NDArray[np.int64],
    seed: int, check: Callable[[], None] = lambda: None,
) -> bool:  # fmt: skip
    """Whether square roots are better to learn than the values y (m,), of which few are 0.

    Kernel ridge regression in cells predicts values and roots. The size of what is left of values has to grow with
    what is predicted. And the squares of predicted roots, raised by what they fall short in the mean, must not be
    further from the values by a standard error; a residual counts as LARGEST_RESIDUAL deviations at most.

    Parameters
    ----------
    rows : the same m rows with what they should learn: standardised values, and standardised roots.
    decoded : values of what is predicted, of both.
    folds : (m,) of the rows.
    """
    if len(np.unique(folds)) < FOLDS or np.mean(y == 0.0) > ZEROS:
        return False
    left, short = (y - of(_held_out(data, folds, seed, check)) for data, of in zip(rows, decoded, strict=True))
    grows = np.corrcoef(_ranks(y - left), _ranks(np.abs(left)))[0, 1]
    share, far = rows[0].weight / rows[0].weight.sum(), LARGEST_RESIDUAL * float(np.std(y))
    away, away_squares = (np.square(np.minimum(np.abs(each), far)) for each in (left, short - short @ share))
    return bool(grows >= max(GROWS, CLEAR / len(y) ** 0.5) and paired((away_squares - away)[None], share)[0] < NEAR)


def _held_out(data: MetricRows, folds: NDArray[np.int64], seed: int, check: Callable[[], None]) -> Floats:
    """What is predicted (m,) of each row by the other folds."""
    values, step = np.zeros(len(folds)), None
    course = MetricLearner(data, np.arange(len(folds), dtype=np.int64)).beginning(LearningPlan.rng(seed, -1, 15))
    for fold in range(FOLDS):
        result, step = judged(data, folds, fold, course, data.distance.map_of(course.values), seed, check, step)
        values[folds == fold] = result.values[:, 0]
    return values


def _ranks(values: Floats) -> NDArray[np.int64]:
    """The places (m,) of values in ascending order."""
    return np.argsort(np.argsort(values, kind="stable"))
