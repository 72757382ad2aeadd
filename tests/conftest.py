"""What all tests share."""

from __future__ import annotations

import signal

import pytest

from localsvm.runs.cells import schedule as scheduling

# a shell that starts the tests in the background has Ctrl-C ignored, by them and by the commands that they start
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True)
def workers_whatever_the_size(monkeypatch: pytest.MonkeyPatch) -> None:
    """The tests' data are so small that no run would use worker processes."""
    monkeypatch.setattr(scheduling, "SMALL_RUN", -1.0)
