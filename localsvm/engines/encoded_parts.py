"""A table as LIBSVM text in parts, for machines that do not read tables: it is encoded here, and worked on there."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from io import BytesIO
from itertools import islice

import numpy as np

from localsvm.data.blocks.dataset import Dataset
from localsvm.data.blocks.shift import Shift
from localsvm.data.writers.libsvm import label_text, write
from localsvm.engines.sources import RowSource


def text_parts(source: RowSource, jobs: int = 1) -> list[bytes]:
    """Text of all rows of a table, a part for each of its blocks; it is read back as the rows that the memory has."""
    return [_text(block) for block in source.blocks(source.counts(jobs), True, jobs)]


def _text(block: Dataset) -> bytes:
    if block.shift is not None:
        return _wide_text(block, block.shift)
    out = BytesIO()
    write(out, block.X, block.y)
    return out.getvalue()


def _wide_text(block: Dataset, shift: Shift) -> bytes:
    """Text of rows whose far columns have all the digits of float64, which reading them from their origin needs."""
    X = np.asarray(block.X)
    wide = X[:, shift.columns].astype(np.float64) + shift.origin
    far = dict(zip(shift.columns.tolist(), wide.T, strict=True))
    columns = [map(repr, far[i].tolist()) if i in far else map(str, X[:, i]) for i in range(X.shape[1])]
    lines = []
    for label, row in zip(block.y.tolist(), zip(*columns, strict=True), strict=True):
        entries = (f"{i}:{value}" for i, value in enumerate(row, 1) if value not in ("0", "0.0"))
        lines.append(" ".join([label_text(label), *entries]))
    return ("\n".join(lines) + "\n").encode()


def head_of(parts: list[bytes], lines: int) -> bytes:
    """The first lines of all parts, or all where there are fewer."""
    every = (line for part in parts for line in part.splitlines(keepends=True))
    return b"".join(islice(every, lines))


def pieces(parts: Iterable[bytes]) -> Iterator[bytes]:
    """The parts themselves."""
    yield from parts
