"""Predicted values as lines of text or of a table, and texts on how good they are."""

from __future__ import annotations

import csv
import math
from typing import TYPE_CHECKING, Any, TextIO

if TYPE_CHECKING:
    from localsvm.runs.predict import Predicted
    from localsvm.runs.prediction.value_scores import ValueScore
    from localsvm.targets.regression import Regression

ENDS = ("lower", "upper")
NAMES = {"mse": "mean squared error", "r2": "mean squared error", "mae": "mean absolute error"}
NAMES |= {"pinball": "mean pinball loss", "expectile": "mean expectile loss"}


class ValueLines:
    """Writer of predicted values, one row a line: with as many digits as are needed to read back the same float64.

    Several levels are columns, below a line with the levels.
    """

    def __init__(self, out: TextIO, target: Regression, coverage: bool = False, header: bool = True) -> None:
        """Write a line with the names of the columns where there are several, if `header` is True.

        coverage : whether there are the ends of an interval, too.
        """
        self._out = out
        levels = levels_of(target)
        if header and (coverage or len(levels) > 1):
            out.write(" ".join([*(levels if len(levels) > 1 else ["value"]), *(ENDS if coverage else [])]) + "\n")

    def write(self, block: Predicted) -> None:
        """Write the predictions of a block of rows."""
        rows = _columns(block).tolist()
        self._out.write("".join(" ".join(map(repr, row)) + "\n" for row in rows))


class TableValueLines:
    """Writer of predicted values as a table: the columns that name rows, and a column for each level.

    ids, label : names of these columns.
    """

    def __init__(
        self, out: TextIO, target: Regression, ids: list[str], label: str, delimiter: str, coverage: bool = False,
        header: bool = True,
    ) -> None:  # fmt: skip
        self._writer = csv.writer(out, delimiter=delimiter, lineterminator="\n")
        levels = levels_of(target)
        if header:
            names = [label] if len(levels) == 1 else [f"{label} {level}" for level in levels]
            self._writer.writerow([*ids, *names, *([f"{label} {end}" for end in ENDS] if coverage else [])])

    def write(self, block: Predicted) -> None:
        """Write the predictions of a block of rows."""
        ids = [()] * len(block.y) if block.ids is None else block.ids
        rows = _columns(block).tolist()
        self._writer.writerows([*row, *values] for row, values in zip(ids, rows, strict=True))


def _columns(block: Predicted) -> Any:
    """Answers and ends of intervals (n, columns)."""
    answers = block.labels.reshape(len(block.y), -1)
    if block.intervals is None:
        return answers
    import numpy as np  # takes long to import

    return np.hstack([answers, block.intervals])


def levels_of(target: Regression) -> list[str]:
    """The levels of the answers, as text."""
    return [f"{loss.level:g}" for loss in target.losses[: target.answers]]


def value_score_text(score: ValueScore) -> str:
    """Text of the scores, in the words of LIBSVM's svm-predict; "" where no row has a value."""
    if not score.total:
        return ""
    report, levels = score.as_dict(), levels_of(score.target)
    covered = ""
    if score.intervals:
        covered = f"\n{covered_text(score.covered, score.intervals)}, mean width {report['mean_width']:g}"
    if score.target.score_of_values in ("pinball", "expectile"):
        name = NAMES[report["score"]].capitalize()
        return (
            "\n".join(
                f"{name} at {level} = {loss:g} ({below:.2%} of {score.total:,} values are not above)"
                for level, loss, below in zip(levels, report["loss"], report["below"], strict=True)
            )
            + covered
        )
    mean = "" if report["score"] != "mae" else f"\nMean absolute error = {report['loss'][0]:g} (regression)"
    means = [report[name][0] for name in ("mean_squared_error", "squared_correlation")]  # None where they overflow
    squared, correlation = (math.nan if mean is None else mean for mean in means)
    return (
        f"Mean squared error = {squared:g} (regression)\n"
        f"Squared correlation coefficient = {correlation:g} (regression)"
        f"{mean}{covered}"
    )


def covered_text(covered: int, rows: int) -> str:
    """Text of how many rows' truths are in their intervals or sets."""
    return f"Coverage = {covered / rows:.2%} ({covered:,}/{rows:,})"


def loss_text(score: str, value: float, guessing: float | None = None) -> str:
    """Text of a mean loss of values: of squares its root, and R^2 where the variance is known. score : its name."""
    if score not in ("mse", "r2"):
        return f"{NAMES[score]} {value:.5g}"
    explained = "" if guessing is None or not guessing else f", R^2 {1.0 - value / guessing:.4f}"
    return f"RMSE {math.sqrt(max(0.0, value)):.5g}{explained}"
