"""The task-coupled linear SVM with the squared hinge, by the stochastic average gradient.

    min_w  P(w) = 1/2 |w|^2 + sum_i c_i max(0, 1 - y_i f_i(w))^2,    f and w as in csrc/linear.h

The gradient of the loss of each row is remembered from its last visit; a step on a random row goes along the sum of all
that are remembered (csrc/sag.h). Now and then all gradients are computed anew. They are coefficients of the dual, so
that they certify a duality gap, and the steps go on from them.

References
----------
Schmidt, Le Roux, Bach: Minimizing finite sums with the stochastic average gradient. Mathematical Programming 162, 2017.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from localsvm.pulse import beat
from localsvm.solvers._linear import LinearReport, LinearRows, Margins

Vector = NDArray[np.float64]
MAX_PASSES = 10_000
BETWEEN = 0.2  # of the passes so far, before the gap is looked at again: a look costs about half a pass


def average_gradient(
    rows: LinearRows, y: Vector, cost: Vector, tolerance: float, start: Vector | None = None, *,
    seed: int = 0, max_passes: int = MAX_PASSES,
) -> tuple[Vector, Vector, LinearReport]:  # fmt: skip
    """Solve to a duality gap of at most tolerance times the primal objective, or for max_passes: (w, alpha, report).

    Parameters
    ----------
    y, cost : (n,) float64
        +-1, or 0 where a row takes no part; and the factors c_i >= 0.
    start : (size,) float64 or None
        Weights to begin from; None for zeros.
    seed : int
        Seed of the rows that are visited, drawn with replacement.
    """
    random, margins = np.random.default_rng(seed), Margins(y, cost, 0.0)
    taking_part = np.flatnonzero((y != 0) & (cost > 0))
    count, passes = len(taking_part), 0
    w = np.zeros(rows.size) if start is None or not count else start.copy()
    # 1 / L, L the largest curvature of count c_i loss_i + 1/2 |w|^2, whose mean over the rows is the objective
    eta = 1.0 / (count * (1.0 + 2.0 * float((cost * rows.norms())[taking_part].max(initial=0.0))) + 1.0)
    while True:
        terms = margins.terms(rows.values(w))
        v = rows.add(terms.coef)
        primal, dual = 0.5 * float(w @ w) + terms.smooth, terms.dual - 0.5 * float(v @ v)
        converged = primal - dual <= tolerance * primal
        if converged or passes >= max_passes:
            return w, np.asarray(terms.coef * y), LinearReport(primal, dual, passes * count, converged)
        for _ in range(1 + int(BETWEEN * passes)):
            order = taking_part[random.integers(count, size=count)]
            rows.average_gradient(y, cost, order, eta, terms.coef, w)
            passes += 1
            beat(passes * count)
