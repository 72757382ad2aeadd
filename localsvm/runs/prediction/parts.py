"""Prediction on many machines: the rows of a text in parts, each by whoever holds it, with the code of one machine."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from io import StringIO
from typing import Any, NamedTuple, Protocol

from localsvm.data.readers.faults import EMPTY, NO_ROWS
from localsvm.engines.text_parts import Pieces, another_level, lined
from localsvm.errors import DataError
from localsvm.kernels._kernels import LEVELS, simd_level
from localsvm.runs.predict import IndexBase, LocalModel, Predicted, Score


class WritableText(Protocol):
    """A text in parts, on many machines; see `parallel.spark.Text`."""

    name: str

    def each(self, work: Callable[[int, Iterator[bytes]], Any]) -> list[Any]:
        """Results of `work` on the number and the pieces of each part, in the order of the parts."""

    def in_order(self, work: Callable[[int, Iterator[bytes]], Any]) -> Generator[Any]:
        """Yield the results of `work`, part by part, with few of them in memory."""


class Writer(Protocol):
    """Writes predictions as text."""

    def write(self, block: Predicted) -> None: ...


class Place(NamedTuple):
    """Numbers of lines and rows."""

    lines: int = 0
    rows: int = 0


BEGINNING = Place()


class Answer(NamedTuple):
    """Predictions of a part as text, how right they are, what its indices are like, and how many lines it has."""

    text: str
    score: Score
    indices: IndexBase
    lines: int


@dataclass(frozen=True)
class Prediction:
    """Work that is done on each part.

    Attributes
    ----------
    name : of the text, for messages.
    model : says where the model is on the machine that asks.
    writer : makes a `Writer` of a text file and the model's target; header: of the first part.
    zero_based, probability : as `lsvm-predict` has them.
    level : the SIMD level that all machines have to have: that of this one.
    before : the lines and rows before the part, for messages.
    """

    name: str
    model: Callable[[], str]
    writer: Callable[..., Writer]
    zero_based: bool | None
    probability: bool
    level: str = field(default_factory=lambda: LEVELS[simd_level()])
    before: Place = BEGINNING

    def __call__(self, part: int, pieces: Pieces) -> Answer:
        if (ours := LEVELS[simd_level()]) != self.level:
            raise another_level(ours, self.level)
        model = _opened(self.model())
        out, score, indices = StringIO(), Score(model.target), IndexBase(model, self.zero_based)
        writer = self.writer(out, model.target, header=part == 0)
        lines = 0

        def counted() -> Iterator[bytes]:
            nonlocal lines
            for text in pieces:
                lines += text.count(b"\n")
                yield text

        blocks = model.parse(lined(self.name, indices.zero_based, self.before.lines, part, counted()), indices.count)
        for block in model.predict_blocks(indices.seen(blocks), self.probability, self.before.rows + 1):
            writer.write(block)
            score.add(block)
        return Answer(out.getvalue(), score, indices, lines)


@lru_cache(maxsize=1)
def _opened(path: str) -> LocalModel:
    """The model, which stays open for further parts of this process."""
    return LocalModel(path)


def places(name: str, zero_based: bool, part: int, pieces: Pieces) -> Place:
    """Numbers of lines and rows of a part."""
    counts = [piece.count() for piece in lined(name, zero_based, 0, part, pieces)]
    return Place(sum(each.lines for each in counts), sum(each.rows for each in counts))


def predict_text(text: WritableText, task: Prediction, score: Score, indices: IndexBase) -> Iterator[str]:
    """The predictions of each part as text, in the order of the parts. score, indices : take in what they say.

    Raises
    ------
    DataError : for a mistake in the text, with its place, or a text without rows. RunError : of the machines.
    """
    done = lines = 0
    try:
        for answer in text.in_order(task):
            done += 1
            lines += answer.lines
            score.merge(answer.score)
            indices.merge(answer.indices)
            yield answer.text
    except DataError:  # its place is counted from the beginning of the part
        counts = text.each(partial(places, text.name, indices.zero_based))
        before = Place(sum(each.lines for each in counts[:done]), sum(each.rows for each in counts[:done]))
        text.each(partial(only, replace(task, before=before), done))
        raise
    if not score.total:
        raise DataError((NO_ROWS if lines else EMPTY).format(path=text.name))


def only(task: Prediction, wanted: int, part: int, pieces: Pieces) -> None:
    """Do the task on the part of the number `wanted` alone."""
    if part == wanted:
        task(part, pieces)
