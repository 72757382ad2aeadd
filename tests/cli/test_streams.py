"""Standard streams that are closed or full, and Ctrl-C before anything has begun: one message, never a traceback."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from command_line import FAST, command, usage_error

from localsvm.data.readers.libsvm import read

FULL = pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")


def shell(redirection: str, *args: object) -> subprocess.CompletedProcess[str]:
    """A command run by a shell with some redirections."""
    line = ["sh", "-c", f'exec "$@" {redirection}', "sh", *command(*args)]
    return subprocess.run(line, capture_output=True, text=True, timeout=120)


@pytest.mark.fast(1)
@pytest.mark.parametrize("jobs", [1, 2])
@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-", pytest.param("2>/dev/full", marks=FULL)])
def test_training_needs_no_standard_stream(closed: str, jobs: int, train_file: Path, tmp_path: Path) -> None:
    done = shell(closed, "train", *FAST, "-j", jobs, train_file, tmp_path / "m.h5")
    assert done.returncode == 0 and "Traceback" not in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["m.h5"]


def test_predictions_do_not_need_stderr(test_file: Path, model_file: Path) -> None:
    done = shell("2>&-", "predict", test_file, model_file)
    assert (done.returncode, len(done.stdout.splitlines())) == (0, len(read(test_file).y))


@pytest.mark.parametrize(
    ("to", "reason"),
    [(">&-", "Bad file descriptor"), pytest.param(">/dev/full", "No space left on device", marks=FULL)],
)
@pytest.mark.parametrize("name", ["predict", "inspect", "convert", "help"])
def test_what_cannot_be_printed_is_one_message(
    name: str, to: str, reason: str, test_file: Path, model_file: Path
) -> None:
    args = {"predict": ("-q", test_file, model_file), "inspect": (model_file,), "convert": (test_file, "-")}
    done = shell(to, *((name, *args[name]) if name in args else ("--help",)))
    assert (done.returncode, done.stderr) == (1, f"error: output: {reason}\n")


@pytest.mark.parametrize("name", ["train", "predict"])
def test_a_closed_stdin_is_one_message(name: str, model_file: Path, tmp_path: Path) -> None:
    second = tmp_path / "new.h5" if name == "train" else model_file
    done = shell("<&-", name, "-", second)
    assert done.returncode == 1
    assert done.stderr == "error: <stdin>: cannot be read (Bad file descriptor); check what it is\n"


@pytest.mark.fast(1)
@pytest.mark.parametrize("module", ["click", "numpy", "scipy.sparse", "h5py", "localsvm.runs.train"])
def test_an_interrupt_while_modules_are_imported(module: str, train_file: Path, tmp_path: Path) -> None:
    code = (
        "import signal, sys\n"
        "class Interrupts:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        f"        if name == {module!r}: signal.raise_signal(signal.SIGINT)\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "from localsvm.__main__ import train\n"
        "sys.meta_path.insert(0, Interrupts())\n"
        "train()\n"
    )
    args = [sys.executable, "-c", code, str(train_file), str(tmp_path / "m.h5")]
    done = subprocess.run(args, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (130, "")
    assert done.stderr.strip() in ("", "stopped")  # the signal waits for the import; the run may have begun then
    assert not list(tmp_path.iterdir())


def test_one_pass_over_a_file_has_no_folds_and_needs_a_file(train_file: Path, tmp_path: Path) -> None:
    once = ("train", "-m", "mllkm", "--online", "full")
    assert "has no folds; leave -v out" in usage_error(*once, "-v", "3", train_file, tmp_path / "m.h5")
    assert "goes without stdin; write it to a file first" in usage_error(*once, "-", tmp_path / "m.h5")
