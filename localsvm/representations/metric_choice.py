"""Chooses the geometry of rows by rows that it did not see: the Euclidean one stays unless another is clearly better.

A geometry is a distance, a view of the columns, and a learned metric of some form and strength. Candidates are learned
without a fold of the rows and judged by it; what is hopeless on the first one costs no more.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from localsvm.data.blocks.dealing import Mates, folds_of_groups
from localsvm.representations.distances import DISTANCES
from localsvm.representations.metric import Geometry
from localsvm.representations.metric_judging import CELL, FOLDS
from localsvm.representations.metric_learning import Course, Floats, LearningPlan, learning_bytes
from localsvm.representations.metric_rows import MetricRows
from localsvm.representations.metric_tests import NONE_TRIED, Choice
from localsvm.representations.metric_trial import STRENGTHS, Trial, first_folds, kind, weaker
from localsvm.threads import Threads

RISK = 0.05  # of leaving the first geometry without a reason
FEW = 2  # learned metrics that go on
MEANS = 5  # arrays of as many values as those of a candidate, while means are judged


@dataclass(frozen=True)
class Options:
    """Geometries that may be chosen.

    Attributes
    ----------
    distances, views : whether rows have ranks; the first of each is of the geometry that stays unless another is
        better.
    matrix_columns : of a view, ranks among them, up to which a full metric is tried for the Euclidean distance; 0 for
        none.
    members : geometries that are wanted at most.
    partners : these are of different distances, and such that a mean is better than the best one alone; else of
        different kinds, and all better than the first.
    """

    distances: tuple[str, ...] = ("euclidean",)
    views: tuple[bool, ...] = (False,)
    matrix_columns: int = 256
    members: int = 1
    partners: bool = False

    @property
    def keeps(self) -> bool:
        """Whether the values of judged rows are needed, for means of them."""
        return self.partners and self.members > 1

    def widest_matrix(self, columns: int) -> int:
        """Columns that a matrix has at most, for rows of so many columns without ranks; 0 where none is tried."""
        most = self.matrix_columns
        return min(most, columns * (1 + any(self.views))) if columns <= most else 0

    @property
    def plain(self) -> list[Geometry]:
        """Geometries without a learned metric whose learning begins with no other one's, the first one first."""
        distances = [each for each in self.distances if each not in self.further]
        return [Geometry(distance, ranks) for ranks in self.views for distance in distances]

    @property
    def further(self) -> list[str]:
        """The other distances: those whose learning begins with one of these."""
        return [each for each in self.distances if DISTANCES[each].begins in self.distances]


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
    trial = Trial(views, folds, plan, seed, threads, options.keeps)
    hopeful, mixed, tries = _first_judged(trial, options)
    best = trial.weakest(trial.fewest(hopeful), hopeful)
    # large residuals make tests of values weak: a risk that candidates shared left good ones out, by 1.5 % of the RMSE
    risk = RISK if views[first.ranks].values else RISK / tries
    # what is compared below was judged by the first folds alone, until the tests
    others = trial.others(first, mixed) if members > 1 and not options.partners else []
    rivals = trial.rivals(first, best) if options.keeps else []
    choice = trial.tested(first, best, risk, mates)
    others += trial.partners(choice.geometry, rivals, first, risk, mates)
    several = [choice.geometry, *(each for each in others if kind(each) != kind(choice.geometry))][:members]
    labels = tuple(each.label for each in several) if members > 1 else ()
    return replace(choice, members=labels), {each.label: trial.course(each) for each in several if each.form}


def _first_judged(trial: Trial, options: Options) -> tuple[list[Geometry], list[Geometry], int]:
    """What the first folds leave: candidates with hope, those that members are found among; and how many it judged."""
    first = options.plain[0]
    learned = trial.learned(options.plain, options.matrix_columns)
    ordered = trial.ordered(learned)
    tried = ordered[:FEW] + [weak for each in ordered[:FEW] for weak in weaker(each) if weak != first]
    hopeful = trial.hopeful(trial.weakened(ordered[:FEW], tried))
    further = trial.further(first, learned, options.further)
    hopeful = trial.hopeful(hopeful + further)
    return hopeful, ordered[: options.members] + further, len({*learned, *tried, *further})


def choosing_bytes(
    rows: int, columns: int, options: Options, dense: bool, plan: LearningPlan, threads: int, outputs: int = 1
) -> int:
    """Bytes that `choose` holds at most, beside all rows.

    It holds the rows in each view, and where means are judged, the values of the rows that judge: of each candidate,
    and MEANS times while they are compared. A candidate at work holds what is learned, or the rows that are mapped to
    be judged and a cell of them.

    rows, columns : that may be looked at; columns without ranks, of which each may have one.
    outputs : values of a row.
    """
    powers = (FEW + options.partners) * len(STRENGTHS)  # a rival of another distance has weaker ones, too
    candidates = 1 + 2 * len(options.plain) + powers + (2 + len(STRENGTHS)) * len(options.further)
    judging_rows = rows * len(first_folds(rows)) // FOLDS
    judged = 8 * (candidates + MEANS) * outputs * judging_rows if options.keeps else 0
    views = 4 * rows * columns * (1 + 2 * any(options.views)) if dense else 0
    matrix = options.widest_matrix(columns)
    columns *= 1 + any(options.views)
    learning = learning_bytes(rows - rows // FOLDS, columns, matrix, plan.sample, outputs)
    cell = min(rows, CELL)
    judging = 16 * cell * (cell + columns) + (12 * rows * columns if dense else 0)
    return views + judged + threads * max(learning, judging)
