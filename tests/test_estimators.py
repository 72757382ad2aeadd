"""LocalSVC keeps scikit-learn's contract and predicts what the command line's model does."""

from __future__ import annotations

import multiprocessing
import pickle
import re
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from command_line import invoke
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import make_blobs, make_moons
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import cross_val_score
from sklearn.svm import SVC

import localsvm
from develop.make_golden import DENSE, FOLDER
from localsvm import estimators
from localsvm.data.readers.libsvm import read
from localsvm.data.writers.libsvm import write
from localsvm.errors import LocalSVMError
from localsvm.estimators import L3SVMClassifier, LinearSVMClassifier, LocalClassifier, LocalSVC
from localsvm.estimators.fitted import classes_of
from localsvm.estimators.parameters import in_python
from localsvm.methods import methods
from localsvm.methods.kernel.svm import KernelSVM
from localsvm.methods.locally_linear.kmeans_svm import KMeansSVM
from localsvm.naming import on_command_line, opt
from localsvm.parallel.local import cpu_count
from localsvm.runs.predict import LocalModel

DENSE_ROWS = FOLDER / DENSE


@pytest.mark.whole
def test_labels_of_any_type_and_many_cells() -> None:
    X, y = make_moons(900, noise=0.25, random_state=0)
    names = np.asarray(["crescent", "moon"])[y]
    model = LocalSVC(partition="voronoi", cell_size=200, n_jobs=2, random_state=3)
    assert cross_val_score(model, X, names, cv=3).mean() > 0.92
    model.fit(X, names)
    assert model.summary_.cells >= 5
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    np.testing.assert_array_equal(model.decision_function(X) > 0, model.predict(X) == "moon")


def test_the_bytes_are_a_model_file(tmp_path) -> None:
    X, y = make_moons(300, noise=0.2, random_state=1)
    model = LocalSVC(gamma=[0.1, 1.0], cost=[1.0, 10.0]).fit(X, y)
    (tmp_path / "m.h5").write_bytes(model.model_)
    with LocalModel(tmp_path / "m.h5") as local:
        np.testing.assert_array_equal(local.predict(X.astype(np.float32)), model.predict(X))


def test_class_weights_and_sparse_rows() -> None:
    X, y = make_moons(300, noise=0.4, random_state=2)
    plain, heavy = (LocalSVC(gamma=1.0, cost=1.0, class_weight=w).fit(X, y) for w in (None, {1: 20.0}))
    assert heavy.predict(X).sum() > plain.predict(X).sum()
    rows = sparse.csr_array(X)
    assert (LocalSVC(gamma=1.0, cost=1.0).fit(rows, y).predict(rows) == plain.predict(X)).mean() > 0.98


