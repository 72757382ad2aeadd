from typing import Any

import numpy as np
from numpy.typing import NDArray

LEVELS: tuple[str, ...]

def simd_level() -> int: ...
def check_sparse(
    X: Any, values: NDArray[np.float32], indices: NDArray[np.int32], indptr: NDArray[np.int64]
) -> None: ...
