"""The stochastic average gradient: against Newton's method, written out in numpy, and from the command line."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from test_linear import KINDS, objectives, problem

from localsvm.estimators import LinearSVMClassifier
from localsvm.solvers._linear import LinearRows, Margins
from localsvm.solvers.average_gradient import average_gradient
from localsvm.solvers.linear import solve
from localsvm.solvers.primal import LinearProblem
from localsvm.solvers.row_losses import SQUARED_HINGE


@pytest.mark.parametrize("thin", [False, True])
@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_its_optimum_is_newtons(kind: str, shared: bool, thin: bool) -> None:
    rows, Z, y, cost = problem(kind, shared=shared, thin=thin)
    y[::7] = 0.0
    cost[3::7] = 0.0
    sag, newton = (
        solve(LinearProblem(rows, y, cost, SQUARED_HINGE), 1e-9, s, one_task_each=kind != "soft")
        for s in ("sag", "primal")
    )
    assert sag.report.converged
    primal, dual = objectives(Z, np.where(y == 0, 0.0, y), np.where(y == 0, 0.0, cost), True, sag.w, sag.alpha)
    assert (sag.report.primal, sag.report.dual) == pytest.approx((primal, dual), rel=1e-9)
    assert primal - dual <= 1e-9 * primal * 1.001
    assert primal == pytest.approx(newton.report.primal, rel=1e-8)
    assert not sag.alpha[(y == 0) | (cost == 0)].any()
    assert_allclose(sag.w, newton.w, atol=1e-3)


@pytest.mark.parametrize("thin", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_its_steps_are_those_of_the_paper(kind: str, thin: bool) -> None:
    rows, Z, y, cost = problem(kind, thin=thin)
    random = np.random.default_rng(2)
    w, coef, eta = random.standard_normal(rows.size), random.standard_normal(rows.n), 1 / (3 * rows.n)
    order = random.integers(rows.n, size=2 * rows.n)
    plain, table = w.copy(), coef.copy()
    for i in order:
        table[i] = 2 * cost[i] * max(0.0, 1 - y[i] * (Z[i] @ plain)) * y[i]
        plain -= eta * (plain - table @ Z)
    rows.average_gradient(y, cost, order, eta, coef, w)
    assert_allclose(coef, table, atol=1e-10)
    assert_allclose(w, plain, atol=1e-10)


def test_a_start_saves_passes_and_what_was_not_reached_is_said() -> None:
    rows, _, y, cost = problem("hard", n=400)
    before = solve(LinearProblem(rows, y, cost, SQUARED_HINGE), 1e-6, "sag")
    cold, warm = (
        solve(LinearProblem(rows, y, 1.2 * cost, SQUARED_HINGE), 1e-6, "sag", start=start) for start in (None, before)
    )
    assert warm.report.primal == pytest.approx(cold.report.primal, rel=1e-6)
    assert warm.report.steps < cold.report.steps
    assert solve(LinearProblem(rows, y, cost, SQUARED_HINGE), 1e-6, "sag", start=before).report.steps == 0
    w, alpha, report = average_gradient(rows, y, 100 * cost, 1e-9, max_passes=3)
    assert not report.converged
    terms = Margins(y, 100 * cost, 0.0).terms(rows.values(w))
    assert report.primal == pytest.approx(0.5 * w @ w + terms.smooth)
    assert_allclose(alpha, terms.coef * y)


def test_nothing_to_learn_from_gives_zero_weights() -> None:
    rows = LinearRows(np.ones((4, 2), np.float32))
    w, alpha, report = average_gradient(rows, np.zeros(4), np.ones(4), 1e-3, np.ones(rows.size))
    assert report.converged
    assert not w.any()
    assert not alpha.any()


def test_orders_of_other_rows_are_refused() -> None:
    rows, _, y, cost = problem("one")
    for order in ([-1], [rows.n]):
        with pytest.raises(ValueError, match="rows that do not exist"):
            rows.average_gradient(y, cost, np.array(order), 0.01, np.zeros(rows.n), np.zeros(rows.size))


def test_classifiers_with_it_decide_as_with_newtons_method() -> None:
    random = np.random.default_rng(0)
    X = random.standard_normal((150, 4)).astype(np.float32)
    y = np.digitize(X[:, 0] + 0.3 * random.standard_normal(150), [-0.5, 0.5])
    given = {"loss": "squared-hinge", "cost": [0.01, 0.1, 1.0], "tolerance": 1e-8, "folds": 3}
    values = [LinearSVMClassifier(solver=s, **given).fit(X, y).decision_function(X) for s in ("sag", "primal")]
    assert_allclose(values[0], values[1], atol=1e-3)
