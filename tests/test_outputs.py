"""Output files are whole or not there, and never in the way of each other."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from localsvm.errors import RunError
from localsvm.store.outputs import check_writable, replacing, signals_held, write_error


def test_check_writable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "file"
    assert check_writable(file) == file
    file.touch()
    with pytest.raises(RunError, match="--force"):
        check_writable(file)
    assert check_writable(file, force=True) == file
    with pytest.raises(RunError, match="this names a folder; name a file"):
        check_writable(f"{tmp_path / 'new'}/")
    with pytest.raises(RunError, match="not a regular file"):
        check_writable(tmp_path, force=True)
    with pytest.raises(RunError, match="does not exist; make it first"):
        check_writable(tmp_path / "absent" / "file")
    with pytest.raises(RunError, match="does not exist"):
        check_writable(file / "below")
    monkeypatch.setattr(os, "access", lambda *_: False)  # the tests may run as root, who may write anywhere
    with pytest.raises(RunError, match="no permission"):
        check_writable(tmp_path / "other")


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "real").write_text("old")
    (tmp_path / "link").symlink_to("real")
    with replacing(tmp_path / "link", force=True) as temporary:
        temporary.write_text("new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_text() == "new"


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o444])
def test_a_replaced_file_is_as_open_as_before(mode: int, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("old")
    file.chmod(mode)
    with replacing(file, force=True) as temporary:
        assert temporary.stat().st_mode & 0o777 == 0o600
        temporary.write_text("new")
    assert file.read_text() == "new" and file.stat().st_mode & 0o777 == mode


@pytest.mark.parametrize("kind", ["pipe", "link", "folder"])
def test_what_is_only_named_like_a_temporary_file_stays(kind: str, tmp_path: Path) -> None:
    with replacing(tmp_path / "file") as temporary:
        other = temporary.with_name(temporary.name[:-12] + "00000000.tmp")
    (tmp_path / "precious").write_text("kept")
    if kind == "pipe":
        os.mkfifo(other)
    elif kind == "link":
        other.symlink_to(tmp_path / "precious")
    else:
        other.mkdir()
    with replacing(tmp_path / "file", force=True) as temporary:
        temporary.write_text("new")
    assert os.path.lexists(other) and (tmp_path / "precious").read_text() == "kept"


def test_a_file_that_appears_meanwhile_is_kept(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="--force"), replacing(tmp_path / "file") as temporary:
        temporary.write_text("mine")
        (tmp_path / "file").write_text("another's")
    assert (tmp_path / "file").read_text() == "another's"
    assert os.listdir(tmp_path) == ["file"]


def test_a_long_name(tmp_path: Path) -> None:
    with replacing(tmp_path / ("n" * 255)) as temporary:
        temporary.write_text("content")
    assert [len(name) for name in os.listdir(tmp_path)] == [255]


def test_errors_of_the_temporary_file_are_translated(tmp_path: Path) -> None:
    expected = pytest.raises(RunError, match="out: cannot be written: No such file")
    with expected, replacing(tmp_path / "out") as temporary:
        temporary.unlink()
        temporary.read_text()
    with pytest.raises(FileNotFoundError), replacing(tmp_path / "out"):
        (tmp_path / "another file").read_text()


WRITING = """
import sys
from localsvm.store.outputs import replacing
with replacing(sys.argv[1]) as temporary:
    temporary.write_text("half")
    print(temporary.name, flush=True)
    sys.stdin.read()
"""


def test_what_a_killed_run_left_is_removed_by_the_next_writer_of_that_file(tmp_path: Path) -> None:
    def writer(name: str) -> tuple[subprocess.Popen[str], str]:
        args = [sys.executable, "-c", WRITING, str(tmp_path / name)]
        pipe = subprocess.PIPE
        process = subprocess.Popen(args, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, text=True)
        assert process.stdout is not None
        return process, process.stdout.readline().strip()

    (killed, abandoned), (other, others), (running, held) = writer("out"), writer("other"), writer("out")
    for process in (killed, other):
        process.kill()
        process.communicate()
    with replacing(tmp_path / "out") as temporary:
        assert set(os.listdir(tmp_path)) == {others, held, temporary.name}
        temporary.write_text("whole")
    assert running.communicate("")[0] == "" and running.returncode == 1  # out has appeared meanwhile
    assert abandoned not in os.listdir(tmp_path) and set(os.listdir(tmp_path)) == {"out", others}
    assert (tmp_path / "out").read_text() == "whole"


def test_write_error_tells_a_full_disk_from_the_rest() -> None:
    for number in (errno.ENOSPC, errno.EDQUOT):
        assert "no space left" in str(write_error("f", OSError(number, "text")))
    assert str(write_error("f", OSError(errno.EIO, "broken"))) == "f: cannot be written: broken"


def test_signals_are_held_back_and_delivered() -> None:
    done: list[str] = []
    with pytest.raises(KeyboardInterrupt), signals_held():
        signal.raise_signal(signal.SIGINT)
        done.append("inside")
    assert done == ["inside"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_signals_are_left_alone_in_other_threads() -> None:
    handlers: list[Any] = []

    def body() -> None:
        with signals_held():
            handlers.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=body)
    thread.start()
    thread.join()
    assert handlers == [signal.default_int_handler]
