"""The search of a cell begins where that of a part of its rows ends."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from command_line import stopped_after
from selecting import cell_of
from test_engines import manifest
from value_cells import cell_of_values, examples, noisy

from localsvm.data.blocks.dataset import Dataset
from localsvm.methods.grids import MOST_GUIDE, THINNED, Grid, guide_step
from localsvm.methods.kernel.svm import KernelSVM
from localsvm.methods.kernel.value_options import CLASSES_GUIDE, VALUES_GUIDE
from localsvm.runs.cells import schedule
from localsvm.runs.cells.schedule import Resources
from localsvm.runs.config import TrainingConfig
from localsvm.runs.train import train
from localsvm.selection.cross_validation import CellSelection, Pick, Point, Scores
from localsvm.selection.search import Begin, Search, Usual, usual
from localsvm.targets.base import Target
from localsvm.targets.classification import LEAST_OTHERS
from localsvm.targets.loss_names import ABSOLUTE, LEAST_SQUARES

ADAPTIVE, FULL = Search("adaptive"), Search("full")
ROWS = THINNED * VALUES_GUIDE
CONFIG = TrainingConfig(KernelSVM(loss=LEAST_SQUARES), "none", metric="none", grid="adaptive")


def selection(n: int, method: KernelSVM, **changes: Any) -> CellSelection:
    cell = cell_of_values(*examples(n), folds=5)
    return CellSelection(method, cell, replace(method.grid(cell, n, 5), **changes))


def test_a_thinned_cell_has_every_fourth_row_of_each_fold() -> None:
    X, y = examples(203)
    cell = replace(cell_of_values(X, y, folds=5), cost=np.linspace(1.0, 2.0, 203))
    part = cell.thinned(4)
    places = np.concatenate([np.flatnonzero(cell.folds == fold)[::4] for fold in range(5)])
    for name in ("X", "y", "mass", "cost", "folds"):
        assert np.array_equal(getattr(part, name), getattr(cell, name)[places])
    assert part.rows == part.mass.sum() and part.scratch is not cell.scratch
    assert part.n_folds == 5 and cell.thinned(1000).n_folds == 5


@pytest.mark.parametrize("loss", [LEAST_SQUARES, pytest.param(ABSOLUTE, marks=pytest.mark.whole)])
def test_it_scores_a_fraction_of_the_points_and_finds_the_optimum(loss: str) -> None:
    of = selection(700, KernelSVM(loss=loss), least_guide=100)
    guided = of.guided(ADAPTIVE)
    best = CellSelection(of.method, of.cell.thinned(THINNED), of.grid).search(replace(ADAPTIVE, part=True)).best
    assert guided.begin is not None and guided.begin[:3] == (best.setting, best.cost, best.loss)
    assert min(guided.begin.beside) > 0.1  # nor is either neighbour of the part's best setting as good
    scores, every = of.search(guided), of.search(FULL)
    assert scores.best.loss <= 1.01 * np.nanmin(every.loss)
    assert np.isfinite(scores.loss).sum() < 0.25 * every.loss.size


def test_a_learning_curve_says_how_much_better_models_of_all_rows_are() -> None:
    """Half the loss with four times the rows: the loss is one over the root of the rows."""
    of = selection(ROWS, KernelSVM(loss=LEAST_SQUARES))
    scores = Scores.of(of.grid)

    def gains(of_all: float, of_part: float) -> tuple[float, ...]:
        found = scores.picked([Pick(Point(of_all, 0.0, 0, 0), None)])
        return of.gains(found, Search("adaptive", Begin(0, 0, of_part)))

    assert gains(0.5, 1.0) == pytest.approx((np.sqrt(4 / 5),))
    assert gains(2.0, 32.0) == pytest.approx(((4 / 5) ** 2,))
    assert gains(1.1, 1.0) == gains(0.0, 0.0) == (1.0,)
    assert of.gains(scores, ADAPTIVE) == ()


def test_a_point_that_was_not_kept_is_found_again_the_same_way() -> None:
    of = selection(200, KernelSVM(loss=LEAST_SQUARES))
    search = Search("adaptive", Begin(0, 0))
    scores = of.search(search)
    assert scores.best.setting > 1 and scores.kept is not None
    again = of.complete(scores.unkept, search)
    assert again.best == scores.best and again.kept is not None
    assert np.array_equal(again.kept.values, scores.kept.values)
    row = np.flatnonzero(~np.isnan(scores.loss[scores.best.setting]))
    assert 1 < len(row) < len(scores.loss[0])


@pytest.mark.parametrize(
    ("n", "method", "search", "changes"),
    [
        (ROWS - 1, KernelSVM(loss=LEAST_SQUARES), ADAPTIVE, {}),
        (ROWS, KernelSVM(loss=LEAST_SQUARES), FULL, {}),
        (ROWS, KernelSVM(loss=LEAST_SQUARES), ADAPTIVE, {"least_guide": 0}),
    ],
)
def test_few_rows_and_full_searches_have_no_guide(
    n: int, method: KernelSVM, search: Search, changes: dict[str, int]
) -> None:
    assert selection(n, method, **changes).guided(search) == search


def test_several_epsilons_have_no_guide() -> None:
    several = KernelSVM(loss="epsilon-insensitive", epsilon=(0.1, 0.2))
    assert selection(ROWS, several).guided(ADAPTIVE) == ADAPTIVE
    cell = cell_of_values(*examples(20))
    assert KernelSVM().grid(cell, 20, 5).least_guide > KernelSVM(loss=ABSOLUTE).grid(cell, 20, 5).least_guide > 0


def classes(n: int, others: int) -> CellSelection:
    """A cell of n rows, of which so many are of the smaller class: those of the largest values, but for some noise."""
    X, value = examples(n)
    value = value + 0.3 * np.random.default_rng(1).standard_normal(n)
    y = (np.argsort(np.argsort(value)) >= n - others).astype(np.float64)
    method, cell = KernelSVM(), cell_of(X, y, 5)
    return CellSelection(method, cell, replace(method.grid(cell, n, 5), least_guide=100))


def test_a_cell_of_classes_scores_a_fraction_of_the_points_too() -> None:
    of = classes(800, 300)
    guided = of.guided(ADAPTIVE)
    assert guided.begin is not None
    scores, every = of.search(guided), of.search(FULL)
    assert scores.best.loss <= np.nanmin(every.loss) + 0.01
    assert np.isfinite(scores.loss).sum() < 0.25 * every.loss.size
    assert of.gains(scores, guided) == ()


@pytest.mark.parametrize(("others", "step"), [(3 * LEAST_OTHERS, 3), (20, 1)])
def test_few_rows_outside_the_largest_class_are_not_thinned_as_the_others_are(others: int, step: int) -> None:
    """They weigh less instead, so that the part has the share of each class."""
    of = classes(800, others)
    cell, part = of.cell, of.cell.thinned(THINNED)
    for label, taken in ((0.0, THINNED), (1.0, step)):
        places = [np.flatnonzero((cell.folds == fold) & (cell.y == label))[::taken] for fold in range(5)]
        mine = part.y == label
        assert np.array_equal(part.X[mine], cell.X[np.sort(np.concatenate(places))])
        assert np.array_equal(np.unique(part.mass[mine]), [taken / THINNED])
    assert np.array_equal(part.folds, np.sort(part.folds))
    assert (classes(800, THINNED * LEAST_OTHERS).cell.thinned(THINNED).mass == 1.0).all()
    assert of.guided(ADAPTIVE).begin is not None


def test_of_one_class_one_setting_is_enough() -> None:
    """The first point decides all rows rightly, with a margin: no other one can be better."""
    X, _ = examples(800)
    of = CellSelection(KernelSVM(), replace(cell_of(X, np.arange(800.0) % 2, 5), y=np.ones(800)), Grid())
    of.grid = replace(of.method.grid(of.cell, 800, 5), least_guide=100)
    scores = of.search(of.guided(ADAPTIVE))
    assert scores.best[:2] == (0.0, 0.0) and np.isfinite(scores.loss).sum() <= 3
    assert np.isfinite(of.search(FULL).loss).all()


def test_a_guide_has_a_fourth_of_the_rows_and_never_very_many() -> None:
    found = [guide_step(n, VALUES_GUIDE) for n in (1, ROWS - 1, ROWS, THINNED * MOST_GUIDE, THINNED * MOST_GUIDE + 1)]
    assert found == [0, 0, THINNED, THINNED, THINNED + 1]
    assert guide_step(1_000_000, VALUES_GUIDE) == 1_000_000 // MOST_GUIDE
    grid = Grid(least_guide=VALUES_GUIDE)
    assert [search.guide_step(grid, ROWS) for search in (ADAPTIVE, FULL)] == [THINNED, 0]


@pytest.mark.parametrize(
    ("of_classes", "cells", "coverage"),
    [(False, 1, None), (False, 1, 0.9), (True, 1, None), (True, 4, None)],
    ids=["one choice", "three", "classes", "several cells"],
)
def test_neither_workers_nor_an_interruption_change_a_bit(
    of_classes: bool, cells: int, coverage: float | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What has been scored is not scored again; searches of three choices have workers beside each other."""
    monkeypatch.setattr(schedule, "MANY", 4)
    monkeypatch.setattr(schedule, "GUIDING", 2)
    rows = THINNED * CLASSES_GUIDE if of_classes else ROWS
    X, y = noisy(cells * rows, 0)
    if of_classes:
        y = np.where(y > np.median(y), 1.0, -1.0)

    def trained(name: str, jobs: int = 1, **options: Any) -> None:
        method = KernelSVM() if of_classes else CONFIG.method
        kind = "none" if cells == 1 else "chunks"
        config = replace(CONFIG, method=method, partition=kind, cell_size=rows, coverage=coverage)
        train(Dataset(X.copy(), y.copy()), config, tmp_path / name, resources=Resources(jobs=jobs), **options)

    trained("one.h5")
    trained("two.h5", jobs=2)
    with stopped_after(2, monkeypatch):
        trained("three.h5", jobs=2)
    trained("three.h5", resume=True)
    assert manifest(tmp_path / "one.h5") == manifest(tmp_path / "two.h5") == manifest(tmp_path / "three.h5")
    with h5py.File(tmp_path / "one.h5") as file:
        assert coverage is None or 0.9 < file["coverage/shrink"][0] < 1.0


