"""The table of a cross-validated grid."""

from __future__ import annotations

import csv
import sys
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from localsvm.cli.reporting import lines_text, seconds_text, spread, spread_text

if TYPE_CHECKING:
    from localsvm.dividing import TrainingConfig
    from localsvm.validation import Point, Validation

COLUMNS = ("cell", "rows", "gamma", "cost", "error", "best")


def print_points(points: list[Point]) -> None:
    """CSV on stdout; best is 1 or 0."""
    table = csv.writer(sys.stdout, lineterminator="\n")
    table.writerow(COLUMNS)
    for p in points:
        row = (p.cell, p.rows, repr(p.gamma), repr(p.cost), f"{p.error:.6g}", int(p.best))
        table.writerow(row)


def best_text(result: Validation) -> str:
    """The best point, or the range of the chosen ones where several cells chose."""
    chosen = [point for point in result.points if point.best]
    lines = [("error", f"{result.error:.2%} cross-validated, over {result.rows:,} rows")]
    if len(chosen) == 1:
        lines = [("best", f"-g {chosen[0].gamma:.6g} -C {chosen[0].cost:.6g}"), *lines]
    else:
        gammas, costs = spread(p.gamma for p in chosen), spread(p.cost for p in chosen)
        lines = [
            ("chosen", f"by each of {result.cells:,} cells"),
            ("gamma", spread_text(gammas)),
            ("C", spread_text(costs)),
            *lines,
        ]
    return lines_text([*lines, ("time", seconds_text(result.seconds))])


def validation_report(result: Validation, config: TrainingConfig) -> dict[str, Any]:
    """The JSON report."""
    values = {"config": config.as_dict(), "error": result.error, "cells": result.cells, "rows": result.rows}
    return {**values, "seconds": result.seconds, "points": [asdict(point) for point in result.points]}
