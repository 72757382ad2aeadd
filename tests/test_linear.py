"""The task-coupled linear SVM: both solvers against LIBLINEAR, explicit features, and each other."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse
from sklearn.svm import LinearSVC

from localsvm.data.blocks.dataset import as_examples, thinned
from localsvm.data.readers.libsvm import read
from localsvm.features.scaling import scaling_of
from localsvm.solvers._linear import Descent, LinearRows, Margins
from localsvm.solvers.linear import LinearSolution, few_weights, small_tasks, solve
from localsvm.solvers.primal import LinearProblem, newton
from localsvm.solvers.row_losses import HINGE, SQUARED_HINGE, Hinge
from localsvm.solvers.stochastic import DescentBlock, descend

KINDS = ("one", "hard", "soft")


def problem(kind: str, *, n: int = 90, d: int = 5, shared: bool = True, thin: bool = False, seed: int = 0) -> tuple:
    """Rows, their explicit features Z (n, size), targets and costs."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)).astype(np.float32) * (rng.random((n, d)) < 0.6)
    y = np.where(X[:, 0] + 0.5 * rng.standard_normal(n) > 0.2, 1.0, -1.0)
    cost = rng.uniform(0.2, 2.0, n)
    tasks = 1 if kind == "one" else 4
    task: Any = None
    shares = np.ones((n, 1))
    if kind == "hard":
        task = rng.integers(0, 3, n).astype(np.int32)  # the last task has no rows
        shares = np.eye(4)[task]
    elif kind == "soft":
        shares = rng.random((n, 4)) * (rng.random((n, 4)) < 0.5)
        task = sparse.csr_array(shares)
    rows = LinearRows(as_examples(sparse.csr_array(X)) if thin else X, tasks, task, 0.7, shared)
    wide = np.hstack([X.astype(np.float64), np.full((n, 1), 0.0 if shared else 0.7)])
    Z = np.hstack([(shares[:, :, None] * wide[:, None, :]).reshape(n, -1), np.full((n, 1), 0.7 if shared else 0.0)])
    return rows, Z, y, cost


def objectives(Z: np.ndarray, y: np.ndarray, cost: np.ndarray, squared: bool, w: np.ndarray, alpha: np.ndarray) -> Any:
    slack = np.maximum(0.0, 1.0 - y * (Z @ w))
    v = Z.T @ (alpha * y)
    curved = alpha[cost > 0] ** 2 / (4 * cost[cost > 0]) if squared else 0.0 * alpha
    return 0.5 * w @ w + cost @ (slack**2 if squared else slack), alpha.sum() - curved.sum() - 0.5 * v @ v


@pytest.mark.parametrize("thin", [False, True])
@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_rows_are_their_explicit_features(kind: str, shared: bool, thin: bool) -> None:
    rows, Z, _, _ = problem(kind, shared=shared, thin=thin, d=11)
    rng = np.random.default_rng(1)
    w, coef = rng.standard_normal(rows.size), rng.standard_normal(rows.n) * (rng.random(rows.n) < 0.5)
    assert_allclose(rows.values(w), Z @ w, atol=1e-12)
    assert_allclose(rows.values(w, 10, 30), (Z @ w)[10:30], atol=1e-12)
    assert_allclose(rows.add(coef), Z.T @ coef, atol=1e-12)
    assert_allclose(rows.curve(coef**2, w), Z.T @ (coef**2 * (Z @ w)), atol=1e-11)
    if kind != "soft":
        h = rows.hessian(coef**2)
        full = Z.T @ (coef[:, None] ** 2 * Z)
        for k in range(rows.tasks):
            block = slice(12 * k, 12 * (k + 1))
            assert_allclose(np.triu(h.blocks[k, :12, :12]), np.triu(full[block, block]), atol=1e-12)
            assert_allclose(h.border[k, :12], full[block, -1], atol=1e-12)
        assert h.corner == pytest.approx(full[-1, -1])
        more, first = rng.standard_normal(rows.n), h.blocks[:, 0, 0].copy()
        mended, anew = rows.hessian(more, h), rows.hessian(coef**2 + more)
        assert np.shares_memory(mended.blocks, h.blocks) and not np.allclose(mended.blocks[:, 0, 0], first)
        assert_allclose(np.triu(mended.blocks), np.triu(anew.blocks), atol=1e-12)
        assert_allclose(mended.border, anew.border, atol=1e-12)
        assert mended.corner == pytest.approx(anew.corner)


