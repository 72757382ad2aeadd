"""SVML: its gradients against differences, its Newton solver against LIBSVM, and the method with both kernels."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from command_line import invoke
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from selecting import fit, score
from sklearn.metrics.pairwise import laplacian_kernel
from sklearn.svm import SVC
from threadpoolctl import threadpool_limits

from localsvm.data.blocks.dataset import Dataset, as_examples
from localsvm.data.writers.libsvm import write
from localsvm.errors import OptionError
from localsvm.methods.cell import Cell
from localsvm.methods.cell_size import CellSize
from localsvm.methods.kernel.svml import MOST_COLUMNS, SVML
from localsvm.representations.svm_kernels import GAUSSIAN, MAP_KERNELS
from localsvm.representations.svm_metric import MOST_ROWS, Objective, ProblemRows, first_map, learn, split
from localsvm.runs.config import TrainingConfig
from localsvm.runs.predict import LocalModel
from localsvm.runs.train import train
from localsvm.solvers import squared_hinge
from localsvm.solvers.squared_hinge import Bordered, Cholesky, solve
from localsvm.targets.classification import Classification


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Limit numpy to one thread, as in a run; on small matrices more of them wait for each other."""
    with threadpool_limits(1):
        yield


FORMS = ("full", "diag", "sphere", "rank:2")
MANHATTAN = SVML(kernel="manhattan")
METHODS = [*(SVML(form=form) for form in FORMS), MANHATTAN]
of_each_kind = pytest.mark.parametrize("method", METHODS, ids=lambda method: f"{method.kernel}-{method.form}")


def examples(n: int, columns: int = 4, seed: int = 0) -> ProblemRows:
    """Rows whose labels are the sign of a product of two columns, with noise; the other columns say nothing."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, columns))
    return ProblemRows(X, np.sign(X[:, 0] * X[:, 1] + 0.2 * rng.standard_normal(n)), rng.uniform(0.5, 2.0, n))


def problem(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A kernel, labels and costs."""
    rows = examples(n, seed=seed)
    return GAUSSIAN.values(rows.X, rows.X), rows.y, 3.0 * rows.weight


def cell_of(rows: ProblemRows, folds: int = 4, y: np.ndarray | None = None) -> Cell:
    y, n = rows.y if y is None else y, len(rows.y)
    return Cell(
        rows.X.astype(np.float32), y, Classification(np.unique(y), "ova"), np.ones(n), np.ones(n),
        np.sort(np.arange(n) % folds),
    )  # fmt: skip


@of_each_kind
def test_gradients_are_central_differences(method: SVML) -> None:
    train_rows, validation, kernel = examples(60), examples(40, seed=1), MAP_KERNELS[method.kernel]
    L0 = kernel.of_map(2.0 * first_map(method.form, 2, train_rows.X, 4))
    objective = Objective(train_rows, validation, L0, 0.1, kernel)
    rng = np.random.default_rng(2)
    point = np.append(L0 + 0.05 * rng.standard_normal(L0.shape), 0.3)
    _, gradient = objective(point)
    steps = 1e-5 * np.eye(len(point))
    differences = np.asarray([(objective(point + e)[0] - objective(point - e)[0]) / 2e-5 for e in steps])
    assert np.abs(gradient).max() > 0.01
    assert np.abs(gradient - differences).max() <= 1e-6 * np.abs(gradient).max()


@pytest.mark.parametrize("n", [40, 150])
def test_newton_is_a_hard_margin_svm_with_a_ridge(n: int) -> None:
    K, y, cost = problem(n)
    solution = solve(K, y, cost)
    ridged = K + np.diag(1.0 / cost)
    theirs = SVC(kernel="precomputed", C=1e8, tol=1e-9).fit(ridged, y)
    coef = np.zeros(n)
    coef[theirs.support_] = theirs.dual_coef_[0]
    assert_allclose(solution.coef, coef, atol=1e-5)
    assert solution.bias == pytest.approx(theirs.intercept_[0], abs=1e-5)
    assert_allclose(solution.values, K @ solution.coef + solution.bias, atol=1e-10)
    assert solution.converged and 0.0 <= solution.gap(y, cost) + 1e-12 < 1e-10


