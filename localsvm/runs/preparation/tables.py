"""Tables as training data: the schema, the labels, and the encoding, learned in one pass and applied in another."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from localsvm.data import _csv
from localsvm.data.blocks.dataset import Dataset
from localsvm.data.blocks.shift import Shift
from localsvm.data.blocks.table import Table, together
from localsvm.data.readers.delimited import NUMBER, TableForm, TableLayout, check_named, nearest
from localsvm.data.readers.origin import HEAD_ROWS, settle, shift_of
from localsvm.data.readers.pieces import Counts
from localsvm.data.readers.tables import TablePart, TableSource, format_of, open_table, parts_of
from localsvm.data.writers.libsvm import label_text
from localsvm.errors import DataError, OptionError
from localsvm.features.encoding import Encoding
from localsvm.features.scaling import LARGEST
from localsvm.features.survey import TableSurvey
from localsvm.memory import UNBOUNDED, Budget
from localsvm.naming import opt
from localsvm.runs.config import TrainingConfig
from localsvm.runs.preparation.row_encoder import RowEncoder, counting_column
from localsvm.runs.preparation.used_rows import UsedRows

LABELS = ("label", "target", "class", "y")  # names of a label column, in any case, the first that there is
SHOWN = 5  # names in a note
SHOWN_TEXT = 30  # characters of a text that should be a number
MOST_COLUMNS = 100_000  # features of a table: a matrix of them is dense
EXACT = 2.0**53  # whole numbers beyond are not all float64


@dataclass(frozen=True)
class TableOptions:
    """What a user says of a table.

    Attributes
    ----------
    form : of the text.
    label : name of the column of labels, or its number from 1; None to find it. Rows of one kind need none.
    ids : columns that name rows and are no features.
    weight, group : names of the columns of the rows' weights and groups; None where they have none.
    drops : whether rows without a label are left out; else they are refused.
    encode, dates : how levels become features, one of `survey.ENCODINGS`; whether dates are told from other text.
    class_weights : pairs of a label, as text, and a factor on C.
    alarm : the label that raises an alarm, as text; None for the default.
    """

    form: TableForm = field(default_factory=TableForm)
    label: str | None = None
    ids: tuple[str, ...] = ()
    weight: str | None = None
    group: str | None = None
    drops: bool = False
    encode: str = "auto"
    dates: bool = True
    class_weights: tuple[tuple[str, float], ...] = ()
    alarm: str | None = None

    def label_in(self, names: tuple[str, ...], header: bool) -> str | None:
        """Column of the labels among these; None where there is none. Only one that is asked for may be ignored."""
        if self.label is not None:
            if self.label in names:
                return self.label
            number = int(self.label) if self.label.isdecimal() else 0
            return names[number - 1] if 1 <= number <= len(names) else None
        ignored = self.form.ignored
        if not header:
            return None if names[0] in ignored else names[0]
        lower = {name.lower(): name for name in reversed(names) if name not in ignored}
        return next((lower[name] for name in LABELS if name in lower), None)

    @property
    def names_labels(self) -> bool:
        """True where something is said of labels, whose numbers are known when the table is read."""
        return bool(self.class_weights) or self.alarm is not None

    def settle(
        self, config: TrainingConfig, name: str, labels: NDArray[np.float64], classes: Mapping[str, Any] | None
    ) -> TrainingConfig:  # fmt: skip
        """The options of a run, with what is said of labels by their numbers. DataError for one that no row has.

        Parameters
        ----------
        name : of the file.
        labels, classes : (classes,) ascending, and what they stand for; see `Dataset.classes`.
        """
        if config.of_values and self.names_labels:
            given, loss = opt.class_weights if self.class_weights else opt.alarm, config.method.value_losses[0].name
            raise OptionError(f"{given} is for classes, and {opt.loss(loss)} predicts values; leave it out")
        names = [str(value) for value in (classes or {}).get("values") or map(label_text, labels.tolist())]

        def number(label: str, option: str) -> float:
            if label not in names:
                raise DataError(f"{name}: no row has the label {label!r} of {option}{nearest(label, names)}")
            return float(labels[names.index(label)])

        pairs = tuple((number(label, opt.class_weights), weight) for label, weight in self.class_weights)
        alarm = None if self.alarm is None else number(self.alarm, opt.alarm)
        return replace(config, class_weights=pairs, alarm=alarm)


class TrainingTable:
    """A table as training rows.

    Parameters
    ----------
    path, options : the file, and what the user says of it.
    seed, shifts : of the folds of target statistics; whether features may have origins.
    blocks : whether these folds are stretches of consecutive rows; else they are at random.
    note : called with messages on what was found.
    of_values, of_one_kind : whether values are predicted, or all rows are of one kind; else classes.

    Attributes
    ----------
    labels, classes : (classes,) float64 ascending, and what they stand for; see `Dataset.classes`.
    shift : of the features; None for none.
    kept : description of the table that the model keeps: docs/model-format-groups.md.
    """

    def __init__(
        self, path: str, options: TableOptions, seed: int, shifts: bool, note: Callable[[str], None],
        blocks: bool = False, of_values: bool = False, of_one_kind: bool = False,
    ) -> None:  # fmt: skip
        self.name, self._options, self._shifts, self._note = path, options, shifts, note
        self._seed, self._blocks = seed, blocks
        self._survey = TableSurvey(seed)
        self._labels = _Labels()
        self._of_values, self._of_one_kind = of_values, of_one_kind
        self._held: list[Table] | None = None
        self.shift: Shift | None = None

    @property
    def rows(self) -> int:
        """Number of rows, after `look`."""
        return self._survey.rows

    @property
    def width(self) -> int:
        """Number of features, after `look`."""
        return len(self.encoding.names)

    def look(
        self, jobs: int = 1, budget: Budget = UNBOUNDED, keep: bool = True, weights: str | Path | None = None,
        groups: str | Path | None = None,
    ) -> TrainingTable:  # fmt: skip
        """Take the first pass over the table.

        Parameters
        ----------
        jobs, budget : threads, and memory; nothing depends on them.
        keep : whether the rows stay in memory for the second pass; else they are read again.
        weights, groups : files of the rows' weights and groups.

        Raises
        ------
        DataError : a mistake in the file, rows without a label, or no column of features.
        RunError : the rows do not fit into the memory.
        """
        self._held = [] if keep else None
        with open_table(self.name, self._options.form, self._texts) as source:
            label, options = self._label_of(source), self._options
            features = self._features(source, label)
            self._check_label(source, label)
            self._rows = UsedRows(self.name, label, options.weight, options.group, options.drops, weights, groups)
            if self._blocks:
                self._survey = TableSurvey(self._seed, self._counted_rows(source.layout, label, jobs))
            self._pass(source, label, features, jobs, budget)
        self._settle(source.layout, label, features)
        return self

    @property
    def weight(self) -> NDArray[np.float64] | None:
        """Weights (n,) of the rows, after `look`; None where they have none."""
        return self._rows.weight

    @property
    def group(self) -> NDArray[np.int64] | None:
        """Groups (n,) of the rows, after `look`; None where they have none."""
        return self._rows.group

    def _counted_rows(self, layout: TableLayout, label: str | None, jobs: int) -> int:
        """Number of the rows that take part, by a pass that reads labels and weights alone. DataError for stdin."""
        if self.name == "-":
            raise DataError(f"stdin: {opt.folds('blocks')} reads a table twice; write it to a file first")
        column = counting_column(layout, label)
        if column is None:
            return 1  # the pass over all columns says that there is no feature
        read = {column, self._options.weight} - {None}
        known = {name: kind for name, kind in zip(layout.names, layout.kinds, strict=True) if name in read}
        with open_table(self.name, self._options.form, known=known) as source:
            return self._rows.count(source.blocks(jobs)) or 1

    def _pass(self, source: TableSource, label: str | None, features: list[str], jobs: int, budget: Budget) -> None:
        """Survey all rows that take part."""
        held = 0
        for whole in source.blocks(jobs):
            table, group = self._rows.taken(whole)
            if self._held is not None:
                self._held.append(table)
                held += table.rows * (8 * len(table.numbers) + 4 * len(table.levels))
                budget.check(f"{source.name}: its rows need", 2 * held)
            values, codes = None, np.zeros(table.rows, np.int64)
            if label is not None and self._of_values:
                values = table.numbers[label]
            elif label is not None:
                codes = self._labels.add(table.levels[label]) * (not self._of_one_kind)
            self._survey.add(table, features, codes, group, values)
        self._rows.settle(self._note)

    def _settle(self, layout: TableLayout, label: str | None, features: list[str]) -> None:
        """Decide labels and encoding, after the pass."""
        options, silent = self._options, dict[str, list[str]]()
        self.labels, self.classes, codes = np.ones(int(label is None)), None, np.zeros(1, np.int64)
        if label is not None and not self._of_values:
            self.labels, self.classes = self._labels.settled(self.name, label)
            codes = codes if self._of_one_kind else self._labels.classes
        name, value = self._survey.largest
        if abs(value) > float(LARGEST):
            what = f"column {name!r} has the value {value:g}, beyond the largest float32, 3.4e38"
            raise DataError(f"{self.name}: {what}; rescale it, or leave it out: {opt.ignore(name)}")
        self.encoding = self._survey.encoding(
            features, codes, options.encode, options.dates, lambda name, why: silent.setdefault(why, []).append(name)
        )
        for why, columns in silent.items():
            shown = ", ".join(map(repr, columns[:SHOWN])) + (", ..." if len(columns) > SHOWN else "")
            one = len(columns) == 1
            start = "column" if one else f"{len(columns):,} columns"
            self._note(f"{start} {shown}: {why}, {'is' if one else 'are'} left out")
        if not self.encoding.codings:
            beside = "" if label is None else f"beside {label!r} "
            raise DataError(f"{self.name}: no column is a feature: {beside}all are ignored, or have one value only")
        if self.width > MOST_COLUMNS:
            raise DataError(
                f"{self.name}: {self.width:,} features; a table may have {MOST_COLUMNS:,}. Ignore some columns"
            )
        known = None if self._of_values else self._labels.value
        self._encoder = RowEncoder(self.name, label, known, self.encoding, self._survey.folds)
        self.kept = description_of(self.encoding, layout, LABELS[0] if label is None else label, options.ids)
        if label is not None and not (self._of_values or self._of_one_kind):
            self._tell_alone(label)

    def _tell_alone(self, label: str) -> None:
        """Note a column of levels each of which has one class alone: it may be the label's copy."""
        for coding in self.encoding.codings:
            if self._survey.tells_all(coding.name, self._labels.classes):
                self._note(f"column {coding.name!r} predicts {label!r} alone; if it is not known beforehand, ignore it")

    def blocks(self, counts: Counts, dense: bool, jobs: int) -> Generator[Dataset]:
        """The encoded rows; see `engines.sources.RowSource`."""
        yield from self._encoded(jobs)

    def counts(self, jobs: int = 1) -> Counts:
        """Counts of the rows, after `look`."""
        return Counts(self.rows, self.rows, self.rows * self.width, self.width)

    def of_rows(self, rows: int) -> tuple[NDArray[np.float64] | None, NDArray[np.int64] | None]:
        """Weights and groups of the rows."""
        return self.weight, self.group

    @property
    def described(self) -> dict[str, Any]:
        """What the labels stand for, and how the table becomes rows: fields of `engines.base.Head`."""
        return {"classes": self.classes, "table": self.kept}

    @property
    def encoder(self) -> RowEncoder:
        """The encoder of the rows, after `look`; it reads the head of the table where features may have origins."""
        if self._shifts and self._encoder.shift is None:
            with closing(self._encoded()) as blocks:
                next(blocks)
        return self._encoder

    def parts(self, size: int) -> list[TablePart]:
        """The table in parts of about `size` bytes of its file each, after `look`."""
        form = self._options.form
        with open_table(self.name, form, self._texts) as source:
            return parts_of(source, self.name, form.kind or format_of(self.name), size)

    def _encoded(self, jobs: int = 1) -> Generator[Dataset]:
        """The encoded rows, block by block: float32, some columns from their origins."""
        first = 0
        for table in _headed(self._read(jobs)):
            last = first + table.rows
            group = None if self.group is None else self.group[first:last]
            X = self._encoder.features(table, first, group)
            if first == 0 and self._shifts:
                self.shift = shift_of(X[:HEAD_ROWS], np.arange(X.shape[1]))
                self._encoder = replace(self._encoder, shift=self.shift)
            yield self._encoder.dataset(X, table)
            first = last

    def _read(self, jobs: int) -> Iterator[Table]:
        """The rows that take part; those in memory are let go."""
        if self._held is not None:
            while self._held:
                yield self._held.pop(0)
            return
        with open_table(self.name, self._options.form, self._texts) as source:
            yield from self._rows.again(source.blocks(jobs))

    def read(self, jobs: int = 1) -> Dataset:
        """All rows in memory, after `look`."""
        X, y, first = np.empty((self.rows, self.width), np.float32), np.empty(self.rows), 0
        for block in self._encoded(jobs):
            last = first + len(block.y)
            X[first:last], y[first:last] = block.X, block.y
            first = last
        rows, shift = settle(X, self.shift)
        return Dataset(
            rows, y, classes=self.classes, shift=shift, weight=self.weight, group=self.group, table=self.kept,
            name=self.name,
        )  # fmt: skip

    def _texts(self, names: tuple[str, ...], header: bool) -> set[str]:
        """Columns that are read as text whatever they hold."""
        label = self._options.label_in(names, header)
        texts = (self._options.group,) if self._of_values else (label, self._options.group)
        return {*self._options.ids, *(name for name in texts if name is not None)}

    def _label_of(self, source: TableSource) -> str | None:
        """Column of the labels; None where rows of one kind have none. DataError where there has to be one."""
        names, asked = source.layout.names, self._options.label
        label = self._options.label_in(names, source.layout.header)
        if label is None and asked is not None:
            check_named([asked], names, source.name)
        if label is None and not self._of_one_kind:
            raise DataError(f"{source.name}: which column has the labels? Give {opt.label('NAME')}{nearest('', names)}")
        return label

    def _check_label(self, source: TableSource, label: str | None) -> None:
        """Note what is taken for the labels. DataError where values to predict are no numbers."""
        names, asked = source.layout.names, self._options.label
        if label is None:
            self._note(f"no column is called {', '.join(LABELS[:-1])} or {LABELS[-1]}: all may be features")
            return
        if self._of_values and source.layout.kinds[names.index(label)] != _csv.NUMBER:
            what = f"column {label!r} has text{_first_text(source, label)}, and values to predict are numbers"
            raise DataError(
                f"{source.name}: {what}; name another column by {opt.label('NAME')}, or leave {opt.loss} out"
            )
        if not source.layout.header:
            self._note(f"the table has no header; its columns are called 1 to {len(names)}, and {label} has the labels")
        also = [name for name in names if asked is None and source.layout.header and name.lower() in LABELS]
        if len(also) > 1:
            self._note(f"columns {', '.join(map(repr, also))} may all be labels; {label!r} is taken ({opt.label})")

    def _features(self, source: TableSource, label: str | None) -> list[str]:
        """Columns that may be features, after checks of those that are named by the user."""
        options, layout = self._options, source.layout
        roles = {opt.label: (label,), opt.ids: options.ids, opt.weight_column: (options.weight,)}
        roles |= {opt.group_column: (options.group,), opt.ignore: tuple(options.form.ignored - {""})}
        named = [(name, role) for role, names in roles.items() for name in names if name is not None]
        check_named([name for name, _ in named], layout.names, source.name)
        role_of: dict[str, str] = {}
        for name, role in named:
            if role_of.setdefault(name, role) != role:
                raise DataError(f"{source.name}: column {name!r} is named by {role_of[name]} and by {role}; choose one")
        if options.weight is not None and layout.kinds[layout.names.index(options.weight)] != _csv.NUMBER:
            what = f"column {options.weight!r} has text, and weights are numbers"
            raise DataError(f"{source.name}: {what}; name another column")
        return [name for name in layout.wanted if name not in role_of]