def test_one_class_is_refused() -> None:
    with pytest.raises(ValueError, match="at least two classes"):
        LocalSVC().fit(np.zeros((4, 2)), np.ones(4))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"kernel": "rbf"}, "^kernel='rbf': choose one of auto, gaussian"),
        ({"gamma": -1.0}, r"^gamma takes positive numbers, and cost those up to 1e\+50$"),
        ({"gamma": []}, r"^gamma takes a number, a list of numbers, a range as text, or None, not \[\]$"),
        ({"cost": [1.0, np.nan]}, "positive numbers"),
        ({"class_weight": {0: -1.0}}, "^class_weight: the weight of 0 must be a positive number up to 1e.50, not -1.0"),
        ({"class_weight": {0: 0.0}}, "^class_weight: the weight of 0 must be a positive number up to 1e.50, not 0.0"),
        ({"select": "best"}, "^select='best': choose one of vote, refit"),
        ({"multiclass": "ovr"}, "^multiclass='ovr': choose one of ova, ava"),
        ({"scale": "no"}, "^scale='no': choose one of"),
        ({"folds": 1}, "^folds must be at least 2"),
        ({"random_state": -1}, "^random_state must be a whole number from 0"),
        ({"partition": "tree"}, "^partition: there is no partition 'tree'"),
        ({"gamma": "auto"}, "^gamma takes a number, a list of numbers, a range as text, or None, not 'auto'"),
        ({"tolerance": -1.0}, "^tolerance must be a positive number, not -1; try tolerance=0.001"),
        ({"n_jobs": 0}, "^n_jobs must be a whole number other than 0"),
        ({"decision_function_shape": "ovo"}, '^decision_function_shape must be "ovr", or "ovo" with multiclass="ava"'),
        ({"repeats": 0}, "^repeats"),
        ({"cell_size": 2.5}, "^cell_size must be a whole number, not 2.5"),
        ({"cell_size": "2000"}, "^cell_size must be a whole number, not '2000'"),
        ({"cell_size": 1}, "^cell_size must be at least 10, not 1"),
        ({"folds": True}, "^folds must be a whole number, not True"),
        ({"probability": "yes"}, "^probability must be True or False, not 'yes'"),
        ({"offset": "no"}, "^offset must be True or False, not 'no'"),
        ({"tolerance": "small"}, "^tolerance must be a number, not 'small'"),
        ({"metric": 3}, "^metric must be a text, not 3"),
        ({"scale": True}, "^scale must be a text, not True"),
        ({"grid": None}, "^grid must be a text, not None"),
        ({"kernel": 2}, "^kernel must be a text, not 2"),
        ({"class_weight": {7: 1.0}}, r"^class_weight: 7 is no label of y; the labels are 0, 1"),
        ({"class_weight": {0: 1.0, 7: 1.0}}, "^class_weight: 7 is no label of y"),
        ({"class_weight": {0: "x"}}, "^class_weight: the weight of 0 must be a positive number up to 1e.50, not 'x'"),
        (
            {"class_weight": {0: 10**400}},
            "^class_weight: the weight of 0 must be a positive number up to 1e.50, not 1000",
        ),
        ({"class_weight": {(0, 1): 1.0}}, r"^class_weight: \(0, 1\) is no label of y; the labels are 0, 1"),
        ({"class_weight": [1, 2]}, r'^class_weight must be "balanced", a dict of factors or None, not \[1, 2\]'),
        ({"cell_size": 10**20}, "^cell_size=1[0-9]*: no cell has as many rows"),
    ],
)
def test_options_that_are_refused(options: dict, message: str) -> None:
    X, y = make_moons(60, random_state=3)
    with pytest.raises(ValueError, match=message) as caught:
        LocalSVC(**options).fit(X, y)
    assert isinstance(caught.value, LocalSVMError) and "--" not in str(caught.value)


def test_a_class_that_is_absent_may_have_a_weight_where_all_others_have_one() -> None:
    X, y = make_moons(60, random_state=3)
    plain, more = (LocalSVC(gamma=1.0, cost=1.0, class_weight=w).fit(X, y) for w in ({0: 1, 1: 2}, {0: 1, 1: 2, 2: 9}))
    np.testing.assert_array_equal(plain.decision_function(X), more.decision_function(X))


def test_a_fit_that_fails_leaves_the_model_that_there_was() -> None:
    X, y = make_moons(60, random_state=3)
    model = LocalSVC(gamma=1.0, cost=1.0, tolerance=-1.0)
    for refused in (model.predict, model.save):
        with pytest.raises(ValueError, match="tolerance"):
            model.fit(X, y)
        with pytest.raises(NotFittedError):
            refused(X if refused == model.predict else "unused")
    model.set_params(tolerance=1e-3).fit(X, np.where(y, "spam", "ham"))
    before = model.predict(X)
    with pytest.raises(ValueError, match="tolerance"):
        model.set_params(tolerance=-1.0).fit(X, np.where(y, "cat", "dog"))
    wider = np.hstack([X, X])
    with pytest.raises(ValueError, match="tolerance"):
        model.fit(wider, y)
    with pytest.raises(ValueError, match="one class"):
        model.fit(wider, np.zeros(60))
    np.testing.assert_array_equal(model.predict(X), before)


