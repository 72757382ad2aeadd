"""Intervals and sets that keep a promise: margins by held-out scores, what runs write and print, and damaged files."""

from __future__ import annotations

import csv
import json
import math
import re
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from command_line import PLAIN, error, invoke, usage_error
from hypothesis import given, settings
from hypothesis import strategies as st
from strangers import Damage, attributes, damaged
from strangers import replace as replaced
from value_cells import cell_of_values, noisy, range_of

from localsvm import LocalSVR
from localsvm.data.blocks.dataset import Dataset
from localsvm.data.readers.libsvm import read
from localsvm.data.writers.libsvm import write
from localsvm.errors import DataError, ModelError, OptionError
from localsvm.methods.kernel import value_options
from localsvm.methods.kernel.svm import KernelSVM
from localsvm.naming import on_command_line
from localsvm.runs import train as training
from localsvm.runs.cells.schedule import Resources
from localsvm.runs.config import TrainingConfig
from localsvm.runs.predict import LocalModel
from localsvm.runs.train import train
from localsvm.selection.cross_validation import CellPath, CellSelection
from localsvm.selection.search import Search
from localsvm.targets.base import ValueRange
from localsvm.targets.conformal import LEVELS, Coverage, label_sets
from localsvm.targets.loss_names import ABSOLUTE, HUBER, LEAST_SQUARES, QUANTILE
from localsvm.targets.losses import Loss
from localsvm.targets.regression import Regression, regression_of

GRID: dict[str, Any] = {"gamma": (0.1, 0.5, 2.0), "cost": (0.3, 3.0, 30.0)}
VALUES = TrainingConfig(KernelSVM(loss=LEAST_SQUARES, **GRID), metric="none", coverage=0.9)
CLASSES = TrainingConfig(KernelSVM(gamma=(0.1, 0.5), cost=(0.3, 3.0)), metric="none", coverage=0.9)
FRESH = 2000  # rows, for which a share of .9 has a standard error of .0067
thousandths = st.integers(1, 999).map(lambda k: k / 1000)


