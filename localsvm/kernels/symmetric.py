"""Products of a few vectors with a kernel matrix, of which half is read: reading it is what takes the time."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from localsvm.kernels._kernels import aligned, symmetric_products
from localsvm.threads import Threads

Singles = NDArray[np.float32]
STRIP = 1024  # rows of the matrix that a thread multiplies at once
MOST = 32  # vectors; from there on BLAS, which reads all of it, is as fast


def symmetric_times(K: NDArray[Any], vectors: Singles, threads: Threads) -> Singles:
    """Vectors (m, n) float32 times a symmetric K, (size, size) with n rows and padding: (m, n) float32.

    The padding is finite. The sums do not depend on the number of threads.
    """
    (m, n), size = vectors.shape, len(K)
    if m > MOST or K.dtype != np.float32:
        return _by_blas(K, vectors, threads)
    X = aligned((m, size), np.float32)
    X[:, :n], X[:, n:] = vectors, 0.0
    out = np.zeros((m, size), np.float32)
    edges = range(0, size, STRIP)
    parts = [aligned((m, size), np.float32) for _ in range(min(threads.count, len(edges)))]

    def work(i: int) -> None:
        part = parts[i % len(parts)]
        part[:] = 0.0
        symmetric_products(K, X, edges[i], min(size, edges[i] + STRIP), part)

    for first in range(0, len(edges), len(parts)):
        at_once = min(len(parts), len(edges) - first)
        threads.map(lambda i, first=first: work(first + i), at_once)  # type: ignore[misc]
        for i in range(at_once):
            out += parts[(first + i) % len(parts)]
    return out[:, :n]


def _by_blas(K: NDArray[Any], vectors: Singles, threads: Threads) -> Singles:
    n, out = vectors.shape[1], np.empty(vectors.shape, np.float32)

    def strip(first: int, last: int) -> None:
        out[:, first:last] = vectors @ K[:n, first:last]

    threads.strips(strip, n, STRIP)
    return out
