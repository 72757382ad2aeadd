"""Training on Apache Spark, for real: two executor processes with Python workers of their own.

A cluster takes half a minute to start and to warm up, so what needs one is among the whole tests.
"""

from __future__ import annotations

import bz2
import gzip
import logging
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import test_value_engines as value_engines
from command_line import PLAIN, command, error, invoke, usage_error
from test_distributed import COARSE, manifest, plain, train_text
from test_engines import many_classes, wide

from localsvm import LocalSVC
from localsvm.cli.cluster import of_table
from localsvm.data.readers.delimited import TableForm
from localsvm.data.readers.libsvm import read
from localsvm.errors import DataError, RunError
from localsvm.methods.kernel.one_class import OneClassSVM
from localsvm.methods.linear.linear import LinearSVM
from localsvm.parallel import spark as engine
from localsvm.parallel.spark import SparkApplication
from localsvm.runs.cells.schedule import Resources
from localsvm.runs.prediction.part_files import text_of
from localsvm.runs.preparation.tables import TableOptions, TrainingTable, training_rows
from localsvm.runs.train import train

JAVA = shutil.which("java", path=f"{os.environ['JAVA_HOME']}/bin" if "JAVA_HOME" in os.environ else None)
SETTINGS = {"spark.ui.enabled": "false"}


@pytest.fixture(scope="session")
def cluster() -> Iterator[SparkApplication]:
    """One session for all tests: it takes a while to start."""
    pytest.importorskip("pyspark", reason="PySpark is not installed: pip install 'localsvm[spark]'")
    if JAVA is None:
        pytest.skip("there is no Java: install openjdk-17-jre-headless")
    with SparkApplication("local-cluster[2,1,1024]", SETTINGS) as application:
        yield application


@pytest.mark.whole
@pytest.mark.parametrize(
    ("make", "options"),
    [
        (plain, {}),
        (many_classes, {"probability": True, "scale": "zscore", "multiclass": "ava", "metric": "auto"}),
        (wide, {"method": LinearSVM(cost=(0.1, 1.0)), "repeats": 2, "partition": "kmeans"}),
    ],
    ids=["plain", "classes", "wide"],
)
def test_the_model_is_that_of_one_process(
    cluster: SparkApplication, make: Any, options: dict[str, Any], tmp_path: Path
) -> None:
    config, file = replace(COARSE, **options), tmp_path / "rows"
    make(file)
    summary = train(read(file, shifts=config.shifts), config, tmp_path / "one.h5")
    distributed = train_text(text_of(cluster, str(file)), config, tmp_path / "two.h5")
    assert manifest(tmp_path / "one.h5") == manifest(tmp_path / "two.h5")
    assert replace(distributed, seconds={}) == replace(summary, seconds={})


@pytest.mark.whole
@pytest.mark.fast(1)
@pytest.mark.parametrize(("ending", "packed"), [("gz", gzip.compress), ("bz2", bz2.compress)])
def test_compressed_files_are_their_text(cluster: SparkApplication, ending: str, packed: Any, tmp_path: Path) -> None:
    plain(tmp_path / "rows")
    (tmp_path / f"rows.{ending}").write_bytes(packed((tmp_path / "rows").read_bytes()))
    train(read(tmp_path / "rows", shifts=True), COARSE, tmp_path / "one.h5")
    train_text(text_of(cluster, str(tmp_path / f"rows.{ending}")), COARSE, tmp_path / "two.h5")
    assert manifest(tmp_path / "one.h5") == manifest(tmp_path / "two.h5")