@pytest.mark.fast(1)
@pytest.mark.parametrize("first", [2**53, -(2**53) - 1, -(2**63)])
def test_whole_classes_that_float64_does_not_hold_stay_apart(first: int) -> None:
    X, y = make_blobs(90, centers=3, random_state=0, cluster_std=0.3)
    names = np.array([first, first + 1, 5])[y]
    model = LocalSVC(gamma=1.0, cost=1.0).fit(X, names)
    np.testing.assert_array_equal(model.predict(X), names)


def test_a_subclass_keeps_what_it_defines() -> None:
    class Small(LocalSVC):
        """A classifier of small cells."""

        def __init__(self, cell_size: int = 500, extra: int = 1) -> None:
            super().__init__(cell_size=cell_size, gamma=1.0, cost=1.0)
            self.extra = extra

    class Smaller(Small):
        pass

    class Clusters(LocalClassifier):
        """A classifier of another method."""

        method = KMeansSVM

        def __init__(self, clusters: int = 3) -> None:
            super().__init__()
            self.clusters = clusters

    assert (Clusters(4).get_params(), Clusters.__doc__) == ({"clusters": 4}, "A classifier of another method.")

    X, y = make_moons(60, random_state=3)
    for kind in (Small, Smaller):
        model = kind(extra=2)
        assert model.get_params() == {"cell_size": 500, "extra": 2} and clone(model).extra == 2
        assert model.fit(X, y).score(X, y) > 0.9
    assert Small.__doc__ == "A classifier of small cells." and LocalSVC().cell_size is None


def test_jobs_below_zero_are_counted_from_all_cores() -> None:
    cores = cpu_count()
    counts = [LocalSVC(n_jobs=jobs)._jobs() for jobs in (None, 3, -1, -2, -cores - 5)]
    assert counts == [1, 3, cores, max(1, cores - 1), 1]


def test_names_of_classes_that_no_file_keeps_are_refused_by_save(tmp_path: Path) -> None:
    X, y = make_moons(60, random_state=3)
    model = LocalSVC(gamma=1.0, cost=1.0).fit(X, np.array(["a", "b" * 300_000])[y])
    with pytest.raises(ValueError, match="cannot be kept in a model file"):
        model.save(tmp_path / "model.h5")
    assert not list(tmp_path.iterdir())


def test_more_columns_than_32_bits_number_are_refused() -> None:
    index = np.array([0, 1, 2**31 + 3, 0, 2, 5])
    X = sparse.csr_array((np.ones(6), index, np.arange(7)), shape=(6, 2**31 + 10))
    with pytest.raises(ValueError, match="2147483658 columns; at most 2147483647"):
        LocalSVC(gamma=0.5, cost=1.0).fit(X, [0, 1, 0, 1, 0, 1])


@pytest.mark.parametrize("factor", [5e-324, 1e-100, 1e100])
def test_weights_beyond_what_can_be_computed_with_are_refused(factor: float) -> None:
    X, y = make_moons(60, random_state=3)
    with pytest.raises(ValueError, match=r"the sum of the weights, .* divide all of them by a number"):
        LocalSVC(gamma=0.5).fit(X, y, sample_weight=np.full(60, factor))


def test_numbers_of_numpy_are_parameters() -> None:
    X, y = make_moons(60, random_state=3)
    options = {"cell_size": np.int64(2000), "folds": np.int32(3), "offset": np.True_, "tolerance": np.float32(0.01)}
    plain = {"cell_size": 2000, "folds": 3, "offset": True, "tolerance": float(np.float32(0.01))}
    values, expected = (LocalSVC(**given).fit(X, y).decision_function(X) for given in (options, plain))
    np.testing.assert_array_equal(values, expected)


