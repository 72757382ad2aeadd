"""What all tests share."""

from __future__ import annotations

import os
import signal

from localsvm.blas import ONE_THREAD

for variable, value in ONE_THREAD.items():  # before numpy is loaded: as in the commands, and tests run side by side
    os.environ.setdefault(variable, value)

import pytest  # noqa: E402

from localsvm.runs.cells import schedule as scheduling  # noqa: E402

# a shell that starts the tests in the background has Ctrl-C ignored, by them and by the commands that they start
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True)
def workers_whatever_the_size(monkeypatch: pytest.MonkeyPatch) -> None:
    """The tests' data are so small that no run would use worker processes."""
    monkeypatch.setattr(scheduling, "SMALL_RUN", -1.0)
