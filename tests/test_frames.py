"""Frames in Python: one model for pandas, polars and pyarrow, missing values, and the command line."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command_line import FAST, invoke

from localsvm import LocalSVC, LocalSVR, load

pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")
pa = pytest.importorskip("pyarrow")

QUICK: dict[str, Any] = {"gamma": [0.5], "cost": [3.0], "metric": "none"}


def frame(n: int = 200, seed: int = 0) -> tuple[Any, np.ndarray]:
    """A frame with a column of each type, and labels of text."""
    rng = np.random.default_rng(seed)
    age, plan = rng.integers(20, 60, n).astype(float), rng.choice(["basic", "pro"], n)
    y = np.where((age > 40) == (plan == "pro"), "yes", "no")
    age[::9] = np.nan
    X = pd.DataFrame(
        {
            "age": age,
            "plan": pd.Categorical(plan),
            "city": [f"city {i}" for i in rng.integers(0, 15, n)],
            "member": rng.integers(0, 2, n).astype(bool),
            "since": pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 700, n), unit="D"),
        }
    )
    return X, y


def others(X: Any) -> dict[str, Any]:
    return {"polars": pl.from_pandas(X), "pyarrow": pa.Table.from_pandas(X, preserve_index=False)}


def test_frames_of_all_libraries_give_one_model() -> None:
    X, y = frame()
    T, t = frame(100, 1)
    model = LocalSVC(**QUICK).fit(X, y)
    expected = model.decision_function(T)
    assert model.score(T, t) > 0.75 and model.classes_.tolist() == ["no", "yes"]
    assert model.feature_names_in_.tolist() == list(X.columns) and model.n_features_in_ == 5
    assert "plan=basic" in model.get_feature_names_out() and "since: month" in model.get_feature_names_out()
    for name, other in others(X).items():
        again = LocalSVC(**QUICK).fit(other, y)
        np.testing.assert_array_equal(again.decision_function(others(T)[name]), expected)
        np.testing.assert_array_equal(model.decision_function(others(T)[name]), expected)


def test_whole_numbers_are_exact_as_levels() -> None:
    """float64 does not hold those above 2^53, and a missing value would make a column float64."""
    rng = np.random.default_rng(0)
    shop, x = 2**60 + rng.integers(0, 5, 200), rng.normal(size=200)
    y = np.where((shop % 2 * 2 - 1) * x > 0, "a", "b")
    gaps = [None if i % 11 == 3 else int(number) for i, number in enumerate(shop)]
    whole = {"shop": shop.tolist(), "x": x}
    scores = set()
    for some in (whole, {"shop": gaps, "x": x}):
        typed = pd.DataFrame({"shop": pd.array(some["shop"], "Int64"), "x": x})
        for X in (typed, *others(typed).values(), typed.astype({"shop": "int64[pyarrow]"})):
            model = LocalSVC(**QUICK, categorical_features=["shop"]).fit(X, y)
            assert model.get_feature_names_out().tolist() == [*(f"shop={2**60 + i}" for i in range(5)), "x"]
            scores.add(model.score(X, y))
    plain = pd.DataFrame({"shop": shop, "x": x})
    scores.add(LocalSVC(**QUICK, categorical_features=["shop"]).fit(plain, y).score(plain, y))
    assert min(scores) > 0.9


def test_a_batch_of_records_is_a_frame() -> None:
    X, y = frame()
    table = pa.Table.from_pandas(X, preserve_index=False).combine_chunks()
    expected = LocalSVC(**QUICK).fit(table, y).decision_function(table)
    batch = table.to_batches()[0]
    np.testing.assert_array_equal(LocalSVC(**QUICK).fit(batch, y).decision_function(batch), expected)


def test_columns_are_matched_by_names() -> None:
    X, y = frame()
    T, _ = frame(50, 1)
    model = LocalSVC(**QUICK).fit(X, y)
    expected = model.decision_function(T)
    np.testing.assert_array_equal(model.decision_function(T[T.columns[::-1]].assign(more=3)), expected)
    np.testing.assert_array_equal(model.decision_function(T.to_numpy()), expected)  # by their order
    with pytest.raises(ValueError, match="X has no column 'age'; perhaps 'ages' is meant"):
        model.predict(T.rename(columns={"age": "ages"}))
    with pytest.raises(ValueError, match="column 'age' has values that are no numbers"):
        model.predict(T.assign(age="old"))


def test_a_model_goes_to_the_command_line_and_back(tmp_path: Path) -> None:
    X, y = frame()
    T, _ = frame(60, 1)
    T.to_csv(tmp_path / "test.csv", index=False)
    T.to_parquet(tmp_path / "test.parquet")
    model = LocalSVC(**QUICK).fit(X, pd.Series(y, name="left"))
    model.save(tmp_path / "m.h5")
    for name in ("test.csv", "test.parquet"):
        lines = invoke("predict", tmp_path / name, tmp_path / "m.h5").stdout.split()
        assert lines == model.predict(T).tolist()
    X.assign(left=y).to_csv(tmp_path / "train.csv", index=False)
    invoke("train", "-q", *FAST, "--label", "left", tmp_path / "train.csv", tmp_path / "n.h5")
    loaded = load(tmp_path / "n.h5")
    assert loaded.predict(T).tolist() == invoke("predict", tmp_path / "test.csv", tmp_path / "n.h5").stdout.split()
    assert loaded.feature_names_in_.tolist() == ["age", "plan", "city", "member", "since"]


def test_missing_values_of_arrays_are_filled() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3))
    y = (X[:, 0] > 0).astype(int)
    X[::5, 1] = np.nan
    model = LocalSVC(**QUICK).fit(X, y)
    assert model.score(X, y) > 0.9 and model.get_feature_names_out().tolist() == ["x0", "x1", "x1 is missing", "x2"]
    with pytest.raises(ValueError, match="infinity"):
        model.predict(np.where(np.isnan(X), np.inf, X))
    whole = LocalSVC(**QUICK).fit(np.nan_to_num(X), y)
    with pytest.raises(ValueError, match="NaN"):
        whole.predict(X)


def test_numbers_alone_are_those_of_an_array() -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(150, 3)), rng.integers(0, 2, 150)
    of_array = LocalSVC(**QUICK).fit(X, y).decision_function(X)
    names = pd.DataFrame(X, columns=["a", "b", "c"])
    np.testing.assert_array_equal(LocalSVC(**QUICK).fit(names, y).decision_function(names), of_array)


@pytest.mark.parametrize("asked", [["kind"], [1], [False, True]])
def test_numbers_are_levels_if_they_are_named(asked: Any) -> None:
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"x": rng.normal(size=90), "kind": rng.integers(0, 4, 90)})
    model = LocalSVC(**QUICK, categorical_features=asked).fit(X, X["kind"] == 2)
    assert model.get_feature_names_out().tolist() == ["x", "kind=0", "kind=1", "kind=2", "kind=3"]


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ([True], "categorical_features has 1 truth values for 2 columns"),
        (["kinds"], "categorical_features: no column is called 'kinds'; perhaps 'kind' is meant"),
        ("kind", "categorical_features must be"),
        ([[1]], "categorical_features must be"),
    ],
)
def test_columns_that_are_not_there_are_refused(asked: Any, message: str) -> None:
    X = pd.DataFrame({"x": np.arange(20.0), "kind": np.arange(20) % 3})
    with pytest.raises(ValueError, match=message):
        LocalSVC(**QUICK, categorical_features=asked).fit(X, np.arange(20) % 2)


def test_groups_and_blocks_are_held_out_together() -> None:
    rng = np.random.default_rng(0)
    group = np.repeat(np.arange(30), 10)
    X = rng.uniform(-1, 1, (30, 2))[group] + 0.01 * rng.normal(size=(300, 2))
    y = rng.permutation(np.arange(30) % 2)[group]
    one = QUICK | {"gamma": [4.0], "probability": True}
    assert LocalSVC(**one).fit(X, y).summary_.cv_error < 0.1
    assert LocalSVC(**one).fit(X, y, groups=group).summary_.cv_error > 0.3
    assert LocalSVC(**one, folds="blocks").fit(X, y).summary_.cv_error > 0.3
    with pytest.raises(ValueError, match="all rows are of one group"):
        LocalSVC(**one).fit(X, y, groups=np.zeros(300))
    with pytest.raises(ValueError, match='folds must be a whole number, "blocks"'):
        LocalSVC(**one, folds="block").fit(X, y)


def test_groups_are_those_of_the_command_line(tmp_path: Path) -> None:
    X, y = frame()
    X["household"] = [f"h{i}" for i in np.random.default_rng(3).integers(0, 40, len(X))]
    two = QUICK | {"cost": [1.0, 10.0], "select": "vote"}
    model = LocalSVC(**two).fit(X.drop(columns="household"), y, groups=X["household"])
    X.assign(answer=y).to_csv(tmp_path / "t.csv", index=False)
    given = (
        "-g",
        0.5,
        "-C",
        "1,10",
        "--select",
        "vote",
        "--metric",
        "none",
        "--group-column",
        "household",
        "--label",
        "answer",
    )
    invoke("train", "--force", *given, tmp_path / "t.csv", tmp_path / "m.h5")
    expected = load(tmp_path / "m.h5").decision_function(X)
    np.testing.assert_array_equal(model.decision_function(X), expected)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda X: pd.concat([X, X], axis=1), "X has two columns called 'age'; give each a name of its own"),
        (lambda X: X.assign(age=[[1]] * len(X)), "column 'age' of X has values of the type list"),
        (lambda X: pl.DataFrame({"a": [[1]] * len(X)}), "column 'a' of X has values of the type ndarray"),
        (lambda X: X.assign(age=np.inf), "column 'age' of X contains infinity"),
        (lambda X: X[[]], "X has 0 columns"),
        (lambda X: pl.DataFrame({"a": [{"b": 1}] * len(X)}), "column 'a' of X has values of the type Struct"),
        (lambda X: pl.from_pandas(X).lazy(), "X is a lazy frame, which has no rows yet; give X.collect()"),
    ],
)
def test_frames_that_are_no_tables_are_refused(change: Any, message: str) -> None:
    X, y = frame(40)
    with pytest.raises(ValueError, match=message):
        LocalSVC(**QUICK).fit(change(X), y)


def test_durations_are_seconds() -> None:
    X = pd.DataFrame({"took": pd.to_timedelta(np.arange(40), unit="min")})
    model = LocalSVC(**QUICK).fit(X, X["took"] > pd.Timedelta("20min"))
    assert model.get_feature_names_out().tolist() == ["took"]
    seconds = 60.0 * np.arange(40)[:, None]
    of_numbers = LocalSVC(**QUICK).fit(seconds, np.arange(40) > 20)
    np.testing.assert_array_equal(model.decision_function(X), of_numbers.decision_function(seconds))


def test_new_levels_are_warned_of() -> None:
    X, y = frame()
    model = LocalSVC(**QUICK).fit(X, y)
    with pytest.warns(UserWarning, match="column 'city' of X has 200 values that training did not have"):
        model.predict(X.assign(city="Atlantis"))
    with pytest.warns(UserWarning, match="column 'city' of X has 1 value that training did not have"):
        model.predict(X[:1].assign(city="Atlantis"))


def test_times_are_those_of_their_zone_in_all_libraries() -> None:
    at = pd.date_range("2024-06-01", periods=100, freq="5h", tz="Europe/Berlin")
    X, y = pd.DataFrame({"at": at, "x": np.arange(100.0) % 7}), np.where(at.hour < 6, "night", "day")
    model = LocalSVC(**QUICK).fit(X, y)
    expected = model.decision_function(X)
    assert model.score(X, y) > 0.95
    for other in others(X).values():
        np.testing.assert_array_equal(model.decision_function(other), expected)


def test_objects_that_are_numbers_are_numbers() -> None:
    """A column of numbers that has a None is one of objects in pandas, and so are exact decimal fractions."""
    x, y = np.arange(60.0) % 11, np.arange(60) % 11 > 4
    plain = pd.DataFrame({"x": x, "z": x / 4})
    objects = pd.DataFrame({"x": [None, *x[1:]], "z": [Decimal(str(value)) for value in x / 4]}, dtype=object)
    plain.loc[0, "x"] = np.nan
    model, again = (LocalSVC(**QUICK).fit(X, y) for X in (plain, objects))
    assert again.get_feature_names_out().tolist() == model.get_feature_names_out().tolist()
    np.testing.assert_array_equal(again.decision_function(plain), model.decision_function(objects))


def test_what_only_new_rows_lack_is_said() -> None:
    X = np.random.default_rng(0).normal(size=(60, 2))
    model = LocalSVC(**QUICK).fit(X, X[:, 0] > 0)
    with pytest.raises(ValueError, match="X contains NaN, and the rows that the model was fitted on did not"):
        model.predict(np.where(X > 2.0, np.nan, X))


def test_values_to_predict_may_be_objects_that_are_numbers() -> None:
    X = pd.DataFrame(np.random.default_rng(0).normal(size=(60, 2)), columns=["a", "b"])
    given = {"metric": "none", "gamma": 1.0, "cost": 1.0}
    plain, objects = (LocalSVR(**given).fit(X, X["a"].astype(kind)) for kind in (float, object))
    np.testing.assert_array_equal(objects.predict(X), plain.predict(X))


def test_columns_that_say_nothing_are_told() -> None:
    X, y = frame()
    known = LocalSVC(**QUICK).fit(X, y)
    X["id"] = [f"row {i}" for i in range(len(X))]
    X["constant"] = 1.0
    why = "'id': a text of its own in each row, as an id has; 'constant': one value only"
    with pytest.warns(UserWarning, match=f"columns of X are left out: {why}"):
        model = LocalSVC(**QUICK).fit(X, y)
    assert model.n_features_in_ == 7
    np.testing.assert_array_equal(model.decision_function(X), known.decision_function(X))


def test_truth_values_are_labels_of_tables(tmp_path: Path) -> None:
    X = pd.DataFrame({"x": np.arange(40.0), "late": np.arange(40) > 20})
    LocalSVC(**QUICK).fit(X[["x"]], X["late"]).save(tmp_path / "m.h5")
    X.to_csv(tmp_path / "t.csv", index=False)
    result = invoke("predict", tmp_path / "t.csv", tmp_path / "m.h5", tmp_path / "out")
    assert "Accuracy = 100% (40/40)" in result.stderr
