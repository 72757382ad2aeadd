"""The target of values: what it encodes, scores and decides; models of cells; and what is learned of all values."""

from __future__ import annotations

import json
from functools import reduce
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from selecting import fit, fitted, score
from sklearn.kernel_ridge import KernelRidge
from sklearn.metrics import mean_absolute_error, mean_pinball_loss, mean_squared_error
from value_cells import SQUARES, cell_of_values, examples, target_of

from localsvm.data.blocks.table import Levels, Table
from localsvm.engines.base import SOME_VALUES, Block, InOrder, ValueStatistic
from localsvm.features.encoding import Encoding
from localsvm.features.survey import SMOOTHING, TableSurvey
from localsvm.methods.cell import Cell
from localsvm.methods.kernel.svm import KernelSVM
from localsvm.representations.metric_rows import MetricRows
from localsvm.selection.tally import Tally
from localsvm.targets.base import Observed, ValueRange
from localsvm.targets.loss_names import (
    ABSOLUTE,
    EXPECTILE,
    HUBER,
    INSENSITIVE,
    LEAST_SQUARES,
    LOSSES,
    QUANTILE,
    SQUARED_INSENSITIVE,
)
from localsvm.targets.losses import Loss, usual_moments
from localsvm.targets.regression import STRATA, Regression

LEVELS = (0.1, 0.5, 0.9)
QUANTILES = tuple(Loss(QUANTILE, level) for level in LEVELS)
PLANE = ValueRange(40.0, 5.0, 25.0, 60.0)
decisions = st.lists(st.lists(st.floats(-20.0, 20.0), min_size=3, max_size=3), min_size=1, max_size=8)


# the target


@settings(deadline=None)
@given(st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=20))
def test_what_is_encoded_is_decided_again(values: list[float]) -> None:
    y = np.asarray(values)
    target = target_of(y)
    Y = target.encode(y)
    assert Y.shape == (len(y), 1)
    assert_allclose(target.decide(Y), y, atol=1e-9 * (1.0 + np.abs(y).max()))
    assert target.decide(Y).min() >= y.min() and target.decide(Y).max() <= y.max()


def test_problems_learn_values_of_mean_0_and_deviation_1() -> None:
    _, y = examples()
    target = target_of(y, QUANTILES)
    Y = target.encode(y)
    assert Y.shape == (len(y), 3) and (Y[:, :1] == Y).all()
    assert Y[:, 0].mean() == pytest.approx(0.0, abs=1e-12) and Y[:, 0].std() == pytest.approx(1.0)
    assert (target.n_problems, target.problems_a_row, target.choices, target.leaves_out) == (3, 3, 3, False)
    assert target.largest_part([5, 7]) == 0 and target.counts(y) == ()


@settings(deadline=None)
@given(decisions)
def test_levels_never_cross_and_answers_stay_in_the_range(values: list[list[float]]) -> None:
    table = np.asarray(values)
    answers = Regression(QUANTILES, PLANE).decide(table)
    assert answers.shape == table.shape
    assert (np.diff(answers, axis=1) >= 0.0).all()
    assert answers.min() >= 25.0 and answers.max() <= 60.0
    assert_allclose(answers, np.clip(np.sort(40.0 + 5.0 * table, axis=1), 25.0, 60.0))
    for p, loss in enumerate(QUANTILES):
        alone = Regression((loss,), PLANE).decide(table[:, p : p + 1])
        assert_allclose(alone, np.clip(40.0 + 5.0 * table[:, p], 25.0, 60.0))


@settings(deadline=None)
@given(decisions, st.floats(25.0, 60.0))
def test_neither_clips_nor_sorts_raise_a_loss_of_values_in_the_range(values: list[list[float]], y: float) -> None:
    table = np.asarray(values)
    crossing = 40.0 + 5.0 * table
    target, truth = Regression(QUANTILES, PLANE), np.full(len(table), y)
    after = target.scores(target.decide(table), truth).sum(axis=1)
    before = sum(loss(y - crossing[:, p]) for p, loss in enumerate(QUANTILES))
    assert (after <= before + 1e-9).all()


