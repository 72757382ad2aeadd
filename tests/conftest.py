"""Settings that all tests share: threads, signals, worker processes, and the choice of fast cases."""

from __future__ import annotations

import os
import random
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from localsvm.blas import ONE_THREAD

for variable, value in ONE_THREAD.items():  # before numpy is loaded: as in the commands, and tests run side by side
    os.environ.setdefault(variable, value)

import pytest  # noqa: E402

from localsvm.cli import plotting  # noqa: E402
from localsvm.runs.cells import schedule as scheduling  # noqa: E402

FAST_CASES = 2  # of a test, without a mark that says how many

# a shell that starts the tests in the background has Ctrl-C ignored, by them and by the commands that they start
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True)
def workers_whatever_the_size(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let runs use worker processes, although the data of the tests are so small that none would."""
    monkeypatch.setattr(scheduling, "SMALL_RUN", -1.0)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave some cases of each test to the fast tests, always the same ones; all others get the mark `whole`."""
    tests: dict[str, list[pytest.Item]] = {}
    for item in items:
        tests.setdefault(item.nodeid.partition("[")[0], []).append(item)
    for name, cases in tests.items():
        mark = cases[0].get_closest_marker("fast")
        most = mark.args[0] if mark is not None else FAST_CASES
        fast = random.Random(name).sample(range(len(cases)), min(most, len(cases)))
        for i in set(range(len(cases))) - set(fast):
            cases[i].add_marker(pytest.mark.whole)


@pytest.fixture
def figures(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The figures that were drawn."""
    drawn, draw = [], plotting.figure_in

    @contextmanager
    def kept(path: str, force: bool) -> Iterator[Any]:
        with draw(path, force) as figure:
            drawn.append(figure)
            yield figure

    monkeypatch.setattr(plotting, "figure_in", kept)
    return drawn
