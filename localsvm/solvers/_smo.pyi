from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from localsvm.kernels._kernels import RowsOnDemand
from localsvm.solvers.boxes import Dual

MAX_ITERATIONS: int
STEPS_A_ROW: int

@dataclass
class Terms:
    e: NDArray[np.float64]
    plus: NDArray[np.float64]
    minus: NDArray[np.float64]
    total: float

@dataclass
class DualReport:
    objective: float
    gap: float
    violation: float
    bias: float
    iterations: int
    converged: bool

class KernelDual:
    y: NDArray[np.float64]
    def __init__(
        self,
        K: NDArray[np.float32] | NDArray[np.float64] | RowsOnDemand,
        y: NDArray[np.float64],
        offset: bool = False,
        unit_diagonal: bool = False,
        max_iterations: int = ...,
        limit: float = 0.0,
        dual: Dual | None = None,
    ) -> None: ...
    def multiply(self, c: NDArray[np.float64]) -> NDArray[np.float64]: ...
    def solve(
        self,
        lo: NDArray[np.float64],
        hi: NDArray[np.float64],
        tolerance: float,
        start: NDArray[np.float64] | None = None,
        terms: Terms | None = None,
    ) -> tuple[NDArray[np.float64], NDArray[np.float64], DualReport]: ...
    def online_epoch(
        self,
        lo: NDArray[np.float64],
        hi: NDArray[np.float64],
        order: NDArray[np.int64],
        tolerance: float,
        b: NDArray[np.float64],
    ) -> int: ...
    def path(
        self,
        weight: NDArray[np.float64],
        unit: NDArray[np.float64] | None,
        costs: NDArray[np.float64],
        tolerance: float,
        before: tuple[float, NDArray[np.float64], NDArray[np.float64]] | None = None,
    ) -> tuple[NDArray[np.float64], NDArray[np.float64], list[DualReport]]: ...
