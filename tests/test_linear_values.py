"""Linear methods and mixtures predict values: in cells, by levels and epsilons, and on files read in passes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command_line import invoke, usage_error
from numpy.testing import assert_allclose
from value_cells import noisy

import localsvm
from localsvm import load
from localsvm.data.writers.libsvm import write
from localsvm.errors import OptionError
from localsvm.methods.linear.linear import LinearSVM

METHODS = [
    "linear", "kmeans-svm -K 3", "csvm -K 3 --lambda 1", "llsvm -K 4 --neighbours 2", "l3 -K 2 -L 5",
    "mtl -K 2 --shrinkage 0.1 --coupling 1", "mlsvm -K 2 --shrinkage 0.1 --covariance diag",
]  # fmt: skip


@pytest.mark.whole
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
    assert_allclose(others, best, rtol=0.05)
    assert_allclose(models["stream"].coef_, models["newton"].coef_, atol=0.1 * np.abs(models["newton"].coef_).max())


def test_a_stream_keeps_no_held_out_values_for_intervals(tmp_path: Path) -> None:
    write(tmp_path / "train", *noisy(100, 0))
    options = ["-m", "linear", "-s", "sgd", "--stream", "--loss", "huber", "--coverage", ".9"]
    message = usage_error("train", *options, tmp_path / "train")
    assert "keeps no held-out values, which --coverage 0.9 is made of" in message


def test_scores_that_are_not_known_are_told(tmp_path: Path) -> None:
    """Squares of a test value may overflow, and a prediction may be all right: there is no share of nothing."""
    (tmp_path / "train").write_text("".join(f"{i >= 50:d} 1:{(i - 50) / 10}\n" for i in range(100)))
    (tmp_path / "high").write_text("".join(f"1 1:{20 + i}\n" for i in range(30)))
    (tmp_path / "huge").write_text("1e300 1:1\n0 1:-1\n")
    levels = ["-q", "-m", "linear", "--loss", "expectile", "--quantile", ".2,.8", "-C", "100"]
    invoke("train", *levels, tmp_path / "train", tmp_path / "levels.h5")
    files = tmp_path / "high", tmp_path / "levels.h5", tmp_path / "out"
    done = invoke("predict", "--report", tmp_path / "report", *files)
    assert "Mean expectile loss at 0.8 = 0 " in done.stderr and (tmp_path / "report" / "reliability.png").exists()
    invoke("train", "-q", "-m", "linear", "--loss", "huber", "-C", 1, tmp_path / "train", tmp_path / "huber.h5")
    done = invoke("predict", tmp_path / "huge", tmp_path / "huber.h5", tmp_path / "out2")
    assert "Mean squared error = nan (regression)" in done.stderr
