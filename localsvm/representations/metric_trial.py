"""Candidates for the geometry of rows: they are learned without each of some folds, and judged by it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from localsvm.data.blocks.dealing import Mates
from localsvm.representations.distances import DISTANCES
from localsvm.representations.metric import Geometry
from localsvm.representations.metric_judging import Judged, Step, judged
from localsvm.representations.metric_learning import Course, Floats, LearningPlan, MetricLearner, Rows
from localsvm.representations.metric_rows import MetricRows
from localsvm.representations.metric_tests import Choice, paired, tested
from localsvm.threads import Threads

SHARE = 5  # half a sample has one in so many of a candidate's learning rows: samples take most of the time
FIRST, LAST = (0,), (1, 2)  # folds that judge all candidates, and the best one if it is not clear; ...
FEW_ROWS = 4000  # ... up to so many rows all folds judge all: one was too small to tell them apart (5 % more errors)
HOPEFUL = 2.0  # standard errors of the loss above the least one, up to which a candidate goes on
NEAR = 1.0  # the same, up to which a weaker metric, or one of fewer errors, is taken
HOPELESS = 1.0  # z of the loss: beyond, the last folds would change nothing
FAR = (1.1, 4.0)  # times the least loss, and standard errors above it: of what is beyond, nothing more is tried
CLEARLY_WORSE = 2.0  # standard errors, of a mean's loss and of its error together
STRENGTHS = (0.5, 0.25, 0.0)  # powers of a learned metric that are tried beside it; 0 is that of equal weights


class Trial:
    """Candidates that are learned without some folds, and judged by these.

    Parameters
    ----------
    views, folds, plan, seed, threads : as `choose` is given them.
    keeps : whether the values of judged rows are kept, for `partners`.
    """

    def __init__(
        self, views: Mapping[bool, MetricRows], folds: NDArray[np.int64], plan: LearningPlan, seed: int,
        threads: Threads, keeps: bool = True,
    ) -> None:  # fmt: skip
        self._keeps = keeps
        self._views, self._folds, self._plan, self._seed, self._threads = views, folds, plan, seed, threads
        self._every, self._first = np.arange(len(folds), dtype=np.int64), first_folds(len(folds))
        self._courses: dict[tuple[Geometry, int], Course] = {}
        self._starts: dict[tuple[Geometry, int], Course] = {}
        self._steps: dict[Geometry, Step] = {}
        self._results: dict[Geometry, dict[int, Judged]] = {}  # of each fold

    def learned(self, plain: Sequence[Geometry], matrix_columns: int) -> list[Geometry]:
        """Geometries of all metrics that are learned, which the first folds have judged, and the first plain one.

        plain : geometries without a learned metric, of each of which weights are learned.
        matrix_columns : of a view, up to which a full metric is tried for the Euclidean distance.
        """
        weights = [each._replace(form="diag") for each in plain]
        self.add([plain[0], *weights], self._first)
        narrow = [each for each in weights if self._views[each.ranks].X.shape[1] <= matrix_columns]
        promising = [each for each in narrow if DISTANCES[each.distance].matrices and not self._is_far(each)]
        matrices = [each._replace(form="full") for each in (self.hopeful(promising) if promising else [])]
        self.add(matrices, self._first)
        if matrices and self.best(weights + matrices).form == "full":
            # where a matrix is best, that of a view whose weights were behind may be better still
            matrices = [each._replace(form="full") for each in promising]
            self.add(matrices, self._first)
        return weights + matrices

    def add(self, candidates: Iterable[Geometry], folds: Sequence[int]) -> None:
        """Judge candidates by some folds."""
        todo = [(each, fold) for each in dict.fromkeys(candidates) for fold in folds]
        todo = [(each, fold) for each, fold in todo if fold not in self._results.get(each, {})]
        courses = list(dict.fromkeys((_source(each), fold) for each, fold in todo))
        before = list(dict.fromkeys((_beginning(each), fold) for each, fold in courses))
        self._threads.map(lambda i: self._learn(*before[i]), len(before))
        self._threads.map(lambda i: self._learn(*courses[i]), len(courses))
        for fold in folds:  # one after the other, as the first one finds the step for the others
            self._judge_all([each for each, judging in todo if judging == fold], fold)

    def course(self, geometry: Geometry) -> Course:
        """What the first fold's learning of a metric has come to."""
        return self._courses[_source(geometry), FIRST[0]]

    def others(self, first: Geometry, candidates: Iterable[Geometry]) -> list[Geometry]:
        """Geometries of a smaller loss than the first one, the smallest first; the best one of each kind."""
        every = [power for each in candidates for power in (each, *weaker(each)) if power != first]
        candidates = list(dict.fromkeys(every))
        self.add(candidates, self._first)
        kinds: dict[Geometry, list[Geometry]] = {}
        for each in candidates:
            kinds.setdefault(kind(each), []).append(each)
        some = [min(of_kind, key=lambda each: self._mean(each)[0]) for of_kind in kinds.values()]
        return [each for each in self.ordered(some) if self._above(each, first) < 0.0]

    def weakened(self, strong: Sequence[Geometry], tried: Sequence[Geometry]) -> list[Geometry]:
        """The first folds judge what is tried, each way until one is too much worse to take; returns those judged.

        strong : of these, those that the others are weaker ones of.
        """
        ways = [[each, *(weak for weak in weaker(each) if weak in tried)] for each in strong]
        while ways := [way for way in ways if len(way) > 1]:
            self.add([way[1] for way in ways], self._first)
            ways = [way[1:] for way in ways if self._above(way[1], way[0]) <= NEAR]
        return [each for each in tried if each in self._results]

    def further(self, first: Geometry, learned: Sequence[Geometry], distances: Iterable[str]) -> list[Geometry]:
        """Geometries of distances whose learning begins with another one's, judged by the first folds.

        Each has the best geometry of those learned with its distance in place of the other, and weaker ones of it; and
        the first geometry in the same way. What has no hope is not judged.
        """
        found = []
        for name in distances:
            begins = DISTANCES[name].begins
            best = self.best(each for each in learned if each.distance == begins)._replace(distance=name)
            self.add([best], self._first)
            weak = [] if self._is_far(best) else weaker(best)
            plain = [] if self._is_far(first) else [first._replace(distance=name)]
            self.add(plain, self._first)
            found += [best, *self.weakened([best], weak), *plain]
        return list(dict.fromkeys(found))

    def rivals(self, *either: Geometry) -> list[Geometry]:
        """The best learned geometry of each distance that is not the one of both of these, found as the best of all is.

        The first folds alone have judged all candidates.
        """
        found = []
        for distance in dict.fromkeys(each.distance for each in self._results):
            if {each.distance for each in either} != {distance}:
                strong = self.best(each for each in self._results if each.distance == distance and each.form)
                tried = [strong, *self.weakened([strong], weaker(strong))]
                found.append(self.weakest(self.fewest(tried), tried))
        return found

    def partners(
        self, chosen: Geometry, rivals: Iterable[Geometry], first: Geometry, risk: float, mates: Mates | None = None
    ) -> list[Geometry]:
        """Rivals of another distance whose mean with the chosen geometry is good, of classes; the best mean first.

        A partner may be worse by itself: it has other errors. With the first geometry, which was chosen as no other one
        passed the tests, the mean has to pass them; see `tested`. Else it is enough if it is not clearly worse than the
        chosen one alone, by its loss and its error, each in standard errors: rows that judge are in smaller cells than
        SVMs, and say less of these. To ask for a clear gain cost 3 per cent more errors on all sets, and to ask for
        any gain 1 per cent where it left a partner out.
        """
        order, gains = self._order(chosen), {}
        rows, same = self._views[chosen.ranks], None if mates is None else mates.of(order)
        share, alone = self._share(chosen), self._joined(chosen)
        for each in (rival for rival in rivals if rival.distance != chosen.distance):
            self.add([each], sorted(self._results[chosen]))
            both = rows.losses(rows.Y[order], (self._values(chosen) + self._values(each)) / 2.0)
            if chosen == first:
                good = self._tested({first: alone, each: both}, risk, mates).geometry == each
            else:
                good = bool(paired(both - alone, share, same).sum() < CLEARLY_WORSE)
            if good:
                gains[each] = float((both - alone)[0] @ share)
        return sorted(gains, key=gains.__getitem__)

    def ordered(self, candidates: Iterable[Geometry]) -> list[Geometry]:
        """Candidates, the one of the least loss first."""
        return sorted(candidates, key=lambda each: self._mean(each)[0])

    def best(self, candidates: Iterable[Geometry]) -> Geometry:
        """The candidate of the least loss."""
        return self.ordered(candidates)[0]

    def fewest(self, candidates: Sequence[Geometry]) -> Geometry:
        """The candidate of the fewest errors, of those whose loss is within a standard error of the least one."""
        best = self.best(candidates)
        near = [each for each in candidates if self._above(each, best) <= NEAR]
        return min(near, key=lambda each: self._mean(each)[1])

    def hopeful(self, candidates: Sequence[Geometry]) -> list[Geometry]:
        """The candidates whose loss is less than HOPEFUL standard errors above the least one."""
        best = self.best(candidates)
        return [each for each in candidates if self._above(each, best) < HOPEFUL]

    def _is_far(self, geometry: Geometry) -> bool:
        """Whether a geometry is so much worse than the best of those judged that what is made of it has no hope."""
        best, (times, above) = self.best(self._results), FAR
        worse = self._mean(geometry)[0] > times * self._mean(best)[0]
        return bool(worse and self._above(geometry, best) > above)

    def _above(self, candidate: Geometry, best: Geometry) -> float:
        """By how many standard errors a candidate's loss is above that of another, which the same folds judged."""
        return float(paired(self._joined(candidate) - self._joined(best), self._share(best))[0])

    def weakest(self, best: Geometry, candidates: Sequence[Geometry]) -> Geometry:
        """The weakest metric that differs from the best by its strength alone and is within a standard error of it."""
        power = {each: each.strength if each.form else 0.0 for each in (best, *candidates)}
        same = [
            each for each in candidates if each[:2] == best[:2] and best.form != "full" and power[each] < power[best]
        ]
        near = [each for each in same if self._above(each, best) <= NEAR]
        return min(near, key=power.__getitem__, default=best)

    def tested(self, first: Geometry, best: Geometry, risk: float, mates: Mates | None) -> Choice:
        """Test the best candidate against the first geometry, by more folds where few are not clear; see `tested`."""
        choice = self._tested({each: self._joined(each) for each in (first, best)}, risk, mates)
        if choice.bound[0] <= choice.z[0] <= HOPELESS or choice.z[0] < 0.0 < choice.z[1]:
            self.add([first, best], LAST)
            choice = self._tested({each: self._joined(each) for each in (first, best)}, risk, mates)
        return choice

    def _tested(self, results: Mapping[Geometry, Floats], risk: float, mates: Mates | None) -> Choice:
        """The choice between the first one of these results and the other; see `tested`."""
        first = next(iter(results))
        order = self._order(first)
        rows, same = self._views[first.ranks], None if mates is None else mates.of(order)
        return tested(results, risk, rows.weight[order], same, rows.guess(order))

    def _learn(self, geometry: Geometry, fold: int) -> None:
        """Learn a geometry's metric without a fold, unless it is known."""
        if (geometry, fold) in self._courses:
            return
        data, learning = self._data(geometry), self._every[self._folds != fold]
        learner = MetricLearner(
            data, learning, max(1, min(self._plan.sample, len(learning) // SHARE)), self._threads.check
        )
        plan, seed = self._plan, self._seed
        beginning = _beginning(geometry)
        if beginning != geometry:
            course = self._courses[beginning, fold]
            course = replace(course, scale=course.scale + data.distance.scale)
            self._courses[geometry, fold] = plan.begun(learner, course, seed, fold) if geometry.form else course
            return
        course = learner.beginning(plan.rng(seed, fold, 0))
        if geometry.form:
            start = geometry._replace(form=""), fold  # both forms go on from the same first steps
            if start not in self._starts:
                self._starts[start] = plan.weights(learner, course, seed, fold)
            course = plan.finished(geometry.form, learner, self._starts[start], seed, fold)
        self._courses[geometry, fold] = course

    def _judge_all(self, candidates: Sequence[Geometry], fold: int) -> None:
        self._threads.map(lambda i: self._judge(candidates[i], fold), len(candidates))

    def _judge(self, geometry: Geometry, fold: int) -> None:
        """Judge a candidate by a fold; the first one finds the step for all others."""
        data, course = self._data(geometry), self._courses[_source(geometry), fold]
        map_ = data.distance.raised(data.distance.map_of(course.values), geometry.strength)
        step = self._steps.get(geometry)
        result, step = judged(data, self._folds, fold, course, map_, self._seed, self._threads.check, step)
        self._steps.setdefault(geometry, step)
        if not self._keeps:
            result = result._replace(values=result.values[:, :0])
        self._results.setdefault(geometry, {})[fold] = result

    def _data(self, geometry: Geometry) -> MetricRows:
        return self._views[geometry.ranks]._replace(distance=DISTANCES[geometry.distance])

    def _order(self, geometry: Geometry) -> Rows:
        """Places of the rows that judged a candidate, in the order of its results."""
        return np.concatenate([np.flatnonzero(self._folds == fold) for fold in sorted(self._results[geometry])])

    def _share(self, geometry: Geometry) -> Floats:
        """Share (rows,) of each row in means over the rows that judged a candidate, in the order of its results."""
        weight = self._views[geometry.ranks].weight[self._order(geometry)]
        return np.asarray(weight / weight.sum())

    def _joined(self, geometry: Geometry) -> Floats:
        """Results (2, rows) of a candidate by all folds that judged it."""
        results = self._results[geometry]
        return np.hstack([results[fold].losses for fold in sorted(results)])

    def _values(self, geometry: Geometry) -> Floats:
        """Values (rows, problems) that a candidate gives to all rows that judged it, in the order of its results."""
        results = self._results[geometry]
        return np.concatenate([results[fold].values for fold in sorted(results)])

    def _mean(self, geometry: Geometry) -> Floats:
        """Mean loss and error (2,) of a candidate by all folds that judged it."""
        return np.asarray(self._joined(geometry) @ self._share(geometry))


def first_folds(rows: int) -> tuple[int, ...]:
    """The folds of so many rows that judge all candidates."""
    return FIRST if rows > FEW_ROWS else FIRST + LAST


def weaker(geometry: Geometry) -> list[Geometry]:
    """Geometries that differ by a weaker metric alone."""
    if geometry.form != "diag":
        return []
    powers = [power for power in STRENGTHS if power < geometry.strength]
    return [geometry._replace(strength=p) if p else geometry._replace(form="", strength=1.0) for p in powers]


def kind(geometry: Geometry) -> Geometry:
    """A geometry's distance, view and form alone: weights of all powers, 0 among them, are of one kind."""
    return geometry._replace(form=geometry.form or "diag", strength=1.0)


def _beginning(geometry: Geometry) -> Geometry:
    """The geometry that the learning of a metric begins with: itself, or that of another distance."""
    return geometry._replace(distance=DISTANCES[geometry.distance].begins or geometry.distance)


def _source(geometry: Geometry) -> Geometry:
    """The geometry whose metric, as it was learned, is that of a candidate before it is raised to a power."""
    return geometry._replace(strength=1.0)
