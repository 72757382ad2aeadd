"""Finds what makes probabilities of decision values (`probabilities`), from the held-out values of selection.

Rows count as often as they occur, by their own weights, and not by those of their classes: these say what an error
costs, and not how often a class occurs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit

from localsvm.targets.base import Values
from localsvm.targets.classification import Classification
from localsvm.targets.held_out import HeldOut
from localsvm.targets.probabilities import SMALLEST, Calibration, bent, log_shares, logarithms, one_a_class

PRIOR_ROWS = 10.0  # so many rows of the run the prior of a cell's sigmoid is worth, and that of the powers
CURVE_PRIOR_ROWS = 10.0  # so many rows count in a block of the curve as the sigmoids say
SAMPLE_VALUES = 1 << 22  # held-out values, at least one row of each cell, from which the run's numbers are found
STEPS, SHORTEST = 100, 1e-9  # of Newton's method: the most, and the smallest share of one
ENOUGH, ROUNDING = 1e-9, 1e-14


@dataclass(frozen=True)
class Examples:
    """Held-out values, and the classes that they should lead to.

    Attributes
    ----------
    values : (problems, n) float64 decision values, later log odds.
    positive, weight : (problems, n), whether the row is of the positive class; its weight, 0 where it takes no part.
    codes, count : (n,) number of the row's class, and how many rows it stands for.
    """

    values: Values
    positive: NDArray[np.bool_]
    weight: Values
    codes: NDArray[np.intp]
    count: Values

    @classmethod
    def of(cls, target: Classification, held_out: HeldOut, cell: int, step: int = 1) -> Examples:
        """Rows of a cell, every `step`-th."""
        values, y, count = held_out.cell(cell)
        y, count = y[::step], count[::step]
        Y = target.encode(y).T
        return cls(values[:, ::step].astype(np.float64), Y > 0, (Y != 0) * count, target.codes(y), count)


def calibrate(target: Classification, held_out: HeldOut) -> Calibration:
    """The calibration of a run: sigmoids, the curve of their log odds, powers of many classes."""
    cells = range(len(held_out.sizes))
    step = max(1, -(-int(held_out.sizes.sum()) * target.n_problems // SAMPLE_VALUES))
    sample = _together([Examples.of(target, held_out, i, step) for i in cells])
    whole, information = sigmoids(sample)
    cell_sigmoids = np.tile(whole, (len(cells), 1, 1))
    first = 0
    for i in cells:
        last = first + -(-int(held_out.sizes[i]) // step)
        if len(cells) > 1:
            cell_sigmoids[i], _ = sigmoids(Examples.of(target, held_out, i), (whole, PRIOR_ROWS * information))
        sample.values[:, first:last] = cell_sigmoids[i, :, :1] * sample.values[:, first:last] + cell_sigmoids[i, :, 1:]
        first = last
    # pairs of many classes are no better for a curve, on hold-outs
    curve = curve_of(sample) if target.scheme == "ova" or len(target.labels) == 2 else np.empty((0, 2))
    powers = powers_of(target, expit(bent(curve, sample.values)).T, sample) if len(target.labels) > 2 else np.ones(2)
    return Calibration(cell_sigmoids, curve, powers)


def sigmoids(rows: Examples, prior: tuple[Values, Values] | None = None) -> tuple[Values, Values]:
    """Slope and intercept of each problem.

    They minimise

        sum_i w_i (log(1 + exp z_i) - t_i z_i) + 1/2 (s - m)' Q (s - m),    z_i = s_0 f_i + s_1.

    They are found by Newton's method with a line search (Lin, Lin and Weng 2007); t_i is as in Platt 1999, so that
    z stays finite where the classes are separable.

    Parameters
    ----------
    prior : m (problems, 2) and Q (problems, 2, 2); None for none.

    Returns
    -------
    (problems, 2) float64, and (problems, 2, 2) the second derivative of the first sum at the optimum, a row.
    """
    f, w, t = rows.values, rows.weight, softened(rows)
    total = w.sum(axis=1)
    start = np.column_stack([np.zeros(len(f)), logit((w * t).sum(axis=1) / np.maximum(total, 1e-300))])
    start[total == 0.0] = 0.0
    centre, precision = prior or (start, np.zeros((len(f), 2, 2)))

    def objective(s: Values) -> Values:
        z, d = s[:, :1] * f + s[:, 1:], s - centre
        return np.asarray((w * (np.logaddexp(0.0, z) - t * z)).sum(axis=1) + 0.5 * _form(d, precision, d))

    def derivatives(s: Values) -> tuple[Values, Values]:
        p = expit(s[:, :1] * f + s[:, 1:])
        r, h = w * (p - t), w * p * (1.0 - p)
        slope = np.column_stack([(r * f).sum(axis=1), r.sum(axis=1)])
        mixed = (h * f).sum(axis=1)
        second = np.stack([(h * f * f).sum(axis=1), mixed, mixed, h.sum(axis=1)], axis=1).reshape(-1, 2, 2)
        return slope, second

    s = newton(centre.copy(), objective, derivatives, centre, precision)
    return s, derivatives(s)[1] / np.maximum(total, 1.0)[:, None, None]


def softened(rows: Examples) -> Values:
    """Platt's targets (problems, n): (n+ + 1) / (n+ + 2) for positive rows, 1 / (n- + 2) for the others."""
    above = (rows.weight * rows.positive).sum(axis=1, keepdims=True)
    below = (rows.weight * ~rows.positive).sum(axis=1, keepdims=True)
    return np.asarray(np.where(rows.positive, (above + 1.0) / (above + 2.0), 1.0 / (below + 2.0)))


