"""The table and the report of a cross-validated grid."""

from __future__ import annotations

import csv
import math
import shlex
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from localsvm.cli import method_options
from localsvm.cli.metric_report import geometry_text, members_text
from localsvm.cli.reporting import NO_GROUPS, label_text, recalls_text, seconds_text, spread, spread_text, table_text
from localsvm.cli.value_lines import NAMES as VALUE_LOSSES
from localsvm.cli.value_lines import loss_text

if TYPE_CHECKING:
    from localsvm.runs.config import TrainingConfig
    from localsvm.runs.cross_validate import GridPoint, Validation

SHARES = {"error": "cross-validated error", "loss": "1 - TPR x TNR, cross-validated"}  # by their names in tables
LOSSES = dict(SHARES)
LOSSES |= {name: f"{text}, cross-validated" for name, text in {**VALUE_LOSSES, "rmse": "RMSE"}.items()}


def print_points(result: Validation) -> None:
    """Print the points as CSV on stdout, with their loss under its name; `best` is 1 or 0."""
    table = csv.writer(sys.stdout, lineterminator="\n")
    table.writerow(("cell", "rows", *result.names, "cost", result.compared, "best"))
    for p in result.points:
        row = (p.cell, p.rows, *map(repr, p.setting), _number(_cost(p)), f"{p.loss:.6g}", int(p.best))
        table.writerow(row)


def best_text(result: Validation, method: str, given: Sequence[str] = ()) -> str:
    """Table of the best point as options for lsvm-train; with several cells or levels, also of what these chose.

    given : words of the command line, which come before those of the point.

    Several cells have a best point together only if all have the same grid. Its loss is not printed where only some
    rows are new to the metric: the table is of all rows.
    """
    from localsvm.runs.cross_validate import mean_grid

    table = mean_grid(result.points)
    setting, cost = table.settings[table.best[0]].tolist(), float(table.costs[table.best[1]])
    best = [("best", shlex.join([*given, *point_options(method, result.names, setting, cost)]))]
    metric = [("geometry", geometry_text(result.metric)), *members_text(result.metric)] if result.metric else []
    fresh = result.error_rows == result.rows
    lines = [("error", _error_text(result))]
    if result.recalls:
        lines.append(("score", recalls_text(result.recalls, result.labels)))
    levels = sorted({level for point in result.points for level in point.levels})
    if result.cells > 1 or levels:
        lines = [("chosen", _choosers(result, levels)), *_chosen(result, method, levels), *lines]
        where = "with this point " + ("in all cells" if result.cells > 1 else "for all levels")
        loss = float(table.loss[table.best])
        text = f"{result.compared} {loss:.2%}" if result.compared in SHARES else loss_text(result.compared, loss)
        told = [("", f"{text} {where}" if fresh else where)] if fresh or levels else []
        best = [*best, *told] if table.shared else []
        return table_text([*metric, *lines, *best, ("time", seconds_text(result.seconds))])
    return table_text([*metric, *best, *lines, ("time", seconds_text(result.seconds))])


def _error_text(result: Validation) -> str:
    """Text on the error of the chosen points, and the rows that it is of."""
    if result.error is None:
        return f"unknown, {NO_GROUPS}"
    which = "that are new to the metric" if result.metric else "of cells with several groups"
    some = "" if result.error_rows == result.rows else f" {which}"
    error = f"{result.error:.2%}" if result.score is None else loss_text(result.score, result.error, result.guessing)
    return f"{error} cross-validated, over {result.error_rows:,} rows{some}"


def point_options(method: str, names: Sequence[str], setting: Sequence[float], cost: float) -> list[str]:
    """A point as options of its method, with values that are read back as the same numbers."""
    words = []
    for name, value in zip((*names, "cost"), (*setting, cost), strict=True):
        option = method_options.parameter(method, name)
        if option is not None and not math.isnan(value):
            words += [option.metadata["flags"][0], label_text(value)]
    return words


def _choosers(result: Validation, levels: Sequence[float]) -> str:
    """Text on who chose points."""
    each = [f"each of {len(levels)} levels"] if levels else []
    return "by " + " in ".join([*each, *([f"each of {result.cells:,} cells"] if result.cells > 1 else [])])


def _chosen(result: Validation, method: str, levels: Sequence[float]) -> list[tuple[str, str]]:
    """The points that were chosen, as lines of a table: spreads where there are several cells, and each level's."""
    if not levels:
        return _spreads(result, [point for point in result.points if point.best])
    lines = []
    for level in levels:
        points = [point for point in result.points if level in point.levels]
        if result.cells == 1:
            text = shlex.join(point_options(method, result.names, points[0].setting, points[0].cost))
        else:
            text = "; ".join(" ".join(pair) for pair in _spreads(result, points))
        lines.append((f"level {level:g}", text))
    return lines


def _spreads(result: Validation, chosen: Sequence[GridPoint]) -> list[tuple[str, str]]:
    """Spreads of the values of points, as lines of a table."""
    columns = [(name, spread(p.setting[i] for p in chosen)) for i, name in enumerate(result.names)]
    if not math.isnan(chosen[0].cost):
        columns += [("C", spread(p.cost for p in chosen))]
    return [(name, spread_text(values)) for name, values in columns]


def validation_report(result: Validation, config: TrainingConfig) -> dict[str, Any]:
    """The report for --json."""
    values: dict[str, Any] = {
        "config": config.as_dict(),
        "error": result.error,
        "cells": result.cells,
        "rows": result.rows,
    }
    values |= {"error_rows": result.error_rows, "recalls": result.recalls, "metric": result.metric}
    return {**values, "seconds": result.seconds, "points": [_point(p, result) for p in result.points]}


def _cost(point: GridPoint) -> float | None:
    """The cost C of a point; None if the method has none."""
    return None if math.isnan(point.cost) else point.cost


def _number(value: float | None) -> str:
    return "" if value is None else repr(value)


def _point(point: GridPoint, result: Validation) -> dict[str, Any]:
    setting = dict(zip(result.names, point.setting, strict=True))
    return {
        "cell": point.cell,
        "rows": point.rows,
        **setting,
        "cost": _cost(point),
        result.compared: point.loss,
        "best": point.best,
        **({"levels": point.levels} if point.levels else {}),
    }
