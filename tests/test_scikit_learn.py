"""The classifiers and regressors keep scikit-learn's contract, by its own checks and inside its tools."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from contextlib import suppress
from unittest import SkipTest

import numpy as np
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_digits, make_classification, make_moons
from sklearn.ensemble import AdaBoostClassifier, VotingClassifier
from sklearn.feature_selection import RFE
from sklearn.metrics import log_loss
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.utils.estimator_checks import estimator_checks_generator

import localsvm
from localsvm import estimators
from localsvm.estimators.base import LocalEstimator

pytestmark = pytest.mark.whole  # each takes seconds

# one point of each grid: the checks fit hundreds of times
SMALL = {
    "CSVMClassifier": {"common": 1.0, "cost": 1.0, "clusters": 2},
    "GlobalSVMClassifier": {"gamma": 0.5, "cost": 10.0},
    "GlobalSVMRegressor": {"gamma": 0.5, "cost": 10.0},
    "KernelL3SVMClassifier": {"clusters": 2, "gamma": 0.5, "cost": 10.0},
    "KernelSVMClassifier": {"gamma": 0.5, "cost": 10.0},
    "LocalOneClass": {"gamma": 0.5, "cost": 0.1},
    "LocalSVC": {"gamma": 0.5, "cost": 10.0, "metric": "none"},
    "LocalSVR": {"gamma": 0.5, "cost": 10.0},
    "KMeansSVMClassifier": {"clusters": 2, "cost": 1.0},
    "L3SVMClassifier": {"clusters": 2, "cost": 1.0},
    "ML3SVMClassifier": {"models": 2, "cost": 1.0},
} | {
    f"{kind}SVM{task}": {"clusters": 2, "shrinkage": 0.1, "coupling": 10.0, "cost": 1.0}
    for kind in ("Mixture", "MultiTask")
    for task in ("Classifier", "Regressor")
}


# copies of a row are as good as its weight up to float32, where no clusters, scaling or folds are made of rows
COPIES = {
    f"check_sample_weight_equivalence_on_{kind}_data": "see test_weights.py, with its own tolerance"
    for kind in ("dense", "sparse")
}


def small(name: str, **given: object) -> LocalEstimator:
    """An estimator that is trained in no time."""
    kind = getattr(estimators, name)
    known = SMALL.get(name, {"cost": 1.0})
    return kind(**{key: value for key, value in known.items() if hasattr(kind(), key)}, **given)


FAR_FROM_ZERO = r"\d+ features? (is|are) 100 deviations"  # some checks have such columns


def check(estimator: LocalEstimator, expected: Iterable[str] = COPIES, share: int = 4, first: int = 0) -> None:
    """Do scikit-learn's checks, one in `share`; those that are expected to fail are left out."""
    done = 0
    for i, (subject, one) in enumerate(estimator_checks_generator(estimator)):
        if one.func.__name__ not in expected and (i - first) % share == 0:
            with (
                suppress(SkipTest),
                warnings.catch_warnings(),
            ):  # what a check does that does not fit, as where no pandas is installed
                warnings.filterwarnings("ignore", FAR_FROM_ZERO, UserWarning)
                one(subject)
            done += 1
    assert done > 10


@pytest.mark.parametrize(("first", "name"), list(enumerate(estimators.names())))
def test_scikit_learns_own_checks(first: int, name: str) -> None:
    check(small(name), share=1 if name in ("LocalOneClass", "LocalSVC", "LocalSVR") else 4, first=first)


@pytest.mark.parametrize(
    ("first", "name"), list(enumerate(["LocalSVC", "LinearSVMClassifier", "KernelL3SVMClassifier"]))
)
def test_scikit_learns_own_checks_of_pairs_of_classes(first: int, name: str) -> None:
    check(small(name, multiclass="ava"), first=first)


@pytest.mark.parametrize(("first", "multiclass"), list(enumerate(["ova", "ava"])))
def test_scikit_learns_own_checks_with_probabilities(first: int, multiclass: str) -> None:
    expected = COPIES | {
        "check_classifiers_train": "the label is the most probable one, whatever its decision value",
        "check_class_weight_classifiers": "the weight of a class does not make it more probable",
    }
    check(small("LocalSVC", multiclass=multiclass, probability=True), expected, first=first)


