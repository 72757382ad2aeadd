"""Tables as rows to predict: columns are matched by their names, and become the features of training."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from localsvm.data import _csv
from localsvm.data.blocks.dataset import Dataset
from localsvm.data.blocks.table import Levels, Table
from localsvm.data.readers.delimited import DELIMITERS, NUMBER, TableForm, check_named
from localsvm.data.readers.tables import (
    BINARY,
    TablePart,
    TableSource,
    by_suffix,
    format_of,
    is_libsvm,
    open_table,
    parts_of,
)
from localsvm.errors import DataError
from localsvm.features.encoding import Encoding, Number, unknown
from localsvm.store.pieces import Unsound


def _encodable(words: list[str]) -> bool:
    try:
        "".join(words).encode()
    except UnicodeEncodeError:
        return False
    return True


@dataclass
class TableNotes:
    """Notes on the rows of a table that is predicted.

    Attributes
    ----------
    unknown : how many values of each column are levels that training did not have.
    absent : columns that name rows, which the table does not have.
    """

    unknown: dict[str, int] = field(default_factory=dict)
    absent: set[str] = field(default_factory=set)

    def count(self, column: str, values: int) -> None:
        """Take note of values of a column that training did not have."""
        if values:
            self.unknown[column] = self.unknown.get(column, 0) + values

    def merge(self, other: TableNotes) -> None:
        """Take in the notes on other rows."""
        for column, values in other.unknown.items():
            self.count(column, values)
        self.absent |= other.absent


@dataclass(frozen=True)
class TableRows:
    """Rows of a table for a model that was trained on one; columns are matched by their names.

    Attributes
    ----------
    kept : what the model knows of its table.
    of_values : whether the column of labels has values.
    """

    kept: Mapping[str, Any]
    labels: NDArray[np.float64]
    classes: Mapping[str, Any] | None
    encoding: Encoding
    of_values: bool = False

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
        ties = kept.get("ties", [])
        sound = sound and isinstance(ties, list) and all(type(tie) is int for tie in ties) and len(ties) in (0, width)
        sound = sound and all(kinds.get(name) == kind for name, kind in expected.items())
        values = None if classes is None else classes.get("values")
        sound = sound and (values is None or (isinstance(values, list) and len(values) == len(labels)))
        sound = sound and all(isinstance(value, (str, bool, int, float)) for value in values or ())
        sound = sound and not {kept["label"], *kept["ids"]} & expected.keys() and _encodable(words)
        sound = sound and kept["delimiter"] not in '"\r\n\0'
        if not sound or len(encoding.names) != width:
            raise Unsound("/@config: the option table does not fit the features and labels")
        return cls(kept, labels, classes, encoding, "values" in config)

    @property
    def columns(self) -> list[str]:
        """Names of the columns that are features, in the order of the training table."""
        used = {coding.name for coding in self.encoding.codings}
        return [name for name in self.kept["names"] if name in used]

    def blocks(self, path: str, jobs: int, notes: TableNotes) -> Iterator[Dataset]:
        """Encoded rows of a file, block by block. DataError as of `opened`."""
        with self.opened(path) as source:
            yield from self.rows(source.blocks(jobs), path, notes)

    def parts(self, path: str, size: int) -> list[TablePart]:
        """A file in parts of about `size` bytes each, for `rows`. DataError as of `opened`."""
        with self.opened(path) as source:
            return parts_of(source, path, _kind_of(path), size)

    @contextmanager
    def opened(self, path: str) -> Iterator[TableSource]:
        """Open a file; a context manager.

        DataError where a column is absent or does not hold what it held in training.
        """
        kept, encoding = self.kept, self.encoding
        usual = kept["delimiter"] in DELIMITERS and by_suffix(path) is not None  # then another one may be found
        form = TableForm(
            None if usual else kept["delimiter"], kept["header"], tuple(kept["missing"]), kind=_kind_of(path)
        )  # fmt: skip
        texts = kept["ids"] if self.of_values else [kept["label"], *kept["ids"]]
        known = kept["kinds"] | dict.fromkeys(texts, _csv.LEVEL)
        with open_table(path, form, known=known) as reader:
            names = reader.layout.names
            if not kept["header"] and len(names) != len(kept["names"]):
                what = f"{len(names):,} columns, and the training table had {len(kept['names']):,}"
                raise DataError(
                    f"{reader.name}: {what}; without names in a header all have to be there, in their order"
                )
            if ":" in names[0] and is_libsvm(names[0].encode()):
                what = "this is LIBSVM text, and the model was trained on a table, whose columns have names"
                raise DataError(f"{reader.name}: {what}; give a table with such columns")
            check_named((coding.name for coding in encoding.codings), names, reader.name)
            yield reader

    def rows(self, tables: Iterable[Table], name: str, notes: TableNotes) -> Iterator[Dataset]:
        """Encoded rows, block by block; the label of a row without one is nan. name : of the file."""
        ids, label = list(self.kept["ids"]), str(self.kept["label"])
        for table in tables:
            for coding in self.encoding.codings:
                notes.count(coding.name, unknown(coding, table))
            notes.absent |= {each for each in ids if each not in table.levels}
            if label in table.levels:
                y = self._labels(table.levels[label])
            else:
                y = table.numbers.get(label, np.full(table.rows, np.nan))
            texts = [table.levels[each].texts() if each in table.levels else [""] * table.rows for each in ids]
            try:
                X = self.encoding.apply(table)  # float64, see Chain.apply
            except DataError as error:
                raise DataError(f"{name}: {error}") from error
            yield Dataset(X, y, name=name, ids=list(zip(*texts, strict=True)) if texts else None)

    def _labels(self, column: Levels) -> NDArray[np.float64]:
        """Labels (n,); those that the model does not know become numbers that no class has."""
        names = (self.classes or {}).get("values")
        if names is None:
            values = [float(text) if NUMBER.fullmatch(text) else np.inf for text in column.names]
        else:
            texts = map(str, names)  # of a model fitted in Python they may be truth values
            number = dict(zip(texts, self.labels.tolist(), strict=True))
            values = [number.get(text, np.inf) for text in column.names]
        return np.asarray([*values, np.nan])[column.codes]


def _kind_of(path: str) -> str:
    """Format of a file that is a table."""
    kind = format_of(path)
    return kind if kind in BINARY else "csv"