def test_rows_beyond_float32_are_refused() -> None:
    X, y = make_moons(60, random_state=3)
    model = LocalSVC(gamma=1.0, cost=1.0).fit(X, y)
    X[3, 1] = 1e39
    for rows in (X, sparse.csr_array(X)):
        with pytest.raises(ValueError, match="beyond float32, the first in row 3, column 1"):
            model.predict(rows)


def test_commands_in_a_message_stay_commands() -> None:
    text = f"{opt.cell_size(5)}; lsvm-partition --metric full makes one; give {opt.metric}, or {opt.resume}"
    named = "cell_size=5; lsvm-partition --metric full makes one; give metric, or --resume"
    assert in_python(text, KernelSVM) == named
    assert (
        on_command_line(text) == "-c/--cell-size 5; lsvm-partition --metric full makes one; give --metric, or --resume"
    )


def test_names_from_elsewhere_get_a_suggestion() -> None:
    with pytest.raises(TypeError, match=r"^LocalSVC has no parameter 'cel_size'; did you mean cell_size\?$"):
        LocalSVC(cel_size=100)
    with pytest.raises(TypeError, match=r"^LocalSVC has no parameter 'shrinking'$"):
        LocalSVC(shrinking=True)


def test_probabilities_that_were_not_asked_for_tell_how() -> None:
    X, y = make_moons(60, random_state=3)
    model = LocalSVC(gamma=1.0, cost=1.0).fit(X, y)
    with pytest.raises(AttributeError) as caught:
        model.predict_proba(X)
    assert str(caught.value.__cause__) == "probabilities need probability=True before fit"


def test_a_run_that_cannot_go_on_names_parameters_too() -> None:
    X, y = make_moons(60, random_state=3)
    with pytest.raises(LocalSVMError, match=r"kernel overflows on these data; scale them \(scale='std'\)"):
        LocalSVC(kernel="polynomial", degree=50, scale="none", gamma=100.0, cost=1.0).fit(X, y)


def test_a_dense_model_takes_sparse_rows_and_the_reverse() -> None:
    X, y = make_moons(200, noise=0.3, random_state=4)
    rows = sparse.csr_array(X)
    for train in (X, rows):
        model = LocalSVC(gamma=1.0, cost=1.0).fit(train, y)
        np.testing.assert_array_equal(model.predict(X), model.predict(rows))


@pytest.mark.whole
def test_random_state_none_draws_one_seed() -> None:
    X, y = make_moons(200, noise=0.3, random_state=5)
    assert LocalSVC(random_state=None, n_jobs=2).fit(X, y).score(X, y) > 0.85


@pytest.mark.fast(3)
@pytest.mark.parametrize(
    "method", [m for m in methods().values() if m.name not in ("svm", "one-class")], ids=lambda m: m.name
)
def test_every_method_has_an_estimator(method: type) -> None:
    X, y = make_moons(300, noise=0.15, random_state=0)
    classifier = getattr(estimators, f"{method.__name__}Classifier")
    assert classifier is getattr(estimators, f"{method.__name__}Classifier")
    given = {"cost": 10.0} if "cost" in method.__dataclass_fields__ else {}
    model = clone(classifier(folds=3, **given)).fit(X, y)
    assert given.items() <= model.get_params().items()
    assert model.score(X, y) > 0.8
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).predict(X), model.predict(X))


def test_lists_are_chosen_from() -> None:
    X, y = make_moons(300, noise=0.15, random_state=0)
    model = estimators.L3SVMClassifier(clusters=[1, 8], landmarks_count=[2, 3], cost=[1.0, 10.0]).fit(X, y)
    assert model.summary_.cv_error < 0.2
    with pytest.raises(TypeError, match="has no parameter 'neighbours'"):
        estimators.L3SVMClassifier(neighbours=3)
    with pytest.raises(AttributeError, match="no attribute"):
        estimators.NoSuchClassifier  # noqa: B018


