from typing import Any

import numpy as np
import numpy.typing as npt

BEFORE: int
AFTER: int
SKIP: int
NUMBER: int
LEVEL: int
FAULTS: dict[int, str]

class CSVFault(Exception):
    name: str
    line: int
    column: int
    offset: int
    fields: int
    def __init__(self, name: str, line: int, column: int, offset: int, fields: int) -> None: ...

def cut(text: Any, begin: int, end: int, delimiter: int) -> int: ...
def read(
    text: Any, begin: int, end: int, delimiter: int, kinds: npt.NDArray[np.uint8], missing: tuple[bytes, ...]
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int32], list[list[bytes]], int]: ...
