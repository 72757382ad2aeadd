"""Memory that the passes of a stream over its file hold."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from localsvm.data.blocks.columns import TABLE_COLUMNS
from localsvm.data.readers.compression import open_source


@dataclass(frozen=True)
class BlockBounds:
    """The most that a block of a stream holds: bytes of text, rows, entries, columns; and whether rows are dense."""

    text: int
    rows: int
    entries: int
    columns: int
    dense: bool = False

    @classmethod
    def of_text(cls, path: str | Path, size: int) -> BlockBounds:
        """Bounds for a file that is not known yet: blocks of so much text, if it has as much."""
        with open_source(path) as source:
            return cls(min(size, os.path.getsize(path)) if source.regular() else size, 0, 0, 0)

    @property
    def nbytes(self) -> int:
        """Bytes of the rows and labels of a block."""
        return 8 * self.rows + (4 * self.rows * self.columns if self.dense else 8 * self.entries + 8 * self.rows)

    def columns_bytes(self, entries: int) -> int:
        """Bytes that finding the columns that occur needs beside a block, in a file of so many entries."""
        table = min(self.columns, TABLE_COLUMNS * self.entries)
        return table + 4 * self.entries + 4 * 8 * min(self.columns, entries)

    def passing_bytes(self, jobs: int) -> int:
        """Bytes that a pass holds: the text that is read and cut, a block, and with several threads blocks ahead."""
        ahead = 0 if jobs == 1 else (2 * jobs + 1) * max(self.text, self.nbytes) + jobs * min(self.text, self.nbytes)
        left_out = 0 if self.dense else 8 * self.entries  # copies of a block without some columns
        return 3 * self.text + 2 * self.nbytes + left_out + ahead
