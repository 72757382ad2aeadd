"""The data sets: real ones from the folder DATA, and HIGGS-like rows of any number.

    examples(data, "magic", "train")            # rows and labels as they are in the file
    with text_files(data, "magic") as files:    # LIBSVM text of both parts: files.train, files.test
    Rows.of(case, options)                      # for comparisons, arrays, scaled: X, y and X_test, y_test
    text(options, "higgs_like", 100_000, "train")  # the file of LIBSVM text, made if it is not there

Real sets are NAME.train.libsvm.xz and NAME.test.libsvm.xz; of covtype, class 2 against the rest, all seven classes as
covtype7. Comparisons have two classes, -1 and 1, and keep their files in a work folder, which may be deleted at any
time. A smaller generated set is the beginning of a larger one.
"""

from __future__ import annotations

import argparse
import gzip
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from harness.library import Dataset, read, write
from localsvm.data.synthetic import HIGGS_SEED, higgs_like

GENERATED = "higgs_like"
SEVEN = "covtype7"
BLOCK = 100_000  # rows that one random stream makes
PARTS = {"train": 0, "test": 1}
TEST_ROWS = 20_000


class Files:
    """The files of a set in a folder: LIBSVM text of both parts, and what is made of them."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.train, self.test = folder, folder / "train.libsvm", folder / "test.libsvm"
        self.model, self.predictions = folder / "model.h5", folder / "predictions.txt"

    def part(self, path: Path, limit: int) -> Path:
        """A file of so many random rows of another; that one, where it has no more."""
        data = read(path)
        if len(data.y) <= limit:
            return path
        rows = np.sort(np.random.default_rng(0).choice(len(data.y), limit, replace=False))
        path_of_part = self.folder / f"part.{limit}.libsvm"
        write(path_of_part, data.X[rows], data.y[rows])
        return path_of_part


@contextmanager
def text_files(data: Path, name: str, labels: Callable[[Any], Any] | None = None) -> Iterator[Files]:
    """A set as LIBSVM text, in a temporary folder; with all its classes, or with what `labels` makes of these."""
    with tempfile.TemporaryDirectory() as folder:
        files = Files(Path(folder))
        for part, path in (("train", files.train), ("test", files.test)):
            rows = examples(data, name, part)
            write(path, rows.X, rows.y if labels is None else labels(rows.y))
        yield files


def examples(data: Path, name: str, part: str) -> Dataset:
    """A part ("train" or "test") of a real set."""
    rows = read(data / f"{'covtype' if name == SEVEN else name}.{part}.libsvm.xz")
    return Dataset(rows.X, np.where(rows.y == 2, 1.0, -1.0)) if name == "covtype" else rows


def dense_parts(data: Path, name: str) -> list[tuple[Any, Any]]:
    """Rows, dense in float32 with the same columns, and labels of both parts of a set."""
    parts = [examples(data, name, part) for part in PARTS]
    rows = [part.X if isinstance(part.X, np.ndarray) else part.X.toarray() for part in parts]
    width = max(X.shape[1] for X in rows)
    wide = [np.pad(np.asarray(X, np.float32), ((0, 0), (0, width - X.shape[1]))) for X in rows]
    return [(X, part.y) for X, part in zip(wide, parts, strict=True)]


def joined(data: Path, name: str) -> tuple[Any, Any]:
    """The rows of both parts of a set, dense in float64, and their labels."""
    rows, labels = zip(*dense_parts(data, name), strict=True)
    return np.concatenate(rows).astype(np.float64), np.concatenate(labels)


@dataclass(frozen=True)
class Rows:
    """Training and test rows (float32), divided by the training rows' standard deviations; labels -1 and 1."""

    X: Any
    y: Any
    X_test: Any
    y_test: Any

    @classmethod
    def of(cls, case: Any, options: argparse.Namespace, test_rows: int = TEST_ROWS, draw: int = 0) -> Rows:
        """The case's rows: the first of a random order, another one for each draw."""
        X, y = arrays(options, case.set, case.rows, "train", draw)
        X_test, y_test = arrays(options, case.set, test_rows, "test")
        deviation = X.std(axis=0, dtype=np.float64)
        factor = np.where(deviation > 0, 1 / np.where(deviation > 0, deviation, 1), 0).astype(np.float32)
        return cls(X * factor, y, X_test * factor, y_test)


