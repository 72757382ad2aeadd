"""Rows far from the origin, and values at the ends of float32: right answers, or errors that name the place."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from command_line import error, invoke
from edge_cases import METHODS
from scipy.optimize import minimize
from scipy.sparse import csr_array

from localsvm import estimators
from localsvm.data.blocks.dataset import REACH, Dataset, within_reach
from localsvm.data.writers.libsvm import write
from localsvm.errors import DataError, RunError
from localsvm.methods import methods
from localsvm.runs.config import TrainingConfig
from localsvm.runs.predict import LocalModel
from localsvm.runs.train import train
from localsvm.solvers._linear import LinearRows
from localsvm.solvers.centred import FarStretch
from localsvm.solvers.linear import solve
from localsvm.solvers.ml3_round import Coordinates, SortedRows
from localsvm.solvers.primal import LinearProblem
from localsvm.solvers.row_losses import HINGE, SQUARED_HINGE, Hinge
from localsvm.store.model import ModelContent, write_model

RNG = np.random.default_rng(0)
Z = RNG.normal(size=(200, 3))
Y = np.where(Z[:, 0] + 0.3 * Z[:, 1] > 0, 1.0, -1.0)


def fit(X: np.ndarray, y: np.ndarray, path: Path, method: str = "svm", scale: str = "std", **options: object) -> Path:
    config = TrainingConfig(method=methods()[method](**options), scale=scale, metric="none")
    train(Dataset(np.ascontiguousarray(X, np.float32), y.astype(float)), config, path, force=True)
    return path


# --- solvers


@pytest.mark.parametrize("loss", ["hinge", "squared"])
@pytest.mark.parametrize("solver", ["auto", "primal"])
@pytest.mark.parametrize("offset", [1e3, 1e6])
@pytest.mark.parametrize("C", [1.0, 100.0])
def test_a_linear_problem_far_from_the_origin_is_solved(offset: float, C: float, solver: str, loss: str) -> None:
    rows = LinearRows((Z + offset).astype(np.float32))
    solution = solve(LinearProblem(rows, Y, np.full(200, C), Hinge(loss == "squared")), 1e-3, solver)
    report = solution.report
    assert report.converged and report.primal - report.dual <= 1e-3 * report.primal
    slack = np.maximum(0.0, 1.0 - Y * rows.values(solution.w))
    again = 0.5 * solution.w @ solution.w + C * (slack**2 if loss == "squared" else slack).sum()
    assert again == pytest.approx(report.primal, rel=1e-6)


@pytest.mark.parametrize(("offset", "far"), [(0.0, False), (1e6, True)])
def test_rows_are_far_from_the_origin_or_not_whatever_their_shares_in_tasks(offset: float, far: bool) -> None:
    """Shares in tasks, of which LLE has negative ones, do not decide whether rows are far from the origin."""
    shares = RNG.normal(size=(200, 2))
    shares[:, 1] = 1.0 - shares[:, 0]
    shares[:, 0] -= shares[:, 0].mean() + 0.01
    rows = LinearRows((Z + offset).astype(np.float32), 2, csr_array(shares), shared_bias=False)
    stretch = FarStretch.of(rows)
    assert (stretch is not None) == far
    if stretch is not None:
        np.testing.assert_allclose(stretch.length, 1e6 * 3**0.5, rtol=1e-5)
    report = solve(LinearProblem(rows, Y, np.full(200, 1.0), HINGE), 1e-3, "auto").report
    assert report.converged


def test_the_solution_far_from_the_origin_is_that_of_scipy() -> None:
    X = (Z + 1e4).astype(np.float32)
    solution = solve(LinearProblem(LinearRows(X), Y, np.full(200, 1.0), SQUARED_HINGE), 1e-6, "primal")
    mean = X.mean(axis=0, dtype=np.float64)
    A = X.astype(np.float64) - mean

    def objective(v: np.ndarray) -> float:  # the same problem by (w, w . mean + b), which scipy can solve
        w, middle = v[:3], v[3] * 1.0
        slack = np.maximum(0.0, 1.0 - Y * (A @ w + middle))
        return float(0.5 * w @ w + 0.5 * (middle - w @ mean) ** 2 + (slack**2).sum())

    best = minimize(objective, np.zeros(4), method="Powell", options={"xtol": 1e-12, "ftol": 1e-14, "maxiter": 20000})
    assert solution.report.primal <= best.fun * (1 + 1e-5)


@pytest.mark.parametrize("offset", [1e6, 1e8])
def test_coordinates_of_ml3_where_the_moment_is_singular(offset: float) -> None:
    X, codes = (Z + offset).astype(np.float32), (Y > 0).astype(np.int32)
    metric = Coordinates.of(SortedRows.sorted_by_class(X, codes, np.ones(200)), 1e-3)
    W = RNG.normal(size=(4, 4))
    assert np.isfinite(metric.root).all()
    np.testing.assert_allclose(metric.weights(metric.coordinates(W)), W, rtol=1e-3, atol=1e-3 * offset)


def test_a_column_far_from_zero_is_told(tmp_path: Path) -> None:
    write(tmp_path / "far", (Z + np.asarray([1e4, 0, 0])).astype(np.float32), Y)
    given = ("train", "-m", "linear", "-C", 1, tmp_path / "far", tmp_path / "m.h5", "--force")
    note = "note: 1 feature is 100 deviations or more away from 0, nearly constant to this method; --scale zscore moves"
    assert note in invoke(*given).stderr
    assert "--scale zscore" in invoke(*given, "-s", "sgd", "--stream").stderr
    assert "--scale zscore" in invoke("cv", "-m", "linear", "-C", 1, tmp_path / "far").stderr
    differences = ("-m", "l3", "--projection", "rbf", "-g", 1)
    streamed = (*differences, "-s", "sgd", "--stream")
    for quiet in (("-q",), ("--scale", "zscore"), ("-m", "svm", "-g", 1), differences, streamed):
        assert "--scale zscore" not in invoke(*given, *quiet).stderr


def test_a_column_far_from_zero_is_a_warning_of_the_classifiers(capsys: pytest.CaptureFixture[str]) -> None:
    X = (Z + np.asarray([1e4, 0, 0])).astype(np.float32)
    for verbose in (False, True):
        model = estimators.LinearSVMClassifier(cost=1.0, verbose=verbose)
        with pytest.warns(
            UserWarning, match="^1 feature is 100 deviations or more away from 0.*; scale='zscore' moves"
        ):
            model.fit(X, Y)
        assert "note" not in capsys.readouterr().err
    for kind in (estimators.LinearSVMClassifier(cost=1.0, scale="zscore"), estimators.LocalSVC(gamma=1.0, cost=1.0)):
        kind.fit(X, Y)  # a warning is an error


# --- what is not finite


def test_a_model_with_a_number_that_is_not_finite_is_not_written(tmp_path: Path) -> None:
    cell = {"weights": np.ones(3), "model_fall": np.asarray([np.nan])}
    good = ModelContent({}, np.arange(2.0), ("none", {}), ("none", {}))
    write_model(tmp_path / "good.h5", good, [cell, cell], 2)
    scaled = replace(good, scaling=("std", {"factor": np.asarray([np.inf], np.float32)}))
    for content, cells, message in (
        (good, [cell, cell | {"weights": np.asarray([1.0, np.nan, 1.0])}], "cell 1: weights"),
        (good, [cell | {"weights": np.asarray([np.inf, 1.0, 1.0])}, cell], "cell 0: weights"),
        (scaled, [cell, cell], "the scaling: factor"),
    ):
        with pytest.raises(RunError, match=message):
            write_model(tmp_path / "m.h5", content, cells, 2)
    assert [path.name for path in tmp_path.iterdir()] == ["good.h5"]


@pytest.mark.fast(6)
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("value", [3e38, -3e38, 1e20, 1e30])
def test_labels_of_huge_rows(method: str, value: float, tmp_path: Path) -> None:
    """Huge rows get a finite decision value, or an error that names the row."""
    options: dict[str, object] = {} if method == "svml" else {"cost": (1.0,)}
    options |= {"gamma": (0.5,)} if method in ("svm", "rbf", "lasvm", "l3-kernel") else {}
    clustered = ("l3", "l3-kernel", "kmeans-svm", "csvm", "llsvm", "mtl", "mlsvm")
    options |= {"clusters": (2.0,)} if method in clustered else {}
    options |= {"shrinkage": (0.1,)} if method in ("mtl", "mlsvm") else {}
    path = fit(0.01 * Z, Y, tmp_path / "m.h5", method, **options)
    X = np.concatenate([Z[:4], [[value, 0, 0], [value, -value, value]], Z[:4]]).astype(np.float32)
    with LocalModel(path) as model:
        try:
            values = model.decision_function(X)
        except DataError as refusal:
            assert str(refusal).startswith(("row 5: no label", "row 6: no label"))
            values = model.decision_function(np.delete(X, [4, 5], axis=0))
            assert method not in ("svm", "rbf", "lasvm", "linear", "svml") or abs(value) > 1e37
    assert np.isfinite(values).all()


def test_a_gaussian_of_a_huge_row_is_zero(tmp_path: Path) -> None:
    with LocalModel(fit(Z, Y, tmp_path / "m.h5", gamma=(0.5,), cost=(1.0,))) as model:
        rows = np.asarray([[1e6, 0, 0], [3e38, 0, 0], [-3e38, 3e38, 3e38]], np.float32)
        assert (np.abs(model.decision_function(rows)) < 1e-30).all()  # without an offset


def test_the_row_of_a_file_is_named(tmp_path: Path) -> None:
    fit(0.01 * Z, Y, tmp_path / "m.h5", "linear", cost=(1.0,))
    lines = ["1 1:1 2:1"] * 70_000  # several blocks
    lines[69_998] = "1 1:3e38 2:-3e38"
    (tmp_path / "test").write_text("\n".join(lines))
    message = error("predict", "-j", 2, tmp_path / "test", tmp_path / "m.h5", tmp_path / "out")
    assert message.startswith("row 69999: no label, as its decision value is not a finite number")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("scale", ["none", "std", "zscore", "minmax", "row"])
@pytest.mark.parametrize("method", ["svm", "linear", "ml3"])
def test_training_on_huge_values(scale: str, method: str, tmp_path: Path) -> None:
    options = {"gamma": (0.5,)} if method == "svm" else {}
    given = (1e37 * Z, Y, tmp_path / "m.h5", method, scale)
    if scale == "none":
        with pytest.raises(DataError, match="--scale std"):
            fit(*given, cost=(1.0,), **options)
    else:
        fit(*given, cost=(1.0,), **options)


def test_rows_within_reach() -> None:
    X = np.asarray([[1, 2], [3e38, -1.5e38], [np.inf, 5], [np.nan, 1], [0, 0]], np.float32)
    moved, lost = within_reach(X)
    np.testing.assert_allclose(moved, [[1, 2], [REACH, -REACH / 2], [REACH, 0], [0, 0], [0, 0]], rtol=1e-6)
    assert lost is not None and lost.tolist() == [False, False, False, True, False]
    assert within_reach(X[:1])[0] is not None and within_reach(X[:1])[1] is None


@pytest.mark.parametrize("method", ["linear", "kmeans-svm", "l3", "csvm", "llsvm", "mtl"])
def test_linear_methods_end_with_a_model_far_from_the_origin(method: str, tmp_path: Path) -> None:
    clusters = {} if method == "linear" else {"clusters": (2.0,)}
    path = fit(Z + 1e6, Y, tmp_path / "m.h5", method, cost=(1.0,), **clusters)
    with LocalModel(path) as model:  # l3 makes products of rows and landmarks, which are lost in float32
        right = (model.predict((Z + 1e6).astype(np.float32)) == Y).mean()
    assert right > (0.5 if method == "l3" else 0.7)


@pytest.mark.parametrize("method", ["l3", "linear", "ml3"])
def test_time_stamps(method: str, tmp_path: Path) -> None:
    t = 1.6e9 + 3600.0 * np.arange(200)[:, None]
    clusters = {"clusters": (2.0,)} if method == "l3" else {}
    fit(t, np.where(np.arange(200) < 100, -1, 1), tmp_path / "m.h5", method, cost=(1.0,), **clusters)
