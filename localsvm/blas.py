"""Threads of the libraries for linear algebra: one in each process, as threads and processes of ours work side by side.

With more, the threads of OpenBLAS wait for each other in loops that take processor time, and results depend in their
last bits on the number of cores of the machine.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import cache
from typing import Any

ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")  # environment variables


def one_thread() -> AbstractContextManager[Any]:
    """A context in which a process that began with other settings has one thread, too."""
    return _limited()(limits=1)


@cache
def _limited() -> Callable[..., AbstractContextManager[Any]]:
    """What limits the threads of numpy and scipy; looking for their libraries takes milliseconds."""
    import scipy.linalg  # noqa: F401 - libraries that are loaded later would not be found
    from threadpoolctl import ThreadpoolController

    limit: Callable[..., AbstractContextManager[Any]] = ThreadpoolController().limit
    return limit
