"""Training on Apache Spark, for real: two executor processes with Python workers of their own."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from command_line import command, error, invoke, usage_error
from test_distributed import COARSE, manifest, many_classes, plain, wide

from localsvm.data.reading import read
from localsvm.errors import DataError, RunError
from localsvm.methods.linear import LinearSVM
from localsvm.parallel import spark as engine
from localsvm.parallel.spark import Spark
from localsvm.runs.distributed import train_text
from localsvm.runs.training import train

JAVA = shutil.which("java", path=f"{os.environ['JAVA_HOME']}/bin" if "JAVA_HOME" in os.environ else None)
SETTINGS = {"spark.ui.enabled": "false"}


@pytest.fixture(scope="session")
def cluster() -> Iterator[Spark]:
    """One session for all tests: it takes a while to start."""
    pytest.importorskip("pyspark", reason="PySpark is not installed: pip install 'localsvm[spark]'")
    if JAVA is None:
        pytest.skip("there is no Java: install openjdk-17-jre-headless")
    with Spark("local-cluster[2,1,1024]", SETTINGS) as found:
        yield found


@pytest.mark.slow
@pytest.mark.parametrize(
    ("make", "own"),
    [
        (plain, {}),
        (many_classes, {"probability": True, "scale": "zscore", "multiclass": "ava", "metric": "auto"}),
        (wide, {"method": LinearSVM(cost=(0.1, 1.0)), "repeats": 2, "partition": "kmeans"}),
    ],
    ids=["plain", "classes", "wide"],
)
def test_the_model_is_that_of_one_process(cluster: Spark, make: Any, own: dict[str, Any], tmp_path: Path) -> None:
    config, file = replace(COARSE, **own), tmp_path / "rows"
    make(file)
    summary = train(read(file, shifts=config.shifts), config, tmp_path / "one.h5")
    found = train_text(cluster.text(str(file)), config, tmp_path / "two.h5")
    assert manifest(tmp_path / "one.h5") == manifest(tmp_path / "two.h5")
    assert replace(found, seconds={}) == replace(summary, seconds={})


@pytest.mark.slow
def test_the_files_of_a_folder_count_in_the_order_of_their_names(cluster: Spark, tmp_path: Path) -> None:
    plain(tmp_path / "rows")
    lines = (tmp_path / "rows").read_text().splitlines(keepends=True)
    (folder := tmp_path / "parts of a text").mkdir()
    for name, own in (("part-10", lines[500:]), ("part-02", lines[200:500]), ("part-01", lines[:200])):
        (folder / name).write_text("".join(own))
    (folder / "_SUCCESS").touch()
    (folder / ".part-01.crc").write_bytes(b"\0")
    train(read(tmp_path / "rows", shifts=True), COARSE, tmp_path / "one.h5")
    train_text(cluster.text(str(folder)), COARSE, tmp_path / "two.h5")
    assert manifest(tmp_path / "one.h5") == manifest(tmp_path / "two.h5")


def executors(of: int) -> list[int]:
    """The processes of executors below this one."""
    table = subprocess.run(["ps", "-ewwo", "pid=,ppid=,args="], capture_output=True, text=True, check=True).stdout
    rows = [line.split(None, 2) for line in table.splitlines()]
    below, found = {of}, set()
    while below - found:
        found |= below
        below |= {int(pid) for pid, parent, _ in rows if int(parent) in below}
    return [int(pid) for pid, _, args in rows if int(pid) in below and "CoarseGrainedExecutorBackend" in args]


class KillsOne:
    """An observer that kills an executor with SIGKILL when the first coarse cell is there."""

    def __init__(self) -> None:
        self.killed: list[int] = []

    def cell_done(self, wrong: float, weight: float) -> None:
        if not self.killed:
            self.killed = executors(os.getpid())[:1]
            os.kill(self.killed[0], signal.SIGKILL)

    def __getattr__(self, name: str) -> Any:
        return lambda *_: None


@pytest.mark.slow
def test_a_killed_executor_costs_time_and_nothing_else(cluster: Spark, tmp_path: Path) -> None:
    plain(tmp_path / "rows", 2500)
    config = replace(COARSE, coarse_size=150)
    train(read(tmp_path / "rows", shifts=True), config, tmp_path / "one.h5")
    killing = KillsOne()
    train_text(cluster.text(str(tmp_path / "rows")), config, tmp_path / "two.h5", observer=killing)  # type: ignore[arg-type]
    assert len(killing.killed) == 1
    assert manifest(tmp_path / "one.h5") == manifest(tmp_path / "two.h5")


class Stopped(Exception):
    """Ends a run in the middle."""


class StopsOnce(KillsOne):
    """An observer that ends the run when two coarse cells are there."""

    def cell_done(self, wrong: float, weight: float) -> None:
        self.killed.append(0)
        if len(self.killed) == 2:
            raise Stopped


@pytest.mark.slow
def test_a_resumed_run_gives_the_same_model(cluster: Spark, tmp_path: Path) -> None:
    plain(tmp_path / "rows")
    text = cluster.text(str(tmp_path / "rows"))
    train(read(tmp_path / "rows", shifts=True), COARSE, tmp_path / "one.h5")
    with pytest.raises(Stopped):
        train_text(text, COARSE, tmp_path / "two.h5", observer=StopsOnce())  # type: ignore[arg-type]
    assert (tmp_path / "two.h5.journal").exists()
    train_text(text, COARSE, tmp_path / "two.h5", resume=True)
    assert manifest(tmp_path / "one.h5") == manifest(tmp_path / "two.h5")


@pytest.mark.slow
def test_mistakes_are_told_in_a_line(cluster: Spark, tmp_path: Path) -> None:
    plain(tmp_path / "rows", 100)
    (tmp_path / "wrong").write_text((tmp_path / "rows").read_text() + "1 1:x\n")
    with pytest.raises(DataError, match=r"wrong:101:\d+: "):
        train_text(cluster.text(str(tmp_path / "wrong")), COARSE, tmp_path / "m.h5")
    with pytest.raises(RunError, match=r"none: Spark cannot read it: .*does not exist"):
        cluster.text(str(tmp_path / "none"))
    (tmp_path / "one,two").touch()
    with pytest.raises(RunError, match="for a pattern; rename it"):
        cluster.text(str(tmp_path / "one,two"))
    (tmp_path / "empty").mkdir()
    with pytest.raises(RunError, match="no file in this folder"):
        cluster.text(str(tmp_path / "empty"))
    text = cluster.text(str(tmp_path / "rows"))
    (tmp_path / "rows").unlink()  # as if the machines of the cluster did not have it
    with pytest.raises(RunError, match="the workers of Spark do not see this input") as told:
        train_text(text, COARSE, tmp_path / "m.h5")
    assert "\n" not in str(told.value)


def test_a_missing_master_java_or_pyspark_is_told_in_a_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plain(tmp_path / "rows", 100)
    some = ("train", "--backend", "spark", "--coarse-size", 2000, tmp_path / "rows", tmp_path / "m")
    monkeypatch.setattr(engine, "_check_pyspark", lambda: None)
    monkeypatch.setattr(engine, "_check_java", lambda: None)
    assert "--master spark://127.0.0.1:1: no answer" in error(*some, "--master", "spark://127.0.0.1:1")
    monkeypatch.undo()
    monkeypatch.setattr(engine, "_check_pyspark", lambda: None)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert "openjdk-17-jre-headless" in error(*some, "--master", "local[1]")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "java").write_text("#!/bin/sh\necho 'openjdk version \"1.8.0_302\"' >&2\n")
    (tmp_path / "bin" / "java").chmod(0o755)
    assert "is Java 8; install Java 17" in error(*some, "--master", "local[1]")
    monkeypatch.undo()
    monkeypatch.setitem(__import__("sys").modules, "pyspark", None)
    assert "pip install 'localsvm[spark]'" in error(*some, "--master", "local[1]")


def test_options_that_do_not_fit_together(tmp_path: Path) -> None:
    plain(tmp_path / "rows", 100)
    files = (tmp_path / "rows", tmp_path / "m.h5")
    some = ("train", "--backend", "spark")
    assert "give --backend spark as well" in usage_error("train", "--master", "local[1]", *files)
    assert "needs --master URL" in usage_error(*some, *files)
    own = (*some, "--master", "local[1]")
    assert "--coarse-size 20000" in usage_error(*own, *files)
    for given, flag in ((("-j", 2), "-j"), (("--memory", "1G"), "--memory"), (("--weights", files[0]), "--weights")):
        assert f"{flag} " in usage_error(*own, "--coarse-size", 2000, *given, *files)
    assert "name TRAIN_FILE and MODEL_FILE" in usage_error(*own, "--coarse-size", 2000, "-", files[1])


@pytest.mark.slow
def test_the_command(tmp_path: Path) -> None:
    """A program of its own, with a session of its own."""
    pytest.importorskip("pyspark", reason="PySpark is not installed: pip install 'localsvm[spark]'")
    if JAVA is None:
        pytest.skip("there is no Java: install openjdk-17-jre-headless")
    plain(tmp_path / "rows")
    some = ("-g", "0.5,4", "-C", "0.3,3", "--metric", "none", "-P", "voronoi", "-c", "60", "--coarse-size", "250")
    invoke("train", *some, tmp_path / "rows", tmp_path / "one.h5")
    files = ("--backend", "spark", "--master", "local[2]", str(tmp_path / "rows"), str(tmp_path / "two.h5"))
    done = subprocess.run([*command("train"), *some, *files], capture_output=True, text=True, check=False)
    assert done.returncode == 0 and "time        start " in done.stderr, done.stderr
    assert manifest(tmp_path / "one.h5") == manifest(tmp_path / "two.h5")
