"""The choice of a geometry: its labels, what is chosen for which rows, and what limits the choice."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import product
from statistics import NormalDist
from typing import Any

import numpy as np
import pytest
from dividing import divide
from scipy.spatial.distance import cdist
from selecting import observed_of

from localsvm import LocalSVR
from localsvm.data.blocks.dataset import Dataset
from localsvm.errors import OptionError
from localsvm.features.learned import learned_metric
from localsvm.features.ranks import Ranks
from localsvm.methods.kernel.svm import KernelSVM
from localsvm.methods.linear.linear import LinearSVM
from localsvm.representations import metric_judging as judging
from localsvm.representations import metric_trial as choosing
from localsvm.representations.distances import DISTANCES
from localsvm.representations.metric import Geometry
from localsvm.representations.metric_choice import Options, choose, stratified_folds
from localsvm.representations.metric_judging import Judged
from localsvm.representations.metric_rows import MetricRows
from localsvm.runs.config import TrainingConfig
from localsvm.runs.cross_validate import cross_validate
from localsvm.runs.preparation import metric as measuring
from localsvm.runs.preparation.measured import Measured
from localsvm.runs.preparation.metric import measure
from localsvm.store.pieces import Unsound
from localsvm.targets.base import Observed, ValueRange
from localsvm.threads import ALONE, Threads

AUTO = TrainingConfig(metric="auto")
EITHER = ("euclidean", "manhattan")
GEOMETRIES = [
    Geometry(distance, ranks, form, strength)
    for distance, ranks, form in product(tuple(DISTANCES), (False, True), ("", "diag", "full"))
    for strength in ((1.0, 0.5, 0.25) if form else (1.0,))
]
Labelled = tuple[np.ndarray, np.ndarray]


def signs(n: int, seed: int, d: int) -> Labelled:
    """Rows of normal columns, of which two decide the labels."""
    Z = np.random.default_rng(seed).standard_normal((n, d))
    return Z, np.where(Z[:, 0] * Z[:, 1] > 0, 1.0, -1.0)


def heavy(n: int = 400, seed: int = 0) -> Labelled:
    """Rows of which only the ranks are of use: a few are so far away that all others are one point."""
    Z, y = signs(n, seed, 4)
    X = np.exp(3 * Z)
    return (X / X.std(axis=0)).astype(np.float32), y


def additive(n: int = 400, seed: int = 0) -> Labelled:
    """Rows whose columns each count for themselves, and all alike."""
    X = np.random.default_rng(seed).standard_normal((n, 12))
    return X.astype(np.float32), np.where(np.sign(np.sin(3 * X)).sum(axis=1) > 0, 1.0, -1.0)


def rotated(n: int = 400, seed: int = 0) -> Labelled:
    """Rows of which two directions matter, which are none of the columns."""
    Z, y = signs(n, seed, 8)
    return (Z @ np.linalg.qr(np.random.default_rng(1).standard_normal((8, 8)))[0]).astype(np.float32), y


def two_of_many(n: int = 400, seed: int = 0) -> Labelled:
    Z, y = signs(n, seed, 12)
    return Z.astype(np.float32), y


def noise(n: int, seed: int, d: int = 5, classes: int = 2, share: float = 0.5) -> Labelled:
    """Labels that know nothing of the rows; share : of the second of two classes."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)).astype(np.float32)
    return X, (rng.integers(classes, size=n) if classes > 2 else rng.random(n) < share).astype(np.float64)


def measured(rows: Labelled, config: TrainingConfig = AUTO, threads: Threads = ALONE) -> Measured:
    return measure(Dataset(*rows), observed_of(rows[1]), config, threads, Ranks.fit(rows[0]))


def chosen(rows: Labelled, config: TrainingConfig = AUTO) -> Geometry:
    description = measured(rows, config).description
    assert description is not None
    geometry = Geometry.of(description["name"])
    assert geometry is not None
    return geometry


