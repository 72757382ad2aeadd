"""The cost of calls, measured inside a process.

figures = timed(lambda: SVC().fit(X, y))     # {"wall": 0.08, "first": 0.09, "cpu": 0.08, "calls": 5, "peak": 96079872}
"""

from __future__ import annotations

import resource
import statistics
import time
from collections.abc import Callable
from typing import Any

ENOUGH_SECONDS, ENOUGH_CALLS = 1.0, 7
Figures = dict[str, Any]


def timed(call: Callable[[], Any], most: int = ENOUGH_CALLS) -> Figures:
    """Seconds of a call: the median of as many as a second holds, at least one; and of the first, in fresh memory."""
    walls, cpus = [], []
    while not walls or (sum(walls) < ENOUGH_SECONDS and len(walls) < most):
        wall, cpu = time.perf_counter(), processor_seconds()
        call()
        walls.append(time.perf_counter() - wall)
        cpus.append(processor_seconds() - cpu)
    median, cpu = statistics.median(walls), statistics.median(cpus)
    return {"wall": median, "first": walls[0], "cpu": cpu, "calls": len(walls), "peak": own_peak()}


def best_of(repeats: int, call: Callable[[], Any]) -> float:
    """The fewest processor seconds of a call."""
    seconds = []
    for _ in range(repeats):
        started = processor_seconds()
        call()
        seconds.append(processor_seconds() - started)
    return min(seconds)


def processor_seconds() -> float:
    """Processor seconds of this process, all its threads, and its ended children."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(u.ru_utime + u.ru_stime for u in used)


def own_peak() -> int:
    """The most bytes that this process has had in memory."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10


def error(labels: Any, expected: Any) -> float:
    """Share of wrong labels, in per cent."""
    return 100 * float((labels != expected).mean())
