"""A training run: divide the space, train the cells in a pool, stream the results into the model file."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from localsvm import __version__
from localsvm.data.dataset import Dataset
from localsvm.kernels._kernels import LEVELS, simd_level
from localsvm.partition import spread
from localsvm.runs.cell_work import CellResult
from localsvm.runs.division import Divided, TrainingConfig, divide
from localsvm.runs.progress import Clock, Observer, Silent
from localsvm.runs.scheduling import run_cells
from localsvm.store.fingerprint import fingerprint
from localsvm.store.journal import Journal, journal_path, open_journal
from localsvm.store.model import write_model
from localsvm.threads import Threads

TABLE = ("lines", "costs", "loss", "best")  # of a cell's grid, in the journal


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

    memory: bytes that the run may use, None for what the machine has free. Finished cells are kept in a journal
    beside the model; `resume` goes on from it. The model depends on data, config and seed alone. Raises DataError,
    ModelError, RunError.
    """
    observer = observer or Silent()
    clock = Clock(observer)
    with clock("partition"), Threads(jobs) as threads:
        key = run_key(data, config, partition_file)
        divided = divide(data, config, partition_file, threads)
        config = config.for_classes(len(divided.labels))
    data.X = data.y = None  # type: ignore[assignment]  # the shared copy is all that is needed from here
    with clock("train"), open_journal(journal_path(output), key, resume=resume, force=force) as journal:
        reports = _train_cells(divided, config, journal, jobs, memory, observer)
        with clock("write"):
            cells = (unpack(journal[str(i)]).state for i in range(len(divided.sizes)))
            write_model(
                output,
                config=config.as_dict() | divided.as_dict(),
                labels=divided.labels,
                scaling=(divided.scaling.mode, divided.scaling.state()),
                partition=(divided.partition.name, divided.partition.state()),
                cells=cells,
                n_cells=len(divided.sizes),
                force=force,
            )
        journal.delete()
    about = divided.labels, divided.class_rows, divided.X.features, divided.partition.name, divided.sizes
    return summarise(*about, reports, clock.seconds)


def _train_cells(
    divided: Divided, config: TrainingConfig, journal: Journal, jobs: int, memory: int | None, observer: Observer
) -> list[dict[str, float]]:
    reports = {int(key): unpack(journal[key]).report for key in journal}
    observer.cells(len(divided.sizes), len(reports))
    # closing: the workers end with this block, not when a traceback that holds the generator is let go
    with closing(run_cells(divided, config, jobs, memory, observer, skip=set(reports))) as results:
        for result in results:
            journal.append(str(result.index), pack(result))
            reports[result.index] = result.report
            observer.cell_done(result.report)
            journal.settle()  # after the cell is counted: this may take long, and a signal may end it
    return [reports[i] for i in sorted(reports)]


def run_key(data: Dataset, config: TrainingConfig, partition_file: str | Path | None) -> str:
    """Hash of the data and of all that determines the model's bits: what a journal belongs to."""
    options = json.dumps(config.as_dict(), sort_keys=True)
    part = hashlib.sha256(Path(partition_file).read_bytes()).hexdigest() if partition_file else ""
    parts = (fingerprint(data.X, data.y), options, part, __version__, LEVELS[simd_level()])
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def pack(result: CellResult) -> dict[str, NDArray[Any]]:
    """A cell's result as arrays, for the journal."""
    arrays: dict[str, NDArray[Any]] = {f"state/{name}": array for name, array in result.state.items()}
    arrays |= {name: getattr(result, name) for name in TABLE}
    texts = {name: json.dumps(getattr(result, name)).encode() for name in ("names", "report")}
    arrays |= {name: np.frombuffer(text, np.uint8) for name, text in texts.items()}
    return arrays | {"index": np.asarray(result.index)}


def unpack(arrays: dict[str, NDArray[Any]]) -> CellResult:
    """A cell's result from a journal's record."""
    state = {name.removeprefix("state/"): array for name, array in arrays.items() if name.startswith("state/")}
    names, report = (json.loads(arrays[name].tobytes()) for name in ("names", "report"))
    return CellResult(int(arrays["index"]), state, report, tuple(names), *(arrays[name] for name in TABLE))


def cross_validated_error(reports: list[dict[str, float]]) -> float | None:
    """Held-out error over all cells, weighted as the training rows are; None where nothing was held out."""
    weight = sum(r.get("weight", 0.0) for r in reports)
    return sum(r.get("wrong", 0.0) for r in reports) / weight if weight else None


def summarise(
    labels: NDArray[np.float64], class_rows: Sequence[int], features: int, partition: str, sizes: NDArray[np.int64],
    reports: list[dict[str, float]], seconds: dict[str, float],
) -> Summary:  # fmt: skip
    """The closing report of a run."""
    return Summary(
        rows=sum(class_rows),
        features=features,
        labels=[float(v) for v in labels],
        class_rows=list(class_rows),
        partition=partition,
        cells=len(sizes),
        cell_rows=spread(sizes),
        cv_error=cross_validated_error(reports),
        support_vectors=int(sum(r["support_vectors"] for r in reports)),
        models=int(sum(r["models"] for r in reports)),
        iterations=int(sum(r["iterations"] for r in reports)),
        not_converged=int(sum(r["not_converged"] for r in reports)),
        largest_gap=max(r["largest_gap"] for r in reports),
        seconds=seconds,
    )
