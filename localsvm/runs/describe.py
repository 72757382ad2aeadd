"""Description of a table: what would be read of it, and what looks wrong."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from localsvm.data import _csv
from localsvm.data.blocks.table import Levels, Table
from localsvm.data.readers.delimited import NUMBER, check_named, quoted
from localsvm.data.readers.tables import TableSource, format_of, open_table
from localsvm.features.encoding import parts_of
from localsvm.features.survey import TableSurvey
from localsvm.naming import opt
from localsvm.runs.preparation.tables import TableOptions
from localsvm.targets.loss_names import LEAST_SQUARES

BINS = 8  # of a histogram
MOST_COMMON = 3  # levels that are shown
RARE = 5  # rows of a class, below which it is hardly learned
MANY_MISSING = 0.5  # share of missing values that is a problem
MANY_LEVELS = 0.5  # share of rows with a level of their own that is a problem
VALUES = 50  # more numbers than this as labels look like values


@dataclass
class ColumnReport:
    """A column.

    Attributes
    ----------
    name, role : "feature", "label", "id", "weight", "group" or "ignored".
    kind : "number", "text", "date" or "not read".
    missing : share of the rows, from 0 to 1.
    different : number of different texts; None of numbers.
    least, most : of numbers, or of dates as text; None without a value.
    common : the most frequent texts, and the shares of rows that have them.
    histogram : share of the known rows in each of BINS equal parts of the range; empty for text.
    """

    name: str
    role: str
    kind: str
    missing: float = 0.0
    different: int | None = None
    least: float | str | None = None
    most: float | str | None = None
    common: list[tuple[str, float]] = field(default_factory=list)
    histogram: list[float] = field(default_factory=list)


@dataclass
class TableReport:
    """A table.

    Attributes
    ----------
    file, format, rows : what it is.
    delimiter, header : of delimited text.
    label : name of the column of labels; None where it is not known.
    problems : sentences on what looks wrong, each with a remedy.
    """

    file: str
    format: str
    rows: int
    delimiter: str
    header: bool
    label: str | None
    columns: list[ColumnReport]
    problems: list[str]


@dataclass
class _Counts:
    """Rows of each text of a column."""

    rows: dict[str, int] = field(default_factory=dict)

    def add(self, column: Levels) -> None:
        """Take in a block."""
        counts = np.bincount(column.codes[column.codes >= 0], minlength=len(column.names))
        for name, count in zip(column.names, counts.tolist(), strict=True):
            self.rows[name] = self.rows.get(name, 0) + count

    def as_labels(self) -> None:
        """Count texts of one number together where all are numbers, as training takes 1 and 1.0 for one label."""
        if all(NUMBER.fullmatch(name) for name in self.rows):
            first, rows = dict[float, str](), dict[str, int]()
            for name, count in self.rows.items():
                one = first.setdefault(float(name), name)
                rows[one] = rows.get(one, 0) + count
            self.rows = rows


def describe_table(path: str, options: TableOptions, jobs: int = 1) -> TableReport:
    """Read a table and describe it.

    options : the label, and what columns are; the label may be unknown.

    DataError : what cannot be read at all, with its place.
    """
    survey, counts, values = TableSurvey(0), dict[str, _Counts](), dict[str, list[NDArray[np.float64]]]()
    labels: dict[str, int] = {}

    def texts(names: tuple[str, ...], header: bool) -> set[str]:
        known = options.label_in(names, header)
        return {*options.ids, *(name for name in (known, options.group) if name is not None)}

    with open_table(path, options.form, texts) as source:
        label = options.label_in(source.layout.names, source.layout.header)
        if options.label is not None and label is None:
            check_named([options.label], source.layout.names, source.name)
        if label is not None and source.layout.kinds[source.layout.names.index(label)] != _csv.LEVEL:
            label = None
        reports = _reports(source, options, label)
        read = [report.name for report in reports if report.kind != "not read"]
        for table in source.blocks(jobs):
            codes = np.zeros(table.rows, np.int64) if label is None else _codes(table.levels[label], labels)
            survey.add(table, [name for name in read if name != label], codes, None)
            _count(table, counts, values)
    if label is not None:
        counts[label].as_labels()
    _fill(reports, counts, values, survey.rows)
    return TableReport(
        file=path,
        format=options.form.kind or format_of(path),
        rows=survey.rows,
        delimiter=source.layout.delimiter,
        header=source.layout.header,
        label=label,
        columns=reports,
        problems=_problems(reports, label, survey, labels, counts),
    )


def _codes(column: Levels, labels: dict[str, int]) -> NDArray[np.int64]:
    """Numbers (n,) of labels as they come; a missing label is one, too."""
    numbers = [labels.setdefault(name, len(labels)) for name in column.names]
    if (column.codes < 0).any():
        numbers.append(labels.setdefault("", len(labels)))
    return np.asarray(numbers or [0], np.int64)[column.codes]


def _reports(source: TableSource, options: TableOptions, label: str | None) -> list[ColumnReport]:
    roles = dict.fromkeys(options.form.ignored, "ignored") | dict.fromkeys(options.ids, "id")
    roles |= {name: role for name, role in ((options.weight, "weight"), (options.group, "group")) if name is not None}
    roles |= {} if label is None else {label: "label"}
    kinds = {int(_csv.NUMBER): "number", int(_csv.LEVEL): "text", int(_csv.SKIP): "not read"}
    pairs = zip(source.layout.names, source.layout.kinds, strict=True)
    return [ColumnReport(name, roles.get(name, "feature"), kinds[int(kind)]) for name, kind in pairs]


def _count(table: Table, counts: dict[str, _Counts], values: dict[str, list[NDArray[np.float64]]]) -> None:
    for name, column in table.levels.items():
        counts.setdefault(name, _Counts()).add(column)
    for name, numbers in table.numbers.items():
        values.setdefault(name, []).append(numbers[~np.isnan(numbers)])


def _fill(
    reports: Sequence[ColumnReport], counts: dict[str, _Counts], values: dict[str, list[NDArray[np.float64]]], rows: int
) -> None:
    for report in reports:
        if report.name in values:
            _fill_numbers(report, np.concatenate(values[report.name]), rows)
        elif report.role == "label" and _are_values(of := counts[report.name].rows):
            report.kind = "number"
            _fill_numbers(report, np.repeat([float(name) for name in of], list(of.values())), rows)
        elif report.name in counts:
            of = counts[report.name].rows
            report.missing, report.different = 1 - sum(of.values()) / rows, len(of)
            ordered = sorted(of.items(), key=lambda pair: (-pair[1], pair[0]))
            report.common = [(name, count / rows) for name, count in ordered[:MOST_COMMON]]
            if of and all(parts_of(name) is not None for name in of):
                report.kind, report.least, report.most = "date", min(of), max(of)


def _fill_numbers(report: ColumnReport, known: NDArray[np.float64], rows: int) -> None:
    report.missing = 1 - len(known) / rows
    if len(known):
        report.least, report.most = float(known.min()), float(known.max())
        report.histogram = _histogram(known)


def _are_values(rows: dict[str, int]) -> bool:
    """True for labels that are rather values than classes."""
    return len(rows) > VALUES and all(NUMBER.fullmatch(name) and np.isfinite(float(name)) for name in rows)


def _histogram(known: NDArray[np.float64]) -> list[float]:
    """Share of the values in each of BINS equal parts of their range, whatever that is."""
    half = known[np.isfinite(known)] / 2  # the range of float64 is more than its largest value
    if not len(half):
        return []
    first, width = half.min(), (half.max() - half.min()) or 1.0
    place = np.clip(((half - first) / width * BINS).astype(np.int64), 0, BINS - 1)
    return (np.bincount(place, minlength=BINS) / len(half)).tolist()  # type: ignore[no-any-return]


def _problems(
    reports: Sequence[ColumnReport], label: str | None, survey: TableSurvey, labels: dict[str, int],
    counts: dict[str, _Counts],
) -> list[str]:  # fmt: skip
    """What looks wrong, the label first."""
    said = [f"which column has the labels? Give {opt.label('NAME')}"] if label is None else []
    features = [report for report in reports if report.role == "feature" and report.kind != "not read"]
    if all(_constant(report) or _names_rows(report, survey.rows) for report in features):
        said.append("no column is a feature: all others are ignored, have one value only, or a text in each row")
    if label is not None:
        said += _of_labels(label, counts[label].rows, next(r.missing for r in reports if r.name == label))
    classes = np.arange(max(1, len(labels)))
    for report in features:
        name = repr(report.name)
        if _constant(report):
            said.append(f"column {name} has one value only; it will be left out")
            continue
        if _names_rows(report, survey.rows):
            said.append(f"column {name} has a text of its own in each row; if it names rows, {opt.ids(report.name)}")
        elif report.kind == "text" and (report.different or 0) > MANY_LEVELS * survey.rows:
            said.append(f"column {name} has {report.different:,} texts in {survey.rows:,} rows; few rows share one")
        elif report.missing > MANY_MISSING:
            said.append(f"column {name}: {report.missing:.0%} of the values are missing")
        if label is not None and survey.tells_all(report.name, classes):
            said.append(f"column {name} predicts {label!r} alone; if it is not known beforehand, ignore it")
    return said


def _constant(report: ColumnReport) -> bool:
    """True for a column that will be left out as it has one value only; gaps in text or numbers say something, too."""
    one = report.least == report.most if report.kind == "number" else (report.different or 0) < 2
    return one and (report.kind == "date" or report.missing in (0.0, 1.0))


def _names_rows(report: ColumnReport, rows: int) -> bool:
    """True for a column that will be left out as it has a text of its own in each row."""
    return report.kind == "text" and report.different == rows


def _of_labels(label: str, rows: dict[str, int], missing: float) -> list[str]:
    said = []
    if missing:
        said.append(f"{missing:.2%} of the rows have no label in {label!r}; {opt.drop_unlabelled} leaves them out")
    if _are_values(rows):
        remedy = f"{opt.loss(LEAST_SQUARES)} predicts values"
        said.append(f"{label!r} has {len(rows):,} different numbers, rather values than classes; {remedy}")
    else:
        rare = [name for name, count in rows.items() if count < RARE]
        if len(rows) < 2:
            said.append(f"{label!r} has one class only; training needs two")
        elif rare:
            shown = ", ".join(map(quoted, rare[:3])) + (", ..." if len(rare) > 3 else "")
            verb = "has" if len(rare) == 1 else "have"
            said.append(f"{len(rare):,} of {len(rows):,} classes {verb} fewer than {RARE} rows: {shown}")
    return said


def as_dict(report: TableReport) -> dict[str, Any]:
    """The report as JSON can hold it."""
    from dataclasses import asdict

    return asdict(report)
