"""What the reproductions share: whole `lsvm` commands with what they cost, logs of runs, the sets, and texts.

Not a command; the scripts beside it import it: `from measuring import command`.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from localsvm.data.dataset import Dataset
from localsvm.data.reading import read

Run = TypeVar("Run")  # a dataclass of figures
PATIENCE = 30.0  # seconds that a stopped command has to clean up after itself


def command(name: str, arguments: list[str], limit: float | None = None) -> tuple[dict[str, Any], float, float]:
    """(JSON report, processor seconds of the process and its workers, wall-clock seconds) of an `lsvm` command.

    Raises subprocess.TimeoutExpired after `limit` seconds, the command stopped; CalledProcessError where it fails.
    """
    program = [sys.executable, "-m", "localsvm", name, *arguments]
    before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    with subprocess.Popen(program, stdout=subprocess.PIPE, env=os.environ) as process:
        try:
            out, _ = process.communicate(timeout=limit)
        except BaseException:
            stop(process)
            raise
    wall, after = time.perf_counter() - started, resource.getrusage(resource.RUSAGE_CHILDREN)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, program)
    return json.loads(out), after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, wall


def stop(process: subprocess.Popen[bytes]) -> None:
    """End a command, its workers with it: asked first, killed where it does not answer."""
    process.terminate()
    try:
        process.wait(PATIENCE)
    except subprocess.TimeoutExpired:
        process.kill()


def finished(log: Path, kind: type[Run]) -> list[Run]:
    """The runs that earlier calls kept."""
    return [kind(**json.loads(line)) for line in log.read_text().splitlines()] if log.exists() else []


def keep(log: Path, run: Any) -> None:
    """Append a run to the log, as soon as it has ended."""
    with log.open("a") as file:
        file.write(json.dumps(asdict(run)) + "\n")


def examples(data: Path, name: str, part: str) -> Dataset:
    """A part ("train" or "test") of a set in the folder; covtype as class 2 against the rest."""
    found = read(data / f"{name}.{part}.libsvm.xz")
    return Dataset(found.X, np.where(found.y == 2, 1.0, -1.0)) if name == "covtype" else found


def thousands(n: int) -> str:
    """12 345."""
    return f"{n:,}".replace(",", " ")


def processor() -> str:
    """The machine's processor as the kernel names it."""
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return "unnamed processor"
