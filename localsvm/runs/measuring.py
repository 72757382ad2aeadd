"""The metric of a run: learned and chosen by some of its rows, so that the others say what the error is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from localsvm.data.dataset import Dataset, Examples, is_dense, rows_of, size_of
from localsvm.data.dealing import first_rows
from localsvm.data.numbering import Draw
from localsvm.data.spilled import Spilled, full_size
from localsvm.errors import OptionError
from localsvm.partition import copies
from localsvm.partition.on_disk import matrix_of
from localsvm.partition.two_step import draw_key
from localsvm.representations.baselines import BASELINE_ROWS, BASELINES, baseline_bytes, learned_by
from localsvm.representations.metric import EUCLIDEAN, RANK, Metric, check_metric
from localsvm.representations.metric_choice import NONE_TRIED, Labelled, choose, choosing_bytes, stratified_folds
from localsvm.representations.metric_learning import SAMPLE, Course, Learner, Plan, learning_bytes
from localsvm.runs.config import TrainingConfig
from localsvm.runs.stored import DRAWN, FRESH, HELD, UNTRIED, metric_of
from localsvm.store.pieces import Unsound
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
    fingerprint, rows : of the data, and how many rows they have: `store.fingerprint`, or with a draw
        `data.numbering.fingerprint_by_rows`.
    fresh : (ceil(rows / 8),) uint8, a bit for each row: those that neither learned nor chose the metric; None where
        the draw says it.
    draw : of those that did.
    """

    fingerprint: str
    rows: int
    fresh: NDArray[np.uint8] | None = None
    draw: Draw | None = None

    @property
    def fresh_rows(self) -> NDArray[np.bool_]:
        """(rows,)"""
        if self.draw is not None:
            return ~self.draw(np.arange(self.rows))
        assert self.fresh is not None
        return np.unpackbits(self.fresh, count=self.rows).astype(np.bool_)

    def as_dict(self) -> dict[str, Any]:
        """What a file's config says of it."""
        drawn = {} if self.draw is None else {"taken": self.draw.count, "key": self.draw.key}
        return {"fingerprint": self.fingerprint, "rows": self.rows, **drawn}

    @classmethod
    def from_dict(cls, learned: Mapping[str, Any], fresh: NDArray[np.uint8] | None) -> Held | None:
        """The opposite; None where nothing is said."""
        if not learned.keys() >= HELD:
            return None
        rows = int(learned["rows"])
        draw = Draw(rows, int(learned["taken"]), int(learned["key"])) if learned.keys() >= DRAWN else None
        return cls(learned["fingerprint"], rows, fresh, draw)


@dataclass(frozen=True)
class Measured:
    """A metric, and what is known of it.

    Attributes
    ----------
    metric : None for the Euclidean one.
    fresh : (n,) bool, the rows that neither learned nor chose it; None where all rows are such.
    about : how it was chosen, for the summary; None where none was asked for.
    held : what it was learned from, None where that is not known.
    draw : of the rows that learned and chose it, where their numbers decide.
    other_data : it was learned from other data than it is used on.
    """

    metric: Metric | None = None
    fresh: NDArray[np.bool_] | None = None
    about: dict[str, Any] | None = None
    held: Held | None = None
    draw: Draw | None = None
    other_data: bool = False

    def learned_from(self, fingerprint: str) -> Measured:
        """With the fingerprint of the data that it was just learned from, made `by_rows` or not."""
        if self.draw is not None:
            return replace(self, held=Held(fingerprint, self.draw.rows, draw=self.draw))
        if self.fresh is None:
            return self
        return replace(self, held=Held(fingerprint, len(self.fresh), np.packbits(self.fresh)))

    def used_on(self, fingerprint: str, rows: int) -> Measured:
        """For the data of this fingerprint and so many rows: of other data than it was learned from all rows are fresh.

        Unsound where it was learned from these data, and they had another number of rows.
        """
        if self.held is None or self.held.fingerprint != fingerprint:
            return replace(self, fresh=None, other_data=self.held is not None)
        if self.held.rows != rows:
            raise Unsound("/@config: the option learned has another number of rows than the data of its fingerprint")
        return replace(self, fresh=self.held.fresh_rows)

    @property
    def by_rows(self) -> bool:
        """Whether the fingerprint that it knows its data by is `data.numbering.fingerprint_by_rows`."""
        return self.held is not None and self.held.draw is not None

    @property
    def told(self) -> dict[str, Any] | None:
        """`about`, and "other_data" where that is so."""
        return {**(self.about or {}), "other_data": True} if self.other_data else self.about

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
        held = {} if self.held is None else self.held.as_dict()
        return {"metric": self.asked, "learned": self.about | held}

    def state(self) -> tuple[str, dict[str, NDArray[Any]]] | None:
        """What a file keeps: the metric, and the fresh rows of the data that it was learned from, a bit each."""
        if self.metric is None:
            return None
        fresh = {} if self.held is None or self.held.fresh is None else {FRESH: self.held.fresh}
        return self.metric.kind, self.metric.state() | fresh

    @classmethod
    def from_state(
        cls, state: tuple[str, dict[str, NDArray[Any]]] | None, config: Mapping[str, Any], features: int
    ) -> Measured:
        """What a file keeps, for so many features, before it is used on data; Unsound if it does not fit."""
        metric, learned = metric_of(state, config, features), config.get("learned")
        about = None if learned is None else {name: learned[name] for name in learned if name not in HELD | DRAWN}
        if state is None or learned is None:
            return cls(metric, about=about)
        return cls(metric, about=about, held=Held.from_dict(learned, state[1].get(FRESH)))


