"""Training on a text in parts: the model of a run in one process, bit for bit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from parts_of_text import Parts
from scipy import sparse

from localsvm.data.dataset import as_examples
from localsvm.data.reading import read
from localsvm.data.synthetic import banana
from localsvm.data.writing import write
from localsvm.errors import DataError, LocalSVMError, OptionError, RunError
from localsvm.methods import methods
from localsvm.methods.linear import LinearSVM
from localsvm.methods.svm import KernelSVM
from localsvm.partition import two_step
from localsvm.runs import distributed, measuring, part_work
from localsvm.runs.config import TrainingConfig
from localsvm.runs.distributed import train_text
from localsvm.runs.training import train

FAST = KernelSVM(gamma=(0.5, 4.0), cost=(0.3, 3.0))
COARSE = TrainingConfig(FAST, "voronoi", 60, coarse_size=250, metric="none")


def manifest(path: Path) -> bytes:
    with h5py.File(path) as file:
        return bytes(file.attrs["manifest"])


def plain(path: Path, n: int = 700) -> None:
    write(path, *banana(n, np.random.default_rng(0)))


def many_classes(path: Path) -> None:
    X, y = banana(700, np.random.default_rng(0))
    write(path, X, y + 2 * (X[:, 0] > 0))


def with_gaps(path: Path) -> None:
    """Columns that do not occur, comments of no row, ends of lines of another system."""
    X, y = banana(700, np.random.default_rng(0))
    lines = [f"{int(label):d} 3:{a!r} 9:{b!r} 12:0" for (a, b), label in zip(X.tolist(), y, strict=True)]
    path.write_text("\n".join([*lines[:300], "", "  ", *lines[300:]]) + "\n")


def wide(path: Path) -> None:
    """Sparse rows."""
    rng = np.random.default_rng(1)
    X = sparse.random_array((500, 3000), density=0.01, rng=rng, dtype=np.float32).tolil()
    y = np.where(rng.random(500) < 0.5, -1.0, 1.0)
    X[:, :3] = (rng.normal(size=(500, 3)) + y[:, None]).astype(np.float32)
    write(path, as_examples(sparse.csr_array(X)), y)


def far(path: Path) -> None:
    """Columns from an origin, of which one turns out to be constant."""
    X, y = banana(1500, np.random.default_rng(0))
    lines = [f"{int(v):d} 1:{1.7e9 + a!r} 2:{b!r} 3:1700000001" for (a, b), v in zip(X.tolist(), y, strict=True)]
    path.write_text("\n".join(lines) + "\n")


CASES: dict[str, tuple[Callable[[Path], None], dict[str, Any]]] = {
    "plain": (plain, {}),
    "zscore": (plain, {"scale": "zscore"}),
    "minmax": (plain, {"scale": "minmax"}),
    "unscaled": (plain, {"scale": "none"}),
    "rows": (plain, {"scale": "row"}),
    "chunks": (plain, {"partition": "chunks"}),
    "one cell in each": (plain, {"partition": "none"}),
    "kmeans, repeats": (plain, {"partition": "kmeans", "repeats": 3}),
    "probabilities": (plain, {"probability": True}),
    "weighted classes": (plain, {"class_weights": ((1.0, 3.0),), "scoring": "tpr-tnr", "seed": 7}),
    "balanced": (plain, {"balanced": True}),
    "all pairs": (many_classes, {"multiclass": "ava"}),
    "many classes": (many_classes, {"probability": True, "select": "refit"}),
    "gaps": (with_gaps, {}),
    "wide": (wide, {"method": LinearSVM(cost=(0.1, 1.0))}),
    "wide, centred": (wide, {"method": LinearSVM(cost=(0.1, 1.0)), "scale": "zscore"}),
    "far from 0": (far, {}),
    "a metric or none": (plain, {"metric": "auto"}),
    "weights, probabilities": (many_classes, {"metric": "diag", "probability": True, "balanced": True}),
    "weights of wide rows": (wide, {"method": LinearSVM(cost=(0.1, 1.0)), "metric": "diag", "repeats": 2}),
    "a matrix": (far, {"metric": "full", "partition": "kmeans"}),
    "a baseline": (plain, {"metric": "nca", "scale": "zscore", "scoring": "tpr-tnr"}),
}


@pytest.mark.parametrize("name", CASES)
def test_the_model_is_that_of_one_process(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make, own = CASES[name]
    config, file = replace(COARSE, **own), tmp_path / "rows"
    make(file)
    monkeypatch.setattr(two_step, "SAMPLE_ROWS", 300)
    data = read(file, shifts=config.shifts)
    summary = train(data, config, tmp_path / "one.h5")
    for number, (ends, piece) in enumerate([([], 1 << 30), ([100, 100, 350], 70), ([1, 499], 33)]):
        found = train_text(Parts(file, ends, piece), config, tmp_path / f"{number}.h5")
        assert manifest(tmp_path / f"{number}.h5") == manifest(tmp_path / "one.h5")
        assert replace(found, seconds={}) == replace(summary, seconds={})


@pytest.mark.parametrize("name", sorted(methods()))
def test_every_method(name: str, tmp_path: Path) -> None:
    config = TrainingConfig(methods()[name](), "voronoi", 60, coarse_size=150, metric="none", folds=2)
    plain(tmp_path / "rows", 300)
    train(read(tmp_path / "rows", shifts=config.shifts), config, tmp_path / "one.h5")
    train_text(Parts(tmp_path / "rows", [120]), config, tmp_path / "two.h5")
    assert manifest(tmp_path / "one.h5") == manifest(tmp_path / "two.h5")


def test_small_blocks_and_no_part_of_a_cell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plain(tmp_path / "rows")
    train_text(Parts(tmp_path / "rows", [10, 20]), COARSE, tmp_path / "one.h5")
    monkeypatch.setattr(part_work, "HELD_BYTES", 1)
    train_text(Parts(tmp_path / "rows", list(range(0, 700, 50)), 7), COARSE, tmp_path / "two.h5")
    assert manifest(tmp_path / "one.h5") == manifest(tmp_path / "two.h5")


class Stopped(Exception):
    """Ends a run in the middle."""


def test_a_resumed_run_gives_the_same_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plain(tmp_path / "rows")
    text, asked = Parts(tmp_path / "rows", [200]), []

    def stopping(task: Any, blocks: Any) -> Any:
        if len(asked) == 2:
            raise Stopped
        asked.append(task.number)
        return task(blocks)

    train_text(text, COARSE, tmp_path / "one.h5")
    with monkeypatch.context() as patch:
        patch.setattr(distributed, "do", stopping)
        with pytest.raises(Stopped):
            train_text(text, COARSE, tmp_path / "two.h5")
    with pytest.raises(RunError, match="an interrupted run left"):
        train_text(text, COARSE, tmp_path / "two.h5")
    with pytest.raises(LocalSVMError, match="--seed was 0, is 1"):
        train_text(text, replace(COARSE, seed=1), tmp_path / "two.h5", resume=True)
    done: list[int] = []
    monkeypatch.setattr(distributed, "do", lambda task, blocks: done.append(task.number) or task(blocks))
    train_text(Parts(tmp_path / "rows", [5, 90]), COARSE, tmp_path / "two.h5", resume=True)
    assert asked and not set(asked) & set(done)
    assert manifest(tmp_path / "one.h5") == manifest(tmp_path / "two.h5")
    (tmp_path / "rows").write_text((tmp_path / "rows").read_text().replace("1:", "1:1", 1))
    assert not list(tmp_path.glob("*.journal"))


def test_a_journal_of_other_rows_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plain(tmp_path / "rows")
    lines = (tmp_path / "rows").read_text().splitlines()
    lines[3], lines[4] = lines[4], lines[3]  # the same sums of columns
    (tmp_path / "other").write_text("\n".join(lines) + "\n")
    stopped = iter([False, True])

    def stopping(task: Any, blocks: Any) -> Any:
        if next(stopped):
            raise Stopped
        return task(blocks)

    with monkeypatch.context() as patch:
        patch.setattr(distributed, "do", stopping)
        with pytest.raises(Stopped):
            train_text(Parts(tmp_path / "rows", []), COARSE, tmp_path / "m.h5")
    with pytest.raises(LocalSVMError, match="the content of the data"):
        train_text(Parts(tmp_path / "other", []), COARSE, tmp_path / "m.h5", resume=True)


def test_a_mistake_is_told_with_its_line(tmp_path: Path) -> None:
    plain(tmp_path / "rows")
    lines = (tmp_path / "rows").read_text().splitlines()
    lines[611] = "1 1:x"
    (tmp_path / "rows").write_text("\n".join(lines) + "\n")
    with pytest.raises(DataError, match=r"rows:612:\d+: "):
        train_text(Parts(tmp_path / "rows", [300, 500]), COARSE, tmp_path / "m.h5")
    for nothing, message in (("\n\n", "only blank lines"), ("", "the file is empty")):
        (tmp_path / "rows").write_text(nothing)
        with pytest.raises(DataError, match=message):
            train_text(Parts(tmp_path / "rows", [1]), COARSE, tmp_path / "m.h5")
    (tmp_path / "rows").write_text("1 1:1\n1 1:2\n")
    with pytest.raises(DataError, match="at least two classes"):
        train_text(Parts(tmp_path / "rows", [1]), COARSE, tmp_path / "m.h5")


@pytest.mark.parametrize(
    ("own", "message"),
    [
        ({"coarse_size": None}, "--coarse-size 20000"),
        ({"metric": "rank:3"}, "only 2 features"),
        ({"probability": True, "repeats": 2}, "leave -b 1 or --repeats out"),
    ],
)
def test_what_cannot_be_done_in_parts_is_refused(own: dict[str, Any], message: str, tmp_path: Path) -> None:
    plain(tmp_path / "rows", 20)
    with pytest.raises(OptionError, match=message):
        train_text(Parts(tmp_path / "rows", []), replace(COARSE, **own), tmp_path / "m.h5")


def test_memory_of_the_driver_does_not_grow_with_the_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What comes here of each part: samples whose rows together are a fixed number."""
    monkeypatch.setattr(two_step, "SAMPLE_ROWS", 100)
    monkeypatch.setattr(measuring, "MOST_LEARN", 60)
    plain(tmp_path / "rows", 3000)
    text, config = Parts(tmp_path / "rows", [1000, 2000]), replace(COARSE, metric="auto", coarse_size=1000)
    sent: list[list[Any]] = []
    each = text.each

    def kept(work: Any) -> list[Any]:
        sent.append(each(work))
        return sent[-1]

    monkeypatch.setattr(text, "each", kept)
    train_text(text, config, tmp_path / "m.h5")
    _, (first, *_) = sent  # of the two passes; the others are merged into it
    drawn = [sum(len(part.y) for part in first.samples[i]) for i in (0, 1)]
    assert 50 < drawn[0] < 200 and drawn[1] == 60
    with h5py.File(tmp_path / "m.h5") as model:
        assert "fresh" not in model.get("metric", ())


def test_machines_of_another_simd_level_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plain(tmp_path / "rows", 50)
    with monkeypatch.context() as patch:
        patch.setattr(part_work, "simd_level", lambda: 0)
        patch.setattr(distributed, "simd_level", lambda: 1)
        with pytest.raises(RunError, match="SIMD level baseline, this machine at avx2"):
            train_text(Parts(tmp_path / "rows", []), COARSE, tmp_path / "m.h5")
