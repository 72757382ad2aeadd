"""Signs of life of a long solve: solvers report their steps, and a listener hears of them now and then."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeVar

Result = TypeVar("Result")

SECONDS = 1.0  # between two that are heard

_thread = threading.local()
_listener: Callable[[int], None] | None = None
_next = 0.0
_telling = threading.Lock()


@dataclass(frozen=True)
class Beat:
    """Report of a worker on a solve that goes on: its steps so far."""

    steps: int


@contextmanager
def listening(listener: Callable[[int], None]) -> Iterator[None]:
    """Have `listener` called with the steps of solvers in this process, from whatever thread they run in."""
    global _listener, _next
    before, _listener, _next = _listener, listener, 0.0
    try:
        yield
    finally:
        _listener = before


def as_long_as(needed: Callable[[], None], work: Callable[[int], Result], i: int) -> Result:
    """Result of work(i), in which each beat calls `needed`, whose exception ends it."""
    _thread.needed = needed
    try:
        return work(i)
    finally:
        del _thread.needed


def beat(steps: int) -> None:
    """Report that a solver has made so many steps, in units of its own.

    A call is cheap, but too dear for each step.
    """
    global _next
    if hasattr(_thread, "needed"):
        _thread.needed()
    now = time.monotonic()
    if _listener is None or now < _next or not _telling.acquire(blocking=False):
        return
    try:
        _next = now + SECONDS
        _listener(steps)
    finally:
        _telling.release()
