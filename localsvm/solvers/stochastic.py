"""The task-coupled linear SVM by stochastic subgradients: for rows that do not fit in memory, and for the methods whose
papers measured such a solver.

    min_w  P(w) = 1/2 |w|^2 + sum_i c_i max(0, 1 - y_i f_i(w)),    f and w as in csrc/linear.h
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from localsvm.solvers._linear import Descent, LinearReport, LinearRows, Margins

Vector = NDArray[np.float64]
LARGEST_STEP = 1.0  # n c_i |m_i phi_i|^2 times the first steps: larger ones would go beyond the row's own minimum


class Block(NamedTuple):
    """Some rows of a problem, all blocks with the same tasks and features: targets +-1, or 0; costs (n,) >= 0."""

    rows: LinearRows
    y: Vector
    cost: Vector


def descend(
    blocks: Callable[[], Iterable[Block]], passes: int, rng: np.random.Generator
) -> tuple[Vector, LinearReport]:
    """(w, report): the average of the iterates of the last pass, and what it reached.

    blocks: gives all rows, a block at a time, the same ones at each call; only one is held at a time. Rows of a block
    are visited in random order. Two more looks at the blocks learn the size of the first step and evaluate the
    objective, with the dual one of the coefficients that the subgradient at w is made of.
    """
    size, count, largest = 0, 0, 0.0
    for block in blocks():
        size, count = block.rows.size, count + int(np.count_nonzero((block.y != 0) & (block.cost > 0)))
        largest = max(largest, float((block.cost * block.rows.norms()).max(initial=0.0)))
    descent = Descent(size, count, max(1.0, count * largest / LARGEST_STEP))
    for _ in range(passes):
        descent.forget()
        for block in blocks():
            order = np.flatnonzero((block.y != 0) & (block.cost > 0))
            descent.run(*block, rng.permutation(order).astype(np.int64))
    w = descent.average()
    loss, total, alphas = 0.0, np.zeros(size), 0.0
    for block in blocks():
        terms = Margins(block.y, block.cost, np.finfo(np.float64).tiny).terms(block.rows.values(w))
        loss, alphas, total = loss + terms.loss, alphas + terms.dual, total + block.rows.add(terms.coef)
    primal, dual = 0.5 * float(w @ w) + loss, alphas - 0.5 * float(total @ total)
    return w, LinearReport(primal, dual, descent.steps, False)
