"""Models of values are the same bits whoever has the rows, however many work, and wherever a run was interrupted."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from command_line import PLAIN, Stopped, error, invoke, stopped_after
from parts_of_text import Parts
from scipy import sparse
from test_engines import ENGINES, engine, manifest
from test_part_prediction import path_of
from value_cells import noisy

from localsvm.cli.labels import PredictionLines
from localsvm.cli.value_lines import ValueLines
from localsvm.data.blocks.dataset import Dataset, as_examples
from localsvm.data.writers.libsvm import write
from localsvm.engines import base
from localsvm.features import ranks
from localsvm.methods.kernel.svm import KernelSVM
from localsvm.partition import two_step
from localsvm.representations.metric import Geometry
from localsvm.runs.cells.schedule import Resources
from localsvm.runs.config import TrainingConfig
from localsvm.runs.cross_validate import cross_validate
from localsvm.runs.predict import LocalModel
from localsvm.runs.prediction.parts import Collected, Prediction, TextRows, predict_parts
from localsvm.runs.preparation import prepare as preparing
from localsvm.runs.preparation import regions
from localsvm.runs.progress import Work
from localsvm.runs.train import train
from localsvm.selection import averaging
from localsvm.targets.loss_names import ABSOLUTE, EXPECTILE, HUBER, LEAST_SQUARES, QUANTILE

POINTS: dict[str, Any] = {"gamma": (0.1, 1.0), "cost": (0.3, 10.0)}
SQUARES = KernelSVM(loss=LEAST_SQUARES, **POINTS)
LEVELS = KernelSVM(loss=QUANTILE, quantile=(0.1, 0.5, 0.9), **POINTS)
COARSE = TrainingConfig(SQUARES, "voronoi", 60, coarse_size=250, metric="none", folds=3)


# engines


def plain(path: Path, n: int = 600) -> None:
    write(path, *noisy(n, 0))


def far(path: Path) -> None:
    """Write rows with two columns far from 0, one of which is constant."""
    X, y = noisy(600, 0)
    rows = zip(X.tolist(), y.tolist(), strict=True)
    path.write_text("".join(f"{v!r} 1:{1.7e9 + 100.0 * a!r} 2:{b!r} 3:1700000001\n" for (a, b), v in rows))


def thin(path: Path) -> None:
    """Write sparse rows with many columns, of which two matter."""
    X, y = noisy(400, 0)
    more = sparse.random_array((400, 2000), density=0.01, rng=np.random.default_rng(1), dtype=np.float32).tolil()
    more[:, :2] = X
    write(path, as_examples(sparse.csr_array(more)), y)


def tails(path: Path) -> None:
    """Write rows of which ranks are of use: a few are so far away that all others are one point."""
    Z = np.random.default_rng(0).standard_normal((500, 3))
    write(path, np.exp(3.0 * Z), 5.0 * np.sin(2.0 * Z[:, 0]) + Z[:, 1])


def copies(path: Path) -> None:
    """Write rows of one place that have the same value, and others that have not."""
    X, y = noisy(200, 0)
    write(path, np.concatenate([X, X, np.zeros((100, 2), np.float32)]), np.concatenate([y, y, np.arange(100) % 7.0]))


CASES: dict[str, tuple[Callable[[Path], None], dict[str, Any]]] = {
    "squares": (plain, {}),
    "levels": (plain, {"method": LEVELS}),
    "expectiles": (plain, {"method": KernelSVM(loss=EXPECTILE, quantile=(0.2, 0.8), **POINTS), "scale": "zscore"}),
    "epsilons": (plain, {"method": KernelSVM(loss=HUBER, epsilon=(0.5, 2.0), **POINTS), "select": "vote"}),
    "intervals": (plain, {"coverage": 0.9}),
    "intervals, a metric": (plain, {"coverage": 0.9, "metric": "diag"}),
    "levels in chunks": (plain, {"method": LEVELS, "partition": "chunks", "grid": "full"}),
    "one cell in each": (plain, {"partition": "none", "scoring": "mae"}),
    "one cell": (plain, {"coarse_size": None, "partition": None, "cell_size": 1000, "coverage": 0.9}),
    "far from 0": (far, {"metric": "diag"}),
    "sparse": (thin, {"scale": "none", "coverage": 0.7}),
    "copies": (copies, {"method": LEVELS, "metric": "diag"}),
    "blocks of rows": (plain, {"blocks": True, "metric": "diag", "coverage": 0.7}),
    "members": (tails, {"method": KernelSVM(loss=LEAST_SQUARES, cost=(10.0,)), "metric": "auto", "repeats": 3}),
}


LONG = {"members"}


@pytest.mark.fast(1)
@pytest.mark.parametrize("name", [pytest.param(k, marks=pytest.mark.whole) if k in LONG else k for k in CASES])
def test_all_engines_train_the_same_model(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make, options = CASES[name]
    config, file = replace(COARSE, **options), tmp_path / "rows"
    make(file)
    monkeypatch.setattr(two_step, "SAMPLE_ROWS", 300)
    monkeypatch.setattr(ranks, "SAMPLE", 300)
    monkeypatch.setattr(base, "BLOCK_VALUES", 150)
    monkeypatch.setattr(preparing, "REGIONS_FROM", 100)
    monkeypatch.setattr(regions, "REGION_ROWS", 12)
    summaries = {kind: train(engine(kind, file, config), config, tmp_path / f"{kind}.h5") for kind in ENGINES}
    for number, ends in enumerate([(), (1, 399)]):
        summaries[str(number)] = train(engine("spark", file, config, ends), config, tmp_path / f"{number}.h5")
    for kind, summary in summaries.items():
        assert manifest(tmp_path / f"{kind}.h5") == manifest(tmp_path / "memory.h5"), kind
        assert replace(summary, seconds={}) == replace(summaries["memory"], seconds={}), kind
    assert summaries["memory"].values is not None
    if make is tails:
        chosen = summaries["memory"].metric
        assert chosen is not None and "ranks" in chosen["name"] and ("members" in chosen) == (name == "members")


def table(path: Path, n: int, seed: int) -> None:
    """Write a table of prices, a number with gaps, a column of 40 towns and one of three kinds."""
    rng = np.random.default_rng(seed)
    town, size, kind = rng.integers(0, 40, n), rng.standard_normal(n), rng.integers(0, 3, n)
    level = np.random.default_rng(99).normal(0.0, 5.0, 40)
    y = 100.0 + level[town] + 2.0 * np.sin(size) + kind + 0.5 * rng.standard_normal(n)
    with open(path, "w", newline="") as file:
        out = csv.writer(file)
        out.writerow(["id", "price", "size", "town", "kind"])
        for i in range(n):
            shown = "" if i % 13 == 0 else f"{size[i]:.4f}"
            out.writerow([f"r{i}", repr(float(y[i])), shown, f"town {town[i]}", f"k,\n{kind[i]}"])


FEW = ("-g", "0.1,1", "-C", "0.3,10", "-v", "3", *PLAIN)
TABLE = ("--label", "price", "--id-column", "id")
LOSSES = {
    "squares": ("--loss", LEAST_SQUARES, "--coverage", ".9"),
    "levels": ("--loss", QUANTILE, "--quantile", ".1,.5,.9"),
}


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("cells", [("-P", "voronoi", "-c", 100), ()], ids=["voronoi", "one"])
@pytest.mark.fast(2)
def test_a_table_with_many_levels_is_the_same_out_of_core(cells: tuple[Any, ...], loss: str, tmp_path: Path) -> None:
    table(tmp_path / "train.csv", 300, 0)
    table(tmp_path / "test.csv", 200, 1)
    given = ("train", "-q", "-j", 1, *LOSSES[loss], *FEW, *TABLE, *cells, tmp_path / "train.csv")
    invoke(*given, tmp_path / "memory.h5")
    invoke(*given, "--out-of-core", tmp_path / "disk.h5")
    assert manifest(tmp_path / "memory.h5") == manifest(tmp_path / "disk.h5")
    share = LOSSES[loss][2:] if loss == "squares" else ()
    done = invoke("predict", *share, tmp_path / "test.csv", tmp_path / "disk.h5", tmp_path / "out.csv")
    rows = list(csv.DictReader((tmp_path / "out.csv").read_text().splitlines()))
    with open(tmp_path / "test.csv", newline="") as file:
        y = np.asarray([float(row["price"]) for row in csv.DictReader(file)])
    answers = np.asarray([float(row["price" if loss == "squares" else "price 0.5"]) for row in rows])
    assert np.mean(np.square(answers - y)) < 0.15 * y.var() and len(done.stderr.splitlines()) == 3


@pytest.mark.whole
def test_weights_are_those_of_the_rows_out_of_core(tmp_path: Path) -> None:
    plain(tmp_path / "rows", 300)
    (tmp_path / "weights").write_text("".join(f"{i % 4}\n" for i in range(300)))
    given = ("train", "-q", "-j", 1, *LOSSES["squares"], *FEW, "-P", "voronoi", "-c", 60, "--coarse-size", 120)
    for name, more in (("memory", ()), ("disk", ("--out-of-core",))):
        invoke(*given, *more, "--weights", tmp_path / "weights", tmp_path / "rows", tmp_path / name)
    assert manifest(tmp_path / "memory") == manifest(tmp_path / "disk")


@pytest.mark.parametrize("kind", ["values", "levels", "classes"])
def test_intervals_and_sets_of_a_text_in_parts_are_those_of_one_machine(kind: str, tmp_path: Path) -> None:
    rows, model = tmp_path / "rows", tmp_path / "m.h5"
    X, y = noisy(300, 0)
    write(rows, X, np.digitize(y, [48.0, 52.0]) if kind == "classes" else y)
    loss = {"values": LOSSES["squares"][:2], "levels": LOSSES["levels"], "classes": ()}[kind]
    invoke("train", "-q", "-j", 1, *loss, "-g", "0.5", "-C", "3", *PLAIN, "--coverage", ".9", rows, model)
    result = invoke("predict", "--coverage", ".9", rows, model, tmp_path / "one")
    lines = partial(PredictionLines if kind == "classes" else ValueLines, coverage=True)
    for ends, piece in (([], 1 << 30), ([3, 100, 100, 250], 70)):
        with LocalModel(model) as local:
            said = Collected.of(local, None)
        task = Prediction(TextRows(str(rows), False), partial(path_of, model), lines, None, False, 0.9)
        assert "".join(predict_parts(Parts(rows, list(ends), piece), task, said)) == (tmp_path / "one").read_text()
        report = said.score.as_dict()
        assert f"({report['covered']:,}/300), " in result.stderr and report["total"] == 300


# workers, and interruptions

CONFIGS = {
    "squares": replace(COARSE, coarse_size=None, coverage=0.9),
    "levels": replace(COARSE, coarse_size=None, method=replace(LEVELS, gamma=(0.05, 0.2, 1.0, 4.0))),
    "absolute": replace(COARSE, coarse_size=None, method=KernelSVM(loss=ABSOLUTE, **POINTS), select="vote"),
}


def rows_of(n: int = 300, seed: int = 0) -> Dataset:
    return Dataset(*noisy(n, seed))


@pytest.mark.whole
@pytest.mark.parametrize("name", CONFIGS)
@pytest.mark.parametrize("partition", ["none", "voronoi"])
def test_workers_change_no_bit(partition: str, name: str, tmp_path: Path) -> None:
    """The settings of one large cell go to several workers, and several cells do; more workers have threads inside."""
    config = replace(CONFIGS[name], partition=partition, cell_size=1000 if partition == "none" else 60)
    for jobs in (1, 5):
        train(rows_of(), config, tmp_path / f"{jobs}.h5", resources=Resources(jobs=jobs))
        assert manifest(tmp_path / f"{jobs}.h5") == manifest(tmp_path / "1.h5")


@pytest.mark.parametrize(("jobs", "done"), [(1, 3), pytest.param(2, 2, marks=pytest.mark.whole)])
@pytest.mark.parametrize("partition", ["none", "voronoi"])
@pytest.mark.parametrize("name", CONFIGS)
@pytest.mark.fast(5)
def test_a_run_that_was_stopped_goes_on_to_the_same_bits(
    name: str, partition: str, jobs: int, done: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is stopped when so many settings or cells are there, by one worker or by two; the others are resumed."""
    config = replace(CONFIGS[name], partition=partition, cell_size=1000 if partition == "none" else 100)
    path = tmp_path / "m.h5"
    train(rows_of(), config, tmp_path / "whole.h5")
    with stopped_after(done, monkeypatch):
        train(rows_of(), config, path, resources=Resources(jobs=jobs))
    assert not path.exists()
    train(rows_of(), config, path, resume=True)
    assert manifest(path) == manifest(tmp_path / "whole.h5")
    assert sorted(each.name for each in tmp_path.iterdir()) == ["m.h5", "whole.h5"]


