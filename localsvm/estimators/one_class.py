"""The estimator of novelties, after scikit-learn's contract."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import OutlierMixin
from sklearn.utils.validation import _num_samples

from localsvm.estimators.base import Answers, LocalEstimator
from localsvm.estimators.parameters import ONE_KIND
from localsvm.methods.kernel.one_class import OneClassSVM
from localsvm.runs.predict import LocalModel
from localsvm.targets.novelty import NORMAL, Novelty


class LocalDetector(OutlierMixin, LocalEstimator):  # type: ignore[misc]
    """Base of the estimators that find novelties: `LocalOneClass`.

    They have the parameters of their method, then those of `parameters.COMMON` that are not for classes alone.
    """

    kind = ONE_KIND

    def fit(
        self, X: Any, y: Any = None, sample_weight: ArrayLike | None = None, groups: ArrayLike | None = None
    ) -> Self:  # fmt: skip
        """Train on rows X (n, d) of one kind; y is ignored. See `LocalEstimator.fit` for all else."""
        return super().fit(X, np.full(_num_samples(X), NORMAL), sample_weight, groups)

    def predict(self, X: ArrayLike) -> NDArray[np.int64]:
        """Answers (n,) of rows X (n, d): 1 where a row is of the kind that was learned, and -1 where it is novel."""
        return np.asarray(self._answers(X, LocalModel.predict), np.int64)

    def decision_function(self, X: ArrayLike) -> NDArray[np.float64]:
        """Values (n,) float64: f less the threshold of the row's cell; above 0 a row is of the learned kind."""
        return np.asarray(self._answers(X, LocalModel.decision_function)[:, 0])

    def score_samples(self, X: ArrayLike) -> NDArray[np.float64]:
        """Values (n,) float64 of `decision_function` and `offset_` together: with one cell those of f itself."""
        return self.decision_function(X) + self.offset_

    @property
    def offset_(self) -> float:
        """The threshold, of several cells in the mean: decision_function is score_samples less this."""
        return self._attribute(_mean_threshold)

    def _check_answers(self, y: NDArray[Any]) -> None:
        """Check nothing: y is ignored."""

    def _answers_of(self, y: NDArray[Any], weight: NDArray[np.float64] | None) -> Answers:
        return Answers(np.asarray(y, np.float64), np.zeros(len(y), np.intp))


class LocalOneClass(LocalDetector):
    """Estimator of the method `one-class`; users see the text of `parameters.about`."""

    method = OneClassSVM


def _mean_threshold(model: LocalModel) -> float:
    assert isinstance(model.target, Novelty), "the method says so"
    return float(model.target.thresholds.mean())
