"""The linear trend of values: its slope against scikit-learn, models with one, and what is refused."""

from __future__ import annotations

import json
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from command_line import PLAIN, invoke, usage_error
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import QuantileRegressor, Ridge
from value_cells import cell_of_values, examples, target_of

from localsvm import LocalSVC, LocalSVR, load
from localsvm.data.writers.libsvm import write
from localsvm.errors import OptionError
from localsvm.methods.base import WHOLE, Purpose, View
from localsvm.methods.cell import Job
from localsvm.methods.cell_size import CellSize
from localsvm.methods.kernel.svm import KernelSVM
from localsvm.methods.kernel.systems import trend as trends
from localsvm.methods.kernel.systems.trend import Trend
from localsvm.selection.cross_validation import CellSelection
from localsvm.selection.search import Search
from localsvm.targets.loss_names import EXPECTILE, LEAST_SQUARES, LOSSES, QUANTILE
from localsvm.targets.losses import Loss

POINT: dict[str, Any] = {"gamma": 0.3, "cost": 10.0, "metric": "none", "scale": "none"}


def ridge_of(X: np.ndarray, y: np.ndarray, weight: np.ndarray | None = None) -> Ridge:
    """The ridge regression whose slope a trend has: docs/values.md."""
    weight = np.ones(len(y)) if weight is None else weight
    share_of_spread = max(1e-3, X.shape[1] / (32.0 * max(weight.sum(), np.count_nonzero(weight))))
    share = weight / weight.sum()
    spread = float(np.square(X - share @ X).T @ share @ np.ones(X.shape[1]))
    return Ridge(alpha=share_of_spread * spread * weight.sum()).fit(X, y, sample_weight=weight)


