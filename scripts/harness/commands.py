"""Processes that are measured: whole `lsvm` commands, and contestants with pinned threads.

report, figures = lsvm("train", ["-c", "2000", "train.libsvm", "model.h5"])
tested = train_and_test(["-m", "l3"], files)
result = run_contestant([sys.executable, "script.py"], cores=1, limit=600)
"""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from harness.memory import Memory
from harness.timing import Figures

if TYPE_CHECKING:
    from harness.datasets import Files

PATIENCE = 30.0  # seconds that a stopped command has to clean up after itself
ANSWER = "benchmark answer: "
LONGEST_MESSAGE = 200


def lsvm(name: str, arguments: Sequence[str], limit: float | None = None) -> tuple[Any, Figures]:
    """Run an `lsvm` command: (its JSON report; wall and processor seconds and peak memory, with those of its workers).

    Raises subprocess.TimeoutExpired after `limit` seconds, the command stopped; CalledProcessError where it fails.
    """
    command = [sys.executable, "-m", "localsvm", name, "--json", "--force", "-q", *arguments]
    cpu, started = children_seconds(), time.perf_counter()
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process, Memory(process.pid) as memory:
        try:
            out, _ = process.communicate(timeout=limit)
        except BaseException:
            stop(process)
            raise
    wall = time.perf_counter() - started
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command)
    figures = {"wall": wall, "cpu": children_seconds() - cpu, "peak": memory.peak, "peak_mapped": memory.mapped}
    return json.loads(out), figures


class Tested(NamedTuple):
    """Reports and figures of a training and of the prediction of a test file."""

    summary: dict[str, Any]
    score: dict[str, Any]
    training: Figures
    prediction: Figures

    @property
    def accuracy(self) -> float:
        """Accuracy on the test file, in per cent."""
        return 100 * float(self.score["accuracy"])

    @property
    def cv_accuracy(self) -> float | None:
        """Accuracy on held-out rows, in per cent; None where nothing was held out."""
        return None if self.summary["cv_error"] is None else 100 * (1 - self.summary["cv_error"])


def train_and_test(given: Sequence[str], files: Files, jobs: Sequence[str] = (), train: Path | None = None) -> Tested:
    """`lsvm-train` with these options on the set's training file, or on another one, and `lsvm-predict`."""
    report, training = lsvm("train", [*given, *jobs, str(train or files.train), str(files.model)])
    score, prediction = lsvm("predict", [*jobs, str(files.test), str(files.model), str(files.predictions)])
    return Tested(report["summary"], score, training, prediction)


def best_point(given: Sequence[str], rows: Path) -> list[str]:
    """Options of the point that cross-validation chooses from a grid."""
    report, _ = lsvm("cv", [*given, str(rows)])
    best = next(point for point in report["points"] if point["best"])
    flags = {"gamma": "-g", "cost": "-C", "clusters": "-K", "landmarks_count": "-L"}
    return [word for what, flag in flags.items() if best.get(what) is not None for word in (flag, str(best[what]))]


def children_seconds() -> float:
    """Processor seconds of the ended children."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def stop(process: subprocess.Popen[bytes]) -> None:
    """End a command, its workers with it: asked first, killed where it does not answer."""
    process.terminate()
    try:
        process.wait(PATIENCE)
    except subprocess.TimeoutExpired:
        process.kill()


def run_contestant(command: list[str], cores: int, limit: float | None) -> dict[str, Any]:
    """Run a contestant's process: its figures; or that it failed and its last words, or that it was stopped."""
    allowed = sorted(os.sched_getaffinity(0))[:cores]
    started = time.perf_counter()
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=pinned(cores), start_new_session=True,
        preexec_fn=lambda: os.sched_setaffinity(0, allowed),
    ) as process:  # fmt: skip
        try:
            out, err = process.communicate(timeout=limit)
        except subprocess.TimeoutExpired:
            return {"status": "timeout", "message": f"stopped after {limit:g} s"}
        finally:  # nothing of the contestant outlives it, also when this program is interrupted
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
    answers = [line for line in out.splitlines() if line.startswith(ANSWER)]
    if process.returncode or not answers:
        return {"status": "failed", "message": last_words(err) or f"ended with exit status {process.returncode}"}
    figures = json.loads(answers[-1].removeprefix(ANSWER))
    return {"status": "ok", "figures": {**figures, "process": time.perf_counter() - started}}


def answer(figures: Figures) -> None:
    """Print the figures, as a contestant's process does at its end."""
    print(ANSWER + json.dumps(figures), flush=True)


def pinned(cores: int) -> dict[str, str]:
    """The environment with so many threads for all libraries that take the number from there."""
    names = ("OMP", "OPENBLAS", "MKL", "BLIS", "NUMEXPR", "VECLIB_MAXIMUM")
    return os.environ | {f"{name}_NUM_THREADS": str(cores) for name in names}


def last_words(text: str) -> str:
    """The last line of what a process printed."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1][:LONGEST_MESSAGE] if lines else ""