@pytest.mark.parametrize(
    ("first", "name", "given"),
    [
        (0, "LocalSVR", {"loss": "quantile", "quantile": [0.5]}),
        (1, "LocalSVR", {"loss": "huber", "epsilon": 0.5}),
        (2, "LocalSVR", {"coverage": 0.5}),
        (3, "LocalSVC", {"coverage": 0.5}),
    ],
    ids=["quantile", "huber", "intervals", "sets"],
)
def test_scikit_learns_own_checks_of_losses_and_coverages(first: int, name: str, given: dict[str, object]) -> None:
    check(small(name, **given), first=first)


def test_probabilities_only_where_they_are_asked_for() -> None:
    X, y = make_moons(400, noise=0.3, random_state=4)
    names = np.asarray(["crescent", "moon"])[y]
    model = estimators.LocalSVC(gamma=1.0, cost=1.0, probability=True).fit(X[:200], names[:200])
    p = model.predict_proba(X[200:])
    np.testing.assert_allclose(p.sum(axis=1), 1.0)
    np.testing.assert_array_equal(model.classes_[p.argmax(axis=1)], model.predict(X[200:]))
    np.testing.assert_allclose(model.predict_log_proba(X[200:]), np.log(p))
    assert log_loss(names[200:], p) < 0.4
    assert not hasattr(estimators.LocalSVC(gamma=1.0, cost=1.0).fit(X, y), "predict_proba")


def test_many_classes_have_their_probabilities_in_the_order_of_the_labels() -> None:
    X, y = load_digits(return_X_y=True)
    model = estimators.LocalSVC(gamma=0.02, cost=10.0, multiclass="ava", probability=True).fit(X[::2], y[::2])
    assert log_loss(y[1::2], model.predict_proba(X[1::2])) < 0.2


def test_scikit_learns_own_checks_of_default_parameters() -> None:
    check(estimators.LocalSVC(), first=2)


def test_pairs_in_the_order_of_scikit_learn() -> None:
    X, y = load_digits(return_X_y=True)
    X, y = X[y < 5], y[y < 5]
    given = {"gamma": 0.001, "multiclass": "ava", "scale": "none", "metric": "none", "offset": True, "tolerance": 1e-5}
    ours, theirs = (
        localsvm.LocalSVC(cost=1.0, **given),
        SVC(gamma=0.001, C=1.0, decision_function_shape="ovo", tol=1e-5),
    )
    ours.set_params(decision_function_shape="ovo").fit(X, y)
    np.testing.assert_allclose(ours.decision_function(X), theirs.fit(X, y).decision_function(X), atol=2e-3)
    ours.set_params(decision_function_shape="ovr")
    assert ours.decision_function(X).shape == (len(X), 5)
    np.testing.assert_array_equal(ours.decision_function(X).argmax(axis=1), ours.predict(X))


@pytest.mark.parametrize("multiclass", ["ova", "ava"])
def test_calibration_of_many_classes(multiclass: str) -> None:
    X, y = load_digits(return_X_y=True)
    model = localsvm.LocalSVC(gamma=0.02, cost=10.0, multiclass=multiclass)
    calibrated = CalibratedClassifierCV(model, cv=3).fit(X[:900], y[:900])
    assert calibrated.score(X[900:], y[900:]) > 0.93


def test_inside_scikit_learns_tools() -> None:
    X, y = make_moons(300, noise=0.25, random_state=0)
    search = GridSearchCV(make_pipeline(StandardScaler(), small("LocalSVC")), {"localsvc__cost": [0.1, 10.0]}, cv=3)
    assert search.fit(X, y).best_score_ > 0.85
    voters = [(name, small(name, probability=True)) for name in ("LocalSVC", "LinearSVMClassifier")]
    assert VotingClassifier(voters, voting="soft").fit(X, y).score(X, y) > 0.85
    boosted = AdaBoostClassifier(small("LinearSVMClassifier"), n_estimators=3, random_state=0)
    assert boosted.fit(X, y).score(X, y) > 0.8


def test_features_are_eliminated_by_weights() -> None:
    X, y = make_classification(400, 8, n_informative=2, n_redundant=0, shuffle=False, random_state=0)
    kept = RFE(small("LinearSVMClassifier"), n_features_to_select=2).fit(X, y).support_
    assert kept[:2].all()
