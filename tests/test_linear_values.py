"""Linear methods predict values: against scikit-learn and scipy, and by the problems that they state."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command_line import invoke, usage_error
from numpy.testing import assert_allclose
from scipy import sparse
from scipy.optimize import minimize
from sklearn.svm import LinearSVR
from value_cells import noisy

import localsvm
from localsvm import load
from localsvm.data.blocks.dataset import as_examples
from localsvm.data.writers.libsvm import write
from localsvm.errors import OptionError
from localsvm.methods.linear.linear import LinearSVM
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
METHODS = [
    "linear", "kmeans-svm -K 3", "csvm -K 3 --lambda 1", "llsvm -K 4 --neighbours 2", "l3 -K 2 -L 5",
    "mtl -K 2 --shrinkage 0.1 --coupling 1", "mlsvm -K 2 --shrinkage 0.1 --covariance diag",
]  # fmt: skip


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


@pytest.mark.fast(1)
@pytest.mark.parametrize("method", METHODS)
def test_every_linear_method_learns_values(method: str, tmp_path: Any) -> None:
    (X, y), (new, truth) = noisy(400, 0), noisy(200, 1000)
    write(tmp_path / "train", X, y)
    write(tmp_path / "test", new, truth)
    options = [*f"-m {method}".split(), "--loss", "least-squares", "--force"]
    for jobs in ("1", "2"):
        invoke(
            "train", "-q", "-j", jobs, *options, "-P", "voronoi", "-c", 200, tmp_path / "train", tmp_path / f"{jobs}.h5"
        )
    assert (tmp_path / "1.h5").read_bytes() == (tmp_path / "2.h5").read_bytes()
    model = load(tmp_path / "1.h5")
    answers = np.loadtxt(invoke("predict", "-q", tmp_path / "test", tmp_path / "1.h5").stdout.splitlines())
    assert_allclose(model.predict(new), answers, rtol=1e-6)
    assert np.mean((answers - truth) ** 2) < 0.8 * np.var(truth)


def test_levels_epsilons_and_intervals() -> None:
    (X, y), (new, truth) = noisy(600, 0), noisy(600, 1000)
    regressor = localsvm.LinearSVMRegressor
    levels = regressor(loss="quantile", quantile=[0.1, 0.9], cost=10.0).fit(X, y).predict(new)
    assert np.all(levels[:, 0] <= levels[:, 1])
    inside = np.mean((levels[:, 0] <= truth) & (truth <= levels[:, 1]))
    assert 0.7 < inside < 0.9
    narrow, wide, either = (
        regressor(loss="epsilon-insensitive", epsilon=epsilon, cost=1.0).fit(X, y)
        for epsilon in ([0.01], [100.0], [0.01, 100.0])
    )
    assert_allclose(either.predict(new), narrow.predict(new), rtol=1e-12)
    assert np.ptp(wide.predict(new)) < 1e-6 < np.ptp(narrow.predict(new))
    covered = regressor(loss="absolute", coverage=0.9, cost=1.0).fit(X, y).predict_interval(new)
    assert 0.86 < np.mean((covered[:, 0] <= truth) & (truth <= covered[:, 1])) < 0.94


@pytest.mark.parametrize("solver", ["sdca", "sag"])
def test_solvers_of_classes_refuse_values(solver: str) -> None:
    with pytest.raises(OptionError, match=f"{solver}.* is for classes; values have .*primal"):
        LinearSVM(loss="huber", solver=solver)


@pytest.mark.fast(2)
@pytest.mark.parametrize(
    "loss", ["least-squares", "quantile --quantile .2,.8", "huber", "squared-epsilon-insensitive -p 1"]
)
def test_streams_come_near_the_solution(loss: str, tmp_path: Path) -> None:
    (X, y), (new, truth) = noisy(2000, 0), noisy(500, 1000)
    write(tmp_path / "train", X, y)
    options = f"-m linear --loss {loss} -C 0.001,1".split()
    models = {}
    for name, more in (("newton", []), ("sgd", ["-s", "sgd"]), ("stream", ["-s", "sgd", "--stream"])):
        invoke("train", "-q", *options, *more, tmp_path / "train", tmp_path / name)
        models[name] = load(tmp_path / name)
    best, *others = (np.mean(np.square(model.predict(new).T - truth)) for model in models.values())
    assert_allclose(others, best, rtol=0.02)
    assert_allclose(models["stream"].coef_, models["newton"].coef_, atol=0.1 * np.abs(models["newton"].coef_).max())


def test_a_stream_keeps_no_held_out_values_for_intervals(tmp_path: Path) -> None:
    write(tmp_path / "train", *noisy(100, 0))
    options = ["-m", "linear", "-s", "sgd", "--stream", "--loss", "huber", "--coverage", ".9"]
    message = usage_error("train", *options, tmp_path / "train")
    assert "keeps no held-out values, which --coverage 0.9 is made of" in message
