"""Prints the memory that learning a metric is estimated to need, and what it took, in bytes: run in its own process.

Arguments: metric, kind of rows ("dense", "sparse"), rows, columns, entries a row, threads.
"""

from __future__ import annotations

import ctypes
import gc
import sys
from pathlib import Path

import numpy as np
from cell_memory import peak, random_data
from selecting import observed_of

from localsvm.data.blocks.dataset import is_dense, size_of
from localsvm.engines.memory import Memory
from localsvm.features.ranks import Ranks
from localsvm.memory import UNBOUNDED, Budget
from localsvm.representations.metric_learning import LearningPlan
from localsvm.runs.config import TrainingConfig
from localsvm.runs.preparation import metric as measuring
from localsvm.runs.preparation.demand import Demand
from localsvm.runs.preparation.metric import tries_ranks
from localsvm.threads import Threads


class Asked(Budget):
    """A budget without bound, which keeps the bytes that it is asked for."""

    need = 0

    def check(self, what: str, need: int, remedy: str = "") -> None:
        Asked.need = need


def shorten() -> None:
    """Shorten the learning to few steps, but two pools of near samples, with samples of the usual size."""
    measuring.CHOICE_PLAN = LearningPlan(
        sample=measuring.CHOICE_PLAN.sample, weight_steps=2, matrix_steps=4, near_steps=11
    )
    measuring.FURTHER_PLAN = Short()
    measuring.LearningPlan = Short  # type: ignore[misc]


class Short(LearningPlan):
    """A plan of few steps."""

    def __init__(self) -> None:
        super().__init__(weight_steps=2, matrix_steps=4, near_steps=11)


def main() -> None:
    shorten()
    metric, kind, *numbers = sys.argv[1:]
    rows, columns, entries, jobs = map(int, numbers)
    config = TrainingConfig(metric=metric, scale="none")
    few = random_data(kind, 300, 50, min(entries, 20))
    measuring.measure(few, observed_of(few.y), config, Threads(1))  # modules are imported
    data = random_data(kind, rows, columns, entries)
    observed = observed_of(data.y)
    with Threads(jobs) as threads:
        Demand(Memory(data, Asked(UNBOUNDED.bytes)), config, threads).metric(observed)
    ranks = Ranks.fit(np.asarray(data.X)) if tries_ranks(config, is_dense(data.X), columns) else None
    held = size_of(data.X) + data.y.nbytes
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew
    before = peak()
    with Threads(jobs) as threads:
        measured = measuring.measure(data, observed, config, threads, ranks)
        if measured.metric is not None and ranks is None:  # rows with ranks are another phase
            measured.metric.apply(data.X, in_place=True)
    print(Asked.need, held + peak() - before)


if __name__ == "__main__":
    main()
