"""Cross-validation without a model: the table of a run's grids."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from localsvm.data.blocks.dataset import Dataset
from localsvm.engines.base import Engine
from localsvm.parallel.local import LocalPool
from localsvm.runs.cells.averaged import averaged
from localsvm.runs.cells.records import DIVISION, Record, unpack
from localsvm.runs.cells.schedule import CellTrainer, PoolFactory, Resources
from localsvm.runs.cells.work import CellResult, wrong_rows
from localsvm.runs.config import TrainingConfig
from localsvm.runs.preparation.engine import engine_of
from localsvm.runs.preparation.given import Given
from localsvm.runs.preparation.measured import Measured
from localsvm.runs.preparation.prepare import Asked, PreparedRun, prepare, tell_copies, tell_off_centre
from localsvm.runs.progress import Clock, Observer, Silent, Work
from localsvm.runs.summary import cross_validated_error, cross_validated_recalls
from localsvm.targets.base import Target
from localsvm.targets.classification import ACCURACY, TPR_TNR, Classification
from localsvm.targets.regression import Regression
from localsvm.threads import Threads


@dataclass(frozen=True)
class GridPoint:
    """One point of the grid of one cell.

    Attributes
    ----------
    cell, rows : the cell's number and size.
    setting : the values of the parameters other than the cost.
    cost : C on all rows of the cell; nan for a method without costs.
    loss : what selection compares; see `Validation.compared`.
    best : chosen in that cell.
    levels : of values with several levels, each of which chooses a point, those that chose this one; else empty.
    """

    cell: int
    rows: int
    setting: tuple[float, ...]
    cost: float
    loss: float
    best: bool
    levels: tuple[float, ...] = ()


@dataclass
class Validation:
    """The table of a run's grids.

    Attributes
    ----------
    names : of the parameters whose values are the points' settings.
    points : of all cells, cell by cell.
    error : the share of wrong rows by the chosen points together, over those that neither learned nor chose the metric;
        None where each cell has the rows of one group alone, which is never held out.
    cells, rows : how many there are.
    error_rows : how many rows the error is of.
    seconds : wall clock, by phase.
    metric : how it was chosen (`runs.preparation.measured.Measured.told`), None where none was asked for.
    labels : ascending.
    recalls : with `--score tpr-tnr` the share of right rows of each label, over the same rows as `error`; else None.
    score, guessing : of values, what `error` is the mean of, and its value for the best constant; None for classes.
    compared : name of the points' losses. Of classes: "error", the held-out share of wrong rows, weighted; "loss", 1 -
        TPR x TNR; or "mse". Of values that of their score.
    """

    names: tuple[str, ...]
    points: list[GridPoint]
    error: float | None
    cells: int
    rows: int
    error_rows: int
    seconds: dict[str, float]
    metric: dict[str, Any] | None = None
    labels: Sequence[float] = ()
    recalls: list[float | None] | None = None
    score: str | None = None
    guessing: float | None = None
    compared: str = "error"


def cross_validate(
    source: Dataset | Engine, config: TrainingConfig, *, jobs: int = 1, memory: int | None = None,
    partition_file: str | None = None, given: Given | None = None, observer: Observer | None = None,
    pool: PoolFactory = LocalPool,
) -> Validation:  # fmt: skip
    """Select as a training run does, over the whole grid; parameters and errors are those of `runs.train.train`."""
    observer = observer or Silent()
    clock = Clock(observer)
    with Threads(jobs) as threads:
        with clock("partition"):
            engine = engine_of(source, config, threads, memory)
            prepared = prepare(
                engine, Asked(replace(config, copies="none"), partition_file, given), threads, clock, observer
            )
            tell_off_centre(observer, prepared.off_centre)
        # the table is of the whole grid, whatever search a training would use
        prepared = replace(prepared, config=replace(prepared.config, grid="full"))
        with clock("select"):
            validated = _validated(prepared, Resources(jobs, memory, observer, pool, threads=threads))
    repeats = len(prepared.cells.by_repeat)
    tell_copies(observer, validated.copies // repeats, prepared.head.rows)
    levels = _levels(prepared.target)
    points = [p for i, result in enumerate(validated.results) for p in _points(i, result, validated.sizes[i], levels)]
    error, score, measured = _scored(prepared, validated)
    return Validation(
        names=validated.results[0].names,
        points=points,
        error=error,
        cells=len(validated.sizes),
        rows=prepared.observed.rows,
        error_rows=round(validated.fresh / repeats),
        seconds=clock.seconds,
        metric=measured.told,
        labels=prepared.observed.labels.tolist(),
        recalls=score,
        score=prepared.target.score_of_values,
        guessing=None if prepared.target.score_of_values is None else prepared.target.guessing(prepared.observed),
        compared=_compared(prepared.target),
    )


def _compared(target: Target) -> str:
    """Name of the loss of points; see `Validation`."""
    if isinstance(target, Classification):
        return {ACCURACY: "error", TPR_TNR: "loss"}.get(target.scoring, target.scoring)
    score = target.score_of_values
    return "error" if score is None else "mse" if score == "r2" else score


def _scored(
    prepared: PreparedRun, validated: _Validated
) -> tuple[float | None, list[float | None] | None, Measured]:  # fmt: skip
    """Error, recalls, and what is known of the metric: of repeats in the mean, or of the mean of members."""
    if prepared.cells.members.several:
        names = prepared.cells.names_by_repeat(list(validated.held))
        mean = averaged(prepared.config, prepared.target, validated.held, names, prepared.head.rows)
        return mean.error, mean.recalls, prepared.measured.weighed(mean.weights)
    reports = [result.report for result in validated.results]
    return (
        cross_validated_error(reports, prepared.target),
        cross_validated_recalls(reports, prepared.target),
        prepared.measured,
    )


@dataclass(frozen=True)
class _Validated:
    """All cells of a run: their results and sizes; how many rows are copies of others, and how many are fresh.

    held : records of the cells with their held-out values, by their names, where members are averaged.
    """

    results: list[CellResult]
    sizes: list[int]
    copies: int
    fresh: float
    held: dict[str, Record]


def _validated(prepared: PreparedRun, resources: Resources) -> _Validated:
    cells, observer = prepared.cells, resources.observer
    trainer = CellTrainer(prepared.config, cells, prepared.measured, prepared.observed, fit=False)
    resources = replace(resources, work=(work := Work(cells.count)))
    if cells.route is not None:
        observer.cells(cells.count, 0, f"{cells.kind}s")
    results: dict[tuple[int, int], CellResult] = {}
    held_records: dict[str, Record] = {}
    divisions: dict[int, Record] = {}
    with closing(prepared.engine.work(cells, trainer, range(cells.count), resources, {})) as events:
        for number, name, record in events:
            work.record(number, name)
            if name == DIVISION:
                divisions[number] = record
                if cells.route is not None:
                    reports = [result.report for (coarse, _), result in results.items() if coarse == number]
                    observer.cell_done(*wrong_rows(prepared.target, reports))
            elif "/" not in name:
                results[number, int(name)] = result = unpack(record)
                if trainer.holds:
                    held_records[f"{number}/{name}"] = record
                if cells.route is None:
                    observer.cell_done(*wrong_rows(prepared.target, [result.report]))
            observer.work(work.share, work.settings)
    records = [divisions[number] for number in range(cells.count)]
    return _Validated(
        [results[key] for key in sorted(results)],
        [int(size) for record in records for size in record["sizes"]],
        sum(int(record["copies"]) for record in records),
        sum(float(record["fresh"]) for record in records),
        held_records,
    )


class MeanGrid(NamedTuple):
    """The grid's table over all cells, weighted by their rows.

    Attributes
    ----------
    settings, costs, loss : (settings, names), (costs,) and (settings, costs) float64.
    best : indices of the setting and the cost of the best point: with one cell the one that it chose, unless each level
        has one of its own.
    shared : whether all cells have the same grid, so that its points are ones that were scored.
    levels : of one cell, by the indices of points the levels that chose them, where there are several.
    """

    settings: NDArray[np.float64]
    costs: NDArray[np.float64]
    loss: NDArray[np.float64]
    best: tuple[int, int]
    shared: bool
    levels: Mapping[tuple[int, int], tuple[float, ...]] = MappingProxyType({})


def mean_grid(points: list[GridPoint]) -> MeanGrid:
    """The table of all cells together.

    Cells have grids of their own; points are averaged by their place in the grid, and an axis shows the mean
    (geometric) of the values at that place. Of equal losses the smaller cost, then the earlier setting is the best.
    """
    tables: dict[int, list[GridPoint]] = {}
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
    chosen = [i for i, point in enumerate(first) if point.best]
    if len(tables) == 1 and len(chosen) == 1:  # it broke ties by the hinge loss, too
        best = divmod(chosen[0], len(costs))
    places = [divmod(i, len(costs)) for i in chosen] if len(tables) == 1 else []
    levels = {place: first[i].levels for place, i in zip(places, chosen, strict=False) if first[i].levels}
    shared = _equal(columns["setting"]) and _equal(columns["cost"])
    return MeanGrid(settings[:: loss.shape[1]], costs, loss, best, shared, levels)


def _geometric_mean(values: NDArray[np.float64], weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """Weighted geometric mean over the first axis; the value itself where all are equal."""
    if _equal(values):
        return np.asarray(values[0])
    return np.asarray(np.exp(np.average(np.log(values), axis=0, weights=weights)))


def _equal(values: NDArray[np.float64]) -> bool:
    """True where nothing changes along the first axis; nan is equal to nan."""
    return np.array_equal(values, np.broadcast_to(values[0], values.shape), equal_nan=True)


def _levels(target: Target) -> tuple[float, ...]:
    """The levels, of which each chooses a point; none where one is chosen."""
    losses = target.losses if isinstance(target, Regression) else ()
    return tuple(loss.level for loss in losses) if len(losses) > 1 else ()


def _points(cell: int, result: CellResult, rows: int, levels: tuple[float, ...]) -> Iterator[GridPoint]:
    best = list(map(tuple, np.atleast_2d(result.best).tolist()))
    for i, values in enumerate(result.settings.tolist()):
        setting = tuple(values)
        for c, cost in enumerate(result.costs):
            chose = tuple(level for level, point in zip(levels, best, strict=bool(levels)) if point == (i, c))
            yield GridPoint(cell, rows, setting, float(cost), float(result.loss[i, c]), (i, c) in best, chose)
