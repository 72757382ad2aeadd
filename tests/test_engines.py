"""The contract that all engines keep: the same rows and options give the same bits."""

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

from localsvm.data.blocks.dataset import as_examples
from localsvm.data.readers.libsvm import read
from localsvm.data.synthetic import banana
from localsvm.data.writers.libsvm import write
from localsvm.engines import base
from localsvm.engines.base import Block, CoarseRows, Digest, Drawn, Engine, Labels, Sample, Spread, together
from localsvm.engines.disk import Disk
from localsvm.engines.memory import Memory
from localsvm.engines.spark import Spark
from localsvm.features import ranks
from localsvm.methods import methods
from localsvm.methods.kernel.svm import KernelSVM
from localsvm.methods.linear.linear import LinearSVM
from localsvm.partition import two_step
from localsvm.runs.cells import coarse as coarse_cells
from localsvm.runs.config import TrainingConfig
from localsvm.runs.cross_validate import cross_validate
from localsvm.runs.partition import partition_only
from localsvm.runs.preparation import prepare as preparing
from localsvm.runs.preparation import regions
from localsvm.runs.train import train

FAST = KernelSVM(gamma=(0.5, 4.0), cost=(0.3, 3.0))
EITHER = KernelSVM(cost=(1.0,))  # of either distance, as no gamma is given
COARSE = TrainingConfig(FAST, "voronoi", 60, coarse_size=250, metric="none")
ENGINES = ("memory", "disk", "spark")


def manifest(path: Path) -> bytes:
    with h5py.File(path) as file:
        return bytes(file.attrs["manifest"])


def engine(kind: str, path: Path, config: TrainingConfig = COARSE, ends: tuple[int, ...] = (100, 100, 350)) -> Engine:
    how = {"zero_based": config.zero_based, "shifts": config.shifts}
    if kind == "memory":
        return Memory(read(path, **how))  # type: ignore[arg-type]
    return Disk(path, **how) if kind == "disk" else Spark(Parts(path, list(ends), 70), **how)  # type: ignore[arg-type]


def plain(path: Path, n: int = 700) -> None:
    write(path, *banana(n, np.random.default_rng(0)))


def many_classes(path: Path) -> None:
    X, y = banana(700, np.random.default_rng(0))
    write(path, X, y + 2 * (X[:, 0] > 0))


def with_gaps(path: Path) -> None:
    """Write rows with columns that do not occur, and blank lines between the rows."""
    X, y = banana(700, np.random.default_rng(0))
    lines = [f"{int(label):d} 3:{a!r} 9:{b!r} 12:0" for (a, b), label in zip(X.tolist(), y, strict=True)]
    path.write_text("\n".join([*lines[:300], "", "  ", *lines[300:]]) + "\n")


def wide(path: Path) -> None:
    """Write sparse rows with many columns."""
    rng = np.random.default_rng(1)
    X = sparse.random_array((500, 3000), density=0.01, rng=rng, dtype=np.float32).tolil()
    y = np.where(rng.random(500) < 0.5, -1.0, 1.0)
    X[:, :3] = (rng.normal(size=(500, 3)) + y[:, None]).astype(np.float32)
    write(path, as_examples(sparse.csr_array(X)), y)


def far(path: Path) -> None:
    """Write rows with two columns far from 0, one of which is constant."""
    X, y = banana(1500, np.random.default_rng(0))
    lines = [f"{int(v):d} 1:{1.7e9 + a!r} 2:{b!r} 3:1700000001" for (a, b), v in zip(X.tolist(), y, strict=True)]
    path.write_text("\n".join(lines) + "\n")


def repeated(path: Path) -> None:
    """Write rows that occur twice each, and one that occurs 200 times."""
    X, y = banana(300, np.random.default_rng(0))
    X = np.concatenate([X, X, np.zeros((200, 2))]).astype(np.float32)
    write(path, X, np.concatenate([y, y, np.where(np.arange(200) % 3 == 0, 1.0, -1.0)]))


