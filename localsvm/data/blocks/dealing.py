"""Dealing rows out: to folds, to the two sides of a draw. Copies of a row, and the rows of a group, go together."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.int64]


class Mates(NamedTuple):
    """Rows that stay together wherever some rows are held out.

    Attributes
    ----------
    number : (n,) int64 that the rows of a group, or equal rows, have in common.
    whole : whether a group stays together however large it is. Equal rows do not: where there are more of them than a
        fold has room for, each is dealt out by itself.
    """

    number: Numbers
    whole: bool = False

    def of(self, rows: NDArray[np.integer] | slice) -> Mates:
        """Mates among some of the rows."""
        return self._replace(number=self.number[rows])

    def numbered(self, most: int) -> Numbers:
        """Numbers (n,) from 0 of what stays together; `most`: rows that there is room for."""
        if not self.whole:
            return taken_apart(self.number, most)
        return np.unique(self.number, return_inverse=True)[1].reshape(-1).astype(np.int64)


def taken_apart(groups: Numbers, most: int) -> Numbers:
    """Numbers (n,) int64, from 0, of the groups of rows; groups of more than `most` rows fall apart into single rows.

    groups : (n,) the group of each row.

    What many rows have in common is a frequent value: each of the rows counts by itself, and no fold has room for all.
    """
    numbers, rows = np.unique(groups, return_inverse=True, return_counts=True)[1:]
    numbers = numbers.reshape(-1).astype(np.int64)
    large = rows[numbers] > most
    numbers[large] = len(rows) + np.arange(np.count_nonzero(large))
    apart: Numbers = np.unique(numbers, return_inverse=True)[1].reshape(-1).astype(np.int64)
    return apart


def first_rows(order: Numbers, count: int, mates: Mates | None) -> Numbers:
    """The first rows of a random order of all, about `count` of them: of rows that stay together, all or none.

    Parameters
    ----------
    count : below the number of rows.
    mates : which rows stay together; None where none do, and then exactly `count` are taken.
    """
    if mates is None or count == 0:
        return order[:count]
    group = mates.numbered(min(count, len(order) - count))
    group_of_row = group[order]
    if mates.whole:  # the turn of one row of each group, else large groups would come first
        place = np.empty(len(order), np.int64)
        place[order] = np.arange(len(order))
        turn = place[np.unique(group, return_index=True)[1]][group_of_row]
    else:
        first, number = np.unique(group_of_row, return_index=True, return_inverse=True)[1:]
        turn = first[number.reshape(-1)]  # that of the first row of its group
    together = np.argsort(turn, kind="stable")
    ends = np.flatnonzero(np.diff(turn[together], append=-1)) + 1  # of groups, so many rows are before them
    taken = max(0, int(np.searchsorted(ends, count, side="right")) - 1)  # the first group, however large it is
    return order[together[: ends[taken]]]


def folds_of_groups(y: NDArray[np.float64], n_folds: int, rng: np.random.Generator, mates: Mates) -> Numbers:
    """Fold (n,) int64 that holds out each row; those that stay together are in one fold.

    Groups are dealt out by the label that most of their rows have, the largest ones first, each to the fold with the
    fewest rows of that label, and then the fewest rows. Of single rows this makes stratified folds.

    Parameters
    ----------
    y : (n,) labels.
    n_folds : at least 1; there are fewer where there are fewer groups.
    mates : which rows stay together.
    """
    group_of_row = mates.numbered(-(-len(y) // n_folds))
    labels, code = np.unique(y, return_inverse=True)
    size = np.bincount(group_of_row)
    dealer = _Dealer(min(n_folds, len(size)), len(labels))
    pairs, rows = np.unique(group_of_row * len(labels) + code.reshape(-1), return_counts=True)
    group, label = np.divmod(pairs, len(labels))
    leading = np.lexsort((label, -rows, group))
    leading = leading[np.diff(group[leading], prepend=-1) > 0]  # the largest pair of each group
    chance = rng.permutation(len(size))
    order = np.lexsort((chance, -rows[leading], -size, label[leading]))
    kind = np.stack([label[leading], size, rows[leading]])[:, order]
    starts = np.flatnonzero(np.append(True, np.diff(kind).any(axis=0)))
    first = np.append(np.searchsorted(group, np.arange(len(size))), len(group))
    fold = np.empty(len(size), np.int64)
    for batch in np.split(order, starts[1:]):
        one = batch[0]
        fold[batch] = dealer.deal(len(batch), int(label[leading[one]]), int(size[one]), int(rows[leading[one]]))
        for place in range(int(np.diff(first)[batch].max())):  # pairs of a group, label by label
            at = first[batch] + place
            have = at < first[batch + 1]
            dealer.put(fold[batch[have]], label[at[have]], rows[at[have]])
    return fold[group_of_row]


class _Dealer:
    """Dealer of groups to folds. It counts the rows of each label in each fold."""

    def __init__(self, n_folds: int, labels: int) -> None:
        self._rows = np.zeros((n_folds, labels), np.int64)

    def deal(self, count: int, label: int, size: int, rows: int) -> Numbers:
        """The folds of so many groups of `size` rows, of which `rows` have the label; `put` adds them."""
        have, total = self._rows[:, label], self._rows.sum(axis=1)
        most = count // len(have) + 3 + int(have.max() - have.min()) // rows  # that a fold may be given
        step, fold = np.divmod(np.arange(most * len(have)), len(have))
        turn = np.lexsort((fold, total[fold] + step * size, have[fold] + step * rows))
        return fold[turn[:count]]

    def put(self, folds: Numbers, labels: Numbers, rows: Numbers) -> None:
        """Add so many rows of these labels to these folds."""
        np.add.at(self._rows, (folds, labels), rows)


def renumbered(groups: NDArray[Any]) -> NDArray[np.int64]:
    """Numbers (n,) of groups in the order in which they come: those of some rows are what a file of these has."""
    _, first, of = np.unique(groups, return_index=True, return_inverse=True)
    return np.asarray(np.argsort(np.argsort(first))[of.reshape(-1)], np.int64)