def test_newton_finds_the_same_from_any_start() -> None:
    K, y, cost = problem(1200)  # so many begin with a quarter of the rows
    cold = solve(K, y, cost)
    zero = (np.zeros(len(y)), 0.0)
    far = (np.random.default_rng(3).standard_normal(len(y)), 5.0)
    empty = (np.zeros(len(y)) + 1e3 * np.linalg.solve(K + 1e-6 * np.eye(len(y)), y), 0.0)  # no row inside the margin
    for start in (zero, far, empty):
        assert_allclose(solve(K, y, cost, start).values, cold.values, atol=1e-8)
    assert np.all(y * (K @ empty[0]) >= 1.0)


@pytest.mark.parametrize(("gone", "new"), [([], []), ([3, 30], []), ([], [0, 99]), ([5, 47], [1, 20, 51, 98])])
def test_a_bordered_factor_solves_the_system_of_another_support(gone: list[int], new: list[int]) -> None:
    K, _, cost = problem(100)
    before = np.setdiff1d(np.arange(2, 90), [20, 51])
    support = np.union1d(np.setdiff1d(before, gone), new).astype(np.intp)
    factor = Cholesky(K, before, 1.0 / cost[before]).bordered(K, support, 1.0 / cost[support])
    right = np.random.default_rng(4).standard_normal(len(support))
    x, m = factor.solve(right, 0.5)
    R = K[np.ix_(support, support)] + np.diag(1.0 / cost[support])
    assert_allclose(R @ x + m, right, atol=1e-10)
    assert x.sum() == pytest.approx(0.5, abs=1e-10)


def test_a_factor_serves_few_changes_and_no_small_ridge(monkeypatch: pytest.MonkeyPatch) -> None:
    K, _, _ = problem(100)
    monkeypatch.setattr(squared_hinge, "MANY", 10)
    support = np.arange(90)
    served = {ridge: Cholesky(K, support, np.full(90, ridge)).serves(support[1:]) for ridge in (1e-7, 1e-4)}
    assert served == {1e-7: False, 1e-4: True}
    factor = Cholesky(K, support, np.ones(90))
    assert not factor.serves(support[20:])
    assert factor.bordered(K, support, np.ones(90)) is factor


def test_newton_finds_the_same_with_borders(monkeypatch: pytest.MonkeyPatch) -> None:
    K, y, cost = problem(400)
    plain = solve(K, y, cost)
    borders = []
    monkeypatch.setattr(squared_hinge, "MANY", 10)
    monkeypatch.setattr(squared_hinge, "Bordered", lambda *given: borders.append(given) or Bordered(*given))
    solution = solve(K, y, cost)
    assert borders and isinstance(solution.factor, Bordered)
    assert_allclose(solution.coef, plain.coef, atol=1e-9)
    assert_array_equal(solution.support, plain.support)


def test_rows_of_one_class_get_a_constant() -> None:
    K, _, cost = problem(20)
    solution = solve(K, np.ones(20), cost)
    assert (solution.bias, len(solution.support), solution.converged) == (1.0, 0, True)
    assert solve(np.zeros((0, 0)), np.zeros(0), np.zeros(0)).bias == 0.0


