"""The linear local methods: each one's problem written out and minimised by scipy, and how they are related."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from linear_problems import C, least, nearest, written_out
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from selecting import fit, score
from sklearn.svm import LinearSVC

from localsvm.data.blocks.dataset import Dataset, as_examples
from localsvm.errors import OptionError
from localsvm.methods import methods
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
from localsvm.runs.cells.schedule import Resources
from localsvm.runs.config import TrainingConfig
from localsvm.runs.predict import LocalModel
from localsvm.runs.train import train
from localsvm.selection.folds import stratified
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
SAG = LinearSVM(loss="squared", solver="sag")


def examples(n: int = 150, d: int = 3, classes: int = 2, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)).astype(np.float32)
    value = X[:, 0] * X[:, 1] + 0.3 * X[:, 2] + 0.2 * rng.standard_normal(n)
    return X, np.digitize(value, np.quantile(value, np.arange(1, classes) / classes)).astype(np.float64)


def cell_of(X: Any, y: np.ndarray, folds: int = 4, scheme: str = "ova") -> Cell:
    order = np.argsort(stratified(y, folds, np.random.default_rng(0)), kind="stable")
    kind = Classification(np.unique(y), scheme)
    n, held = len(y), np.sort(stratified(y, folds, np.random.default_rng(0)))
    return Cell(X[order], y[order], kind, np.ones(n), np.ones(n), held)


def fitted(method: LinearMethod, cell: Cell, select: str = "refit") -> tuple[Any, dict[str, Any]]:
    grid = method.grid(cell, float(len(cell.y)), 4)
    lines = range(len(grid.settings))
    scores = score(method, cell, grid, lines) if grid.n_points > 1 or select == "vote" else None
    state = fit(method, cell, grid, scores, select).state
    return method.predictor(state, cell.target, cell.X.shape[1]), state


@pytest.mark.parametrize("method", ALL, ids=NAMES)
def test_each_method_solves_the_problem_of_its_paper(method: LinearMethod) -> None:
    X, y = examples()
    cell = cell_of(X, y)
    predictor, state = fitted(replace(method, cost=(C,), loss="squared", tolerance=1e-10), cell)
    values = predictor.decision_function(cell.X)[:, 0]
    assert_allclose(values, written_out(method, cell.X, cell.Y[:, 0], state), atol=2e-4)
    for other in ALL:  # no two are one relabelled problem
        if other is not method:
            theirs, _ = fitted(replace(other, cost=(C,), loss="squared", tolerance=1e-8), cell)
            assert np.abs(theirs.decision_function(cell.X)[:, 0] - values).max() > 0.01


@pytest.mark.parametrize("method", ALL, ids=NAMES)
@pytest.mark.parametrize("select", ["refit", "vote"])
@pytest.mark.parametrize("scheme", ["ova", "ava"])
def test_a_saved_state_decides_as_the_fitted_one_and_row_by_row(method: LinearMethod, select: str, scheme: str) -> None:
    X, y = examples(classes=3)
    predictor, state = fitted(replace(method, cost=(0.1, 1.0)), cell_of(X, y, scheme=scheme), select)
    values = predictor.decision_function(X)
    assert values.shape == (len(X), 3)
    again = method.predictor(state, Classification(np.unique(y), scheme), 3)
    rows = np.concatenate([again.decision_function(X[i : i + 7]) for i in range(0, len(X), 7)])
    assert_array_equal(values, rows)


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
@pytest.mark.parametrize("loss", ["hinge", "squared"])
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
def test_labels_of_held_out_rows_say_nothing_about_their_values(method: LinearMethod) -> None:
    """Nor do they by who is in a pair and has a part in its clusters."""
    X, y = examples(200, classes=3)
    cell = cell_of(X, y, scheme="ava")
    method = replace(method, clusters=(20.0,), cost=(100.0,))
    out = cell.folds == 1
    other = replace(cell, y=np.where(out, (cell.y + 1) % 3, cell.y))
    first, second = (score(method, one, method.grid(one, 200.0, 4), [0]).kept for one in (cell, other))
    assert first is not None and second is not None and first.values is not None and second.values is not None
    assert_array_equal(first.values[:, out], second.values[:, out])
    assert not np.allclose(first.values[:, ~out], second.values[:, ~out])


@pytest.mark.parametrize("method", CLUSTERED, ids=lambda m: m.name)
def test_held_out_values_of_pairs_are_those_of_fold_models(method: LinearMethod) -> None:
    X, y = examples(200, classes=3)
    cell = cell_of(X, y, scheme="ava")
    method = replace(method, cost=(C,), tolerance=1e-9, loss="squared")
    kept = score(method, cell, method.grid(cell, 200.0, 4), [0]).kept
    assert kept is not None and kept.values is not None
    for fold in range(4):
        out = cell.folds == fold
        n = np.ones(int((~out).sum()))
        rest = replace(cell, X=cell.X[~out], y=cell.y[~out], count=n, cost=n, folds=cell.folds[~out])
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
    options = {"cost": (C,), "tolerance": 1e-10, "loss": "squared"}
    linear, _ = fitted(LinearSVM(**options), cell)
    l3, _ = fitted(L3SVM(clusters=(1.0,), landmarks="pca", **options), cell)
    assert_allclose(l3.decision_function(X), linear.decision_function(X), atol=1e-4)


def test_the_ends_of_csvm() -> None:
    X, y = examples()
    cell = cell_of(X, y)
    options = {"tolerance": 1e-10, "loss": "squared"}
    linear, _ = fitted(LinearSVM(cost=(C,), **options), cell)
    together, _ = fitted(ClusteredSVM(clusters=(3.0,), common=(1e-6,), cost=(C * 1e-6,), **options), cell)
    # the bias has no lambda: with this cost it is held at zero, so that only rows far from it agree
    apart, state = fitted(ClusteredSVM(clusters=(3.0,), common=(1e8,), cost=(C,), **options), cell)
    own, _ = fitted(KMeansSVM(clusters=(3.0,), cost=(C,), **options), cell)
    assert np.corrcoef(together.decision_function(X)[:, 0], linear.decision_function(X)[:, 0])[0, 1] > 0.9999
    weights = state["weights"][:-1].reshape(3, -1)[:, :3]

    def separate(v: np.ndarray) -> np.ndarray:
        of = nearest(X, state["centres"]).argmin(axis=1)
        return np.einsum("ij,ij->i", X, v[:-1].reshape(3, 3)[of]) + v[-1]

    targets = np.where(y == 1, 1.0, -1.0)
    best = least(lambda v: 0.5 * v @ v + C * np.square(np.maximum(0, 1 - targets * separate(v))).sum(), 10)
    assert_allclose(weights.ravel(), best[:-1], atol=1e-3)
    assert np.corrcoef(apart.decision_function(X)[:, 0], own.decision_function(X)[:, 0])[0, 1] > 0.9


@pytest.mark.parametrize("method", ALL, ids=NAMES)
@pytest.mark.parametrize("scheme", ["ova", "ava"])
def test_sparse_rows_give_the_same_model(method: LinearMethod, scheme: str) -> None:
    X, y = examples(120, classes=2 if scheme == "ova" else 3)
    X[np.random.default_rng(1).random(X.shape) < 0.4] = 0.0
    method = replace(method, cost=(C,), tolerance=1e-9)
    dense, _ = fitted(method, cell_of(X, y, scheme=scheme))
    thin, _ = fitted(method, cell_of(as_examples(sparse.csr_array(X)), y, scheme=scheme))
    assert_allclose(thin.decision_function(as_examples(sparse.csr_array(X))), dense.decision_function(X), atol=1e-3)


@pytest.mark.parametrize(
    ("method", "partition", "scheme"),
    [
        *((m, "none", "ova") for m in (*ALL, SAG)),
        *((ALL[k], "voronoi", "ova") for k in (0, 4)),
        *((m, "none", "ava") for m in CLUSTERED),
        (CLUSTERED[2], "voronoi", "ava"),
    ],
)
def test_models_do_not_depend_on_the_jobs(method: LinearMethod, partition: str, scheme: str, tmp_path: Any) -> None:
    X, y = examples(300, classes=3)
    config = TrainingConfig(replace(method, cost=(0.1, 1.0)), partition=partition, cell_size=100, multiclass=scheme)
    states = []
    for jobs in (1, 2):
        path = tmp_path / f"{jobs}.h5"
        train(Dataset(X.copy(), y), config, path, resources=Resources(jobs=jobs))
        with LocalModel(path) as model:
            states.append(model.decision_function(X.copy()))
            assert np.mean(model.predict(X.copy()) == y) > 0.35
    assert_array_equal(*states)


def test_several_axes_are_chosen_together(tmp_path: Any) -> None:
    X, y = examples(400)
    method = L3SVM(clusters=(1.0, 8.0), landmarks_count=(2.0, 3.0), cost=(1.0, 10.0))
    cell = cell_of(X, y)
    grid = method.grid(cell, 400.0, 4)
    assert grid.names == ("clusters", "landmarks_count")
    scores = score(method, cell, grid, range(4))
    assert np.isfinite(scores.loss).all()
    assert grid.settings[scores.best[3]][0] == 8.0  # the product of two features needs clusters


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


def test_more_clusters_and_landmarks_than_rows() -> None:
    X, y = examples(12)
    for method in ALL[1:]:
        many = replace(method, clusters=(50.0,), cost=(1.0,))
        if isinstance(many, L3SVM):
            many = replace(many, landmarks_count=(50.0,))
        predictor, _ = fitted(many, cell_of(X, y))
        assert np.isfinite(predictor.decision_function(X)).all()


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: LinearSVM(cost=(-1.0,)), "--cost"),
        (lambda: LinearSVM(tolerance=0.0), "--tolerance"),
        (lambda: LinearSVM(loss="logistic"), "--loss"),
        (lambda: LinearSVM(solver="smo"), "-s/--solver smo: choose one of"),
        (lambda: LinearSVM(solver="sgd", loss="squared"), "--loss hinge"),
        (lambda: LinearSVM(solver="sag"), "--loss squared"),
        (lambda: LinearSVM(passes=0), "--passes"),
        (lambda: KMeansSVM(clusters=(1.5,)), "--clusters"),
        (lambda: KMeansSVM(start=(0.0,)), "--start"),
        (lambda: MixtureSVM(start=(1.5,)), "--start"),
        (lambda: ClusteredSVM(common=(0.0,)), "--lambda"),
        (lambda: LocallyLinearSVM(neighbours=(0.5,)), "--neighbours"),
        (lambda: LocallyLinearSVM(coding="none"), "--coding"),
        (lambda: L3SVM(landmarks_count=(0.0,)), "landmarks"),
        (lambda: L3SVM(landmarks="all"), "--landmarks"),
        (lambda: L3SVM(projection="cubic"), "--projection"),
        (lambda: L3SVM(gamma=(-1.0,)), "--gamma"),
    ],
)
def test_options_that_make_no_sense_are_refused(make: Callable[[], Method], words: str) -> None:
    with pytest.raises(OptionError, match=words):
        make()


def test_every_linear_method_is_found_by_its_name() -> None:
    assert {m.name for m in ALL} <= set(methods())


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
    found = [find_centres(rows, clusters, np.random.default_rng(1)) for rows in (X, as_examples(sparse.csr_array(X)))]
    assert found[0].shape == (clusters, 40)
    for one in found:
        assert abs(one[np.argsort(one[:, 0])] - found[0][np.argsort(found[0][:, 0])]).max() < 1e-4


@pytest.mark.parametrize("scheme", ["ova", "ava"])
@pytest.mark.parametrize("method", [LinearSVM(), KMeansSVM(clusters=(3.0,)), MultiTaskSVM(clusters=(3.0,))])
def test_the_rows_of_a_cell_go_with_it(method: Method, scheme: str) -> None:
    """At once: what waits for the collector of garbage adds up, cell by cell."""
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
