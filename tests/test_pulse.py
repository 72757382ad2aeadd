"""A long solve gives signs of life, whichever solver it is, and stays as quick and as interruptible as before."""

from __future__ import annotations

from pathlib import Path
from threading import Barrier

import numpy as np
import pytest

from localsvm import pulse
from localsvm.data.blocks.dataset import Dataset
from localsvm.methods.kernel.svm import KernelSVM
from localsvm.methods.linear.linear import LinearSVM
from localsvm.runs.cells.schedule import Resources
from localsvm.runs.config import TrainingConfig
from localsvm.runs.progress import Silent
from localsvm.runs.train import train
from localsvm.threads import Threads


def one_cell() -> Dataset:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((400, 5)).astype(np.float32)
    return Dataset(X, np.where(rng.random(400) < 0.5, 1.0, -1.0))  # noise: many steps at a large C


class Heard(Silent):
    def __init__(self) -> None:
        self.steps: list[int] = []

    def solving(self, steps: int) -> None:
        self.steps.append(steps)


@pytest.mark.parametrize(
    "method",
    [
        KernelSVM(gamma=(0.01,), cost=(1e4,)), KernelSVM(gamma=(0.01,), cost=(1e4,), offset=True),
        LinearSVM(cost=(1.0,), solver="sdca"), LinearSVM(cost=(1.0,), solver="primal", loss="squared-hinge"),
    ],
)  # fmt: skip
def test_solvers_are_heard(method: KernelSVM | LinearSVM, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pulse, "SECONDS", 0.0)
    train(
        one_cell(),
        TrainingConfig(method, "none", metric="none"),
        tmp_path / "m.h5",
        resources=Resources(observer=(heard := Heard())),
    )
    assert max(heard.steps) > 0


def test_one_call_is_heard_seldom(monkeypatch: pytest.MonkeyPatch) -> None:
    now, heard = [100.0], list[int]()
    monkeypatch.setattr(pulse.time, "monotonic", lambda: now[0])
    with pulse.listening(heard.append):
        for steps in range(10):
            pulse.beat(steps)
            now[0] += 0.4 * pulse.SECONDS
    pulse.beat(99)
    assert heard == [0, 3, 6, 9]


def test_what_a_listener_raises_ends_the_solve(tmp_path: Path) -> None:
    class Stop(Silent):
        def solving(self, steps: int) -> None:
            raise KeyboardInterrupt

    config = TrainingConfig(LinearSVM(cost=(1.0,), solver="sdca"), "none")
    with pytest.raises(KeyboardInterrupt):
        train(one_cell(), config, tmp_path / "m.h5", resources=Resources(observer=Stop()))
    assert pulse._listener is None


def test_a_solver_in_a_thread_ends_with_the_run_that_waited_for_it() -> None:
    both, missed = Barrier(2), []

    def work(i: int) -> None:
        both.wait()
        if i == 0:
            raise KeyboardInterrupt
        for _ in range(5_000_000):
            pulse.beat(1)
        missed.append(i)

    with pytest.raises(KeyboardInterrupt), Threads(2) as threads:
        threads.map(work, 2)
    assert not missed
    pulse.beat(1)  # in this thread as before
