"""Sizes of what a prediction works on at once, within the memory of the run: of no influence on any bit of it."""

from __future__ import annotations

from dataclasses import dataclass, replace

from localsvm.data.readers.faults import LONGEST_LINE
from localsvm.data.readers.pieces import BLOCK_BYTES as TEXT_BYTES
from localsvm.memory import Budget
from localsvm.naming import opt
from localsvm.store.model import Model

CACHE_BYTES = 1 << 30  # decision functions kept between blocks
ROW_BLOCK = 1 << 16
BLOCK_BYTES = 1 << 26  # of rows that are decided together: a cell's model is then read for many rows at once
BUILT = 4  # times the arrays of a cell that its decision function takes
WORKING = 48 << 20  # scratch arrays of a thread that decides on a strip of rows
COPIES = 4  # of a block of rows: its parts, scaled, routed, and in strips
ROUTE_BYTES = 40  # of a row and a cell that answers for it
PARSED = 12  # times its bytes that a block of text takes, which waits or is parsed


@dataclass(frozen=True)
class Extent:
    """Sizes of a prediction.

    Attributes
    ----------
    cache : bytes of decision functions that are kept.
    window, threads : decision functions that are open at once, and threads that work on them.
    rows, size : of a block of rows that is decided together, and its bytes.
    text, longest : bytes of text that a thread parses at once, and of a line.
    """

    cache: int = CACHE_BYTES
    window: int = 2
    threads: int = 1
    rows: int = ROW_BLOCK
    size: int = BLOCK_BYTES
    text: int = TEXT_BYTES
    longest: int = LONGEST_LINE

    @classmethod
    def within(cls, budget: Budget | None, file: Model, jobs: int, problems: int) -> Extent:
        """The sizes for `jobs` threads; RunError where not even one decision function fits in, None for no bound."""
        whole = cls(window=2 * jobs, threads=jobs)
        if budget is None:
            return whole
        arrays = (*file.scaling[1].values(), *file.partition[1].values(), *file.row_ptr.values())
        # the directions of a tree are twice as large as its centres
        held = 3 * sum(array.nbytes for array in arrays)
        largest = BUILT * int(file.cell_bytes().max(initial=0))
        least = min(WORKING, 16 * largest + (4 << 20))
        budget.check(
            f"the largest of {file.n_cells} cells, beside {held / 2**20:.1f} MiB of the model, needs",
            held + largest + least, f"give more {opt.memory}, or train with smaller cells ({opt.cell_size})",
        )  # fmt: skip
        left = budget.room - held - largest - least
        answers = file.n_cells if file.partition[0] == "chunks" else 1 + sum("/" in name for name in file.partition[1])
        row = ROUTE_BYTES * answers + 24 * problems
        window = max(1, min(2 * jobs, (left // 4) // max(1, largest + least)))
        return replace(
            whole,
            threads=min(jobs, window),
            cache=min(CACHE_BYTES, largest + left // 4),
            window=window,
            rows=max(1, min(ROW_BLOCK, left // 8 // row)),
            size=min(BLOCK_BYTES, left // 8 // COPIES),
            text=max(1 << 12, min(TEXT_BYTES, left // 8 // (PARSED * (2 * jobs + 1)))),
            longest=budget.text_bytes(LONGEST_LINE),
        )
