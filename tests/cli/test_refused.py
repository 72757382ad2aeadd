"""Runs that are refused: nothing is left behind, and nothing that was there is lost."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from command_line import FAST, POINTS, error, invoke

from localsvm.data.writers.libsvm import write
from localsvm.errors import RunError
from localsvm.runs import train as training


@pytest.fixture
def folder(train_file: Path, tmp_path: Path) -> Path:
    """Data, data of one class, and a partition of the data, alone in a folder."""
    rows = train_file.read_text().splitlines(keepends=True)
    (tmp_path / "data.libsvm").write_text("".join(rows))
    (tmp_path / "fewer.libsvm").write_text("".join(rows[:-1]))
    write(tmp_path / "one.libsvm", np.ones((20, 2), np.float32), np.ones(20))
    invoke("partition", "-c", 80, "-P", "voronoi", "--metric", "none", tmp_path / "data.libsvm", tmp_path / "cells.h5")
    return tmp_path


REFUSALS = [
    (("--memory", "1M", "data.libsvm", "m.h5"), "more --memory"),
    (("one.libsvm", "m.h5"), "class"),
    (("--partition-file", "cells.h5", "fewer.libsvm", "m.h5"), "cells.h5"),
    (("data.libsvm", "cells.h5"), "exists already"),
    (("data.libsvm", "absent/m.h5"), "does not exist"),
]


@pytest.mark.parametrize(("arguments", "message"), REFUSALS)
def test_a_refused_run_leaves_nothing(
    arguments: Sequence[str], message: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    before = {path: path.read_bytes() for path in folder.iterdir()}
    assert message in error("train", *POINTS, *arguments)
    assert {path: path.read_bytes() for path in folder.iterdir()} == before


def test_a_refused_run_keeps_what_another_one_finished(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model, common = folder / "m.h5", ("-P", "voronoi", "-c", 80, *FAST, folder / "data.libsvm", folder / "m.h5")
    with monkeypatch.context() as patched:  # a run that ends when its cells are finished
        patched.setattr(training, "_write", lambda *_: (_ for _ in ()).throw(RunError("stopped")))
        assert error("train", *common) == "stopped\n"
    journal = Path(f"{model}.journal")
    before = journal.read_bytes()
    for options in ((), ("--memory", "1M", "--force"), ("--seed", 1, "--resume")):
        error("train", *options, *common)
        assert journal.read_bytes() == before
    assert "cells were finished before" in invoke("train", "--resume", *common).stderr
    assert not journal.exists()