def blurred(n: int, classes: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows of classes that overlap, so that one label alone does not hold the truth often enough."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1.0, 1.0, (n, 2)).astype(np.float32)
    value = X[:, 0] + 0.5 * X[:, 1] + 0.5 * rng.standard_normal(n)
    return X, np.digitize(value, [0.0] if classes == 2 else [-0.5, 0.5]).astype(np.float64)


# margins


def rank(level: float, n: int) -> int:
    """The number of a score, ceil(level (n + 1)), of a level that has three digits behind the point."""
    return math.ceil(Fraction(round(level * 1000), 1000) * (n + 1))


@settings(deadline=None)
@given(st.lists(st.floats(-100.0, 100.0), min_size=1, max_size=60), thousandths)
def test_a_margin_is_the_smallest_that_so_many_scores_are_within(scores: list[float], asked: float) -> None:
    n = len(scores)
    if rank(asked, n) > n:
        with pytest.raises(DataError):
            Coverage.of(np.asarray(scores), asked)
        return
    coverage = Coverage.of(np.asarray(scores), asked)
    for level, margin in zip(coverage.levels.tolist(), coverage.margins.tolist(), strict=True):
        assert margin == min(s for s in scores if sum(other <= s for other in scores) >= rank(level, n))
    assert coverage.levels.tolist() == sorted({level for level in {*LEVELS, asked} if rank(level, n) <= n})
    assert (np.diff(coverage.margins) >= 0.0).all()


@pytest.mark.parametrize("n", [9, 10, 57])
def test_of_rows_that_are_alike_the_share_that_was_promised_is_covered(n: int) -> None:
    """Each of n + 1 rows is the new one in turn: as many of them are covered as the level asks for, and no more."""
    scores = np.random.default_rng(n).standard_normal(n + 1)
    for level in (0.5, 0.77, 0.9):
        covered = [scores[i] <= Coverage.of(np.delete(scores, i), level).margin(level) for i in range(n + 1)]
        assert sum(covered) == rank(level, n)


@pytest.mark.parametrize(("rows", "level"), [(8, 0.9), (9, 0.91), (98, 0.99), (998, 0.999)])
@pytest.mark.fast(4)
def test_too_few_rows_are_refused_with_the_remedy(rows: int, level: float) -> None:
    with pytest.raises(DataError) as caught:
        Coverage.of(np.arange(float(rows)), level)
    said = f"{rows} held-out rows cannot promise --coverage {level:g}: give more rows, or a smaller one"
    assert on_command_line(str(caught.value)) == said
    assert Coverage.of(np.arange(rows + 2.0), level).margin(level) >= rows


def test_a_margin_is_that_of_the_next_higher_level_and_none_beyond_is_made_up() -> None:
    coverage = Coverage.of(np.arange(1.0, 200.0), 0.905)
    margin = {level: coverage.margin(level) for level in coverage.levels.tolist()}
    assert (coverage.margin(0.901), coverage.margin(0.906)) == (margin[0.905], margin[0.91])
    assert coverage.margin(0.9) == 180.0 and margin[0.905] == 181.0 and margin[0.91] == 182.0
    assert coverage.margin(0.1) == margin[0.5] == 100.0
    assert coverage.margin(0.995) == margin[0.995] == 199.0
    asked = np.linspace(0.01, 0.995, 300)
    assert (np.diff([coverage.margin(level) for level in asked]) >= 0.0).all()
    for level in (0.996, 0.999, 1.0, 1.5, 0.0, -1.0, math.nan):
        with pytest.raises(OptionError) as caught:
            coverage.margin(level)
        said = f"--coverage {level:g}: the model promises coverages from 0.5 to 0.995; give one of these"
        assert on_command_line(str(caught.value)) == said


def test_what_a_file_keeps_of_margins_makes_the_same() -> None:
    coverage = replace(Coverage.of(np.random.default_rng(0).standard_normal(150), 0.333), shrink=0.75)
    again = Coverage.from_state(coverage.state())
    np.testing.assert_array_equal(again.levels, coverage.levels)
    np.testing.assert_array_equal(again.margins, coverage.margins)
    assert again.shrink == 0.75 and "shrink" not in replace(coverage, shrink=1.0).state()


# sets and intervals


@settings(deadline=None)
@given(st.integers(0, 1000), st.integers(2, 5), st.floats(-1.0, 2.0), st.floats(0.0, 1.0))
def test_a_set_has_the_labels_that_are_probable_enough_and_never_none(
    seed: int, classes: int, margin: float, more: float
) -> None:
    p = np.random.default_rng(seed).dirichlet(np.ones(classes), 30)
    sets = label_sets(p, margin)
    for row, kept in zip(p.tolist(), sets.tolist(), strict=True):
        assert kept == [each >= 1.0 - margin or k == row.index(max(row)) for k, each in enumerate(row)]
    assert (sets <= label_sets(p, margin + more)).all()


ENDS = (Loss(LEAST_SQUARES), Loss(QUANTILE, 0.05), Loss(QUANTILE, 0.95))
numbers = st.integers(-1280, 1280).map(lambda k: k / 64)  # which are added without rounding


@settings(deadline=None)
@given(st.tuples(numbers, numbers, numbers), numbers.map(lambda v: 45.0 + v), numbers)
def test_a_value_is_in_the_interval_if_its_score_is_within_the_margin(
    decisions: tuple[float, float, float], y: float, margin: float
) -> None:
    """Ends that cross change places; an interval that would end before it begins is its middle.

    They may lie beyond the range of the training values, here by as much as it is wide.
    """
    target = Regression(ENDS, ValueRange(40.0, 5.0, 35.0, 45.0, lowest=25.0, highest=55.0), interval=True)
    values, truth = np.asarray([decisions]), np.asarray([y])
    ((low, high),) = target.intervals(values, margin)
    ends = sorted(min(55.0, max(25.0, 40.0 + 5.0 * value)) for value in decisions[1:])
    inside = ends[0] - margin <= y <= ends[1] + margin
    assert (target.outside(values, truth)[0] <= margin) == inside
    if ends[0] - margin <= ends[1] + margin:
        assert (low, high) == (ends[0] - margin, ends[1] + margin)
    else:
        assert low == high == (ends[0] + ends[1]) / 2.0
    np.testing.assert_array_equal(target.intervals(values, margin, 0.5), [[(3 * low + high) / 4, (low + 3 * high) / 4]])
    assert target.decide(values) == [min(45.0, max(35.0, 40.0 + 5.0 * decisions[0]))]


# runs of values


def rows_of(n: int, seed: int = 0) -> Dataset:
    return Dataset(*noisy(n, seed))


def covered(model: LocalModel, level: float) -> tuple[float, np.ndarray, np.ndarray]:
    """The share of fresh rows whose values are in their intervals; the widths, and the rows."""
    X, y = noisy(FRESH, 1000)
    low, high = model.intervals(X, level).T
    return float(np.mean((low <= y) & (y <= high))), high - low, X


def test_as_many_fresh_rows_are_covered_as_was_promised_and_noise_makes_intervals_wider(tmp_path: Path) -> None:
    train(rows_of(600), VALUES, tmp_path / "m.h5")
    with LocalModel(tmp_path / "m.h5") as model:
        share, width, X = covered(model, 0.9)
        assert 0.86 <= share <= 0.94
        assert width[X[:, 1] > 0.1].mean() > 2.0 * width[X[:, 1] < -0.1].mean()  # the noise is four times as large
        shares = [covered(model, level)[0] for level in (0.5, 0.7, 0.8, 0.95, 0.99)]
    assert shares == sorted(shares) and shares[0] < 0.6 and shares[-1] > 0.97


def test_what_a_fold_scores_is_of_the_points_that_the_other_folds_chose() -> None:
    """By hand: for each end and fold, the point of the smallest loss of the rows that the fold does not hold out."""
    X, y = noisy(40, 0)
    cell = cell_of_values(X, y, losses=ENDS)
    training = replace(range_of(y), lowest=0.0, highest=100.0)  # nothing is clipped
    cell = replace(cell, target=Regression(ENDS, training, interval=True))
    method = KernelSVM(loss=LEAST_SQUARES, tolerance=1e-6, **GRID)
    selection = CellSelection(method, cell, method.grid(cell, float(len(y)), cell.n_folds))
    losses, values = np.empty((2, cell.n_folds, 3, 3)), np.empty((3, 3, 2, len(y)))
    for setting, end in np.ndindex(3, 2):
        path = CellPath(selection, setting, 3, 1 + end)
        path.advance(0, 3)
        for cost in range(3):
            values[cost, setting, end] = path.keep(cost, 1 + end).values
    for end, fold in np.ndindex(2, cell.n_folds):
        decided, others = values[:, :, end] * training.unit + training.centre, cell.folds != fold
        losses[end, fold] = ENDS[1 + end](cell.y - decided)[:, :, others].mean(axis=2)
    scores = selection.search(Search("full"))
    crossed = [(pick.best.cost, pick.best.setting) for pick in scores.picks[3:]]
    assert crossed == [np.unravel_index(each.argmin(), (3, 3)) for each in losses.reshape(-1, 3, 3)]
    assert len(set(crossed[: cell.n_folds])) > 1 < len(set(crossed[cell.n_folds :])), "else nothing is to be seen"
    sharp = [pick.kept.values for pick in selection.sharpened(scores).chosen if pick.kept is not None]
    for (end, fold), best in zip(np.ndindex(2, cell.n_folds), crossed, strict=True):
        rows, of_end = cell.held_out(fold), sharp[1 + end]
        assert of_end is not None
        np.testing.assert_allclose(of_end[0, rows], values[best][end, rows], atol=2e-3)


@pytest.mark.whole
def test_few_rows_keep_their_promise_too() -> None:
    """The share of fresh rows that are covered, in the mean over draws; a line has values beyond those of training."""
    rng, shares = np.random.default_rng(0), []

    def line(n: int) -> tuple[np.ndarray, np.ndarray]:
        X = rng.standard_normal((n, 2))
        return X, 2.0 * X[:, 0] - X[:, 1] + 0.1 * rng.standard_normal(n)

    X, y = line(FRESH)
    for _ in range(30):
        low, high = LocalSVR(metric="none", coverage=0.9).fit(*line(25)).predict_interval(X).T
        shares.append(np.mean((low <= y) & (y <= high)))
    assert 0.87 <= np.mean(shares) <= 0.95


@pytest.mark.parametrize(
    ("y", "ends"),
    [
        ([1.0, 2.0, 4.0, 5.0], (-3.0, 9.0)),
        ([1.0, 1.0, 4.0, 5.0], (1.0, 9.0)),
        ([1.0, 2.0, 5.0, 5.0], (-3.0, 5.0)),
    ],
)
@pytest.mark.parametrize("coverage", [0.9, None])
def test_a_value_that_several_rows_have_bounds_intervals(
    y: list[float], ends: tuple[float, float], coverage: float | None, tmp_path: Path
) -> None:
    data = Dataset(noisy(100, 0)[0], np.asarray([*y, *np.random.default_rng(0).uniform(2.1, 3.9, 96)]))
    train(data, replace(VALUES, coverage=coverage), tmp_path / "m.h5")
    with LocalModel(tmp_path / "m.h5") as model:
        training = regression_of(model.target).training
    assert training.ends == (ends if coverage else (1.0, 5.0))
    assert ("lowest" in training.as_dict()) == (coverage is not None)


@pytest.mark.parametrize("together", ["copies", "group"])
def test_rows_that_are_held_out_together_are_as_one(together: str, tmp_path: Path) -> None:
    X, y = noisy(100, 0)
    y[:2] = y.max() + 1.0
    group = None if together == "copies" else np.arange(1, 101) // 2
    X[1] = X[0] if together == "copies" else X[1]
    group = group if group is None else np.maximum(group - 1, 0)
    train(Dataset(X, y, group=group), VALUES, tmp_path / "m.h5")
    with LocalModel(tmp_path / "m.h5") as model:
        training = regression_of(model.target).training
    assert training.ends == pytest.approx((2.0 * y.min() - y.max(), 2.0 * y.max() - y.min()))


@pytest.mark.parametrize(
    "options",
    [
        {"partition": "voronoi", "cell_size": 150},
        {"partition": "chunks", "cell_size": 150},
        {"partition": "voronoi", "cell_size": 200, "repeats": 2},
        {"select": "vote"},
        {"method": KernelSVM(loss=HUBER, epsilon=(2.0,), **GRID)},
        {"method": KernelSVM(loss=QUANTILE, quantile=(0.1, 0.5, 0.9), gamma=(0.5,), cost=(3.0,))},
        {"metric": "diag"},
        {"coverage": 0.8},
    ],
    ids=["voronoi", "chunks", "repeats", "vote", "huber", "levels of one point", "metric", "another share"],
)
@pytest.mark.fast(4)
def test_every_kind_of_run_keeps_its_promise(options: dict[str, Any], tmp_path: Path) -> None:
    """Chunks are covered too well: their mean is better than the chunk that a score is of."""
    config = replace(VALUES, **options)
    assert config.coverage is not None
    rows = rows_of(1200 if "metric" in options else 600)  # half of them choose the metric, and do not count
    summary = train(rows, config, tmp_path / "m.h5", resources=Resources(jobs=1))
    several = options.keys() & {"partition", "repeats"}
    assert (summary.cells > 3) == bool(several) and summary.repeats == options.get("repeats", 1)
    with LocalModel(tmp_path / "m.h5") as model:
        share, width, X = covered(model, config.coverage)
        assert model.target.n_problems == len(model.method.value_losses) + 2
    assert config.coverage - 0.045 <= share <= config.coverage + (0.06 if several else 0.045)
    if "metric" not in options:  # which need not see a column that the spread alone depends on
        assert width[X[:, 1] > 0.1].mean() > 1.3 * width[X[:, 1] < -0.1].mean()


@pytest.mark.fast(1)
@pytest.mark.parametrize("loss", [LEAST_SQUARES, ABSOLUTE, QUANTILE])
def test_the_answer_has_the_point_that_it_has_without_intervals(loss: str, tmp_path: Path) -> None:
    """Gamma and C are those of the loss alone, and so are the cross-validated error and the answers."""
    points, errors, values = [], [], []
    for name, coverage in (("with", 0.9), ("without", None)):
        config = replace(VALUES, method=KernelSVM(loss=loss, tolerance=1e-6, **GRID), coverage=coverage)
        errors.append(train(rows_of(200), config, tmp_path / name).cv_error)
        with LocalModel(tmp_path / name) as model:
            state = model.file.cell(0)
            points.append([state[f"model_{each}"][state["model_problem"] == 0] for each in ("gamma", "cost")])
            values.append(model.predict(noisy(FRESH, 1000)[0]))
    np.testing.assert_array_equal(points[0], points[1])
    assert errors[0] == pytest.approx(errors[1], rel=1e-4)
    np.testing.assert_allclose(values[0], values[1], atol=0.01)


@pytest.mark.parametrize(("loss", "coverage", "message"), [
    (QUANTILE, None, "--loss quantile takes cells of up to 100 rows, and one has 200"),
    (LEAST_SQUARES, 0.9, "--coverage takes cells of up to 100 rows, and one has 200.* or no --coverage"),
    (LEAST_SQUARES, None, None),
])  # fmt: skip
def test_a_cell_whose_kernel_is_not_held_takes_least_squares_alone(
    loss: str, coverage: float | None, message: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(value_options, "WHOLE_ROWS", 100)
    config = replace(VALUES, method=KernelSVM(loss=loss, **GRID), coverage=coverage)
    with nullcontext() if message is None else pytest.raises(OptionError, match=message):
        train(rows_of(200), config, tmp_path / "m.h5")


class Counted:
    """Held-out scores of a run, on their way to the margins."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.scores = np.empty(0)
        really = training.outside

        def outside(*args: Any) -> tuple[np.ndarray, np.ndarray]:
            self.scores, weight = really(*args)
            return self.scores, weight

        monkeypatch.setattr(training, "outside", outside)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, 400),
        ({"metric": "diag"}, 80),  # four fifths learn it
        ({"metric": "diag", "partition": "voronoi", "cell_size": 150}, 80),
        ({"partition": "voronoi", "cell_size": 150, "repeats": 2}, 400),
        ({"metric": "diag", "folds": 4, "blocks": True}, 80),
    ],
    ids=["none", "metric", "cells", "repeats", "blocks"],
)
@pytest.mark.fast(4)
@pytest.mark.parametrize("kind", ["values", "classes"])
def test_only_rows_that_neither_learned_nor_chose_the_metric_have_scores(
    kind: str, options: dict[str, Any], expected: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    counted, classes = Counted(monkeypatch), kind == "classes"
    config = replace(CLASSES if classes else VALUES, coverage=0.87, **options)
    data = Dataset(*(blurred(400, 3, 0) if classes else noisy(400, 0)))
    train(data, config, tmp_path / "m.h5")
    repeats = options.get("repeats", 1)  # each gives a score of every row, which counts as a part of one
    assert counted.scores.shape == (repeats * expected,)
    with LocalModel(tmp_path / "m.h5") as model:
        ordered = np.sort(counted.scores)
        assert model.covering().margin(0.87) == ordered[int(np.ceil(repeats * 0.87 * (expected + 1))) - 1]
        assert model.covering().levels[-1] == max(level for level in LEVELS if rank(level, expected) <= expected)


@pytest.mark.parametrize("kind", ["values", "classes"])
def test_rows_of_weight_0_have_no_scores(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    counted = Counted(monkeypatch)
    X, y = blurred(200, 2, 0) if kind == "classes" else noisy(200, 0)
    weight = np.arange(200) % 4 * 1.0
    train(Dataset(X, y, weight=weight), CLASSES if kind == "classes" else VALUES, tmp_path / "m.h5")
    assert counted.scores.shape == (150,)


# runs of classes


@pytest.mark.parametrize("multiclass", ["ova", "ava"])
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("options", [{}, {"partition": "voronoi", "cell_size": 150}], ids=["one", "voronoi"])
@pytest.mark.fast(4)
def test_sets_hold_as_many_labels_as_was_promised(
    options: dict[str, Any], classes: int, multiclass: str, tmp_path: Path
) -> None:
    config = replace(CLASSES, multiclass=multiclass, **options)
    train(Dataset(*blurred(500, classes, 1)), config, tmp_path / "m.h5")
    X, y = blurred(FRESH, classes, 1000)
    with LocalModel(tmp_path / "m.h5") as model:
        sets, p = model.sets(X, 0.9), model.probabilities(X)
        assert sets.shape == (FRESH, classes) and sets.any(axis=1).all()
        assert sets[np.arange(FRESH), p.argmax(axis=1)].all()
        assert 0.86 <= sets[np.arange(FRESH), y.astype(int)].mean() <= 0.94
        assert (p.argmax(axis=1) == y).mean() < 0.85 and 1.1 < sets.sum(axis=1).mean() < classes - 0.5
        assert (model.sets(X, 0.7) <= sets).all()


@pytest.mark.parametrize("classes", [2, 3])
def test_probabilities_and_labels_stay_what_they_are(classes: int, tmp_path: Path) -> None:
    """A coverage is probabilities, and margins beside them: no other bit is different."""
    X = blurred(300, classes, 5)[0]
    found = []
    for name, more in (("sets", {}), ("plain", {"coverage": None, "probability": True})):
        train(Dataset(*blurred(300, classes, 4)), replace(CLASSES, **more), tmp_path / name)
        with LocalModel(tmp_path / name) as model:
            found.append((model.decision_function(X), model.probabilities(X)))
    np.testing.assert_array_equal(found[0][0], found[1][0])
    np.testing.assert_array_equal(found[0][1], found[1][1])


# the command line

ONE = ("-g", "0.5", "-C", "3", *PLAIN, "-j", 1)
SQUARES = ("--loss", LEAST_SQUARES)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Files of values and of classes to train on and to test, and models of them with a coverage and without."""
    path = tmp_path_factory.mktemp("coverage")
    for name, n, seed in (("train", 300, 1), ("test", 500, 1000)):
        write(path / f"values.{name}", *noisy(n, seed))
        X, y = blurred(n, 3, seed)
        write(path / f"classes.{name}", X, 10.0 * y - 5.0)
    for kind, loss in (("values", SQUARES), ("classes", ())):
        for name, coverage in (("covered", ("--coverage", ".9")), ("plain", ())):
            invoke("train", "-q", *loss, *ONE, *coverage, path / f"{kind}.train", path / f"{kind}.{name}.h5")
    return path


def said_of_coverage(text: str) -> tuple[str, int, int, float]:
    """The share, rows and number of the line on coverage."""
    found = re.search(r"^Coverage = (\S+%) \(([\d,]+)/([\d,]+)\), (?:mean width )?(\S+)", text, re.MULTILINE)
    assert found is not None, text
    return found[1], int(found[2].replace(",", "")), int(found[3].replace(",", "")), float(found[4])


def test_intervals_are_two_columns_behind_the_value(folder: Path, tmp_path: Path) -> None:
    files = (folder / "values.test", folder / "values.covered.h5")
    done = invoke("predict", "--coverage", "0.9", *files, tmp_path / "out")
    header, *lines = (tmp_path / "out").read_text().splitlines()
    assert header == "value lower upper"
    table, y = np.loadtxt(lines), read(folder / "values.test").y
    with LocalModel(files[1]) as model:
        X = read(folder / "values.test").X
        np.testing.assert_array_equal(table, np.column_stack([model.predict(X), model.intervals(X, 0.9)]))
    inside = (table[:, 1] <= y) & (y <= table[:, 2])
    width = (table[:, 2] - table[:, 1]).mean()
    assert said_of_coverage(done.stderr) == (f"{inside.mean():.2%}", inside.sum(), 500, pytest.approx(width, rel=1e-5))
    assert invoke("predict", "-q", *files, "-").stdout.split() == [line.split()[0] for line in lines]
    report = json.loads(invoke("predict", "--json", "--force", "--coverage", "0.9", *files, tmp_path / "out").stdout)
    assert (report["covered"], report["total"]) == (inside.sum(), 500)
    assert report["mean_width"] == pytest.approx(width, rel=1e-12)
    plain = json.loads(invoke("predict", "--json", "--force", *files, tmp_path / "out").stdout)
    assert not {"covered", "mean_width"} & plain.keys() and plain["loss"] == report["loss"]


def test_another_share_than_in_training_moves_the_ends(folder: Path) -> None:
    widths = []
    for share in (0.5, 0.9, 0.98):
        given = ("predict", "-q", "--coverage", share, folder / "values.test", folder / "values.covered.h5", "-")
        table = np.loadtxt(invoke(*given).stdout.splitlines()[1:])
        widths.append((table[:, 2] - table[:, 1]).mean())
    assert widths == sorted(widths) and widths[2] > 1.2 * widths[0]


def test_several_levels_have_their_columns_before_the_ends(folder: Path, tmp_path: Path) -> None:
    levels = ("--loss", "quantile", "--quantile", ".1,.5,.9")
    invoke("train", "-q", *levels, *ONE, "--coverage", ".8", folder / "values.train", tmp_path / "m.h5")
    done = invoke("predict", "--coverage", ".8", folder / "values.test", tmp_path / "m.h5", tmp_path / "out")
    header, *lines = (tmp_path / "out").read_text().splitlines()
    table = np.loadtxt(lines)
    assert header == "0.1 0.5 0.9 lower upper" and (np.diff(table[:, :3], axis=1) >= 0.0).all()
    assert (table[:, 3] < table[:, 4]).all()
    assert done.stderr.count("Mean pinball loss at ") == 3 and said_of_coverage(done.stderr)[2] == 500


def test_a_line_is_a_set_of_labels_the_most_probable_first(folder: Path, tmp_path: Path) -> None:
    files = (folder / "classes.test", folder / "classes.covered.h5")
    done = invoke("predict", "--coverage", "0.9", *files, tmp_path / "out")
    sets = [line.split() for line in (tmp_path / "out").read_text().splitlines()]
    header, *rows = (line.split() for line in invoke("predict", "-q", "-b", "1", *files, "-").stdout.splitlines())
    assert header == ["labels", "-5", "5", "15"] and len(sets) == len(rows) == 500
    for held, (label, *shares) in zip(sets, rows, strict=True):
        p = dict(zip(header[1:], map(float, shares), strict=True))
        assert held == sorted(held, key=lambda name: -p[name]) and held[0] == label and len(set(held)) == len(held)
        assert min(p[name] for name in held) >= max([0.0, *(p[name] for name in p if name not in held)])
    truth = [f"{label:g}" for label in read(folder / "classes.test").y]
    held = sum(label in names for label, names in zip(truth, sets, strict=True))
    mean = sum(map(len, sets)) / 500
    assert said_of_coverage(done.stderr) == (f"{held / 500:.2%}", held, 500, pytest.approx(mean, rel=5e-3))
    assert 0.85 < held / 500 < 0.95 and {len(names) for names in sets} >= {1, 2}
    report = json.loads(invoke("predict", "--json", "--force", "--coverage", "0.9", *files, tmp_path / "out").stdout)
    assert (report["covered"], report["labels_of_a_set"]) == (held, mean)


def table(path: Path, n: int, seed: int) -> None:
    """Write a table of a price with noise, of a kind that depends on it, and of two numbers."""
    X, y = noisy(n, seed)
    kinds = np.asarray(["low", "high; or so"])[(y > 50.0).astype(int)]
    with open(path, "w", newline="") as file:
        out = csv.writer(file)
        out.writerow(["id", "price", "kind", "a", "b"])
        out.writerows(
            [f"r{i}", repr(price), kind, *map(float, x)]
            for i, (price, kind, x) in enumerate(zip(y.tolist(), kinds, X, strict=True))
        )


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Tables of 250 rows to train on and of 200 to test, and a model of the price and of the kind."""
    path = tmp_path_factory.mktemp("tables")
    table(path / "train.csv", 250, 0)
    table(path / "test.csv", 200, 1)
    for label, other, loss in (("price", "kind", SQUARES), ("kind", "price", ())):
        given = (*loss, *ONE, "--coverage", ".9", "--label", label, "--ignore", other, "--id-column", "id")
        invoke("train", "-q", *given, path / "train.csv", path / f"{label}.h5")
    return path


@pytest.mark.parametrize("ending", ["csv", "tsv"])
def test_a_table_of_values_has_columns_for_both_ends(ending: str, tables: Path, tmp_path: Path) -> None:
    output = tmp_path / f"out.{ending}"
    files = (tables / "test.csv", tables / "price.h5")
    invoke("predict", "-q", "--coverage", ".9", *files, output)
    rows = list(csv.DictReader(output.read_text().splitlines(), delimiter="\t" if ending == "tsv" else ","))
    assert list(rows[0]) == ["id", "price", "price lower", "price upper"]
    assert [row["id"] for row in rows] == [f"r{i}" for i in range(200)]
    text = invoke("predict", "-q", "--format", "libsvm", "--coverage", ".9", *files, "-").stdout.splitlines()
    assert text[0] == "value lower upper"
    assert [line.split() for line in text[1:]] == [list(row.values())[1:] for row in rows]


def test_a_table_of_classes_has_a_column_of_sets(tables: Path, tmp_path: Path) -> None:
    files = (tables / "test.csv", tables / "kind.h5")
    done = invoke("predict", "--coverage", ".95", *files, tmp_path / "out.csv")
    rows = list(csv.DictReader((tmp_path / "out.csv").read_text().splitlines()))
    assert list(rows[0]) == ["id", "kind", "kind set"] and len(rows) == 200
    names = {"low": "low", "high; or so": "high; or so", "both": ";".join(["low", "high; or so"])}
    names["other way"] = ";".join(["high; or so", "low"])
    assert {row["kind set"] for row in rows} <= set(names.values())
    assert all(row["kind set"].startswith(row["kind"]) for row in rows)
    with open(tables / "test.csv") as file:
        truth = [row["kind"] for row in csv.DictReader(file)]
    held = sum(kind in row["kind set"] for kind, row in zip(truth, rows, strict=True))
    assert said_of_coverage(done.stderr)[1:3] == (held, 200)


def test_rows_without_a_value_have_intervals_and_are_not_counted(tables: Path, tmp_path: Path) -> None:
    (tmp_path / "new.csv").write_text("id,price,a,b\nx,50,0,0.5\ny,,0,0.5\nz,1000,0,0.5\n")
    done = invoke("predict", "--coverage", ".9", tmp_path / "new.csv", tables / "price.h5", tmp_path / "out.csv")
    rows = list(csv.DictReader((tmp_path / "out.csv").read_text().splitlines()))
    assert len(rows) == 3 and len({row["price lower"] for row in rows}) == 1
    assert said_of_coverage(done.stderr)[:3] == ("50.00%", 1, 2)


# what is refused


@pytest.mark.parametrize("kind", ["values", "classes"])
def test_a_model_without_a_coverage_says_what_to_do(kind: str, folder: Path, tmp_path: Path) -> None:
    model = folder / f"{kind}.plain.h5"
    message = error("predict", "--coverage", ".9", folder / f"{kind}.test", model, tmp_path / "out")
    assert message == f"{model}: no coverage was promised in training; train it again with --coverage 0.9\n"
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("flag", [("-b", "1"), ("--decision-values",)], ids=" ".join)
@pytest.mark.parametrize("kind", ["values", "classes"])
@pytest.mark.fast(4)
def test_other_columns_are_refused(kind: str, flag: tuple[str, ...], folder: Path, tmp_path: Path) -> None:
    files = (folder / f"{kind}.test", folder / f"{kind}.covered.h5", tmp_path / "out")
    message = usage_error("predict", "--coverage", ".9", *flag, *files)
    assert message.endswith(f"Error: {' '.join(flag)} and --coverage write different columns; give one of the two.")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("share", ["1.5", "1", "0", "-0.5", "nan"])
@pytest.mark.parametrize("kind", ["values", "classes"])
def test_a_share_beyond_0_and_1_is_refused(kind: str, share: str, folder: Path, tmp_path: Path) -> None:
    loss = SQUARES if kind == "values" else ()
    message = usage_error("train", *loss, *ONE, "--coverage", share, folder / f"{kind}.train", tmp_path / "m.h5")
    assert message == f"error: --coverage must be a number between 0 and 1, as 0.9, not {share}"
    files = (folder / f"{kind}.test", folder / f"{kind}.covered.h5", tmp_path / "out")
    message = usage_error("predict", "--coverage", share, *files)
    assert message == f"error: --coverage {share}: the model promises coverages from 0.5 to 0.995; give one of these"
    assert not list(tmp_path.iterdir())


def test_rows_too_few_for_a_share_are_refused_before_training(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "few", *noisy(30, 0))
    monkeypatch.setattr(training, "CellTrainer", None)
    message = error("train", *SQUARES, *ONE, "--coverage", ".98", tmp_path / "few", tmp_path / "m.h5")
    assert message == "30 held-out rows cannot promise --coverage 0.98: give more rows, or a smaller one\n"
    assert not (tmp_path / "m.h5").exists()


# the file


@pytest.fixture(scope="module")
def bases(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Small models of values and of classes with a coverage."""
    path = tmp_path_factory.mktemp("bases")
    for kind, config, rows in (("values", VALUES, noisy(60, 0)), ("classes", CLASSES, blurred(60, 2, 0))):
        method = replace(config.method, gamma=(0.5,), cost=(3.0,))
        train(Dataset(*rows), replace(config, method=method), path / f"{kind}.h5")
    return {kind: path / f"{kind}.h5" for kind in ("values", "classes")}


def answers(path: Path, kind: str) -> np.ndarray:
    with LocalModel(path) as model:
        X = noisy(20, 1)[0]
        return model.intervals(X, 0.9) if kind == "values" else model.sets(X, 0.9)


def damages(base: Path) -> Iterator[Damage]:
    """Each change of the group and of the option, and the group of another model."""
    every = [*damaged(base, set()), *attributes(base)]
    yield from (each for each in every if each.place.startswith("/coverage") or each.place == "/@config coverage")
    for place in ("levels", "margins"):
        with h5py.File(base) as file:
            array = file[f"/coverage/{place}"][...]
        if place == "levels":
            yield Damage("/coverage/levels", "descending", lambda f, a=array: replaced(f, "/coverage/levels", a[::-1]))  # type: ignore[misc]
            yield Damage("/coverage/levels", "above 1", lambda f, a=array: replaced(f, "/coverage/levels", a + 0.5))  # type: ignore[misc]


@pytest.mark.fast(1)
@pytest.mark.parametrize("kind", ["values", "classes"])
def test_a_damaged_group_is_refused_in_a_line(kind: str, bases: dict[str, Path], tmp_path: Path) -> None:
    """Other margins alone make another model, which could have been trained."""
    sound, path, refused = answers(bases[kind], kind), tmp_path / "m.h5", set()
    for damage in damages(bases[kind]):
        damage.make(bases[kind], path)
        if damage.place == "/coverage/margins" and damage.kind in ("all 0", "all largest"):
            assert not np.array_equal(answers(path, kind), sound)
            continue
        with pytest.raises(ModelError) as caught:
            answers(path, kind)
        message = str(caught.value)
        assert message.startswith(f"{path}: ") and message.isprintable(), (damage.place, damage.kind)
        refused.add((damage.place, damage.kind))
    assert {("/coverage", "missing"), ("/coverage/levels", "descending"), ("/coverage@kind", "unknown")} <= refused
    assert len(refused) > 30


def test_a_factor_makes_intervals_narrower_and_is_no_other_than_one(bases: dict[str, Path], tmp_path: Path) -> None:
    low, high = answers(bases["values"], "values").T
    path = tmp_path / "m.h5"

    def with_factor(*numbers: float) -> np.ndarray:
        Damage("/coverage", "", lambda f: f.create_dataset("/coverage/shrink", data=numbers)).make(
            bases["values"], path
        )
        return answers(path, "values")

    narrow = with_factor(0.5)
    np.testing.assert_allclose(narrow, np.stack([(3 * low + high) / 4, (low + 3 * high) / 4], axis=1), rtol=1e-12)
    for numbers in ((1.5,), (-0.5,), (math.nan,), (0.5, 0.5), ()):
        with pytest.raises(ModelError, match="/coverage/shrink"):
            with_factor(*numbers)


def test_ends_of_intervals_lie_where_the_file_says_and_not_inside_the_values(
    bases: dict[str, Path], tmp_path: Path
) -> None:
    path = tmp_path / "m.h5"

    def with_ends(**ends: float) -> np.ndarray:
        def change(file: h5py.File) -> None:
            config = json.loads(file.attrs["config"])
            config["values"] |= ends
            file.attrs["config"] = np.bytes_(json.dumps(config))

        Damage("/@config", "", change).make(bases["values"], path)
        return answers(path, "values")

    np.testing.assert_array_equal(with_ends(lowest=-1e6), answers(bases["values"], "values"))
    for ends in ({"lowest": 1e6}, {"highest": -1e6}):
        with pytest.raises(ModelError, match="the option values is no range"):
            with_ends(**ends)


def test_a_group_that_no_option_asks_for_is_refused(bases: dict[str, Path], tmp_path: Path) -> None:
    def forget(file: h5py.File) -> None:
        config = json.loads(file.attrs["config"])
        del config["coverage"]
        file.attrs["config"] = np.bytes_(json.dumps(config))

    Damage("/@config", "", forget).make(bases["classes"], tmp_path / "m.h5")
    message = error("inspect", tmp_path / "m.h5")
    assert message.startswith(f"{tmp_path}/m.h5: not as localsvm writes it: /coverage is not what the option coverage")