# --- labels


@pytest.mark.parametrize("geometry", GEOMETRIES, ids=lambda geometry: geometry.label)
@pytest.mark.fast(len(GEOMETRIES))
def test_a_label_names_its_geometry(geometry: Geometry) -> None:
    assert Geometry.of(geometry.label) == geometry


def test_labels_differ() -> None:
    labels = [each.label for each in GEOMETRIES]
    assert len(set(labels)) == len(labels) and "none" in labels and "manhattan+ranks+diag^0.5" in labels


@pytest.mark.parametrize(
    "label",
    [
        "", "euclidean", "auto", "manhattan+", "+ranks", "ranks+manhattan", "diag+ranks", "manhattanranks", "none+diag",
        "diag^1", "diag^0.50", "diag^0", "diag^0.0", "^0.5", "diag^-0.5", "diag^2", "rank:2", "nca", "diag\n", "DIAG",
    ],
)  # fmt: skip
@pytest.mark.fast(20)
def test_nonsense_names_none(label: str) -> None:
    assert Geometry.of(label) is None


TWO = {"loss": [0.8, 0.5], "error": [0.3, 0.2], "z": [-9.0, -3.0], "bound": [-2.0, 1.0]}
NONE: dict[str, Any] = {"best": "none", **{name: [] for name in TWO}}


@pytest.mark.parametrize(
    "record",
    [
        TWO | {"name": "manhattan+ranks", "best": "manhattan+ranks"},
        TWO | {"name": "none", "best": "ranks+diag^0.25"},
        TWO | {"name": "manhattan", "best": "manhattan+diag"},
        NONE | {"name": "none", "why": "one class"},
        NONE | {"name": "manhattan+ranks"},
    ],
)
@pytest.mark.fast(5)
def test_a_record_of_a_choice_without_a_metric(record: dict[str, Any]) -> None:
    assert learned_metric(None, {"metric": "auto", "learned": record}, 4) is None
    with pytest.raises(Unsound, match="learned"):
        learned_metric(None, {"metric": "diag", "learned": record}, 4)


WEIGHTS = ("weights", {"weights": np.ones(4, np.float32)})
DIAG = TWO | {"name": "manhattan+diag^0.5", "best": "manhattan+diag^0.5"}


@pytest.mark.parametrize(
    "change",
    [
        {"name": "manhattan+"},
        {"name": "diag"},
        {"name": "auto"},
        {"name": "rank:2", "best": "rank:2"},
        {"name": "full", "best": "full"},
        {"name": "ranks", "best": "ranks"},
        {"name": "none"},
        {"best": "nonsense"},
        {"best": "none"},
        {"loss": [0.5]},
        {"error": [0.5, 0.4, 0.3]},
        {"z": []},
        {"bound": ["a", "b"]},
        {"why": "one class"},
        {"more": 1},
    ],
    ids=str,
)
@pytest.mark.fast(15)
def test_records_that_are_no_choice_are_refused(change: dict[str, Any]) -> None:
    assert learned_metric(WEIGHTS, {"metric": "auto", "learned": DIAG}, 4) is not None
    with pytest.raises(Unsound, match=r"learned|/metric"):
        learned_metric(WEIGHTS, {"metric": "auto", "learned": DIAG | change}, 4)


# --- what is chosen


@pytest.mark.parametrize(
    ("rows", "kind"),
    [
        (heavy, {"ranks": True}),
        (additive, {"distance": "manhattan"}),
        (rotated, {"distance": "euclidean", "form": "full"}),
        (two_of_many, {"form": "diag"}),
    ],
)
@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.fast(8)
def test_what_helps_is_chosen(rows: Callable[..., Labelled], kind: dict[str, Any], seed: int) -> None:
    geometry = chosen(rows(seed=seed))
    assert {name: getattr(geometry, name) for name in kind} == kind, geometry.label


