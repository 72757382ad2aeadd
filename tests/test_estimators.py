"""LocalSVC keeps scikit-learn's contract and predicts what the command line's model does."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import make_moons
from sklearn.model_selection import cross_val_score
from sklearn.utils.estimator_checks import check_estimator

from localsvm import estimators
from localsvm.errors import LocalSVMError
from localsvm.estimators import L3SVMClassifier, LocalSVC
from localsvm.methods import methods
from localsvm.runs.prediction import LocalModel


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
def test_scikit_learns_own_checks() -> None:
    expected = {
        "check_sample_weight_equivalence_on_dense_data": "1e-7 is beyond float32; test_weights.py has 1e-5",
        "check_dtype_object": "covered by check_classifiers_classes",
    }
    check_estimator(LocalSVC(gamma=0.5, cost=10.0), expected_failed_checks=expected)


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
        ({"kernel": "rbf"}, "--kernel rbf: choose one of gaussian"),
        ({"gamma": -1.0}, "positive numbers"),
        ({"cost": [1.0, np.nan]}, "positive numbers"),
        ({"class_weight": {0: -1.0}}, "-w 0: the weight of a class must be a positive number, not -1"),
        ({"class_weight": {0: 0.0}}, "-w 0: the weight of a class must be a positive number, not 0"),
        ({"select": "best"}, "--select best: choose one of vote, refit"),
        ({"multiclass": "ovr"}, "--multiclass ovr: choose one of ova, ava"),
        ({"scale": "no"}, "--scale no: choose one of"),
        ({"folds": 1}, "at least 2"),
        ({"random_state": -1}, "whole number from 0"),
        ({"partition": "tree"}, "no partition 'tree'"),
        ({"kernel": "polynomial", "degree": 50, "scale": "none", "gamma": 100.0, "cost": 1.0}, "kernel overflows"),
    ],
)
def test_options_that_are_refused(options: dict, message: str) -> None:
    X, y = make_moons(60, random_state=3)
    with pytest.raises(LocalSVMError, match=message):
        LocalSVC(**options).fit(X, y)


def test_a_dense_model_takes_sparse_rows_and_the_reverse() -> None:
    X, y = make_moons(200, noise=0.3, random_state=4)
    rows = sparse.csr_array(X)
    for train in (X, rows):
        model = LocalSVC(gamma=1.0, cost=1.0).fit(train, y)
        np.testing.assert_array_equal(model.predict(X), model.predict(rows))


def test_random_state_none_draws_one_seed() -> None:
    X, y = make_moons(200, noise=0.3, random_state=5)
    assert LocalSVC(random_state=None, n_jobs=2).fit(X, y).score(X, y) > 0.85


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
def test_scikit_learns_own_checks_of_another_method() -> None:
    expected = {
        "check_sample_weight_equivalence_on_dense_data": "1e-7 is beyond float32; test_weights.py has 1e-5",
        "check_dtype_object": "covered by check_classifiers_classes",
    }
    check_estimator(estimators.LinearSVMClassifier(cost=1.0), expected_failed_checks=expected)


@pytest.mark.parametrize("method", [m for m in methods().values() if m.name != "svm"], ids=lambda m: m.name)
def test_every_method_has_an_estimator(method: type) -> None:
    X, y = make_moons(300, noise=0.15, random_state=0)
    made = getattr(estimators, f"{method.__name__}Classifier")
    assert made is getattr(estimators, f"{method.__name__}Classifier")
    given = {"cost": 10.0} if "cost" in method.__dataclass_fields__ else {}
    model = clone(made(folds=3, **given)).fit(X, y)
    assert given.items() <= model.get_params().items()
    assert model.score(X, y) > 0.8
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).predict(X), model.predict(X))


def test_lists_are_chosen_from() -> None:
    X, y = make_moons(300, noise=0.15, random_state=0)
    model = estimators.L3SVMClassifier(clusters=[1, 8], landmarks_count=[2, 3], cost=[1.0, 10.0]).fit(X, y)
    assert model.summary_.cv_error < 0.2
    with pytest.raises(TypeError, match="unexpected keyword"):
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
