"""NCA, ITML and LMNN against their definitions, and as `--metric`."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import approx_fprime, minimize
from selecting import observed_of
from sklearn.neighbors import KNeighborsClassifier

from localsvm.data.blocks.dataset import Dataset, sparse_examples
from localsvm.errors import OptionError
from localsvm.representations.baselines import BASELINE_ROWS, BASELINES, learned_by
from localsvm.representations.itml import Pairs, draw, project
from localsvm.representations.lmnn import TargetNeighbours, lmnn
from localsvm.runs.config import TrainingConfig
from localsvm.runs.preparation.metric import measure
from localsvm.threads import Threads

NAMES = sorted(BASELINES)


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def noisy(rows: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """The first feature tells two classes apart; the last, by far the widest, is noise."""
    random = rng(seed)
    codes = random.integers(2, size=rows)
    X = random.normal(size=(rows, 3)) * (1.0, 1.0, 60.0)
    X[:, 0] += 3.0 * codes
    return X, codes


def five_pairs() -> Pairs:
    V = rng(3).normal(size=(5, 2))
    sign = np.asarray([1.0, -1.0, 1.0, -1.0, 1.0])
    return Pairs(V, sign, np.where(sign > 0.0, 0.5, 4.0))


@pytest.mark.parametrize("gamma", [0.1, 1.0, 10.0])
def test_itml_is_the_minimum_under_its_constraints(gamma: float) -> None:
    pairs = five_pairs()
    solution = project(pairs, gamma, tolerance=1e-12)

    def divergence(x: np.ndarray) -> float:
        root, ratio = np.asarray([[x[0], 0.0], [x[1], x[2]]]), x[3:] / pairs.bound
        of_matrix = np.square(root).sum() - 2.0 * np.log(np.abs(x[0] * x[2])) - 2.0
        return float(of_matrix + gamma * (ratio - np.log(ratio) - 1.0).sum())

    def room(x: np.ndarray) -> np.ndarray:
        mapped = pairs.V @ np.asarray([[x[0], 0.0], [x[1], x[2]]])
        return pairs.sign * (x[3:] - np.square(mapped).sum(axis=1))

    first = np.concatenate([[1.0, 0.0, 1.0], pairs.bound])
    limits = [(1e-3, None), (None, None), (1e-3, None)] + [(1e-3, None)] * 5
    best = minimize(
        divergence, first, method="SLSQP", bounds=limits, constraints={"type": "ineq", "fun": room},
        options={"ftol": 1e-14, "maxiter": 1000},
    )  # fmt: skip
    root = np.asarray([[best.x[0], 0.0], [best.x[1], best.x[2]]])
    assert np.abs(solution.A - np.eye(2)).max() > 0.1
    assert pytest.approx(root @ root.T, abs=1e-4) == solution.A
    assert solution.bound == pytest.approx(best.x[3:], abs=1e-4)


def test_itml_meets_the_conditions_of_an_optimum() -> None:
    """The conditions of Karush, Kuhn and Tucker hold for pairs as they are drawn."""
    X, codes = noisy(60, 1)
    pairs, gamma = draw(X, codes, rng(2)), 0.3
    solution = project(pairs, gamma, tolerance=1e-10, projections=1_000_000)
    signed = pairs.sign * solution.multiplier
    assert np.linalg.eigvalsh(solution.A)[0] > 0.0
    assert np.linalg.inv(solution.A) == pytest.approx(np.eye(3) + pairs.V.T @ (signed[:, None] * pairs.V), rel=1e-8)
    assert 1.0 / solution.bound == pytest.approx(1.0 / pairs.bound - signed / gamma, rel=1e-8)
    room = pairs.sign * (1.0 - np.einsum("ij,jk,ik->i", pairs.V, solution.A, pairs.V) / solution.bound)
    assert room.min() > -1e-6
    assert solution.multiplier.min() >= 0.0
    used = solution.multiplier > 1e-6
    assert 10 < np.count_nonzero(used) < len(used)
    assert np.abs(room[used]).max() < 1e-6


def test_pairs_have_the_classes_that_they_say() -> None:
    codes = np.asarray([0] * 30 + [1] * 3 + [4] * 1)
    X = np.column_stack([codes, 100.0 + np.arange(34)]).astype(np.float64)
    pairs = draw(X, codes, rng())
    apart = pairs.V[:, 0] != 0.0
    assert np.array_equal(apart, pairs.sign < 0.0)
    assert 0 < np.count_nonzero(~apart) < 90
    assert np.count_nonzero(apart) == 90
    assert np.all(np.square(pairs.V).sum(axis=1) > 0.0)
    assert pairs.bound[0] < pairs.bound[-1]


def loss_by_loops(rows: TargetNeighbours, M: np.ndarray) -> float:
    Z, total = rows.X @ M, 0.0
    for i, targets in enumerate(rows.targets):
        for j in targets[targets >= 0]:
            near = np.square(Z[i] - Z[j]).sum()
            total += 0.5 * near
            for other in np.flatnonzero(rows.codes != rows.codes[i]):
                total += 0.5 * max(0.0, 1.0 + near - np.square(Z[i] - Z[other]).sum())
    return total


def small() -> TargetNeighbours:
    random = rng(5)
    codes = np.asarray([0] * 12 + [1] * 9 + [2] * 3 + [3])  # the last classes have fewer rows than targets are wanted
    return TargetNeighbours.of(random.normal(size=(25, 3)), codes)


def test_lmnn_has_the_nearest_rows_of_the_class_as_targets() -> None:
    rows = small()
    assert [np.count_nonzero(rows.targets[i] >= 0) for i in (0, 12, 21, 24)] == [3, 3, 2, 0]
    apart = np.square(rows.X[4] - rows.X[:12]).sum(axis=1)
    assert list(rows.targets[4]) == list(np.argsort(apart)[1:4])


@pytest.mark.parametrize("columns", [3, 2])
def test_the_loss_of_lmnn_and_its_gradient(columns: int) -> None:
    rows, M = small(), rng(6).normal(size=(3, columns))
    loss, slope = rows.loss(M)
    assert loss == pytest.approx(loss_by_loops(rows, M), rel=1e-12)
    numeric = approx_fprime(M.ravel(), lambda flat: rows.loss(flat.reshape(M.shape))[0], 1e-7)
    assert slope.ravel() == pytest.approx(numeric, rel=1e-5, abs=1e-4)


def test_lmnn_lowers_its_loss_below_that_of_every_multiple_of_the_euclidean_metric() -> None:
    X, codes = noisy(150, 1)
    rows, M = TargetNeighbours.of(X, codes), lmnn(X, codes, rng())
    euclidean = min(rows.loss(factor * np.eye(3))[0] for factor in np.geomspace(0.01, 10.0, 40))
    assert rows.loss(M)[0] < 0.7 * euclidean


@pytest.mark.fast(1)
@pytest.mark.parametrize("name", NAMES)
def test_a_wide_feature_of_noise_is_seen_through(name: str) -> None:
    (X, codes), (Z, truth) = noisy(200, 1), noisy(1000, 2)
    M = learned_by(name, X, codes, rng())
    assert M.shape == (3, 3)

    def wrong(map_: np.ndarray) -> float:
        return float(np.mean(KNeighborsClassifier(3).fit(X @ map_, codes).predict(Z @ map_) != truth))

    assert wrong(np.eye(3)) > 0.2
    assert wrong(M) < 0.7 * wrong(np.eye(3))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    ("X", "codes"),
    [
        (rng().normal(size=(20, 3)), np.zeros(20, np.intp)),
        (np.ones((20, 3)), np.arange(20) % 2),
        (rng().normal(size=(1, 3)), np.zeros(1, np.intp)),
    ],
    ids=["one class", "equal rows", "one row"],
)
def test_where_nothing_can_be_learned_it_is_euclidean(name: str, X: np.ndarray, codes: np.ndarray) -> None:
    M = learned_by(name, X, codes, rng())
    assert pytest.approx(np.eye(3), abs=1e-9) == M @ M.T


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("factor", [1e-6, 1e12])
def test_odd_rows_give_a_finite_metric(name: str, factor: float) -> None:
    """A rare class, a constant column, a column twice, rows twice with different labels, a far row."""
    random = rng(7)
    X = random.normal(size=(60, 3))
    X[40:] = X[20:40]
    X[0] *= 1e3
    X = factor * np.column_stack([X, X[:, 0], np.ones(60)])
    codes = np.where(np.isin(np.arange(60), (7, 25)), 4, 1)
    M = learned_by(name, X, codes, rng())
    assert np.all(np.isfinite(M))
    assert np.abs(M).max() > 0.0


@pytest.mark.fast(1)
@pytest.mark.parametrize("name", NAMES)
def test_a_run_learns_it_from_some_rows_alone_and_the_others_are_fresh(name: str) -> None:
    X, codes = noisy(300, 1)
    data = Dataset(X.astype(np.float32), codes.astype(np.float64))
    config = TrainingConfig(metric=name)
    one = measure(data, observed_of(data.y), config, Threads(1))
    assert one.metric is not None and one.fresh is not None
    assert one.metric.importance()[2] < 0.5 * one.metric.importance()[0]
    assert np.square(one.metric.values).sum() == pytest.approx(3.0, rel=1e-5)
    assert np.count_nonzero(one.fresh) == 60
    X[one.fresh] *= -5.0
    others = Dataset(X.astype(np.float32), codes.astype(np.float64))
    two = measure(others, observed_of(others.y), config, Threads(2))
    assert two.metric is not None
    assert np.array_equal(one.metric.values, two.metric.values)


def test_of_many_rows_few_are_learned_from() -> None:
    X, codes = noisy(2 * BASELINE_ROWS, 1)
    data = Dataset(X.astype(np.float32), codes.astype(np.float64))
    measured = measure(data, observed_of(data.y), TrainingConfig(metric="itml"), Threads(1))
    assert measured.fresh is not None
    assert np.count_nonzero(~measured.fresh) == BASELINE_ROWS


@pytest.mark.whole
@pytest.mark.parametrize("name", NAMES)
def test_nearly_as_many_classes_as_rows_bring_no_warning(name: str) -> None:
    X = rng().normal(size=(60, 3)).astype(np.float32)
    y = np.arange(60) // 2 * 1.0
    measure(Dataset(X, y), observed_of(y), TrainingConfig(metric=name), Threads(1))


@pytest.mark.parametrize("name", NAMES)
def test_sparse_rows_are_refused(name: str) -> None:
    rows = sparse.random_array((30, 5), density=0.3, rng=rng(), format="csr", dtype=np.float32)
    X, y = sparse_examples(rows.data, rows.indices, rows.indptr, 5), np.arange(30) % 2.0
    with pytest.raises(OptionError, match=f"--metric {name} mixes features and needs dense rows"):
        measure(Dataset(X, y), observed_of(y), TrainingConfig(metric=name), Threads(1))