@pytest.mark.parametrize(
    ("n", "options"),
    [
        (200, {"classes": 40}),
        pytest.param(600, {"classes": 10, "d": 10}, marks=pytest.mark.whole),
        pytest.param(600, {"share": 0.05, "d": 10}, marks=pytest.mark.whole),
        pytest.param(3000, {"d": 8}, marks=pytest.mark.whole),
    ],
    ids=str,
)
@pytest.mark.fast(4)
def test_labels_at_random_keep_the_euclidean_geometry(n: int, options: dict[str, Any]) -> None:
    """The loss of noise falls below that of the Euclidean geometry, but not below that of guessing."""
    names = [chosen(noise(n, seed, **options)).label for seed in range(6)]
    assert names.count("none") >= 5, names


@pytest.mark.parametrize("seed", range(3))
def test_the_error_of_noise_is_a_half(seed: int) -> None:
    method = KernelSVM(cost=(0.1, 1.0))
    result = cross_validate(Dataset(*noise(400, seed)), TrainingConfig(method, metric="auto", folds=2))
    assert abs(result.error - 0.5) < 3 * np.sqrt(0.25 / result.error_rows)


def test_a_level_is_shared_by_the_candidates_for_classes_alone() -> None:
    X, y = signs(400, 0, 3)
    of_classes = measured((X.astype(np.float32), y)).description
    of_values = LocalSVR(cost=[1.0], repeats=1).fit(X, X[:, 0] * X[:, 1]).summary_.metric
    assert of_classes is not None and of_classes["bound"][0] < -2.0
    assert of_values["bound"][0] == pytest.approx(NormalDist().inv_cdf(0.05)), "normal, as 320 rows judge"


@pytest.mark.parametrize("seed", range(3))
def test_values_at_random_are_worth_their_mean(seed: int) -> None:
    rng = np.random.default_rng(seed)
    X, y = rng.standard_normal((1200, 6)), rng.standard_normal(1200)
    assert LocalSVR().fit(X[:600], y[:600]).score(X[600:], y[600:]) > -0.05


def test_threads_are_of_no_influence() -> None:
    rows = heavy(300)
    with Threads(2) as threads:
        one, two = measured(rows), measured(rows, threads=threads)
    assert one.description == two.description
    assert one.metric is not None and two.metric is not None
    for found, same in zip(one.metric.state().values(), two.metric.state().values(), strict=True):
        np.testing.assert_array_equal(found, same)


def test_a_run_has_the_kernel_and_the_ranks_that_were_chosen() -> None:
    for rows, distance, ranked in ((heavy(), None, True), (additive(), "manhattan", None)):
        divided = divide(Dataset(*rows), TrainingConfig(KernelSVM(cost=(1.0,)), "voronoi", 100, metric="auto"))
        geometry = Geometry.of(divided.as_dict()["learned"]["name"])
        assert geometry is not None and distance in (None, geometry.distance) and ranked in (None, geometry.ranks)
        config, chain = divided.prepared.config, divided.chain
        assert isinstance(config.method, KernelSVM)
        assert config.method.kernel == DISTANCES[geometry.distance].kernel
        assert config.views == ("ranks" if geometry.ranks else "none") and (chain.ranks is not None) == geometry.ranks
        assert (chain.metric is None) == (geometry.form == "")
        assert divided.partition.name == DISTANCES[geometry.distance].cells
        if chain.metric is not None:  # as large as the Euclidean geometry, whatever the strength
            size = np.mean if geometry.distance == "manhattan" else lambda w: np.sqrt((w**2).mean())
            assert size(chain.metric.values.astype(np.float64)) == pytest.approx(1.0, rel=1e-4)


