"""Command `lsvm train`, also as the program `lsvm-train`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from localsvm.cli import cluster, front
from localsvm.cli import options as opt
from localsvm.cli.given_files import given_metric
from localsvm.cli.paths import check_model_output, check_outputs, default_model, model_output, passes_through
from localsvm.cli.program import Program, examples
from localsvm.cli.program import time_limit as limited
from localsvm.cli.progress import Progress
from localsvm.cli.reporting import print_json, summary_text
from localsvm.cli.table_options import of_table, settled, table_of

if TYPE_CHECKING:
    from localsvm.engines.base import Engine
    from localsvm.runs.cells.schedule import Resources
    from localsvm.runs.config import TrainingConfig
    from localsvm.runs.preparation.tables import TableOptions
    from localsvm.runs.progress import Clock
    from localsvm.runs.summary import Summary

# options that a stream does not go with
IN_MEMORY = ("resume", "time_limit", "partition_file", "metric_file", "group_file")


@click.command(
    cls=Program,
    epilog=examples(
        "lsvm-train train.libsvm                     # writes train.model.h5",
        "lsvm-train -P voronoi -c 2000 train.libsvm model.h5",
        "lsvm-train -g 0.5 -C 10 train.libsvm        # no selection",
        "lsvm-train --label churn customers.csv      # a table, whose columns have names",
        "xz -dc big.xz | lsvm-train - model.h5",
        "lsvm-train train.libsvm - | ssh host 'cat > model.h5'",
    ),
)
@opt.train_file
@opt.file_argument("model_file", metavar="[MODEL_FILE]", required=False)
@opt.learning
@opt.partitioning
@opt.repeats
@opt.selection
@opt.weights
@opt.groups
@opt.grid
@opt.select
@opt.probability
@opt.coverage
@opt.copies
@opt.false_alarm
@opt.roc
@opt.alarm
@opt.plot("the front of --roc or --score npl, detected rows over false alarms,")
@opt.seed
@opt.partition_file
@opt.zero_based
@opt.force_classes
@of_table
@opt.stream
@opt.out_of_core
@opt.resources
@opt.cluster
@opt.time_limit
@opt.resume
@opt.force
@opt.as_json
@opt.quiet
def train(
    train_file: str, model_file: str | None, partition_file: str | None, metric_file: str | None, stream: bool,
    plot: str | None, out_of_core: bool, jobs: int | None, memory: int | None, backend: str | None,
    master: str | None, time_limit: float | None, resume: bool, force: bool, as_json: bool, quiet: bool, **options: Any,
) -> None:  # fmt: skip
    """Train local SVMs on TRAIN_FILE and write them to MODEL_FILE.

    TRAIN_FILE is LIBSVM text or a table (CSV), or - for stdin. Without MODEL_FILE, train.libsvm gives train.model.h5
    beside it; - is stdout. Without options: one cell up to 10000 rows, Voronoi cells beyond; features divided by their
    deviations; distance, ranks and metric by what predicts held-out rows best; gamma and C by cross-validation.
    """
    from localsvm.runs import train as training
    from localsvm.runs.cells.schedule import Resources
    from localsvm.runs.progress import Clock
    from localsvm.runs.streams.train import train_stream

    output = model_file or default_model(train_file)
    check_model_output(output, resume, time_limit, as_json)
    weights, groups = opt.weights_file(options, train_file), options["group_file"]
    check_outputs(force or resume, [train_file, partition_file, metric_file, weights, groups], [output, plot])
    table = table_of(options, train_file, ("metric_file", "stream"))
    config = opt.training_config(options, partition_file, given := given_metric(metric_file, options, partition_file))
    url = cluster.check(backend, master, train_file, output, click.get_current_context().params)
    _check_front(config, output, plot)
    stream = _check_reading(stream, config, out_of_core)
    kept = not stream and not passes_through(output)
    with model_output(output) as path, Progress(quiet, kept) as progress, limited(time_limit):
        opt.note_cell_size(options, progress.note)
        clock, may = Clock(progress), Resources(opt.job_count(jobs), memory, progress)
        if url:
            summary = cluster.train(url, train_file, config, path, clock, may, force, resume, table)
        elif stream:
            summary = train_stream(train_file, config, path, may, force=force, weights=weights)
        else:
            rows = _rows(train_file, (weights, groups), config, clock, may, out_of_core, table)
            config = settled(config, table, rows, options, progress.note)
            files: dict[str, Any] = {"partition_file": partition_file, "given": given}
            summary = training.train(rows, config, path, may, force=force, resume=resume, **files)
    _print(summary, clock, config, output, quiet, as_json)


def _rows(
    file: str, of_rows: tuple[str | None, str | None], config: TrainingConfig, clock: Clock, may: Resources,
    out_of_core: bool, table: TableOptions | None,
) -> Engine:  # fmt: skip
    """The rows of a file. of_rows : the files of their weights and groups."""
    from localsvm.memory import Budget
    from localsvm.runs.preparation.engine import engine_for

    with clock("read"):
        budget, (weights, groups) = Budget.of(may.memory), of_rows
        return engine_for(file, config, out_of_core, may.observer.note, weights, may.jobs, budget, table, groups)


def _front_of(model_file: str) -> dict[str, Any] | None:
    """Description of the front of a model; see `Detected.describe`."""
    from localsvm.runs.predict import LocalModel

    with LocalModel(model_file) as model:
        return None if model.detected is None else model.detected.describe()


def _print_front(detection: dict[str, Any] | None, config: TrainingConfig) -> None:
    """Draw a front where a picture is asked for, and print it for --roc."""
    params = click.get_current_context().params
    if detection and params["plot"]:
        front.draw(detection, params["plot"], params["force"] or params["resume"])
    if detection and config.roc and not params["as_json"]:
        front.print_front(detection)


def _print(
    summary: Summary | None, clock: Clock, config: TrainingConfig, output: str, quiet: bool, as_json: bool
) -> None:  # fmt: skip
    """Print what a run did: of one that had finished before, without a summary, its front alone."""
    from dataclasses import asdict

    if summary is None:
        if config.detects and not as_json:
            _print_front(_front_of(output), config)
        return
    summary.seconds = clock.seconds | summary.seconds
    if not quiet:
        click.echo(summary_text(summary, config.method, "stdout" if output == "-" else output), err=True)
    if as_json:
        print_json("train", {"model": output, "config": config.as_dict(), "summary": asdict(summary)})
    _print_front(summary.detection, config)


def _check_front(config: TrainingConfig, output: str, plot: str | None) -> None:
    """Raise UsageError for a front on the stdout that the model goes to, and for a picture of no front."""
    from localsvm.cli import plotting

    plotting.check(plot)
    if config.roc and output == "-":
        raise click.UsageError("--roc prints its front on stdout, so MODEL_FILE must be a file.")
    if plot and not config.detects:
        raise click.UsageError("--plot draws the front of --roc or --score npl; give one of them.")


def _check_reading(asked: bool, config: TrainingConfig, out_of_core: bool) -> bool:
    """True where the file is a stream; UsageError where options do not fit how it is read.

    asked : whether --stream was given.
    """
    context = click.get_current_context()
    given = {f"--{name.replace('_', '-')}": context.params[name] for name in IN_MEMORY}
    in_memory = [name for name, value in {"stdin": context.params["train_file"] == "-", **given}.items() if value]
    once = config.method.learning_once is not None
    stream = "--online full" if once else "--stream" if asked else None
    if stream and in_memory:
        remedy = "write it to a file first" if "stdin" in in_memory else "leave one of the two out"
        raise click.UsageError(f"{stream} reads a file several times, and goes without {in_memory[0]}; {remedy}.")
    if once and context.get_parameter_source("folds") is ParameterSource.COMMANDLINE:
        raise click.UsageError("--online full learns each row once and has no folds; leave -v out.")
    if stream and config.blocks:
        raise click.UsageError(f"{stream} deals rows out to folds at random; give -v a number.")
    if out_of_core and stream:
        raise click.UsageError(f"{stream} keeps no rows, in memory or on a disk; leave --out-of-core out.")
    return stream is not None
