"""Command `lsvm partition`, also as the program `lsvm-partition`."""

from __future__ import annotations

from typing import Any

import click

from localsvm.cli import options as opt
from localsvm.cli.given_files import given_metric
from localsvm.cli.metric_report import geometry_text
from localsvm.cli.paths import check_outputs, seekable
from localsvm.cli.program import Program, examples
from localsvm.cli.progress import Progress
from localsvm.cli.reporting import print_json, sizes_table
from localsvm.cli.table_options import of_table, table_of


@click.command(
    cls=Program,
    epilog=examples(
        "lsvm-partition -P voronoi -c 2000 train.libsvm cells.h5",
        "lsvm-partition -P kmeans -c 5000 --plot sizes.png train.libsvm cells.h5",
        "lsvm-train --partition-file cells.h5 train.libsvm model.h5",
    ),
)
@opt.train_file
@opt.file_argument("output", metavar="PARTITION_FILE")
@opt.partitioning
@opt.loss
@opt.seed
@opt.plot("a histogram of the cell sizes")
@opt.zero_based
@of_table
@opt.out_of_core
@opt.resources
@opt.force
@opt.as_json
@opt.quiet
def partition(
    train_file: str, output: str, metric_file: str | None, plot: str | None, jobs: int | None, memory: int | None,
    out_of_core: bool, force: bool, as_json: bool, quiet: bool, **options: Any,
) -> None:  # fmt: skip
    """Divide TRAIN_FILE into cells, as lsvm-train --repeats 1 would.

    PARTITION_FILE keeps the cells and the scaling, for lsvm-train --partition-file. The spread of the cell sizes is
    printed as a table of names and values. Balance is 1 for equal cells, and the factor by which unequal ones slow
    training down.
    """
    from localsvm.cli import plotting
    from localsvm.memory import Budget
    from localsvm.runs.partition import partition_only
    from localsvm.runs.preparation.engine import engine_for
    from localsvm.threads import Threads

    check_outputs(force, [train_file, metric_file], [seekable(output, "a partition"), plot])
    plotting.check(plot)
    table = table_of(options, train_file, ("metric_file",))
    given = given_metric(metric_file, options)
    config = opt.training_config(options, None, given)
    with Progress(quiet) as progress:
        progress.phase("read")
        budget, count = Budget.of(memory), opt.job_count(jobs)
        engine = engine_for(train_file, config, out_of_core, progress.note, jobs=count, budget=budget, table=table)
        progress.phase("partition")
        with Threads(count) as threads:
            divided = partition_only(engine, config, output, force, threads, memory, progress, given)
    sizes, metric = divided.sizes, divided.metric
    if plot:
        plotting.cell_sizes(sizes, divided.cell_size, plot, force)
    if as_json:
        report = {"output": output, "sizes": sizes.tolist(), "spread": sizes_table(sizes), "metric": metric}
        print_json("partition", report)
    else:
        if metric and not quiet:
            click.echo(f"geometry    {geometry_text(metric)}", err=True)
        click.echo("\n".join(f"{name:<10}{value:g}" for name, value in sizes_table(sizes).items()))
