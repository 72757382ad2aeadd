"""Training on a cluster: `lsvm train --backend spark`."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import click

from localsvm.cli.options import BALANCED

if TYPE_CHECKING:
    from localsvm.runs.config import TrainingConfig
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
}


def check(backend: str | None, master: str | None, train_file: str, output: str, given: dict[str, Any]) -> str | None:
    """The URL of the master; None for a run on this machine. UsageError for options that do not fit together."""
    if backend != "spark":
        if master is not None:
            raise click.UsageError("--master is the master of a cluster; give --backend spark as well.")
        return None
    if master is None:
        raise click.UsageError("--backend spark needs --master URL, such as spark://HOST:7077, yarn or 'local[4]'.")
    for name, (flag, why) in OTHERWISE.items():
        if given.get(name) and not (name == "weights" and given[name] == BALANCED):
            raise click.UsageError(f"{flag} is not for --backend spark: {why}; leave it out.")
    if "-" in (train_file, output):
        raise click.UsageError("--backend spark reads files and writes one: name TRAIN_FILE and MODEL_FILE.")
    return master


def train(master: str, file: str, config: TrainingConfig, output: str, clock: Clock, extra: dict[str, Any]) -> Summary:
    """Train on a file, or on the files of a folder, that the workers of the cluster see. extra: for `train_text`."""
    from localsvm.parallel.spark import Spark
    from localsvm.runs.distributed import check, train_text

    check(config)
    with ExitStack() as stack:
        with clock("start"):
            spark = stack.enter_context(Spark(master))
        return train_text(spark.text(file), config, output, **extra)
