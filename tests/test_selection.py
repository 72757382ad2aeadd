"""Folds, grids and what a user writes for them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from localsvm.data.blocks.dealing import Mates, first_rows
from localsvm.errors import OptionError
from localsvm.methods.grids import Grid, check_values, default_lambdas, default_widths, parse_values
from localsvm.selection.folds import fold_order, stratified
from localsvm.selection.search import STRIDE, Begin, Search, beside


@given(
    counts=st.lists(st.integers(0, 40), min_size=1, max_size=4).filter(lambda c: sum(c) > 0),
    n_folds=st.integers(1, 10),
    seed=st.integers(0, 2**32 - 1),
)
def test_folds_are_stratified(counts: list[int], n_folds: int, seed: int) -> None:
    y = np.repeat(np.arange(len(counts), dtype=float), counts)
    folds = stratified(y, n_folds, np.random.default_rng(seed))
    used = min(n_folds, len(y))
    assert set(folds) == set(range(used))
    sizes = np.bincount(folds, minlength=used)
    assert sizes.max() - sizes.min() <= 1
    for label in np.unique(y):
        share = np.bincount(folds[y == label], minlength=used)
        assert share.max() - share.min() <= 1
    order, rows = fold_order(y, n_folds, np.random.default_rng(seed))
    np.testing.assert_array_equal(folds[order], np.repeat(np.arange(used), rows))
    alone = fold_order(y, n_folds, np.random.default_rng(seed), Mates(np.arange(len(y))))
    np.testing.assert_array_equal(order, alone[0])


@given(
    labels=st.lists(st.integers(0, 3), min_size=1, max_size=60),
    values=st.integers(1, 60),
    n_folds=st.integers(1, 7),
    seed=st.integers(0, 2**32 - 1),
)
def test_copies_stay_in_one_fold(labels: list[int], values: int, n_folds: int, seed: int) -> None:
    y, rng = np.asarray(labels, np.float64), np.random.default_rng(seed)
    copies = rng.integers(0, values, len(y))
    order, rows = fold_order(y, n_folds, rng, Mates(copies))
    folds = np.empty(len(y), np.int64)
    folds[order] = np.repeat(np.arange(len(rows)), rows)
    assert (rows > 0).all() and sorted(order) == list(range(len(y)))
    room = -(-len(y) // n_folds)
    assert len(rows) >= min(n_folds, 2, len(y))
    for value in np.unique(copies):
        copy_folds = folds[copies == value]
        assert len(copy_folds) > room or len(set(copy_folds)) == 1


def test_folds_of_pairs_are_stratified() -> None:
    rng = np.random.default_rng(0)
    y = np.repeat(rng.choice(3, 301, p=[0.7, 0.25, 0.05]), 2).astype(np.float64)
    y[::7] = 2.0  # some pairs have two labels
    folds = stratified(y, 5, rng, Mates(np.arange(len(y)) // 2))
    assert np.ptp(np.bincount(folds)) <= 4
    assert all(np.ptp(np.bincount(folds[y == label])) <= 4 for label in range(3))


def test_a_frequent_value_is_dealt_out_row_by_row() -> None:
    y = np.tile([0.0, 1.0], 50)
    mates = Mates(np.r_[np.zeros(60, np.int64), 1 + np.arange(40) // 2])
    folds = stratified(y, 5, np.random.default_rng(0), mates)
    assert np.ptp(np.bincount(folds[:60])) <= 8 and np.bincount(folds).tolist() == [20] * 5


@given(st.integers(1, 80), st.integers(1, 80), st.integers(0, 2**32 - 1))
def test_copies_stay_on_one_side_of_a_draw(n: int, values: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    order, copies = rng.permutation(n), rng.integers(0, values, n)
    count = int(rng.integers(n))
    np.testing.assert_array_equal(first_rows(order, count, Mates(np.arange(n))), order[:count])
    taken = first_rows(order, count, Mates(copies))
    assert len(set(taken)) == len(taken) <= count
    room = min(count, n - count)
    rare = np.bincount(copies)[copies] <= room
    assert not np.isin(copies[taken[rare[taken]]], np.delete(copies, taken)).any()
    assert len(taken) > count - np.bincount(copies).max()


@given(
    labels=st.lists(st.integers(0, 3), min_size=1, max_size=60),
    groups=st.integers(1, 8),
    n_folds=st.integers(1, 7),
    seed=st.integers(0, 2**32 - 1),
)
def test_groups_stay_whole_however_large(labels: list[int], groups: int, n_folds: int, seed: int) -> None:
    y, rng = np.asarray(labels, np.float64), np.random.default_rng(seed)
    group = rng.integers(0, groups, len(y))
    folds = stratified(y, n_folds, rng, Mates(group, whole=True))
    assert all(len(set(folds[group == number])) == 1 for number in np.unique(group))
    if len(np.unique(group)) < len(y):
        assert len(set(folds)) == min(n_folds, len(np.unique(group)))
    order, count = rng.permutation(len(y)), int(rng.integers(len(y)))
    taken = first_rows(order, count, Mates(group, whole=True))
    if count:
        assert len(taken) and not np.isin(group[taken], np.delete(group, taken)).any()


def test_a_draw_of_groups_does_not_prefer_large_ones() -> None:
    """The mean size of the groups that are drawn is that of all groups."""
    rng = np.random.default_rng(0)
    group = np.repeat(np.arange(600), rng.permutation(np.repeat([1, 10], 300)))
    sizes = []
    for _ in range(20):
        taken = first_rows(rng.permutation(len(group)), len(group) // 2, Mates(group, whole=True))
        sizes.append(len(taken) / len(np.unique(group[taken])))
    assert np.mean(sizes) == pytest.approx(5.5, rel=0.05)


def test_folds_depend_on_the_generator() -> None:
    y = np.arange(100.0) % 2
    a, b, c = (stratified(y, 5, np.random.default_rng(s)) for s in (1, 1, 2))
    assert (a == b).all() and (a != c).any()


def test_default_widths_follow_the_formula() -> None:
    widths = default_widths(1600, 10, np.sqrt(10))
    assert widths[0] == pytest.approx(5 * (1 + 5 / 1600) ** 10)
    assert widths[-1] == pytest.approx(0.2 * 1600**-0.1)
    ratios = np.divide(widths[1:], widths[:-1])
    np.testing.assert_allclose(ratios, ratios[0])


def test_widths_move_by_whole_steps_with_the_radius() -> None:
    base = default_widths(1600, 10, np.sqrt(10))
    step = base[0] / base[1]
    for radius, moved in [(1.5 * step, 1), (0.9, -1), (step**-2 * 1.01, -2)]:
        widths = default_widths(1600, 10, radius * np.sqrt(10))
        np.testing.assert_allclose(widths, np.multiply(base, step**moved))


def test_widths_stay_finite() -> None:
    for rows, features, radius in [(1, 1, 0.0), (1, 10**6, 1.0), (10**7, 1, 1e-30), (3, 500, 1e30)]:
        widths = default_widths(rows, features, radius)
        assert np.isfinite(widths).all() and min(widths) > 0


def test_default_lambdas() -> None:
    lambdas = default_lambdas(1600)
    assert lambdas[0] == pytest.approx(0.01) and lambdas[-1] == pytest.approx(0.001 / 1600) and len(lambdas) == 10


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("0.5", (0.5,)),
        ("10,0.1,1", (0.1, 1, 10)),
        ("1,1", (1,)),
        ("2^-2", (0.25,)),
        ("2^-1:2^1:3", (0.5, 1, 2)),
        ("1e-2:1:3", (0.01, 0.1, 1)),
    ],
)
def test_values(text: str, values: tuple[float, ...]) -> None:
    assert parse_values(text) == pytest.approx(values)


def test_a_range_has_ten_points_by_default() -> None:
    assert len(parse_values("1:512")) == 10


def test_an_even_range_has_short_numbers() -> None:
    assert parse_values(".1:.9:9", even=True) == (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)


def test_zero_is_a_value_where_it_makes_sense() -> None:
    assert parse_values("10,0,1", zero=True) == parse_values("10,0.0,1", zero=True) == (0.0, 1.0, 10.0)
    with pytest.raises(OptionError, match="'-1' is not 0 or a positive number"):
        parse_values("-1", zero=True)
    with pytest.raises(OptionError, match="not a positive number"):
        parse_values("0:10", zero=True)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "not a number"),
        ("x", "'x' is not a number; write 0.5, 1e-3 or 2^-5"),
        ("-1", "not a positive number"),
        ("0", "not a positive number"),
        ("nan", "not a positive number"),
        ("1e999", "not a positive number"),
        ("(-8)^0.5", "not a number"),
        ("-8^0.5", "not a positive number"),
        ("10^400", "not a number"),
        ("1:2:3:4", "not a range"),
        ("2:1", "low end of a range comes first"),
        ("1:2:1", "whole number from 2"),
        ("1:2:x", "whole number from 2"),
    ],
)
def test_values_that_are_refused(text: str, message: str) -> None:
    with pytest.raises(OptionError, match=message.replace("^", r"\^")):
        parse_values(text)


def test_at_most_64_values_on_an_axis() -> None:
    assert check_values((3.0, 1.0)) == (1.0, 3.0)
    with pytest.raises(OptionError, match="at most 64"):
        check_values(range(1, 66))


def searched(
    loss: np.ndarray, begin: Begin | None = None, part: bool = False
) -> tuple[np.ndarray, list[tuple[int, ...]]]:
    """Losses of a table that an adaptive search scores, nan elsewhere, and its rounds."""
    search, known, rounds = Search("adaptive", begin, part), np.full(loss.shape, np.nan), []
    while lines := search.next_settings(known, best=int(np.argmin(np.nan_to_num(known, nan=9.0).min(axis=1)))):
        search = search.after(known)
        rounds.append(lines)
        for g in lines:
            while costs := search.next_costs(known[g], 0.0 * known[g]):
                assert np.isnan(known[g, costs]).all()
                known[g, costs] = loss[g, costs]
    return known, rounds


def bowl(g: int, c: int) -> np.ndarray:
    """Losses (10, 10) whose smallest is at (g, c)."""
    i, j = np.indices((10, 10))
    return 0.1 + 0.01 * ((i - g) ** 2 + (j - c) ** 2)


@given(st.integers(0, 9), st.integers(0, 9))
def test_an_adaptive_search_finds_the_bottom_of_a_bowl(g: int, c: int) -> None:
    known, rounds = searched(bowl(g, c))
    assert rounds[0] == (1, 4, 7)
    assert np.nanmin(known) == bowl(g, c).min()
    assert np.isnan(known).any()


begins = st.builds(lambda g, c: Begin(g, c), st.integers(0, 9), st.integers(0, 9))


@given(st.integers(0, 9), st.integers(0, 9), begins)
def test_a_search_that_is_told_where_to_begin_finds_it_too(g: int, c: int, begin: Begin) -> None:
    known, rounds = searched(bowl(g, c), begin)
    assert rounds[0] == (begin.setting,)
    assert np.nanmin(known) == bowl(g, c).min()


def test_a_search_that_begins_at_the_optimum_looks_at_its_neighbours_alone() -> None:
    known, rounds = searched(bowl(4, 6), Begin(4, 5))
    assert rounds == [(4,), (5,), (3,)]
    places = [[i, j] for i in (3, 4, 5) for j in ((5, 6, 7) if i == 4 else (5, 6))]
    assert np.argwhere(~np.isnan(known)).tolist() == places


@given(st.integers(0, 9), st.integers(0, 9))
def test_a_told_search_finds_the_bottom_of_a_bowl_by_fewer_points_than_that_of_a_part(g: int, c: int) -> None:
    """Both begin at the same point."""
    told, part = (searched(bowl(g, c), begin, of_part)[0] for begin, of_part in ((Begin(3, 3), False), (None, True)))
    assert np.nanmin(told) == np.nanmin(part) == bowl(g, c).min()
    assert np.isfinite(told).sum() <= np.isfinite(part).sum()


def test_a_search_of_a_part_begins_at_a_third_of_both_axes() -> None:
    known, rounds = searched(bowl(3, 4), part=True)
    assert rounds == [(3,), (2, 4)]
    assert np.argwhere(~np.isnan(known)).tolist() == [[i, j] for i in (2, 3, 4) for j in (3, 4, 5)]


@pytest.mark.parametrize(
    ("around", "rounds"),
    [
        ((0.004, 0.001), [(4,)]),
        ((np.nan, 0.001), [(4,)]),
        ((0.02, 0.02), [(4,), (5,)]),
        ((0.001, 0.02), [(4,), (5,), (3,)]),
        ((0.001, 0.2), [(4,), (3,)]),
        ((0.2, 0.2), [(4,)]),
        ((np.nan, np.nan), [(4,), (5,), (3,)]),
    ],
)
def test_a_told_search_leaves_neighbours_without_hope(
    around: tuple[float, float], rounds: list[tuple[int, ...]]
) -> None:
    """What a part says of them: both as good as its best, or one much worse."""
    assert searched(bowl(4, 6), Begin(4, 5, beside=around))[1] == rounds


def test_a_told_search_goes_on_upwards_from_a_neighbour() -> None:
    assert searched(bowl(6, 6), Begin(4, 5, beside=(0.2, 0.02)))[1] == [(4,), (5,), (6,), (7,)]


def test_how_much_worse_the_settings_beside_one_are() -> None:
    loss = np.asarray([[np.nan, 3.0, 4.0], [2.0, np.nan, 5.0], [np.nan, np.nan, np.nan]])
    np.testing.assert_allclose(beside(loss, 1), (0.5, np.nan))
    np.testing.assert_allclose(beside(loss, 0), (np.nan, -1 / 3))
    assert np.isnan(beside(0.0 * loss, 1)).all()


def test_a_told_search_stays_where_a_neighbour_falls_towards_the_best_point() -> None:
    """Its first two losses are larger than the best one, but half as much as between them would do."""
    best = np.full((3, 6), 0.9)
    best[1] = [0.9, 0.8, 0.7, 0.72, 0.74, 0.76]
    for falling, expected in ((0.72, 0.6), (0.75, 0.7)):
        loss = best.copy()
        loss[2, 1:4] = 0.78, falling, 0.6
        assert np.nanmin(searched(np.vstack([loss, 1.0 + loss]), Begin(1, 1))[0]) == expected


def test_a_told_search_looks_down_only_where_up_is_not_better() -> None:
    assert searched(bowl(5, 6), Begin(3, 6))[1] == [(3,), (4,), (5,), (6,)]
    assert searched(bowl(2, 6), Begin(3, 6))[1] == [(3,), (4,), (2,), (1,)]


@given(st.integers(0, 1000), st.integers(0, 9), st.integers(0, 5), st.integers(1, 12))
def test_a_told_search_knows_what_it_knew_when_it_came_to_a_setting(seed: int, g: int, c: int, settings: int) -> None:
    """Which of equal losses is the best decides the tie, of which losses alone do not tell."""
    rng = np.random.default_rng(seed)
    loss, tie = rng.integers(1, 6, (settings, 6)).astype(float), rng.random((settings, 6))
    begin = Begin(min(g, settings - 1), c)
    search, known = Search("adaptive", begin), np.full(loss.shape, np.nan)
    met: dict[int, Search] = {}
    while lines := search.next_settings(known, best=min((known[i, j], tie[i, j], i) for i, j in scored(known))[2]):
        search = search.after(known)
        for i in lines:
            met[i] = search
            while costs := search.next_costs(known[i], np.where(np.isnan(known[i]), np.nan, tie[i])):
                known[i, costs] = loss[i, costs]
    assert met[begin.setting].best is None
    later = [then for i, then in met.items() if i != begin.setting]
    assert all((then.best is None) == (settings <= STRIDE) for then in later)  # so few are scored in one round
    for i, then in met.items():
        assert Search("adaptive", begin).before(known, i) == then


def scored(loss: np.ndarray) -> list[tuple[int, int]]:
    """Places of what is scored; the first one where nothing is."""
    return [(int(i), int(j)) for i, j in np.argwhere(~np.isnan(loss))] or [(0, 0)]


def costs_after(losses: list[float], n: int, begin: Begin | None = None, ties: list[float] | None = None) -> range:
    """The costs of n that an adaptive search scores after those of these losses (nan: none) and ties (None: all 0)."""
    loss, tie = (np.asarray(some + [np.nan] * (n - len(losses))) for some in (losses, ties or [0.0] * len(losses)))
    return Search("adaptive", begin).next_costs(loss, np.where(np.isnan(loss), np.nan, tie))


def test_a_flat_beginning_does_not_end_a_line() -> None:
    assert costs_after([], 6) == range(4) and costs_after([], 3) == range(3)
    assert costs_after([0.3, 0.3, 0.3, 0.3, 0.3], 6) == range(5, 6)
    assert costs_after([0.3, 0.2, 0.21, 0.2], 6) == range(4, 5)
    assert not costs_after([0.3, 0.2, 0.21, 0.201], 6)
    assert costs_after([0.3, 0.2, 0.21], 6) == range(3, 4)


def test_errors_that_rise_by_chance_do_not_end_a_line_while_the_hinge_loss_falls() -> None:
    errors = [0.3, 0.2, 0.21, 0.22]
    assert costs_after(errors, 6, ties=[0.9, 0.8, 0.7, 0.6]) == range(4, 5)
    assert costs_after(errors, 6, ties=[0.9, 0.8, 0.7, 0.71]) == range(4, 5)
    assert not costs_after(errors, 6, ties=[0.9, 0.8, 0.81, 0.82])
    assert not costs_after(errors, 4, ties=[0.9, 0.8, 0.7, 0.6])


def test_a_line_that_begins_in_the_middle_goes_up_and_then_down() -> None:
    begin, none = Begin(0, 4), [np.nan] * 4
    assert costs_after([], 9, begin) == range(4, 7) and costs_after([], 5, begin) == range(2, 5)
    assert costs_after([*none, 0.3, 0.2, 0.1], 9, begin) == range(7, 8)
    assert costs_after([*none, 0.3, 0.3, 0.3], 9, begin) == range(7, 8)
    assert not costs_after([*none, 0.3, 0.2, 0.21], 9, begin)
    assert costs_after([*none, 0.1, 0.2, 0.3], 9, begin) == range(3, 4)
    assert not costs_after([*none[1:], 0.2, 0.1, 0.2, 0.3], 9, begin)


def test_the_best_setting_gets_its_neighbours() -> None:
    search, loss = Search("adaptive", Begin(4, 4)), np.full((10, 3), np.nan)
    assert search.next_settings(loss) == (4,)
    loss[3:6] = 0.1
    assert [search.next_settings(loss, best=best) for best in (3, 4, 5)] == [(2,), (), (6,)]


def test_a_full_search_scores_everything_at_once() -> None:
    search = Search("full")
    assert search.next_costs(*np.full((2, 10), np.nan)) == range(10)
    assert not search.next_costs(*np.tile([0.1, 0.2, 0.3, 0.4], (2, 1)))
    assert search.next_settings(np.full((3, 1), np.nan)) == (0, 1, 2)
    assert search.next_settings(np.zeros((3, 1))) == ()


def test_settings_without_neighbours_are_scored_at_once() -> None:
    search, loss = Search("adaptive"), np.full((10, 1), np.nan)
    assert search.next_settings(loss, ordered=False) == tuple(range(10))
    loss[3:] = 0.1
    assert search.next_settings(loss, ordered=False) == (0, 1, 2)
    assert search.next_settings(np.zeros((10, 1)), ordered=False) == ()


@pytest.mark.parametrize(
    ("names", "lines", "ordered"),
    [((), ((),), False), (("a",), ((1.0,), (2.0,)), True), (("a", "b"), ((1.0, 1.0), (1.0, 2.0)), False)],
)
def test_lines_of_one_parameter_are_ordered(
    names: tuple[str, ...], lines: tuple[tuple[float, ...], ...], ordered: bool
) -> None:
    grid = Grid(lines, names, costs=(1.0, 2.0, 3.0))
    assert grid.ordered == ordered and grid.n_points == 3 * len(lines)