def test_rough_values_have_the_laplacian_kernel() -> None:
    """Values whose covariance falls off as exp(-r) have no slope anywhere. Threads are of no influence."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((900, 2))
    y = np.linalg.cholesky(np.exp(-cdist(X, X)) + 1e-6 * np.eye(len(X))) @ rng.standard_normal(len(X))
    model, again = (LocalSVR(cost=[1.0, 10.0], repeats=1, n_jobs=jobs).fit(X[:700], y[:700]) for jobs in (1, 2))
    assert model.summary_.metric["name"].startswith("laplacian") and model.model_ == again.model_
    gaussian = LocalSVR(kernel="gaussian", cost=[1.0, 10.0], repeats=1).fit(X[:700], y[:700])
    assert model.score(X[700:], y[700:]) > gaussian.score(X[700:], y[700:])


# --- what limits it


def tried(monkeypatch: pytest.MonkeyPatch, rows: Labelled, config: TrainingConfig) -> tuple[Options, str]:
    """The geometries that a run may choose among, and the label of what it has."""
    seen: list[Options] = []

    def kept(views: Any, folds: Any, options: Options, *more: Any) -> Any:
        assert set(views) == set(options.views)
        seen.append(options)
        return choose(views, folds, options, *more)

    monkeypatch.setattr(measuring, "choose", kept)
    prepared = divide(Dataset(*rows), config).prepared
    return seen[0], prepared.as_dict()["learned"]["name"]


@pytest.mark.parametrize(
    ("method", "views", "expected"),
    [
        (KernelSVM(), "auto", Options(EITHER, (False, True))),
        (KernelSVM(loss="least-squares"), "auto", Options((*EITHER, "laplacian"), (False, True))),
        (KernelSVM(), "none", Options(EITHER, (False,))),
        (KernelSVM(), "ranks", Options(EITHER, (True,))),
        (KernelSVM(kernel="gaussian"), "auto", Options(("euclidean",), (False, True))),
        (KernelSVM(gamma=(0.1, 1.0)), "none", Options(("euclidean",), (False,))),
        (KernelSVM(kernel="laplacian"), "ranks", Options(("laplacian",), (True,))),
        (KernelSVM(kernel="manhattan"), "auto", Options(("manhattan",), (False, True), 0)),
        (LinearSVM(), "auto", Options(("euclidean",), (False, True))),
    ],
    ids=str,
)
@pytest.mark.fast(8)
def test_options_limit_the_candidates(
    method: Any, views: str, expected: Options, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = TrainingConfig(method, metric="auto", views=views, repeats=1)
    options, name = tried(monkeypatch, additive(120), config)
    assert options == expected
    geometry = Geometry.of(name)
    assert geometry is not None and geometry.distance in expected.distances and geometry.ranks in expected.views
    assert geometry.form != "full" or expected.matrix_columns


def test_columns_of_few_values_leave_no_ranks_to_try(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = additive(120)
    for views in ("auto", "ranks"):
        options, _ = tried(monkeypatch, (np.sign(X), y), TrainingConfig(metric="auto", views=views))
        assert options.views == (False,)


def test_wide_rows_have_no_matrix_and_no_ranks(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = noise(60, 0, d=257)
    config = replace(AUTO, repeats=1)
    learned = choosing.Trial.learned
    forms: list[set[str]] = []

    def kept(self: Any, *given: Any) -> Any:
        found = learned(self, *given)
        forms.append({each.form for each in found})
        return found

    monkeypatch.setattr(choosing.Trial, "learned", kept)
    assert tried(monkeypatch, rows, config)[0] == Options(EITHER, (False,))
    asked = replace(config, views="ranks")
    assert tried(monkeypatch, rows, asked)[0] == Options(EITHER, (True,))
    tried(monkeypatch, noise(60, 0, d=256), replace(config, views="none"))
    assert forms == [{"diag"}, {"diag"}, {"diag", "full"}]


@pytest.mark.parametrize(("columns", "expected"), [(100, 200), (150, 256), (256, 256), (257, 0)])
def test_memory_is_for_the_widest_matrix(columns: int, expected: int) -> None:
    """Columns of few values have no ranks, so a view may have any number of ranks up to one for each column."""
    assert Options(views=(False, True)).widest_matrix(columns) == expected
    assert Options(views=(False,)).widest_matrix(columns) == (columns if expected else 0)
    assert Options(matrix_columns=0).widest_matrix(columns) == 0


@pytest.mark.parametrize(
    ("columns", "expected"), [(11, []), (12, ["full"]), (23, ["full"]), (24, ["full", "ranks+full"])]
)
def test_a_view_of_more_columns_than_asked_has_no_matrix(columns: int, expected: list[str]) -> None:
    X, y = additive(300)
    folds = stratified_folds((y > 0).astype(np.float64), np.random.default_rng(0))
    rows = MetricRows(X, y[:, None].astype(np.float32), np.ones(300))
    views = {False: rows, True: rows._replace(X=np.hstack([X, X]))}
    made = choosing.Trial(views, folds, measuring.CHOICE_PLAN, 0, ALONE)
    learned = made.learned([Geometry(), Geometry(ranks=True)], columns)
    assert [each.label for each in learned if each.form == "full"] == expected


def test_the_kernel_of_a_distance_refuses_a_mixing_metric() -> None:
    with pytest.raises(OptionError, match="mixes features"):
        TrainingConfig(KernelSVM(kernel="manhattan"), metric="full")
    assert TrainingConfig(KernelSVM(), metric="full").method.measuring("euclidean").distances == ("euclidean",)


def test_stretches_are_those_of_the_rows_that_are_learned_from(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of few of many rows: they are not all of one stretch, of which a metric could learn nothing."""
    monkeypatch.setattr("localsvm.runs.preparation.draws.MOST_LEARN", 400)
    rng = np.random.default_rng(0)
    X = rng.standard_normal((2400, 4)).astype(np.float32)
    y = np.sin(2.0 * X[:, 1])
    observed = Observed(len(y), values=ValueRange(float(y.mean()), float(y.std()), float(y.min()), float(y.max())))
    config = TrainingConfig(KernelSVM(loss="least-squares"), metric="diag", blocks=True)
    metric = measure(Dataset(X, y), observed, config, ALONE).metric
    assert metric is not None
    weight = np.abs(metric.values)
    assert weight[1] > 5.0 * weight[[0, 2, 3]].max()


