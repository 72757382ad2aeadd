"""The linear local methods: each one's problem written out and minimised by scipy, and how they are related."""

from __future__ import annotations

import gc
import weakref
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from linear_problems import C, least, nearest, written_out
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from selecting import cell_of, examples, fit, fitted, score
from sklearn.svm import LinearSVC

from localsvm.data.blocks.dataset import as_examples
from localsvm.methods.base import Method
from localsvm.methods.cell import Cell
from localsvm.methods.linear.linear import LinearSVM
from localsvm.methods.linear.method import LinearMethod
from localsvm.methods.locally_linear.csvm import ClusteredSVM
from localsvm.methods.locally_linear.kmeans_svm import KMeansSVM
from localsvm.methods.locally_linear.l3 import L3SVM
from localsvm.methods.locally_linear.llsvm import LocallyLinearSVM
from localsvm.methods.mixtures.mlsvm import MixtureSVM
from localsvm.methods.mixtures.mtl import MultiTaskSVM
from localsvm.representations.kmeans import find_centres
from localsvm.targets.classification import Classification

ALL: list[LinearMethod] = [
    LinearSVM(),
    KMeansSVM(clusters=(3.0,)),
    ClusteredSVM(clusters=(3.0,), common=(4.0,)),
    LocallyLinearSVM(clusters=(6.0,), neighbours=(3.0,)),
    L3SVM(clusters=(3.0,), landmarks_count=(5.0,)),
    L3SVM(clusters=(3.0,), landmarks_count=(5.0,), projection="rbf", gamma=(0.3,), landmarks="pca"),
]
NAMES = [f"{m.name}-{m.projection}" if isinstance(m, L3SVM) else m.name for m in ALL]
CLUSTERED = ALL[1:4]
SAG = LinearSVM(loss="squared-hinge", solver="sag")


@pytest.mark.parametrize("method", ALL, ids=NAMES)
def test_each_method_solves_the_problem_of_its_paper(method: LinearMethod) -> None:
    X, y = examples()
    cell = cell_of(X, y)
    predictor, state = fitted(replace(method, cost=(C,), loss="squared-hinge", tolerance=1e-10), cell)
    values = predictor.decision_function(cell.X)[:, 0]
    assert_allclose(values, written_out(method, cell.X, cell.Y[:, 0], state), atol=2e-4)
    for other in ALL:  # no two are one relabelled problem
        if other is not method:
            theirs, _ = fitted(replace(other, cost=(C,), loss="squared-hinge", tolerance=1e-8), cell)
            assert np.abs(theirs.decision_function(cell.X)[:, 0] - values).max() > 0.01


@pytest.mark.parametrize("scheme", ["ova", "ava"])
def test_the_held_out_error_is_that_of_fold_models(scheme: str) -> None:
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 200).astype(np.float64)
    X = (np.eye(3)[y.astype(int)] + 0.6 * rng.standard_normal((200, 3))).astype(np.float32)
    cell = cell_of(X, y, scheme=scheme)
    method = LinearSVM(cost=(0.1, 3.0), tolerance=1e-8)
    grid = method.grid(cell, 200.0, 4)
    scores = score(method, cell, grid, [0])
    for c, cost in enumerate(grid.costs):
        values = np.zeros(cell.Y.shape)
        for fold in range(4):
            out = cell.folds == fold
            for p, target in enumerate(cell.Y.T):
                seen = ~out & (target != 0)
                svc = LinearSVC(C=cost, loss="hinge", tol=1e-7, random_state=0, max_iter=10**6)
                values[out, p] = svc.fit(cell.X[seen], target[seen]).decision_function(cell.X[out])
        wrong = (cell.target.decide(values) != cell.y).mean()
        votes = np.zeros((200, 3))
        for p in range(3):
            cell.target.vote(votes, p, values[:, p])
        first, second = np.sort(votes, axis=1)[:, :0:-1].T
        close = np.mean(first - second < 0.01)  # either way of deciding them is right
        assert scores.loss[0, c] == pytest.approx(wrong, abs=close + 1e-9)
        assert close < 0.1
    assert scores.best[0] == scores.loss.min()


@pytest.mark.parametrize("method", CLUSTERED, ids=lambda m: m.name)
@pytest.mark.parametrize("loss", ["hinge", "squared-hinge"])
def test_a_pair_of_classes_is_the_problem_of_its_rows_alone(method: LinearMethod, loss: str) -> None:
    X, y = examples(240, classes=3)
    cell = cell_of(X, y, scheme="ava")
    method = replace(method, cost=(C,), loss=loss)
    together, _ = fitted(method, cell)
    for p, pair in enumerate([(0.0, 1.0), (0.0, 2.0), (1.0, 2.0)]):
        taken = np.isin(cell.y, pair)
        n = np.ones(int(taken.sum()))
        alone = Cell(cell.X[taken], cell.y[taken], Classification(np.asarray(pair)), n, n, cell.folds[taken])
        expected, _ = fitted(method, alone)
        assert_array_equal(together.decision_function(X)[:, p], expected.decision_function(X)[:, 0])


