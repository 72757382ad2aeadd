"""Training on rows in scratch files: for data larger than memory, with the bits of a run in memory."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterable
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from localsvm.data.columns import put_columns
from localsvm.data.compression import read_once
from localsvm.data.dataset import Dataset, Examples, prefers_dense
from localsvm.data.faults import LONGEST_LINE
from localsvm.data.measuring import measure, shift_in
from localsvm.data.origin import rounded
from localsvm.data.pieces import BLOCK_BYTES, Counts
from localsvm.data.reading import read, read_blocks
from localsvm.data.shift import Shift
from localsvm.data.spilled import Spilled, check_room, through
from localsvm.data.weights import read_weights
from localsvm.errors import DataError, OptionError, RunError
from localsvm.memory import Budget
from localsvm.runs.config import TrainingConfig
from localsvm.runs.demand import beyond_memory, held_bytes
from localsvm.runs.division import partition_name

FILES = 3  # times the rows: scratch files that are there at once, as they are put in order


def read_rows(
    path: str | Path, config: TrainingConfig, asked: bool, note: Callable[[str], None],
    weights: str | Path | None = None, jobs: int = 1, budget: Budget | None = None,
) -> Dataset:  # fmt: skip
    """Read a LIBSVM file for a run into memory, or as `read_spilled` does where that is asked for or chosen.

    note : is told where it is chosen.
    """
    budget = budget or Budget.of(None)
    counts = None if asked else needs_disk(path, config, budget, jobs)
    if counts is not None:
        note("the rows do not fit into the memory: they go to scratch files (--out-of-core)")
    if asked or counts is not None:
        return read_spilled(path, config, weights, jobs, budget, counts)
    data = read(
        path, zero_based=config.zero_based, shifts=config.shifts, jobs=jobs, budget=budget,
        remedy=beyond_memory(config, path, budget),
    )  # fmt: skip
    data.weight = None if weights is None else read_weights(weights, len(data.y))
    return data


def needs_disk(path: str | Path, config: TrainingConfig, budget: Budget, jobs: int) -> Counts | None:
    """What a file holds, if a run in memory would be refused as its rows do not fit, and one out of core may do."""
    if not budget.room or not os.path.isfile(path) or not _large(path, budget):  # no room: not even for the program
        return None
    counts = _measured(path, config, budget, jobs)
    large = held_bytes(*_extent(counts)[:2], jobs) > budget.room
    divided = config.coarse_size is not None or partition_name(config, counts.rows) != "none"
    return counts if large and divided else None


def read_spilled(
    path: str | Path, config: TrainingConfig, weights: str | Path | None = None, jobs: int = 1,
    budget: Budget | None = None, counts: Counts | None = None,
) -> Dataset:  # fmt: skip
    """Read a LIBSVM file into scratch files in the folder of temporary files (TMPDIR); labels are in memory.

    Parameters
    ----------
    weights : the file of the rows' weights.
    jobs, budget : threads, and the memory of the run.
    counts : what the file holds, where that is known.

    Returns
    -------
    Dataset, X a `Spilled` whose rows are those that `reading.read` gives.

    Raises
    ------
    DataError : as `read`.
    OptionError : stdin, which cannot be read twice.
    RunError : the folder has no room for the files.
    """
    if read_once(path):
        raise OptionError("--out-of-core reads a file twice, and cannot from a pipe; write it to a file first")
    budget = budget or Budget.of(None)
    counts = counts or _measured(path, config, budget, jobs)
    rows, size, dense = _extent(counts)
    check_room(folder := _scratch_folder(), FILES * size)
    shift = shift_in(path, zero_based=config.zero_based) if config.shifts else None
    blocks = read_blocks(
        path, n_features=counts.width, dense=dense, shift=shift, zero_based=config.zero_based, jobs=jobs,
        block_bytes=budget.block_bytes(BLOCK_BYTES, jobs), longest=budget.text_bytes(LONGEST_LINE),
    )  # fmt: skip
    with closing(blocks):
        X, y, varies = _kept(blocks, Spilled(folder, counts.width, dense), rows, shift)
    if X.shape[0] != rows:
        raise DataError(f"{path}: the file changed while it was read; train again when it is complete")
    found, shift = _settled(X, shift, varies)
    weight = None if weights is None else read_weights(weights, rows)
    return Dataset(found, y, shift=shift, weight=weight, name=str(path))


def _scratch_folder() -> str:
    """That of temporary files. RunError where it is not the one that was asked for: tempfile takes another silently."""
    asked, folder = os.environ.get("TMPDIR"), tempfile.gettempdir()
    if asked and os.path.abspath(asked) != folder:
        raise RunError(f"TMPDIR={asked}: no scratch file can be written there; name a folder that is there, with room")
    return folder


def _kept(
    blocks: Iterable[Dataset], X: Spilled, rows: int, shift: Shift | None
) -> tuple[Spilled, NDArray[np.float64], NDArray[np.bool_]]:
    """The blocks appended to X, unless they are more than so many rows; their labels; which columns with an origin
    vary.
    """
    y, begun = np.empty(rows), 0
    varies = np.zeros(0 if shift is None else len(shift.columns), np.bool_)
    for block in blocks:
        X.append(block.X)
        if (end := begun + len(block.y)) > rows:
            break
        y[begun:end], begun = block.y, end
        if shift is not None:
            varies |= _varying(block.X, shift)
    return X, y, varies


def _large(path: str | Path, budget: Budget) -> bool:
    """Whether a file may hold more rows than the budget: an entry is 4 bytes of text or more, and 16 as dense ones."""
    return 16 * os.path.getsize(path) > budget.room


def _measured(path: str | Path, config: TrainingConfig, budget: Budget, jobs: int) -> Counts:
    block, longest = budget.block_bytes(BLOCK_BYTES, jobs), budget.text_bytes(LONGEST_LINE)
    return measure(path, zero_based=config.zero_based, jobs=jobs, block_bytes=block, longest=longest).counts


def _extent(counts: Counts) -> tuple[int, int, bool]:
    """Rows, their bytes, and whether they are dense."""
    dense = prefers_dense(counts.rows, counts.width, counts.entries)
    return counts.rows, 4 * counts.rows * counts.width if dense else 8 * (counts.entries + counts.rows), dense


def _varying(X: Examples, shift: Shift) -> NDArray[np.bool_]:
    """Which of the columns with an origin have another value than it in some row."""
    if isinstance(X, np.ndarray):
        return np.asarray(X[:, shift.columns].any(axis=0))
    return np.isin(shift.columns, X.indices)


def _settled(X: Spilled, shift: Shift | None, varies: NDArray[np.bool_]) -> tuple[Any, Shift | None]:
    """As `origin.settle`: a column that is constant gets its value back."""
    if shift is None or varies.all():
        return X, shift
    columns, constant = shift.columns[~varies], rounded(shift.origin[~varies])

    def put(part: Examples) -> Examples:
        return put_columns(part, columns, np.broadcast_to(constant, (part.shape[0], len(constant))))

    return through(X, put), shift.where(varies)