def newton(
    s: Values,
    objective: Callable[[Values], Values],
    derivatives: Callable[[Values], tuple[Values, Values]],
    centre: Values,
    precision: Values,
) -> Values:
    """Minimise one convex function of two numbers for each row of s (k, 2), all side by side.

    objective (k,) with the prior; derivatives (k, 2) and (k, 2, 2) without it. The steps end where the next
    ones would lower each objective by less than ENOUGH, or by what rounding leaves of it.
    """
    best = objective(s)
    for _ in range(STEPS):
        slope, second = derivatives(s)
        slope = slope + np.einsum("kij,kj->ki", precision, s - centre)
        second = second + precision
        # where values are constant, or no row takes part, the second derivative has no inverse
        second = second + (1e-12 * np.trace(second, axis1=1, axis2=2) + 1e-12)[:, None, None] * np.eye(2)
        step = np.linalg.solve(second, slope[:, :, None])[:, :, 0]
        gain = (slope * step).sum(axis=1)
        share = np.where(gain > ENOUGH + ROUNDING * best, 1.0, 0.0)
        while (share > 0.0).any():
            now = objective(s - share[:, None] * step)
            high = (share > 0.0) & (now > best - 1e-4 * share * gain)
            if not high.any():
                break
            share[high] *= np.where(share[high] > SHORTEST, 0.5, 0.0)
        else:
            return s
        s, best = s - share[:, None] * step, np.where(share > 0.0, now, best)
    return s


def curve_of(rows: Examples) -> Values:
    """The knots of a curve that isotonic regression of the targets on the log odds gives, all problems together.

    Rows of a block of the regression have one mean target. The curve shifts the log odds of the block from their mean
    probability to that, taken together with CURVE_PRIOR_ROWS rows as the sigmoids say: a knot a block, where most of
    its uncertainty p (1 - p) is.
    """
    from scipy.optimize import isotonic_regression  # takes a third of a second to import

    taken = rows.weight > 0
    z, place = np.unique(rows.values[taken], return_inverse=True)
    w = np.bincount(place, rows.weight[taken])
    t = np.bincount(place, rows.weight[taken] * softened(rows)[taken]) / w
    first = isotonic_regression(t, weights=w).blocks[:-1]
    p = np.clip(expit(z), SMALLEST, 1.0 - SMALLEST)
    sums = [np.add.reduceat(x, first) for x in (w, w * t, w * p, w * p * (1.0 - p), w * p * (1.0 - p) * z)]
    total, target, expected, uncertain, middle = sums
    predicted = expected / total
    shift = logit((target + CURVE_PRIOR_ROWS * predicted) / (total + CURVE_PRIOR_ROWS)) - logit(predicted)
    middle = middle / uncertain
    apart = np.append(True, np.diff(middle) > 0)
    middle, shift = middle[apart], shift[apart]
    return np.column_stack([middle, np.maximum.accumulate(middle + shift) - middle])


def powers_of(target: Classification, p: Values, rows: Examples) -> Values:
    """The powers, from 0, that make the log loss of the classes smallest, for probabilities p (n, problems).

    A row's class has the target (n + 1) / (n + 2), for n rows in all, and the other classes share the rest. A Gaussian
    prior around plain normalisation, a = 1 and b = 0, is worth PRIOR_ROWS rows.
    """
    k, total = len(target.labels), float(rows.count.sum())
    t = np.full((len(rows.codes), k), 1.0 / (total + 2.0) / (k - 1))
    t[np.arange(len(t)), rows.codes] = (total + 1.0) / (total + 2.0)
    log_p, log_rest = logarithms(one_a_class(target, p))
    powers = _free_powers(log_p, log_rest, t, rows.count[:, None])
    # the loss is convex: where one power falls below 0, the best one from 0 is 0
    if powers[1] < 0.0:
        powers = _free_powers(log_p, np.zeros_like(log_rest), t, rows.count[:, None])
    return np.maximum(powers, 0.0)


def _free_powers(log_p: Values, log_rest: Values, t: Values, w: Values) -> Values:
    def objective(s: Values) -> Values:
        return -np.asarray([(w * t * log_shares(s[0], log_p, log_rest)).sum()])

    def derivatives(s: Values) -> tuple[Values, Values]:
        q = np.exp(log_shares(s[0], log_p, log_rest))
        away = [x - (q * x).sum(axis=1, keepdims=True) for x in (log_p, -log_rest)]  # from the mean of the classes
        slope = [(w * (q - t) * x).sum() for x in away]
        second = [[(w * q * x * other).sum() for other in away] for x in away]
        return np.asarray([slope]), np.asarray([second])

    start = np.asarray([[1.0, 0.0]])
    prior = PRIOR_ROWS / float(w.sum()) * derivatives(start)[1]

    def with_prior(s: Values) -> Values:
        return np.asarray(objective(s) + 0.5 * _form(s - start, prior, s - start))

    return np.asarray(newton(start, with_prior, derivatives, start, prior)[0])


def _form(a: Values, matrix: Values, b: Values) -> Values:
    return np.asarray(np.einsum("ki,kij,kj->k", a, matrix, b))


def _together(parts: list[Examples]) -> Examples:
    columns = [np.concatenate([getattr(part, name) for part in parts], axis=-1) for name in Examples.__annotations__]
    return Examples(*columns)
