"""Losses of values: their formulas, their best constants, and the dual problem that they are conjugate to."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq, minimize_scalar

from localsvm.solvers.pinball import quantile
from localsvm.targets.loss_names import (
    ABSOLUTE,
    EXPECTILE,
    HUBER,
    INSENSITIVE,
    LEAST_SQUARES,
    LEVELLED,
    LOSSES,
    QUANTILE,
    SQUARED_INSENSITIVE,
)
from localsvm.targets.losses import Loss

SQUARES = (LEAST_SQUARES, EXPECTILE, SQUARED_INSENSITIVE)  # losses without bounds of the coefficients
LEVELS = (0.05, 0.5, 0.8)
SOME = [Loss(name, level, 0.3) for name in LOSSES for level in (LEVELS if name in LEVELLED else (0.5,))]

FORMULAS: dict[str, Callable[[float, float, float], float]] = {
    LEAST_SQUARES: lambda r, tau, eps: r * r,
    QUANTILE: lambda r, tau, eps: max(tau * r, (tau - 1.0) * r),
    EXPECTILE: lambda r, tau, eps: tau * max(r, 0.0) ** 2 + (1.0 - tau) * max(-r, 0.0) ** 2,
    ABSOLUTE: lambda r, tau, eps: max(r, -r),
    INSENSITIVE: lambda r, tau, eps: max(0.0, r - eps, -r - eps),
    SQUARED_INSENSITIVE: lambda r, tau, eps: max(0.0, r - eps, -r - eps) ** 2,
    HUBER: lambda r, tau, eps: r * r if -eps <= r <= eps else 2.0 * eps * max(r, -r) - eps * eps,
}


def name_of(loss: Loss) -> str:
    return f"{loss.name}-{loss.level:g}"


def weighted(seed: int, n: int = 40) -> tuple[np.ndarray, np.ndarray]:
    """Values with a long tail, far from 0, and weights."""
    rng = np.random.default_rng(seed)
    return 7.0 + rng.gamma(1.5, 2.0, n), rng.uniform(0.1, 3.0, n)


def total(loss: Loss, y: np.ndarray, weight: np.ndarray, c: float) -> float:
    return float(loss(y - c) @ weight)


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.fast(len(LOSSES))
def test_each_loss_is_its_formula(name: str) -> None:
    r = np.concatenate([np.linspace(-2.0, 2.0, 41), [0.3, -0.3, 0.0, 1e6, -1e6]])
    for loss in (each for each in SOME if each.name == name):
        expected = [FORMULAS[name](each, loss.level, loss.epsilon) for each in r.tolist()]
        np.testing.assert_allclose(loss(r), expected, rtol=1e-12, atol=1e-16)
        np.testing.assert_array_equal(loss(r.reshape(2, -1)), loss(r).reshape(2, -1))


@pytest.mark.parametrize("name", [LEAST_SQUARES, QUANTILE, EXPECTILE, ABSOLUTE])
@pytest.mark.fast(4)
def test_no_constant_is_better_than_the_best_one(name: str) -> None:
    for seed, loss in product(range(3), [each for each in SOME if each.name == name]):
        y, weight = weighted(seed)
        cost = partial(total, loss, y, weight)
        best = minimize_scalar(cost, bounds=(y.min(), y.max()), method="bounded", options={"xatol": 1e-9})
        found = loss.constant(y, weight)
        assert cost(found) <= best.fun * (1.0 + 1e-12)
        assert min(map(cost, y)) >= cost(found) * (1.0 - 1e-12)
        if name in SQUARES:
            assert found == pytest.approx(best.x, rel=1e-6)


@pytest.mark.parametrize(("name", "other"), [(INSENSITIVE, QUANTILE), (HUBER, QUANTILE), (SQUARED_INSENSITIVE, "mean")])
def test_losses_with_an_epsilon_have_the_constant_of_another(name: str, other: str) -> None:
    y, weight = weighted(9)
    expected = np.average(y, weights=weight) if other == "mean" else Loss(other, 0.5).constant(y, weight)
    assert Loss(name, epsilon=0.3).constant(y, weight) == pytest.approx(expected, rel=1e-14)


@settings(deadline=None, max_examples=100)
@given(
    rows=st.lists(st.tuples(st.integers(-9, 9), st.integers(0, 4)), min_size=1, max_size=30),
    sixteenths=st.integers(1, 15),
)
def test_a_weight_of_two_is_two_rows(rows: list[tuple[int, int]], sixteenths: int) -> None:
    """Quantiles are those of numpy, also where a level falls between two rows: the smaller value is taken."""
    y, times = np.asarray(rows, np.float64).T
    times[0] += 1.0
    repeated = np.repeat(y, times.astype(np.int64))
    expected = np.quantile(repeated, sixteenths / 16.0, method="inverted_cdf")
    assert quantile(y, times, sixteenths / 16.0) == expected
    assert quantile(repeated, np.ones(len(repeated)), sixteenths / 16.0) == expected


@pytest.mark.parametrize("level", [0.001, 0.1, 0.37, 0.9, 0.999])
def test_weighted_quantiles_are_those_of_numpy(level: float) -> None:
    y, weight = weighted(3, 200)
    assert quantile(y, weight, level) == np.quantile(y, level, weights=weight, method="inverted_cdf")


@settings(deadline=None, max_examples=100)
@given(
    y=st.lists(st.floats(-1e3, 1e3), min_size=1, max_size=30),
    level=st.floats(0.001, 0.999),
    far=st.sampled_from([0.0, 1e5]),
    seed=st.integers(0, 99),
)
def test_an_expectile_is_a_mean_with_weights_of_its_own(y: list[float], level: float, far: float, seed: int) -> None:
    values, weight = np.asarray(y) + far, np.random.default_rng(seed).uniform(0.1, 2.0, len(y))
    c = Loss(EXPECTILE, level).constant(values, weight)
    own = weight * np.abs(level - (values <= c))
    size = 1.0 + float(np.abs(values).max())
    assert c == pytest.approx(float(np.average(values, weights=own)), abs=1e-11 * size)

    def slope(t: float) -> float:
        return float(np.where(values > t, level, 1.0 - level) * weight @ (values - t))

    low, high = float(values.min()) - 1.0, float(values.max()) + 1.0
    assert c == pytest.approx(brentq(slope, low, high, xtol=1e-13), abs=1e-10 * size)


@pytest.mark.parametrize("loss", SOME, ids=name_of)
@pytest.mark.fast(len(SOME))
def test_a_loss_is_the_conjugate_of_its_dual_term(loss: Loss) -> None:
    """C loss(r) is the largest a r - term(a) over the box, as csrc/smo.h has it."""
    dual = loss.dual
    for cost in (0.2, 1.0, 5.0):
        reach = 25.0 * cost  # of the grid, where there is no bound; beyond the largest of all maximisers
        low, high = max(cost * dual.low, -reach), min(cost * dual.high, reach)
        a = np.concatenate([np.linspace(low, 0.0, 4001), np.linspace(0.0, high, 4001)])
        curved = dual.plus * np.square(np.maximum(a, 0.0)) + dual.minus * np.square(np.minimum(a, 0.0))
        term = dual.e * np.abs(a) + 0.5 * curved / cost
        r = np.linspace(-1.0, 1.0, 21) if loss.name in SQUARES else np.linspace(-3.0, 3.0, 21)
        largest = (np.multiply.outer(r, a) - term).max(axis=1)
        np.testing.assert_allclose(largest, cost * loss(r), atol=1e-4 * cost)


def test_only_two_duals_have_no_term() -> None:
    """All others have one, without which the solver would minimise the absolute loss, or nothing that is bounded."""
    assert {loss.name for loss in SOME if loss.dual.plain} == {QUANTILE, ABSOLUTE}
    assert replace(Loss(INSENSITIVE), epsilon=0.0).dual.plain