def tails(path: Path) -> None:
    """Write rows of which ranks are of use: a few are so far away that all others are one point."""
    Z = np.random.default_rng(0).standard_normal((600, 3))
    write(path, np.exp(3 * Z), np.where(Z[:, 0] * Z[:, 1] > 0, 1.0, -1.0))


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
    "probabilities of repeats": (plain, {"probability": True, "repeats": 2}),
    "weighted classes": (plain, {"class_weights": ((1.0, 3.0),), "scoring": "tpr-tnr", "seed": 7}),
    "balanced": (plain, {"balanced": True}),
    "all pairs": (many_classes, {"multiclass": "ava"}),
    "many classes": (many_classes, {"probability": True, "select": "refit"}),
    "gaps": (with_gaps, {}),
    "wide": (wide, {"method": LinearSVM(cost=(0.1, 1.0))}),
    "wide, centred": (wide, {"method": LinearSVM(cost=(0.1, 1.0)), "scale": "zscore"}),
    "far from 0": (far, {}),
    "copies": (repeated, {"metric": "diag"}),
    "a metric or none": (plain, {"metric": "auto"}),
    "weights, probabilities": (many_classes, {"metric": "diag", "probability": True, "balanced": True}),
    "weights of wide rows": (wide, {"method": LinearSVM(cost=(0.1, 1.0)), "metric": "diag", "repeats": 2}),
    "a matrix": (far, {"metric": "full", "partition": "kmeans"}),
    "a baseline": (plain, {"metric": "nca", "scale": "zscore", "scoring": "tpr-tnr"}),
    "one coarse cell": (plain, {"coarse_size": None, "metric": "auto"}),
    "ranks": (far, {"views": "ranks"}),
    "ranks, a matrix": (with_gaps, {"views": "ranks", "metric": "full", "scale": "zscore"}),
    "ranks of wide rows": (wide, {"views": "ranks", "scale": "zscore", "method": LinearSVM(cost=(0.1, 1.0))}),
    "any geometry": (tails, {"method": EITHER, "metric": "auto", "folds": 2}),
    "any geometry, one coarse cell": (tails, {"method": EITHER, "metric": "auto", "folds": 2, "coarse_size": None}),
    "one cell": (plain, {"coarse_size": None, "partition": None, "cell_size": 1000}),
}


@pytest.mark.fast(2)
@pytest.mark.parametrize("name", CASES)
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
    for number, ends in enumerate([(), (1, 499)]):
        summaries[str(number)] = train(engine("spark", file, config, ends), config, tmp_path / f"{number}.h5")
    if make is tails:
        assert summaries["memory"].metric is not None and "ranks" in summaries["memory"].metric["name"]
    for kind, summary in summaries.items():
        assert manifest(tmp_path / f"{kind}.h5") == manifest(tmp_path / "memory.h5"), kind
        assert replace(summary, seconds={}) == replace(summaries["memory"], seconds={}), kind


@pytest.mark.fast(3)
@pytest.mark.parametrize("name", sorted(methods()))
def test_all_engines_train_every_method(name: str, tmp_path: Path) -> None:
    config = TrainingConfig(methods()[name](), "voronoi", 60, coarse_size=150, metric="none", folds=2)
    plain(tmp_path / "rows", 300)
    for kind in ENGINES:
        train(engine(kind, tmp_path / "rows", config), config, tmp_path / f"{kind}.h5")
        assert manifest(tmp_path / f"{kind}.h5") == manifest(tmp_path / "memory.h5")


