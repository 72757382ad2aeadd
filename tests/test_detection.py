"""Detection: weights as problems, the path of classifiers, promises of false alarms, and what runs make of them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from command_line import error
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import beta, norm
from selecting import examples
from strangers import Damage, attributes, damaged
from test_train import content

from localsvm import LocalSVC, load
from localsvm.data.blocks.dataset import Dataset
from localsvm.errors import DataError, ModelError, OptionError
from localsvm.methods import methods
from localsvm.methods.kernel.rbf import GlobalSVM
from localsvm.methods.kernel.svm import KernelSVM
from localsvm.methods.linear.linear import LinearSVM
from localsvm.runs.cells.schedule import Resources
from localsvm.runs.config import TrainingConfig
from localsvm.runs.predict import LocalModel
from localsvm.runs.train import train
from localsvm.targets.base import Observed
from localsvm.targets.classification import Classification
from localsvm.targets.detection import (
    CONFIDENCE,
    MOST_WEIGHTS,
    STEPS,
    Detected,
    Detection,
    Front,
    rows_for,
    weights_for,
)

GRID: dict[str, Any] = {"gamma": (0.1, 1.0), "cost": (0.3, 3.0)}
ROC: dict[str, Any] = {"metric": "none", "roc": True, "grid": "full"}
LABELS = np.asarray([-1.0, 1.0])
bounds = st.integers(1, 400).map(lambda k: k / 1000)


class Held:
    """Held-out values (problems, n) of one cell, labels (n,) and how many rows each stands for."""

    def __init__(self, values: np.ndarray, y: np.ndarray, count: np.ndarray | None = None) -> None:
        self._cell = values, y, np.ones(len(y)) if count is None else count
        self.sizes = np.asarray([len(y)])

    def cell(self, index: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        return self._cell


def detection(weights: tuple[float, ...], **options: Any) -> Detection:
    return Detection(LABELS, weights=weights, **options)


# weights


@settings(deadline=None)
@given(st.integers(5, 10**6), st.integers(5, 10**6), bounds, st.sampled_from([1.0, 10.0]))
def test_weights_reach_from_few_false_alarms_to_few_missed(low: int, high: int, bound: float, cost: float) -> None:
    weights = weights_for(Observed.of_classes(LABELS, [low, high]), {1.0: cost}, bound)
    assert 1.0 in weights and 2 <= len(weights) <= MOST_WEIGHTS
    steps = np.divide(weights[1:], weights[:-1])
    assert steps == pytest.approx(np.full(len(steps), round(steps[0]))) and steps[0] > 1.5
    ratio = low / (high * cost)
    assert weights[0] <= min(1.0, bound * ratio) * 1.001 < weights[1] * 1.001
    assert weights[-1] >= max(1.0, ratio / bound) * 0.999 > weights[-2] * 0.999


def test_no_factor_grows_and_their_ratio_is_the_weight() -> None:
    factors = detection((0.25, 1.0, 8.0)).factors(np.asarray([1.0, -1.0]))
    np.testing.assert_array_equal(factors, [[0.25, 1.0, 1.0], [1.0, 1.0, 0.125]])


@pytest.mark.parametrize("select", ["vote", "refit"])
@pytest.mark.parametrize("method", [KernelSVM(**GRID), GlobalSVM(**GRID), LinearSVM(cost=(0.1, 1.0))], ids=type)
@pytest.mark.fast(6)
def test_a_problem_is_the_run_that_weighs_the_class(method: Any, select: str, tmp_path: Path) -> None:
    """-w is compared with scikit-learn in tests/test_weights.py."""
    X, y = examples(120)
    train(Dataset(X.copy(), y), TrainingConfig(method, select=select, **ROC), tmp_path / "front.h5")
    fresh = examples(50, seed=1)[0]
    with LocalModel(tmp_path / "front.h5") as model:
        weights, values = model.target.weights, model.decision_function(fresh)  # type: ignore[attr-defined]
        state = model.file.cell(0)
    for p in (0, weights.index(1.0), len(weights) - 1):
        factor = ((1.0, weights[p]),) if weights[p] <= 1.0 else ((0.0, 1.0 / weights[p]),)
        config = TrainingConfig(method, select=select, metric="none", grid="full", class_weights=factor)
        train(Dataset(X.copy(), y), config, tmp_path / "one.h5", force=True)
        with LocalModel(tmp_path / "one.h5") as model:
            np.testing.assert_allclose(values[:, p], model.decision_function(fresh)[:, 0], rtol=1e-5, atol=1e-5)
            own = model.file.cell(0)
        mine = state["model_problem"] == p
        np.testing.assert_array_equal(state["model_cost"][mine], own["model_cost"])


# the path


@settings(deadline=None)
@given(st.integers(1, 4), st.integers(0, 1000), st.floats(0.0, 1.0))
def test_the_path_goes_from_no_alarm_through_the_problems(problems: int, seed: int, share: float) -> None:
    values = np.random.default_rng(seed).standard_normal((6, problems))
    target = detection(tuple(2.0**k for k in range(problems)))
    np.testing.assert_array_equal(target.on_path(values, 0.0), np.full(6, -1.0))
    all_values = np.column_stack([np.full(6, -1.0), values])
    for k in range(problems):
        np.testing.assert_array_equal(target.on_path(values, k + 1.0), values[:, k])
        between = (1 - share) * all_values[:, k] + share * all_values[:, k + 1]
        np.testing.assert_allclose(target.on_path(values, k + share), between, atol=1e-12)
    assert target.weight_at(problems) == pytest.approx(2.0 ** (problems - 1)) and target.weight_at(0.5) == 0.0


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 1000), bounds, st.integers(1, 3))
def test_the_choice_misses_few_of_the_places_that_pass_before_the_first_that_fails(
    seed: int, bound: float, repeats: int
) -> None:
    rng = np.random.default_rng(seed)
    y = rng.choice(LABELS, 200, p=[0.7, 0.3])
    count = rng.integers(0, 3, 200).astype(float)
    values = (y + np.asarray([-1.0, 0.0, 1.0])[:, None] + rng.standard_normal((3, 200))).astype(np.float32)
    target = detection((0.5, 1.0, 2.0))
    each = np.tile(values, (1, repeats)), np.tile(y, repeats), np.tile(count, repeats)
    front = Front.of(target, Held(*each), repeats)
    quiet, wanted = (count[side].sum() ** 2 / np.square(count[side]).sum() for side in (y < 0, y > 0))
    passed: list[tuple[float, float]] = []
    for place in Front.places(3).tolist():
        alarm = target.on_path(values.T.astype(float), place) > 0
        false = quiet * count[alarm & (y < 0)].sum() / count[y < 0].sum()
        if beta.ppf(CONFIDENCE, false + 1.0, max(quiet - false, 1e-9)) > bound:
            break
        passed.append((wanted * count[~alarm & (y > 0)].sum() / count[y > 0].sum(), place))
    if not passed:
        assert quiet < rows_for(bound)
        with pytest.raises(DataError, match=f"takes {rows_for(bound):,}"):
            front.choose(bound)
    else:
        fewest = min(missed for missed, _ in passed)
        error = np.sqrt(max(1.0, fewest) * (1.0 - fewest / wanted))
        assert front.choose(bound) == max(place for missed, place in passed if missed <= fewest + error + 1e-9)


@settings(deadline=None)
@given(st.floats(0.001, 0.5))
def test_so_many_rows_can_promise_a_bound_and_no_fewer(bound: float) -> None:
    n = rows_for(bound)
    nothing = np.zeros(STEPS + 1)

    def limit(rows: int) -> float:
        return float(Front(np.asarray([rows, 1.0]), nothing, nothing).limits[0])

    assert limit(n) <= bound * (1 + 1e-6) and (n == 1 or limit(n - 1) > bound * (1 - 1e-6))


def test_a_promise_is_broken_as_seldom_as_was_said_and_not_much_more_seldom() -> None:
    """Values whose false alarms are known: of -1 they are normal around -3, -2 and -1."""
    rng, bound, runs, broken, shares = np.random.default_rng(0), 0.1, 400, 0, []
    target, shifts = detection((0.5, 1.0, 2.0)), np.asarray([-3.0, -2.0, -1.0])
    for _ in range(runs):
        z = rng.standard_normal(300)
        y = np.repeat(LABELS, [200, 100])
        values = shifts[:, None] + z + 3.0 * (y > 0)
        place = Detected.of(target, Front.of(target, Held(values, y)), bound).target.at
        # f = a + b z is above 0 for z > -a / b
        a, b = target.on_path(np.stack([shifts, shifts + 1.0]), place)
        share = float(norm.sf(-a / (b - a))) if b > a else 0.0
        broken, shares = broken + (share > bound), [*shares, share]
    assert broken / runs < 0.05 + 2.5 * np.sqrt(0.05 * 0.95 / runs)
    assert 0.05 < np.mean(shares) < 0.085  # 200 rows have a standard error of .021


def test_the_smaller_label_raises_the_alarm_if_it_is_told_to() -> None:
    """Mirrored values and labels have the mirrored front, and the same alarms."""
    rng = np.random.default_rng(0)
    y = rng.choice(LABELS, 300, p=[0.3, 0.7])
    values = y + np.asarray([1.0, 0.0, -1.0])[:, None] + rng.standard_normal((3, 300))
    one, other = detection((0.5, 1.0, 2.0), alarm=0), detection((0.5, 1.0, 2.0))
    fronts = [Front.of(one, Held(values, y)), Front.of(other, Held(-values, -y))]
    for a, b in zip(fronts[0].state().values(), fronts[1].state().values(), strict=True):
        np.testing.assert_array_equal(a, b)
    np.testing.assert_array_equal(one.factors(y), other.factors(-y))
    chosen = [Detected.of(target, front, 0.2).target for target, front in zip((one, other), fronts, strict=True)]
    np.testing.assert_array_equal(chosen[0].decide(values.T), -chosen[1].decide(-values.T))
    np.testing.assert_array_equal(chosen[0].shown(values.T), -chosen[1].shown(-values.T))
    assert ((chosen[0].decide(values.T) == -1.0) & (y > 0)).sum() == fronts[0].false_alarms[round(chosen[0].at * STEPS)]
    rows = Observed.of_classes(LABELS, [30, 600]), Observed.of_classes(LABELS, [600, 30])
    assert weights_for(rows[0], {}, 0.1, alarm=0) == weights_for(rows[1], {}, 0.1)


def test_copies_and_weights_count_in_shares_but_prove_no_more() -> None:
    values, y = np.asarray([[0.5, -0.5, 0.2, -0.1]]), np.asarray([-1.0, -1.0, 1.0, 1.0])
    front = Front.of(detection((1.0,)), Held(values, y, np.asarray([2.0, 6.0, 1.0, 0.0])))
    np.testing.assert_allclose(front.rows, [8.0**2 / 40.0, 1.0])
    np.testing.assert_allclose(front.false_alarms[STEPS] / front.rows[0], 2.0 / 8.0)
    plain, copies = (Front.of(detection((1.0,)), Held(values, y, np.full(4, c))) for c in (1.0, 3.0))
    for a, b in zip(plain.state().values(), copies.state().values(), strict=True):
        np.testing.assert_array_equal(a, b)
    with pytest.raises(DataError, match="no held-out row of the label 1 is new"):
        Detected.of(detection((1.0,)), Front.of(detection((1.0,)), Held(values[:, :2], y[:2])), None)
    assert (front.false_alarms[0], *front.missed[[0, STEPS]]) == (0.0, 1.0, 0.0)


# runs


def overlapping(n: int, seed: int) -> Dataset:
    """Rows of two classes, of which a quarter is on the wrong side."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1.0, 1.0, (n, 2)).astype(np.float32)
    return Dataset(X, np.where(X[:, 0] + 0.5 * X[:, 1] + 0.5 * rng.standard_normal(n) > 0.0, 1.0, -1.0))


