"""Whole training runs: the same bits for any number of jobs and after a resume, and what the model file predicts."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from dividing import divide
from scipy import sparse
from selecting import observed_of

from localsvm.data.blocks.dataset import Dataset, as_examples
from localsvm.data.synthetic import banana
from localsvm.engines.base import CoarseRows, Drawn
from localsvm.errors import DataError, ModelError, RunError
from localsvm.kernels import blocks
from localsvm.kernels._kernels import LEVELS, simd_level
from localsvm.methods.base import Prepared, Purpose, View
from localsvm.methods.cell import Cell
from localsvm.methods.fit_report import FitReport
from localsvm.methods.grids import Grid
from localsvm.methods.kernel import method as kernel_method
from localsvm.methods.kernel.svm import KernelSVM
from localsvm.methods.kernel.systems.kernel import KernelSystem
from localsvm.methods.kernel.systems.prepared import PreparedKernel
from localsvm.methods.locally_linear.kmeans_svm import KMeansSVM
from localsvm.parallel.local import LocalPool
from localsvm.runs.cells import schedule as scheduling
from localsvm.runs.cells.records import unpack
from localsvm.runs.cells.schedule import PoolFactory, Resources
from localsvm.runs.cells.work import CellReport, CellResult
from localsvm.runs.config import TrainingConfig
from localsvm.runs.cross_validate import cross_validate, mean_grid
from localsvm.runs.partition import partition_only
from localsvm.runs.predict import LocalModel
from localsvm.runs.progress import Silent
from localsvm.runs.train import run_key, train
from localsvm.selection.cross_validation import CellSelection, Scores
from localsvm.selection.folds import stratified

FAST = KernelSVM(gamma=(0.5, 4.0), cost=(0.3, 3.0))


def data(n: int = 600, classes: int = 2, seed: int = 0) -> Dataset:
    X, y = banana(n, np.random.default_rng(seed))
    if classes == 3:
        y = np.where(X[:, 0] > 1, 5.0, y)
    return Dataset(X.copy(), y.astype(np.float64))


def manifest(path: Path) -> bytes:
    with h5py.File(path) as file:
        return bytes(file.attrs["manifest"])


CONFIGS = [
    TrainingConfig(FAST, "voronoi", 150, metric="none"),
    TrainingConfig(FAST, "chunks", 150, select="refit", scale="zscore", metric="none"),
    TrainingConfig(FAST, "kmeans", 150, class_weights=((1.0, 2.0),), metric="none"),
    TrainingConfig(FAST, None, 1000, scale="minmax", metric="none"),
    TrainingConfig(KernelSVM(), None, 1000, grid="adaptive", select="refit", metric="none"),
    TrainingConfig(KernelSVM(gamma=(1.0,), cost=(1.0,), offset=True), None, 1000, scale="none", metric="none"),
]


@pytest.mark.fast(2)
@pytest.mark.parametrize("config", CONFIGS, ids=lambda c: f"{c.partition}-{c.grid}-{c.select}-{c.scale}")
@pytest.mark.parametrize("classes", [2, 3])
def test_one_and_two_jobs_give_the_same_bits(config: TrainingConfig, classes: int, tmp_path: Path) -> None:
    for jobs in (1, 2):
        summary = train(data(classes=classes), config, tmp_path / f"{jobs}.h5", resources=Resources(jobs=jobs))
        assert summary.rows == 600 and summary.not_converged == 0
        assert not list(tmp_path.glob("*.journal"))
    assert manifest(tmp_path / "1.h5") == manifest(tmp_path / "2.h5")
    with LocalModel(tmp_path / "1.h5") as model:
        test = data(500, classes, seed=1)
        assert (model.predict(test.X) == test.y).mean() > 0.85


@pytest.mark.parametrize("offset", [False, True])
def test_threads_inside_one_large_problem_give_the_same_bits(
    offset: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kernel_method, "SINGLE_ROWS", 500)
    monkeypatch.setattr(blocks, "STRIP", 64)
    config = TrainingConfig(
        KernelSVM(gamma=(1.0,), cost=(1.0,), offset=offset), None, 1000, scale="none", metric="none"
    )
    for jobs in (1, 3):
        assert train(data(), config, tmp_path / f"{jobs}.h5", resources=Resources(jobs=jobs)).not_converged == 0
    assert manifest(tmp_path / "1.h5") == manifest(tmp_path / "3.h5")


def test_a_small_run_starts_no_workers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    jobs: list[int] = []

    class Counted(LocalPool):
        def __init__(self, count: int, *rest: Any) -> None:
            jobs.append(count)
            super().__init__(count, *rest)

    for most in (600, 600**2):  # one a row, and more than any division of 600 rows
        monkeypatch.setattr(scheduling, "SMALL_RUN", most)
        train(data(), CONFIGS[0], tmp_path / f"{most}.h5", resources=Resources(jobs=2, pool=Counted))
    assert jobs == [2, 1]
    assert len({str(manifest(path)) for path in tmp_path.iterdir()}) == 1


def test_seeds_differ(tmp_path: Path) -> None:
    for seed in (0, 1):
        train(data(), TrainingConfig(FAST, "voronoi", 150, seed=seed, metric="none"), tmp_path / f"{seed}.h5")
    assert manifest(tmp_path / "0.h5") != manifest(tmp_path / "1.h5")


class Stop(Exception):
    """Ends a run in the middle."""


class StopAfter(Silent):
    """An observer that stops the run after so many cells."""

    def __init__(self, cells: int) -> None:
        self.left = cells
        self.resumed = 0

    def cells(self, total: int, done: int, what: str = "cells") -> None:
        self.resumed = done

    def cell_done(self, wrong: float, weight: float) -> None:
        self.left -= 1
        if self.left == 0:
            raise Stop


@pytest.mark.parametrize("config", CONFIGS[:2], ids=lambda c: c.partition)
def test_a_resumed_run_gives_the_same_bits(
    config: TrainingConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = tmp_path / "m.h5"
    with pytest.raises(Stop):
        train(data(), config, model, resources=Resources(observer=StopAfter(2)))
    with pytest.raises(RunError, match="--resume"):
        train(data(), config, model)
    with pytest.raises(ModelError, match="differ"):
        train(data(seed=3), config, model, resume=True)
    observer, fits = StopAfter(99), []
    with monkeypatch.context() as patch:
        fit = CellSelection.fit
        patch.setattr(CellSelection, "fit", lambda *given: fits.append(given) or fit(*given))
        summary = train(data(), config, model, resume=True, resources=Resources(observer=observer))
    assert observer.resumed == 2 and len(fits) == summary.cells - 2
    with h5py.File(model) as file:
        assert summary.largest_gap == pytest.approx(float(file["cells/model_gap"][...].max()), rel=1e-6)
    whole = train(data(), config, tmp_path / "whole.h5")
    assert manifest(model) == manifest(tmp_path / "whole.h5")
    assert summary.cv_error == whole.cv_error and summary.support_vectors == whole.support_vectors


class StopAfterSettings(Silent):
    """An observer that stops the run when so many settings of unfinished cells are scored."""

    def __init__(self, settings: int) -> None:
        self.settings = settings

    def work(self, share: float, settings: int) -> None:
        if settings == self.settings:
            raise Stop


def noting(scored: list[int]) -> PoolFactory:
    """A pool that notes which settings are scored."""

    class Noting(LocalPool):
        def unordered(self, work: Any) -> Any:
            for unit, result in super().unordered(work):
                if isinstance(result, Scores):
                    scored.append(result.best.setting)
                yield unit, result

    return Noting


ONE_CELL = {
    "vote": (TrainingConfig(KernelSVM(), metric="none"), 2),
    "refit": (TrainingConfig(KernelSVM(), select="refit", probability=True, metric="none"), 3),
    "offset": (TrainingConfig(KernelSVM(offset=True), grid="full", metric="none"), 2),
    "clusters": (TrainingConfig(KMeansSVM(clusters=(2.0, 4.0, 6.0)), grid="full"), 2),
}


@pytest.mark.fast(1)
@pytest.mark.parametrize("jobs", [1, 2])
@pytest.mark.parametrize("name", ONE_CELL)
def test_a_run_of_one_cell_goes_on_with_its_next_setting(
    name: str, jobs: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scheduling, "SMALL_RUN", 0.0)  # two jobs: a unit a setting
    config, classes = ONE_CELL[name]
    whole: list[int] = []
    train(data(200, classes), config, tmp_path / "whole.h5", resources=Resources(jobs=3 - jobs, pool=noting(whole)))
    assert len(set(whole)) == len(whole) > 2
    model, scored = tmp_path / "m.h5", list[int]()
    for stop in range(1, len(whole), 3):
        stopped = Resources(jobs=jobs, pool=noting(scored), observer=StopAfterSettings(stop))
        with pytest.raises(Stop):
            train(data(200, classes), config, model, resume=True, resources=stopped)
        assert len(scored) == stop
    train(data(200, classes), config, model, resume=True, resources=Resources(jobs=jobs, pool=noting(scored)))
    assert sorted(scored) == sorted(whole), "each is scored once, in one of the runs"
    assert manifest(model) == manifest(tmp_path / "whole.h5")
    assert not list(tmp_path.glob("*.journal"))


@pytest.mark.parametrize(
    ("loss", "best", "message"),
    [
        (np.zeros((1, 1)), [0.0, 0.0, 0.0], "not as localsvm writes it"),
        (np.zeros((10, 10)), [0.5, 0.0, 0.0], "not as localsvm writes it"),
        (np.zeros((10, 9)), [0.0, 0.0, 0.0], "another grid"),
        (np.zeros((10, 10)), [0.0, 0.0, 0.0], "not those of this data"),
    ],
)
def test_scores_that_are_none_are_refused(
    loss: np.ndarray, best: list[float], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = TrainingConfig(KernelSVM(), metric="none")
    with monkeypatch.context() as stranger, pytest.raises(Stop):
        stranger.setattr(
            scheduling, "pack_scores", lambda _: {"loss": loss, "best": np.asarray(best), "crossed": np.asarray(0)}
        )
        train(data(200), config, tmp_path / "m.h5", resources=Resources(observer=StopAfterSettings(1)))
    with pytest.raises((ModelError, RunError), match=f"{message}; give --force"):
        train(data(200), config, tmp_path / "m.h5", resume=True)


def workers() -> list[str]:
    """Command lines of this process's children that do work for a pool."""
    children = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
    lines = [Path(f"/proc/{child}/cmdline").read_bytes().replace(b"\0", b" ").decode() for child in children]
    return [line for line in lines if "loky" in line and "resource_tracker" not in line]


