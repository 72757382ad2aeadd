"""What the figures were measured on, and of what.

machine()    # {"cpu": "AMD EPYC", "cores": 2, "simd": "avx2", "memory_gib": 23}
"""

from __future__ import annotations

import os
import subprocess
from typing import Any

from measuring import processor

from localsvm.kernels._kernels import LEVELS, simd_level


def machine() -> dict[str, Any]:
    """Processor, cores, the SIMD level that the core uses (LOCALSVM_SIMD lowers it), and memory."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return {"cpu": processor(), "cores": os.cpu_count(), "simd": LEVELS[simd_level()], "memory_gib": round(memory)}


def commit() -> str:
    """The commit of the working tree, marked if it has changes."""
    told = subprocess.run(["git", "describe", "--always", "--dirty"], capture_output=True, text=True, check=False)
    return told.stdout.strip() or "no repository"
