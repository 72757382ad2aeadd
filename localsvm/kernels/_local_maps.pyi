import numpy as np
from numpy.typing import NDArray

MAPS: tuple[str, ...]

class LocalMaps:
    size: int
    def __init__(
        self,
        kind: str,
        gammas: NDArray[np.float32],
        anchors: NDArray[np.float32],
        weights: NDArray[np.float32],
        level: int | None = None,
    ) -> None: ...
    def values(self, X: NDArray[np.float32], out: NDArray[np.float32]) -> None: ...
