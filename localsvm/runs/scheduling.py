"""All cells of a run through the pool: which tasks, in which order, how many at once."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from localsvm.data import shared
from localsvm.errors import RunError
from localsvm.kernels import gram
from localsvm.methods.base import Scores
from localsvm.parallel.local import LocalPool
from localsvm.runs.cell_work import CellResult, CellTask, Job
from localsvm.runs.division import Divided, TrainingConfig
from localsvm.runs.progress import Observer
from localsvm.selection.search import Search
from localsvm.targets.classification import Scheme

WORKER_BYTES = 120 << 20  # a Python process with numpy and scipy
# Sum of squared cell sizes times problems, up to which this process alone is faster than the start of workers: .7 s,
# when one core has scored and fitted the default grid of so much in .3 to .45 s
SMALL_RUN = 1e7


def run_cells(
    divided: Divided,
    config: TrainingConfig,
    jobs: int,
    memory: int | None,
    observer: Observer,
    skip: set[int] | None = None,
    fit: bool = True,
) -> Generator[CellResult]:
    """Results of all cells but those in `skip`, as they finish; largest cells first.

    Few cells are split into the lines of their grid, so that all workers stay busy; what a line gives does not depend
    on it. Where even those are fewer than the jobs, threads work inside them.
    """
    sizes = divided.sizes
    assert config.select is not None, "decided by for_classes"
    job = Job(
        config.method, Scheme(divided.labels, config.multiclass), config.folds, config.select, config.seed,
        float(sizes.mean()), divided.X.handle(), divided.y.handle(), divided.count.handle(), config.class_weights, fit,
        Search(config.grid),
    )  # fmt: skip
    todo = [int(i) for i in np.argsort(-sizes, kind="stable") if int(i) not in (skip or ())]
    small = float((sizes[todo].astype(np.float64) ** 2).sum()) * job.scheme.problems_a_row <= SMALL_RUN
    workers = _jobs_within(memory, jobs, divided, config, observer) if todo else 1
    cores, jobs = jobs, 1 if small else workers
    tasks = [CellTask(job, i, int(divided.edges[i]), int(divided.edges[i + 1])) for i in todo]
    grid = config.method.grid(job.cell(0, 0, 1), 1.0, config.folds)  # as many lines as every other cell's
    split = jobs > 1 and len(tasks) < 4 * jobs and config.folds > 1 and len(grid.lines) > 1
    known: dict[int, Scores] = {}
    waiting: dict[int, int] = {}
    queue: deque[Callable[[], Any]] = deque()
    for task in tasks:
        parts = task.split(np.full((len(grid.lines), 1), np.nan), grid.ordered) if split else [task]
        waiting[task.index] = len(parts)
        queue.extend(_threaded(parts, cores // len(tasks)))
    try:
        with LocalPool(min(jobs, max(1, len(queue)))) as pool:
            for done, result in pool.unordered(queue):
                assert isinstance(done, CellTask)
                if not done.lines:
                    yield result
                    continue
                known[done.index] = known[done.index].merge(result) if done.index in known else result
                waiting[done.index] -= 1
                if not waiting[done.index]:
                    parts = done.split(known[done.index].loss, grid.ordered)
                    waiting[done.index] = len(parts)
                    parts = parts or [replace(done, lines=(), scores=known.pop(done.index))]
                    queue.extendleft(_threaded(parts, cores // len(tasks)))
    finally:  # what this process, too, mapped and allocated
        gram.forget()
        shared.forget()


def _threaded(parts: list[CellTask], cores: int) -> list[CellTask]:
    """The parts of a cell's work with the threads that are left for each, of so many cores for the cell."""
    return [replace(part, threads=max(1, cores // len(parts))) for part in parts]


def _jobs_within(
    memory: int | None,
    jobs: int,
    divided: Divided,
    config: TrainingConfig,
    observer: Observer,
) -> int:
    """How many workers fit into the memory; RunError where not even one does. The model does not depend on it."""
    largest = int(divided.sizes.max())
    weight = float(divided.count.array.max()) * max([1.0, *(w for _, w in config.class_weights)])
    scheme = Scheme(divided.labels, config.multiclass)
    part = min(largest, scheme.largest_part(divided.class_rows))
    features, solutions = divided.X.widest(divided.edges), config.folds * scheme.problems_a_row
    worker = config.method.memory(largest, features, weight, solutions, part) + WORKER_BYTES
    data = sum(int(np.prod(part.shape)) * np.dtype(part.dtype).itemsize for part in divided.X.handle().parts)
    limit = memory - data if memory is not None else available_memory()
    fit = max(0, limit) // worker
    if fit < 1:
        raise RunError(
            f"a cell of {largest} rows needs {worker / 2**30:.2f} GiB beside {data / 2**30:.2f} GiB of data, and "
            f"{max(0, limit) / 2**30:.2f} GiB are left; use smaller cells (-P voronoi -c {max(100, largest // 4)}) or "
            "more --memory"
        )
    if fit < jobs:
        observer.note(
            f"{fit} of {jobs} workers fit into the memory (a cell of {largest} rows needs {worker / 2**30:.2f} GiB)"
        )
    return int(min(jobs, fit))


def available_memory() -> int:
    """Bytes that can be had without swapping, as the kernel estimates them, within the limits of the control group."""
    for line in Path("/proc/meminfo").read_text().splitlines():
        if line.startswith("MemAvailable:"):
            return min(int(line.split()[1]) << 10, *_group_limits(), 1 << 62)
    raise RunError("/proc/meminfo does not say how much memory is available; give --memory")


def _group_limits() -> Iterator[int]:
    """What the control groups of a batch system or a container leave (version 2)."""
    lines = Path("/proc/self/cgroup").read_text().splitlines()
    group = next((line[3:] for line in lines if line.startswith("0::")), "/")
    here = Path("/sys/fs/cgroup") / group.lstrip("/")
    for folder in (here, *here.parents):
        limit, used = folder / "memory.max", folder / "memory.current"
        if limit.exists() and used.exists() and (text := limit.read_text().strip()) != "max":
            yield max(0, int(text) - int(used.read_text()))
