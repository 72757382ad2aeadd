"""LocalSVR keeps scikit-learn's contract, and predicts what the command line's model of values does."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command_line import invoke
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone, is_regressor
from sklearn.compose import TransformedTargetRegressor
from sklearn.ensemble import StackingRegressor
from sklearn.exceptions import NotFittedError
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LinearRegression
from sklearn.metrics import mean_pinball_loss, r2_score
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from value_cells import examples, noisy

import localsvm
from localsvm import LocalSVC, LocalSVR, estimators
from localsvm.data.writers.libsvm import write
from localsvm.errors import LocalSVMError
from localsvm.estimators import GlobalSVMRegressor
from localsvm.runs.predict import LocalModel
from localsvm.store.container import Image
from localsvm.targets.loss_names import LOSSES, QUANTILE

POINT: dict[str, Any] = {"gamma": 0.3, "cost": 10.0, "metric": "none"}
GRID: dict[str, Any] = {"gamma": [0.1, 0.5], "cost": [3.0, 30.0], "metric": "none"}
LEVELS = [0.1, 0.5, 0.9]
X, Y = examples(150, seed=0)
TEST, TRUTH = examples(300, seed=1)


def mask(sets: np.ndarray, classes: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Whether each set has the label of its row."""
    return sets[np.arange(len(y)), classes.searchsorted(y)]


# what is learned


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.fast(len(LOSSES))
def test_every_loss_learns(loss: str) -> None:
    model = LocalSVR(loss=loss, **POINT).fit(X, Y)
    assert is_regressor(model) and model.score(TEST, TRUTH) > 0.6
    assert model.score(TEST, TRUTH) == r2_score(TRUTH, model.predict(TEST))


def test_without_a_trend_it_is_kernel_ridge_regression_of_centred_values() -> None:
    model = LocalSVR(gamma=0.3, cost=10.0, metric="none", scale="none", tolerance=1e-6, trend="constant").fit(X, Y)
    ridge = KernelRidge(kernel="rbf", gamma=0.3, alpha=0.05).fit(X, Y - Y.mean())
    assert_allclose(model.predict(TEST), (Y.mean() + ridge.predict(TEST)).clip(Y.min(), Y.max()), atol=0.01)


def test_levels_are_ascending_columns_in_whatever_order_they_are_given() -> None:
    model = LocalSVR(loss=QUANTILE, quantile=[0.9, 0.1, 0.5], **GRID).fit(X, Y)
    answers = model.predict(TEST)
    assert answers.shape == (300, 3) and (np.diff(answers, axis=1) >= 0.0).all()
    for level, column in zip(LEVELS, answers.T, strict=True):
        guess = mean_pinball_loss(TRUTH, np.full(300, np.quantile(Y, level)), alpha=level)
        assert mean_pinball_loss(TRUTH, column, alpha=level) < 0.8 * guess
        assert np.mean(column >= TRUTH) == pytest.approx(level, abs=0.1)
    assert_array_equal(answers, LocalSVR(loss=QUANTILE, quantile=LEVELS, **GRID).fit(X, Y).predict(TEST))
    one = LocalSVR(loss=QUANTILE, quantile=0.5, **GRID).fit(X, Y).predict(TEST)
    assert one.shape == (300,) and np.mean(np.abs(one - answers[:, 1]) < 0.05) > 0.95  # few rows had to be sorted


def test_sparse_rows_and_whole_numbers_are_values_too() -> None:
    model = LocalSVR(**POINT).fit(X, Y)
    rows = LocalSVR(**POINT).fit(sparse.csr_array(X), Y)
    assert_allclose(rows.predict(sparse.csr_array(TEST)), model.predict(TEST), atol=0.01)
    whole = np.round(Y).astype(int)
    for y in (whole.astype(np.float32), whole.astype(np.int16), whole.tolist()):
        assert_array_equal(LocalSVR(**POINT).fit(X, y).predict(TEST), LocalSVR(**POINT).fit(X, whole).predict(TEST))