@pytest.mark.whole
@pytest.mark.parametrize("read_by", [text_of, SparkApplication.text], ids=["workers", "Spark"])
def test_the_files_of_a_folder_count_in_the_order_of_their_names(
    cluster: SparkApplication, read_by: Any, tmp_path: Path
) -> None:
    plain(tmp_path / "rows")
    lines = (tmp_path / "rows").read_text().splitlines(keepends=True)
    (folder := tmp_path / "parts of a text").mkdir()
    for name, part in (("part-10", lines[500:]), ("part-02", lines[200:500]), ("part-01", lines[:200])):
        (folder / name).write_text("".join(part))
    (folder / "_SUCCESS").touch()
    (folder / ".part-01.crc").write_bytes(b"\0")
    train(read(tmp_path / "rows", shifts=True), COARSE, tmp_path / "one.h5")
    train_text(read_by(cluster, str(folder)), COARSE, tmp_path / "two.h5")
    assert manifest(tmp_path / "one.h5") == manifest(tmp_path / "two.h5")


def as_parquet(spark: SparkApplication, rows: Path, folder: Path, how: str) -> None:
    """LIBSVM text as Parquet files, as a user of Spark would write it."""
    from pyspark.sql import SparkSession

    frame = SparkSession(spark._context).read.format("libsvm").load(str(rows))
    if how == "vectors":
        frame.coalesce(1).write.parquet(str(folder))
        return
    from pyspark.ml.functions import vector_to_array  # no pandas, but the whole of pyspark.ml

    frame = frame.select("label", vector_to_array("features").alias("features"))
    if how == "columns":
        frame = frame.selectExpr("features[0] as `a b`", "int(label) as label", "features[1] as `c.d``e`")
    frame.coalesce(1).write.option("parquet.block.size", 4096).parquet(str(folder))


@pytest.mark.whole
@pytest.mark.parametrize("how", ["vectors", "arrays", "columns"])
def test_parquet_is_read_as_the_text_it_came_from(cluster: SparkApplication, how: str, tmp_path: Path) -> None:
    plain(tmp_path / "rows")
    as_parquet(cluster, tmp_path / "rows", tmp_path / "columns of numbers", how)
    train(read(tmp_path / "rows", shifts=True), COARSE, tmp_path / "one.h5")
    train_text(cluster.text(str(tmp_path / "columns of numbers")), COARSE, tmp_path / "two.h5")
    assert manifest(tmp_path / "one.h5") == manifest(tmp_path / "two.h5")


@pytest.mark.whole
def test_parquet_of_other_columns_is_refused_in_a_line(cluster: SparkApplication, tmp_path: Path) -> None:
    from pyspark.sql import SparkSession

    session = SparkSession(cluster._context)
    for select, message in (
        ("1.5 as target, 2.5 as a", "have no column called label"),
        ("1.5 as label, 'x' as a", "the column a has no numbers"),
        ("1.5 as label, 2 as features", "no vector of pyspark.ml and no array of numbers"),
        ("1.5 as label, array(1) as features, 3 as a", "there are others"),
    ):
        folder = str(tmp_path / str(len(select)))
        session.sql(f"select {select}").write.parquet(folder)
        with pytest.raises(RunError, match=message):
            cluster.text(folder)
    for name, select in (("1", "1.5 as label, 2 as a, 3 as b"), ("2", "1.5 as label, 3 as b, 2 as a")):
        session.sql(f"select {select}").coalesce(1).write.parquet(str(tmp_path / name))
        (tmp_path / "two files").mkdir(exist_ok=True)
        next((tmp_path / name).glob("*.parquet")).rename(tmp_path / "two files" / f"{name}.parquet")
    with pytest.raises(RunError, match=r"2\.parquet: its columns are others .*: label, b, a and not label, a, b$"):
        cluster.text(str(tmp_path / "two files"))
    session.sql("select 1.5 as label, array(1.5, null) as features").coalesce(1).write.parquet(str(tmp_path / "null"))
    with pytest.raises(DataError, match=r"null:1:\d+: expected a number as value, found 'null'"):
        train_text(cluster.text(str(tmp_path / "null")), COARSE, tmp_path / "m.h5")


def executors(of: int) -> list[int]:
    """The processes of executors below this one."""
    table = subprocess.run(["ps", "-ewwo", "pid=,ppid=,args="], capture_output=True, text=True, check=True).stdout
    rows = [line.split(None, 2) for line in table.splitlines()]
    below, seen = {of}, set()
    while below - seen:
        seen |= below
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


