"""Whether values are learned by their square roots: what predicts held-out rows better says it.

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
GAIN = 0.03  # by which the share of the variance that is left has to be smaller: roots of like values are like them
NEAR = 1.0  # standard errors, by which the squares may be worse on these rows

Decoded = Callable[[Floats], Floats]


def roots_pay(
    rows: tuple[MetricRows, MetricRows], decoded: tuple[Decoded, Decoded], y: Floats, folds: NDArray[np.int64],
    seed: int, check: Callable[[], None] = lambda: None,
) -> bool:  # fmt: skip
    """Whether square roots are better to learn than the values y (m,), of which few are 0.

    Kernel ridge regression in cells has to leave a clearly smaller share of the variance of roots than of values. The
    squares of what it predicts, raised by what they fall short in the mean, must not be further from the values by a
    standard error than what it predicts of these; a residual counts as LARGEST_RESIDUAL deviations at most.

    Parameters
    ----------
    rows : the same m rows with what they should learn: standardised values, and standardised roots.
    decoded : values of what is predicted, of both.
    folds : (m,) of the rows.
    """
    if np.mean(y == 0.0) > ZEROS:
        return False
    far = LARGEST_RESIDUAL * float(np.std(y))
    (share, left, plain), (_, short, roots) = (
        _held_out(data, values_of, y, folds, seed, check) for data, values_of in zip(rows, decoded, strict=True)
    )
    away = [np.square(np.minimum(np.abs(each), far)) for each in (short - short @ share, left)]
    return bool(roots @ share < (1.0 - GAIN) * (plain @ share) and paired((away[0] - away[1])[None], share)[0] < NEAR)


def _held_out(
    data: MetricRows, values_of: Decoded, y: Floats, folds: NDArray[np.int64], seed: int, check: Callable[[], None]
) -> tuple[Floats, Floats, Floats]:
    """Of all rows, (m,): shares of the weight, what is left of values, and squares of what is left of problems."""
    every, step = np.arange(len(folds), dtype=np.int64), None
    course = MetricLearner(data, every).beginning(LearningPlan.rng(seed, -1, 15))
    values, squares = np.zeros(len(y)), np.zeros(len(y))
    for fold in range(FOLDS):
        result, step = judged(data, folds, fold, course, data.distance.map_of(course.values), seed, check, step)
        values[folds == fold], squares[folds == fold] = result.values[:, 0], result.losses[1]
    return data.weight / data.weight.sum(), y - values_of(values), squares