@pytest.mark.parametrize("options", [{}, {"loss": QUANTILE, "quantile": LEVELS}], ids=["squares", "levels"])
def test_a_row_of_weight_2_is_two_rows_and_one_of_weight_0_is_none(options: dict[str, Any]) -> None:
    given = {"gamma": 0.3, "cost": 2.0, "metric": "none", "scale": "none", "tolerance": 1e-6, **options}
    times = np.arange(len(Y)) % 4
    weighted = LocalSVR(**given).fit(X, Y, sample_weight=times).predict(TEST)
    repeated = LocalSVR(**given).fit(np.repeat(X, times, axis=0), np.repeat(Y, times)).predict(TEST)
    assert_allclose(weighted, repeated, atol=0.02)
    assert np.abs(weighted - LocalSVR(**given).fit(X, Y).predict(TEST)).max() > 0.2
    kept = times > 0
    assert_array_equal(weighted, LocalSVR(**given).fit(X[kept], Y[kept], times[kept]).predict(TEST))


def test_a_weight_is_that_of_the_held_out_loss_too() -> None:
    """Rows of which a half are noise choose a smaller C than the others, unless their weight is small."""
    rng = np.random.default_rng(3)
    noise = np.arange(150) % 2 == 0
    y = np.where(noise, rng.normal(40.0, 6.0, 150), Y)
    errors = [
        LocalSVR(**GRID).fit(X, y, sample_weight=np.where(noise, weight, 1.0)).summary_.cv_error
        for weight in (1.0, 1e-3)
    ]
    assert errors[1] < 0.5 * errors[0]


def test_groups_and_blocks_are_held_out_together() -> None:
    rng = np.random.default_rng(0)
    group = np.repeat(np.arange(30), 10)
    rows = rng.uniform(-1.0, 1.0, (30, 2))[group] + 0.01 * rng.normal(size=(300, 2))
    y = rng.normal(size=30)[group]
    given = {"gamma": [4.0, 30.0], "cost": 10.0, "metric": "none"}
    assert LocalSVR(**given).fit(rows, y).summary_.cv_error < 0.2 * y.var()
    assert LocalSVR(**given).fit(rows, y, groups=[f"g{k}" for k in group]).summary_.cv_error > 0.6 * y.var()
    assert LocalSVR(**given, folds="blocks").fit(rows, y).summary_.cv_error > 0.6 * y.var()
    with pytest.raises(ValueError, match="all rows are of one group"):
        LocalSVR(**given).fit(rows, y, groups=np.zeros(300))


def test_cells_and_their_repeats_are_averaged() -> None:
    known, new = examples(600, seed=4), examples(600, seed=5)
    one = LocalSVR(**GRID).fit(*known)
    for options in ({}, {"repeats": 2}, {"partition": "chunks"}):
        cells = LocalSVR(**GRID, **{"partition": "voronoi", "cell_size": 200} | options).fit(*known)
        assert cells.summary_.cells > 2 and len(cells.best_params_) == cells.summary_.cells
        assert cells.score(*new) > one.score(*new) - 0.05 > 0.6


def test_what_was_chosen_is_told() -> None:
    model = LocalSVR(**GRID).fit(X, Y)
    assert set(model.best_params_[0]) == {"gamma", "cost"} and model.best_params_[0]["cost"] in GRID["cost"]
    assert model.summary_.score == "mse" and 0.1 * Y.var() < model.summary_.cv_error < 0.6 * Y.var()
    assert model.summary_.guessing == pytest.approx(Y.var())
    weight = np.linspace(1.0, 3.0, len(Y))
    weighted = LocalSVR(**POINT).fit(X, Y, sample_weight=weight).summary_.guessing
    assert weighted == pytest.approx(np.average((Y - np.average(Y, weights=weight)) ** 2, weights=weight))
    assert not hasattr(model, "n_support_") and not hasattr(model, "classes_")
    by_mae = LocalSVR(**GRID, scoring="mae").fit(X, Y)
    assert by_mae.summary_.score == "mae" and by_mae.summary_.cv_error < np.abs(Y - np.median(Y)).mean()
    assert set(LocalSVR(loss="huber", epsilon=[0.5, 2.0], **GRID).fit(X, Y).best_params_[0]) > {"epsilon"}


