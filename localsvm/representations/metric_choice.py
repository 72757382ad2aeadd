"""Chooses the geometry of rows by rows that it did not see: the Euclidean one stays unless another is clearly better.

A geometry is a distance, a view of the columns, and a learned metric of some form and strength. Candidates are learned
without each of some folds and judged by it; what is hopeless on the first folds costs no more.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from localsvm.data.blocks.dealing import Mates, folds_of_groups
from localsvm.representations.distances import DISTANCES
from localsvm.representations.metric import EUCLIDEAN, Geometry
from localsvm.representations.metric_judging import CELL, FOLDS, Judged, Step, judged
from localsvm.representations.metric_learning import Course, Floats, LearningPlan, MetricLearner, Rows, learning_bytes
from localsvm.representations.metric_rows import MetricRows
from localsvm.threads import Threads

SHARE = 6  # the same for a candidate: on few rows its samples take most of the time
FIRST, SECOND, LAST = (0,), (1,), (2, 3, 4)  # folds that judge all, the best few, and the best one if it is not clear
FEW, HOPEFUL = 2, 2.0  # learned metrics that go on, and standard errors of the loss above the least one
CLEAR = (-4.0, 1.0)  # z of the loss: beyond, and below the bound, the last folds would change nothing
FAR = (1.1, 4.0)  # times the least loss, and standard errors above it: weights of values beyond have no matrix
SURE = -6.0  # z of loss and error, of values: beyond, the first fold is enough
STRENGTHS = (0.5, 0.25, 0.0)  # powers of a learned metric that are tried beside it; 0 is that of equal weights
RISK = 0.05  # of leaving the Euclidean geometry without a reason, all candidates together
MANY = 300  # degrees of freedom: with more, Student's distribution is the normal one within a hundredth
WORSE = 1.0  # z of the error that a geometry of a clearly smaller loss may have
GAIN, CLEARLY = 0.05, -2.0  # share of the loss by which a second member has to lower it, and z of that


@dataclass(frozen=True)
class Choice:
    """The geometry that was chosen.

    Attributes
    ----------
    name : label of the geometry; "none" for the Euclidean one, or the first that may be chosen.
    best : of the best candidate, chosen or not; "none" where none was tried. Then the other fields are empty.
    loss, error : (2,) the mean loss, and the share of wrong rows, by the first geometry and by the best one.
    z : (2,) of the paired tests, for both: the mean difference of the rows over its standard error.
    bound : (2,) what each z has to be below.
    members : geometries of a model that averages several, the chosen one first; empty where one was asked for.
    """

    name: str
    best: str
    loss: tuple[float, ...] = ()
    error: tuple[float, ...] = ()
    z: tuple[float, ...] = ()
    bound: tuple[float, ...] = ()
    members: tuple[str, ...] = ()

    @property
    def geometry(self) -> Geometry:
        """The geometry of the name."""
        return Geometry.named(self.name)


NONE_TRIED = Choice(EUCLIDEAN, EUCLIDEAN)


@dataclass(frozen=True)
class Options:
    """Geometries that may be chosen.

    Attributes
    ----------
    distances, views : whether rows have ranks; the first of each is of the geometry that stays unless another is
        better.
    matrix : whether a full metric is tried for the Euclidean distance.
    members : geometries that are wanted at most.
    gaining : of these only such as make the best one much better by a mean; else all that are better than the first.
    """

    distances: tuple[str, ...] = ("euclidean",)
    views: tuple[bool, ...] = (False,)
    matrix: bool = True
    members: int = 1
    gaining: bool = False

    @property
    def plain(self) -> list[Geometry]:
        """Geometries without a learned metric, the first one first."""
        return [Geometry(distance, ranks) for ranks in self.views for distance in self.distances]


def stratified_folds(strata: Floats, rng: np.random.Generator, mates: Mates | None = None) -> NDArray[np.int64]:
    """Fold (n,) of each row: the rows of each class are dealt out at random.

    strata : (n,) the classes, or parts of the values.
    mates : which rows stay together; None where none do.
    """
    if mates is not None:
        return folds_of_groups(strata, FOLDS, rng, mates)
    order = np.lexsort((rng.random(len(strata)), strata))
    folds = np.empty(len(strata), np.int64)
    folds[order] = np.arange(len(strata)) % FOLDS
    return folds


def choose(
    views: Mapping[bool, MetricRows], folds: NDArray[np.int64], options: Options, plan: LearningPlan, seed: int,
    threads: Threads, mates: Mates | None = None,
) -> tuple[Choice, dict[str, Course]]:  # fmt: skip
    """Choose among geometries; where not every fold has rows, the first one is the choice.

    What the first fold's learning of each chosen metric has come to is returned, too, by the geometry's label, for
    steps that go on from there.

    Parameters
    ----------
    views : the rows (m, ...) that may be looked at, with and without ranks, as options say.
    folds : (m,) of the rows.
    plan : what is learned.
    threads : of no influence on the result.
    mates : of the (m,) rows, which stay together; None where none do.
    """
    first, members = options.plain[0], options.members
    if len(np.unique(folds)) < FOLDS:
        return replace(NONE_TRIED, name=first.label), {}
    trial = _Trial(views, folds, plan, seed, threads)
    learned = trial.learned(options)
    ordered = trial.ordered(learned)
    tried = ordered[:FEW] + [weak for each in ordered[:FEW] for weak in _weaker(each) if weak != first]
    hopeful = trial.hopeful(trial.weakened(ordered[:FEW], tried))
    tries = len({*learned, *tried})
    if (members > 1 and not options.gaining) or not trial.is_sure(first, hopeful, tries, mates):
        trial.add([first, *hopeful], SECOND)
    best = trial.weakest(trial.fewest(hopeful), hopeful)
    others = []
    if members > 1:
        others = trial.gaining(best, hopeful) if options.gaining else trial.others(first, ordered[:members])
    choice = trial.tested(first, best, tries, mates)
    if options.gaining and choice.geometry == first:
        others = []
    several = [choice.geometry, *(each for each in others if _kind(each) != _kind(choice.geometry))][:members]
    labels = tuple(each.label for each in several) if members > 1 else ()
    return replace(choice, members=labels), {each.label: trial.course(each) for each in several if each.form}


def _weaker(geometry: Geometry) -> list[Geometry]:
    """Geometries that differ by a weaker metric alone."""
    if geometry.form != "diag":
        return []
    return [geometry._replace(strength=power) if power else geometry._replace(form="") for power in STRENGTHS]


class _Trial:
    """Candidates that are learned without some folds, and judged by these."""

    def __init__(
        self, views: Mapping[bool, MetricRows], folds: NDArray[np.int64], plan: LearningPlan, seed: int,
        threads: Threads,
    ) -> None:  # fmt: skip
        self._views, self._folds, self._plan, self._seed, self._threads = views, folds, plan, seed, threads
        self._every, self._of_values = np.arange(len(folds), dtype=np.int64), next(iter(views.values())).values
        self._courses: dict[tuple[Geometry, int], Course] = {}
        self._starts: dict[tuple[Geometry, int], Course] = {}
        self._steps: dict[Geometry, Step] = {}
        self._results: dict[Geometry, dict[int, Judged]] = {}  # of each fold

    def learned(self, options: Options) -> list[Geometry]:
        """Geometries of all metrics that are learned, which the first fold has judged, and the first plain one."""
        weights = [each._replace(form="diag") for each in options.plain]
        self.add([options.plain[0], *weights], FIRST)
        promising = [each for each in weights if each.distance == "euclidean" and not self._is_far(each)]
        matrices = [each._replace(form="full") for each in promising if options.matrix]
        self.add(matrices, FIRST)
        return weights + matrices

    def add(self, candidates: Iterable[Geometry], folds: Sequence[int]) -> None:
        """Judge candidates by some folds."""
        todo = [(each, fold) for each in dict.fromkeys(candidates) for fold in folds]
        todo = [(each, fold) for each, fold in todo if fold not in self._results.get(each, {})]
        courses = list(dict.fromkeys((_source(each), fold) for each, fold in todo))
        self._threads.map(lambda i: self._learn(*courses[i]), len(courses))
        self._threads.map(lambda i: self._judge(*todo[i]), len(todo))

    def course(self, geometry: Geometry) -> Course:
        """What the first fold's learning of a metric has come to."""
        return self._courses[_source(geometry), FIRST[0]]

    def others(self, first: Geometry, candidates: Iterable[Geometry]) -> list[Geometry]:
        """Geometries of a smaller loss than the first one, the smallest first; the best one of each kind."""
        every = [power for each in candidates for power in (each, *_weaker(each)) if power != first]
        candidates = list(dict.fromkeys(every))
        self.add(candidates, FIRST)
        kinds: dict[Geometry, list[Geometry]] = {}
        for each in candidates:
            kinds.setdefault(_kind(each), []).append(each)
        some = [min(of_kind, key=lambda each: self._mean(each, FIRST)[0]) for of_kind in kinds.values()]
        self.add([first, *some], SECOND)
        return [each for each in self.ordered(some) if self._above(each, first) < 0.0]

    def weakened(self, strong: Sequence[Geometry], tried: Sequence[Geometry]) -> list[Geometry]:
        """The first fold judges what is tried, of values each way until one is clearly worse; returns what it judged.

        strong : of these, those that the others are weaker ones of.
        """
        if not self._of_values:
            self.add(tried, FIRST)
            return list(tried)
        ways = [[each, *(weak for weak in _weaker(each) if weak in tried)] for each in strong]
        while ways := [way for way in ways if len(way) > 1]:
            self.add([way[1] for way in ways], FIRST)
            ways = [way[1:] for way in ways if self._above(way[1], way[0]) < HOPEFUL]
        return [each for each in tried if each in self._results]

    def is_sure(self, first: Geometry, hopeful: Sequence[Geometry], tries: int, mates: Mates | None) -> bool:
        """Whether one fold is enough: of values, where one geometry has hope and is beyond doubt better than the first.

        The share of wrong rows of classes is told apart by more rows than their loss.
        """
        if not self._of_values or len(hopeful) > 1:
            return False
        choice = self._tested(first, hopeful[0], tries, mates)
        return choice.geometry == hopeful[0] and max(choice.z) < SURE

    def gaining(self, best: Geometry, candidates: Iterable[Geometry]) -> list[Geometry]:
        """Geometries of other kinds that make the best better by a mean of both, of the smallest loss first."""
        rows, order = self._views[best.ranks], self._order(best)
        share, of_best = self._share(best), rows.losses(rows.Y[order], self._values(best))
        gains = {}
        for each in candidates:
            if _kind(each) != _kind(best):
                both = rows.losses(rows.Y[order], (self._values(best) + self._values(each)) / 2.0) - of_best
                if paired(both, share)[0] <= CLEARLY:
                    gains[each] = float(both[0] @ share)
        enough = -GAIN * float(of_best[0] @ share)
        return sorted((each for each, gain in gains.items() if gain <= enough), key=gains.__getitem__)

    def ordered(self, candidates: Iterable[Geometry]) -> list[Geometry]:
        """Candidates, the one of the least loss first."""
        return sorted(candidates, key=lambda each: self._mean(each)[0])

    def best(self, candidates: Iterable[Geometry]) -> Geometry:
        """The candidate of the least loss."""
        return self.ordered(candidates)[0]

    def fewest(self, candidates: Sequence[Geometry]) -> Geometry:
        """The candidate of the fewest errors, of those whose loss is within a standard error of the least one."""
        best = self.best(candidates)
        near = [each for each in candidates if self._above(each, best) <= 1.0]
        return min(near, key=lambda each: self._mean(each)[1])

    def hopeful(self, candidates: Sequence[Geometry]) -> list[Geometry]:
        """The candidates whose loss is less than HOPEFUL standard errors above the least one."""
        best = self.best(candidates)
        return [each for each in candidates if self._above(each, best) < HOPEFUL]

    def _is_far(self, weights: Geometry) -> bool:
        """Whether weights of values are so much worse than the best of those judged that their matrix has no hope."""
        if not self._of_values:
            return False
        best, (times, above) = self.best(self._results), FAR
        worse = self._mean(weights)[0] > times * self._mean(best)[0]
        return bool(worse and self._above(weights, best) > above)

    def _above(self, candidate: Geometry, best: Geometry) -> float:
        """By how many standard errors a candidate's loss is above that of another, which the same folds judged."""
        return float(paired(self._joined(candidate) - self._joined(best), self._share(best))[0])

    def weakest(self, best: Geometry, weaker: Iterable[Geometry]) -> Geometry:
        """The weakest metric that differs from the best by its strength alone and is within a standard error of it."""
        power = {each: each.strength if each.form else 0.0 for each in (best, *weaker)}
        same = [each for each in weaker if each[:2] == best[:2] and best.form != "full" and power[each] < power[best]]
        near = [each for each in same if self._above(each, best) <= 1.0]
        return min(near, key=power.__getitem__, default=best)

    def tested(self, first: Geometry, best: Geometry, tries: int, mates: Mates | None) -> Choice:
        """Test the best candidate against the first geometry, by more folds where few are not clear; see `tested`."""
        choice = self._tested(first, best, tries, mates)
        if min(CLEAR[0], choice.bound[0]) <= choice.z[0] <= CLEAR[1] or choice.z[0] < 0.0 < choice.z[1]:
            self.add([first, best], LAST)
            choice = self._tested(first, best, tries, mates)
        return choice

    def _tested(self, first: Geometry, best: Geometry, tries: int, mates: Mates | None) -> Choice:
        order = self._order(first)
        results = {each: self._joined(each) for each in (first, best)}
        rows, same = self._views[first.ranks], None if mates is None else mates.of(order)
        return tested(results, tries, rows.weight[order], same, rows.guess(order))

    def _learn(self, geometry: Geometry, fold: int) -> None:
        """Learn a geometry's metric without a fold, unless it is known."""
        if (geometry, fold) in self._courses:
            return
        data, learning = self._data(geometry), self._every[self._folds != fold]
        learner = MetricLearner(
            data, learning, max(1, min(self._plan.sample, len(learning) // SHARE)), self._threads.check
        )
        plan, seed = self._plan, self._seed
        course = learner.beginning(plan.rng(seed, fold, 0))
        if geometry.form:
            start = geometry._replace(form=""), fold  # both forms go on from the same first steps
            if start not in self._starts:
                self._starts[start] = plan.weights(learner, course, seed, fold)
            course = plan.finished(geometry.form, learner, self._starts[start], seed, fold)
        self._courses[geometry, fold] = course

    def _judge(self, geometry: Geometry, fold: int) -> None:
        """Judge a candidate by a fold; the first one finds the step for all others."""
        data, course = self._data(geometry), self._courses[_source(geometry), fold]
        map_ = data.distance.raised(data.distance.map_of(course.values), geometry.strength)
        step = self._steps.get(geometry)
        result, step = judged(data, self._folds, fold, course, map_, self._seed, self._threads.check, step)
        self._steps.setdefault(geometry, step)
        self._results.setdefault(geometry, {})[fold] = result

    def _data(self, geometry: Geometry) -> MetricRows:
        return self._views[geometry.ranks]._replace(distance=DISTANCES[geometry.distance])

    def _order(self, geometry: Geometry, folds: Sequence[int] | None = None) -> Rows:
        """Places of the rows that judged a candidate, in the order of its results; those of some folds, or of all."""
        judging = sorted(self._results[geometry]) if folds is None else folds
        return np.concatenate([np.flatnonzero(self._folds == fold) for fold in judging])

    def _share(self, geometry: Geometry, folds: Sequence[int] | None = None) -> Floats:
        """Share (rows,) of each row in means over the rows that judged a candidate, in the order of its results."""
        weight = self._views[geometry.ranks].weight[self._order(geometry, folds)]
        return np.asarray(weight / weight.sum())

    def _joined(self, geometry: Geometry, folds: Sequence[int] | None = None) -> Floats:
        """Results (2, rows) of a candidate by some folds, or all that judged it."""
        results = self._results[geometry]
        return np.hstack([results[fold].losses for fold in (sorted(results) if folds is None else folds)])

    def _values(self, geometry: Geometry) -> Floats:
        """Values (rows, problems) that a candidate gives to all rows that judged it, in the order of its results."""
        results = self._results[geometry]
        return np.concatenate([results[fold].values for fold in sorted(results)])

    def _mean(self, geometry: Geometry, folds: Sequence[int] | None = None) -> Floats:
        """Mean loss and error (2,) of a candidate by some folds, or all that judged it."""
        return np.asarray(self._joined(geometry, folds) @ self._share(geometry, folds))


def _kind(geometry: Geometry) -> Geometry:
    """A geometry's distance, view and form alone: weights of all powers, 0 among them, are of one kind."""
    return geometry._replace(form=geometry.form or "diag", strength=1.0)


def _source(geometry: Geometry) -> Geometry:
    """The geometry whose metric, as it was learned, is that of a candidate before it is raised to a power."""
    return geometry._replace(strength=1.0)


def choosing_bytes(
    rows: int, columns: int, options: Options, dense: bool, plan: LearningPlan, threads: int, values: bool = False
) -> int:
    """Bytes that `choose` holds at most, beside all rows.

    It holds the rows in each view. A candidate at work holds what is learned, or the rows that are mapped to be judged
    and a cell of them.

    rows, columns : that may be looked at; columns without ranks, of which each may have one.
    values : whether it is for values.
    """
    views = 4 * rows * columns * (1 + 2 * any(options.views)) if dense else 0
    columns *= 1 + any(options.views)
    learning = learning_bytes(rows - rows // FOLDS, columns, options.matrix, plan.sample, values)
    cell = min(rows, CELL)
    judging = 16 * (cell * (cell + columns) + (rows * columns if dense else 0))
    return views + threads * max(learning, judging)


def tested(
    results: Mapping[Geometry, Floats], tries: int, weight: Floats, mates: Mates | None = None,
    guess: Floats | None = None,
) -> Choice:  # fmt: skip
    """Choose the second of two geometries, if tests find it better than the first.

    A one-sided paired test over the rows has to find its loss smaller, at the level RISK over the number of
    candidates of which it is the best: by the normal distribution, or by Student's where few rows or groups judge. Its
    share of wrong rows must not be larger by WORSE standard errors. The loss tells geometries apart by fewer rows than
    the error does; but where nearly all rows are right, it can fall without any gain. Nor is it a gain to guess where
    the first geometry learns noise by heart: the loss has to be smaller than that of guessing, too, by the same test.

    Parameters
    ----------
    results : of both (2, rows), what `judged` gives.
    tries : number of candidates.
    weight : (rows,)
    mates : which rows stay together; they count as much as one row of their weight. None where none do.
    guess : (rows,) the loss of guessing; None where it does not matter.
    """
    share = weight / weight.sum()
    first, best = results
    mean, better = results[first] @ share, results[best] @ share
    z = paired(results[best] - results[first], share, mates)
    units = len(weight) if mates is None else len(np.unique(mates.number))
    bound = (_quantile(RISK / tries, units - 1), WORSE)
    better_than = [z[0]] if guess is None else [z[0], paired((results[best][0] - guess)[None], share, mates)[0]]
    name = best if max(better_than) < bound[0] and z[1] < bound[1] else first
    (loss, loss_after), (error, error_after) = zip(mean.tolist(), better.tolist(), strict=True)
    return Choice(name.label, best.label, (loss, loss_after), (error, error_after), (float(z[0]), float(z[1])), bound)


def _quantile(level: float, freedom: int) -> float:
    """The quantile of Student's distribution, or of the normal one, which it comes near to."""
    if freedom > MANY:
        return NormalDist().inv_cdf(level)
    from scipy.special import stdtrit  # takes long to import

    return float(stdtrit(max(1, freedom), level))


def paired(difference: Floats, share: Floats, mates: Mates | None = None) -> Floats:
    """The mean differences (k,) over their standard errors, 0 where these are 0.

    difference, share : (k, rows) of the rows, and the share (rows,) of each in the mean. mates : see `tested`.
    """
    mean = difference @ share
    away = difference - mean[:, None]
    if mates is None:
        spread = np.sqrt(np.square(away) @ np.square(share))
    else:
        number = np.unique(mates.number, return_inverse=True)[1].reshape(-1)
        spread = np.sqrt([np.square(np.bincount(number, each * share)).sum() for each in away])
    return np.asarray(np.divide(mean, spread, out=np.zeros(len(mean)), where=spread > 0.0))