def test_balanced_classes_and_random_states_are_those_of_scikit_learn() -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 3)).astype(np.float32)
    y = np.where(X[:, 0] + 0.5 * rng.standard_normal(200) > 1.0, "few", "many")
    few = int(np.sum(y == "few"))
    factors = {"few": 200 / (2 * few), "many": 200 / (2 * (200 - few))}
    given = {"cost": 0.1, "clusters": None, "random_state": 3}
    balanced, explicit = (L3SVMClassifier(class_weight=w, **given).fit(X, y) for w in ("balanced", factors))
    np.testing.assert_array_equal(balanced.decision_function(X), explicit.decision_function(X))
    drawn = [L3SVMClassifier(**(given | {"random_state": np.random.RandomState(s)})).fit(X, y) for s in (1, 1)]
    np.testing.assert_array_equal(*(model.decision_function(X) for model in drawn))
    with pytest.raises(ValueError, match="balanced"):
        L3SVMClassifier(class_weight="even", **given).fit(X, y)


def test_the_package_has_load_and_the_classifiers() -> None:
    assert {"LocalSVC", "L3SVMClassifier", "LinearSVMClassifier", "load", "__version__"} <= set(dir(localsvm))
    assert localsvm.L3SVMClassifier is L3SVMClassifier
    assert localsvm.__all__ == [*estimators.names(), "load"]
    for name in estimators.names():
        kind = getattr(localsvm, name)
        assert ('"hinge"' in kind.__doc__) <= issubclass(kind, LocalClassifier), name
        for parameter in kind().get_params():
            assert f"\n{parameter} : " in kind.__doc__, (name, parameter)
        assert not re.search("--[a-z]", kind.__doc__), name
    with pytest.raises(AttributeError, match="no attribute 'NoSuchClassifier'"):
        localsvm.NoSuchClassifier  # noqa: B018
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        localsvm.nonsense  # noqa: B018


@pytest.mark.fast(1)
@pytest.mark.parametrize(
    "names", [np.asarray([2, 7]), np.asarray([2**60, 2**60 + 1]), np.asarray(["no", "yes"]), np.asarray([False, True]),
              np.asarray(["a", "b"], dtype=object)], ids=str,
)  # fmt: skip
def test_a_saved_model_is_loaded_as_it_was(names: np.ndarray, tmp_path: Path) -> None:
    X, y = make_moons(300, noise=0.2, random_state=1)
    given = {"gamma": [0.5, 2.0], "cost": [1.0, 10.0], "partition": "voronoi", "cell_size": 120, "folds": 3}
    model = LocalSVC(**given, class_weight={names[1]: 2.0}).fit(X, names[y])
    model.save(tmp_path / "model.h5")
    model.save(tmp_path / "model.h5")  # overwrites
    again = localsvm.load(tmp_path / "model.h5")
    assert type(again) is LocalSVC and again.classes_.dtype == model.classes_.dtype
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    np.testing.assert_array_equal(again.decision_function(X), model.decision_function(X))
    assert (again.best_params_, again.n_support_.tolist()) == (model.best_params_, model.n_support_.tolist())
    assert {k: again.get_params()[k] for k in given} == given and again.class_weight == {names[1]: 2.0}
    assert clone(again).fit(X, names[y]).model_[:8] == model.model_[:8]
    np.testing.assert_array_equal(clone(again).fit(X, names[y]).decision_function(X), model.decision_function(X))


def test_a_saved_model_with_probabilities_is_loaded(tmp_path: Path) -> None:
    X, y = make_moons(300, noise=0.2, random_state=1)
    model = LocalSVC(gamma=1.0, cost=1.0, probability=True, repeats=2, partition="voronoi", cell_size=120).fit(X, y)
    model.save(tmp_path / "model.h5")
    again = localsvm.load(tmp_path / "model.h5")
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    assert (again.probability, again.repeats, again.gamma) == (True, 2, [1.0])