# what is kept


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"loss": QUANTILE, "quantile": LEVELS, "scoring": "pinball"},
        {"coverage": 0.9, "partition": "voronoi", "cell_size": 60, "folds": 3},
        {"loss": "epsilon-insensitive", "epsilon": [0.5, 2.0], "select": "vote", "scale": "zscore"},
    ],
    ids=["squares", "levels", "coverage", "epsilon"],
)
@pytest.mark.fast(4)
def test_a_saved_model_is_loaded_as_it_was(options: dict[str, Any], tmp_path: Path) -> None:
    model = LocalSVR(**GRID, **options).fit(X, Y)
    assert_array_equal(pickle.loads(pickle.dumps(model)).predict(TEST), model.predict(TEST))
    model.save(tmp_path / "m.h5")
    model.save(tmp_path / "m.h5")  # overwrites
    again = localsvm.load(tmp_path / "m.h5")
    assert type(again) is LocalSVR and again.best_params_ == model.best_params_ and again.n_features_in_ == 3
    given = GRID | options | {"metric": "none"}
    assert {name: again.get_params()[name] for name in given} == given
    assert_array_equal(again.predict(TEST), model.predict(TEST))
    assert_array_equal(clone(again).fit(X, Y).predict(TEST), model.predict(TEST))
    assert hasattr(again, "predict_interval") == ("coverage" in options)
    if "coverage" in options:
        assert_array_equal(again.predict_interval(TEST), model.predict_interval(TEST))


@pytest.mark.parametrize(
    ("options", "flags"),
    [
        ({}, ()),
        ({"loss": QUANTILE, "quantile": LEVELS, "metric": "none"}, ("--quantile", "0.1,0.5,0.9", "--metric", "none")),
        (
            {"loss": "huber", "partition": "voronoi", "cell_size": 60, "metric": "none"},
            ("-P", "voronoi", "-c", 60, "--metric", "none"),
        ),
        ({"coverage": 0.9, "metric": "none"}, ("--coverage", "0.9", "--metric", "none")),
    ],
    ids=["defaults", "levels", "cells", "coverage"],
)
@pytest.mark.fast(1)
def test_the_model_is_that_of_the_command_line(options: dict[str, Any], flags: tuple[Any, ...], tmp_path: Path) -> None:
    write(tmp_path / "rows", X, Y)
    write(tmp_path / "test", TEST, TRUTH)
    model = LocalSVR(**options).fit(X, Y)
    invoke("train", "-q", "-j", 1, "--loss", model.loss, *flags, tmp_path / "rows", tmp_path / "m.h5")
    loaded = localsvm.load(tmp_path / "m.h5")
    assert type(loaded) is LocalSVR and loaded.loss == model.loss
    assert_array_equal(loaded.predict(TEST), model.predict(TEST))
    model.save(tmp_path / "saved.h5")
    for name in ("m.h5", "saved.h5"):
        lines = invoke("predict", "-q", tmp_path / "test", tmp_path / name, "-").stdout.splitlines()
        answers = np.asarray([line.split() for line in lines[-len(TEST) :]], np.float64)
        assert_array_equal(answers.squeeze(), model.predict(TEST))
    if "coverage" in options:
        assert_array_equal(loaded.predict_interval(TEST), model.predict_interval(TEST))