def a_table(folder: Path, far: bool) -> Path:
    """Columns of all kinds, one of them far from 0 if `far`; some rows have no label, some fields two lines."""
    rng, n = np.random.default_rng(0), 600
    x, kind, city = rng.normal(size=n), rng.integers(0, 4, n), rng.integers(0, 30, n)
    y = np.where((x > 0) == (kind > 1), "yes", "no")
    y[[3, 299, 300, 590]] = ""
    time = 1.7e9 + rng.integers(0, 1000, n) if far else rng.integers(0, 5, n)
    fields = enumerate(zip(y, x, kind, city, time, strict=True))
    rows = [f'r{i},{a},{b:.3f},"k,\n{c}",c{d},{e:.1f}\n' for i, (a, b, c, d, e) in fields]
    (path := folder / "t.csv").write_text("name,left,x,kind,city,time\n" + "".join(rows))
    return path


@pytest.mark.whole
@pytest.mark.parametrize("how", ["csv", "far", "parquet"])
def test_a_table_gives_the_model_of_one_process(how: str, cluster: SparkApplication, tmp_path: Path) -> None:
    """This process surveys the table; the cluster encodes it, part by part, and trains."""
    file = a_table(tmp_path, how == "far")
    if how == "parquet":
        invoke("convert", file, file := tmp_path / "t.parquet")
    form = TableForm(ignored=frozenset(["name"]), categorical=frozenset(["city"]))
    options = TableOptions(form, label="left", class_weights=(("yes", 2.0),), drops=True)
    config = replace(COARSE, coarse_size=200, cell_size=80, metric="diag")
    rows_there, settled = of_table(cluster, str(file), options, config, Resources())
    train(rows_there, settled, tmp_path / "spark.h5")
    data = training_rows(str(file), options, config.seed, config.shifts, print)
    assert (data.shift is not None) == (how == "far") and settled.class_weights == ((1.0, 2.0),)
    train(data, settled, tmp_path / "one.h5")
    assert manifest(tmp_path / "spark.h5") == manifest(tmp_path / "one.h5")


@pytest.mark.whole
def test_a_table_of_one_kind_needs_no_labels(cluster: SparkApplication, tmp_path: Path) -> None:
    a, b = np.random.default_rng(0).normal(size=(2, 500))
    (tmp_path / "t.csv").write_text("a,b\n" + "".join(f"{x:.4f},{z:.4f}\n" for x, z in zip(a, b, strict=True)))
    method = OneClassSVM(gamma=(1.0,), cost=(0.1,))
    config = replace(COARSE, method=method, metric="none", coarse_size=200, cell_size=80)
    given = str(tmp_path / "t.csv"), TableOptions()
    rows_there, settled = of_table(cluster, *given, config, Resources())
    train(rows_there, settled, tmp_path / "spark.h5")
    table = TrainingTable(*given, config.seed, config.shifts, print, of_one_kind=True)
    train(table.look().read(), config, tmp_path / "one.h5")
    assert manifest(tmp_path / "spark.h5") == manifest(tmp_path / "one.h5")