def test_stretches_of_rows_choose_a_metric_for_later_ones() -> None:
    """The time says the level of a stretch, and nothing of stretches that were never seen; the second column does."""
    rng, n = np.random.default_rng(0), 4000
    X = np.column_stack([np.arange(n) / n, rng.standard_normal((n, 4))]).astype(np.float32)
    level = rng.standard_normal(40)[np.arange(n) * 40 // n]
    y = np.sin(3.0 * X[:, 1]) + 0.5 * level + 0.1 * rng.standard_normal(n)
    data, method = Dataset(X, y), KernelSVM(loss="least-squares")
    observed = Observed(n, values=ValueRange(float(y.mean()), float(y.std()), float(y.min()), float(y.max())))
    found = {}
    for blocks in (False, True):
        config = TrainingConfig(method, metric="auto", blocks=blocks, repeats=1)
        measured = measure(data, observed, config, ALONE)
        assert measured.metric is not None and measured.description is not None
        weight = np.abs(measured.metric.values)
        found[blocks] = weight[0] / weight[1]
    assert found[True] < 0.5 < found[False]


# --- how weak a metric may be


def trial(losses: dict[str, np.ndarray]) -> Any:
    """A trial in which the first fold has judged these geometries, with the same errors."""
    n = len(next(iter(losses.values())))
    data = MetricRows(np.zeros((n, 1), np.float32), np.ones((n, 1), np.float32), np.ones(n))
    made = choosing.Trial({False: data, True: data}, np.zeros(n, np.int64), measuring.CHOICE_PLAN, 0, ALONE)
    for label, loss in losses.items():
        geometry = Geometry.of(label)
        assert geometry is not None
        made._results[geometry] = {0: Judged(np.stack([loss, np.zeros(n)]), np.zeros((n, 1)))}
    return made


def test_the_weakest_metric_within_a_standard_error_is_taken() -> None:
    rng = np.random.default_rng(0)
    unit = rng.standard_normal(400)
    unit = (unit - unit.mean()) / unit.std() * np.sqrt(400)  # a mean difference of 1 is one standard error

    def losses(**above: float) -> dict[str, np.ndarray]:
        """Losses of strengths by how many standard errors they are above that of diag."""
        base = rng.random(400)
        names = {"half": "diag^0.5", "quarter": "diag^0.25", "none": "none", "ranks": "ranks", "full": "full"}
        return {"diag": base} | {names[name]: base + unit + z for name, z in above.items()}

    def weakest(best: str, **above: float) -> str:
        made = trial(losses(**above))
        geometry = Geometry.of(best)
        return str(made.weakest(geometry, list(made._results)).label)

    assert weakest("diag", half=0.5, quarter=0.9, none=3.0) == "diag^0.25"
    assert weakest("diag", half=0.5, quarter=1.1, none=0.9) == "none"
    assert weakest("diag", half=1.1, quarter=3.0, none=1.5) == "diag"
    assert weakest("diag", half=1.1, quarter=3.0, ranks=0.0) == "diag"  # of another view
    assert weakest("diag^0.25", quarter=0.0) == "diag^0.25"  # not a stronger one
    assert weakest("full", full=0.0, none=0.0) == "full"


@pytest.mark.parametrize("geometry", [Geometry(form="diag"), Geometry(form="full"), Geometry("manhattan", form="diag")])
def test_the_rows_of_a_fold_teach_nothing_to_what_they_judge(geometry: Geometry) -> None:
    X, y = additive(150)
    folds = stratified_folds((y > 0).astype(np.float64), np.random.default_rng(0))
    courses = []
    for labels in (y, np.where(folds == 0, -y, y)):
        rows = MetricRows(X, labels[:, None].astype(np.float32), np.ones(150))
        made = choosing.Trial({False: rows}, folds, measuring.CHOICE_PLAN, 0, ALONE)
        made.add([geometry], (0, 1))
        courses.append([made._courses[geometry, fold] for fold in (0, 1)])
    (one, other), (same, changed) = courses
    np.testing.assert_array_equal(one.values, same.values)
    assert (one.scale, one.ridge) == (same.scale, same.ridge)
    assert not np.array_equal(other.values, changed.values)


def test_copies_that_fill_a_cell_get_the_mean_of_other_rows() -> None:
    """They stay in one fold, so that no row of another one is near them."""
    rng = np.random.default_rng(0)
    X = np.vstack([np.zeros((700, 2)), 50 + rng.standard_normal((500, 2))]).astype(np.float32)
    Y = rng.choice([-1.0, 1.0], (1200, 3), p=[0.8, 0.2]).astype(np.float32)
    weight, folds = rng.random(1200), np.append(np.zeros(700, np.int64), rng.integers(0, 3, 500))
    made = choosing.Trial({False: MetricRows(X, Y, weight)}, folds, measuring.CHOICE_PLAN, 0, ALONE)
    made.add([Geometry()], (0,))
    mean = np.average(Y[folds != 0], axis=0, weights=weight[folds != 0])
    np.testing.assert_allclose(made._values(Geometry())[:700], np.tile(mean, (700, 1)), rtol=1e-12)
    assert len(np.unique(made._values(Geometry())[700:], axis=0)) > 50


# --- what is not judged


def test_weaker_ones_are_judged_until_one_is_clearly_worse(monkeypatch: pytest.MonkeyPatch) -> None:
    base = np.random.default_rng(0).random(400)
    above = {"diag": 0.0, "diag^0.5": -0.2, "diag^0.25": 0.5, "none": 0.0}
    tried, made = [Geometry.named(label) for label in above], trial({"diag": base})

    def add(candidates: list[Geometry], folds: tuple[int, ...]) -> None:
        for each in candidates:
            loss = base + above[each.label]
            made._results[each] = {0: Judged(np.stack([loss, loss]), np.zeros((400, 1)))}

    monkeypatch.setattr(made, "add", add)
    assert [each.label for each in made.weakened(tried[:1], tried)] == ["diag", "diag^0.5", "diag^0.25"]


def test_weights_that_are_far_behind_have_no_matrix() -> None:
    rng = np.random.default_rng(0)
    base, noise = 2.0 + rng.random(400), rng.standard_normal(400)

    def far(more: float, spread: float) -> bool:
        made = trial({"manhattan+diag": base, "diag": base + more + spread * noise})
        return bool(made._is_far(Geometry.named("diag")))

    assert far(0.5, 0.5)
    assert not far(0.1, 0.01)
    assert not far(0.5, 10.0)


@pytest.mark.parametrize(
    ("above", "matrix", "expected"),
    [(1.0, 60.0, ["full", "ranks+full"]), (3.0, 60.0, ["full"]), (3.0, 40.0, ["full", "ranks+full"])],
    ids=["both", "clearly worse", "where a matrix is best"],
)
def test_of_two_views_the_clearly_worse_one_has_a_matrix_where_that_of_the_other_is_best(
    monkeypatch: pytest.MonkeyPatch, above: float, matrix: float, expected: list[str]
) -> None:
    """Three standard errors of the loss are clear, one is not."""
    noise = np.random.default_rng(0).standard_normal(400)
    noise = (noise - noise.mean()) / noise.std() * np.sqrt(400)  # a mean difference of 1 is one standard error
    made = trial({"none": 100.0 + noise, "diag": 50.0 + 0.0 * noise, "ranks+diag": 50.0 + above + noise})

    def add(candidates: list[Geometry], folds: tuple[int, ...]) -> None:
        for each in candidates:
            loss = np.full(400, matrix)
            made._results.setdefault(each, {0: Judged(np.stack([loss, loss]), np.zeros((400, 1)))})

    monkeypatch.setattr(made, "add", add)
    learned = made.learned([Geometry(), Geometry(ranks=True)], 256)
    assert [each.label for each in learned if each.form == "full"] == expected


def test_what_is_weaker_than_a_power_of_weights() -> None:
    diag, plain = Geometry("manhattan", form="diag"), Geometry("manhattan")
    quarter = diag._replace(strength=0.25)
    assert choosing.weaker(diag) == [diag._replace(strength=0.5), quarter, plain]
    assert choosing.weaker(quarter) == [plain] and choosing.weaker(plain) == []


def test_tuning_goes_downhill() -> None:
    """Of a loss with one valley it finds what looking at all steps finds, and not a number is no way down."""

    class Valley:
        def __init__(self, loss: Any) -> None:
            self.steps: list[tuple[float, float]] = []
            self._loss = loss

        def loss(self, cells: Any, step: tuple[float, float]) -> float:
            self.steps.append(step)
            return float(self._loss(*step))

    for scale, ridge in product((-0.6, 0.0, 0.4, 0.9), (-1.4, 0.1, 1.2)):

        def loss(s: float, r: float, scale: float = scale, ridge: float = ridge) -> float:
            return (s - scale) ** 2 + (r - ridge) ** 2

        valley = Valley(loss)
        assert judging._tuned(valley, []) == min(product(judging.SCALES, judging.RIDGES), key=lambda step: loss(*step))
        assert len(valley.steps) < len(judging.SCALES) + len(judging.RIDGES) - 1
    assert judging._tuned(Valley(lambda s, r: np.nan), []) == (0.0, 0.0)
