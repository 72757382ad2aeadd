"""The metric of a run: learned and chosen by some of its rows, so that the others say what the error is."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from localsvm.data.dataset import Examples
from localsvm.errors import OptionError
from localsvm.representations.metric import EUCLIDEAN, Metric, check_metric
from localsvm.representations.metric_choice import Labelled, choose, consecutive_folds
from localsvm.representations.metric_learning import Course, Learner, Plan
from localsvm.runs.config import TrainingConfig
from localsvm.targets.classification import Classification
from localsvm.threads import Threads

LEARN_SHARE, MOST_LEARN = 0.8, 100_000  # rows that a metric is learned from
CHOICE_ROWS = 20_000  # of these, by which it is chosen
MATRIX_FEATURES = 256  # up to so many, auto tries matrices
CHOICE_PLAN = Plan(sample=400, weight_steps=80, matrix_steps=120)


@dataclass(frozen=True)
class Measured:
    """A metric, and what is known of it.

    Attributes
    ----------
    metric : None for the Euclidean one.
    fresh : (n,) bool, the rows that neither learned nor chose it; None where all rows are such.
    about : how it was chosen, for the summary; empty where there was no choice.
    """

    metric: Metric | None = None
    fresh: NDArray[np.bool_] | None = None
    about: dict[str, Any] | None = None


def measure(X: Examples, y: NDArray[np.float64], weight: NDArray[np.float64] | None, config: TrainingConfig,
            threads: Threads) -> Measured:  # fmt: skip
    """Learn the metric that the options ask for; the result does not depend on the threads.

    Parameters
    ----------
    X : (n, d), scaled.
    y, weight : (n,) labels; weights or None.

    Raises
    ------
    OptionError : a matrix for sparse rows; a rank above the number of features.
    """
    if config.metric == EUCLIDEAN:
        return Measured()
    names, rank = _candidates(X, config.metric)
    labels = np.unique(y)
    codes = np.searchsorted(labels, y)
    rng = Plan.rng(config.seed, -1, 0)
    rows = np.sort(rng.permutation(len(y))[: min(int(LEARN_SHARE * len(y)), MOST_LEARN)]).astype(np.int64)
    factor = dict(config.class_weights)
    cost = np.asarray([factor.get(float(label), 1.0) for label in labels])[codes]
    data = Labelled(
        X, Classification(labels, "ova").encode(y).astype(np.float32), cost if weight is None else cost * weight
    )
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1):  # the products of one step are too small to be shared, and their bits would depend on it
        name, about = names[0], None
        if len(names) > 1 or config.metric == "auto":
            some = np.sort(rng.permutation(rows)[:CHOICE_ROWS])
            plan = Plan(names, CHOICE_PLAN.sample, CHOICE_PLAN.weight_steps, CHOICE_PLAN.matrix_steps)
            choice = choose(data, some, consecutive_folds(codes[some]), plan, config.seed, threads)
            name, about = choice.name if config.metric == "auto" else choice.best, asdict(choice)
        if name == EUCLIDEAN:
            return Measured(about=about)
        course = _learned(data, rows, name, rank, config.seed)
    fresh = np.ones(len(y), np.bool_)
    fresh[rows] = False
    return Measured(Metric(_sized(course)), fresh, about)


def _candidates(X: Examples, asked: str) -> tuple[tuple[str, ...], int | None]:
    """Names of the candidates, and the rank of --metric rank:R."""
    dense, features = isinstance(X, np.ndarray), X.shape[1]
    if asked == "auto":
        return ("diag", "full", "full near") if dense and features <= MATRIX_FEATURES else ("diag",), None
    if asked == "diag":
        return ("diag",), None
    if not dense:
        raise OptionError(f"--metric {asked} mixes features and needs dense rows, and these are sparse; give diag")
    rank = check_metric(asked)
    if rank is not None and rank > features:
        raise OptionError(f"--metric {asked}: there are only {features} features")
    return ("full", "full near"), rank


def _learned(data: Labelled, rows: NDArray[np.int64], name: str, rank: int | None, seed: int) -> Course:
    learner, plan = Learner(*data, rows), Plan((name,))
    course = plan.candidates(learner, learner.beginning(plan.rng(seed, -1, 1)), seed, -1)[name]
    if rank is None:
        return course
    # the leading directions of the matrix, and then steps of their own
    U, size, _ = np.linalg.svd(course.values)
    return learner.steps(course.at(U[:, :rank] * size[:rank]), plan.matrix_steps, plan.rng(seed, -1, 9))


def _sized(course: Course) -> NDArray[np.float32]:
    """Such that the squares of its entries sum up to the number of features, as those of the Euclidean metric do."""
    L = course.values
    return np.ascontiguousarray(L * np.sqrt(len(L) / np.square(L).sum()), np.float32)