def test_another_coverage_or_level_is_another_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def stopping(*_: Any) -> None:
        raise Stopped

    plain(tmp_path / "rows", 100)
    given = ("train", "-q", "-j", 1, *FEW)
    for loss, other, said in (
        ("squares", (*LOSSES["squares"][:2], "--coverage", ".8"), "--coverage was 0.9, is 0.8"),
        ("squares", LOSSES["squares"][:2], "--coverage"),
        ("levels", (*LOSSES["levels"][:2], "--quantile", ".1,.5"), "--quantile was [0.1, 0.5, 0.9], is [0.1, 0.5]"),
    ):
        model = tmp_path / f"{loss}.h5"
        with monkeypatch.context() as patch, pytest.raises(Stopped):
            patch.setattr(Work, "record", stopping)
            invoke(*given, *LOSSES[loss], "--force", tmp_path / "rows", model)
        assert said in error(*given, *other, "--resume", tmp_path / "rows", model)


# members


def members_of(path: Path) -> dict[str, Any]:
    with h5py.File(path) as file:
        return dict(json.loads(file.attrs["config"])["learned"])


def curved(n: int, seed: int) -> Dataset:
    """Rows of five columns, of which three matter, one by its ranks alone; values around 30."""
    rng = np.random.default_rng(seed)
    Z = rng.standard_normal((n, 5))
    y = 30.0 + 4.0 * np.sin(Z[:, 0]) * Z[:, 1] + 2.0 * Z[:, 2] + rng.standard_normal(n)
    Z[:, 2] = np.exp(2.0 * Z[:, 2])
    return Dataset((Z / Z.std(axis=0)).astype(np.float32), y)


