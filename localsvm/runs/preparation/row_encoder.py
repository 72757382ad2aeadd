"""What makes training rows of a table, block by block, once all of the table is known."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from localsvm.data.blocks.dataset import Dataset
from localsvm.data.blocks.shift import Shift
from localsvm.data.blocks.table import Table
from localsvm.data.readers.delimited import TableLayout
from localsvm.data.readers.faults import CHANGED
from localsvm.data.readers.origin import shifted
from localsvm.errors import DataError
from localsvm.features.encoding import Encoding
from localsvm.features.survey import RowFolds


@dataclass(frozen=True)
class RowEncoder:
    """Encoder of the rows of a table; pickle carries it.

    Attributes
    ----------
    name, label : of the file, for messages, and of the column of labels; None where rows of one kind have none.
    values : the label that each text stands for; None where the column has the values to predict.
    encoding, folds : what levels become, and of which rows their statistics are.
    shift : of the features; None for none.
    """

    name: str
    label: str | None
    values: Mapping[str, float] | None
    encoding: Encoding
    folds: RowFolds
    shift: Shift | None = None

    def labelled(self, tables: Iterable[Table]) -> Iterator[Table]:
        """The rows that have a label, of each block."""
        for table in tables:
            yield table.taken(has_label(table, self.label))

    def features(self, table: Table, first: int, group: NDArray[np.int64] | None = None) -> NDArray[np.float64]:
        """Features (n, d) of labelled rows. first : the number of the first one. group : (n,) of the rows."""
        return self.encoding.apply(table, self.folds.of(first, table.rows, group))

    def dataset(self, X: NDArray[np.float64], table: Table) -> Dataset:
        """The rows in float32, some columns from their origins. X : their features, which may be overwritten.

        DataError for a label that is new: the file changed since it was surveyed.
        """
        return Dataset(shifted(X, self.shift), self._labels(table), shift=self.shift, name=self.name)

    def _labels(self, table: Table) -> NDArray[np.float64]:
        if self.label is None:
            return np.ones(table.rows)
        if self.values is None:
            return table.numbers[self.label]
        column = table.levels[self.label]
        try:
            values = np.asarray([self.values[text] for text in column.names])
        except KeyError:
            raise DataError(CHANGED.format(path=self.name)) from None
        return values[column.codes]


def counting_column(layout: TableLayout, label: str | None) -> str | None:
    """The column that is read to count the rows with a label: that of the labels, else any; None where none is read."""
    return label if label is not None else next(iter(layout.wanted), None)


def has_label(table: Table, label: str | None) -> NDArray[np.bool_]:
    """Mask (n,) of the rows that have a label, or a value to predict, in this column; all where there is none."""
    if label is None:
        return np.ones(table.rows, np.bool_)
    if label in table.numbers:
        return ~np.isnan(table.numbers[label])
    return table.levels[label].codes >= 0
