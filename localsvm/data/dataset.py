"""Examples in memory."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

Examples = NDArray[np.float32] | sparse.csr_array


@dataclass
class Dataset:
    """X (n, d) float32, y (n,) float64."""

    X: Examples
    y: NDArray[np.float64]
