"""Multiclass latent locally linear SVMs: two solvers, and the scores.

A class has m linear models, W_r (m, d + 1) with the bias last. Its score s_r(x) = |(W_r x)_+|_q is the best that a
combination b of its models makes of x, with b >= 0, |b|_p <= 1 and 1/p + 1/q = 1. Both solvers lower the objective

    lambda/2 |W|^2 + 1/n sum_i w_i [1 + max_{r != y_i} s_r(x_i) - s_{y_i}(x_i)]_+

over the n rows of positive weight w_i, in rounds that fix the combinations of the true classes (concave-convex
procedure). The objective is not convex, so the result depends on the start. As scores are never negative, two classes
need two sets of models as well.

References
----------
Fornoni, Caputo, Orabona: Multiclass Latent Locally Linear Support Vector Machines. ACML 2013.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from localsvm.data.blocks.dataset import Dense, Examples, row_blocks
from localsvm.solvers._ml3 import ML3Model, ML3Training
from localsvm.solvers.ml3_round import Coordinates, Round, SortedRows

Floats = NDArray[np.float64]

PASSES = 30  # default of the authors' program
MOST_ROUNDS = 100
SMOOTHING = (0.1, 0.025, 0.00625)  # widths mu, one after the other, until the tolerance is met
SMOOTHING_SHARE = 10  # times the tolerance: what smoothing may add, relative to the objective
ITERATIONS = 100  # of L-BFGS in one round
SCORED_AT_ONCE = 1 << 22  # elements of X whose scores are in memory at once


@dataclass(frozen=True)
class ML3Problem:
    """The problem that both solvers solve.

    Parameters
    ----------
    X : (n, d) float32, C-order or CSR
    codes : (n,) int32
        The class of each row, from 0 to classes - 1.
    weight : (n,) float64
        Factors >= 0 of the losses; rows with 0 take no part.
    classes, models : int
        Number of classes, and m.
    p : float
        In [1, inf).
    lam : float
        lambda; 0 for 1 over the number of rows that take part.

    Attributes
    ----------
    taken : (rows,) int
        The rows that take part.
    """

    X: Examples
    codes: NDArray[np.int32]
    weight: Floats
    classes: int
    models: int = 10
    p: float = 1.5
    lam: float = 0.0
    taken: NDArray[np.intp] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        n = self.X.shape[0]
        if self.codes.shape != (n,) or self.weight.shape != (n,):
            raise ValueError("codes and weight must have one entry a row")
        if self.classes < 2 or self.models < 1 or not 1 <= self.p < np.inf or self.lam < 0:
            raise ValueError("there must be two classes or more, one model or more, p from 1 on and lambda positive")
        taken = np.flatnonzero(self.weight > 0)
        if not len(taken) or self.codes.min() < 0 or self.codes.max() >= self.classes:
            raise ValueError("a row must have positive weight, and codes must be numbers of classes")
        object.__setattr__(self, "taken", taken)
        object.__setattr__(self, "lam", self.lam or 1 / len(taken))

    @property
    def q(self) -> float:
        return dual_exponent(self.p)


@dataclass(frozen=True)
class ML3Report:
    """The result of a solve.

    Attributes
    ----------
    objective : float
        That at the weights returned, in float64.
    rounds : int
    fell : float
        Amount by which the last round lowered the objective, relative to it; nan from `stochastic`.
    converged : bool
        True where `fell` is within the tolerance and smoothing adds little. Always true from `stochastic`, which only
        promises a number of rounds.
    inside : (n,) bool
        The rows that take part and have a positive loss.
    """

    objective: float
    rounds: int
    fell: float
    converged: bool
    inside: NDArray[np.bool_] = field(repr=False, compare=False)


def dual_exponent(p: float) -> float:
    """The exponent q with 1/p + 1/q = 1."""
    return p / (p - 1) if p > 1 else np.inf


def scores(W: Dense, X: Examples, p: float) -> Floats:
    """Scores (n, classes) float64 of the rows of X, for weights W (classes, m, d + 1) float32.

    A row's scores depend on that row alone, bit for bit, and are the same for dense and CSR rows.
    """
    return _model(W, p).scores(X)


def losses(problem: ML3Problem, W: Dense) -> Floats:
    """The losses (n,) float64 of the rows, not weighted, for weights W (classes, m, d + 1)."""
    model, out = _model(W, problem.p), []
    for rows in row_blocks(problem.X, SCORED_AT_ONCE):
        s, codes = model.scores(problem.X[rows]), problem.codes[rows]
        at = np.arange(len(s))
        true = s[at, codes]
        s[at, codes] = -np.inf
        out.append(np.maximum(1 + s.max(axis=1) - true, 0))
    return np.concatenate(out)


def objective(problem: ML3Problem, W: Dense) -> float:
    """The objective at the weights W (classes, m, d + 1), in float64."""
    return _objective(problem, W, losses(problem, W))


def _objective(problem: ML3Problem, W: Dense, losses: Floats) -> float:
    square = float(np.vdot(W.astype(np.float64), W))
    return 0.5 * problem.lam * square + float(problem.weight @ losses) / len(problem.taken)


def _model(W: Dense, p: float) -> ML3Model:
    classes, models, columns = W.shape
    model = ML3Model(classes, models, columns - 1, dual_exponent(p))
    model.put(W)
    return model


def stochastic(problem: ML3Problem, rng: np.random.Generator, rounds: int = PASSES) -> tuple[Dense, ML3Report]:
    """The authors' solver: (W, ML3Report), with W (classes, m, d + 1) float32.

    Each round is one epoch of Pegasos over the rows in random order. In an epoch before the first round, each row has a
    random combination, the same for all classes. W is the average over the steps of the last epoch.

    As in the authors' program, epoch e (from 0) starts with steps of 1 / (lambda (t0 + 2 n e + 1)), and |W| stays below
    sqrt(2 n / lambda), a bound that holds for the sum of the losses instead of their mean and rarely acts. Their t0 is
    0. Here it is mean(w |x|^2) / lambda: otherwise, if rows are long, the first steps move single rows far beyond their
    margin.
    """
    n, lam, weight = len(problem.taken), problem.lam, problem.weight
    if rounds < 1:
        raise ValueError("there must be one round or more")
    model = ML3Model(problem.classes, problem.models, problem.X.shape[1], problem.q)
    radius = float(np.sqrt(2 * weight.sum() / lam))
    seed = int(rng.integers(1 << 63))
    training = ML3Training(model, problem.X, problem.codes, weight, problem.p, lam, radius, seed)
    first = float(weight @ (_squares(problem.X) + 1)) / n / lam
    W = None
    for epoch in range(rounds + 1):
        order = rng.permutation(problem.taken)
        W = training.epoch(order, first + 2.0 * n * epoch, initial=epoch == 0, average=epoch == rounds)
    assert W is not None
    left = losses(problem, W)
    return W, ML3Report(_objective(problem, W, left), rounds, np.nan, True, (left > 0) & (weight > 0))


def _squares(X: Examples) -> Floats:
    """Squared norms (n,) float64 of the rows."""
    if isinstance(X, np.ndarray):
        return np.asarray(np.einsum("ij,ij->i", X, X, dtype=np.float64))
    owner = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))
    return np.asarray(np.bincount(owner, np.square(X.data, dtype=np.float64), X.shape[0]), np.float64)


def exact(
    problem: ML3Problem, rng: np.random.Generator, tolerance: float = 1e-3, rounds: int = MOST_ROUNDS
) -> tuple[Dense, ML3Report]:
    """Solve the convex problem of every round, by L-BFGS on a smoothed objective: (W, ML3Report), W float32.

    The start is the result of `stochastic`, so the objective is never worse. (The solution with random combinations,
    nearly a linear SVM, would be a worse start: it can lose a whole class, because a row that no model of its class
    claims stays out of reach in all later rounds. The noise of stochastic steps leaves few such rows.)

    A round is kept if it lowers the objective. When one lowers it by less than tolerance times the objective, the
    smoothing is made finer; the solver has converged when smoothing adds little. With BLAS on one thread, the same rng
    gives the same bits.
    """
    rows = SortedRows.sorted_by_class(problem.X, problem.codes, problem.weight)
    metric = Coordinates.of(rows, problem.lam)
    W, begun_with = stochastic(problem, rng)
    now, fell, done, converged, finer = begun_with.objective, np.inf, 0, False, 0
    while done < rounds and not converged:
        begun = Round.at(W, rows, problem.q, problem.lam, metric)
        weights, bound = begun.solve(W.astype(np.float64), SMOOTHING[finer], tolerance, ITERATIONS)
        value = objective(problem, weights.astype(np.float32))
        fell, done = max(0.0, now - value), done + 1
        if fell > 0:
            W, now = weights.astype(np.float32), value
        if fell <= tolerance * now:
            finer += 1
            converged = finer == len(SMOOTHING) or bound - value <= SMOOTHING_SHARE * tolerance * value
    inside = (losses(problem, W) > 0) & (problem.weight > 0)
    return W, ML3Report(now, done, fell / now, converged, inside)