@pytest.mark.parametrize("method", CLUSTERED, ids=lambda m: m.name)
def test_held_out_values_of_pairs_are_those_of_fold_models(method: LinearMethod) -> None:
    X, y = examples(200, classes=3)
    cell = cell_of(X, y, scheme="ava")
    method = replace(method, cost=(C,), tolerance=1e-9, loss="squared-hinge")
    kept = score(method, cell, method.grid(cell, 200.0, 4), [0]).kept
    assert kept is not None and kept.values is not None
    for fold in range(4):
        out = cell.folds == fold
        n = np.ones(int((~out).sum()))
        rest = replace(cell, X=cell.X[~out], y=cell.y[~out], mass=n, cost=n, folds=cell.folds[~out])
        expected, _ = fitted(method, rest)
        assert_allclose(kept.values[:, out].T, expected.decision_function(cell.X[out]), atol=1e-3)


@pytest.mark.parametrize("method", CLUSTERED, ids=lambda m: m.name)
def test_a_pair_with_fewer_rows_than_clusters_or_none_decides(method: LinearMethod) -> None:
    X, y = examples(120, classes=3)
    few = np.flatnonzero(y == 2.0)[4:]
    y[few] = 1.0
    cell = cell_of(X, y, scheme="ava")
    predictor, state = fitted(replace(method, clusters=(50.0,), cost=(0.1, C)), cell)
    assert state["clusters"].tolist() == [50, 44, 50]
    assert np.isfinite(predictor.decision_function(X)).all()
    two = replace(cell, y=np.minimum(cell.y, 1.0))  # a class that is not in this cell
    predictor, _ = fitted(replace(method, clusters=(8.0,), cost=(0.1, C)), two)
    assert np.mean(cell.target.decide(predictor.decision_function(X)) == np.minimum(y, 1.0)) > 0.6


def test_one_cluster_and_orthonormal_landmarks_are_the_linear_svm() -> None:
    X, y = examples()
    X -= X.mean(axis=0)
    cell = cell_of(X, y)
    options = {"cost": (C,), "tolerance": 1e-10, "loss": "squared-hinge"}
    linear, _ = fitted(LinearSVM(**options), cell)
    l3, _ = fitted(L3SVM(clusters=(1.0,), landmarks="pca", **options), cell)
    assert_allclose(l3.decision_function(X), linear.decision_function(X), atol=1e-4)


def test_the_ends_of_csvm() -> None:
    X, y = examples()
    cell = cell_of(X, y)
    options = {"tolerance": 1e-10, "loss": "squared-hinge"}
    linear, _ = fitted(LinearSVM(cost=(C,), **options), cell)
    together, _ = fitted(ClusteredSVM(clusters=(3.0,), common=(1e-6,), cost=(C * 1e-6,), **options), cell)
    # the bias has no lambda: with this cost it is held at zero, so that only rows far from it agree
    apart, state = fitted(ClusteredSVM(clusters=(3.0,), common=(1e8,), cost=(C,), **options), cell)
    kmeans, _ = fitted(KMeansSVM(clusters=(3.0,), cost=(C,), **options), cell)
    assert np.corrcoef(together.decision_function(X)[:, 0], linear.decision_function(X)[:, 0])[0, 1] > 0.9999
    weights = state["weights"][:-1].reshape(3, -1)[:, :3]

    def separate(v: np.ndarray) -> np.ndarray:
        of = nearest(X, state["centres"]).argmin(axis=1)
        return np.einsum("ij,ij->i", X, v[:-1].reshape(3, 3)[of]) + v[-1]

    targets = np.where(y == 1, 1.0, -1.0)
    best = least(lambda v: 0.5 * v @ v + C * np.square(np.maximum(0, 1 - targets * separate(v))).sum(), 10)
    assert_allclose(weights.ravel(), best[:-1], atol=1e-3)
    assert np.corrcoef(apart.decision_function(X)[:, 0], kmeans.decision_function(X)[:, 0])[0, 1] > 0.9


