from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from localsvm._core import LEVELS as LEVELS
from localsvm._core import simd_level as simd_level
from localsvm.kernels import Kernel

PAD: int
KINDS: tuple[str, ...]

def aligned(shape: tuple[int, ...], dtype: Any) -> NDArray[Any]: ...
def padded(n: int) -> int: ...
def transform(kernel: Kernel, source: NDArray[np.float32], out: NDArray[np.float32]) -> None: ...
def symmetric_products(
    K: NDArray[np.float32],
    X: NDArray[np.float32],
    first: int,
    last: int,
    out: NDArray[np.float32],
    level: int | None = None,
) -> None: ...
def weighted_sums(W: NDArray[np.float32], X: NDArray[np.float32]) -> NDArray[np.float64]: ...

class Panels:
    n: int
    size: int
    norms: NDArray[np.float32]
    def __init__(self, X: NDArray[np.float32], base: str, level: int | None = None) -> None: ...
    def norms_of(self, X: NDArray[np.float32]) -> NDArray[np.float32]: ...
    def products(
        self, X: NDArray[np.float32], out: NDArray[np.float32], norms: NDArray[np.float32] | None = None
    ) -> None: ...
    def kernel_matrix(
        self, kernel: Kernel, X: NDArray[np.float32], out: NDArray[np.float32], norms: NDArray[np.float32] | None
    ) -> None: ...
    def accumulate(
        self,
        kernel: Kernel,
        X: NDArray[np.float32],
        norms: NDArray[np.float32] | None,
        coef: NDArray[np.float64],
        out: NDArray[np.float64],
    ) -> None: ...

class RowsOnDemand:
    array: NDArray[np.float32]
    address: int
    computed: int
    def __init__(self, X: NDArray[np.float32], kernel: Kernel, out: NDArray[np.float32]) -> None: ...
    def whole(self) -> NDArray[np.float32]: ...

class Expansion:
    def __init__(
        self,
        B: NDArray[np.float32],
        kernels: Sequence[Kernel],
        ptr: NDArray[np.int64],
        index: NDArray[np.integer[Any]],
        coef: NDArray[np.float64],
        level: int | None = None,
    ) -> None: ...
    def __call__(self, X: NDArray[np.float32], outside: NDArray[np.float32] | None = None) -> NDArray[np.float64]: ...