@pytest.mark.whole
@pytest.mark.parametrize("partition", ["voronoi", "kmeans", "chunks"])
def test_from_a_number_of_rows_on_there_are_several_coarse_cells(
    partition: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain(tmp_path / "rows")
    config = replace(COARSE, coarse_size=None, partition=partition, repeats=2)
    train(engine("memory", tmp_path / "rows"), config, tmp_path / "whole.h5")
    monkeypatch.setattr(coarse_cells, "LEAST_COARSE", 150)
    for module in (coarse_cells, preparing):
        monkeypatch.setattr(module, "CHUNK_ROWS", 150)
    monkeypatch.setattr(coarse_cells, "COARSE_CELLS", 2)
    for kind in ENGINES:
        train(engine(kind, tmp_path / "rows"), config, tmp_path / f"{kind}.h5")
        assert manifest(tmp_path / f"{kind}.h5") == manifest(tmp_path / "memory.h5")
    same = manifest(tmp_path / "memory.h5") == manifest(tmp_path / "whole.h5")
    assert same == (partition == "chunks")  # whose cells are the same, however many are divided together


@pytest.mark.fast(1)
@pytest.mark.parametrize("kind", ["memory", "disk"])
def test_partition_files_and_cross_validation(kind: str, tmp_path: Path) -> None:
    plain(tmp_path / "rows")
    partition_file = tmp_path / f"{kind}-cells.h5"
    divided = partition_only(engine(kind, tmp_path / "rows"), COARSE, partition_file)
    partition_only(engine("memory", tmp_path / "rows"), COARSE, tmp_path / "cells.h5")
    assert manifest(partition_file) == manifest(tmp_path / "cells.h5") and divided.sizes.sum() == 700
    train(engine(kind, tmp_path / "rows"), COARSE, tmp_path / "given.h5", partition_file=partition_file)
    train(engine("memory", tmp_path / "rows"), COARSE, tmp_path / "found.h5")
    assert manifest(tmp_path / "given.h5") == manifest(tmp_path / "found.h5")
    table = cross_validate(engine(kind, tmp_path / "rows"), COARSE)
    assert table.points == cross_validate(engine("memory", tmp_path / "rows"), COARSE).points


def test_the_size_of_coarse_cells_depends_on_the_rows_alone() -> None:
    config = TrainingConfig(FAST, "voronoi", 2000)
    sizes = {
        (rows, values): coarse_cells.with_coarse_size(config, rows, values).coarse_size
        for rows, values in ((131_072, 28), (131_073, 28), (10**7, 28), (10**7, 10_000), (40_000, 10**5))
    }
    assert list(sizes.values()) == [None, 65_536, 65_536, 26_843, 16_000]
    large = coarse_cells.with_coarse_size(replace(config, cell_size=10_000), 700_000, 28)
    assert large.coarse_size == 320_000
    for options in ({"partition": "none"}, {"partition": "chunks"}):
        assert coarse_cells.with_coarse_size(replace(config, **options), 10**7, 28).coarse_size is None
    assert coarse_cells.with_coarse_size(replace(config, coarse_size=5000), 100, 28).coarse_size == 5000


@pytest.mark.parametrize("rows", [1, 2, 37, 64, 100])
@pytest.mark.parametrize("make", [plain, wide, far])
def test_statistics_are_merged_in_a_fixed_order(
    make: Callable[[Path], None], rows: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(tmp_path / "all")
    (tmp_path / "rows").write_bytes(b"".join((tmp_path / "all").read_bytes().splitlines(keepends=True)[:rows]))
    monkeypatch.setattr(base, "BLOCK_VALUES", 20)
    monkeypatch.setattr(base, "LEAST", 0)
    statistics = {}
    for kind in ENGINES:
        source = engine(kind, tmp_path / "rows", ends=(1, 5, 5, 20, 63))
        head = source.head()
        labels, digest, spread, drawn = source.reduce([Labels(), Digest(), Spread(), Sample(_third)])
        assert (head.rows, sum(n for n, _ in labels.values())) == (rows, rows)
        sample = together(drawn) if any(len(part.y) for part in drawn) else None
        statistics[kind] = head.columns.width, head.features, head.columns.dense, labels, digest, spread, sample
    for kind in ("disk", "spark"):
        one, other = statistics["memory"], statistics[kind]
        assert one[:5] == other[:5]
        for name in ("low", "high", "mean", "squares"):
            np.testing.assert_array_equal(getattr(one[5], name), getattr(other[5], name))
        if one[6] is not None and other[6] is not None:
            np.testing.assert_array_equal(one[6].numbers, other[6].numbers)
            np.testing.assert_array_equal(_dense(one[6]), _dense(other[6]))


class _Rows:
    """A trainer that gives back the rows of each coarse cell."""

    def records(self, coarse: Any, resources: Any = None, finished: Any = None) -> Any:
        for each in coarse:
            assert isinstance(each, CoarseRows)
            yield each.coarse, "rows", {"numbers": each.rows.numbers, "X": _dense(each.rows), "y": each.rows.y}


class _ByNumber:
    """Two repeats of three coarse cells, to which rows go by their numbers."""

    by_repeat = (range(3), range(3, 6))

    def route(self, repeat: int, numbers: Any, X: Any) -> Any:
        return np.asarray((numbers if repeat else numbers // 7) % 3, np.int32)


@pytest.mark.parametrize("make", [plain, wide])
def test_rows_are_grouped_in_their_order_after_all_steps(make: Callable[[Path], None], tmp_path: Path) -> None:
    make(tmp_path / "rows")
    records = {}
    for kind in ENGINES:
        source = engine(kind, tmp_path / "rows")
        source.head()
        source.through(_doubled)
        events = source.work(_ByNumber(), _Rows(), [0, 2, 5], None, None)  # type: ignore[arg-type]
        records[kind] = {number: record for number, _, record in events}
        assert sorted(records[kind]) == [0, 2, 5]
    data = read(tmp_path / "rows")
    for number, record in records["memory"].items():
        numbers = np.arange(len(data.y))
        expected = numbers[((numbers // 7 if number < 3 else numbers) % 3) == number % 3]
        np.testing.assert_array_equal(record["numbers"], expected)
        np.testing.assert_array_equal(record["y"], data.y[expected])
        for kind in ("disk", "spark"):
            for name, array in record.items():
                np.testing.assert_array_equal(array, records[kind][number][name])


def _third(block: Block) -> Any:
    return block.numbers % 3 == 1


def _doubled(X: Any) -> Any:
    return X * np.float32(2) if isinstance(X, np.ndarray) else as_examples(X * np.float32(2))


def _dense(rows: Drawn) -> Any:
    X = rows.X
    return X if isinstance(X, np.ndarray) else X.toarray()


def test_a_block_knows_its_rows() -> None:
    block = Block(5, np.arange(6, dtype=np.float32).reshape(3, 2), np.asarray([1.0, 2.0, 3.0]), np.ones(3))
    part = block.between(6, 8)
    assert part.numbers.tolist() == [6, 7] and part.y.tolist() == [2.0, 3.0] and part.X.tolist() == [[2, 3], [4, 5]]
    assert part.weight is not None and len(part.weight) == 2
    np.testing.assert_array_equal(part.contents, block.contents[1:])
