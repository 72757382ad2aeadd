"""The memory of a process and all below it, sampled while it runs.

with subprocess.Popen(command) as process, Memory(process.pid) as memory: process.wait()
memory.peak
"""

from __future__ import annotations

import threading
import time
from pathlib import Path

SAMPLING_SHARE, SHORTEST_PAUSE = 0.02, 0.1


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
    pids = [root]
    for pid in pids:
        pids += children.get(pid, [])
    return pids


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