def rmse(path: Path, level: int | None = None) -> float:
    test = curved(500, 9)
    with LocalModel(path) as model:
        answers = model.predict(test.X)
        return float(np.sqrt(np.mean(np.square(test.y - (answers if level is None else answers[:, level])))))


def expected(model: LocalModel, X: np.ndarray) -> np.ndarray:
    """The weighted mean of members, each by its metric alone, whose values are clipped to the range of training."""
    record, before = members_of(Path(model.file.path)), 0
    weights = record.get("weights", [1.0 / len(model.partition.parts)] * len(model.partition.parts))
    viewed, total = model.chain.viewed(model.chain.scaled(X)), np.zeros((len(X), model.target.n_problems))
    for repeat, part in enumerate(model.partition.parts):
        number = repeat % len(record["members"])
        Z = model.chain.metric.parts[number].apply(viewed.copy())
        method = model.method.measuring(Geometry.named(record["members"][number]).distance)
        cells = part.assign(Z) if part.n_cells > 1 else np.zeros(len(X), int)
        for cell in np.unique(cells):
            predictor = method.predictor(model.file.cell(before + int(cell)), model.target, Z.shape[1])
            values = predictor.decision_function(Z[cells == cell])
            total[cells == cell] += weights[repeat] * model.target.bounded(values)
        before += part.n_cells
    return total