def measure(data: Dataset, config: TrainingConfig, threads: Threads) -> Measured:
    """Learn the metric that the options ask for from scaled rows; the result does not depend on the threads.

    Raises
    ------
    OptionError : a matrix for sparse rows; a rank above the number of features.
    """
    if config.metric_name == EUCLIDEAN:
        return Measured()
    n, labels = len(data.y), np.unique(data.y)
    if known := _untried(config, is_dense(data.X), (n, data.X.shape[1]), labels):
        return known
    rng, draw = Plan.rng(config.seed, -1, 0), metric_draw(config, n)
    if draw is None:
        fresh = np.ones(n, np.bool_)
        same = copies(matrix_of(data.X), threads)
        fresh[first_rows(rng.permutation(n), _learn_rows(n, config.metric_name), same)] = False
    else:
        fresh = ~draw(np.arange(n))
    rows = np.flatnonzero(~fresh).astype(np.int64)
    labelled, codes = _labelled(data, labels, config)
    if isinstance(data.X, Spilled):  # of rows on a disk these alone are in memory
        labelled, codes = Labelled(data.X.take(rows), labelled.Y[rows], labelled.weight[rows]), codes[rows]
        rows = np.arange(len(rows))
    found = _measured(labelled, codes, rows, rng, config, threads)
    return found if found.metric is None else replace(found, fresh=fresh, draw=draw)


def measure_drawn(
    drawn: Dataset, rows: int, labels: NDArray[np.float64], config: TrainingConfig, threads: Threads
) -> Measured:
    """The same by those rows alone that `metric_draw` says, scaled; `fresh` is left None.

    rows, labels : how many there are in all, and (classes,) float64 the labels of these.
    """
    if known := _untried(config, is_dense(drawn.X), (rows, drawn.X.shape[1]), labels):
        return known
    labelled, codes = _labelled(drawn, labels, config)
    own = np.arange(len(codes), dtype=np.int64)
    found = _measured(labelled, codes, own, Plan.rng(config.seed, -1, 0), config, threads)
    return found if found.metric is None else replace(found, draw=metric_draw(config, rows))


def metric_draw(config: TrainingConfig, rows: int) -> Draw | None:
    """Of so many, the rows that a metric is learned from, by their numbers; None where it is not by these."""
    if config.coarse_size is None or config.metric_name == EUCLIDEAN:
        return None
    return Draw(rows, _learn_rows(rows, config.metric_name), draw_key(Plan.rng(config.seed, -1, 10)))


def _untried(
    config: TrainingConfig, dense: bool, shape: tuple[int, int], labels: NDArray[np.float64]
) -> Measured | None:
    """The Euclidean metric where auto tries no other; OptionError for a metric that such rows do not have."""
    asked, rank = config.metric_name, check_metric(config.metric_name)
    if asked not in ("auto", "diag") and not dense:
        raise OptionError(f"--metric {asked} mixes features and needs dense rows, and these are sparse; give diag")
    if rank is not None and rank > shape[1]:
        raise OptionError(f"--metric {asked}: there are only {shape[1]} features; give at most rank:{shape[1]}")
    why = untried(shape, len(labels)) if asked == "auto" else ""
    return Measured(about=asdict(NONE_TRIED) | {"why": why}) if why else None


def _measured(
    data: Labelled, codes: NDArray[np.intp], rows: NDArray[np.int64], rng: np.random.Generator,
    config: TrainingConfig, threads: Threads,
) -> Measured:  # fmt: skip
    """Learned from these rows of the data. rng: of those that choose."""
    asked, dense, features = config.metric_name, is_dense(data.X), data.X.shape[1]
    name, about = "diag" if asked == "diag" else "full", {"name": asked}
    with threadpool_limits(1):  # products of one step are too small to be shared, and their bits would depend on it
        if asked == "auto":
            some = np.sort(rng.permutation(rows)[:CHOICE_ROWS])
            plan = _choice_plan(dense, features)
            same = copies(matrix_of(rows_of(data.X, some)), threads)
            choice = choose(data, some, stratified_folds(codes[some], rng, same), plan, config.seed, threads, same)
            name, about = choice.name, asdict(choice)
        if name == EUCLIDEAN:
            return Measured(about=about)
        if asked in BASELINES:
            own = Plan.rng(config.seed, -1, 5)
            values = learned_by(asked, np.asarray(data.X[rows], np.float64), codes[rows], own)
        else:
            values = _learned(data, rows, name, check_metric(asked), config.seed).values
    return Measured(Metric(_sized(values)), about=about)


def untried(shape: tuple[int, int], classes: int) -> str:
    """Which of the reasons UNTRIED auto has to keep the Euclidean metric; "" where it tries others.

    shape : of all rows.
    """
    n, features = int(shape[0]), int(shape[1])
    found = classes < 2, min(n, SAMPLE) * features > SAMPLE_VALUES, classes > 2 and n * classes > LABELS
    return next((why for why, holds in zip(UNTRIED, found, strict=True) if holds), "")


def measuring_bytes(X: Examples, asked: str, classes: int, threads: int) -> int:
    """What `measure` by a metric that is asked for, and then mapping the rows X, hold at most beside these."""
    if asked == "auto" and untried(X.shape, classes):
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


def _labelled(data: Dataset, labels: NDArray[np.float64], config: TrainingConfig) -> tuple[Labelled, NDArray[np.intp]]:
    """The rows with the labels of their problems, one a class, and their weights; and the numbers of their classes.

    labels : (classes,) of all rows of the run, ascending.
    """
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
