"""The metric of a run: learned and chosen by some of its rows, so that the others say what the error is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from localsvm.data.blocks.dataset import Dataset, Examples, is_dense, rows_of, size_of
from localsvm.data.blocks.dealing import Mates, first_rows
from localsvm.data.blocks.numbering import Hashes, contents, hashed
from localsvm.engines.base import Block, Drawn
from localsvm.errors import OptionError
from localsvm.features.learned import UNTRIED
from localsvm.features.metric import Metric
from localsvm.naming import opt
from localsvm.partition import copies
from localsvm.partition._nearest import Matrix
from localsvm.partition.two_step import draw_key
from localsvm.representations.baselines import BASELINE_ROWS, BASELINES, baseline_bytes, learned_by
from localsvm.representations.distances import DISTANCES
from localsvm.representations.metric import EUCLIDEAN, RANK, check_metric
from localsvm.representations.metric_choice import FOLDS as CHOICE_FOLDS
from localsvm.representations.metric_choice import NONE_TRIED, MetricRows, choose, choosing_bytes, stratified_folds
from localsvm.representations.metric_learning import SAMPLE, Course, LearningPlan, learning_bytes
from localsvm.runs.config import TrainingConfig
from localsvm.targets.classification import Classification
from localsvm.threads import Threads

LEARN_SHARE, MOST_LEARN = 0.8, 100_000  # rows that a metric is learned from
CHOICE_ROWS = 20_000  # of these, by which it is chosen
MATRIX_FEATURES = 256  # up to so many, auto tries matrices
# with more values in a sample, or more labels (one for each row and class), auto keeps the Euclidean metric: the time
# and the memory would be much more than those of training
SAMPLE_VALUES, LABELS = 1 << 20, 1 << 27
LABEL_BYTES, WEIGHT_BYTES = 12, 48  # a row: for each problem its labels, and then weights, classes and orders
ALL_ROWS = "the metric is from a file, so the error is of all rows, also of those that it was learned from"
CHOICE_PLAN = LearningPlan(sample=400, weight_steps=80, matrix_steps=100, near_steps=80)


@dataclass(frozen=True)
class Measured:
    """A metric, and what a run knows of it.

    Attributes
    ----------
    metric : None for the Euclidean one.
    description : how it was chosen, for the summary; None where none was asked for.
    fresh : (n,) bool, the rows of this run that neither learned nor chose it; None where all rows count, or
    learned : ascending, the `contents` of the rows that did, mapped, or the groups of rows that have some, where it was
        learned from a sample; or, where folds are blocks of rows,
    fresh_from : the first number of the rows that did not.
    from_file : this run did not learn it.
    """

    metric: Metric | None = None
    description: dict[str, Any] | None = None
    fresh: NDArray[np.bool_] | None = None
    learned: Hashes | None = None
    fresh_from: int | None = None
    from_file: bool = False

    def fresh_of(self, rows: Drawn) -> NDArray[np.bool_] | None:
        """Mask (n,) of the mapped rows that are fresh; None where all count."""
        if self.fresh is not None:
            return self.fresh[rows.numbers]
        if self.fresh_from is not None:
            return rows.numbers >= self.fresh_from
        if self.learned is None:
            return None
        hashes = contents(rows.X) if rows.group is None else rows.group.view(np.uint64)
        place = np.searchsorted(self.learned, hashes)
        return np.asarray(self.learned[np.minimum(place, len(self.learned) - 1)] != hashes)

    @property
    def told(self) -> dict[str, Any] | None:
        """`description`, and a note on the error where the metric is from a file."""
        return (
            {**(self.description or {}), "note": ALL_ROWS}
            if self.from_file and self.metric is not None
            else self.description
        )

    @property
    def asked(self) -> str:
        """The metric that was asked for when it was learned."""
        if self.description is None:
            return EUCLIDEAN
        return "auto" if "best" in self.description else str(self.description["name"])

    def as_dict(self) -> dict[str, Any]:
        """Entries of a file's config about the metric."""
        return {} if self.description is None else {"metric": self.asked, "learned": self.description}


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
    rng, fresh = LearningPlan.rng(config.seed, -1, 0), np.ones(n, np.bool_)
    order, count = rng.permutation(n), learn_rows(n, config.metric_name)
    if _by_blocks(config, data):
        fresh[:count] = False
    else:
        fresh[first_rows(order, count, _mates(data, threads))] = False
    rows = np.flatnonzero(~fresh).astype(np.int64)
    labelled, codes = _labelled(data, labels, config)
    measured = _measured(labelled, codes, rows, rng, config, threads, _choice_mates(data, config))
    return measured if measured.metric is None else replace(measured, fresh=fresh)


