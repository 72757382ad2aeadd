"""A kernel matrix too large for the memory: blocks of it are computed, multiplied and dropped."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from localsvm.data.blocks.dataset import Examples
from localsvm.kernels import SQUARES, Kernel
from localsvm.kernels._kernels import Panels, aligned, padded
from localsvm.kernels.gram import active_columns, centre_of, columns_of, double_base, overflow, transform_double
from localsvm.kernels.scratch import Scratch
from localsvm.threads import Threads

STRIP = 2048  # rows that a thread multiplies at once; Ctrl-C waits for them
DOUBLE_FLOATS = 1 << 22  # kernel values that products in float64 hold at once

Indices = NDArray[np.intp]


class KernelRows:
    """Rows, and their kernel with other rows of the same set.

    A kernel value depends on its two rows alone. So products with parts of the columns add up to the product with all
    of them, up to float64 rounding.

    Parameters
    ----------
    rows : (n, d) float32, C-order
        Centred for kernels of squared distances, as `BlockGram` does it.
    kernel : Kernel
    double : bool
        Kernel values in float64 instead of float32. Products are summed in float64 in both cases.
    threads : Threads
    scratch : Scratch
    """

    def __init__(
        self, rows: NDArray[np.float32], kernel: Kernel, double: bool, threads: Threads, scratch: Scratch
    ) -> None:
        self.kernel, self.double = kernel, double
        self._rows, self._threads, self._scratch = rows, threads, scratch
        self._panels: Panels | None = None
        self._norms: NDArray[np.float32] | None = None

    def __len__(self) -> int:
        return len(self._rows)

    def part(self, index: Indices) -> KernelRows:
        """The rows with these numbers, and their kernel."""
        return KernelRows(self._rows[index], self.kernel, self.double, self._threads, self._scratch)

    def matrix(self) -> NDArray[Any]:
        """The kernel among these rows (size, size), size = n padded as solvers need it. The next call overwrites it."""
        n, size = len(self), padded(len(self))
        out = self._scratch.array("block", (size, size), np.float64 if self.double else np.float32)
        out[n:], out[:, n:] = 0, 0
        if self.double:
            out[:n, :n] = self._wide(self._rows, self)
            return out
        panels, norms = self._packed(), self._row_norms()

        def strip(first: int, last: int) -> None:
            part = None if norms is None else norms[first:last]
            panels.kernel_matrix(self.kernel, self._rows[first:last], out[first:last], part)

        self._threads.strips(strip, n, STRIP // 8)
        return out

    def diagonal_is_finite(self) -> bool:
        """True where no row's kernel with itself overflows."""
        if self.kernel.uses_distances:
            return True
        squares = np.einsum("ij,ij->i", self._rows, self._rows, dtype=np.float64)
        base = np.float64(squares.max(initial=0.0))
        largest = (self.kernel.gamma * base + self.kernel.coef0) ** (self.kernel.degree)
        limit = np.finfo(np.float64 if self.double else np.float32).max
        return bool((base if self.kernel.kind == "linear" else abs(largest)) < limit)

    def times(self, columns: KernelRows, coef: NDArray[np.float64]) -> NDArray[np.float64]:
        """Sums over j of coef_j kernel(row_i, column_j) for each row i, (n,) float64."""
        out = np.zeros(len(self))
        if not len(columns) or not len(self):
            return out
        step = max(1, DOUBLE_FLOATS // len(columns))
        if self.double:
            for first in range(0, len(self), step):
                out[first : first + step] = self._wide(self._rows[first : first + step], columns) @ coef
            return out
        panels, norms = columns._packed(), self._row_norms()
        wide = aligned((panels.size,), np.float64)
        wide[:] = 0
        wide[: len(coef)] = coef

        def strip(first: int, last: int) -> None:
            part = None if norms is None else norms[first:last]
            panels.accumulate(self.kernel, self._rows[first:last], part, wide, out[first:last])

        self._threads.strips(strip, len(self), STRIP)
        return out

    def landmark_rows(self, index: Indices) -> NDArray[np.float32]:
        """The kernel (k, n) float32 of some of the rows with all of them."""
        part = self.part(index)
        out, panels = aligned((padded(len(part)), padded(len(self))), np.float32), self._packed()
        panels.kernel_matrix(self.kernel, part._rows, out[: len(part)], part._row_norms())
        return out[: len(part), : len(self)]

    def products(self, vectors: NDArray[np.float32]) -> NDArray[np.float32]:
        """Vectors (m, n) times the kernel, whose strips are computed once for all of them."""
        out, panels, norms = np.empty(vectors.shape, np.float32), self._packed(), self._row_norms()

        def strip(first: int, last: int) -> None:
            kernel = aligned((last - first, padded(len(self))), np.float32)
            part = None if norms is None else norms[first:last]
            panels.kernel_matrix(self.kernel, self._rows[first:last], kernel, part)
            out[:, first:last] = vectors @ kernel[:, : len(self)].T

        self._threads.strips(strip, len(self), STRIP // 8)
        return out

    def _packed(self) -> Panels:
        if self._panels is None:
            self._panels = Panels(self._rows, self.kernel.base)
        return self._panels

    def _row_norms(self) -> NDArray[np.float32] | None:
        if self._norms is None and self.kernel.uses_distances:
            self._norms = self._packed().norms_of(self._rows)
        return self._norms

    def _wide(self, rows: NDArray[np.float32], columns: KernelRows) -> NDArray[np.float64]:
        base = double_base(rows, columns._rows, self.kernel.base)
        transform_double(self.kernel, base, base)
        return base


class BlockGram:
    """Kernels of n rows, never stored as a whole; same interface as kernels.gram.Gram."""

    def __init__(self, X: Examples, threads: Threads, scratch: Scratch) -> None:
        self._raw = columns_of(X, active_columns(X))
        self._threads, self._scratch = threads, scratch

    def matrix(self, kernel: Kernel, double: bool = False) -> KernelRows:
        """The kernel of all rows; RunError if it overflows."""
        rows = self._raw - centre_of(self._raw) if kernel.base == SQUARES else self._raw
        out = KernelRows(rows, kernel, double, self._threads, self._scratch)
        if not out.diagonal_is_finite():
            raise overflow(kernel)
        return out
