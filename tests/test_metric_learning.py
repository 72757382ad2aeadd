"""Metrics: their gradients against differences, runs with them, and rows at the edge."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
import warnings
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import h5py
import numpy as np
import pytest
from dividing import divide
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from scipy.spatial.distance import cdist
from selecting import observed_of

from localsvm.data.blocks.dataset import Dataset, Examples, as_examples
from localsvm.errors import DataError
from localsvm.estimators import LocalSVC
from localsvm.methods.kernel.svm import KernelSVM
from localsvm.representations.distances import DISTANCES
from localsvm.representations.metric_choice import Options, choose, stratified_folds
from localsvm.representations.metric_learning import LearningPlan, MetricLearner
from localsvm.representations.metric_losses import LARGEST_RESIDUAL
from localsvm.representations.metric_rows import MetricRows
from localsvm.runs.cells.schedule import Resources
from localsvm.runs.config import TrainingConfig
from localsvm.runs.partition import partition_only
from localsvm.runs.predict import LocalModel
from localsvm.runs.preparation import metric as measuring
from localsvm.runs.preparation.metric import measure
from localsvm.runs.progress import Silent
from localsvm.runs.train import train
from localsvm.targets.loss_names import QUANTILE
from localsvm.targets.losses import Loss
from localsvm.threads import ALONE, Threads

POINT = KernelSVM(gamma=(0.5,), cost=(1.0,))
GRID = KernelSVM(gamma=(0.5,), cost=(0.3, 3.0))
EITHER = KernelSVM(cost=(0.3, 3.0))  # of either distance, as no gamma is given
USUAL = measuring.CHOICE_PLAN


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let metrics be learned in few steps, by small samples."""
    plan = LearningPlan(sample=60, weight_steps=12, matrix_steps=12, near_steps=6)
    monkeypatch.setattr(measuring, "CHOICE_PLAN", plan)
    monkeypatch.setattr(measuring, "FURTHER_PLAN", LearningPlan(60, 12, 12, 6))
    monkeypatch.setattr(measuring, "LearningPlan", lambda: LearningPlan(60, 12, 12, 6))
    measuring.LearningPlan.rng = LearningPlan.rng  # type: ignore[attr-defined]


