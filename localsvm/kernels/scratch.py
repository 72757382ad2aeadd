"""Large buffers that are used again and again, so that their memory is not allocated anew for each cell."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from localsvm.kernels._kernels import aligned


class Scratch:
    """Named buffers of one caller: a worker, a thread or a test. Threads must not share them.

    Touching fresh memory costs more than computing a kernel into it, so a worker keeps its buffers from cell to cell.
    """

    def __init__(self) -> None:
        self._buffers: dict[str, NDArray[np.uint8]] = {}
        self._parts: dict[Hashable, Scratch] = {}

    def part(self, key: Hashable) -> Scratch:
        """Buffers apart from these, the same ones for the same key."""
        return self._parts.setdefault(key, Scratch())

    def array(self, name: str, shape: tuple[int, ...], dtype: Any) -> NDArray[Any]:
        """An aligned, uninitialised array in the buffer with this name; the next call with that name overwrites it."""
        size = int(np.prod(shape)) * np.dtype(dtype).itemsize
        if name not in self._buffers or self._buffers[name].nbytes < size:
            self._buffers.pop(name, None)
            self._buffers[name] = aligned((size,), np.uint8)
        view: NDArray[Any] = self._buffers[name][:size].view(dtype).reshape(shape)
        return view
