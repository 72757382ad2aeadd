"""The machine that runs are measured on, and their commit.

machine()             # {"cpu": "AMD EPYC", "cores": 2, "simd": "avx2", "memory_gib": 23}
commit()              # "31b4d1c-dirty"
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from harness.library import simd_name

EARLIER = {"cpu": "AMD EPYC", "cores": 1}  # of the runs that were logged before the log named the machine
NUMBERS = {1: "one core", 2: "two cores"}


def machine() -> dict[str, Any]:
    """Processor, cores that this process may use, SIMD level (LOCALSVM_SIMD lowers it), and memory."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return {"cpu": processor(), "cores": cores(), "simd": simd_name(), "memory_gib": round(memory)}


def cores() -> int:
    """Number of cores that this process may use."""
    return len(os.sched_getaffinity(0))


def processor() -> str:
    """The processor as the kernel names it."""
    for entry in Path("/proc/cpuinfo").read_text().splitlines():
        if entry.startswith("model name"):
            return entry.split(":", 1)[1].strip()
    return "unnamed processor"


def commit() -> str:
    """The commit of the working tree, marked if it has changes."""
    described = subprocess.run(["git", "describe", "--always", "--dirty"], capture_output=True, text=True, check=False)
    return described.stdout.strip() or "no repository"


def processors(machines: Iterable[dict[str, Any] | None]) -> str:
    """Names of the processors, as in "AMD EPYC"; several are joined by "and"."""
    return " and ".join(dict.fromkeys((m or EARLIER)["cpu"] for m in machines))


def with_article(cpu: str) -> str:
    """Name of a processor with its article, as in "an AMD EPYC"."""
    return f"{'an' if cpu[0] in 'AEIO' else 'a'} {cpu}"


def cores_of_processors(machines: Iterable[dict[str, Any] | None]) -> str:
    """Cores of the machines, as in "one core of an AMD EPYC"; several machines are joined by "and"."""
    known = [m or EARLIER for m in machines]
    texts = (f"{NUMBERS.get(m['cores'], str(m['cores']) + ' cores')} of {with_article(m['cpu'])}" for m in known)
    return " and ".join(dict.fromkeys(texts))
