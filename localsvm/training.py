"""A training run: divide the space, train the cells in a pool, stream the results into the model file."""

from __future__ import annotations

import hashlib
import json
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from localsvm.cells import CellResult, CellTask, Job
from localsvm.data.dataset import Dataset
from localsvm.data.scaling import Scaling
from localsvm.data.shared import SharedArray, SharedExamples
from localsvm.errors import DataError, ModelError, RunError
from localsvm.journal import Journal, fingerprint
from localsvm.methods.base import Method, Scores
from localsvm.methods.svm import KernelSVM
from localsvm.model import load_partition, write_model, write_partition
from localsvm.multiclass import Scheme
from localsvm.parallel.local import LocalPool
from localsvm.partition import Partition, create, restore

DEFAULT_CELL_SIZE = 2000


@dataclass(frozen=True)
class TrainingConfig:
    """Every option that determines the model; see the command line's help for their meaning.

    partition None: one cell up to cell_size rows, Voronoi cells beyond. class_weights: (label, factor on C) pairs.
    """

    method: Method = field(default_factory=KernelSVM)
    partition: str | None = None
    cell_size: int = DEFAULT_CELL_SIZE
    scale: str = "std"
    folds: int = 5
    select: str = "vote"
    multiclass: str = "ova"
    class_weights: tuple[tuple[float, float], ...] = ()
    seed: int = 0

    def as_dict(self) -> dict[str, Any]:
        """The options as JSON can hold them."""
        method = {"name": self.method.name, **asdict(self.method)}  # type: ignore[call-overload]
        return {**asdict(self), "method": method}


class Observer(Protocol):
    """Who is told how a run goes on; the command line draws its progress from it."""

    def phase(self, name: str) -> None:
        """A phase begins: partition, train, write."""

    def cells(self, total: int, done: int) -> None:
        """Training begins: so many cells, of which so many came from an interrupted run."""

    def cell_done(self, report: dict[str, float]) -> None:
        """A cell is finished."""

    def note(self, text: str) -> None:
        """Something the user should know."""


class Silent:
    """An observer that says nothing."""

    def phase(self, name: str) -> None:
        """Say nothing."""

    def cells(self, total: int, done: int) -> None:
        """Say nothing."""

    def cell_done(self, report: dict[str, float]) -> None:
        """Say nothing."""

    def note(self, text: str) -> None:
        """Say nothing."""


@dataclass
class Summary:
    """What a run did. cv_error is None where nothing was cross-validated; seconds by phase, wall clock."""

    rows: int
    features: int
    labels: list[float]
    class_rows: list[int]
    partition: str
    cells: int
    cell_rows: dict[str, float]
    cv_error: float | None
    support_vectors: int
    models: int
    iterations: int
    not_converged: int
    largest_gap: float
    seconds: dict[str, float]


@dataclass
class Divided:
    """Scaled training data in cell order: shared rows, labels, counts, and the edges (cells + 1) between cells."""

    scaling: Scaling
    partition: Partition
    labels: NDArray[np.float64]
    class_rows: list[int]
    X: SharedExamples
    y: SharedArray
    count: SharedArray
    edges: NDArray[np.int64]

    @property
    def sizes(self) -> NDArray[np.int64]:
        """Rows of each cell."""
        return np.diff(self.edges)


def divide(data: Dataset, config: TrainingConfig, partition_file: str | Path | None = None) -> Divided:
    """Scale the data (in place where dense), fit or load the partition, and bring the rows into cell order.

    Raises DataError for a single class, ModelError for a partition file that does not belong to the data.
    """
    labels, class_rows = np.unique(data.y, return_counts=True)
    if len(labels) < 2:
        raise DataError(f"all {len(data.y)} rows have the label {labels[0]:g}; training needs at least two classes")
    for label, _ in config.class_weights:
        if label not in labels:
            raise DataError(f"-w {label:g}: no row has that label; the labels are {', '.join(f'{v:g}' for v in labels)}")
    if partition_file is None:
        scaling = Scaling.fit(data.X, config.scale)
        X = scaling.apply(data.X, in_place=True)
        partition = create(_partition_name(config, len(data.y)))
        rng = np.random.default_rng(np.random.SeedSequence(config.seed, spawn_key=(1 << 32, 0)))
        partition.fit(X, data.y, config.cell_size, rng)
        cells = partition.training_cells()
        rows = np.concatenate([cell.rows for cell in cells])
        count = np.concatenate([np.ones(len(c.rows)) if c.weight is None else c.weight for c in cells])
        sizes = [len(cell.rows) for cell in cells]
    else:
        stored = load_partition(partition_file, fingerprint(data.X, data.y))
        scaling = Scaling.from_state(stored.scaling[0], stored.scaling[1])
        X = scaling.apply(data.X, in_place=True)
        partition = restore(stored.partition[0], stored.partition[1])
        rows, count, sizes = stored.rows, stored.count, list(stored.sizes)
    return Divided(
        scaling, partition, labels, [int(c) for c in class_rows],
        SharedExamples(X, rows), SharedArray.copy(data.y[rows]), SharedArray.copy(count),
        np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
    )  # fmt: skip


