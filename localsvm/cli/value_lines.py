"""Predicted values as lines of text or of a table, and texts on how good they are."""

from __future__ import annotations

import csv
import math
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from localsvm.runs.predict import Predicted
    from localsvm.runs.prediction.value_scores import ValueScore
    from localsvm.targets.regression import Regression

NAMES = {"mse": "mean squared error", "r2": "mean squared error", "mae": "mean absolute error"}
NAMES |= {"pinball": "mean pinball loss", "expectile": "mean expectile loss"}


class ValueLines:
    """Writer of predicted values, one row a line: with as many digits as are needed to read back the same float64.

    Several levels are columns, below a line with the levels.
    """

    def __init__(self, out: TextIO, target: Regression, header: bool = True) -> None:
        self._out = out
        if header and len(target.losses) > 1:
            out.write(" ".join(levels_of(target)) + "\n")

    def write(self, block: Predicted) -> None:
        """Write the predictions of a block of rows."""
        rows = block.labels.reshape(len(block.y), -1).tolist()
        self._out.write("".join(" ".join(map(repr, row)) + "\n" for row in rows))


class TableValueLines:
    """Writer of predicted values as a table: the columns that name rows, and a column for each level.

    ids, label : names of these columns.
    """

    def __init__(
        self, out: TextIO, target: Regression, ids: list[str], label: str, delimiter: str, header: bool = True
    ) -> None:  # fmt: skip
        self._writer = csv.writer(out, delimiter=delimiter, lineterminator="\n")
        levels = levels_of(target)
        if header:
            self._writer.writerow([*ids, *([label] if len(levels) == 1 else [f"{label} {level}" for level in levels])])

    def write(self, block: Predicted) -> None:
        """Write the predictions of a block of rows."""
        ids = [()] * len(block.y) if block.ids is None else block.ids
        rows = block.labels.reshape(len(block.y), -1).tolist()
        self._writer.writerows([*row, *values] for row, values in zip(ids, rows, strict=True))


def levels_of(target: Regression) -> list[str]:
    """The levels, as text."""
    return [f"{loss.level:g}" for loss in target.losses]


def value_score_text(score: ValueScore) -> str:
    """Text of the scores, in the words of LIBSVM's svm-predict; "" where no row has a value."""
    if not score.total:
        return ""
    report, levels = score.as_dict(), levels_of(score.target)
    if score.target.score in ("pinball", "expectile"):
        name = NAMES[report["score"]].capitalize()
        return "\n".join(
            f"{name} at {level} = {loss:g} ({below:.2%} of {score.total:,} values are not above)"
            for level, loss, below in zip(levels, report["loss"], report["below"], strict=True)
        )
    mean = "" if report["score"] != "mae" else f"\nMean absolute error = {report['loss'][0]:g} (regression)"
    correlation = report["squared_correlation"][0]
    return (
        f"Mean squared error = {report['mean_squared_error'][0]:g} (regression)\n"
        f"Squared correlation coefficient = {math.nan if correlation is None else correlation:g} (regression){mean}"
    )


def loss_text(score: str, value: float, guessing: float | None = None) -> str:
    """Text of a mean loss of values: of squares its root, and R^2 where the variance is known. score : its name."""
    if score not in ("mse", "r2"):
        return f"{NAMES[score]} {value:.5g}"
    explained = "" if guessing is None or not guessing else f", R^2 {1.0 - value / guessing:.4f}"
    return f"RMSE {math.sqrt(max(0.0, value)):.5g}{explained}"
