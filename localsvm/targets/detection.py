"""Detection: two classes, of which false alarms are bounded, by a path of classifiers from careful to keen.

One label raises an alarm, the larger one unless the user says otherwise; rows of the other label are quiet. One problem
is solved for each of some weights of the alarm's rows, and the path goes from "never an alarm" through their decision
functions, by ascending weights:

    f_0 = -1,   f_1, ..., f_P above 0 for an alarm,   f_p = (k + 1 - p) f_k + (p - k) f_(k+1)  for k <= p <= k + 1.

Held-out rows count the false alarms and the missed rows along the path. A bound is promised by tests in a fixed order,
from the careful end on until the first one fails: whether false alarms are above the bound, by the upper limit of
Clopper and Pearson. So no correction for many tests is needed, and all places that pass keep the bound together with
a probability of CONFIDENCE (Angelopoulos, Bates, Candes, Jordan and Lei: Learn then test, 2021; for thresholds Tong,
Feng and Li: Neyman-Pearson classification algorithms and NP receiver operating characteristics, 2018). Of these, the
one is chosen that misses the fewest rows; among places that miss as many within a standard error the last one, as the
bound allows its false alarms, and few rows of the alarm say little.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from localsvm.errors import DataError, OptionError
from localsvm.naming import opt
from localsvm.targets.base import Observed, Values
from localsvm.targets.classification import Classification
from localsvm.targets.held_out import HeldOut

NPL = "npl"  # the score that chooses by a bound
KIND = "front"
CONFIDENCE = 0.95  # of a promise
USUAL_BOUND = 0.02  # of a front without one: how far its weights reach
MOST_WEIGHTS = 11
STEPS = 10  # places on the path from one weight to the next


@dataclass(frozen=True)
class Detection(Classification):
    """The problems of two classes, one for each weight of the label that raises an alarm.

    Attributes
    ----------
    weights : ascending, with 1 among them. Costs are multiplied by w and 1, or by 1 and 1 / w where w is above 1: none
        grows, so that solutions take no longer.
    alarm : the number of the label that raises an alarm, 0 or 1.
    place : where on the path decisions are made, from 0 to the number of weights; None for that of the weight 1.
    """

    weights: tuple[float, ...] = field(kw_only=True)
    alarm: int = field(default=1, kw_only=True)
    place: float | None = field(default=None, kw_only=True)

    @property
    def pairs(self) -> list[tuple[int, int]]:
        """Pairs of classes: every problem is about the same two."""
        return [(0, 1)] * len(self.weights)

    @property
    def problems(self) -> list[tuple[float | None, float]]:
        """The two labels: what is shown is one decision value."""
        return [(float(self.labels[0]), float(self.labels[1]))]

    @property
    def problems_a_row(self) -> int:
        """All problems."""
        return len(self.weights)

    @property
    def choices(self) -> int:
        """One for each weight, by its own loss."""
        return len(self.weights)

    @property
    def plain(self) -> int:
        """Number of the problem of weight 1."""
        return self.weights.index(1.0)

    @property
    def at(self) -> float:
        """Place on the path where decisions are made."""
        return self.plain + 1.0 if self.place is None else self.place

    def factors(self, y: Values) -> Values:
        """Factors (n, problems) on C and on the loss."""
        w = np.asarray(self.weights)
        return np.asarray(np.where(self.alarming(y)[:, None], np.minimum(w, 1.0), 1.0 / np.maximum(w, 1.0)))

    def alarming(self, y: Values) -> NDArray[np.bool_]:
        """Whether rows of the labels y (n,) should raise an alarm: (n,)."""
        return np.asarray(y == self.labels[self.alarm])

    def wrong(self, values: Values, y: Values, Y: Values, weight: Values) -> tuple[Values, Values]:
        """Weight of the rows that each problem decides wrongly, by its factors; the tie is its hinge loss."""
        wrong, hinge = np.empty((2, len(values), self.n_problems))
        factors, positive = self.factors(y), y == self.labels[1]
        for p, target in enumerate(Y.T):
            own, decided = weight * factors[:, p], values[:, p]
            wrong[:, p] = [point @ own for point in (decided > 0) != positive]
            hinge[:, p] = [point @ own for point in np.minimum(np.maximum(1.0 - decided * target, 0.0), 2.0)]
        return wrong, hinge

    def by_class(self, values: Values, y: Values, weight: Values) -> tuple[Values, Values]:
        """Nothing: which class is wrong how often is what the weights trade."""
        return np.empty(0), np.empty(0)

    def mass(self, y: Values, weight: Values) -> Values:
        """Weight (problems,) of all rows, by the factors of each."""
        return np.asarray([(weight * factor).sum() for factor in self.factors(y).T])

    def loss(self, wrong: Values, mass: Values) -> Values:
        """The share of wrong rows, the mean over the weights."""
        return np.asarray((wrong / mass).mean(axis=1))

    def counted(self, wrong: Values, mass: Values) -> tuple[float, float]:
        """Weights of the wrong rows and of all rows in the problem of weight 1."""
        return float(wrong[self.plain]), float(mass[self.plain])

    def on_path(self, values: Values, place: float) -> Values:
        """Values (n,) at a place of the path, above 0 for an alarm, from those of the problems (n, problems)."""
        k, sign = min(math.floor(place), len(self.weights) - 1), 1.0 if self.alarm else -1.0
        before = sign * values[:, k - 1] if k else np.full(len(values), -1.0)
        return np.asarray((k + 1 - place) * before + (place - k) * sign * values[:, k])

    def shown(self, values: Values) -> Values:
        """Decision values (n, 1) where decisions are made, above 0 for the larger label."""
        return (1.0 if self.alarm else -1.0) * self.on_path(values, self.at)[:, None]

    def decide(self, values: Values) -> Values:
        """Labels (n,): an alarm above 0 on the path."""
        alarm = self.on_path(values, self.at) > 0
        return np.asarray(np.where(alarm, self.labels[self.alarm], self.labels[1 - self.alarm]))

    def weight_at(self, place: float) -> float:
        """Weight at a place, geometrically between those on both sides of it; 0 where there is hardly an alarm."""
        if place < 1.0:
            return 0.0
        return float(np.exp(np.interp(place, np.arange(1, len(self.weights) + 1), np.log(self.weights))))


def weights_for(
    observed: Observed, costs: Mapping[float, float], bound: float | None, alarm: int = 1
) -> tuple[float, ...]:  # fmt: skip
    """Weights of the label that raises an alarm: powers of a whole number, as many as reach the ends, 11 at most.

    The weight w decides where the likelihoods of the classes are in the ratio t = r / w, for r quiet rows a row of the
    alarm. Quiet rows are beyond t with a probability below 1 / t (Markov), so weights from r times the bound reach it.
    At the other end as few rows of the alarm are missed.

    Parameters
    ----------
    costs : factors on C by label.
    bound : of false alarms; None for a front without.
    alarm : see `Detection`.
    """
    rows = [n * costs.get(label, 1.0) for label, n in zip(observed.labels.tolist(), observed.class_rows, strict=True)]
    ratio = rows[1 - alarm] / rows[alarm]
    reach = USUAL_BOUND if bound is None else bound
    least, most = math.log(min(1.0, ratio * reach)), math.log(max(1.0, ratio / reach))
    step = 2
    while (ends := _ends(least, most, step))[1] - ends[0] >= MOST_WEIGHTS:
        step += 1
    return tuple(float(step) ** k for k in range(ends[0], ends[1] + 1))


def _ends(least: float, most: float, step: int) -> tuple[int, int]:
    return math.floor(least / math.log(step) + 1e-9), math.ceil(most / math.log(step) - 1e-9)


def rows_for(bound: float) -> int:
    """The fewest quiet rows that can promise a bound: none of them is a false alarm then."""
    return math.ceil(math.log(1.0 - CONFIDENCE) / math.log1p(-bound) - 1e-9)


@dataclass(frozen=True)
class Front:
    """False alarms and missed rows along the path of a detection, of held-out rows.

    Rows that stand for c_i rows each, by their weights or as copies, are (sum c)^2 / sum c^2 independent ones.

    Attributes
    ----------
    rows : (2,) float64, how many independent quiet held-out rows there are, and how many that should raise an alarm.
    false_alarms, missed : (places,) float64, how many of them are decided wrongly at each place.
    """

    rows: Values
    false_alarms: Values
    missed: Values

    @classmethod
    def of(cls, target: Detection, held: HeldOut, repeats: int = 1) -> Self:
        """Count held-out rows; each is in as many cells as there are repeats."""
        places = cls.places(len(target.weights))
        rows, squares, wrong = np.zeros(2), np.zeros(2), np.zeros((2, len(places)))
        for i in range(len(held.sizes)):
            values, y, count = held.cell(i)
            f, wanted = values.T.astype(np.float64), target.alarming(y)
            rows += count[~wanted].sum(), count[wanted].sum()
            squares += np.square(count[~wanted]).sum(), np.square(count[wanted]).sum()
            for j, place in enumerate(places.tolist()):
                alarm = target.on_path(f, place) > 0
                wrong[:, j] += count[alarm & ~wanted].sum(), count[~alarm & wanted].sum()
        alike = rows / np.where(squares > 0.0, squares, 1.0)  # of rows that stand for c rows each: 1 / c
        return cls(rows * alike / repeats, *(wrong * alike[:, None] / repeats))

    @staticmethod
    def places(weights: int) -> Values:
        """Places (STEPS * weights + 1,) where so many weights are counted."""
        return np.arange(STEPS * weights + 1) / STEPS

    @classmethod
    def from_state(cls, arrays: Mapping[str, NDArray[Any]]) -> Self:
        """Make it from the arrays that the model file keeps."""
        return cls(arrays["rows"], arrays["false_alarms"], arrays["missed"])

    def state(self) -> dict[str, NDArray[Any]]:
        """The arrays that the model file keeps."""
        return {"rows": self.rows, "false_alarms": self.false_alarms, "missed": self.missed}

    @property
    def limits(self) -> Values:
        """Upper limits (places,) of the shares of false alarms, each with a probability of CONFIDENCE."""
        from scipy.special import betaincinv

        n, k = self.rows[0], np.minimum(self.false_alarms, self.rows[0])
        return np.asarray(np.where(k < n, betaincinv(k + 1.0, np.maximum(n - k, 1e-9), CONFIDENCE), 1.0))

    def choose(self, bound: float) -> float:
        """The last place that misses the fewest rows within a standard error, of those that keep a bound; see above.

        OptionError unless the bound is between 0 and 1; DataError where so few rows cannot promise it.
        """
        check_bound(bound)
        passed = self.limits <= bound
        count = len(passed) if passed.all() else int(passed.argmin())
        if not count:
            raise too_few(self.rows[0], bound)
        missed, rows = self.missed[:count], self.rows[1]
        fewest = float(missed.min())
        error = math.sqrt(max(1.0, fewest) * max(0.0, 1.0 - fewest / rows))
        return float(np.flatnonzero(missed <= fewest + error)[-1]) / STEPS


@dataclass(frozen=True)
class Detected:
    """A detection whose held-out rows were counted.

    Attributes
    ----------
    target : decides at the place that was chosen, or at the weight 1.
    front : of its path.
    bound : of false alarms, that the choice keeps; None where nothing was chosen.
    """

    target: Detection
    front: Front
    bound: float | None

    @classmethod
    def of(cls, target: Detection, front: Front, bound: float | None) -> Self:
        """The detection that keeps a bound.

        DataError where no held-out row of a label counts; and what `Front.choose` raises.
        """
        alarm = target.alarm
        for label, rows in zip(target.labels[[1 - alarm, alarm]].tolist(), front.rows.tolist(), strict=True):
            if not rows:
                what = f"no held-out row of the label {label:g} is new to the metric, and says what is detected"
                raise DataError(f"{what}; give more rows, or {opt.metric('none')}")
        place = None if bound is None else front.choose(bound)
        return cls(replace(target, place=place), front, bound)

    def keeping(self, bound: float) -> Detected:
        """Choose again, for another bound."""
        return self.of(self.target, self.front, bound)

    def describe(self) -> dict[str, Any]:
        """Entries of a summary about it, as JSON can hold them: shares of held-out rows."""
        weights = range(1, len(self.target.weights) + 1)
        rows = dict(zip(("quiet", "alarm"), self.front.rows.tolist(), strict=True))
        front = [self._point(float(place)) for place in weights]
        told = {"alarm": float(self.target.labels[self.target.alarm]), "bound": self.bound, "rows": rows}
        return told | {"chosen": self._point(self.target.at), "front": front}

    def _point(self, place: float) -> dict[str, float]:
        j = round(place * STEPS)
        false_alarms, missed = (
            self.front.false_alarms[j] / self.front.rows[0],
            self.front.missed[j] / self.front.rows[1],
        )
        return {
            "weight": self.target.weight_at(place), "false_alarms": float(false_alarms),
            "limit": float(self.front.limits[j]), "detected": 1.0 - float(missed),
        }  # fmt: skip


def check_bound(bound: float) -> None:
    """Raise OptionError unless a bound of false alarms is between 0 and 1."""
    if not 0.0 < bound < 1.0:
        raise OptionError(f"{opt.false_alarm} must be a share between 0 and 1, as 0.05, not {bound:g}")


def too_few(rows: float, bound: float) -> DataError:
    """The error of so few quiet rows that a bound cannot be promised."""
    return DataError(
        f"{rows:,.0f} held-out rows that should raise no alarm cannot promise {opt.false_alarm(bound)}, which takes "
        f"{rows_for(bound):,}; give more rows, or a larger bound"
    )
