"""Weights of the members of a model, by which their values are averaged: chosen by held-out values, or equal.

Members are selected greedily with replacement: of all members the one is added whose value lowers the loss of the mean
the most (Caruana, Niculescu-Mizil, Crew and Ksikes: Ensemble selection from libraries of models. ICML 2004). The loss
is the mean squared hinge of the binary problems, or of values that which scores them.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Loss = Callable[[Floats, Floats, Floats], float]
Wrong = Callable[[Floats, NDArray[np.int64]], float]
PICKS = 20  # the weights are multiples of one in so many
LEAST_ROWS = 500  # that choose weights: fewer would learn them by heart


def member_weights(
    values: Floats, Y: Floats, weight: Floats, half: NDArray[np.int64], loss: Loss | None = None,
    wrong: Wrong | None = None,
) -> Floats | None:  # fmt: skip
    """Weights (members,) of the values, whose sum is 1; None where equal ones are as good, or rows are few.

    The weights that one half of the rows chooses are compared with equal ones on the other half. There their loss has
    to be smaller, and they must not decide more rows wrongly: of many classes the loss alone can choose a single member
    that has a third more errors than the mean.

    Parameters
    ----------
    values : (members, problems, n) held-out values of the rows, of classes from -1 to 1.
    Y : (n, problems) what they should be, of classes -1 or 1; 0 where a row takes no part.
    weight : (n,) of the rows.
    half : (n,) 0 or 1, the half that each row is in.
    loss : of the mean's values (problems, n), with Y and weight; None for the squared hinge, of classes.
    wrong : weight of the rows that a mean decides wrongly, of its values (problems, m) and the places (m,) of the rows;
        None where the loss alone counts.
    """
    loss = loss or _hinge
    if len(weight) < LEAST_ROWS:
        return None
    equal = np.full(len(values), 1.0 / len(values))
    gains = np.zeros(2)
    for number in (0, 1):
        one, other = np.flatnonzero(half == number), np.flatnonzero(half != number)
        chosen, held = _selected(loss, values[..., one], Y[one], weight[one]), values[..., other]
        for sign, weights in ((1, equal), (-1, chosen)):
            mean = _mean(held, weights)
            gains += sign * np.array([loss(mean, Y[other], weight[other]), wrong(mean, other) if wrong else 0.0])
    return _selected(loss, values, Y, weight) if gains[0] > 0.0 and gains[1] >= 0.0 else None


def _selected(loss: Loss, values: Floats, Y: Floats, weight: Floats) -> Floats:
    """Weights (members,) after all picks."""
    picks, total = np.zeros(len(values)), np.zeros_like(values[0])
    for count in range(1, PICKS + 1):
        best = int(np.argmin([loss((total + member) / count, Y, weight) for member in values]))
        picks[best] += 1
        total = total + values[best]
    return np.asarray(picks / PICKS)


def _mean(values: Floats, weights: Floats) -> Floats:
    return np.asarray(np.tensordot(weights, values, 1))


def _hinge(values: Floats, Y: Floats, weight: Floats) -> float:
    """Sum of the squared hinges of values (problems, n)."""
    return float((np.square(np.maximum(0.0, 1.0 - values * Y.T)) * (Y.T != 0)).sum(axis=0) @ weight)
