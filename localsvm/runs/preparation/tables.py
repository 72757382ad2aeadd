"""Tables as training data and as rows to predict: the schema, the labels, and the encoding between."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from localsvm.data import _csv
from localsvm.data.blocks.dataset import Dataset
from localsvm.data.blocks.table import Levels, Table, together
from localsvm.data.readers.compression import SUFFIXES as COMPRESSED
from localsvm.data.readers.delimited import (
    DELIMITERS,
    NUMBER,
    TableForm,
    TableLayout,
    TableReader,
    check_named,
    nearest,
    open_table,
)
from localsvm.data.readers.origin import from_array
from localsvm.data.writers.libsvm import label_text
from localsvm.errors import DataError
from localsvm.features.encoding import Encoding, Number
from localsvm.memory import UNBOUNDED, Budget
from localsvm.naming import opt
from localsvm.store.pieces import Unsound

LABELS = ("label", "target", "class", "y")  # names of a label column, in any case, the first that there is
SUFFIXES = (".csv", ".tsv", ".tab")
SHOWN = 5  # names in a note
MOST_COLUMNS = 100_000  # features of a table: a matrix of them is dense


@dataclass(frozen=True)
class TableOptions:
    """What a user says of a table.

    Attributes
    ----------
    form : of the text.
    label : name of the column of labels, or its number from 1; None to find it.
    ids : columns that name rows and are no features.
    weight : name of the column of the rows' weights; None where they have none.
    drops : whether rows without a label are left out; else they are refused.
    class_weights : pairs of a label, as text, and a factor on C.
    """

    form: TableForm = field(default_factory=TableForm)
    label: str | None = None
    ids: tuple[str, ...] = ()
    weight: str | None = None
    drops: bool = False
    class_weights: tuple[tuple[str, float], ...] = ()

    def weights_of(self, data: Dataset) -> tuple[tuple[float, float], ...]:
        """The weights of classes by the numbers of their labels. DataError for a label that no row has."""
        labels = np.unique(data.y)
        names = [str(value) for value in (data.classes or {}).get("values") or map(label_text, labels.tolist())]
        for name, _ in self.class_weights:
            if name not in names:
                raise DataError(
                    f"{data.name}: no row has the label {name!r} of {opt.class_weights}{nearest(name, names)}"
                )
        return tuple((float(labels[names.index(name)]), weight) for name, weight in self.class_weights)


def is_table(path: str) -> bool:
    """True for the name of a table; LIBSVM text has any other."""
    name = path.lower()
    for suffix in COMPRESSED:
        name = name.removesuffix(suffix)
    return name.endswith(SUFFIXES)


def training_rows(
    path: str, options: TableOptions, seed: int, shifts: bool, note: Callable[[str], None], jobs: int = 1,
    budget: Budget = UNBOUNDED,
) -> Dataset:  # fmt: skip
    """Read a table and encode it.

    Parameters
    ----------
    path, options : the file, and what the user says of it.
    seed, shifts : of the folds of target statistics; whether features may have origins.
    note : called with messages on what was found.
    jobs, budget : threads, and memory; the rows do not depend on them.

    Raises
    ------
    DataError : a mistake in the file, rows without a label, or no column of features.
    RunError : the rows do not fit into the memory.
    """
    table, layout, label = _table_of(path, options, note, jobs, budget)
    if options.drops:
        table = _labelled(table, label, path, note)
    y, classes = _labels(table.levels[label], label, path)
    no_features = {label, *options.ids, options.weight, *options.form.ignored}
    known = table.numbers.keys() | table.levels.keys()
    chosen = _said(table, [name for name in layout.names if name in known and name not in no_features], note)
    if not chosen:
        raise DataError(f"{path}: no column is a feature: beside {label!r} all are ignored, or have one value only")
    codes = np.unique(y, return_inverse=True)[1].reshape(-1)
    encoding, X = Encoding.fit(table, chosen, codes, seed)
    if X.shape[1] > MOST_COLUMNS:
        raise DataError(f"{path}: {X.shape[1]:,} features; a table may have {MOST_COLUMNS:,}. Ignore some columns")
    rows, shift = from_array(X, shifts)
    weight = None if options.weight is None else _factors(table, options.weight, path)
    kept = _kept(encoding, layout, label, {*chosen, label}, options)
    return Dataset(rows, y, classes=classes, shift=shift, weight=weight, table=kept, name=path)


def _table_of(
    path: str, options: TableOptions, note: Callable[[str], None], jobs: int, budget: Budget
) -> tuple[Table, TableLayout, str]:
    """The whole table, its layout, and the column of its labels."""

    def texts(names: tuple[str, ...], header: bool) -> set[str]:
        label = _label_of(options.label, names, header)
        return {*options.ids, *([] if label is None else [label])}

    with open_table(path, options.form, texts) as looked:
        names = looked.layout.names
        label = _label_column(options.label, looked)
        if not looked.layout.header:
            note(f"the table has no header; its columns are called 1 to {len(names)}, and {label} has the labels")
        check_named(options.ids, names, looked.name)
        if options.weight is not None:
            _check_weight(looked, options.weight)
        parts, held = [], 0
        for block in looked.blocks(jobs):
            parts.append(block)
            held += _bytes(block)
            budget.check(f"{looked.name}: its rows need", 2 * held)
        return together(parts), looked.layout, label


def _labelled(table: Table, label: str, path: str, note: Callable[[str], None]) -> Table:
    """The rows that have a label."""
    labelled = table.levels[label].codes >= 0
    if not labelled.any():
        raise DataError(f"{path}: no row has a label in {label!r}; name another column by {opt.label('NAME')}")
    if not labelled.all():
        note(f"{np.count_nonzero(~labelled):,} rows without a label are left out")
    return table.taken(labelled)


def _factors(table: Table, name: str, path: str) -> NDArray[np.float64]:
    """Weights (n,) of the rows."""
    factors = table.numbers[name]
    if np.isnan(factors).any():
        first = int(np.isnan(factors).argmax()) + 1
        raise DataError(f"{path}: row {first:,} has no weight in {name!r}; give it one")
    return factors


def _kept(
    encoding: Encoding, layout: TableLayout, label: str, wanted: set[str], options: TableOptions
) -> dict[str, Any]:
    """Description of the table that the model keeps: docs/model-format-groups.md."""
    pairs = zip(layout.names, layout.kinds, strict=True)
    return encoding.as_dict() | {
        "label": label,
        "ids": list(options.ids),
        "names": list(layout.names),
        "header": layout.header,
        "delimiter": layout.delimiter,
        "missing": list(layout.missing),
        "unscaled": encoding.unscaled,
        "kinds": {name: kind for name, kind in pairs if name in wanted},
    }


def _check_weight(reader: TableReader, name: str) -> None:
    layout = reader.layout
    check_named([name], layout.names, reader.name)
    if layout.kinds[layout.names.index(name)] != _csv.NUMBER:
        raise DataError(f"{reader.name}: column {name!r} has text, and weights are numbers; name another column")


def _label_of(asked: str | None, names: tuple[str, ...], header: bool) -> str | None:
    """Column of the labels; None where there is none."""
    if asked is not None:
        if asked in names:
            return asked
        return names[int(asked) - 1] if asked.isdecimal() and 1 <= int(asked) <= len(names) else None
    if not header:
        return names[0]
    lower = {name.lower(): name for name in reversed(names)}
    return next((lower[name] for name in LABELS if name in lower), None)


def _label_column(asked: str | None, reader: TableReader) -> str:
    names = reader.layout.names
    label = _label_of(asked, names, reader.layout.header)
    if label is not None:
        return label
    if asked is not None:
        check_named([asked], names, reader.name)
    raise DataError(f"{reader.name}: which column has the labels? Give {opt.label('NAME')}{nearest('', names)}")


def _bytes(table: Table) -> int:
    return table.rows * (8 * len(table.numbers) + 4 * len(table.levels))


def _labels(column: Levels, name: str, path: str) -> tuple[NDArray[np.float64], dict[str, Any] | None]:
    """Labels (n,) as numbers, and what these stand for; None where the labels are numbers themselves."""
    missing = np.flatnonzero(column.codes < 0)
    if len(missing):
        what = f"{len(missing):,} of {len(column.codes):,} rows have no label in {name!r}, first row {missing[0] + 1:,}"
        raise DataError(f"{path}: {what}; give {opt.drop_unlabelled}, or remove them")
    if all(NUMBER.fullmatch(text) for text in column.names):
        values = np.asarray([float(text) for text in column.names])
        if not np.isfinite(values).all():
            raise DataError(f"{path}: a label in {name!r} is beyond the largest float64; rescale the labels")
        return values[column.codes], None
    longest = max(map(len, column.names))
    return column.codes.astype(np.float64), {"dtype": f"<U{longest}", "values": list(column.names)}


def _said(table: Table, names: list[str], note: Callable[[str], None]) -> list[str]:
    """The columns that say something; notes name those that do not."""
    silent: dict[str, list[str]] = {}
    chosen = []
    for name in names:
        why = _why_left_out(table, name)
        if why:
            silent.setdefault(why, []).append(name)
        else:
            chosen.append(name)
    for why, columns in silent.items():
        shown = ", ".join(map(repr, columns[:SHOWN])) + (", ..." if len(columns) > SHOWN else "")
        one = len(columns) == 1
        note(f"{'column' if one else f'{len(columns):,} columns'} {shown}: {why}, {'is' if one else 'are'} left out")
    return chosen


def _why_left_out(table: Table, name: str) -> str:
    """Reason to leave a column out: it has one value, or it is text whose values all differ; "" for none."""
    if name in table.numbers:
        values = table.numbers[name]
        known = values[~np.isnan(values)]
        several = len(known) and (known.min() < known.max() or len(known) < len(values))
        return "" if several else "one value only"
    column = table.levels[name]
    if len(column.names) + bool((column.codes < 0).any()) < 2 or not column.names:
        return "one value only"
    return "a text of its own in each row, as an id has" if len(column.names) == table.rows > 2 else ""


def _encodable(words: list[str]) -> bool:
    try:
        "".join(words).encode()
    except UnicodeEncodeError:
        return False
    return True


@dataclass
class TableRows:
    """Rows of a table for a model that was trained on one; columns are matched by their names.

    Attributes
    ----------
    kept : what the model knows of its table.
    unknown : of the rows so far, how many values of each column are levels that training did not have.
    ids : of the rows so far, the texts of the columns that name them; who writes them takes them out.
    """

    kept: Mapping[str, Any]
    labels: NDArray[np.float64]
    classes: Mapping[str, Any] | None
    encoding: Encoding
    unknown: dict[str, int] = field(default_factory=dict)
    ids: list[tuple[str, ...]] = field(default_factory=list)

    @classmethod
    def of(cls, config: Mapping[str, Any], labels: NDArray[np.float64], width: int) -> TableRows | None:
        """The reader for a model with this config; None for one that was trained on LIBSVM text.

        width : number of features. Unsound where the config does not describe a table.
        """
        kept, classes = config.get("table"), config.get("classes")
        if kept is None:
            return None
        encoding = Encoding.from_dict(kept)
        texts = {"label": str, "delimiter": str, "header": bool, "ids": list, "names": list, "missing": list}
        sound = all(isinstance(kept.get(name), kind) for name, kind in texts.items())
        words = [each for name in ("ids", "names", "missing") for each in kept.get(name, [])] if sound else []
        kinds = kept.get("kinds")
        sound = sound and isinstance(kinds, dict) and all(type(kind) is int for kind in kinds.values())
        sound = sound and all(isinstance(word, str) for word in words) and len(kept["delimiter"].encode()) == 1
        expected = {c.name: _csv.NUMBER if isinstance(c, Number) else _csv.LEVEL for c in encoding.codings}
        sound = sound and all(kinds.get(name) == kind for name, kind in expected.items())
        values = None if classes is None else classes.get("values")
        sound = sound and (values is None or (isinstance(values, list) and len(values) == len(labels)))
        sound = sound and all(isinstance(value, (str, bool, int, float)) for value in values or ())
        sound = sound and not {kept["label"], *kept["ids"]} & expected.keys() and _encodable(words)
        sound = sound and kept["delimiter"] not in '"\r\n\0'
        if not sound or len(encoding.names) != width:
            raise Unsound("/@config: the option table does not fit the features and labels")
        return cls(kept, labels, classes, encoding)

    def blocks(self, path: str, jobs: int = 1) -> Iterator[Dataset]:
        """Encoded rows, block by block; the label of a row without one is nan.

        DataError where a column is absent or does not hold what it held in training.
        """
        kept, encoding = self.kept, self.encoding
        usual = kept["delimiter"] in DELIMITERS and is_table(path)  # then another one may be found
        form = TableForm(None if usual else kept["delimiter"], kept["header"], tuple(kept["missing"]))
        ids, label = list(kept["ids"]), str(kept["label"])
        known = kept["kinds"] | dict.fromkeys([label, *ids], _csv.LEVEL)
        with open_table(path, form, known=known) as reader:
            names = reader.layout.names
            if not kept["header"] and len(names) != len(kept["names"]):
                what = f"{len(names):,} columns, and the training table had {len(kept['names']):,}"
                raise DataError(
                    f"{reader.name}: {what}; without names in a header all have to be there, in their order"
                )
            check_named((coding.name for coding in encoding.codings), names, reader.name)
            for table in reader.blocks(jobs):
                self._note(table, encoding)
                y = self._labels(table.levels[label]) if label in table.levels else np.full(table.rows, np.nan)
                texts = [table.levels[name].texts() if name in table.levels else [""] * table.rows for name in ids]
                self.ids += list(zip(*texts, strict=True)) if texts else [()] * table.rows
                yield Dataset(encoding.apply(table), y, name=path)  # float64, see Chain.apply

    def _labels(self, column: Levels) -> NDArray[np.float64]:
        """Labels (n,); those that the model does not know become numbers that no class has."""
        names = (self.classes or {}).get("values")
        if names is None:
            values = [float(text) if NUMBER.fullmatch(text) else np.inf for text in column.names]
        else:
            number = dict(zip(names, self.labels.tolist(), strict=True))
            values = [number.get(text, np.inf) for text in column.names]
        return np.asarray([*values, np.nan])[column.codes]

    def _note(self, table: Table, encoding: Encoding) -> None:
        for coding in encoding.codings:
            if not isinstance(coding, Number):
                new = int(np.count_nonzero(table.levels[coding.name].coded(coding.levels) == -2))
                if new:
                    self.unknown[coding.name] = self.unknown.get(coding.name, 0) + new
