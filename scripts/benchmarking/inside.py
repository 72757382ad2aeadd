"""What a contestant does inside its own process: time its calls, run a command with all its processes, watch memory.

figures = timed(lambda: SVC().fit(X, y))     # {"wall": 0.08, "first": 0.09, "cpu": 0.08, "calls": 5}
report, figures = lsvm("train", ["-c", "2000", "train.libsvm", "model.h5"])
"""

from __future__ import annotations

import json
import os
import resource
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

ENOUGH_SECONDS, ENOUGH_CALLS = 1.0, 7
SAMPLING_SHARE, SHORTEST_PAUSE = 0.02, 0.1
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


def processor_seconds() -> float:
    """Of this process, all its threads, and its ended children."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(u.ru_utime + u.ru_stime for u in used)


def own_peak() -> int:
    """The most bytes that this process has had in memory."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10


def error(labels: Any, wanted: Any) -> float:
    """Share of wrong labels, in per cent."""
    return 100 * float((labels != wanted).mean())


def lsvm(name: str, arguments: list[str]) -> tuple[Any, Figures]:
    """(JSON report, figures) of an `lsvm` command and all its processes; the command's own words if it fails."""
    command = [sys.executable, "-m", "localsvm", name, "--json", "--force", "-q", *arguments]
    cpu, started = processor_seconds(), time.perf_counter()
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process, Memory(process.pid) as memory:
        out, _ = process.communicate()
    wall = time.perf_counter() - started
    if process.returncode:
        sys.exit(process.returncode)  # its message is on stderr
    figures = {"wall": wall, "cpu": processor_seconds() - cpu, "peak": memory.peak, "peak_mapped": memory.mapped}
    return json.loads(out), figures


class Memory:
    """Samples the memory of a process and all below it, each page counted once: the sum of proportional set sizes.

    peak: the most bytes at once, without pages of files, which the system can drop; mapped: the most with them. The
    pauses are as long as keeps sampling under two per cent of a core, so that a short peak may be missed.
    """

    def __init__(self, root: int) -> None:
        self.peak = self.mapped = 0
        self._root, self._over = root, threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Memory:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _watch(self) -> None:
        pause = 0.0
        while not self._over.wait(pause):
            started = time.thread_time()
            sizes = [proportional(pid) for pid in family(self._root)]
            self.peak = max(self.peak, sum(size - files for size, files in sizes))
            self.mapped = max(self.mapped, sum(size for size, _ in sizes))
            pause = max(SHORTEST_PAUSE, (time.thread_time() - started) / SAMPLING_SHARE)


def family(root: int) -> list[int]:
    """A process and all its descendants."""
    children: dict[int, list[int]] = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            children.setdefault(_parent(folder), []).append(int(folder.name))
    found = [root]
    for pid in found:
        found += children.get(pid, [])
    return found


def _parent(folder: Path) -> int:
    try:
        return int((folder / "stat").read_text().rpartition(")")[2].split()[1])
    except (OSError, IndexError):
        return -1  # it has ended


def proportional(pid: int) -> tuple[int, int]:
    """(bytes, those of files) of a process, shared pages divided among those who share them; zeros if it has ended."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()[1:]
    except OSError:
        return 0, 0
    sizes = {line.split(":")[0]: int(line.split()[1]) << 10 for line in lines}
    return sizes.get("Pss", 0), sizes.get("Pss_File", 0)


def threads() -> int:
    """How many threads this contestant may use."""
    return len(os.sched_getaffinity(0))
