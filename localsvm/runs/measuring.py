"""The metric of a run: learned and chosen by some of its rows, so that the others say what the error is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from localsvm.data.dataset import Dataset, Examples, is_dense, size_of
from localsvm.data.spilled import Spilled, full_size
from localsvm.errors import OptionError
from localsvm.representations.baselines import BASELINE_ROWS, BASELINES, baseline_bytes
from localsvm.representations.metric import EUCLIDEAN, RANK, Metric, check_metric
from localsvm.representations.metric_choice import NONE_TRIED, Labelled, choose, choosing_bytes, stratified_folds
from localsvm.representations.metric_learning import SAMPLE, Course, Learner, Plan, learning_bytes
from localsvm.runs.config import TrainingConfig
from localsvm.runs.stored import FRESH, HELD, UNTRIED, metric_of
from localsvm.targets.classification import Classification
from localsvm.threads import Threads

LEARN_SHARE, MOST_LEARN = 0.8, 100_000  # rows that a metric is learned from
CHOICE_ROWS = 20_000  # of these, by which it is chosen
MATRIX_FEATURES = 256  # up to so many, auto tries matrices
# with more values in a sample, or more labels (one for each row and class), auto keeps the Euclidean metric: the time
# and the memory would be much more than those of training
SAMPLE_VALUES, LABELS = 1 << 20, 1 << 27
LABEL_BYTES, WEIGHT_BYTES = 12, 48  # a row: for each problem its labels, and then weights, classes and orders
CHOICE_PLAN = Plan(sample=400, weight_steps=80, matrix_steps=100, near_steps=80)


@dataclass(frozen=True)
class Held:
    """The data that a metric was learned from.

    Attributes
    ----------
    fingerprint, rows : of the data (`store.fingerprint`), and how many rows they have.
    fresh : (ceil(rows / 8),) uint8, a bit for each row: those that neither learned nor chose the metric.
    """

    fingerprint: str
    rows: int
    fresh: NDArray[np.uint8]


@dataclass(frozen=True)
class Measured:
    """A metric, and what is known of it.

    Attributes
    ----------
    metric : None for the Euclidean one.
    fresh : (n,) bool, the rows that neither learned nor chose it; None where all rows are such.
    about : how it was chosen, for the summary; None where none was asked for.
    held : what it was learned from, None where that is not known.
    """

    metric: Metric | None = None
    fresh: NDArray[np.bool_] | None = None
    about: dict[str, Any] | None = None
    held: Held | None = None

    def learned_from(self, fingerprint: str) -> Measured:
        """With the fingerprint of the data that it was just learned from."""
        if self.metric is None or self.fresh is None:
            return self
        return replace(self, held=Held(fingerprint, len(self.fresh), np.packbits(self.fresh)))

    def used_on(self, fingerprint: str) -> Measured:
        """For the data of this fingerprint: of other data than it was learned from all rows are fresh."""
        if self.held is None or self.held.fingerprint != fingerprint:
            return replace(self, fresh=None)
        return replace(self, fresh=np.unpackbits(self.held.fresh, count=self.held.rows).astype(np.bool_))

    @property
    def told(self) -> dict[str, Any] | None:
        """`about`, and "other_data" where the metric was learned from other data than it is used on."""
        other = self.about is not None and self.held is not None and self.fresh is None
        return {**(self.about or {}), "other_data": True} if other else self.about

    @property
    def asked(self) -> str:
        """The metric that was asked for when it was learned."""
        if self.about is None:
            return EUCLIDEAN
        return "auto" if "best" in self.about else str(self.about["name"])

    def apply(self, X: Examples) -> Examples:
        """The mapped rows; X itself is overwritten where that can be."""
        return X if self.metric is None else self.metric.apply(X, in_place=True)

    def columns(self, features: int) -> int:
        """Of mapped rows."""
        return features if self.metric is None else self.metric.columns

    def as_dict(self) -> dict[str, Any]:
        """What a file's config says of it."""
        if self.about is None:
            return {}
        held = {} if self.held is None else {"fingerprint": self.held.fingerprint, "rows": self.held.rows}
        return {"metric": self.asked, "learned": self.about | held}

    def state(self) -> tuple[str, dict[str, NDArray[Any]]] | None:
        """What a file keeps: the metric, and the fresh rows of the data that it was learned from, a bit each."""
        if self.metric is None:
            return None
        fresh = {} if self.held is None else {FRESH: self.held.fresh}
        return self.metric.kind, self.metric.state() | fresh

    @classmethod
    def from_state(
        cls, state: tuple[str, dict[str, NDArray[Any]]] | None, config: Mapping[str, Any], features: int
    ) -> Measured:
        """What a file keeps, for so many features, before it is used on data; Unsound if it does not fit."""
        metric, learned = metric_of(state, config, features), config.get("learned")
        about = None if learned is None else {name: learned[name] for name in learned if name not in HELD}
        if state is None or learned is None or FRESH not in state[1]:
            return cls(metric, about=about)
        held = Held(learned["fingerprint"], int(learned["rows"]), state[1][FRESH])
        return cls(metric, about=about, held=held)


