from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from localsvm.data.blocks.dataset import Examples

@dataclass(frozen=True)
class LinearReport:
    primal: float
    dual: float
    steps: int
    converged: bool

@dataclass(frozen=True)
class Terms:
    coef: NDArray[np.float64]
    curvature: NDArray[np.float64]
    smooth: float
    loss: float
    dual: float

@dataclass(frozen=True)
class Hessian:
    blocks: NDArray[np.float64]
    border: NDArray[np.float64]
    corner: float

class RowLosses:
    def terms(self, f: NDArray[np.float64]) -> Terms: ...
    def slope(self, f: NDArray[np.float64], df: NDArray[np.float64], t: float) -> tuple[float, float]: ...

class Margins(RowLosses):
    def __init__(self, y: NDArray[np.float64], cost: NDArray[np.float64], width: float) -> None: ...

class Residuals(RowLosses):
    def __init__(
        self,
        y: NDArray[np.float64],
        cost: NDArray[np.float64],
        up: float,
        down: float,
        epsilon: float,
        width: float,
        bent: bool,
    ) -> None: ...

class LinearRows:
    n: int
    size: int
    side: int
    tasks: int
    X: Examples
    task: Any
    bias: float
    shared_bias: bool
    def __init__(
        self, X: Examples, tasks: int = 1, task: Any = None, bias: float = 1.0, shared_bias: bool = True
    ) -> None: ...
    def values(self, w: NDArray[np.float64], first: int = 0, last: int | None = None) -> NDArray[np.float64]: ...
    def norms(self) -> NDArray[np.float64]: ...
    def add(self, coef: NDArray[np.float64]) -> NDArray[np.float64]: ...
    def curve(self, curvature: NDArray[np.float64], v: NDArray[np.float64]) -> NDArray[np.float64]: ...
    def hessian(self, curvature: NDArray[np.float64], onto: Hessian | None = None) -> Hessian: ...
    def sdca(
        self,
        y: NDArray[np.float64],
        cost: NDArray[np.float64],
        squared: bool,
        tolerance: float,
        *,
        start: NDArray[np.float64] | None = None,
        seed: int = 0,
        max_passes: int = 10000,
    ) -> tuple[NDArray[np.float64], NDArray[np.float64], LinearReport]: ...
    def average_gradient(
        self,
        y: NDArray[np.float64],
        cost: NDArray[np.float64],
        order: NDArray[np.int64],
        eta: float,
        coef: NDArray[np.float64],
        w: NDArray[np.float64],
    ) -> None: ...

class Descent:
    steps: int
    def __init__(self, size: int, rows: float, t0: float, loss: Residuals | None = None) -> None: ...
    def run(
        self, rows: LinearRows, y: NDArray[np.float64], cost: NDArray[np.float64], order: NDArray[np.int64]
    ) -> None: ...
    def forget(self) -> None: ...
    def average(self) -> NDArray[np.float64]: ...
