"""--repeats with --metric auto: members of different geometries, whose values are averaged by weights."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from click.testing import CliRunner
from dividing import divide
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray
from parts_of_text import Parts
from scipy import sparse
from selecting import observed_of

from localsvm.cli.group import lsvm
from localsvm.data.blocks.dataset import Dataset, as_examples
from localsvm.data.blocks.dealing import Mates
from localsvm.data.writers.libsvm import write
from localsvm.engines.disk import Disk
from localsvm.engines.spark import Spark
from localsvm.errors import ModelError
from localsvm.estimators import LocalSVC
from localsvm.features.joint import Joint, widened
from localsvm.features.metric import Metric
from localsvm.methods.kernel.svm import KernelSVM
from localsvm.methods.linear.linear import LinearSVM
from localsvm.partition import create, restore
from localsvm.partition.members import Members
from localsvm.representations import metric_trial as choosing
from localsvm.representations.distances import DISTANCES
from localsvm.representations.metric import Geometry
from localsvm.representations.metric_judging import Judged
from localsvm.representations.metric_rows import MetricRows
from localsvm.runs.cells import averaged as averages
from localsvm.runs.cells.averaged import averaged
from localsvm.runs.cells.schedule import Resources
from localsvm.runs.config import TrainingConfig
from localsvm.runs.cross_validate import cross_validate
from localsvm.runs.partition import partition_only
from localsvm.runs.predict import LocalModel
from localsvm.runs.preparation import metric as measuring
from localsvm.runs.preparation.given import read_given
from localsvm.runs.preparation.metric import CHOICE_PLAN, _options
from localsvm.runs.progress import Silent
from localsvm.runs.train import train
from localsvm.selection import averaging
from localsvm.store.pieces import Unsound
from localsvm.threads import ALONE

Floats = NDArray[np.float64]
THREE = TrainingConfig(KernelSVM(), repeats=3)
CELLS = replace(THREE, partition="voronoi", cell_size=120)


def rows(n: int = 400, seed: int = 0, classes: int = 2) -> Dataset:
    """Rows of five columns, of which three matter, one by its ranks alone; with classes=0 their labels are values."""
    Z = np.random.default_rng(seed).standard_normal((n, 5))
    value = Z[:, 0] * Z[:, 1] + 0.7 * Z[:, 2]
    y = np.digitize(value, [0.0] if classes == 2 else [-0.4, 0.4]).astype(np.float64) if classes else value
    Z[:, 2] = np.exp(2 * Z[:, 2])
    return Dataset((Z / Z.std(axis=0)).astype(np.float32), y)


def diagonal_wave() -> Dataset:
    """Rows of two classes that alternate along a diagonal: only a matrix finds it."""
    Z = np.random.default_rng(0).standard_normal((400, 5)).astype(np.float32)
    return Dataset(Z, (np.sin(Z.sum(axis=1)) > 0).astype(np.float64))


def manifest(path: Path) -> bytes:
    with h5py.File(path) as file:
        return bytes(file.attrs["manifest"])


def learned(path: Path) -> dict[str, Any]:
    with h5py.File(path) as file:
        return dict(json.loads(file.attrs["config"])["learned"])


# --- weights


def loss(values: np.ndarray, Y: np.ndarray, weight: np.ndarray) -> float:
    total = 0.0
    for of_problem, targets in zip(values, Y.T, strict=True):
        for value, target, w in zip(of_problem, targets, weight, strict=True):
            total += w * max(0.0, 1 - value * target) ** 2 if target else 0.0
    return total


@settings(max_examples=50, deadline=None)
@given(arrays(np.float64, (3, 2, 8), elements=st.floats(-1, 1)), st.integers(0, 1000))
def test_the_loss_of_a_mean_is_the_sum_of_squared_hinges(values: np.ndarray, seed: int) -> None:
    rng = np.random.default_rng(seed)
    Y, weight = rng.integers(-1, 2, (8, 2)).astype(np.float64), rng.random(8)
    shares = rng.dirichlet(np.ones(3))
    mean = averaging._mean(values, shares)
    np.testing.assert_allclose(mean, sum(s * v for s, v in zip(shares, values, strict=True)))
    assert averaging._hinge(mean, Y, weight) == pytest.approx(loss(mean, Y, weight))


def halves(n: int) -> np.ndarray:
    return np.random.default_rng(3).permutation(n) % 2


def test_greedy_weights_are_near_the_best_ones_of_a_grid() -> None:
    rng = np.random.default_rng(0)
    Y, weight = rng.choice([-1.0, 1.0], (600, 1)), rng.random(600)
    values = np.clip(Y.T * 0.4 + rng.standard_normal((3, 1, 600)) * np.asarray([0.6, 0.8, 2.0])[:, None, None], -1, 1)
    grid = [np.asarray([a, b, 20 - a - b]) / 20 for a, b in product(range(21), repeat=2) if a + b <= 20]
    best = min(averaging._hinge(averaging._mean(values, w), Y, weight) for w in grid)
    chosen = averaging.member_weights(values, Y, weight, halves(600))
    assert chosen is not None and chosen.sum() == pytest.approx(1.0)
    equal = averaging._hinge(averaging._mean(values, np.full(3, 1 / 3)), Y, weight)
    found = averaging._hinge(averaging._mean(values, chosen), Y, weight)
    assert best <= found <= best + 0.02 * (equal - best)
    few = slice(averaging.LEAST_ROWS - 1)
    assert averaging.member_weights(values[..., few], Y[few], weight[few], halves(600)[few]) is None


def test_weights_that_decide_more_rows_wrongly_are_not_taken() -> None:
    rng, n = np.random.default_rng(2), 3000
    Y, weight = rng.choice([-1.0, 1.0], (n, 1)), np.ones(n)
    right = rng.random((2, 1, n)) < np.asarray([0.98, 0.9])[:, None, None]
    values = Y.T * np.where(right, [[[0.3]], [[1.0]]], -0.2)  # the first one is right more often, and never sure

    def wrong(mean: Floats, rows: NDArray[np.int64]) -> float:
        return float(((mean[0] * Y[rows, 0] <= 0) * weight[rows]).sum())

    chosen = averaging.member_weights(values, Y, weight, halves(n))
    assert chosen is not None and chosen[1] > 0.5  # by the loss alone
    assert wrong(averaging._mean(values, chosen), np.arange(n)) > wrong(values.mean(axis=0), np.arange(n))
    assert averaging.member_weights(values, Y, weight, halves(n), wrong=wrong) is None


def test_members_that_are_alike_weigh_the_same() -> None:
    rng = np.random.default_rng(1)
    Y = rng.choice([-1.0, 1.0], (600, 1))
    values = np.clip(Y.T * 0.5 + rng.standard_normal((4, 1, 600)), -1, 1)
    assert averaging.member_weights(values, Y, np.ones(600), halves(600)) is None
    assert averaging.member_weights(np.repeat(values[:1], 3, axis=0), Y, np.ones(600), halves(600)) is None


Journal = dict[str, dict[str, Any]]


def journal(values: np.ndarray, y: np.ndarray, numbers: list[np.ndarray], **more: np.ndarray) -> Journal:
    """One record a member (see `runs.cells.records`), which has the rows of these numbers."""
    out: Journal = {}
    for member, places in enumerate(numbers):
        held = {"y": y[places], "mass": np.full(len(places), 2.0), "numbers": places}
        held |= {name: array[places] for name, array in more.items()}
        out[str(member)] = {f"held/{name}": array for name, array in held.items()} | {"v": values[member][places]}
    return out


@pytest.fixture
def unpacked(monkeypatch: pytest.MonkeyPatch) -> None:
    class Unpacked:
        def __init__(self, record: dict[str, Any]) -> None:
            self.values = record["v"][None]

    monkeypatch.setattr(averages, "unpack", Unpacked)


@pytest.mark.usefixtures("unpacked")
def test_rows_that_a_member_lacks_and_weights_of_0_say_nothing() -> None:
    """The second member lacks row 1, and row 4 is not fresh."""
    rng = np.random.default_rng(0)
    numbers = [np.asarray([3, 1, 0, 2, 4, 5]), np.asarray([0, 2, 3, 5, 4])]
    y, values = np.asarray([0.0, 1, 1, 0, 1, 0]), rng.uniform(-1, 1, (2, 6)).astype(np.float32)
    records = journal(values, y, numbers, fresh=np.asarray([1.0, 1, 1, 1, 0, 1]))
    config = TrainingConfig(class_weights=((1.0, 3.0),))
    mean = averaged(config, config.target(observed_of(y)), records, [["0"], ["1"]], 6)
    assert mean.weights is None
    known = [0, 2, 3, 5]
    wrong = (values[:, known].astype(np.float64).mean(axis=0) > 0) != (y[known] > 0)
    weight = 2.0 * np.where(y[known] == 1, 3.0, 1.0)
    assert mean.error == pytest.approx(weight[wrong].sum() / weight.sum())


@pytest.mark.usefixtures("unpacked")
@pytest.mark.parametrize("grouped", [False, True])
def test_weights_do_not_depend_on_the_order_of_the_classes(grouped: bool) -> None:
    """Members that lean to one class each, and one of noise, in a file whose labels alternate."""
    rng, n = np.random.default_rng(0), 2000
    y = np.arange(n) % 2.0
    noise = rng.standard_normal((3, n)) * np.asarray([0.5, 0.5, 1.0])[:, None]
    values = noise + np.stack([(2 * y - 1) * 0.3 + 0.25, (2 * y - 1) * 0.3 - 0.25, np.zeros(n)])
    every, more = np.arange(n), {"mates": np.arange(n) // 10} if grouped else {}
    records = journal(values.astype(np.float32), y, [every] * 3, **more)
    config = TrainingConfig()
    mean = averaged(config, config.target(observed_of(y)), records, [["0"], ["1"], ["2"]], n)
    assert mean.weights is not None and mean.weights[2] < 0.1 < mean.weights[:2].min()


@pytest.mark.usefixtures("unpacked")
def test_a_sample_of_very_many_rows_says_what_all_say(monkeypatch: pytest.MonkeyPatch) -> None:
    rng, n = np.random.default_rng(0), 20_000
    y = rng.integers(0, 2, n).astype(np.float64)
    values = ((2 * y - 1) * 0.5 + rng.standard_normal((2, n)) * np.asarray([[0.5], [1.5]])).astype(np.float32)
    records = journal(values, y, [np.arange(n)] * 2)
    config = TrainingConfig()
    target = config.target(observed_of(y))
    every = averaged(config, target, records, [["0"], ["1"]], n)
    monkeypatch.setattr(averages, "SAMPLE_VALUES", 10_000)
    some = averaged(config, target, records, [["0"], ["1"]], n)
    assert 4000 < some.mass.sum() / 2 < 6000 and every.mass.sum() == 2 * n
    assert every.weights is not None and some.weights is not None
    assert abs(every.weights - some.weights).max() <= 0.1 and some.error == pytest.approx(every.error, abs=0.02)


# --- metrics side by side


@pytest.mark.parametrize("thin", [False, True])
def test_what_each_metric_gives_stands_side_by_side(thin: bool) -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((30, 3)).astype(np.float32)
    metrics = [Metric(rng.random(3).astype(np.float32)) for _ in range(2)]
    if not thin:
        metrics.append(Metric(rng.standard_normal((3, 3)).astype(np.float32)))
    joint, members = Joint(tuple(metrics)), Members(("euclidean",) * len(metrics), 3)
    rows = as_examples(sparse.csr_array(X)) if thin else X
    both = joint.apply(rows)
    assert both.shape == (30, joint.columns(3))
    for repeat in range(5):  # in turn
        expected, seen = metrics[repeat % len(metrics)].apply(rows), members.seen(repeat, both)
        if thin:
            expected, seen = expected.toarray(), seen.toarray()
        np.testing.assert_array_equal(seen, expected)
    kinds = [each.kind for each in metrics]
    again = Joint.from_state(kinds, joint.state(), 3)
    assert all(np.array_equal(a.values, b.values) for a, b in zip(again.parts, metrics, strict=True))
    for state in ({}, joint.state() | {"9/weights": metrics[0].values}):
        with pytest.raises(Unsound, match="members"):
            Joint.from_state(kinds, state, 3)
    with pytest.raises(Unsound):
        Joint.from_state(kinds, joint.state(), 4)
    with pytest.raises(Unsound, match="other columns"):
        Joint.from_state(["matrix"], {"0/matrix": np.ones((3, 2), np.float32)}, 3)


def test_a_metric_without_ranks_multiplies_them_by_0() -> None:
    X = np.random.default_rng(0).standard_normal((20, 5)).astype(np.float32)
    matrix = np.random.default_rng(1).standard_normal((3, 3)).astype(np.float32)
    for metric in (None, Metric(np.asarray([1, 2, 3], np.float32)), Metric(matrix)):
        wide = widened(metric, 3, 5).apply(X)
        np.testing.assert_array_equal(wide[:, 3:], 0.0)
        np.testing.assert_allclose(
            wide[:, :3], X[:, :3] if metric is None else metric.apply(X[:, :3].copy()), rtol=1e-5
        )


# --- the choice


def test_members_are_the_best_geometry_of_each_kind() -> None:
    description = divide(rows(), replace(THREE, repeats=9)).measured.description
    assert description is not None
    geometries = [Geometry.named(label) for label in description["members"]]
    assert geometries[0].label == description["name"] and 1 < len(geometries) <= 6
    assert len({choosing.kind(each) for each in geometries}) == len(geometries)
    assert divide(rows(), replace(THREE, repeats=2)).measured.description["members"] == description["members"][:2]  # type: ignore[index]
    alone = divide(rows(), replace(THREE, repeats=1)).measured.description
    assert alone == {name: value for name, value in description.items() if name != "members"}


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.fast(2)
def test_classes_have_two_members_of_different_distances(classes: int) -> None:
    """Without being asked, unless nothing but plain distances is good, or there is one distance."""
    config = TrainingConfig()

    def description(**given: Any) -> dict[str, Any]:
        found = divide(rows(seed=3, classes=classes), replace(config, **given)).measured.description
        assert found is not None
        return found

    found = divide(rows(seed=3, classes=classes), config)
    assert len(found.partition.cells_by_repeat) == 2
    members = [Geometry.named(label) for label in description()["members"]]
    assert members[0].label == description()["name"] and members[0].distance != members[1].distance
    detects = [{"roc": True}] if classes == 2 else []
    single = [{"repeats": 1}, {"coverage": 0.9}, {"method": KernelSVM(kernel="gaussian")}, *detects]
    for other in single:
        assert "members" not in description(**other), other
    noise = rows(seed=3, classes=classes)  # whose labels say nothing
    noise.y = np.random.default_rng(0).permutation(noise.y)
    refused = divide(noise, config).measured.description
    assert refused is not None and refused["name"] == "none" and "members" not in refused


def test_values_have_two_members_without_being_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """In up to MEMBER_ROWS rows, and where few groups or stretches judge."""
    values = TrainingConfig(KernelSVM(loss="least-squares"))
    later = replace(values, blocks=True)
    coarse = replace(later, coarse_size=200, cell_size=100)
    for group, config in ((None, values), (None, later), (np.arange(400) // 10, values), (None, coarse)):
        found = divide(replace(rows(classes=0), group=group), config)
        description = found.measured.description
        assert description is not None and len(description["members"]) == 2 == len(found.partition.cells_by_repeat)
        alone = divide(replace(rows(classes=0), group=group), replace(config, repeats=1)).measured.description
        assert alone is not None and "members" not in alone
    for blocks in (False, True):  # classes have one rule, in which the mean with the Manhattan distance is worse
        classes = divide(diagonal_wave(), TrainingConfig(blocks=blocks)).measured.description
        assert classes is not None and classes["name"].endswith("full") and "members" not in classes
    options: list[dict[str, Any]] = [{"coverage": 0.9}, {"effort": "low", "metric": "auto"}]
    for each in options:
        single = divide(rows(classes=0), replace(values, **each)).measured.description
        assert single is not None and "members" not in single, each
    monkeypatch.setattr(measuring, "MEMBER_ROWS", 399)
    for group, count in ((None, 1), (np.arange(400) // 10, 2)):
        found = divide(replace(rows(classes=0), group=group), values)
        assert len(found.partition.cells_by_repeat) == count


def judged_trial(truth: Floats, wrong: dict[str, Floats], *, values: bool) -> choosing.Trial:
    """A trial whose candidates have given the truth (n,) and these errors (n,) to the rows of the only fold."""
    target = truth[:, None].astype(np.float32)
    data = MetricRows(np.zeros((len(truth), 1), np.float32), target, np.ones(len(truth)), values=values)
    trial = choosing.Trial({False: data, True: data}, np.zeros(len(truth), np.int64), CHOICE_PLAN, 0, ALONE)
    for label, error in wrong.items():
        found = truth[:, None] + error[:, None]
        trial._results[Geometry.named(label)] = {0: Judged(data.losses(data.Y, found), found)}
    return trial


def test_a_partner_is_the_best_learned_geometry_of_another_distance() -> None:
    rng = np.random.default_rng(0)
    truth, noise = rng.standard_normal(400), rng.standard_normal((3, 400))
    wrong = {
        "diag": noise[0],
        "full": noise[1],  # of the same distance
        "manhattan+diag": 1.2 * noise[2],
        "manhattan+diag^0.5": 1.4 * noise[2],
        "manhattan+diag^0.25": 1.4 * noise[2],
        "manhattan+ranks+diag": 2.0 * noise[1],
    }
    trial = judged_trial(truth, {label: 0.3 * error for label, error in wrong.items()}, values=True)
    diag, full, other = (Geometry.named(label) for label in ("diag", "full", "manhattan+diag"))
    assert trial.rivals(diag, full) == [other] and trial.rivals(diag, other) == [full, other]
    assert trial.partners(diag, [full, other], Geometry(), 0.01) == [other]


def test_a_mean_that_is_worse_has_no_partner() -> None:
    rng = np.random.default_rng(0)
    truth, noise, full = np.sign(rng.standard_normal(2000)), rng.standard_normal((2, 2000)), Geometry.named("full")
    for size, found in ((1.2, ["manhattan+diag"]), (2.0, [])):
        wrong = {"full": 0.8 * noise[0], "manhattan+diag": size * noise[1], "manhattan+diag^0.5": 9.0 * noise[1]}
        trial = judged_trial(truth, wrong, values=False)
        assert [each.label for each in trial.partners(full, trial.rivals(full, full), Geometry(), 0.01)] == found, size
    # errors and loss together: of the mean the loss is much smaller here, and the errors are a little more
    sure = {"full": -0.9 * truth, "manhattan+diag": np.where(noise[0] < 1.5, 0.0, -1.2) * truth}
    for times, found in ((1.0, ["manhattan+diag"]), (9.0, [])):
        sure["manhattan+diag"][noise[0] >= 1.5] *= times  # so that the loss is larger, too
        trial = judged_trial(truth, {**sure, "manhattan+diag^0.5": 9.0 * noise[1]}, values=False)
        assert [each.label for each in trial.partners(full, trial.rivals(full, full), Geometry(), 0.01)] == found, times


def test_the_mean_with_plain_distances_has_to_be_clearly_better() -> None:
    rng = np.random.default_rng(0)
    truth, noise = np.sign(rng.standard_normal(2000)), rng.standard_normal((2, 2000))
    for learns, size, found in ((1.0, 0.9, True), (1.0, 1.6, False), (0.0, 0.9, False)):  # of nothing but noise, too
        wrong = {"none": 0.8 * noise[0], "manhattan+diag": size * noise[1], "manhattan+diag^0.5": 9.0 * noise[1]}
        wrong = {label: error + (learns - 1.0) * truth for label, error in wrong.items()}
        trial = judged_trial(truth, {**wrong, "diag": wrong["none"]}, values=False)
        rivals = [Geometry.named("manhattan+diag")]
        assert trial.partners(Geometry(), rivals, Geometry(), 0.01) == (rivals if found else []), (learns, size)
        two = Mates((np.abs(noise[1]) < 0.7).astype(np.int64), whole=True)  # groups: one gains, and the other loses
        assert not trial.partners(Geometry(), rivals, Geometry(), 0.01, two)


def test_repeats_that_the_choice_says_are_not_those_of_an_option() -> None:
    """A run that is resumed has the same options: without --repeats there is one geometry, or there are two."""
    for loss in ("least-squares", "hinge"):
        auto = TrainingConfig(KernelSVM(loss=loss))
        assert auto.times == 2 and auto.as_dict()["repeats"] is None and auto.for_rows(100).repeats is None
        for known in ({"repeats": 2}, {"metric": "none"}, {"effort": "low", "metric": "auto"}, {"coverage": 0.9}):
            config, times = replace(auto, **known), known.get("repeats", 1)  # type: ignore[arg-type]
            assert config.as_dict()["repeats"] == config.for_rows(100).repeats == config.times == times
    methods = KernelSVM(gamma=(1.0,), cost=(1.0,)), KernelSVM(cost=(1.0,)), LinearSVM()
    assert [TrainingConfig(method, metric="auto").times for method in methods] == [1, 2, 1]
    promises = {"coverage": 0.9}, {"roc": True}, {"scoring": "npl", "false_alarm": 0.05}
    assert [TrainingConfig(**given).times for given in promises] == [1, 1, 1]
    assert [TrainingConfig(effort="high", **given).times for given in promises] == [6, 6, 6]
    shape = 400, 5
    assert [_options(TrainingConfig(), True, shape, True, each, False).members for each in (100, 101)] == [2, 1]
    assert _options(THREE, True, shape, True, 101, False).members == 3


@pytest.mark.whole
def test_two_members_of_values_are_better_than_one(tmp_path: Path) -> None:
    errors = []
    for repeats in (1, None):
        config = TrainingConfig(KernelSVM(loss="least-squares"), repeats=repeats)
        errors.append(train(rows(classes=0), config, tmp_path / "m.h5", force=True).cv_error)
    assert errors[1] < errors[0]


@pytest.mark.whole
def test_noise_has_one_geometry_or_chance_for_an_error(tmp_path: Path) -> None:
    rng, errors = np.random.default_rng(5), []
    for seed in range(4):
        X = rng.standard_normal((300, 5)).astype(np.float32)
        summary = train(Dataset(X, rng.integers(0, 2, 300) * 1.0), replace(CELLS, seed=seed), tmp_path / f"{seed}.h5")
        errors.append(summary.cv_error)
    assert abs(np.mean(errors) - 0.5) < 0.08  # a standard error is .015 to .03


@pytest.mark.whole
def test_high_effort_has_members_and_one_cell_of_one_geometry_has_none(tmp_path: Path) -> None:
    high = TrainingConfig(effort="high")
    summary = train(rows(), high, tmp_path / "m.h5")
    assert summary.repeats == 6 and len(summary.metric["members"]) > 1

    def few() -> Dataset:
        return Dataset(rows().X[:4].copy(), np.asarray([0.0, 1, 0, 1]))

    assert train(few(), high, tmp_path / "few.h5").repeats == 1
    assert TrainingConfig(effort="high", metric="none").times == 1
    told: list[str] = []

    class Noting(Silent):
        def note(self, text: str) -> None:
            told.append(text)

    asked = train(few(), THREE, tmp_path / "asked.h5", resources=Resources(observer=Noting()))
    assert asked.repeats == 1 and any("has nothing to repeat" in text for text in told)
    for extra in ({"partition": "none", "coarse_size": 100}, {"coarse_size": 100, "cell_size": 50}):
        columns = np.random.default_rng(0).standard_normal((300, 1500)).astype(np.float32)  # too many to try a metric
        wide = Dataset(columns, np.arange(300) % 2.0)
        assert train(wide, replace(high, **extra), tmp_path / "wide.h5", force=True).repeats == 6  # type: ignore[arg-type]


@pytest.mark.whole
def test_cross_validation_averages_members_as_training_does(tmp_path: Path) -> None:
    config = replace(CELLS, grid="full")
    summary, table = train(rows(900), config, tmp_path / "m.h5"), cross_validate(rows(900), config)
    assert table.error == summary.cv_error and table.metric == summary.metric and len(table.metric["members"]) > 1
    scored = replace(config, scoring="tpr-tnr")
    assert train(rows(900), scored, tmp_path / "s.h5").cv_recalls == cross_validate(rows(900), scored).recalls


def test_a_given_metric_is_not_repeated_by_an_effort(tmp_path: Path) -> None:
    partition_only(rows(), replace(CELLS, repeats=None, metric="diag"), tmp_path / "p.h5")
    metric = read_given(tmp_path / "p.h5")
    assert metric.fix(replace(CELLS, repeats=None, effort="high")).times == 1
    assert metric.fix(CELLS).times == 3


def test_a_partition_file_has_one_geometry(tmp_path: Path) -> None:
    high = replace(CELLS, repeats=None, effort="high")
    partition_only(rows(), high, tmp_path / "p.h5")
    with h5py.File(tmp_path / "p.h5") as file:
        assert "members" not in json.loads(file.attrs["config"])["learned"]
    summary = train(rows(), high, tmp_path / "m.h5", partition_file=tmp_path / "p.h5")
    assert summary.repeats == 1 and learned(tmp_path / "m.h5").get("members") is None


@pytest.mark.whole
def test_members_of_an_estimator() -> None:
    known, test = rows(), rows(300, 7)
    model = LocalSVC(effort="high").fit(known.X, known.y)
    assert model.score(test.X, test.y) > 0.75
    few = LocalSVC(repeats=2, partition="voronoi", cell_size=120).fit(known.X, known.y)
    assert few.score(test.X, test.y) > 0.75


# --- training and prediction


def expected_values(model: LocalModel, X: np.ndarray) -> np.ndarray:
    """The weighted mean of members, each by its metric alone."""
    record = learned(Path(model.file.path))
    parts, before = model.partition.parts, 0
    weights = record.get("weights", [1 / len(parts)] * len(parts))
    viewed, total = model.chain.viewed(model.chain.scaled(X)), np.zeros((len(X), model.target.n_problems))
    for repeat, part in enumerate(parts):
        number = repeat % len(record["members"])
        geometry = Geometry.named(record["members"][number])
        Z = model.chain.metric.parts[number].apply(viewed.copy())
        method = model.method.measuring(geometry.distance)
        assert method.kernel == DISTANCES[geometry.distance].kernel
        cells = part.assign(Z) if part.n_cells > 1 else np.zeros(len(X), int)
        for cell in np.unique(cells):
            here = cells == cell
            predictor = method.predictor(model.file.cell(before + int(cell)), model.target, Z.shape[1])
            total[here] += weights[repeat] * np.clip(predictor.decision_function(Z[here]), -1, 1)
        before += part.n_cells
    return total


@pytest.mark.parametrize(("config", "classes"), [(THREE, 2), (CELLS, 2), (replace(CELLS, repeats=8), 3)])
def test_values_are_the_weighted_mean_of_members(config: TrainingConfig, classes: int, tmp_path: Path) -> None:
    summary = train(rows(classes=classes), config, tmp_path / "m.h5")
    test = rows(500, 9, classes)
    with LocalModel(tmp_path / "m.h5") as model:
        record = learned(tmp_path / "m.h5")
        assert len({Geometry.named(label).distance for label in record["members"]}) == 2
        assert len(model.partition.parts) == config.repeats == summary.repeats
        assert len(record.get("weights", range(config.repeats))) == config.repeats
        np.testing.assert_allclose(model.decision_function(test.X), expected_values(model, test.X), atol=1e-6)
        assert (model.predict(test.X) != test.y).mean() < 0.35


def test_weights_of_members_are_in_the_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shares = np.asarray([0.75, 0.0, 0.25])
    monkeypatch.setattr("localsvm.runs.cells.averaged.member_weights", lambda *_: shares)
    train(rows(), CELLS, tmp_path / "m.h5")
    assert learned(tmp_path / "m.h5")["weights"] == shares.tolist()
    with LocalModel(tmp_path / "m.h5") as model:
        X = rows(200, 3).X
        np.testing.assert_allclose(model.decision_function(X), expected_values(model, X), atol=1e-6)
        routes = model.partition.route(model.chain.apply(X))
        assert routes.nnz == 400  # cells of a member that weighs nothing are not asked


class Stop(Exception):
    """Ends a run in the middle."""


class StopAfter(Silent):
    def __init__(self, cells: int) -> None:
        self.left = cells

    def cell_done(self, wrong: float, weight: float) -> None:
        self.left -= 1
        if not self.left:
            raise Stop


@pytest.mark.fast(1)
@pytest.mark.parametrize("probability", [False, True])
def test_jobs_and_a_resume_change_no_bit(probability: bool, tmp_path: Path) -> None:
    config = replace(CELLS, probability=probability)
    train(rows(), config, tmp_path / "whole.h5", resources=Resources(jobs=2))
    with pytest.raises(Stop):
        train(rows(), config, tmp_path / "m.h5", resources=Resources(observer=StopAfter(5)))
    train(rows(), config, tmp_path / "m.h5", resume=True)
    assert manifest(tmp_path / "m.h5") == manifest(tmp_path / "whole.h5")
    if probability:
        with LocalModel(tmp_path / "m.h5") as model:
            chances = model.probabilities(rows(300, 4).X)
            np.testing.assert_allclose(chances.sum(axis=1), 1.0)
            assert (chances.argmax(axis=1) == rows(300, 4).y).mean() > 0.7


@pytest.mark.whole
def test_rows_on_disk_and_in_parts_give_the_same_bits(tmp_path: Path) -> None:
    data = rows(900)
    write(tmp_path / "rows", data.X, data.y)
    config = replace(CELLS, coarse_size=300)
    from localsvm.data.readers.libsvm import read

    summary = train(read(tmp_path / "rows"), config, tmp_path / "memory.h5")
    assert len(summary.metric["members"]) > 1 and summary.coarse_cells > 3
    disk = Disk(tmp_path / "rows", zero_based=False, shifts=config.shifts)
    train(disk, config, tmp_path / "disk.h5")
    parts = Spark(Parts(tmp_path / "rows", [100, 470]), zero_based=False, shifts=config.shifts)
    train(parts, config, tmp_path / "parts.h5")
    assert manifest(tmp_path / "memory.h5") == manifest(tmp_path / "disk.h5") == manifest(tmp_path / "parts.h5")


def test_sparse_rows_have_members_of_both_distances(tmp_path: Path) -> None:
    data = rows(500)
    rng = np.random.default_rng(0)
    X = data.X * (rng.random(data.X.shape) < 0.8)
    X[:, 3:] = 0
    X[:, 3:] += 3 * (rng.random((500, 2)) < 0.1)  # which mean nothing
    summary = train(Dataset(as_examples(sparse.csr_array(X.astype(np.float32))), data.y), CELLS, tmp_path / "m.h5")
    if "members" in summary.metric:
        assert {Geometry.named(label).ranks for label in summary.metric["members"]} == {False}
    with LocalModel(tmp_path / "m.h5") as model:
        thin = as_examples(sparse.csr_array(X[:50].astype(np.float32)))
        np.testing.assert_allclose(model.decision_function(thin), model.decision_function(X[:50].astype(np.float32)))


# --- what is said of them


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    data, path = rows(), tmp_path / "rows"
    write(path, data.X, data.y)
    return path, tmp_path / "m.h5"


@pytest.mark.whole
def test_members_are_told(files: tuple[Path, Path]) -> None:
    data, model = map(str, files)
    done = CliRunner().invoke(lsvm, ["train", "--repeats", "3", data, model])
    assert done.exit_code == 0
    lines = done.stderr.splitlines()
    first = next(i for i, line in enumerate(lines) if line.startswith("members"))
    told = [line[12:] for line in lines[first : first + 3]]
    assert sum(float(line.split()[0]) for line in told) == pytest.approx(1.0, abs=0.02)
    assert all(" distance" in line for line in told) and "repeat, in the mean" not in done.stderr
    shown = CliRunner().invoke(lsvm, ["inspect", model])
    assert shown.exit_code == 0 and all(line in shown.stdout for line in told)
    assert "of members; the weights are their means" in shown.stdout
    assert "none, 3 repeats, 3 cells" in shown.stdout
    point = CliRunner().invoke(lsvm, ["train", "--force", "--repeats", "3", "-g", "1", "-C", "1", data, model])
    assert "one point, cross-validated for the weights of the members: error" in point.stderr
    table = CliRunner().invoke(lsvm, ["cv", "--repeats", "3", data])
    assert table.exit_code == 0 and "members    0.33 " in table.stderr


def test_a_file_with_several_metrics_is_given_to_no_other_run(files: tuple[Path, Path]) -> None:
    data, model = map(str, files)
    assert CliRunner().invoke(lsvm, ["train", "-q", "--repeats", "3", data, model]).exit_code == 0
    with pytest.raises(ModelError, match="with --repeats 1"):
        read_given(model)
    done = CliRunner().invoke(lsvm, ["train", "--metric-file", model, data, model + "2"])
    assert done.exit_code in (1, 2) and "several metrics, of members" in done.stderr, done.stderr


def read_with(monkeypatch: pytest.MonkeyPatch, change: Callable[[dict[str, Any]], None]) -> None:
    """Let the configs of model files be read with a change."""
    load = json.loads

    def changed(text: Any, *more: Any, **options: Any) -> Any:
        config = load(text, *more, **options)
        if isinstance(config, dict) and "learned" in config:
            change(config)
        return config

    monkeypatch.setattr("localsvm.store.container.json.loads", changed)


@pytest.mark.parametrize(
    "change",
    [
        {"members": ["none"]},
        {"members": ["full", "nonsense"]},
        {"members": ["nonsense", "full"]},
        {"weights": [0.5, 0.4, 0.0]},
        {"weights": [1.5, -0.5, 0.0]},
        {"weights": [1.0]},
        {"members": None},
    ],
)
def test_records_of_members_that_are_not_sound_are_refused(
    change: dict[str, Any], files: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    model = files[1]
    train(rows(), THREE, model)
    read_with(monkeypatch, lambda config: config["learned"].update(change))
    with pytest.raises(ModelError):
        LocalModel(model)


@pytest.mark.parametrize("change", [{"repeats": 1}, {"repeats": 7}, {"kernel": "gaussian"}, {"kernel": "manhattan"}])
def test_options_that_do_not_fit_members_are_refused(
    change: dict[str, Any], files: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    model = files[1]
    train(rows(), CELLS, model)
    read_with(monkeypatch, lambda config: (config["method"] if "kernel" in change else config).update(change))
    with pytest.raises(ModelError, match=r"repeats|kernel"):
        LocalModel(model)


def test_members_without_repeats_of_the_partition_are_refused() -> None:
    examples = rows()
    one = create("voronoi").fit(examples.X, examples.y, 100, np.random.default_rng(0), ALONE)
    with pytest.raises(ModelError, match="repeats, which members are"):
        restore("voronoi", one.state(), 5, one.n_cells, Members(("euclidean", "manhattan"), 5))