def test_a_run_that_stops_leaves_no_worker(tmp_path: Path) -> None:
    with pytest.raises(Stop) as stopped:
        train(data(), CONFIGS[0], tmp_path / "m.h5", resources=Resources(jobs=2, observer=StopAfter(1)))
    assert stopped.tb is not None  # which would keep a generator alive, and what it has opened
    assert workers() == []


def test_prediction_in_another_process_equals_the_fitted_models(tmp_path: Path) -> None:
    train(data(), CONFIGS[0], tmp_path / "m.h5")
    X = data(300, seed=2).X
    np.save(tmp_path / "X.npy", X)
    code = (
        "import sys, numpy as np; from localsvm.runs.predict import LocalModel\n"
        "with LocalModel(sys.argv[1], jobs=2) as m: np.save(sys.argv[3], m.decision_function(np.load(sys.argv[2])))"
    )
    files = [str(tmp_path / name) for name in ("m.h5", "X.npy", "out.npy")]
    subprocess.run([sys.executable, "-c", code, *files], check=True)
    with LocalModel(tmp_path / "m.h5") as model:
        whole = model.decision_function(X)
        np.testing.assert_array_equal(np.load(tmp_path / "out.npy"), whole)
        parts = [model.decision_function(X[i : i + 7]) for i in range(0, 300, 7)]
        np.testing.assert_array_equal(np.concatenate(parts), whole)