def alarms(model: LocalModel, rows: Dataset) -> tuple[float, float]:
    """Shares of false alarms and of detected rows."""
    alarm = model.predict(rows.X) == 1.0
    return float(alarm[rows.y < 0].mean()), float(alarm[rows.y > 0].mean())


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"select": "refit"},
        {"partition": "voronoi", "cell_size": 100},
        {"partition": "chunks", "cell_size": 150},
        {"method": LinearSVM(cost=(0.1, 1.0))},
        {"partition": "voronoi", "cell_size": 150, "repeats": 2},
    ],
    ids=["vote", "refit", "voronoi", "chunks", "linear", "repeats"],
)
@pytest.mark.fast(6)
def test_fresh_rows_have_fewer_false_alarms_than_the_bound(options: dict[str, Any], tmp_path: Path) -> None:
    config = TrainingConfig(
        **{"method": KernelSVM(gamma=(0.3,), cost=(0.3, 3.0)), "metric": "none", **options},
        scoring="npl", false_alarm=0.1,
    )  # fmt: skip
    summary = train(overlapping(400, 0), config, tmp_path / "m.h5")
    assert summary is not None and summary.detection is not None
    chosen, fresh = summary.detection["chosen"], overlapping(4000, 1)
    with LocalModel(tmp_path / "m.h5") as model:
        assert model.detected is not None and model.detected.describe() == summary.detection
        false, found = alarms(model, fresh)
        assert 0.005 < false < 0.1 and found > 0.4
        assert found == pytest.approx(chosen["detected"], abs=0.1)
        model.keep(0.3)
        more_false, more_found = alarms(model, fresh)
        assert false < more_false < 0.3 and found < more_found
    assert chosen["false_alarms"] < chosen["limit"] <= 0.1
    front = summary.detection["front"]
    assert [point["weight"] for point in front] == sorted(point["weight"] for point in front)
    assert front[0]["false_alarms"] < 0.05 and front[-1]["detected"] > 0.9