def test_other_methods_of_values_have_regressors(tmp_path: Path) -> None:
    model = GlobalSVMRegressor(gamma=0.3, cost=[1.0, 10.0]).fit(X, Y)
    assert model.score(TEST, TRUTH) > 0.6 and localsvm.GlobalSVMRegressor is GlobalSVMRegressor
    assert_array_equal(pickle.loads(pickle.dumps(model)).predict(TEST), model.predict(TEST))
    model.save(tmp_path / "m.h5")
    again = localsvm.load(tmp_path / "m.h5")
    assert type(again) is GlobalSVMRegressor and again.cost == [1.0, 10.0]
    assert_array_equal(again.predict(TEST), model.predict(TEST))
    made = {name.removesuffix("Regressor") for name in estimators.names() if name.endswith("Regressor")}
    assert {"GlobalSVM", "LinearSVM", "KMeansSVM", "ClusteredSVM", "LocallyLinearSVM", "L3SVM", "MultiTaskSVM"} <= made
    assert not {"FeatureMKL", "LaSVM", "MLSVM", "SVMKNN"} & made


def test_a_classifier_refuses_a_loss_of_values() -> None:
    classes = (np.median(Y) < Y).astype(int)
    with pytest.raises(ValueError, match="LinearSVMRegressor predicts; classes have hinge and squared-hinge"):
        localsvm.LinearSVMClassifier(loss="huber").fit(X, classes)
    old, new = (
        localsvm.LinearSVMClassifier(loss=loss, cost=1.0).fit(X, classes) for loss in ("squared", "squared-hinge")
    )
    assert_array_equal(old.decision_function(TEST), new.decision_function(TEST))


def test_a_fit_that_fails_leaves_the_model_that_there_was() -> None:
    model = LocalSVR(**POINT)
    with pytest.raises(NotFittedError):
        model.predict(X)
    before = model.fit(X, Y).predict(TEST)
    with pytest.raises(ValueError, match="tolerance"):
        model.set_params(tolerance=-1.0).fit(np.hstack([X, X]), Y)
    assert_array_equal(model.predict(TEST), before)


# intervals and sets


def test_intervals_hold_what_was_promised() -> None:
    (known, y), (new, truth) = noisy(500, 0), noisy(2000, 1000)
    given = {"gamma": [0.1, 0.5, 2.0], "cost": [0.3, 3.0, 30.0], "metric": "none"}
    model = LocalSVR(coverage=0.9, **given).fit(known, y)
    ends = model.predict_interval(new)
    assert ends.shape == (2000, 2) and (ends[:, 0] < ends[:, 1]).all()
    assert 0.86 <= np.mean((ends[:, 0] <= truth) & (truth <= ends[:, 1])) <= 0.94
    assert_array_equal(model.predict_interval(new, coverage=0.9), ends)
    wider = model.predict_interval(new, coverage=0.98)
    assert (wider[:, 0] < ends[:, 0]).all() and (wider[:, 1] > ends[:, 1]).all()
    with pytest.raises(ValueError, match=r"^coverage=0.999: the model promises coverages from 0.5 to 0.995; give one"):
        model.predict_interval(new, coverage=0.999)
    with LocalModel(Image(model.model_)) as local:
        assert_array_equal(local.intervals(new, 0.9), ends)


@pytest.mark.parametrize("kind", [LocalSVR, GlobalSVMRegressor])
def test_there_are_no_intervals_where_none_were_asked_for(kind: type) -> None:
    plain = kind(gamma=0.3, cost=10.0).fit(X, Y)
    assert not hasattr(plain, "predict_interval") and not hasattr(plain, "predict_set")
    with pytest.raises(AttributeError) as caught:
        plain.predict_interval(X)
    assert str(caught.value.__cause__) == "intervals and sets need coverage=0.9, or another share, before fit"
    assert hasattr(kind(coverage=0.9), "predict_interval")
    with pytest.raises(LocalSVMError, match=r"no coverage was promised in training; train it again with coverage=0\.9"):
        plain.set_params(coverage=0.8).predict_interval(X)


