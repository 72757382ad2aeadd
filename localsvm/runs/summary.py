"""The closing report of a run."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from localsvm.partition import size_spread
from localsvm.runs.cells.work import CellReport, totals
from localsvm.targets.base import Observed, Target
from localsvm.targets.probabilities import Calibration


@dataclass
class Summary:
    """Report of what a run did.

    Attributes
    ----------
    rows, labels, class_rows : of the training data; class_rows for each label. Values have no labels, but
    values : the least and the largest one, their mean and deviation; None for classes.
    score : what `cv_error` and `guessing` are the means of, for values; None for classes.
    features, width : columns in which some row is not 0, and all columns up to the largest index.
    partition, cells, cell_rows : its name, how many cells, and how their sizes in rows are spread (see `size_spread`).
    points : of the grid of a cell.
    repeats : of the partition; the cells are those of all repeats.
    cv_error : cross-validated share of wrong rows, from 0 to 1, the mean over the repeats, or that of the mean of
        members; None where nothing was cross-validated.
    cv_recalls : with `--score tpr-tnr` the same of the right rows of each label; None for one without held-out rows.
    guessing : the error of always saying the largest class, from 0 to 1, or of values the loss of the mean, where it is
        of squares; None elsewhere, and for classes of weighted rows.
    progressive_error : the share of rows that were decided wrong before they were learned, in one pass over the rows
        with several costs, which has no folds; then cv_error is None, and cv_recalls are of these decisions. Else None.
    support_vectors, models, iterations, not_converged : sums over the cells; see FitReport.
    largest_gap : of all models, in the method's `gap_unit`.
    seconds : wall clock, by phase.
    coarse_cells : how many coarse cells there are, of all repeats; None where the rows were divided at once.
    metric : how it was chosen (`runs.preparation.measured.Measured.told`), None where none was asked for.
    calibration : what makes probabilities of decision values (`Calibration.describe`), None without probabilities.
    classes : what labels stand for, where they are only numbers of texts; see Dataset.
    detection : the front of several weights, and what was chosen of it (`Detected.describe`), None for other classes.
    copies : errors of the labels that copies of training rows get, and of the model on them (`runs.copies.CopyErrors`);
        None where the model answers for copies, too.
    nu : share of new rows that may be called novel, where all rows are of one kind; then `cv_error` is the share of
        made-up rows that are called normal. Else None.
    """

    rows: int
    features: int
    width: int
    labels: list[float]
    class_rows: list[int]
    partition: str
    cells: int
    cell_rows: dict[str, float]
    points: int
    support_vectors: int
    models: int
    iterations: int
    not_converged: int
    largest_gap: float
    seconds: dict[str, float]
    calibration: dict[str, Any] | None = None
    repeats: int = 1
    metric: dict[str, Any] | None = None
    cv_error: float | None = None
    cv_recalls: list[float | None] | None = None
    coarse_cells: int | None = None
    progressive_error: float | None = None
    classes: dict[str, Any] | None = None
    guessing: float | None = None
    values: dict[str, float] | None = None
    score: str | None = None
    detection: dict[str, Any] | None = None
    copies: dict[str, Any] | None = None
    nu: float | None = None


def cross_validated_error(reports: Sequence[CellReport], target: Target) -> float | None:
    """Held-out error over all cells, weighted as the training rows are; None where nothing was held out."""
    found = totals(reports)
    return None if found is None else target.error(*found)


def cross_validated_recalls(reports: Sequence[CellReport], target: Target) -> list[float | None] | None:
    """Share of right rows of each class, weighted as the training rows are; None for a class without any.

    The result is None where points are not scored class by class, or nothing was held out.
    """
    found = totals(reports)
    return None if found is None else target.recalls(*found)


def report_state(names: Sequence[str], reports: Sequence[CellReport]) -> tuple[str, dict[str, NDArray[Any]]]:
    """Entries of the cells' reports that the model keeps.

    Parameters
    ----------
    names : of the grid's parameters other than the cost.
    reports : of all cells.

    Returns
    -------
    The names of the chosen values as a JSON list, and the arrays "chosen", (cells, names) float64; and "support",
    (cells, classes) int64, support vectors of each class, where the method has them.
    """
    costs = len(reports[0].chosen) - len(names)
    arrays = {"chosen": np.asarray([r.chosen for r in reports], np.float64).reshape(len(reports), -1)}
    if reports[0].fit.support:
        arrays["support"] = np.asarray([r.fit.support for r in reports], np.int64)
    return json.dumps([*names, *["cost"] * costs]), arrays


def _error(reports: Sequence[CellReport], target: Target, progressive: bool) -> dict[str, Any]:
    return {"progressive_error" if progressive else "cv_error": cross_validated_error(reports, target)}


@dataclass(frozen=True)
class TrainingRows:
    """Rows, as a summary describes them.

    Attributes
    ----------
    observed, target : of their labels, and what these mean.
    features, width : columns that occur, and all columns.
    classes : what labels stand for, where they are only numbers of texts; see Dataset.
    guessing : the loss of the best constant answer; None where it is not known, as for classes of weighted rows.
    """

    observed: Observed
    target: Target
    features: int
    width: int
    classes: dict[str, Any] | None = None
    guessing: float | None = None


@dataclass(frozen=True)
class TrainedCells:
    """Cells, as a summary describes them.

    Attributes
    ----------
    partition : its name.
    sizes, reports : (cells,) int64 rows of each cell, and its report.
    repeats, by_coarse : of the partition; the cells of each coarse cell, None where there are none.
    """

    partition: str
    sizes: NDArray[np.int64]
    reports: Sequence[CellReport]
    repeats: int = 1
    by_coarse: Sequence[int] | None = None


def _of_rows(rows: TrainingRows) -> dict[str, Any]:
    """Fields of a summary about the rows."""
    return {
        "rows": rows.observed.rows,
        "features": rows.features,
        "width": rows.width,
        "labels": [float(v) for v in rows.observed.labels],
        "class_rows": list(rows.observed.class_rows),
        "values": None if rows.observed.values is None else rows.observed.values.as_dict(),
        "score": rows.target.score_of_values,
        "nu": rows.target.novel_share,
        "classes": rows.classes,
        "guessing": rows.guessing,
    }


def summarise(
    rows: TrainingRows, cells: TrainedCells, seconds: dict[str, float], *, calibration: Calibration | None = None,
    metric: dict[str, Any] | None = None, progressive: bool = False,
) -> Summary:  # fmt: skip
    """The closing report of a run.

    Parameters
    ----------
    seconds : wall clock, by phase.
    calibration, metric : of the model; how it was chosen; None where it has none.
    progressive : rows were decided, and then learned.
    """
    reports = cells.reports
    return Summary(
        **_of_rows(rows),
        partition=cells.partition,
        cells=len(cells.sizes),
        cell_rows=size_spread(cells.sizes),
        points=max(r.points for r in reports),
        **_error(reports, rows.target, progressive),
        cv_recalls=cross_validated_recalls(reports, rows.target),
        support_vectors=int(sum(r.fit.support_vectors for r in reports)),
        models=int(sum(r.fit.models for r in reports)),
        iterations=int(sum(r.fit.iterations for r in reports)),
        not_converged=int(sum(r.fit.not_converged for r in reports)),
        largest_gap=max(r.fit.largest_gap for r in reports),
        seconds=seconds,
        calibration=calibration.describe() if calibration else None,
        repeats=cells.repeats,
        metric=metric,
        coarse_cells=None if cells.by_coarse is None else len(cells.by_coarse),
    )
