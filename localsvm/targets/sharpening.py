"""How much sharper the probabilities of repeats have to be, so that their mean is what it says.

A mean of probabilities is less spread than each of them: where they are calibrated one by one, it is not sure enough.
A row has a held-out value in each repeat, so that this can be measured.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, softmax

from localsvm.targets.base import Values
from localsvm.targets.classification import Classification
from localsvm.targets.held_out import HeldOut
from localsvm.targets.probabilities import Calibration, bent, logarithms, one_a_class

SAMPLE_VALUES = 1 << 22  # log shares, of all repeats together, from which the factor is found
MOST = 4.0  # the factor is between its inverse and this
EXACT = 1e-6


def sharpened(calibration: Calibration, target: Classification, held_out: HeldOut) -> Calibration:
    """The calibration with the factor on all log odds for which the mean over the repeats has the smallest log loss.

    A row's class has the target (n + 1) / (n + 2), for n rows in all, and the other classes share the rest.
    """
    from scipy.optimize import minimize_scalar  # takes a third of a second to import

    shares, codes, weight = means_of(calibration, target, held_out)
    n, total, k = len(codes), float(weight.sum()), len(target.labels)
    t = np.full((n, k), 1.0 / (total + 2.0) / (k - 1))
    t[np.arange(n), codes] = (total + 1.0) / (total + 2.0)

    def loss(logarithm: float) -> float:
        p = softmax(np.exp(logarithm) * shares, axis=2).mean(axis=1)
        return -float(weight @ (t * np.log(np.maximum(p, 1e-300))).sum(axis=1))

    if not n:
        return calibration
    found = minimize_scalar(loss, bounds=(-np.log(MOST), np.log(MOST)), method="bounded", options={"xatol": EXACT})
    return calibration.sharpened(target, float(np.exp(found.x)))


def means_of(
    calibration: Calibration, target: Classification, held_out: HeldOut
) -> tuple[Values, NDArray[np.intp], Values]:
    """(n, repeats, classes) log shares, (n,) classes and (n,) counts of rows that all repeats have, or some of them."""
    values = int(held_out.sizes.sum()) * max(target.n_problems, len(target.labels))
    step = max(1, -(-values // SAMPLE_VALUES))
    parts = [_of_cell(calibration, target, held_out, i, step) for i in range(len(held_out.sizes))]
    rows, shares, codes, count = (np.concatenate(column) for column in zip(*parts, strict=True))
    order = np.argsort(rows, kind="stable")
    _, times = np.unique(rows, return_counts=True)
    order = order[np.repeat(times == held_out.repeats, times)]  # a cell may leave out a row, for which others stand
    first = order[:: held_out.repeats]
    return shares[order].reshape(-1, held_out.repeats, shares.shape[1]), codes[first], count[first]


def _of_cell(
    calibration: Calibration, target: Classification, held_out: HeldOut, cell: int, step: int
) -> tuple[NDArray[np.int64], Values, NDArray[np.intp], Values]:
    rows = held_out.rows(cell)
    taken = rows % step == 0
    values, y, count = held_out.cell(cell)
    sigmoids = calibration.sigmoids[cell]
    z = bent(calibration.curve, sigmoids[:, :1] * values[:, taken].astype(np.float64) + sigmoids[:, 1:])
    if len(target.labels) == 2:
        shares = np.column_stack([np.zeros(z.shape[1]), z[0]])
    else:
        log_p, log_rest = logarithms(one_a_class(target, expit(z).T))
        shares = calibration.powers[0] * log_p - calibration.powers[1] * log_rest
    return rows[taken], shares, target.codes(y[taken]), count[taken]
