"""The fingerprint of a data set, by which a journal and a partition file know what they were made from."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

_BLOCK_BYTES = 1 << 22


def fingerprint(X: Any, y: NDArray[Any]) -> str:
    """SHA-256 of examples and labels, in bounded memory.

    Values, shapes and dtypes count, and whether X is dense or sparse, as all of these may change a model's bits.

    Parameters
    ----------
    X : (n, d) array, memory-mapped or not, a scipy CSR matrix, or rows on a disk.
    y : (n,) labels.

    Returns
    -------
    64 hexadecimal digits.
    """
    total = hashlib.sha256()
    dense = X if isinstance(X, np.ndarray) else getattr(X, "values", None)  # of rows on a disk
    parts = (dense, y) if dense is not None else (np.array(X.shape), X.indptr, X.indices, X.data, y)
    for part in parts:
        total.update(f"{part.dtype.str} {part.shape}\n".encode())
        rows = max(1, _BLOCK_BYTES // max(1, part[:1].nbytes))
        for start in range(0, len(part), rows):
            total.update(np.ascontiguousarray(part[start : start + rows]).data)
    return total.hexdigest()
