"""Runs that are stopped: exit codes, no process left behind, and resuming to the same bits."""

from __future__ import annotations

import importlib
import os
import re
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from command_line import (
    PLAIN,
    SLOW,
    error,
    invoke,
    over_after_a_record,
    records,
    run,
    session,
    start,
    usage_error,
    wait_until,
)
from test_train import content

from localsvm.cli.program import Terminated, _stoppable
from localsvm.cli.value_types import DurationType
from localsvm.runs.cells import schedule as scheduling

PROMPT = 3.0  # seconds: "within a second" on a machine that may be busy with other tests


def started(*args: Any) -> Any:
    """A training run that has finished at least one cell."""
    process = start("train", *SLOW, *args)
    wait_until(lambda: records(Path(args[-1])) or process.poll() is not None)
    assert process.poll() is None, process.communicate()
    return process


@pytest.mark.fast(1)
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


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_during_an_import_comes_when_that_is_done(
    number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "begun.py").write_text(f"import os\nos.kill(os.getpid(), {int(number)})\nwhole = True\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(BaseException) as caught, _stoppable():
        assert importlib.import_module("begun").whole
        threading.Event().wait(60.0)
    assert caught.type is (KeyboardInterrupt if number == signal.SIGINT else Terminated)
    del sys.modules["begun"]


@pytest.mark.fast(1)
@pytest.mark.parametrize("jobs", [1, 2])
def test_a_killed_run_resumes_to_the_same_bits(jobs: int, large_file: Path, tmp_path: Path) -> None:
    options = ("-g", "1", "-C", "0.3:30:3", "-v", "5", "-c", "1000", *PLAIN)
    invoke("train", "-q", "-j", 2, *options, large_file, tmp_path / "whole.h5")
    model = tmp_path / "m.h5"
    process = start("train", *options, "-j", jobs, large_file, model)
    wait_until(lambda: records(model) or process.poll() is not None)
    process.kill()
    process.communicate()
    wait_until(lambda: not session(process.pid))
    assert not model.exists()
    assert "--resume" in error("train", *options, large_file, model)
    assert "--seed was 0, is 1" in error("train", "--resume", *options, "--seed", 1, large_file, model)
    done = run("train", "--resume", "-j", 3 - jobs, *options, large_file, model)
    assert done.returncode == 0 and b" before" in done.stderr
    assert content(model) == content(tmp_path / "whole.h5")
    assert not Path(f"{model}.journal").exists()


ONE_CELL = ("-P", "none", "-g", "0.5,1,2", "-C", "0.3,3", "-v", "3", *PLAIN)


@pytest.mark.fast(1)
# the alarm may come between a file's opening and the statement that would close it: then Python closes it, and says so
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning", "ignore::ResourceWarning")
@pytest.mark.parametrize("jobs", [1, 2])
def test_a_run_out_of_time_goes_on_later(jobs: int, train_file: Path, tmp_path: Path) -> None:
    model = tmp_path / "m.h5"
    invoke("train", "-q", *ONE_CELL, train_file, tmp_path / "whole.h5")
    line = ("train", "-j", jobs, *ONE_CELL, train_file, model)
    before = signal.getsignal(signal.SIGALRM)
    ended = invoke(*line, "--time-limit", "0.1ms", code=124)
    assert ended.stderr == "error: the time limit is over, and nothing is finished yet; give it more time\n"
    assert (signal.getsignal(signal.SIGALRM), signal.getitimer(signal.ITIMER_REAL)) == (before, (0.0, 0.0))
    assert [path.name for path in tmp_path.iterdir()] == ["whole.h5"]
    invoke(*line, "--resume", "--time-limit", "1h")
    assert content(model) == content(tmp_path / "whole.h5")


@pytest.mark.fast(1)
@pytest.mark.parametrize("jobs", [1, 2])
def test_what_was_scored_when_time_was_over_is_kept(
    jobs: int, train_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = tmp_path / "m.h5"
    monkeypatch.setattr(scheduling, "SMALL_RUN", 0.0)
    invoke("train", "-q", *ONE_CELL, train_file, tmp_path / "whole.h5")
    line = ("train", "-j", jobs, *ONE_CELL, train_file, model)

    with over_after_a_record(monkeypatch):
        ended = invoke(*line, "--time-limit", "1h", code=124)
    assert ended.stderr == (
        "error: the time limit is over with 1 settings scored and 0 of 1 cells finished; go on with --resume\n"
    )
    assert sorted(path.name for path in tmp_path.iterdir()) == ["m.h5.journal", "whole.h5"]
    resumed = invoke(*line, "--resume")
    assert "note: settings scored before, in cells that are not finished: 1\n" in resumed.stderr
    assert content(model) == content(tmp_path / "whole.h5")


LEARNING = """
import signal, sys
from localsvm.cli.group import lsvm
from localsvm.representations.metric_learning import MetricLearner

step, rows = MetricLearner._gradient, []

def stopped(learner, *args):
    rows.append(0)
    if len(rows) == 3:
        signal.raise_signal(getattr(signal, sys.argv[1]))  # as Ctrl-C, batch systems and the timer do
    return step(learner, *args)

MetricLearner._gradient = stopped
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore it
lsvm(sys.argv[2:], prog_name="lsvm")
"""


@pytest.mark.fast(1)
@pytest.mark.parametrize("jobs", [1, 2])
@pytest.mark.parametrize(
    ("number", "code", "message"),
    [
        ("SIGINT", 130, ""),
        ("SIGTERM", 143, ""),
        ("SIGALRM", 124, "error: the time limit is over, and nothing is finished yet; give it more time\n"),
    ],
)
def test_a_run_that_is_stopped_while_it_learns_a_metric_leaves_nothing(
    number: str, code: int, message: str, jobs: int, train_file: Path, tmp_path: Path
) -> None:
    line = ("--metric", "auto", "-j", jobs, "-q", train_file, tmp_path / "out.h5")
    for command in (("train", "--time-limit", "1h"), *([("partition",)] if code != 124 else [])):
        program = [sys.executable, "-c", LEARNING, number, *map(str, (*command, *line))]
        done = subprocess.run(program, capture_output=True, text=True, timeout=60)
        assert (done.returncode, done.stdout) == (code, ""), done.stderr
        assert "Traceback" not in done.stderr and done.stderr.endswith(message)
        assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(("text", "message"), [("30", "as in 90s, 30m or 2h"), ("0s", "as in"), ("-1s", "as in")])
def test_a_time_limit_is_a_time(text: str, message: str, train_file: Path, tmp_path: Path) -> None:
    assert message in usage_error("train", "--time-limit", text, train_file, tmp_path / "m.h5")


@pytest.mark.parametrize(("text", "seconds"), [("90s", 90), ("1:30:00", 5400), ("05:10", 310), ("1-2:00:01", 93601)])
def test_times_are_written_as_batch_systems_have_them(text: str, seconds: float) -> None:
    assert DurationType().convert(text, None, None) == seconds


def test_a_time_limit_needs_a_journal(train_file: Path, tmp_path: Path) -> None:
    streamed = ("--stream", "-m", "linear", "-s", "sgd")
    assert "goes without --time-limit; leave one of the two out" in usage_error(
        "train", *streamed, "--time-limit", "1h", train_file, tmp_path / "m.h5"
    )
    assert "--time-limit needs a MODEL_FILE" in usage_error("train", "--time-limit", "1h", train_file, "-")


def workers(process: Any) -> list[int]:
    pids = []
    for number in session(process.pid):
        with suppress(OSError):  # it may have ended meanwhile
            if b"popen_loky" in Path(f"/proc/{number}/cmdline").read_bytes():
                pids.append(number)
    return pids


def test_a_killed_worker_costs_nothing_but_time(large_file: Path, tmp_path: Path) -> None:
    options = ("-g", "1", "-C", "0.3:30:3", "-v", "5", "-c", "1000", *PLAIN)
    invoke("train", "-q", "-j", 2, *options, large_file, tmp_path / "whole.h5")
    process = start("train", *options, "-j", 2, large_file, tmp_path / "m.h5")
    pids: list[int] = []
    wait_until(lambda: pids.extend(workers(process)) or pids or process.poll() is not None)
    os.kill(pids[0], signal.SIGKILL)  # at once: a busy machine may give this process its turn only at the end
    _, stderr = process.communicate(timeout=120)
    assert process.returncode == 0, stderr
    assert content(tmp_path / "m.h5") == content(tmp_path / "whole.h5")


@pytest.mark.whole
def test_a_cell_whose_worker_is_killed_twice_is_named(large_file: Path, tmp_path: Path) -> None:
    process = started("-j", 2, large_file, tmp_path / "m.h5")
    while process.poll() is None:
        for worker in workers(process):
            with suppress(ProcessLookupError):
                os.kill(worker, signal.SIGKILL)
        time.sleep(0.01)
    _, stderr = process.communicate()
    assert process.returncode == 1
    assert re.search(rb"error: cell \d+ \([\d,]+ rows\): the worker process ended twice by SIGKILL", stderr), stderr
    assert b"go on with --resume" in stderr and b"Traceback" not in stderr
    notes = [line for line in stderr.splitlines() if b"is tried once more" in line]
    assert notes and len(stderr.splitlines()) == 1 + len(notes)


@pytest.mark.fast(1)
@pytest.mark.parametrize("wait", [0.0, 0.03, 0.1, 0.3])
def test_a_run_killed_while_workers_start_leaves_none(wait: float, large_file: Path, tmp_path: Path) -> None:
    process = start("train", *SLOW, "-j", 2, large_file, tmp_path / "m.h5")
    wait_until(lambda: len(session(process.pid)) > 1 or process.poll() is not None)
    time.sleep(wait)  # the moment of the accident
    process.kill()
    _, stderr = process.communicate()  # also waits for the workers, which have the other end
    wait_until(lambda: not session(process.pid))
    assert not stderr or b"resource_tracker: There appear to be" in stderr  # which it removed: joblib's semaphores
