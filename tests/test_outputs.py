"""Output files: never in the way of each other, whole or not at all."""

from __future__ import annotations

import errno
import os
import signal
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
        temporary.read_text()
    with pytest.raises(FileNotFoundError), replacing(tmp_path / "out"):
        (tmp_path / "another file").read_text()


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
    found: list[Any] = []

    def body() -> None:
        with signals_held():
            found.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=body)
    thread.start()
    thread.join()
    assert found == [signal.default_int_handler]
