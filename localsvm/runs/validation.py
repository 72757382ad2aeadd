"""Cross-validation without a model: the table of a run's grids."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from localsvm.data.dataset import Dataset, size_of
from localsvm.memory import Budget
from localsvm.parallel.local import LocalPool
from localsvm.runs import weighing
from localsvm.runs.cell_work import CellResult
from localsvm.runs.config import TrainingConfig
from localsvm.runs.division import Divided, divide, tell_copies, tell_off_centre
from localsvm.runs.given import Given
from localsvm.runs.progress import Clock, Observer, Silent
from localsvm.runs.scheduling import PoolFactory, RunCells
from localsvm.runs.summary import cross_validated_error, cross_validated_recalls
from localsvm.selection.cross_validation import Scores
from localsvm.threads import Threads


@dataclass(frozen=True)
class Point:
    """One point of the grid of one cell.

    Attributes
    ----------
    cell, rows : the cell's number and size.
    setting : the values of the parameters other than the cost.
    cost : C on all rows of the cell; nan for a method without costs.
    loss : what selection compares, from 0 to 1: the held-out share of wrong rows, weighted, or 1 - TPR x TNR.
    best : chosen in that cell.
    """

    cell: int
    rows: int
    setting: tuple[float, ...]
    cost: float
    loss: float
    best: bool


@dataclass
class Validation:
    """The table of a run's grids.

    Attributes
    ----------
    names : of the parameters whose values are the points' settings.
    points : of all cells, cell by cell.
    error : the share of wrong rows by the chosen points together, over those that neither learned nor chose the metric.
    cells, rows : how many there are.
    error_rows : how many rows the error is of.
    seconds : wall clock, by phase.
    metric : how it was chosen (`runs.measuring.Measured.told`), None where none was asked for.
    labels : ascending.
    recalls : with `--score tpr-tnr` the share of right rows of each label, over the same rows as `error`; else None.
    """

    names: tuple[str, ...]
    points: list[Point]
    error: float
    cells: int
    rows: int
    error_rows: int
    seconds: dict[str, float]
    metric: dict[str, Any] | None = None
    labels: Sequence[float] = ()
    recalls: list[float | None] | None = None


def cross_validate(
    data: Dataset,
    config: TrainingConfig,
    *,
    jobs: int = 1,
    memory: int | None = None,
    partition_file: str | None = None,
    given: Given | None = None,
    observer: Observer | None = None,
    pool: PoolFactory = LocalPool,
) -> Validation:
    """The selection of a training run alone, with its whole grid; parameters and errors are those of `training.train`.

    The data are consumed.
    """
    observer = observer or Silent()
    clock = Clock(observer)
    with clock("partition"), Threads(jobs) as threads:
        weighing.check(data, observer)
        divided = divide(data, config, partition_file, threads, Budget.of(memory, size_of(data.X)), clock, given)
        tell_off_centre(observer, divided.off_centre)
        tell_copies(observer, divided.copies, len(data.y))
        # the table is of the whole grid, whatever search a training would use
        config = replace(config.for_classes(divided.labels, divided.class_rows), grid="full")
    data.X = data.y = data.weight = None  # type: ignore[assignment]
    with clock("select"):
        cells = RunCells(divided, config, jobs, memory, observer, pool, fit=False)
        ordered = _results(cells, observer)
    points = [point for result in ordered for point in _points(result, int(divided.sizes[result.index]))]
    error = cross_validated_error(reports := [r.report for r in ordered])
    assert error is not None
    about = (len(ordered), sum(divided.class_rows), _error_rows(divided))
    scored = (divided.labels.tolist(), cross_validated_recalls(reports))
    return Validation(ordered[0].names, points, error, *about, clock.seconds, divided.measured.told, *scored)


def _error_rows(divided: Divided) -> int:
    if divided.fresh is None:
        return sum(divided.class_rows)
    every = float(divided.fresh.array @ divided.count.array)
    return round(every / len(divided.partition.cells_by_repeat))


def _results(cells: RunCells, observer: Observer) -> list[CellResult]:
    """Of all cells, in their order."""
    results: dict[int, CellResult] = {}
    work = cells.work()
    observer.cells(len(cells.divided.sizes), 0)

    def told(cell: int, scores: Scores) -> None:
        work.scored(cell, scores.best.setting)
        observer.work(work.share, work.settings)

    with closing(cells.results(told=told)) as finished:
        for result in finished:
            results[result.index] = result
            work.finished(result.index)
            observer.cell_done(sum(result.report.wrong), sum(result.report.weight))
            observer.work(work.share, work.settings)
    return [results[i] for i in sorted(results)]


class MeanGrid(NamedTuple):
    """The grid's table over all cells, weighted by their rows.

    Attributes
    ----------
    settings, costs, loss : (settings, names), (costs,) and (settings, costs) float64.
    best : indices of the setting and the cost of the best point: with one cell the one that it chose.
    shared : whether all cells have the same grid, so that its points are ones that were scored.
    """

    settings: NDArray[np.float64]
    costs: NDArray[np.float64]
    loss: NDArray[np.float64]
    best: tuple[int, int]
    shared: bool


def mean_grid(points: list[Point]) -> MeanGrid:
    """The table of all cells together.

    Cells have grids of their own; points are averaged by their place in the grid, and an axis shows the mean
    (geometric) of the values at that place. Of equal losses the smaller cost, then the earlier setting is the best.
    """
    tables: dict[int, list[Point]] = {}
    for point in points:
        tables.setdefault(point.cell, []).append(point)
    first = next(iter(tables.values()))
    n_settings = len({p.setting for p in first})
    weights = np.asarray([table[0].rows for table in tables.values()], dtype=float)
    columns = {
        name: np.asarray([[getattr(p, name) for p in table] for table in tables.values()])
        for name in ("setting", "cost", "loss")
    }
    settings = _geometric_mean(columns["setting"], weights)
    costs = _geometric_mean(columns["cost"], weights).reshape(n_settings, -1)[0]
    loss = np.average(columns["loss"], axis=0, weights=weights).reshape(n_settings, -1)
    place = int(loss.T.argmin())  # costs first
    best = (place % n_settings, place // n_settings)
    if len(tables) == 1:  # it broke ties by the hinge loss, too
        best = divmod(next(i for i, point in enumerate(first) if point.best), len(costs))
    shared = _equal(columns["setting"]) and _equal(columns["cost"])
    return MeanGrid(settings[:: loss.shape[1]], costs, loss, best, shared)


def _geometric_mean(values: NDArray[np.float64], weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """Over the first axis; the value itself where all are equal."""
    if _equal(values):
        return np.asarray(values[0])
    return np.asarray(np.exp(np.average(np.log(values), axis=0, weights=weights)))


def _equal(values: NDArray[np.float64]) -> bool:
    """Whether nothing changes along the first axis; nan is equal to nan."""
    return np.array_equal(values, np.broadcast_to(values[0], values.shape), equal_nan=True)


def _points(result: CellResult, rows: int) -> Iterator[Point]:
    for i, values in enumerate(result.settings.tolist()):
        setting = tuple(values)
        for c, cost in enumerate(result.costs):
            best = (i, c) == tuple(result.best)
            yield Point(result.index, rows, setting, float(cost), float(result.loss[i, c]), best)
