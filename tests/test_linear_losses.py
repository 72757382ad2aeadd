"""Losses of values of the linear solvers: against scikit-learn and scipy, with certified gaps."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse
from scipy.optimize import minimize
from sklearn.svm import LinearSVR

from localsvm.data.blocks.dataset import as_examples
from localsvm.methods.linear.rows import BIAS
from localsvm.solvers._linear import LinearRows
from localsvm.solvers.linear import solve
from localsvm.solvers.primal import LinearProblem
from localsvm.targets.losses import Loss

LOSSES = [
    Loss("least-squares"), Loss("quantile", 0.9), Loss("expectile", 0.8), Loss("absolute"),
    Loss("epsilon-insensitive", 0.5, 0.2), Loss("squared-epsilon-insensitive", 0.5, 0.2), Loss("huber", 0.5, 0.3),
]  # fmt: skip
RNG = np.random.default_rng(0)
ROWS = RNG.standard_normal((300, 5)).astype(np.float32)
VALUES = ROWS @ np.asarray([1.0, -0.5, 0.2, 0.0, 0.7]) + 0.5 * RNG.standard_normal(300) ** 3
COST = np.where(np.arange(300) % 10, 1.5, 0.0)  # some rows take no part


def objective(loss: Loss, w: np.ndarray) -> float:
    """The primal objective of weights (d + 1,), the last one of the constant."""
    return float(0.5 * w @ w + COST @ loss(VALUES - ROWS @ w[:-1] - BIAS * w[-1]))


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.name)
def test_no_weights_are_better(loss: Loss) -> None:
    problem = LinearProblem(LinearRows(ROWS, bias=BIAS), VALUES, COST, loss.residual)
    solution = solve(problem, 1e-8)
    w = np.append(solution.w[:5], solution.w[5] + solution.w[6])
    assert_allclose(loss.residual.of(ROWS @ w[:-1] + w[-1], VALUES), loss(VALUES - ROWS @ w[:-1] - w[-1]))
    report = solution.report
    assert report.converged and report.primal - report.dual <= 1e-8 * report.primal
    assert_allclose(report.primal, objective(loss, w))
    for scale in (1e-1, 1e-3, 1e-5):
        others = w + scale * RNG.standard_normal((50, 6))
        assert min(objective(loss, other) for other in others) >= report.dual
    if loss.residual.smooth:
        best = minimize(lambda at: objective(loss, at), np.zeros(6), method="BFGS", options={"gtol": 1e-8})
        assert_allclose(w, best.x, atol=1e-4)


@pytest.mark.parametrize(
    ("loss", "theirs"), [(LOSSES[4], "epsilon_insensitive"), (LOSSES[5], "squared_epsilon_insensitive")]
)
def test_weights_are_those_of_liblinear(loss: Loss, theirs: str) -> None:
    taken = COST > 0.0
    svr = LinearSVR(C=1.5, loss=loss.name.replace("-", "_"), epsilon=0.2, dual=True, tol=1e-9, max_iter=1_000_000)
    svr.fit(ROWS[taken].astype(np.float64), VALUES[taken])
    solution = solve(LinearProblem(LinearRows(ROWS, bias=BIAS), VALUES, COST, loss.residual), 1e-9)
    assert_allclose(solution.w[:5], svr.coef_, atol=1e-3)
    assert_allclose(solution.w[5] + solution.w[6], svr.intercept_, atol=1e-3)


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.name)
@pytest.mark.parametrize("kind", ["sparse and wide", "shares in tasks", "one task each"])
def test_gaps_are_certified_whatever_the_rows(loss: Loss, kind: str) -> None:
    task: Any = None
    X: Any = ROWS
    if kind == "sparse and wide":
        more = sparse.random_array((300, 2000), density=0.01, rng=np.random.default_rng(1), dtype=np.float32)
        X = as_examples(sparse.csr_array(sparse.hstack([sparse.csr_array(ROWS), more])))
    elif kind == "one task each":
        task = (np.arange(300) % 3).astype(np.int32)
    else:
        task = sparse.csr_array(RNG.dirichlet(np.ones(3), 300))
    rows = LinearRows(X, 1 if task is None else 3, task, BIAS)
    first = solve(LinearProblem(rows, VALUES, COST, loss.residual), 1e-4, one_task_each=kind != "shares in tasks")
    again = solve(
        LinearProblem(rows, VALUES, 1.1 * COST, loss.residual),
        1e-4,
        one_task_each=kind != "shares in tasks",
        start=first,
    )
    for solution, factor in ((first, 1.0), (again, 1.1)):
        assert solution.report.converged
        primal = 0.5 * solution.w @ solution.w + factor * COST @ loss(VALUES - rows.values(solution.w))
        assert_allclose(solution.report.primal, primal)


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.name)
def test_stochastic_subgradients_come_near(loss: Loss) -> None:
    problem = LinearProblem(LinearRows(ROWS, bias=BIAS), VALUES, 0.1 * COST, loss.residual)
    best, near = solve(problem, 1e-8).report, solve(problem, 1e-8, "sgd", passes=100).report
    assert best.primal <= near.primal * (1.0 + 1e-9) and near.primal <= 1.01 * best.primal
    assert near.dual <= best.primal
