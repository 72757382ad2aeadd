"""--repeats: several partitions by different seeds, whose values are averaged."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import h5py
import numpy as np
import pytest
from dividing import divide
from scipy import sparse

from localsvm.data.blocks.dataset import Dataset, as_examples
from localsvm.data.synthetic import banana
from localsvm.errors import ModelError, OptionError
from localsvm.estimators import LocalSVC
from localsvm.methods.kernel.svm import KernelSVM
from localsvm.methods.linear.linear import LinearSVM
from localsvm.partition import create, restore
from localsvm.partition.members import Members
from localsvm.runs.cells.coarse import Shuffled
from localsvm.runs.cells.schedule import Resources
from localsvm.runs.config import TrainingConfig
from localsvm.runs.cross_validate import cross_validate
from localsvm.runs.partition import partition_only
from localsvm.runs.predict import LocalModel
from localsvm.runs.progress import Silent
from localsvm.runs.streams.train import train_stream
from localsvm.runs.train import train
from localsvm.threads import ALONE

FAST = KernelSVM(gamma=(0.5, 4.0), cost=(0.3, 3.0))
THREE = TrainingConfig(FAST, "voronoi", 150, repeats=3, metric="none")


def data(n: int = 600, classes: int = 2, seed: int = 0, thin: bool = False) -> Dataset:
    X, y = banana(n, np.random.default_rng(seed))
    if classes == 3:
        y = np.where(X[:, 0] > 1, 5.0, y)
    return Dataset(as_examples(sparse.csr_array(X)) if thin else X.copy(), y.astype(np.float64))


def manifest(path: Path) -> bytes:
    with h5py.File(path) as file:
        return bytes(file.attrs["manifest"])


@pytest.mark.fast(1)
@pytest.mark.parametrize("thin", [False, True])
@pytest.mark.parametrize("name", ["voronoi", "kmeans", "chunks"])
def test_the_first_repeat_is_the_model_without_repeats(name: str, thin: bool, tmp_path: Path) -> None:
    method = KernelSVM() if name == "voronoi" and not thin else FAST  # default grids depend on the mean size of cells
    config = TrainingConfig(method, name, 150, metric="none")
    train(data(thin=thin), config, tmp_path / "one.h5")
    summary = train(data(thin=thin), replace(config, repeats=2), tmp_path / "two.h5")
    with LocalModel(tmp_path / "one.h5") as one, LocalModel(tmp_path / "two.h5") as two:
        cells = one.file.n_cells
        assert summary.repeats == 2 and summary.cells == two.file.n_cells >= 2 * cells - 2 > cells
        for cell in range(cells):
            for key, array in one.file.cell(cell).items():
                np.testing.assert_array_equal(array, two.file.cell(cell)[key])
        for key, array in one.partition.state().items():
            np.testing.assert_array_equal(array, two.partition.state()[f"0/{key}"])
        if name != "chunks":
            assert not np.array_equal(two.partition.state()["1/centres"], one.partition.state()["centres"])


@pytest.mark.fast(2)
@pytest.mark.parametrize("select", ["vote", "refit"])
@pytest.mark.parametrize("classes", [2, 3])
def test_values_are_the_mean_over_the_repeats(classes: int, select: str, tmp_path: Path) -> None:
    train(data(classes=classes), replace(THREE, select=select), tmp_path / "m.h5")
    test = data(400, classes, seed=1)
    with LocalModel(tmp_path / "m.h5") as model:
        parts, X = model.partition.parts, model.chain.scaled(test.X)
        expected, before = np.zeros((400, model.target.n_problems)), 0
        for part in parts:
            cells = part.assign(X)
            for i, cell in enumerate(cells):
                values = model._predictor(before + int(cell), None).decision_function(X[i : i + 1])
                expected[i] += np.clip(values[0], -1.0, 1.0) / 3
            before += part.n_cells
        assert before == model.file.n_cells and len(parts) == 3
        decisions = model.decision_function(test.X)
        np.testing.assert_allclose(decisions, expected, atol=1e-12)
        np.testing.assert_allclose(model.decision_function(test.X[::7]), decisions[::7], atol=0)
        assert (model.predict(test.X) == test.y).mean() > 0.9


class Stop(Exception):
    """Ends a run in the middle."""


class StopAfter(Silent):
    """An observer that stops the run after so many cells."""

    def __init__(self, cells: int) -> None:
        self.left, self.resumed = cells, 0

    def cells(self, total: int, done: int, what: str = "cells") -> None:
        self.resumed = done

    def cell_done(self, wrong: float, weight: float) -> None:
        self.left -= 1
        if self.left == 0:
            raise Stop


@pytest.mark.fast(1)
@pytest.mark.parametrize("thin", [False, True])
def test_jobs_and_a_resume_change_no_bit(thin: bool, tmp_path: Path) -> None:
    whole = train(data(thin=thin), THREE, tmp_path / "whole.h5", resources=Resources(jobs=2))
    with pytest.raises(Stop):
        train(data(thin=thin), THREE, tmp_path / "m.h5", resources=Resources(observer=StopAfter(whole.cells // 2)))
    with pytest.raises(ModelError):
        train(data(thin=thin), replace(THREE, repeats=2), tmp_path / "m.h5", resume=True)
    observer = StopAfter(99)
    again = train(data(thin=thin), THREE, tmp_path / "m.h5", resume=True, resources=Resources(observer=observer))
    assert observer.resumed == whole.cells // 2
    assert manifest(tmp_path / "m.h5") == manifest(tmp_path / "whole.h5")
    assert again.cv_error == whole.cv_error


@pytest.mark.parametrize("thin", [False, True])
def test_each_repeat_has_all_rows(thin: bool) -> None:
    divided = divide(data(thin=thin), replace(THREE, scale="none"))
    X, y, seen = data().X, data().y, []
    assert [cells.streams[0] for cells in divided.coarse] == [(n,) for n in (0, *np.cumsum(divided.by_repeat)[:-1])]
    for cells in divided.coarse:
        rows = cells.X.handle().rows(slice(0, 600))
        dense = rows if isinstance(rows, np.ndarray) else rows.toarray()
        one, other = np.lexsort(dense.T), np.lexsort(X.T)
        np.testing.assert_array_equal(dense[one], X[other])
        np.testing.assert_array_equal(cells.y.array[one], y[other])
        seen.append(dense.tobytes())
    assert len(set(seen)) == 3


def test_identical_rows_are_merged_in_each_repeat(tmp_path: Path) -> None:
    X = np.concatenate([np.zeros((700, 2)), np.random.default_rng(0).standard_normal((300, 2))]).astype(np.float32)
    y = np.where(np.arange(1000) % 7 == 0, 1.0, -1.0)
    divided = divide(Dataset(X.copy(), y), THREE)
    assert [sum(cells.behind) for cells in divided.coarse] == [1000] * 3
    assert [cells.y.array.shape for cells in divided.coarse] == [(302,)] * 3
    train(Dataset(X.copy(), y), THREE, tmp_path / "m.h5")
    with LocalModel(tmp_path / "m.h5") as model:
        assert model.predict(np.zeros((1, 2), np.float32))[0] == -1.0


def test_the_cross_validated_error_is_the_mean_over_the_repeats(tmp_path: Path) -> None:
    config = replace(THREE, grid="full")
    summary = train(data(), config, tmp_path / "m.h5")
    table = cross_validate(data(), config)
    assert summary.cv_error == table.error and table.rows == 600
    by_repeat = np.split(np.asarray([(p.rows, p.loss * p.rows) for p in table.points if p.best]), [0])
    rows, wrong = by_repeat[1].sum(axis=0)
    assert rows == 1800 and table.error == pytest.approx(wrong / 1800)


def test_what_cannot_be_repeated_is_refused(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="-P none"):
        TrainingConfig(FAST, "none", repeats=2, metric="none")
    with pytest.raises(OptionError, match="from 1"):
        TrainingConfig(FAST, repeats=0, metric="none")
    one_cell = (
        TrainingConfig(FAST, None, 1000, repeats=2, metric="none"),
        TrainingConfig(FAST, "voronoi", 1000, repeats=2, metric="none"),
        TrainingConfig(LinearSVM(), None, 100, repeats=2),
    )
    for config in one_cell:
        with pytest.raises(OptionError, match="one cell") as refused:
            train(data(), config, tmp_path / "m.h5")
        assert "-P voronoi" in str(refused.value)
    partition_only(data(), replace(THREE, repeats=1), tmp_path / "p.h5")
    with pytest.raises(OptionError, match="--partition-file"):
        divide(data(), THREE, tmp_path / "p.h5")
    with pytest.raises(OptionError, match="--repeats"):
        train_stream("none", TrainingConfig(LinearSVM(solver="sgd"), repeats=2), tmp_path / "m.h5")
    assert not list(tmp_path.glob("m.h5*"))


def test_states_that_are_not_numbered_are_refused() -> None:
    examples = data()
    repeated = create("chunks", 3).fit(examples.X, examples.y, 100, np.random.default_rng(0), ALONE)
    state = repeated.state()
    shape = examples.X.shape[1], repeated.n_cells
    assert restore("chunks", state, *shape).state() == state
    np.testing.assert_allclose(restore("chunks", state, *shape).route(examples.X).sum(axis=1), 1.0)
    for wrong in ("3/n_cells", "x/n_cells", "-1/n_cells"):
        with pytest.raises(ModelError, match="numbered"):
            restore("chunks", {wrong: state["1/n_cells"]}, *shape)
    with pytest.raises(OptionError, match="together"):
        repeated.assign(examples.X)


@pytest.mark.whole
def test_more_repeats_have_smaller_errors() -> None:
    """Over three draws: in one alone, a row more or less may decide."""
    right = {1: 0.0, 8: 0.0}
    for seed in (4, 6, 8):
        known, test = data(1500, seed=seed), data(3000, seed=seed + 1)
        for repeats in right:
            model = LocalSVC(partition="voronoi", cell_size=100, repeats=repeats).fit(known.X, known.y)
            right[repeats] += model.score(test.X, test.y)
    assert right[8] > right[1]


@pytest.mark.parametrize("name", ["voronoi", "kmeans"])
def test_few_rows_are_divided_differently_in_each_repeat(name: str) -> None:
    examples = data(120)
    repeated = create(name, 4).fit(examples.X, examples.y, 40, np.random.default_rng(0), ALONE)
    assert len({part.assign(examples.X).tobytes() for part in repeated.parts}) == 4


def test_threads_that_draw_chunks_at_once_draw_the_same() -> None:
    """Blocks are routed on several threads, and the first of them draw the chunks of a repeat."""
    config, numbers = TrainingConfig(partition="chunks", cell_size=50, repeats=2), np.arange(400)
    cells = Shuffled(config, 400, Members(("euclidean",)))
    drawn = [cells._of(repeat)[numbers] for repeat in (0, 1)]
    cells._chunk.clear()
    for repeat in (1, 0):  # in whatever order
        np.testing.assert_array_equal(cells._of(repeat), drawn[repeat])
    assert (drawn[0] != drawn[1]).any()