def test_numbers_stay_the_labels_of_the_command_line(tmp_path: Path) -> None:
    X, y = make_moons(100, noise=0.2, random_state=1)
    LocalSVC(gamma=1.0, cost=1.0).fit(X, 3 + 4 * y).save(tmp_path / "model.h5")
    write(tmp_path / "rows.libsvm", X, np.zeros(100))
    labels = invoke("predict", "-q", tmp_path / "rows.libsvm", tmp_path / "model.h5").stdout.split()
    assert set(labels) == {"3", "7"}


def test_a_model_of_the_command_line_is_loaded(tmp_path: Path) -> None:
    invoke("train", "-q", "-m", "l3", "-K", "2", "-C", "1,10", DENSE_ROWS, tmp_path / "model.h5")
    model = localsvm.load(tmp_path / "model.h5")
    data = read(DENSE_ROWS)
    assert type(model) is L3SVMClassifier and model.clusters == [2.0] and model.cost == [1.0, 10.0]
    with LocalModel(tmp_path / "model.h5") as local:
        np.testing.assert_array_equal(local.predict(data.X), model.predict(data.X))
        np.testing.assert_array_equal(model.classes_, local.file.labels)
    with pytest.raises(LocalSVMError, match="no-such-file"):
        localsvm.load(tmp_path / "no-such-file.h5")


def test_labels_that_no_file_holds_are_pickled() -> None:
    X, y = make_moons(100, noise=0.2, random_state=1)
    names = np.asarray(["2020-01-01", "2021-01-01"], "datetime64[D]")
    model = LocalSVC(gamma=1.0, cost=1.0).fit(X, names[y])
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).predict(X), model.predict(X))
    with pytest.raises(ValueError, match="cannot be kept in a model file"):
        model.save("never-written.h5")


def test_what_was_chosen_and_how_many_support_vectors() -> None:
    X, y = make_moons(300, noise=0.2, random_state=0)
    model = LocalSVC(gamma=[0.5, 2.0], cost=[1.0, 10.0], partition="voronoi", cell_size=120).fit(X, y)
    assert len(model.best_params_) == model.summary_.cells > 1
    assert all(p["gamma"] in (0.5, 2.0) and p["cost"] in (1.0, 10.0) for p in model.best_params_)
    assert model.n_support_.sum() == model.summary_.support_vectors
    theirs = SVC(gamma=1.0, C=1.0, tol=1e-6).fit(X, y)
    ours = LocalSVC(gamma=1.0, cost=1.0, offset=True, scale="none", tolerance=1e-6).fit(X, y)
    assert ours.best_params_ == [{"gamma": 1.0, "cost": 1.0}]
    np.testing.assert_allclose(ours.n_support_, theirs.n_support_, atol=1)
    chosen = L3SVMClassifier(clusters=[1, 8], cost=1.0).fit(X, y).best_params_[0]
    assert set(chosen) == {"clusters", "landmarks_count", "cost"} and set(chosen) < set(L3SVMClassifier().get_params())


@pytest.mark.fast(5)
@pytest.mark.parametrize("scale", ["std", "zscore", "minmax", "none"])
@pytest.mark.parametrize("multiclass", ["ova", "ava"])
@pytest.mark.parametrize("kind", ["linear", "kernel"])
def test_weights_are_those_of_unscaled_rows(kind: str, multiclass: str, scale: str) -> None:
    X, y = make_blobs(200, 3, centers=3, cluster_std=3.0, random_state=0)
    X = np.insert(X, 1, 0.0, axis=1)  # a column without a value
    shared = {"cost": 1.0, "multiclass": multiclass, "scale": scale}
    model = LocalSVC(kernel="linear", offset=True, **shared) if kind == "kernel" else LinearSVMClassifier(**shared)
    model.fit(X, y)
    if multiclass == "ava":
        model.set_params(decision_function_shape="ovo")
    values = X @ model.coef_.T + model.intercept_
    np.testing.assert_allclose(values, model.decision_function(X), atol=1e-4 * np.abs(values).max())


