"""Text of results: labels, tables, and JSON reports."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from localsvm import __version__
from localsvm.cli.front import front_lines
from localsvm.cli.metric_report import geometry_text, members_text
from localsvm.cli.value_lines import loss_text
from localsvm.naming import on_command_line
from localsvm.targets.loss_names import SQUARED_ERROR

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from localsvm.methods.base import Method
    from localsvm.runs.summary import Summary

SCHEMA_VERSION = 1  # of all JSON reports: fields may be added, but existing ones keep their meaning
SHOWN_LABELS = 8
NO_GROUPS = "as each cell has the rows of one group alone"
PHASES = ("start", "read", "metric", "partition", "select", "train", "calibrate", "write")


Name = Callable[[float], str]  # gives the text of a label


def label_text(label: float) -> str:
    """A label as data files have it: whole numbers without a point, others with as few digits as read back exactly."""
    from localsvm.data.writers import libsvm as writing

    return str(writing.label_text(float(label)))


def names_of(labels: Sequence[float], classes: Mapping[str, Any] | None) -> Name:
    """Function that gives the text of a label, where numbers may stand for texts; see `Dataset.classes`."""
    values = (classes or {}).get("values")
    if values is None:
        return label_text
    texts = dict(zip(labels, map(str, values), strict=True))
    return lambda label: texts.get(label, "another label")


def problem_text(problem: Sequence[float | None], name: Name = label_text) -> str:
    """A binary problem as NEGATIVE/POSITIVE, with `rest` for all other classes."""
    return "/".join("rest" if label is None else name(label) for label in problem)


def accuracy_text(right: int, total: int) -> str:
    """The accuracy, in the words of LIBSVM's svm-predict."""
    return f"Accuracy = {100 * right / max(1, total):g}% ({right}/{total})"


def recalls_text(recalls: Sequence[float | None], labels: Sequence[float], name: Name = label_text) -> str:
    """The product of the recalls of all classes that have rows: of two classes, TPR x TNR of the larger label."""
    known = [recall for recall in recalls if recall is not None]
    product = f"{math.prod(known):.4f}"
    if len(labels) == 2:
        tnr, tpr = ("no rows" if recall is None else f"{recall:.4f}" for recall in recalls)
        return f"TPR x TNR = {product} (TPR {tpr}, TNR {tnr})"
    low = labels[recalls.index(smallest := min(known))]
    return f"Product of {len(known)} recalls = {product} (smallest {smallest:.4f}, of label {name(low)})"


def print_json(command: str, values: dict[str, Any]) -> None:
    """Print a report on stdout."""
    report = {"schema_version": SCHEMA_VERSION, "command": command, "localsvm_version": __version__, **values}
    click.echo(json.dumps(report, indent=2, allow_nan=False))


def table_text(items: Iterable[tuple[str, str]]) -> str:
    """A table of names and values, aligned."""
    rows = list(items)
    width = max(len(name) for name, _ in rows) + 3
    return "\n".join(f"{name:<{width}}{text}" for name, text in rows)


def spread(values: Iterable[float]) -> dict[str, float] | None:
    """The smallest, the median and the largest of some values; None if there are none."""
    import statistics

    items = list(values)
    return {"smallest": min(items), "median": statistics.median(items), "largest": max(items)} if items else None


def spread_text(values: dict[str, float] | None) -> str:
    """The result of `spread` as text."""
    if values is None:
        return "none"
    if values["smallest"] == values["largest"]:
        return f"{values['smallest']:.4g}"
    return f"{values['smallest']:.4g} to {values['largest']:.4g}, median {values['median']:.4g}"


def repeated_text(partition: str, repeats: int) -> str:
    """The name of a partition, and how often the rows are divided by it."""
    return partition if repeats == 1 else f"{partition}, {repeats} repeats"


def _partition_text(summary: Summary) -> str:
    within = "" if summary.coarse_cells is None else f", in {summary.coarse_cells:,} coarse ones"
    return f"{repeated_text(summary.partition, summary.repeats)}, {sizes_text(summary.cell_rows)}{within}"


def sizes_text(values: dict[str, float]) -> str:
    """The number of cells and their sizes, from partition.size_spread."""
    if values["cells"] == 1:
        return f"1 cell of {values['largest']:,} rows"
    if values["smallest"] == values["largest"]:
        return f"{values['cells']:,} cells of {values['largest']:,} rows each"
    sizes = f"{values['smallest']:,} to {values['largest']:,} rows, median {values['median']:,.0f}"
    return f"{values['cells']:,} cells of {sizes}"


def seconds_text(seconds: dict[str, float]) -> str:
    """The seconds of each phase, and in total."""
    parts = [f"{name} {seconds[name]:.1f} s" for name in PHASES if name in seconds]
    return f"{', '.join(parts)}; {sum(seconds.values()):.1f} s in all"