def _partition_name(config: TrainingConfig, rows: int) -> str:
    return config.partition or ("none" if rows <= config.cell_size else "voronoi")


def train(
    data: Dataset,
    config: TrainingConfig,
    output: str | Path,
    *,
    jobs: int = 1,
    memory: int | None = None,
    force: bool = False,
    resume: bool = False,
    partition_file: str | Path | None = None,
    observer: Observer | None = None,
) -> Summary:
    """Train on the data and write the model to `output`; the data are consumed (scaled in place where dense).

    memory: bytes that the run may use, None for what the machine has free. Finished cells are kept in a journal beside the
    model; `resume` goes on from it. The model depends on data, config and seed alone. Raises DataError, ModelError,
    RunError.
    """
    observer = observer or Silent()
    clock = Clock(observer)
    with clock("partition"):
        key = run_key(data, config, partition_file)
        divided = divide(data, config, partition_file)
    data.X = data.y = None  # type: ignore[assignment]  # the shared copy is all that is needed from here
    with clock("train"), Journal(journal_path(output), key, resume=resume, force=force) as journal:
        reports = _train_cells(divided, config, journal, jobs, memory, observer)
        with clock("write"):
            cells = (unpack(journal.read(str(i))).state for i in range(len(divided.sizes)))
            write_model(
                output,
                config=config.as_dict() | {"features": divided.X.features, "partition": divided.partition.name},
                labels=divided.labels,
                scaling=(divided.scaling.mode, divided.scaling.state()),
                partition=(divided.partition.name, divided.partition.state()),
                cells=cells,
                n_cells=len(divided.sizes),
                force=force,
            )
        journal.delete()
    return summarise(divided, reports, clock.seconds)


def _train_cells(
    divided: Divided, config: TrainingConfig, journal: Journal, jobs: int, memory: int | None, observer: Observer
) -> list[dict[str, float]]:
    reports = {int(key): unpack(journal.read(key)).report for key in journal.keys()}
    observer.cells(len(divided.sizes), len(reports))
    for result in run_cells(divided, config, jobs, memory, observer, skip=set(reports)):
        journal.append(str(result.index), pack(result))
        reports[result.index] = result.report
        observer.cell_done(result.report)
    return [reports[i] for i in sorted(reports)]


def run_cells(
    divided: Divided,
    config: TrainingConfig,
    jobs: int,
    memory: int | None,
    observer: Observer,
    skip: set[int] | None = None,
    fit: bool = True,
) -> Iterator[CellResult]:
    """Results of all cells but those in `skip`, as they finish; largest cells first.

    Few cells are split into blocks of gammas, so that all workers stay busy; what a gamma gives does not depend on it.
    """
    sizes = divided.sizes
    job = Job(
        config.method, Scheme(divided.labels, config.multiclass), config.folds, config.select, config.seed,
        float(sizes.mean()), divided.X.handle(), divided.y.handle(), divided.count.handle(), config.class_weights, fit,
    )  # fmt: skip
    todo = [int(i) for i in np.argsort(-sizes, kind="stable") if int(i) not in (skip or ())]
    jobs = _jobs_within(memory, jobs, divided, config.method, observer) if todo else 1
    tasks = [CellTask(job, i, int(divided.edges[i]), int(divided.edges[i + 1])) for i in todo]
    n_gammas = len(config.method.grid(job.cell(0, 0, 1), 1.0, config.folds).gammas)
    split = jobs > 1 and len(tasks) < 4 * jobs and config.folds > 1 and n_gammas > 1
    parts: dict[int, list[tuple[int, Scores]]] = {}
    queue: deque[Callable[[], Any]] = deque()
    for task in tasks:
        queue.extend(task.split(n_gammas, n_gammas) if split else [task])
    with LocalPool(min(jobs, max(1, len(queue)))) as pool:
        for done, result in pool.unordered(queue):
            assert isinstance(done, CellTask)
            if done.block is None:
                yield result
                continue
            blocks = parts.setdefault(done.index, [])
            blocks.append((done.block[0], result))
            if len(blocks) == n_gammas:
                queue.appendleft(_finish(done, parts.pop(done.index)))