def test_the_bits_are_those_of_any_jobs(tmp_path: Path) -> None:
    config = TrainingConfig(KernelSVM(**GRID), partition="voronoi", cell_size=80, metric="none", roc=True)
    for jobs in (1, 2):
        train(overlapping(200, 0), config, tmp_path / f"{jobs}.h5", Resources(jobs=jobs))
    assert content(tmp_path / "1.h5") == content(tmp_path / "2.h5")


def test_weight_1_decides_as_a_model_without_other_weights(tmp_path: Path) -> None:
    for name, roc in (("front", True), ("plain", False)):
        config = TrainingConfig(KernelSVM(gamma=(0.3,), cost=(0.3, 3.0)), metric="none", roc=roc)
        summary = train(overlapping(200, 0), config, tmp_path / f"{name}.h5")
        assert summary is not None
        with LocalModel(tmp_path / f"{name}.h5") as model:
            fresh = overlapping(200, 1)
            labels, error_ = model.predict(fresh.X), summary.cv_error
        if roc:
            first = labels, error_
    np.testing.assert_array_equal(first[0], labels)
    assert first[1] == pytest.approx(error_)


@pytest.mark.parametrize("method", [name for name, kind in methods().items() if kind.takes_factors])
def test_other_methods_weigh_each_problem(method: str, tmp_path: Path) -> None:
    """A large weight gives more alarms than a small one."""
    config = TrainingConfig(methods()[method](), metric="none", roc=True, folds=2)
    summary = train(overlapping(80, 0), config, tmp_path / "m.h5")
    assert summary is not None and summary.detection is not None
    first, *_, last = summary.detection["front"]
    assert first["false_alarms"] < 0.3 < last["false_alarms"] and first["detected"] < 0.7 < last["detected"]