def sloping(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows, the first column of which has a long tail, and values that follow it."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 3)).astype(np.float32)
    X[:, 0] = rng.exponential(1.0, n) ** 2
    return X, 4.0 * X[:, 0] + np.sin(2.0 * X[:, 1]) + 0.1 * rng.standard_normal(n)


@pytest.mark.parametrize("n", [20, 400])
def test_a_row_of_weight_2_is_two_rows(n: int) -> None:
    """Of few and of many rows; those without a weight do not count."""
    X, y = sloping(2 * n, seed=3)
    weight = np.random.default_rng(4).permutation(np.repeat([0.0, 2.0], n))
    cell = cell_of_values(X, y, weight=weight)
    twice = np.repeat(np.arange(2 * n), cell.weight.astype(np.int64))
    expected = ridge_of(np.asarray(cell.X, np.float64)[twice], cell.Y[twice, 0])
    assert_allclose(Trend(cell).slope(WHOLE), expected.coef_, rtol=1e-6, atol=1e-9)


def test_small_weights_make_no_small_slope() -> None:
    X, y = sloping(60, seed=3)
    ones, small = (Trend(cell_of_values(X, y, weight=np.full(60, unit))).slope(WHOLE) for unit in (1.0, 1.0 / 60.0))
    assert_allclose(small, ones, rtol=1e-9)


def test_the_slope_of_few_rows_with_many_columns_does_not_follow_their_noise() -> None:
    """Where values are noise alone, what it adds to fresh rows is less than half of what least squares would."""
    added = []
    for seed in range(10):
        rng = np.random.default_rng(seed)
        X, y, fresh = (
            rng.standard_normal((60, 40)).astype(np.float32),
            rng.standard_normal(60),
            rng.standard_normal((500, 40)),
        )
        cell = cell_of_values(X, y)
        exact = np.linalg.lstsq(np.column_stack([cell.X, np.ones(60)]), cell.Y[:, 0], rcond=None)[0][:-1]
        added.append([np.var(fresh @ slope) for slope in (Trend(cell).slope(WHOLE), exact)])
    ours, plain = np.mean(added, axis=0)
    assert ours < 0.5 * plain


@pytest.mark.parametrize("sparsely", [False, True])
@pytest.mark.parametrize("shift", [0.0, 5000.0])
def test_slopes_are_those_of_ridge_regression(shift: float, sparsely: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without each fold, with weights, block by block, and of columns far from 0."""
    monkeypatch.setattr(trends, "BLOCK", 3 * 7)
    X, y = examples(120)
    X[:, 1] *= 0.0  # a column of one value
    X += np.float32(shift)
    weight = np.random.default_rng(1).choice([0.5, 1.0, 3.0], 120)
    cell = cell_of_values(X, y, weight=weight)
    if sparsely:
        object.__setattr__(cell, "X", sparse.csr_array(cell.X))
    trend = Trend(cell)
    rows = np.asarray(cell.X.todense() if sparsely else cell.X, np.float64)
    for fold in (WHOLE, 0, 3):
        some = cell.folds != fold
        expected = ridge_of(rows[some], cell.Y[some, 0], cell.weight[some])
        assert_allclose(trend.slope(fold), expected.coef_, rtol=1e-7, atol=1e-10)
        assert_allclose(trend.products(fold), rows @ expected.coef_, rtol=1e-7, atol=1e-6)


def test_rows_of_one_point_have_no_slope() -> None:
    """Nor have those that are left without a fold, where rounding leaves what looks like a variance."""
    cell = cell_of_values(np.full((20, 3), 7.0, np.float32), np.arange(20.0))
    assert_array_equal(Trend(cell).slope(WHOLE), np.zeros(3))
    for seed in range(20):
        rng = np.random.default_rng(seed)
        X = np.full((30, 1), rng.standard_normal(), np.float32)
        X[int(rng.integers(30))] = rng.standard_normal()
        cell = cell_of_values(X, rng.standard_normal(30))
        trend, other = Trend(cell), cell.folds[cell.X[:, 0] != np.median(cell.X)]
        assert [fold for fold in range(4) if not trend.slope(fold).any()] == other.tolist()


def test_an_outlier_costs_only_its_own_fold_the_digits() -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 2)).astype(np.float32)
    X[0, 0] = 1e10
    cell = cell_of_values(X, X[:, 1] + 0.0)
    trend, own = Trend(cell), int(cell.folds[np.argmax(cell.X[:, 0])])
    some = cell.folds != own
    assert_allclose(trend.slope(own), ridge_of(cell.X[some].astype(np.float64), cell.Y[some, 0]).coef_, rtol=1e-6)


def test_a_row_far_from_all_others_does_not_turn_a_robust_slope() -> None:
    """Values that are not far are taken as they are."""
    X, y = examples(200)
    plain = Trend(cell_of_values(X, y, folds=4)).slope(WHOLE)
    assert_array_equal(Trend(cell_of_values(X, y, folds=4), robust=True).slope(WHOLE), plain)
    cell = cell_of_values(X, np.append(1e6, y[1:]), folds=4)
    unit = cell.target.unit / target_of(y).unit
    size = np.abs(plain).max()
    assert np.abs(unit * Trend(cell, robust=True).slope(WHOLE) - plain).max() < size
    assert np.abs(unit * Trend(cell).slope(WHOLE) - plain).max() > 100.0 * size


def test_a_slope_that_float32_cannot_hold_is_none() -> None:
    X, y = examples(60)
    model = LocalSVR(**POINT).fit(X * np.float32(1e-40), y)
    assert_allclose(model.predict(X * np.float32(1e-40)), y.mean(), rtol=1e-6)


@pytest.mark.parametrize("kernel", ["gaussian", "manhattan"])
@pytest.mark.parametrize("sparsely", [False, True])
def test_a_model_is_the_line_and_kernel_ridge_regression_of_what_it_leaves(sparsely: bool, kernel: str) -> None:
    X, y = examples(150)
    test, _ = examples(100, seed=1)
    given = sparse.csr_array if sparsely else np.asarray
    model = LocalSVR(kernel=kernel, tolerance=1e-7, **POINT).fit(given(X), y)
    line = ridge_of(X, y)
    left = y - line.predict(X)
    name = "rbf" if kernel == "gaussian" else "laplacian"  # scikit-learn's is of the Manhattan distance
    ridge = KernelRidge(kernel=name, gamma=0.3, alpha=0.05).fit(X, left)
    expected = (line.predict(test) + ridge.predict(test)).clip(y.min(), y.max())
    assert_allclose(model.predict(given(test)), expected, atol=2e-3)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.fast(len(LOSSES))
def test_every_loss_goes_on_along_its_line(loss: str) -> None:
    """Of a long tail, rows beyond those of training are predicted by the slope; a constant knows nothing of them."""
    X, y = sloping(300, 0)
    known = y < 40.0
    test = np.asarray([[8.0, 0.0, 0.0]], np.float32)
    found = {}
    for trend in ("linear", "constant"):
        model = LocalSVR(loss=loss, trend=trend, gamma=1.0, cost=10.0, metric="none", scale="none")
        found[trend] = float(model.fit(X[known], y[known]).predict(test)[0])
    assert abs(found["linear"] - 32.0) < 4.0 < abs(found["constant"] - 32.0)


def test_cells_and_folds_have_lines_of_their_own(tmp_path: Path) -> None:
    """Held-out values are those of models without the rows of the fold, and the file keeps a slope for each model."""
    X, y = sloping(400, 1)
    write(tmp_path / "train", X, y)
    given = ("--loss", "least-squares", "-P", "voronoi", "-c", 150, "-g", "0.1,1", "-C", "1,30", "--seed", 4, *PLAIN)
    done = invoke("train", *given, "--select", "vote", "-v", 3, tmp_path / "train", tmp_path / "m.h5")
    assert "all converged" in done.stderr
    with h5py.File(tmp_path / "m.h5") as file:
        slopes, folds = file["cells/model_slope"][:], file["cells/model_fold"][:]
    assert len(np.unique(slopes, axis=0)) == len(folds) > 3 and set(folds) == {0, 1, 2}
    invoke("train", *given, "--select", "vote", "-v", 3, "-j", 2, tmp_path / "train", tmp_path / "again.h5")
    assert (tmp_path / "m.h5").read_bytes() == (tmp_path / "again.h5").read_bytes()
    invoke("predict", "-q", tmp_path / "train", tmp_path / "m.h5", tmp_path / "all")
    lines = (tmp_path / "train").read_text().splitlines(keepends=True)
    (tmp_path / "some").write_text("".join(lines[100:107]))
    invoke("predict", "-q", tmp_path / "some", tmp_path / "m.h5", tmp_path / "few")
    assert (tmp_path / "all").read_text().splitlines()[100:107] == (tmp_path / "few").read_text().splitlines()


@pytest.mark.parametrize("loss", [LEAST_SQUARES, EXPECTILE])
def test_held_out_values_are_those_of_models_without_the_fold(loss: str) -> None:
    """The slope, too, is without the rows of the fold. Expectiles at 0.5 are means, found by another solver."""
    X, y = sloping(200, 2)
    cell = cell_of_values(X, y, losses=(Loss(loss),))
    method = KernelSVM(loss=loss, trend="linear", tolerance=1e-7)
    system = method.prepare(cell, View()).at({"gamma": 0.3}, Purpose(10.0))
    jobs = [Job(0, fold, np.asarray([2.0, 10.0])) for fold in range(cell.n_folds)]
    values = np.full((2, 1, 200), np.nan)
    system.held_out(jobs, system.solve(jobs, [None] * len(jobs), 1.0), values)
    for fold in range(cell.n_folds):
        some, held = cell.folds != fold, cell.folds == fold
        line = ridge_of(cell.X[some], cell.Y[some, 0])
        for found, cost in zip(values[:, 0], (2.0, 10.0), strict=True):
            # half a squared loss is that of an expectile at 0.5
            alpha = (0.5 if loss == LEAST_SQUARES else 1.0) / cost
            ridge = KernelRidge(kernel="rbf", gamma=0.3, alpha=alpha)
            ridge.fit(cell.X[some], cell.Y[some, 0] - line.predict(cell.X[some]))
            assert_allclose(found[held], line.predict(cell.X[held]) + ridge.predict(cell.X[held]), atol=2e-3)


def test_the_trend_is_settled_by_the_rows_and_kept_in_the_file(tmp_path: Path) -> None:
    """Linear for values of up to 256 columns; files of classes have no word of it."""
    of_values = KernelSVM(loss="least-squares")
    assert of_values.seeing(256).trend == "linear" and of_values.seeing(257).trend == "constant"
    assert KernelSVM(loss="least-squares", kernel="linear").seeing(3).trend == "linear"
    assert KernelSVM(loss="least-squares", trend="linear").seeing(1000).sloped
    assert not KernelSVM(loss="least-squares").sloped  # a file without the word is from before there was a trend
    X, y = examples(60)
    for model, kept in (
        (LocalSVR(**POINT), "linear"),
        (LocalSVR(trend="constant", **POINT), "constant"),
        (LocalSVC(**POINT), None),
    ):
        path = tmp_path / f"{kept}.h5"
        model.fit(X, y > 40.0 if kept is None else y).save(path)
        with h5py.File(path) as file:
            assert json.loads(file.attrs["config"])["method"].get("trend") == kept
        assert_array_equal(load(path).predict(X), model.predict(X))


def test_the_columns_that_count_are_those_of_a_member(tmp_path: Path) -> None:
    """Six members of 60 columns have 360 together."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((150, 60)).astype(np.float32)
    y = X[:, 0] * 2.0 + np.sin(X[:, 1]) + 0.1 * rng.standard_normal(150)
    model = LocalSVR(metric="auto", repeats=3, gamma=1.0, cost=10.0).fit(X, y)
    model.save(tmp_path / "m.h5")
    with h5py.File(tmp_path / "m.h5") as file:
        config = json.loads(file.attrs["config"])
        assert config["method"]["trend"] == "linear" and file["cells/model_slope"].shape[1] <= 120


def test_wide_sparse_rows_with_a_trend_count_their_columns() -> None:
    """The memory of a cell's moments grows with all columns, however few have a value."""
    method = KernelSVM(loss="least-squares", trend="linear")
    size = CellSize(100, 20, 1.0, 5, 0, columns=30_000, entries=2000, dense=False)
    assert method.memory(size) > 8 * 30_000**2 > method.memory(replace(size, columns=20))


def test_a_trend_of_classes_is_refused(tmp_path: Path) -> None:
    write(tmp_path / "train", *examples(60))
    message = usage_error("train", "--trend", "linear", tmp_path / "train", tmp_path / "m.h5")
    given = "--trend linear is for losses of values, as --loss least-squares, and for --loss squared-error"
    assert f"{given}; give one of them, or leave it out" in message
    with pytest.raises(OptionError, match="losses of values"):
        KernelSVM(trend="linear")


# the linear kernel


def of_lines(n: int, seed: int, offset: float) -> tuple[np.ndarray, np.ndarray]:
    """Rows far from 0, and values whose spread follows the first column."""
    rng = np.random.default_rng(seed)
    X = offset + rng.standard_normal((n, 3)).astype(np.float32)
    return X, X @ [1.0, 2.0, -1.0] + (0.2 + np.abs(X[:, 0] - offset)) * rng.standard_normal(n)


@pytest.mark.fast(2)
@pytest.mark.parametrize(
    ("kind", "trend", "offset"),
    [("dense", "linear", 30.0), ("dense", "constant", 0.5), ("sparse", "linear", 0.5), ("sparse", "constant", 0.5)],
)
@pytest.mark.parametrize("loss", [LEAST_SQUARES, QUANTILE])
def test_a_linear_kernel_has_the_line_of_scikit_learn(
    loss: str, kind: str, trend: str, offset: float, tmp_path: Path
) -> None:
    """Its constant is as free as its slope: a quantile has its own, and rows far from 0 need one."""
    X, y = of_lines(300, 0, offset)
    line = Ridge(1e-6) if loss == LEAST_SQUARES else QuantileRegressor(quantile=0.9, alpha=0.0)
    given = {"kernel": "linear", "cost": 1e3, "gamma": 1.0, "metric": "none", "tolerance": 1e-4, "trend": trend}
    model = LocalSVR(loss=loss, quantile=(0.9,) if loss == QUANTILE else None, **given)
    rows = sparse.csr_array(X) if kind == "sparse" else X
    model.fit(rows, y).save(tmp_path / "m.h5")
    expected = line.fit(X, y).predict(X)
    assert_allclose(load(tmp_path / "m.h5").predict(rows), np.clip(expected, y.min(), y.max()), atol=0.06)
    with h5py.File(tmp_path / "m.h5") as file:
        assert (len(file["cells/coef"]) == 0) == (trend == "linear")  # a line needs no rows


def test_a_line_keeps_its_digits_far_from_0() -> None:
    rng = np.random.default_rng(0)
    X = 1e6 + np.round(20.0 * rng.standard_normal((300, 3)))  # exact in float32
    y = (X - 1e6) @ [1.0, 2.0, -1.0]
    with pytest.warns(UserWarning, match="zscore"), warnings.catch_warnings():
        # a gap of next to nothing is within the tolerance, or not, by the processor's rounding
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = LocalSVR(kernel="linear", metric="none", scale="none").fit(X, y)
    assert_allclose(model.predict(X), y, atol=1e-5 * y.std())


def test_held_out_values_of_a_linear_kernel_are_those_of_its_models() -> None:
    X, y = of_lines(90, 1, 30.0)
    cell = cell_of_values(X, y, losses=(Loss(QUANTILE, 0.8), Loss(QUANTILE, 0.2)))
    method = KernelSVM(loss=QUANTILE, kernel="linear", quantile=(0.2, 0.8), cost=(1.0,), tolerance=1e-6, trend="linear")
    selection = CellSelection(method, cell, method.grid(cell, float(len(y)), cell.n_folds))
    scores = selection.search(Search("full"))
    rough, sharp = (
        np.concatenate([p.kept.values for p in each.picks if p.kept is not None and p.kept.values is not None])
        for each in (scores, selection.sharpened(scores))
    )
    assert rough.shape == (2, 90)
    assert_allclose(cell.target.bounded(rough.T), sharp.T, atol=0.02)