def measure_drawn(
    drawn: Dataset, rows: int, labels: NDArray[np.float64], config: TrainingConfig, threads: Threads
) -> Measured:
    """Learn the metric from a sample of many rows: those that `MetricDraw` chooses, scaled.

    rows, labels : how many there are in all, and (classes,) float64 the labels of these.
    """
    if known := _untried(config, is_dense(drawn.X), (rows, drawn.X.shape[1]), labels):
        return known
    rng, wanted = LearningPlan.rng(config.seed, -1, 0), learn_rows(rows, config.metric_name)
    if len(drawn.y) > wanted:  # where frequent rows are among them
        places = np.sort(LearningPlan.rng(config.seed, -1, 11).permutation(len(drawn.y))[:wanted])
        weight = None if drawn.weight is None else drawn.weight[places]
        group = None if drawn.group is None else drawn.group[places]
        drawn = replace(drawn, X=rows_of(drawn.X, places), y=drawn.y[places], weight=weight, group=group)
    labelled, codes = _labelled(drawn, labels, config)
    every = np.arange(len(codes), dtype=np.int64)
    measured = _measured(labelled, codes, every, rng, config, threads, _choice_mates(drawn, config))
    if measured.metric is None:
        return measured
    if _by_blocks(config, drawn):
        return replace(measured, fresh_from=int(LEARN_SHARE * rows))
    hashes = contents(measured.metric.apply(drawn.X)) if drawn.group is None else drawn.group.view(np.uint64)
    return replace(measured, learned=np.unique(hashes))


def _by_blocks(config: TrainingConfig, data: Dataset) -> bool:
    """True where the first rows learn, and the later ones say what the error is."""
    return config.blocks and data.group is None


def _mates(data: Dataset, threads: Threads, rows: NDArray[np.int64] | None = None) -> Mates | None:
    """Rows, or some of them, that stay together: of groups, or equal ones; None for none."""
    if data.group is not None:
        return Mates(data.group, whole=True).of(slice(None) if rows is None else rows)
    same = copies(Matrix(data.X if rows is None else rows_of(data.X, rows)), threads)
    return None if same is None else Mates(same)