@pytest.mark.parametrize("multiclass", ["ova", "ava"])
def test_sets_of_a_classifier_hold_what_was_promised(multiclass: str) -> None:
    rng = np.random.default_rng(0)
    rows = rng.uniform(-1.0, 1.0, (1500, 2))
    y = np.asarray(["a", "b", "c"])[np.digitize(rows[:, 0] + 0.4 * rng.standard_normal(1500), [-0.5, 0.5])]
    given = {"gamma": [0.1, 0.5], "cost": [0.3, 3.0], "metric": "none", "multiclass": multiclass}
    model = LocalSVC(coverage=0.9, **given).fit(rows[:500], y[:500])
    sets = model.predict_set(rows[500:])
    assert sets.shape == (1000, 3) and sets.dtype == bool and sets.any(axis=1).all()
    assert 0.86 <= mask(sets, model.classes_, y[500:]).mean() <= 0.94
    assert 1.1 < sets.sum(axis=1).mean() < 2.5
    fewer = model.predict_set(rows[500:], coverage=0.7)
    assert (fewer <= sets).all() and fewer.sum() < sets.sum()
    assert not hasattr(model, "predict_interval")
    plain = LocalSVC(**given).fit(rows[:500], y[:500])
    assert not hasattr(plain, "predict_set")
    assert_array_equal(model.decision_function(rows), plain.decision_function(rows))


@pytest.mark.parametrize("share", [1.5, 1.0, 0.0, -0.1])
def test_a_share_beyond_0_and_1_is_refused(share: float) -> None:
    for kind, y in ((LocalSVR, Y), (LocalSVC, Y > 40.0)):
        with pytest.raises(ValueError, match=rf"^coverage must be a number between 0 and 1, as 0\.9, not {share:g}$"):
            kind(coverage=share, gamma=1.0, cost=1.0).fit(X, y)


# what is refused


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"loss": "hinge"}, "^loss='hinge' is none of values; choose one of least-squares, quantile, "),
        ({"loss": None}, "^loss=None is none of values"),
        ({"scoring": "accuracy"}, "^scoring='accuracy': choose one of mse, mae, pinball, r2$"),
        ({"quantile": 0.5}, "^quantile is for loss='quantile' and loss='expectile'; give one of them$"),
        ({"loss": QUANTILE, "quantile": [0.5, 1.0]}, "^quantile takes up to 64 numbers between 0 and 1$"),
        ({"epsilon": 0.5}, "^epsilon is for loss='epsilon-insensitive', loss='squared-epsilon-insensitive', loss="),
        ({"coverage": "much"}, "^coverage "),
        ({"metric": "lmnn"}, "^metric='lmnn' is learned from classes, and the loss is one of values"),
    ],
)
@pytest.mark.fast(8)
def test_options_that_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message) as caught:
        LocalSVR(**options).fit(X, Y)
    assert isinstance(caught.value, LocalSVMError) and "--" not in str(caught.value)