def test_several_axes_are_chosen_together(tmp_path: Any) -> None:
    X, y = examples(400)
    method = L3SVM(clusters=(1.0, 8.0), landmarks_count=(2.0, 3.0), cost=(1.0, 10.0))
    cell = cell_of(X, y)
    grid = method.grid(cell, 400.0, 4)
    assert grid.names == ("clusters", "landmarks_count")
    scores = score(method, cell, grid, range(4))
    assert np.isfinite(scores.loss).all()
    assert grid.settings[scores.best[3]][0] == 8.0  # the product of two features needs clusters


@pytest.mark.fast(1)
@pytest.mark.parametrize("method", [*CLUSTERED, MixtureSVM(clusters=(3.0,), shrinkage=(0.1,))], ids=lambda m: m.name)
@pytest.mark.parametrize("scheme", ["ova", "ava"])
def test_a_start_of_kmeans_is_chosen_as_other_parameters_are(method: Any, scheme: str) -> None:
    once, often = (replace(method, cost=(1.0,), start=start) for start in ((1.0,), (1.0, 2.0, 3.0, 4.0)))
    for seed in range(10):
        cell = cell_of(*examples(200, classes=3, seed=seed), scheme=scheme)
        grid, grids = (m.grid(cell, 200.0, 4) for m in (once, often))
        scores = score(often, cell, grids)
        assert_array_equal(scores.loss[0], score(once, cell, grid).loss[0])  # the first start is that of a single one
        if np.argmin(scores.loss[:, 0]) > 0:
            break
    best, name = int(np.argmin(scores.loss[:, 0])), "mean" if method.name == "mlsvm" else "centres"
    start = grids.settings[best][grids.names.index("start")]
    assert best > 0 and start == 1.0 + best
    chosen, single = fit(often, cell, grids, scores, "refit").state, fit(once, cell, grid, None, "refit").state
    assert not np.array_equal(chosen[name], single[name])
    if name == "centres":
        alone = replace(once, start=(start,))
        assert alone.grid(cell, 200.0, 4).names == grid.names  # no choice: neighbours in K stay neighbours
        assert_array_equal(chosen[name], fit(alone, cell, alone.grid(cell, 200.0, 4), None, "refit").state[name])


def test_a_mean_loss_divides_the_cost_by_the_rows_trained_on() -> None:
    X, y = examples(160)
    cell = cell_of(X, y)
    mean, total = LinearSVM(cost=(3.0, 30.0), mean_loss=True), LinearSVM(cost=(3.0 / 120, 30.0 / 120))
    scores = [score(m, cell, m.grid(cell, 160.0, 4), [0]).loss for m in (mean, total)]
    assert_array_equal(*scores)
    fitted_mean = fit(mean, cell, mean.grid(cell, 160.0, 4), None, "refit").state
    assert fitted_mean["model_cost"] == pytest.approx([3.0 / 160])


@pytest.mark.parametrize("clusters", [1, 3])
def test_centres_of_sparse_rows_are_those_of_dense_ones(clusters: int) -> None:
    rng = np.random.default_rng(0)
    X = np.repeat(rng.integers(0, 5, (3, 40)), 60, axis=0) + rng.normal(0.0, 0.01, (180, 40))
    X = np.where(rng.random(X.shape) < 0.9, X, 0.0).astype(np.float32)
    centres = [find_centres(rows, clusters, np.random.default_rng(1)) for rows in (X, as_examples(sparse.csr_array(X)))]
    assert centres[0].shape == (clusters, 40)
    for one in centres:
        assert abs(one[np.argsort(one[:, 0])] - centres[0][np.argsort(centres[0][:, 0])]).max() < 1e-4


@pytest.mark.fast(1)
@pytest.mark.parametrize("scheme", ["ova", "ava"])
@pytest.mark.parametrize("method", [LinearSVM(), KMeansSVM(clusters=(3.0,)), MultiTaskSVM(clusters=(3.0,))])
def test_the_rows_of_a_cell_go_with_it(method: Method, scheme: str) -> None:
    """Rows of a cell are freed at once; what waits for the garbage collector adds up, cell by cell."""
    X, y = examples(90, classes=3)
    cell = cell_of(X.copy(), y, scheme=scheme)
    rows = weakref.ref(cell.X)
    grid = method.grid(cell, 90.0, 4)
    gc.collect()
    gc.disable()
    try:
        fitted = fit(method, cell, grid, score(method, cell, grid, [0]), "refit")
        del cell
        assert fitted.report.models and rows() is None
    finally:
        gc.enable()


def test_more_clusters_and_landmarks_than_rows() -> None:
    X, y = examples(12)
    for method in ALL[1:]:
        many = replace(method, clusters=(50.0,), cost=(1.0,))
        if isinstance(many, L3SVM):
            many = replace(many, landmarks_count=(50.0,))
        predictor, _ = fitted(many, cell_of(X, y))
        assert np.isfinite(predictor.decision_function(X)).all()
