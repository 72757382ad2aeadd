"""The classifier of a method, after scikit-learn's contract."""

from __future__ import annotations

import os
from collections.abc import Mapping
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from localsvm.estimators.base import Answers, LocalEstimator, has_coverage
from localsvm.estimators.fitted import kept_classes, label_values
from localsvm.estimators.parameters import CLASSES, ParameterError, losses_of
from localsvm.methods.grids import LARGEST_COST
from localsvm.methods.kernel.svm import KernelSVM
from localsvm.runs.predict import LocalModel
from localsvm.targets.loss_names import LOSSES


def _has_probabilities(self: LocalClassifier) -> bool:
    if not self.probability:
        raise AttributeError("probabilities need probability=True before fit")
    return True


class LocalClassifier(ClassifierMixin, LocalEstimator):  # type: ignore[misc]
    """Base of the classifiers: `LocalSVC`, and one for each other method, named after it, such as `L3SVMClassifier`.

    Each has the parameters of its method, then those of `parameters.COMMON`. Where the default of a method's parameter
    is None, it stands for the default grid; a number is used as it is; from a list, cross-validation chooses.
    """

    kind = CLASSES

    def _check_answers(self, y: NDArray[Any]) -> None:
        if getattr(self, "loss", None) in LOSSES:
            regressor = type(self).__name__.replace("SVC", "SVR").replace("Classifier", "Regressor")
            what = f"loss={self.loss!r} is one of values, which {regressor} predicts"
            *first, last = (each for each in losses_of(self.method) if each not in LOSSES)
            raise ParameterError(f"{what}; classes have {', '.join(first)} and {last}")
        check_classification_targets(y)

    def _answers_of(self, y: NDArray[Any], weight: NDArray[np.float64] | None) -> Answers:
        classes, codes = np.unique(y, return_inverse=True)
        if len(classes) < 2:
            raise ValueError(f"y has one class, {classes.tolist()[0]!r}; training needs at least two classes")
        self._check_shape()
        weights = self._class_weights(classes, np.bincount(codes, weight))
        return Answers(label_values(classes)[codes], codes, kept_classes(classes), weights)

    def _learned(self, y: NDArray[Any]) -> None:
        self.classes_ = np.unique(y)

    def decision_function(self, X: ArrayLike) -> NDArray[np.float64]:
        """Decision values float64 of rows X (n, d).

        Returns
        -------
        (n,) for two classes, positive for classes_[1]. For more (n, classes): what `ova` says for each class, and with
        `ava` the pairs that it wins, with a share of less than a half for how clearly; the largest is what `predict`
        gives. With decision_function_shape="ovo" (n, pairs) in the order (0, 1), (0, 2), ..., (1, 2), ...; as in
        scikit-learn's SVC positive for the first class of the pair.
        """
        values = self._decisions(X)
        if len(self.classes_) == 2:
            return self._use(lambda model: model.target.shown(values)[:, 0])
        if self.multiclass != "ava":
            return values
        self._check_shape()
        return (
            -values if self.decision_function_shape == "ovo" else self._use(lambda model: model.classes.votes(values))
        )

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """The predicted labels (n,): with `probability` the most probable ones."""
        if self.probability:
            most = self.predict_proba(X).argmax(axis=1)
            return np.asarray(self.classes_[most])
        values = self._decisions(X)
        labels = self._use(lambda model: model.file.labels.searchsorted(model.target.decide(values)))
        return np.asarray(self.classes_[labels])

    @available_if(_has_probabilities)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: ArrayLike) -> NDArray[np.float64]:
        """Probabilities (n, classes), classes as in classes_; only with `probability`. docs/probabilities.md."""
        return self._answers(X, LocalModel.probabilities)

    @available_if(has_coverage)  # type: ignore[untyped-decorator]
    def predict_set(self, X: ArrayLike, coverage: float | None = None) -> NDArray[np.bool_]:
        """Sets of labels (n, classes) that hold the true one with this probability; only with `coverage`.

        A set is a mask over classes_, of which at least the most probable one is True. See docs/coverage.md.
        coverage : another share than the parameter, if the model can promise it.
        """
        level = self.coverage if coverage is None else coverage
        return self._answers(X, lambda model, rows: model.sets(rows, level))

    @available_if(_has_probabilities)  # type: ignore[untyped-decorator]
    def predict_log_proba(self, X: ArrayLike) -> NDArray[np.float64]:
        """The logarithms of `predict_proba`."""
        return np.asarray(np.log(np.maximum(self.predict_proba(X), np.finfo(np.float64).tiny)))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model file, for `localsvm.load` and `lsvm-predict`. What is at `path` is overwritten.

        `lsvm-predict` writes labels as they are in classes_, and takes 0, 1, ..., their places there, for those of a
        test file in LIBSVM text.

        Raises
        ------
        RunError : the file cannot be written.
        """
        check_is_fitted(self)
        if (kept_classes(self.classes_)).get("values", ()) is None:
            what = f"classes_ of these types ({self.classes_.dtype}) cannot be kept in a model file"
            raise ValueError(f"{what}; train with numbers or text as labels, or use pickle")
        super().save(path)

    @property
    def n_support_(self) -> NDArray[np.int64]:
        """Number (classes,) of support vectors of each class, over all cells."""
        return self._attribute(lambda model: (model.file.report or ("", {}))[1]["support"].sum(axis=0))

    def _signed(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Values with the signs that scikit-learn gives to pairs of classes: see decision_function."""
        return -values if self.multiclass == "ava" and len(self.classes_) > 2 else values

    def _decisions(self, X: ArrayLike) -> NDArray[np.float64]:
        return self._answers(X, LocalModel.decision_function)

    def _check_shape(self) -> None:
        shape, known = self.decision_function_shape, ("ovr", "ovo")
        if shape not in known or (shape == "ovo" and self.multiclass != "ava"):
            raise ParameterError(
                f'decision_function_shape must be "ovr", or "ovo" with multiclass="ava", not {shape!r}'
            )

    def _class_weights(self, classes: NDArray[Any], counts: NDArray[Any]) -> tuple[tuple[float, float], ...]:
        """Pairs (label, factor on C); "balanced" is n / (classes * rows of the class), rows counted by their weights.

        As in scikit-learn, a class that y lacks may have a weight where all classes of y have one.
        """
        weights, labels = self.class_weight, label_values(classes)
        if weights is None:
            return ()
        if isinstance(weights, str):
            if weights != "balanced":
                raise ParameterError(f'class_weight: {weights!r} is neither "balanced" nor a dict of factors')
            return tuple(zip(labels.tolist(), (counts.sum() / (len(counts) * counts)).tolist(), strict=True))
        if not isinstance(weights, Mapping):
            raise ParameterError(f'class_weight must be "balanced", a dict of factors or None, not {weights!r}')
        numbers = dict(zip(classes.tolist(), labels.tolist(), strict=True))
        factors, strange = {}, [label for label in weights if label not in numbers]
        for label, weight in weights.items():
            if not isinstance(weight, Real) or not 0.0 < weight <= LARGEST_COST:  # type: ignore[operator]
                what = f"a positive number up to {LARGEST_COST:g}"
                raise ParameterError(f"class_weight: the weight of {label!r} must be {what}, not {weight!r}")
            if label in numbers:
                factors[numbers[label]] = float(weight)
        if strange and len(factors) < len(classes):
            known = ", ".join(map(repr, classes[:8].tolist())) + (", ..." if len(classes) > 8 else "")
            raise ParameterError(f"class_weight: {strange[0]!r} is no label of y; the labels are {known}")
        return tuple(sorted(factors.items()))


class LocalSVC(LocalClassifier):
    """Classifier of the method `svm`; users see the text of `parameters.about`."""

    method = KernelSVM
