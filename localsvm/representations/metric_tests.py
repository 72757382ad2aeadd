"""Tests of geometries by the losses of the same rows: the first one stays unless another is clearly better."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from localsvm.data.blocks.dealing import Mates
from localsvm.representations.metric import EUCLIDEAN, Geometry
from localsvm.representations.metric_learning import Floats

MANY = 300  # degrees of freedom: with more, Student's distribution is the normal one within a hundredth
WORSE = 0.5  # z of the error that a geometry of a clearly smaller loss may have


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


def tested(
    results: Mapping[Geometry, Floats], risk: float, weight: Floats, mates: Mates | None = None,
    guess: Floats | None = None,
) -> Choice:  # fmt: skip
    """Choose the second of two geometries, if tests find it better than the first.

    A one-sided paired test over the rows has to find its loss smaller, by the normal distribution, or by Student's
    where few rows or groups judge. Its share of wrong rows must not be larger by WORSE standard errors. The loss tells
    geometries apart by fewer rows than the error does; but where nearly all rows are right, it can fall without any
    gain. Nor is it a gain to guess where the first geometry learns noise by heart: the loss has to be smaller than that
    of guessing, too, by the same test.

    Parameters
    ----------
    results : of both (2, rows), what `judged` gives.
    risk : the level of the test, at which the first geometry is left without a reason.
    weight : (rows,)
    mates : which rows stay together; they count as much as one row of their weight. None where none do.
    guess : (rows,) the loss of guessing; None where it does not matter.
    """
    share = weight / weight.sum()
    first, best = results
    mean, better = results[first] @ share, results[best] @ share
    z = paired(results[best] - results[first], share, mates)
    units = len(weight) if mates is None else len(np.unique(mates.number))
    bound = (_quantile(risk, units - 1), WORSE)
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
