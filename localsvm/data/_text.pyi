from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Bytes: TypeAlias = npt.NDArray[np.uint8]
Floats: TypeAlias = npt.NDArray[np.float32]
Labels: TypeAlias = npt.NDArray[np.float64]

FAULTS: dict[int, str]
ENTRY_BYTES: int
ROW_BYTES: int

class TextFault(Exception):
    name: str
    line: int
    column: int
    offset: int
    def __init__(self, name: str, line: int, column: int, offset: int) -> None: ...

def count(text: Any, zero_based: bool) -> tuple[int, int, int, int]: ...
def read_dense(text: Any, values: Floats, labels: Labels, zero_based: bool) -> None: ...
def read_sparse(
    text: Any,
    values: Floats,
    indices: npt.NDArray[np.int32],
    lengths: npt.NDArray[np.int64],
    labels: Labels,
    width: int,
    zero_based: bool,
) -> int: ...
def pick(text: Any, columns: npt.NDArray[np.int32], values: Labels, labels: Labels, zero_based: bool) -> None: ...
def write_dense(values: Floats, labels: Bytes, out: Bytes, zero_based: bool, digits: int) -> int: ...
def write_sparse(
    values: Floats,
    indices: npt.NDArray[np.int32],
    indptr: npt.NDArray[np.int64],
    labels: Bytes,
    out: Bytes,
    zero_based: bool,
    digits: int,
) -> int: ...
