"""Training and prediction on a cluster: `lsvm train --backend spark` and `lsvm predict --backend spark`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

import click

from localsvm.cli.options import BALANCED
from localsvm.cli.paths import parts_output, text_output

if TYPE_CHECKING:
    from localsvm.engines.spark import Spark
    from localsvm.runs.cells.schedule import Resources
    from localsvm.runs.config import TrainingConfig
    from localsvm.runs.prediction.parts import Collected, Writer
    from localsvm.runs.prediction.table_rows import TableRows
    from localsvm.runs.preparation.tables import TableOptions
    from localsvm.runs.progress import Clock
    from localsvm.runs.summary import Summary

OTHERWISE = {
    "jobs": ("-j", "cores are those of the cluster"),
    "memory": ("--memory", "memory is that of the cluster's processes"),
    "out_of_core": ("--out-of-core", "rows are those of the cluster's processes"),
    "stream": ("--stream", "rows are read in parts anyway"),
    "partition_file": ("--partition-file", "coarse cells are found in the run"),
    "metric_file": ("--metric-file", "rows are read as its columns and origins ask only on one machine"),
    "weights": ("--weights FILE", "its lines would have to be brought to their rows"),
    "weight_column": ("--weight-column", "rows of a cluster have no weights"),
    "group_column": ("--group-column", "rows of a cluster have no groups"),
    "group_file": ("--group-file", "its lines would have to be brought to their rows"),
    "report": ("--report", "its sums depend on the order of the rows"),
}


def check(backend: str | None, master: str | None, train_file: str, output: str, given: dict[str, Any]) -> str | None:
    """The URL of the master, None for a run on this machine; UsageError for options that do not fit together."""
    if not _asked(backend, master):
        return None
    _refuse(given)
    if "-" in (train_file, output):
        raise click.UsageError("--backend spark reads files and writes one: name TRAIN_FILE and MODEL_FILE.")
    return master


def check_prediction(backend: str | None, master: str | None, test_file: str, given: dict[str, Any]) -> str | None:
    """The URL of the master, None for a prediction in this process; UsageError for options that do not fit together."""
    if not _asked(backend, master):
        return None
    _refuse(given)
    if test_file == "-":
        raise click.UsageError("--backend spark reads a file; name TEST_FILE.")
    return master


def _asked(backend: str | None, master: str | None) -> bool:
    if backend != "spark":
        if master is not None:
            raise click.UsageError("--master is the master of a cluster; give --backend spark as well.")
        return False
    if master is None:
        raise click.UsageError("--backend spark needs --master URL, such as spark://HOST:7077, yarn or 'local[4]'.")
    return True


def _refuse(given: dict[str, Any]) -> None:
    for name, (flag, why) in OTHERWISE.items():
        if given.get(name) and not (name == "weights" and given[name] == BALANCED):
            raise click.UsageError(f"{flag} is not for --backend spark: {why}; leave it out.")


def train(
    master: str, file: str, config: TrainingConfig, output: str, clock: Clock, resources: Resources,
    force: bool, resume: bool, table: TableOptions | None = None,
) -> Summary | None:  # fmt: skip
    """Train on a file, or on the files of a folder, that the workers of the cluster see."""
    from localsvm.engines.spark import Spark
    from localsvm.parallel.spark import SparkApplication
    from localsvm.runs.prediction.part_files import text_of
    from localsvm.runs.train import train

    with ExitStack() as stack:
        with clock("start"):
            spark = stack.enter_context(SparkApplication(master))
        if table is None:
            engine = Spark(text_of(spark, file), zero_based=config.zero_based, shifts=config.shifts)
        else:
            with clock("read"):
                engine, config = of_table(spark, file, table, config, resources)
        return train(engine, config, output, resources, force=force, resume=resume)


def of_table(
    spark: Any, file: str, options: TableOptions, config: TrainingConfig, resources: Resources
) -> tuple[Spark, TrainingConfig]:
    """Rows of a table on the cluster, and the options with what is said of its labels."""
    from localsvm.runs.preparation.encoded_parts import engine_of_table

    engine, table = engine_of_table(spark, file, options, config, resources.observer.note, resources.jobs)
    if options.names_labels:
        config = options.settle(config, file, table.labels, table.classes)
    return engine, config


def predict(
    master: str, file: str, model: str, output: str | None, lines: Callable[..., Writer],
    asked: tuple[bool, float | None, float | None], collected: Collected, zero_based: bool | None, force: bool,
    table: TableRows | None = None,
) -> None:  # fmt: skip
    """Predict a file, or the files of a folder, that the workers see; see `runs.prediction.parts`.

    output : ends in / for a folder, which gets a file for each part of the input.
    lines : makes the writer of a part; see `runs.prediction.parts.Prediction`.
    asked : whether probabilities are, which coverage, and which bound of false alarms.
    collected : takes in what the rows say.
    table : reader of the model's tables; None for LIBSVM text.
    """
    from localsvm.parallel.spark import SparkApplication
    from localsvm.runs.prediction.part_files import table_of, text_of
    from localsvm.runs.prediction.parts import Prediction, TablePartRows, TextRows, predict_parts

    with _written(output, force) as write, SparkApplication(master) as spark:
        parts = text_of(spark, file) if table is None else table_of(spark, file, table)
        rows = TextRows(parts.name, collected.indices.zero_based) if table is None else TablePartRows(file)
        task = Prediction(rows, spark.shared(model), lines, zero_based, *asked)
        for part in predict_parts(parts, task, collected):
            write(part)


@contextmanager
def _written(output: str | None, force: bool) -> Iterator[Callable[[str], object]]:
    if output and output.endswith("/"):
        with parts_output(output, force) as write:
            yield write
    else:
        with text_output(output, force) as file:
            yield file.write