def test_all_simd_levels_agree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    train(data(), CONFIGS[0], tmp_path / "m.h5")
    X = data(2000, seed=2).X
    decisions, labels = [], []
    for level in LEVELS[: simd_level() + 1]:
        monkeypatch.setenv("LOCALSVM_SIMD", level)
        with LocalModel(tmp_path / "m.h5") as model:
            decisions.append(model.decision_function(X))
            labels.append(model.predict(X))
    for other, label in zip(decisions[1:], labels[1:], strict=True):
        np.testing.assert_allclose(other, decisions[0], atol=1e-5)
        np.testing.assert_array_equal(label, labels[0])


def test_gaps_in_the_model_are_gaps(tmp_path: Path) -> None:
    """Gaps of every cell are those computed in float64 from the model file and the training rows alone."""
    for select in ("vote", "refit"):
        config = TrainingConfig(KernelSVM(), "voronoi", 200, select=select, metric="none")
        examples = data(500)
        train(data(500), config, tmp_path / "m.h5", force=True)
        with LocalModel(tmp_path / "m.h5") as model:
            X = model.chain.scaled(examples.X).astype(np.float64)
            cell_of = model.partition.assign(X.astype(np.float32))
            for index in range(model.file.n_cells):
                state, rows = model.file.cell(index), X[cell_of == index]
                labels = examples.y[cell_of == index]
                rng = np.random.default_rng(np.random.SeedSequence(0, spawn_key=(index, 0)))
                folds = stratified(labels, 5, rng)
                for m, fold in enumerate(state["model_fold"]):
                    assert state["model_converged"][m]
                    part = folds != fold
                    gap = gap_of(state, m, rows[part], np.where(labels[part] > 0, 1.0, -1.0))
                    assert gap == pytest.approx(state["model_gap"][m], abs=2e-5)
                    assert state["model_gap"][m] <= 1.0001e-3
            assert model.file.n_cells > 2