TWO: dict[str, Any] = {"cost": (3.0, 30.0)}


@pytest.mark.whole
@pytest.mark.parametrize(
    ("method", "options"),
    [
        (KernelSVM(loss=LEAST_SQUARES, **TWO), {}),
        (KernelSVM(loss=QUANTILE, quantile=(0.25, 0.5, 0.75), **TWO), {}),
        (KernelSVM(loss=LEAST_SQUARES, **TWO), {"partition": "voronoi", "cell_size": 150}),
        (KernelSVM(loss=LEAST_SQUARES, **TWO), {"coverage": 0.9}),
    ],
    ids=["squares", "levels", "cells", "intervals"],
)
def test_members_of_several_geometries_are_averaged(method: KernelSVM, options: dict[str, Any], tmp_path: Path) -> None:
    config = TrainingConfig(method, **options)
    train(curved(400, 0), config, tmp_path / "one.h5")
    summary = train(curved(400, 0), replace(config, repeats=3), tmp_path / "three.h5")
    assert summary.repeats == 3 and len(members_of(tmp_path / "three.h5")["members"]) > 1
    middle = 1 if method.quantile else None
    assert rmse(tmp_path / "three.h5", middle) < 1.1 * rmse(tmp_path / "one.h5", middle) < 2.0
    test = curved(300, 5)
    with LocalModel(tmp_path / "three.h5") as model:
        values = model.decision_function(test.X)
        np.testing.assert_allclose(values, expected(model, test.X), atol=1e-5)
        if config.coverage:
            low, high = model.intervals(test.X, 0.9).T
            assert np.mean((low <= test.y) & (test.y <= high)) > 0.8


