"""Runs that are stopped: exit codes, no process left behind, and resuming to the same bits."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import Any

import pytest
from command_line import SLOW, error, invoke, records, run, session, start, wait_until
from test_train import content

PROMPT = 3.0  # seconds: "within a second" on a machine that may be busy with other tests


def started(*args: Any) -> Any:
    """A training run that has finished at least one cell."""
    process = start("train", *SLOW, *args)
    wait_until(lambda: records(Path(args[-1])) or process.poll() is not None)
    assert process.poll() is None, process.communicate()
    return process


@pytest.mark.parametrize("jobs", [1, 2])
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_signals_end_a_run_at_once(jobs: int, number: int, code: int, large_file: Path, tmp_path: Path) -> None:
    model = tmp_path / "m.h5"
    process = started("-j", jobs, large_file, model)
    begun = time.monotonic()
    os.killpg(process.pid, number)  # as Ctrl-C and batch systems do: every process of the group gets it
    _, stderr = process.communicate(timeout=PROMPT)
    assert process.returncode == code
    assert b"cells finished; go on with --resume" in stderr and b"Traceback" not in stderr
    wait_until(lambda: not session(process.pid), PROMPT - (time.monotonic() - begun))
    assert sorted(p.name for p in tmp_path.iterdir()) == ["m.h5.journal"]


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_killed_run_resumes_to_the_same_bits(jobs: int, large_file: Path, tmp_path: Path) -> None:
    options = ("-g", "1", "-C", "0.3:30:3", "-v", "5", "-c", "1000")
    invoke("train", "-q", "-j", 2, *options, large_file, tmp_path / "whole.h5")
    model = tmp_path / "m.h5"
    process = start("train", *options, "-j", jobs, large_file, model)
    wait_until(lambda: records(model) or process.poll() is not None)
    process.kill()
    process.communicate()
    wait_until(lambda: not session(process.pid))
    assert not model.exists()
    assert "--resume" in error("train", *options, large_file, model)
    assert "differ" in error("train", "--resume", *options, "--seed", 1, large_file, model)
    done = run("train", "--resume", "-j", 3 - jobs, *options, large_file, model)
    assert done.returncode == 0 and b"cells were finished before" in done.stderr
    assert content(model) == content(tmp_path / "whole.h5")
    assert not Path(f"{model}.journal").exists()


def test_a_killed_worker_is_a_message(large_file: Path, tmp_path: Path) -> None:
    process = started("-j", 2, large_file, tmp_path / "m.h5")
    workers = [p for p in session(process.pid) if b"popen_loky" in Path(f"/proc/{p}/cmdline").read_bytes()]
    os.kill(workers[0], signal.SIGKILL)
    _, stderr = process.communicate(timeout=PROMPT)
    assert process.returncode == 1
    assert b"error: a worker process was killed" in stderr and b"Traceback" not in stderr