def gap_of(state: dict[str, np.ndarray], m: int, rows: np.ndarray, y: np.ndarray) -> float:
    """Duality gap of one model on the rows it was trained on, over the sum of their costs."""
    part = slice(state["coef_ptr"][m], state["coef_ptr"][m + 1])
    support = state["support"].astype(np.float64)[state["coef_index"][part]]
    b, cost, gamma = state["coef"][part], state["model_cost"][m], state["model_gamma"][m]
    f = np.exp(-gamma * ((rows[:, None] - support[None]) ** 2).sum(axis=2)) @ b
    norm = b @ np.exp(-gamma * ((support[:, None] - support[None]) ** 2).sum(axis=2)) @ b
    loss = np.maximum(0.0, 1.0 - y * f).sum()
    return float((norm + cost * loss - np.abs(b).sum()) / (cost * len(rows)))


def test_a_partition_file_gives_the_cells_it_says(tmp_path: Path) -> None:
    for config in CONFIGS[:3]:
        sizes = partition_only(data(), config, tmp_path / "p.h5", force=True).sizes
        direct, loaded = divide(data(), config), divide(data(), config, tmp_path / "p.h5")
        np.testing.assert_array_equal(loaded.sizes, sizes)
        one, other = direct.only, loaded.only
        np.testing.assert_array_equal(one.edges, other.edges)
        np.testing.assert_array_equal(one.y.array, other.y.array)
        np.testing.assert_array_equal(one.X.handle().rows(slice(0, 600)), other.X.handle().rows(slice(0, 600)))
    with pytest.raises(ModelError, match="other data"):
        divide(data(seed=1), CONFIGS[0], tmp_path / "p.h5")


