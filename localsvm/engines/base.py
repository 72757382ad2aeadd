"""The contract of engines: what a run asks of its rows, wherever they lie.

The same rows give the same bits on every engine. So what is learned of all rows is learned from blocks of a fixed
number of rows, and merged in a fixed order; samples are drawn by what a row is or by its number.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from localsvm.data.blocks.columns import Columns
from localsvm.data.blocks.dataset import Dataset, Examples, as_examples, between, rows_of
from localsvm.data.blocks.numbering import Hashes, contents, digest, hashed
from localsvm.data.blocks.shift import Shift
from localsvm.features.columns import KeptColumns
from localsvm.features.moments import Moments, merge
from localsvm.threads import Threads

BLOCK_VALUES = 1 << 16  # of a block of rows: what stays in the caches, ...
SOME_VALUES = 1 << 14  # whose quantiles stand for those of all values
LEAST = 4  # ... but at least so many a column: merging takes time of the columns
Vector = NDArray[np.float64]
Numbers = NDArray[np.int64]
Step = Callable[[Examples], Examples]  # what happens to rows, each by itself; dense ones may be overwritten
Route = Callable[[int, Numbers, Examples], NDArray[np.int32]]  # (repeat, numbers, rows) -> the coarse cell of each row
Event = tuple[int, str, dict[str, NDArray[Any]]]  # a coarse cell, the name of a record of it, and the record


@dataclass(frozen=True)
class Head:
    """Result of a first look at the rows.

    Attributes
    ----------
    name : of the file, for messages; "" for none.
    rows : how many there are, without those of weight 0.
    entries : values other than 0.
    columns, shift : the columns that are kept, and which of them are read from an origin.
    weighted, left_out : whether rows have weights, and how many have the weight 0.
    grouped : whether rows have groups.
    absent : how many of the columns that were asked for occur in no row.
    classes, table : what the labels stand for, and how a table became these rows; see Dataset.
    """

    name: str
    rows: int
    entries: int
    columns: KeptColumns
    shift: Shift | None
    weighted: bool = False
    left_out: int = 0
    absent: int = 0
    classes: dict[str, Any] | None = None
    table: dict[str, Any] | None = None
    grouped: bool = False

    @property
    def features(self) -> int:
        """Number of columns that are kept."""
        return self.columns.columns(self.columns.width)

    @property
    def row_values(self) -> int:
        """Number of values of a row, on average; zeros that are not stored are left out."""
        return self.features if self.columns.dense else -(-self.entries // max(1, self.rows))

    @property
    def block_rows(self) -> int:
        """Number of rows of a block of `Engine.reduce`."""
        return max(1, max(BLOCK_VALUES, LEAST * self.features) // max(1, self.row_values))


@dataclass(frozen=True)
class Block:
    """Consecutive rows, as they are read: origins subtracted, some columns left out.

    Attributes
    ----------
    first : the number of the first row.
    X, y : (n, d) and (n,).
    weight : (n,) above 0; None where rows have none.
    columns : which columns of the data X has; None for all.
    group : (n,) numbers of the rows' groups; None where rows have none.
    """

    first: int
    X: Examples
    y: Vector
    weight: Vector | None = None
    columns: Columns | None = None
    group: Numbers | None = None

    @property
    def numbers(self) -> Numbers:
        """Numbers (n,) of the rows."""
        return np.arange(self.first, self.first + len(self.y))

    @cached_property
    def contents(self) -> Hashes:
        """Hash (n,) of the values of each row."""
        return contents(self.X, self.columns)

    def between(self, first: int, last: int) -> Block:
        """Block of the rows with the numbers first .. last - 1."""
        part = slice(first - self.first, last - self.first)
        weight = None if self.weight is None else self.weight[part]
        group = None if self.group is None else self.group[part]
        return Block(first, between(self.X, part.start, part.stop), self.y[part], weight, self.columns, group)

    def rows(self, chosen: NDArray[np.intp]) -> Drawn:
        """Some of the rows, by their places in the block."""
        weight = None if self.weight is None else self.weight[chosen]
        group = None if self.group is None else self.group[chosen]
        return Drawn(self.first + chosen, rows_of(self.X, chosen), self.y[chosen], weight, group)


class Drawn(NamedTuple):
    """Some rows: their numbers (n,), X (n, d), y (n,), and their weights and groups if they have any."""

    numbers: Numbers
    X: Examples
    y: Vector
    weight: Vector | None = None
    group: Numbers | None = None

    def through(self, step: Step) -> Drawn:
        """The rows after a step."""
        return self._replace(X=step(self.X))

    def at(self, places: NDArray[np.intp]) -> Drawn:
        """Some of the rows, by their places."""
        weight = None if self.weight is None else self.weight[places]
        group = None if self.group is None else self.group[places]
        return Drawn(self.numbers[places], rows_of(self.X, places), self.y[places], weight, group)

    @property
    def dataset(self) -> Dataset:
        """Data set of the rows, without their numbers."""
        return Dataset(self.X, self.y, weight=self.weight, group=self.group)


class CoarseRows(NamedTuple):
    """The rows of a coarse cell in the order of their numbers, after all steps: see `Drawn`."""

    coarse: int
    rows: Drawn


class Statistic(Protocol):
    """Statistic of all rows, learned from blocks of rows."""

    def of(self, block: Block) -> Any:
        """Value of the statistic for a block."""

    def merge(self, a: Any, b: Any) -> Any:
        """Value for two stretches of rows together, the rows of b after those of a."""


class Labels:
    """Number of rows, and their weights summed, of each label: dictionaries of the labels."""

    def of(self, block: Block) -> dict[float, tuple[int, float]]:
        """Count the rows of each label in a block, and sum their weights."""
        y, weight = block.y, block.weight
        if weight is not None and not weight.all():
            y, weight = y[weight > 0], weight[weight > 0]
        labels, code, rows = np.unique(y, return_inverse=True, return_counts=True)
        mass = np.bincount(code.reshape(-1), weight, len(labels))
        return {label: (int(n), float(m)) for label, n, m in zip(labels.tolist(), rows, mass.tolist(), strict=True)}

    def merge(self, a: dict[float, tuple[int, float]], b: dict[float, tuple[int, float]]) -> Any:
        """Add up the numbers and weights of each label."""
        nothing = (0, 0.0)
        pairs = {label: (a.get(label, nothing), b.get(label, nothing)) for label in a.keys() | b.keys()}
        return {label: (first[0] + more[0], first[1] + more[1]) for label, (first, more) in pairs.items()}


class ValueMoments(NamedTuple):
    """The number of some rows, the weight of their values, mean, squared deviations, the least and the largest one.

    some (k, 2) : the values and the weights of rows that are drawn by their numbers alone, about one in so many.
    units (k,) : groups of these rows, or hashes of what they have in their columns: equal ones are held out together.
    """

    rows: int
    mass: float
    mean: float
    squares: float
    low: float
    high: float
    some: NDArray[np.float64]
    units: NDArray[np.uint64]


class ValueStatistic:
    """Statistic of the values of so many rows, which are to be predicted: their `ValueMoments`."""

    def __init__(self, rows: int) -> None:
        self._step = -(-rows // SOME_VALUES)

    def of(self, block: Block) -> ValueMoments:
        """Moments of the values of a block."""
        weight = np.ones(len(block.y)) if block.weight is None else block.weight
        # rows at even distances would be of one kind where a file goes through its kinds in turn
        drawn = np.flatnonzero((hashed(block.numbers, 0) % np.uint64(self._step) == 0) & (weight > 0))
        rows = block.rows(drawn)
        some = np.column_stack([rows.y, weight[drawn]])
        units = contents(rows.X, block.columns) if rows.group is None else rows.group.view(np.uint64)
        y, weight = block.y[weight > 0], weight[weight > 0]
        if not len(y):
            return ValueMoments(0, 0.0, 0.0, 0.0, np.inf, -np.inf, some, units)
        mass = float(weight.sum())
        with np.errstate(over="ignore"):  # such values are refused later
            mean = float(y @ weight / mass)
            squares = float(np.square(y - mean) @ weight)
            return ValueMoments(len(y), mass, mean, squares, float(y.min()), float(y.max()), some, units)

    def merge(self, a: ValueMoments, b: ValueMoments) -> ValueMoments:
        """Moments of the values of both (Chan, Golub and LeVeque 1979)."""
        mass = a.mass + b.mass
        share, apart = (b.mass / mass, b.mean - a.mean) if mass else (0.0, 0.0)
        squares = a.squares + b.squares + apart * apart * share * a.mass
        some, units = np.concatenate([a.some, b.some]), np.concatenate([a.units, b.units])
        ends = min(a.low, b.low), max(a.high, b.high)
        return ValueMoments(a.rows + b.rows, mass, a.mean + share * apart, squares, *ends, some, units)


class Digest:
    """Sums modulo 2^64 of hashes: of rows with their labels and numbers, and of their weights and groups with these."""

    def of(self, block: Block) -> tuple[int, int, int]:
        """Digests of the rows of a block, of their weights, and of their groups."""
        zeros = np.zeros(len(block.y))
        weights = 0 if block.weight is None else digest(block.weight.view(np.uint64), zeros, block.first)
        groups = 0 if block.group is None else digest(block.group.view(np.uint64), zeros, block.first)
        return digest(block.contents, block.y, block.first), weights, groups

    def merge(self, a: tuple[int, int, int], b: tuple[int, int, int]) -> tuple[int, int, int]:
        """Add up the digests."""
        return (a[0] + b[0]) % (1 << 64), (a[1] + b[1]) % (1 << 64), (a[2] + b[2]) % (1 << 64)


class Spread:
    """Statistic of the columns: their `Moments`."""

    def of(self, block: Block) -> Moments:
        """Moments of the columns of a block."""
        return Moments.of(block.X)

    def merge(self, a: Moments, b: Moments) -> Moments:
        """Moments of the columns of both."""
        return merge(a, b)


@dataclass(frozen=True)
class Sample:
    """Statistic of rows that are drawn. chosen: gives the rows of a block that are drawn, (n,) bool."""

    chosen: Callable[[Block], NDArray[np.bool_]]

    def of(self, block: Block) -> list[Drawn]:
        """Rows that are drawn from a block: a list of parts, for `together`."""
        return [block.rows(np.flatnonzero(self.chosen(block)))]

    def merge(self, a: list[Drawn], b: list[Drawn]) -> list[Drawn]:
        """Parts of both, in their order."""
        return a + b


def together(parts: Sequence[Drawn]) -> Drawn:
    """Rows of all parts, one part after the other."""
    weights = [part.weight for part in parts if part.weight is not None]
    groups = [part.group for part in parts if part.group is not None]
    return Drawn(
        np.concatenate([part.numbers for part in parts]),
        joined([part.X for part in parts]),
        np.concatenate([part.y for part in parts]),
        np.concatenate(weights) if weights else None,
        np.concatenate(groups) if groups else None,
    )


def joined(X: Sequence[Examples]) -> Examples:
    """Rows of all of them, one after the other, dense or CSR as they are."""
    if len(X) == 1:
        return X[0]
    if isinstance(X[0], np.ndarray):
        return np.concatenate(X)
    return as_examples(sparse.vstack(X, format="csr"))


class InOrder:
    """Merger of statistics of numbered blocks, by a binary tree over their numbers: who merges which does not matter.

    Parameters
    ----------
    statistics : those that are merged.
    """

    def __init__(self, statistics: Sequence[Statistic]) -> None:
        self._statistics = statistics
        self._nodes: dict[tuple[int, int], list[Any]] = {}

    def add(self, block: Block, number: int) -> None:
        """Take in a block."""
        self.put((0, number), [statistic.of(block) for statistic in self._statistics])

    def put(self, node: tuple[int, int], values: list[Any]) -> None:
        """Take in the values of a node, from the `nodes` of another. node: its level and its number there."""
        level, number = node
        while (other := self._nodes.pop((level, number ^ 1), None)) is not None:
            values = self._merged(values, other) if number % 2 == 0 else self._merged(other, values)
            level, number = level + 1, number // 2
        self._nodes[level, number] = values

    @property
    def nodes(self) -> dict[tuple[int, int], list[Any]]:
        """Values that are merged as far as they can be, by the level and the number of their node."""
        return self._nodes

    def result(self) -> list[Any]:
        """Values of all blocks together, of which none is missing."""
        first, *others = sorted(self._nodes, key=lambda node: node[1] << node[0])
        values = self._nodes[first]
        for node in others:
            values = self._merged(values, self._nodes[node])
        return values

    def _merged(self, a: list[Any], b: list[Any]) -> list[Any]:
        return [s.merge(x, y) for s, x, y in zip(self._statistics, a, b, strict=True)]


class CoarseRouting(Protocol):
    """Routing of rows to their coarse cells: the part of `runs.cells.coarse.CoarseCells` that an engine uses."""

    by_repeat: list[range]  # the numbers of the coarse cells of each repeat
    route: Route | None  # None where all rows are one coarse cell, in each repeat


class Trainer(Protocol):
    """Work on the rows of coarse cells; pickle carries it."""

    def records(self, coarse: Iterable[CoarseRows], resources: Any = None, finished: Any = None) -> Generator[Event]:
        """Records of the cells of coarse cells as they finish, after them that of the coarse cell.

        resources, finished : what the work may use, on this machine, and what of it is done already.
        """


class Engine(Protocol):
    """Holder of the rows of a run, which does the work where they lie.

    Attributes
    ----------
    name : of the input, for messages.
    threads : of this process; the run that takes the engine sets them, and results do not depend on them.
    """

    name: str
    threads: Threads

    def head(self, columns: KeptColumns | None = None, all_rows: bool = False) -> Head:
        """Take the first look at the rows.

        Parameters
        ----------
        columns : those that are to be kept; None for those in which some row is not 0.
        all_rows : whether rows of weight 0 stay.
        """

    def reduce(self, statistics: Sequence[Statistic]) -> list[Any]:
        """Value of each statistic for all rows, as they are read; one pass over them."""

    def through(self, step: Step) -> None:
        """Add a step, through which rows go from now on, too. DataError where they cannot."""

    def work(
        self, cells: CoarseRouting, trainer: Trainer, wanted: Sequence[int], resources: Any, finished: Any
    ) -> Generator[Event]:
        """Events of the work of a trainer on some coarse cells, as they finish; see `Trainer`."""

    def in_memory(self) -> Engine:
        """Engine with all rows in the memory of this process, as they are read."""