def test_held_out_values_say_how_much_each_member_weighs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A few rows are enough for the weights here. No member is worse than alone, and the sum of the weights is 1."""
    monkeypatch.setattr(averaging, "LEAST_ROWS", 50)
    config = TrainingConfig(KernelSVM(loss=LEAST_SQUARES, **TWO), repeats=3)
    train(curved(400, 3), config, tmp_path / "m.h5")
    train(curved(400, 3), replace(config, repeats=1), tmp_path / "one.h5")
    weights = members_of(tmp_path / "m.h5")["weights"]
    assert len(weights) == 3 and sum(weights) == pytest.approx(1.0) and max(weights) > 0.4
    assert rmse(tmp_path / "m.h5") < 1.05 * rmse(tmp_path / "one.h5")
    with LocalModel(tmp_path / "m.h5") as model:
        X = curved(200, 5).X
        np.testing.assert_allclose(model.decision_function(X), expected(model, X), atol=1e-5)


@pytest.mark.whole
def test_members_are_as_good_as_they_are_said_to_be(tmp_path: Path) -> None:
    """The error is that of the mean of the members, in training and in the table alike."""
    config = TrainingConfig(KernelSVM(loss=LEAST_SQUARES, **TWO), repeats=3, grid="full")
    summary, scores = train(curved(600, 0), config, tmp_path / "m.h5"), cross_validate(curved(600, 0), config)
    assert scores.error == summary.cv_error and scores.metric == summary.metric
    assert summary.cv_error is not None
    assert np.sqrt(summary.cv_error) == pytest.approx(rmse(tmp_path / "m.h5"), rel=0.5)


@pytest.mark.whole
@pytest.mark.parametrize("loss", LOSSES)
def test_a_high_effort_is_trained_and_predicts(loss: str, tmp_path: Path) -> None:
    for name, seed in (("train", 0), ("test", 9)):
        data = curved(500, seed)
        write(tmp_path / name, data.X, data.y)
    for effort in ("normal", "high"):
        given = ("train", "-j", 2, *LOSSES[loss], "--effort", effort, tmp_path / "train", tmp_path / f"{effort}.h5")
        done = invoke(*given)
        assert ("6 repeats, " in done.stderr) == (effort == "high")
    middle = 1 if loss == "levels" else None
    # members of few rows: 500 are no more than a sample
    assert rmse(tmp_path / "high.h5", middle) < 1.2 * rmse(tmp_path / "normal.h5", middle)


@pytest.mark.whole
def test_members_that_were_stopped_go_on_to_the_same_bits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = TrainingConfig(
        KernelSVM(loss=QUANTILE, quantile=(0.1, 0.9), **TWO), "voronoi", 150, repeats=3, coverage=0.9
    )
    train(curved(400, 0), config, tmp_path / "whole.h5", resources=Resources(jobs=2))
    with stopped_after(40, monkeypatch):
        train(curved(400, 0), config, tmp_path / "m.h5")
    train(curved(400, 0), config, tmp_path / "m.h5", resume=True)
    assert manifest(tmp_path / "m.h5") == manifest(tmp_path / "whole.h5")
