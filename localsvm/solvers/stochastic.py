"""The task-coupled linear SVM by stochastic subgradients: for rows that do not fit in memory, and for the methods whose
papers measured such a solver.

    min_w  P(w) = 1/2 |w|^2 + sum_i c_i max(0, 1 - y_i f_i(w)),    f and w as in csrc/linear.h
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from localsvm.solvers._linear import Descent, LinearReport, LinearRows, Margins

Vector = NDArray[np.float64]
LARGEST_STEP = 1.0  # n c_i |m_i phi_i|^2 times the first steps: larger ones would go beyond the row's own minimum


class Block(NamedTuple):
    """Some rows, all blocks with the same tasks and features, and for each of several problems on them (problems, n)
    targets +-1, or 0, and costs >= 0.
    """

    rows: LinearRows
    y: Vector
    cost: Vector

    def taking_part(self, problem: int) -> NDArray[np.int64]:
        """The rows that are in a problem."""
        return np.flatnonzero((self.y[problem] != 0) & (self.cost[problem] > 0))


@dataclass(frozen=True)
class Descended:
    """For each problem the average of the iterates of the last pass and what it reached; support: rows inside the
    margin of any problem.
    """

    weights: list[Vector]
    reports: list[LinearReport]
    support: int


def descend(blocks: Callable[[], Iterable[Block]], passes: int, rng: np.random.Generator) -> Descended:
    """Solve some problems at once, in the same passes over the rows.

    blocks: gives all rows, a block at a time, the same ones at each call; only one is held at a time. Rows of a block
    are visited in random order. Two more looks at the blocks learn the size of the first step and evaluate the
    objective, with the dual one of the coefficients that the subgradient at w is made of.
    """
    descents = _begin(blocks)
    for _ in range(passes):
        for descent in descents:
            descent.forget()
        for block in blocks():
            for p, descent in enumerate(descents):
                descent.run(block.rows, block.y[p], block.cost[p], rng.permutation(block.taking_part(p)))
    weights = [descent.average() for descent in descents]
    size = len(weights[0])
    loss, alphas, total = np.zeros(len(weights)), np.zeros(len(weights)), np.zeros((len(weights), size))
    support = 0
    for block in blocks():
        inside = np.zeros(block.rows.n, bool)
        for p, w in enumerate(weights):
            margins = Margins(block.y[p], block.cost[p], np.finfo(np.float64).tiny)
            terms = margins.terms(block.rows.values(w))
            loss[p] += terms.loss
            alphas[p] += terms.dual
            total[p] += block.rows.add(terms.coef)
            inside |= terms.coef != 0
        support += int(np.count_nonzero(inside))
    primal = [0.5 * float(w @ w) + float(part) for w, part in zip(weights, loss, strict=True)]
    dual = [float(part) - 0.5 * float(v @ v) for v, part in zip(total, alphas, strict=True)]
    steps = [descent.steps for descent in descents]
    return Descended(weights, [LinearReport(*each, False) for each in zip(primal, dual, steps, strict=True)], support)


def _begin(blocks: Callable[[], Iterable[Block]]) -> list[Descent]:
    size, parts, steps = 0, [], []
    for block in blocks():
        size = block.rows.size
        parts.append([len(block.taking_part(p)) for p in range(len(block.y))])
        steps.append((block.cost * block.rows.norms()).max(axis=1, initial=0.0))
    count, largest = np.sum(parts, axis=0), np.max(steps, axis=0)
    return [Descent(size, n, max(1.0, n * most / LARGEST_STEP)) for n, most in zip(count, largest, strict=True)]