@pytest.mark.parametrize("solver", ["sdca", "primal"])
@pytest.mark.parametrize("squared", [False, True])
@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_solutions_are_liblinears_on_explicit_features(kind: str, shared: bool, squared: bool, solver: str) -> None:
    rows, Z, y, cost = problem(kind, shared=shared)
    solution = solve(LinearProblem(rows, y, cost, Hinge(squared)), 1e-9, solver, one_task_each=kind != "soft")
    assert solution.report.converged
    primal, dual = objectives(Z, y, cost, squared, solution.w, solution.alpha)
    assert (solution.report.primal, solution.report.dual) == pytest.approx((primal, dual), rel=1e-9)
    assert primal - dual <= 1e-9 * primal * 1.001
    assert solution.alpha.min() >= 0
    assert squared or np.all(solution.alpha <= cost * (1 + 1e-12))
    theirs = LinearSVC(
        C=1.0, loss="squared_hinge" if squared else "hinge", dual=True, tol=1e-8, fit_intercept=False, max_iter=200_000
    ).fit(Z, y, sample_weight=cost)
    expected, _ = objectives(Z, y, cost, squared, theirs.coef_.ravel(), solution.alpha)
    assert primal == pytest.approx(expected, rel=1e-6)
    assert_allclose(rows.values(solution.w), theirs.decision_function(Z), atol=2e-3)


@pytest.mark.parametrize("solver", ["sdca", "primal"])
def test_rows_without_target_or_cost_take_no_part(solver: str) -> None:
    rows, _, y, cost = problem("hard")
    left_out = np.arange(rows.n) % 3 == 0
    part = LinearRows(np.ascontiguousarray(rows.X[~left_out]), 4, rows.task[~left_out], 0.7)
    expected = solve(LinearProblem(part, y[~left_out], cost[~left_out], HINGE), 1e-9, solver)
    for targets, costs in ((y * ~left_out, cost), (y, cost * ~left_out)):
        solution = solve(LinearProblem(rows, targets, costs, HINGE), 1e-9, solver)
        assert solution.report.primal == pytest.approx(expected.report.primal, rel=1e-8)
        assert not solution.alpha[left_out].any()


@pytest.mark.parametrize("solver", ["sdca", "primal"])
def test_a_task_without_rows_has_zero_weights(solver: str) -> None:
    rows, _, y, cost = problem("hard", shared=False)
    w = solve(LinearProblem(rows, y, cost, HINGE), 1e-6, solver).w
    assert not w[3 * 6 : 4 * 6].any()
    assert w[: 3 * 6].any()


def test_the_three_ways_to_a_newton_step_agree() -> None:
    for kind, d, thin in (("one", 5, False), ("hard", 5, True), ("hard", 60, False), ("hard", 60, True)):
        rows, _, y, cost = problem(kind, d=d, thin=thin)
        results = [
            newton(LinearProblem(rows, y, cost, SQUARED_HINGE), 1e-10, system=system)
            for system in ("blocks", "rows", "gradients")
        ]
        for at, report in results:
            assert report.converged
            assert_allclose(at.w, results[0][0].w, atol=1e-4)