class _Labels:
    """Labels of a table, numbered as they come."""

    def __init__(self) -> None:
        self._place: dict[str, int] = {}
        self.value: dict[str, float] = {}

    def add(self, column: Any) -> NDArray[np.int64]:
        """Numbers (n,) of the labels of a block."""
        place = self._place
        numbers = np.asarray([place.setdefault(name, len(place)) for name in column.names] or [0], np.int64)
        return np.asarray(numbers[column.codes])

    def settled(self, path: str, name: str) -> tuple[NDArray[np.float64], dict[str, Any] | None]:
        """The labels (classes,) ascending, and what they stand for; None where they are numbers themselves."""
        texts = sorted(self._place)
        if all(NUMBER.fullmatch(text) for text in texts):
            numbers = np.asarray([float(text) for text in texts])
            self._check(numbers, texts, path, name)
            labels = np.unique(numbers)
            self.value, described = dict(zip(texts, numbers.tolist(), strict=True)), None
        else:
            labels = np.arange(len(texts), dtype=np.float64)
            self.value = {text: float(number) for number, text in enumerate(texts)}
            described = {"dtype": f"<U{max(map(len, texts))}", "values": texts}
        self.classes = np.searchsorted(labels, [self.value[text] for text in self._place])
        return labels, described

    @staticmethod
    def _check(numbers: NDArray[np.float64], texts: list[str], path: str, name: str) -> None:
        if not np.isfinite(numbers).all():
            raise DataError(f"{path}: a label in {name!r} is beyond the largest float64; rescale the labels")
        large = np.flatnonzero(np.abs(numbers) >= EXACT)
        if len(large):
            what = f"the label {texts[large[0]]} in {name!r} has more digits than float64 holds"
            raise DataError(f"{path}: {what}; write labels as shorter numbers, or as text")


