"""The regressor of a method, after scikit-learn's contract."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import RegressorMixin
from sklearn.utils import assert_all_finite
from sklearn.utils.metaestimators import available_if

from localsvm.estimators.base import Answers, LocalEstimator, has_coverage
from localsvm.estimators.parameters import VALUES, ParameterError
from localsvm.methods.kernel.svm import KernelSVM
from localsvm.runs.predict import LocalModel
from localsvm.targets.loss_names import LOSSES


class LocalRegressor(RegressorMixin, LocalEstimator):  # type: ignore[misc]
    """Base of the regressors: `LocalSVR`.

    They have the parameters of their method, then those of `parameters.COMMON` that are not for classes alone.
    """

    kind = VALUES

    def _check_answers(self, y: NDArray[Any]) -> None:
        if self.loss not in LOSSES:
            raise ParameterError(f"loss={self.loss!r} is none of values; choose one of {', '.join(LOSSES)}")
        if y.dtype.kind not in "iufb":
            raise ValueError(f"y has values of the type {y.dtype}, and values to predict are numbers")
        assert_all_finite(y, input_name="y")

    def _answers_of(self, y: NDArray[Any], weight: NDArray[np.float64] | None) -> Answers:
        return Answers(np.asarray(y, np.float64))

    def predict(self, X: ArrayLike) -> NDArray[np.float64]:
        """The predicted values (n,); (n, levels), ascending, where `quantile` has several levels."""
        return self._answers(X, LocalModel.predict)

    @available_if(has_coverage)  # type: ignore[untyped-decorator]
    def predict_interval(self, X: ArrayLike, coverage: float | None = None) -> NDArray[np.float64]:
        """Intervals (n, 2) that hold the values with this probability; only with `coverage`. docs/coverage.md.

        coverage : another share than the parameter, if the model can promise it.
        """
        level = self.coverage if coverage is None else coverage
        return self._answers(X, lambda model, rows: model.intervals(rows, level))


class LocalSVR(LocalRegressor):
    """Regressor of the method `svm`; users see the text of `parameters.about`."""

    method = KernelSVM