def _choice_mates(data: Dataset, config: TrainingConfig) -> Callable[[NDArray[np.int64], Threads], Mates | None]:
    """Function that gives which of some rows (m,), ascending, stay together where the metric is chosen."""

    def mates(rows: NDArray[np.int64], threads: Threads) -> Mates | None:
        if _by_blocks(config, data):
            return Mates(np.arange(len(rows)) * CHOICE_FOLDS // len(rows), whole=True)
        return _mates(data, threads, rows)

    return mates


@dataclass(frozen=True)
class MetricDraw:
    """Draw of the rows that a metric is learned from: by their values or groups, so that these go together.

    Attributes
    ----------
    bound, key : of the hashes.
    before : rows from this number on are not drawn.
    """

    bound: int
    key: int
    before: int

    @classmethod
    def of(cls, config: TrainingConfig, rows: int) -> MetricDraw:
        """Draw from so many rows."""
        before = int(LEARN_SHARE * rows) if config.blocks else rows
        bound = min((learn_rows(rows, config.metric_name) << 64) // before, (1 << 64) - 1)
        return cls(bound, draw_key(LearningPlan.rng(config.seed, -1, 10)), before)

    def __call__(self, block: Block) -> NDArray[np.bool_]:
        """Mask (n,) of the rows of a block that are drawn."""
        if block.group is not None:
            return hashed(block.group.view(np.uint64), self.key) < np.uint64(self.bound)
        return (hashed(block.contents, self.key) < np.uint64(self.bound)) & (block.numbers < self.before)


def _untried(
    config: TrainingConfig, dense: bool, shape: tuple[int, int], labels: NDArray[np.float64]
) -> Measured | None:
    """The Euclidean metric where auto tries no other; OptionError for a metric that such rows do not have."""
    asked, rank = config.metric_name, check_metric(config.metric_name)
    if asked not in ("auto", "diag") and not dense:
        raise OptionError(f"{opt.metric(asked)} mixes features and needs dense rows, and these are sparse; give diag")
    if rank is not None and rank > shape[1]:
        raise OptionError(f"{opt.metric(asked)}: there are only {shape[1]} features; give at most rank:{shape[1]}")
    why = untried(shape, len(labels)) if asked == "auto" else ""
    return Measured(description=asdict(NONE_TRIED) | {"why": why}) if why else None


def _measured(
    data: MetricRows, codes: NDArray[np.intp], rows: NDArray[np.int64], rng: np.random.Generator,
    config: TrainingConfig, threads: Threads, mates: Callable[[NDArray[np.int64], Threads], Mates | None],
) -> Measured:  # fmt: skip
    """Metric learned from these rows of the data.

    rng : draws the rows that choose it. mates : see `_choice_mates`.
    """
    asked, dense, features = config.metric_name, is_dense(data.X), data.X.shape[1]
    name, description = "diag" if asked == "diag" else "full", {"name": asked}
    with threadpool_limits(1):  # products of one step are too small to be shared, and their bits would depend on it
        if asked == "auto":
            some = np.sort(rng.permutation(rows)[:CHOICE_ROWS])
            plan = _choice_plan(dense, features, config.method.distance)
            same = mates(some, threads)
            choice = choose(data, some, stratified_folds(codes[some], rng, same), plan, config.seed, threads, same)
            name, description = choice.name, asdict(choice)
        if name == EUCLIDEAN:
            return Measured(description=description)
        if asked in BASELINES:
            baseline_rng = LearningPlan.rng(config.seed, -1, 5)
            values = learned_by(asked, np.asarray(data.X[rows], np.float64), codes[rows], baseline_rng)
        else:
            values = data.distance.map_of(_learned(data, rows, name, check_metric(asked), config.seed).values)
    return Measured(Metric(np.ascontiguousarray(data.distance.sized(values), np.float32)), description=description)


def untried(shape: tuple[int, int], classes: int) -> str:
    """Reason, of UNTRIED, for which auto keeps the Euclidean metric; "" where it tries others.

    shape : of all rows.
    """
    n, features = int(shape[0]), int(shape[1])
    conditions = classes < 2, min(n, SAMPLE) * features > SAMPLE_VALUES, classes > 2 and n * classes > LABELS
    return next((why for why, holds in zip(UNTRIED, conditions, strict=True) if holds), "")


def measuring_bytes(X: Examples, asked: str, classes: int, threads: int, distance: str = "euclidean") -> int:
    """Bytes that `measure`, and then mapping the rows X, hold at most beside these.

    asked, distance : the metric that is asked for, and the distance of the method.
    """
    if asked == "auto" and untried(X.shape, classes):
        return 0
    n, features = int(X.shape[0]), int(X.shape[1])
    dense, rows, problems = is_dense(X), learn_rows(n, asked), 1 if classes == 2 else classes
    if asked in BASELINES:
        needed = baseline_bytes(asked, rows, features)
    else:
        plan, some = _choice_plan(dense, features, distance), min(rows, CHOICE_ROWS)
        needed = learning_bytes(rows, features, asked not in ("auto", "diag") or "full" in plan.names)
        if asked == "auto":
            needed = max(needed, choosing_bytes(some, features, dense, plan, threads))
    applied = size_of(X) if not dense or RANK.fullmatch(asked) else 0
    return max(needed + n * (LABEL_BYTES * problems + WEIGHT_BYTES), applied)


def learn_rows(rows: int, asked: str) -> int:
    """Number of rows, of so many, that a metric is learned from. asked : the metric."""
    return min(int(LEARN_SHARE * rows), BASELINE_ROWS if asked in BASELINES else MOST_LEARN)


def _choice_plan(dense: bool, features: int, distance: str) -> LearningPlan:
    """Plan of the metrics that auto tries: matrices are for the Euclidean distance."""
    matrix = dense and features <= MATRIX_FEATURES and distance == "euclidean"
    return replace(CHOICE_PLAN, names=("diag", "full") if matrix else ("diag",))


def _labelled(
    data: Dataset, labels: NDArray[np.float64], config: TrainingConfig
) -> tuple[MetricRows, NDArray[np.intp]]:
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
    distance = DISTANCES[config.method.distance]
    return MetricRows(data.X, target.encode(data.y).astype(np.float32), weight, _ties(data), distance), codes


def _ties(data: Dataset) -> NDArray[np.int64] | None:
    """The column of its table that each feature is of; None where no column has several features."""
    ties = np.asarray((data.table or {}).get("ties", []), np.int64)
    if data.columns is not None and len(ties):
        ties = ties[data.columns]
    numbers = np.unique(ties, return_inverse=True)[1].reshape(-1).astype(np.int64)
    return numbers if 0 < len(np.unique(numbers)) < len(numbers) else None


def _learned(data: MetricRows, rows: NDArray[np.int64], name: str, rank: int | None, seed: int) -> Course:
    learner, plan = data.learner(rows), LearningPlan((name,))
    course = plan.candidates(learner, learner.beginning(plan.rng(seed, -1, 9)), seed, -1)[name]
    if rank is None:
        return course
    # the leading directions of the matrix, and then steps of their own
    U, size, _ = np.linalg.svd(course.values)
    return plan.refined(learner, course.at(U[:, :rank] * size[:rank]), seed, -1)
