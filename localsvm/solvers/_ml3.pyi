import numpy as np
from numpy.typing import NDArray

from localsvm.data.blocks.dataset import Dense, Examples

class ML3Model:
    def __init__(self, classes: int, models: int, features: int, q: float) -> None: ...
    def lines(self) -> Dense: ...
    def shaped(self, lines: Dense) -> Dense: ...
    def put(self, W: Dense) -> None: ...
    def scores(self, X: Examples) -> NDArray[np.float64]: ...

class ML3Training:
    def __init__(
        self,
        model: ML3Model,
        X: Examples,
        codes: NDArray[np.int32],
        weight: NDArray[np.float64],
        p: float,
        lambda_: float,
        radius: float,
        seed: int,
    ) -> None: ...
    def epoch(
        self, order: NDArray[np.int64], steps: float, initial: bool = False, average: bool = False
    ) -> Dense | None: ...
