"""Novelty detection: whether a row is of the kind of the training rows (1), or novel (-1).

One function f is learned from rows of one kind (methods/kernel/one_class.py). A row is novel unless f is above the
threshold of its cell, an order statistic of the held-out values there: of n rows the floor(nu (n + 1))-th smallest. So
a new row of this kind is called novel with a probability of nu at most, if it comes from where they came (Vovk,
Gammerman and Shafer 2005; compare targets/conformal.py). A point of a grid is the better, the fewer rows of a reference
distribution it calls normal (Steinwart, Hush and Scovel, JMLR 2005); these are made of the cell's own rows.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from localsvm.targets.base import Observed, Values
from localsvm.targets.classification import Classification
from localsvm.targets.held_out import HeldOut

KIND = "thresholds"  # of what the model file keeps
NORMAL = 1.0  # the label of all training rows
LABELS = np.asarray([-1.0, NORMAL])
ROUNDING = 1e-9  # of a rank, as a share of the rows
NOTHING = 1e-30  # a value that float32 kernels have where no row is near


@dataclass(frozen=True)
class Novelty(Classification):
    """One problem, whose rows are all of one side; the labels of the answers are -1, novel, and 1.

    Attributes
    ----------
    nu : share of new normal rows that may be called novel.
    thresholds : (cells,) float64 of f; empty where they are not known yet.
    threshold : of the cell that is asked; None where values are those of f itself.
    """

    labels: Values = field(default_factory=lambda: LABELS)
    nu: float = field(kw_only=True)
    thresholds: Values = field(default_factory=lambda: np.empty(0), kw_only=True)
    threshold: float | None = field(default=None, kw_only=True)

    @property
    def n_values(self) -> int:
        """Two: the value of the row, and that of a row which is made up, by the same model."""
        return 2

    @property
    def novel_share(self) -> float | None:
        """The share nu."""
        return self.nu

    def is_solved(self, low: float, high: float) -> bool:
        """True where there is a row: the problem has one side."""
        return high > 0.0

    def in_cell(self, cell: int) -> Novelty:
        """The target with the threshold of a cell."""
        return replace(self, threshold=float(self.thresholds[cell])) if len(self.thresholds) else self

    def guessing(self, observed: Observed) -> float | None:  # type: ignore[override]
        """None: all rows are of one kind."""
        return None

    def comparable(self, y: Values) -> NDArray[np.bool_]:
        """Mask (n,) of the labels that say what an answer should be: 1 and -1."""
        return np.isin(y, self.labels)

    def encode(self, y: Values) -> Values:
        """Ones (n, 1), whatever the labels of the rows are."""
        return np.ones((len(y), 1))

    def counts(self, y: Values) -> tuple[int, ...]:
        """Number of the rows, in one class."""
        return (len(y),)

    def strata(self, y: Values) -> Values:
        """Zeros (n,): all rows are dealt out alike."""
        return np.zeros(len(y))

    def wrong(self, values: Values, y: Values, Y: Values, weight: Values) -> tuple[Values, Values]:
        """Weight of the made-up rows that are not below the threshold, which the held-out values have; and the tie.

        values : (points, 2, n) float64, of the held-out rows and of those made up.

        The tie is the share of pairs in which the made-up row has a value as large as the other one.
        """
        found = [self._accepted(f, made, weight) for f, made in values[:, :2]]
        wrong, tie = np.asarray(found).T
        return wrong[:, None], tie[:, None]

    def _accepted(self, f: Values, made: Values, weight: Values) -> tuple[float, float]:
        threshold, total = threshold_of(f, weight, self.nu), float(weight.sum())
        order = np.argsort(f, kind="stable")
        below = np.cumsum([0.0, *weight[order]])[np.searchsorted(f[order], made, side="right")]
        # a threshold where no row is near would not be kept: such a gamma must not look like the best one
        accepted = total if 0.0 <= threshold < NOTHING else float(weight[made >= threshold].sum())
        return accepted, float(below @ weight / total**2) if total else 0.0

    def by_class(self, values: Values, y: Values, weight: Values) -> tuple[Values, Values]:
        """Nothing: there is one class."""
        return np.empty(0), np.empty(0)

    def mass(self, y: Values, weight: Values) -> Values:
        """Weight (1,) of all rows."""
        return np.asarray([weight.sum()])

    def combine(self, values: Values, problem: NDArray[np.generic]) -> Values:
        """The mean of the models' values f, less the threshold if there is one: above 0 a row is normal.

        Of the scales that were tried for cells of a few hundred rows, this plain one ranks rows of all cells best.
        """
        mean = values.sum(axis=1, keepdims=True) / max(1, values.shape[1])
        return np.asarray(mean if self.threshold is None else mean - self.threshold)


def threshold_of(f: Values, weight: Values, nu: float) -> float:
    """Threshold of held-out values f (n,), whose rows have weights: of n rows the floor(nu (n + 1))-th smallest value.

    Where that is none, since the rows are too few, it is the smallest value.
    """
    order = np.argsort(f, kind="stable")
    up_to = np.cumsum(weight[order])
    total = float(up_to[-1])
    if not total > 0.0:
        return threshold_of(f, np.ones(len(f)), nu)
    rank = nu * (total + total / len(f)) * (1.0 + ROUNDING)  # one more row, of a mean weight
    return float(f[order[max(0, int(np.searchsorted(up_to, rank, side="right")) - 1)]])


def thresholds_of(held: HeldOut, nu: float) -> tuple[Values, int]:
    """Thresholds (cells,) by held-out values, and in how many cells more than nu of the held-out rows are not above it.

    No threshold is so near to 0 that rows would be normal which are far from all others.
    """
    thresholds, broken = np.empty(len(held.sizes)), 0
    for i in range(len(thresholds)):
        values, _, count = held.cell(i)
        f = values[0].astype(np.float64)
        threshold = threshold_of(f, count, nu)
        thresholds[i] = threshold = NOTHING if 0.0 <= threshold < NOTHING else threshold
        n = float(count.sum())
        broken += float(count[f <= threshold].sum()) > nu * (n + n / len(f)) * (1.0 + ROUNDING)
    return thresholds, broken


def state_of(thresholds: Values) -> tuple[str, dict[str, NDArray[Any]]]:
    """The kind and the arrays that the model file keeps of thresholds (cells,)."""
    return KIND, {"threshold": thresholds}