@pytest.mark.parametrize("name", ["probability", "class_weight", "multiclass", "decision_function_shape"])
@pytest.mark.fast(4)
def test_parameters_of_classes_are_none_of_values(name: str) -> None:
    with pytest.raises(TypeError, match=f"^LocalSVR has no parameter '{name}'"):
        LocalSVR(**{name: 1})
    assert name not in LocalSVR().get_params() and name in LocalSVC().get_params()


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (np.asarray(["cheap", "dear"] * 75), "y has values of the type <U5, and values to predict are numbers"),
        (np.full(150, 7.5), r"all 150 rows have the value 7\.5; training needs at least two values"),
        (np.where(np.arange(150) == 3, np.nan, Y), "Input y contains NaN"),
        (np.where(np.arange(150) == 3, np.inf, Y), "Input y contains infinity"),
        (np.where(np.arange(150) == 3, 1e300, Y), r"values up to 1e\+300 .* give them in another unit"),
        (np.column_stack([Y, Y]), "y should be a 1d array"),
        (Y[:-1], "inconsistent numbers of samples"),
    ],
    ids=["text", "constant", "nan", "inf", "huge", "two", "short"],
)
@pytest.mark.fast(7)
def test_values_that_are_none_are_refused(y: np.ndarray, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        LocalSVR(**POINT).fit(X, y)


# frames


def frame(n: int, seed: int) -> tuple[Any, np.ndarray]:
    """A frame of flats with gaps, and their rents, which depend on the size and the town; of these there are 25."""
    pd = pytest.importorskip("pandas", reason="pandas is not installed: pip install pandas")
    rng = np.random.default_rng(seed)
    size, town, kind = rng.uniform(20.0, 120.0, n), rng.integers(0, 25, n), rng.choice(["old", "new"], n)
    level = np.random.default_rng(99).normal(0.0, 100.0, 25)
    rent = 8.0 * size + level[town] + np.where(kind == "new", 150.0, 0.0) + rng.normal(0.0, 20.0, n)
    columns = {"size": size, "town": [f"town {k}" for k in town], "kind": pd.Categorical(kind)}
    rows = pd.DataFrame(columns)
    rows.loc[::11, "size"] = np.nan
    rows.loc[5::17, "kind"] = None
    return rows, rent


def test_a_frame_has_text_gaps_and_towns_of_many_levels(tmp_path: Path) -> None:
    pd = pytest.importorskip("pandas", reason="pandas is not installed: pip install pandas")
    (rows, rent), (new, truth) = frame(400, 0), frame(300, 1)
    model = LocalSVR(gamma=[0.05, 0.3], cost=[3.0, 30.0], metric="none").fit(rows, pd.Series(rent, name="rent"))
    whole = new["size"].notna().to_numpy()
    assert model.score(new[whole], truth[whole]) > 0.85
    assert model.feature_names_in_.tolist() == ["size", "town", "kind"] and model.n_features_in_ == 3
    assert {"size", "size is missing", "kind=new", "kind=old"} <= set(model.get_feature_names_out())
    answers = model.predict(new)
    assert_array_equal(model.predict(new[["town", "kind", "size"]].assign(more=1)), answers)
    assert_array_equal(pickle.loads(pickle.dumps(model)).predict(new), answers)
    model.save(tmp_path / "m.h5")
    assert_array_equal(localsvm.load(tmp_path / "m.h5").predict(new), answers)
    new.to_csv(tmp_path / "new.csv", index=False)
    invoke("predict", "-q", tmp_path / "new.csv", tmp_path / "m.h5", tmp_path / "out.csv")
    header, *lines = (tmp_path / "out.csv").read_text().splitlines()
    assert header == "rent"
    assert_allclose(np.asarray(lines, np.float64), answers, rtol=1e-5)
    with pytest.warns(UserWarning, match="column 'town' of X has 300 values that training did not have"):
        model.predict(new.assign(town="nowhere"))


@pytest.mark.whole
def test_frames_of_polars_give_the_same_model() -> None:
    pl = pytest.importorskip("polars", reason="polars is not installed: pip install polars")
    (rows, rent), (new, _) = frame(150, 0), frame(100, 1)
    answers = LocalSVR(**POINT).fit(rows, rent).predict(new)
    other = LocalSVR(**POINT).fit(pl.from_pandas(rows), pl.Series("rent", rent)).predict(pl.from_pandas(new))
    assert_array_equal(other, answers)


def test_missing_values_of_arrays_are_filled() -> None:
    rows = X.astype(np.float64)
    rows[::5, 1] = np.nan
    model = LocalSVR(**POINT).fit(rows, Y)
    assert model.score(TEST, TRUTH) > 0.6 and "x1 is missing" in model.get_feature_names_out()


# scikit-learn's tools


def test_inside_pipelines_and_searches() -> None:
    steps = make_pipeline(StandardScaler(), LocalSVR(**POINT))
    search = GridSearchCV(
        steps, {"localsvr__cost": [1e-3, 10.0], "localsvr__loss": ["absolute", "least-squares"]}, cv=3
    )
    assert search.fit(X, Y).best_params_["localsvr__cost"] == 10.0
    assert search.score(TEST, TRUTH) > 0.6
    scores = cross_val_score(LocalSVR(**POINT), X, Y, cv=3, scoring="neg_mean_absolute_error")
    assert scores.shape == (3,) and scores.mean() > -0.7 * np.abs(Y - np.median(Y)).mean()
    assert cross_val_score(LocalSVR(**POINT), X, Y, cv=3).mean() > 0.5


def test_inside_other_regressors() -> None:
    logarithms = TransformedTargetRegressor(LocalSVR(**POINT), func=np.log, inverse_func=np.exp)
    plain = LocalSVR(**POINT).fit(X, np.log(Y)).predict(TEST)
    assert_allclose(logarithms.fit(X, Y).predict(TEST), np.exp(plain), rtol=1e-6)
    parts = [("local", LocalSVR(**POINT)), ("line", LinearRegression())]
    stacked = StackingRegressor(parts, LinearRegression(), cv=3).fit(X, Y)
    assert stacked.score(TEST, TRUTH) > stacked.named_estimators_["line"].score(TEST, TRUTH) + 0.2


def test_intervals_of_mapie_are_around_its_values() -> None:
    """Its split conformal intervals are of one width, and hold nine values in ten, too."""
    mapie = pytest.importorskip("mapie.regression", reason="MAPIE is not installed: pip install mapie")
    (known, y), (new, truth) = noisy(800, 0), noisy(1000, 1000)
    model = LocalSVR(gamma=0.5, cost=3.0, metric="none")
    if hasattr(mapie, "SplitConformalRegressor"):
        split = mapie.SplitConformalRegressor(model, confidence_level=0.9, prefit=False)
        split.fit(known[:400], y[:400]).conformalize(known[400:], y[400:])
        values, ends = split.predict_interval(new)
    else:  # before 1.0
        split = mapie.MapieRegressor(clone(model).fit(known[:400], y[:400]), cv="prefit").fit(known[400:], y[400:])
        values, ends = split.predict(new, alpha=0.1)
    low, high = ends[:, :, 0].T
    assert_array_equal(values, clone(model).fit(known[:400], y[:400]).predict(new))
    assert_allclose(high - low, (high - low)[0])
    assert 0.86 <= np.mean((low <= truth) & (truth <= high)) <= 0.94


def plane(n: int, noise: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1.0, 1.0, (n, 2)).astype(np.float32)
    return X, 2.0 * X[:, 0] - X[:, 1] + noise * rng.standard_normal(n)


def wave(n: int, noise: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1.0, 1.0, (n, 2)).astype(np.float32)
    return X, np.sin(3.0 * X[:, 0]) + X[:, 1] ** 2 + noise * rng.standard_normal(n)


@pytest.mark.fast(1)
@pytest.mark.parametrize("loss", ["absolute", "huber", "epsilon-insensitive", "quantile"])
def test_a_single_row_far_from_all_others_hardly_moves_a_robust_loss(loss: str) -> None:
    """Beside it there may be a peak, so that the median error tells: it stays below a fourth of the noise."""
    X, y = wave(300, 0.1, seed=0)
    fresh, truth = wave(1000, 0.0, seed=1)
    errors = []
    for far in (y[0], 1e3, 1e6, 1e9):
        model = LocalSVR(metric="none", loss=loss).fit(X, np.append(far, y[1:]))
        errors.append(float(np.median(np.abs(model.predict(fresh) - truth))))
    assert max(errors) < 0.025, errors


@pytest.mark.fast(1)
def test_a_row_far_from_all_others_hardly_moves_what_a_robust_loss_learns_of_the_metric() -> None:
    X, y = wave(600, 0.1, seed=0)
    fresh, truth = wave(1000, 0.0, seed=1)
    model = LocalSVR(loss="absolute").fit(X, np.append(1e6, y[1:]))
    assert np.median(np.abs(model.predict(fresh) - truth)) < 0.025


def test_levels_are_right_where_noise_is_small_beside_the_deviation() -> None:
    """A tolerance in units of the deviation would be larger than the noise."""
    (X, y), (fresh, truth), levels = plane(500, 1e-3, seed=0), plane(2000, 1e-3, seed=1), [0.1, 0.5, 0.9]
    below = truth[:, None] <= LocalSVR(metric="none", loss="quantile", quantile=levels).fit(X, y).predict(fresh)
    assert_allclose(below.mean(axis=0), levels, atol=0.05)


@pytest.mark.fast(1)
@pytest.mark.parametrize("loss", ["absolute", "expectile", "huber"])
def test_a_loose_tolerance_still_chooses_among_solutions(loss: str) -> None:
    (X, y), (fresh, truth) = wave(300, 0.1, seed=0), wave(1000, 0.0, seed=1)
    model = LocalSVR(metric="none", loss=loss, tolerance=0.01).fit(X, y)
    assert np.abs(model.predict(fresh) - truth).mean() < 0.05


@pytest.mark.fast(1)
@pytest.mark.parametrize("loss", ["absolute", "quantile"])
def test_values_without_noise_are_learned_to_their_digits(loss: str) -> None:
    """Their scores and their models take few steps all the same.

    The points of the grid that are chosen depend on the processor's rounding. Of these rows the error is .5 to .8
    thousandths of the deviation with each; of 300 it is .6 to 3.4.
    """
    rng = np.random.default_rng(1)
    X, fresh = rng.uniform(-1.0, 1.0, (600, 2)), rng.uniform(-1.0, 1.0, (1000, 2))
    y, truth = (np.sin(3.0 * Z[:, 0]) + Z[:, 1] ** 2 for Z in (X, fresh))
    error = np.abs(LocalSVR(metric="none", loss=loss).fit(X, y).predict(fresh) - truth)
    assert error.mean() < 2e-3 * y.std()


@pytest.mark.fast(1)
def test_without_an_epsilon_the_insensitive_losses_are_those_of_the_whole_residual() -> None:
    (X, y), (fresh, _) = wave(200, 0.1, seed=0), wave(300, 0.0, seed=1)
    for loss, same in (("epsilon-insensitive", "absolute"), ("squared-epsilon-insensitive", "least-squares")):
        given = {"loss": loss, "epsilon": 0.0}, {"loss": same}
        found = [LocalSVR(**POINT, **each).fit(X, y).predict(fresh) for each in given]
        assert_allclose(*found, atol=1e-2)


def test_an_epsilon_beyond_the_range_of_the_values_is_the_range() -> None:
    """The Huber loss then is the squared one, and nothing overflows."""
    (X, y), (fresh, _) = wave(200, 0.2, seed=0), wave(200, 0.2, seed=1)
    fixed = {"metric": "none", "gamma": 0.3, "cost": 10.0}
    huge, large = (LocalSVR(**fixed, loss="huber", epsilon=e).fit(X, y).predict(fresh) for e in (1e300, np.ptp(y)))
    np.testing.assert_array_equal(huge, large)
    squares = LocalSVR(**fixed).fit(X, y).predict(fresh)
    assert np.abs(huge - squares).max() < 0.02


@pytest.mark.fast(1)
@pytest.mark.parametrize("far", [1e2, 1e3, 1e4])
def test_few_rows_far_from_all_others_are_learned_too(far: float) -> None:
    """Their kernel has few digits in float32, and may have no Cholesky factor."""
    rng = np.random.default_rng(0)
    centre = np.repeat([0.0, far, -far], [30, 3, 3])[:, None]
    X = centre + rng.standard_normal((36, 2))
    y = X[:, 0] + rng.standard_normal(36)
    error = np.abs(LocalSVR(metric="none").fit(X, y).predict(X) - y)
    assert error[:30].mean() < 1.5 and error[30:].mean() < 2.0