def rows(n: int = 240, d: int = 4, classes: int = 2, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Rows (n, d) and labels (n,) that two of the columns decide."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)).astype(np.float32)
    value = X[:, 0] * X[:, 1]
    return X, np.digitize(value, np.quantile(value, np.arange(1, classes) / classes)).astype(np.float64)


def thin(X: np.ndarray) -> Examples:
    """Sparse rows of the columns of X beside 1 200 or more with one value each: so many stay sparse."""
    return as_examples(sparse.csr_array(np.hstack([X] + [np.eye(len(X), dtype=np.float32)] * -(-1200 // len(X)))))


def content(path: Path) -> bytes:
    with h5py.File(path) as file:
        return bytes(file.attrs["manifest"])


def trained(path: Path, X: Examples, y: np.ndarray, config: TrainingConfig, **extra: Any) -> Any:
    """The summary of a training, without a warning."""
    weight = extra.pop("weight", None)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return train(Dataset(X.copy(), y.copy(), weight=weight), config, path, force=True, **extra)


# --- learning

TRAINED = 17  # rows of a sample of 40 or more that predict the others
MAPS = [(name, shape) for name in ("euclidean", "laplacian") for shape in ((4,), (4, 4), (4, 2))] + [
    ("manhattan", (4,))
]


def kernel_at(learner: MetricLearner, part: np.ndarray, values: np.ndarray, scalars: np.ndarray) -> np.ndarray:
    """The kernel matrix of a sample, in float64."""
    X = np.asarray(learner._rows_at(part), np.float64)
    name = learner.distance.name
    L = np.exp(scalars[0]) * (values**2 if name == "manhattan" else values)
    Z = X * L if L.ndim == 1 else X @ L
    apart = np.abs(Z[:, None] - Z)
    base = (apart if name == "manhattan" else apart**2).sum(axis=2)
    return np.asarray(np.exp(-(np.sqrt(base) if name == "laplacian" else base)))


def residuals_at(learner: MetricLearner, part: np.ndarray, values: np.ndarray, scalars: np.ndarray) -> np.ndarray:
    """Residuals (m, problems) of the rows of a sample behind the first TRAINED ones, by ridge regression of these."""
    K, t = kernel_at(learner, part, values, scalars), TRAINED
    Y = learner._data.Y[part].astype(np.float64)
    return np.asarray(Y[t:] - K[t:, :t] @ np.linalg.solve(K[:t, :t] + np.exp(scalars[1]) * np.eye(t), Y[:t]))


def loss_at(learner: MetricLearner, part: np.ndarray, values: np.ndarray, scalars: np.ndarray) -> float:
    """The mean loss of a sample: squared hinges, squares up to LARGEST_RESIDUAL and lines beyond, or pinball losses."""
    data, others = learner._data, part[TRAINED:]
    left, w = residuals_at(learner, part, values, scalars), data.weight[others] / data.weight[others].sum()
    if not data.values:
        return float(w @ np.square(np.maximum(0.0, data.Y[others] * left)).sum(axis=1))
    if data.levels:
        losses = [min(w @ Loss(QUANTILE, level)(left - c)[:, 0] for c in left[:, 0]) for level in data.levels]
        return float(np.mean(losses))
    inside = np.minimum(np.abs(left), LARGEST_RESIDUAL)
    return float(w @ (inside * (2.0 * np.abs(left) - inside)).sum(axis=1))


@pytest.mark.parametrize(("distance", "shape"), MAPS)
@pytest.mark.parametrize("classes", [2, 3])
def test_the_gradient_for_classes_is_that_of_differences(distance: str, shape: tuple[int, ...], classes: int) -> None:
    X, y = rows(classes=classes)
    Y = np.where(y[:, None] == np.arange(1, 2 if classes == 2 else classes + 1) % classes, 1.0, -1.0)
    assert_gradient(MetricRows(X + 100.0, Y.astype(np.float32), weights(240), distance=DISTANCES[distance]), shape)


@pytest.mark.parametrize(("distance", "shape"), MAPS)
@pytest.mark.parametrize("levels", [(), (0.9,), (0.05, 0.5, 0.95)])
def test_the_gradient_for_values_is_that_of_differences(
    distance: str, shape: tuple[int, ...], levels: tuple[float, ...]
) -> None:
    """The largest residuals count as in the Huber loss."""
    rng = np.random.default_rng(1 + len(levels))
    X, Y = rng.standard_normal((81, 4)).astype(np.float32), 3.0 * rng.standard_normal((81, 1)).astype(np.float32)
    assert_gradient(MetricRows(X, Y, weights(81), distance=DISTANCES[distance], values=True, levels=levels), shape)


def weights(n: int) -> np.ndarray:
    return np.random.default_rng(n).random(n) + 0.1


def assert_gradient(data: MetricRows, shape: tuple[int, ...]) -> None:
    """The slopes of a learner's loss, by the metric and by the scalars, are those of differences."""
    n, step, rng = len(data.Y), 1e-5, np.random.default_rng(1)
    learner = MetricLearner(data, np.arange(n), sample=20)
    assert learner._size == 40
    part, values, scalars = rng.permutation(n)[:40], rng.standard_normal(shape) / 2, np.asarray([0.2, -1.0])
    slope, scalar_slope = learner._gradient(learner._loss(TRAINED), part, values, scalars)
    for at in [(0,), (3,)] if len(shape) == 1 else [(0, 0), (2, 1), (3, 0)]:
        change = np.zeros(shape)
        change[at] = step
        up, down = (loss_at(learner, part, values + sign * change, scalars) for sign in (1, -1))
        assert slope[at] == pytest.approx((up - down) / (2 * step), rel=1e-3, abs=2e-4)
    for i in range(2):
        change = np.eye(2)[i] * step
        up, down = (loss_at(learner, part, values, scalars + sign * change) for sign in (1, -1))
        assert scalar_slope[i] == pytest.approx((up - down) / (2 * step), rel=1e-3, abs=2e-4)


def grouped(group: np.ndarray, known: bool) -> MetricLearner:
    """A learner of values that are a wave along the first column and the effect of a group, whose number is the second.

    known : whether the groups are.
    """
    rng = np.random.default_rng(4)
    number = rng.permutation(group.max() + 1)[group]
    X = np.column_stack([rng.standard_normal(len(group)), (number - number.mean()) / number.std()]).astype(np.float32)
    y = np.sin(2.0 * X[:, 0]) + rng.standard_normal(group.max() + 1)[group]
    Y, weight = ((y - y.mean()) / y.std()).astype(np.float32)[:, None], rng.random(len(group)) + 0.5
    data = MetricRows(X, Y, weight, values=True, group=group if known else None)
    return MetricLearner(data, np.arange(len(group)), sample=60)


@pytest.mark.parametrize("name", sorted(DISTANCES))
@pytest.mark.parametrize("shape", [(1, 1), (3, 70_001), (2_003, 7)], ids=str)
def test_rows_are_as_far_from_some_as_scipy_says(name: str, shape: tuple[int, int]) -> None:
    distance, Z = DISTANCES[name], np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    some = np.asarray([shape[0] // 2, 0, shape[0] // 2])
    found = distance.from_rows(Z, some)
    expected = cdist(Z[some], Z, "cityblock" if name == "manhattan" else "sqeuclidean")
    assert_allclose(found, expected, rtol=1e-5, atol=1e-6 * shape[1])


@pytest.mark.parametrize("groups", [2, 5, 30])
def test_rows_of_a_group_do_not_predict_each_other(groups: int) -> None:
    learner, rng = grouped(np.arange(400) % groups, True), np.random.default_rng(0)
    assert learner._data.group is not None
    for _ in range(5):
        part = learner._shuffled(learner._random(rng), rng)
        weight, group = learner._weights(part, TRAINED), learner._data.group[part]
        apart = ~np.isin(group[TRAINED:], group[:TRAINED])
        assert_array_equal(weight[TRAINED:] > 0.0, apart)
        assert_array_equal(weight[TRAINED:][apart], learner._data.weight[part[TRAINED:]][apart])
        assert apart.mean() >= 1.0 - 2.5 / groups
    assert_array_equal(np.sort(part), np.unique(part))


@pytest.mark.parametrize("values", [False, True])
@pytest.mark.parametrize("n", [1, 2, 3])
def test_the_fewest_rows_teach_little_and_break_nothing(n: int, values: bool) -> None:
    data = MetricRows(np.eye(3, dtype=np.float32)[:n], np.ones((n, 1), np.float32), np.ones(n), values=values)
    learner, rng = MetricLearner(data, np.arange(n)), np.random.default_rng(0)
    course = learner.beginning(rng)
    learned = learner.steps(course, 4, rng)
    assert np.isfinite(learned.values).all() and (n > 1 or learned is course)


def test_a_metric_of_groups_does_not_learn_what_a_new_group_does_not_have() -> None:
    """The number of a group says the effect of its rows, and nothing of a group that was never seen."""
    share = []
    for known in (True, False):
        learner = grouped(np.arange(800) % 12, known)
        plan = LearningPlan(sample=60, weight_steps=150)
        learned = plan.weights(learner, learner.beginning(plan.rng(0, -1, 0)), 0, -1).values
        share.append(abs(learned[1] / learned[0]))
    assert share[0] < 0.05 < 0.15 < share[1]


@pytest.mark.parametrize("factor", [2.0**-20, 2.0**14])
def test_the_scale_of_the_rows_does_not_matter(factor: float) -> None:
    X, y = rows()
    values = []
    for scaled in (X, (factor * X).astype(np.float32)):
        config = TrainingConfig(metric="full", scale="none")
        metric = measure(Dataset(scaled, y), observed_of(y), config, ALONE).metric
        assert metric is not None
        values.append(metric.values)
    assert_allclose(values[0], values[1], rtol=1e-3, atol=1e-3)


def test_what_matters_weighs_more() -> None:
    X, y = rows(400)
    for metric in ("diag", "full", "rank:2"):
        learned = measure(Dataset(X, y), observed_of(y), TrainingConfig(metric=metric, scale="none"), ALONE).metric
        assert learned is not None
        importance = learned.importance()
        assert importance[:2].min() > 1.1 * importance[2:].max()


def test_one_outlier_is_no_obstacle() -> None:
    X, y = rows(400)
    X[7, 0] = 1e16
    learned = measure(Dataset(X, y), observed_of(y), TrainingConfig(metric="diag", scale="none"), ALONE).metric
    assert learned is not None and np.isfinite(learned.values).all()


def test_labels_at_random_keep_the_euclidean_metric() -> None:
    names = []
    for seed in range(10):
        X, _ = rows(200, 5, seed=seed)
        y = np.random.default_rng(seed + 100).integers(0, 2, 200).astype(np.float64)
        config = TrainingConfig(metric="auto", seed=seed)
        description = measure(Dataset(X, y), observed_of(y), config, ALONE).description
        assert description is not None
        names.append(description["name"])
    assert names.count("none") >= 9


def test_folds_without_rows_choose_nothing() -> None:
    X, y = rows(2)
    data = MetricRows(X, np.where(y, 1, -1)[:, None].astype(np.float32), np.ones(2))
    folds = stratified_folds(y, np.random.default_rng(0))
    for options, name in ((Options(), "none"), (Options(("manhattan",), (True,)), "manhattan+ranks")):
        choice, courses = choose(dict.fromkeys(options.views, data), folds, options, measuring.CHOICE_PLAN, 0, ALONE)
        assert (choice.name, choice.best, choice.loss, courses) == (name, "none", (), {})


def test_balanced_classes_weigh_the_same_when_a_metric_is_learned() -> None:
    X, y = rows(300)
    y[:200] = 0.0
    share = {c: 300 / 2 / np.count_nonzero(y == c) for c in (0.0, 1.0)}
    given = TrainingConfig(POINT, metric="diag", class_weights=tuple(share.items()))
    one, other = (
        divide(Dataset(X.copy(), y), config).measured.metric
        for config in (given, TrainingConfig(POINT, metric="diag", balanced=True))
    )
    assert one is not None and other is not None
    assert_array_equal(one.values, other.values)


class Stopped(Exception):
    pass


def test_threads_end_soon_when_nobody_waits() -> None:
    begun = threading.Event()

    def endless(i: int) -> None:
        begun.set()
        while True:
            threads.check()

    with pytest.raises(Stopped), Threads(2) as threads:
        threads._pool.submit(endless, 0)  # type: ignore[union-attr]
        begun.wait()
        raise Stopped


def test_a_signal_that_does_not_wake_the_waiting_thread_is_heard() -> None:
    """As one that arrives between Python's look for signals and the wait: here another thread receives it."""

    def endless(i: int) -> None:
        while sys._current_frames()[waiting].f_code.co_name != "wait":
            threads.check()
        time.sleep(0.05)  # until it sleeps: earlier, it would hear of the signal in any case
        if not i:
            signal.pthread_kill(threading.get_ident(), signal.SIGINT)
        while True:
            threads.check()

    waiting = threading.get_ident()
    with pytest.raises(KeyboardInterrupt), Threads(2) as threads:
        threads.map(endless, 2)


@pytest.mark.parametrize("jobs", [1, 2])
def test_ctrl_c_ends_the_learning(jobs: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Ctrl-C ends a learning that would last for hours, and leaves no file."""
    monkeypatch.setattr(measuring, "CHOICE_PLAN", LearningPlan(sample=20, weight_steps=10**9))
    steps, once = MetricLearner._gradient, threading.Event()

    def gradient(*args: Any) -> Any:
        if not once.is_set():
            once.set()
            os.kill(os.getpid(), signal.SIGINT)
        return steps(*args)

    monkeypatch.setattr(MetricLearner, "_gradient", gradient)
    X, y = rows()
    with pytest.raises(KeyboardInterrupt):
        train(Dataset(X, y), TrainingConfig(POINT, metric="auto"), tmp_path / "m.h5", resources=Resources(jobs=jobs))
    assert not list(tmp_path.iterdir())


class Stops(Silent):
    def cell_done(self, wrong: float, weight: float) -> None:
        raise Stopped


# --- runs

RUNS: dict[str, tuple[str, dict[str, Any], bool]] = {
    "auto": ("auto", {"partition": "voronoi", "cell_size": 80}, False),
    "full, repeats": ("full", {"partition": "voronoi", "cell_size": 80, "repeats": 2, "probability": True}, False),
    "rank:2, kmeans": ("rank:2", {"partition": "kmeans", "cell_size": 80, "multiclass": "ava"}, False),
    "diag, chunks": ("diag", {"partition": "chunks", "cell_size": 80, "probability": True}, False),
    "diag, sparse": ("diag", {"partition": "none"}, True),
}


@pytest.mark.fast(1)
@pytest.mark.parametrize("name", RUNS)
def test_models_are_the_same_for_any_jobs_and_after_a_resume(name: str, tmp_path: Path) -> None:
    metric, options, thinned = RUNS[name]
    dense, y = rows(classes=3)
    X = thin(dense) if thinned else dense
    config = TrainingConfig(EITHER if metric == "auto" else GRID, metric=metric, folds=3, **options)
    weight = 0.5 + np.arange(240) % 2
    for jobs in (1, 2):
        summary = trained(tmp_path / f"{jobs}.h5", X, y, config, weight=weight, resources=Resources(jobs=jobs))
    assert content(tmp_path / "1.h5") == content(tmp_path / "2.h5")
    assert summary.cv_error is not None and summary.features == X.shape[1]

    if "partition" in options and options["partition"] != "none":
        with pytest.raises(Stopped):
            trained(tmp_path / "r.h5", X, y, config, weight=weight, resources=Resources(observer=Stops()))
        trained(tmp_path / "r.h5", X, y, config, resume=True, weight=weight, resources=Resources(jobs=2))
        assert content(tmp_path / "r.h5") == content(tmp_path / "1.h5")
    with LocalModel(tmp_path / "1.h5") as model:
        values = model.decision_function(X)
        some = X[5:8] if not thinned else as_examples(sparse.csr_array(X)[5:8])
        assert_array_equal(model.decision_function(some), values[5:8])
        assert np.isfinite(values).all()
        if config.probability:
            assert_allclose(model.probabilities(X).sum(axis=1), 1.0)


@pytest.mark.parametrize("metric", ["full", "diag", "rank:1", "auto"])
def test_a_partition_file_gives_the_same_model(metric: str, tmp_path: Path) -> None:
    X, y = rows()
    config = TrainingConfig(EITHER if metric == "auto" else GRID, "voronoi", 80, metric=metric, folds=3)
    partition_only(Dataset(X.copy(), y), config, tmp_path / "p.h5")
    for name, file in (("with", tmp_path / "p.h5"), ("without", None)):
        trained(tmp_path / f"{name}.h5", X, y, config, partition_file=file)
    assert content(tmp_path / "with.h5") == content(tmp_path / "without.h5")


def test_a_partition_with_a_metric_needs_two_classes(tmp_path: Path) -> None:
    X, _ = rows(50)
    with pytest.raises(DataError, match="all 50 rows have the label 3"):
        partition_only(Dataset(X, np.full(50, 3.0)), TrainingConfig(POINT, metric="diag"), tmp_path / "p.h5")


@pytest.mark.parametrize("metric", ["diag", "full", "rank:2"])
@pytest.mark.parametrize("scale", ["zscore", "minmax"])
def test_a_linear_model_is_its_weights(metric: str, scale: str) -> None:
    from localsvm.estimators import LinearSVMClassifier

    X, y = rows(150, classes=3)
    X[:, 2] = 0.0  # does not occur
    model = LinearSVMClassifier(cost=1.0, metric=metric, scale=scale, n_jobs=1).fit(5.0 + 3.0 * X, y)
    assert model.coef_.shape == (3, 4)
    wanted = (5.0 + 3.0 * X) @ model.coef_.T + model.intercept_
    assert_allclose(model.decision_function(5.0 + 3.0 * X), wanted, atol=1e-3)


def test_estimators_have_metrics() -> None:
    X, y = rows(200)
    model = LocalSVC(metric="diag", gamma=1.0, cost=10.0, n_jobs=1).fit(X, y)
    assert model.score(X, y) > 0.8 and model.summary_.metric == {"name": "diag"}


# --- what the error is of


def test_the_error_is_that_of_fresh_rows_however_often_they_occur(tmp_path: Path) -> None:
    """Rows of which each occurs many times are kept once; what is fresh among them is counted."""
    X = np.tile(np.asarray([[0.0, 1.0], [1.0, 0.0], [2.0, 3.0]], np.float32), (80, 1))
    y = (np.arange(240) % 3 == 0).astype(np.float64)
    config = TrainingConfig(GRID, "voronoi", 10, metric="diag", probability=True, folds=2)
    divided = divide(Dataset(X.copy(), y), config)
    cells = divided.only
    assert cells.fresh is not None and divided.measured.fresh is not None
    fresh = float((cells.fresh.array * cells.mass.array).sum())
    assert fresh == pytest.approx(cells.fresh_rows) == np.count_nonzero(divided.measured.fresh) == 48
    assert len(cells.mass.array) < 240
    assert trained(tmp_path / "m.h5", X, y, config).cv_error is not None


def test_cells_without_fresh_rows_have_probabilities(tmp_path: Path) -> None:
    X, y = rows(100)
    X[:80] += np.float32(100.0)
    summary = trained(
        tmp_path / "m.h5", X, y, TrainingConfig(GRID, "voronoi", 10, metric="diag", probability=True, folds=2)
    )
    assert summary.cells > 6
    with LocalModel(tmp_path / "m.h5") as model:
        assert np.isfinite(model.probabilities(X)).all()


# --- the edge


def edges() -> dict[str, tuple[Examples, np.ndarray]]:
    rng, (Z, y) = np.random.default_rng(3), rows(40)
    two, eye = np.asarray([[0.0, 1.0], [1.0, 0.0]], np.float32), np.eye(8, dtype=np.float32)
    sets: dict[str, tuple[Any, Any]] = {
        "two rows": (two, [0, 1]),
        "five and one": (Z[:6], [0, 0, 0, 0, 0, 1]),
        "a class of one row": (Z, np.where(np.arange(40) == 7, 2, y)),
        "99 to 1": (rng.standard_normal((200, 3)), np.arange(200) < 2),
        "all rows equal": (np.ones((40, 3)), y),
        "constant and equal columns": (np.c_[Z, Z, np.ones(40)], y),
        "one of a group": (eye[rng.integers(0, 8, 40)], y),
        "Cauchy": (rng.standard_cauchy((100, 3)), np.arange(100) % 2),
        "far outlier": (np.where(np.arange(160).reshape(40, 4) == 7, 1e16, Z), y),
        "far from 0": (Z + 1e6, y),
        "two far groups": (Z + 1e4 * y[:, None], y),
        "tiny": (1e-44 * np.round(Z * 10), y),
        "many columns": (rng.standard_normal((60, 300)), np.arange(60) % 2),
        "sparse": (thin(Z), y),
    }
    return {
        name: (X if sparse.issparse(X) else np.asarray(X, np.float32), np.asarray(labels, np.float64))
        for name, (X, labels) in sets.items()
    }


@pytest.mark.fast(3)
@pytest.mark.parametrize("name", edges())
def test_rows_at_the_edge(name: str, tmp_path: Path) -> None:
    X, y = edges()[name]
    for metric in ("auto", "diag") if name == "sparse" else ("auto", "diag", "rank:1" if len(y) % 3 else "full"):
        for scale in ("std", "none"):
            method = EITHER if metric == "auto" else GRID
            config = TrainingConfig(method, metric=metric, scale=scale, folds=2, probability=scale == "std")
            summary = trained(tmp_path / "m.h5", X, y, config)
            assert summary.cv_error is not None and 0.0 <= summary.cv_error <= 1.0
            with LocalModel(tmp_path / "m.h5") as model:
                assert np.isfinite(model.decision_function(X.copy())).all()
                assert model.chain.width == X.shape[1] and model.chain.dense == (name != "sparse")


def hard() -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Rows of the sizes and kinds that a user has, each with a signal in two columns."""
    rng = np.random.default_rng(5)
    (Z, y), (few, few_y) = rows(600), rows(200)
    group = rng.integers(0, 12, 600)
    by_group = np.where(group % 2, Z[:, 0] > 0, y)
    rare = np.argsort(Z[:, 0] * Z[:, 1])[-6:]
    return {
        "1000 columns": (np.c_[few, rng.standard_normal((200, 996))], few_y),
        "200 rows": (few, few_y),
        "99 to 1": (Z, np.isin(np.arange(600), rare).astype(np.float64)),
        "Cauchy": (np.c_[Z, rng.standard_cauchy((600, 6))], y),
        "constant and equal columns": (np.c_[Z, Z[:, :2], np.full((600, 2), 3.0), Z[:, :1]], y),
        "one-hot groups": (np.c_[Z[:, :2], np.eye(12)[group], np.eye(4)[group % 4]], by_group),
    }  # fmt: skip


@pytest.mark.fast(1)
@pytest.mark.parametrize("name", hard())
@pytest.mark.parametrize("metric", ["auto", "full"])
def test_hard_rows_give_finite_models_without_a_warning(
    name: str, metric: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Hard rows give finite values after as many learning steps as in users' runs, without a warning."""
    monkeypatch.setattr(measuring, "CHOICE_PLAN", USUAL)
    monkeypatch.setattr(measuring, "LearningPlan", LearningPlan)
    tried = Mock(side_effect=choose)
    monkeypatch.setattr(measuring, "choose", tried)
    X, y = hard()[name]
    X = X.astype(np.float32)
    method = EITHER if metric == "auto" else GRID
    summary = trained(tmp_path / "m.h5", X, y, TrainingConfig(method, metric=metric, folds=3, probability=True))
    assert summary.cv_error is not None and 0.0 <= summary.cv_error <= 1.0
    if metric == "auto":
        views, _, options, *_ = tried.call_args.args
        assert (options.widest_matrix(X.shape[1]) > 0) == (name != "1000 columns")
        assert options.distances == ("euclidean", "manhattan")
        assert tuple(views) == options.views == ((False,) if name == "1000 columns" else (False, True))
    with LocalModel(tmp_path / "m.h5") as model:
        assert np.isfinite(model.decision_function(X.copy())).all()
        assert_allclose(model.probabilities(X.copy()).sum(axis=1), 1.0)
        assert np.isfinite(model.decision_function(np.float32(1e3) * X)).all()


def test_weights_at_the_ends_of_what_is_allowed(tmp_path: Path) -> None:
    X, y = rows(60)
    weight = np.where(np.arange(60) % 2, 1e38, 1e-300)
    config = TrainingConfig(POINT, metric="auto", class_weights=((1.0, 1e5),), folds=2)
    trained(tmp_path / "m.h5", X, y, config, weight=weight)


def test_values_of_unseen_columns_are_ignored(tmp_path: Path) -> None:
    X, y = rows(80)
    trained(tmp_path / "m.h5", np.c_[X[:, :2], np.zeros((80, 1), np.float32), X[:, 2:]], y,
            TrainingConfig(POINT, metric="rank:2"))  # fmt: skip
    seen = np.c_[X[:, :2], np.zeros((80, 1)), X[:, 2:]].astype(np.float32)
    other = seen.copy()
    other[:, 2] = 7.0
    with LocalModel(tmp_path / "m.h5") as model:
        assert_array_equal(model.decision_function(seen), model.decision_function(other))