def test_models_that_are_not_linear_have_no_weights() -> None:
    X, y = make_moons(200, noise=0.2, random_state=0)
    row = LinearSVMClassifier(cost=1.0, scale="row").fit(X, y)
    cells = LinearSVMClassifier(cost=1.0, partition="voronoi", cell_size=100).fit(X, y)
    for model in (LocalSVC(gamma=1.0, cost=1.0).fit(X, y), row, cells):
        assert not hasattr(model, "coef_") and not hasattr(model, "intercept_")
    assert not hasattr(row, "n_support_")


def test_models_that_do_not_converge_are_told() -> None:
    X, y = make_moons(200, noise=0.2, random_state=0)
    with pytest.warns(ConvergenceWarning, match="did not reach the tolerance; more passes, or a smaller C"):
        LinearSVMClassifier(cost=1000.0, solver="sgd", passes=1).fit(X, y)


def test_verbose_tells_of_the_training(capsys: pytest.CaptureFixture[str]) -> None:
    X, y = make_moons(300, noise=0.2, random_state=0)
    LocalSVC(partition="voronoi", cell_size=120, verbose=True).fit(X, y)
    printed = capsys.readouterr()
    assert "localsvm: train\n" in printed.err and "cells, error" in printed.err and not printed.out


def test_a_prediction_writes_no_file(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = make_moons(100, noise=0.2, random_state=0)
    model = LocalSVC(gamma=1.0, cost=1.0).fit(X, y)
    monkeypatch.setenv("TMPDIR", "/nonexistent")
    monkeypatch.setattr(tempfile, "tempdir", None)
    assert model.predict(X[:1]).shape == (1,)


def test_predictions_in_threads_and_in_forked_processes() -> None:
    X, y = make_moons(400, noise=0.2, random_state=0)
    model = LocalSVC(partition="voronoi", cell_size=100, gamma=1.0, cost=1.0).fit(X, y)
    expected = model.predict(X)
    with ThreadPoolExecutor(4) as threads:
        for labels in threads.map(lambda _: model.predict(X), range(8)):
            np.testing.assert_array_equal(labels, expected)
    with multiprocessing.get_context("fork").Pool(1) as pool:
        np.testing.assert_array_equal(pool.apply(model.predict, (X,)), expected)


@pytest.mark.parametrize(
    "kept",
    [{}, {"dtype": "V8"}, {"dtype": "nonsense"}, {"dtype": "<i8", "values": ["a", "b"]},
     {"dtype": "O", "values": [[1], [2]]}, {"dtype": "<U1", "values": "ab"}, {"dtype": "<U1", "values": ["a"]},
     {"dtype": "<M8[D]"}, {"dtype": "<U1", "values": ["ab", "ac"]}, {"dtype": "<U300000000", "values": ["a", "b"]}],
)  # fmt: skip
def test_classes_that_no_classifier_keeps_are_refused(kept: dict) -> None:
    with pytest.raises(LocalSVMError, match="the classes are none that a classifier keeps"):
        classes_of(np.asarray([0.0, 1.0]), kept)


def test_scikit_learns_name_of_the_cost_is_understood() -> None:
    assert LocalSVC(C=3.0).cost == 3.0
    with pytest.raises(TypeError, match="C"):
        LocalSVC(C=3.0, cost=2.0)


def test_ranges_are_written_as_on_the_command_line() -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 2)), np.arange(60) % 2
    given = {"metric": "none", "cost": [1.0]}
    texts = LocalSVC(gamma="0.25:4:3", **given).fit(X, y)
    numbers = LocalSVC(gamma=[0.25, 1.0, 4.0], **given).fit(X, y)
    np.testing.assert_array_equal(texts.decision_function(X), numbers.decision_function(X))
    with pytest.raises(ValueError, match="gamma"):
        LocalSVC(gamma="a:b", **given).fit(X, y)
