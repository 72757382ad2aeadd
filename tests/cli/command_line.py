"""Helpers by which the tests run commands: within the process, or as a program of its own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from localsvm.cli.group import lsvm
from localsvm.runs.progress import Work

DEADLINE = 30.0  # seconds after which a condition that is waited for has failed
PLAIN = ("--metric", "none")  # for what is about something else: learning one takes longer than all the rest
POINTS = ("-g", "0.5,4", "-C", "0.3,3")
FAST = (*POINTS, *PLAIN)
# a run of several seconds on one core: ten folds, cells as large as the data allow
SLOW = ("-c", "2000", "-v", "10", *PLAIN)


def invoke(*args: Any, code: int | None = 0, stdin: bytes | None = None) -> Result:
    """Run `lsvm args` in this process and check its exit code."""
    result = CliRunner().invoke(lsvm, [str(arg) for arg in args], input=stdin)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert code is None or result.exit_code == code, result.output
    return result


@contextmanager
def over_after_a_record(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Within it, the --time-limit of a command is over once a cell, or the score of a setting, is recorded."""
    record = Work.record

    def over(work: Any, coarse: int, name: str) -> None:
        record(work, coarse, name)
        signal.raise_signal(signal.SIGALRM)  # as the timer does

    with monkeypatch.context() as timer:
        timer.setattr(Work, "record", over)
        yield


class Stopped(Exception):
    """Ends a run in the middle."""


@contextmanager
def stopped_after(count: int, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Within it, a run is stopped once so many cells, or scores of settings, are recorded; it has to be."""
    record, counted = Work.record, []

    def stopping(work: Any, coarse: int, name: str) -> None:
        record(work, coarse, name)
        counted.append(name)
        if len(counted) == count:
            raise Stopped

    with monkeypatch.context() as patch, pytest.raises(Stopped):
        patch.setattr(Work, "record", stopping)
        yield
    assert len(counted) == count


def usage_error(*args: Any) -> str:
    """The message of a command that ends with exit code 2, on one line."""
    return " ".join(invoke(*args, code=2).stderr.split())


def error(*args: Any, **options: Any) -> str:
    """The message of a command that ends with exit code 1, without output."""
    result = invoke(*args, code=1, **options)
    assert result.stderr.startswith("error: ") and "Traceback" not in result.stderr
    assert result.stdout == ""
    return result.stderr.removeprefix("error: ")


def command(*args: Any) -> list[str]:
    """Words of the command line that runs `lsvm args` as a program."""
    return [sys.executable, "-m", "localsvm", *map(str, args)]


def run(*args: Any, **options: Any) -> subprocess.CompletedProcess[bytes]:
    """Run `lsvm args` as a program."""
    return subprocess.run(command(*args), capture_output=True, timeout=120, **options)


SEVERAL = """
import json, sys
from localsvm.cli.group import lsvm
for line in json.loads(sys.argv[1]):
    try:
        lsvm(line, prog_name="lsvm")
    except SystemExit as end:
        if end.code:
            sys.exit(f"{line}: exit code {end.code}")
"""


def run_all(*lines: Sequence[Any], **options: Any) -> str:
    """Run several `lsvm args` in one program, each of which has to end well, and give back what they print."""
    given = json.dumps([[str(arg) for arg in line] for line in lines])
    done = subprocess.run(
        [sys.executable, "-c", SEVERAL, given], capture_output=True, text=True, timeout=120, **options
    )
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


def start(*args: Any, **options: Any) -> subprocess.Popen[bytes]:
    """Start `lsvm args` as a program, the first process of a session of its own."""

    def interruptible() -> None:  # a shell's background jobs, and so their tests, ignore Ctrl-C
        signal.signal(signal.SIGINT, signal.default_int_handler)

    return subprocess.Popen(
        command(*args), stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
        preexec_fn=interruptible, **options,
    )  # fmt: skip


def wait_until(condition: Callable[[], Any], deadline: float = DEADLINE) -> None:
    """Poll until the condition holds; AssertionError after the deadline."""
    end = time.monotonic() + deadline
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.005)


def session(leader: int) -> list[int]:
    """The processes of a session that still run."""
    pids = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
        except OSError:  # it ended meanwhile
            continue
        if int(fields[3]) == leader and fields[0] != "Z":
            pids.append(int(folder.name))
    return pids


def records(model: Path) -> int:
    """Number of finished cells and settings in the journal of a running training (docs/model-format.md)."""
    journal = Path(f"{model}.journal")
    if not journal.exists():
        return 0
    content = journal.read_bytes()
    count, at = 0, 84 + int.from_bytes(content[76:80], "little")
    while at + 48 < len(content):
        at += 48 + int.from_bytes(content[at + 4 : at + 12], "little")
        count += at <= len(content)
    return count


def clean_environment(**extra: str) -> dict[str, str]:
    """The environment with some variables set."""
    return {**os.environ, **extra}