def test_sparse_and_dense_rows_predict_alike(tmp_path: Path) -> None:
    examples = data()
    wide = np.zeros((600, 12), np.float32)
    wide[:, [2, 9]] = np.where(np.abs(examples.X) < 0.3, 0, examples.X)
    decisions = []
    for name, X in [("dense", wide.copy()), ("sparse", as_examples(sparse.csr_array(wide)))]:
        train(Dataset(X, examples.y.copy()), CONFIGS[0], tmp_path / f"{name}.h5")
        with LocalModel(tmp_path / f"{name}.h5") as model:
            decisions.append(model.decision_function(X if name == "sparse" else wide))
    assert (np.sign(decisions[0]) == np.sign(decisions[1])).mean() > 0.99


def test_identical_rows_beyond_the_cell_size_are_weighted(tmp_path: Path) -> None:
    X = np.concatenate([np.zeros((700, 2)), np.random.default_rng(0).standard_normal((100, 2))]).astype(np.float32)
    y = np.where(np.arange(800) % 7 == 0, 1.0, -1.0)
    summary = train(Dataset(X, y), TrainingConfig(FAST, "voronoi", 150, metric="none"), tmp_path / "m.h5")
    assert summary.rows == 800 and summary.cell_rows["largest"] <= 150
    with LocalModel(tmp_path / "m.h5") as model:
        assert model.predict(np.zeros((1, 2), np.float32))[0] == -1.0


def test_users_mistakes(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="at least two classes"):
        train(Dataset(np.zeros((5, 2), np.float32), np.ones(5)), TrainingConfig(FAST, metric="none"), tmp_path / "m.h5")
    with pytest.raises(DataError, match="-w 7: no row has that label; the labels are -1, 1"):
        train(data(), TrainingConfig(FAST, class_weights=((7.0, 2.0),), metric="none"), tmp_path / "m.h5")
    with pytest.raises(RunError, match="give more --memory"):
        train(data(), TrainingConfig(FAST, metric="none"), tmp_path / "m.h5", resources=Resources(memory=1 << 20))
    assert not (tmp_path / "m.h5").exists()


def test_the_key_of_a_run_tells_data_and_options_apart() -> None:
    def key(seed: int, config: TrainingConfig) -> str:
        return run_key(divide(data(seed=seed), config).prepared)[0]

    keys = {
        key(0, CONFIGS[0]),
        key(1, CONFIGS[0]),
        key(0, CONFIGS[1]),
        key(0, TrainingConfig(FAST, "voronoi", 150, seed=1, metric="none")),
    }
    assert len(keys) == 4
    assert key(0, CONFIGS[0]) in keys


@pytest.mark.parametrize("names", [(), ("gamma",), ("clusters", "gamma")])
def test_results_survive_the_journal(names: tuple[str, ...]) -> None:
    from localsvm.runs.cells.records import pack, unpack

    table = np.ones((2, len(names))), np.ones(3), np.zeros((2, 3)), np.ones(2, int), np.ones((1, 4), np.float32)
    result = CellResult(3, {"a": np.arange(3)}, CellReport(2.5, 0.1, FitReport(5, largest_gap=0.1)), names, *table)
    again = unpack(pack(result))
    assert again.index == 3 and again.report == result.report and again.names == names
    assert again.settings.shape == (2, len(names))
    np.testing.assert_array_equal(again.state["a"], result.state["a"])
    np.testing.assert_array_equal(again.loss, result.loss)
    np.testing.assert_array_equal(again.best, result.best)


