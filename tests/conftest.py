"""What all tests share."""

from __future__ import annotations

import pytest

from localsvm import running


@pytest.fixture(autouse=True)
def workers_whatever_the_size(monkeypatch: pytest.MonkeyPatch) -> None:
    """The tests' data are so small that no run would use worker processes."""
    monkeypatch.setattr(running, "SMALL_RUN", -1.0)