def available(options: argparse.Namespace, names: list[str]) -> list[str]:
    """The sets that there are data of, the first two if it has to be quick; others asked for are named on stderr."""
    first = names[:2] if options.quick and options.sets is None else names
    wanted = [name for name in first if options.sets is None or name in options.sets]
    there = [n for n in wanted if n == GENERATED or (options.data and source(options, n, "train").exists())]
    if missing := [name for name in wanted if name not in there]:
        reason = f"no such files in {options.data}" if options.data else "no folder of data sets given (LOCALSVM_DATA)"
        print(f"left out: {', '.join(missing)}: {reason}", file=sys.stderr)
    return there


def source(options: argparse.Namespace, name: str, part: str) -> Path:
    """The file of a real set."""
    return Path(options.data) / f"{name}.{part}.libsvm.xz"


def arrays(options: argparse.Namespace, name: str, rows: int, part: str, draw: int = 0) -> tuple[Any, Any]:
    """(X, y) of at most so many rows, unscaled."""
    if name == GENERATED:
        blocks = list(generated(rows, part, draw))
        return np.concatenate([X for X, _ in blocks]), np.concatenate([y for _, y in blocks])
    kept = options.work / f"{name}.{part}.npz"
    if not kept.exists():
        X, y = _real(options, name, part)
        _complete(kept, lambda target: np.savez(target.open("wb"), X=X, y=y))
    with np.load(kept) as columns:
        X, y = columns["X"], columns["y"]
    order = np.random.default_rng([PARTS[part], draw]).permutation(len(y))[:rows]
    return X[order], y[order]


def generated(rows: int, part: str, draw: int = 0) -> Iterator[tuple[Any, Any]]:
    """Blocks of HIGGS-like rows, each from a random stream of its own; draws share none."""
    blocks = -(-rows // BLOCK)
    for block in range(draw * blocks, (draw + 1) * blocks):
        rng = np.random.default_rng(np.random.SeedSequence(HIGGS_SEED, spawn_key=(PARTS[part], block)))
        X, y = higgs_like(BLOCK, rng)
        left = rows - (block - draw * blocks) * BLOCK
        yield X[:left], y[:left]


def _real(options: argparse.Namespace, name: str, part: str) -> tuple[Any, Any]:
    width = None if part == "train" else arrays(options, name, 1, "train")[0].shape[1]
    data = read(source(options, name, part), dense=True, n_features=width, jobs=2)
    y = data.y == 2 if name == "covtype" else data.y == data.y.max()
    return data.X, np.where(y, 1.0, -1.0)


def text(options: argparse.Namespace, name: str, rows: int, part: str, compressed: bool = False) -> Path:
    """The LIBSVM text of a set's first rows (0: all), plain or as gzip; unscaled, exact to the last bit."""
    size = f".{rows}" if rows else ""
    target = options.work / f"{name}{size}.{part}.libsvm"
    if not target.exists():
        _complete(target, lambda path: _write(options, name, rows, part, path))
    if not compressed:
        return target
    packed = target.with_suffix(".libsvm.gz")
    if not packed.exists():
        _complete(packed, lambda path: _pack(target, path))
    return packed


def _write(options: argparse.Namespace, name: str, rows: int, part: str, path: Path) -> None:
    with path.open("wb") as stream:
        if name == GENERATED:
            for X, y in generated(rows, part):
                write(stream, X, y)
        else:
            write(stream, *arrays(options, name, rows or 1 << 40, part))


def _pack(plain: Path, path: Path) -> None:
    with plain.open("rb") as stream, gzip.open(path, "wb", compresslevel=6) as packed:
        shutil.copyfileobj(stream, packed, 1 << 20)


def _complete(target: Path, make: Any) -> None:
    """A file under its name only when it is whole."""
    print(f"making {target}", file=sys.stderr, flush=True)
    partial = target.with_name(f"partial.{os.getpid()}.{target.name}")
    try:
        make(partial)
        partial.replace(target)
    finally:
        partial.unlink(missing_ok=True)


def dataset(rows: Rows) -> Dataset:
    """The training rows for localsvm.runs.train.train, which consumes them."""
    return Dataset(rows.X.copy(), rows.y.copy())
