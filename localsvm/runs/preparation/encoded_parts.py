"""Tables on a cluster: the workers encode its parts, and each part is LIBSVM text from then on.

This machine makes one pass over the table, in blocks, and learns the encoding; its memory does not grow with the rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from io import BytesIO
from itertools import islice
from typing import Any, NamedTuple

import numpy as np

from localsvm.data import _csv
from localsvm.data.blocks.dataset import Dataset
from localsvm.data.blocks.shift import Shift
from localsvm.data.readers.tables import TablePart
from localsvm.data.writers.libsvm import label_text, write
from localsvm.engines.spark import Spark
from localsvm.runs.config import TrainingConfig
from localsvm.runs.prediction.part_files import Cluster, part_bytes, present
from localsvm.runs.preparation.row_encoder import RowEncoder, counting_column
from localsvm.runs.preparation.tables import TableOptions, TrainingTable


class NumberedPart(NamedTuple):
    """A part of a table, and the number of its first row, of those with a label."""

    part: TablePart
    first: int


def engine_of_table(
    cluster: Cluster, path: str, options: TableOptions, config: TrainingConfig, note: Callable[[str], None], jobs: int
) -> tuple[Spark, TrainingTable]:
    """The rows of a table on a cluster, and the table.

    Raises
    ------
    DataError, RunError : as of `TrainingTable.look`; the workers do not see the file.
    """
    kinds = config.of_values, config.of_one_kind
    table = TrainingTable(path, options, config.seed, config.shifts, note, config.blocks, *kinds)
    table.look(jobs, keep=False)
    parts, encoder = table.parts(part_bytes([path], cluster.cores)), table.encoder
    of_labels = [_only(part, counting_column(part.layout, encoder.label)) for part in parts]
    rows = cluster.of_parts(path, of_labels, present).each(partial(_labelled, encoder))
    numbered = [NumberedPart(*pair) for pair in zip(parts, np.cumsum([0, *rows]).tolist(), strict=False)]
    head = partial(_head, lambda: table.blocks(table.counts(), True, 1))
    text = cluster.of_parts(path, numbered, _Pieces(encoder), head, kept=True)
    return Spark(text, shifts=config.shifts, described=table.described), table


def _only(part: TablePart, column: str | None) -> TablePart:
    """The part, of which one column is read."""
    pairs = zip(part.layout.names, part.layout.kinds, strict=True)
    kinds = tuple(kind if name == column else int(_csv.SKIP) for name, kind in pairs)
    return replace(part, layout=replace(part.layout, kinds=kinds))


def _labelled(encoder: RowEncoder, part: int, parts: Iterable[TablePart]) -> int:
    """Number of rows with a label."""
    return sum(table.rows for each in parts for table in encoder.labelled(each.blocks()))


@dataclass(frozen=True)
class _Pieces:
    """Makes text of parts, block by block; it is read back as the rows that the memory has."""

    encoder: RowEncoder

    def __call__(self, parts: Iterable[NumberedPart]) -> Iterator[bytes]:
        encoder = self.encoder
        for part, first in parts:
            for table in encoder.labelled(part.blocks()):
                if table.rows:
                    yield text_of(encoder.dataset(encoder.features(table, first), table))
                first += table.rows


def _head(blocks: Callable[[], Iterator[Dataset]], lines: int) -> bytes:
    """The first lines of all text, or all where there are fewer."""
    every = (line for block in blocks() for line in text_of(block).splitlines(keepends=True))
    return b"".join(islice(every, lines))


def text_of(block: Dataset) -> bytes:
    """Rows as LIBSVM text."""
    if block.shift is not None:
        return _wide_text(block, block.shift)
    out = BytesIO()
    write(out, block.X, block.y)
    return out.getvalue()


def _wide_text(block: Dataset, shift: Shift) -> bytes:
    """Text of rows whose far columns have all the digits of float64, which reading them from their origin needs."""
    X: Any = np.asarray(block.X)
    wide = X[:, shift.columns].astype(np.float64) + shift.origin
    far = dict(zip(shift.columns.tolist(), wide.T, strict=True))
    columns = [map(repr, far[i].tolist()) if i in far else map(str, X[:, i]) for i in range(X.shape[1])]
    lines = []
    for label, row in zip(block.y.tolist(), zip(*columns, strict=True), strict=True):
        entries = (f"{i}:{value}" for i, value in enumerate(row, 1) if value not in ("0", "0.0"))
        lines.append(" ".join([label_text(label), *entries]))
    return ("\n".join(lines) + "\n").encode()
