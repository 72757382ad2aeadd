"""Metric of a model or a partition file, and what comes before it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from localsvm.store.container import MODEL, PARTITION, AnyPath, checked, open_container
from localsvm.store.model import read_metric, read_ranks
from localsvm.store.pieces import Array


@dataclass(frozen=True)
class MetricFile:
    """Part of a model or a partition file; see `Model` and `write_partition`. `kind` is MODEL or PARTITION."""

    path: AnyPath
    kind: str
    config: dict[str, Any]
    columns: NDArray[np.int64] | None
    scaling: tuple[str, dict[str, Array]]
    ranks: dict[str, Array] | None
    metric: tuple[str, dict[str, Array]] | None


def load_metric(path: AnyPath) -> MetricFile:
    """Read the metric of a file, and what comes before it, verified.

    The cells of a model are neither verified nor read.

    Raises
    ------
    ModelError : as `load_model` does.
    """
    with open_container(path, MODEL, PARTITION) as file, checked(path):
        cells = [f"/cells/{name}" for name in file.group("/cells")] if file.has("/cells") else []
        file.verify(later=cells)
        return MetricFile(
            path=path,
            kind=file.attribute("/", "format", str),
            config=file.json("config"),
            columns=file.array("/columns") if file.has("/columns") else None,
            scaling=(file.attribute("/scaling", "mode", str), file.arrays("/scaling")),
            ranks=read_ranks(file),
            metric=read_metric(file),
        )