def test_the_table_of_a_grid_is_whole_whatever_the_search() -> None:
    result = cross_validate(data(), TrainingConfig(KernelSVM(), None, 1000, grid="adaptive", metric="none"))
    assert len(result.points) == 100 and np.isfinite([p.loss for p in result.points]).all()


class CostAlone(KernelSVM):
    """A method for all rows together, with no parameter but the cost."""

    divides = False

    def default_select(self, n_classes: int) -> str:
        return "refit"

    def grid(self, cell: Cell, average_rows: float, folds: int) -> Grid:
        return replace(super().grid(cell, average_rows, folds), names=(), settings=((),))

    def prepare(self, cell: Cell, view: View) -> Prepared:
        return GammaOne(self, cell, view.scratch, several=False)


class GammaOne(PreparedKernel):
    """A prepared kernel of gamma 1, whatever the setting."""

    def at(self, setting: dict[str, float], purpose: Purpose) -> KernelSystem:
        return super().at({"gamma": 1.0}, purpose)


class Several(KernelSVM):
    """A method with two parameters, the second without effect."""

    def grid(self, cell: Cell, average_rows: float, folds: int) -> Grid:
        grid = super().grid(cell, average_rows, folds)
        return replace(grid, names=("gamma", "b"), settings=tuple((g, b) for (g,) in grid.settings for b in (1.0, 2.0)))


def test_a_method_for_all_rows_is_not_divided() -> None:
    config = TrainingConfig(CostAlone(), cell_size=150, metric="none")
    assert divide(data(), config).partition.name == "none"
    assert divide(data(), replace(config, partition="chunks")).partition.name == "chunks"
    assert divide(data(), replace(config, method=KernelSVM())).partition.name == "voronoi"


def test_the_method_decides_what_follows_selection() -> None:
    two, three = observed_of(np.arange(2)), observed_of(np.arange(3))
    assert [TrainingConfig().for_labels(classes).select for classes in (two, three)] == ["vote", "refit"]
    assert [TrainingConfig(CostAlone()).for_labels(classes).select for classes in (two, three)] == ["refit", "refit"]
    assert TrainingConfig(CostAlone(), select="vote").for_labels(two).select == "vote"


@pytest.mark.whole
@pytest.mark.fast(1)
@pytest.mark.parametrize(
    "method", [CostAlone(), Several(gamma=(0.2, 0.5, 1.0, 2.0, 4.0))], ids=lambda m: type(m).__name__
)
def test_grids_of_no_and_of_several_parameters(method: KernelSVM, tmp_path: Path) -> None:
    config = TrainingConfig(method, "voronoi", 200, metric="none")
    for jobs in (1, 2):
        train(data(), config, tmp_path / f"{jobs}.h5", resources=Resources(jobs=jobs))
    assert manifest(tmp_path / "1.h5") == manifest(tmp_path / "2.h5")
    result = cross_validate(data(), config, jobs=2)
    assert result.names == ((), ("gamma", "b"))[isinstance(method, Several)]
    settings, costs, error, *_ = mean_grid(result.points)
    assert settings.shape == (len({p.setting for p in result.points}), len(result.names))
    assert costs.shape == (10,) and error.shape == (len(settings), 10)
    if isinstance(method, Several):
        np.testing.assert_array_equal(settings, [(g, b) for g in method.gamma for b in (1.0, 2.0)])
        np.testing.assert_array_equal(error[::2], error[1::2])
        assert all(p.setting[1] == 1.0 for p in result.points if p.best)  # of equal settings the first


def test_every_setting_of_several_parameters_is_scored() -> None:
    config = TrainingConfig(Several(), None, 1000, metric="none")
    rows = data()
    coarse = CoarseRows(0, Drawn(np.arange(len(rows.y)), rows.X, rows.y))
    events = {name: record for _, name, record in divide(data(), config).trainer.records([coarse])}
    loss = unpack(events["0"]).loss
    assert not np.isnan(loss).all(axis=1).any() and np.isnan(loss).any()