@pytest.mark.parametrize("method", [name for name, kind in methods().items() if not kind.takes_factors])
def test_methods_that_cannot_weigh_problems_refuse(method: str) -> None:
    with pytest.raises(OptionError, match="weighs classes anew in each problem"):
        TrainingConfig(methods()[method](), roc=True)


@pytest.mark.parametrize("options", [{"roc": True}, {"scoring": "npl", "false_alarm": 0.1}], ids=["roc", "npl"])
def test_three_classes_are_refused(options: dict[str, Any], tmp_path: Path) -> None:
    X, y = examples(60, classes=3)
    with pytest.raises(DataError, match="is for two classes, and the data have 3"):
        train(Dataset(X, y), TrainingConfig(metric="none", **options), tmp_path / "m.h5")


def test_rows_that_cannot_promise_a_bound_are_refused_before_they_are_trained_on(tmp_path: Path) -> None:
    config = TrainingConfig(metric="none", scoring="npl", false_alarm=0.01)
    with pytest.raises(DataError, match="which takes 299"):
        train(overlapping(300, 0), config, tmp_path / "m.h5")


# the classifier


def test_the_classifier_keeps_a_bound_and_is_saved(tmp_path: Path) -> None:
    rows, fresh = overlapping(300, 0), overlapping(2000, 1)
    names = np.asarray(["alarm", "quiet"])[(rows.y < 0).astype(int)]
    names = np.char.add(np.where(rows.y < 0, "a ", "b "), names)  # the larger one raises the alarm
    model = LocalSVC(gamma=0.3, metric="none", scoring="npl", false_alarm=0.1).fit(rows.X, names)
    labels = model.predict(fresh.X)
    assert set(labels) == {"a quiet", "b alarm"}
    false = (labels[fresh.y < 0] == "b alarm").mean()
    assert 0.02 < false < 0.1
    np.testing.assert_array_equal(model.decision_function(fresh.X) > 0, labels == "b alarm")
    assert model.summary_.detection["bound"] == 0.1
    model.save(tmp_path / "m.h5")
    loaded = load(tmp_path / "m.h5")
    assert loaded.get_params()["false_alarm"] == 0.1
    np.testing.assert_array_equal(loaded.predict(fresh.X), labels)


