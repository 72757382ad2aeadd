"""The task-coupled linear SVM by stochastic subgradients.

    min_w  P(w) = 1/2 |w|^2 + sum_i c_i loss(y_i, f_i(w)),    f and w as in csrc/linear.h

It serves rows that do not fit into memory, and methods whose papers used such a solver.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from localsvm.solvers._linear import Descent, LinearReport, LinearRows
from localsvm.solvers.row_losses import SMALLEST, RowLoss

Vector = NDArray[np.float64]
# n c_i |m_i phi_i|^2 times the first step size and the steepness: a longer step would pass the row's own minimum
LARGEST_STEP = 1.0


class DescentBlock(NamedTuple):
    """Some rows, with labels and costs for each of several problems on them.

    Attributes
    ----------
    rows : LinearRows
        All blocks have the same tasks and features.
    y : (problems, n) float64
        +-1, or 0 where a row takes no part in a problem; or values.
    cost : (problems, n) float64
        The factors c_i >= 0.
    losses : of the problems, the hinge or those of values.
    """

    rows: LinearRows
    y: Vector
    cost: Vector
    losses: Sequence[RowLoss]

    def taking_part(self, problem: int) -> NDArray[np.int64]:
        """The rows that take part in a problem."""
        return np.flatnonzero(self.losses[problem].takes_part(self.y[problem]) & (self.cost[problem] > 0))


@dataclass(frozen=True)
class Descended:
    """Solutions of several problems.

    Attributes
    ----------
    weights : list of (size,) float64
        For each problem the average of the weights over the last pass.
    reports : list of LinearReport
    support : int
        Number of rows with a subgradient other than 0 in any problem.
    """

    weights: list[Vector]
    reports: list[LinearReport]
    support: int


def descend(blocks: Callable[[], Iterable[DescentBlock]], passes: int, rng: np.random.Generator) -> Descended:
    """Solve several problems in the same passes over the rows.

    Two more passes choose the size of the first step, and evaluate the objectives; the dual objective is that of the
    coefficients in the subgradient at w.

    Parameters
    ----------
    blocks : callable
        Gives all rows, one block at a time, the same at each call. Only one block is in memory at once.
    passes : int
    rng : Generator
        Rows of a block are visited in random order.
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
            of_rows = block.losses[p].at(block.y[p], block.cost[p], SMALLEST)
            terms = of_rows.terms(block.rows.values(w))
            loss[p] += terms.smooth if block.losses[p].smooth else terms.loss
            alphas[p] += terms.dual
            total[p] += block.rows.add(terms.coef)
            inside |= terms.coef != 0
        support += int(np.count_nonzero(inside))
    primal = [0.5 * float(w @ w) + float(part) for w, part in zip(weights, loss, strict=True)]
    dual = [float(part) - 0.5 * float(v @ v) for v, part in zip(total, alphas, strict=True)]
    steps = [descent.steps for descent in descents]
    return Descended(weights, [LinearReport(*each, False) for each in zip(primal, dual, steps, strict=True)], support)


def _begin(blocks: Callable[[], Iterable[DescentBlock]]) -> list[Descent]:
    """A Descent for each problem, with its number of rows and first step size."""
    size, parts, steps, losses = 0, [], [], list[RowLoss]()
    for block in blocks():
        size, losses = block.rows.size, list(block.losses)
        parts.append([len(block.taking_part(p)) for p in range(len(block.y))])
        steps.append((block.cost * block.rows.norms()).max(axis=1, initial=0.0))
    count, largest = np.sum(parts, axis=0), np.max(steps, axis=0)
    return [
        loss.descent(size, n, max(1.0, n * most * loss.steepest / LARGEST_STEP))
        for n, most, loss in zip(count, largest, losses, strict=True)
    ]
