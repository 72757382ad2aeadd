"""--coarse-size: rows in coarse cells first, and in cells inside these."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from dividing import divide
from scipy import sparse

from localsvm.data.blocks.dataset import Dataset, as_examples, rows_of
from localsvm.data.synthetic import banana
from localsvm.errors import OptionError, RunError
from localsvm.methods import methods
from localsvm.methods.kernel.svm import KernelSVM
from localsvm.parallel.local import LocalPool
from localsvm.partition import create, restore, two_step
from localsvm.partition.two_step import drawn
from localsvm.runs.cells.schedule import Resources
from localsvm.runs.config import TrainingConfig
from localsvm.runs.partition import partition_only
from localsvm.runs.predict import LocalModel
from localsvm.runs.train import train
from localsvm.store.pieces import Unsound

FAST = KernelSVM(gamma=(0.5, 4.0), cost=(0.3, 3.0))
COARSE = TrainingConfig(FAST, "voronoi", 60, coarse_size=250, metric="none")
KINDS = ["none", "chunks", "voronoi", "kmeans"]


def data(n: int = 900, seed: int = 0, thin: bool = False, weighted: bool = False) -> Dataset:
    rng = np.random.default_rng(seed)
    X, y = banana(n, rng)
    weight = rng.integers(0, 3, n).astype(float) if weighted else None
    return Dataset(as_examples(sparse.csr_array(X)) if thin else X.copy(), y.astype(np.float64), weight=weight)


def manifest(path: Path) -> bytes:
    with h5py.File(path) as file:
        return bytes(file.attrs["manifest"])


def fitted(kind: str, thin: bool = False, repeats: int = 1) -> tuple[Any, Dataset]:
    rows = data(thin=thin)
    partition = create(kind, repeats, 250)
    return partition.fit(rows.X, rows.y, 60, np.random.default_rng(3)), rows


@pytest.mark.parametrize("thin", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_rows_go_to_their_coarse_cell_and_to_a_cell_inside(kind: str, thin: bool) -> None:
    partition, rows = fitted(kind, thin)
    back = restore(kind, partition.state(), 2, partition.n_cells)
    test = data(300, seed=1, thin=thin)
    before = np.concatenate([[0], np.cumsum(partition.cells_by_coarse)])
    coarse = partition.coarse.assign(test.X)
    expected = np.zeros((300, partition.n_cells))
    for i, c in enumerate(coarse):
        routes = partition.fine[c].route(rows_of(test.X, np.asarray([i])))
        expected[i, before[c] : before[c + 1]] = routes.toarray()[0]
    assert len(partition.fine) > 3 and partition.cells_by_coarse == back.cells_by_coarse
    for each in (partition, back):
        np.testing.assert_array_equal(each.route(test.X).toarray(), expected)
    cells = partition.training_cells()
    every = np.sort(np.concatenate([cell.rows for cell in cells]))
    np.testing.assert_array_equal(every, np.arange(900))
    assert max(len(cell.rows) for cell in cells) <= (250 if kind == "none" else 60)
    assert all(np.all(np.diff(cell.rows) > 0) for cell in cells)
    if kind != "chunks":
        for index, cell in enumerate(cells):
            assert set(back.assign(rows_of(rows.X, cell.rows))) == {index}
    else:
        with pytest.raises(OptionError, match="answer for every row together"):
            back.assign(test.X)


def test_a_sample_is_drawn_by_number_and_seed(monkeypatch: pytest.MonkeyPatch) -> None:
    numbers = np.arange(10**6)
    assert drawn(numbers[:1000], 1000, 100, 5).all()
    chosen = drawn(numbers, 10**6, 1000, 5)
    assert abs(chosen.sum() - 32_000) < 1000  # 32 a coarse cell; binomial: 180 is a standard deviation
    assert [two_step.sample_rows(10**6, size) for size in (10, 1000, 20_000, 65_536)] == [
        10**6,
        32_000,
        40_000,
        131_072,
    ]
    parts = np.concatenate([drawn(part, 10**6, 1000, 5) for part in np.array_split(numbers, 7)])
    np.testing.assert_array_equal(chosen, parts)
    other = drawn(numbers, 10**6, 1000, 6)
    share = 32_000 / 10**6
    assert (chosen & other).mean() == pytest.approx(share**2, abs=0.001)
    assert np.corrcoef(chosen[:-1], chosen[1:])[0, 1] == pytest.approx(0.0, abs=0.005)
    monkeypatch.setattr(two_step, "SAMPLE_ROWS", 300)
    partition, rows = fitted("voronoi")
    assert partition.fine and len(partition.training_cells()) == partition.n_cells
    sizes = [sum(len(cell.rows) for cell in part.training_cells()) for part in partition.fine]
    assert sum(sizes) == len(rows.y) and 100 < np.mean(sizes) <= 300  # the sample says 250 of them at most


def damages(state: dict[str, np.ndarray]) -> dict[str, dict[str, np.ndarray]]:
    ptr = state["fine_ptr"]
    return {
        "ends beyond": state | {"fine_ptr": ptr + np.arange(len(ptr))},
        "descends": state | {"fine_ptr": np.r_[ptr[:1], ptr[2], ptr[1], ptr[3:]]},
        "another beginning": state | {"fine_ptr": np.r_[1, ptr[1:]]},
        "too few": state | {"fine_ptr": ptr[1:] - ptr[1]},
        "a dtype": state | {"fine_ptr": ptr.astype(np.int32)},
        "a scalar": state | {"cell": np.int32(3)},
        "a length": state | {"cell": state["cell"][1:]},
        "no coarse tree": {name: array for name, array in state.items() if not name.startswith("coarse_")},
        "a piece less": {name: array for name, array in state.items() if name != "thresholds"},
        "a piece more": state | {"other": state["cell"]},
        "a coarse link": state | {"coarse_first_child": state["coarse_first_child"] * 0},
        "a fine link": state | {"first_child": state["first_child"] + 1},
        "a width": state | {"coarse_centres": state["coarse_centres"][:, :1]},
    }


@pytest.mark.parametrize("how", list(damages(fitted("voronoi")[0].state())))
def test_damaged_states_are_refused(how: str) -> None:
    partition, _ = fitted("voronoi")
    with pytest.raises(Unsound):
        restore("voronoi", damages(partition.state())[how], 2, partition.n_cells)


def test_random_numbers_and_grids_are_those_of_the_coarse_cell() -> None:
    divided = divide(data(), COARSE)
    cells = divided.partition.cells_by_coarse
    assert cells is not None and len(cells) == len(divided.coarse) > 3 and max(cells) > 1
    for number, shared in enumerate(divided.coarse):
        assert shared.streams == [(number, cell) for cell in range(cells[number])]
        assert shared.division.average == pytest.approx(shared.sizes.mean())
    whole = divide(data(), replace(COARSE, coarse_size=None)).only
    assert whole.streams == [(i,) for i in range(len(whole.sizes))]
    assert whole.division.average == pytest.approx(whole.sizes.mean())


class Stopped(Exception):
    """Ends a run in the middle."""


def test_any_jobs_and_a_resumed_run_give_the_same_model(tmp_path: Path) -> None:
    train(data(), COARSE, tmp_path / "one.h5", resources=Resources(jobs=1))
    train(data(), COARSE, tmp_path / "two.h5", resources=Resources(jobs=2))

    class Breaking(LocalPool):
        def unordered(self, work: Any) -> Any:
            for count, done in enumerate(super().unordered(work)):
                if count == 5:
                    raise Stopped
                yield done

    with pytest.raises(Stopped):
        train(data(), COARSE, tmp_path / "three.h5", resources=Resources(pool=Breaking))
    with pytest.raises(RunError, match="an interrupted run left"):
        train(data(), COARSE, tmp_path / "three.h5")
    train(data(), COARSE, tmp_path / "three.h5", resume=True)
    assert len({manifest(tmp_path / f"{name}.h5") for name in ("one", "two", "three")}) == 1


@pytest.mark.parametrize("kind", ["voronoi", "none"])
def test_a_partition_file_has_the_coarse_cells(kind: str, tmp_path: Path) -> None:
    config = replace(COARSE, partition=kind)
    summary = train(data(), config, tmp_path / "one.h5")
    sizes = partition_only(data(), config, tmp_path / "cells.h5").sizes
    train(data(), config, tmp_path / "two.h5", partition_file=tmp_path / "cells.h5")
    assert manifest(tmp_path / "one.h5") == manifest(tmp_path / "two.h5")
    with LocalModel(tmp_path / "one.h5") as model:
        assert model.file.n_cells == len(sizes)
        assert model.partition.cells_by_coarse is not None
        assert summary.coarse_cells == len(model.partition.cells_by_coarse) > 1


def test_a_model_says_of_its_coarse_cells_what_it_has(tmp_path: Path) -> None:
    from localsvm.runs.preparation.stored import check_coarse
    from localsvm.store.model import load_model

    train(data(), COARSE, tmp_path / "m.h5")
    with load_model(tmp_path / "m.h5") as model:
        state = model.partition[1]
        check_coarse(250, state)
        with pytest.raises(Unsound, match="coarse_size"):
            check_coarse(None, state)
        with pytest.raises(Unsound, match="coarse_size"):
            check_coarse(250, {"centres": state["centres"]})
        assert model.config["coarse_size"] == 250


@pytest.mark.fast(3)
@pytest.mark.parametrize("name", sorted(methods()))
def test_every_method_trains_in_coarse_cells(name: str, tmp_path: Path) -> None:
    config = TrainingConfig(methods()[name](), "voronoi", 60, coarse_size=250, metric="none", folds=2)
    summary = train(data(400), config, tmp_path / "m.h5")
    with LocalModel(tmp_path / "m.h5") as model:
        assert model.file.n_cells == summary.cells > 4
        test = data(300, seed=1)
        truth = 1.0 if model.method.novel_share else test.y
        assert (model.predict(test.X) == truth).mean() > 0.6


def test_a_coarse_cell_is_not_smaller_than_a_cell() -> None:
    with pytest.raises(OptionError, match=r"--coarse-size 59: .* up to 60 rows"):
        replace(COARSE, coarse_size=59)
    with pytest.raises(OptionError, match=r"--coarse-size \d+: no cell has as many rows"):
        replace(COARSE, coarse_size=1 << 40)
    assert replace(COARSE, coarse_size=60).as_dict()["coarse_size"] == 60
    assert "coarse_size" not in replace(COARSE, coarse_size=None).as_dict()