def _finish(task: CellTask, blocks: list[tuple[int, Scores]]) -> CellTask:
    ordered = [scores for _, scores in sorted(blocks, key=lambda block: block[0])]
    merged = ordered[0]
    for scores in ordered[1:]:
        merged = merged.merge(scores)
    return CellTask(task.job, task.index, task.first, task.last, scores=merged)


def _jobs_within(memory: int | None, jobs: int, divided: Divided, method: Method, observer: Observer) -> int:
    """How many workers fit into the memory; RunError where not even one does. The model does not depend on it."""
    largest, features = int(divided.sizes.max()), divided.X.features
    worker = method.memory(largest, features) + WORKER_BYTES
    shared = sum(int(np.prod(part.shape)) * np.dtype(part.dtype).itemsize for part in divided.X.handle().parts)
    limit = memory - shared if memory is not None else available_memory()
    fit = max(0, limit) // worker
    if fit < 1:
        raise RunError(
            f"a cell of {largest} rows needs {worker / 2**30:.2f} GiB beside {shared / 2**30:.2f} GiB of data, and "
            f"{max(0, limit) / 2**30:.2f} GiB are left; use smaller cells (-P voronoi -c {max(100, largest // 4)}) or more --memory"
        )
    if fit < jobs:
        observer.note(f"{fit} of {jobs} workers fit into the memory (a cell of {largest} rows needs {worker / 2**30:.2f} GiB)")
    return int(min(jobs, fit))


WORKER_BYTES = 120 << 20  # a Python process with numpy and scipy


def available_memory() -> int:
    """Bytes that can be had without swapping, as the kernel estimates them."""
    for line in Path("/proc/meminfo").read_text().splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) << 10
    raise RunError("/proc/meminfo does not say how much memory is available; give --memory")


def run_key(data: Dataset, config: TrainingConfig, partition_file: str | Path | None) -> str:
    """Hash of the data and of every option that determines the model: what a journal belongs to."""
    options = json.dumps(config.as_dict(), sort_keys=True)
    part = hashlib.sha256(Path(partition_file).read_bytes()).hexdigest() if partition_file else ""
    return hashlib.sha256(f"{fingerprint(data.X, data.y)} {options} {part}".encode()).hexdigest()


def journal_path(output: str | Path) -> Path:
    """The journal of a run stands beside its model."""
    return Path(f"{output}.journal")


def pack(result: CellResult) -> dict[str, NDArray[Any]]:
    """A cell's result as arrays, for the journal."""
    report = np.frombuffer(json.dumps(result.report).encode(), np.uint8)
    table = {"gammas": result.gammas, "costs": result.costs, "loss": result.loss, "report": report}
    return {f"state/{name}": array for name, array in result.state.items()} | table | {"index": np.asarray(result.index)}


def unpack(arrays: dict[str, NDArray[Any]]) -> CellResult:
    """A cell's result from a journal's record."""
    state = {name.removeprefix("state/"): array for name, array in arrays.items() if name.startswith("state/")}
    report = json.loads(arrays["report"].tobytes())
    return CellResult(int(arrays["index"]), state, report, arrays["gammas"], arrays["costs"], arrays["loss"])


def cross_validated_error(reports: list[dict[str, float]]) -> float | None:
    """Held-out error over all cells, weighted as the training rows are; None where nothing was held out."""
    weight = sum(r.get("weight", 0.0) for r in reports)
    return sum(r.get("wrong", 0.0) for r in reports) / weight if weight else None


def summarise(divided: Divided, reports: list[dict[str, float]], seconds: dict[str, float]) -> Summary:
    """The closing report of a run."""
    from localsvm.partition.base import spread

    return Summary(
        rows=sum(divided.class_rows),
        features=divided.X.features,
        labels=[float(v) for v in divided.labels],
        class_rows=divided.class_rows,
        partition=divided.partition.name,
        cells=len(divided.sizes),
        cell_rows=spread(divided.sizes),
        cv_error=cross_validated_error(reports),
        support_vectors=int(sum(r["support_vectors"] for r in reports)),
        models=int(sum(r["models"] for r in reports)),
        iterations=int(sum(r["iterations"] for r in reports)),
        not_converged=int(sum(r["not_converged"] for r in reports)),
        largest_gap=max(r["largest_gap"] for r in reports),
        seconds=seconds,
    )


class Clock:
    """Wall-clock seconds by phase."""

    def __init__(self, observer: Observer) -> None:
        self.seconds: dict[str, float] = {}
        self._observer = observer

    @contextmanager
    def __call__(self, name: str) -> Iterator[None]:
        """Time a phase; nested phases are taken out of the outer one."""
        self._observer.phase(name)
        started, inner = time.perf_counter(), sum(self.seconds.values())
        yield
        nested = sum(self.seconds.values()) - inner
        self.seconds[name] = self.seconds.get(name, 0.0) + time.perf_counter() - started - nested