def test_a_squared_hinge_on_wide_separable_rows_takes_few_newton_steps() -> None:
    rng = np.random.default_rng(0)
    n, d, entries = 1000, 12500, 30
    X = sparse.lil_array((n, d), dtype=np.float32)
    for i in range(n):
        X[i, rng.choice(d, entries, replace=False)] = 20.0 * rng.standard_normal(entries)  # deviations of about 1
    y = np.where(X @ rng.standard_normal(d) > 0, 1.0, -1.0)
    rows, cost = LinearRows(as_examples(X.tocsr())), np.ones(n)
    report = newton(LinearProblem(rows, y, cost, SQUARED_HINGE), 1e-3)[1]
    assert report.converged
    assert report.steps < 30  # more than a hundred if the systems are solved roughly
    expected = rows.sdca(y, cost, True, 1e-6)[2]
    assert report.primal == pytest.approx(expected.primal, rel=1e-3)


@pytest.mark.parametrize("squared", [False, True])
@pytest.mark.parametrize("kind", ["one", "hard"])
def test_a_hessian_mended_from_step_to_step_is_one_made_anew(kind: str, squared: bool) -> None:
    rows, _, y, cost = problem(kind, n=400)
    at, report = newton(LinearProblem(rows, y, cost, Hinge(squared)), 1e-10, system="blocks")
    assert report.steps > 4
    (mended, factor), anew = at.hessian(), rows.hessian(at.terms.curvature)
    assert_allclose(factor * np.triu(mended.blocks), np.triu(anew.blocks), rtol=1e-9, atol=1e-9)
    assert_allclose(factor * mended.border, anew.border, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("width", [0.0, 0.3])
def test_losses_have_the_derivatives_that_they_say(width: float) -> None:
    rng = np.random.default_rng(0)
    y, cost = np.where(rng.random(40) < 0.5, 1.0, -1.0), rng.uniform(0.5, 2.0, 40)
    y[0] = 0.0
    f, df = rng.standard_normal(40), rng.standard_normal(40)
    margins = Margins(y, cost, width)
    terms, h = margins.terms(f), 1e-6
    z = 1 - y * f
    smooth = np.where(z <= 0, 0, z**2 if width == 0 else np.where(z < width, z**2 / (2 * width), z - width / 2))
    assert terms.smooth == pytest.approx(cost[1:] @ smooth[1:])
    assert terms.loss == pytest.approx(cost[1:] @ np.maximum(z, 0)[1:])
    for t in (0.0, 0.7):
        ahead, behind = margins.terms(f + (t + h) * df), margins.terms(f + (t - h) * df)
        first, second = margins.slope(f, df, t)
        assert first == pytest.approx((ahead.smooth - behind.smooth) / (2 * h), rel=1e-5)
        assert first == pytest.approx(-margins.terms(f + t * df).coef @ df)
        assert second == pytest.approx(margins.terms(f + t * df).curvature @ df**2)


@pytest.mark.parametrize("solver", ["sdca", "primal"])
def test_a_start_changes_the_way_and_not_the_end(solver: str) -> None:
    rows, _, y, cost = problem("hard", n=400)
    before = solve(LinearProblem(rows, y, cost, HINGE), 1e-8, solver)
    cold, warm = (
        solve(LinearProblem(rows, y, 1.5 * cost, HINGE), 1e-8, solver, start=start) for start in (None, before)
    )
    assert warm.report.primal == pytest.approx(cold.report.primal, rel=1e-7)
    again = solve(LinearProblem(rows, y, cost, HINGE), 1e-8, solver, start=before)
    assert again.report.steps <= before.report.steps


def test_what_was_not_reached_is_said() -> None:
    rows, _, y, cost = problem("one", n=300)
    w, alpha, report = rows.sdca(y, 1e6 * cost, False, 1e-12, max_passes=3)
    assert not report.converged
    assert report.primal - report.dual > 1e-12 * report.primal
    _, limited = newton(LinearProblem(rows, y, 1e6 * cost, HINGE), 1e-12, system="blocks", max_steps=2)
    assert not limited.converged
    assert len(w) == rows.size
    assert alpha.max() > 0


def test_an_ill_conditioned_problem_is_left_to_newton() -> None:
    rng = np.random.default_rng(0)
    X = (rng.standard_normal((300, 20)) + 30.0).astype(np.float32)
    y = np.where(rng.random(300) < 0.5, 1.0, -1.0)
    task = rng.integers(0, 20, 300).astype(np.int32)
    rows = LinearRows(X, 20, task)
    solution: LinearSolution = solve(LinearProblem(rows, y, np.full(300, 10.0), HINGE), 1e-5)
    assert solution.report.converged
    assert solution.report.steps < 1000  # Newton steps, not steps of coordinates


def test_a_hessian_is_made_where_it_takes_no_more_memory_than_the_rows() -> None:
    task = np.repeat(np.arange(20, dtype=np.int32), 605)
    dense = np.zeros((12_100, 300), np.float32)
    dense[:, 0] = 1.0
    assert few_weights(LinearRows(dense, 20, task))
    assert not few_weights(LinearRows(as_examples(sparse.csr_array(dense)), 20, task))
    assert few_weights(LinearRows(as_examples(sparse.csr_array(dense))))
    assert not few_weights(LinearRows(dense[:12_000], 20, task[:12_000]))
    thin = as_examples(sparse.csr_array(dense))
    wide = as_examples(sparse.csr_array(np.ones((50, 300), np.float32)))
    assert small_tasks(LinearRows(dense)) and small_tasks(LinearRows(wide))
    assert not small_tasks(LinearRows(thin, 20, task))  # short rows
    assert not small_tasks(LinearRows(as_examples(sparse.csr_array(np.ones((15_000, 300), np.float32)))))  # too many


def test_rows_of_zeros_and_one_side_only() -> None:
    X = np.zeros((6, 3), np.float32)
    rows = LinearRows(X)
    for solver in ("sdca", "primal"):
        solution = solve(LinearProblem(rows, np.ones(6), np.ones(6), HINGE), 1e-6, solver)
        assert_allclose(rows.values(solution.w), 1.0, atol=1e-3)
        nobody = solve(LinearProblem(rows, np.zeros(6), np.ones(6), HINGE), 1e-6, solver)
        assert not nobody.w.any()


def test_rows_far_apart_in_memory_are_read_where_they_are() -> None:
    X = np.random.default_rng(0).standard_normal((40, 7)).astype(np.float32)
    w = np.arange(8.0)
    every = LinearRows(X[::4], bias=0.0).values(np.append(w, 0.0))
    assert_allclose(every, X[::4].astype(np.float64) @ w[:7])


def test_shapes_that_do_not_fit_are_refused() -> None:
    X = np.zeros((4, 2), np.float32)
    with pytest.raises(ValueError, match="know their rows"):
        LinearRows(X, 2)
    with pytest.raises(ValueError, match="one of the tasks"):
        LinearRows(X, 2, np.asarray([0, 1, 2, 0], np.int32))
    with pytest.raises(ValueError, match="a line a row"):
        LinearRows(X, 2, sparse.csr_array(np.ones((3, 2))))
    rows = LinearRows(X)
    with pytest.raises(ValueError, match="another size"):
        rows.values(np.zeros(3))
    with pytest.raises(ValueError, match="one value a row"):
        rows.add(np.zeros(5))
    with pytest.raises(ValueError, match="do not exist"):
        rows.values(np.zeros(4), 2, 9)
    with pytest.raises(ValueError, match="one task each"):
        LinearRows(X, 2, sparse.csr_array(np.ones((4, 2)))).hessian(np.ones(4))


def in_blocks(kind: str, step: int) -> tuple[Any, Any, np.ndarray, np.ndarray]:
    """A problem, and a function that gives it in blocks of so many rows."""
    rows, _, y, cost = problem(kind, n=300)
    cost *= 0.05

    def blocks() -> Any:
        for first in range(0, rows.n, step):
            part = slice(first, first + step)
            task = None if rows.task is None else rows.task[part]
            some = LinearRows(rows.X[part], rows.tasks, task, 0.7)
            yield DescentBlock(some, y[None, part].copy(), cost[None, part].copy(), [HINGE])

    return rows, blocks, y, cost


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("step", [300, 64])
def test_stochastic_subgradients_come_near_the_solution(kind: str, step: int) -> None:
    rows, blocks, y, cost = in_blocks(kind, step)
    best = solve(LinearProblem(rows, y, cost, HINGE), 1e-9, one_task_each=kind != "soft")
    solution = descend(blocks, 200, np.random.default_rng(0))
    (w,), (report,) = solution.weights, solution.reports
    primal = 0.5 * w @ w + cost @ np.maximum(0.0, 1.0 - y * rows.values(w))
    assert report.primal == pytest.approx(primal, rel=1e-9)
    assert best.report.primal * (1 - 1e-8) <= report.primal <= 1.01 * best.report.primal
    assert report.dual <= best.report.primal
    assert solution.support == np.count_nonzero(y * rows.values(w) < 1.0)
    again = descend(blocks, 200, np.random.default_rng(0)).weights[0]
    assert np.array_equal(w, again)
    few = descend(blocks, 2, np.random.default_rng(0)).reports[0]
    assert few.primal > report.primal


def test_stochastic_steps_skip_rows_that_take_no_part() -> None:
    rows, _, y, cost = in_blocks("one", 300)
    y[::2], cost[1::4] = 0.0, 0.0
    solution = descend(lambda: [DescentBlock(rows, y[None], cost[None], [HINGE])], 3, np.random.default_rng(0))
    assert solution.reports[0].steps == 3 * np.count_nonzero((y != 0) & (cost > 0))


def test_iterates_of_a_descent_and_their_average() -> None:
    rows, Z, y, cost = problem("hard", n=60)
    order = np.random.default_rng(0).permutation(60).astype(np.int64)
    descent = Descent(rows.size, 60.0, 5.0)
    w, total = np.zeros(rows.size), np.zeros(rows.size)
    for lap in range(2):
        descent.forget()
        total[:] = 0.0
        descent.run(rows, y, cost, order)
        for t, i in enumerate(order, 60 * lap + 1):
            eta = 1.0 / (5.0 + t)
            inside = y[i] * (Z[i] @ w) < 1
            w = (1 - eta) * w + (eta * 60.0 * cost[i] * y[i] * Z[i] if inside else 0.0)
            total += w
        assert_allclose(descent.average(), total / 60, atol=1e-9)


def shared_sets() -> list[Path]:
    """The training files of LOCALSVM_DATA."""
    folder = os.environ.get("LOCALSVM_DATA")
    files = sorted(Path(folder).glob("*.train.libsvm.xz")) if folder else []
    return files


@pytest.mark.whole
@pytest.mark.parametrize("path", shared_sets() or [None], ids=lambda path: path.name.split(".")[0] if path else "none")
def test_both_solvers_agree_on_real_sets(path: Path | None) -> None:
    if path is None:
        pytest.skip("LOCALSVM_DATA names no folder with *.libsvm.xz files")
    data = read(path)
    some = np.sort(np.random.default_rng(0).permutation(len(data.y))[:2000])
    X, last = data.X[some], np.unique(data.y)[-1]
    rows = LinearRows(thinned(scaling_of(X, "std").apply(X)))
    y, cost = np.where(data.y[some] == last, 1.0, -1.0), np.full(len(some), 0.1)
    for squared in (False, True):
        dual, primal = (
            solve(LinearProblem(rows, y, cost, Hinge(squared)), 5e-5, solver).report for solver in ("sdca", "primal")
        )
        assert dual.converged
        assert primal.converged
        assert dual.primal == pytest.approx(primal.primal, rel=1e-4)


def test_rows_without_columns() -> None:
    rows = LinearRows(np.zeros((5, 0), np.float32))
    np.testing.assert_array_equal(rows.values(np.ones(rows.size)), np.full(5, 1.0))
