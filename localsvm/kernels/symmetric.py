"""Products of a few vectors with a kernel matrix, of which half is read: reading it is what takes the time."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from localsvm.kernels._kernels import aligned, symmetric_products
from localsvm.threads import Threads

Singles = NDArray[np.float32]
STRIP = 1024  # rows of the matrix that a thread multiplies at once
MOST = 64  # vectors; with AVX2, BLAS is as fast from there on, though it reads all of the matrix


def widened(vectors: NDArray[Any], size: int, count: int | None = None) -> Singles:
    """Vectors (m, n) as `symmetric_times` takes them: (m, size) float32, aligned, 0 beyond n; and `count` of them."""
    m, n = vectors.shape
    out = aligned((m if count is None else count, size), np.float32)
    out[:m, :n], out[:m, n:], out[m:] = vectors, 0.0, 0.0
    return out


def symmetric_times(K: NDArray[Any], vectors: Singles, threads: Threads) -> Singles:
    """Vectors (m, size) times a symmetric K (size, size), whose padding is finite: (m, size) float32, aligned.

    The sums do not depend on the number of threads.
    """
    m, size = vectors.shape
    out = aligned((m, size), np.float32)
    if m > MOST or K.dtype != np.float32:
        _by_blas(K, vectors, threads, out)
        return out
    out[:] = 0.0
    edges = range(0, size, STRIP)
    parts = [aligned((m, size), np.float32) for _ in range(min(threads.count, len(edges)))]

    def work(i: int) -> None:
        part = parts[i % len(parts)]
        part[:] = 0.0
        symmetric_products(K, vectors, edges[i], min(size, edges[i] + STRIP), part)

    for first in range(0, len(edges), len(parts)):
        at_once = min(len(parts), len(edges) - first)
        threads.map(lambda i, first=first: work(first + i), at_once)  # type: ignore[misc]
        for i in range(at_once):
            out += parts[(first + i) % len(parts)]
    return out


def _by_blas(K: NDArray[Any], vectors: Singles, threads: Threads, out: Singles) -> None:
    def strip(first: int, last: int) -> None:
        out[:, first:last] = vectors @ K[:, first:last]

    threads.strips(strip, vectors.shape[1], STRIP)
