"""Predictions as lines of text, and the confusion matrix."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TextIO

from localsvm.cli.reporting import Name, accuracy_text, label_text, names_of, problem_text, recalls_text
from localsvm.cli.value_lines import covered_text

if TYPE_CHECKING:
    from localsvm.runs.predict import Predicted, Score
    from localsvm.targets.classification import Classification


class PredictionLines:
    """Writer of predictions, one row a line.

    A line has the label, as in the training data, and on request decision values or probabilities. These have as many
    digits as are needed to read back the same float64.
    """

    def __init__(
        self, out: TextIO, target: Classification, decision_values: bool = False, probabilities: bool = False,
        header: bool = True, classes: Mapping[str, Any] | None = None, coverage: bool = False,
    ) -> None:  # fmt: skip
        """Write a line with the names of the columns where there are several, if `header` is True.

        classes : what the labels stand for; see `Dataset.classes`. coverage : whether a line is a set of labels.
        """
        self._sets = coverage and not probabilities
        name = names_of(target.labels.tolist(), classes)
        self._out, self._labels, self._values = out, target.labels, decision_values
        self._names = [_on_a_line(name(label)) for label in target.labels.tolist()]
        if header and (decision_values or probabilities):
            columns = self._names if probabilities else (problem_text(problem, name) for problem in target.problems)
            out.write(" ".join(["labels", *columns]) + "\n")

    def write(self, block: Predicted) -> None:
        """Write the predictions of a block of rows."""
        if self._sets:
            self._out.write("".join(" ".join(each) + "\n" for each in named_sets(block, self._names)))
            return
        codes = self._labels.searchsorted(block.labels).tolist()
        rows = [self._names[code] for code in codes]
        if self._values or block.probabilities is not None:
            columns = block.decisions if block.probabilities is None else block.probabilities
            values = (" ".join(map(repr, row)) for row in columns.tolist())
            rows = [f"{name} {row}" for name, row in zip(rows, values, strict=True)]
        self._out.write("".join(f"{row}\n" for row in rows))


def named_sets(block: Predicted, names: Sequence[str]) -> list[list[str]]:
    """The labels of each set, the most probable first."""
    assert block.sets is not None and block.probabilities is not None, "sets are made of probabilities"
    order = (-block.probabilities).argsort(axis=1, kind="stable").tolist()
    return [[names[k] for k in row if kept[k]] for row, kept in zip(order, block.sets.tolist(), strict=True)]


def _on_a_line(text: str) -> str:
    """Text of a label without line ends and other marks that do not show: these are escaped."""
    return "".join(each if each.isprintable() else repr(each)[1:-1] for each in text)


class TableLines:
    """Writer of predictions as a table: the columns that name rows, the label, and what else was asked for.

    ids, label : names of these columns.
    """

    def __init__(
        self, out: TextIO, target: Classification, decision_values: bool, probabilities: bool, ids: list[str],
        label: str, delimiter: str, classes: Mapping[str, Any] | None, coverage: bool = False, header: bool = True,
    ) -> None:  # fmt: skip
        """Write the names of the columns, if `header` is True.

        classes : what the labels stand for; see `Dataset.classes`. coverage : whether a column has sets of labels.
        """
        self._probabilities = probabilities
        name = names_of(target.labels.tolist(), classes)
        self._writer = csv.writer(out, delimiter=delimiter, lineterminator="\n")
        self._labels, self._values = target.labels, decision_values
        self._names = [name(each) for each in target.labels.tolist()]
        values = [problem_text(problem, name) for problem in target.problems] if decision_values else []
        if header:
            sets = [f"{label} set"] if coverage else []
            self._writer.writerow([*ids, label, *sets, *(self._names if probabilities else values)])

    def write(self, block: Predicted) -> None:
        """Write the predictions of a block of rows."""
        names = [self._names[code] for code in self._labels.searchsorted(block.labels).tolist()]
        ids = [()] * len(names) if block.ids is None else block.ids
        columns = block.probabilities if self._probabilities else block.decisions
        shown = [[]] * len(names) if columns is None or not (self._values or self._probabilities) else columns.tolist()
        sets = [[]] * len(names) if block.sets is None else [[";".join(s)] for s in named_sets(block, self._names)]
        self._writer.writerows(
            [*row, name, *held, *values] for row, name, held, values in zip(ids, names, sets, shown, strict=True)
        )


def score_text(score: Score, name: Name = label_text) -> str:
    """Text of the accuracy, of false alarms, and of TPR x TNR for a model that was chosen by it; "" without labels.

    TPR x TNR is left out where no row has a label that the model knows.
    """
    if not score.total:
        return ""
    recalls, target = score.recalls(), score.target
    scored = target.scoring == "tpr-tnr" and any(recall is not None for recall in recalls)
    covered = ""
    if score.sets:
        size = f"{score.set_labels / score.sets:.3g} labels a set in the mean"
        covered = f"\n{covered_text(score.covered, score.sets)}, {size}"
    pairs = zip(("False alarms", "Missed"), score.alarms, strict=False)
    alarms = "".join(f"\n{what} = {wrong / max(1, rows):.2%} ({wrong:,}/{rows:,})" for what, (wrong, rows) in pairs)
    return (
        accuracy_text(score.right, score.total)
        + alarms
        + covered
        + (f"\n{recalls_text(recalls, target.labels.tolist(), name)}" if scored else "")
    )


def unknown_text(score: Score) -> str:
    """Text on the rows whose label the model does not know."""
    have = "has a label" if score.unknown == 1 else "have labels"
    return f"{score.unknown:,} of {score.total:,} rows {have} that the model does not know, and count as wrong"


def seen_text(score: Score) -> str:
    """Text on the rows that have the label of training rows that they equal, and the accuracy of the others."""
    verbs = (
        "equals a training row and gets its label" if score.copies == 1 else "equal training rows and get their labels"
    )
    right, rest = score.right - score.known_right, score.total - score.known
    others = f"; accuracy of the others {100 * right / rest:g}% ({right}/{rest})" if rest else ""
    return f"{score.copies:,} of {score.rows:,} rows {verbs}{others}"


def confusion_text(score: Score, name: Name = label_text) -> str:
    """The confusion matrix in rows of data: labels of the file downwards, predicted labels across."""
    true = sorted({label for label, _ in score.confusion})
    given = sorted({label for _, label in score.confusion})
    table = [["true\\predicted", *map(name, given)]]
    table += [[name(t), *(str(score.confusion.get((t, g), 0)) for g in given)] for t in true]
    widths = [max(len(row[i]) for row in table) for i in range(len(table[0]))]
    lines = ["  ".join(text.rjust(width) for text, width in zip(row, widths, strict=True)) for row in table]
    return "\n" + "\n".join(lines)