def measure(data: Dataset, config: TrainingConfig, threads: Threads) -> Measured:
    """Learn the metric that the options ask for from scaled rows; the result does not depend on the threads.

    Raises
    ------
    OptionError : a matrix for sparse rows; a rank above the number of features.
    """
    asked = config.metric_name
    if asked == EUCLIDEAN:
        return Measured()
    dense, features = is_dense(data.X), data.X.shape[1]
    rank = check_metric(asked)
    if asked not in ("auto", "diag") and not dense:
        raise OptionError(f"--metric {asked} mixes features and needs dense rows, and these are sparse; give diag")
    if rank is not None and rank > features:
        raise OptionError(f"--metric {asked}: there are only {features} features")
    if asked == "auto" and (why := untried(data.X, len(np.unique(data.y)))):
        return Measured(about=asdict(NONE_TRIED) | {"why": why})
    rng = Plan.rng(config.seed, -1, 0)
    rows = np.sort(rng.permutation(len(data.y))[: _learn_rows(len(data.y), asked)]).astype(np.int64)
    fresh = np.isin(np.arange(len(data.y)), rows, invert=True)
    labelled, codes = _labelled(data, config)
    if isinstance(data.X, Spilled):  # of rows on a disk these alone are in memory
        labelled, codes = Labelled(data.X.take(rows), labelled.Y[rows], labelled.weight[rows]), codes[rows]
        rows = np.arange(len(rows))
    name, about = "diag" if asked == "diag" else "full", {"name": asked}
    with threadpool_limits(1):  # products of one step are too small to be shared, and their bits would depend on it
        if asked == "auto":
            some = np.sort(rng.permutation(rows)[:CHOICE_ROWS])
            plan = _choice_plan(dense, features)
            choice = choose(labelled, some, stratified_folds(codes[some], rng), plan, config.seed, threads)
            name, about = choice.name, asdict(choice)
        if name == EUCLIDEAN:
            return Measured(about=about)
        if asked in BASELINES:
            learner, own = BASELINES[asked], Plan.rng(config.seed, -1, 5)
            values = learner(np.asarray(labelled.X[rows], np.float64), codes[rows], own)
        else:
            values = _learned(labelled, rows, name, rank, config.seed).values
    return Measured(Metric(_sized(values)), fresh, about)


def untried(X: Examples, classes: int) -> str:
    """Which of the reasons UNTRIED auto has to keep the Euclidean metric; "" where it tries others."""
    n, features = int(X.shape[0]), int(X.shape[1])
    found = classes < 2, min(n, SAMPLE) * features > SAMPLE_VALUES, classes > 2 and n * classes > LABELS
    return next((why for why, holds in zip(UNTRIED, found, strict=True) if holds), "")


def measuring_bytes(X: Examples, asked: str, classes: int, threads: int) -> int:
    """What `measure` by a metric that is asked for, and then mapping the rows X, hold at most beside these."""
    if asked == "auto" and untried(X, classes):
        return 0
    n, features = int(X.shape[0]), int(X.shape[1])
    dense, rows, problems = is_dense(X), _learn_rows(n, asked), 1 if classes == 2 else classes
    if asked in BASELINES:
        own = baseline_bytes(asked, rows, features)
    else:
        plan, some = _choice_plan(dense, features), min(rows, CHOICE_ROWS)
        own = learning_bytes(rows, features, asked not in ("auto", "diag") or "full" in plan.names)
        if asked == "auto":
            own = max(own, choosing_bytes(some, features, dense, plan, threads))
    applied = size_of(X) if not dense or RANK.fullmatch(asked) else 0
    own += full_size(X) // max(1, n) * rows if isinstance(X, Spilled) else 0  # the rows that it is learned from
    return max(own + n * (LABEL_BYTES * problems + WEIGHT_BYTES), applied)


def _learn_rows(rows: int, asked: str) -> int:
    """Of so many, how many a metric is learned from."""
    return min(int(LEARN_SHARE * rows), BASELINE_ROWS if asked in BASELINES else MOST_LEARN)


def _choice_plan(dense: bool, features: int) -> Plan:
    """What auto tries."""
    return replace(CHOICE_PLAN, names=("diag", "full") if dense and features <= MATRIX_FEATURES else ("diag",))


def _labelled(data: Dataset, config: TrainingConfig) -> tuple[Labelled, NDArray[np.intp]]:
    """The rows with the labels of their problems, one a class, and their weights; and the numbers of their classes."""
    labels = np.unique(data.y)
    target = Classification(labels, "ova")
    codes = target.codes(data.y)
    factor = dict(config.class_weights)
    cost = np.asarray([factor.get(float(label), 1.0) for label in labels])
    weight = (cost / cost.max())[codes]
    if data.weight is not None:
        weight *= data.weight / data.weight.max()
    return Labelled(data.X, target.encode(data.y).astype(np.float32), weight), codes


def _learned(data: Labelled, rows: NDArray[np.int64], name: str, rank: int | None, seed: int) -> Course:
    learner, plan = Learner(*data, rows), Plan((name,))
    course = plan.candidates(learner, learner.beginning(plan.rng(seed, -1, 9)), seed, -1)[name]
    if rank is None:
        return course
    # the leading directions of the matrix, and then steps of their own
    U, size, _ = np.linalg.svd(course.values)
    return plan.refined(learner, course.at(U[:, :rank] * size[:rank]), seed, -1)


def _sized(L: NDArray[np.float64]) -> NDArray[np.float32]:
    """Such that the squares of its entries sum up to the number of features, as those of the Euclidean metric do."""
    return np.ascontiguousarray(L * np.sqrt(len(L) / np.square(L).sum()), np.float32)
