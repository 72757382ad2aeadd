"""A bank of kernels for multiple kernel learning: Gaussians and polynomials of all variables together, and of each.

Each kernel is divided by the mean of its diagonal over the rows: a unit trace, but for the number of rows, so that a
cost means the same whatever that is. Matrices that are not kept are computed again, to the same bits.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from localsvm.data.blocks.dataset import Examples
from localsvm.kernels import SQUARES, Kernel
from localsvm.kernels._kernels import aligned
from localsvm.kernels.gram import active_columns, centre_of, columns_of, double_base

Floats = NDArray[np.float64]


class KernelBank:
    """The kernels over n rows, named 0 to size - 1: all kinds of all variables, then those of each variable.

    Parameters
    ----------
    X : Examples, (n, d)
    kinds : Gaussian kernels, and polynomial ones with gamma 1.
    each : whether there are kernels of each variable. Of sparse rows these are the columns that store a value.
    kept_bytes : of matrices that are kept; one is in any case.

    Attributes
    ----------
    size : how many kernels there are.
    n : rows.
    variables : (columns,) the variables that have kernels of their own.
    """

    def __init__(self, X: Examples, kinds: Sequence[Kernel], each: bool, kept_bytes: int = 0) -> None:
        self.kinds, self.n = tuple(kinds), X.shape[0]
        columns = active_columns(X)
        self.variables = np.arange(X.shape[1]) if columns is None else columns
        self._raw = columns_of(X, columns)
        self._centred = self._raw - centre_of(self._raw) if self.n else self._raw
        self.size = len(self.kinds) * (1 + (len(self.variables) if each else 0))
        self._room = max(1, kept_bytes // max(1, 8 * self.n**2))
        self._kept: dict[int, Floats] = {}
        self._scales: dict[int, float] = {}
        self._base: tuple[tuple[int, str], Floats] | None = None

    def what(self, name: int) -> tuple[int, int]:
        """Variable and kind of a kernel: its column, -1 for all of them, and its place among the kinds."""
        group, kind = divmod(int(name), len(self.kinds))
        return (int(self.variables[group - 1]) if group else -1), kind

    def scale(self, name: int) -> float:
        """Divisor of a kernel: the mean of its diagonal, or 1 where that is not above 0."""
        if name not in self._scales:
            self.matrix(name)
        return self._scales[name]

    def matrix(self, name: int) -> Floats:
        """The matrix (n, n) of a kernel. It is only read."""
        name = int(name)
        if name in self._kept:
            return self._kept[name]
        out = self._computed(name)
        if len(self._kept) < self._room:
            self._kept[name] = out
        return out

    def parts(self, rng: np.random.Generator) -> list[NDArray[np.int64]]:
        """The names of all kernels: those of all variables and of each, in random order."""
        return list(rng.permutation(np.arange(self.size).reshape(-1, len(self.kinds))))

    def prefer(self, names: Iterable[int]) -> None:
        """Keep the matrices of these kernels rather than others, where there is not room for all."""
        if self._room < self.size:
            wanted = {int(name) for name in names}
            self._kept = {name: K for name, K in self._kept.items() if name in wanted}

    def _computed(self, name: int) -> Floats:
        group, place = divmod(name, len(self.kinds))
        kernel = self.kinds[place]
        out = aligned((self.n, self.n), np.float64)
        values_of(kernel, self._base_of(group, kernel.base), out)
        scale = float(np.diagonal(out).mean()) if self.n else 1.0
        self._scales[name] = scale if scale > 0.0 else 1.0
        out /= self._scales[name]
        return out

    def _base_of(self, group: int, base: str) -> Floats:
        """Squared distances or products of all variables (group 0) or of one; the last are kept."""
        if self._base is None or self._base[0] != (group, base):
            rows = self._centred if base == SQUARES else self._raw
            rows = rows if group == 0 else np.ascontiguousarray(rows[:, group - 1 : group])
            matrix = double_base(rows, rows, base)
            if base == SQUARES:
                np.fill_diagonal(matrix, 0.0)
            self._base = (group, base), matrix
        return self._base[1]


def values_of(kernel: Kernel, base: Floats, out: Floats) -> None:
    """Fill `out` with kernel values of the squared distances or products `base`, in float64.

    Powers are made by multiplication: np.power is slow.
    """
    if kernel.kind == "gaussian":
        np.exp(np.multiply(base, -kernel.gamma, out=out), out=out)
        return
    out[:] = base
    out += kernel.coef0
    first = out.copy() if kernel.degree > 1 else out
    for _ in range(kernel.degree - 1):
        out *= first