def labels_text(labels: Sequence[float], rows: Sequence[int] | None = None, name: Name = label_text) -> str:
    """The number of classes, the first labels, and their numbers of rows if these are given."""
    names = [name(label) for label in labels[:SHOWN_LABELS]]
    if rows is not None:
        names = [f"{name} ({count:,})" for name, count in zip(names, rows, strict=False)]
    more = ", ..." if len(labels) > SHOWN_LABELS else ""
    return f"{len(labels)} classes: {', '.join(names)}{more}"


def values_text(values: Mapping[str, float]) -> str:
    """Text on where values lie."""
    low, high, mean, deviation = (f"{values[name]:.5g}" for name in ("low", "high", "mean", "deviation"))
    text = f"values from {low} to {high} (mean {mean}, deviation {deviation}"
    if "usual_mean" in values:
        text += f"; without far ones mean {values['usual_mean']:.5g}, deviation {values['usual_deviation']:.5g}"
    return f"{text}), their roots learned" if "root_mean" in values else f"{text})"


def features_text(features: int, width: int | None) -> str:
    """The number of features that occur, and the number of all columns where that is larger."""
    return f"{features:,}" if width in (None, features) else f"{features:,} of {width:,}"


def summary_text(summary: Summary, method: Method, model_file: str) -> str:
    """The summary at the end of a training run."""
    features = f"{features_text(summary.features, summary.width)} feature{'' if summary.width == 1 else 's'}"
    if summary.nu is not None:
        labels = f"of one kind, of which up to {summary.nu:.3g} may be novel"
    elif summary.values is None:
        labels = labels_text(summary.labels, summary.class_rows, names_of(summary.labels, summary.classes))
    else:
        labels = values_text(summary.values)
    data = f"{summary.rows:,} rows, {features}, {labels}"
    with_support = f" with {summary.support_vectors:,} support vectors" if summary.support_vectors else ""
    of_squares = " of squared errors" if getattr(method, "loss", None) == SQUARED_ERROR else ""
    converged = _convergence(summary, method)
    return table_text(
        [
            ("data", data),
            *([("geometry", geometry_text(summary.metric))] if summary.metric else []),
            *members_text(summary.metric),
            ("partition", _partition_text(summary)),
            ("selection", _selection(summary)),
            ("models", f"{summary.models:,}{of_squares}{with_support}, {converged}"),
            *([("probabilities", calibration_text(summary.calibration))] if summary.calibration else []),
            *([("copies", copies_text(summary.copies))] if summary.copies else []),
            *front_lines(summary.detection),
            ("time", seconds_text(summary.seconds)),
            ("model", model_file),
        ]
    )


def calibration_text(calibration: dict[str, Any]) -> str:
    """Text on how probabilities are made of decision values.

    calibration : the result of `Calibration.describe`.
    """
    sigmoids = f"{calibration['sigmoids']:,} sigmoids" if calibration["sigmoids"] > 1 else "a sigmoid"
    curve = f", a curve of {calibration['knots']:,} knots" if calibration["knots"] else ""
    return f"by {sigmoids}{curve}"


def copies_text(copies: dict[str, Any]) -> str:
    """Text on the labels that copies of training rows get.

    copies : the result of `CopyErrors.describe`.
    """
    wrong, missed = copies["error"], copies["model_error"]
    return (
        f"get the label of their training row: wrong on {wrong:.2%} of {copies['rows']:,} rows (models: {missed:.2%})"
    )


def _selection(summary: Summary) -> str:
    scored = f"; {recalls_text(summary.cv_recalls, summary.labels)}" if summary.cv_recalls else ""
    if summary.progressive_error is not None:
        return f"progressive error {summary.progressive_error:.2%}{scored}"
    if summary.cv_error is None:
        return "none (one point)" if summary.points == 1 else f"by folds at random, {NO_GROUPS}"
    asked = (
        ("probabilities", summary.calibration), ("front", summary.detection),
        ("weights of the members", members_text(summary.metric)), ("intervals", summary.score),
        ("labels of copies", True),
    )  # fmt: skip
    what = next(name for name, there in asked if there)
    why = f"one point, cross-validated for the {what}: " if summary.points == 1 else "cross-validated "
    apart = summary.repeats > 1 and not members_text(summary.metric)
    mean = " of one repeat, in the mean" if apart else ""
    if summary.nu is not None:
        return f"cross-validated: {summary.cv_error:.2%} of made-up rows are not novel{mean}"
    if summary.score is not None:
        return f"{why}{loss_text(summary.score, summary.cv_error, summary.guessing)}{mean}"
    guessing = "" if summary.guessing is None else f" (guessing: {summary.guessing:.2%})"
    return f"{why}error {summary.cv_error:.2%}{mean}{guessing}{scored}"


def _convergence(summary: Summary, method: Method) -> str:
    if not summary.not_converged:
        return "all converged"
    return (
        f"{summary.not_converged:,} NOT CONVERGED (largest gap {summary.largest_gap:.2g} {method.gap_unit}): "
        f"{on_command_line(method.remedy)}"
    )


def sizes_table(sizes: NDArray[np.int64]) -> dict[str, float]:
    """The number of rows, and the statistics of the cell sizes."""
    from localsvm.partition import size_spread

    return {"rows": int(sizes.sum()), **size_spread(sizes)}