def test_of_many_cells_a_few_say_where_the_searches_of_all_begin(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schedule, "MANY", 6)
    monkeypatch.setattr(schedule, "GUIDING", 3)
    grid = Grid(least_guide=100)

    def guiding(sizes: list[int], target: Target, search: Search = ADAPTIVE) -> list[int]:
        return schedule.guiding(sizes, grid, search, target)

    of_classes, of_values = classes(20, 5).cell.target, cell_of_values(*examples(20)).target
    assert guiding([400] * 6, of_classes) == [0, 2, 4]
    assert guiding([400, 399, *[400] * 6], of_classes) == [0, 4, 7]  # of those that are large enough
    assert guiding([400] * 5, of_classes) == guiding([400] * 6, of_values) == guiding([400] * 6, of_classes, FULL) == []


def test_the_usual_beginning_is_the_middle_one_of_each_choice() -> None:
    """A cell whose part has no loss says nothing."""

    def search(*begins: tuple[float, int, float]) -> Search:
        return ADAPTIVE.beginning([Begin(0, cost, loss, value=value) for value, cost, loss in begins])

    some = [search((4.0, 1, 0.1)), search((0.5, 8, 0.1)), search((1.0, 5, 0.1)), search((64.0, 0, 0.0))]
    assert usual(some) == ((1.0, 5),)
    assert usual(some[3:]) == usual([ADAPTIVE]) == ()
    assert usual([search((1.0, 2, 0.1), (2.0, 3, 0.1)), search((8.0, 1, 0.1), (4.0, 2, 0.0))]) == ((8.0, 1), (2.0, 3))


def test_a_search_begins_at_the_setting_nearest_to_the_usual_one() -> None:
    of = classes(800, 300)
    gammas = [gamma for (gamma,) in of.grid.settings]
    found = of.guided(replace(ADAPTIVE, usual=(Usual(1.2 * gammas[3], 4),)))
    assert found == Search("adaptive", Begin(3, 4))
    few = classes(300, 100)
    assert few.guided(replace(ADAPTIVE, usual=(Usual(gammas[3], 4),))).begin is None  # a small cell has all settings


def test_the_time_that_is_left_is_estimated_by_the_settings_that_a_guided_search_scores() -> None:
    grid, few = (Grid(tuple((float(g),) for g in range(n)), ("gamma",), least_guide=VALUES_GUIDE) for n in (14, 3))
    assert ADAPTIVE.expected(grid, ROWS - 1) == ADAPTIVE.expected(replace(grid, least_guide=0), ROWS) == 7
    assert ADAPTIVE.expected(grid, ROWS) == 3
    assert FULL.expected(grid, ROWS) == 14 and ADAPTIVE.expected(few, ROWS) == 3
