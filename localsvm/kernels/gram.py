"""Kernel matrices of the rows of one cell."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from localsvm.data.blocks.dataset import Examples
from localsvm.errors import RunError
from localsvm.kernels import PRODUCTS, SQUARES, SUMS, Kernel
from localsvm.kernels._kernels import Panels, RowsOnDemand, padded, transform
from localsvm.kernels.entries import base_of, entry_radius, few_entries
from localsvm.kernels.scratch import Scratch
from localsvm.naming import opt

# Columns of dense rows up to which distances are computed anew for each kernel: that takes 40 ms more for 6 600 rows of
# 20 columns, and memory for them that nothing has touched before half a second.
NARROW = 64


def columns_of(X: Examples, columns: NDArray[np.int64] | None) -> NDArray[np.float32]:
    """Rows as a dense C-order array (n, columns); of a dense X all columns, of a sparse X the given ones."""
    if isinstance(X, np.ndarray):
        return np.ascontiguousarray(X, dtype=np.float32)
    assert columns is not None
    return np.ascontiguousarray(sparse.csr_array(X)[:, columns].toarray(), dtype=np.float32)


def active_columns(X: Examples) -> NDArray[np.int64] | None:
    """The columns of a sparse X that store a value, ascending; None for a dense X."""
    return None if isinstance(X, np.ndarray) else np.unique(X.indices).astype(np.int64)


def centre_of(X: NDArray[np.float32]) -> NDArray[np.float32]:
    """The mean of the rows (d,). Distances are computed after subtracting it: else |x|^2 may dwarf them in float32."""
    return np.asarray(X.mean(axis=0, dtype=np.float64), dtype=np.float32)


class Gram:
    """Kernel matrices of n rows. Distances or products of wide rows are computed once and serve several kernels.

    Matrices are in the caller's scratch memory: the next one, of this object or another, overwrites the last.

    Parameters
    ----------
    X : Examples, (n, d)
    scratch : Scratch
    several : bool
        Whether several kernels will be used. For a single one no distances are stored, nor for NARROW rows, which saves
        half of the memory and of the time.

    Attributes
    ----------
    n, size : int
        The number of rows, and the side of the matrices: n padded as solvers need it.
    """

    def __init__(self, X: Examples, scratch: Scratch, several: bool = True) -> None:
        self.n = X.shape[0]
        self.size = padded(self.n)
        self._sparse = X if few_entries(X) else None
        if self._sparse is None:
            self._raw = columns_of(X, active_columns(X))
            self._rows = self._raw - centre_of(self._raw)
        self._scratch = scratch
        self._stores = several and (self._sparse is not None or self._raw.shape[1] > NARROW)
        self._base: dict[tuple[str, bool], NDArray[Any]] = {}

    def matrix(self, kernel: Kernel, double: bool = False) -> NDArray[Any]:
        """The kernel matrix (size, size) in float32, or float64 if `double`; the padding holds finite values.

        RunError if the kernel overflows.
        """
        out = self._scratch.array("kernel", (self.size, self.size), np.float64 if double else np.float32)
        if double:
            transform_double(kernel, self._base_of(kernel.base, True), out)
        elif self._stores:
            transform(kernel, self._base_of(kernel.base, False), out)
        else:
            self._fill(out, kernel.base, kernel)
        if not np.isfinite(np.diagonal(out)).all():
            raise overflow(kernel)
        return out

    def on_demand(self, kernel: Kernel) -> NDArray[Any] | RowsOnDemand:
        """The matrix in float32, of which rows are computed when a solver first reads them, as few solutions need all.

        It is whole where distances are stored or rows sparse, and for kernels of products.
        """
        if self._stores or self._sparse is not None or not kernel.uses_distances or not self._raw.size:
            return self.matrix(kernel)
        out = self._scratch.array("kernel", (self.size, self.size), np.float32)
        return RowsOnDemand(self._rows if kernel.base == SQUARES else self._raw, kernel, out)

    def _base_of(self, base: str, double: bool) -> NDArray[Any]:
        """Distances or products, of which all kernels of a kind are functions; only the last matrix is kept."""
        if (base, double) not in self._base:
            self._base.clear()
            self._base[base, double] = self._double(base) if double else self._single(base)
        return self._base[base, double]

    def _single(self, base: str) -> NDArray[np.float32]:
        out = self._scratch.array("base", (self.size, self.size), np.float32)
        self._fill(out, base, None)
        return out

    def _fill(self, out: NDArray[np.float32], base: str, kernel: Kernel | None) -> None:
        """Fill `out` with distances or products in float32, or with their kernel."""
        out[self.n :] = 0
        out[:, self.n :] = 0
        if self._sparse is not None:
            out[: self.n, : self.n] = base_of(self._sparse, self._sparse, base)
            if base != PRODUCTS:
                np.fill_diagonal(out, 0.0)
            if kernel is not None:
                transform(kernel, out, out)
            return
        rows = self._rows if base == SQUARES else self._raw
        panels = Panels(rows, base)
        norms = None if base == PRODUCTS else panels.norms[: self.n]
        if kernel is None:
            panels.products(rows, out, norms)
        else:
            panels.kernel_matrix(kernel, rows, out, norms)

    def _double(self, base: str) -> NDArray[np.float64]:
        out: NDArray[np.float64] = np.zeros((self.size, self.size))
        if self._sparse is not None:
            out[: self.n, : self.n] = base_of(self._sparse, self._sparse, base)
        else:
            rows = self._rows if base == SQUARES else self._raw
            out[: self.n, : self.n] = double_base(rows, rows, base)
        if base != PRODUCTS:
            np.fill_diagonal(out, 0.0)
        return out


def radius(X: Examples, base: str = SQUARES) -> float:
    """The largest distance of a row from the mean of the rows: that whose squares, or for SUMS itself, is the base."""
    if few_entries(X):
        return entry_radius(X, base)
    rows = columns_of(X, active_columns(X))
    rows = rows - centre_of(rows)
    if base == SUMS:
        return float(np.abs(rows).sum(axis=1, dtype=np.float64).max(initial=0.0))
    squares = np.einsum("ij,ij->i", rows, rows, dtype=np.float64)
    return float(np.sqrt(squares.max(initial=0.0)))


def double_base(A: NDArray[np.float32], B: NDArray[np.float32], base: str) -> NDArray[np.float64]:
    """Products, squared distances or Manhattan distances (rows of A, rows of B) in float64."""
    a, b = A.astype(np.float64), B.astype(np.float64)
    if base == SUMS:
        from scipy.spatial.distance import cdist

        return np.asarray(cdist(a, b, "cityblock"))
    out: NDArray[np.float64] = a @ b.T
    if base == SQUARES:
        out *= -2.0
        out += np.einsum("ij,ij->i", a, a)[:, None]
        out += np.einsum("ij,ij->i", b, b)
        np.maximum(out, 0.0, out=out)
    return out


def overflow(kernel: Kernel) -> RunError:
    """The error for a kernel with values that are not finite."""
    return RunError(
        f"the {kernel.kind} kernel overflows on these data; scale them ({opt.scale('std')}), or use a smaller "
        f"{opt.degree} or "
        "gamma"
    )


def transform_double(kernel: Kernel, base: NDArray[np.float64], out: NDArray[np.float64]) -> None:
    """Turn what a kernel is a function of into its values, in float64. `base` and `out` may be the same array."""
    if kernel.kind in ("gaussian", "manhattan"):
        np.exp(np.multiply(base, -kernel.gamma, out=out), out=out)
    elif kernel.kind == "laplacian":
        np.exp(np.multiply(np.sqrt(base, out=out), -kernel.gamma, out=out), out=out)
    elif kernel.kind == "polynomial":
        np.power(kernel.gamma * base + kernel.coef0, kernel.degree, out=out)
    else:
        out[:] = base
