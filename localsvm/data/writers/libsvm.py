"""Writing LIBSVM text that `readers.libsvm.read` reads back as the same float32 values and float64 labels."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from localsvm.data import _text
from localsvm.data.blocks.dataset import Examples, as_examples, row_blocks
from localsvm.data.readers.compression import open_sink
from localsvm.errors import DataError

BLOCK_ENTRIES = 1 << 17  # elements formatted at once: a few MiB of text
LONG = 1e22  # whole numbers below are written with all their digits; those of files have them, too


def write(
    target: str | os.PathLike[str] | BinaryIO,
    X: Any,
    y: Any,
    *,
    zero_based: bool = False,
    precision: int | None = None,
) -> None:
    """Write rows as LIBSVM text, one row per line; zeros are left out.

    Parameters
    ----------
    target
        Binary stream, or file name ("-" is stdout; .gz, .bz2, .xz and .zst compress). A file appears when complete.
    X, y
        Rows (n, d), dense or sparse, and finite labels (n,). Whole numbers are written without a point.
    zero_based : bool
        Number the features from 0 instead of 1.
    precision : int or None
        Significant digits of values, 1 to 9; None for as few as are read back as the same float32.

    Raises
    ------
    DataError
        y does not fit X, or a value is not finite.
    RunError
        The file cannot be written.
    """
    examples, labels = as_examples(X), np.asarray(y, dtype=np.float64)
    if labels.shape != (examples.shape[0],):
        what = f"{examples.shape[0]} examples need as many labels, found an array of shape {labels.shape}"
        raise DataError(f"{what}; give one label an example")
    if not np.isfinite(labels).all():
        row = int(np.flatnonzero(~np.isfinite(labels))[0])
        raise DataError(f"the label of example {row + 1} is {labels[row]}; labels must be finite numbers")
    if precision is not None and not 1 <= precision <= 9:
        raise ValueError("precision must be 1 to 9 digits")
    with _open(target) as stream:
        for text in _texts(examples, labels, zero_based, precision or 0):
            stream.write(text)


def _open(target: str | os.PathLike[str] | BinaryIO) -> AbstractContextManager[BinaryIO]:
    return open_sink(target) if isinstance(target, str | os.PathLike) else nullcontext(target)


def _texts(X: Examples, y: npt.NDArray[np.float64], zero_based: bool, digits: int) -> Iterator[memoryview]:
    for rows in row_blocks(X, BLOCK_ENTRIES):
        labels = label_texts(y[rows])
        per_row = _text.ROW_BYTES + labels.shape[1]
        if isinstance(X, np.ndarray):
            out = np.empty(_text.ENTRY_BYTES * X[rows].size + per_row * len(labels), np.uint8)
            size = _text.write_dense(X[rows], labels, out, zero_based, digits)
        else:
            bounds = X.indptr[rows.start : rows.stop + 1]
            out = np.empty(_text.ENTRY_BYTES * (bounds[-1] - bounds[0]) + per_row * len(labels), np.uint8)
            size = _text.write_sparse(X.data, X.indices, bounds, labels, out, zero_based, digits)
        yield out[:size].data


def label_texts(y: npt.NDArray[np.float64]) -> npt.NDArray[np.uint8]:
    """Labels as text, (n, width) uint8, padded with NUL; see `label_text`."""
    values, which = np.unique(y, return_inverse=True)
    texts = np.array([label_text(value) for value in values.tolist()], dtype=np.bytes_)
    return texts[which].view(np.uint8).reshape(len(y), -1)


def label_text(label: float) -> str:
    """A label as text that is read back as the same float64, such as 1, -1, 0.5 or 1e+300."""
    return str(int(label)) if label.is_integer() and abs(label) < LONG else repr(label)
