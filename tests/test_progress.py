"""Reports of a run while it lasts: its share, the time left, a line now and then, by clocks that the tests set."""

from __future__ import annotations

import io
import sys

import numpy as np
import pytest

from localsvm.cli.progress import Progress
from localsvm.estimators.progress import ProgressLines
from localsvm.runs.progress import Standing, Work


class Watch:
    """A clock that stands until it is set."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def test_the_share_is_of_squared_sizes() -> None:
    work = Work()
    work.begin(0, np.asarray([100, 200, 200]), settings=4)
    assert (work.share, work.settings) == (0.0, 0)
    work.record(0, "0")
    assert work.share == pytest.approx(1 / 9)
    for setting in (1, 4, 4):  # a worker was killed, and the setting scored again
        work.record(0, f"2/setting/{setting}")
    assert work.settings == 2 and work.share == pytest.approx(1 / 9 + 4 / 9 * 2 / 5)
    shares = []
    for setting in range(10):  # more than were expected
        work.record(0, f"1/setting/{setting}")
        shares.append(work.share)
    assert shares == sorted(shares) and shares[-1] < 1.0
    work.record(0, "1")
    work.record(0, "2")
    assert work.share == pytest.approx(1.0) and work.settings == 0


def test_coarse_cells_share_the_work_alike() -> None:
    work = Work(coarse=4, complete=1)
    assert work.share == pytest.approx(0.25)
    work.begin(2, np.asarray([100, 100]), 1)
    work.record(2, "0")
    assert work.share == pytest.approx(0.375)
    work.record(2, "1")
    work.record(2, "division")
    assert work.share == pytest.approx(0.5)
    work.record(3, "0")  # of one that was divided elsewhere
    work.record(3, "division")
    assert work.share == pytest.approx(0.75)


def test_the_time_left_follows_the_work_and_not_the_count_of_cells() -> None:
    watch, left = Watch(), []
    sizes = np.asarray([2000, 1000, 1000, 500, 500, 500, 500])
    work, standing = Work(), Standing(watch)
    work.begin(0, sizes, 1)
    standing.cells(len(sizes), 0)
    standing.work(work.share, 0)
    assert standing.text == "0 of 7 cells"
    for cell, size in enumerate(sizes):
        watch.now += 1.2e-3 * float(size) ** 2  # 8400 s in all
        work.record(0, str(cell))
        standing.cell_done(size / 10, float(size))
        standing.work(work.share, work.settings)
        left.append(standing.text)
    assert left[0] == "1 of 7 cells, error 10.00%, about 60 min left"
    assert [text.rpartition("about ")[2] for text in left[:-1]] == [
        "60 min left", "40 min left", "20 min left", "15 min left", "10 min left", "5 min left",
    ]  # fmt: skip
    assert left[-1] == "7 of 7 cells, error 10.00%"


def test_work_of_an_interrupted_run_took_no_time_now() -> None:
    watch = Watch()
    standing = Standing(watch)
    standing.cells(1, 0)
    standing.work(0.8, 7)
    assert standing.text == "0 of 1 cells, 7 settings"
    watch.now += 7200.0
    standing.work(0.9, 8)
    assert standing.text == "0 of 1 cells, 8 settings, about 2.0 h left"


def test_off_a_terminal_a_line_tells_now_and_then(capsys: pytest.CaptureFixture[str]) -> None:
    for quiet in (False, True):
        watch = Watch()
        with Progress(quiet, clock=watch) as progress:
            progress.cells(100, 0)
            progress.work(0.0, 0)
            for cell in range(100):
                watch.now += 1.0
                progress.cell_done(0.0, 0.0)
                progress.work((cell + 1) / 100, 0)
        lines = capsys.readouterr().err.splitlines()
        assert lines == ([] if quiet else [
            "30 of 100 cells, about 1 min left", "60 of 100 cells, about 40 s left", "90 of 100 cells, about 10 s left",
        ])  # fmt: skip


def test_a_short_run_has_no_lines(capsys: pytest.CaptureFixture[str]) -> None:
    watch = Watch()
    with Progress(False, clock=watch) as progress:
        progress.cells(1, 0)
        for setting in range(10):
            watch.now += 2.9
            progress.work(setting / 11, setting)
    assert capsys.readouterr().err == ""


def test_a_solver_is_a_sign_of_life(capsys: pytest.CaptureFixture[str]) -> None:
    watch = Watch()
    with Progress(False, clock=watch) as progress:
        progress.cells(1, 0)
        progress.work(0.0, 0)
        for steps in (8192, 81920):
            watch.now += 20.0
            progress.solving(steps)
        watch.now += 40.0
        progress.work(0.3, 3)  # a setting is done, and with it its solver
    assert capsys.readouterr().err.splitlines() == [
        "0 of 1 cells, a solver at 81,920 steps", "0 of 1 cells, 3 settings, about 3 min left",
    ]  # fmt: skip


def test_on_a_terminal_a_bar_tells_of_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setattr(sys, "stderr", screen := Terminal())
    watch = Watch()
    with Progress(False, clock=watch) as progress:
        progress.cells(1, 0)
        progress.work(0.0, 0)
        watch.now += 60.0
        progress.work(0.25, 3)
        progress.note("of something")
        assert progress._bar is not None
        progress._bar.refresh()
        progress.solving(16_384)
        assert "3 settings, a solver at 16,384 steps, about" in screen.getvalue()
        assert " 25%|" in screen.getvalue() and "| 0 of 1 cells, 3 settings, about 3 min left" in screen.getvalue()
    assert screen.getvalue().endswith("\r\033[K\n") or screen.getvalue().endswith("\r\033[K")


def test_verbose_tells_of_each_tenth(capsys: pytest.CaptureFixture[str]) -> None:
    lines = ProgressLines(str)
    lines.cells(1, 0)
    for setting in range(31):
        lines.work(setting / 31, setting)
    lines.cell_done(10.0, 100.0)
    lines.work(1.0 - 1e-16, 0)
    printed = capsys.readouterr().err.splitlines()
    assert len(printed) == 11
    assert printed[1].startswith("localsvm: 0 of 1 cells, 4 settings")
    assert printed[-1] == "localsvm: 1 of 1 cells, error 10.00%"
