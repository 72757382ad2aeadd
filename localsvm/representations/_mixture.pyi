import numpy as np
from numpy.typing import NDArray

class Components:
    def __init__(
        self,
        offset: NDArray[np.float64],
        mean: NDArray[np.float64],
        factor: NDArray[np.float64],
        weights: NDArray[np.float64],
        loss: int,
        hard: bool,
        level: int | None = None,
    ) -> None: ...
    def decide(self, X: NDArray[np.float32]) -> NDArray[np.float64]: ...
