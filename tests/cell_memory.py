"""Prints the memory that a cell's work is estimated to need, and what it took, in bytes: run in a process of its own.

Arguments: method, kind of rows ("dense", "sparse", or dense with so many classes, all-pairs, such as "4 classes"),
rows, columns, entries a row, and the method's options as JSON.
"""

from __future__ import annotations

import ctypes
import gc
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
from dividing import divide

from localsvm.data.blocks.dataset import Dataset, sparse_examples
from localsvm.methods import methods
from localsvm.runs.cells import schedule as scheduling
from localsvm.runs.cells.schedule import CellMemory, Resources
from localsvm.runs.config import TrainingConfig


def random_data(kind: str, rows: int, columns: int, entries: int) -> Dataset:
    rng = np.random.default_rng(1)
    if kind != "sparse":
        X = rng.standard_normal((rows, columns), dtype=np.float32)
        side = X[:, 0] + 0.5 * X[:, 1] ** 2 - 0.5
        if kind == "dense":
            return Dataset(X, np.where(side > 0, 1.0, -1.0))
        edges = np.linspace(0, 1, int(kind.partition(" ")[0]) + 1)[1:-1]
        return Dataset(X, np.digitize(side, np.quantile(side, edges)).astype(np.float64))
    indices = np.sort(rng.integers(0, columns - entries, (rows, entries)), axis=1) + np.arange(entries)
    values = rng.random((rows, entries)).astype(np.float32) + 0.1
    pointers = np.arange(0, rows * entries + 1, entries, dtype=np.int64)
    S = sparse_examples(values.ravel(), indices.astype(np.int32).ravel(), pointers, columns)
    side = (values * np.sin(indices)).sum(axis=1) + 0.3 * rng.standard_normal(rows)
    return Dataset(S, np.where(side > 0, 1.0, -1.0))


class Cells:
    """One cell, whose rows are mapped already."""

    def __init__(self, data: Dataset, method: Any) -> None:
        pairs = "ova" if method.novel_share else "ava"
        config = TrainingConfig(method=method, partition="none", grid="full", multiclass=pairs)
        divided = divide(data, config)
        self.trainer, self.shared = divided.trainer, divided.only
        cell = self.trainer.inputs(self.shared).cell((0,), self.shared.rows()[0], self.shared.fold_rows[0], 1.0)
        (cell.X if isinstance(cell.X, np.ndarray) else cell.X.data + cell.X.indices).sum()
        (cell.y + cell.mass).sum()

    def work(self) -> None:
        """Train the cell."""
        for _ in self.trainer.of_shared(self.shared, Resources()):
            pass


def peak() -> int:
    words = Path("/proc/self/status").read_text().split()
    return int(words[words.index("VmHWM:") + 1]) << 10


def main() -> None:
    name, kind, rows, columns, entries, options = sys.argv[1:]
    scheduling.SPARE_BYTES = 0  # what is only kept because there is room is not part of the estimate
    method = methods()[name](**{k: tuple(v) if isinstance(v, list) else v for k, v in json.loads(options).items()})
    # modules are imported, libraries have buffers
    Cells(random_data(kind, 60, 200, min(int(entries), 20)), method).work()
    cells = Cells(random_data(kind, int(rows), int(columns), int(entries)), method)
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew
    before = peak()
    cells.work()
    print(CellMemory(cells.trainer, cells.shared, Resources()).worker_bytes(), peak() - before)


if __name__ == "__main__":
    main()
