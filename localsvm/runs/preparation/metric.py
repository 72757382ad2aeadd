"""The geometry of a run: learned and chosen by some of its rows, so that the others say what the error is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from localsvm.blas import one_thread
from localsvm.data.blocks.dataset import Dataset, Examples, is_dense, rows_of, size_of
from localsvm.data.blocks.dealing import Mates, first_rows
from localsvm.data.blocks.numbering import contents
from localsvm.engines.base import Drawn, Head, together
from localsvm.errors import OptionError
from localsvm.features.joint import Joint, widened
from localsvm.features.learned import UNTRIED
from localsvm.features.metric import Metric
from localsvm.features.ranks import WIDE, Ranks
from localsvm.naming import opt
from localsvm.partition import copies
from localsvm.partition._nearest import Matrix
from localsvm.representations.baselines import BASELINES, baseline_bytes, learned_by
from localsvm.representations.distances import DISTANCES
from localsvm.representations.metric import AUTO, RANK, Geometry, check_metric
from localsvm.representations.metric_choice import Options, choose, choosing_bytes, stratified_folds
from localsvm.representations.metric_judging import FOLDS as CHOICE_FOLDS
from localsvm.representations.metric_learning import SAMPLE, Course, LearningPlan, MetricLearner, learning_bytes
from localsvm.representations.metric_roots import roots_pay
from localsvm.representations.metric_rows import MetricRows
from localsvm.representations.metric_tests import NONE_TRIED
from localsvm.runs.config import TrainingConfig
from localsvm.runs.preparation.draws import LEARN_SHARE, learn_rows
from localsvm.runs.preparation.labelled import Roots, by_blocks, labelled_rows, stretches
from localsvm.runs.preparation.measured import Measured
from localsvm.targets.base import Observed
from localsvm.threads import Threads

TESTED = 8  # stretches of each fold, which count as independent where folds are stretches of rows
CHOICE_ROWS = 20_000  # of these, by which it is chosen, where they are not those of regions
MATRIX_COLUMNS = 256  # of a view, up to which auto tries matrices
MEMBER_ROWS = 100_000  # with more rows, auto takes one geometry for values, as a second one doubles the time
MEMBER_OUTPUTS = 100  # with more classes, auto takes one geometry: means of two would need too much memory to be judged
# with more values in half a sample, or more labels (one for each row and class), auto keeps the Euclidean metric: the
# time and the memory would be much more than those of training
SAMPLE_VALUES, LABELS = 1 << 20, 1 << 27
LABEL_BYTES, WEIGHT_BYTES = 12, 48  # a row: for each problem its labels, and then weights, classes and orders
CHOICE_PLAN = LearningPlan(sample=400, weight_steps=80, matrix_steps=100)
FURTHER_PLAN = LearningPlan(near_steps=80)  # what the choice has learned needs fewer steps, ...
FURTHER_SAMPLE = 500  # ... and smaller samples, but for a matrix of classes, which has more to learn


def measure(
    data: Dataset, observed: Observed, config: TrainingConfig, threads: Threads, ranks: Ranks | None = None
) -> Measured:
    """Learn the metric that the options ask for from scaled rows; the result does not depend on the threads.

    observed : of their labels.
    ranks : those that the rows can have, and have where the options do not leave it open; None for none.

    Raises
    ------
    OptionError : a matrix for sparse rows; a rank above the number of features.
    """
    n = len(data.y)
    if known := _untried(config, is_dense(data.X), (n, data.X.shape[1]), observed, ranks):
        return known
    rng, fresh = LearningPlan.rng(config.seed, -1, 0), np.ones(n, np.bool_)
    order, count = rng.permutation(n), learn_rows(n, config.metric_name)
    if by_blocks(config, data):
        fresh[:count] = False
    else:
        fresh[first_rows(order, count, _mates(data, threads))] = False
    rows = np.flatnonzero(~fresh).astype(np.int64)
    (labelled, strata), in_order = labelled_rows(data, observed, config, count), by_blocks(config, data)
    mates, roots = _choice_mates(data, config), Roots.of(data, observed, config, count)
    learning = _Learning(labelled, strata, rows, ranks, config, threads, mates, rng, n, None, observed, in_order, roots)
    measured = learning.measured()
    return measured if measured.metric is None else replace(measured, fresh=fresh)


def measure_drawn(
    drawn: Drawn, near: Drawn | None, head: Head, observed: Observed, config: TrainingConfig,
    threads: Threads, ranks: Ranks | None = None,
) -> Measured:  # fmt: skip
    """Learn the metric from a sample of many rows: those that `MetricDraw` chooses, scaled.

    Parameters
    ----------
    near : the rows of regions, scaled, which choose; None where some of the others do.
    head, observed : of all rows, and of their labels.
    ranks : see `measure`.
    """
    if known := _untried(config, is_dense(drawn.X), (head.rows, drawn.X.shape[1]), observed, ranks):
        return known
    rng, wanted = LearningPlan.rng(config.seed, -1, 0), learn_rows(head.rows, config.metric_name)
    if len(drawn.y) > wanted:  # where frequent rows are among them
        drawn = drawn.at(np.sort(LearningPlan.rng(config.seed, -1, 11).permutation(len(drawn.y))[:wanted]))
    every = np.arange(len(drawn.y), dtype=np.int64)
    choosing = None if near is None else len(every) + np.arange(len(near.y), dtype=np.int64)
    data = (drawn if near is None else together([drawn, near])).dataset
    data.table, data.columns = head.table, head.columns.kept
    (labelled, strata), in_order = labelled_rows(data, observed, config, len(drawn.y)), by_blocks(config, data)
    mates = _choice_mates(data, config)
    learning = _Learning(
        labelled, strata, every, ranks, config, threads, mates, rng, head.rows, choosing, observed, in_order
    )
    measured = learning.measured()
    if measured.metric is None:
        return measured
    if by_blocks(config, data):
        return replace(measured, fresh_from=int(LEARN_SHARE * head.rows))
    hashes = contents(measured.mapped(data.X)) if data.group is None else data.group.view(np.uint64)
    return replace(measured, learned=np.unique(hashes))


def _mates(data: Dataset, threads: Threads, rows: NDArray[np.int64] | None = None) -> Mates | None:
    """Rows, or some of them, that stay together: of groups, or equal ones; None for none."""
    if data.group is not None:
        return Mates(data.group, whole=True).of(slice(None) if rows is None else rows)
    same = copies(Matrix(data.X if rows is None else rows_of(data.X, rows)), threads)
    return None if same is None else Mates(same)


def _choice_mates(data: Dataset, config: TrainingConfig) -> Callable[[NDArray[np.int64], Threads], Mates | None]:
    """Function that gives which of some rows (m,), ascending, stay together where the metric is chosen."""

    def mates(rows: NDArray[np.int64], threads: Threads) -> Mates | None:
        if by_blocks(config, data):
            return Mates(stretches(len(rows), CHOICE_FOLDS * TESTED), whole=True)
        return _mates(data, threads, rows)

    return mates


def _untried(
    config: TrainingConfig, dense: bool, shape: tuple[int, int], observed: Observed, ranks: Ranks | None
) -> Measured | None:
    """The Euclidean metric where auto tries no other; OptionError for a metric that such rows do not have."""
    asked, rank = config.metric_name, check_metric(config.metric_name)
    if asked not in ("auto", "diag") and not dense:
        raise OptionError(f"{opt.metric(asked)} mixes features and needs dense rows, and these are sparse; give diag")
    features = shape[1] if ranks is None else ranks.columns(shape[1])
    if rank is not None and rank > features:
        raise OptionError(f"{opt.metric(asked)}: there are only {features} features; give at most rank:{features}")
    if asked in BASELINES and observed.values is not None:
        raise OptionError(f"{opt.metric(asked)} is learned from classes, and the loss is one of values; give auto")
    why = untried(shape, observed) if asked == "auto" else ""
    if not why:
        return None
    kept = ranks if config.views == "ranks" else None
    name = Geometry(config.method.distance, kept is not None).label
    tried = {name: value for name, value in asdict(NONE_TRIED).items() if name != "members"}
    return Measured(ranks=kept, description=tried | {"name": name, "why": why})


@dataclass(frozen=True)
class _Learning:
    """Learning of a metric, or the choice of a geometry.

    Attributes
    ----------
    data, strata : rows, and (n,) their labels, or parts of the values: what they are dealt out by.
    rows : the places of those that may be looked at.
    ranks : that the rows can have, and have where the options do not leave it open; None for none.
    mates : see `_choice_mates`.
    rng : draws the rows that choose.
    all_rows : number of the rows that the metric is for.
    near : places of the rows that choose, where they are known.
    observed : of the labels.
    in_order : whether folds are stretches of the rows.
    roots : the rows with the square roots of their values, if these may be learned.
    """

    data: MetricRows
    strata: NDArray[np.float64]
    rows: NDArray[np.int64]
    ranks: Ranks | None
    config: TrainingConfig
    threads: Threads
    mates: Callable[[NDArray[np.int64], Threads], Mates | None]
    rng: np.random.Generator
    all_rows: int
    near: NDArray[np.int64] | None = None
    observed: Observed | None = None
    in_order: bool = False
    roots: Roots | None = None

    def measured(self) -> Measured:
        """What the options ask for."""
        with one_thread():  # products of one step are too small to be shared: their bits would depend on it
            return self._chosen() if self.config.metric_name == AUTO else self._asked()

    def _asked(self) -> Measured:
        """The metric of a name."""
        asked = self.config.metric_name
        geometry = Geometry(self.config.method.distance, self.ranks is not None, "diag" if asked == "diag" else "full")
        if asked not in BASELINES:
            return Measured(self._learned(geometry, check_metric(asked)), self.ranks, {"name": asked})
        seen, rows = self._seen(geometry)
        rng = LearningPlan.rng(self.config.seed, -1, 5)
        values = learned_by(
            asked,
            np.asarray(seen.X[rows], np.float64),
            np.unique(self.strata, return_inverse=True)[1].reshape(-1)[self.rows],
            rng,
        )
        return Measured(_metric(seen, values), self.ranks, {"name": asked})

    def _chosen(self) -> Measured:
        """The geometry that is chosen, or those of members, for values or their square roots."""
        some = np.sort(self.rng.permutation(self.rows)[:CHOICE_ROWS]) if self.near is None else self.near
        mates, strata = self.mates(some, self.threads), self.strata[some]
        folds = stretches(len(some)) if self.in_order else stratified_folds(strata, self.rng, mates)
        if self.roots is None or not self._roots_pay(self.roots, some, folds):
            return self._choice(some, folds, mates)
        values = self.roots.values
        chosen = replace(self, data=self.roots.data, observed=Observed(self.all_rows, values=values))
        measured = chosen._choice(some, folds, mates)
        root = values.root_mean, values.root_deviation
        return replace(measured, description={**(measured.description or {}), "root": root})

    def _roots_pay(self, roots: Roots, some: NDArray[np.int64], folds: NDArray[np.int64]) -> bool:
        """Whether square roots are better to learn than values, by rows that choose."""
        ranks = None if self.config.views == "none" else self.ranks
        both = _viewed(self.data, some, ranks), _viewed(roots.data, some, ranks)
        known = replace(roots.values, root_mean=None, root_deviation=None)
        decoded = known.decoded, roots.values.decoded
        return roots_pay(both, decoded, roots.y[some], folds, self.config.seed, self.threads.check)

    def _choice(self, some: NDArray[np.int64], folds: NDArray[np.int64], mates: Mates | None) -> Measured:
        data, config, before = self.data, self.config, self.data.X.shape[1]
        few = mates is not None and mates.whole
        shape, outputs = (self.all_rows, before), data.Y.shape[1]
        options = _options(config, is_dense(data.X), shape, self.ranks is not None, outputs, data.values, few)
        views = {ranked: _viewed(data, some, self.ranks if ranked else None) for ranked in options.views}
        choice, begun = choose(views, folds, options, CHOICE_PLAN, config.seed, self.threads, mates)
        geometries = [Geometry.named(label) for label in choice.members or (choice.name,)]
        metrics = [self._learned(each, begun=begun[each.label]) if each.form else None for each in geometries]
        ranks = self.ranks if any(each.ranks for each in geometries) else None
        description = {name: value for name, value in asdict(choice).items() if name != "members" or len(value) > 1}
        description |= self._error(choice.error)
        if len(metrics) == 1:
            return Measured(metrics[0], ranks, description)
        features = before if ranks is None else ranks.columns(before)
        return Measured(Joint(tuple(widened(each, before, features) for each in metrics)), ranks, description)

    def _error(self, error: tuple[float, ...]) -> dict[str, Any]:
        """Entries of a description about errors of values, in their units or those of their roots."""
        values = None if self.observed is None else self.observed.values
        if values is None:
            return {}
        if self.data.levels:
            return {"error": tuple(values.unit * mean for mean in error), "score": "pinball"}
        unit, score = (values.root_deviation, "root-rmse") if values.root_deviation else (values.unit, "rmse")
        return {"error": tuple(unit * mean**0.5 for mean in error), "score": score}

    def _seen(self, geometry: Geometry) -> tuple[MetricRows, NDArray[np.int64]]:
        """Rows as a geometry views them, and the places among them of those that may be looked at."""
        distance = DISTANCES[geometry.distance]
        if not geometry.ranks:
            return self.data._replace(distance=distance), self.rows
        viewed = _viewed(self.data, self.rows, self.ranks)
        return viewed._replace(distance=distance), np.arange(len(self.rows), dtype=np.int64)

    def _learned(self, geometry: Geometry, rank: int | None = None, begun: Course | None = None) -> Metric:
        """The metric of a form, or a matrix of some rank.

        begun : where the learning goes on; None for the beginning.
        """
        data, rows = self._seen(geometry)
        plan, seed = LearningPlan(), self.config.seed
        few = begun is not None and (data.values or begun.values.ndim == 1)
        learner = MetricLearner(data, rows, FURTHER_SAMPLE if few else plan.sample)
        if begun is None:
            course = plan.weights(learner, learner.beginning(plan.rng(seed, -1, 9)), seed, -1)
            course = plan.finished(geometry.form, learner, course, seed, -1)
        else:
            course = FURTHER_PLAN.further(learner, begun, seed)
        if rank is not None:
            # the leading directions of the matrix, and then steps of their own
            U, size, _ = np.linalg.svd(course.values)
            course = plan.refined(learner, course.at(U[:, :rank] * size[:rank]), seed, -1)
        return _metric(data, data.distance.raised(data.distance.map_of(course.values), geometry.strength))


def _metric(data: MetricRows, values: NDArray[np.float64]) -> Metric:
    """The metric of a map, at the size of the Euclidean one."""
    return Metric(np.ascontiguousarray(data.distance.sized(values), np.float32))


def _options(
    config: TrainingConfig, dense: bool, shape: tuple[int, int], ranked: bool, outputs: int, values: bool,
    few: bool = False,
) -> Options:  # fmt: skip
    """The geometries that auto tries for rows.

    Of values a mean of two geometries is better than the best one, however little it gains on the rows that judge. Of
    classes it is one of two distances; see `Trial.partners`.

    shape : number of all rows, and of columns without ranks.
    ranked : whether columns can have ranks.
    outputs : numbers that are learned for a row.
    values : whether these are values.
    few : whether rows are held out by groups or stretches, of which few judge: a mean is safer then.
    """
    views = {"none": (False,), "ranks": (ranked,)}.get(config.views, (False, True) if ranked else (False,))
    distances = config.method.distances
    matrix_columns = MATRIX_COLUMNS if dense and any(DISTANCES[each].matrices for each in distances) else 0
    unknown = config.known_repeats is None
    many = outputs > MEMBER_OUTPUTS or (values and not few and shape[0] > MEMBER_ROWS)
    times = 1 if unknown and many else config.times
    return Options(distances, views, matrix_columns, times, unknown and not values)


def _viewed(data: MetricRows, rows: NDArray[np.int64], ranks: Ranks | None) -> MetricRows:
    """Some rows, with their ranks; each of these has a weight of its own."""
    part = data.of(rows)
    if ranks is None:
        return part
    ties = part.ties
    if ties is not None:
        ties = np.concatenate([ties, ties.max() + 1 + np.arange(len(ranks.ranked))])
    return part._replace(X=ranks.apply(part.X), ties=ties)


def _outputs(observed: Observed) -> int:
    """Number of outputs that a metric is learned for: of values and two classes one, else one for each class."""
    return 1 if observed.values is not None else max(1, len(observed.labels) * (len(observed.labels) != 2))


def untried(shape: tuple[int, int], observed: Observed) -> str:
    """Reason, of UNTRIED, for which auto keeps the Euclidean metric; "" where it tries others.

    shape : of all rows.
    """
    n, features = int(shape[0]), int(shape[1])
    one, outputs = observed.values is None and len(observed.labels) < 2, _outputs(observed)
    conditions = one, min(n, SAMPLE) * features > SAMPLE_VALUES, outputs > 1 and n * outputs > LABELS
    return next((why for why, holds in zip(UNTRIED, conditions, strict=True) if holds), "")


def measuring_bytes(X: Examples, config: TrainingConfig, observed: Observed, threads: int) -> int:
    """Bytes that `measure`, and then mapping the rows X, hold at most beside these."""
    asked = config.metric_name
    if asked == "auto" and untried(X.shape, observed):
        return 0
    n, features = int(X.shape[0]), int(X.shape[1])
    dense, rows, problems = is_dense(X), learn_rows(n, asked), _outputs(observed)
    ranked = tries_ranks(config, dense, features)
    seen = features * (1 + ranked)
    if asked in BASELINES:
        needed = baseline_bytes(asked, rows, seen)
    else:
        values, some = observed.values is not None, min(rows, CHOICE_ROWS)
        options = _options(config, dense, (n, features), ranked, problems, values)
        matrix = options.widest_matrix(features) if asked == "auto" else seen * (asked != "diag")
        needed = learning_bytes(rows, seen, matrix, outputs=problems)
        if asked == "auto":
            needed = max(needed, choosing_bytes(some, features, options, dense, CHOICE_PLAN, threads, problems))
    copied = 4 * rows * (features + seen) if ranked else 0
    applied = size_of(X) if not dense or RANK.fullmatch(asked) else 0
    return max(needed + copied + n * (LABEL_BYTES * problems + WEIGHT_BYTES), applied)


def tries_ranks(config: TrainingConfig, dense: bool, features: int) -> bool:
    """Whether ranks are found for rows of so many columns: they are asked for, or may be chosen with the metric."""
    if config.views == "auto":
        return config.metric_name == "auto" and dense and features <= WIDE
    return config.views == "ranks"
