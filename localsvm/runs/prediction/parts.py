"""Prediction on many machines: the rows of a text or a table in parts, each by whoever holds it, as on one machine."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from io import StringIO
from typing import Any, NamedTuple, Protocol, Self

import numpy as np

from localsvm.data.blocks.dataset import Dataset
from localsvm.data.readers.faults import EMPTY, NO_ROWS
from localsvm.data.readers.tables import TablePart
from localsvm.engines.text_parts import another_level, lined
from localsvm.errors import DataError
from localsvm.kernels._kernels import LEVELS, simd_level
from localsvm.runs.predict import IndexBase, LocalModel, Predicted, Score
from localsvm.runs.prediction.table_rows import TableNotes
from localsvm.runs.prediction.value_scores import ValueScore
from localsvm.targets.base import Target
from localsvm.targets.classification import Classification
from localsvm.targets.regression import Regression


class PartedInput(Protocol):
    """A text or a table in parts, on many machines; see `parallel.spark.Text`. A part has pieces, by its `Rows`."""

    name: str

    def each(self, work: Callable[[int, Iterator[Any]], Any]) -> list[Any]:
        """Results of `work` on the number and the pieces of each part, in the order of the parts."""

    def in_order(self, work: Callable[[int, Iterator[Any]], Any]) -> Generator[Any]:
        """Yield the results of `work`, part by part, with few of them in memory."""


class Writer(Protocol):
    """Writes predictions as text."""

    def write(self, block: Predicted) -> None: ...


class Place(NamedTuple):
    """Numbers of lines and rows."""

    lines: int = 0
    rows: int = 0

    def after(self, other: Place) -> Place:
        """Both numbers together."""
        return Place(self.lines + other.lines, self.rows + other.rows)


BEGINNING = Place()


@dataclass
class Collected:
    """Record of what is said of rows beside their predictions: how right these are, and notes on the file."""

    score: Score | ValueScore
    indices: IndexBase
    notes: TableNotes

    @classmethod
    def of(cls, model: LocalModel, zero_based: bool | None) -> Self:
        """Record of no rows. zero_based : what the user says of the file; None for what was true in training."""
        return cls(score_of(model.target), IndexBase(model, zero_based), TableNotes())

    def merge(self, other: Collected) -> None:
        """Take in what is said of other rows."""
        self.score.merge(other.score)  # type: ignore[arg-type]  # both are of one model
        self.indices.merge(other.indices)
        self.notes.merge(other.notes)


def score_of(target: Target) -> Score | ValueScore:
    """Running score of no rows."""
    if isinstance(target, Regression):
        one = np.zeros(target.answers)
        return ValueScore(target, 0, one, one, np.zeros((5, target.answers)), one)
    assert isinstance(target, Classification)
    return Score(target)


class Rows(Protocol):
    """Reader of the rows of a part."""

    def blocks(
        self, model: LocalModel, part: int, pieces: Iterable[Any], before: Place, said: Collected
    ) -> Iterator[Dataset]:
        """The rows, block by block. before : the lines and rows before the part, for messages."""

    def size(self, part: int, pieces: Iterable[Any]) -> Place:
        """Numbers of lines and rows."""


@dataclass(frozen=True)
class TextRows:
    """Rows of LIBSVM text, whose pieces are bytes. name, zero_based : of the text."""

    name: str
    zero_based: bool

    def blocks(
        self, model: LocalModel, part: int, pieces: Iterable[bytes], before: Place, said: Collected
    ) -> Iterator[Dataset]:
        """The rows; see `Rows`."""
        text = lined(self.name, self.zero_based, before.lines, part, iter(pieces))
        return said.indices.seen(model.parse(text, said.indices.count))

    def size(self, part: int, pieces: Iterable[bytes]) -> Place:
        """Numbers of lines and rows."""
        counts = [piece.count() for piece in lined(self.name, self.zero_based, 0, part, iter(pieces))]
        return Place(sum(each.lines for each in counts), sum(each.rows for each in counts))


@dataclass(frozen=True)
class TablePartRows:
    """Rows of a table, whose pieces are parts that know their lines. name : of the file."""

    name: str

    def blocks(
        self, model: LocalModel, part: int, pieces: Iterable[TablePart], before: Place, said: Collected
    ) -> Iterator[Dataset]:
        """The rows; see `Rows`."""
        assert model.table is not None, "only such a model gets parts of tables"
        return model.table.rows((table for piece in pieces for table in piece.blocks()), self.name, said.notes)

    def size(self, part: int, pieces: Iterable[TablePart]) -> Place:
        """Number of rows."""
        return Place(0, sum(table.rows for piece in pieces for table in piece.blocks()))


class Answer(NamedTuple):
    """Predictions of a part as text, what is said of its rows, and how many there are."""

    text: str
    said: Collected
    rows: int


@dataclass(frozen=True)
class Prediction:
    """Work that is done on each part.

    Attributes
    ----------
    rows : reader of the rows of a part.
    model : says where the model is on the machine that asks.
    writer : makes a `Writer` of a text file and the model's target; header: of the first part.
    zero_based, probability, coverage, false_alarm : as `lsvm-predict` has them.
    level : the SIMD level that all machines have to have: that of this one.
    before : the lines and rows before the part, for messages.
    """

    rows: Rows
    model: Callable[[], str]
    writer: Callable[..., Writer]
    zero_based: bool | None
    probability: bool
    coverage: float | None = None
    false_alarm: float | None = None
    level: str = field(default_factory=lambda: LEVELS[simd_level()])
    before: Place = BEGINNING

    def __call__(self, part: int, pieces: Iterator[Any]) -> Answer:
        if (ours := LEVELS[simd_level()]) != self.level:
            raise another_level(ours, self.level)
        model = _opened(self.model())
        if self.false_alarm is not None:
            model.keep(self.false_alarm)
        said = Collected.of(model, self.zero_based)
        out, rows = StringIO(), 0
        writer = self.writer(out, model.target, header=part == 0)
        blocks = self.rows.blocks(model, part, pieces, self.before, said)
        for block in model.predict_blocks(blocks, self.probability, self.before.rows + 1, self.coverage):
            writer.write(block)
            said.score.add(block)
            rows += len(block.y)
        return Answer(out.getvalue(), said, rows)


@lru_cache(maxsize=1)
def _opened(path: str) -> LocalModel:
    """The model, which stays open for further parts of this process."""
    return LocalModel(path)


def predict_parts(parts: PartedInput, task: Prediction, said: Collected) -> Iterator[str]:
    """The predictions of each part as text, in the order of the parts. said : takes in what they say.

    Raises
    ------
    DataError : for a mistake in the text, with its place, or a text without rows. RunError : of the machines.
    """
    done = rows = 0
    try:
        for answer in parts.in_order(task):
            done += 1
            rows += answer.rows
            said.merge(answer.said)
            yield answer.text
    except DataError:  # its place is counted from the beginning of the part
        before = BEGINNING
        for size in parts.each(task.rows.size)[:done]:
            before = before.after(size)
        parts.each(partial(only, replace(task, before=before), done))
        raise
    if not rows:
        lines = sum(size.lines for size in parts.each(task.rows.size))
        raise DataError((NO_ROWS if lines else EMPTY).format(path=parts.name))


def only(task: Prediction, wanted: int, part: int, pieces: Iterator[Any]) -> None:
    """Do the task on the part of the number `wanted` alone."""
    if part == wanted:
        task(part, pieces)