def test_parts_hold_each_class_and_no_more_rows_than_allowed() -> None:
    y = np.where(np.arange(20_000) % 100, 1.0, -1.0)
    parts = split(y, np.random.default_rng(0))
    assert parts is not None
    assert [len(part) for part in parts] == [MOST_ROWS // 2, MOST_ROWS // 4, MOST_ROWS // 4]
    assert [int(np.sum(y[part] < 0)) for part in parts] == [40, 20, 20]
    assert len(np.unique(np.concatenate(parts))) == MOST_ROWS
    assert split(np.where(np.arange(50) < 3, 1.0, -1.0), np.random.default_rng(0)) is None


@of_each_kind
def test_a_search_lowers_the_loss(method: SVML) -> None:
    parts = [examples(n, columns=6, seed=seed) for seed, n in enumerate((160, 80, 80))]
    kernel = MAP_KERNELS[method.kernel]
    L0 = kernel.of_map(first_map(method.form, 2, parts[0].X, 6))
    learned = learn(*parts, L0, 0.1, kernel)
    objective = Objective(*parts[:2], L0, 0.1, kernel)
    begin, end = np.append(L0, 0.0), np.append(learned.L, np.log(learned.cost))
    assert objective(end)[0] < 0.8 * objective(begin)[0]
    assert objective.error(end, parts[2]) < 0.5 * objective.error(begin, parts[2])
    assert_allclose(learn(*parts, L0, 1e6, kernel).L, L0, atol=1e-3)


@pytest.mark.parametrize("kernel", MAP_KERNELS)
def test_the_columns_that_count_are_found(kernel: str) -> None:
    rows, others = examples(400, columns=20), examples(2000, columns=20, seed=5)
    errors = {}
    for pull in (0.1, 1e6):
        method, cell = SVML(kernel=kernel, form="diag", pull=pull), cell_of(rows)
        state = fit(method, cell, method.grid(cell, 400.0, 4), None, "refit").state
        values = method.predictor(state, cell.target, 20).decision_function(others.X.astype(np.float32))
        errors[pull] = np.mean(np.sign(values[:, 0]) != others.y)
        weights = np.abs(state["map"][0])
        assert (weights[:2].min() > 2.0 * weights[2:].max()) == (pull == 0.1)
    assert errors[0.1] < 0.8 * errors[1e6]


@of_each_kind
def test_held_out_rows_choose_nothing(method: SVML) -> None:
    rows = examples(160)
    cell = cell_of(rows)
    last = cell.folds == cell.n_folds - 1
    flipped = cell_of(rows, y=np.where(last, -rows.y, rows.y))
    values = []
    for one in (cell, flipped):
        kept = score(method, one, method.grid(one, 160.0, 4)).kept
        assert kept is not None and kept.values is not None
        values.append(kept.values[0])
    assert_array_equal(values[0][last], values[1][last])
    assert np.abs(values[0] - values[1])[~last].max() > 0.01


@pytest.mark.parametrize("form", FORMS)
def test_values_are_those_of_the_formula(form: str) -> None:
    rows = examples(120)
    method, cell = SVML(form=form), cell_of(rows)
    state = fit(method, cell, method.grid(cell, 120.0, 4), None, "refit").state
    L = state["map"].astype(np.float64)
    if form in ("diag", "sphere"):
        L = np.diag(L[0])
    support, others = state["support"].astype(np.float64) @ L.T, cell.X.astype(np.float64) @ L.T
    coef = np.zeros(len(support))
    coef[state["coef_index"]] = state["coef"]
    values = GAUSSIAN.values(others, support) @ coef + state["model_bias"]
    assert_allclose(method.predictor(state, cell.target, 4).decision_function(cell.X)[:, 0], values, atol=1e-4)
    wanted = solve(GAUSSIAN.values(others, others), rows.y, np.full(120, state["model_cost"][0]))
    assert_allclose(values, wanted.values, atol=1e-4)


def test_the_manhattan_svm_is_that_of_scikit_learn_on_weighted_rows() -> None:
    rows, others = examples(120), examples(50, seed=1).X.astype(np.float32)
    cell = cell_of(rows)
    state = fit(MANHATTAN, cell, MANHATTAN.grid(cell, 120.0, 4), None, "refit").state
    weights, cost = state["map"][0].astype(np.float64), state["model_cost"][0]
    assert weights.min() >= 0.0 and weights.max() > 0.5  # they began at 1/4
    X, Z = cell.X * weights, others * weights
    theirs = SVC(kernel="precomputed", C=1e8, tol=1e-9).fit(laplacian_kernel(X, gamma=1.0) + np.eye(120) / cost, rows.y)
    values = MANHATTAN.predictor(state, cell.target, 4).decision_function(others)[:, 0]
    assert_allclose(values, theirs.decision_function(laplacian_kernel(Z, X, gamma=1.0)), atol=1e-4)


def test_there_is_one_metric_to_learn() -> None:
    for method in (SVML(), MANHATTAN):
        for metric in ("diag", "full"):
            with pytest.raises(OptionError, match=f"--metric {metric}: svml learns a metric of its own"):
                TrainingConfig(method, metric=metric)


def test_the_manhattan_kernel_has_weights_alone() -> None:
    assert (SVML().form, MANHATTAN.form) == ("full", "diag")
    for form in ("full", "sphere", "rank:1"):
        with pytest.raises(OptionError, match=f"--form {form}: .*; give --form diag, or leave it out"):
            SVML(kernel="manhattan", form=form)


def test_a_square_map_of_many_columns_is_refused() -> None:
    size = CellSize(rows=100, features=MOST_COLUMNS + 1, weight=1.0, solutions=5, part=0)
    with pytest.raises(OptionError, match="for at most 2,000 columns, and there are 2,001; give --form diag"):
        SVML().check(size)
    assert SVML(form="diag").memory(size) > 0


def test_a_map_has_no_more_dimensions_than_there_are_features() -> None:
    size = CellSize(rows=100, features=3, weight=1.0, solutions=5, part=0)
    with pytest.raises(OptionError, match="--form rank:4: there are only 3 features"):
        SVML(form="rank:4").check(size)
    assert SVML(form="rank:3").memory(size) > 0


def test_the_command_line_takes_its_forms(tmp_path: Path) -> None:
    rows = examples(150)
    write(tmp_path / "rows", rows.X.astype(np.float32), rows.y)
    command = ("train", "-q", "-m", "svml", tmp_path / "rows", tmp_path / "m.h5", "--form")
    invoke(*command, "rank:1")
    assert "form rank:1" in invoke("inspect", tmp_path / "m.h5").stdout
    message = invoke(*command, "oval", "--force", code=2).stderr
    assert "--form oval: choose one of auto, full, diag, sphere or rank:R" in message


def test_manhattan_cells_are_of_that_distance(tmp_path: Path) -> None:
    rows = examples(150)
    write(tmp_path / "rows", rows.X.astype(np.float32), rows.y)
    invoke("train", "-q", "-m", "svml", "-t", "manhattan", "-c", 80, tmp_path / "rows", tmp_path / "m.h5")
    text = invoke("inspect", tmp_path / "m.h5").stdout
    assert "voronoi-manhattan, 2 cells" in text and "kernel manhattan" in text and "form diag" in text
    assert "Accuracy" in invoke("predict", tmp_path / "rows", tmp_path / "m.h5", tmp_path / "out").stderr


@of_each_kind
def test_a_saved_model_decides_as_the_fitted_one(method: SVML) -> None:
    rows = examples(150)
    y = rows.y + 4.0 * (rows.X[:, 2] > 0)  # four classes
    cell = cell_of(rows, y=y)
    state = fit(method, cell, method.grid(cell, 150.0, 4), None, "refit").state
    assert len(state["map"]) == 4 * method.height(4)  # a map a problem
    first = method.predictor(state, cell.target, 4).decision_function(cell.X)
    again = method.predictor({k: v.copy() for k, v in state.items()}, cell.target, 4)
    assert_array_equal(again.decision_function(cell.X), first)
    assert_array_equal(np.vstack([again.decision_function(row[None]) for row in cell.X]), first)


@of_each_kind
def test_sparse_rows_are_mapped_as_dense_ones(method: SVML, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    X = np.where(rng.random((120, 40)) < 0.1, rng.random((120, 40)), 0.0).astype(np.float32)
    y = np.where(X[:, :20].sum(axis=1) > X[:, 20:].sum(axis=1), 1.0, -1.0)
    config, values = TrainingConfig(method, scale="none", folds=3), []
    for i, rows in enumerate((X, as_examples(sparse.csr_array(X)))):
        train(Dataset(rows.copy(), y), config, tmp_path / f"{i}.h5")
        with LocalModel(tmp_path / f"{i}.h5") as model:
            values.append(model.decision_function(rows))
    assert_allclose(*values, atol=1e-3)