def _headed(blocks: Iterator[Table]) -> Iterator[Table]:
    """Yield the rows in blocks, of which the first has those that decide on origins."""
    head: list[Table] = []
    for block in blocks:
        if sum(table.rows for table in head) >= HEAD_ROWS:
            yield together(head)
            yield block
            yield from blocks
            return
        head.append(block)
    if head:
        yield together(head)


def _first_text(source: TableSource, column: str) -> str:
    """The first text of a column that is no number, and its row, as messages say it."""
    first = 0
    for table in source.blocks():
        texts = table.levels[column].texts() if column in table.levels else []
        for row, text in enumerate(texts, start=first + 1):
            if text and not NUMBER.fullmatch(text):
                return f" ({text[:SHOWN_TEXT]!r} in row {row:,})"
        first += table.rows
    return " (numbers that are stored as text)"


def labels_of(source: Dataset | TrainingTable) -> NDArray[np.float64]:
    """The labels (classes,) of rows, ascending."""
    return np.asarray(np.unique(source.y) if isinstance(source, Dataset) else source.labels)


def training_rows(
    path: str, options: TableOptions, seed: int, shifts: bool, note: Callable[[str], None], jobs: int = 1,
    budget: Budget = UNBOUNDED,
) -> Dataset:  # fmt: skip
    """Read a table and encode it; parameters and errors as of `TrainingTable`."""
    return TrainingTable(path, options, seed, shifts, note).look(jobs, budget).read(jobs)


def description_of(encoding: Encoding, layout: TableLayout, label: str, ids: Sequence[str] = ()) -> dict[str, Any]:
    """Description of a table for the model: docs/model-format-groups.md.

    ids : columns that name rows.
    """
    wanted = {label, *(coding.name for coding in encoding.codings)}
    pairs = zip(layout.names, layout.kinds, strict=True)
    return encoding.as_dict() | {
        "label": label,
        "ids": list(ids),
        "names": list(layout.names),
        "header": layout.header,
        "delimiter": layout.delimiter,
        "missing": list(layout.missing),
        "unscaled": encoding.unscaled,
        "ties": encoding.columns,
        "kinds": {name: kind for name, kind in pairs if name in wanted},
    }
