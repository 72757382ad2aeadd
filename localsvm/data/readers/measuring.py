"""Counts of a LIBSVM file, before its rows are read."""

from __future__ import annotations

import os
from dataclasses import dataclass

from localsvm.data.blocks.shift import Shift
from localsvm.data.readers.compression import open_source
from localsvm.data.readers.faults import EMPTY, LONGEST_LINE, NO_ROWS
from localsvm.data.readers.origin import look_ahead
from localsvm.data.readers.pieces import BLOCK_BYTES, Counts, ordered, stream_pieces
from localsvm.errors import DataError


@dataclass(frozen=True)
class TextSize:
    """Size of the text of a file.

    Attributes
    ----------
    counts, most : of the whole file; and the most of each that any block of it holds.
    text : bytes of its largest block.
    """

    counts: Counts
    most: Counts
    text: int


def shift_in(path: str | os.PathLike[str], *, zero_based: bool = False, block_bytes: int = BLOCK_BYTES) -> Shift | None:
    """The columns of a LIBSVM file that need an origin, by its first rows; parameters and errors as of `read`."""
    with open_source(path) as source:
        return look_ahead(stream_pieces(source, zero_based, block_bytes), None)[0]


def measure(
    path: str | os.PathLike[str],
    *,
    zero_based: bool = False,
    jobs: int = 1,
    block_bytes: int = BLOCK_BYTES,
    longest: int = LONGEST_LINE,
) -> TextSize:
    """Count lines, rows, entries and columns of a LIBSVM file, with memory for a few blocks only.

    Parameters are those of `read_blocks`. Counting does not check the text: only reading finds mistakes. DataError for
    a file without rows.
    """
    with open_source(path) as source:
        pieces = stream_pieces(source, zero_based, block_bytes, longest)
        counted = list(ordered(lambda piece: (*piece.count(), len(piece.data)), pieces, jobs))
        if not any(part[1] for part in counted):
            raise DataError((NO_ROWS if counted else EMPTY).format(path=source.name))
    lines, rows, entries, widths, texts = zip(*counted, strict=True)
    most = Counts(max(lines), max(rows), max(entries), max(widths))
    return TextSize(Counts(sum(lines), sum(rows), sum(entries), max(widths)), most, max(texts))
