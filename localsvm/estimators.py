"""The scikit-learn face: LocalSVC."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from localsvm.data.dataset import Dataset, Examples, as_examples
from localsvm.dividing import TrainingConfig
from localsvm.methods.svm import KernelSVM
from localsvm.parallel.local import cpu_count
from localsvm.prediction import LocalModel
from localsvm.training import Summary, train


class LocalSVC(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Local kernel SVMs with hyper-parameters chosen by cross-validation in each cell; what `lsvm-train` trains.

    Parameters are the command line's: partition None (one cell up to cell_size rows, Voronoi cells beyond), "none",
    "chunks", "voronoi" or "kmeans"; gamma and cost None (a 10 x 10 grid), a number or a list; kernel "gaussian",
    "laplacian", "polynomial" or "linear"; class_weight a dict of factors on C by label; n_jobs None for one process,
    -1 for all cores; random_state the seed, None for one drawn anew.

    Fitted: classes_ (classes,) sorted labels of any type; summary_ a training.Summary; model_ (bytes) the model file,
    which `localsvm.prediction.LocalModel` and `lsvm-predict` read when written to a file (labels there: class numbers).
    """

    def __init__(
        self,
        partition: str | None = None,
        cell_size: int = 2000,
        kernel: str = "gaussian",
        gamma: float | list[float] | None = None,
        cost: float | list[float] | None = None,
        degree: int = 3,
        coef0: float = 0.0,
        offset: bool = False,
        tolerance: float = 1e-3,
        scale: str = "std",
        folds: int = 5,
        grid: str = "adaptive",
        select: str | None = None,
        multiclass: str = "ova",
        class_weight: dict[Any, float] | None = None,
        n_jobs: int | None = None,
        random_state: int | None = 0,
    ) -> None:
        self.partition = partition
        self.cell_size = cell_size
        self.kernel = kernel
        self.gamma = gamma
        self.cost = cost
        self.degree = degree
        self.coef0 = coef0
        self.offset = offset
        self.tolerance = tolerance
        self.scale = scale
        self.folds = folds
        self.grid = grid
        self.select = select
        self.multiclass = multiclass
        self.class_weight = class_weight
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Train on X (n, d), dense or sparse, and labels y (n,) of at least two classes."""
        X, y = validate_data(self, X, y, accept_sparse="csr", dtype=np.float32, ensure_min_samples=2)
        check_classification_targets(y)
        self.classes_, codes = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise ValueError(f"y has one class, {self.classes_[0]!r}; training needs at least two classes")
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "model.h5"
            data = Dataset(_own(X), codes.astype(np.float64))
            self.summary_: Summary = train(data, self._config(), path, jobs=self._jobs())
            self.model_ = path.read_bytes()
        return self

    def decision_function(self, X: ArrayLike) -> NDArray[np.float64]:
        """(n,) for two classes, positive for classes_[1]; else (n, problems), see multiclass.Scheme."""
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse="csr", dtype=np.float32, reset=False)
        values = self._with_model(lambda model: model.decision_function(_own(X)))
        return values[:, 0] if len(self.classes_) == 2 else values

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """(n,) labels."""
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse="csr", dtype=np.float32, reset=False)
        codes = self._with_model(lambda model: model.predict(_own(X)))
        return np.asarray(self.classes_[codes.astype(np.intp)])

    def _with_model(self, use: Any) -> NDArray[np.float64]:
        with tempfile.NamedTemporaryFile(suffix=".h5") as file:
            file.write(self.model_)
            file.flush()
            with LocalModel(file.name, self._jobs(), verify=False) as model:
                return np.asarray(use(model))

    def _config(self) -> TrainingConfig:
        method = KernelSVM(
            kernel=self.kernel,
            gamma=_values(self.gamma),
            cost=_values(self.cost),
            degree=self.degree,
            coef0=self.coef0,
            offset=self.offset,
            tolerance=self.tolerance,
        )
        weights = {}
        for label, weight in (self.class_weight or {}).items():
            if label not in self.classes_:
                raise ValueError(f"class_weight: {label!r} is no label of y")
            weights[float(np.flatnonzero(self.classes_ == label)[0])] = float(weight)
        seed = self.random_state if self.random_state is not None else int(np.random.default_rng().integers(1 << 31))
        return TrainingConfig(
            method=method,
            partition=self.partition,
            cell_size=self.cell_size,
            scale=self.scale,
            folds=self.folds,
            grid=self.grid,
            select=self.select,
            multiclass=self.multiclass,
            class_weights=tuple(sorted(weights.items())),
            seed=seed,
        )

    def _jobs(self) -> int:
        return 1 if not self.n_jobs else cpu_count() if self.n_jobs < 0 else self.n_jobs

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


def _own(X: Any) -> Examples:
    """A copy that training may scale in place."""
    return as_examples(sparse.csr_array(X, copy=True)) if sparse.issparse(X) else np.array(X, np.float32, order="C")


def _values(value: float | list[float] | None) -> tuple[float, ...]:
    return () if value is None else tuple(float(v) for v in np.atleast_1d(np.asarray(value)))
