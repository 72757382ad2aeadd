"""The folder of `lsvm predict --report`: scores as JSON, and pictures; those of probabilities are made here."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from localsvm.cli.reporting import label_text

if TYPE_CHECKING:
    from localsvm.runs.prediction.scores import Curves, ProbabilityScores

SCORES = "report.json"
SHOWN_CLASSES = 10  # as many curves as there are colours

Pictures = Mapping[str, Callable[[Any, Any], None]]  # functions that draw scores in a figure, by names of files


def check(folder: str, pictures: Iterable[str], force: bool) -> None:
    """Make the folder before a run; raise an error where its files could not be written."""
    from localsvm.cli import plotting
    from localsvm.cli.paths import check_outputs
    from localsvm.errors import RunError

    files: list[str | None] = [str(Path(folder) / name) for name in (SCORES, *pictures)]
    plotting.check(files[-1])
    try:
        Path(folder).mkdir(exist_ok=True)
    except OSError as error:
        raise RunError(f"{folder}: cannot make this folder: {error.strerror}") from error
    check_outputs(force, [], files)


def write(folder: str, scores: Any, pictures: Pictures, force: bool) -> None:
    """Write the scores, which have `as_dict`, and their pictures into the folder."""
    from localsvm.cli import plotting
    from localsvm.store.outputs import replacing

    with replacing(Path(folder) / SCORES, force) as temporary:
        temporary.write_text(json.dumps(scores.as_dict(), indent=2, allow_nan=False) + "\n")
    for name, draw in pictures.items():
        with plotting.figure_in(str(Path(folder) / name), force) as figure:
            draw(figure, scores)


def curves(scores: ProbabilityScores) -> list[tuple[str, Curves]]:
    """Curves to draw, with their names.

    Of two labels, this is the curve of the larger one. Of more, there is one for each label against the rest, up to
    SHOWN_CLASSES, and one for all labels together.
    """
    names = [name if isinstance(name, str) else label_text(name) for name in scores.names]
    if len(names) == 2:
        named: list[tuple[str, Any]] = [(names[1], scores.curves(1))]
    else:
        named = [(f"{name} against the rest", scores.curves(k)) for k, name in enumerate(names)]
        named = [*named[:SHOWN_CLASSES], ("all together", scores.curves())]
    return [(name, curve) for name, curve in named if curve is not None]


def _legend(axes: Any, shown: list[tuple[str, Curves]], place: str) -> None:
    """Add the names of the curves, or the reason why there is none: rows of one class have neither curve."""
    if shown:
        axes.legend(loc=place, fontsize="small")
    else:
        axes.text(0.5, 0.5, "no curve: all rows have the same label", ha="center", va="bottom")


def _reliability(figure: Any, scores: ProbabilityScores) -> None:
    bins, summary = scores.reliability(), scores.as_dict()
    axes, counts = figure.subplots(2, 1, sharex=True, height_ratios=[3, 1])
    axes.plot([0, 1], [0, 1], color="0.7", linestyle="--")
    axes.plot(bins[:, 2], bins[:, 1], "o-")
    low = max(0.0, float(bins[:, 1:].min()) - 0.03)
    axes.set(xlim=(low, 1.005), ylim=(low, 1.005), ylabel="share of right labels")
    axes.set_title(
        f"log loss {summary['log_loss']:.4f}, calibration error {summary['expected_calibration_error']:.4f}, "
        f"{scores.rows:,} rows",
        fontsize="medium",
    )
    counts.vlines(bins[:, 2], 0, bins[:, 0], linewidth=4)
    counts.set(xlabel="probability of the label that is predicted", ylabel="rows", ylim=(0, None))


def _roc(figure: Any, scores: ProbabilityScores) -> None:
    axes, shown = figure.subplots(), curves(scores)
    for name, curve in shown:
        axes.plot(curve.false_positive, curve.true_positive, label=f"{name}, area {curve.area:.4f}")
    axes.plot([0, 1], [0, 1], color="0.7", linestyle="--")
    axes.set(xlabel="false positive rate", ylabel="true positive rate", aspect="equal", title="ROC")
    _legend(axes, shown, "lower right")


def _precision_recall(figure: Any, scores: ProbabilityScores) -> None:
    axes, shown = figure.subplots(), curves(scores)
    for name, curve in shown:
        axes.plot(curve.recall, curve.precision, label=f"{name}, average {curve.average_precision:.4f}")
    axes.set(xlabel="recall", ylabel="precision", ylim=(0, 1.02), title="Precision and recall")
    _legend(axes, shown, "lower left")


PICTURES: Pictures = {"reliability.png": _reliability, "roc.png": _roc, "precision-recall.png": _precision_recall}
