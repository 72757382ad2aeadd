"""The rows of a table that take part: those with a label, and without the weight 0; their weights and groups."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from localsvm.data.blocks.table import Table
from localsvm.data.readers.faults import CHANGED
from localsvm.data.readers.groups import check_groups, group_lines
from localsvm.data.readers.weights import ALLOWED, check_lines, check_weights, left_out_text, weight_lines
from localsvm.errors import DataError
from localsvm.naming import opt
from localsvm.runs.preparation.row_encoder import has_label

Mask = NDArray[np.bool_]


class UsedRows:
    """The rows that take part, found block by block.

    A row without a label, or of weight 0, is as one that is not in the file: encodings, folds and groups do not see it.

    Parameters
    ----------
    name : of the table, for messages.
    label : the column of the labels; None where rows have none.
    weight, group : columns of the rows' weights and groups; None where they have none.
    drops : whether rows without a label are left out; else they are refused.
    weights, groups : files of the rows' weights and groups.

    Attributes
    ----------
    weight, group : (n,) of the rows that take part, after `settle`; None where they have none.
    """

    def __init__(
        self, name: str, label: str | None, weight: str | None, group: str | None, drops: bool,
        weights: str | Path | None = None, groups: str | Path | None = None,
    ) -> None:  # fmt: skip
        self._name, self._label, self._columns, self._drops = name, label, (weight, group), drops
        self._weights = None if weights is None else weight_lines(weights)
        self._groups = None if groups is None else group_lines(groups)
        self._kept, self._factors, self._numbers = list[Mask](), list[NDArray[np.float64]](), list[NDArray[np.int64]]()
        self._place: dict[Hashable, int] = {}
        self._seen = self._unlabelled = self._weightless = 0
        self.weight: NDArray[np.float64] | None = None
        self.group: NDArray[np.int64] | None = None

    def count(self, blocks: Iterable[Table]) -> int:
        """Number of the rows that take part, of blocks that have the columns of labels and weights."""
        rows = first = 0
        for whole in blocks:
            labelled, there, _ = self._of(whole, first)
            rows, first = rows + int(np.count_nonzero(labelled & there)), first + whole.rows
        return rows

    def taken(self, whole: Table) -> tuple[Table, NDArray[np.int64] | None]:
        """The rows of the next block that take part, and their groups. DataError for a row that lacks something."""
        first, self._seen = self._seen, self._seen + whole.rows
        labelled, there, weight = self._of(whole, first)
        if not self._drops:
            what = f"has no label in {self._label!r}; if such rows are to be left out, give {opt.drop_unlabelled}; else"
            self._refuse(first, there & ~labelled, f"{what} name another column by {opt.label('NAME')}")
        kept = labelled & there
        if weight is not None:
            column = self._columns[0]
            self._refuse(first, kept & np.isnan(weight), f"has no weight in {column!r}; give it one")
            what = f"has a weight in {column!r} that is negative or not finite; {ALLOWED}"
            self._refuse(first, kept & ~((weight >= 0.0) & np.isfinite(weight)), what)
            self._factors.append(weight[kept])
        self._unlabelled += int(np.count_nonzero(there & ~labelled))
        self._weightless += int(np.count_nonzero(~there))
        self._kept.append(kept)
        return whole.taken(kept), self._group(whole, kept, first)

    def again(self, blocks: Iterable[Table]) -> Iterator[Table]:
        """The rows that take part, when all blocks are read once more. DataError where the table has other rows now."""
        kept, first = np.concatenate(self._kept), 0
        for whole in blocks:
            some = kept[first : first + whole.rows]
            first += whole.rows
            if len(some) < whole.rows:
                raise DataError(CHANGED.format(path=self._name))
            yield whole.taken(some)
        if first < len(kept):
            raise DataError(CHANGED.format(path=self._name))

    def settle(self, note: Callable[[str], None]) -> None:
        """Check and note what all blocks together say. DataError where no row takes part, or files have other rows."""
        for lines in (self._weights, self._groups):
            if lines is not None:
                check_lines(lines, self._seen)
        name, group = self._name, self._columns[1]
        if self._seen == self._unlabelled + self._weightless:
            if self._weightless and not self._unlabelled:
                check_weights(np.zeros(self._seen), self._seen, self._weights.name if self._weights else name)
            what = f"no row has a label in {self._label!r}; name another column by {opt.label('NAME')}"
            raise DataError(f"{name}: {what}")
        if self._unlabelled:
            one = self._unlabelled == 1
            note(f"{self._unlabelled:,} row{'' if one else 's'} without a label {'is' if one else 'are'} left out")
        if self._weightless:
            note(left_out_text(self._weightless, self._seen - self._unlabelled))
        self.weight = np.concatenate(self._factors) if self._factors else None
        if self._numbers:
            where = f"{name}: column {group!r}" if self._groups is None else self._groups.name
            self.group = check_groups(np.concatenate(self._numbers), where)

    def _of(self, whole: Table, first: int) -> tuple[Mask, Mask, NDArray[np.float64] | None]:
        """Masks of the rows of a block that have a label, and that have no weight of 0; and all weights."""
        labelled, column = has_label(whole, self._label), self._columns[0]
        weight = None if column is None else whole.numbers[column]
        if self._weights is not None:
            weight = np.ones(whole.rows)  # beyond the last line, which `settle` tells
            some = self._weights.values[first : first + whole.rows]
            weight[: len(some)] = some
        return labelled, np.ones(whole.rows, np.bool_) if weight is None else weight != 0.0, weight

    def _group(self, whole: Table, kept: Mask, first: int) -> NDArray[np.int64] | None:
        """Groups of the rows of a block, numbered in the order of the rows, in any format."""
        column = self._columns[1]
        names: Sequence[Hashable]
        if column is not None:
            codes, names = whole.levels[column].codes, whole.levels[column].names
            what = f"has no group in {column!r}; give it one, of its own if need be"
            self._refuse(first, kept & (codes < 0), what)
        elif self._groups is not None:
            codes, some = np.zeros(whole.rows, np.int64), self._groups.values[first : first + whole.rows]
            codes[: len(some)], names = some, range(int(some.max(initial=0)) + 1)
        else:
            return None
        used, first_rows, of = np.unique(codes[kept], return_index=True, return_inverse=True)
        numbers = np.zeros(len(used), np.int64)
        for i in np.argsort(first_rows).tolist():
            numbers[i] = self._place.setdefault(names[used[i]], len(self._place))
        self._numbers.append(numbers[of])
        return self._numbers[-1]

    def _refuse(self, first: int, wrong: Mask, what: str) -> None:
        """Raise DataError for the first of such rows of a block, if there is one."""
        if wrong.any():
            raise DataError(f"{self._name}: row {first + int(wrong.argmax()) + 1:,} {what}")