def test_the_classifier_names_its_parameters() -> None:
    rows = overlapping(60, 0)
    with pytest.raises(ValueError, match=r"scoring='npl' and false_alarm go together, as in false_alarm=0.05"):
        LocalSVC(scoring="npl").fit(rows.X, rows.y)


# the file


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small model with a bound."""
    path = tmp_path_factory.mktemp("base") / "m.h5"
    config = TrainingConfig(
        KernelSVM(gamma=(0.3,), cost=(3.0,)), metric="none", scoring="npl", false_alarm=0.2, folds=2
    )
    train(overlapping(60, 0), config, path)
    return path


def damages(base: Path) -> Iterator[Damage]:
    places = ("/@config alarm_weights", "/@config false_alarm", "/@config scoring")
    every = [*damaged(base, set()), *attributes(base)]
    yield from (each for each in every if each.place.startswith("/front") or each.place in places)


def test_a_damaged_front_is_refused_in_a_line(base: Path, tmp_path: Path) -> None:
    """Other counts alone make another model, which could have been trained."""
    path, refused, known = tmp_path / "m.h5", set(), set()
    for damage in damages(base):
        damage.make(base, path)
        try:
            LocalModel(path).__exit__(None, None, None)
        except ModelError as caught:
            message = str(caught)
            assert message.startswith(f"{path}: ") and message.isprintable(), (damage.place, damage.kind)
            refused.add((damage.place, damage.kind))
        else:
            known.add((damage.place, damage.kind))
    assert {("/front", "missing"), ("/front@kind", "unknown"), ("/front/rows", "all 0")} <= refused
    assert all(place in ("/front/false_alarms", "/front/missed", "/front/rows") for place, _ in known), known
    assert len(refused) > 30


def test_a_front_that_no_option_asks_for_is_refused(base: Path, tmp_path: Path) -> None:
    def forget(file: h5py.File) -> None:
        config = json.loads(file.attrs["config"])
        for name in ("scoring", "false_alarm", "alarm_weights"):
            del config[name]
        file.attrs["config"] = np.bytes_(json.dumps(config))

    Damage("/@config", "", forget).make(base, tmp_path / "m.h5")
    message = error("inspect", tmp_path / "m.h5")
    assert message.startswith(f"{tmp_path}/m.h5: not as localsvm writes it: /front is not what the options score and")


def test_models_of_classes_are_as_they_were() -> None:
    """Nothing of the detection is in their options."""
    stored = TrainingConfig().as_dict()
    assert not {"roc", "false_alarm", "alarm_weights"} & stored.keys()
    assert isinstance(TrainingConfig().target(Observed.of_classes(LABELS, [3, 3])), Classification)