@pytest.mark.parametrize("n", [1, 19, 39, 40, 399, 400, 1000])
@pytest.mark.fast(7)
def test_strata_are_of_equal_sizes_and_ascend_with_the_values(n: int) -> None:
    y = np.random.default_rng(n).permutation(np.arange(n) / 7.0)
    strata = target_of(y).strata(y)
    sizes = np.unique(strata, return_counts=True)[1]
    assert len(sizes) == min(STRATA, max(1, n // STRATA))
    assert sizes.max() - sizes.min() <= 1
    assert (np.diff(strata[np.argsort(y)]) >= 0).all()


def test_equal_values_are_dealt_out_like_others() -> None:
    y = np.repeat([3.0, 1.0, 2.0], [500, 400, 100])
    sizes = np.unique(target_of(y).strata(y), return_counts=True)[1]
    assert sizes.tolist() == [50] * 20


def truth(n: int = 60) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Values, weights, and decision values (points, problems, n) of which some are out of the range."""
    rng = np.random.default_rng(1)
    return rng.uniform(25.0, 60.0, n), rng.uniform(0.1, 2.0, n), rng.normal(0.0, 3.0, (4, 3, n))


@pytest.mark.parametrize("scoring", ["mse", "r2", "mae", "pinball", ""])
@pytest.mark.fast(5)
def test_points_are_scored_in_the_units_of_the_values(scoring: str) -> None:
    """Each problem by its own level, weighted, of clipped answers; a point by the mean over the problems."""
    y, weight, values = truth()
    target = Regression(QUANTILES, PLANE, scoring)
    wrong, tie = target.wrong(values, y, target.encode(y), weight)
    mass = target.mass(y, weight)
    assert wrong.shape == (4, 3) and not tie.any()
    expected = np.empty((4, 3))
    for c, p in np.ndindex(4, 3):
        answers, own = np.clip(40.0 + 5.0 * values[c, p], 25.0, 60.0), {"sample_weight": weight}
        if scoring in ("mse", "r2"):
            expected[c, p] = mean_squared_error(y, answers, **own)
        elif scoring == "mae":
            expected[c, p] = mean_absolute_error(y, answers, **own)
        else:
            expected[c, p] = mean_pinball_loss(y, answers, alpha=LEVELS[p], **own)
    assert_allclose(wrong / mass, expected)
    assert_allclose(target.loss(wrong, mass), expected.mean(axis=1))
    assert target.error(wrong[1], mass) == pytest.approx(expected[1].mean())
    assert target.score_of_values == (scoring or "pinball")


def test_the_tally_of_blocks_is_that_of_all_rows() -> None:
    y, weight, values = truth()
    target = Regression(QUANTILES, PLANE)
    whole, parts = Tally(target), Tally(target)
    whole.add(values, y, target.encode(y), weight)
    for some in (slice(0, 10), slice(10, 60)):
        parts.add(values[:, :, some], y[some], target.encode(y[some]), weight[some])
    assert_allclose(np.asarray(parts.losses()), np.asarray(whole.losses()))
    losses = np.asarray([[pair[0] for pair in whole.of_choices(point)] for point in range(4)])
    assert_allclose(losses.mean(axis=1), [loss for loss, _ in whole.losses()])
    assert not np.allclose(losses[:, 0], losses[:, 1])


def test_the_score_fits_the_loss() -> None:
    expected = {LEAST_SQUARES: "mse", QUANTILE: "pinball", EXPECTILE: "expectile", ABSOLUTE: "mae"}
    expected |= {INSENSITIVE: "mae", SQUARED_INSENSITIVE: "mse", HUBER: "mae"}
    assert {name: Regression((Loss(name),), PLANE).score_of_values for name in LOSSES} == expected
    r = np.asarray([[-2.0], [3.0]])
    found = Regression((Loss(EXPECTILE, 0.9),), PLANE).scores(40.0 - r, np.full(2, 40.0))
    assert_allclose(found, [[0.1 * 4.0], [0.9 * 9.0]])


def test_only_squares_are_compared_with_the_variance() -> None:
    observed = Observed(9, values=PLANE)
    assert Regression(SQUARES, PLANE).guessing(observed) == 25.0
    assert Regression(QUANTILES, PLANE).guessing(observed) is None
    assert Regression(SQUARES, PLANE, "mae").guessing(observed) is None


def test_models_of_folds_answer_by_the_mean_of_their_clipped_values() -> None:
    """The range is -3 to 4 deviations from the mean, so one value of -9 and one of 9 are clipped to these."""
    values = np.asarray([[-9.0, 1.0, 0.5, 9.0, 2.0]])
    target = Regression(QUANTILES[:2], PLANE)
    assert_allclose(target.combine(values, np.asarray([0, 0, 1, 1, 1])), [[-1.0, 6.5 / 3.0]])
    assert_allclose(target.combine(values[:, 3:], np.asarray([0, 1], np.int32)), [[4.0, 2.0]])


# cells

WIDE = (0.01, 0.2, 3.0)  # gammas


def skewed() -> tuple[np.ndarray, np.ndarray]:
    """Rows whose lower quantiles hardly depend on the first feature, and the upper ones much."""
    rng = np.random.default_rng(2)
    X = rng.standard_normal((100, 3)).astype(np.float32)
    return X, 40.0 + rng.exponential(1.0, len(X)) * (0.3 + 4.0 * np.square(np.sin(2.0 * X[:, 0])))


def best_of(scores: Any) -> list[tuple[int, int]]:
    return [(pick.best.setting, pick.best.cost) for pick in scores.picks]


def svm(loss: str, levels: tuple[float, ...] = (), gamma: tuple[float, ...] = (0.02, 0.3, 2.0), **more: Any) -> Any:
    options = {"cost": (0.05, 1.0, 20.0), "tolerance": 1e-6, **more}
    return KernelSVM(loss=loss, quantile=levels, gamma=gamma, **options)


@pytest.mark.parametrize("select", ["refit", "vote"])
def test_each_level_has_the_point_and_the_model_of_a_run_of_its_own(select: str) -> None:
    X, y = skewed()
    cell = cell_of_values(X, y, losses=QUANTILES)
    method = svm(QUANTILE, LEVELS, WIDE)
    grid = method.grid(cell, float(len(y)), 4)
    scores = score(method, cell, grid)
    state = fit(method, cell, grid, scores, select).state
    decided = method.predictor(state, cell.target, X.shape[1]).decision_function(X)
    alone, losses = [], []
    for p, loss in enumerate(QUANTILES):
        own = cell_of_values(X, y, losses=(loss,))
        one = svm(QUANTILE, (loss.level,), WIDE)
        single = score(one, own, grid)
        alone += best_of(single)
        losses.append(single.loss)
        model = one.predictor(fit(one, own, grid, single, select).state, own.target, X.shape[1])
        assert_allclose(decided[:, p], model.decision_function(X)[:, 0], atol=2e-3)
        assert scores.picks[p].best.loss == pytest.approx(float(np.nanmin(single.loss)))
    assert best_of(scores) == alone
    assert len(set(alone)) == 3, "else the levels might share a point"
    assert_allclose(scores.table(3), np.mean(losses, axis=0), rtol=1e-3)


def test_levels_are_chosen_whatever_order_the_settings_are_scored_in() -> None:
    cell = cell_of_values(*skewed(), losses=QUANTILES)
    method = svm(QUANTILE, LEVELS, WIDE)
    grid = method.grid(cell, 100.0, 4)
    whole = score(method, cell, grid)
    parts = [score(method, cell, grid, [i]) for i in (2, 0, 1)]
    merged = parts[0].merge(parts[1]).merge(parts[2])
    assert best_of(merged) == best_of(whole)
    assert_allclose(merged.loss, whole.loss)
    assert [pick.kept is None for pick in merged.unkept.picks] == [True] * 3


@pytest.mark.parametrize("weighted", [False, True])
def test_least_squares_are_kernel_ridge_regression_of_centred_values(weighted: bool) -> None:
    X, y = examples(110, seed=2)
    weight = np.random.default_rng(3).choice([1.0, 2.0, 4.0], len(y)) if weighted else np.ones(len(y))
    for gamma, cost in ((0.05, 30.0), (1.0, 0.2)):
        cell = cell_of_values(X, y, weight=weight)
        method = svm(LEAST_SQUARES, gamma=(gamma,), cost=(cost,), tolerance=1e-7)
        predictor, _ = fitted(method, cell)
        mean = np.average(y, weights=weight)
        ridge = KernelRidge(kernel="rbf", gamma=gamma, alpha=0.5 / cost).fit(X, y - mean, sample_weight=weight)
        new = np.random.default_rng(4).standard_normal((50, 3)).astype(np.float32)
        answers = cell.target.decide(predictor.decision_function(new))
        assert_allclose(answers, np.clip(mean + ridge.predict(new), y.min(), y.max()), atol=0.02)


def held_out_by_hand(cell: Cell, gamma: float, cost: float) -> np.ndarray:
    """Values of all rows by kernel ridge regression without their folds, in units of the values."""
    values = np.empty(len(cell.y))
    for fold in range(cell.n_folds):
        held = cell.held_out(fold)
        kept = np.delete(np.arange(len(values)), np.arange(len(values))[held])
        mean = cell.y[kept].mean()
        ridge = KernelRidge(kernel="rbf", gamma=gamma, alpha=0.5 / cost).fit(cell.X[kept], cell.y[kept] - mean)
        values[held] = mean + ridge.predict(cell.X[held])
    return np.clip(values, cell.y.min(), cell.y.max())


def test_the_grid_is_scored_by_values_that_are_held_out() -> None:
    cell = cell_of_values(*examples(120, seed=5))
    method = svm(LEAST_SQUARES)
    grid = method.grid(cell, 120.0, 4)
    scores = score(method, cell, grid)
    expected = [
        [mean_squared_error(cell.y, held_out_by_hand(cell, gamma, cost)) for cost in (0.05, 1.0, 20.0)]
        for gamma in (0.02, 0.3, 2.0)
    ]
    assert_allclose(scores.loss, expected, rtol=2e-3)
    kept = scores.picks[0].kept
    assert kept is not None and kept.values is not None
    by_hand = held_out_by_hand(cell, *((0.02, 0.3, 2.0)[scores.best.setting], (0.05, 1.0, 20.0)[scores.best.cost]))
    assert_allclose(cell.target.decide(kept.values.T), by_hand, atol=0.05)


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.fast(len(LOSSES))
def test_each_loss_learns_and_a_vote_is_near_a_refit(name: str) -> None:
    X, y = examples(150, seed=6)
    cell, (new, truth) = cell_of_values(X, y, losses=(Loss(name),)), examples(400, seed=7)
    method, errors = svm(name, tolerance=1e-3), []
    for select in ("refit", "vote"):
        predictor, state = fitted(method, cell, select)
        assert len(state["model_fold"]) == (1 if select == "refit" else 4)
        answers = cell.target.decide(predictor.decision_function(new))
        errors.append(np.abs(answers - truth).mean())
    assert max(errors) < 0.6 * np.abs(truth - np.median(y)).mean()
    assert errors[1] == pytest.approx(errors[0], rel=0.25)


def test_far_from_all_rows_the_answer_is_the_constant_of_the_loss() -> None:
    X, y = examples(100, seed=8)
    far = np.full((1, 3), 1e4, np.float32)
    cell = cell_of_values(X, y, losses=QUANTILES)
    predictor, _ = fitted(svm(QUANTILE, LEVELS, gamma=(1.0,), cost=(1.0,)), cell)
    answers = cell.target.decide(predictor.decision_function(far))
    assert_allclose(answers[0], np.quantile(y, LEVELS, method="inverted_cdf"), rtol=1e-6)
    cell = cell_of_values(X, y)
    predictor, _ = fitted(svm(LEAST_SQUARES, gamma=(1.0,), cost=(1.0,)), cell)
    assert_allclose(cell.target.decide(predictor.decision_function(far)), y.mean(), rtol=1e-6)


def test_an_epsilon_is_in_the_units_of_the_values() -> None:
    """Rows nearer than epsilon to their answers are no support vectors, and rows farther away are."""
    X, y = examples(120, seed=9)
    cell, support = cell_of_values(X, y, losses=(Loss(INSENSITIVE),)), []
    for epsilon in (0.5, 3.0):
        predictor, state = fitted(svm(INSENSITIVE, gamma=(0.3,), cost=(1.0,), epsilon=(epsilon,)), cell)
        r = np.abs(cell.y - y.mean() - y.std() * predictor.decision_function(cell.X)[:, 0])
        support.append(len(state["support"]))
        assert np.count_nonzero(r > epsilon * 1.01) <= support[-1] <= np.count_nonzero(r > epsilon * 0.99)
    assert 0 < support[1] < support[0] / 2


def test_cross_validation_chooses_an_epsilon() -> None:
    cell = cell_of_values(*examples(120, seed=9), losses=(Loss(INSENSITIVE),))
    method = svm(INSENSITIVE, epsilon=(9.0, 0.5, 3.0))
    grid = method.grid(cell, 120.0, 4)
    assert grid.names == ("gamma", "epsilon") and len(grid.settings) == 9
    scores = score(method, cell, grid)
    for i, setting in enumerate(grid.settings):
        alone = svm(INSENSITIVE, gamma=setting[:1], epsilon=setting[1:])
        own = score(alone, cell, alone.grid(cell, 120.0, 4))
        assert_allclose(scores.loss[i], own.loss[0], rtol=1e-3)
    assert grid.setting(scores.best.setting)["epsilon"] < 9.0


# what is learned of all values


rows = st.lists(st.tuples(st.floats(-1e4, 1e4), st.sampled_from([0.0, 0.5, 1.0, 3.0])), max_size=12)


@settings(deadline=None)
@given(st.lists(rows, min_size=1, max_size=6), st.booleans(), st.sampled_from([0.0, 1e6]))
def test_values_of_blocks_are_merged_as_in_one_pass(parts: list[Any], weighted: bool, far: float) -> None:
    statistic, first, order = ValueStatistic(50), 0, InOrder([ValueStatistic(50)])
    for number, part in enumerate(parts):
        y, weight = np.asarray([*part, (1.0, 1.0)]).T if not number else np.asarray(part).reshape(-1, 2).T
        y = y + far
        order.add(Block(first, np.zeros((len(y), 1), np.float32), y, weight if weighted else None), number)
        first += len(y)
    y, weight = np.asarray([*parts[0], (1.0, 1.0), *(pair for part in parts[1:] for pair in part)]).T
    y, weight = y + far, weight if weighted else np.ones(len(y))
    (found,) = order.result()
    kept = weight > 0.0
    mean, size = np.average(y, weights=weight), 1.0 + float(np.abs(y).max())
    assert found[0] == np.count_nonzero(kept)
    assert found[1] == pytest.approx(weight.sum())
    assert found[2] == pytest.approx(mean, abs=1e-12 * size)
    assert found[3] == pytest.approx(weight @ (y - mean) ** 2, rel=1e-9, abs=1e-14 * size**2)
    assert (found.low, found.high) == (y[kept].min(), y[kept].max())
    assert_array_equal(found.some, np.column_stack([y, weight])[kept])
    again = statistic.merge(found, statistic.of(Block(first, np.zeros((0, 1), np.float32), np.empty(0))))
    assert again[:-2] == found[:-2]
    assert_array_equal(again.some, found.some)
    assert_array_equal(again.units, found.units)


@given(st.lists(st.integers(0, 3000), max_size=12))
def test_the_same_rows_are_drawn_however_blocks_divide_them(cuts: list[int]) -> None:
    statistic, y = ValueStatistic(2 * SOME_VALUES + 1), np.arange(3000.0)
    edges = [0, *sorted(cuts), 3000]
    blocks = [Block(a, np.zeros((b - a, 1), np.float32), y[a:b]) for a, b in pairwise(edges)]
    found = reduce(statistic.merge, map(statistic.of, blocks))
    assert_array_equal(found.some, statistic.of(Block(0, np.zeros((3000, 1), np.float32), y)).some)
    assert 900 < len(found.some) < 1100


@pytest.mark.parametrize("period", [2, 3, 24, 2048])
def test_rows_that_are_drawn_are_of_all_kinds_where_kinds_take_turns(period: int) -> None:
    n = 10 * SOME_VALUES
    found = ValueStatistic(n).of(Block(0, np.zeros((n, 1), np.float32), np.arange(n) % period))
    assert found.some[:, 0].mean() == pytest.approx((period - 1) / 2.0, rel=0.05)


MEDIAN, TAIL, SQUARE = Loss(ABSOLUTE), Loss(QUANTILE, 0.99), Loss(LEAST_SQUARES)


@pytest.mark.parametrize(
    ("losses", "share", "far", "is_usual"),
    [
        ((MEDIAN,), 0.001, 1e6, True),
        ((MEDIAN,), 0.001, 10.0, False),  # not much
        ((MEDIAN,), 0.008, 1e4, True),
        ((MEDIAN,), 0.02, 1e4, False),  # not a few
        ((MEDIAN, TAIL), 0.02, 1e4, False),  # what the level is about
        ((MEDIAN, TAIL), 0.002, 1e4, True),
        ((MEDIAN, SQUARE), 0.001, 1e6, False),  # squares count how far values are
    ],
)
def test_usual_moments_leave_out_what_a_few_far_values_add(
    losses: tuple[Loss, ...], share: float, far: float, is_usual: bool
) -> None:
    rng = np.random.default_rng(0)
    y, weight = 50.0 + rng.standard_normal(2000), rng.uniform(0.5, 1.5, 2000)
    y[: int(share * 2000)] += far
    found = usual_moments(np.column_stack([y, weight]), float(y.std()), losses)
    assert (found is not None) == is_usual
    if found is not None:
        assert_allclose(found, [50.0, 1.0], atol=0.6)


def test_values_of_two_numbers_of_which_one_is_rare_have_no_usual_moments() -> None:
    y = np.zeros(1000)
    y[:3] = 1e6
    assert usual_moments(np.column_stack([y, np.ones(1000)]), float(y.std()), (MEDIAN,)) is None


# what tables say of levels


def table_of(n: int = 300) -> tuple[Table, np.ndarray]:
    """A column of 30 levels and gaps, and values that depend on the level."""
    rng = np.random.default_rng(0)
    codes = rng.integers(-1, 30, n).astype(np.int32)
    names = tuple(f"level {i:02d}" for i in range(30))
    return Table(("many",), n, {}, {"many": Levels(codes, names)}), 10.0 + codes + rng.normal(size=n)


def encoded(table: Table, y: np.ndarray, blocks: int = 1) -> tuple[Encoding, np.ndarray, np.ndarray]:
    """An encoding, the features of the rows that it was learned from, and their folds; the table in some blocks."""
    survey = TableSurvey(0)
    for part in np.array_split(np.arange(table.rows), blocks):
        one = table.taken(np.isin(np.arange(table.rows), part))
        survey.add(one, ["many"], np.zeros(len(part), np.int64), None, y[part])
    encoding = survey.encoding(["many"], np.zeros(1, np.int64), "auto", True, lambda name, why: None)
    folds = survey.folds.of(0, table.rows, None)
    return encoding, encoding.apply(table, folds), folds


def test_many_levels_are_means_of_values_that_other_folds_say() -> None:
    """New rows have the smoothed means of all rows, and training rows those of the rows in other folds."""
    table, y = table_of()
    encoding, X, folds = encoded(table, y)
    column = table.levels["many"].codes
    assert encoding.names == ["many: mean of the values", "many: frequency"]
    new = encoding.apply(table)
    for i in range(0, table.rows, 7):
        frequency = np.log10(1 + np.count_nonzero(column == column[i]))
        for found, others in ((X[i], folds != folds[i]), (new[i], np.full(len(y), True))):
            same = others & (column == column[i])
            mean = (y[same].sum() + SMOOTHING * y[others].mean()) / (same.sum() + SMOOTHING)
            assert found == pytest.approx([mean, frequency])
    strange = encoding.apply(Table(("many",), 2, {}, {"many": Levels(np.asarray([0, -1], np.int32), ("never seen",))}))
    assert strange[0].tolist() == strange[1].tolist() == new[column == -1][0].tolist()


def test_means_of_levels_are_kept_as_json_and_hardly_depend_on_blocks() -> None:
    table, y = table_of()
    encoding, X, _ = encoded(table, y)
    again = Encoding.from_dict(json.loads(json.dumps(encoding.as_dict())))
    assert again == encoding and again.names == encoding.names
    assert np.array_equal(again.apply(table), encoding.apply(table))
    parts, Z, _ = encoded(table, y, blocks=7)
    assert_allclose(Z, X, rtol=1e-12)
    assert_allclose(parts.apply(table), encoding.apply(table), rtol=1e-12)


# metric learning


@pytest.mark.parametrize("levels", [(0.5,), (0.1, 0.9)])
def test_a_metric_of_quantiles_is_judged_by_the_pinball_loss(levels: tuple[float, ...]) -> None:
    rng = np.random.default_rng(0)
    X, Y = rng.standard_normal((40, 1)).astype(np.float32), rng.exponential(size=(40, 1)).astype(np.float32)
    rows, values = MetricRows(X, Y, np.ones(40), values=True, levels=levels), 0.5 * np.asarray(Y, np.float64)
    loss, error = rows.losses(Y, values)
    expected = [min(float(Loss(QUANTILE, t)(Y - values - c).mean()) for c in (Y - values)[:, 0]) for t in levels]
    assert np.array_equal(loss, error) and loss.mean() == pytest.approx(np.mean(expected))
    shifted = rows.losses(Y, values, (Y - values)[:, 0] + 1.0)[0]
    assert shifted.mean() > loss.mean()
    assert rows.guess(np.arange(40)).mean() > 1.5 * loss.mean()
