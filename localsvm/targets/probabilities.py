"""Probabilities of classes from decision values; `calibrating` finds the numbers in them.

In each cell and problem a sigmoid makes log odds of a decision value, z = slope f + intercept; one curve of the whole
run bends them; the mean over a problem's fold models is its probability. With many classes, the probabilities of
all-vs-all problems are coupled, those of one-vs-all problems are taken as they are, and two powers of the whole run
weigh the classes against each other. docs/probabilities.md has the formulas.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from localsvm.targets.base import Values
from localsvm.targets.classification import Classification

KIND = "sigmoids"
SMALLEST = 1e-9  # a probability of a problem or class before the powers, so that its logarithm is finite
SMALLEST_OF_PAIR = 1e-7  # as in LIBSVM
COUPLED_FLOATS = 1 << 20  # of the matrices of coupling that are in memory together


@dataclass(frozen=True)
class Calibration:
    """Numbers that make probabilities of decision values.

    Attributes
    ----------
    sigmoids : (cells, problems, 2) float64, slope and intercept of the log odds that decision values stand for.
    curve : (knots, 2) float64, such log odds, ascending, and what they are bent to; without knots they stay.
    powers : (2,) float64, a and b: class k of many has a share p_k^a (1 - p_k)^-b.
    """

    sigmoids: Values
    curve: Values
    powers: Values

    @classmethod
    def from_state(cls, arrays: Mapping[str, NDArray[Any]]) -> Self:
        """Make it from the arrays that the model file keeps."""
        return cls(arrays["sigmoids"], arrays["curve"], arrays["powers"])

    def state(self) -> dict[str, NDArray[Any]]:
        """The arrays that the model file keeps."""
        return {"sigmoids": self.sigmoids, "curve": self.curve, "powers": self.powers}

    @property
    def kept(self) -> tuple[str, dict[str, NDArray[Any]]]:
        """Kind and arrays of the calibration, as the model file keeps them."""
        return KIND, self.state()

    def describe(self) -> dict[str, Any]:
        """Entries of a summary about it, as JSON can hold them."""
        return {"sigmoids": self.sigmoids[..., 0].size, "knots": len(self.curve), "powers": self.powers.tolist()}

    def in_cell(self, target: Classification, cell: int) -> CellProbabilities:
        """Target that a cell's predictor is given: its values are then probabilities of problems."""
        return CellProbabilities(target.labels, target.scheme, sigmoids=self.sigmoids[cell], curve=self.curve)

    def of_classes(self, target: Classification, p: Values) -> Values:
        """Probabilities (n, classes) float64 that sum to 1, from those (n, problems) of the positive classes."""
        if len(target.labels) == 2:
            return np.column_stack([1.0 - p[:, 0], p[:, 0]])
        return np.exp(log_shares(self.powers, *logarithms(one_a_class(target, p))))


@dataclass(frozen=True)
class CellProbabilities(Classification):
    """Problems whose values are probabilities: of the positive class, among the two sides of the problem.

    Attributes
    ----------
    sigmoids, curve : (problems, 2) of the cell, and the run's; see Calibration.
    """

    sigmoids: Values = field(kw_only=True)
    curve: Values = field(kw_only=True)

    def combine(self, values: Values, problem: NDArray[np.generic]) -> Values:
        """The mean probability over a problem's models; one half where it has none, as neither class occurs.

        The models were calibrated one by one, hence the mean of probabilities, and not of decision values: that would
        be less spread than the held-out values, which are those of one fold model each.
        """
        problem = problem.astype(np.intp)
        from scipy.special import expit  # which predictions of labels go without: it takes long to import

        p = expit(bent(self.curve, self.sigmoids[problem, 0] * values + self.sigmoids[problem, 1]))
        models = np.bincount(problem, minlength=self.n_problems)
        out = np.zeros((len(values), self.n_problems))
        for m, k in enumerate(problem):
            out[:, k] += p[:, m]
        return np.where(models > 0, out / np.maximum(models, 1), 0.5)


def bent(curve: Values, z: Values) -> Values:
    """Log odds shifted along the curve, whose shift is straight from knot to knot, and constant outside."""
    return z + np.interp(z, curve[:, 0], curve[:, 1]) if len(curve) else z


def one_a_class(target: Classification, p: Values) -> Values:
    """Probabilities (n, classes), not yet adding up to 1 for ova, from those of the problems."""
    if target.scheme == "ova":
        return p
    block = max(1, COUPLED_FLOATS // len(target.labels) ** 2)
    parts = [coupled(target, p[first : first + block]) for first in range(0, len(p), block)]
    return np.concatenate(parts or [np.zeros((0, len(target.labels)))])


def coupled(target: Classification, p: Values) -> Values:
    """Probabilities (n, classes) that agree best with those of the pairs (n, pairs).

    They minimise sum_i sum_{j != i} (r_ji p_i - r_ij p_j)^2 over the p that sum to 1, r_ij the probability of i among i
    and j: the second approach of Wu, Lin and Weng 2004, which LIBSVM takes too, by its linear system.
    """
    k = len(target.labels)
    low, high = np.asarray(target.pairs).T
    r = np.zeros((len(p), k, k))
    r[:, high, low] = np.clip(p, SMALLEST_OF_PAIR, 1.0 - SMALLEST_OF_PAIR)
    r[:, low, high] = 1.0 - r[:, high, low]
    system = np.ones((len(p), k + 1, k + 1))
    system[:, k, k] = 0.0
    system[:, :k, :k] = -np.swapaxes(r, 1, 2) * r
    classes = np.arange(k)
    system[:, classes, classes] = (r**2).sum(axis=1)
    right = np.zeros((len(p), k + 1, 1))
    right[:, k] = 1.0
    return np.asarray(np.linalg.solve(system, right)[:, :k, 0].clip(0.0, 1.0))


def logarithms(p: Values) -> tuple[Values, Values]:
    """Logarithms of p and of 1 - p, of p kept from 0 and 1."""
    p = np.clip(p, SMALLEST, 1.0 - SMALLEST)
    return np.log(p), np.log1p(-p)


def log_shares(powers: Values, log_p: Values, log_rest: Values) -> Values:
    """Logarithms (n, classes) of the probabilities in the proportions p^a (1 - p)^-b."""
    from scipy.special import log_softmax

    return np.asarray(log_softmax(powers[0] * log_p - powers[1] * log_rest, axis=1))
