"""The table and the report of a cross-validated grid."""

from __future__ import annotations

import csv
import math
import sys
from typing import TYPE_CHECKING, Any

from localsvm.cli import method_options
from localsvm.cli.reporting import seconds_text, spread, spread_text, table_text

if TYPE_CHECKING:
    from localsvm.runs.config import TrainingConfig
    from localsvm.runs.validation import Point, Validation


def print_points(result: Validation) -> None:
    """Print the points as CSV on stdout; the column `best` is 1 or 0."""
    table = csv.writer(sys.stdout, lineterminator="\n")
    table.writerow(("cell", "rows", *result.names, "cost", "error", "best"))
    for p in result.points:
        row = (p.cell, p.rows, *map(repr, p.setting), _number(_cost(p)), f"{p.error:.6g}", int(p.best))
        table.writerow(row)


def best_text(result: Validation, method: str) -> str:
    """The best point as options of the method; if several cells chose, the range of what they chose."""
    chosen = [point for point in result.points if point.best]
    lines = [("error", f"{result.error:.2%} cross-validated, over {result.rows:,} rows")]
    if len(chosen) == 1:
        names, values = (*result.names, "cost"), (*chosen[0].setting, chosen[0].cost)
        known = [(name, value) for name, value in zip(names, values, strict=True) if not math.isnan(value)]
        point = " ".join(f"{method_options.flag(method, name)} {value:.6g}" for name, value in known)
        lines = [("best", point), *lines]
    else:
        columns = [(name, spread(p.setting[i] for p in chosen)) for i, name in enumerate(result.names)]
        if not math.isnan(chosen[0].cost):
            columns += [("C", spread(p.cost for p in chosen))]
        lines = [
            ("chosen", f"by each of {result.cells:,} cells"),
            *((name, spread_text(values)) for name, values in columns),
            *lines,
        ]
    return table_text([*lines, ("time", seconds_text(result.seconds))])


def validation_report(result: Validation, config: TrainingConfig) -> dict[str, Any]:
    """The report for --json."""
    values = {"config": config.as_dict(), "error": result.error, "cells": result.cells, "rows": result.rows}
    return {**values, "seconds": result.seconds, "points": [_point(p, result.names) for p in result.points]}


def _cost(point: Point) -> float | None:
    """The cost C of a point; None if the method has none."""
    return None if math.isnan(point.cost) else point.cost


def _number(value: float | None) -> str:
    return "" if value is None else repr(value)


def _point(point: Point, names: tuple[str, ...]) -> dict[str, Any]:
    setting = dict(zip(names, point.setting, strict=True))
    return {
        "cell": point.cell,
        "rows": point.rows,
        **setting,
        "cost": _cost(point),
        "error": point.error,
        "best": point.best,
    }