@pytest.mark.whole
@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_predictions_of_a_table_are_those_of_one_process(
    ending: str, cluster: SparkApplication, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = a_table(tmp_path, far=False)
    some = ("-g", "0.5", "-C", "1", "--metric", "none", "-c", "200", "-q", "-b", "1", "--drop-unlabelled")
    invoke("train", *some, "--label", "left", "--id-column", "name", file, model := tmp_path / f"{ending}.h5")
    text = file.read_text().replace('"k,\n1"', "new").replace("name,", "other,")
    file.write_text(text.replace("r1,", ",", 1))
    if ending == "parquet":
        invoke("convert", "--id-column", "other", file, file := tmp_path / "t.parquet")
    monkeypatch.setattr(engine, "SparkApplication", lambda master: nullcontext(cluster))
    on_spark = ("predict", "--backend", "spark", "--master", "local-cluster[2,1,1024]")
    for flags, out in ((("-b", "1"), "out.csv"), (("--decision-values",), "out.txt"), (("--confusion",), "out.tsv")):
        result = invoke("predict", *flags, file, model, tmp_path / f"one {out}")
        assert invoke(*on_spark, *flags, file, model, tmp_path / out).stderr == result.stderr
        assert (tmp_path / out).read_bytes() == (tmp_path / f"one {out}").read_bytes()
        assert "values that training did not have" in result.stderr and "no column 'name'" in result.stderr
    if ending == "csv":
        with file.open("a") as lines:
            lines.write("r,no,x,k,c,1\n")
        expected = error("predict", file, model, tmp_path / "out")
        assert error(*on_spark, file, model, tmp_path / "out") == expected and "column 'x' has numbers" in expected


@pytest.mark.whole
def test_a_killed_executor_costs_time_and_nothing_else(cluster: SparkApplication, tmp_path: Path) -> None:
    plain(tmp_path / "rows", 2500)
    config = replace(COARSE, coarse_size=150)
    train(read(tmp_path / "rows", shifts=True), config, tmp_path / "one.h5")
    killing = KillsOne()
    train_text(
        text_of(cluster, str(tmp_path / "rows")), config, tmp_path / "two.h5", resources=Resources(observer=killing)
    )  # type: ignore[arg-type]
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


@pytest.mark.whole
def test_a_resumed_run_gives_the_same_model(cluster: SparkApplication, tmp_path: Path) -> None:
    plain(tmp_path / "rows")
    text = text_of(cluster, str(tmp_path / "rows"))
    train(read(tmp_path / "rows", shifts=True), COARSE, tmp_path / "one.h5")
    with pytest.raises(Stopped):
        train_text(text, COARSE, tmp_path / "two.h5", resources=Resources(observer=StopsOnce()))  # type: ignore[arg-type]
    assert (tmp_path / "two.h5.journal").exists()
    train_text(text, COARSE, tmp_path / "two.h5", resume=True)
    assert manifest(tmp_path / "one.h5") == manifest(tmp_path / "two.h5")


@pytest.mark.whole
def test_an_interrupted_call_leaves_no_trace(cluster: SparkApplication, capfd: pytest.CaptureFixture[str]) -> None:
    """PySpark's handler of errors, which runs when Ctrl-C ends a call or SIGTERM a connection, prints nothing."""
    try:
        raise EOFError
    except EOFError:
        cluster._context._accumulatorServer.handle_error(None, ("127.0.0.1", 1))
        assert any(handler is cluster._silence for handler in logging.getLogger().handlers)
    assert capfd.readouterr() == ("", "")


@pytest.mark.whole
def test_mistakes_are_told_in_a_line(cluster: SparkApplication, tmp_path: Path) -> None:
    plain(tmp_path / "rows", 100)
    (tmp_path / "wrong").write_text((tmp_path / "rows").read_text() + "1 1:x\n")
    for read_by in (text_of, SparkApplication.text):
        with pytest.raises(DataError, match=r"wrong:101:\d+: "):
            train_text(read_by(cluster, str(tmp_path / "wrong")), COARSE, tmp_path / "m.h5")
    with pytest.raises(RunError, match=r"none: no such file or folder$"):
        cluster.text(str(tmp_path / "none"))
    (tmp_path / "one,two").touch()
    with pytest.raises(RunError, match="for a pattern; rename it"):
        cluster.text(str(tmp_path / "one,two"))
    (tmp_path / "rows.xz").touch()
    with pytest.raises(RunError, match=r"rows\.xz: Spark cannot decode xz; unpack it"):
        cluster.text(str(tmp_path / "rows.xz"))
    (tmp_path / "empty").mkdir()
    with pytest.raises(RunError, match="no file in this folder"):
        cluster.text(str(tmp_path / "empty"))
    texts = [read_by(cluster, str(tmp_path / "rows")) for read_by in (text_of, SparkApplication.text)]
    (tmp_path / "rows").rename(tmp_path / "gone")  # as if the machines of the cluster did not have it
    for text in texts:
        text.head = lambda lines: (tmp_path / "gone").read_bytes()  # this one has
        with pytest.raises(RunError, match="do not see this input; put it where all machines do") as refused:
            train_text(text, COARSE, tmp_path / "m.h5")
        assert "\n" not in str(refused.value)


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


@pytest.mark.whole
def test_a_master_that_is_none_is_told_in_a_line(tmp_path: Path) -> None:
    pytest.importorskip("pyspark", reason="PySpark is not installed: pip install 'localsvm[spark]'")
    if JAVA is None:
        pytest.skip("there is no Java: install openjdk-17-jre-headless")
    plain(tmp_path / "rows", 100)
    options = ("--backend", "spark", "--master", "sparkle", "--coarse-size", "2000")
    done = subprocess.run(  # a program of its own: there is one session in a process
        command("train", *options, tmp_path / "rows", tmp_path / "m"), capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert done.stderr == (
        "error: --master sparkle: not a master of Spark; give one such as spark://HOST:7077, yarn or 'local[4]'\n"
    )


def test_what_java_says_is_told_without_its_classes() -> None:
    report = "An error occurred\n: org.apache.spark.SparkException: Job aborted: no space\n\tat org.apache.Some(x)\n"
    assert engine._cause(report) == "Job aborted: no space"
    assert engine._plain("26/01/01 10:00:00 ERROR SparkContext: java.net.BindException: no port") == "no port"
    assert engine._plain("something else: it") == "something else: it"


def test_options_that_do_not_fit_together(tmp_path: Path) -> None:
    plain(tmp_path / "rows", 100)
    files = (tmp_path / "rows", tmp_path / "m.h5")
    some = ("train", "--backend", "spark")
    assert "give --backend spark as well" in usage_error("train", "--master", "local[1]", *files)
    assert "needs --master URL" in usage_error(*some, *files)
    with_master = (*some, "--master", "local[1]")
    for given, flag in ((("-j", 2), "-j"), (("--memory", "1G"), "--memory"), (("--weights", files[0]), "--weights")):
        assert f"{flag} " in usage_error(*with_master, "--coarse-size", 2000, *given, *files)
    assert "name TRAIN_FILE and MODEL_FILE" in usage_error(*with_master, "--coarse-size", 2000, "-", files[1])


def lines_of(folder: Path) -> str:
    """Lines of the files of a folder, in the order of their names."""
    return "".join(path.read_text() for path in sorted(folder.iterdir()))


@pytest.mark.whole
def test_predictions_are_those_of_one_process(
    cluster: SparkApplication, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    many_classes(rows := tmp_path / "rows to predict")
    options = ("-b", "1", "-g", "0.5", "-C", "1", "--metric", "none", "-c", "200", "-q")
    invoke("train", *options, rows, model := tmp_path / "a model.h5")
    monkeypatch.setattr(engine, "SparkApplication", lambda master: nullcontext(cluster))
    on_spark = ("predict", "--backend", "spark", "--master", "local-cluster[2,1,1024]")
    for flags in ((), ("--decision-values",), ("-b", "1", "--confusion")):
        result = invoke("predict", "--force", *flags, rows, model, tmp_path / "one")
        assert invoke(*on_spark, "--force", *flags, rows, model, tmp_path / "two").stderr == result.stderr
        assert (tmp_path / "two").read_bytes() == (tmp_path / "one").read_bytes()
    invoke(*on_spark, "-b", "1", rows, model, f"{tmp_path}/parts/")
    assert len(list((tmp_path / "parts").iterdir())) > 1
    assert lines_of(tmp_path / "parts") == (tmp_path / "one").read_text()
    data = read(rows)
    names = np.char.add("class ", data.y.astype(str))
    LocalSVC(gamma=0.5, cost=1.0, metric="none").fit(data.X, names).save(named := tmp_path / "named.h5")
    for backend, out in ((("predict",), "three"), (on_spark, "four")):  # labels are written as the model has them
        invoke(*backend, "-q", "--force", rows, named, tmp_path / out)
    assert (tmp_path / "four").read_bytes() == (tmp_path / "three").read_bytes()
    assert (tmp_path / "four").read_text().startswith("class ")
    # no LIBSVM text: nothing is lost
    invoke(*on_spark, "--force", tmp_path / "parts", model, f"{tmp_path}/parts/", code=1)
    assert lines_of(tmp_path / "parts") == (tmp_path / "one").read_text()
    assert "rows to predict:701:" in error(*on_spark, broken(rows), model, tmp_path / "five")
    assert not (tmp_path / "five").exists()


@pytest.mark.whole
def test_values_are_learned_and_predicted_as_in_one_process(
    cluster: SparkApplication, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a text with levels, and of a table with many levels of a category and intervals."""
    value_engines.plain(tmp_path / "rows", 400)
    value_engines.table(tmp_path / "train.csv", 400, 0)
    value_engines.table(tmp_path / "test.csv", 200, 1)
    monkeypatch.setattr(engine, "SparkApplication", lambda master: nullcontext(cluster))
    spark = ("--backend", "spark", "--master", "local-cluster[2,1,1024]")
    cells = (*value_engines.FEW[:-2], "-P", "voronoi", "-c", 60, "--coarse-size", 150, "-q")
    text = ("train", *value_engines.LOSSES["levels"], *cells, *PLAIN)
    of_table = ("train", *value_engines.LOSSES["squares"], *cells, "--metric", "diag", *value_engines.TABLE)
    asked = ("predict", "-q", "--coverage", ".9", tmp_path / "test.csv")
    for name, how in (("one", ()), ("two", spark)):
        invoke(*text, *how, tmp_path / "rows", tmp_path / f"{name}.text.h5")
        invoke(*of_table, *how, tmp_path / "train.csv", tmp_path / f"{name}.table.h5")
        invoke(*asked, *how, tmp_path / "one.table.h5", tmp_path / f"{name}.csv")
    for kind in ("text", "table"):
        assert manifest(tmp_path / f"one.{kind}.h5") == manifest(tmp_path / f"two.{kind}.h5")
    assert (tmp_path / "one.csv").read_bytes() == (tmp_path / "two.csv").read_bytes()
    assert (tmp_path / "one.csv").read_text().startswith("id,price,price lower,price upper\n")


def broken(rows: Path) -> Path:
    """The file of rows, to which line 701 is appended, with a mistake."""
    with rows.open("a") as file:
        file.write("1 1:x\n")
    return rows


@pytest.mark.whole
def test_the_command(tmp_path: Path) -> None:
    """A program with a session of its own, on one executor, trains the model of one process."""
    pytest.importorskip("pyspark", reason="PySpark is not installed: pip install 'localsvm[spark]'")
    if JAVA is None:
        pytest.skip("there is no Java: install openjdk-17-jre-headless")
    plain(tmp_path / "rows")
    some = ("-g", "0.5,4", "-C", "0.3,3", "--metric", "none", "-P", "voronoi", "-c", "60", "--coarse-size", "250")
    invoke("train", *some, tmp_path / "rows", tmp_path / "one.h5")
    files = (
        "--backend",
        "spark",
        "--master",
        "local-cluster[1,1,1024]",
        str(tmp_path / "rows"),
        str(tmp_path / "two.h5"),
    )
    done = subprocess.run([*command("train"), *some, *files], capture_output=True, text=True, check=False)
    assert done.returncode == 0 and "time        start " in done.stderr, done.stderr
    assert " coarse ones\n" in done.stderr
    assert manifest(tmp_path / "one.h5") == manifest(tmp_path / "two.h5")
