"""Square roots of values are learned where that pays, and answers are means of the values."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from command_line import invoke
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from strangers import Damage

from localsvm import LocalSVR
from localsvm.data.writers.libsvm import write
from localsvm.errors import LocalSVMError, ModelError
from localsvm.runs.predict import LocalModel
from localsvm.runs.preparation import labelled
from localsvm.store.model import load_model
from localsvm.targets.base import ValueRange
from localsvm.targets.losses import Loss
from localsvm.targets.regression import Regression

KNOWN = ValueRange(4.0, 2.0, 0.5, 90.0, root_mean=1.9, root_deviation=0.4)


def signal(X: np.ndarray) -> np.ndarray:
    """Means of values, all above 0."""
    return np.asarray(np.exp(1.5 * X[:, 0] + np.sin(3.0 * X[:, 1])))


def growing(n: int, seed: int = 0, noise: float = 0.125) -> tuple[np.ndarray, np.ndarray]:
    """Rows, and values whose noise grows with their size."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1.0, 1.0, (n, 3))
    return X, rng.gamma(1.0 / noise, noise * signal(X))


def equal(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Rows, and values above 0 whose noise is the same everywhere."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1.0, 1.0, (n, 3))
    return X, 9.0 + 2.0 * X[:, 0] + np.sin(3.0 * X[:, 1]) + 0.3 * rng.standard_normal(n)


def values_of(path: Path) -> dict[str, float]:
    """What a model file says of its values."""
    with h5py.File(path) as file:
        return dict(json.loads(file.attrs["config"])["values"])


def trained(tmp_path: Path, X: np.ndarray, y: np.ndarray, *options: str, name: str = "model.h5") -> Path:
    """A model of values, by the command line."""
    data, model = tmp_path / "rows.libsvm", tmp_path / name
    write(data, X, y)
    done = invoke("train", "-j1", "--loss", "least-squares", *options, data, model)
    assert done.exit_code == 0, done.stderr
    return model


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model of roots, beside its rows."""
    path = trained(tmp_path_factory.mktemp("base"), *growing(600))
    assert "root_mean" in values_of(path)
    return path


# what problems learn


@given(st.lists(st.floats(0.0, 1e6), min_size=1, max_size=20))
def test_decoded_values_are_those_that_were_encoded(values: list[float]) -> None:
    y = np.asarray(values)
    assert_allclose(KNOWN.decoded(KNOWN.encoded(y)), y, rtol=1e-9, atol=1e-9)


def test_answers_are_squares_and_what_they_fall_short() -> None:
    longer = ValueRange(**(KNOWN.as_dict() | {"root_short": 0.25}))
    values = np.asarray([[-9.0], [0.0], [1.0], [50.0]])
    answers = [0.5, 1.9**2 + 0.25, 2.3**2 + 0.25, 90.0]
    assert_allclose(Regression((Loss("least-squares"),), longer).decide(values), answers)


def test_ends_of_intervals_are_plain_squares() -> None:
    longer = ValueRange(**(KNOWN.as_dict() | {"root_short": 0.25}))
    losses = Loss("least-squares"), Loss("quantile", 0.05), Loss("quantile", 0.95)
    target = Regression(losses, longer, interval=True)
    assert_allclose(target.intervals(np.asarray([[0.0, -1.0, 1.0]]), 0.0), [[1.5**2, 2.3**2]])


def test_what_answers_fall_short_of_is_a_weighted_sum() -> None:
    y, weight = np.asarray([4.0, 9.0]), np.asarray([1.0, 3.0])
    target = Regression((Loss("least-squares"),), KNOWN)
    assert target.short(KNOWN.encoded(y - 1.0)[None], y, weight) == pytest.approx(4.0)
    plain = Regression((Loss("least-squares"),), ValueRange(4.0, 2.0, 0.5, 90.0))
    assert plain.short(np.zeros((1, 2)), y, weight) == 0.0


# the choice


def test_noise_that_grows_has_its_roots_learned(tmp_path: Path) -> None:
    X, y = growing(900)
    path = trained(tmp_path, X, y)
    known = values_of(path)
    assert known["root_deviation"] == pytest.approx(np.sqrt(y).std(), rel=1e-6) and known["root_short"] > 0.0
    assert load_model(path).config["learned"]["root"] == [known["root_mean"], known["root_deviation"]]


@pytest.mark.whole
def test_roots_predict_means_and_make_smaller_errors() -> None:
    errors = np.zeros(2)
    for seed in range(3):
        X, y = growing(900, seed)
        test, truth = growing(4000, seed + 10)
        for i, roots in enumerate(("none", "auto")):
            answers = LocalSVR(roots=roots, random_state=seed).fit(X, y).predict(test)
            errors[i] += np.square(answers - signal(test)).mean()
        left = truth - answers
        assert abs(left.mean()) < 4.0 * left.std() * (1.0 / len(truth) + 1.0 / len(y)) ** 0.5
    assert errors[1] < 0.9 * errors[0]


@pytest.mark.parametrize("change", ["equal noise", "below 0", "zeros", "many rows"])
def test_other_values_are_learned_as_they_are(change: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if change == "many rows":
        monkeypatch.setattr(labelled, "ROOT_ROWS", 699)
    X, y = equal(700) if change == "equal noise" else growing(700)
    if change == "below 0":
        y[0] = -1e-3
    if change == "zeros":
        y[: len(y) // 10] = 0.0
    auto, plain = (trained(tmp_path, X, y, "--roots", each, name=f"{each}.h5") for each in ("auto", "none"))
    assert "root_mean" not in values_of(auto) and values_of(auto) == values_of(plain)


@pytest.mark.parametrize("rows", [2, 3, 12])
def test_a_few_rows_do_not_say_that_noise_grows(rows: int) -> None:
    X, y = growing(rows, seed=4)
    assert_array_equal(*(LocalSVR(roots=roots).fit(X, y).predict(X) for roots in ("none", "auto")))


@pytest.mark.parametrize(
    "options", [["--roots", "none"], ["--metric", "none"], ["--score", "mae"], ["-m", "linear"], ["--loss", "absolute"]]
)
def test_options_that_leave_roots_out(options: list[str], tmp_path: Path) -> None:
    assert "root_mean" not in values_of(trained(tmp_path, *growing(600), *options))


def test_an_unknown_choice_is_refused() -> None:
    with pytest.raises(LocalSVMError, match="roots='some': choose one of none, auto"):
        LocalSVR(roots="some").fit(*growing(50))


# everything else goes on


@pytest.mark.whole
def test_the_model_is_the_same_for_any_number_of_jobs(tmp_path: Path) -> None:
    X, y = growing(1200)
    one = trained(tmp_path, X, y, "-c", "400", name="one.h5")
    two = trained(tmp_path, X, y, "-c", "400", "-j2", name="two.h5")
    assert values_of(one) == values_of(two)
    with h5py.File(one) as a, h5py.File(two) as b:
        assert "root_mean" in values_of(one)
        for name in a["cells"]:
            assert_array_equal(a["cells"][name], b["cells"][name])


@pytest.mark.whole
def test_cells_of_a_partition_file_learn_roots(tmp_path: Path) -> None:
    X, y = growing(900)
    direct = values_of(trained(tmp_path, X, y, "--repeats", "1", "-P", "voronoi", "-c", "400"))
    cells = tmp_path / "cells.h5"
    done = invoke("partition", "-P", "voronoi", "-c", "400", "--loss", "least-squares", tmp_path / "rows.libsvm", cells)
    assert done.exit_code == 0, done.stderr
    known = values_of(trained(tmp_path, X, y, "--partition-file", str(cells), name="other.h5"))
    assert (known["root_mean"], known["root_deviation"]) == (direct["root_mean"], direct["root_deviation"])


def test_the_metric_of_roots_serves_values_below_0(tmp_path: Path) -> None:
    X, y = growing(600)
    of_roots = str(trained(tmp_path, X, y, "--repeats", "1"))
    assert "root_mean" in values_of(trained(tmp_path, X, y, "--metric-file", of_roots, name="same.h5"))
    assert "root_mean" not in values_of(trained(tmp_path, X, y - 1.0, "--metric-file", of_roots, name="below.h5"))


@pytest.mark.whole
def test_intervals_of_roots_cover(tmp_path: Path) -> None:
    X, y = growing(1500)
    test, truth = growing(4000, seed=9)
    ends = LocalSVR(coverage=0.9).fit(X, y).predict_interval(test)
    inside = np.mean((ends[:, 0] <= truth) & (truth <= ends[:, 1]))
    assert 0.86 < inside < 0.94


@pytest.mark.parametrize("change", [{"root_mean": None}, {"root_deviation": 0.0}, {"low": -1.0}])
def test_unsound_roots_of_a_file_are_refused(change: dict[str, Any], base: Path, tmp_path: Path) -> None:
    def spoil(file: h5py.File) -> None:
        config = json.loads(file.attrs["config"])
        config["values"] = {name: v for name, v in (config["values"] | change).items() if v is not None}
        file.attrs["config"] = np.bytes_(json.dumps(config))

    spoiled = tmp_path / "spoiled.h5"
    Damage("/@config", "", spoil).make(base, spoiled)
    with pytest.raises(ModelError, match="the option values is no range"):
        LocalModel(spoiled)


def test_a_record_of_the_metric_without_a_deviation_is_refused(base: Path, tmp_path: Path) -> None:
    def spoil(file: h5py.File) -> None:
        config = json.loads(file.attrs["config"])
        config["learned"]["root"] = [1.0, 0.0]
        file.attrs["config"] = np.bytes_(json.dumps(config))

    spoiled = tmp_path / "spoiled.h5"
    Damage("/@config", "", spoil).make(base, spoiled)
    with pytest.raises(ModelError, match="no mean and deviation of roots"):
        LocalModel(spoiled)
