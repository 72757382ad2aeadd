"""Rows prepared and divided as a run does it, for tests that look at what is there before cells are trained."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from localsvm.data.blocks.dataset import Dataset
from localsvm.engines.base import CoarseRows, Engine
from localsvm.features.chain import Chain
from localsvm.partition import Partition
from localsvm.runs.cells.schedule import CellTrainer
from localsvm.runs.cells.shared import SharedCells
from localsvm.runs.config import TrainingConfig
from localsvm.runs.preparation.engine import engine_of
from localsvm.runs.preparation.given import Given
from localsvm.runs.preparation.measured import Measured
from localsvm.runs.preparation.prepare import Asked, PreparedRun, prepare
from localsvm.runs.progress import Clock, Observer, Silent
from localsvm.threads import ALONE


class _Collector:
    """A trainer that keeps the cells of each coarse cell."""

    def __init__(self, trainer: CellTrainer) -> None:
        self._trainer, self.cells = trainer, []  # type: ignore[var-annotated]

    def records(self, coarse: Any, resources: Any = None, finished: Any = None) -> Any:
        for each in coarse:
            assert isinstance(each, CoarseRows)
            self.cells.append(self._trainer.divided(each))
            yield each.coarse, "division", {}


@dataclass
class Divided:
    """A run before its cells are trained: the whole of it, and each coarse cell (a repeat is one)."""

    prepared: PreparedRun
    trainer: CellTrainer
    coarse: list[SharedCells]
    partition: Partition

    @property
    def chain(self) -> Chain:
        return self.prepared.chain

    @property
    def measured(self) -> Measured:
        return self.prepared.measured

    @property
    def only(self) -> SharedCells:
        assert len(self.coarse) == 1
        return self.coarse[0]

    @property
    def labels(self) -> NDArray[np.float64]:
        return self.prepared.observed.labels

    @property
    def class_rows(self) -> tuple[int, ...]:
        return self.prepared.observed.class_rows

    def as_dict(self) -> dict[str, Any]:
        return self.prepared.as_dict()

    @property
    def by_repeat(self) -> list[int]:
        """Number of cells of each repeat."""
        return self.partition.cells_by_repeat

    def part(self, cell: int) -> Any:
        """Rows of a cell of the only coarse cell."""
        return self.only.X.handle().rows(self.only.rows()[cell])

    @property
    def sizes(self) -> NDArray[np.int64]:
        return np.concatenate([cells.sizes for cells in self.coarse])


def divide(
    source: Dataset | Engine, config: TrainingConfig, file: str | Path | None = None, given: Given | None = None,
    memory: int | None = None, observer: Observer | None = None,
) -> Divided:  # fmt: skip
    observer = observer or Silent()
    engine = engine_of(source, config, ALONE, memory)
    prepared = prepare(engine, Asked(config, file, given), ALONE, Clock(observer), observer)
    trainer = CellTrainer(prepared.config, prepared.cells, prepared.measured, prepared.observed)
    collector = _Collector(trainer)
    for _ in prepared.engine.work(prepared.cells, collector, range(prepared.cells.count), None, None):
        pass
    coarse = collector.cells
    partition = prepared.cells.completed([each.state for each in coarse], [len(each.sizes) for each in coarse])
    return Divided(prepared, trainer, coarse, partition)
